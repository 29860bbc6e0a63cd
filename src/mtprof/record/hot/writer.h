/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's writer: where its next record goes. This header is the hot path's view of the
 * recorder.
 *
 *      gate (trace.h) ─► mtprof__state ─► thread's writer ─► cursor … limit in its open chunk
 *
 * Invariants
 *   WR1  Only the thread that owns the slot writes through its writer, and only between enter (busy
 *        set) and leave (busy cleared). A call that finds busy set on its own thread is nested: it
 *        comes from a signal handler or an allocator hook, and uses the side buffer.
 *   WR2  enter sets busy before it reads the state; a controller shuts the state before it reads
 *        busy, with membarrier() between. So after a shut gate a writer is either seen busy or sees
 *        the gate shut.
 *   WR3  While busy is clear and the state is shut, the controller may write the writer's fields.
 *        Only `state` is read at other times; therefore it is atomic.
 *   WR4  A record is stored completely before `committed` covers it (release).
 *   WR5  state == mtprof__state implies that cursor, limit and committed belong to a chunk of the
 *        current recording. In fallback mode (mtprof__odd, ticks.h) they are never equal, so that
 *        every event takes the slow path.
 *   WR6  Ordinals of a slot only grow, over all recordings of the process: a token is never reused.
 *
 * Token:  8 bits epoch (never 0) | 16 bits slot | 40 bits ordinal (bit 39: nested).
 */
#ifndef MTPROF_RECORD_HOT_WRITER_H
#define MTPROF_RECORD_HOT_WRITER_H

#include "base/compiler.h"
#include "mtprof/format/keys.h"
#include "mtprof/format/layout.h"
#include "mtprof/record/hot/ticks.h"

#include <mtprof/trace.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct mtprof__recording mtprof__recording;

enum {
    MTPROF__SLOTS = 65535,     /* numbered from 1: a key is never 0 */
    MTPROF__SIDE_WORDS = 96,   /* room for a few nested events */
    MTPROF__THREAD_NAME = 256, /* of a thread's name, with its zero byte */
    MTPROF__TAIL_WORDS = 16,   /* kept back in each chunk for ends when there is no next chunk */
    MTPROF__RECORD_MAX = 254   /* words of a record with a short length */
};

#define MTPROF__DETACHED UINT64_MAX /* a state that never is, unlike the 0 of a shut one */

struct mtprof__inputs_cache;
struct mtprof__names_cache;
struct mtprof__stack_cache;
struct mtprof__open_walk;
struct mtprof__samples;

typedef struct mtprof__writer {
    /* What every record touches. */
    uint64_t *cursor;
    uint64_t *limit; /* lowered to the cursor to send the owner into the slow path */
    uint64_t next_token;
    uint64_t time_ref;    /* ticks of the last record with full time */
    uint64_t end_ticks;   /* of the last end with a short one */
    uint64_t *committed;  /* in the chunk's header */
    char *records;        /* the chunk's first record */
    uint64_t state;       /* atomic (WR3): the state it is attached to, or MTPROF__DETACHED */
    uint32_t busy;        /* atomic (WR1, WR2) */
    uint32_t asking;      /* atomic: inside the host's language (ask_language.c) */
    uint64_t begin_state; /* `state`, or MTPROF__DETACHED where the language must be asked first */
    int64_t depth;        /* scopes begun minus ended on this thread in this epoch */
    uint64_t others;      /* events that are not begins, since last settled */

    /* Used by some calls only. */
    uint64_t *payload_at; /* where a payload of payload_of may follow, and nowhere else */
    uint64_t payload_of;  /* token; 0: the begin before, or MTPROF_LATEST_INSTANT */
    uint32_t epoch;       /* of the state it is or was last attached to */
    uint64_t *end_of_chunk;
    mtprof__recording *recording; /* meaningful as long as `serial` says so */
    uint64_t serial; /* atomic: of the recording it is attached to; 0: none. Never reused, unlike
                        the pointer */
    mtprof__chunk_header *chunk;
    uint64_t sequence;      /* of the next chunk */
    uint64_t first_ordinal; /* of those that are not counted yet */
    uint64_t home_ordinal;  /* atomic: the slot's first in the recording home_serial; partner: the
                               loads of is_of_another() */
    uint64_t home_serial;   /* atomic: of the recording it was attached to last, likewise */
    uint64_t launches;
    uint64_t nested_begins, nested_others; /* counted by nested events only (WR1) */
    int64_t nested_open;                   /* nested scopes begun minus ended, this epoch */
    uint64_t epoch_first;                  /* atomic: the epoch's first token of this slot */
    int64_t left_open;         /* scopes that earlier threads of this slot left open, this epoch */
    uint64_t foreign_ends;     /* atomic: scopes of this slot ended by other threads, this epoch */
    uint64_t reserved_seen[2]; /* last "reserved" written for devices 0 and 1 */
    uint32_t thread;           /* logical number; 0: not yet known to the recording */
    uint32_t known_as; /* the thread's number in the recording's definitions; 0: not defined yet */
    uint16_t slot;
    bool stuck; /* the controller's: it was still busy at the last close */

    /* Nested events (WR1). */
    uint64_t nested_ordinal;
    uint32_t side_used;
    uint64_t side[MTPROF__SIDE_WORDS];

    /* Caches, made on first use. */
    struct mtprof__inputs_cache *inputs;
    struct mtprof__names_cache *names;
    struct mtprof__stack_cache *stacks;
    struct mtprof__open_walk *open;
    struct mtprof__samples *samples; /* atomic: also read by the limiter (sample.h) */
    uint64_t asked_ticks;            /* atomic: spent in the language, where there is a limit */
    uintptr_t stack_low, stack_high; /* what of the thread's stack is known to be readable */
    uint32_t next_victim;            /* of the stack cache */

    /* The thread. */
    uint64_t os_id, pthread_id;
    char name[MTPROF__THREAD_NAME]; /* "": none. Of each recording it is a string of its own */
    struct mtprof__writer *next_free;
} mtprof__writer;

