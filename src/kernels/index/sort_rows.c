/* SPDX-License-Identifier: Apache-2.0
 *
 * SORT, TOPK and RANK: each row along one dimension is handled separately.
 *
 * TOPK makes one pass over a row with a heap of size k, or sorts the whole row if k is a large part
 * of it. Of equal elements the first ones are taken, in their order. RANK gives one element of the
 * order and sorts only for the most frequent one.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_walk.h"
#include "kernels/index/sort_keys.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SORT_GRAIN = 1 << 13, /* elements of a piece */
    HEAP_SHARE = 16       /* k of at most 1/16 of the row is found with a heap */
};

typedef enum sort_want { /* RANK's come in the order of its codes */
    WANT_KTH,
    WANT_MEDIAN,
    WANT_NAN_MEDIAN,
    WANT_MODE,
    WANT_FIRST /* k of them, sorted */
} sort_want;

typedef struct sort_job {
    const mt_array *values;
    const mt_array *indices;
    const mt_array *in;
    int64_t n;          /* elements of a row */
    int64_t k;          /* how many are given */
    int64_t in_stride;  /* along the row, in bytes */
    int64_t out_stride; /* values */
    int64_t place_stride;
    int64_t bytes;
    bool descending;
    sort_want wanted;
    mt__walk walk; /* over rows; views: values, indices, in */
    atomic_int status;
} sort_job;

typedef struct row_place {
    char *values;
    char *indices;
    const char *in;
} row_place;

static void give(const sort_job *job, const row_place *row, int64_t i, int64_t place)
{
    memcpy(row->indices + i * job->place_stride, &place, sizeof(place));
    mt__move_elements(row->values + i * job->out_stride, 0, row->in + place * job->in_stride, 0, 1,
                      job->bytes);
}

/* False: the row has to be sorted as pairs. */
static bool load_words(const sort_job *job, const row_place *row, mt__sort_word *words)
{
    uint32_t dtype = job->in->dtype;
    if (mt__sort_fits_words(dtype, job->n)) {
        mt__sort_load_words(words, row->in, job->in_stride, job->n, dtype, job->descending);
        return true;
    }
    return dtype == MT_DTYPE_I64 && job->n <= (int64_t)UINT32_MAX &&
           mt__sort_narrow_i64(words, row->in, job->in_stride, job->n, job->descending);
}

/* Which place of the order RANK wants; gives_nan: the first NaN instead. */
static int64_t wanted_rank(const sort_job *job, int64_t nans, bool *gives_nan)
{
    *gives_nan = job->wanted == WANT_MEDIAN && nans > 0;
    if (job->wanted == WANT_KTH) {
        return job->k;
    }
    int64_t numbers = job->wanted == WANT_NAN_MEDIAN ? job->n - nans : job->n;
    return numbers > 0 ? (numbers - 1) / 2 : 0;
}

/* Of sorted items: the last of the first of the longest runs of equal keys. No NaN equals
 * another. */
#define PLACE_OF_MODE(items, key, place)                                                        \
    for (int64_t i = 0, start = 0, best = 0; i < job->n; i++) {                                 \
        bool starts =                                                                           \
            i > 0 && (key(items[i]) != key(items[i - 1]) || (has_nan && key(items[i]) == nan)); \
        start = starts ? i : start;                                                             \
        if (i - start + 1 > best) {                                                             \
            best = i - start + 1;                                                               \
            at = (int64_t)place(items[i]);                                                      \
        }                                                                                       \
    }

/* The place of what is wanted. */
#define PLACE_OF_RANK(items, key, place, sort, pick)                            \
    int64_t at = 0;                                                             \
    if (job->wanted == WANT_MODE) {                                             \
        items = sort(items, items + job->n, job->n);                            \
        PLACE_OF_MODE(items, key, place)                                        \
    } else {                                                                    \
        int64_t nans = 0;                                                       \
        int64_t first_nan = 0;                                                  \
        for (int64_t i = has_nan ? job->n - 1 : -1; i >= 0; i--) {              \
            first_nan = key(items[i]) == nan ? i : first_nan;                   \
            nans += key(items[i]) == nan;                                       \
        }                                                                       \
        bool gives_nan = false;                                                 \
        int64_t rank = wanted_rank(job, nans, &gives_nan);                      \
        at = gives_nan ? first_nan : (int64_t)place(pick(items, job->n, rank)); \
    }                                                                           \
    give(job, row, 0, at);

#define WORD_KEY(word)   ((word) >> 32)
#define WORD_PLACE(word) ((word)&UINT32_MAX)
#define PAIR_KEY(pair)   ((pair).key)
#define PAIR_PLACE(pair) ((pair).place)

static void rank_row(const sort_job *job, const row_place *row, void *memory)
{
    uint64_t nan = 0;
    bool has_nan = mt__sort_key_of_nan(job->in->dtype, &nan);
    mt__sort_word *words = memory;
    if (load_words(job, row, words)) {
        PLACE_OF_RANK(words, WORD_KEY, WORD_PLACE, mt__sort_words, mt__sort_at_words)
        return;
    }
    mt__sort_pair *pairs = memory;
    mt__sort_load_pairs(pairs, row->in, job->in_stride, job->n, job->in->dtype, false);
    PLACE_OF_RANK(pairs, PAIR_KEY, PAIR_PLACE, mt__sort_pairs, mt__sort_at_pairs)
}

