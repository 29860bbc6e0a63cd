/* SPDX-License-Identifier: Apache-2.0
 *
 * make_random_traces FOLDER FIRST COUNT [STEPS]: random programs as traces, FOLDER/r<seed>.mtt for
 * seeds from FIRST on, for programs that read what we make of them (tools/peers). Every second one
 * has names that a page could take for markup; of eight, three have names that are no UTF-8, one
 * has nothing but what a Chrome trace can say, one breaks the rules of the format
 * (random_trace.h).
 */
#include "support/traces/random_trace.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: make_random_traces FOLDER FIRST COUNT [STEPS]\n");
        return 2;
    }
    uint64_t first = strtoull(argv[2], NULL, 10);
    uint64_t count = strtoull(argv[3], NULL, 10);
    size_t most = argc > 4 ? strtoull(argv[4], NULL, 10) : 600;
    for (uint64_t seed = first; seed < first + count; seed++) {
        char path[4096];
        rt_trace trace;
        const rt_options options = {
            .seed = seed,
            .steps = 20 + (size_t)(seed * 2654435761u % (most + 1)),
            .any_bytes = seed % 8 < 3,
            .evil = seed % 2 == 0,
            .plain = seed % 8 == 3,
            .hostile = seed % 8 == 7,
        };
        rt_make(&trace, &options);
        (void)snprintf(path, sizeof path, "%s/r%llu.mtt", argv[1], (unsigned long long)seed);
        bool saved = rt_save(&trace, path);
        rt_free(&trace);
        if (!saved) {
            fprintf(stderr, "make_random_traces: cannot write %s\n", path);
            return 1;
        }
    }
    return 0;
}
