/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's clock and its calibration.
 *
 * The first anchor is taken when the library is loaded, so that at the first start the
 * period can usually be computed from two anchors at a large enough distance, without waiting.
 * Otherwise start waits for the rest of BASELINE_NS. Traces carry anchors of their own (one a
 * second), so an error of the period here does not add up in a long trace.
 */
#include "mtprof/record/hot/ticks.h"
#include "mtprof/record/hot/writer.h"

#include <mtprof/clock.h>

#include <pthread.h>
#include <time.h>
#if defined(__x86_64__)
#    include <cpuid.h>
#endif

enum {
    BASELINE_NS = 5 * 1000 * 1000,
    ANCHOR_TRIES = 8,
    NS_PER_S = 1000 * 1000 * 1000
};

uint32_t mtprof__odd = MTPROF__ODD_CLOCK; /* until the clock is chosen */

static bool tsc_usable;
static int64_t disturbance;
static uint64_t period = (uint64_t)1 << 56; /* ns per tick, 56 fraction bits; relaxed atomics */
static mtprof__anchor first;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t mtprof__mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t mtprof__ticks_slow(void)
{
    int64_t offset = __atomic_load_n(&disturbance, __ATOMIC_RELAXED);
#if defined(__x86_64__)
    if (tsc_usable) {
        return __builtin_ia32_rdtsc() + (uint64_t)offset;
    }
#endif
    return mtprof__mono_ns() + (uint64_t)offset;
}

static void use_tsc(bool use)
{
    if (use) {
        __atomic_fetch_and(&mtprof__odd, ~(uint32_t)MTPROF__ODD_CLOCK, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_or(&mtprof__odd, MTPROF__ODD_CLOCK, __ATOMIC_RELAXED);
    }
}

/* Writers on their fast path must notice: flipping an unused bit changes the state, so that they
 * take the slow path. */
void mtprof__clock_disturb(int64_t offset, bool on)
{
    const uint64_t bit = (uint64_t)1 << 31;
    __atomic_store_n(&disturbance, offset, __ATOMIC_RELAXED);
    use_tsc(tsc_usable && !on);
    uint64_t state = __atomic_load_n(&mtprof__state, __ATOMIC_SEQ_CST);
    while (state != 0 && !__atomic_compare_exchange_n(&mtprof__state, &state, state ^ bit, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

/* The counter ticks at one rate in every power state: CPUID says so. */
static bool tsc_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) != 0) {
        return (d & (1u << 8)) != 0;
    }
#endif
    return false;
}

mtprof__anchor mtprof__clock_anchor(void)
{
    mtprof__anchor best = {0, 0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < ANCHOR_TRIES; i++) {
        uint64_t before = mtprof__ticks();
        uint64_t mono = mtprof__mono_ns();
        uint64_t after = mtprof__ticks();
        uint64_t real = clock_ns(CLOCK_REALTIME);
        if (after - before < narrowest) {
            narrowest = after - before;
            best.ticks = before + (after - before) / 2;
            best.mono_ns = mono;
            best.real_ns = real;
        }
    }
    return best;
}

static void choose_clock(void)
{
    tsc_usable = tsc_is_invariant();
    use_tsc(tsc_usable);
    first = mtprof__clock_anchor();
}

__attribute__((constructor)) static void on_load(void)
{
    pthread_once(&once, choose_clock);
}

void mtprof__clock_prepare(void)
{
    pthread_once(&once, choose_clock);
    if (!tsc_usable) {
        return; /* a tick is a nanosecond */
    }
    mtprof__anchor now = mtprof__clock_anchor();
    while (now.mono_ns - first.mono_ns < BASELINE_NS) {
        struct timespec rest = {0, BASELINE_NS};
        nanosleep(&rest, NULL);
        now = mtprof__clock_anchor();
    }
    uint64_t ticks = now.ticks - first.ticks;
    unsigned __int128 ns = (unsigned __int128)(now.mono_ns - first.mono_ns) << 56;
    if (ticks != 0) {
        __atomic_store_n(&period, (uint64_t)(ns / ticks), __ATOMIC_RELAXED);
    }
}

uint64_t mtprof__ns_to_ticks(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 56) / mtprof_tick_period());
}

uint64_t mtprof_ticks(void)
{
    pthread_once(&once, choose_clock);
    return mtprof__ticks();
}

uint64_t mtprof_tick_period(void)
{
    return __atomic_load_n(&period, __ATOMIC_RELAXED);
}

uint32_t mtprof_clock_kind(void)
{
    pthread_once(&once, choose_clock);
    return tsc_usable ? 0 : 1;
}

int64_t mtprof_ticks_to_ns(uint64_t ticks)
{
    mtprof__clock_prepare();
    __int128 distance = (int64_t)(ticks - first.ticks);
    return (int64_t)first.mono_ns + (int64_t)((distance * (__int128)mtprof_tick_period()) >> 56);
}
