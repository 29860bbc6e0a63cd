/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a file, plain or gzipped, as a window that moves over it.
 *
 *   any_file.h ──► window: begin … end, then a sentinel (json_scan.h JSC1)
 *
 * The window is a few MiB; it grows only where a single item of the text does not fit, up to
 * MTPROF__SOURCE_MOST. Why not mmap: the file may be cut while we read it, and a mapping would turn
 * that into SIGBUS.
 */
#ifndef MTPROF_IMPORT_IMPORT_SOURCE_H
#define MTPROF_IMPORT_IMPORT_SOURCE_H

#include "base/json/json_scan.h"
#include "mtprof/read/any_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__SOURCE_BYTES = 1 << 20,
    MTPROF__SOURCE_MOST = 1 << 30 /* largest single item */
};

typedef struct mtprof__source {
    mtprof__any_file file;
    char *window;
    size_t capacity; /* without sentinel and pad */
    size_t begin, end;
    uint64_t offset; /* of window[0] in the text */
    bool ended;      /* the window holds the last of the text */
} mtprof__source;

/* Takes an open file. Fails with ENOMEM, ENOTSUP (gzip without a library for it). */
int mtprof__source_begin(mtprof__source *source, mtprof__any_file *file);
/* A text in memory, which is copied piece by piece as from a file. `path` names it in messages. */
int mtprof__source_open_memory(mtprof__source *source, const char *path, const void *bytes,
                               size_t length);
/* Also after a failure. */
void mtprof__source_close(mtprof__source *source);

/* Moves what is left of the window to its front and reads on; where nothing would fit, the window
 * grows. `ended` is set when there was no more. Fails with EIO, EFORMAT (damaged gzip), ENOMEM,
 * ENOTSUP (an item past MTPROF__SOURCE_MOST). */
int mtprof__source_fill(mtprof__source *source);

#endif /* MTPROF_IMPORT_IMPORT_SOURCE_H */
