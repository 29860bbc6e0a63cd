/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.special's ops that are more than one kernel's call.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

int mt__run_logit(mt__call *call)
{
    mt_dtype dtype = mt__to_floating((mt_dtype)call->args[0].of.tensor->dtype);
    mt__pointwise what = {.kernel = MT_KERNEL_UNARY,
                          .code = MT_UNARY_LOGIT,
                          .n_operands = 1,
                          .compute = dtype,
                          .result = dtype,
                          .n_scalars = 1,
                          .scalars = {mt_real(mt__arg_given(call, 1) ? mt__arg_real(call, 1) : -1)},
                          .operands = {&call->args[0]}};
    return mt__pointwise_run(call, &what);
}

/* The normal distribution below self. */
int mt__run_ndtr(mt__call *call)
{
    mt_tensor **turned = mt__temp(call);
    mt_tensor **twice = mt__temp(call);
    MT_TRY(mt_mul_scalar(mt__arg_tensor(call, 0), mt_real(-M_SQRT1_2), turned));
    MT_TRY(mt_erfc(*turned, twice));
    return mt_mul_scalar(*twice, mt_real(0.5), mt__result_place(call, 0));
}

/* The sum of lgamma(self - j / 2) for j < p, and p (p - 1) / 4 log(pi). */
int mt__run_mvlgamma(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t p = mt__arg_int(call, 1);
    mt_dtype dtype = mt__to_floating((mt_dtype)self->dtype);
    const int64_t last = -1;
    if (self->dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "The input tensor may not be a boolean tensor.");
    }
    if (p < 1) {
        return mtb_fail(MT_ERUNTIME, "p has to be greater than or equal to 1");
    }
    mt_tensor **steps = mt__temp(call);
    mt_tensor **column = mt__temp(call);
    mt_tensor **each = mt__temp(call);
    mt_tensor **logs = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_arange_with(mt_real(0.5 - 0.5 * (double)p), mt_real(0.5), mt_real(0.5), dtype,
                          (mt_device)self->device, steps));
    MT_TRY(mt_unsqueeze(self, -1, column));
    MT_TRY(mt_add(*column, *steps, each));
    MT_TRY(mt_lgamma(*each, logs));
    MT_TRY(mt_sum(*logs, &last, 1, false, sum));
    return mt_add_scalar(*sum, mt_real((double)p * ((double)p - 1.0) / 4.0 * log(M_PI)),
                         mt__result_place(call, 0));
}

/* Rounded to a digit after the point, or before it where decimals is negative. */
int mt__run_round_decimals(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t decimals = mt__arg_int(call, 1);
    double scale = pow(10.0, fabs((double)decimals));
    if (mt__tensor_category(self) != MT_CATEGORY_REAL) {
        return mt__refuse_type("round_cpu", (mt_dtype)self->dtype);
    }
    if (mt__is_in_place(call)) {
        mt__result_same(call, 0, self);
    } else {
        MT_TRY(mt__result_copy(call, self, (mt_dtype)self->dtype));
        self = call->results[0].of.tensor;
    }
    bool whole = decimals < 0;
    MT_TRY(whole ? mt_div_scalar_(self, mt_real(scale)) : mt_mul_scalar_(self, mt_real(scale)));
    MT_TRY(mt_round_(self));
    return whole ? mt_mul_scalar_(self, mt_real(scale)) : mt_div_scalar_(self, mt_real(scale));
}

int mt__run_frexp(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *parts[2] = {NULL, NULL};
    mt_tensor *exponent = NULL;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "torch.frexp() only supports floating-point dtypes");
    }
    MT_TRY(mt__contiguous(call, self, &self));
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &parts[0]));
    MT_TRY(mt__temp_new(call, dtype, &shape, &parts[1]));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I32, &shape, &exponent));
    if (self->numel == 0) {
        return MT_OK;
    }
    for (uint32_t i = 0; i < 2; i++) {
        mt_tensor *const tensors[] = {parts[i], self};
        uint16_t code = i == 0 ? MT_UNARY_MANTISSA : MT_UNARY_EXPONENT;
        MT_TRY(mt__pointwise_flat(call, MT_KERNEL_UNARY, code, 2, tensors, 0, NULL));
    }
    return mt__copy_elements(exponent, parts[1]);
}
