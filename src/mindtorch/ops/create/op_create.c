/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating tensors: from sizes, ranges, or the shape of another tensor.
 *
 * dtype and device are the last two parameters of every row here, in this order.
 */
#include "base/fail.h"
#include "mindtorch/core/tensor/memory_format.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

/* ---- what rows share ------------------------------------------------------------------------- */

static mt_dtype dtype_or(const mt__call *call, mt_dtype otherwise)
{
    mt_dtype dtype = mt__arg_dtype(call, call->row->n_params - 2U);
    return dtype == MT_DTYPE_NONE ? otherwise : dtype;
}

/* A result of the size in parameter 0. */
static int new_of_size(mt__call *call, mt_dtype dtype, mt_tensor **out)
{
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), call->args[0].of.ints, call->args[0].count, &shape));
    return mt__result_new(call, 0, dtype, &shape, out);
}

static int new_filled(mt__call *call, mt_dtype dtype, mt_scalar value)
{
    mt_tensor *out = NULL;
    MT_TRY(mt__number_fits(&value, dtype));
    MT_TRY(new_of_size(call, dtype, &out));
    return mt__fill(out, &value);
}

/* The type of a number, which full() uses if none is given. */
static mt_dtype dtype_of_number(const mt_scalar *number)
{
    return number->kind == MT_KIND_BOOL  ? MT_DTYPE_BOOL
           : number->kind == MT_KIND_INT ? MT_DTYPE_I64
                                         : mt_default_dtype();
}

int mt__run_empty(mt__call *call)
{
    mt_tensor *out = NULL;
    return new_of_size(call, dtype_or(call, mt_default_dtype()), &out);
}

int mt__run_zeros(mt__call *call)
{
    return new_filled(call, dtype_or(call, mt_default_dtype()), mt_int(0));
}

int mt__run_ones(mt__call *call)
{
    return new_filled(call, dtype_or(call, mt_default_dtype()), mt_int(1));
}

int mt__run_full(mt__call *call)
{
    return new_filled(call, dtype_or(call, dtype_of_number(&call->args[1])), call->args[1]);
}

int mt__run_scalar_tensor(mt__call *call)
{
    mt__shape shape = {.n_dims = 0};
    mt_tensor *out = NULL;
    mt_dtype dtype = dtype_or(call, mt_default_dtype());
    MT_TRY(mt__number_fits(&call->args[0], dtype));
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    return mt__fill(out, &call->args[0]);
}

int mt__run_eye(mt__call *call)
{
    int64_t n = mt__arg_int(call, 0);
    int64_t m = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : n;
    if (n < 0 || m < 0) {
        return mtb_fail(MT_ERUNTIME, "%s must be greater or equal to 0, got %" PRId64,
                        n < 0 ? "n" : "m", n < 0 ? n : m);
    }
    mt__shape shape = {.n_dims = 2, .sizes = {n, m}};
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, dtype_or(call, mt_default_dtype()), &shape, &out));
    mt__kernel_args args = {.kernel = MT_KERNEL_EYE, MT_TENSORS(out)};
    return out->numel == 0 ? MT_OK : mt__kernel(call, &args);
}

/* ---- of another tensor's shape --------------------------------------------------------------- */

/* A result like parameter 0, with type and device of the last two parameters. */
static int new_like(mt__call *call, mt_tensor **out)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *device = &call->args[call->row->n_params - 1];
    if (device->kind == MT_KIND_DEVICE) {
        MT_TRY(mt__place_check(mt__op_name(call), (mt_device)device->of.integer));
        call->device = (mt_device)device->of.integer;
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_laid_out(call, 0, dtype_or(call, (mt_dtype)self->dtype), &shape, self));
    *out = call->results[0].of.tensor;
    return MT_OK;
}

static int new_like_filled(mt__call *call, mt_scalar value)
{
    mt_tensor *out = NULL;
    MT_TRY(mt__number_fits(&value, dtype_or(call, (mt_dtype)call->args[0].of.tensor->dtype)));
    MT_TRY(new_like(call, &out));
    return mt__fill(out, &value);
}

int mt__run_empty_like(mt__call *call)
{
    mt_tensor *out = NULL;
    return new_like(call, &out);
}

MT_RUN(zeros_like, new_like_filled, mt_int(0))

int mt__run_ones_like(mt__call *call)
{
    MT_TRY(new_like_filled(call, mt_int(1)));
    int64_t format = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : MT_FORMAT_PRESERVE;
    if (format == MT_FORMAT_PRESERVE) {
        return MT_OK;
    }
    mt_tensor *made = call->results[0].of.tensor;
    MT_TRY(mt__need_format(format, made->n_dims));
    if (mt_tensor_has_strides(made, (mt_memory_format)format)) {
        return MT_OK;
    }
    *mt__temp(call) = made; /* released with the call */
    mt__give(call, 0, NULL);
    return mt__result_format(call, made, (mt_memory_format)format);
}

