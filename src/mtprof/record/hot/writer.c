/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer's slow paths: coming into an epoch, a new chunk, nested events. All of it runs between
 * enter and leave (WR1), and none of it uses the heap: it may run in a signal handler.
 */
#include "mtprof/record/hot/writer.h"

#include "base/lock.h"
#include "mtprof/record/hot/open_op.h"
#include "mtprof/record/recording.h"

#include <string.h>

mtprof__writer *mtprof__writer_mine(uint32_t events)
{
    mtprof__writer *w = mtprof__mine;
    if (MT_LIKELY(w != NULL)) {
        return w;
    }
    uint32_t cause;
    w = mtprof__slot_take(&cause);
    if (w == NULL) {
        mtprof__lose(cause, events);
        return NULL;
    }
    if (mtprof__mine != NULL) {
        /* A signal handler took a slot for this thread meanwhile: use that one. */
        mtprof__slot_return(w);
        return mtprof__mine;
    }
    mtprof__mine = w;
    return w;
}

/* Where a chunk's records may go: all but the tail, which is for ends when there is no next one. */
static void point_into(mtprof__writer *w, mtprof__chunk_header *chunk)
{
    w->chunk = chunk;
    w->committed = &chunk->committed;
    w->records = (char *)(chunk + 1);
    w->cursor = (uint64_t *)(void *)(chunk + 1);
    w->end_of_chunk = (uint64_t *)(void *)((char *)chunk + chunk->size);
    w->limit = w->end_of_chunk - MTPROF__TAIL_WORDS;
    w->payload_at = NULL;
}

static bool take_chunk(mtprof__writer *w, uint32_t *cause)
{
    mtprof__store *store = w->recording->store;
    mtprof__chunk_start start = {
        .stream = MTPROF_STREAM_THREAD,
        .slot = w->slot,
        .sequence = w->sequence,
        /* Not now: the record that needs the chunk may have read its clock before. */
        .base_ticks = w->chunk != NULL ? w->time_ref : mtprof__ticks(),
        .first_ordinal = w->next_token & MTPROF__ORDINAL_MASK,
        .epoch = w->epoch,
        .thread = w->thread,
    };
    /* Chunks grow with use: a thread that records little takes little. */
    uint64_t size = MTPROF__CHUNK_FIRST_BYTES;
    for (uint64_t i = 0; i < w->sequence && size < store->chunk_max; i++) {
        size *= 4;
    }
    size = size > store->chunk_max ? store->chunk_max : size;
    mtprof__open_leave_chunk(w);
    mtprof__chunk_header *chunk = mtprof__store_take(store, w->chunk, size, &start, cause);
    if (chunk == NULL) {
        return false;
    }
    w->sequence++;
    w->time_ref = start.base_ticks;
    point_into(w, chunk);
    return true;
}

/* Adds the counts of this writer to its recording and resets them. */
void mtprof__writer_settle(mtprof__writer *w)
{
    mtprof__recording *r = w->recording;
    if (w->serial == 0) {
        return;
    }
    uint64_t ordinal = w->next_token & MTPROF__ORDINAL_MASK;
    int64_t open = w->left_open + w->depth + w->nested_open -
                   (int64_t)__atomic_exchange_n(&w->foreign_ends, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->begins, ordinal - w->first_ordinal + w->nested_begins, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->others, w->others + w->nested_others, __ATOMIC_RELAXED);
    MTPROF__SET(w->nested_begins, 0);
    MTPROF__SET(w->nested_others, 0);
    __atomic_fetch_add(&r->launches, w->launches, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->truncated, (uint64_t)(open > 0 ? open : 0), __ATOMIC_RELAXED);
    MTPROF__SET(w->first_ordinal, ordinal);
    MTPROF__SET(w->others, 0);
    MTPROF__SET(w->launches, 0);
    w->depth = 0;
    w->left_open = 0;
    w->nested_open = 0;
}

/* Puts EPOCH or THREAD into the running chunk, or takes a chunk whose header says it. */
static bool announce(mtprof__writer *w, uint32_t kind, uint32_t number, uint32_t *cause)
{
    if (w->chunk == NULL || w->cursor + 2 > w->end_of_chunk - MTPROF__TAIL_WORDS) {
        return take_chunk(w, cause);
    }
    uint64_t ticks = mtprof__ticks();
    mtprof__put(w->cursor, mtprof__word0(kind, 2, 0, number));
    mtprof__put(w->cursor + 1, ticks);
    w->time_ref = ticks;
    w->payload_at = NULL;
    mtprof__publish(w, w->cursor + 2);
    return true;
}

