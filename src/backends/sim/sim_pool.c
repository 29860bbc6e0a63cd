/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a simulated device, see sim_pool.h. Pieces are large and few (the runtime's allocator
 * divides them), so sorted arrays and first fit are enough.
 */
#include "backends/sim/sim_pool.h"

#include "base/alloc.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- the two mappings ---- */

static char *map(int file, uint64_t bytes, int access)
{
    void *mapped = mmap(NULL, bytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(mapped, bytes, MADV_DONTFORK);
    (void)madvise(mapped, bytes, MADV_DONTDUMP);
    return mapped;
}

void sim_pool_forget(sim_pool *pool)
{
    if (pool->file >= 0) {
        (void)close(pool->file);
        pool->file = -1; /* a grandchild must not close a file that reused the number */
    }
}

void sim_pool_fini(sim_pool *pool)
{
    if (pool->far != NULL) {
        (void)munmap(pool->far, pool->bytes);
    }
    if (pool->near != NULL) {
        (void)munmap(pool->near, pool->bytes);
    }
    sim_pool_forget(pool);
    mtb_free(pool->vacant.at);
    mtb_free(pool->used.at);
}

int sim_pool_init(sim_pool *pool, uint64_t bytes)
{
    *pool = (sim_pool){.bytes = mtb_round_up(bytes, page_bytes())};
    struct rlimit largest;
    if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < pool->bytes) {
        pool->file = -1;
        return -EFBIG; /* past RLIMIT_FSIZE ftruncate sends a signal, not an error */
    }
    pool->file = memfd_create("mindtorch_sim", MFD_CLOEXEC);
    if (pool->file < 0) {
        return -errno;
    }
    if (ftruncate(pool->file, (off_t)pool->bytes) == 0) {
        pool->far = map(pool->file, pool->bytes, PROT_NONE);
        pool->near = map(pool->file, pool->bytes, PROT_READ | PROT_WRITE);
    }
    if (pool->far == NULL || pool->near == NULL ||
        !mtb_grow((void **)&pool->vacant.at, &pool->vacant.capacity, 1, sizeof(sim_extent))) {
        int error = errno != 0 ? errno : ENOMEM;
        sim_pool_fini(pool);
        return -error;
    }
    pool->vacant.at[0] = (sim_extent){.offset = 0, .bytes = pool->bytes};
    pool->vacant.count = 1;
    (void)pthread_mutex_init(&pool->lock, NULL);
    return 0;
}

/* ---- sorted extents ---- */

