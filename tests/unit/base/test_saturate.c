/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that saturates, against the same in 128 bits.
 */
#include "base/saturate.h"
#include "harness/mt_test.h"

static int64_t clamp(__int128 exact)
{
    return exact < INT64_MIN ? INT64_MIN : exact > INT64_MAX ? INT64_MAX : (int64_t)exact;
}

TEST(results_are_exact_or_the_nearest_that_fits)
{
    static const int64_t values[] = {INT64_MIN,
                                     INT64_MIN + 1,
                                     INT64_MIN / 2,
                                     -4000000000,
                                     -1,
                                     0,
                                     1,
                                     2,
                                     3037000500,
                                     INT64_MAX / 2,
                                     INT64_MAX - 1,
                                     INT64_MAX,
                                     INT64_MAX / 3,
                                     1000000000000000,
                                     -1000,
                                     1000};
    for (size_t i = 0; i < MT_COUNT(values); i++) {
        for (size_t j = 0; j < MT_COUNT(values); j++) {
            __int128 a = values[i];
            __int128 b = values[j];
            CHECK_EQ_I64(mtb_add_sat(values[i], values[j]), clamp(a + b));
            CHECK_EQ_I64(mtb_sub_sat(values[i], values[j]), clamp(a - b));
        }
    }
}
