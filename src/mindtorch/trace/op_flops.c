/* SPDX-License-Identifier: Apache-2.0
 */
#include "mindtorch/trace/op_flops.h"

#include "base/compiler.h"
#include "hosts/flops.h"

#include <mindtorch/tensor.h>

uint64_t mt__flops_of(uint32_t rule, const mt_value *args, uint32_t n_args)
{
    host_flops_input inputs[HOST_FLOPS_INPUTS];
    if (MT_LIKELY(rule == HOST_FLOPS_NONE)) {
        return 0;
    }
    if (host_flops_are_elements((host_flops)rule)) {
        bool tensor = n_args > 0 && args[0].kind == MT_KIND_TENSOR && args[0].of.tensor != NULL;
        return tensor ? (uint64_t)mt_tensor_numel(args[0].of.tensor) : 0;
    }
    uint32_t n = host_flops_inputs((host_flops)rule);
    n = n < n_args ? n : n_args;
    for (uint32_t i = 0; i < n; i++) {
        inputs[i] = (host_flops_input){0};
        if (args[i].kind == MT_KIND_TENSOR && args[i].of.tensor != NULL) {
            inputs[i].sizes = mt_tensor_sizes(args[i].of.tensor);
            inputs[i].n_sizes = mt_tensor_n_dims(args[i].of.tensor);
        } else if (args[i].kind == MT_KIND_INTS) {
            inputs[i].integers = args[i].of.ints;
            inputs[i].n_integers = args[i].count;
        }
    }
    return host_count_flops((host_flops)rule, inputs, n);
}
