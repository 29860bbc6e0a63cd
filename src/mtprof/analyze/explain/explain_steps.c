/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining: steps that take longer than the others. What such a step takes more than the median
 * is moved from the parts in which it is larger than usual to WARM_UP (the first steps) or SLOW, so
 * that it counts once.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/explain/explain_impl.h"

enum {
    STEPS_LEAST = 5,    /* fewer have no median to compare with */
    SLOW_PERCENT = 150, /* of the median */
    SLOW_SPREADS = 5,   /* medians of the distances from the median that it is away */
    SLOW_MOST = 4       /* at most one step in so many is slow: more are the usual case */
};

/* The one that sorting would put in the middle. Only the side that has it is looked at again, so
 * the time grows with n; equal times, which are common, go to both sides. */
static int64_t median(int64_t *times, size_t n)
{
    size_t first = 0;
    size_t last = n - 1;
    while (first < last) {
        int64_t pivot = times[first + (last - first) / 2];
        size_t low = first;
        size_t high = last;
        for (;; low++, high--) {
            while (times[low] < pivot) {
                low++;
            }
            while (times[high] > pivot) {
                high--;
            }
            if (low >= high) {
                break;
            }
            int64_t time = times[low];
            times[low] = times[high];
            times[high] = time;
        }
        if (n / 2 <= high) {
            last = high;
        } else {
            first = high + 1;
        }
    }
    return times[n / 2];
}

static int64_t length(const mtprof__step *step)
{
    return step->end_ns - step->start_ns;
}

/* The largest step that is no outlier. */
static int64_t usual_most(const mtprof_explain *e, int64_t *times)
{
    for (size_t i = 0; i < e->n_steps; i++) {
        int64_t off = length(&e->steps[i]) - e->median_ns;
        times[i] = off < 0 ? -off : off;
    }
    int64_t spread = median(times, e->n_steps);
    int64_t by_spread =
        spread > INT64_MAX / SLOW_SPREADS / 2 ? INT64_MAX / 2 : SLOW_SPREADS * spread;
    int64_t by_share = e->median_ns / 100 * (SLOW_PERCENT - 100);
    return mtb_add_sat(e->median_ns, by_spread > by_share ? by_spread : by_share);
}

/* Moves what each part has more than usual. That may be more than the whole step has, where another
 * part is smaller than usual; excess_ns is what the step takes longer. */
static void move_excess(mtprof__step *step, const int64_t *usual, enum mtprof_part to)
{
    int64_t excess = 0;
    for (int p = 0; p < MTPROF_PART_COUNT; p++) {
        excess += step->parts[p] - usual[p];
    }
    for (int p = 0; excess > 0 && p < MTPROF_PART_COUNT; p++) {
        int64_t more = p != (int)to ? step->parts[p] - usual[p] : 0;
        if (more > step->more_ns) {
            step->more_part = (uint8_t)p;
            step->more_ns = more;
        }
        if (more > 0) {
            step->parts[p] -= more;
            step->parts[to] += more;
        }
    }
    step->excess_ns = excess > 0 ? excess : 0;
}

static void choose(mtprof_explain *e, int64_t most)
{
    size_t n_slow = 0;
    size_t first = 0;
    while (first < e->n_steps / 3 && length(&e->steps[first]) > most) {
        e->steps[first++].state = MTPROF_STEP_WARM_UP;
    }
    for (size_t i = first; i < e->n_steps; i++) {
        n_slow += length(&e->steps[i]) > most;
    }
    for (size_t i = first; n_slow * SLOW_MOST <= e->n_steps && i < e->n_steps; i++) {
        if (length(&e->steps[i]) > most) {
            e->steps[i].state = MTPROF_STEP_SLOW;
        }
    }
}

/* The usual parts: medians over the normal steps. */
static void usual_parts(const mtprof_explain *e, int64_t *times, int64_t *usual)
{
    for (int p = 0; p < MTPROF_PART_COUNT; p++) {
        size_t n = 0;
        for (size_t i = 0; i < e->n_steps; i++) {
            if (e->steps[i].state == MTPROF_STEP_NORMAL) {
                times[n++] = e->steps[i].parts[p];
            }
        }
        usual[p] = n > 0 ? median(times, n) : 0;
    }
}

static void sum_parts(mtprof_explain *e)
{
    for (size_t i = 0; i < e->n_steps; i++) {
        for (int p = 0; p < MTPROF_PART_COUNT; p++) {
            e->parts[p] += e->steps[i].parts[p];
        }
        e->excess_ns[e->steps[i].state] += e->steps[i].excess_ns;
        e->recompiled_ns += i > 0 ? e->steps[i].parts[MTPROF_PART_COMPILE] : 0;
    }
}

int mtprof__explain_choose_steps(mtprof_explain *e)
{
    int64_t *times = mtb_calloc(e->n_steps + 1, sizeof *times);
    if (times == NULL) {
        return mtprof__explain_no_memory("steps");
    }
    for (size_t i = 0; i < e->n_steps; i++) {
        times[i] = length(&e->steps[i]);
    }
    if (e->has_steps && e->n_steps > 0) {
        e->median_ns = median(times, e->n_steps);
    }
    if (e->has_steps && e->n_steps >= STEPS_LEAST) {
        choose(e, usual_most(e, times));
    }
    mtb_free(times);
    return MTPROF_OK;
}

int mtprof__explain_move_steps(mtprof_explain *e)
{
    int64_t usual[MTPROF_PART_COUNT];
    int64_t *times = mtb_calloc(e->n_steps + 1, sizeof *times);
    if (times == NULL) {
        return mtprof__explain_no_memory("steps");
    }
    usual_parts(e, times, usual);
    mtb_free(times);
    for (size_t i = 0; i < e->n_steps; i++) {
        int64_t compiled = e->steps[i].parts[MTPROF_PART_COMPILE];
        if (e->steps[i].state == MTPROF_STEP_WARM_UP) {
            move_excess(&e->steps[i], usual, MTPROF_PART_WARM_UP);
        } else if (e->steps[i].state == MTPROF_STEP_SLOW) {
            e->steps[i].parts[MTPROF_PART_COMPILE] = 0; /* a cause of its own: it stays there */
            move_excess(&e->steps[i], usual, MTPROF_PART_SLOW);
            e->steps[i].parts[MTPROF_PART_COMPILE] = compiled;
        }
    }
    sum_parts(e);
    return MTPROF_OK;
}