/* The first extent that begins at or after `offset`. */
static size_t find_place(const sim_extents *extents, uint64_t offset)
{
    size_t low = 0;
    size_t high = extents->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (extents->at[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(sim_extents *extents, size_t place, sim_extent extent)
{
    MT_ASSERT(extents->count < extents->capacity);
    memmove(&extents->at[place + 1], &extents->at[place],
            (extents->count - place) * sizeof extents->at[0]);
    extents->at[place] = extent;
    extents->count++;
}

static void drop(sim_extents *extents, size_t place)
{
    extents->count--;
    memmove(&extents->at[place], &extents->at[place + 1],
            (extents->count - place) * sizeof extents->at[0]);
}

/* Merges adjacent extents (SP2). */
static void add_vacant(sim_extents *vacant, sim_extent extent)
{
    size_t place = find_place(vacant, extent.offset);
    if (place < vacant->count && extent.offset + extent.bytes == vacant->at[place].offset) {
        extent.bytes += vacant->at[place].bytes;
        drop(vacant, place);
    }
    if (place > 0) {
        sim_extent *before = &vacant->at[place - 1];
        if (before->offset + before->bytes == extent.offset) {
            before->bytes += extent.bytes;
            return;
        }
    }
    insert(vacant, place, extent);
}

/* ---- taking and giving ---- */

/* fallocate() is a cancellation point; a thread must not be cancelled here, where it holds
 * locks. */
static int change_pages(const sim_pool *pool, int mode, sim_extent extent)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    int status = fallocate(pool->file, mode, (off_t)extent.offset, (off_t)extent.bytes);
    int error = errno;
    (void)pthread_setcancelstate(before, &before);
    errno = error;
    return status;
}

/* Allocates the pages, so that a worker never faults for lack of memory (SP1). */
static bool fill_pages(const sim_pool *pool, sim_extent extent)
{
    int status;
    do {
        status = change_pages(pool, 0, extent);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

static void drop_pages(const sim_pool *pool, sim_extent extent)
{
    (void)change_pages(pool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, extent);
}

/* First fit. */
static bool find_vacant(const sim_extents *vacant, uint64_t bytes, size_t *place)
{
    for (*place = 0; *place < vacant->count; ++*place) {
        if (vacant->at[*place].bytes >= bytes) {
            return true;
        }
    }
    return false;
}

static bool take_extent(sim_pool *pool, uint64_t bytes, sim_extent *out)
{
    size_t place;
    size_t more = pool->used.count + 2; /* SP2 */
    if (!mtb_grow((void **)&pool->used.at, &pool->used.capacity, more, sizeof(sim_extent)) ||
        !mtb_grow((void **)&pool->vacant.at, &pool->vacant.capacity, more, sizeof(sim_extent)) ||
        !find_vacant(&pool->vacant, bytes, &place)) {
        return false;
    }
    sim_extent *from = &pool->vacant.at[place];
    sim_extent taken = {.offset = from->offset, .bytes = bytes};
    if (!fill_pages(pool, taken)) {
        drop_pages(pool, taken);
        return false;
    }
    from->offset += bytes;
    from->bytes -= bytes;
    if (from->bytes == 0) {
        drop(&pool->vacant, place);
    }
    insert(&pool->used, find_place(&pool->used, taken.offset), taken);
    pool->used_bytes += bytes;
    *out = taken;
    return true;
}

void *sim_pool_take(sim_pool *pool, size_t bytes)
{
    sim_extent taken;
    if (bytes > pool->bytes) {
        return NULL;
    }
    uint64_t whole = mtb_round_up(bytes != 0 ? bytes : 1, page_bytes());
    (void)pthread_mutex_lock(&pool->lock);
    bool found = take_extent(pool, whole, &taken);
    (void)pthread_mutex_unlock(&pool->lock);
    if (!found) {
        return NULL;
    }
#if defined(MT_DEBUG) && MT_DEBUG
    memset(pool->near + taken.offset, 0xEE, taken.bytes); /* so that no code relies on zeros */
#endif
    return pool->far + taken.offset;
}

void sim_pool_give(sim_pool *pool, const void *memory)
{
    uint64_t offset = (uintptr_t)memory - (uintptr_t)pool->far;
    (void)pthread_mutex_lock(&pool->lock);
    size_t place = find_place(&pool->used, offset);
    if (place < pool->used.count && pool->used.at[place].offset == offset) {
        sim_extent given = pool->used.at[place];
        drop_pages(pool, given);
        drop(&pool->used, place);
        add_vacant(&pool->vacant, given);
        pool->used_bytes -= given.bytes;
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

uint64_t sim_pool_used(sim_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    uint64_t bytes = pool->used_bytes;
    (void)pthread_mutex_unlock(&pool->lock);
    return bytes;
}

bool sim_pool_is_taken(sim_pool *pool, const void *memory, uint64_t bytes)
{
    uint64_t offset = (uintptr_t)memory - (uintptr_t)pool->far;
    (void)pthread_mutex_lock(&pool->lock);
    size_t behind = find_place(&pool->used, offset + 1);
    bool taken = behind > 0 && offset + bytes <= pool->used.at[behind - 1].offset +
                                                     pool->used.at[behind - 1].bytes;
    (void)pthread_mutex_unlock(&pool->lock);
    return taken;
}
