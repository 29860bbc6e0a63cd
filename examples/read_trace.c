/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a trace in C: the longest events of a file, ours (.mtt) or another tool's (.json,
 * .json.gz). A model gives columns; event i is entry i of each of them.
 *
 *     read_trace TRACE
 */
#include <mtprof/mtprof.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    SHOWN = 5
};

static const int64_t *start_ns, *end_ns;

static int longer_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t left = end_ns[x] - start_ns[x], right = end_ns[y] - start_ns[y];
    return left < right ? 1 : left > right ? -1 : x < y ? -1 : 1;
}

static int fail(void)
{
    fprintf(stderr, "%s\n", mtprof_last_error()->message);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: read_trace TRACE\n");
        return 2;
    }
    mtprof_model *model;
    mtprof_column start, end, name;
    if (mtprof_model_open(argv[1], NULL, &model) != MTPROF_OK) {
        return fail();
    }
    if (mtprof_model_get_column(model, MTPROF_COLUMN_START_NS, &start) != MTPROF_OK ||
        mtprof_model_get_column(model, MTPROF_COLUMN_END_NS, &end) != MTPROF_OK ||
        mtprof_model_get_column(model, MTPROF_COLUMN_NAME, &name) != MTPROF_OK) {
        mtprof_model_free(model);
        return fail();
    }
    start_ns = start.data;
    end_ns = end.data;
    uint32_t *order = malloc((start.count + 1) * sizeof *order);
    for (uint32_t i = 0; order != NULL && i < start.count; i++) {
        order[i] = i;
    }
    if (order != NULL) {
        qsort(order, start.count, sizeof *order, longer_first);
        printf("%llu events; the longest:\n", (unsigned long long)start.count);
    }
    for (uint32_t i = 0; order != NULL && i < SHOWN && i < start.count; i++) {
        mtprof_text text = mtprof_model_name(model, ((const uint32_t *)name.data)[order[i]]);
        printf("%12.3f us  %.*s\n", (double)(end_ns[order[i]] - start_ns[order[i]]) / 1e3,
               (int)text.length, text.bytes);
    }
    int status = order == NULL || start.count == 0;
    free(order);
    mtprof_model_free(model);
    return status;
}
