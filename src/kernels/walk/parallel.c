/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool of parallel.h.
 *
 * One job at a time. The caller writes it, raises `ticket`, works on pieces itself and then waits
 * for the workers that took part; each takes one piece after the other from `next`. A caller that
 * finds the pool busy, and a nested call inside a piece, run all of their pieces alone.
 *
 *   WK1  A worker touches the job only between its entry (`active` raised under the lock while the
 *        job is open) and its exit (`active` lowered). The caller closes the job before it waits
 *        for `active` to fall to 0, so no worker enters a job that is over.
 *   WK2  Workers are detached and never end. At fork() the child forgets them (PAR2): its pool is
 *        empty.
 */
#include "kernels/walk/parallel.h"

#include "base/compiler.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum {
    MAX_THREADS = 256,
    SPINS = 2000 /* about 20 us: twice the time in which a sleeping worker wakes up */
};

typedef struct pool {
    pthread_mutex_t lock; /* guards the non-atomic fields and the wait for work */
    pthread_cond_t work;  /* ticket was raised */
    pthread_cond_t done;  /* active fell to 0 */
    /* the job; written by the caller under the lock while it is closed */
    mt__piece_fn *run;
    void *context;
    int64_t count, grain;
    bool open;
    uint32_t wanted;   /* workers that may still enter */
    uint32_t sleepers; /* workers in the wait for work */
    uint32_t workers;  /* started */
    bool caller_waits;
    _Atomic uint64_t ticket; /* of the newest job; workers spin on it */
    _Atomic int64_t next;    /* piece */
    _Atomic uint32_t active; /* workers inside the job */
    _Atomic bool busy;       /* a caller owns the pool */
} pool;

static pool the_pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .work = PTHREAD_COND_INITIALIZER,
                        .done = PTHREAD_COND_INITIALIZER};
static _Atomic uint32_t thread_limit; /* 0 = not set: the number of processors */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* ---- pieces ---- */

static void run_piece(mt__piece_fn *run, void *context, int64_t count, int64_t grain, int64_t piece)
{
    int64_t begin = piece * grain;
    int64_t end = count - begin < grain ? count : begin + grain;
    run(context, begin, end);
}

static int64_t piece_count(int64_t count, int64_t grain)
{
    return count / grain + (count % grain != 0);
}

static void work_off(pool *p)
{
    int64_t pieces = piece_count(p->count, p->grain);
    for (;;) {
        int64_t piece = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (piece >= pieces) {
            return;
        }
        run_piece(p->run, p->context, p->count, p->grain, piece);
    }
}

/* ---- workers ---- */

/* Returns when there is a ticket other than *seen. */
static void await_ticket(pool *p, uint64_t *seen)
{
    for (int i = 0; i < SPINS; i++) {
        /* pairs with the release in open_job(); the job itself is read under the lock */
        uint64_t ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
        if (ticket != *seen) {
            break;
        }
        relax();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->ticket, memory_order_relaxed) == *seen) {
        p->sleepers++;
        pthread_cond_wait(&p->work, &p->lock);
        p->sleepers--;
    }
    *seen = atomic_load_explicit(&p->ticket, memory_order_relaxed);
    /* the lock stays held */
}

static void *worker_main(void *argument)
{
    pool *p = argument;
    uint64_t seen = 0;
    inside = true; /* nested calls run on this thread */
    for (;;) {
        await_ticket(p, &seen);
        bool enter = p->open && p->wanted > 0;
        if (enter) {
            p->wanted--;
            atomic_fetch_add_explicit(&p->active, 1, memory_order_relaxed);
        }
        pthread_mutex_unlock(&p->lock);
        if (!enter) {
            continue;
        }
        work_off(p);
        /* release: publishes the writes of the pieces; the caller's acquire is in close_job() */
        if (atomic_fetch_sub_explicit(&p->active, 1, memory_order_release) == 1) {
            pthread_mutex_lock(&p->lock);
            if (p->caller_waits) {
                pthread_cond_signal(&p->done);
            }
            pthread_mutex_unlock(&p->lock);
        }
    }
    return NULL;
}

