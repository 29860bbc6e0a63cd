/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers that CUPTI fills with records, and the thread that reads them.
 *
 *     CUPTI needs one ─► wanted ─► filled ─► done ─► kept ─► read in rounds, by start ─► wanted
 *
 *   CB1  CUPTI has a buffer for each thread that launches, and gives it back when it is full or
 *        when it is asked to. A round asks for all of them, and reports what they hold in order of
 *        its start: work of one stream is reported in order, whoever launched it.
 *   CB2  There are at most 64 buffers of 2 MiB, some 600,000 records. A round is made twice a
 *        second, or when a quarter of them is full. Without a free one CUPTI drops records, and
 *        counts them.
 *   CB3  CUPTI does not give back the buffers of threads that launch while it is detached. They no
 *        longer count after that, and are freed when it is detached the next time.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "sources/cupti/cupti_impl.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    BUFFER_BYTES = 2 << 20,
    MOST_BUFFERS = 64,
    EAGER = MOST_BUFFERS / 4,
    ROUND_NS = 500000000
};

typedef struct filled {
    uint8_t *bytes;
    size_t used;
} filled;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *unused[MOST_BUFFERS];
    uint8_t *lent[MOST_BUFFERS];      /* CUPTI has them */
    uint8_t *abandoned[MOST_BUFFERS]; /* CB3 */
    filled kept[MOST_BUFFERS];
    uint32_t n_unused, n_lent, n_abandoned, n_kept;
    uint32_t count;            /* that exist, without the abandoned ones */
    bool reading, leave, gone; /* a thread reads; is to end; has ended */
    bool ignore;               /* what is given back */
    pthread_t reader;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static mtprof_source *serving; /* atomic */

/* ---- what CUPTI calls ---- */

void cp__on_buffer_wanted(uint8_t **out, size_t *bytes, size_t *most_records)
{
    pthread_mutex_lock(&pool.lock);
    uint8_t *taken = pool.n_unused > 0 ? pool.unused[--pool.n_unused] : NULL;
    if (taken == NULL && pool.count < MOST_BUFFERS) {
        taken = mtb_aligned_take(BUFFER_BYTES);
        pool.count += taken != NULL;
    }
    if (taken != NULL) {
        pool.lent[pool.n_lent++] = taken;
    }
    pthread_mutex_unlock(&pool.lock);
    *out = taken;
    *bytes = taken != NULL ? BUFFER_BYTES : 0;
    *most_records = 0; /* as many as fit */
}

/* Whether CUPTI had it, and has it no longer. The lock is held. */
static bool take_back(const uint8_t *bytes)
{
    for (uint32_t i = 0; i < pool.n_lent; i++) {
        if (pool.lent[i] == bytes) {
            pool.lent[i] = pool.lent[--pool.n_lent];
            return true;
        }
    }
    return false;
}

void cp__on_buffer_done(void *context, uint32_t stream, uint8_t *bytes, size_t size, size_t used)
{
    (void)size;
    size_t dropped = 0;
    pthread_mutex_lock(&pool.lock);
    bool ignore = pool.ignore;
    bool ours = bytes != NULL && take_back(bytes); /* else it was abandoned */
    if (ours && ignore) {
        pool.unused[pool.n_unused++] = bytes;
    } else if (ours) {
        pool.kept[pool.n_kept++] = (filled){bytes, used};
        if (pool.n_kept >= EAGER) {
            pthread_cond_signal(&pool.changed);
        }
    }
    pthread_mutex_unlock(&pool.lock);
    if (!ignore && cp__cuda.dropped(context, stream, &dropped) == CP_OK && dropped > 0) {
        cp__add(&cp__count.dropped, dropped);
        mtprof_push_lost(__atomic_load_n(&serving, __ATOMIC_ACQUIRE), dropped);
    }
}

/* ---- a round ---- */

typedef struct entry {
    uint64_t start;
    const void *record;
} entry;

/* Merges two ordered halves of `from` into `to`. */
static void merge(const entry *from, size_t n_left, size_t n, entry *to)
{
    size_t left = 0;
    size_t right = n_left;
    for (size_t i = 0; i < n; i++) {
        bool take_left = right == n || (left < n_left && from[left].start <= from[right].start);
        to[i] = from[take_left ? left++ : right++];
    }
}

/* Orders `items` by start, keeping the order of equal ones. What is in order already, as a thread's
 * records are, takes one look. */
static void order(entry *items, entry *room, size_t n)
{
    bool ordered = true;
    for (size_t i = 1; i < n && ordered; i++) {
        ordered = items[i - 1].start <= items[i].start;
    }
    if (ordered) {
        return;
    }
    order(items, room, n / 2);
    order(items + n / 2, room, n - n / 2);
    merge(items, n / 2, n, room);
    memcpy(items, room, n * sizeof *items);
}

typedef struct record_list {
    entry *items;
    size_t n, capacity;
} record_list;

