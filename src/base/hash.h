/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashing of bytes and words for tables in memory. Not for files: it may change at any time.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Multiplies two words and folds the 128-bit product: every input bit reaches every output bit. */
MT_INLINE uint64_t mtb_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product =
        (unsigned __int128)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

MT_INLINE uint64_t mtb_hash_words(const uint64_t *words, size_t count)
{
    uint64_t hash = count;
    size_t i = 0;
    for (; i + 1 < count; i += 2) {
        hash = mtb_mix(hash ^ words[i], words[i + 1]);
    }
    return i < count ? mtb_mix(hash, words[i]) : hash;
}

MT_INLINE uint64_t mtb_hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    uint64_t hash = length;
    uint64_t word;
    for (; length >= 8; length -= 8, p += 8) {
        memcpy(&word, p, 8);
        hash = mtb_mix(hash, word);
    }
    word = 0;
    memcpy(&word, p, length);
    return mtb_mix(hash, word);
}

#endif /* BASE_HASH_H */
