/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of complex elements: the kernel COMPLEX, after promotion and conversion.
 */
#include "base/fail.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

mt_dtype mt__complex_type(mt_dtype dtype)
{
    if (mt_dtype_category(dtype) < MT_CATEGORY_REAL) {
        dtype = mt_default_dtype();
    }
    return dtype == MT_DTYPE_F64 || dtype == MT_DTYPE_C128 ? MT_DTYPE_C128 : MT_DTYPE_C64;
}

mt_dtype mt__part_type(mt_dtype dtype)
{
    return dtype == MT_DTYPE_C64 ? MT_DTYPE_F32 : dtype == MT_DTYPE_C128 ? MT_DTYPE_F64 : dtype;
}

int mt__complex_operand(mt__call *call, const mt_value *value, mt_dtype dtype, mt_tensor **out)
{
    if (mt__is_number(value)) {
        mt__shape shape = {.n_dims = 0};
        MT_TRY(mt__temp_new(call, dtype, &shape, out));
        return mt__fill(*out, value);
    }
    mt_tensor *tensor = value->of.tensor;
    *out = tensor;
    if (tensor->device == call->device) {
        return mt__converted(call, tensor, dtype, out);
    }
    if (tensor->n_dims > 0) {
        return mt__refuse_devices(call->row, call->args);
    }
    mt__shape shape = {.n_dims = 0}; /* a number on the host */
    MT_TRY(mt__temp_new(call, dtype, &shape, out));
    return mt__copy_elements(*out, tensor);
}

int mt__complex_launch(mt__call *call, mt_complex_code code, mt_tensor *const *operands,
                       uint32_t count, mt_dtype compute, mt_dtype result, const mt_scalar *alpha)
{
    const mt_value boxed[] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = operands[0]},
        {.kind = MT_KIND_TENSOR, .of.tensor = operands[count - 1]},
    };
    mt__pointwise what = {
        .kernel = MT_KERNEL_COMPLEX,
        .code = (uint16_t)code,
        .n_operands = (uint8_t)count,
        .compute = compute,
        .result = result,
        .operands = {&boxed[0], &boxed[1]},
    };
    if (alpha != NULL) {
        what.n_scalars = 1;
        what.scalars[0] = *alpha;
    }
    return mt__pointwise_run(call, &what);
}

/* ---- one operand ---- */

/* result NONE: the operand's type. */
static int run_one(mt__call *call, mt_complex_code code, bool to_real)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    return mt__complex_launch(call, code, &self, 1, dtype, to_real ? mt__part_type(dtype) : dtype,
                              NULL);
}

#define ONE(name, code)                                 \
    int mt__complex_##name(mt__call *call)              \
    {                                                   \
        return run_one(call, MT_COMPLEX_##code, false); \
    }

ONE(neg, NEGATIVE)
ONE(reciprocal, RECIPROCAL)
ONE(sqrt, SQRT)
ONE(exp, EXP)
ONE(log, LOG)
ONE(sin, SIN)
ONE(cos, COS)
ONE(tan, TAN)
ONE(sinh, SINH)
ONE(cosh, COSH)
ONE(tanh, TANH)
ONE(sgn, SIGN)

int mt__complex_abs(mt__call *call)
{
    return run_one(call, MT_COMPLEX_ABS, true);
}

/* ---- two operands ---- */

static int run_two(mt__call *call, mt_complex_code code, uint32_t first, const mt_scalar *alpha)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    mt_tensor *operands[2] = {NULL, NULL};
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    MT_TRY(mt__complex_operand(call, &call->args[first], dtype, &operands[0]));
    MT_TRY(mt__complex_operand(call, &call->args[1 - first], dtype, &operands[1]));
    if (mt__is_in_place(call) && call->args[0].of.tensor->dtype != dtype) {
        return mt__check_castable(dtype, (mt_dtype)call->args[0].of.tensor->dtype) != MT_OK
                   ? MT_ERUNTIME
                   : mt__complex_launch(call, code, operands, 2, dtype, dtype, alpha);
    }
    return mt__complex_launch(call, code, operands, 2, dtype,
                              code == MT_COMPLEX_EQUAL ? MT_DTYPE_BOOL : dtype, alpha);
}

int mt__complex_add(mt__call *call)
{
    return run_two(call, MT_COMPLEX_SUM, 0, &call->args[2]);
}

int mt__complex_sub(mt__call *call)
{
    return run_two(call, MT_COMPLEX_DIFFERENCE, 0, &call->args[2]);
}

int mt__complex_rsub(mt__call *call)
{
    return run_two(call, MT_COMPLEX_DIFFERENCE, 1, &call->args[2]);
}

int mt__complex_mul(mt__call *call)
{
    return run_two(call, MT_COMPLEX_PRODUCT, 0, NULL);
}

int mt__complex_div(mt__call *call)
{
    if (mt__arg_given(call, 2)) {
        mt_dtype dtype = MT_DTYPE_NONE;
        MT_TRY(mt__promote_values(call->args, 2, &dtype));
        return mt__refuse_type(call->args[2].of.text[0] == 'f' ? "div_floor_cpu" : "div_trunc_cpu",
                               dtype);
    }
    return run_two(call, MT_COMPLEX_QUOTIENT, 0, NULL);
}

