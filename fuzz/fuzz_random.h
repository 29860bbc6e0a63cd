/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of a mutator. It sets fuzz_random_state to the fuzzer's seed, so that a run can be
 * repeated.
 */
#ifndef FUZZ_FUZZ_RANDOM_H
#define FUZZ_FUZZ_RANDOM_H

#include <stdint.h>

static uint64_t fuzz_random_state;

static inline uint64_t next_random(void)
{
    fuzz_random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = fuzz_random_state;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static inline uint64_t below(uint64_t n)
{
    return n > 0 ? next_random() % n : 0;
}

#endif /* FUZZ_FUZZ_RANDOM_H */
