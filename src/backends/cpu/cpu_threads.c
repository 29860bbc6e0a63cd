/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads the host's kernels use.
 */
#include "kernels/walk/parallel.h"

#include <mindtorch/device.h>
#include <mindtorch/status.h>

mt_status mt_set_num_threads(uint32_t count)
{
    if (count == 0) {
        return mt_fail(MT_ERUNTIME, "set_num_threads expects a positive integer");
    }
    mt__parallel_set_threads(count);
    return MT_OK;
}

uint32_t mt_num_threads(void)
{
    return mt__parallel_threads();
}
