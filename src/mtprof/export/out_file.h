/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears at its path complete or not at all.
 *
 *     open ─► write … ─► close ─► commit          commit: rename over the path
 *        └────────┴─────────┴──► abandon          abandon: the path is unchanged
 *
 * If the path exists and is not a regular file (a pipe, a terminal, /dev/stdout), it is written
 * directly: then commit and abandon do nothing. Links and permissions: base/new_file.h.
 */
#ifndef MTPROF_EXPORT_OUT_FILE_H
#define MTPROF_EXPORT_OUT_FILE_H

#include "base/new_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__out_file {
    mtb_new_file file; /* not `aside`: its descriptor alone */
    char *name;        /* the path as the caller gave it, for messages */
    bool aside;        /* not written at the path itself */
    uint64_t bytes;    /* written so far */
    uint64_t reserved; /* room on the disk taken ahead of what is written, from the beginning */
    bool as_it_comes;  /* no room can be taken ahead */
} mtprof__out_file;

/* The status for an errno value of writing: ENOSPC, ENOMEM or EIO. */
int mtprof__write_status(int error);

/* Fails with EIO, ENOSPC, ENOMEM; then nothing is left to be done. direct: write the path itself.
 */
int mtprof__out_file_open(mtprof__out_file *file, const char *path, bool direct);

/* A sink: `file` is an mtprof__out_file. 0 or an errno value. */
int mtprof__out_file_write(void *file, const void *bytes, size_t length);

/* Fails with EIO, ENOSPC: some file systems report a full disk only now. */
int mtprof__out_file_close(mtprof__out_file *file);

/* Puts a closed file into its place, and ends it. Fails with EIO, ENOSPC. */
int mtprof__out_file_commit(mtprof__out_file *file);

/* Ends it in any state, also after a failure; the path is as it was. */
void mtprof__out_file_abandon(mtprof__out_file *file);

#endif /* MTPROF_EXPORT_OUT_FILE_H */
