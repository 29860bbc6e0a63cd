/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms. The functions of torch.fft check and fit their input, then call one of three
 * ops; each of those runs the kernel FFT once for every dimension.
 *
 *     fft, ifft (complex input), their n-dimensional forms     _fft_c2c
 *     fft (real input), rfft                                   _fft_r2c
 *     irfft, hfft                                              _fft_c2r
 */
#include "base/fail.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    NOT_SCALED,
    BY_ROOT,
    BY_COUNT
};

/* ---- the three ops: args self, dim, normalization, ... ---- */

/* The dimensions of a call, counted from the start. */
typedef struct fft_dims {
    uint32_t count;
    int64_t at[MT_MAX_DIMS];
} fft_dims;

static int read_dims(const mt__call *call, const mt_tensor *self, fft_dims *dims)
{
    const mt_value *list = &call->args[1];
    dims->count = list->count;
    if (list->count == 0 || list->count > self->n_dims) {
        return mtb_fail(MT_ERUNTIME, "%s: %u dimensions of a tensor that has %u", mt__op_name(call),
                        list->count, self->n_dims);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        int64_t dim = list->of.ints[i];
        if (dim < -(int64_t)self->n_dims || dim >= self->n_dims) {
            return mtb_fail(MT_EINDEX, "%s: dimension %" PRId64 " of a tensor that has %u",
                            mt__op_name(call), dim, self->n_dims);
        }
        dims->at[i] = dim < 0 ? dim + self->n_dims : dim;
    }
    return MT_OK;
}

static double scale_of(int64_t normalization, double count)
{
    return normalization == BY_ROOT ? 1 / sqrt(count) : normalization == BY_COUNT ? 1 / count : 1;
}

static double elements_of(const int64_t *sizes, const fft_dims *dims)
{
    double count = 1;
    for (uint32_t i = 0; i < dims->count; i++) {
        count *= (double)sizes[dims->at[i]];
    }
    return count;
}

static int run_kernel(mt__call *call, uint16_t code, mt_tensor *out, mt_tensor *in, int64_t dim,
                      bool inverse, double scale)
{
    mt__kernel_args args = {.kernel = MT_KERNEL_FFT,
                            .code = code,
                            MT_TENSORS(out, in),
                            MT_INTS(dim, inverse),
                            MT_SCALARS(mt_real(scale))};
    return out->numel == 0 ? MT_OK : mt__kernel(call, &args);
}

/* `out` is written; the first transform reads `in`, the others work in place. */
static int run_complex(mt__call *call, mt_tensor *out, mt_tensor *in, const int64_t *dims,
                       uint32_t count, bool inverse, double scale)
{
    for (uint32_t i = 0; i < count; i++) {
        MT_TRY(run_kernel(call, 0, out, i == 0 ? in : out, dims[i], inverse, i == 0 ? scale : 1));
    }
    return MT_OK;
}

static int check_length(const mt_tensor *self, const fft_dims *dims)
{
    for (uint32_t i = 0; i < dims->count; i++) {
        if (self->sizes[dims->at[i]] < 1) {
            return mtb_fail(MT_ERUNTIME, "Invalid number of data points (%" PRId64 ") specified",
                            self->sizes[dims->at[i]]);
        }
    }
    return MT_OK;
}

int mt__run__fft_c2c(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *out = NULL;
    fft_dims dims = {0};
    if (!mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "_fft_c2c expects a complex tensor, got %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    if (call->args[1].count == 0) {
        return mt_clone(self, mt__result_place(call, 0));
    }
    MT_TRY(read_dims(call, self, &dims));
    MT_TRY(check_length(self, &dims));
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    double scale = scale_of(mt__arg_int(call, 2), elements_of(self->sizes, &dims));
    return run_complex(call, out, self, dims.at, dims.count, !mt__arg_bool(call, 3), scale);
}

