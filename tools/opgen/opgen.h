/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of opgen (opgen.c).
 */
#ifndef TOOLS_OPGEN_OPGEN_H
#define TOOLS_OPGEN_OPGEN_H

#include "base/compiler.h"
#include "mindtorch/dispatch/op_row.h"
#include "mindtorch/dispatch/schema.h"

typedef struct op_text {
    const char *id;
    const char *schema_text;
    uint32_t flags;
    const char *run;
    mt__schema schema;
} op_text;

/* Each writes its text to standard output. */
void opgen_header(const op_text *ops, size_t count);
void opgen_private(const op_text *ops, size_t count);
void opgen_calls(const op_text *ops, size_t count);
void opgen_rows(const op_text *ops, size_t count);
void opgen_sites(const op_text *ops, size_t count);

#endif /* TOOLS_OPGEN_OPGEN_H */
