/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: where the chunks of one trace live, and how more of them come to be.
 *
 *      segments   [ header page | chunk | chunk | …    ] [ chunk | chunk … ] [ spare ]
 *                   1 MiB                                 2 MiB               4 MiB …
 *
 * A segment is a mapping: of the trace file, of anonymous memory, or of a spill file. Chunks are
 * cut from the segments in order; in ring mode, once the budget is used, the oldest sealed one is
 * reused instead. A helper thread keeps a spare segment and prefaulted pages ahead of the
 * writers, so that taking a chunk is normally a few dozen instructions under a lock.
 *
 * Invariants
 *   ST1  A chunk's header is complete before its magic is stored; the magic is cleared before a
 *        chunk is recycled. So at any moment of death every page with a magic starts a real chunk.
 *   ST2  Only the owner of an open chunk writes its records, and only upwards of `committed`.
 *   ST3  Every word of a chunk is stored with an atomic store and read elsewhere with an atomic
 *        load: a live reader may read at any time.
 *   ST4  A segment stays mapped until the store is released, so a writer that was stopped in the
 *        middle of a record never touches unmapped memory (see mtprof__store_abandon).
 *   ST5  Definition chunks are never recycled.
 *   ST6  They do not count against the budget of a ring or of a store that stops: however
 *        many names a program has defined, a recording starts and its events get the requested
 *        room. What a recording itself adds is bounded (recording.h, RC4).
 *
 * Threads: all functions may be called from any thread unless they say otherwise.
 *   ST7  A program may close descriptors that it does not know and get their numbers for files of
 *        its own. So before one of ours is used or closed, it is compared with the file it was
 *        opened for. Where it is another one, our file is opened again; failing that, nothing is
 *        written to it any more.
 */
#ifndef MTPROF_RECORD_STORE_STORE_H
#define MTPROF_RECORD_STORE_STORE_H

#include "base/lock.h"
#include "mtprof/format/layout.h"
#include "mtprof/record/hot/ticks.h"

#include <mtprof/session.h>

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
#if defined(MT_HOSTILE) && MT_HOSTILE
    /* Small on purpose: every boundary is met all the time. */
    MTPROF__CHUNK_MAX_BYTES = 4096,
    MTPROF__SEGMENT_FIRST = 64 << 10,
    MTPROF__SEGMENT_MAX = 128 << 10,
    MTPROF__AHEAD_BYTES = 32 << 10,
#else
    MTPROF__CHUNK_MAX_BYTES = 256 << 10,
    MTPROF__SEGMENT_FIRST = 1 << 20,
    MTPROF__SEGMENT_MAX = 64 << 20,
    MTPROF__AHEAD_BYTES = 8 << 20, /* prefaulted ahead of the writers */
#endif
    MTPROF__CHUNK_FIRST_BYTES = 4096,
    MTPROF__BUDGET_MIN = 64 << 10,
    MTPROF__SEGMENTS = 16384,  /* of 64 MiB: one TiB */
    MTPROF__SEAL_QUEUE = 16384 /* sealed chunks that wait for their checksum */
};

/* Which file a descriptor is of (ST7). */
typedef struct mtprof__file_id {
    uint64_t device, inode;
} mtprof__file_id;

typedef struct mtprof__segment {
    char *base;
    uint64_t offset; /* of its first byte in the trace */
    uint64_t bytes;
    uint64_t used;      /* cut into chunks so far */
    uint64_t populated; /* prefaulted so far */
    int fd;             /* -1: anonymous */
    mtprof__file_id file;
    uint64_t fd_offset;
} mtprof__segment;

/* Sealed chunks in the order of their sealing. */
typedef struct mtprof__fifo {
    struct mtprof__sealed {
        mtprof__chunk_header *chunk;
        uint64_t last_ticks; /* no record of it is later */
    } * at;                  /* circular */
    uint64_t capacity, head, count;
} mtprof__fifo;

typedef struct mtprof__store {
    int references;
    pid_t pid;     /* the owner of the memory: a forked child does not have it */
    mtb_lock grow; /* one thread makes a segment at a time */
    mtb_lock lock; /* everything below that is not atomic */

    uint32_t policy;
    bool ring_by_steps;
    uint64_t budget, ring_ticks;
    uint64_t steps_from; /* ring by steps: ticks where the oldest step to keep began; atomic */
    uint64_t beside;     /* definitions come on top of the budget: bytes of theirs (ST6); atomic */
    uint64_t cut;        /* bytes of the other chunks, which do */
    uint64_t too_large; /* stop mode: no chunk of this size or more is given any more; 0: not yet */
    uint64_t chunk_max; /* size of a chunk that is not a slot's first */
    uint8_t uuid[16];
    char *path;    /* NULL: memory */
    char *target;  /* the file that the path means: links have been followed */
    char *made;    /* the file's name until it is put there */
    bool unlocked; /* the file system has no locks */
    char *spill_directory;
    int fd, spill_fd;
    mtprof__file_id file, spill_file;
    uint64_t spill_bytes;
    bool behind; /* the file cannot be mapped: chunks are written when sealed */

    mtprof__file_header *header; /* start of the first segment */
    mtprof__segment *segments[MTPROF__SEGMENTS];
    uint32_t n_segments; /* atomic, release: a segment is complete before it is counted */
    uint32_t current;    /* the one that chunks are cut from */
    uint64_t total;      /* bytes of all segments */
    uint64_t frontier;   /* atomic: trace size up to the last chunk */

    uint32_t abandoned;     /* atomic: a chunk's memory is not that of the file any more */
    uint32_t refused;       /* atomic: 0, or 1 + cause of the last refusal */
    int refused_errno;      /* atomic */
    uint32_t warned;        /* atomic: bit per cause that has been reported */
    mtprof__fifo fifos[2];  /* ring mode: first chunks, and all others */
    mtprof__fifo unchecked; /* otherwise: sealed chunks without checksum */
    sem_t *helper;          /* posted when the helper has something to do; may be NULL */
    uint32_t helper_kicked; /* atomic */
} mtprof__store;

