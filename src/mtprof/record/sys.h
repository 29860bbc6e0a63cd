/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls by which a store grows, behind pointers, so that tests can make them refuse:
 * a file system without mmap or locks, a full disk, no memory.
 */
#ifndef MTPROF_RECORD_SYS_H
#define MTPROF_RECORD_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct mtprof__sys {
    /* As mmap for reading and writing; fd < 0: private anonymous memory. MAP_FAILED on failure. */
    void *(*map)(size_t bytes, int fd, off_t offset);
    /* As posix_fallocate: 0 or an error number. Never raises SIGXFSZ. */
    int (*allocate)(int fd, off_t offset, off_t bytes);
    /* As pwrite, but complete: 0 or an error number. */
    int (*write)(int fd, const void *bytes, size_t length, off_t offset);
    /* As flock. */
    int (*lock)(int fd, int operation);
} mtprof__sys;

/* What the recorder calls; tests exchange the pointers and put them back. */
extern mtprof__sys mtprof__system;
extern const mtprof__sys mtprof__system_default;

#endif /* MTPROF_RECORD_SYS_H */
