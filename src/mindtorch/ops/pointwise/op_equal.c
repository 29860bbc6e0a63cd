/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether two tensors are equal, exactly or nearly. The result is needed on the host, so these
 * wait.
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

int mt__run_equal(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *other = call->args[1].of.tensor;
    mt__shape a = mt__tensor_shape(self);
    mt__shape b = mt__tensor_shape(other);
    if (self->device != other->device) {
        return mt__refuse_devices(call->row, call->args);
    }
    if (!mt__shape_equal(&a, &b)) {
        call->results[0] = mt_bool(false);
        return MT_OK;
    }
    mt_tensor **same = mt__temp(call);
    MT_TRY(mt_eq(self, other, same));
    return read_truth(call, *same);
}

/* ---- isclose, allclose ----------------------------------------------------------------------- */

/* Equal, or both NaN if equal_nan is set. The result is written later on. */
static int find_equal(mt__call *call, mt_tensor *self, mt_tensor *other, bool equal_nan)
{
    mt_tensor *same = NULL;
    MT_TRY(mt_eq(self, other, &same));
    mt__give(call, 0, same);
    if (!equal_nan) {
        return MT_OK;
    }
    mt_tensor **a = mt__temp(call);
    mt_tensor **b = mt__temp(call);
    mt_tensor **both = mt__temp(call);
    MT_TRY(mt_isnan(self, a));
    MT_TRY(mt_isnan(other, b));
    MT_TRY(mt_logical_and(*a, *b, both)); /* sizes may differ, so not in place */
    return mt___ior__(same, *both);
}

/* |self - other| <= atol + rtol |other|, and finite. */
static int find_near(mt__call *call, mt_tensor *self, mt_tensor *other, mt_tensor **out)
{
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **size = mt__temp(call);
    mt_tensor **allowed = mt__temp(call);
    mt_tensor **difference = mt__temp(call);
    mt_tensor **distance = mt__temp(call);
    mt_tensor **near = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    MT_TRY(mt_mul_scalar(other, mt_real(mt__arg_real(call, 2)), scaled));
    MT_TRY(mt_abs(*scaled, size));
    MT_TRY(mt_add_scalar(*size, mt_real(mt__arg_real(call, 3)), allowed));
    MT_TRY(mt_sub(self, other, difference));
    MT_TRY(mt_abs(*difference, distance));
    MT_TRY(mt_isfinite(*distance, near));
    MT_TRY(mt_le(*distance, *allowed, below));
    *out = *near;
    return mt___iand__(*near, *below);
}

static int run_isclose(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *other = call->args[1].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        dtype = MT_DTYPE_F64; /* differences of integers do not overflow */
    } else if (dtype != MT_DTYPE_F64) {
        dtype = MT_DTYPE_F32;
    }
    mt_tensor *near = NULL;
    MT_TRY(find_equal(call, self, other, mt__arg_bool(call, 4)));
    if (mt__arg_real(call, 2) == 0.0 && mt__arg_real(call, 3) == 0.0) {
        return MT_OK;
    }
    MT_TRY(mt__converted(call, self, dtype, &self));
    MT_TRY(mt__converted(call, other, dtype, &other));
    MT_TRY(find_near(call, self, other, &near));
    return mt___ior__(call->results[0].of.tensor, near);
}

int mt__run_isclose(mt__call *call)
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
    int status = run_isclose(call);
    mt_set_grad_enabled(enabled);
    return status;
}

int mt__run_allclose(mt__call *call)
{
    mt_value close = {.kind = MT_KIND_NONE};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_call(MT__OP_ISCLOSE, call->args, call->row->n_params, &close, 1));
    *place = close.of.tensor;
    return read_truth(call, *place);
}
