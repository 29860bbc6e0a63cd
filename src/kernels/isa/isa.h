/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop, several instruction sets. Files in src/kernels/isa are compiled once for each level
 * (cmake/kernels.cmake) with MT_ISA_LEVEL set; their symbols are named MT_ISA(name), so that
 * binary_add_v3 and binary_add_v4 can coexist. The caller picks one:
 *
 *     extern const mt__loop_fn mt__loops_binary_base, mt__loops_binary_v3, mt__loops_binary_v4;
 *     MT_ISA_PICK(mt__loops_binary)                        the best that this processor runs
 *
 * Levels are x86-64's: base, v3 (AVX2, FMA), v4 (AVX-512). Other machines have only base.
 */
#ifndef KERNELS_ISA_ISA_H
#define KERNELS_ISA_ISA_H

#define MT_ISA_I_JOIN(name, level)   name##_##level
#define MT_ISA_I_EXPAND(name, level) MT_ISA_I_JOIN(name, level)

#ifdef MT_ISA_LEVEL /* base, v3 or v4 */
#    define MT_ISA(name) MT_ISA_I_EXPAND(name, MT_ISA_LEVEL)
#endif

typedef enum mt__isa {
    MT_ISA_BASE,
    MT_ISA_V3,
    MT_ISA_V4
} mt__isa;

/* The best level of this processor, determined once. mt__isa_limit() lowers it, for tests. */
mt__isa mt__isa_level(void);
void mt__isa_limit(mt__isa level);

#if defined(__x86_64__)
#    define MT_ISA_PICK(name)                                     \
        (mt__isa_level() == MT_ISA_V4   ? MT_ISA_I_JOIN(name, v4) \
         : mt__isa_level() == MT_ISA_V3 ? MT_ISA_I_JOIN(name, v3) \
                                        : MT_ISA_I_JOIN(name, base))
#else
#    define MT_ISA_PICK(name) (mt__isa_level(), MT_ISA_I_JOIN(name, base))
#endif

#endif /* KERNELS_ISA_ISA_H */
