/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a trace as the reader sees them: a caller's mtprof_bytes, or a file.
 *
 * Threads: reads may run on several threads at once; opening and closing belong to one.
 */
#ifndef MTPROF_READ_TRACE_BYTES_H
#define MTPROF_READ_TRACE_BYTES_H

#include <mtprof/reader.h>

#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are handed out where they lie, and the format is little-endian");

typedef struct mtprof__bytes {
    mtprof_bytes calls;
    /* (optional) The first offset from the given one on that may hold a byte other than zero. Lets
     * the chunk index cross the holes of a sparse file without reading them. */
    uint64_t (*next_data)(void *context, uint64_t offset);
} mtprof__bytes;

/* Copies the caller's struct, no byte past its struct_size. Fails with EINVAL, and then *out still
 * has the close function if there was one. */
int mtprof__bytes_init(mtprof__bytes *out, const mtprof_bytes *calls);

/* Opens a regular file: its descriptor (-1: none), and its size. `task` begins the message. Fails
 * with EIO. */
int mtprof__open_regular(const char *task, const char *path, int *fd, uint64_t *size);
/* pread, again where a signal came. */
int64_t mtprof__read_at(int fd, void *buffer, size_t length, uint64_t offset);
/* Opens a regular file for pread. Fails with EIO, ENOMEM. */
int mtprof__bytes_open_file(mtprof__bytes *out, const char *path);

/*
 * Reads length bytes at offset; *got is smaller only at the end of the trace. Fails with EIO, and
 * the failure has the offset.
 */
int mtprof__bytes_read(const mtprof__bytes *bytes, uint64_t offset, void *buffer, size_t length,
                       size_t *got);

uint64_t mtprof__bytes_size(const mtprof__bytes *bytes);

/* Whether a recorder holds the lock of the file: 1, 0, or -1 where that cannot be told (no file, or
 * no locks). */
int mtprof__bytes_is_locked(const mtprof__bytes *bytes);

/* Calls the caller's close, if there is one, and forgets it. */
void mtprof__bytes_close(mtprof__bytes *bytes);

#endif /* MTPROF_READ_TRACE_BYTES_H */
