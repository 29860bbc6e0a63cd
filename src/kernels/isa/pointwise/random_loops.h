/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of draws and what is made of them, an instruction set at a time; philox.h says which bits.
 */
#ifndef KERNELS_ISA_POINTWISE_RANDOM_LOOPS_H
#define KERNELS_ISA_POINTWISE_RANDOM_LOOPS_H

#include "kernels/isa/isa.h"

#include <stdint.h>

typedef struct mt__random_loops {
    /* Four words a block, in order, from first_block on. */
    void (*words)(uint64_t seed, uint64_t first_block, uint32_t stream, int64_t blocks,
                  uint32_t *words);
    /* n numbers; a, b are the call's scalars. Doubles need `low`. */
    void (*uniform_f32)(const uint32_t *high, int64_t n, double a, double b, float *out);
    void (*uniform_f64)(const uint32_t *high, const uint32_t *low, int64_t n, double a, double b,
                        double *out);
    /* n is even and the first draw too. */
    void (*normal_f32)(const uint32_t *high, int64_t n, double a, double b, float *out);
    void (*normal_f64)(const uint32_t *high, const uint32_t *low, int64_t n, double a, double b,
                       double *out);
    void (*exponential_f32)(const uint32_t *high, int64_t n, double rate, float *out);
    void (*exponential_f64)(const uint32_t *high, const uint32_t *low, int64_t n, double rate,
                            double *out);
    /* 1 where the word is below the bound (0 .. 2^32). */
    void (*below)(const uint32_t *high, int64_t n, uint64_t bound, uint8_t *out);
} mt__random_loops;

extern const mt__random_loops mt__random_loops_base;
#if defined(__x86_64__)
extern const mt__random_loops mt__random_loops_v3;
extern const mt__random_loops mt__random_loops_v4;
#endif

#endif /* KERNELS_ISA_POINTWISE_RANDOM_LOOPS_H */
