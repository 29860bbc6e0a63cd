/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes loops out of expressions. x y z are the elements of the inputs, s0 s1 the call's scalars in
 * the type of the inputs; `flags` is what the loop returns.
 *
 * The loops say "ivdep", not "restrict": an output that is its own input (x += 1) is allowed, and
 * no element depends on another.
 */
#ifndef KERNELS_ISA_POINTWISE_LOOP_BODY_H
#define KERNELS_ISA_POINTWISE_LOOP_BODY_H

#include "base/compiler.h"
#include "kernels/isa/pointwise/loops.h"

#ifndef MT_ISA
#    error "files in src/kernels/isa are compiled with MT_ISA_LEVEL"
#endif

#if defined(__clang__)
#    pragma clang diagnostic ignored "-Wpass-failed" /* loops around libm stay as they are */
#    define MT_I_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#    define MT_I_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

/* For memory-bound loops: registers of half the width are a little faster there. */
#if defined(__AVX512F__) && !defined(__clang__)
#    define MT_I_NARROW __attribute__((target("prefer-vector-width=256")))
#else
#    define MT_I_NARROW
#endif

/* What every loop begins with. `family`: real or integer, which scalars it takes. */
#define MT_I_LOOP_BEGIN(out_type, in_type, family) \
    const in_type s0 = (in_type)params->family[0]; \
    const in_type s1 = (in_type)params->family[1]; \
    uint32_t flags = 0;                            \
    __typeof__(out_type) *out = arrays[0];         \
    (void)s0;                                      \
    (void)s1;

#define MT_LOOP1(name, out_type, in_type, family, expression)                           \
    static uint32_t name(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                   \
        MT_I_LOOP_BEGIN(out_type, in_type, family)                                      \
        const in_type *a = arrays[1];                                                   \
        MT_I_VECTOR_LOOP                                                                \
        for (int64_t i = 0; i < n; i++) {                                               \
            const in_type x = a[i];                                                     \
            (void)x;                                                                    \
            out[i] = (out_type)(expression);                                            \
        }                                                                               \
        return flags;                                                                   \
    }

#define MT_I_EACH2(out_type, first, second, expression) \
    MT_I_VECTOR_LOOP                                    \
    for (int64_t i = 0; i < n; i++) {                   \
        const __typeof__(*a) x = first;                 \
        const __typeof__(*a) y = second;                \
        out[i] = (out_type)(expression);                \
    }

#define MT_LOOP2(name, out_type, in_type, family, expression)                           \
    static uint32_t name(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                   \
        MT_I_LOOP_BEGIN(out_type, in_type, family)                                      \
        const in_type *a = arrays[1];                                                   \
        const in_type *b = arrays[2];                                                   \
        MT_I_EACH2(out_type, a[i], b[i], expression)                                    \
        return flags;                                                                   \
    }

/* For memory-bound loops: narrow, and with a separate loop for each input that may be one
 * element. */
#define MT_LOOP2_CHEAP(name, out_type, in_type, family, expression)  \
    MT_I_NARROW static uint32_t name(void *const *arrays, int64_t n, \
                                     const mt__loop_params *params)  \
    {                                                                \
        MT_I_LOOP_BEGIN(out_type, in_type, family)                   \
        const in_type *a = arrays[1];                                \
        const in_type *b = arrays[2];                                \
        const in_type a0 = *a;                                       \
        const in_type b0 = *b;                                       \
        if (params->repeats == MT_LOOP_REPEATS_SECOND) {             \
            MT_I_EACH2(out_type, a[i], b0, expression)               \
        } else if (params->repeats == MT_LOOP_REPEATS_FIRST) {       \
            MT_I_EACH2(out_type, a0, b[i], expression)               \
        } else {                                                     \
            MT_I_EACH2(out_type, a[i], b[i], expression)             \
        }                                                            \
        return flags;                                                \
    }

#define MT_LOOP3(name, out_type, first_type, in_type, family, expression)               \
    static uint32_t name(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                   \
        MT_I_LOOP_BEGIN(out_type, in_type, family)                                      \
        const first_type *a = arrays[1];                                                \
        const in_type *b = arrays[2];                                                   \
        const in_type *c = arrays[3];                                                   \
        MT_I_VECTOR_LOOP                                                                \
        for (int64_t i = 0; i < n; i++) {                                               \
            const first_type x = a[i];                                                  \
            const in_type y = b[i];                                                     \
            const in_type z = c[i];                                                     \
            out[i] = (out_type)(expression);                                            \
        }                                                                               \
        return flags;                                                                   \
    }

#endif /* KERNELS_ISA_POINTWISE_LOOP_BODY_H */
