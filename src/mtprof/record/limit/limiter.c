/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring what recording costs and applying what follows, see limiter.h.
 */
#include "mtprof/record/limit/limiter.h"

#include "base/alloc.h"
#include "mtprof/record/hot/sample.h"

#include <mtprof/clock.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STALL_NS = 20 * 1000, /* a writer that maps its own memory, about */
    PAYLOAD_BYTES = 64,   /* of payloads cost about as much as a begin and its end */
    PLAIN_BYTES = 24,     /* of a begin and its end, and of a mark */
    IN_PROGRAM = 2,       /* what is measured is a loop that does nothing else; between a program's
                                 own work an event costs about twice as much (docs/measuring.md) */
    SECOND_NS = 1000000000
};
#define TELL_NS (60ull * SECOND_NS)

/* ---- clocks ---------------------------------------------------------------------------------- */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) == 0
               ? (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec
               : 0;
}

static uint64_t process_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t helper_ns(const mtprof__limiter *l)
{
    return l->helper_known ? read_clock(l->helper_clock) : 0;
}

const mtprof__limit_clocks mtprof__limit_clock_default = {mtprof__mono_ns, process_ns, helper_ns};
mtprof__limit_clocks mtprof__limit_clock = {mtprof__mono_ns, process_ns, helper_ns};

static double ticks_ns(double ticks)
{
    return ticks * (double)mtprof_tick_period() / (double)(1ull << MTPROF_PERIOD_SHIFT);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static struct mtprof__samples *samples_of(const mtprof__writer *w)
{
    return __atomic_load_n(&w->samples, __ATOMIC_ACQUIRE);
}

static void measure(const mtprof__limiter *l, mtprof__recording *recording, mtprof__meter *m)
{
    const mtprof__store *store = recording->store;
    mtprof_health h = {.struct_size = sizeof h};
    memset(m, 0, sizeof *m);
    m->wall_ns = mtprof__limit_clock.wall_ns();
    m->cpu_ns = mtprof__limit_clock.cpu_ns();
    m->helper_ns = mtprof__limit_clock.helper_ns(l);
    mtprof__recorder_sum(recording, &h);
    m->begins = h.begins;
    m->marks = h.others;
    m->stalls = mtprof__store_counted(store, MTPROF_HEALTH_STALLS);
    m->bytes = MTPROF__GET(store->frontier) +
               mtprof__store_counted(store, MTPROF_HEALTH_RING_CHUNKS) * store->chunk_max;
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        const mtprof__writer *w = mtprof__slot_at(i);
        const struct mtprof__samples *samples = samples_of(w);
        m->asked_ticks += MTPROF__GET(w->asked_ticks);
        for (uint32_t c = 0; samples != NULL && c < MTPROF__CLASSES; c++) {
            m->calls[c] += MTPROF__GET(samples->calls[c]);
        }
        m->skipped += samples != NULL ? MTPROF__GET(samples->skipped) : 0;
    }
}

/* Counts that are read while they grow may seem to go back. */
static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void load_between(const mtprof__limiter *l, const mtprof__meter *a, const mtprof__meter *b,
                         mtprof__load *load)
{
    *load = (mtprof__load){
        .wall_ns = since(b->wall_ns, a->wall_ns),
        .cpu_ns = since(b->cpu_ns, a->cpu_ns),
        .helper_ns = since(b->helper_ns, a->helper_ns) + since(b->stalls, a->stalls) * STALL_NS,
        .begins = since(b->begins, a->begins),
        .marks = since(b->marks, a->marks),
        .ops = since(b->calls[MTPROF__CLASS_OP], a->calls[MTPROF__CLASS_OP]) +
               since(b->calls[MTPROF__CLASS_CALL], a->calls[MTPROF__CLASS_CALL]),
        .scopes = since(b->calls[MTPROF__CLASS_SCOPE], a->calls[MTPROF__CLASS_SCOPE]),
        .skipped = since(b->skipped, a->skipped),
    };
    double payload = ticks_ns((double)since(b->asked_ticks, a->asked_ticks));
    if (l->limit.level == MTPROF_LIMIT_NONE) {
        uint64_t bytes = since(b->bytes, a->bytes);
        uint64_t plain = (load->begins + load->marks) * PLAIN_BYTES;
        payload += (double)since(bytes, plain) / PAYLOAD_BYTES * l->limit.cost.pair;
    }
    load->payload_ns = (uint64_t)payload;
}

