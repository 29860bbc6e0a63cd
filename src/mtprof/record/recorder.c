/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's side of recording: opening and shutting the gate, waiting for writers to come to
 * rest, and what a fork does. One controller at a time (MTB_RANK_CONTROL is held by the caller).
 *
 * Shutting is the other half of WR2: state first, then membarrier(), then each writer's busy word.
 * A writer that stays busy (stopped by a debugger, descheduled for long) is waited for REST_NS and
 * then counted; its chunk is not touched again as long as it may write.
 */
#include "base/alloc.h"
#include "base/lock.h"
#include "mtprof/record/define/ask_language.h"
#include "mtprof/record/define/modules.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    REST_NS = 10 * 1000 * 1000
};

static uint32_t last_epoch;
uint32_t mtprof_i_epoch;

struct mtprof__stuck {
    mtprof__writer *writer;
    mtprof__chunk_header *chunk;
    struct mtprof__stuck *next;
};

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

void mtprof__recorder_prepare(void)
{
    if (!MT_TSAN && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) {
        __atomic_fetch_or(&mtprof__odd, MTPROF__ODD_BARRIER, __ATOMIC_RELAXED);
    }
}

void mtprof__recorder_barrier(void)
{
    if ((MTPROF__GET(mtprof__odd) & MTPROF__ODD_BARRIER) == 0) {
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
}

uint32_t mtprof__epoch_open(uint32_t wants)
{
    last_epoch = last_epoch + 1 != UINT32_MAX ? last_epoch + 1 : 1;
    __atomic_store_n(&mtprof_i_epoch, last_epoch, __ATOMIC_RELAXED);
    /* Publishes mtprof__current and everything it points to. */
    mtprof__epoch_adjust(wants);
    return last_epoch;
}

void mtprof__epoch_adjust(uint32_t wants)
{
    __atomic_store_n(&mtprof__state, (uint64_t)last_epoch << 32 | wants, __ATOMIC_SEQ_CST);
    __atomic_store_n(&mtprof_i_gate, wants & MTPROF__WANTS, __ATOMIC_RELEASE);
}

void mtprof__rest(int turns)
{
    if (turns > 16) {
        struct timespec rest = {0, 50 * 1000};
        nanosleep(&rest, NULL);
    } else {
        sched_yield();
    }
}

/*
 * Waits for one writer, no longer than all of them may take together. Once it rests the state being
 * shut keeps it from anything but looking (WR3), however often it enters.
 */
static bool comes_to_rest(mtprof__writer *w, uint64_t deadline)
{
    for (int spins = 0; __atomic_load_n(&w->busy, __ATOMIC_ACQUIRE) != 0; spins++) {
        if (mtprof__mono_ns() > deadline) {
            return false;
        }
        mtprof__rest(spins);
    }
    return true;
}

uint64_t mtprof__epoch_close(mtprof__recording *recording)
{
    __atomic_store_n(&mtprof_i_gate, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mtprof__state, 0, __ATOMIC_SEQ_CST);
    mtprof__recorder_barrier();
    uint64_t deadline = mtprof__mono_ns() + REST_NS;
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        mtprof__writer *w = mtprof__slot_at(i);
        if (w == mtprof__mine && w->busy != 0) {
            continue; /* a callback of ours on this very thread; it is not in a record */
        }
        w->stuck = !comes_to_rest(w, deadline);
        mtprof__store_count(recording->store, MTPROF_HEALTH_BUSY_AT_STOP, w->stuck);
    }
    /* All of them first: one that is still writing may be ending a scope of another's. */
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        mtprof__writer *w = mtprof__slot_at(i);
        if (!w->stuck && MTPROF__GET(w->serial) == recording->serial) {
            if (w->side_used > 0) {
                mtprof__writer_drain(w);
            }
            mtprof__writer_settle(w);
        }
    }
    return mtprof__ticks();
}

void mtprof__recorder_detach(mtprof__recording *recording)
{
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        mtprof__writer *w = mtprof__slot_at(i);
        if (MTPROF__GET(w->serial) != recording->serial) {
            continue;
        }
        if (w->stuck) {
            struct mtprof__stuck *stuck = mtb_calloc(1, sizeof *stuck);
            if (stuck != NULL) {
                stuck->writer = w;
                stuck->chunk = w->chunk;
                stuck->next = recording->stuck;
                recording->stuck = stuck;
            } else {
                mtprof__store_retain(recording->store); /* better a leak than a wild write */
            }
            continue;
        }
        /* WR3 */
        MTPROF__SET(w->serial, 0);
        w->recording = NULL;
        MTPROF__SET(w->state, MTPROF__DETACHED);
        MTPROF__SET(w->begin_state, MTPROF__DETACHED);
        w->epoch = 0;
        w->chunk = NULL;
        w->cursor = w->limit = w->end_of_chunk = NULL;
    }
}

