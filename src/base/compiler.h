/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiler marks and small integer helpers used everywhere under src/.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define MT_LIKELY(x)    __builtin_expect(!!(x), 1)
#define MT_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define MT_NOINLINE     __attribute__((noinline))
#define MT_COLD         __attribute__((noinline, cold))
#define MT_INLINE       static inline __attribute__((always_inline))
#define MT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define MT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Orders the compiler, not the CPU: enough where the other side calls membarrier(). */
#define MT_COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

#if defined(__SANITIZE_THREAD__)
#    define MT_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define MT_TSAN 1
#    endif
#endif
#ifndef MT_TSAN
#    define MT_TSAN 0
#endif

/* For what the code itself guarantees; never for a user's input. */
#if defined(MT_DEBUG) && MT_DEBUG
#    define MT_ASSERT(condition) assert(condition)
#else
#    define MT_ASSERT(condition) ((void)sizeof(condition))
#endif

MT_INLINE uint64_t mtb_round_up(uint64_t value, uint64_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

#endif /* BASE_COMPILER_H */
