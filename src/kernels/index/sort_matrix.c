/* SPDX-License-Identifier: Apache-2.0
 *
 * SORT_ROWS: the order of a matrix's rows, compared from their first element on. A merge sort over
 * places, so that rows themselves are never moved; their elements are compared as sort keys.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/sort_keys.h"
#include "kernels/walk/scratch.h"

#include <string.h>

typedef struct matrix_job {
    const mt__sort_pair *keys; /* of all elements; places are not used */
    int64_t width;
} matrix_job;

static bool comes_after(const matrix_job *job, int64_t a, int64_t b)
{
    const mt__sort_pair *x = job->keys + a * job->width;
    const mt__sort_pair *y = job->keys + b * job->width;
    for (int64_t i = 0; i < job->width; i++) {
        if (x[i].key != y[i].key) {
            return x[i].key > y[i].key;
        }
    }
    return false;
}

static void merge(const matrix_job *job, int64_t *to, const int64_t *from, int64_t middle,
                  int64_t end)
{
    int64_t left = 0;
    int64_t right = middle;
    for (int64_t i = 0; i < end; i++) {
        bool takes_right =
            left == middle || (right < end && comes_after(job, from[left], from[right]));
        to[i] = from[takes_right ? right++ : left++];
    }
}

/* Gives the one of the two that holds the result. */
static int64_t *sort_places(const matrix_job *job, int64_t *places, int64_t *spare, int64_t n)
{
    for (int64_t length = 1; length < n; length *= 2) {
        for (int64_t start = 0; start < n; start += 2 * length) {
            int64_t rest = n - start;
            merge(job, spare + start, places + start, length < rest ? length : rest,
                  2 * length < rest ? 2 * length : rest);
        }
        int64_t *other = places;
        places = spare;
        spare = other;
    }
    return places;
}

MT_HOST_KERNEL(SORT_ROWS)
{
    const mt_array *in = &call->tensors[1];
    int64_t n = in->sizes[0];
    matrix_job job = {.width = in->sizes[1]};
    int64_t count = n * job.width;
    if (n == 0) {
        return MT_OK;
    }
    mt__sort_pair *keys = mt__scratch_take((size_t)count + 1, sizeof(mt__sort_pair));
    int64_t *places = mt__scratch_take((size_t)n, 2 * sizeof(int64_t));
    int status = MT_OK;
    if (keys == NULL || places == NULL) {
        status = mtb_fail(MT_ENOMEM, "a sort of %lld rows of %lld elements", (long long)n,
                          (long long)job.width);
    } else {
        mt__sort_load_pairs(keys, in->data, (int64_t)mt_dtype_size((mt_dtype)in->dtype), count,
                            in->dtype, false);
        job.keys = keys;
        for (int64_t i = 0; i < n; i++) {
            places[i] = i;
        }
        const int64_t *sorted = sort_places(&job, places, places + n, n);
        memcpy(call->tensors[0].data, sorted, (size_t)n * sizeof(int64_t));
    }
    mt__scratch_give(places);
    mt__scratch_give(keys);
    return status;
}
