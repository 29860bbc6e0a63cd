/* SPDX-License-Identifier: Apache-2.0
 */
#include "hosts/flops.h"

#include "base/compiler.h"

static uint64_t product_of_sizes(const host_flops_input *input)
{
    uint64_t product = 1;
    for (uint32_t d = 0; d < input->n_sizes; d++) {
        product *= (uint64_t)input->sizes[d];
    }
    return product;
}

/* 2 B M K N for the matrices at inputs `first` and `first + 1`. */
static uint64_t matrix_product(const host_flops_input *inputs, uint32_t n_inputs, uint32_t first)
{
    const host_flops_input *a = &inputs[first];
    const host_flops_input *b = &inputs[first + 1];
    if (n_inputs < first + 2 || a->n_sizes < 2 || b->n_sizes < 2) {
        return 0;
    }
    return 2 * product_of_sizes(a) * (uint64_t)b->sizes[b->n_sizes - 1];
}

static uint64_t conv2d(const host_flops_input *inputs, uint32_t n_inputs)
{
    const host_flops_input *in = &inputs[0];
    const host_flops_input *weight = &inputs[1];
    if (n_inputs < HOST_FLOPS_INPUTS || in->n_sizes != 4 || weight->n_sizes != 4) {
        return 0;
    }
    const host_flops_input *stride = &inputs[3];
    const host_flops_input *padding = &inputs[4];
    const host_flops_input *dilation = &inputs[5];
    uint64_t positions = 1;
    for (uint32_t d = 0; d < 2; d++) {
        if (stride->n_integers <= d || padding->n_integers <= d || dilation->n_integers <= d ||
            stride->integers[d] <= 0) {
            return 0;
        }
        int64_t reach = dilation->integers[d] * (weight->sizes[2 + d] - 1) + 1;
        int64_t out =
            (in->sizes[2 + d] + 2 * padding->integers[d] - reach) / stride->integers[d] + 1;
        positions *= out > 0 ? (uint64_t)out : 0;
    }
    /* weight is [out, in / groups, kh, kw]: its size has the division by groups in it. */
    return 2 * (uint64_t)in->sizes[0] * positions * product_of_sizes(weight);
}

uint64_t host_count_flops(host_flops rule, const host_flops_input *inputs, uint32_t n_inputs)
{
    if (host_flops_are_elements(rule)) {
        return n_inputs > 0 && inputs[0].sizes != NULL ? product_of_sizes(&inputs[0]) : 0;
    }
    switch (rule) {
    case HOST_FLOPS_MM:
    case HOST_FLOPS_BMM: return matrix_product(inputs, n_inputs, 0);
    case HOST_FLOPS_ADDMM:
    case HOST_FLOPS_BADDBMM: return matrix_product(inputs, n_inputs, 1);
    case HOST_FLOPS_CONV2D: return conv2d(inputs, n_inputs);
    default: return 0;
    }
}