/* What a new chunk starts with. */
typedef struct mtprof__chunk_start {
    uint8_t stream;
    uint16_t slot;
    uint64_t sequence, base_ticks, first_ordinal;
    uint32_t epoch, thread;
} mtprof__chunk_start;

/*
 * Opens a store as a config says (config->path decides). One reference. Released without having
 * been placed, it leaves no file. One at a time.
 */
mtprof_status mtprof__store_new(const mtprof_config *config, mtprof__store **out);
/* Puts the file at its path, where a new store's is not yet: the last step that can fail. */
mtprof_status mtprof__store_place(mtprof__store *store);
void mtprof__store_retain(mtprof__store *store);
void mtprof__store_release(mtprof__store *store);

/*
 * Seals `old` (may be NULL) and takes a chunk of at least `bytes`. NULL when there is none, and
 * then *cause says why (enum mtprof_health_index); `old` is sealed all the same only on success.
 */
mtprof__chunk_header *mtprof__store_take(mtprof__store *store, mtprof__chunk_header *old,
                                         uint64_t bytes, const mtprof__chunk_start *start,
                                         uint32_t *cause);

/* The oldest chunk of a list, or NULL. The store's lock is held. */
mtprof__chunk_header *mtprof__fifo_pop(mtprof__fifo *fifo);

/* Adds to a health counter, in the trace itself. */
void mtprof__store_count(mtprof__store *store, uint32_t index, uint64_t amount);
uint64_t mtprof__store_counted(const mtprof__store *store, uint32_t index);

/* ---- growing (store_grow.c) ---- */

/*
 * Makes another segment, of at least so many bytes. Called by the helper ahead of need, or by a
 * writer that finds none.
 */
bool mtprof__store_grow(mtprof__store *store, uint64_t at_least, uint32_t *cause);
/* Prefaults ahead of the writers; true when something was done. For the helper. */
bool mtprof__store_populate(mtprof__store *store);
/* True when the helper should be awake. Caller holds the store's lock. */
bool mtprof__store_is_low(const mtprof__store *store);

/* ---- the file (store_file.c) ---- */

/* Creates the store's file, locked, with its first bytes allocated; see session.h. */
mtprof_status mtprof__file_create(mtprof__store *store, uint64_t first_bytes);
/* Puts what mtprof__file_create made in its place. */
mtprof_status mtprof__file_place(mtprof__store *store);
/* In a forked child: forgets a start that was in progress in the parent. */
void mtprof__file_after_fork(void);
/* Paths that several processes are given, for mtb_free(); NULL: no memory. With "%p" replaced by
 * the process's id, and NAME.PID.mtt for NAME.mtt. */
char *mtprof__path_with_pid(const char *path);
char *mtprof__path_of_process(const char *path);
/* ST7: which file the descriptor is of; whether it is this one. */
mtprof__file_id mtprof__file_identify(int fd);
bool mtprof__file_is(int fd, mtprof__file_id file);
/* The descriptor of the store's file, opened again where the program has closed it; -1: none. */
int mtprof__store_fd(mtprof__store *store);
/* Closes a descriptor that is still of this file. */
void mtprof__file_close(int fd, mtprof__file_id file);
/* Undoes mtprof__file_create. */
void mtprof__file_discard(mtprof__store *store);

/* ---- finishing and reading (store_finish.c) ---- */

/* Checksums sealed chunks that wait for it; true when something was done. For the helper. */
bool mtprof__store_check_sealed(mtprof__store *store);
/* ST3: a copy of memory that a writer may be storing to. */
void mtprof__copy_words(uint64_t *to, const uint64_t *from, size_t words);
/* Checksums a chunk's records and marks it as checked. */
void mtprof__chunk_set_checksum(mtprof__chunk_header *chunk);
/* Marks a header as that of a closed trace of so many bytes and chunks. */
void mtprof__header_mark_closed(mtprof__file_header *header, uint64_t end_ticks,
                                uint64_t file_bytes, uint64_t chunks);
/* Seals and checksums everything and marks the trace as closed. No writer may be active. */
mtprof_status mtprof__store_finish(mtprof__store *store, uint64_t end_ticks);
/* Lets others record to the path. */
void mtprof__store_unlock(mtprof__store *store);
/* Writes a closed copy of the trace. No writer may be active. Calls the progress
 * callback now and then, if there is one. */
typedef int mtprof__save_progress(void *user, const char *what, uint64_t done, uint64_t total);
mtprof_status mtprof__store_save(mtprof__store *store, const char *path, uint64_t end_ticks,
                                 mtprof__save_progress *progress, void *user);
/* The store as bytes for a reader; holds a reference until closed. */
void mtprof__store_bytes(mtprof__store *store, mtprof_bytes *bytes);
/* The same for a thread of the recorder itself: from the mapped memory, without a system call. */
void mtprof__store_memory(mtprof__store *store, mtprof_bytes *bytes);
/*
 * Leaves the chunk's pages to a thread that may still write into them when it wakes up: its stores
 * go to memory that is not part of the trace.
 */
void mtprof__store_abandon(mtprof__store *store, mtprof__chunk_header *chunk);

#endif /* MTPROF_RECORD_STORE_STORE_H */