int mt__run__fft_r2c(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *out = NULL;
    fft_dims dims = {0};
    if (self->dtype != MT_DTYPE_F32 && self->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME, "_fft_r2c expects a float32 or float64 tensor, got %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(read_dims(call, self, &dims));
    MT_TRY(check_length(self, &dims));
    mt_dtype dtype = mt__complex_type((mt_dtype)self->dtype);
    mt__shape shape = mt__tensor_shape(self);
    double scale = scale_of(mt__arg_int(call, 2), elements_of(self->sizes, &dims));
    int64_t last = dims.at[dims.count - 1];
    if (mt__arg_bool(call, 3)) {
        shape.sizes[last] = shape.sizes[last] / 2 + 1;
    }
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    MT_TRY(run_kernel(call, 1, out, self, last, false, scale));
    return run_complex(call, out, out, dims.at, dims.count - 1, false, 1);
}

int mt__run__fft_c2r(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *out = NULL;
    fft_dims dims = {0};
    int64_t length = mt__arg_int(call, 3);
    if (!mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "_fft_c2r expects a complex tensor, got %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(read_dims(call, self, &dims));
    int64_t last = dims.at[dims.count - 1];
    if (length < 1 || self->sizes[last] < length / 2 + 1) {
        return mtb_fail(MT_ERUNTIME, "Invalid number of data points (%" PRId64 ") specified",
                        length);
    }
    mt__shape shape = mt__tensor_shape(self);
    shape.sizes[last] = length;
    if (dims.count > 1) {
        mt_tensor *others = NULL;
        mt__shape own = mt__tensor_shape(self);
        MT_TRY(mt__temp_new(call, (mt_dtype)self->dtype, &own, &others));
        MT_TRY(run_complex(call, others, self, dims.at, dims.count - 1, true, 1));
        self = others;
    }
    MT_TRY(mt__result_new(call, 0, mt__part_type((mt_dtype)self->dtype), &shape, &out));
    double scale = scale_of(mt__arg_int(call, 2), elements_of(shape.sizes, &dims));
    return run_kernel(call, 2, out, self, last, true, scale);
}

/* ---- what the functions share ---- */

/* norm for the direction: "backward" scales the inverse by the count, "forward" the forward one. */
static int read_norm(const mt_value *norm, bool forward, int64_t *normalization)
{
    const char *text = norm->kind == MT_KIND_TEXT ? norm->of.text : "backward";
    if (strcmp(text, "ortho") == 0) {
        *normalization = BY_ROOT;
    } else if (strcmp(text, "forward") == 0 || strcmp(text, "backward") == 0) {
        *normalization = (text[0] == 'f') == forward ? BY_COUNT : NOT_SCALED;
    } else {
        return mtb_fail(MT_ERUNTIME, "Invalid normalization mode: \"%s\"", text);
    }
    return MT_OK;
}

/* Input in a type that transforms are computed in. */
static int promoted(mt__call *call, mt_tensor *self, bool complex, mt_tensor **out)
{
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16) {
        return mtb_fail(MT_ERUNTIME, "Unsupported dtype %s", mt__type_title(dtype));
    }
    if (mt_dtype_category(dtype) < MT_CATEGORY_REAL) {
        dtype = mt_default_dtype();
    }
    if (complex) {
        dtype = mt__complex_type(dtype);
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_to_with(self, dtype, MT_DEVICE_NONE, false, false, place));
    *out = *place;
    return MT_OK;
}

/* Cut, or filled up with zeros, to n elements in `dim`. */
static int fit(mt__call *call, mt_tensor *self, int64_t dim, int64_t n, mt_tensor **out)
{
    int64_t size = self->sizes[dim];
    *out = self;
    if (n == size) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    if (n < size) {
        static const int64_t start = 0;
        MT_TRY(mt_slice(self, dim, &start, &n, 1, place));
    } else {
        int64_t pad[2 * MT_MAX_DIMS] = {0};
        uint32_t from_end = self->n_dims - 1 - (uint32_t)dim;
        pad[2 * from_end + 1] = n - size;
        MT_TRY(mt_constant_pad_nd(self, pad, 2 * (size_t)from_end + 2, mt_int(0), place));
    }
    *out = *place;
    return MT_OK;
}

static int one_dim(const mt__call *call, const mt_tensor *self, int64_t *dim)
{
    int64_t n = self->n_dims;
    if (n == 0) {
        return mtb_fail(MT_EINDEX,
                        "Dimension specified as %" PRId64 " but tensor has no dimensions",
                        mt__arg_int(call, 2));
    }
    *dim = mt__arg_int(call, 2);
    if (*dim < -n || *dim >= n) {
        return mtb_fail(MT_EINDEX,
                        "Dimension out of range (expected to be in range of [%" PRId64 ", %" PRId64
                        "], but got %" PRId64 ")",
                        -n, n - 1, *dim);
    }
    *dim += *dim < 0 ? n : 0;
    return MT_OK;
}

static int check_points(int64_t n)
{
    return n >= 1
               ? MT_OK
               : mtb_fail(MT_ERUNTIME, "Invalid number of data points (%" PRId64 ") specified", n);
}

/* ---- one dimension: args self, n, dim, norm ---- */

static int run_fft(mt__call *call, bool forward)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t dim = 0;
    int64_t normalization = 0;
    MT_TRY(one_dim(call, self, &dim));
    int64_t n = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : self->sizes[dim];
    MT_TRY(check_points(n));
    MT_TRY(read_norm(&call->args[3], forward, &normalization));
    MT_TRY(promoted(call, self, false, &self));
    MT_TRY(fit(call, self, dim, n, &self));
    if (mt__is_complex(self)) {
        return mt__fft_c2c(self, &dim, 1, normalization, forward, mt__result_place(call, 0));
    }
    if (forward) {
        return mt__fft_r2c(self, &dim, 1, normalization, false, mt__result_place(call, 0));
    }
    mt_tensor **turned = mt__temp(call); /* of real numbers the inverse is the conjugate */
    MT_TRY(mt__fft_r2c(self, &dim, 1, normalization, false, turned));
    return mt_conj(*turned, mt__result_place(call, 0));
}

