/* SPDX-License-Identifier: Apache-2.0
 *
 * Begin, end, and the marks: the hot path. Each function stores its record where the thread's
 * writer points and publishes it; everything else is in writer.c.
 *
 * The clock is read last in a begin and first in an end, so that our own work is not measured.
 */
#include "mtprof/record/define/ask_language.h"
#include "mtprof/record/hot/sample.h"

#include <string.h>

uint32_t mtprof_i_gate;
uint64_t mtprof__state;
__thread mtprof__writer *mtprof__mine __attribute__((tls_model("initial-exec")));

/* ---- begin ---- */

/* Words of the side buffer that are kept for the ends of nested scopes. */
static uint32_t nested_ends(const mtprof__writer *w)
{
    return w->nested_open > 0 ? 3 * (uint32_t)w->nested_open : 0;
}

/* From inside the recorder itself: an ordinal of its own kind, written explicitly. */
static mtprof_token nested_begin(mtprof__writer *w, uint32_t flags, uint32_t name)
{
    uint64_t state = mtprof__load_state();
    uint32_t epoch = (uint32_t)(state >> 32);
    if (epoch == 0) {
        return 0;
    }
    uint64_t key = mtprof__slot_bits(w->slot) | MTPROF__EXPLICIT_BIT |
                   __atomic_fetch_add(&w->nested_ordinal, 1, __ATOMIC_RELAXED);
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_BEGIN_X, 4, flags, name), mtprof__ticks(), key,
                          MTPROF_KEY_STRUCTURE};
    if (!mtprof__side_put(w, record, 4, 3 + nested_ends(w))) {
        return 0;
    }
    __atomic_fetch_add(&w->nested_open, 1, __ATOMIC_RELAXED);
    return key | (uint64_t)mtprof__epoch_byte(epoch) << 56;
}

/* Not wanted, or left out by sampling. A site that has never recorded is not. */
static bool is_skipped(mtprof__writer *w, uint64_t state, const mtprof_site *site)
{
    uint64_t word = mtprof__site_word(site);
    if ((state & MTPROF__SAMPLING) == 0 || word == 0) {
        return false;
    }
    return (state & MTPROF__GET(site->wants)) == 0 ||
           !mtprof__sample_keeps(w, state, (uint16_t)(word >> 16), (uint32_t)(word >> 32));
}

static MT_COLD mtprof_token begin_slow(mtprof__writer *w, mtprof_site *site)
{
    uint64_t state = mtprof__load_state();
    mtprof_token token = 0;
    if (mtprof__language_asks(state) != 0) {
        if (is_skipped(w, state, site)) {
            mtprof__leave(w);
            return 0;
        }
        if ((mtprof__language_asks(state) & ~(uint32_t)MTPROF__SAMPLING) != 0) {
            mtprof__leave(w);
            return mtprof__begin_asked(site, NULL, 0);
        }
    }
    if (state != 0 && mtprof__site_register(site) && (state & MTPROF__GET(site->wants)) != 0) {
        uint64_t *at = mtprof__reserve(w, 2, 1, false);
        if (at != NULL) {
            token = mtprof__finish_begin(w, at, at + 2, mtprof__site_word(site), false);
        }
    }
    mtprof__leave(w);
    return token;
}

static MT_COLD mtprof_token begin_outside(mtprof__writer *w, mtprof_site *site)
{
    if (w == NULL) {
        w = mtprof__writer_mine(1);
    }
    if (w == NULL || mtprof__enter(w)) {
        return w != NULL ? begin_slow(w, site) : 0;
    }
    uint32_t id = mtprof__site_name(site);
    if (id == 0 || (mtprof__load_state() & MTPROF__GET(site->wants)) == 0) {
        if (id == 0) {
            mtprof__lose(MTPROF_LOST_NESTED, 1);
        }
        return 0;
    }
    if ((mtprof__language_asks(mtprof__load_state()) & MTPROF_WANT_STACKS) != 0) {
        mtprof__count(MTPROF_HEALTH_STACKS_MISSED, 1);
    }
    return nested_begin(w, mtprof__site_flags(site), id);
}

/* The whole fast path of a begin; false: take the slow one. The writer is entered. */
MT_INLINE bool begin_fast(mtprof__writer *w, uint64_t state, mtprof_site *site, mtprof_token *token)
{
    uint64_t word = mtprof__site_word(site);
    if (MT_UNLIKELY(!mtprof__ready_to_begin(w, state, 2) || word == 0)) {
        return false;
    }
    *token = 0;
    if (MT_LIKELY((state & MTPROF__GET(site->wants)) != 0)) {
        *token = mtprof__finish_begin(w, w->cursor, w->cursor + 2, word, true);
    }
    mtprof__leave(w);
    return true;
}

