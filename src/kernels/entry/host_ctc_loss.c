/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels CTC_LOSS and CTC_LOSS_BACKWARD: connectionist temporal classification. The labels
 * l1 l2 ... of a sample stand between blanks, as 2 n + 1 states:
 *
 *      _ l1 _ l2 _        each step stays, or goes on by one state, or from a label to the next
 *      0 1  2 3  4        one unless they are equal
 *
 * alpha is the logarithm of the probability of all ways that are in a state after a step, beta that
 * of all ways from there to the end, both with the state's own factor. Everything is computed in
 * double. A sample is one thread's.
 *
 *   CTCL1  States that no way reaches, and those of other samples' further steps and labels, are
 *         -inf in log_alpha.
 *   CTCL2  The derivative is that by what log_softmax() was given: the class's probability minus
 *         its share of the ways. It differs from that by the logarithms themselves by what
 *         log_softmax's own derivative removes.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <stdatomic.h>

enum {
    PIECE_WORK = 1 << 14, /* states and steps that are worth another thread */
    SAMPLE_FACTS = 3
};

typedef struct ctc_job {
    const mt_array *in, *log_alpha, *targets, *samples, *loss; /* both directions */
    const mt_array *grad, *grad_in;                            /* backward */
    int64_t blank, classes, most_steps, width;
    bool zero_infinity;
    bool twice; /* float64 */
    _Atomic(int64_t) wrong;
    _Atomic(int) status;
} ctc_job;

enum {
    NOTHING_WRONG = INT64_MIN
};

/* One sample. */
typedef struct ctc_sample {
    int64_t at, steps, states;
    int64_t *labels; /* class of each state */
    double *before;  /* a row of states, with one more in front that is -inf */
    double *now;
} ctc_sample;

static double load(const ctc_job *j, const mt_array *array, int64_t offset)
{
    return j->twice ? ((const double *)array->data)[offset]
                    : (double)((const float *)array->data)[offset];
}

static void store(const ctc_job *j, const mt_array *array, int64_t offset, double value)
{
    if (j->twice) {
        ((double *)array->data)[offset] = value;
    } else {
        ((float *)array->data)[offset] = (float)value;
    }
}

static double log_of(const ctc_job *j, const ctc_sample *s, int64_t step, int64_t class_index)
{
    const int64_t *strides = j->in->strides;
    return load(j, j->in, step * strides[0] + s->at * strides[1] + class_index * strides[2]);
}

