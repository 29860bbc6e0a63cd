/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instruction set this processor runs, see isa.h.
 */
#include "kernels/isa/isa.h"

#include <stdatomic.h>

/* The level plus one; 0 = not known yet. All threads store the same value, so relaxed is enough. */
static _Atomic int found;

static int ask(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* The features of each level that our loops use. The builtin also checks that the operating
     * system saves the wide registers. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) {
        return MT_ISA_BASE;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl")) {
        return MT_ISA_V3;
    }
    return MT_ISA_V4;
#else
    return MT_ISA_BASE;
#endif
}

mt__isa mt__isa_level(void)
{
    int level = atomic_load_explicit(&found, memory_order_relaxed);
    if (level == 0) {
        level = ask() + 1;
        atomic_store_explicit(&found, level, memory_order_relaxed);
    }
    return (mt__isa)(level - 1);
}

void mt__isa_limit(mt__isa level)
{
    int best = ask();
    int limited = (int)level < best ? (int)level : best;
    atomic_store_explicit(&found, limited + 1, memory_order_relaxed);
}
