/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the op table: gathers the lines of each op, makes the in-place forms and the aliases.
 */
#include "base/fail.h"
#include "opgen.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The table's words. */
enum {
    COMPOSITE = MT_OP_COMPOSITE,
    INPLACE = MT_OP_INPLACE,
    VIEW = MT_OP_VIEW,
    RANDOM = MT_OP_RANDOM,
    SYNC = MT_OP_SYNC,
    FACTORY = MT_OP_FACTORY,
    POINTWISE = MT_OP_POINTWISE,
    REDUCTION = MT_OP_REDUCTION,
    OPTIMIZER = MT_OP_OPTIMIZER,
    ANY_DEVICE = MT_OP_ANY_DEVICE,
    PRODUCT = MT_OP_PRODUCT,
    FUSED = MT_OP_FUSED,
    LIKE = MT_OP_LIKE,
    UNNUMBERED = MT_OP_UNNUMBERED,
    QUIET = MT_OP_QUIET,
    AND_INPLACE = OPGEN_AND_INPLACE,
    UNDERIVED = OPGEN_UNDERIVED,
    NONE = MT_SHOW_NONE,
    NO = MT_SHOW_FALSE,
    YES = MT_SHOW_TRUE,
    ZERO = MT_SHOW_ZERO,
    ONE = MT_SHOW_ONE,
    LONG = MT_SHOW_LONG,
    NOTHING = MT_SHOW_NOTHING
};
#define FLOPS(rule) MT_OP_FLOPS(rule)
#define ARG(n)      ((uint32_t)MT_SAVE_ARG << (n))
#define RESULT(n)   ((uint32_t)MT_SAVE_RESULT << (n))
#define WANTED(n)   (1U << (n))
#define INPUT(n)    (MT_SHOW_ARG | (n))
#define WRAPPED(n)  (MT_SHOW_WRAPPED | (n))
#define SAVED(n)    (MT_SHOW_SAVED | (n))
#define TYPE_OF(n)  (MT_SHOW_TYPE_OF | (n))
#define BOOLS(n)    (MT_SHOW_BOOLS | (n))
#define ZEROS(n)    (MT_SHOW_ZEROS | (n))
#define BIAS_OF(n)  (MT_SHOW_BIAS_OF | (n))