MT_RUN(fft_fft, run_fft, true)
MT_RUN(fft_ifft, run_fft, false)

static int run_rfft(mt__call *call, bool forward)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t dim = 0;
    int64_t normalization = 0;
    if (mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "%s expects a real input tensor, but got %s",
                        mt__op_name(call) + 4, mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(one_dim(call, self, &dim));
    int64_t n = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : self->sizes[dim];
    MT_TRY(check_points(n));
    MT_TRY(read_norm(&call->args[3], forward, &normalization));
    MT_TRY(promoted(call, self, false, &self));
    MT_TRY(fit(call, self, dim, n, &self));
    if (forward) {
        return mt__fft_r2c(self, &dim, 1, normalization, true, mt__result_place(call, 0));
    }
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt__fft_r2c(self, &dim, 1, normalization, true, turned));
    return mt_conj(*turned, mt__result_place(call, 0));
}

MT_RUN(fft_rfft, run_rfft, true)
MT_RUN(fft_ihfft, run_rfft, false)

static int run_irfft(mt__call *call, bool forward)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t dim = 0;
    int64_t normalization = 0;
    MT_TRY(one_dim(call, self, &dim));
    int64_t n = mt__arg_given(call, 1) ? mt__arg_int(call, 1) : 2 * (self->sizes[dim] - 1);
    MT_TRY(check_points(n));
    MT_TRY(read_norm(&call->args[3], forward, &normalization));
    MT_TRY(promoted(call, self, true, &self));
    MT_TRY(fit(call, self, dim, n / 2 + 1, &self));
    if (forward) { /* hfft */
        mt_tensor **turned = mt__temp(call);
        MT_TRY(mt_conj(self, turned));
        self = *turned;
    }
    return mt__fft_c2r(self, &dim, 1, normalization, n, mt__result_place(call, 0));
}

MT_RUN(fft_irfft, run_irfft, false)
MT_RUN(fft_hfft, run_irfft, true)

/* ---- several dimensions: args self, s, dim, norm ---- */

/* Dimensions, and the size of each. */
typedef struct fft_shape {
    uint32_t count;
    int64_t dims[MT_MAX_DIMS];
    int64_t sizes[MT_MAX_DIMS];
} fft_shape;

/* two: where no dimensions are given, the last two. */
static int read_shape(const mt__call *call, const mt_tensor *self, bool two, fft_shape *shape)
{
    const mt_value *s = &call->args[1];
    const mt_value *dim = &call->args[2];
    bool has_s = s->kind == MT_KIND_INTS;
    bool has_dim = dim->kind == MT_KIND_INTS;
    if (has_s && has_dim && s->count != dim->count) {
        return mtb_fail(MT_ERUNTIME,
                        "When given, dim and shape arguments must have the same length");
    }
    uint32_t count = has_dim ? dim->count : has_s ? s->count : two ? 2 : self->n_dims;
    if (count > self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "Got shape with %u values but input tensor only has %u "
                        "dimensions.",
                        count, self->n_dims);
    }
    shape->count = count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = has_dim ? dim->of.ints[i] : (int64_t)self->n_dims - count + i;
        if (at < -(int64_t)self->n_dims || at >= self->n_dims) {
            return mtb_fail(MT_EINDEX,
                            "Dimension out of range (expected to be in range of [-%u, %u], but got "
                            "%" PRId64 ")",
                            self->n_dims, self->n_dims - 1U, at);
        }
        shape->dims[i] = at < 0 ? at + self->n_dims : at;
        for (uint32_t k = 0; k < i; k++) {
            if (shape->dims[k] == shape->dims[i]) {
                return mtb_fail(MT_ERUNTIME, "FFT dims must be unique");
            }
        }
        shape->sizes[i] =
            has_s && s->of.ints[i] != -1 ? s->of.ints[i] : self->sizes[shape->dims[i]];
        MT_TRY(check_points(shape->sizes[i]));
    }
    return MT_OK;
}

