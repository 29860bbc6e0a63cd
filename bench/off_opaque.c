/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_off.h"

uint64_t off_opaque(uint64_t value)
{
    return value + 1;
}
