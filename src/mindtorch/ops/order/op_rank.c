/* SPDX-License-Identifier: Apache-2.0
 *
 * One element of each row's order: medians, kthvalue, mode. Extremes so far. Reductions that leave
 * out NaN.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/reduce/reduction_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

enum { /* codes of MT_KERNEL_RANK and MT_KERNEL_RUNNING */
    RANK_KTH = 0,
    RANK_MEDIAN = 1,
    RANK_NANMEDIAN = 2,
    RANK_MODE = 3,
    RUNNING_LARGEST = 0,
    RUNNING_SMALLEST = 1,
    RUNNING_LOG_SUM = 2
};

/* ---- one of each row ------------------------------------------------------------------------- */

/* The place of argument `dim_arg`, then keepdim. */
static int rank_along(mt__call *call, uint16_t code, uint32_t dim_arg, int64_t k)
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, dim_arg), self->n_dims, &dim));
    int64_t size = self->n_dims == 0 ? 1 : self->sizes[dim];
    if (size == 0) {
        return mtb_fail(MT_EINDEX, "%s(): Expected reduction dim %u to have non-zero size.",
                        mt__op_name(call), dim);
    }
    if (code == RANK_KTH && (k < 1 || k > size)) {
        return mtb_fail(MT_ERUNTIME, "kthvalue(): selected number k out of range for dimension %u",
                        dim);
    }
    mt__shape shape = mt__reduced_shape(self, 1U << dim, mt__arg_bool(call, dim_arg + 1));
    mt_tensor *values = NULL;
    mt_tensor *indices = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &values));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, &shape, &indices));
    if (self->numel == 0) {
        return MT_OK;
    }
    if (self->n_dims == 0) {
        const mt_scalar first = mt_int(0);
        MT_TRY(mt__copy_elements(values, self));
        return mt__fill(indices, &first);
    }
    const mt__row_reduction what = {.kernel = MT_KERNEL_RANK,
                                    .code = code,
                                    .values = values,
                                    .indices = indices,
                                    .input = self,
                                    .dim = dim,
                                    .k = k - 1};
    return mt__row_reduction_run(call, &what);
}

static int refuse_bool(const mt__call *call, const char *kernel)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    return dtype == MT_DTYPE_BOOL ? mt__refuse_type(kernel, dtype) : MT_OK;
}

static int run_median_dim(mt__call *call, uint16_t code)
{
    MT_TRY(refuse_bool(call, "median_out"));
    return rank_along(call, code, 1, 1);
}

MT_RUN(median_dim, run_median_dim, RANK_MEDIAN)
MT_RUN(nanmedian_dim, run_median_dim, RANK_NANMEDIAN)
MT_RUN(mode, rank_along, RANK_MODE, 1, 1)

int mt__run_kthvalue(mt__call *call)
{
    MT_TRY(refuse_bool(call, "kthvalue_cpu"));
    return rank_along(call, RANK_KTH, 2, mt__arg_int(call, 1));
}

/* Of all elements, as one row. Of none it is NaN, or the smallest integer, as in torch. */
static int run_median(mt__call *call, uint16_t code)
{
    static const int64_t one = 1;
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape scalar = {.n_dims = 0};
    mt_tensor *value = NULL;
    mt_tensor *place = NULL;
    MT_TRY(refuse_bool(call, "median_cpu"));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &scalar, &value));
    if (self->numel == 0) {
        static const int64_t least[] = {[MT_DTYPE_I32] = INT32_MIN, [MT_DTYPE_I64] = INT64_MIN};
        bool real = mt__tensor_category(self) == MT_CATEGORY_REAL;
        const mt_scalar none =
            real ? mt_real(NAN) : mt_int(self->dtype <= MT_DTYPE_I64 ? least[self->dtype] : 0);
        return mt__fill(value, &none);
    }
    MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &scalar, &place));
    MT_TRY(mt__contiguous(call, self, &self));
    mt_array arrays[3] = {mt__array(value), mt__array(place), mt__array(self)};
    for (uint32_t i = 0; i < 3; i++) {
        arrays[i].n_dims = 1;
        arrays[i].sizes = i < 2 ? &one : &self->numel;
        arrays[i].strides = &one;
    }
    const int64_t ints[] = {0, 0};
    mt_kernel_call kernel = {.kernel = MT_KERNEL_RANK,
                             .code = code,
                             .n_tensors = 3,
                             .tensors = arrays,
                             .n_ints = 2,
                             .ints = ints};
    return mt__launch(call->device, &kernel);
}

MT_RUN(median, run_median, RANK_MEDIAN)
MT_RUN(nanmedian, run_median, RANK_NANMEDIAN)