static int fit_all(mt__call *call, const fft_shape *shape, mt_tensor **self)
{
    for (uint32_t i = 0; i < shape->count; i++) {
        MT_TRY(fit(call, *self, shape->dims[i], shape->sizes[i], self));
    }
    return MT_OK;
}

static int run_fftn(mt__call *call, bool forward, bool two)
{
    mt_tensor *self = call->args[0].of.tensor;
    fft_shape shape = {0};
    int64_t normalization = 0;
    MT_TRY(read_shape(call, self, two, &shape));
    MT_TRY(read_norm(&call->args[3], forward, &normalization));
    MT_TRY(promoted(call, self, true, &self));
    MT_TRY(fit_all(call, &shape, &self));
    return mt__fft_c2c(self, shape.dims, shape.count, normalization, forward,
                       mt__result_place(call, 0));
}

MT_RUN(fft_fft2, run_fftn, true, true)
MT_RUN(fft_ifft2, run_fftn, false, true)
MT_RUN(fft_fftn, run_fftn, true, false)
MT_RUN(fft_ifftn, run_fftn, false, false)

static int run_rfftn(mt__call *call, bool two)
{
    mt_tensor *self = call->args[0].of.tensor;
    fft_shape shape = {0};
    int64_t normalization = 0;
    if (mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "rfftn expects a real-valued input tensor, but got %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(read_shape(call, self, two, &shape));
    if (shape.count == 0) {
        return mtb_fail(MT_ERUNTIME, "rfftn must transform at least one axis");
    }
    MT_TRY(read_norm(&call->args[3], true, &normalization));
    MT_TRY(promoted(call, self, false, &self));
    MT_TRY(fit_all(call, &shape, &self));
    return mt__fft_r2c(self, shape.dims, shape.count, normalization, true,
                       mt__result_place(call, 0));
}

MT_RUN(fft_rfft2, run_rfftn, true)
MT_RUN(fft_rfftn, run_rfftn, false)

/* What irfftn() and hfftn() begin with: the shape, the points n of the last dimension, of which the
 * input has half, and *self as complex numbers of these sizes. */
static int begin_to_real(mt__call *call, bool two, const char *name, bool forward, mt_tensor **self,
                         fft_shape *shape, int64_t *n, int64_t *normalization)
{
    MT_TRY(read_shape(call, *self, two, shape));
    if (shape->count == 0) {
        return mtb_fail(MT_ERUNTIME, "%s must transform at least one axis", name);
    }
    uint32_t last = shape->count - 1;
    bool given = call->args[1].kind == MT_KIND_INTS && call->args[1].of.ints[last] != -1;
    *n = given ? shape->sizes[last] : 2 * ((*self)->sizes[shape->dims[last]] - 1);
    MT_TRY(check_points(*n));
    MT_TRY(read_norm(&call->args[3], forward, normalization));
    MT_TRY(promoted(call, *self, true, self));
    shape->sizes[last] = *n / 2 + 1;
    return fit_all(call, shape, self);
}

static int run_irfftn(mt__call *call, bool two)
{
    mt_tensor *self = call->args[0].of.tensor;
    fft_shape shape = {0};
    int64_t n = 0;
    int64_t normalization = 0;
    MT_TRY(begin_to_real(call, two, "irfftn", false, &self, &shape, &n, &normalization));
    return mt__fft_c2r(self, shape.dims, shape.count, normalization, n, mt__result_place(call, 0));
}

MT_RUN(fft_irfft2, run_irfftn, true)
MT_RUN(fft_irfftn, run_irfftn, false)

/* hfft() of the last dimension, after fft() of the others. */
static int run_hfftn(mt__call *call, bool two)
{
    mt_tensor *self = call->args[0].of.tensor;
    fft_shape shape = {0};
    int64_t n = 0;
    int64_t normalization = 0;
    MT_TRY(begin_to_real(call, two, "hfftn", true, &self, &shape, &n, &normalization));
    uint32_t last = shape.count - 1;
    if (last > 0) {
        mt_tensor **others = mt__temp(call);
        MT_TRY(mt__fft_c2c(self, shape.dims, last, normalization, true, others));
        self = *others;
    }
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_conj(self, turned));
    return mt__fft_c2r(*turned, &shape.dims[last], 1, normalization, n, mt__result_place(call, 0));
}

