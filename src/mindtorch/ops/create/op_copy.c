/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling, copying, conversion, and reading a single number.
 */
#include "base/fail.h"
#include "mindtorch/core/tensor/memory_format.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>

/* ---- in place -------------------------------------------------------------------------------- */

static int fill_self(mt__call *call, const mt_scalar *value)
{
    mt_tensor *self = call->args[0].of.tensor;
    MT_TRY(mt__fill(self, value));
    mt__result_same(call, 0, self);
    return MT_OK;
}

int mt__run_fill_(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *value = &call->args[1];
    if (mt__is_number(value)) {
        MT_TRY(mt__number_fits(value, (mt_dtype)self->dtype));
        return fill_self(call, value);
    }
    if (value->of.tensor->n_dims > 0) {
        return mtb_fail(MT_ERUNTIME,
                        "fill_ only supports 0-dimension value tensor but got tensor with %u "
                        "dimensions.",
                        value->of.tensor->n_dims);
    }
    MT_TRY(mt__copy_elements(self, value->of.tensor));
    mt__result_same(call, 0, self);
    return MT_OK;
}

int mt__run_zero_(mt__call *call)
{
    const mt_scalar zero = mt_int(0);
    return fill_self(call, &zero);
}

static int check_copy(const mt_tensor *self, const mt_tensor *src)
{
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__shape_broadcast(&shape, src->sizes, src->n_dims));
    mt__shape own = mt__tensor_shape(self);
    if (!mt__shape_equal(&shape, &own)) {
        char has[MT_SHAPE_TEXT];
        char wants[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                        mt__shape_text(self->sizes, self->n_dims, has),
                        mt__shape_text(shape.sizes, shape.n_dims, wants));
    }
    return mt__check_writable(self);
}

int mt__run_copy_(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *src = call->args[1].of.tensor;
    if (self != src) {
        MT_TRY(check_copy(self, src));
        if (mt__overlaps_badly(self, src)) {
            mt__shape shape = mt__tensor_shape(src);
            mt_tensor *apart = NULL;
            MT_TRY(mt__temp_new(call, (mt_dtype)src->dtype, &shape, &apart));
            MT_TRY(mt__copy_elements(apart, src));
            src = apart;
        }
        MT_TRY(mt__copy_elements_with(self, src, mt__arg_bool(call, 2)));
    }
    mt__result_same(call, 0, self);
    return MT_OK;
}

/* ---- new ones -------------------------------------------------------------------------------- */

int mt__run_clone(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t format = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : MT_FORMAT_PRESERVE;
    if (format == MT_FORMAT_PRESERVE) {
        return mt__result_copy(call, self, (mt_dtype)self->dtype);
    }
    MT_TRY(mt__need_format(format, self->n_dims));
    return mt__result_format(call, self, (mt_memory_format)format);
}

int mt__run_contiguous(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t format = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : MT_FORMAT_CONTIGUOUS;
    if (format == MT_FORMAT_PRESERVE) {
        return mtb_fail(MT_ERUNTIME,
                        "preserve memory format is unsupported by the contiguous operator");
    }
    MT_TRY(mt__need_format(format, self->n_dims));
    if (mt_tensor_has_format(self, (mt_memory_format)format)) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_clone_with(self, &format, mt__result_place(call, 0));
}

int mt__run__to_copy(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = mt__arg_dtype(call, 1);
    if (call->args[2].kind == MT_KIND_DEVICE) {
        MT_TRY(mt__place_check(mt__op_name(call), (mt_device)mt__arg_int(call, 2)));
        call->device = (mt_device)mt__arg_int(call, 2);
    }
    dtype = dtype == MT_DTYPE_NONE ? (mt_dtype)self->dtype : dtype;
    if (call->device == self->device || !mt__arg_bool(call, 3)) {
        return mt__result_copy(call, self, dtype);
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_laid_out(call, 0, dtype, &shape, self));
    return mt__copy_elements_with(call->results[0].of.tensor, self, true);
}

int mt__run_to(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = mt__arg_dtype(call, 1);
    mt_device device =
        call->args[2].kind == MT_KIND_DEVICE ? (mt_device)mt__arg_int(call, 2) : MT_DEVICE_NONE;
    bool same = (dtype == MT_DTYPE_NONE || dtype == self->dtype) &&
                (device == MT_DEVICE_NONE || device == self->device);
    if (same && !mt__arg_bool(call, 4)) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt__to_copy_with(self, dtype, device, mt__arg_bool(call, 3), mt__result_place(call, 0));
}

/* ---- numbers --------------------------------------------------------------------------------- */

int mt__run__local_scalar_dense(mt__call *call)
{
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f32;
        double f64;
    } value = {.i64 = 0};
    mt_tensor *self = call->args[0].of.tensor;
    if (self->numel != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "a Tensor with %" PRId64 " elements cannot be converted to Scalar",
                        self->numel);
    }
    if (self->dtype == MT_DTYPE_F16 || self->dtype == MT_DTYPE_BF16) { /* read as a number */
        MT_TRY(mt__converted(call, self, MT_DTYPE_F32, &self));
    }
    MT_TRY(mt_tensor_read(self, &value, mt_dtype_size((mt_dtype)self->dtype)));
    switch ((mt_dtype)self->dtype) {
    case MT_DTYPE_BOOL: call->results[0] = mt_bool(value.u8 != 0); break;
    case MT_DTYPE_U8: call->results[0] = mt_int(value.u8); break;
    case MT_DTYPE_I32: call->results[0] = mt_int(value.i32); break;
    case MT_DTYPE_I64: call->results[0] = mt_int(value.i64); break;
    case MT_DTYPE_U64:
        call->results[0] = mt_int(value.i64);
        call->results[0].count = value.i64 < 0;
        break;
    case MT_DTYPE_I8: call->results[0] = mt_int(value.i8); break;
    case MT_DTYPE_I16: call->results[0] = mt_int(value.i16); break;
    case MT_DTYPE_U16: call->results[0] = mt_int(value.u16); break;
    case MT_DTYPE_U32: call->results[0] = mt_int(value.u32); break;
    case MT_DTYPE_F32: call->results[0] = mt_real((double)value.f32); break;
    default: call->results[0] = mt_real(value.f64); break;
    }
    return MT_OK;
}

int mt__run_item(mt__call *call)
{
    if (call->device == MT_META) {
        return mtb_fail(MT_ERUNTIME, "Tensor.item() cannot be called on meta tensors");
    }
    return mt__local_scalar_dense(call->args[0].of.tensor, &call->results[0]);
}
