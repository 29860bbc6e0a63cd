/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of complex numbers and Fourier transforms, by torch's convention: the gradient of a
 * real loss L with respect to z = x + i y is dL/dx + i dL/dy, so a holomorphic f passes it on times
 * the conjugate of f'. The engine takes the real part where an input was real.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/boxing.h"

static bool is_complex(const mt_value *value)
{
    return value->kind == MT_KIND_TENSOR &&
           mt__tensor_category(value->of.tensor) == MT_CATEGORY_COMPLEX;
}

int mt__bw_conjugate(mt__backward *b, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    if (mt__tensor_category(tensor) == MT_CATEGORY_COMPLEX) {
        MT_TRY(mt_conj(tensor, MT_STEP(b)));
        *out = mt__bw_last(b);
    }
    return MT_OK;
}

static int with_conjugate(mt__backward *b, uint32_t op, const mt_value *args, mt_tensor **out)
{
    mt_value own[3] = {args[0], args[1], mt__box_none()};
    if (is_complex(&args[1])) {
        MT_TRY(mt_conj(args[1].of.tensor, MT_STEP(b)));
        own[1] = mt__box_tensor(mt__bw_last(b));
    }
    return mt__bw_call(b, op, own, out);
}

int mt__bw_times_conj(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    return with_conjugate(b, MT__OP_MUL, args, out);
}

int mt__bw_over_conj(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    return with_conjugate(b, MT__OP_DIV, args, out);
}

int mt__bw_conj_of(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    return mt__bw_conjugate(b, args[0].of.tensor, out);
}

/* With s = z / |z|: (g - s Re(conj(s) g)) / |z|, 0 at 0; of real numbers it is 0. */
int mt__sgn_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    if (mt__tensor_category(self) != MT_CATEGORY_COMPLEX) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(mt_sgn(self, MT_STEP(b)));
    mt_tensor *sign = mt__bw_last(b);
    MT_TRY(mt_conj(sign, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), mt__bw_grad(b), MT_STEP(b)));
    MT_TRY(mt_real_part(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(sign, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_sub(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    mt_tensor *turned = mt__bw_last(b);
    MT_TRY(mt_abs(self, MT_STEP(b)));
    mt_tensor *size = mt__bw_last(b);
    MT_TRY(mt_div(turned, size, MT_STEP(b)));
    mt_tensor *quotient = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(size, mt_int(0), MT_STEP(b)));
    mt_tensor *at_zero = mt__bw_last(b);
    MT_TRY(mt_where_scalar_tensor(at_zero, mt_int(0), quotient, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* grad (-y + i x) / |z|^2; of real numbers the angle does not change. */
int mt__angle_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    if (mt__tensor_category(self) != MT_CATEGORY_COMPLEX) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(mt_abs(self, MT_STEP(b)));
    MT_TRY(mt_square(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    mt_tensor *scale = mt__bw_last(b);
    MT_TRY(mt_imag(self, MT_STEP(b)));
    MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), scale, MT_STEP(b)));
    mt_tensor *real = mt__bw_last(b);
    MT_TRY(mt_real_part(self, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), scale, MT_STEP(b)));
    MT_TRY(mt_complex(real, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- transforms: args self, dim, normalization, ... ---- */

int mt__fft_c2c_backward(mt__backward *b)
{
    const mt_value *dim = &b->args[1];
    MT_TRY(mt__fft_c2c(mt__bw_grad(b), dim->of.ints, dim->count, mt__bw_int(b, 2),
                       mt__bw_int(b, 3) == 0, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

static int64_t last_dim(const mt__backward *b, uint32_t n_dims)
{
    const mt_value *dim = &b->args[1];
    int64_t last = dim->of.ints[dim->count - 1];
    return last < 0 ? last + n_dims : last;
}

/* The transform back of what was kept; of the rest there is no gradient. */
int mt__fft_r2c_backward(mt__backward *b)
{
    const mt_value *dim = &b->args[1];
    const mt__shape *shape = mt__bw_shape(b, 0);
    mt_tensor *grad = mt__bw_grad(b);
    if (mt__bw_int(b, 3) != 0) {
        int64_t pad[2 * MT_MAX_DIMS] = {0};
        int64_t last = last_dim(b, shape->n_dims);
        uint32_t from_end = shape->n_dims - 1 - (uint32_t)last;
        pad[2 * from_end + 1] = shape->sizes[last] - grad->sizes[last];
        MT_TRY(mt_constant_pad_nd(grad, pad, 2 * (size_t)from_end + 2, mt_int(0), MT_STEP(b)));
        grad = mt__bw_last(b);
    }
    MT_TRY(mt__fft_c2c(grad, dim->of.ints, dim->count, mt__bw_int(b, 2), false, MT_STEP(b)));
    MT_TRY(mt_real_part(mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* Elements that stand for their conjugates too count twice. */
int mt__fft_c2r_backward(mt__backward *b)
{
    const mt_value *dim = &b->args[1];
    const mt__shape *shape = mt__bw_shape(b, 0);
    int64_t last = last_dim(b, shape->n_dims);
    MT_TRY(
        mt__fft_r2c(mt__bw_grad(b), dim->of.ints, dim->count, mt__bw_int(b, 2), true, MT_STEP(b)));
    mt_tensor *half = mt__bw_last(b);
    int64_t size = half->sizes[last];
    int64_t twice = mt__bw_int(b, 3) - size; /* from 1 on */
    int64_t ends[] = {0, 1, 1 + twice, size};
    mt_tensor *pieces[3];
    for (uint32_t i = 0; i < 3; i++) {
        MT_TRY(mt_slice(half, last, &ends[i], &ends[i + 1], 1, MT_STEP(b)));
        pieces[i] = mt__bw_last(b);
    }
    MT_TRY(mt_mul_scalar(pieces[1], mt_int(2), MT_STEP(b)));
    pieces[1] = mt__bw_last(b);
    MT_TRY(mt_cat(pieces, 3, last, MT_STEP(b)));
    mt_tensor *grad = mt__bw_last(b);
    if (shape->sizes[last] != size) { /* the op did not read the rest */
        int64_t pad[2 * MT_MAX_DIMS] = {0};
        uint32_t from_end = shape->n_dims - 1 - (uint32_t)last;
        pad[2 * from_end + 1] = shape->sizes[last] - size;
        MT_TRY(mt_constant_pad_nd(grad, pad, 2 * (size_t)from_end + 2, mt_int(0), MT_STEP(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, 0, grad);
    return MT_OK;
}
