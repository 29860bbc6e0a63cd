/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds steps that take much longer than usual. It is fed with the duration of every step and
 * answers at once; it has no clock, allocates nothing and gives the same answers for the same
 * numbers.
 *
 * The usual duration is the median of the last SLOW_STEP_WINDOW steps. A step is slow if it takes
 *   - more than `factor` times the median, and
 *   - more than the noise of the loop explains: the median times (spread)^5. The spread is the
 *     ratio between the median and the tenth of the window that is shortest or longest, whichever
 *     is nearer to the median. With log-normal noise that is about six standard deviations.
 *
 *   SLS1  The first SLOW_STEP_WARM steps are never slow: caches, compilers and clocks warm up.
 *   SLS2  Slow steps that follow each other are one event: the first is reported. When half of
 *         the window has the new duration, it is the usual one.
 *   SLS3  Steps that are slow at regular distances (an evaluation, a checkpoint) are reported
 *         SLOW_STEP_LEARN times; after that only if they take over twice as long as before.
 */
#ifndef MTPROF_FLIGHT_SLOW_STEP_H
#define MTPROF_FLIGHT_SLOW_STEP_H

#include <stdint.h>

enum {
    SLOW_STEP_WINDOW = 128,
    SLOW_STEP_WARM = 20,
    SLOW_STEP_LEARN = 3,
    SLOW_STEP_REMEMBERED = 32 /* slow steps among which a regular distance is looked for */
};

enum mtprof__step_verdict {
    MTPROF__STEP_USUAL,
    MTPROF__STEP_SLOW,    /* worth a dump */
    MTPROF__STEP_STILL,   /* slow as the one before it (SLS2) */
    MTPROF__STEP_REGULAR, /* slow at its regular time (SLS3) */
    MTPROF__STEP_VERDICT_COUNT
};

typedef struct mtprof__slow_step {
    double factor;
    uint64_t steps;                    /* fed so far */
    uint64_t recent[SLOW_STEP_WINDOW]; /* a ring: step n is at n % SLOW_STEP_WINDOW */
    uint64_t sorted[SLOW_STEP_WINDOW]; /* the same durations, ascending */
    uint64_t n_slow;                   /* beginnings of slow times so far */
    struct {
        uint64_t step, ns;
    } slow[SLOW_STEP_REMEMBERED]; /* a ring of these */
    uint64_t counts[MTPROF__STEP_VERDICT_COUNT];
    enum mtprof__step_verdict last;
} mtprof__slow_step;

/* factor: at least 1. */
void mtprof__slow_step_init(mtprof__slow_step *detector, double factor);
/* The verdict on a step that took so long. */
enum mtprof__step_verdict mtprof__slow_step_feed(mtprof__slow_step *detector, uint64_t ns);
/* The usual duration; 0 before the first step. */
uint64_t mtprof__slow_step_median(const mtprof__slow_step *detector);

#endif /* MTPROF_FLIGHT_SLOW_STEP_H */
