/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums, products, means, variances, logical reductions, running sums.
 */
#include "base/fail.h"
#include "mindtorch/ops/reduce/reduction_plan.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>

/* The type of sums and products: the one that was asked for; int64 for integers. */
static mt_dtype sum_dtype(const mt__call *call, uint32_t i, const mt_tensor *self)
{
    mt_dtype dtype = mt__arg_dtype(call, i);
    if (dtype != MT_DTYPE_NONE) {
        return dtype;
    }
    return mt__tensor_category(self) == MT_CATEGORY_REAL ? (mt_dtype)self->dtype : MT_DTYPE_I64;
}

/* Converts to `dtype`, then reduces to it. A sum of bools is "or", a product "and". */
static int reduce_as(mt__call *call, mt_reduce code, mt_dtype dtype, uint32_t mask, bool keepdim,
                     mt_scalar of_nothing)
{
    mt_tensor *self = call->args[0].of.tensor;
    MT_TRY(mt__converted(call, self, dtype, &self));
    if (dtype == MT_DTYPE_BOOL) {
        code = code == MT_REDUCE_SUM ? MT_REDUCE_ANY : MT_REDUCE_ALL;
    }
    return mt__reduction_result(call, code, self, dtype, mask, keepdim, of_nothing);
}

int mt__run_sum(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    return reduce_as(call, MT_REDUCE_SUM, sum_dtype(call, 3, self), mask, mt__arg_bool(call, 2),
                     mt_int(0));
}

int mt__run_mean(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype asked = mt__arg_dtype(call, 3);
    mt_dtype dtype = asked == MT_DTYPE_NONE ? (mt_dtype)self->dtype : asked;
    uint32_t mask = 0;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "mean(): could not infer output dtype. %s dtype must be either a floating "
                        "point or complex dtype. Got: %s",
                        asked == MT_DTYPE_NONE ? "Input" : "Optional", mt__type_title(dtype));
    }
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    return reduce_as(call, MT_REDUCE_MEAN, dtype, mask, mt__arg_bool(call, 2), mt_real(NAN));
}

int mt__run_prod(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    return reduce_as(call, MT_REDUCE_PROD, sum_dtype(call, 1, self), UINT32_MAX, false, mt_int(1));
}

int mt__run_prod_dim(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    return reduce_as(call, MT_REDUCE_PROD, sum_dtype(call, 3, self), mask, mt__arg_bool(call, 2),
                     mt_int(1));
}

/* ---- variance -------------------------------------------------------------------------------- */

static int run_var(mt__call *call, uint16_t code, bool with_mean)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    if (mt__tensor_category(self) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "%s only support floating point and complex dtypes",
                        with_mean ? "var_mean" : "std and var");
    }
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    mt__shape shape = mt__reduced_shape(self, mask, mt__arg_bool(call, 2));
    mt_scalar correction = mt_real(mt__arg_real(call, 3));
    mt__reduction what = {.kernel = MT_KERNEL_VAR_MEAN,
                          .code = code,
                          .mask = mask,
                          .n_outputs = 2,
                          .input = self,
                          .number = &correction};
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &what.outputs[0]));
    if (with_mean) {
        MT_TRY(mt__result_new(call, 1, (mt_dtype)self->dtype, &shape, &what.outputs[1]));
    }
    return mt__reduction_run(call, &what, mt_real(NAN));
}

MT_RUN(var, run_var, 0, false)
MT_RUN(std, run_var, 1, false)
MT_RUN(var_mean, run_var, 0, true)

/* ---- truth ----------------------------------------------------------------------------------- */

/* bool, but of bytes a byte, as torch has it. An empty list of dimensions reduces none. */
static int run_truth(mt__call *call, mt_reduce code, bool of_nothing)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    bool keepdim = mt__arg_bool(call, 2);
    if (call->args[1].kind != MT_KIND_INTS || call->args[1].count > 0) {
        MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    }
    if (self->dtype != MT_DTYPE_U8) {
        return mt__reduction_result(call, code, self, MT_DTYPE_BOOL, mask, keepdim,
                                    mt_bool(of_nothing));
    }
    mt__shape shape = mt__reduced_shape(self, mask, keepdim);
    mt_tensor *truth = NULL;
    mt_tensor *out = NULL;
    MT_TRY(mt__temp_new(call, MT_DTYPE_BOOL, &shape, &truth));
    MT_TRY(mt__result_new(call, 0, MT_DTYPE_U8, &shape, &out));
    mt__reduction what = {.kernel = MT_KERNEL_REDUCE,
                          .code = (uint16_t)code,
                          .mask = mask,
                          .n_outputs = 1,
                          .outputs = {truth},
                          .input = self};
    MT_TRY(mt__reduction_run(call, &what, mt_bool(of_nothing)));
    return mt__copy_elements(out, truth);
}

MT_RUN(all, run_truth, MT_REDUCE_ALL, true)
MT_RUN(any, run_truth, MT_REDUCE_ANY, false)

int mt__run_count_nonzero(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    return mt__reduction_result(call, MT_REDUCE_COUNT_NONZERO, self, MT_DTYPE_I64, mask, false,
                                mt_int(0));
}

/* ---- running sums and products --------------------------------------------------------------- */

static int run_running(mt__call *call, mt_kernel kernel)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = sum_dtype(call, 2, self);
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type(kernel == MT_KERNEL_CUMSUM ? "cumsum_out_cpu" : "cumprod_out_cpu",
                               dtype);
    }
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    if (self->n_dims == 0 || self->numel == 0) {
        return mt__copy_elements(out, self);
    }
    MT_TRY(mt__converted(call, self, dtype, &self));
    mt__kernel_args args = {.kernel = kernel, MT_TENSORS(out, self), MT_INTS(dim)};
    return mt__kernel(call, &args);
}

MT_RUN(cumsum, run_running, MT_KERNEL_CUMSUM)
MT_RUN(cumprod, run_running, MT_KERNEL_CUMPROD)