mtprof_token mtprof_i_begin(mtprof_site *site)
{
    mtprof__writer *w = mtprof__mine;
    if (MT_UNLIKELY(w == NULL || !mtprof__enter_fast(w))) {
        return begin_outside(w, site);
    }
    mtprof_token token = 0;
    if (MT_UNLIKELY(!begin_fast(w, mtprof__load_state(), site, &token))) {
        return begin_slow(w, site);
    }
    return token;
}

/* ---- end ---- */

/* A scope of another slot, or ended from inside the recorder: has a counter of its own. */
static void count_foreign_end(mtprof_token token)
{
    mtprof__writer *owner = mtprof__slot_at((uint16_t)(token >> MTPROF_ORDINAL_BITS));
    if (owner != NULL && token >= MTPROF__GET(owner->epoch_first)) {
        __atomic_fetch_add(&owner->foreign_ends, 1, __ATOMIC_RELAXED);
    }
}

/* An end in the long form moves the count of open scopes where the scope was begun. */
static void count_end(mtprof__writer *w, mtprof_token token, bool nested)
{
    bool mine = (uint16_t)(token >> MTPROF_ORDINAL_BITS) == w->slot;
    if ((token & MTPROF__EXPLICIT_BIT) != 0) {
        __atomic_fetch_sub(&w->nested_open, mine, __ATOMIC_RELAXED);
    } else if (mine && !nested) {
        w->depth--;
    } else {
        count_foreign_end(token);
    }
}

/* Of its own slot a writer knows better than the epoch byte. */
static bool token_is_current(const mtprof__writer *w, mtprof_token token, uint64_t state)
{
    bool mine = (uint16_t)(token >> MTPROF_ORDINAL_BITS) == w->slot;
    return mtprof__token_in(token, state) &&
           (!mine || (token & MTPROF__EXPLICIT_BIT) != 0 || w->epoch != (uint32_t)(state >> 32) ||
            token >= w->epoch_first);
}

/* The long form: too distant, of another thread, nested, or the clock jumped. */
static MT_COLD void end_slow(mtprof__writer *w, mtprof_token token, uint64_t ticks, uint64_t memory)
{
    if (token_is_current(w, token, mtprof__load_state())) {
        /* Before: an attachment, a new chunk and nested records move it past our own reading. */
        uint64_t reference = w->time_ref;
        uint64_t *at = mtprof__reserve(w, 4, 0, true);
        if (at != NULL) {
            uint64_t key = token & MTPROF__KEY_MASK;
            uint64_t distance = w->next_token - token;
            if (distance - 1 < 0xFFFF && ticks - w->time_ref < (uint64_t)1 << MTPROF_SHORT_TIME) {
                mtprof__put(at, mtprof__end_word(distance, ticks));
                w->end_ticks = ticks;
                w->depth--;
                at += 1;
            } else {
                mtprof__put(at, mtprof__word0(MTPROF_REC_END_X, 3, 0, 0));
                mtprof__put(at + 1, ticks);
                mtprof__put(at + 2, key);
                count_end(w, token, false);
                if ((int64_t)(ticks - reference) < 0) {
                    mtprof__count(MTPROF_HEALTH_CLOCK_BACK, 1);
                }
                w->time_ref = ticks;
                at += 3;
            }
            if (memory != 0) {
                mtprof__put(at++, memory);
            }
            w->payload_at = NULL;
            mtprof__publish(w, at);
        }
    }
    mtprof__leave(w);
}

static MT_COLD void end_outside(mtprof__writer *w, mtprof_token token, uint64_t memory)
{
    uint64_t ticks = mtprof__ticks();
    if (w == NULL) {
        w = mtprof__writer_mine(0);
    }
    if (w == NULL) {
        return;
    }
    if (mtprof__enter(w)) {
        end_slow(w, token, ticks, memory);
    } else if (token_is_current(w, token, mtprof__load_state())) {
        uint64_t record[3] = {mtprof__word0(MTPROF_REC_END_X, 3, 0, 0), ticks,
                              token & MTPROF__KEY_MASK};
        if (mtprof__side_put(w, record, 3, 0)) {
            count_end(w, token, true);
        }
    }
}

