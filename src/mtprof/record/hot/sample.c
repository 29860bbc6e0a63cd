/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling by site, see sample.h. Free of malloc and of locks: it may run in a signal handler.
 */
#include "mtprof/record/hot/sample.h"

#include "base/pages.h"

uint32_t mtprof__sample_clock;

static enum mtprof__sample_class class_of(uint32_t flags)
{
    switch (flags & MTPROF_KIND_MASK) {
    case MTPROF_KIND_OP:
    case MTPROF_KIND_RUNTIME: return MTPROF__CLASS_OP;
    case MTPROF_KIND_FUNCTION: return MTPROF__CLASS_CALL;
    default: return MTPROF__CLASS_SCOPE;
    }
}

static bool is_sampled(uint64_t state, enum mtprof__sample_class class, uint32_t flags)
{
    uint64_t bit = class == MTPROF__CLASS_SCOPE ? MTPROF__SAMPLE_SCOPES : MTPROF__SAMPLE_OPS;
    return (state & bit) != 0 && (flags & MTPROF_FLAG_LAUNCH) == 0 &&
           (flags & MTPROF_KIND_MASK) != MTPROF_KIND_STEP; /* SMP3 */
}

/* A number below n, evenly as far as that matters here. */
static uint32_t random_below(struct mtprof__samples *samples, uint32_t n)
{
    samples->random = samples->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)samples->random * n >> 32);
}

/* An entry that is free, or comes into another second: its interval follows from the last one. */
static void start_second(struct mtprof__samples *samples, mtprof__sample *s, uint32_t clock)
{
    bool follows = s->clock != 0 && s->clock + 1 == clock;
    s->interval = follows ? 1 + s->calls / MTPROF__SAMPLES_KEPT : 1;
    s->left = random_below(samples, s->interval);
    s->calls = s->left;
    s->kept_now = 0;
    s->clock = clock;
}

/* After one was kept: how many are skipped now. */
static void draw(struct mtprof__samples *samples, mtprof__sample *s)
{
    if (++s->kept_now >= 2 * MTPROF__SAMPLES_KEPT && s->interval < 1u << 30) {
        s->interval *= 2; /* it comes more often than in the second before */
        s->kept_now = MTPROF__SAMPLES_KEPT;
    }
    s->left = random_below(samples, 2 * s->interval - 1);
    s->calls += s->calls < 1u << 31 ? 1 + s->left : 0;
}

bool mtprof__sample_keeps(mtprof__writer *w, uint64_t state, uint32_t flags, uint32_t name)
{
    enum mtprof__sample_class class = class_of(flags);
    if (w->epoch != (uint32_t)(state >> 32) || w->thread == 0) {
        return true;
    }
    struct mtprof__samples *samples = w->samples;
    if (MT_UNLIKELY(samples == NULL)) {
        samples = mtb_pages_take(sizeof *samples);
        if (samples == NULL) {
            return true;
        }
        samples->random = w->slot;
        __atomic_store_n(&w->samples, samples, __ATOMIC_RELEASE); /* read by the limiter */
    }
    MTPROF__SET(samples->calls[class], samples->calls[class] + 1);
    if (!is_sampled(state, class, flags)) {
        return true;
    }
    /* Ids are small numbers in a row, those of dynamic names too. */
    mtprof__sample *s = &samples->at[(name ^ name >> 22) & (MTPROF__SAMPLES - 1)];
    uint32_t clock = MTPROF__GET(mtprof__sample_clock);
    if (MT_UNLIKELY(s->clock != clock)) {
        if (s->name == 0) {
            MTPROF__SET(s->name, name);
        }
        start_second(samples, s, clock);
    }
    if (MT_LIKELY(s->left != 0)) {
        s->left--;
        MTPROF__SET(samples->skipped, samples->skipped + 1);
        if (MT_LIKELY(s->name == name)) {
            MTPROF__SET(s->skipped, s->skipped + 1);
        } else {
            MTPROF__SET(samples->shared, samples->shared + 1);
        }
        return false;
    }
    if (s->name == name) {
        MTPROF__SET(s->kept, s->kept + 1);
    }
    draw(samples, s);
    return true;
}

bool mtprof__sample_keeps_site(mtprof__writer *w, uint64_t state, const mtprof_site *site)
{
    uint64_t word = mtprof__site_word(site);
    if (word == 0 || !mtprof__enter(w)) {
        return true;
    }
    bool keeps = mtprof__sample_keeps(w, state, (uint16_t)(word >> 16), (uint32_t)(word >> 32));
    mtprof__leave(w);
    return keeps;
}
