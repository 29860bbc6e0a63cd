/* SPDX-License-Identifier: Apache-2.0
 */
#include "mindtorch/trace/flops.h"

#include "base/compiler.h"
#include "base/flops.h"

#include <mindtorch/tensor.h>

uint64_t mt__flops_of(uint32_t rule, const mt_value *args, uint32_t n_args)
{
    mtb_flops_input inputs[MTB_FLOPS_INPUTS] = {{0}};
    uint32_t n = n_args < MTB_FLOPS_INPUTS ? n_args : MTB_FLOPS_INPUTS;
    if (MT_LIKELY(rule == MTB_FLOPS_NONE)) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (args[i].kind == MT_KIND_TENSOR && args[i].of.tensor != NULL) {
            inputs[i].sizes = mt_tensor_sizes(args[i].of.tensor);
            inputs[i].n_sizes = mt_tensor_n_dims(args[i].of.tensor);
        } else if (args[i].kind == MT_KIND_INTS) {
            inputs[i].integers = args[i].of.ints;
            inputs[i].n_integers = args[i].count;
        }
    }
    return mtb_count_flops((mtb_flops)rule, inputs, n);
}
