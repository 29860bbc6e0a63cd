/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes C from the op table, when the library is built:
 *
 *     opgen header        include/mindtorch/ops.h: a typed function for each op
 *     opgen private       private_ops.h: those of torch's private ops, for the library itself
 *     opgen calls         their bodies: box the arguments, call the dispatcher
 *     opgen rows          mt__op_rows[]: what the dispatcher knows of each op
 *     opgen sites         the profiler's sites, one a row
 *
 * The table is compiled in, the schemas are read by the library's own parser, so there is one
 * grammar. The text goes to standard output.
 */
#include "opgen.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table's flags, by their short names. */
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
    LIKE = MT_OP_LIKE
};
#define FLOPS(rule) MT_OP_FLOPS(rule)

static op_text table[] = {
#define X(id, schema, flags, run) {#id, schema, flags, #run, {.n_params = 0}},
#include "mindtorch/ops/all_ops.def"
#undef X
};

static const struct {
    const char *name;
    void (*write)(const op_text *ops, size_t count);
} outputs[] = {
    {"header", opgen_header}, {"private", opgen_private}, {"calls", opgen_calls},
    {"rows", opgen_rows},     {"sites", opgen_sites},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < MT_COUNT(table); i++) {
        if (mt__schema_parse(table[i].schema_text, &table[i].schema) != 0) {
            fprintf(stderr, "opgen: %s: %s\n", table[i].id, mtb_last_failure()->message);
            return EXIT_FAILURE;
        }
    }
    for (size_t i = 0; argc == 2 && i < MT_COUNT(outputs); i++) {
        if (strcmp(argv[1], outputs[i].name) == 0) {
            outputs[i].write(table, MT_COUNT(table));
            return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    fprintf(stderr, "usage: opgen header|private|calls|rows|sites\n");
    return EXIT_FAILURE;
}
