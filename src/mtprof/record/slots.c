/* SPDX-License-Identifier: Apache-2.0
 *
 * Thread slots. A slot is a writer plus the stream it writes; a thread holds one from its first
 * event to its end, then another thread takes over slot, chunk and ordinals, so that ten thousand
 * short threads cost one chunk and not ten thousand.
 *
 * Slots are never freed: a controller may walk them without a lock.
 */
#include "base/lock.h"
#include "base/pages.h"
#include "mtprof/record/recording.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static mtb_lock lock = MTB_LOCK_INIT(MTB_RANK_SLOTS);
static mtprof__writer **slots; /* MTPROF__SLOTS pointers; untouched pages stay unreal */
static uint32_t n_slots;       /* atomic, release: the pointer is there before it is counted */
static mtprof__writer *free_slots;
static pthread_key_t exit_key;
static bool exit_key_made;

/* Several writers to a mapping: one alone does not fill a page's worth of mappings. */
enum {
    WRITERS_PER_MAPPING = 16
};
static char *writer_pool;
static size_t writer_pool_left;

/* How often this thread has left its slot. After the last round of destructors no slot may be
 * taken: it would never be freed. */
static __thread uint8_t exits __attribute__((tls_model("initial-exec")));

static void on_thread_exit(void *value)
{
    mtprof__writer *w = value;
    exits++;
    mtprof__mine = NULL; /* what records later in this thread's exit takes a slot again */
    if (mtprof__enter(w)) {
        if (mtprof__load_state() != 0) { /* otherwise the fields are the controller's (WR3) */
            if (w->side_used > 0) {
                mtprof__writer_drain(w); /* they are this thread's, not the next one's */
            }
            w->left_open += w->depth;
            w->depth = 0;
            w->limit = w->cursor; /* the slot's next thread must announce itself first */
        }
        mtprof__leave(w);
    }
    mtb_lock_acquire(&lock);
    w->thread = w->known_as = 0;
    w->name[0] = '\0';
    w->stack_low = w->stack_high = 0;
    w->next_free = free_slots;
    free_slots = w;
    mtb_lock_release(&lock);
}

__attribute__((constructor)) static void make_key(void)
{
    /* Early, so that the key is one of those that need no memory in pthread_setspecific(). */
    exit_key_made = pthread_key_create(&exit_key, on_thread_exit) == 0;
}

uint32_t mtprof__slot_count(void)
{
    return __atomic_load_n(&n_slots, __ATOMIC_ACQUIRE);
}

mtprof__writer *mtprof__slot_at(uint32_t number)
{
    return number - 1 < mtprof__slot_count() ? MTPROF__GET(slots[number - 1]) : NULL;
}

/* Caller holds the lock. */
static mtprof__writer *make_slot(uint32_t *cause)
{
    *cause = MTPROF_LOST_THREADS;
    if (n_slots == MTPROF__SLOTS) {
        return NULL;
    }
    *cause = MTPROF_LOST_MEMORY;
    if (slots == NULL) {
        slots = mtb_pages_take(MTPROF__SLOTS * sizeof *slots);
    }
    size_t size = mtb_round_up(sizeof(mtprof__writer), 64);
    if (writer_pool_left < size) {
        char *pool = mtb_pages_take(size * WRITERS_PER_MAPPING);
        if (pool != NULL) {
            writer_pool = pool;
            writer_pool_left = size * WRITERS_PER_MAPPING;
        }
    }
    if (slots == NULL || writer_pool_left < size) {
        return NULL;
    }
    mtprof__writer *w = (mtprof__writer *)(void *)writer_pool;
    writer_pool += size;
    writer_pool_left -= size;
    w->state = w->begin_state = MTPROF__DETACHED;
    w->slot = (uint16_t)(n_slots + 1);
    w->next_token = mtprof__slot_bits(w->slot);
    __atomic_store_n(&slots[n_slots], w, __ATOMIC_RELAXED);
    __atomic_store_n(&n_slots, n_slots + 1, __ATOMIC_RELEASE);
    return w;
}

mtprof__writer *mtprof__slot_take(uint32_t *cause)
{
    *cause = MTPROF_LOST_NESTED;
    if (mtb_locks_held()) {
        return NULL; /* a signal inside one of our own critical sections */
    }
    if (exits >= PTHREAD_DESTRUCTOR_ITERATIONS) {
        *cause = MTPROF_LOST_LATE;
        return NULL;
    }
    mtb_lock_acquire(&lock);
    mtprof__writer *w = free_slots;
    if (w != NULL) {
        free_slots = w->next_free;
    } else {
        w = make_slot(cause);
    }
    mtb_lock_release(&lock);
    if (w != NULL) {
        w->thread = w->known_as = 0;
        w->os_id = (uint64_t)syscall(SYS_gettid);
        w->pthread_id = (uint64_t)pthread_self();
        if (exit_key_made) {
            pthread_setspecific(exit_key, w);
        }
    }
    return w;
}

void mtprof__slot_return(mtprof__writer *w)
{
    if (exit_key_made) {
        pthread_setspecific(exit_key, mtprof__mine);
    }
    mtb_lock_acquire(&lock);
    w->next_free = free_slots;
    free_slots = w;
    mtb_lock_release(&lock);
}

void mtprof__slots_prepare_fork(void)
{
    mtb_lock_acquire(&lock);
}

void mtprof__slots_parent_fork(void)
{
    mtb_lock_release(&lock);
}

void mtprof__slots_after_fork(void)
{
    mtb_lock_reset(&lock);
    free_slots = NULL;
    for (uint32_t i = 0; i < n_slots; i++) {
        mtprof__writer *w = slots[i];
        w->epoch = 0;
        w->state = w->begin_state = MTPROF__DETACHED;
        w->busy = 0;
        w->asking = 0;
        w->recording = NULL;
        w->serial = 0;
        w->chunk = NULL;
        w->cursor = w->limit = NULL;
        w->side_used = 0;
        w->thread = w->known_as = 0;
        if (w == mtprof__mine) {
            w->os_id = (uint64_t)syscall(SYS_gettid);
        } else {
            w->name[0] = '\0';
            w->stack_low = w->stack_high = 0;
            w->next_free = free_slots;
            free_slots = w;
        }
    }
}

uint32_t mtprof_thread_number(void)
{
    mtprof__writer *w = mtprof__load_state() != 0 ? mtprof__writer_mine(0) : NULL;
    return w != NULL && w->serial != 0 ? w->thread : 0;
}

void mtprof_name_thread(const char *name)
{
    mtprof__writer *w = mtprof__writer_mine(0);
    if (w == NULL) {
        return;
    }
    size_t length = name != NULL ? strlen(name) : 0;
    if (length >= sizeof w->name) {
        length = sizeof w->name - 1;
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    memcpy(w->name, name != NULL ? name : "", length);
    w->name[length] = '\0';
    /* If the recording already has the thread, the new name is defined there. */
    if (mtprof__enter(w)) {
        uint32_t cause;
        if (mtprof__load_state() != 0 && w->thread != 0 && w->serial != 0 &&
            mtprof__reserve(w, 0, 0, false) != NULL) {
            mtprof__define_thread(w->recording, w, &cause);
        }
        mtprof__leave(w);
    }
}
