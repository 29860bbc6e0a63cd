/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to chunks after their writers are done with them: checksums, the closed mark, a
 * copy in a file, and the bytes for a reader.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "mtprof/record/store/store.h"
#include "mtprof/record/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

void mtprof__copy_words(uint64_t *to, const uint64_t *from, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
}

void mtprof__chunk_set_checksum(mtprof__chunk_header *chunk)
{
    uint64_t committed = __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
    uint32_t crc = mtprof__chunk_data_crc(committed, (const char *)chunk + MTPROF_CHUNK_HEADER);
    __atomic_store_n(&chunk->data_crc, crc, __ATOMIC_RELAXED);
    __atomic_store_n(&chunk->state, MTPROF_CHUNK_CHECKED, __ATOMIC_RELEASE);
}

static const mtprof__segment *segment_of(mtprof__store *store, const void *address)
{
    for (uint32_t i = 0; i < store->n_segments; i++) {
        const mtprof__segment *s = store->segments[i];
        if (s->base != NULL && (const char *)address >= s->base &&
            (const char *)address < s->base + s->bytes) {
            return s;
        }
    }
    return NULL;
}

/* Puts a finished chunk into a file that could not be mapped. */
static int write_behind(mtprof__store *store, const mtprof__chunk_header *chunk)
{
    const mtprof__segment *s = segment_of(store, chunk);
    if (s == NULL) {
        return EINVAL;
    }
    uint64_t offset = s->offset + (uint64_t)((const char *)chunk - s->base);
    int fd = mtprof__store_fd(store);
    return fd >= 0 ? mtprof__system.write(fd, chunk, chunk->size, (off_t)offset) : EBADF;
}

bool mtprof__store_check_sealed(mtprof__store *store)
{
    bool worked = false;
    for (;;) {
        mtb_lock_acquire(&store->lock);
        mtprof__chunk_header *chunk = mtprof__fifo_pop(&store->unchecked);
        const mtprof__segment *segment = chunk != NULL ? segment_of(store, chunk) : NULL;
        mtb_lock_release(&store->lock);
        if (chunk == NULL) {
            return worked;
        }
        mtprof__chunk_set_checksum(chunk);
        if (store->behind) {
            if (write_behind(store, chunk) != 0) {
                /* close() tries again, and says so if it fails. */
                __atomic_store_n(&chunk->state, MTPROF_CHUNK_SEALED, __ATOMIC_RELEASE);
            }
        } else if (segment != NULL && segment->fd >= 0) {
            /* It is in the file now; our view of it need not stay resident. */
            madvise(chunk, chunk->size, MADV_DONTNEED);
        }
        worked = true;
    }
}

/* Calls a function for every chunk, in order of offset. */
typedef mtprof_status chunk_visit(mtprof__store *store, mtprof__chunk_header *chunk, void *context);

static mtprof_status each_chunk(mtprof__store *store, chunk_visit *visit, void *context)
{
    /* A source may still be pushing. Segments before the current one are full, and what is cut
     * under the lock has its header by then. */
    mtb_lock_acquire(&store->lock);
    uint32_t last = store->current;
    uint64_t used_of_last = store->segments[last]->used;
    mtb_lock_release(&store->lock);
    for (uint32_t i = 0; i <= last; i++) {
        mtprof__segment *s = store->segments[i];
        uint64_t at = i == 0 ? MTPROF_HEADER_BYTES : 0;
        uint64_t used = i == last ? used_of_last : s->used;
        while (at < used) {
            mtprof__chunk_header *chunk = (mtprof__chunk_header *)(void *)(s->base + at);
            MT_TRY(visit(store, chunk, context));
            at += chunk->size;
        }
    }
    return MTPROF_OK;
}

static mtprof_status finish_chunk(mtprof__store *store, mtprof__chunk_header *chunk, void *context)
{
    uint64_t *chunks = context;
    ++*chunks;
    if (chunk->state != MTPROF_CHUNK_CHECKED) {
        mtprof__chunk_set_checksum(chunk);
        if (store->behind) {
            int error = write_behind(store, chunk);
            if (error != 0) {
                return mtb_fail_errno(MTPROF_EIO, error, "session_close: writing %s", store->path);
            }
        }
    }
    return MTPROF_OK;
}

void mtprof__header_mark_closed(mtprof__file_header *header, uint64_t end_ticks,
                                uint64_t file_bytes, uint64_t chunks)
{
    header->health[MTPROF_HEALTH_CHUNKS] = chunks;
    header->end_ticks = end_ticks;
    header->file_bytes = file_bytes;
    header->final_crc = mtb_crc32c(0, &header->end_ticks, 16);
    header->closed = MTPROF_CLOSED_MARK;
    header->closed_crc = mtb_crc32c(0, header->health, 260);
}