/* The records of a buffer; what there is no memory for is reported as it comes. */
static void collect(mtprof_source *source, const filled *buffer, record_list *list,
                    cp__kernel_memo *memo)
{
    void *record = NULL;
    while (buffer->used > 0 &&
           cp__cuda.next_record(buffer->bytes, buffer->used, &record) == CP_OK) {
        entry found = {cp__record_start(record), record};
        if (!mtb_append(list->items, list->n, list->capacity, &found)) {
            cp__read_record(source, record, memo);
        }
    }
}

void cp__buffers_read(void)
{
    mtprof_source *source = __atomic_load_n(&serving, __ATOMIC_ACQUIRE);
    filled kept[MOST_BUFFERS];
    record_list list = {NULL, 0, 0};
    pthread_mutex_lock(&pool.lock);
    uint32_t n = pool.n_kept;
    memcpy(kept, pool.kept, n * sizeof kept[0]);
    pool.n_kept = 0;
    pthread_mutex_unlock(&pool.lock);
    cp__kernel_memo *memo = n > 0 ? cp__kernel_memo_new() : NULL;
    for (uint32_t i = 0; i < n; i++) {
        collect(source, &kept[i], &list, memo);
    }
    entry *room = mtb_resize(NULL, list.n + 1, sizeof *room);
    if (room != NULL) {
        order(list.items, room, list.n);
    }
    for (size_t i = 0; i < list.n; i++) {
        cp__read_record(source, list.items[i].record, memo);
    }
    mtb_free(memo);
    mtb_free(room);
    mtb_free(list.items);
    pthread_mutex_lock(&pool.lock);
    for (uint32_t i = 0; i < n; i++) {
        pool.unused[pool.n_unused++] = kept[i].bytes;
    }
    pthread_mutex_unlock(&pool.lock);
}

/* ---- the thread ---- */

static struct timespec after(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t sum = (uint64_t)t.tv_nsec + ns % 1000000000u;
    t.tv_sec += (time_t)(ns / 1000000000u + sum / 1000000000u);
    t.tv_nsec = (long)(sum % 1000000000u);
    return t;
}

/* The last round is made after the end was asked for. */
static void *read_rounds(void *argument)
{
    (void)argument;
    bool last = false;
    pthread_mutex_lock(&pool.lock);
    while (!last) {
        struct timespec until = after(ROUND_NS);
        int status = 0;
        while (!pool.leave && pool.n_kept < EAGER && status == 0) {
            status = pthread_cond_timedwait(&pool.changed, &pool.lock, &until);
        }
        last = pool.leave;
        pthread_mutex_unlock(&pool.lock);
        (void)cp__cuda.flush(0);
        cp__buffers_read();
        pthread_mutex_lock(&pool.lock);
        last = last && pool.leave; /* else another recording has begun */
    }
    pool.gone = true;
    pthread_cond_broadcast(&pool.changed);
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

void cp__buffers_serve(mtprof_source *source)
{
    __atomic_store_n(&serving, source, __ATOMIC_RELEASE);
}

void cp__buffers_begin(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.leave = false;
    bool gone = pool.gone;
    pthread_mutex_unlock(&pool.lock);
    if (gone && pool.reading) { /* it was late in the last recording */
        pthread_join(pool.reader, NULL);
        pool.reading = false;
    }
    pool.gone = pool.reading && pool.gone;
    /* Without the thread all is read at the end, as far as the buffers go. */
    pool.reading = pool.reading || pthread_create(&pool.reader, NULL, read_rounds, NULL) == 0;
}

bool cp__buffers_end(uint64_t timeout_ns)
{
    if (!pool.reading) {
        (void)cp__cuda.flush(0);
        cp__buffers_read();
        return true;
    }
    struct timespec until = after(timeout_ns);
    int status = 0;
    pthread_mutex_lock(&pool.lock);
    pool.leave = true;
    pthread_cond_broadcast(&pool.changed);
    while (!pool.gone && status == 0) {
        status = pthread_cond_timedwait(&pool.changed, &pool.lock, &until);
    }
    bool gone = pool.gone;
    pthread_mutex_unlock(&pool.lock);
    if (gone) {
        pthread_join(pool.reader, NULL);
        pool.reading = false;
    }
    return gone;
}

void cp__buffers_ignore(bool ignore)
{
    pthread_mutex_lock(&pool.lock);
    pool.ignore = ignore;
    pthread_mutex_unlock(&pool.lock);
}

void cp__buffers_trim(void)
{
    uint8_t *gone[2 * MOST_BUFFERS];
    pthread_mutex_lock(&pool.lock);
    uint32_t n = pool.n_unused;
    memcpy(gone, pool.unused, n * sizeof gone[0]);
    memcpy(gone + n, pool.abandoned, pool.n_abandoned * sizeof gone[0]);
    n += pool.n_abandoned;
    memcpy(pool.abandoned, pool.lent, pool.n_lent * sizeof gone[0]);
    pool.count -= pool.n_unused + pool.n_lent;
    pool.n_abandoned = pool.n_lent;
    pool.n_lent = pool.n_unused = 0;
    pthread_mutex_unlock(&pool.lock);
    for (uint32_t i = 0; i < n; i++) {
        mtb_free(gone[i]);
    }
}

void cp__buffers_after_fork(void)
{
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.reading = pool.gone = false;
}
