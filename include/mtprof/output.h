/* SPDX-License-Identifier: Apache-2.0
 *
 * Where text and files go: a function that takes bytes.
 *
 *     int fd = STDOUT_FILENO;
 *     mtprof_output out = {.struct_size = sizeof out, .write = mtprof_write_fd, .context = &fd};
 */
#ifndef MTPROF_OUTPUT_H
#define MTPROF_OUTPUT_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Set struct_size. write gets all bytes in order, in pieces of any size. */
typedef struct mtprof_output {
    uint32_t struct_size;
    uint32_t reserved;
    void *context;
    /** 0, or an errno value: the writing ends there, and the caller gets EIO (ENOSPC for a full
     * disk). */
    int (*write)(void *context, const void *bytes, size_t length);
} mtprof_output;

/** The `write` of an output that goes to a file descriptor; context: an int with its number. */
MTPROF_API int mtprof_write_fd(void *context, const void *bytes, size_t length);

MTPROF_END_DECLS

#endif /* MTPROF_OUTPUT_H */
