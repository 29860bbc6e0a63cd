/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread slot's records as begins, ends and points, with the stack of what is open. Columns and
 * event streams are both made from this.
 *
 *     cursor ─► fetch (next record, its time) ─► apply (what it does to the stack) ─► one edge
 *
 * The stack holds scopes in the order in which they began. A scope that ends while later ones are
 * open stays as a tombstone until those are gone, so indices into the stack are stable.
 *
 *   SL1  Times of a slot do not go back: a record that is earlier than one before it gets its time.
 *   SL2  `nests` scopes form a chain through `base`: each ends before, or with, the next one down.
 *        A scope that is open when its base ends stops nesting (OVERLAP); what its children took
 *        from it they take from the one that ended. So in a slot the self times of nesting scopes
 *        add up to the durations of those without a base.
 *   SL3  All scopes from `floor` up belong to the thread and epoch in force. Those below were left
 *        open by threads that are gone: they end by an END_X of another thread, or with the epoch.
 *   SL4  Functions (MTPROF_KIND_FUNCTION) are not part of that chain: they have their own self
 *        time and take none.
 *   SL5  Where records of the slot are missing (a damaged chunk, one that ring mode discarded)
 *        it is unknown what ended. So all open scopes end at the last time before the hole,
 *        truncated; scopes that begin after it have no parent from before, and ends of scopes that
 *        began before it are ignored.
 *   SL6  Where the cursor follows a stream that grows, its end is not the end: nothing is cut off
 *        there, and the next fetch goes on. A begin may have been published without its payloads:
 *        these come later, with an edge of their own.
 *
 * Scopes and payloads named by an edge are valid until the next fetch.
 */
#ifndef MTPROF_MODEL_SLOT_SLOT_STREAM_H
#define MTPROF_MODEL_SLOT_SLOT_STREAM_H

#include "mtprof/model/slot/payload_store.h"
#include "mtprof/read/cursor_impl.h"
#include "mtprof/read/timebase.h"

#include <mtprof/model.h>

#define MTPROF__NO_SCOPE UINT32_MAX

enum mtprof__slot_edge {
    MTPROF__SLOT_BEGIN,       /* scope `at` has begun; what came with it is in its payload */
    MTPROF__SLOT_END,         /* scope `at` has ended: end_ns, self_ns, flags are final */
    MTPROF__SLOT_POINT,       /* `record` (its first words in point_words) at `ns`, inside scope
                                `at`: an INSTANT, COUNTER, FLOW, LAUNCH, ALLOC or RESERVED; payload
                                in `point` */
    MTPROF__SLOT_FOREIGN_END, /* `record` ends a begin of another slot at `ns` */
    MTPROF__SLOT_LATE         /* SL6: scope `at` got payloads after its begin was shown */
};

typedef struct mtprof__scope {
    uint64_t key;
    uint64_t parent_key; /* 0, or the parent's where that is not on this stack */
    int64_t start_ns, end_ns, self_ns;
    int64_t child_ns;   /* what nesting children took so far */
    int64_t inner_ns;   /* functions: what anything inside took */
    int64_t foreign_ns; /* when another slot ends it; INT64_MAX: not known */
    uint64_t user;      /* the consumer's */
    uint32_t name;      /* the reader's string; 0: it is in the payload, or there is none */
    uint32_t parent;    /* scope around it, functions included */
    uint32_t outer;     /* functions left out */
    uint32_t base;      /* SL2 */
    uint32_t thread;    /* logical */
    uint32_t block;     /* epoch */
    uint16_t flags;     /* enum mtprof_event_flag */
    uint8_t kind;       /* enum mtprof_event_kind */
    uint8_t nests, ended;
    uint8_t in_function;   /* `parent` is one */
    uint8_t has_payload;   /* payloads[index of the scope] holds something */
    uint8_t foreign_later; /* the slot that ends it comes after this one, where times are equal */
    uint8_t shown, made, apart; /* the consumer's; 0 at the beginning */
} mtprof__scope;

/* An end that another slot recorded. */
typedef struct mtprof__foreign_end {
    uint64_t key;
    int64_t ns;
    uint32_t slot; /* that recorded it: among records of one time, lower slots come first */
} mtprof__foreign_end;

/* What a model covers, for streams to leave the rest out. */
typedef struct mtprof__coverage {
    const struct mtprof__epoch_block *blocks; /* by epoch */
    uint32_t n_blocks;
    bool strays; /* the last block is for epochs not listed */
} mtprof__coverage;

typedef struct mtprof__slot_counts {
    uint64_t ends_without_begin, truncated, overlaps, clock_back;
    uint64_t truncated_in_gaps; /* of the truncated: by SL5 */
    mtprof__damage damage;
} mtprof__slot_counts;