/* ---- telling --------------------------------------------------------------------------------- */

static uint32_t ppm(double part)
{
    return part >= 4000 ? 4000000000u : (uint32_t)(part * 1e6);
}

static void put_limit(mtprof__limiter *l, mtprof__recording *recording, uint32_t before)
{
    const mtprof__limit *m = &l->limit;
    uint64_t ticks = mtprof__ticks();
    uint64_t record[5] = {mtprof__word0(MTPROF_REC_LIMIT, 5, m->level | before << 8, 0), ticks,
                          ppm(m->share) | (uint64_t)ppm(m->limit) << 32, (uint64_t)m->cost_ns,
                          (uint64_t)m->base_ns};
    mtprof__control_append(recording, record, 5, ticks);
    if (before != m->level) {
        l->changes++;
        l->deepest = m->level > l->deepest ? m->level : l->deepest;
    }
}

static void put_unrecorded(mtprof__limiter *l, mtprof__recording *recording, uint32_t what,
                           uint32_t name, uint64_t count, uint64_t kept)
{
    uint64_t ticks = mtprof__ticks();
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_UNRECORDED, 4, what, name), ticks, count, kept};
    mtprof__control_append(recording, record, 4, ticks);
    if (what != MTPROF_UNRECORDED_PAYLOADS) {
        l->unrecorded += count;
        mtprof__store_count(recording->store, MTPROF_HEALTH_UNRECORDED, count);
    } else {
        l->bare_total += count;
    }
    l->estimated += what == MTPROF_UNRECORDED_ESTIMATE ? count : 0;
}

typedef struct told {
    uint32_t name;
    uint64_t skipped, kept;
} told;

static int compare_told(const void *a, const void *b)
{
    uint32_t x = ((const told *)a)->name, y = ((const told *)b)->name;
    return x < y ? -1 : x > y;
}

/* What an entry counted since it was last told; false: nothing. */
static bool take_told(mtprof__sample *s, told *out)
{
    uint64_t skipped = MTPROF__GET(s->skipped), kept = MTPROF__GET(s->kept);
    *out = (told){MTPROF__GET(s->name), skipped - s->told_skipped, kept - s->told_kept};
    if (out->skipped == 0) {
        return false;
    }
    s->told_skipped = skipped;
    s->told_kept = kept;
    return true;
}

/* One record a name: the threads' tables are put together first. */
static void tell_samples(mtprof__limiter *l, mtprof__recording *recording)
{
    told *list = NULL;
    size_t n = 0, capacity = 0;
    uint64_t shared = 0;
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        struct mtprof__samples *samples = samples_of(mtprof__slot_at(i));
        if (samples == NULL) {
            continue;
        }
        uint64_t all = MTPROF__GET(samples->shared);
        shared += all - samples->told_shared;
        samples->told_shared = all;
        for (size_t k = 0; k < MTPROF__SAMPLES; k++) {
            told one;
            if (!take_told(&samples->at[k], &one)) {
                continue;
            }
            if (!mtb_append(list, n, capacity, &one)) { /* no memory: a record of its own */
                put_unrecorded(l, recording, MTPROF_UNRECORDED_SAMPLED, one.name, one.skipped,
                               one.kept);
            }
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof *list, compare_told);
    }
    for (size_t i = 0; i < n;) {
        told sum = list[i];
        for (i++; i < n && list[i].name == sum.name; i++) {
            sum.skipped += list[i].skipped;
            sum.kept += list[i].kept;
        }
        put_unrecorded(l, recording, MTPROF_UNRECORDED_SAMPLED, sum.name, sum.skipped, sum.kept);
    }
    mtb_free(list);
    if (shared != 0) {
        put_unrecorded(l, recording, MTPROF_UNRECORDED_SAMPLED, 0, shared, 0);
    }
}