int mt__run_aminmax(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const int64_t *dim = mt__arg_given(call, 1) ? &call->args[1].of.integer : NULL;
    bool keepdim = mt__arg_bool(call, 2);
    uint32_t wrapped = 0;
    if (dim == NULL && self->numel == 0) {
        return mtb_fail(MT_ERUNTIME, "aminmax(): cannot compute aminmax over an empty dimension as "
                                     "the operation has no identity.");
    }
    if (dim != NULL) {
        MT_TRY(mt__wrap_dim(*dim, self->n_dims, &wrapped));
        if (self->n_dims > 0 && self->sizes[wrapped] == 0) {
            return mtb_fail(MT_EINDEX,
                            "aminmax: Expected reduction dim %" PRId64 " to have non-zero size.",
                            *dim);
        }
    }
    MT_TRY(mt_amin(self, dim, dim != NULL, keepdim, mt__result_place(call, 0)));
    return mt_amax(self, dim, dim != NULL, keepdim, mt__result_place(call, 1));
}

/* ---- so far ---------------------------------------------------------------------------------- */

static int run_so_far(mt__call *call, uint16_t code)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape shape = mt__tensor_shape(self);
    uint32_t dim = 0;
    mt_tensor *values = NULL;
    mt_tensor *indices = NULL;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &values));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, &shape, &indices));
    if (self->n_dims == 0 || self->numel == 0) {
        const mt_scalar first = mt_int(0);
        MT_TRY(mt__copy_elements(values, self));
        return mt__fill(indices, &first);
    }
    mt_tensor *bytes = values;
    if (self->dtype == MT_DTYPE_BOOL) {
        MT_TRY(mt__converted(call, self, MT_DTYPE_U8, &self));
        MT_TRY(mt__temp_new(call, MT_DTYPE_U8, &shape, &bytes));
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_RUNNING, .code = code, MT_TENSORS(bytes, indices, self), MT_INTS(dim)};
    MT_TRY(mt__kernel(call, &args));
    return bytes == values ? MT_OK : mt__copy_elements(values, bytes);
}

MT_RUN(cummax, run_so_far, RUNNING_LARGEST)
MT_RUN(cummin, run_so_far, RUNNING_SMALLEST)

int mt__run_logcumsumexp(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape shape = mt__tensor_shape(self);
    uint32_t dim = 0;
    mt_tensor *out = NULL;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (mt__tensor_category(self) != MT_CATEGORY_REAL) {
        return mt__refuse_type("logcumsumexp_out_cpu", (mt_dtype)self->dtype);
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (self->n_dims == 0 || self->numel == 0) {
        return mt__copy_elements(out, self);
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_RUNNING, .code = RUNNING_LOG_SUM, MT_TENSORS(out, self), MT_INTS(dim)};
    return mt__kernel(call, &args);
}

int mt__run_msort(mt__call *call)
{
    mt_tensor **places = mt__temp(call);
    return mt_sort(mt__arg_tensor(call, 0), 0, false, mt__result_place(call, 0), places);
}

/* ---- without NaN ----------------------------------------------------------------------------- */

/* The sum of what is no NaN; arguments are those of sum(). */
int mt__run_nansum(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_value args[4] = {call->args[0], call->args[1], call->args[2], call->args[3]};
    if (mt__tensor_category(self) == MT_CATEGORY_REAL) {
        mt_tensor **nans = mt__temp(call);
        mt_tensor **numbers = mt__temp(call);
        MT_TRY(mt_isnan(self, nans));
        MT_TRY(mt_masked_fill_scalar(self, *nans, mt_int(0), numbers));
        args[0].of.tensor = *numbers;
    }
    return mt_call(MT__OP_SUM, args, MT_COUNT(args), call->results, 1);
}

int mt__run_nanmean(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *dim = &call->args[1];
    const int64_t *dims = dim->kind == MT_KIND_NONE ? NULL : dim->of.ints;
    if (mt__tensor_category(self) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "nanmean(): expected input to have floating point or complex dtype but got "
                        "%s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    mt_tensor **nans = mt__temp(call);
    mt_tensor **numbers = mt__temp(call);
    mt_tensor **count = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_isnan(self, nans));
    MT_TRY(mt_logical_not(*nans, numbers));
    MT_TRY(mt_sum(*numbers, dims, dims == NULL ? 0 : dim->count, mt__arg_bool(call, 2), count));
    MT_TRY(mt_call(MT__OP_NANSUM, call->args, 4, call->results, 1));
    *sum = call->results[0].of.tensor; /* a temporary from here on */
    return mt_div(*sum, *count, mt__result_place(call, 0));
}
