/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/fail.h"
#include "mtprof/format/input_words.h"

#include <mtprof/status.h>

static bool is_walk(const mtprof_input_walk *walk)
{
    if (MT_LIKELY(walk->struct_size >= sizeof *walk)) {
        return true;
    }
    mtb_fail(MTPROF_EINVAL, "input walk: struct_size is %u, expected at least %zu",
             walk->struct_size, sizeof *walk);
    return false;
}

bool mtprof_input_next(mtprof_input_walk *walk)
{
    return is_walk(walk) && mtprof__input_next(walk);
}

void mtprof_input_skip(mtprof_input_walk *walk)
{
    if (is_walk(walk)) {
        mtprof__input_skip(walk);
    }
}