int mt__run_full_like(mt__call *call)
{
    return new_like_filled(call, call->args[1]);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* out[i] = start + i * step over `count` elements from `first`; backwards where step_back. */
typedef struct range {
    int64_t first;
    int64_t count;
    bool backwards; /* element first + count - 1 is the beginning */
    mt_scalar start;
    mt_scalar step;
} range;

static int fill_range(mt__call *call, const mt_tensor *out, const range *r)
{
    if (r->count == 0) {
        return MT_OK;
    }
    int64_t stride = r->backwards ? -1 : 1;
    mt_array array = mt__array(out);
    int64_t begin = r->backwards ? r->first + r->count - 1 : r->first;
    array.data = (char *)array.data + (size_t)begin * mt_dtype_size((mt_dtype)out->dtype);
    array.sizes = &r->count;
    array.strides = &stride;
    const mt_scalar scalars[] = {r->start, r->step};
    mt_kernel_call kernel = {.kernel = MT_KERNEL_ARANGE,
                             .n_tensors = 1,
                             .tensors = &array,
                             .n_scalars = 2,
                             .scalars = scalars};
    return mt__launch(call->device, &kernel);
}

static MT_COLD int refuse_range(const mt_scalar *start, const mt_scalar *end)
{
    return mtb_fail(MT_ERUNTIME, "unsupported range: %.6g -> %.6g", mt__scalar_real(start),
                    mt__scalar_real(end));
}

/* Elements of [start, end) in steps. int64 ranges are counted in integers, others in double. */
static int count_range(const mt_scalar *s, mt_dtype dtype, int64_t *count)
{
    double start = mt__scalar_real(&s[0]);
    double end = mt__scalar_real(&s[1]);
    double step = mt__scalar_real(&s[2]);
    if (step == 0 || isnan(step)) {
        return mtb_fail(MT_ERUNTIME, "step must be nonzero");
    }
    if (!isfinite(start) || !isfinite(end)) {
        return refuse_range(&s[0], &s[1]);
    }
    if ((step > 0 && end < start) || (step < 0 && end > start)) {
        return mtb_fail(MT_ERUNTIME, "upper bound and lower bound inconsistent with step sign");
    }
    if (dtype == MT_DTYPE_I64) {
        __int128 by = mt__number_as(&s[2], dtype).of.integer;
        __int128 span = (__int128)mt__number_as(&s[1], dtype).of.integer -
                        mt__number_as(&s[0], dtype).of.integer;
        if (by == 0) {
            return mtb_fail(MT_EVALUE, "step must be nonzero");
        }
        __int128 n = (span + by - (by > 0 ? 1 : -1)) / by;
        if (n > INT64_MAX) {
            return mtb_fail(MT_ERUNTIME, "invalid size, possible overflow?");
        }
        *count = n < 0 ? 0 : (int64_t)n;
        return MT_OK;
    }
    double n = ceil((end - start) / step);
    if (!(n >= 0 && n < 0x1p63)) {
        return mtb_fail(MT_ERUNTIME, "invalid size, possible overflow?");
    }
    *count = (int64_t)n;
    return MT_OK;
}

int mt__run_arange(mt__call *call)
{
    const mt_scalar *s = call->args;
    bool real = s[0].kind == MT_KIND_REAL || s[1].kind == MT_KIND_REAL || s[2].kind == MT_KIND_REAL;
    mt_dtype dtype = dtype_or(call, real ? mt_default_dtype() : MT_DTYPE_I64);
    int64_t count = 0;
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("arange_cpu", dtype);
    }
    MT_TRY(count_range(s, dtype, &count));
    mt__shape shape = {.n_dims = 1, .sizes = {count}};
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    bool half = dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16;
    mt_tensor *wide = out;
    if (half) {
        MT_TRY(mt__temp_new(call, MT_DTYPE_F32, &shape, &wide));
    }
    range r = {
        .count = count, .start = mt__number_as(&s[0], dtype), .step = mt__number_as(&s[2], dtype)};
    MT_TRY(fill_range(call, wide, &r));
    return half ? mt__copy_elements(out, wide) : MT_OK;
}

/* The first half counts from the start, the second from the end, so that both ends are exact. For
 * integer types both ends are integers, and values between them are truncated. */
int mt__run_linspace(mt__call *call)
{
    int64_t steps = mt__arg_int(call, 2);
    mt_dtype dtype = dtype_or(call, mt_default_dtype());
    if (steps < 0) {
        return mtb_fail(MT_ERUNTIME, "number of steps must be non-negative");
    }
    if (dtype == MT_DTYPE_BOOL || dtype == MT_DTYPE_U16 || dtype == MT_DTYPE_U32 ||
        dtype == MT_DTYPE_U64) {
        return mt__refuse_type("linspace_cpu", dtype);
    }
    MT_TRY(mt__number_fits(&call->args[0], dtype));
    MT_TRY(mt__number_fits(&call->args[1], dtype));
    mt__shape shape = {.n_dims = 1, .sizes = {steps}};
    mt_tensor *out = NULL;
    mt_tensor *wide = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    bool direct = dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64;
    wide = out;
    if (!direct) {
        MT_TRY(mt__temp_new(call, MT_DTYPE_F64, &shape, &wide));
    }
    mt_scalar ends[] = {mt__number_as(&call->args[0], dtype), mt__number_as(&call->args[1], dtype)};
    if (dtype == MT_DTYPE_U8) { /* -1 is 255; other unsigned types are refused */
        ends[0].of.integer &= UINT8_MAX;
        ends[1].of.integer &= UINT8_MAX;
    }
    double start = mt__scalar_real(&ends[0]);
    double end = mt__scalar_real(&ends[1]);
    if (dtype == MT_DTYPE_F32) {
        start = (double)(float)start;
        end = (double)(float)end;
    }
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    if (dtype == MT_DTYPE_F32) {
        step = (double)(float)step;
    }
    int64_t half = steps == 1 ? 1 : steps / 2;
    range first = {.count = half, .start = mt_real(start), .step = mt_real(step)};
    range second = {.first = half,
                    .count = steps - half,
                    .backwards = true,
                    .start = mt_real(end),
                    .step = mt_real(-step)};
    MT_TRY(fill_range(call, wide, &first));
    MT_TRY(fill_range(call, wide, &second));
    return direct ? MT_OK : mt__copy_elements(out, wide);
}