typedef struct mtprof__slot {
    mtprof_cursor cursor;
    mtprof__timebase timebase;
    const mtprof_reader *reader;
    mtprof__coverage coverage;
    const mtprof__foreign_end *foreign; /* sorted by key */
    size_t n_foreign;
    mtprof__foreign_end *early; /* ends that came before their begin, for a moment */
    size_t n_early, early_capacity;

    mtprof__scope *scopes;
    size_t capacity;
    uint32_t n, floor, nest_top;
    mtprof__payload_store *payloads; /* one per place on the stack, kept for the next scope there */
    size_t n_payloads;
    mtprof__payload_store point;
    mtprof__payload_store scrap; /* of payloads that belong to nothing */
    mtprof__inputs_cache inputs;

    bool plain; /* nothing is pending, the cursor is in this epoch and thread: slot_fast.h may go on
                 */
    uint64_t key_base; /* the slot in keys */
    bool fetched;      /* `record` has not done its work yet */
    bool has_waiting;  /* `waiting` comes next */
    bool at_end;
    uint64_t holes;      /* of the cursor's: those that SL5 was done for */
    uint64_t instant_at; /* SL6: the next ordinal when the last instant came */
    int status;          /* a failure that the next fetch returns */
    mtprof_record record, waiting;
    uint64_t point_words[4];
    int64_t ns;      /* its time (SL1) */
    int64_t last_ns; /* SL1 */
    uint32_t block;  /* epoch in force; MTPROF__NO_SCOPE: one that is not covered */
    uint32_t epoch;
    uint32_t thread;
    int64_t order_ns;     /* what the next edge is sorted by among slots: time, and */
    uint32_t order_block; /* epoch before it */

    uint32_t at; /* of the edge */
    mtprof__slot_counts counts;
} mtprof__slot;

/* A slot's stream (of kind THREAD). Fails with ENOMEM. */
int mtprof__slot_init(mtprof__slot *slot, const mtprof_reader *reader, uint32_t stream,
                      const mtprof__coverage *coverage);
/* The same on a stream that need not be in the reader's index, and outlives the slot. */
void mtprof__slot_init_on(mtprof__slot *slot, const mtprof_reader *reader,
                          mtprof__read_stream *stream, const mtprof__coverage *coverage);
void mtprof__slot_fini(mtprof__slot *slot);

/* The next record of a covered epoch: sets order_ns and order_block. EEND when there is none and
 * nothing is open. Fails with ENOMEM, EIO only where nothing more can be read; damage is counted.
 */
int mtprof__slot_fetch(mtprof__slot *slot);

/* What the fetched record does. *edge is set, or EEND: nothing that matters; fetch the next. */
int mtprof__slot_apply(mtprof__slot *slot, enum mtprof__slot_edge *edge);

/* Ends an open scope for another slot. False: no such scope is open. *at is its place; the scope is
 * valid until the next fetch. */
bool mtprof__slot_end_foreign(mtprof__slot *slot, uint64_t key, int64_t ns, uint32_t *at);

/* Gathers what follows into a scope's payload. A failure waits for the next fetch. */
void mtprof__slot_gather(mtprof__slot *slot, uint32_t at);

/* An end of another slot whose begin is not here yet: clocks of cores are not exact, and times may
 * be equal. It is kept for a millisecond. Fails with ENOMEM. */
int mtprof__slot_expect_end(mtprof__slot *slot, const mtprof__foreign_end *end);

/* Takes tombstones off the top. */
void mtprof__slot_pop_ended(mtprof__slot *slot);

/* The place of an open scope, or MTPROF__NO_SCOPE. */
uint32_t mtprof__slot_find(const mtprof__slot *slot, uint64_t key);

/* The payload of a scope, or NULL. Pointers are valid until the next fetch. */
MT_INLINE mtprof__payload_store *mtprof__slot_payload(mtprof__slot *slot, uint32_t at)
{
    return slot->scopes[at].has_payload ? &slot->payloads[at] : NULL;
}

/* The innermost open scope at or around a place, functions excepted, or MTPROF__NO_SCOPE. */
uint32_t mtprof__slot_outside(const mtprof__slot *slot, uint32_t at);

/* The scope that an allocation belongs to: the innermost open one, functions left out. It may be
 * asynchronous; that an end comes from another thread is not known yet. MTPROF__NO_SCOPE: none. */
uint32_t mtprof__slot_owner(const mtprof__slot *slot);

#endif /* MTPROF_MODEL_SLOT_SLOT_STREAM_H */
