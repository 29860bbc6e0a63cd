/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a file of step summaries: each record with one write at the end of the file, which is
 * locked. A recorder that finds a file of an earlier one goes on behind it.
 *
 *   SFI1  A record that could not be written completely is cut off again, so that the next one
 *         follows the last complete one.
 *   SFI2  A file that would grow beyond its bound becomes PATH.old, in place of an earlier one, and
 *         a new one begins: both together stay below the bound.
 */
#ifndef MTPROF_STEPS_STEPS_FILE_H
#define MTPROF_STEPS_STEPS_FILE_H

#include <mtprof/flight.h>

typedef struct mtprof__steps_file {
    int fd;
    uint64_t end;
    uint64_t half; /* SFI2: most bytes of one file */
    uint64_t pid;
    int64_t start_ns, start_real_ns;
    char path[1024];
} mtprof__steps_file;

/* Fails with EIO, EFORMAT (it is another file), EBUSY (another process writes it), ENOSPC. */
mtprof_status mtprof__steps_file_open(mtprof__steps_file *file, const char *path,
                                      uint64_t most_bytes);
/* `run` and start_real_ns of the summary are ignored. Fails with EIO, ENOSPC. */
mtprof_status mtprof__steps_file_add(mtprof__steps_file *file, const mtprof_step_summary *summary);
void mtprof__steps_file_close(mtprof__steps_file *file);

#endif /* MTPROF_STEPS_STEPS_FILE_H */