/* A field that its owner changes and other threads only read. */
#define MTPROF__SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define MTPROF__GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* epoch << 32 | bits below | wants; 0: shut. mtprof_i_gate has the wants for the inline functions.
 * Wants and bits may change within an epoch (limit/limiter.c). */
extern uint64_t mtprof__state;

/* Bits of the state beside the wants. */
enum {
    MTPROF__WANTS = 0xFFFF,
    MTPROF__SAMPLE_OPS = 1 << 16,    /* ops and functions are sampled by site (sample.h) */
    MTPROF__SAMPLE_SCOPES = 1 << 17, /* scopes too */
    MTPROF__SAMPLING = MTPROF__SAMPLE_OPS | MTPROF__SAMPLE_SCOPES,
    MTPROF__LIMITED = 1 << 18,   /* the recording has a limit of its overhead */
    MTPROF__STEPS_ONLY = 1 << 19 /* nothing is wanted but steps */
};

/* Which wants the host's language can answer, stacks and modules, and MTPROF__SAMPLING: what keeps
 * a begin from the shortest path. Constant while recording. */
extern uint32_t mtprof__language_wants;

/* Which of them this state wants: begins that come without them ask (ask_language.c), and are asked
 * for (sample.h). */
MT_INLINE uint32_t mtprof__language_asks(uint64_t state)
{
    return (uint32_t)state & MTPROF__GET(mtprof__language_wants);
}

/* This thread's writer, NULL before its first event. */
extern __thread mtprof__writer *mtprof__mine __attribute__((tls_model("initial-exec")));

MT_INLINE uint8_t mtprof__epoch_byte(uint32_t epoch)
{
    return (uint8_t)(epoch % 255 + 1);
}

/* ST3: how a word gets into a chunk. */
MT_INLINE void mtprof__put(uint64_t *at, uint64_t word)
{
    __atomic_store_n(at, word, __ATOMIC_RELAXED);
}

/* WR1, WR2. False: nested. */
MT_INLINE bool mtprof__enter(mtprof__writer *w)
{
    if (MT_UNLIKELY(__atomic_load_n(&w->busy, __ATOMIC_RELAXED) != 0)) {
        return false;
    }
    if (MT_UNLIKELY(MT_TSAN || (MTPROF__GET(mtprof__odd) & MTPROF__ODD_BARRIER) != 0)) {
        __atomic_store_n(&w->busy, 1, __ATOMIC_SEQ_CST);
    } else {
        __atomic_store_n(&w->busy, 1, __ATOMIC_RELAXED);
        MT_COMPILER_BARRIER(); /* the CPU's side is the controller's membarrier() */
    }
    return true;
}

/*
 * The same for the short paths: on an odd machine they go no further than mtprof__ready(), and the
 * slow way puts in the fence that is missing here (mtprof__reserve).
 */