MT_RUN(fft_hfft2, run_hfftn, true)
MT_RUN(fft_hfftn, run_hfftn, false)

/* The inverse: ihfft() of the last dimension, then ifft() of the others. */
static int run_ihfftn(mt__call *call, bool two)
{
    mt_tensor *self = call->args[0].of.tensor;
    fft_shape shape = {0};
    int64_t normalization = 0;
    if (mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "ihfftn expects a real-valued input tensor, but got %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(read_shape(call, self, two, &shape));
    if (shape.count == 0) {
        return mtb_fail(MT_ERUNTIME, "ihfftn must transform at least one axis");
    }
    uint32_t last = shape.count - 1;
    mt_tensor **line = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    MT_TRY(read_norm(&call->args[3], false, &normalization));
    MT_TRY(promoted(call, self, false, &self));
    MT_TRY(fit_all(call, &shape, &self));
    MT_TRY(mt__fft_r2c(self, &shape.dims[last], 1, normalization, true, line));
    if (last == 0) {
        return mt_conj(*line, mt__result_place(call, 0));
    }
    MT_TRY(mt_conj(*line, turned));
    return mt__fft_c2c(*turned, shape.dims, last, normalization, false, mt__result_place(call, 0));
}

MT_RUN(fft_ihfft2, run_ihfftn, true)
MT_RUN(fft_ihfftn, run_ihfftn, false)

/* ---- frequencies ---- */

static int run_shift(mt__call *call, bool inverse)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *dim = &call->args[1];
    int64_t dims[MT_MAX_DIMS];
    int64_t shifts[MT_MAX_DIMS] = {0};
    uint32_t count = dim->kind == MT_KIND_INTS ? dim->count : self->n_dims;
    if (count > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s: %u dimensions, at most %d", mt__op_name(call), count,
                        MT_MAX_DIMS);
    }
    if (count == 0) {
        return mt_clone(self, mt__result_place(call, 0));
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = dim->kind == MT_KIND_INTS ? dim->of.ints[i] : i;
        if (at < -(int64_t)self->n_dims || at >= self->n_dims) {
            return mtb_fail(MT_EINDEX,
                            "Dimension out of range (expected to be in range of [-%u, %u], but got "
                            "%" PRId64 ")",
                            self->n_dims, self->n_dims - 1U, at);
        }
        dims[i] = at < 0 ? at + self->n_dims : at;
        int64_t size = self->sizes[dims[i]];
        shifts[i] = inverse ? (size + 1) / 2 : size / 2;
    }
    return mt_roll(self, shifts, count, dims, count, mt__result_place(call, 0));
}

MT_RUN(fft_fftshift, run_shift, false)
MT_RUN(fft_ifftshift, run_shift, true)

/* 0, 1 .. (n - 1) / 2, then the negative ones where there are any, divided by n d. */
static int run_frequencies(mt__call *call, bool half)
{
    int64_t n = mt__arg_int(call, 0);
    double step = 1.0 / ((double)n * mt__arg_real(call, 1));
    mt_dtype dtype = mt__arg_dtype(call, 2);
    mt_tensor **up = mt__temp(call);
    dtype = dtype == MT_DTYPE_NONE ? mt_default_dtype() : dtype;
    if (n < (half ? 1 : 0)) {
        return mtb_fail(MT_ERUNTIME, "%s: the number of points must be positive, got %" PRId64,
                        mt__op_name(call), n);
    }
    int64_t positive = half ? n / 2 + 1 : (n + 1) / 2;
    MT_TRY(mt_arange_with(mt_int(0), mt_int(positive), mt_int(1), dtype, call->device, up));
    mt_tensor *both[2] = {*up, NULL};
    mt_tensor **down = mt__temp(call);
    mt_tensor **all = mt__temp(call);
    if (!half && n > 1) {
        MT_TRY(mt_arange_with(mt_int(-(n / 2)), mt_int(0), mt_int(1), dtype, call->device, down));
        both[1] = *down;
        MT_TRY(mt_cat(both, 2, 0, all));
        both[0] = *all;
    }
    return mt_mul_scalar(both[0], mt_real(step), mt__result_place(call, 0));
}

MT_RUN(fft_fftfreq, run_frequencies, false)
MT_RUN(fft_rfftfreq, run_frequencies, true)