void mtprof__store_unlock(mtprof__store *store)
{
    if (mtprof__file_is(store->fd, store->file)) {
        mtprof__system.lock(store->fd,
                            LOCK_UN); /* closing is not enough: a forked child may have a copy */
    }
}

mtprof_status mtprof__store_finish(mtprof__store *store, uint64_t end_ticks)
{
    uint64_t chunks = 0;
    MT_TRY(each_chunk(store, finish_chunk, &chunks));
    uint64_t bytes = store->frontier;
    /* What follows the last chunk was only allocated ahead. The closed mark comes last: it says
     * that all of this has been done. */
    int fd = mtprof__store_fd(store);
    if (fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, EBADF,
                              "session_close: the program has closed the descriptor of %s, and the "
                              "file is no longer there",
                              store->path);
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "session_close: cutting %s to size", store->path);
    }
    mtprof__header_mark_closed(store->header, end_ticks, bytes, chunks);
    int error = 0;
    if (store->behind) {
        error = mtprof__system.write(fd, store->header, MTPROF_HEADER_BYTES, 0);
    }
    if (error != 0) {
        return mtb_fail_errno(MTPROF_EIO, error, "session_close: finishing %s", store->path);
    }
    return MTPROF_OK;
}

struct save {
    int fd;
    uint64_t offset, chunks;
    const char *path;
    mtprof__save_progress *progress; /* NULL: no progress */
    void *user;
};

static mtprof_status save_bytes(const struct save *save, const void *bytes, size_t n,
                                uint64_t offset)
{
    int error = mtprof__system.write(save->fd, bytes, n, (off_t)offset);
    return error == 0 ? MTPROF_OK
                      : mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                                       "session_save: writing %s", save->path);
}

/* A copy is compact and complete: every chunk sealed and checksummed, the store left as it is. */
static mtprof_status save_chunk(mtprof__store *store, mtprof__chunk_header *chunk, void *context)
{
    struct save *save = context;
    if (save->progress != NULL &&
        save->progress(save->user, "saving", save->offset, store->frontier) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "session_save: given up on request");
    }
    mtprof__chunk_header *copy = mtb_calloc(1, chunk->size);
    if (copy == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_save: no memory for a chunk of %u bytes",
                        chunk->size);
    }
    uint32_t size = chunk->size;
    mtprof__copy_words((uint64_t *)(void *)copy, (const uint64_t *)(const void *)chunk, size / 8);
    uint64_t used = MTPROF_CHUNK_HEADER + copy->committed;
    memset((char *)copy + used, 0, copy->size - used);
    mtprof__chunk_set_checksum(copy);
    mtprof_status status = save_bytes(save, copy, copy->size, save->offset);
    save->offset += copy->size;
    save->chunks++;
    mtb_free(copy);
    return status;
}

static mtprof_status save_into(mtprof__store *store, struct save *save, uint64_t end_ticks)
{
    save->offset = MTPROF_HEADER_BYTES;
    MT_TRY(each_chunk(store, save_chunk, save));
    mtprof__file_header *header = mtb_calloc(1, MTPROF_HEADER_BYTES);
    if (header == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_save: no memory for the header");
    }
    mtprof__copy_words((uint64_t *)(void *)header, (const uint64_t *)(const void *)store->header,
                       MTPROF_HEADER_BYTES / 8);
    mtprof__header_mark_closed(header, end_ticks, save->offset, save->chunks);
    mtprof_status status = save_bytes(save, header, MTPROF_HEADER_BYTES, 0);
    mtb_free(header);
    return status;
}

mtprof_status mtprof__store_save(mtprof__store *store, const char *path, uint64_t end_ticks,
                                 mtprof__save_progress *progress, void *user)
{
    mtb_new_file file;
    int error = mtb_new_file_open(&file, path);
    if (error != 0) {
        return mtb_fail_errno(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO, error,
                              "session_save: cannot create a file beside %s", path);
    }
    struct save save = {.fd = file.fd, .path = path, .progress = progress, .user = user};
    mtprof_status status = save_into(store, &save, end_ticks);
    if (status == MTPROF_OK) {
        error = mtb_new_file_close(&file);
        error = error == 0 ? mtb_new_file_commit(&file) : error;
    }
    if (error != 0) {
        status = mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC
                                : error == ENOMEM  ? MTPROF_ENOMEM
                                                   : MTPROF_EIO,
                                error, "session_save: cannot put %s in place", path);
    }
    mtb_new_file_abandon(&file);
    return status;
}

