/* SPDX-License-Identifier: Apache-2.0
 *
 * Where text and files go: a function that takes bytes; and how quantities are written.
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

/* ---- quantities ------------------------------------------------------------------------------ */

/* Times and amounts of memory as the commands, and tables made for terminals, show them: one set of
 * units everywhere. (Tables in torch's layout have torch's.) Numbers have a point in every locale.
 */

enum {
    MTPROF_QUANTITY_BYTES = 32 /**< room for any quantity and its zero */
};

/** Four digits and a unit: "1.234 ms", "12.34 s"; whole nanoseconds below a microsecond: "999 ns".
 * Returns the length. */
MTPROF_API size_t mtprof_duration_text(double ns, char out[MTPROF_QUANTITY_BYTES]);

/** "1.5 MiB"; whole bytes below 1 KiB: "1023 B". Returns the length. */
MTPROF_API size_t mtprof_bytes_text(double bytes, char out[MTPROF_QUANTITY_BYTES]);

MTPROF_END_DECLS

#endif /* MTPROF_OUTPUT_H */