/* Makes the writer part of the current epoch (WR5). */
static bool attach(mtprof__writer *w, uint64_t state, uint32_t *cause)
{
    uint32_t epoch = (uint32_t)(state >> 32);
    mtprof__recording *recording = __atomic_load_n(&mtprof__current, __ATOMIC_ACQUIRE);
    *cause = MTPROF_LOST_LATE;
    /* Both belong together only if the state has not moved since it was read. */
    if (recording == NULL || mtprof__load_state() != state) {
        return false;
    }
    if (w->serial != recording->serial) {
        mtprof__names_cache_reset(w);
        mtprof__inputs_cache_reset(w);
        mtprof__stack_cache_reset(w);
        w->recording = recording;
        MTPROF__SET(w->serial, recording->serial);
        w->chunk = NULL;
        w->cursor = w->limit = w->end_of_chunk = NULL;
        w->sequence = 0;
        w->thread = w->known_as = 0;
        MTPROF__SET(w->others, 0);
        MTPROF__SET(w->launches, 0);
        w->reserved_seen[0] = w->reserved_seen[1] = 0;
        MTPROF__SET(w->first_ordinal, w->next_token & MTPROF__ORDINAL_MASK);
        if (w->home_serial != recording->serial) {
            MTPROF__SET(w->home_ordinal, w->first_ordinal);
            MTPROF__SET(w->home_serial, recording->serial);
        }
    } else if (w->epoch != epoch) {
        mtprof__writer_settle(w);
    }
    bool new_epoch = w->epoch != epoch;
    bool new_thread = w->thread == 0;
    if (new_thread) {
        w->thread = w->known_as; /* defined before, when there was no chunk for it */
    }
    if (w->thread == 0) {
        w->thread = __atomic_add_fetch(&recording->n_threads, 1, __ATOMIC_RELAXED);
        if (!mtprof__define_thread(recording, w, cause)) {
            w->thread = 0;
            return false;
        }
        w->known_as = w->thread;
    }
    uint64_t slot = mtprof__slot_bits(w->slot);
    MTPROF__SET(w->next_token, (uint64_t)mtprof__epoch_byte(epoch) << 56 | slot |
                                   (w->next_token & MTPROF__ORDINAL_MASK));
    if (new_epoch) {
        MTPROF__SET(w->epoch_first, w->next_token);
        w->depth = 0;
        w->nested_open = 0;
        w->left_open = 0;
        __atomic_store_n(&w->foreign_ends, 0, __ATOMIC_RELAXED);
    }
    w->epoch = epoch;
    /* A new chunk has epoch and thread in its header; in an older one records announce them. */
    const mtprof__chunk_header *before = w->chunk;
    bool told = true;
    if (before == NULL) {
        told = take_chunk(w, cause);
    } else {
        told = !new_epoch || announce(w, MTPROF_REC_EPOCH, epoch, cause);
        if (told && new_thread && w->chunk == before) {
            told = announce(w, MTPROF_REC_THREAD, w->thread, cause);
        }
    }
    if (told) {
        w->limit = w->end_of_chunk - MTPROF__TAIL_WORDS;
    } else {
        /* Not part of the epoch: the next event tries again. */
        w->epoch = 0;
        MTPROF__SET(w->state, MTPROF__DETACHED);
        w->thread = new_thread ? 0 : w->thread;
    }
    return told;
}

/* Which counter a nested record moves; NULL: none, it is an end. */
static uint64_t *nested_count(mtprof__writer *w, uint64_t word)
{
    uint32_t kind = word & 0xFF;
    return kind == MTPROF_REC_END_X     ? NULL
           : kind == MTPROF_REC_BEGIN_X ? &w->nested_begins
                                        : &w->nested_others;
}

/* Words [from, to) of the side buffer are lost. */
static void lose_side(mtprof__writer *w, uint32_t from, uint32_t to, uint32_t cause)
{
    for (uint32_t i = from; i < to; i += (uint32_t)(w->side[i] >> 8 & 0xFF)) {
        uint64_t *count = nested_count(w, w->side[i]);
        if (count != NULL) {
            MTPROF__SET(*count, *count - 1);
            mtprof__lose(cause, 1);
        }
    }
}

