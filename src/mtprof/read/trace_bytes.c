/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading whole ranges through a caller's functions, which are trusted to be callable and with
 * nothing else: a count that cannot be is an input/output error, not a memory error.
 */
#include "mtprof/read/trace_bytes.h"

#include "base/fail.h"
#include "base/struct_size.h"

#include <errno.h>
#include <string.h>

int mtprof__bytes_init(mtprof__bytes *out, const mtprof_bytes *calls)
{
    memset(out, 0, sizeof *out);
    mtb_read_struct(&out->calls, calls);
    if (out->calls.read == NULL || out->calls.size == NULL) {
        return mtb_fail(MTPROF_EINVAL,
                        "open trace: struct_size %u leaves no read and size function, expected %zu",
                        calls->struct_size, sizeof out->calls);
    }
    return MTPROF_OK;
}

int mtprof__bytes_read(const mtprof__bytes *bytes, uint64_t offset, void *buffer, size_t length,
                       size_t *got)
{
    char *to = buffer;
    *got = 0;
    while (*got < length) {
        uint64_t at = offset + *got;
        int64_t n = bytes->calls.read(bytes->calls.context, at, to + *got, length - *got);
        if (n == 0) {
            break;
        }
        if (n < 0 || (uint64_t)n > length - *got) {
            int cause = n < 0 && n >= -4095 ? (int)-n : EIO;
            mtb_fail_errno(MTPROF_EIO, cause, "read trace: %zu bytes at %llu", length - *got,
                           (unsigned long long)at);
            mtb_last_failure()->offset = (int64_t)at;
            return MTPROF_EIO;
        }
        *got += (size_t)n;
    }
    return MTPROF_OK;
}

uint64_t mtprof__bytes_size(const mtprof__bytes *bytes)
{
    /* Offsets are signed in pread and in mtprof_error, so that nothing lies beyond INT64_MAX. */
    uint64_t size = bytes->calls.size(bytes->calls.context);
    return size < INT64_MAX ? size : INT64_MAX;
}

void mtprof__bytes_close(mtprof__bytes *bytes)
{
    void (*close)(void *) = bytes->calls.close;
    bytes->calls.close = NULL;
    if (close != NULL) {
        close(bytes->calls.context);
    }
}