/* Whole exponents from -3 to 3 are products, which are exact where a logarithm is not. */
int mt__complex_pow(mt__call *call)
{
    const mt_value *exponent = &call->args[1];
    bool number = mt__is_number(exponent) && !mt__is_number(&call->args[0]);
    double power = number ? mt__scalar_real(exponent) : 0;
    if (number && power == 2.0) {
        mt_value args[3] = {call->args[0], call->args[0], {.kind = MT_KIND_NONE}};
        mt__call square = *call;
        square.args = args;
        int status = run_two(&square, MT_COMPLEX_PRODUCT, 0, NULL);
        call->n_temps = square.n_temps;
        for (uint32_t i = 0; i < square.n_temps; i++) {
            call->temps[i] = square.temps[i];
        }
        return status;
    }
    if (number && power == 0.5) {
        return run_one(call, MT_COMPLEX_SQRT, false);
    }
    if (number && power == -1.0) {
        return run_one(call, MT_COMPLEX_RECIPROCAL, false);
    }
    return run_two(call, MT_COMPLEX_POWER, 0, NULL);
}

int mt__complex_eq(mt__call *call)
{
    return run_two(call, MT_COMPLEX_EQUAL, 0, NULL);
}

int mt__complex_ne(mt__call *call)
{
    MT_TRY(mt__complex_eq(call));
    mt_tensor *equal = call->results[0].of.tensor;
    call->results[0] = (mt_value){.kind = MT_KIND_NONE};
    int status = mt_logical_not(equal, mt__result_place(call, 0));
    mt_tensor_release(equal);
    return status;
}

/* ---- parts ---- */

int mt__run_complex(mt__call *call)
{
    mt_tensor *real = call->args[0].of.tensor;
    mt_tensor *imag = call->args[1].of.tensor;
    mt_dtype dtype = (mt_dtype)real->dtype;
    if ((dtype != MT_DTYPE_F32 && dtype != MT_DTYPE_F64 && dtype != MT_DTYPE_F16) ||
        mt__tensor_category(imag) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected both inputs to be Half, Float or Double tensors but got %s and "
                        "%s",
                        mt__type_title(dtype), mt__type_title((mt_dtype)imag->dtype));
    }
    if (imag->dtype != dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected object of scalar type %s but got scalar type %s for second "
                        "argument",
                        mt__type_title(dtype), mt__type_title((mt_dtype)imag->dtype));
    }
    if (dtype == MT_DTYPE_F16) {
        return mtb_fail(MT_ENOTSUP, "complex(): complex32, the type of two Half numbers, is not "
                                    "implemented");
    }
    mt_tensor *const parts[] = {real, imag};
    return mt__complex_launch(call, MT_COMPLEX_OF_PARTS, parts, 2, dtype, mt__complex_type(dtype),
                              NULL);
}

int mt__run_polar(mt__call *call)
{
    mt_tensor *size = call->args[0].of.tensor;
    mt_tensor *angle = call->args[1].of.tensor;
    mt_tensor **cosine = mt__temp(call);
    mt_tensor **sine = mt__temp(call);
    mt_tensor **real = mt__temp(call);
    mt_tensor **imag = mt__temp(call);
    if (mt__is_complex(size) || mt__is_complex(angle) ||
        mt__tensor_category(size) != MT_CATEGORY_REAL || size->dtype != angle->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected both inputs to be Half, Float or Double tensors but got %s and "
                        "%s",
                        mt__type_title((mt_dtype)size->dtype),
                        mt__type_title((mt_dtype)angle->dtype));
    }
    MT_TRY(mt_cos(angle, cosine));
    MT_TRY(mt_sin(angle, sine));
    MT_TRY(mt_mul(size, *cosine, real));
    MT_TRY(mt_mul(size, *sine, imag));
    return mt_complex(*real, *imag, mt__result_place(call, 0));
}

int mt__run_conj_physical(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (!mt__is_complex(self)) {
        return mt__result_copy(call, self, (mt_dtype)self->dtype);
    }
    return run_one(call, MT_COMPLEX_CONJUGATE, false);
}

/* The conjugate is computed at once; torch marks a view and computes it when it is read. */
int mt__run_conj(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (!mt__is_complex(self)) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_conj_physical(self, mt__result_place(call, 0));
}

/* 0 and pi of real numbers, by their sign; NaN stays. */
int mt__run_angle(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (mt__is_complex(self)) {
        return run_one(call, MT_COMPLEX_ANGLE, true);
    }
    mt_tensor **below = mt__temp(call);
    mt_tensor **angle = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    mt_dtype dtype = mt__to_floating((mt_dtype)self->dtype);
    MT_TRY(mt_to_with(self, dtype, MT_DEVICE_NONE, false, false, wide));
    MT_TRY(mt_lt_scalar(*wide, mt_int(0), below));
    mt_tensor **missing = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_isnan(*wide, missing));
    MT_TRY(mt_to_with(*below, dtype, MT_DEVICE_NONE, false, false, angle));
    MT_TRY(mt_mul_scalar(*angle, mt_real(3.14159265358979323846), turned));
    return mt_where(*missing, *wide, *turned, mt__result_place(call, 0));
}
