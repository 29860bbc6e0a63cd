/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest and the smallest element, and their indices. A reduction of no elements is an error,
 * unless the result is empty as well.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/reduce/reduction_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>

/* The kernel code; for bool "or" is the largest, "and" the smallest. */
static mt_reduce code_for(mt_dtype dtype, bool largest)
{
    if (dtype == MT_DTYPE_BOOL) {
        return largest ? MT_REDUCE_ANY : MT_REDUCE_ALL;
    }
    return largest ? MT_REDUCE_MAX : MT_REDUCE_MIN;
}

static MT_COLD int refuse_no_dim(const mt__call *call)
{
    return mtb_fail(MT_ERUNTIME,
                    "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                    "the reduction dim with the 'dim' argument.",
                    mt__op_name(call));
}

/* MT_EINDEX for a reduced dimension that is empty. */
static int check_dims(const mt__call *call, const mt_tensor *self, uint32_t mask)
{
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if ((mask >> d & 1) != 0 && self->sizes[d] == 0) {
            return mtb_fail(MT_EINDEX, "%s(): Expected reduction dim %u to have non-zero size.",
                            mt__op_name(call), d);
        }
    }
    return MT_OK;
}

static int reduce_extreme(mt__call *call, bool largest, uint32_t mask, bool keepdim)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    return mt__reduction_result(call, code_for(dtype, largest), self, dtype, mask, keepdim,
                                mt_int(0));
}

static int run_of_all(mt__call *call, bool largest)
{
    if (call->args[0].of.tensor->numel == 0) {
        return refuse_no_dim(call);
    }
    return reduce_extreme(call, largest, UINT32_MAX, false);
}

MT_RUN(max, run_of_all, true)
MT_RUN(min, run_of_all, false)

static int run_of_dims(mt__call *call, bool largest)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    bool all = call->args[1].kind == MT_KIND_NONE || call->args[1].count == 0;
    if (all && self->numel == 0) {
        return refuse_no_dim(call);
    }
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    for (uint32_t i = 0; !all && i < call->args[1].count; i++) {
        int64_t dim = call->args[1].of.ints[i];
        if (self->n_dims > 0 && self->sizes[dim + (dim < 0 ? self->n_dims : 0)] == 0) {
            return mtb_fail(MT_EINDEX,
                            "%s(): Expected reduction dim %" PRId64 " to have non-zero size.",
                            mt__op_name(call), dim);
        }
    }
    return reduce_extreme(call, largest, mask, mt__arg_bool(call, 2));
}

MT_RUN(amax, run_of_dims, true)
MT_RUN(amin, run_of_dims, false)

/* ---- with their places ----------------------------------------------------------------------- */

/* arrays: values or none, indices, input. */
static int launch_arrays(mt__call *call, bool largest, const mt_array arrays[3], int64_t dim)
{
    mt_kernel_call kernel = {
        .kernel = MT_KERNEL_REDUCE_INDEX,
        .code = largest ? 0 : 1,
        .n_tensors = 3,
        .tensors = arrays,
        .n_ints = 1,
        .ints = &dim,
    };
    MT_TRY(
        mt__check_unsigned(call, MT_KERNEL_REDUCE_INDEX, kernel.code, (mt_dtype)arrays[2].dtype));
    return mt__launch(call->device, &kernel);
}

/* values may be NULL. */
static int launch_index(mt__call *call, bool largest, const mt_tensor *values,
                        const mt_tensor *indices, const mt_tensor *in, uint32_t dim)
{
    const mt__row_reduction what = {.kernel = MT_KERNEL_REDUCE_INDEX,
                                    .code = largest ? 0 : 1,
                                    .values = values,
                                    .indices = indices,
                                    .input = in,
                                    .dim = dim};
    return mt__row_reduction_run(call, &what);
}

static int run_with_places(mt__call *call, bool largest)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    MT_TRY(check_dims(call, self, 1U << dim));
    mt__shape shape = mt__reduced_shape(self, 1U << dim, mt__arg_bool(call, 2));
    mt_tensor *values = NULL;
    mt_tensor *indices = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &values));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, &shape, &indices));
    if (self->numel == 0) {
        return MT_OK;
    }
    if (self->n_dims == 0) {
        const mt_scalar first = mt_int(0);
        MT_TRY(mt__copy_elements(values, self));
        return mt__fill(indices, &first);
    }
    if (dtype != MT_DTYPE_BOOL) {
        return launch_index(call, largest, values, indices, self, dim);
    }
    mt_tensor *bytes = NULL;
    MT_TRY(mt__converted(call, self, MT_DTYPE_U8, &self));
    MT_TRY(mt__temp_new(call, MT_DTYPE_U8, &shape, &bytes));
    MT_TRY(launch_index(call, largest, bytes, indices, self, dim));
    return mt__copy_elements(values, bytes);
}

MT_RUN(max_dim, run_with_places, true)
MT_RUN(min_dim, run_with_places, false)

/* ---- places alone ---------------------------------------------------------------------------- */

/* No dimension: the place in the flattened tensor. */
static int place_in_all(mt__call *call, bool largest, mt_tensor *self, mt_tensor *out)
{
    static const int64_t one = 1;
    MT_TRY(mt__contiguous(call, self, &self));
    mt_array arrays[3] = {mt__no_array(), mt__array(out), mt__array(self)};
    arrays[1].sizes = &one;
    arrays[1].strides = &one;
    arrays[1].n_dims = 1;
    arrays[2].sizes = &self->numel;
    arrays[2].strides = &one;
    arrays[2].n_dims = 1;
    return launch_arrays(call, largest, arrays, 0);
}

static int run_place(mt__call *call, bool largest)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    bool keepdim = mt__arg_bool(call, 2);
    uint32_t mask = 0;
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    if (dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "%s(): does not support bool input", mt__op_name(call));
    }
    bool all = !mt__arg_given(call, 1);
    if (all && self->numel == 0) {
        return mtb_fail(MT_EINDEX,
                        "%s(): Expected reduction dim to be specified for input.numel() == 0.",
                        mt__op_name(call));
    }
    MT_TRY(check_dims(call, self, mask));
    mt__shape shape = mt__reduced_shape(self, mask, keepdim);
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, MT_DTYPE_I64, &shape, &out));
    if (self->numel == 0) {
        return MT_OK;
    }
    if (all || self->n_dims == 0) {
        return place_in_all(call, largest, self, out);
    }
    return launch_index(call, largest, NULL, out, self, (uint32_t)__builtin_ctz(mask));
}

MT_RUN(argmax, run_place, true)
MT_RUN(argmin, run_place, false)
