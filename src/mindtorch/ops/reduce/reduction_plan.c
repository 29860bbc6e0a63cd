/* SPDX-License-Identifier: Apache-2.0
 *
 * Dimensions and shapes of reductions: see reduction_plan.h.
 */
#include "mindtorch/ops/reduce/reduction_plan.h"

#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

int mt__reduced_dims(const mt__call *call, uint32_t i, const mt_tensor *self, uint32_t *mask)
{
    const mt_value *dims = &call->args[i];
    uint32_t all = (uint32_t)((1ULL << (self->n_dims == 0 ? 1 : self->n_dims)) - 1);
    *mask = all;
    if (dims->kind == MT_KIND_INT) {
        uint32_t dim = 0;
        MT_TRY(mt__wrap_dim(dims->of.integer, self->n_dims, &dim));
        *mask = 1U << dim;
    } else if (dims->kind == MT_KIND_INTS && dims->count > 0) {
        MT_TRY(mt__dim_mask(dims->of.ints, dims->count, self->n_dims, mask));
    }
    return MT_OK;
}

mt__shape mt__reduced_shape(const mt_tensor *self, uint32_t mask, bool keepdim)
{
    mt__shape shape = {.n_dims = 0};
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if ((mask >> d & 1) == 0) {
            shape.sizes[shape.n_dims++] = self->sizes[d];
        } else if (keepdim) {
            shape.sizes[shape.n_dims++] = 1;
        }
    }
    return shape;
}

int64_t mt__reduced_count(const mt_tensor *self, uint32_t mask)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < self->n_dims; d++) {
        count *= (mask >> d & 1) != 0 ? self->sizes[d] : 1;
    }
    return count;
}

/* An output with the input's dimensions. */
static void see_output(const mt__reduction *what, const mt_tensor *out, int64_t *strides)
{
    const mt_tensor *in = what->input;
    bool kept = out->n_dims == in->n_dims;
    uint32_t at = 0;
    for (uint32_t d = 0; d < in->n_dims; d++) {
        bool reduced = (what->mask >> d & 1) != 0;
        strides[d] = reduced ? 0 : out->strides[kept ? d : at];
        at += !reduced;
    }
    if (in->n_dims == 0) {
        strides[0] = 0; /* RP1 */
    }
}

static int fill_outputs(const mt__reduction *what, mt_scalar value)
{
    for (uint32_t i = 0; i < what->n_outputs; i++) {
        if (what->outputs[i] != NULL) {
            MT_TRY(mt__fill(what->outputs[i], &value));
        }
    }
    return MT_OK;
}

int mt__reduction_run(mt__call *call, const mt__reduction *what, mt_scalar of_nothing)
{
    static const int64_t one = 1;
    const mt_tensor *in = what->input;
    MT_TRY(mt__check_unsigned(call, what->kernel, what->code, (mt_dtype)in->dtype));
    if (in->numel == 0) {
        return fill_outputs(what, of_nothing);
    }
    mt_array arrays[3];
    int64_t strides[2][MT_MAX_DIMS];
    uint32_t all = (uint32_t)((1ULL << in->n_dims) - 1);
    bool flat = in->n_dims == 0 || (in->contiguous && (what->mask & all) == all);
    mt_array input = mt__array(in);
    if (flat) {
        input.n_dims = 1;
        input.sizes = &in->numel;
        input.strides = &one;
    }
    for (uint32_t i = 0; i < what->n_outputs; i++) {
        if (what->outputs[i] == NULL) {
            arrays[i] = mt__no_array();
            continue;
        }
        see_output(what, what->outputs[i], strides[i]);
        arrays[i] = mt__array(what->outputs[i]);
        arrays[i].sizes = input.sizes;
        arrays[i].strides = strides[i];
        arrays[i].n_dims = input.n_dims;
    }
    arrays[what->n_outputs] = input;
    mt_kernel_call kernel = {
        .kernel = (uint16_t)what->kernel,
        .code = what->code,
        .n_tensors = what->n_outputs + 1,
        .tensors = arrays,
        .n_scalars = what->number != NULL,
        .scalars = what->number,
    };
    return mt__launch(call->device, &kernel);
}

int mt__reduction_result(mt__call *call, mt_reduce code, mt_tensor *input, mt_dtype dtype,
                         uint32_t mask, bool keepdim, mt_scalar of_nothing)
{
    mt__shape shape = mt__reduced_shape(input, mask, keepdim);
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    mt__reduction what = {.kernel = MT_KERNEL_REDUCE,
                          .code = (uint16_t)code,
                          .mask = mask,
                          .n_outputs = 1,
                          .outputs = {out},
                          .input = input};
    return mt__reduction_run(call, &what, of_nothing);
}

/* A result as the kernel gets it: with size 1 in the reduced dimension. */
static mt_array see_kept(const mt_tensor *out, const mt_tensor *in, uint32_t dim,
                         int64_t sizes[MT_MAX_DIMS], int64_t strides[MT_MAX_DIMS])
{
    mt_array array = mt__array(out);
    bool kept = out->n_dims == in->n_dims;
    for (uint32_t d = 0, at = 0; d < in->n_dims; d++) {
        uint32_t from = kept ? d : at;
        sizes[d] = d == dim ? 1 : in->sizes[d];
        strides[d] = d == dim ? 1 : out->strides[from];
        at += d != dim;
    }
    array.sizes = sizes;
    array.strides = strides;
    array.n_dims = in->n_dims;
    return array;
}

int mt__row_reduction_run(mt__call *call, const mt__row_reduction *what)
{
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[2][MT_MAX_DIMS];
    const mt_tensor *in = what->input;
    const int64_t ints[] = {what->dim, what->k};
    mt_array arrays[3] = {mt__no_array()};
    if (what->values != NULL) {
        arrays[0] = see_kept(what->values, in, what->dim, sizes, strides[0]);
    }
    arrays[1] = see_kept(what->indices, in, what->dim, sizes, strides[1]);
    arrays[2] = mt__array(in);
    mt_kernel_call kernel = {
        .kernel = (uint16_t)what->kernel,
        .code = what->code,
        .n_tensors = 3,
        .tensors = arrays,
        .n_ints = what->kernel == MT_KERNEL_RANK ? 2 : 1,
        .ints = ints,
    };
    return mt__launch(call->device, &kernel);
}
