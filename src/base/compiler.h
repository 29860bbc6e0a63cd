/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiler marks, small integer helpers and a search, used everywhere under src/.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <assert.h>
#include <stdbool.h>
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

/* The place of the first of n items that is not before the key; n where all are. `is_before` is
 * inlined. */
MT_INLINE size_t mtb_search(const void *items, size_t n, size_t item_bytes,
                            bool (*is_before)(const void *item, uint64_t key), uint64_t key)
{
    size_t from = 0;
    size_t to = n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (is_before((const char *)items + middle * item_bytes, key)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

#endif /* BASE_COMPILER_H */
