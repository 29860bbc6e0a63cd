/* SPDX-License-Identifier: Apache-2.0
 *
 * SEARCH_SORTED: where numbers belong in a sorted row, by halving. The loop has no branch that
 * depends on the numbers: a wrong guess costs more than the loads that it could save.
 *
 * A NaN that is looked for belongs at the end; one in the row counts as smaller than what is looked
 * for, as in torch.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <stdbool.h>

enum {
    SEARCH_GRAIN = 1 << 12
};

/* Elements [begin, end) of `wanted`, all of one row. */
typedef struct search_part {
    const void *row;       /* sorted, n elements */
    const int64_t *sorter; /* of the row, or NULL */
    const void *wanted;
    int64_t *places;
    int64_t n, begin, end;
    bool right;
} search_part;

typedef void search_fn(const search_part *part);

#define FIND(before)                                                          \
    for (int64_t i = part->begin; i < part->end; i++) {                       \
        const __typeof__(*row) v = wanted[i];                                 \
        int64_t from = 0;                                                     \
        int64_t length = part->n;                                             \
        while (length > 0) {                                                  \
            int64_t half = length / 2;                                        \
            int64_t at = from + half;                                         \
            const __typeof__(*row) x = row[sorter == NULL ? at : sorter[at]]; \
            bool after = before;                                              \
            from = after ? at + 1 : from;                                     \
            length = after ? length - half - 1 : half;                        \
        }                                                                     \
        part->places[i] = from;                                               \
    }

#define SEARCH(name, T)                       \
    static void name(const search_part *part) \
    {                                         \
        const T *row = part->row;             \
        const T *wanted = part->wanted;       \
        const int64_t *sorter = part->sorter; \
        if (part->right) {                    \
            FIND(!(x > v))                    \
        } else {                              \
            FIND(!(x >= v))                   \
        }                                     \
    }

SEARCH(search_u8, uint8_t)
SEARCH(search_i32, int32_t)
SEARCH(search_i64, int64_t)
SEARCH(search_f32, float)
SEARCH(search_f64, double)

static search_fn *const searches[MT_DTYPE_COUNT] = {
    [MT_DTYPE_U8] = search_u8,   [MT_DTYPE_I32] = search_i32, [MT_DTYPE_I64] = search_i64,
    [MT_DTYPE_F32] = search_f32, [MT_DTYPE_F64] = search_f64,
};

typedef struct search_job {
    search_fn *search;
    const mt_array *sorted;
    search_part whole; /* pointers to the first row */
    int64_t m;
} search_job;

static void search_piece(void *context, int64_t begin, int64_t end)
{
    const search_job *job = context;
    int64_t bytes = (int64_t)mt_dtype_size((mt_dtype)job->sorted->dtype);
    while (begin < end) {
        int64_t row = begin / job->m;
        int64_t stop = (row + 1) * job->m < end ? (row + 1) * job->m : end;
        search_part part = job->whole;
        part.row = (const char *)part.row + row * part.n * bytes;
        part.sorter = part.sorter == NULL ? NULL : part.sorter + row * part.n;
        part.begin = begin;
        part.end = stop;
        job->search(&part);
        begin = stop;
    }
}

MT_HOST_KERNEL_WIDENED(SEARCH_SORTED, 0x1, 0)
{
    const mt_array *t = call->tensors;
    const mt_array *sorter = &t[3];
    search_job job = {.search = searches[t[1].dtype],
                      .sorted = &t[1],
                      .m = t[2].sizes[1],
                      .whole = {.row = t[1].data,
                                .wanted = t[2].data,
                                .places = t[0].data,
                                .n = t[1].sizes[1],
                                .right = call->ints[0] != 0}};
    if (job.search == NULL) {
        return mtb_fail(MT_ENOTSUP, "searchsorted: not implemented for %s",
                        mt_dtype_name((mt_dtype)t[1].dtype));
    }
    if (sorter->n_dims >= 0) {
        job.whole.sorter = sorter->data;
        for (int64_t i = 0; i < t[1].sizes[0] * job.whole.n; i++) {
            if (job.whole.sorter[i] < 0 || job.whole.sorter[i] >= job.whole.n) {
                return mtb_fail(MT_ERUNTIME, "torch.searchsorted(): sorter index out of range");
            }
        }
    }
    int64_t count = t[2].sizes[0] * job.m;
    if (count > 0) {
        mt__parallel_for(count, SEARCH_GRAIN, search_piece, &job);
    }
    return MT_OK;
}