/* The whole fast path of an end; false: take the slow one. The writer is entered. */
MT_INLINE bool end_fast(mtprof__writer *w, uint64_t state, mtprof_token token, uint64_t ticks,
                        uint64_t memory)
{
    uint32_t words = memory != 0 ? 2 : 1;
    /* One subtraction checks epoch, slot and order: any difference makes the distance huge. */
    uint64_t distance = w->next_token - token;
    if (MT_UNLIKELY(!mtprof__ready(w, state, words) || distance - 1 >= 0xFFFF ||
                    token < w->epoch_first ||
                    ticks - w->time_ref >= (uint64_t)1 << MTPROF_SHORT_TIME)) {
        return false;
    }
    mtprof__put(w->cursor, mtprof__end_word(distance, ticks));
    w->end_ticks = ticks;
    w->depth--; /* payload_at stays before the cursor: no payload can follow any more */
    if (memory != 0) {
        mtprof__put(w->cursor + 1, memory);
    }
    mtprof__publish(w, w->cursor + words);
    mtprof__leave(w);
    return true;
}

/* memory: the MEM_AFTER word that goes with it, 0: none. */
MT_INLINE void end_scope(mtprof_token token, uint64_t memory)
{
    mtprof__writer *w = mtprof__mine;
    if (MT_UNLIKELY(w == NULL || !mtprof__enter_fast(w))) {
        end_outside(w, token, memory);
        return;
    }
    uint64_t ticks = mtprof__ticks_fast();
    if (MT_UNLIKELY(!end_fast(w, mtprof__load_state(), token, ticks, memory))) {
        end_slow(w, token, MTPROF__GET(mtprof__odd) == 0 ? ticks : mtprof__ticks(), memory);
    }
}

void mtprof_i_end(mtprof_token token)
{
    end_scope(token, 0);
}

void mtprof_op_end(mtprof_token token, uint32_t memory_device, uint64_t memory_after)
{
    if (token != 0) {
        bool wanted = mtprof_wants(MTPROF_WANT_MEMORY);
        end_scope(token,
                  wanted ? mtprof__memory_word(MTPROF_REC_MEM_AFTER, memory_device, memory_after)
                         : 0);
    }
}

/* ---- what it costs ---- */

enum {
    COST_PAIRS = 128,
    COST_ROUNDS = 24
};

/* The fast path alone, into memory of our own: what an event costs on this machine right now. */
uint32_t mtprof__recorder_cost(void)
{
    if (MTPROF__GET(mtprof__odd) != 0) {
        return 0; /* such a machine does not take the fast path */
    }
    struct {
        mtprof__chunk_header header;
        uint64_t words[COST_PAIRS * 3 + MTPROF__TAIL_WORDS];
    } scratch;
    static mtprof_site site = MTPROF_SITE_INIT("calibration", MTPROF_KIND_SCOPE);
    site.word = mtprof__word0(MTPROF_REC_BEGIN, 2, 0, 1);
    site.wants = MTPROF_WANT_SCOPES;
    volatile uint64_t state = (uint64_t)1 << 32 | MTPROF_WANT_SCOPES;
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < COST_ROUNDS; round++) {
        mtprof__writer w;
        memset(&w, 0, sizeof w);
        w.state = w.begin_state = state;
        w.records = (char *)scratch.words;
        w.cursor = scratch.words;
        w.limit = scratch.words + COST_PAIRS * 3;
        w.committed = &scratch.header.committed;
        w.next_token = (uint64_t)mtprof__epoch_byte(1) << 56 | 1;
        uint64_t before = mtprof__ticks();
        w.time_ref = before;
        for (int i = 0; i < COST_PAIRS; i++) {
            mtprof_token token = 0;
            (void)(mtprof__enter_fast(&w) && begin_fast(&w, state, &site, &token));
            (void)(mtprof__enter_fast(&w) && end_fast(&w, state, token, mtprof__ticks_fast(), 0));
        }
        uint64_t taken = mtprof__ticks() - before;
        best = taken < best ? taken : best;
    }
    return (uint32_t)(best * 256 / COST_PAIRS);
}

/* A begin that sampling leaves out, likewise. */
uint32_t mtprof__recorder_skip_cost(void)
{
    enum {
        SKIPS = 256
    };
    static struct mtprof__samples samples; /* one session starts at a time */
    static mtprof_site site = MTPROF_SITE_INIT("calibration", MTPROF_KIND_SCOPE);
    site.word = mtprof__word0(MTPROF_REC_BEGIN, 2, 0, 1);
    site.wants = MTPROF_WANT_SCOPES;
    volatile uint64_t state = (uint64_t)1 << 32 | MTPROF_WANT_SCOPES | MTPROF__SAMPLE_SCOPES;
    uint64_t best = UINT64_MAX;
    mtprof__writer w;
    memset(&w, 0, sizeof w);
    w.begin_state = MTPROF__DETACHED;
    w.epoch = 1;
    w.thread = 1;
    w.samples = &samples;
    for (int round = 0; round < COST_ROUNDS; round++) {
        mtprof__sample *s = &samples.at[1];
        *s = (mtprof__sample){.name = 1, .clock = MTPROF__GET(mtprof__sample_clock), .left = SKIPS};
        uint64_t before = mtprof__ticks();
        for (int i = 0; i < SKIPS; i++) {
            mtprof_token token = 0;
            (void)(mtprof__enter_fast(&w) && !begin_fast(&w, state, &site, &token) &&
                   is_skipped(&w, state, &site));
            mtprof__leave(&w);
        }
        uint64_t taken = mtprof__ticks() - before;
        best = taken < best ? taken : best;
    }
    return (uint32_t)(best * 256 / SKIPS);
}

