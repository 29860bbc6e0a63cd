/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of begins (docs/format.md 3.2), for recording and reading.
 *
 *     63      56 55          40 39  38                        0
 *    ┌──────────┬──────────────┬───┬───────────────────────────┐
 *    │    0     │     slot     │ x │          ordinal          │   x: given explicitly (BEGIN_X)
 *    └──────────┴──────────────┴───┴───────────────────────────┘
 */
#ifndef MTPROF_FORMAT_KEYS_H
#define MTPROF_FORMAT_KEYS_H

#include "base/compiler.h"

#include <mtprof/format.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    MTPROF__COUNTED_BITS = MTPROF_ORDINAL_BITS - 1, /* of ordinals that are counted */
    MTPROF__KEY_BITS = 16 + MTPROF_ORDINAL_BITS
};

#define MTPROF__EXPLICIT_BIT ((uint64_t)1 << MTPROF__COUNTED_BITS)
#define MTPROF__ORDINAL_MASK (((uint64_t)1 << MTPROF_ORDINAL_BITS) - 1)
#define MTPROF__KEY_MASK     (((uint64_t)1 << MTPROF__KEY_BITS) - 1)

/* The bits of a slot in its keys. */
MT_INLINE uint64_t mtprof__slot_bits(uint16_t slot)
{
    return (uint64_t)slot << MTPROF_ORDINAL_BITS;
}

/* Whether an ordinal is one that counting can reach. */
MT_INLINE bool mtprof__is_counted(uint64_t ordinal)
{
    return ordinal >> MTPROF__COUNTED_BITS == 0;
}

#endif /* MTPROF_FORMAT_KEYS_H */