/* Whole words first: a reader asks for headers and records, which are. */
static void read_memory(const mtprof__segment *s, uint64_t at, char *to, size_t length)
{
    while (length >= 8 && at % 8 == 0) {
        uint64_t word = __atomic_load_n((uint64_t *)(void *)(s->base + at), __ATOMIC_ACQUIRE);
        memcpy(to, &word, 8);
        to += 8;
        at += 8;
        length -= 8;
    }
    for (size_t i = 0; i < length; i++) {
        to[i] = __atomic_load_n(s->base + at + i, __ATOMIC_ACQUIRE);
    }
}

static int64_t read_segment(const mtprof__segment *s, uint64_t at, char *to, size_t length)
{
    if (mtprof__file_is(s->fd, s->file)) {
        ssize_t n;
        do {
            n = pread(s->fd, to, length, (off_t)(s->fd_offset + at));
        } while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
    }
    read_memory(s, at, to, length);
    return 0;
}

/* In memory: without a look at the segments' files. */
static int64_t read_range(mtprof__store *store, uint64_t offset, void *buffer, size_t length,
                          bool in_memory)
{
    uint64_t end = __atomic_load_n(&store->frontier, __ATOMIC_ACQUIRE);
    uint32_t n = __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE);
    size_t done = 0;
    for (uint32_t i = 0; i < n && done < length && offset < end; i++) {
        mtprof__segment *s = store->segments[i];
        if (offset >= s->offset + s->bytes) {
            continue;
        }
        uint64_t at = offset - s->offset;
        uint64_t part = s->bytes - at;
        part = part < length - done ? part : length - done;
        part = part < end - offset ? part : end - offset;
        int64_t got = 0;
        if (in_memory) {
            read_memory(s, at, (char *)buffer + done, part);
        } else {
            got = read_segment(s, at, (char *)buffer + done, part);
        }
        if (got < 0) {
            return got;
        }
        done += part;
        offset += part;
    }
    return (int64_t)done;
}

static int64_t bytes_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    mtprof__store *store = context;
    if (store->pid != getpid()) {
        return -ESTALE; /* the child of a fork does not have the memory */
    }
    return read_range(store, offset, buffer, length, false);
}

/* An abandoned chunk's records are in the file alone. */
static int64_t memory_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    mtprof__store *store = context;
    int64_t got = 0;
    if (__atomic_load_n(&store->abandoned, __ATOMIC_ACQUIRE) == 0) {
        got = read_range(store, offset, buffer, length, true);
    }
    return __atomic_load_n(&store->abandoned, __ATOMIC_ACQUIRE) == 0
               ? got
               : read_range(store, offset, buffer, length, false);
}

static uint64_t bytes_size(void *context)
{
    mtprof__store *store = context;
    return __atomic_load_n(&store->frontier, __ATOMIC_ACQUIRE);
}

static void bytes_close(void *context)
{
    mtprof__store_release(context);
}

void mtprof__store_bytes(mtprof__store *store, mtprof_bytes *bytes)
{
    mtprof__store_retain(store);
    bytes->context = store;
    bytes->read = bytes_read;
    bytes->size = bytes_size;
    bytes->close = bytes_close;
}

void mtprof__store_memory(mtprof__store *store, mtprof_bytes *bytes)
{
    mtprof__store_bytes(store, bytes);
    bytes->read = memory_read;
}

/*
 * The thread gets pages of its own at the same address; the trace keeps what it had published,
 * which is then sealed through the file. In memory there is nothing to protect (readers go by
 * `committed`). The segment stays mapped as long as the caller keeps the store.
 */
void mtprof__store_abandon(mtprof__store *store, mtprof__chunk_header *chunk)
{
    const mtprof__segment *s = chunk != NULL ? segment_of(store, chunk) : NULL;
    if (s == NULL) {
        return;
    }
    uint32_t size = chunk->size;
    mtprof__chunk_header *copy = mtprof__file_is(s->fd, s->file) ? mtb_calloc(1, size) : NULL;
    if (copy == NULL) {
        return;
    }
    __atomic_store_n(&store->abandoned, 1, __ATOMIC_RELEASE); /* partner: memory_read() */
    off_t offset = (off_t)(s->fd_offset + (uint64_t)((const char *)chunk - s->base));
    void *own =
        mmap(chunk, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (own != MAP_FAILED && pread(s->fd, copy, size, offset) == (ssize_t)size) {
        mtprof__chunk_set_checksum(copy);
        (void)mtprof__system.write(s->fd, copy, size, offset);
        memcpy(chunk, copy, MTPROF_CHUNK_HEADER); /* for walks over the chunks */
    }
    mtb_free(copy);
}