/* Starts threads up to the requested number, or as many as possible (PAR3). Under the lock. */
static void grow_pool(pool *p, uint32_t workers)
{
    while (p->workers < workers) {
        pthread_attr_t attributes;
        pthread_t thread;
        if (pthread_attr_init(&attributes) != 0) {
            return;
        }
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, worker_main, p);
        pthread_attr_destroy(&attributes);
        if (failed != 0) {
            return;
        }
        p->workers++;
    }
}

/* ---- fork ---- */

static void forget_in_child(void)
{
    pool *p = &the_pool;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    p->open = false;
    p->caller_waits = false;
    p->workers = 0;
    p->sleepers = 0;
    p->wanted = 0;
    atomic_store(&p->active, 0);
    atomic_store(&p->ticket, 0);
    atomic_store(&p->busy, false);
    inside = false;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* ---- jobs ---- */

static void open_job(pool *p, uint32_t helpers)
{
    grow_pool(p, helpers);
    p->open = true;
    p->wanted = helpers;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->ticket, 1, memory_order_release);
    if (p->sleepers > 0) {
        pthread_cond_broadcast(&p->work);
    }
}

static void close_job(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->open = false;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->active, memory_order_acquire) == 0) {
            break;
        }
        relax();
    }
    pthread_mutex_lock(&p->lock);
    p->caller_waits = true;
    while (atomic_load_explicit(&p->active, memory_order_acquire) != 0) {
        pthread_cond_wait(&p->done, &p->lock);
    }
    p->caller_waits = false;
    pthread_mutex_unlock(&p->lock);
    atomic_store_explicit(&p->busy, false, memory_order_release);
}

static void run_alone(int64_t count, int64_t grain, mt__piece_fn *run, void *context)
{
    int64_t pieces = piece_count(count, grain);
    for (int64_t piece = 0; piece < pieces; piece++) {
        run_piece(run, context, count, grain, piece);
    }
}

static bool take_pool(pool *p)
{
    bool expected = false;
    return atomic_compare_exchange_strong_explicit(&p->busy, &expected, true, memory_order_acquire,
                                                   memory_order_relaxed);
}

void mt__parallel_for(int64_t count, int64_t grain, mt__piece_fn *run, void *context)
{
    if (count <= 0) {
        return;
    }
    grain = grain < 1 ? 1 : grain;
    int64_t pieces = piece_count(count, grain);
    if (pieces == 1) {
        run(context, 0, count);
        return;
    }
    uint32_t threads = inside ? 1 : mt__parallel_threads();
    pool *p = &the_pool;
    if (threads == 1 || !take_pool(p)) {
        run_alone(count, grain, run, context);
        return;
    }
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&p->lock);
    p->run = run;
    p->context = context;
    p->count = count;
    p->grain = grain;
    open_job(p, (int64_t)threads < pieces ? threads - 1 : (uint32_t)pieces - 1);
    pthread_mutex_unlock(&p->lock);
    inside = true;
    work_off(p);
    inside = false;
    close_job(p);
}

/* ---- how many ---- */

static uint32_t count_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    count = count < 1 ? 1 : count;
    return (uint32_t)(count > MAX_THREADS ? MAX_THREADS : count);
}

uint32_t mt__parallel_threads(void)
{
    uint32_t limit = atomic_load_explicit(&thread_limit, memory_order_relaxed);
    if (MT_UNLIKELY(limit == 0)) {
        limit = count_processors();
        uint32_t unset = 0; /* a limit set in the meantime is kept */
        if (!atomic_compare_exchange_strong_explicit(&thread_limit, &unset, limit,
                                                     memory_order_relaxed, memory_order_relaxed)) {
            limit = unset;
        }
    }
    return limit;
}

void mt__parallel_set_threads(uint32_t count)
{
    count = count > MAX_THREADS ? MAX_THREADS : count;
    atomic_store_explicit(&thread_limit, count, memory_order_relaxed); /* 0: as at the beginning */
}
