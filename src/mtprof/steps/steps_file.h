/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a file of step summaries: records are gathered and written at the end of the file, which
 * is locked, with one write. A recorder that finds a file of an earlier one goes on behind it.
 *
 *   SFI1  Records that could not be written completely are cut off again, so that the next ones
 *         follow the last complete one.
 *   SFI2  A file that would grow beyond its bound becomes PATH.old, in place of an earlier one, and
 *         a new one begins: both together stay below the bound.
 */
#ifndef MTPROF_STEPS_STEPS_FILE_H
#define MTPROF_STEPS_STEPS_FILE_H

#include <mtprof/flight.h>

#include <stdbool.h>

enum {
    MTPROF__STEPS_GATHERED = 8 * MTPROF_STEPS_RECORD_BYTES
};

typedef struct mtprof__steps_file {
    int fd;
    uint64_t end;
    uint64_t half; /* SFI2: most bytes of one file */
    uint64_t pid;
    int64_t start_ns, start_real_ns;
    char path[1024];
    size_t gathered;
    _Alignas(8) char records[MTPROF__STEPS_GATHERED];
} mtprof__steps_file;

/* Fails with EIO, EFORMAT (it is another file), EBUSY (another process writes it), ENOSPC. */
mtprof_status mtprof__steps_file_open(mtprof__steps_file *file, const char *path,
                                      uint64_t most_bytes);
/* Whether another summary must be preceded by a write. */
bool mtprof__steps_file_is_full(const mtprof__steps_file *file);
/* Gathers a summary; `run` and start_real_ns of it are ignored. The file must not be full. */
void mtprof__steps_file_add(mtprof__steps_file *file, const mtprof_step_summary *summary);
/* Writes what was gathered; where that fails, all of it is lost. Fails with EIO, ENOSPC. */
mtprof_status mtprof__steps_file_write(mtprof__steps_file *file);
/* What was gathered and not written is lost. */
void mtprof__steps_file_close(mtprof__steps_file *file);

#endif /* MTPROF_STEPS_STEPS_FILE_H */