static double log_sum(double a, double b, double c)
{
    double most = a > b ? a : b;
    most = most > c ? most : c;
    if (most == -HUGE_VAL) {
        return a + b + c; /* -inf, or NaN */
    }
    return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

/* Whether a way may leave out the blank between this state and the label before it. */
static bool may_skip(const ctc_sample *s, int64_t state)
{
    return state >= 2 && s->labels[state] != s->labels[state - 2];
}

/* The labels between blanks. False: one is no class. */
static bool take_labels(ctc_job *j, ctc_sample *s, int64_t first)
{
    const int64_t *targets = j->targets->data;
    for (int64_t i = 0; i < s->states; i++) {
        s->labels[i] = i % 2 == 0 ? j->blank : targets[first + i / 2];
        if (s->labels[i] < 0 || s->labels[i] >= j->classes) {
            atomic_store_explicit(&j->wrong, s->labels[i], memory_order_relaxed);
            return false;
        }
    }
    return true;
}

static void put_row(const ctc_job *j, const ctc_sample *s, int64_t step, const double *row)
{
    int64_t place = (s->at * j->most_steps + step) * j->width;
    for (int64_t i = 0; i < j->width; i++) {
        store(j, j->log_alpha, place + i, row != NULL && i < s->states ? row[i] : -HUGE_VAL);
    }
}

static void forward_sample(const ctc_job *j, ctc_sample *s)
{
    for (int64_t step = 0; step < s->steps; step++) {
        for (int64_t i = 0; i < s->states; i++) {
            double ways = i < 2 ? 0 : -HUGE_VAL;
            if (step > 0) {
                ways = log_sum(s->before[i], s->before[i - 1],
                               may_skip(s, i) ? s->before[i - 2] : -HUGE_VAL);
            }
            s->now[i] = ways + log_of(j, s, step, s->labels[i]);
        }
        put_row(j, s, step, s->now);
        double *kept = s->before;
        s->before = s->now;
        s->now = kept;
    }
    for (int64_t step = s->steps; step < j->most_steps; step++) {
        put_row(j, s, step, NULL); /* CTCL1 */
    }
    double end = s->states == 1 ? 0 : -HUGE_VAL;
    if (s->steps > 0) {
        end = log_sum(s->before[s->states - 1], s->before[s->states - 2], -HUGE_VAL);
    }
    store(j, j->loss, s->at, -end);
}

/* ---- backward -------------------------------------------------------------------------------- */

static int64_t grad_place(const ctc_job *j, const ctc_sample *s, int64_t step)
{
    const int64_t *strides = j->grad_in->strides;
    return step * strides[0] + s->at * strides[1];
}

static void fill_step(const ctc_job *j, const ctc_sample *s, int64_t step, double value)
{
    int64_t place = grad_place(j, s, step);
    for (int64_t c = 0; c < j->classes; c++) {
        store(j, j->grad_in, place + c * j->grad_in->strides[2], value);
    }
}

/* beta of a step: rows lie backwards, so that the states after the last one are those in front. */
static void step_back(const ctc_job *j, const ctc_sample *s, int64_t step)
{
    for (int64_t i = 0; i < s->states; i++) {
        int64_t state = s->states - 1 - i;
        double ways = i < 2 ? 0 : -HUGE_VAL;
        if (step < s->steps - 1) {
            bool skips = i >= 2 && may_skip(s, state + 2);
            ways = log_sum(s->before[i], s->before[i - 1], skips ? s->before[i - 2] : -HUGE_VAL);
        }
        s->now[i] = ways + log_of(j, s, step, s->labels[state]);
    }
}

/* Each class's probability and its share of the ways (CTCL2). */
static void put_grad(const ctc_job *j, const ctc_sample *s, int64_t step, double loss, double grad,
                     double *shares)
{
    int64_t alphas = (s->at * j->most_steps + step) * j->width;
    int64_t place = grad_place(j, s, step);
    for (int64_t c = 0; c < j->classes; c++) {
        shares[c] = 0;
    }
    for (int64_t i = 0; i < s->states; i++) {
        int64_t label = s->labels[i];
        double both = load(j, j->log_alpha, alphas + i) + s->now[s->states - 1 - i];
        if (both != -HUGE_VAL) {
            shares[label] += exp(both + loss - log_of(j, s, step, label));
        }
    }
    for (int64_t c = 0; c < j->classes; c++) {
        store(j, j->grad_in, place + c * j->grad_in->strides[2],
              (exp(log_of(j, s, step, c)) - shares[c]) * grad);
    }
}

static void backward_sample(const ctc_job *j, ctc_sample *s, double *shares)
{
    double loss = load(j, j->loss, s->at * j->loss->strides[0]);
    double grad = load(j, j->grad, s->at * j->grad->strides[0]);
    bool dropped = j->zero_infinity && loss == HUGE_VAL;
    for (int64_t step = s->steps; step < j->most_steps; step++) {
        fill_step(j, s, step, 0);
    }
    for (int64_t step = s->steps - 1; step >= 0; step--) {
        if (dropped || !isfinite(loss)) {
            fill_step(j, s, step, dropped ? 0 : (double)NAN);
            continue;
        }
        step_back(j, s, step);
        put_grad(j, s, step, loss, grad, shares);
        double *kept = s->before;
        s->before = s->now;
        s->now = kept;
    }
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void run_piece(void *context, int64_t begin, int64_t end)
{
    ctc_job *j = context;
    const int64_t *facts = j->samples->data;
    int64_t row = j->width + 1;
    double *rows = mt__scratch_take((size_t)(2 * row + j->classes), sizeof(double));
    int64_t *labels = mt__scratch_take((size_t)j->width, sizeof(int64_t));
    if (rows == NULL || labels == NULL) {
        atomic_store_explicit(&j->status, MT_ENOMEM, memory_order_relaxed);
        end = begin;
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t *fact = facts + i * SAMPLE_FACTS;
        ctc_sample s = {.at = i,
                        .steps = fact[0],
                        .states = 2 * fact[1] + 1,
                        .labels = labels,
                        .before = rows + 1,
                        .now = rows + row + 1};
        rows[0] = rows[row] = -HUGE_VAL;
        if (!take_labels(j, &s, fact[2])) {
            continue;
        }
        if (j->grad == NULL) {
            forward_sample(j, &s);
        } else {
            backward_sample(j, &s, rows + 2 * row);
        }
    }
    mt__scratch_give(labels);
    mt__scratch_give(rows);
}

static int run_job(ctc_job *j, const char *name)
{
    if (j->in->dtype != MT_DTYPE_F32 && j->in->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name,
                        mt_dtype_name((mt_dtype)j->in->dtype));
    }
    j->twice = j->in->dtype == MT_DTYPE_F64;
    j->most_steps = j->in->sizes[0];
    j->classes = j->in->sizes[2];
    j->width = j->log_alpha->sizes[2];
    atomic_init(&j->wrong, NOTHING_WRONG);
    atomic_init(&j->status, 0);
    int64_t work = j->most_steps * j->width + 1;
    mt__parallel_for(j->in->sizes[1], work < PIECE_WORK ? PIECE_WORK / work : 1, run_piece, j);
    int64_t wrong = atomic_load_explicit(&j->wrong, memory_order_relaxed);
    if (wrong != NOTHING_WRONG) {
        return mtb_fail(MT_EINDEX, "Target %lld is out of bounds.", (long long)wrong);
    }
    int status = atomic_load_explicit(&j->status, memory_order_relaxed);
    return status == 0 ? 0 : mtb_fail(status, "%s: no working memory", name);
}

MT_HOST_KERNEL(CTC_LOSS)
{
    const mt_array *t = call->tensors;
    ctc_job j = {.loss = &t[0],
                 .log_alpha = &t[1],
                 .in = &t[2],
                 .targets = &t[3],
                 .samples = &t[4],
                 .blank = call->ints[0]};
    return run_job(&j, "ctc_loss");
}

MT_HOST_KERNEL(CTC_LOSS_BACKWARD)
{
    const mt_array *t = call->tensors;
    ctc_job j = {.grad_in = &t[0],
                 .grad = &t[1],
                 .in = &t[2],
                 .targets = &t[3],
                 .samples = &t[4],
                 .loss = &t[5],
                 .log_alpha = &t[6],
                 .blank = call->ints[0],
                 .zero_infinity = call->ints[1] != 0};
    return run_job(&j, "ctc_loss_backward");
}