static void tell_unrecorded(mtprof__limiter *l, mtprof__recording *recording)
{
    tell_samples(l, recording);
    if (l->estimate >= 1) {
        uint64_t count = (uint64_t)l->estimate;
        put_unrecorded(l, recording, MTPROF_UNRECORDED_ESTIMATE, 0, count, 0);
        l->estimate -= (double)count;
    }
    if (l->bare != 0) {
        put_unrecorded(l, recording, MTPROF_UNRECORDED_PAYLOADS, 0, l->bare, 0);
        l->bare = 0;
    }
    l->told_ns = l->last.wall_ns;
}

/* What this turn left out that no thread has counted: by the rates that were seen before. */
static void estimate(mtprof__limiter *l, const mtprof__load *load)
{
    const mtprof__limit *m = &l->limit;
    double time = (double)load->cpu_ns;
    bool shut = m->level == MTPROF_LIMIT_STRETCHES && !m->open;
    if (m->level >= MTPROF_LIMIT_PAYLOADS && (l->wants & MTPROF__LIMIT_PAYLOADS) != 0) {
        l->bare += load->begins;
    }
    if (m->level >= MTPROF_LIMIT_OPS_OFF) {
        l->estimate += m->ops * time;
    }
    if (m->level >= MTPROF_LIMIT_SCOPES_SAMPLED) {
        l->estimate += m->marks * time;
    }
    l->estimate += shut ? m->scopes * time : 0;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void take_turn(mtprof__limiter *l, mtprof__recording *recording, bool last)
{
    mtprof__meter now;
    mtprof__load load;
    measure(l, recording, &now);
    load_between(l, &l->last, &now, &load);
    l->functions =
        l->functions || now.calls[MTPROF__CLASS_CALL] != l->last.calls[MTPROF__CLASS_CALL];
    l->last = now;
    uint32_t before = l->limit.level;
    bool was_open = l->limit.open;
    estimate(l, &load);
    mtprof__limit_turn(&l->limit, &load);
    if (last) {
        tell_unrecorded(l, recording);
        put_limit(l, recording, before);
        return;
    }
    if (now.wall_ns - l->second_ns >= SECOND_NS) {
        l->second_ns = now.wall_ns;
        MTPROF__SET(mtprof__sample_clock, MTPROF__GET(mtprof__sample_clock) + 1);
    }
    if (l->limit.level != before || l->limit.open != was_open) {
        mtprof__epoch_adjust(mtprof__limit_wants(&l->limit, l->wants, l->functions));
    }
    if (l->limit.level != before) {
        put_limit(l, recording, before);
    }
    if (now.wall_ns - l->told_ns >= TELL_NS) {
        tell_unrecorded(l, recording);
    }
    l->due_ns = now.wall_ns + mtprof__limit_wait_ns(&l->limit, &load);
}

uint64_t mtprof__limiter_turn(mtprof__limiter *l, mtprof__recording *recording)
{
    if (l->limit.limit == 0) {
        return UINT64_MAX;
    }
    mtb_lock_acquire(&l->lock);
    if (l->active && mtprof__limit_clock.wall_ns() >= l->due_ns) {
        take_turn(l, recording, false);
    }
    uint64_t due = l->active ? l->due_ns : UINT64_MAX;
    mtb_lock_release(&l->lock);
    return due;
}

/* ---- the session's side ---------------------------------------------------------------------- */

void mtprof__limiter_init(mtprof__limiter *l, uint32_t ppm, uint32_t pair_cost)
{
    mtprof__limit_costs cost = {0};
    memset(l, 0, sizeof *l);
    mtb_lock_init(&l->lock, MTB_RANK_LIMIT);
    if (ppm != 0) {
        /* Where the short path is not taken nothing is measured: then what a machine of 2020 does
         * in a few hundred cycles. */
        cost.pair = pair_cost != 0 ? IN_PROGRAM * ticks_ns(pair_cost / 256.0) : 100;
        cost.skip =
            pair_cost != 0 ? IN_PROGRAM * ticks_ns(mtprof__recorder_skip_cost() / 256.0) : 20;
    }
    mtprof__limit_init(&l->limit, ppm, cost);
}

void mtprof__limiter_fini(mtprof__limiter *l)
{
    mtb_lock_fini(&l->lock);
}

void mtprof__limiter_helper(mtprof__limiter *l)
{
    mtb_lock_acquire(&l->lock);
    l->helper_known = pthread_getcpuclockid(pthread_self(), &l->helper_clock) == 0;
    mtb_lock_release(&l->lock);
}

void mtprof__limiter_attach(mtprof__limiter *l, mtprof__recording *recording)
{
    if (l->limit.limit == 0) {
        return;
    }
    mtb_lock_acquire(&l->lock);
    l->changes = l->deepest = 0;
    l->unrecorded = l->estimated = l->bare_total = 0;
    l->estimate = 0;
    l->bare = 0;
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        mtprof__writer *w = mtprof__slot_at(i);
        struct mtprof__samples *samples = samples_of(w);
        if (samples != NULL && !w->stuck) { /* WR3; ids of names are of the recording before */
            memset(samples, 0, sizeof *samples);
            samples->random = w->slot;
        }
    }
    l->deepest = l->limit.level;
    put_limit(l, recording, l->limit.level);
    mtb_lock_release(&l->lock);
}

