/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which a reduction reads, see fold_plan.h.
 */
#include "kernels/reduce/fold_plan.h"

#include <stdbool.h>

/* Whether `inner` continues `outer`: they are one dimension. */
static bool is_joined(const mt__reduce_dim *outer, const mt__reduce_dim *inner)
{
    return outer->in == inner->in * inner->size && outer->out[0] == inner->out[0] * inner->size &&
           outer->out[1] == inner->out[1] * inner->size;
}

/* Repeated elements (stride 0) are outermost, so that the repeats are read from the cache. */
static bool is_outer(int64_t a, int64_t b)
{
    return b != 0 && (a == 0 || a > b);
}

static void sort_in(mt__reduce_dim *dims, uint32_t *count, mt__reduce_dim dim)
{
    uint32_t at = (*count)++;
    while (at > 0 && is_outer(dim.in, dims[at - 1].in)) {
        dims[at] = dims[at - 1];
        at--;
    }
    dims[at] = dim;
}

static void join(mt__reduce_dim *dims, uint32_t *count)
{
    uint32_t last = 0;
    for (uint32_t i = 1; i < *count; i++) {
        if (is_joined(&dims[last], &dims[i])) {
            dims[i].size *= dims[last].size;
            dims[last] = dims[i];
        } else {
            dims[++last] = dims[i];
        }
    }
    *count = *count == 0 ? 0 : last + 1;
}

void mt__reduce_plan_make(mt__reduce_plan *plan, const mt_array outs[MT_REDUCE_OUTS],
                          const mt_array *in)
{
    plan->results = 1;
    plan->count = 1;
    plan->n_kept = 0;
    plan->n_reduced = 0;
    for (int32_t i = 0; i < in->n_dims; i++) {
        mt__reduce_dim dim = {.size = in->sizes[i], .in = in->strides[i]};
        if (dim.size == 1) {
            continue;
        }
        dim.out[0] = outs[0].strides[i];
        dim.out[1] = outs[1].n_dims < 0 ? 0 : outs[1].strides[i];
        if (dim.out[0] == 0) {
            plan->count *= dim.size;
            sort_in(plan->reduced, &plan->n_reduced, dim);
        } else {
            plan->results *= dim.size;
            sort_in(plan->kept, &plan->n_kept, dim);
        }
    }
    join(plan->kept, &plan->n_kept);
    join(plan->reduced, &plan->n_reduced);
}
