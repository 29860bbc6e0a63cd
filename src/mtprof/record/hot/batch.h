/* SPDX-License-Identifier: Apache-2.0
 *
 * An event and its payloads under construction: built on the caller's stack and published in one
 * step, so a reader never sees a begin whose payloads are missing.
 */
#ifndef MTPROF_RECORD_HOT_BATCH_H
#define MTPROF_RECORD_HOT_BATCH_H

#include "mtprof/record/recording.h"

#include <string.h>

enum {
    MTPROF__BATCH_WORDS = 440, /* with the tail it fits into a slot's first chunk */
    MTPROF__OP_TAIL = 10       /* OPINFO, STACK, MEM_BEFORE: there is always room for them */
};

static_assert((MTPROF__BATCH_WORDS + MTPROF__OP_TAIL + MTPROF__TAIL_WORDS) * sizeof(uint64_t) <
                  MTPROF__CHUNK_FIRST_BYTES - MTPROF_CHUNK_HEADER,
              "a slot's first chunk holds a whole batch");

typedef struct mtprof__batch {
    uint64_t words[MTPROF__BATCH_WORDS + MTPROF__OP_TAIL];
    uint32_t count;
    bool cut;                         /* something did not fit */
    uint32_t n_tensors;               /* inputs still to be written after the batch */
    const mtprof_tensor_ref *tensors; /* the first of them */
} mtprof__batch;

/* The event itself, of so many words; payloads follow. */
MT_INLINE uint64_t *mtprof__batch_start(mtprof__batch *b, uint32_t words)
{
    b->count = words;
    b->cut = false;
    b->n_tensors = 0;
    return b->words;
}

/* Room for so many words, NULL (and noted) when there is none. */
MT_INLINE uint64_t *mtprof__batch_take(mtprof__batch *b, uint32_t words)
{
    if (b->count + words > MTPROF__BATCH_WORDS) {
        b->cut = true;
        return NULL;
    }
    uint64_t *at = b->words + b->count;
    b->count += words;
    return at;
}

/*
 * Stores a batch whose second word is to be the time. Begins take the next ordinal; returns the
 * token (0 when there is no room, or if it is not a begin). The writer is entered.
 */
mtprof_token mtprof__batch_store(mtprof__writer *w, mtprof__batch *b, bool is_begin);

/*
 * Enters this thread's writer and brings it into the epoch. NULL: nothing to be done; where that is
 * for want of room, so many events are counted as lost.
 */
mtprof__writer *mtprof__enter_attached(uint64_t *state, uint32_t events);

/* Stores a payload for a token: directly after its event if possible, else with its key in front.
 * Without room it is counted as cut. */
void mtprof__attach_payload(mtprof_token token, const uint64_t *payload, uint32_t count);

/* The same where the writer is entered. */
void mtprof__attach_entered(mtprof__writer *w, uint64_t state, mtprof_token token,
                            const uint64_t *payload, uint32_t count);

#endif /* MTPROF_RECORD_HOT_BATCH_H */
