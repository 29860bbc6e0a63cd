/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow types: those that kernels compute with in a wider type, to which elements are converted
 * when they are read, and rounded once (integers: wrapped) when they are written.
 *
 *      float16, bfloat16     float32
 *      int8, int16, uint16   int32
 *      uint32                int64
 *
 * Three places do it, so that no kernel has a copy for such a type:
 *      mt__pointwise_narrow()   a tile at a time, in the first-level cache
 *      fold_run.c               a block at a time
 *      mt__run_widened()        whole tensors, around any other kernel
 */
#ifndef KERNELS_WALK_NARROW_H
#define KERNELS_WALK_NARROW_H

#include "kernels/isa/pointwise/loops.h"

/* The type that kernels compute in; the type itself where it is not narrow. */
extern const uint8_t mt__wide_types[MT_DTYPE_COUNT];

static inline uint32_t mt__wide_type(uint32_t dtype)
{
    return mt__wide_types[dtype];
}

static inline bool mt__is_narrow(uint32_t dtype)
{
    return mt__wide_types[dtype] != dtype;
}

/* The loop that converts elements of a type to another. */
mt__loop_fn *mt__convert_loop(uint32_t from, uint32_t to);

/* mt__pointwise() with a loop for the wide types of `arrays`; `direct`: one for their own type, or
 * NULL. It supports `repeats`. */
uint32_t mt__pointwise_narrow(const mt_array *arrays, int32_t count, mt__loop_fn *loop,
                              mt__loop_fn *direct, const mt__loop_params *params, int64_t grain);

typedef int mt__kernel_body(const mt_kernel_call *call);

bool mt__has_narrow(const mt_kernel_call *call);

/* Runs a kernel on copies of its narrow tensors in their wide types. `written`: those that it
 * writes (bit i: tensor i), `kept`: those of them that it reads too. MT_ENOMEM. */
int mt__run_widened(const mt_kernel_call *call, mt__kernel_body *run, uint32_t written,
                    uint32_t kept);

#endif /* KERNELS_WALK_NARROW_H */
