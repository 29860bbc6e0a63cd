/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that may be a trace: its first bytes show what it is. Opening, importing and checking all
 * use this.
 *
 *   file ──► first bytes: native | JSON | gzip | other
 *        └─► text: the bytes of the file, unpacked where they are gzipped
 */
#ifndef MTPROF_READ_ANY_FILE_H
#define MTPROF_READ_ANY_FILE_H

#include "base/gzip.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mtprof__file_kind {
    MTPROF__FILE_OTHER = 0,
    MTPROF__FILE_NATIVE, /* the magic, or zeros: a process died before it wrote the header */
    MTPROF__FILE_JSON,   /* white space, then a bracket */
    MTPROF__FILE_GZIP
};

typedef struct mtprof__any_file {
    const char *task; /* begins messages: "open trace", "check" */
    const char *path; /* borrowed; for messages */
    int fd;           /* -1: memory */
    uint32_t kind;    /* enum mtprof__file_kind */
    unsigned char head[16];
    size_t n_head;
    uint64_t file_bytes, read_bytes;
    mtb_inflate *inflate; /* NULL: plain */
    unsigned char *packed;
    size_t packed_at, packed_end;
    bool damaged; /* gzip, after what has been read */
} mtprof__any_file;

/* Opens a regular file and looks at its first bytes. Fails with EIO. */
int mtprof__any_file_open(mtprof__any_file *file, const char *task, const char *path);
/* A plain text in memory, which is copied: a reader past its end is found by a sanitizer. */
int mtprof__any_file_open_memory(mtprof__any_file *file, const char *task, const char *path,
                                 const void *bytes, size_t length);
/* Also after a failed open. */
void mtprof__any_file_close(mtprof__any_file *file);

/* Before the first read. Fails with ENOMEM, ENOTSUP (gzip without a library for it). */
int mtprof__any_file_begin(mtprof__any_file *file);
/* Reads text; *made is 0 at the end only. A gzipped file that was cut ends early without a failure:
 * see mtb_inflate_is_whole(). Fails with EIO, ENOMEM, EFORMAT (`damaged` is set). */
int mtprof__any_file_read(mtprof__any_file *file, void *buffer, size_t room, size_t *made);

#endif /* MTPROF_READ_ANY_FILE_H */