uint32_t mtprof__limiter_open(mtprof__limiter *l, mtprof__recording *recording, uint32_t wants)
{
    if (l->limit.limit == 0) {
        return mtprof__epoch_open(wants);
    }
    mtb_lock_acquire(&l->lock);
    l->active = true;
    l->wants = wants;
    measure(l, recording, &l->last);
    l->second_ns = l->told_ns = l->last.wall_ns;
    MTPROF__SET(mtprof__sample_clock, MTPROF__GET(mtprof__sample_clock) + 1);
    uint32_t epoch = mtprof__epoch_open(mtprof__limit_wants(&l->limit, wants, l->functions));
    l->due_ns = l->last.wall_ns + MTPROF__LIMIT_SOON_NS;
    mtb_lock_release(&l->lock);
    return epoch;
}

uint64_t mtprof__limiter_shut(mtprof__limiter *l, mtprof__recording *recording)
{
    if (l->limit.limit == 0) {
        return mtprof__epoch_close(recording);
    }
    mtb_lock_acquire(&l->lock);
    uint64_t ticks = mtprof__epoch_close(recording);
    if (l->active) {
        take_turn(l, recording, true); /* LT2 */
        l->active = false;
    }
    mtb_lock_release(&l->lock);
    return ticks;
}

void mtprof__limiter_health(mtprof__limiter *l, mtprof_health *health)
{
    if (l->limit.limit == 0) {
        return;
    }
    mtb_lock_acquire(&l->lock);
    health->limit_ppm = ppm(l->limit.limit);
    health->limit_level = l->deepest;
    health->limit_changes = l->changes;
    health->unrecorded = l->unrecorded;
    health->unrecorded_estimated = l->estimated;
    health->without_payload = l->bare_total;
    health->own_cost_ns = (uint64_t)l->limit.cost_ns;
    health->own_cost_of_ns = (uint64_t)l->limit.base_ns;
    mtb_lock_release(&l->lock);
}
