/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and differences of 64-bit numbers that come from files: a result that does not fit is
 * replaced by the nearest number that does. Use these wherever a time, a duration or a count was
 * read from a trace, since a well-formed trace may hold any value.
 *
 * Times of a model are within MTB_TIME_MOST of 0 (146 years of nanoseconds), so the difference of
 * two, and the sum of a time and an offset, always fit; sums of durations need not.
 */
#ifndef BASE_SATURATE_H
#define BASE_SATURATE_H

#include "base/compiler.h"

#include <stdint.h>

#define MTB_TIME_MOST (((int64_t)1 << 62) - 1)

MT_INLINE int64_t mtb_bound_time(int64_t ns)
{
    return ns > MTB_TIME_MOST ? MTB_TIME_MOST : ns < -MTB_TIME_MOST ? -MTB_TIME_MOST : ns;
}

MT_INLINE int64_t mtb_add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

MT_INLINE int64_t mtb_sub_sat(int64_t a, int64_t b)
{
    int64_t difference;
    return !__builtin_sub_overflow(a, b, &difference) ? difference : a < 0 ? INT64_MIN : INT64_MAX;
}

/* Less than 0, 0 or more than 0, for qsort(): which of two numbers of one type comes first. */
MT_INLINE uint64_t mtb_add_counts(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

#define mtb_order(a, b) (((a) > (b)) - ((a) < (b)))

#endif /* BASE_SATURATE_H */