MT_INLINE bool mtprof__enter_fast(mtprof__writer *w)
{
    if (MT_UNLIKELY(__atomic_load_n(&w->busy, __ATOMIC_RELAXED) != 0)) {
        return false;
    }
#if MT_TSAN
    __atomic_store_n(&w->busy, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_store_n(&w->busy, 1, __ATOMIC_RELAXED);
    MT_COMPILER_BARRIER();
#endif
    return true;
}

MT_INLINE uint64_t mtprof__load_state(void)
{
    return __atomic_load_n(&mtprof__state, MT_TSAN ? __ATOMIC_SEQ_CST : __ATOMIC_ACQUIRE);
}

MT_INLINE void mtprof__leave(mtprof__writer *w)
{
    __atomic_store_n(&w->busy, 0, __ATOMIC_RELEASE); /* pairs with the controller's acquire (WR3) */
}

/* WR4: makes everything up to `cursor` part of the trace. */
MT_INLINE void mtprof__publish(mtprof__writer *w, uint64_t *cursor)
{
    w->cursor = cursor;
    uint64_t bytes = (uint64_t)((char *)cursor - w->records);
    __atomic_store_n(w->committed, bytes, __ATOMIC_RELEASE); /* pairs with readers' acquire */
}

/* Whether the token was made in this epoch, as far as its byte shows: it wraps after 255. */
MT_INLINE bool mtprof__token_in(mtprof_token token, uint64_t state)
{
    uint32_t epoch = (uint32_t)(state >> 32);
    return epoch != 0 && token >> 56 == mtprof__epoch_byte(epoch);
}

/*
 * Finishes a begin whose words, except the first two, are stored from `begin` to `end`: takes the
 * ordinal, reads the clock (last, so that our own work is not measured) and publishes. fast: only
 * where mtprof__ready() was true.
 */
MT_INLINE mtprof_token mtprof__finish_begin(mtprof__writer *w, uint64_t *begin, uint64_t *end,
                                            uint64_t word, bool fast)
{
    mtprof_token token = w->next_token;
    mtprof__put(begin, word);
    MTPROF__SET(w->next_token, token + 1);
    w->depth++;
    if (MT_UNLIKELY((word & MTPROF_FLAG_LAUNCH << 16) != 0)) {
        MTPROF__SET(w->launches, w->launches + 1);
    }
    w->payload_at = end;
    w->payload_of = 0;
    uint64_t ticks = fast ? mtprof__ticks_fast() : mtprof__ticks();
    w->time_ref = ticks;
    mtprof__put(begin + 1, ticks);
    mtprof__publish(w, end);
    return token;
}

/* Whether the writer may write right now without help: WR5 and room. */
MT_INLINE bool mtprof__ready(const mtprof__writer *w, uint64_t state, uint32_t words)
{
    return MT_LIKELY(state == MTPROF__GET(w->state) && w->cursor + words <= w->limit);
}

/* The same for a begin that comes without what the language can answer. */
MT_INLINE bool mtprof__ready_to_begin(const mtprof__writer *w, uint64_t state, uint32_t words)
{
    return MT_LIKELY(state == MTPROF__GET(w->begin_state) && w->cursor + words <= w->limit);
}

/* First word of the site's begins: kind, length, flags, name. 0: it has never recorded. */
MT_INLINE uint64_t mtprof__site_word(const mtprof_site *site)
{
    return __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
}

/* Its name's id; 0 likewise. */
MT_INLINE uint32_t mtprof__site_name(const mtprof_site *site)
{
    return (uint32_t)(mtprof__site_word(site) >> 32);
}

/* Its begin flags as they are recorded; 0 likewise. */
MT_INLINE uint32_t mtprof__site_flags(const mtprof_site *site)
{
    return (uint16_t)(mtprof__site_word(site) >> 16);
}

/* ---- slow paths (writer.c) ---- */

/*
 * This thread's writer, made on first use. NULL when none is available, and then so many
 * events are counted as lost.
 */
mtprof__writer *mtprof__writer_mine(uint32_t events);

/*
 * Brings the writer into the current epoch with room for `words`, and returns the cursor; NULL when
 * nothing records, or when there is no room (`events` are counted as lost). The caller has entered.
 * An end may use a chunk's tail; without room it is not a lost event: the scope is truncated.
 */
uint64_t *mtprof__reserve(mtprof__writer *w, uint32_t words, uint32_t events, bool is_end);
/*
 * The same for an instant, if possible in a chunk with room after it: its metadata must follow it
 * directly, because it has no key.
 */
uint64_t *mtprof__reserve_instant(mtprof__writer *w, uint32_t words);

/*
 * Puts a complete record of the nested kind into the side buffer, if after it `spare` words are
 * left. False: lost, and counted.
 */
bool mtprof__side_put(mtprof__writer *w, const uint64_t *words, uint32_t count, uint32_t spare);

/* Moves nested records from the side buffer into the chunk. Owner, or controller (WR3). */
void mtprof__writer_drain(mtprof__writer *w);

/* Adds the writer's counts to its recording and resets them. Owner, or controller (WR3). */
void mtprof__writer_settle(mtprof__writer *w);

/* Counts lost events of the current recording, if there is one. */
void mtprof__lose(uint32_t cause, uint64_t events);

/* ---- slots (slots.c) ---- */

/* Slots are numbered from 1 to the count. NULL for any other number. */
uint32_t mtprof__slot_count(void);
mtprof__writer *mtprof__slot_at(uint32_t number);
mtprof__writer *mtprof__slot_take(uint32_t *cause);
/* Gives back a slot that was taken and not used; the thread keeps the one it has (mtprof__mine). */
void mtprof__slot_return(mtprof__writer *w);
/* In the child of a fork: every slot but the caller's is free, nothing is attached. */
void mtprof__slots_after_fork(void);
void mtprof__slots_prepare_fork(void);
void mtprof__slots_parent_fork(void);

#endif /* MTPROF_RECORD_HOT_WRITER_H */
