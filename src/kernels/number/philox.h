/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of this library, bit by bit, so that every device gives the same ones.
 *
 * Philox 4x32-10 (Salmon et al., 2011) turns a key of two words and a counter of four into four
 * words. A generator has a seed and counts draws; draw d has two words of 32 bits:
 *
 *      key      { low word of the seed, high word of the seed }
 *      counter  { low word of d / 4, high word of d / 4, stream, 0 }
 *      word     d mod 4 of the four that come out: stream 0 gives `high`, stream 1 gives `low`
 *      wide     high * 2^32 + low
 *
 * What is made of a draw, each step rounded to nearest: in float for float32, float16 and bfloat16
 * (which are then rounded), in double for float64:
 *
 *      UNIFORM      float   u = (high >> 8) * 2^-24
 *                   double  u = (wide >> 11) * 2^-53
 *                   x = from + u * (to - from), this step in double for float too; the largest
 *                   number below `to` where that gives `to`
 *      NORMAL       of the pair of draws d and d ^ 1, e the even and o the odd one:
 *                   float   u = ((high(e) >> 1) + 0.5) * 2^-31, v = (high(o) >> 8) * 2^-24
 *                   double  u = ((wide(e) >> 11) + 0.5) * 2^-53, v = (wide(o) >> 11) * 2^-53
 *                   r = sqrt(-2 log u), a = 2 pi v; z = r cos a for the even draw, r sin a for the
 *                   odd one; x = mean + deviation * z
 *      INTEGER      from + high half of the 128-bit product wide * (to - from), modulo 2^64
 *      BERNOULLI    1 where high < p * 2^32, p * 2^32 rounded up to a whole number
 *      EXPONENTIAL  float   u = ((high >> 9) + 0.5) * 2^-23
 *                   double  u = ((wide >> 12) + 0.5) * 2^-52
 *                   x = -log(u) / rate, never 0
 *      DROPOUT      kept where high >= p * 2^32 (as above); then in * (1 / (1 - p))
 *      RANDPERM     0 .. n - 1 in order; for i = 0 .. n - 2 element i is exchanged with element
 *                   i + high half of wide(draw i) * (n - i)
 *
 * UNIFORM of float32, INTEGER, BERNOULLI, DROPOUT and RANDPERM are the same to the bit everywhere.
 * Where logarithms and roots take part the last bits depend on the device's functions.
 */
#ifndef KERNELS_NUMBER_PHILOX_H
#define KERNELS_NUMBER_PHILOX_H

#include "base/compiler.h"

#include <stdint.h>

MT_INLINE void mt__philox(uint64_t seed, const uint32_t counter[4], uint32_t words[4])
{
    uint32_t key0 = (uint32_t)seed;
    uint32_t key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)c0 * 0xd2511f53U;
        uint64_t second = (uint64_t)c2 * 0xcd9e8d57U;
        c0 = (uint32_t)(second >> 32) ^ c1 ^ key0;
        c2 = (uint32_t)(first >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)second;
        c3 = (uint32_t)first;
        key0 += 0x9e3779b9U;
        key1 += 0xbb67ae85U;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

/* The `wide` word of one draw. */
static inline uint64_t mt__draw_wide(uint64_t seed, uint64_t draw)
{
    uint32_t high[4], low[4];
    uint64_t block = draw >> 2;
    mt__philox(seed, (uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), 0, 0}, high);
    mt__philox(seed, (uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), 1, 0}, low);
    return (uint64_t)high[draw & 3U] << 32 | low[draw & 3U];
}

/* The high half of the product. */
static inline uint64_t mt__multiply_high(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* p * 2^32 rounded up; p outside of 0 .. 1 counts as the nearer end. */
static inline uint64_t mt__probability_bound(double p)
{
    if (!(p > 0.0)) {
        return 0;
    }
    double scaled = p * 0x1p32;
    if (scaled >= 0x1p32) {
        return UINT64_C(1) << 32;
    }
    uint64_t whole = (uint64_t)scaled;
    return whole + ((double)whole < scaled);
}

#endif /* KERNELS_NUMBER_PHILOX_H */
