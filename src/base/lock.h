/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutexes with a rank, and the question "does this thread hold one?".
 *
 * Locks are taken in rising rank; debug builds check it. A signal handler or an allocator hook may
 * record while its own thread is inside one of our critical sections. To avoid a deadlock, cold
 * paths of recording ask mtb_locks_held() first, and count the event as lost if it is true.
 *
 * So ranked locks are for data that recording itself may need. A mutex that is held while a
 * callback or an op runs is a plain one: events recorded there must not count as lost.
 * tools/layers.toml lists the files that have a plain mutex, with the reason.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What each protects, outermost first. */
enum mtb_lock_rank {
    MTB_RANK_COLLECT_SESSION = 1, /* libmtprof_itt, libmtprof_nvtx: a session of their own */
    MTB_RANK_CONTROL,             /* which session is active, its windows */
    MTB_RANK_LIMIT,               /* what a recording with a limit of its overhead leaves out */
    MTB_RANK_LOADER,              /* asking the dynamic loader what is loaded */
    MTB_RANK_SOURCES,             /* the list of sources */
    MTB_RANK_SOURCE,              /* one source's stream */
    MTB_RANK_LANGUAGE,            /* changing the host's language */
    MTB_RANK_SLOTS,               /* thread slots and logical numbers */
    MTB_RANK_NAMES,               /* strings, frames, definitions */
    MTB_RANK_GROW,                /* making a store larger: one at a time */
    MTB_RANK_STORE,               /* chunks of a store */
    MTB_RANK_MODEL,               /* making a model's columns */
    MTB_RANK_BUILD,               /* the workers of one building */
    MTB_RANK_DICTIONARY,          /* adding to its names */
    MTB_RANK_AVERAGES,            /* which events a row has */
    MTB_RANK_TORCH_SITES,         /* libmtprof_torch: names of ops */
    MTB_RANK_CUPTI_NAMES,         /* libmtprof_cupti: names of kernels, lists of numbers */
    MTB_RANK_CUPTI_GRAPHS,        /* libmtprof_cupti: nodes of graphs */
    MTB_RANK_COLLECT_OBJECTS, /* libmtprof_itt, libmtprof_nvtx: domains, counters, open ranges */
    MTB_RANK_COLLECT_NAMES,   /* names of ranges */
    MTB_RANK_COLLECT_THREADS, /* names of threads */
    MTB_RANK_STREAMS,         /* libmindtorch: handing out streams */
    MTB_RANK_USER_OPS,        /* libmindtorch: registered ops */
    MTB_RANK_SITES,           /* libmindtorch: names made at run time */
    /* libmindtorch; no thread holds locks of both libraries */
    MTB_RANK_CACHES,        /* the list of threads' caches */
    MTB_RANK_DEVICE_MEMORY, /* free blocks of accelerators, and the streams of tensors */
    MTB_RANK_PINNED,        /* pinned blocks, and the streams that use them */
    MTB_RANK_MEMORY,        /* free blocks of the host */
    MTB_RANK_FAILURES,      /* failures of devices that were not reported yet */
    MTB_RANK_POOL,          /* free small objects */
    MTB_RANK_GENERATOR,     /* seeds and offsets */
    MTB_RANK_COUNT
};

typedef struct mtb_lock {
    pthread_mutex_t mutex;
    uint32_t rank;
} mtb_lock;

#define MTB_LOCK_INIT(rank_)                                \
    {                                                       \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (rank_) \
    }

void mtb_lock_init(mtb_lock *lock, enum mtb_lock_rank rank);
void mtb_lock_fini(mtb_lock *lock);
void mtb_lock_acquire(mtb_lock *lock);
void mtb_lock_release(mtb_lock *lock);

/* True while this thread holds, or is about to take, any mtb_lock. Safe in signal handlers. */
bool mtb_locks_held(void);

/* In the child after fork: unlocks a lock that another thread of the parent may have held. */
void mtb_lock_reset(mtb_lock *lock);

/* In the child after fork: marks that this thread holds no lock. */
void mtb_locks_forget(void);

#endif /* BASE_LOCK_H */
