/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/import/import_source.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <mtprof/status.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PACKED_BYTES = 1 << 18
};

/* Makes the window hold `capacity` bytes. */
static int resize_window(mtprof__source *source, size_t capacity)
{
    char *window = mtb_resize(source->window, capacity + 1 + MTB_SCAN_PAD, 1);
    if (window == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: no memory for %zu bytes", source->path,
                        capacity);
    }
    source->window = window;
    source->capacity = capacity;
    return MTPROF_OK;
}

static int64_t read_file(mtprof__source *source, void *buffer, size_t room)
{
    ssize_t n;
    do {
        n = pread(source->fd, buffer, room, (off_t)source->read_bytes);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "read trace: %s at byte %llu", source->path,
                              (unsigned long long)source->read_bytes);
    }
    source->read_bytes += (uint64_t)n;
    return n;
}

static int inflate_failed(const mtprof__source *source, int error)
{
    switch (error) {
    case ENOMEM:
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: no memory to inflate it", source->path);
    case ENOTSUP:
        return mtb_fail(MTPROF_ENOTSUP,
                        "open trace: %s is gzipped and neither ISA-L nor zlib is there; install "
                        "one of them or gunzip the file first",
                        source->path);
    default:
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)source->read_bytes,
                           "open trace: %s: damaged gzip before byte %llu of the file; is the "
                           "download or copy complete?",
                           source->path, (unsigned long long)source->read_bytes);
    }
}

/* Fills room with inflated text; *made is 0 at the end only. */
static int read_packed(mtprof__source *source, char *buffer, size_t room, size_t *made)
{
    *made = 0;
    while (*made == 0) {
        if (source->packed_at == source->packed_end) {
            int64_t n = read_file(source, source->packed, PACKED_BYTES);
            if (n < 0) {
                return (int)n;
            }
            source->packed_at = 0;
            source->packed_end = (size_t)n;
        }
        size_t left = source->packed_end - source->packed_at;
        size_t taken = 0;
        int error = mtb_inflate_run(source->inflate, source->packed + source->packed_at, left,
                                    &taken, buffer, room, made);
        source->packed_at += taken;
        if (error != 0) {
            return inflate_failed(source, error);
        }
        if (left == 0 && *made == 0) {
            /* A file that was cut is read as far as it goes; the text tells whether it is whole. */
            return MTPROF_OK;
        }
    }
    return MTPROF_OK;
}

static int read_some(mtprof__source *source, char *buffer, size_t room, size_t *made)
{
    if (source->inflate != NULL) {
        return read_packed(source, buffer, room, made);
    }
    int64_t n = 0;
    if (source->fd >= 0) {
        n = read_file(source, buffer, room);
        if (n < 0) {
            return (int)n;
        }
    } else {
        size_t left = source->packed_end - source->packed_at;
        n = (int64_t)(left < room ? left : room);
        memcpy(buffer, source->packed + source->packed_at, (size_t)n);
        source->packed_at += (size_t)n;
        source->read_bytes += (uint64_t)n;
    }
    *made = (size_t)n;
    return MTPROF_OK;
}

int mtprof__source_fill(mtprof__source *source)
{
    if (source->begin > 0) {
        memmove(source->window, source->window + source->begin, source->end - source->begin);
        source->offset += source->begin;
        source->end -= source->begin;
        source->begin = 0;
    } else if (source->end == source->capacity) {
        if (source->capacity >= MTPROF__SOURCE_MOST) {
            return mtb_fail_at(MTPROF_ENOTSUP, (int64_t)source->offset,
                               "open trace: %s: the item at byte %llu is larger than %u MiB",
                               source->path, (unsigned long long)source->offset,
                               MTPROF__SOURCE_MOST >> 20);
        }
        MT_TRY(resize_window(source, source->capacity * 2));
    }
    while (source->end < source->capacity && !source->ended) {
        size_t made = 0;
        MT_TRY(
            read_some(source, source->window + source->end, source->capacity - source->end, &made));
        source->ended = made == 0;
        source->end += made;
    }
    /* json_scan.h J1 */
    source->window[source->end] = '"';
    memset(source->window + source->end + 1, 0, MTB_SCAN_PAD);
    return MTPROF_OK;
}

static int open_file(mtprof__source *source)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. Regular files ignore it. */
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (source->fd < 0 || fstat(source->fd, &info) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "open trace: %s", source->path);
    }
    if (!S_ISREG(info.st_mode)) {
        return mtb_fail(MTPROF_EIO, "open trace: %s is %s, expected a regular file", source->path,
                        S_ISDIR(info.st_mode) ? "a directory" : "no file on disk");
    }
    source->file_bytes = (uint64_t)info.st_size;
    return MTPROF_OK;
}

static int open_packed(mtprof__source *source)
{
    unsigned char head[4];
    size_t n = mtprof__source_head(source, head, sizeof head);
    if (!mtb_gzip_is(head, n)) {
        return MTPROF_OK;
    }
    source->packed = mtb_calloc(PACKED_BYTES, 1);
    if (source->packed == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: no memory for %d bytes", source->path,
                        PACKED_BYTES);
    }
    int error = mtb_inflate_open(&source->inflate);
    return error == 0 ? MTPROF_OK : inflate_failed(source, error);
}

int mtprof__source_open(mtprof__source *source, const char *path)
{
    *source = (mtprof__source){.path = path, .fd = -1};
    MT_TRY(open_file(source));
    MT_TRY(open_packed(source));
    return resize_window(source, MTPROF__SOURCE_BYTES);
}

int mtprof__source_open_memory(mtprof__source *source, const char *path, const void *bytes,
                               size_t length)
{
    *source = (mtprof__source){.path = path, .fd = -1, .file_bytes = length};
    /* A copy, so that a reader past its end is found by a sanitizer. */
    source->packed = mtb_calloc(length + 1, 1);
    if (source->packed == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: no memory for %zu bytes", source->path,
                        length);
    }
    memcpy(source->packed, bytes, length);
    source->packed_end = length;
    /* Small, so that items meet the window's edge. */
    return resize_window(source, 64);
}

void mtprof__source_close(mtprof__source *source)
{
    mtb_inflate_close(source->inflate);
    mtb_free(source->packed);
    mtb_free(source->window);
    if (source->fd >= 0) {
        close(source->fd);
    }
    *source = (mtprof__source){.fd = -1};
}

size_t mtprof__source_head(const mtprof__source *source, void *buffer, size_t length)
{
    ssize_t n = pread(source->fd, buffer, length, 0);
    return n > 0 ? (size_t)n : 0;
}
