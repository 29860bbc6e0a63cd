/* SPDX-License-Identifier: Apache-2.0
 *
 * Public structs begin with `uint32_t struct_size`, which the caller sets: the caller may have been
 * compiled with an older or a newer header. No byte past struct_size is read or written.
 */
#ifndef BASE_STRUCT_SIZE_H
#define BASE_STRUCT_SIZE_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

MT_INLINE void mtb_struct_in(void *own, size_t own_bytes, const void *given, uint32_t given_bytes)
{
    memset(own, 0, own_bytes);
    memcpy(own, given, given_bytes < own_bytes ? given_bytes : own_bytes);
}

MT_INLINE void mtb_struct_out(void *given, uint32_t given_bytes, const void *own, size_t own_bytes)
{
    size_t n = given_bytes < own_bytes ? given_bytes : own_bytes;
    size_t head = sizeof(uint32_t);
    if (n > head) {
        memcpy((char *)given + head, (const char *)own + head, n - head);
    }
}

/* Copies the caller's struct to *own; fields that it does not have are 0. */
#define mtb_read_struct(own, given) \
    mtb_struct_in((own), sizeof *(own), (given), (given)->struct_size)

/* Copies *own to the caller's struct, whose struct_size stays. */
#define mtb_write_struct(given, own) \
    mtb_struct_out((given), (given)->struct_size, (own), sizeof *(own))

#endif /* BASE_STRUCT_SIZE_H */
