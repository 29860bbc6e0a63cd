/* SPDX-License-Identifier: Apache-2.0
 *
 * A closed trace of the last part of a store whose writers go on.
 *
 *      list all chunks ─► choose those of the window ─► copy them, the oldest first
 *        ─► the definitions ─► the control stream, rebuilt ─► the header
 *
 * Invariants
 *   DU1  Writers are not held up: the store's lock is held while headers are listed, never while
 *        records are copied or written.
 *   DU2  A chunk's records up to the `committed` that the list shows do not change while the chunk
 *        keeps its header (ST2). So a copy is right if the header is the same after it as in the
 *        list: a chunk that was recycled meanwhile has another (ST1).
 *   DU3  A chunk that was recycled before it was copied is the oldest of the store, or nearly so.
 *        The window then begins after it: what has been copied already is older, and is dropped.
 *        Such chunks are counted (`missed`). So no slot has a gap inside the window.
 *   DU4  Definitions are listed after the events have been copied: every one that these use is
 *        there (docs/format.md F3).
 *   DU5  Of the control stream a dump has what concerns it: warnings; epochs, anchors and steps
 *        from its first chunk on; the last anchor before as that of the header, the last step
 *        before as that of the epoch. Epochs open where the first chunk begins at the earliest, so
 *        that a viewer does not begin days before.
 */
#ifndef MTPROF_RECORD_STORE_STORE_DUMP_H
#define MTPROF_RECORD_STORE_STORE_DUMP_H

#include "mtprof/record/store/store.h"

struct mtprof__listed;

typedef struct mtprof__dump {
    /* Set by the caller. */
    mtprof__store *store;
    int fd;             /* of an empty file */
    const char *name;   /* of the file, for messages */
    uint64_t from;      /* ticks: chunks that end before are left out; 0: none. Raised by DU3 */
    uint64_t bytes_max; /* of the chunks of events that are not open; 0: no bound */
    uint64_t begins, others, launches, truncated; /* for the header's counters */
    /* Results. */
    uint64_t to;            /* ticks: what was published before is in the dump */
    uint64_t end_ticks;     /* no record is later */
    uint64_t first;         /* ticks: the earliest chunk begins here */
    uint64_t bytes, chunks; /* of the file */
    uint64_t left_out;      /* chunks of events before the window */
    uint64_t left_begins;   /* begins in them */
    uint64_t missed;        /* DU3 */
    /* Working state. */
    uint8_t uuid[16];
    struct mtprof__listed *list;
    size_t n_listed, capacity;
    mtprof__chunk_header *copy;
    size_t copy_bytes;
} mtprof__dump;

/* Writes the events. Fails with ENOMEM, ENOSPC, EIO. */
mtprof_status mtprof__dump_events(mtprof__dump *dump);
/* Writes the rest; `words` are further records for the control stream. Fails likewise. */
mtprof_status mtprof__dump_rest(mtprof__dump *dump, const uint64_t *words, uint64_t n_words);
/* Frees the working state, in any case. */
void mtprof__dump_fini(mtprof__dump *dump);

#endif /* MTPROF_RECORD_STORE_STORE_DUMP_H */