/* Recordings that threads may still write to. Guarded by the names lock. */
static mtprof__recording *abandoned;

/* Whether all of its threads have come to rest since. */
static bool is_at_rest(const mtprof__recording *recording)
{
    for (const struct mtprof__stuck *s = recording->stuck; s != NULL; s = s->next) {
        if (__atomic_load_n(&s->writer->busy, __ATOMIC_ACQUIRE) != 0 &&
            MTPROF__GET(s->writer->serial) == recording->serial) {
            return false;
        }
    }
    return true;
}

static void free_stuck(mtprof__recording *recording)
{
    while (recording->stuck != NULL) {
        struct mtprof__stuck *next = recording->stuck->next;
        mtb_free(recording->stuck);
        recording->stuck = next;
    }
}

/* Removes those from the list that no thread writes to any more. */
static void release_abandoned(void)
{
    mtprof__recording *ready = NULL;
    mtb_lock_acquire(&mtprof__names_lock);
    mtprof__recording **at = &abandoned;
    while (*at != NULL) {
        mtprof__recording *recording = *at;
        if (is_at_rest(recording)) {
            *at = recording->next_abandoned;
            recording->next_abandoned = ready;
            ready = recording;
        } else {
            at = &recording->next_abandoned;
        }
    }
    mtb_lock_release(&mtprof__names_lock);
    while (ready != NULL) {
        mtprof__recording *next = ready->next_abandoned;
        free_stuck(ready);
        mtprof__recording_release(ready);
        ready = next;
    }
}

void mtprof__recorder_abandon(mtprof__recording *recording)
{
    release_abandoned();
    if (is_at_rest(recording)) {
        free_stuck(recording);
        return;
    }
    for (const struct mtprof__stuck *s = recording->stuck; s != NULL; s = s->next) {
        if (__atomic_load_n(&s->writer->busy, __ATOMIC_ACQUIRE) != 0) {
            mtprof__store_abandon(recording->store, s->chunk);
        }
    }
    mtprof__recording_retain(recording);
    mtb_lock_acquire(&mtprof__names_lock);
    recording->next_abandoned = abandoned;
    abandoned = recording;
    mtb_lock_release(&mtprof__names_lock);
}

void mtprof__recorder_sum(mtprof__recording *recording, mtprof_health *health)
{
    health->begins += MTPROF__GET(recording->begins);
    health->others += MTPROF__GET(recording->others);
    health->launches += MTPROF__GET(recording->launches);
    health->truncated += MTPROF__GET(recording->truncated);
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        const mtprof__writer *w = mtprof__slot_at(i);
        if (MTPROF__GET(w->serial) == recording->serial) {
            uint64_t ordinal = MTPROF__GET(w->next_token) & MTPROF__ORDINAL_MASK;
            uint64_t first = MTPROF__GET(w->first_ordinal);
            health->begins += ordinal > first ? ordinal - first : 0;
            health->begins += MTPROF__GET(w->nested_begins);
            health->others += MTPROF__GET(w->others) + MTPROF__GET(w->nested_others);
            health->launches += MTPROF__GET(w->launches);
        }
    }
}

/* ---- fork ---- */

/* Per thread: two may fork at the same time. */
static __thread bool fork_locked __attribute__((tls_model("initial-exec")));

/*
 * The tables of names survive a fork (sites keep their ids), so they must not be caught half-way:
 * the forking thread holds their locks across it. It also holds the one under which we ask the
 * loader what is loaded, because glibc does not free the loader's own lock in a child. Everything
 * else is dropped in the child and need not be consistent.
 */
void mtprof__recorder_before_fork(void)
{
    fork_locked = !mtb_locks_held();
    if (fork_locked) {
        mtb_lock_acquire(&mtprof__loader_lock);
        mtprof__slots_prepare_fork();
        mtb_lock_acquire(&mtprof__names_lock);
    }
}

void mtprof__recorder_after_fork_parent(void)
{
    if (fork_locked) {
        mtb_lock_release(&mtprof__names_lock);
        mtprof__slots_parent_fork();
        mtb_lock_release(&mtprof__loader_lock);
    }
}

void mtprof__recorder_after_fork_child(void)
{
    mtprof_i_gate = 0;
    mtprof__state = 0;
    mtb_locks_forget();
    mtb_lock_reset(&mtprof__names_lock);
    mtb_lock_reset(&mtprof__loader_lock);
    mtb_lock_reset(&mtprof__language_lock); /* a change is either seen or not: AL4 */
    /* The child has no use for the file, and must not keep its lock alive. */
    if (mtprof__current != NULL) {
        mtprof__file_close(mtprof__current->store->fd, mtprof__current->store->file);
        mtprof__current->store->fd = -1;
    }
    mtprof__current = NULL;
    abandoned = NULL;
    mtprof__slots_after_fork();
}
