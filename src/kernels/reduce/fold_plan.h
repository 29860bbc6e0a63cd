/* SPDX-License-Identifier: Apache-2.0
 *
 * A reduction's dimensions in the order in which memory is best read. Dimensions of size 1 are
 * dropped, those that are adjacent in memory are merged, and each kind is sorted by the input's
 * strides:
 *
 *      sum over the first of [a, b, c]      reduced [a]      kept [b*c]
 *      sum over the last of its transpose   reduced [a]      kept [c, b], or c*b where they join
 *
 * A dimension is reduced where the result's stride is 0 (kernels.def).
 */
#ifndef KERNELS_REDUCE_FOLD_PLAN_H
#define KERNELS_REDUCE_FOLD_PLAN_H

#include "kernels/isa/reduce/reduce_loops.h"

#include <mindtorch/backend.h>
#include <mindtorch/tensor.h>

enum {
    MT_REDUCE_OUTS = 2
};

typedef struct mt__reduce_dim {
    int64_t size;
    int64_t in;                  /* stride in elements */
    int64_t out[MT_REDUCE_OUTS]; /* 0 for results that are absent */
} mt__reduce_dim;

typedef struct mt__reduce_plan {
    int64_t results;
    int64_t count; /* elements that make one result */
    uint32_t n_kept, n_reduced;
    mt__reduce_dim kept[MT_MAX_DIMS]; /* outermost first */
    mt__reduce_dim reduced[MT_MAX_DIMS];
} mt__reduce_plan;

/* outs[1] may be absent. All have in's sizes. */
void mt__reduce_plan_make(mt__reduce_plan *plan, const mt_array outs[MT_REDUCE_OUTS],
                          const mt_array *in);

/* How a partial result becomes the final one. */
typedef enum mt__finish {
    MT_FINISH_VALUE,
    MT_FINISH_MEAN,
    MT_FINISH_ROOT,     /* of order p */
    MT_FINISH_LOG,      /* LOGSUMEXP's */
    MT_FINISH_VARIANCE, /* MOMENTS'; p = correction; the mean is the second result */
    MT_FINISH_DEVIATION
} mt__finish;

typedef struct mt__reduce_job {
    mt__fold fold;
    mt__finish finish;
    double p;
} mt__reduce_job;

/* Reduces in to outs (outs[1] may be absent). MT_ENOTSUP: the type is not supported. */
int mt__reduce_run(const mt__reduce_job *job, const mt_array outs[MT_REDUCE_OUTS],
                   const mt_array *in);

#endif /* KERNELS_REDUCE_FOLD_PLAN_H */
