/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold whatever the input is.
 */
#ifndef FUZZ_FUZZ_REQUIRE_H
#define FUZZ_FUZZ_REQUIRE_H

#include <stdbool.h>

static inline void require(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

#endif /* FUZZ_FUZZ_REQUIRE_H */
