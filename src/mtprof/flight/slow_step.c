/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that take much longer than usual, see slow_step.h.
 *
 * The window is kept twice, in order of time and of duration, so a step costs a search and a move
 * of at most a kilobyte.
 */
#include "mtprof/flight/slow_step.h"

#include "base/compiler.h"

#include <string.h>

void mtprof__slow_step_init(mtprof__slow_step *detector, double factor)
{
    memset(detector, 0, sizeof *detector);
    detector->factor = factor;
}

static bool is_less(const void *item, uint64_t key)
{
    return *(const uint64_t *)item < key;
}

static size_t place_of(const uint64_t *sorted, size_t n, uint64_t ns)
{
    return mtb_search(sorted, n, sizeof *sorted, is_less, ns);
}

static size_t filled(const mtprof__slow_step *d)
{
    return d->steps < SLOW_STEP_WINDOW ? (size_t)d->steps : SLOW_STEP_WINDOW;
}

/* Replaces the oldest duration, once the window is full. */
static void remember(mtprof__slow_step *d, uint64_t ns)
{
    size_t n = filled(d);
    uint64_t *oldest = &d->recent[d->steps % SLOW_STEP_WINDOW];
    if (n == SLOW_STEP_WINDOW) {
        size_t from = place_of(d->sorted, n, *oldest);
        n--;
        memmove(d->sorted + from, d->sorted + from + 1, (n - from) * sizeof *d->sorted);
    }
    size_t to = place_of(d->sorted, n, ns);
    memmove(d->sorted + to + 1, d->sorted + to, (n - to) * sizeof *d->sorted);
    d->sorted[to] = ns;
    *oldest = ns;
    d->steps++;
}

uint64_t mtprof__slow_step_median(const mtprof__slow_step *detector)
{
    return detector->sorted[filled(detector) / 2];
}

static bool is_slow(const mtprof__slow_step *d, uint64_t ns)
{
    size_t n = filled(d);
    if (n < SLOW_STEP_WARM) { /* SLS1 */
        return false;
    }
    double median = (double)mtprof__slow_step_median(d);
    median = median < 1 ? 1 : median; /* steps of no duration at all */
    size_t tenth = n / 10;
    double above = (double)d->sorted[n - 1 - tenth] / median;
    double below = median / ((double)d->sorted[tenth] + 1);
    double spread = above < below ? above : below; /* a warm-up or regular work widens one side */
    double noise = spread * spread * spread * spread * spread;
    return (double)ns > median * (noise > d->factor ? noise : d->factor);
}

/* How long the slow time took that began at a step; 0: none did, or it is forgotten. */
static uint64_t slow_at(const mtprof__slow_step *d, uint64_t step)
{
    for (size_t i = 0; i < SLOW_STEP_REMEMBERED && i < d->n_slow; i++) {
        if (d->slow[i].step == step) {
            return d->slow[i].ns;
        }
    }
    return 0;
}

/* SLS3: whether the slow times of before form a row of equal distances that this step continues. */
static bool is_regular(const mtprof__slow_step *d, uint64_t step, uint64_t ns)
{
    for (size_t i = 0; i < SLOW_STEP_REMEMBERED && i < d->n_slow; i++) {
        uint64_t distance = step - d->slow[i].step;
        uint64_t longest = 0;
        unsigned found = 0;
        for (uint64_t back = 1; back <= SLOW_STEP_LEARN && back * distance <= step; back++) {
            uint64_t before = slow_at(d, step - back * distance);
            found += before != 0;
            longest = before > longest ? before : longest;
        }
        if (found == SLOW_STEP_LEARN && ns / 2 <= longest) {
            return true;
        }
    }
    return false;
}

static enum mtprof__step_verdict judge(mtprof__slow_step *d, uint64_t ns)
{
    if (!is_slow(d, ns)) {
        return MTPROF__STEP_USUAL;
    }
    if (d->last != MTPROF__STEP_USUAL) { /* SLS2 */
        return MTPROF__STEP_STILL;
    }
    bool regular = is_regular(d, d->steps, ns);
    size_t next = d->n_slow++ % SLOW_STEP_REMEMBERED;
    d->slow[next].step = d->steps;
    d->slow[next].ns = ns;
    return regular ? MTPROF__STEP_REGULAR : MTPROF__STEP_SLOW;
}

enum mtprof__step_verdict mtprof__slow_step_feed(mtprof__slow_step *detector, uint64_t ns)
{
    detector->last = judge(detector, ns);
    detector->counts[detector->last]++;
    remember(detector, ns);
    return detector->last;
}
