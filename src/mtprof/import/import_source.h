/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a file, plain or gzipped, as a window that moves over it.
 *
 *   file ──read──► [inflate] ──► window: begin … end, then a sentinel (json_scan.h J1)
 *
 * The window is a few MiB; it grows only where a single item of the text does not fit, up to
 * MTPROF__SOURCE_MOST. Why not mmap: the file may be cut while we read it, and a mapping would turn
 * that into SIGBUS.
 */
#ifndef MTPROF_IMPORT_IMPORT_SOURCE_H
#define MTPROF_IMPORT_IMPORT_SOURCE_H

#include "base/gzip.h"
#include "base/json/json_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__SOURCE_BYTES = 1 << 20,
    MTPROF__SOURCE_MOST = 1 << 30 /* largest single item */
};

typedef struct mtprof__source {
    const char *path; /* borrowed; for messages */
    int fd;           /* -1: memory */
    uint64_t file_bytes, read_bytes;
    mtb_inflate *inflate; /* NULL: plain */
    unsigned char *packed;
    size_t packed_at, packed_end;

    char *window;
    size_t capacity; /* without sentinel and pad */
    size_t begin, end;
    uint64_t offset; /* of window[0] in the text */
    bool ended;      /* the window holds the last of the text */
} mtprof__source;

/* Opens a regular file. Fails with EIO, ENOMEM, ENOTSUP (gzip without a library for it). */
int mtprof__source_open(mtprof__source *source, const char *path);
/* A text in memory, which is copied piece by piece as from a file. `path` names it in messages. */
int mtprof__source_open_memory(mtprof__source *source, const char *path, const void *bytes,
                               size_t length);
/* Also after a failed open. */
void mtprof__source_close(mtprof__source *source);

/* Moves what is left of the window to its front and reads on; where nothing would fit, the window
 * grows. `ended` tells when there was no more. Fails with EIO, EFORMAT (damaged gzip), ENOMEM,
 * ENOTSUP (an item past MTPROF__SOURCE_MOST). */
int mtprof__source_fill(mtprof__source *source);

/* Up to `length` of the first bytes of the file as they are; for telling what it is. */
size_t mtprof__source_head(const mtprof__source *source, void *buffer, size_t length);

#endif /* MTPROF_IMPORT_IMPORT_SOURCE_H */