/* `memory` has room for two rows of words or pairs. */
static void sort_row(const sort_job *job, const row_place *row, void *memory)
{
    bool by_heap = job->k <= job->n / HEAP_SHARE;
    mt__sort_word *words = memory;
    if (load_words(job, row, words)) {
        if (by_heap) {
            mt__sort_first_words(words, job->n, job->k);
        } else {
            words = mt__sort_words(words, words + job->n, job->n);
        }
        for (int64_t i = 0; i < job->k; i++) {
            give(job, row, i, (int64_t)(words[i] & UINT32_MAX));
        }
        return;
    }
    mt__sort_pair *pairs = memory;
    mt__sort_load_pairs(pairs, row->in, job->in_stride, job->n, job->in->dtype, job->descending);
    if (by_heap) {
        mt__sort_first_pairs(pairs, job->n, job->k);
    } else {
        pairs = mt__sort_pairs(pairs, pairs + job->n, job->n);
    }
    for (int64_t i = 0; i < job->k; i++) {
        give(job, row, i, (int64_t)pairs[i].place);
    }
}

static void sort_piece(void *context, int64_t begin, int64_t end)
{
    sort_job *job = context;
    mt__walk walk = job->walk;
    int64_t length = mt__walk_length(&walk);
    bool words = mt__sort_fits_words(job->in->dtype, job->n);
    void *memory =
        mt__scratch_take(2 * (size_t)job->n, words ? sizeof(mt__sort_word) : sizeof(mt__sort_pair));
    if (memory == NULL) {
        atomic_store_explicit(&job->status, MT_ENOMEM, memory_order_relaxed);
        return;
    }
    mt__walk_seek(&walk, begin / length);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i % length;
        row_place row = {
            (char *)job->values->data + walk.offsets[0] + at * mt__walk_stride(&walk, 0),
            (char *)job->indices->data + walk.offsets[1] + at * mt__walk_stride(&walk, 1),
            (const char *)job->in->data + walk.offsets[2] + at * mt__walk_stride(&walk, 2),
        };
        (job->wanted == WANT_FIRST ? sort_row : rank_row)(job, &row, memory);
        if (at == length - 1) {
            mt__walk_next(&walk);
        }
    }
    mt__scratch_give(memory);
}

static int64_t row_stride(const mt_array *array, int64_t dim)
{
    return array->n_dims == 0 ? 0 : array->strides[dim];
}

static int run_sort(const mt_kernel_call *call, sort_want wanted, int64_t k, bool descending)
{
    const mt_array *t = call->tensors;
    int64_t dim = call->ints[0];
    sort_job job = {.values = &t[0], .indices = &t[1], .in = &t[2], .k = k, .wanted = wanted};
    job.bytes = mt__element_bytes(t[2].dtype);
    job.n = t[2].n_dims == 0 ? 1 : t[2].sizes[dim];
    job.in_stride = row_stride(&t[2], dim) * job.bytes;
    job.out_stride = row_stride(&t[0], dim) * job.bytes;
    job.place_stride = row_stride(&t[1], dim) * (int64_t)sizeof(int64_t);
    job.descending = descending;
    atomic_init(&job.status, 0);
    mt__walk_init(&job.walk);
    for (int32_t d = 0; d < t[2].n_dims; d++) {
        if (d != dim) {
            mt__walk_add(&job.walk, t[2].sizes[d],
                         (const int64_t[MT_WALK_VIEWS]){
                             t[0].strides[d] * job.bytes,
                             t[1].strides[d] * (int64_t)sizeof(int64_t),
                             t[2].strides[d] * job.bytes,
                         });
        }
    }
    int64_t rows = mt__walk_rows(&job.walk) * mt__walk_length(&job.walk);
    if (rows == 0 || (wanted == WANT_FIRST && job.k == 0)) {
        return 0;
    }
    mt__parallel_for(rows, SORT_GRAIN / job.n + 1, sort_piece, &job);
    if (atomic_load_explicit(&job.status, memory_order_relaxed) != 0) {
        return mtb_fail(MT_ENOMEM, "sort: no memory for rows of %lld elements", (long long)job.n);
    }
    return 0;
}

MT_HOST_KERNEL(SORT)
{
    const mt_array *in = &call->tensors[2];
    return run_sort(call, WANT_FIRST, in->n_dims == 0 ? 1 : in->sizes[call->ints[0]],
                    call->ints[1] != 0);
}

MT_HOST_KERNEL(TOPK)
{
    return run_sort(call, WANT_FIRST, call->ints[1], call->ints[2] != 0); /* sorted in any case */
}

MT_HOST_KERNEL(RANK)
{
    return run_sort(call, (sort_want)call->code, call->code == WANT_KTH ? call->ints[1] : 0, false);
}
