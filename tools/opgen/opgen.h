/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of opgen (opgen.c).
 */
#ifndef TOOLS_OPGEN_OPGEN_H
#define TOOLS_OPGEN_OPGEN_H

#include "base/compiler.h"
#include "mindtorch/dispatch/op_row.h"
#include "mindtorch/dispatch/schema.h"

#include <stdio.h>

enum {
    OPGEN_AND_INPLACE = 1 << 20, /* in flags, besides those of op_row.h */
    OPGEN_UNDERIVED = 1 << 21,
    OPGEN_MAX_RULES = 4 /* NODE_IF, REPORTED and REPORTED_IF lines of an op */
};

/* A line of all_ops.def, which explains the words. */
typedef enum line_kind {
    LINE_OP,
    LINE_ALIAS,
    LINE_DERIVATIVE,
    LINE_FORMULA,
    LINE_NODE_IF,
    LINE_SAVED_IF,
    LINE_REPORTED,
    LINE_INPLACE_FORM
} line_kind;

typedef struct op_line {
    line_kind kind;
    const char *id;
    const char *text;      /* schema, or name of a node */
    const char *function;  /* run, derivative; a formula's text; an alias's target */
    uint32_t bits;         /* flags, what is saved, what must be wanted */
    uint8_t argument;      /* NODE_IF, SAVED_IF */
    const char *condition; /* NODE_IF */
    mt__shown reported;
} op_line;

/* An op with all that its lines say. */
typedef struct op_text {
    char id[MT_SCHEMA_TEXT];
    char schema_text[512];
    uint32_t flags;
    const char *run;
    char target[MT_SCHEMA_TEXT]; /* an alias's; "": none */
    mt__schema schema;
    const op_line *derivative;
    char derive[2 * MT_SCHEMA_TEXT]; /* the derivative's function */
    uint32_t saves;                  /* MT_SAVE_* */
    char *formula;                   /* C text, where the table has the formula; else NULL */
    uint32_t saved_if[MT_RULED_ARGS];
    const op_line *node_if[OPGEN_MAX_RULES];
    uint32_t n_node_if;
    const op_line *reported[OPGEN_MAX_RULES];
    uint32_t n_reported;
} op_text;

/* Makes the ops of all_ops.def; NULL after a message on standard error. */
const op_text *opgen_table(size_t *count);

/* Makes the C text of a FORMULA line, and `saves`; false after a message on standard error. */
bool opgen_formula(const op_text *ops, size_t count, op_text *op);

/* The boxed default of a parameter. */
void opgen_default(FILE *out, const mt__param *param);

/* Each writes its text to standard output. */
void opgen_header(const op_text *ops, size_t count);
void opgen_private(const op_text *ops, size_t count);
void opgen_calls(const op_text *ops, size_t count);
void opgen_numbers(const op_text *ops, size_t count);
void opgen_formulas(const op_text *ops, size_t count);
void opgen_rows(const op_text *ops, size_t count);
void opgen_sites(const op_text *ops, size_t count);

#endif /* TOOLS_OPGEN_OPGEN_H */
