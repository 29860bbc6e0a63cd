/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether two tensors are the same, exactly or nearly: answers for the host, so these wait.
 */
#include "base/fail.h"
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"

#include <mindtorch/autograd.h>

/* Whether all elements are true. */
static int read_truth(mt__call *call, mt_tensor *truth)
{
    mt_tensor **all = mt__temp(call);
    MT_TRY(mt_all(truth, NULL, 0, false, all));
    return mt_item(*all, &call->results[0]);
}

/* float16 and bfloat16 are compared as float32. */
static int comparable(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    bool half = tensor->dtype == MT_DTYPE_F16 || tensor->dtype == MT_DTYPE_BF16;
    return mt__converted(call, tensor, half ? MT_DTYPE_F32 : (mt_dtype)tensor->dtype, out);
}

int mt__run_equal(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *other = call->args[1].of.tensor;
    mt__shape a = mt__tensor_shape(self);
    mt__shape b = mt__tensor_shape(other);
    if (self->device != other->device) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected all tensors to be on the same device (when checking arguments of "
                        "equal)");
    }
    if (!mt__shape_equal(&a, &b)) {
        call->results[0] = mt_bool(false);
        return MT_OK;
    }
    mt_tensor **same = mt__temp(call);
    MT_TRY(comparable(call, self, &self));
    MT_TRY(comparable(call, other, &other));
    MT_TRY(mt_eq(self, other, same));
    return read_truth(call, *same);
}

/* ---- allclose ----------------------------------------------------------------------------------
 */

/* Equal, or both NaN where that counts. */
static int find_equal(mt__call *call, mt_tensor *self, mt_tensor *other, bool equal_nan,
                      mt_tensor **out)
{
    mt_tensor **same = mt__temp(call);
    MT_TRY(mt_eq(self, other, same));
    *out = *same;
    if (!equal_nan) {
        return MT_OK;
    }
    mt_tensor **a = mt__temp(call);
    mt_tensor **b = mt__temp(call);
    mt_tensor **both = mt__temp(call);
    mt_tensor **either = mt__temp(call);
    MT_TRY(mt_isnan(self, a));
    MT_TRY(mt_isnan(other, b));
    MT_TRY(mt_logical_and(*a, *b, both));
    MT_TRY(mt_logical_or(*same, *both, either));
    *out = *either;
    return MT_OK;
}

/* |self - other| <= atol + rtol |other|, and finite. */
static int find_near(mt__call *call, mt_tensor *self, mt_tensor *other, mt_tensor **out)
{
    mt_tensor **difference = mt__temp(call);
    mt_tensor **allowed = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    mt_tensor **finite = mt__temp(call);
    mt_tensor **near = mt__temp(call);
    MT_TRY(mt_sub(self, other, difference));
    MT_TRY(mt_abs_(*difference));
    MT_TRY(mt_abs(other, allowed));
    MT_TRY(mt_mul_scalar_(*allowed, mt_real(mt__arg_real(call, 2))));
    MT_TRY(mt_add_scalar_(*allowed, mt_real(mt__arg_real(call, 3))));
    MT_TRY(mt_le(*difference, *allowed, below));
    MT_TRY(mt_isfinite(*difference, finite));
    MT_TRY(mt_logical_and(*below, *finite, near));
    *out = *near;
    return MT_OK;
}

static int run_allclose(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *other = call->args[1].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        dtype = MT_DTYPE_F64; /* differences of integers do not overflow */
    } else if (dtype != MT_DTYPE_F64) {
        dtype = MT_DTYPE_F32;
    }
    mt_tensor *same = NULL;
    mt_tensor *near = NULL;
    mt_tensor **either = mt__temp(call);
    MT_TRY(comparable(call, self, &self));
    MT_TRY(comparable(call, other, &other));
    MT_TRY(find_equal(call, self, other, mt__arg_bool(call, 4), &same));
    MT_TRY(mt__converted(call, self, dtype, &self));
    MT_TRY(mt__converted(call, other, dtype, &other));
    MT_TRY(find_near(call, self, other, &near));
    MT_TRY(mt_logical_or(same, near, either));
    return read_truth(call, *either);
}

int mt__run_allclose(mt__call *call)
{
    mt_dtype a = (mt_dtype)call->args[0].of.tensor->dtype;
    mt_dtype b = (mt_dtype)call->args[1].of.tensor->dtype;
    if (a != b) {
        return mtb_fail(MT_ERUNTIME, "%s did not match %s", mt__type_title(a), mt__type_title(b));
    }
    for (uint32_t i = 2; i <= 3; i++) {
        if (!(mt__arg_real(call, i) >= 0)) {
            return mtb_fail(MT_ERUNTIME, "%s must be greater than or equal to zero, but got %.6g",
                            i == 2 ? "rtol" : "atol", mt__arg_real(call, i));
        }
    }
    bool enabled = mt_set_grad_enabled(false);
    int status = run_allclose(call);
    mt_set_grad_enabled(enabled);
    return status;
}
