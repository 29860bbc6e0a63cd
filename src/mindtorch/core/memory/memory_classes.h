/* SPDX-License-Identifier: Apache-2.0
 *
 * Size classes of the allocator: multiples of 64 bytes up to 512, then eight steps to each power of
 * two, so that at most an eighth of a large block is unused.
 */
#ifndef MINDTORCH_CORE_MEMORY_MEMORY_CLASSES_H
#define MINDTORCH_CORE_MEMORY_MEMORY_CLASSES_H

#include "base/compiler.h"

#define MT_LARGEST_BLOCK ((uint64_t)1 << 61)

enum {
    MT_SIZE_CLASSES = 8 + 53 * 8 /* 9 is the exponent of the first steps, 61 that of the last */
};

/* 1 <= bytes <= MT_LARGEST_BLOCK and a little */
MT_INLINE uint32_t mt__class_of(uint64_t bytes)
{
    if (MT_LIKELY(bytes <= 512)) {
        return (uint32_t)((bytes - 1) >> 6);
    }
    uint32_t exponent = 63U - (uint32_t)__builtin_clzll(bytes - 1);
    uint32_t step = (uint32_t)((bytes - 1) >> (exponent - 3)) & 7U;
    return 8 + (exponent - 9) * 8 + step;
}

MT_INLINE uint64_t mt__class_bytes(uint32_t block_class)
{
    if (MT_LIKELY(block_class < 8)) {
        return (uint64_t)(block_class + 1) << 6;
    }
    uint32_t exponent = 9 + (block_class - 8) / 8;
    return (uint64_t)(9 + (block_class - 8) % 8) << (exponent - 3);
}

#endif /* MINDTORCH_CORE_MEMORY_MEMORY_CLASSES_H */
