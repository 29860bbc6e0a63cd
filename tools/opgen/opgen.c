/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes C from the op table, when the library is built:
 *
 *     opgen header        include/mindtorch/ops.h: a typed function for each op
 *     opgen private       private_ops.h: those of torch's private ops, for the library itself
 *     opgen calls         their bodies: box the arguments, call the dispatcher
 *     opgen numbers       op_numbers.h: MT__OP_ADD, prototypes of what rows and derivatives run
 *     opgen formulas      functions of the derivatives that the table has as formulas
 *     opgen rows          mt__op_rows[]: all that is known of each op
 *     opgen sites         the profiler's sites, one a row
 *
 * The table is compiled in, the schemas are read by the library's own parser, so there is one
 * grammar. The text goes to standard output.
 */
#include "opgen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*write)(const op_text *ops, size_t count);
} outputs[] = {
    {"header", opgen_header},   {"private", opgen_private},   {"calls", opgen_calls},
    {"numbers", opgen_numbers}, {"formulas", opgen_formulas}, {"rows", opgen_rows},
    {"sites", opgen_sites},
};

int main(int argc, char **argv)
{
    size_t count = 0;
    const op_text *ops = opgen_table(&count);
    if (ops == NULL) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; argc == 2 && i < MT_COUNT(outputs); i++) {
        if (strcmp(argv[1], outputs[i].name) == 0) {
            outputs[i].write(ops, count);
            return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    fprintf(stderr, "usage: opgen header|private|calls|numbers|formulas|rows|sites\n");
    return EXIT_FAILURE;
}