/* ---- marks: instants, counters, flows ---- */

/* One record of up to four words whose second word is the time. */
static void mark(mtprof_site *site, uint32_t kind, uint32_t aux, uint64_t value, uint32_t words)
{
    mtprof__writer *w = mtprof__writer_mine(1);
    if (w == NULL) {
        return;
    }
    bool entered = mtprof__enter(w);
    if (mtprof__load_state() != 0) {
        bool known = entered ? mtprof__site_register(site) : true;
        uint32_t id = mtprof__site_name(site);
        known = known && id != 0;
        uint64_t record[3] = {mtprof__word0(kind, words, aux, id), mtprof__ticks(), value};
        if (!entered) {
            if (!known) {
                mtprof__lose(MTPROF_LOST_NESTED, 1);
            } else {
                mtprof__side_put(w, record, words, nested_ends(w));
            }
        } else if (known) {
            uint64_t *at = kind == MTPROF_REC_INSTANT ? mtprof__reserve_instant(w, words)
                                                      : mtprof__reserve(w, words, 1, false);
            if (at != NULL) {
                for (uint32_t i = 0; i < words; i++) {
                    mtprof__put(at + i, record[i]);
                }
                w->time_ref = record[1];
                MTPROF__SET(w->others, w->others + 1);
                w->payload_of = MTPROF_LATEST_INSTANT;
                w->payload_at = kind == MTPROF_REC_INSTANT ? at + words : NULL;
                mtprof__publish(w, at + words);
            }
        }
    }
    if (entered) {
        mtprof__leave(w);
    }
}

void mtprof_i_instant(mtprof_site *site)
{
    mark(site, MTPROF_REC_INSTANT, mtprof__begin_flags(site->flags), 0, 2);
}

void mtprof_i_counter(mtprof_site *site, int64_t value)
{
    mark(site, MTPROF_REC_COUNTER, 0, (uint64_t)value, 3);
}

void mtprof_i_counter_real(mtprof_site *site, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    mark(site, MTPROF_REC_COUNTER, 1, bits, 3);
}

void mtprof_i_flow(mtprof_site *site, uint32_t phase, uint64_t flow_id)
{
    mark(site, MTPROF_REC_FLOW, phase <= MTPROF_FLOW_END ? phase : MTPROF_FLOW_STEP, flow_id, 3);
}

uint64_t mtprof_launch(mtprof_site *site, uint32_t device, uint32_t queue)
{
    mtprof__writer *w = mtprof_wants(MTPROF_WANT_DEVICE) ? mtprof__writer_mine(1) : NULL;
    if (w == NULL || !mtprof__enter(w)) {
        if (w != NULL) {
            mtprof__lose(MTPROF_LOST_NESTED, 1);
        }
        return 0;
    }
    uint64_t key = 0;
    if (mtprof__load_state() != 0 && (site == NULL || mtprof__site_register(site))) {
        uint64_t *at = mtprof__reserve(w, 3, 1, false);
        if (at != NULL) {
            uint32_t flags = (site != NULL ? mtprof__site_flags(site) : 0) | MTPROF_FLAG_LAUNCH;
            mtprof__put(at, mtprof__word0(MTPROF_REC_LAUNCH, 3, flags,
                                          site != NULL ? mtprof__site_name(site) : 0));
            mtprof__put(at + 2, device | (uint64_t)queue << 32);
            key = w->next_token & MTPROF__KEY_MASK;
            MTPROF__SET(w->next_token, w->next_token + 1);
            w->payload_of = 0;
            w->payload_at = at + 3;
            MTPROF__SET(w->launches, w->launches + 1);
            w->time_ref = mtprof__ticks();
            mtprof__put(at + 1, w->time_ref);
            mtprof__publish(w, at + 3);
        }
    }
    mtprof__leave(w);
    return key;
}
