/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels REDUCE and VAR_MEAN, and the partial results of reductions (reduce_loops.h).
 */
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/reduce/fold_plan.h"

#include <math.h>

/* ---- partial results ---- */

mt__partial mt__fold_nothing(mt__fold fold, mt_dtype dtype)
{
    bool real = mt_dtype_category(dtype) == MT_CATEGORY_REAL;
    mt__partial partial = {{.integer = 0}, {.real = 0}};
    switch (fold) {
    case MT_FOLD_PROD: partial.a = real ? (mt__cell){.real = 1} : (mt__cell){.integer = 1}; break;
    case MT_FOLD_ALL: partial.a.integer = 1; break;
    case MT_FOLD_MAX:
        partial.a = real ? (mt__cell){.real = -INFINITY} : (mt__cell){.integer = INT64_MIN};
        break;
    case MT_FOLD_MIN:
    case MT_FOLD_MIN_ABS:
        partial.a = real ? (mt__cell){.real = INFINITY} : (mt__cell){.integer = INT64_MAX};
        break;
    default: partial.a = real ? (mt__cell){.real = 0} : (mt__cell){.integer = 0}; break;
    }
    return partial;
}

void mt__join_moments(mt__partial *partial, int64_t count, double mean, double squares,
                      int64_t more_count)
{
    if (count == 0) {
        partial->a.real = mean;
        partial->b.real = squares;
        return;
    }
    double n = (double)count;
    double m = (double)more_count;
    double distance = mean - partial->a.real;
    partial->a.real += distance * (m / (n + m));
    partial->b.real += squares + distance * distance * (n * m / (n + m));
}

void mt__join_logsumexp(mt__partial *partial, double largest, double sum)
{
    if (partial->b.real == 0 || sum == 0) { /* nothing yet, or nothing but e^-inf */
        if (sum != 0) {
            partial->a.real = largest;
            partial->b.real = sum;
        }
        return;
    }
    double from = largest > partial->a.real ? largest : partial->a.real;
    partial->b.real = partial->b.real * exp(partial->a.real - from) + sum * exp(largest - from);
    partial->a.real = from;
}

static int64_t join_integers(mt__fold fold, int64_t a, int64_t b)
{
    switch (fold) {
    case MT_FOLD_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case MT_FOLD_ALL: return a & b;
    case MT_FOLD_ANY: return a | b;
    case MT_FOLD_MAX: return a > b ? a : b;
    case MT_FOLD_MIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static double join_reals(mt__fold fold, double a, double b)
{
    switch (fold) {
    case MT_FOLD_PROD: return a * b;
    case MT_FOLD_MAX:
    case MT_FOLD_MAX_ABS: return b > a || isnan(b) ? b : a;
    case MT_FOLD_MIN:
    case MT_FOLD_MIN_ABS: return b < a || isnan(b) ? b : a;
    default: return a + b;
    }
}

void mt__fold_join(mt__fold fold, mt_dtype dtype, mt__partial *partial, int64_t count,
                   const mt__partial *more, int64_t more_count)
{
    if (fold == MT_FOLD_MOMENTS) {
        mt__join_moments(partial, count, more->a.real, more->b.real, more_count);
    } else if (fold == MT_FOLD_LOGSUMEXP) {
        mt__join_logsumexp(partial, more->a.real, more->b.real);
    } else if (fold == MT_FOLD_COUNT || fold == MT_FOLD_ALL || fold == MT_FOLD_ANY ||
               mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        partial->a.integer = join_integers(fold, partial->a.integer, more->a.integer);
    } else {
        partial->a.real = join_reals(fold, partial->a.real, more->a.real);
    }
}

/* ---- the kernels ---- */

static mt__reduce_job norm_job(double p)
{
    mt__reduce_job job = {MT_FOLD_SUM_POWERS, MT_FINISH_ROOT, p};
    if (p == 0) {
        job = (mt__reduce_job){MT_FOLD_COUNT, MT_FINISH_VALUE, p};
    } else if (p == 1) {
        job = (mt__reduce_job){MT_FOLD_SUM_ABS, MT_FINISH_VALUE, p};
    } else if (p == 2) {
        job.fold = MT_FOLD_SUM_SQUARES;
    } else if (isinf(p)) {
        job = (mt__reduce_job){p > 0 ? MT_FOLD_MAX_ABS : MT_FOLD_MIN_ABS, MT_FINISH_VALUE, p};
    }
    return job;
}

MT_HOST_KERNEL(REDUCE)
{
    static const mt__reduce_job jobs[MT_REDUCE_COUNT] = {
        [MT_REDUCE_SUM] = {MT_FOLD_SUM, MT_FINISH_VALUE, 0},
        [MT_REDUCE_MEAN] = {MT_FOLD_SUM, MT_FINISH_MEAN, 0},
        [MT_REDUCE_PROD] = {MT_FOLD_PROD, MT_FINISH_VALUE, 0},
        [MT_REDUCE_MAX] = {MT_FOLD_MAX, MT_FINISH_VALUE, 0},
        [MT_REDUCE_MIN] = {MT_FOLD_MIN, MT_FINISH_VALUE, 0},
        [MT_REDUCE_ALL] = {MT_FOLD_ALL, MT_FINISH_VALUE, 0},
        [MT_REDUCE_ANY] = {MT_FOLD_ANY, MT_FINISH_VALUE, 0},
        [MT_REDUCE_SUM_ABS] = {MT_FOLD_SUM_ABS, MT_FINISH_VALUE, 0},
        [MT_REDUCE_SUM_SQUARES] = {MT_FOLD_SUM_SQUARES, MT_FINISH_VALUE, 0},
        [MT_REDUCE_LOGSUMEXP] = {MT_FOLD_LOGSUMEXP, MT_FINISH_LOG, 0},
        [MT_REDUCE_COUNT_NONZERO] = {MT_FOLD_COUNT, MT_FINISH_VALUE, 0},
    };
    const mt_array outs[MT_REDUCE_OUTS] = {call->tensors[0], {.n_dims = -1}};
    mt__reduce_job job =
        call->code == MT_REDUCE_NORM ? norm_job(mt__arg_real(call, 0)) : jobs[call->code];
    return mt__reduce_run(&job, outs, &call->tensors[1]);
}

MT_HOST_KERNEL(VAR_MEAN)
{
    mt__reduce_job job = {MT_FOLD_MOMENTS,
                          call->code == 0 ? MT_FINISH_VARIANCE : MT_FINISH_DEVIATION,
                          mt__arg_real(call, 0)};
    return mt__reduce_run(&job, call->tensors, &call->tensors[2]);
}
