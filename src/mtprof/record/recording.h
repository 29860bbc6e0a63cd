/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording: one store, the definitions that go with it, and its control stream. There is at most
 * one current recording; sessions make and end it.
 *
 * Definitions. Strings of static places and of mtprof_intern() live as long as the process and are
 * written into every recording when it begins. Dynamic names, input lists and stacks belong to one
 * recording. All tables, the definitions stream and the control stream are guarded by one lock
 * (MTB_RANK_NAMES): they are cold.
 *
 * Invariants
 *   RC1  A definition is published before its id can be seen by any other thread.
 *   RC2  String ids below DYNAMIC are of the process, from there on of the recording.
 *   RC3  What is past its bound (names, input lists) is not interned: id 0, stored in full. A
 *        string that has no other place (mtprof_intern_here) is left out, and counted.
 *   RC4  In a buffer that does not grow (a ring, or one that stops) the definitions of the
 *        recording's own have at most half of the budget: then RC3.
 *   RC5  Ids of the recording's strings carry a tag outside of it, so that one which was kept for
 *        longer names nothing in the next recording.
 */
#ifndef MTPROF_RECORD_RECORDING_H
#define MTPROF_RECORD_RECORDING_H

#include "base/arena.h"
#include "base/idmap.h"
#include "mtprof/record/hot/writer.h"
#include "mtprof/record/store/store.h"

#include <mtprof/op.h>

#include <stdbool.h>
#include <stdint.h>

#define MTPROF__DYNAMIC 0x80000000u

enum {
#if defined(MT_HOSTILE) && MT_HOSTILE
    MTPROF__BOUND = 64,
    MTPROF__STACK_BOUND = 256,
    MTPROF__INPUTS_MAX = 8192, /* segments are small, too */
#else
    MTPROF__BOUND = 65536, /* dynamic names, other strings, and input lists that are interned */
    MTPROF__STACK_BOUND = 1 << 20,
    MTPROF__INPUTS_MAX = 65536, /* words of an interned input list */
#endif
    MTPROF__TEXT_MAX = 64 << 10, /* of an interned string */
    MTPROF__TAG_SHIFT = 18, /* RC5: below it the string's number, of names and others together */
    MTPROF__TAG_MASK = 0x1FFF,
    MTPROF__INLINE_MAX = 1024 /* of a text inside an event */
};

/* A stream that several threads write under a lock: definitions, control, a source's. */
typedef struct mtprof__stream {
    uint8_t kind;
    uint16_t slot;
    mtprof__chunk_header *chunk;
    uint64_t *cursor, *end;
    uint64_t sequence;
} mtprof__stream;

typedef struct mtprof__text_entry {
    const char *text;
    uint32_t length;
    uint32_t file, line;
} mtprof__text_entry;

typedef struct mtprof__words_entry {
    const uint64_t *words;
    uint32_t count;
} mtprof__words_entry;

typedef struct mtprof__stack_entry {
    uint32_t parent, frame;
} mtprof__stack_entry;

struct mtprof__recording {
    int references; /* atomic */
    mtprof__store *store;
    uint64_t serial; /* different for each recording of the process */
    mtprof__stream definitions, control;
    uint32_t n_threads;          /* atomic */
    uint32_t retired;            /* atomic: nothing of its own is added any more */
    struct mtprof__stuck *stuck; /* threads that were busy at a stop and may still write */
    mtprof__recording *next_abandoned;

    mtb_arena arena;
    mtb_idmap name_map, inputs_map, stack_map;
    mtprof__text_entry *names;
    mtprof__words_entry *inputs;
    mtprof__stack_entry *stacks;
    size_t n_names, names_capacity;
    size_t n_texts;     /* of the names, those of mtprof_intern_here() and of threads */
    uint64_t own_bytes; /* of definitions that belong to it (RC4) */
    size_t n_inputs, inputs_capacity;
    size_t n_stacks, stacks_capacity;
    uint8_t *frame_known; /* bit per frame of the process: defined in this recording */
    size_t frame_known_bytes;

    /* Totals of what the writers had counted when they were last attached. */
    uint64_t begins, others, launches, truncated; /* atomic */
};

/* The current recording. Valid for a writer that has entered and seen the state open. */
extern mtprof__recording *mtprof__current;

/* Makes a recording over a store (taking over its reference) and writes the known strings. */
mtprof_status mtprof__recording_new(mtprof__store *store, mtprof__recording **out);
void mtprof__recording_retain(mtprof__recording *recording);
/* The last one frees the tables and drops the store. */
void mtprof__recording_release(mtprof__recording *recording);

/*
 * Appends one complete record (w0 says its length). False: no room, and *cause says why. The
 * stream's lock is the caller's business.
 */
bool mtprof__stream_append(mtprof__store *store, mtprof__stream *stream, const uint64_t *words,
                           uint64_t count, uint64_t ticks, uint32_t *cause);

/* The same for the recording's control stream; takes the lock. */
bool mtprof__control_append(mtprof__recording *recording, const uint64_t *words, uint64_t count,
                            uint64_t ticks);

/* The same for its definitions; *cause says why it failed. */
bool mtprof__definition_append(mtprof__recording *recording, const uint64_t *words, uint64_t count,
                               uint32_t *cause);

/* Whether so many words more of its own definitions are allowed (RC4). Caller holds the lock. */
bool mtprof__definition_fits(const mtprof__recording *recording, uint64_t words);

/* Adds to a health counter of the current recording, if there is one. From any thread, at any
 * time. */
void mtprof__count(uint32_t index, uint64_t amount);
/* Puts what has been counted that way into the current recording (NULL: nowhere). */
void mtprof__count_collect(mtprof__recording *recording);

