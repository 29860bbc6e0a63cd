/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of torch's overloads. A row's lines of overload_ops.def follow each other; the first one
 * whose condition the call meets has the name.
 */
#include "mindtorch/dispatch/overload_names.h"

#include "base/compiler.h"
#include "op_numbers.h"

#include <pthread.h>

typedef enum condition {
    ALWAYS,
    GIVEN,     /* the argument is not None */
    NUMBER,    /* it is a number, or a bool */
    NUMBERS,   /* it is, and so is the next one */
    BOTH,      /* neither it nor the next one is None */
    CHANGED,   /* it is a number, and not the default */
    NOT_ZERO,  /* it is a number, and not 0 */
    FROM_ZERO, /* it is not None, and argument 0 is 0 */
    SINGLE     /* it is a list of one integer */
} condition;

typedef struct line {
    uint16_t op;
    uint8_t condition;
    uint8_t argument;
    const char *name;
} line;

static const line lines[] = {
#define X(id, condition_, argument_, name_) \
    {.op = MT__OP_##id, .condition = condition_, .argument = argument_, .name = name_},
#include "mindtorch/dispatch/overload_ops.def"
#undef X
};

enum {
    N_LINES = MT_COUNT(lines)
};

/* By op number: the place after its first line; 0: it has none. Written once. */
static uint16_t first_lines[MT__OP_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_first_lines(void)
{
    for (uint32_t i = N_LINES; i > 0; i--) {
        first_lines[lines[i - 1].op] = (uint16_t)i;
    }
}

static bool is_number(const mt_value *value)
{
    return value->kind == MT_KIND_BOOL || value->kind == MT_KIND_INT || value->kind == MT_KIND_REAL;
}

/* 0 of what is no number. */
static double number_of(const mt_value *value)
{
    return value->kind == MT_KIND_REAL ? value->of.real
           : is_number(value)          ? (double)value->of.integer
                                       : 0.0;
}

static bool is_met(const line *l, const mt__op_row *row, const mt_value *args)
{
    const mt_value *arg = &args[l->argument];
    switch ((condition)l->condition) {
    case ALWAYS: return true;
    case GIVEN: return arg->kind != MT_KIND_NONE;
    case NUMBER: return is_number(arg);
    case NUMBERS: return is_number(arg) && is_number(arg + 1);
    case BOTH: return arg->kind != MT_KIND_NONE && arg[1].kind != MT_KIND_NONE;
    case CHANGED:
        return is_number(arg) && number_of(arg) != number_of(&row->params[l->argument].value);
    case NOT_ZERO: return is_number(arg) && number_of(arg) != 0;
    case FROM_ZERO: return arg->kind != MT_KIND_NONE && number_of(&args[0]) == 0;
    case SINGLE: return arg->kind == MT_KIND_INTS && arg->count == 1;
    }
    return false;
}

const char *mt__overload_of(const mt__op_row *row, const mt_value *args)
{
    if ((row->flags & MT_OP_USER) != 0) {
        return row->overload;
    }
    (void)pthread_once(&once, find_first_lines);
    uint32_t after = first_lines[row->op];
    for (uint32_t i = after - 1; after != 0 && i < N_LINES && lines[i].op == row->op; i++) {
        if (is_met(&lines[i], row, args)) {
            return lines[i].name;
        }
    }
    return after != 0 ? "" : row->overload;
}