#define OP(id_, schema, flags, run) \
    {.kind = LINE_OP, .id = #id_, .text = schema, .bits = flags, .function = "mt__run_" #run},
#define ALIAS(id_, name, flags, target) \
    {.kind = LINE_ALIAS, .id = #id_, .text = name, .bits = flags, .function = #target},
#define DERIVATIVE(node, saves, formula) \
    {.kind = LINE_DERIVATIVE, .text = node, .bits = saves, .function = "mt__" #formula},
#define FORMULA(node, ...) {.kind = LINE_FORMULA, .text = node, .function = #__VA_ARGS__},
#define NODE_IF(condition_, argument_, node) \
    {.kind = LINE_NODE_IF, .condition = #condition_, .argument = argument_, .text = node},
#define SAVED_IF(argument_, wanted) {.kind = LINE_SAVED_IF, .argument = argument_, .bits = wanted},
#define REPORTED(...)               REPORTED_IF(ALWAYS, 0, __VA_ARGS__)
#define REPORTED_IF(condition_, argument_, ...)  \
    {.kind = LINE_REPORTED,                      \
     .reported = {.when = MT_SHOWN_##condition_, \
                  .argument = argument_,         \
                  .codes = {__VA_ARGS__, MT_SHOW_END}}},
#define INPLACE_FORM(...) {.kind = LINE_INPLACE_FORM}, __VA_ARGS__

static const op_line lines[] = {
#include "mindtorch/ops/all_ops.def"
};

/* What UNDERIVED means. */
static const op_line refusal[] = {DERIVATIVE("NotImplemented", 0, refuse_backward)};

static op_text ops[2 * MT_COUNT(lines)];
static size_t n_ops;

/* "clamp" or "clamp_": up to the overload, and for an in-place form the underscore. */
static void put_text(op_text *op, const char *text, bool inplace)
{
    int length = (int)strcspn(text, ".(");
    snprintf(op->schema_text, sizeof op->schema_text, "%.*s%s%s", length, text, inplace ? "_" : "",
             text + length);
}

static op_text *add_op(const op_line *line, bool inplace)
{
    op_text *op = &ops[n_ops++];
    const char *mark = inplace ? "_" : "";
    snprintf(op->id, sizeof op->id, "%s%s", line->id, mark);
    put_text(op, line->text, inplace);
    op->flags = line->bits & ~(uint32_t)(OPGEN_AND_INPLACE | OPGEN_UNDERIVED);
    op->derivative = (line->bits & OPGEN_UNDERIVED) != 0 ? refusal : NULL;
    if (inplace) { /* FLOPs are counted for the plain form alone, as in torch */
        op->flags = (op->flags & 0xFFFFFFU) | MT_OP_INPLACE;
    }
    if (line->kind == LINE_ALIAS) {
        snprintf(op->target, sizeof op->target, "%s%s", line->function, mark);
        op->run = "mt__run_behind";
    } else {
        op->run = line->function;
    }
    return op;
}

static bool add_line(op_text *op, const op_line *line)
{
    switch (line->kind) {
    case LINE_DERIVATIVE:
    case LINE_FORMULA: op->derivative = line; return true;
    case LINE_SAVED_IF:
        if (line->argument < MT_RULED_ARGS) {
            op->saved_if[line->argument] = line->bits;
            return true;
        }
        return false;
    case LINE_NODE_IF:
        if (op->n_node_if < OPGEN_MAX_RULES) {
            op->node_if[op->n_node_if++] = line;
            return true;
        }
        return false;
    case LINE_REPORTED:
        if (op->n_reported < OPGEN_MAX_RULES) {
            op->reported[op->n_reported++] = line;
            return true;
        }
        return false;
    default: return false;
    }
}

/* An in-place form has the lines of the plain one; its own replace those of their kind. */
static void drop_lines(op_text *op, line_kind kind)
{
    op->n_node_if = kind == LINE_NODE_IF ? 0 : op->n_node_if;
    op->n_reported = kind == LINE_REPORTED ? 0 : op->n_reported;
    if (kind == LINE_SAVED_IF) {
        memset(op->saved_if, 0, sizeof op->saved_if);
    }
}

static bool gather_lines(void)
{
    op_text *plain = NULL, *twin = NULL;
    uint32_t own = 0; /* kinds of lines of which the in-place form has its own */
    for (const op_line *line = lines; line < lines + MT_COUNT(lines); line++) {
        if (line->kind == LINE_OP || line->kind == LINE_ALIAS) {
            plain = add_op(line, false);
            twin = (line->bits & OPGEN_AND_INPLACE) != 0 ? add_op(line, true) : NULL;
            own = 0;
            continue;
        }
        if (line->kind == LINE_INPLACE_FORM) {
            plain = NULL;
            continue;
        }
        if (plain == NULL && twin != NULL && (own >> line->kind & 1) == 0) {
            own |= 1U << line->kind;
            drop_lines(twin, line->kind);
        }
        if ((plain == NULL && twin == NULL) || (plain != NULL && !add_line(plain, line)) ||
            (twin != NULL && !add_line(twin, line))) {
            fprintf(stderr, "opgen: %s: a line too many\n", n_ops > 0 ? ops[n_ops - 1].id : "");
            return false;
        }
    }
    return true;
}

static op_text *find_op(const char *id)
{
    for (size_t i = 0; i < n_ops; i++) {
        if (strcmp(ops[i].id, id) == 0) {
            return &ops[i];
        }
    }
    return NULL;
}

/* Another name takes what its target takes, unless it says so itself. */
static bool complete_alias(op_text *alias)
{
    const op_text *target = find_op(alias->target);
    if (target == NULL || target->target[0] != '\0') {
        fprintf(stderr, "opgen: %s: no op %s\n", alias->id, alias->target);
        return false;
    }
    if (strchr(alias->schema_text, '(') == NULL) {
        size_t length = strlen(alias->schema_text);
        snprintf(alias->schema_text + length, sizeof alias->schema_text - length, "%s",
                 strchr(target->schema_text, '('));
    }
    alias->flags |= MT_OP_COMPOSITE | (target->flags & (MT_OP_INPLACE | MT_OP_SYNC));
    return true;
}

/* The function of the derivative, and what it reads. An in-place form has that of the op before. */
static bool complete_derivative(op_text *op)
{
    const op_line *line = op->derivative;
    if (line->kind == LINE_DERIVATIVE) {
        snprintf(op->derive, sizeof op->derive, "%s", line->function);
        op->saves = line->bits;
        return true;
    }
    if (op > ops && op[-1].derivative == line) {
        snprintf(op->derive, sizeof op->derive, "%s", op[-1].derive);
        op->saves = op[-1].saves;
        return true;
    }
    if (snprintf(op->derive, sizeof op->derive, "mt__derive_%s", op->id) >=
        (int)sizeof op->derive) {
        fprintf(stderr, "opgen: %s: the name is too long for that of its derivative\n", op->id);
        return false;
    }
    for (char *at = op->derive; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    return opgen_formula(ops, n_ops, op);
}

const op_text *opgen_table(size_t *count)
{
    if (!gather_lines()) {
        return NULL;
    }
    for (op_text *op = ops; op < ops + n_ops; op++) {
        if (op->target[0] != '\0' && !complete_alias(op)) {
            return NULL;
        }
        if (mt__schema_parse(op->schema_text, &op->schema) != 0) {
            fprintf(stderr, "opgen: %s: %s\n", op->id, mtb_last_failure()->message);
            return NULL;
        }
    }
    for (op_text *op = ops; op < ops + n_ops; op++) {
        if (op->derivative != NULL && !complete_derivative(op)) {
            return NULL;
        }
    }
    *count = n_ops;
    return ops;
}