/* ---- names.c ---- */

extern mtb_lock mtprof__names_lock;

/* The tag of the current recording's strings (RC5); atomic. */
extern uint32_t mtprof__strings_tag;

/* The id of a string inside the current recording; 0: it names nothing there (RC5). */
MT_INLINE uint32_t mtprof__string_here(uint32_t id)
{
    if (MT_LIKELY(id < MTPROF__DYNAMIC)) {
        return id;
    }
    bool mine = (id >> MTPROF__TAG_SHIFT & MTPROF__TAG_MASK) == MTPROF__GET(mtprof__strings_tag);
    return mine ? MTPROF__DYNAMIC | (id & ((1u << MTPROF__TAG_SHIFT) - 1)) : 0;
}

/* The id of a string of the recording that lasts as long as the process: its own, or that of a new
 * string with the same text. 0 for 0, and where there is no memory. */
uint32_t mtprof__lasting_string(mtprof__recording *recording, uint32_t id);
/* mtprof_intern() for callers that hold locks of lower rank. */
uint32_t mtprof__intern(const char *text, size_t length);
/* Gives the site an id and a want mask; false (counted) when that is impossible now. */
bool mtprof__site_register(mtprof_site *site);
/* What is recorded of the begin flags that a program gave: undefined bits are removed, and
 * an undefined kind becomes a scope (trace.h). A reader would refuse them. */
MT_INLINE uint16_t mtprof__begin_flags(uint32_t flags)
{
    const uint32_t known = MTPROF_FLAG_LAUNCH | MTPROF_FLAG_DEVICE | MTPROF_FLAG_PAYLOAD |
                           MTPROF_FLAG_ASYNC | MTPROF_KIND_MASK;
    bool kind = (flags & MTPROF_KIND_MASK) <= MTPROF_KIND_STEP;
    return (uint16_t)(flags & (kind ? known : known & ~(uint32_t)MTPROF_KIND_MASK));
}
/* Which bits of the gate make an event with these begin flags record. */
uint16_t mtprof__wants_of(uint32_t flags);
/* Writes every string of the process into a new recording. Caller holds the lock. */
bool mtprof__names_define_all(mtprof__recording *recording, uint32_t *cause);
/* Defines the writer's thread in the recording. */
bool mtprof__define_thread(mtprof__recording *recording, const mtprof__writer *w, uint32_t *cause);
/* The id of a dynamic name, 0: store it in full (RC3). The writer has entered and is attached. */
uint32_t mtprof__dynamic_name(mtprof__writer *w, const char *text, size_t length);
/* The id of any other string of the recording, likewise; 0: there is no room for it. */
uint32_t mtprof__dynamic_text(mtprof__writer *w, const char *text, size_t length);
/* The same without a writer's cache, for sources. Takes the lock; lower ones may be held. */
uint32_t mtprof__recording_name(mtprof__recording *recording, const char *text, size_t length);

/* ---- inputs.c ---- */

/*
 * Encodes values as an input list (docs/format.md 5) into `words` and their scalars into `scalars`,
 * each with room for so many words. False when they do not fit.
 */
bool mtprof__encode_inputs(const mtprof_value *values, uint32_t count, bool strides, uint32_t room,
                           uint64_t *words, uint32_t *n_words, uint64_t *scalars,
                           uint32_t *n_scalars);
/* The id of an encoded list, 0: store it in full (RC3). The writer has entered and is attached. */
uint32_t mtprof__inputs_id(mtprof__writer *w, uint32_t site, const uint64_t *words, uint32_t count);

/* ---- stacks.c ---- */

/* The native stack from a frame pointer on; the writer is entered and attached. */
uint32_t mtprof__stack_of(mtprof__writer *w, uintptr_t frame, uint32_t skip);

/* The writer's caches belong to a recording: forget what they hold. */
void mtprof__names_cache_reset(mtprof__writer *w);
void mtprof__inputs_cache_reset(mtprof__writer *w);
void mtprof__stack_cache_reset(mtprof__writer *w);

/* ---- recorder.c: for the one controller ---- */

/* Once, before the first epoch. */
void mtprof__recorder_prepare(void);
/* After it, what other threads had stored before they looked is seen here (WR2). */
void mtprof__recorder_barrier(void);
/* Waits a little for another thread, longer once it has taken many turns. */
void mtprof__rest(int turns);
/* Opens an epoch: from here on threads record what the wants and bits (writer.h) say. Returns its
 * number. */
uint32_t mtprof__epoch_open(uint32_t wants);
/* Exchanges wants and bits of the epoch that is open. Threads follow at their next event. */
void mtprof__epoch_adjust(uint32_t wants);
/* Shuts the gate and waits for the writers to come to rest. Returns the closing tick. */
uint64_t mtprof__epoch_close(mtprof__recording *recording);
/* Detaches every writer from the recording; the gate is shut. */
void mtprof__recorder_detach(mtprof__recording *recording);
/* Gives up the chunks of threads that never came to rest; the recording is kept for them. */
void mtprof__recorder_abandon(mtprof__recording *recording);
/* Adds what recording and attached writers have counted. Any thread, any time. */
void mtprof__recorder_sum(mtprof__recording *recording, mtprof_health *health);
void mtprof__recorder_before_fork(void);
void mtprof__recorder_after_fork_parent(void);
void mtprof__recorder_after_fork_child(void);

/* Own cost of a begin+end pair in 1/256 ticks (scope.c). */
uint32_t mtprof__recorder_cost(void);
/* The same of a begin that sampling leaves out. */
uint32_t mtprof__recorder_skip_cost(void);

#endif /* MTPROF_RECORD_RECORDING_H */