/*
 * Puts nested records where they were to come all along, had the thread not been inside the
 * recorder. A handler may add more at any point: the buffer is given back only as it was last seen.
 */
void mtprof__writer_drain(mtprof__writer *w)
{
    if (w->chunk == NULL) {
        return;
    }
    w->limit = w->end_of_chunk - MTPROF__TAIL_WORDS;
    uint32_t done = 0;
    uint32_t used = MTPROF__GET(w->side_used);
    while (used > 0) {
        uint32_t cause;
        if (w->cursor + (used - done) <= w->limit || take_chunk(w, &cause)) {
            uint64_t *to = w->cursor;
            for (uint32_t i = done; i < used; i++) {
                mtprof__put(to++, w->side[i]);
            }
            for (uint32_t i = done; i < used; i += (uint32_t)(w->side[i] >> 8 & 0xFF)) {
                w->time_ref = w->side[i + 1]; /* every nested record carries full time */
            }
            w->payload_at = NULL;
            mtprof__publish(w, to);
        } else {
            lose_side(w, done, used, cause);
        }
        done = used;
        if (__atomic_compare_exchange_n(&w->side_used, &used, 0, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            break;
        }
    }
}

uint64_t *mtprof__reserve(mtprof__writer *w, uint32_t words, uint32_t events, bool is_end)
{
#if !MT_TSAN
    if (MT_UNLIKELY((MTPROF__GET(mtprof__odd) & MTPROF__ODD_BARRIER) != 0)) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* WR2, for those who came by the short path */
    }
#endif
    uint64_t state = mtprof__load_state();
    if (state == 0) {
        return NULL;
    }
    uint32_t cause = MTPROF_LOST_NESTED;
    if (mtb_locks_held()) {
        mtprof__lose(cause, events);
        return NULL;
    }
    bool attached = w->epoch == (uint32_t)(state >> 32) && w->thread != 0;
    if (!attached && !attach(w, state, &cause)) {
        mtprof__lose(cause, events);
        return NULL;
    }
    uint64_t seen = MTPROF__GET(mtprof__odd) == 0 ? state : MTPROF__DETACHED; /* WR5 */
    MTPROF__SET(w->state, seen);
    MTPROF__SET(w->begin_state, mtprof__language_asks(state) == 0 ? seen : MTPROF__DETACHED);
    if (w->side_used > 0) {
        mtprof__writer_drain(w);
    }
    if (w->cursor + words <= w->limit) {
        return w->cursor;
    }
    if (take_chunk(w, &cause)) {
        if (w->side_used > 0) {
            w->limit = w->cursor; /* a signal came meanwhile: the next event drains */
        }
        if (w->cursor + words <= w->end_of_chunk - MTPROF__TAIL_WORDS) {
            return w->cursor;
        }
        cause = MTPROF_LOST_TOO_LARGE;
    } else if (is_end && w->chunk != NULL && w->cursor + words <= w->end_of_chunk) {
        return w->cursor;
    }
    if (w->serial != 0) {
        mtprof__store_count(w->recording->store, cause, events); /* entered: it cannot go away */
    } else {
        mtprof__lose(cause, events);
    }
    return NULL;
}

uint64_t *mtprof__reserve_instant(mtprof__writer *w, uint32_t words)
{
    enum {
        ROOM = 160 /* words: the longest text, and some numbers */
    };
    uint64_t *at = mtprof__reserve(w, words + ROOM, 0, false);
    return at != NULL ? at : mtprof__reserve(w, words, 1, false);
}

/* Reserves before it writes: a handler that interrupts this one writes after the reserved words and
 * is done before this one continues. */
bool mtprof__side_put(mtprof__writer *w, const uint64_t *words, uint32_t count, uint32_t spare)
{
    uint64_t *counter = nested_count(w, words[0]);
    uint32_t used = MTPROF__GET(w->side_used);
    do {
        if (used + count + spare > MTPROF__SIDE_WORDS) {
            mtprof__lose(MTPROF_LOST_NESTED, counter != NULL);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&w->side_used, &used, used + count, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    memcpy(w->side + used, words, count * sizeof words[0]);
    if (counter != NULL) {
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    }
    w->limit = w->cursor; /* the next event of this thread takes the slow path and drains */
    return true;
}
