/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasting tensors to common sizes, and padding.
 */
#include "mindtorch/ops/op_support.h"

#include <inttypes.h>
#include <string.h>

/* One tensor in the common sizes: the tensor itself if it has them, as in torch. */
static int spread(mt_tensor *tensor, const void *sizes, mt_tensor **out)
{
    const mt__shape *shape = sizes;
    mt__shape own = mt__tensor_shape(tensor);
    if (mt__shape_equal(&own, shape)) {
        *out = mt_tensor_retain(tensor);
        return MT_OK;
    }
    return mt_expand(tensor, shape->sizes, shape->n_dims, out);
}

int mt__run_broadcast_tensors(mt__call *call)
{
    mt_tensor *const *given = call->args[0].of.tensors;
    uint32_t count = call->args[0].count;
    mt__shape shape = {.n_dims = 0};
    for (uint32_t i = 0; i < count; i++) {
        MT_TRY(mt__shape_broadcast(&shape, given[i]->sizes, given[i]->n_dims));
    }
    return mt__result_each(call, spread, &shape);
}

/* ---- in the shape of another tensor ---- */

typedef int reshaping(mt_tensor *self, const int64_t *sizes, size_t n_dims, mt_tensor **out);

static int like_other(mt__call *call, reshaping *reshape)
{
    mt_tensor *other = mt__arg_tensor(call, 1);
    return reshape(mt__arg_tensor(call, 0), other->sizes, other->n_dims, mt__result_place(call, 0));
}

MT_RUN(expand_as, like_other, mt_expand)
MT_RUN(view_as, like_other, mt_view)
MT_RUN(reshape_as, like_other, mt_reshape)

int mt__run_pad(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *pad = &call->args[1];
    const char *mode = call->args[2].of.text;
    if (pad->count % 2 != 0) {
        return mtb_fail(MT_ERUNTIME, "Padding length must be divisible by 2");
    }
    if (pad->count / 2 > self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "Padding length should be less than or equal to two times the input "
                        "dimension but got padding length %u and input of dimension %u",
                        pad->count, (unsigned)self->n_dims);
    }
    if (strcmp(mode, "constant") != 0) {
        return mtb_fail(MT_ENOTSUP, "Unrecognised padding mode %s", mode);
    }
    double value = mt__arg_given(call, 3) ? mt__arg_real(call, 3) : 0.0;
    return mt_constant_pad_nd(self, pad->of.ints, pad->count, mt_real(value),
                              mt__result_place(call, 0));
}

/* The sizes after padding. Negative padding must not cut off more than there is; other overflow is
 * caught by the allocation. */
static int padded_shape(const mt_tensor *self, const mt_value *pad, mt__shape *shape)
{
    *shape = mt__tensor_shape(self);
    if (pad->count % 2 != 0) {
        return mtb_fail(MT_ERUNTIME, "Length of pad must be even but instead it equals %u",
                        pad->count);
    }
    if (pad->count / 2 > self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "Length of pad should be no more than twice the number of dimensions of "
                        "the input. Pad length is %u while the input has %u dimensions.",
                        pad->count, (unsigned)self->n_dims);
    }
    for (uint32_t i = 0; i < pad->count / 2; i++) {
        const int64_t *by = &pad->of.ints[2 * i];
        int64_t *size = &shape->sizes[self->n_dims - 1 - i];
        int64_t cut = 0;
        if (__builtin_add_overflow(by[0] < 0 ? by[0] : 0, by[1] < 0 ? by[1] : 0, &cut) ||
            *size + cut < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "narrow(): length must be non-negative. Padding %" PRId64
                            " and %" PRId64 " cut more off than the size %" PRId64
                            " of dimension %u",
                            by[0], by[1], *size, self->n_dims - 1 - i);
        }
        *size += cut;
        if ((by[0] > 0 && __builtin_add_overflow(*size, by[0], size)) ||
            (by[1] > 0 && __builtin_add_overflow(*size, by[1], size))) {
            return mtb_fail(MT_ERUNTIME,
                            "constant_pad_nd: padding %" PRId64 " and %" PRId64
                            " of dimension %u is more than a tensor can have",
                            by[0], by[1], self->n_dims - 1 - i);
        }
    }
    return MT_OK;
}

/* *view becomes a part of `from` along one dimension, in the place of what it was. */
static int narrow_in(mt_tensor **view, mt_tensor *from, uint32_t dim, int64_t start, int64_t length)
{
    mt_tensor *part = NULL;
    MT_TRY(mt_narrow(from, dim, start, length, &part));
    mt_tensor_release(*view);
    *view = part;
    return MT_OK;
}

int mt__run_constant_pad_nd(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *pad = &call->args[1];
    mt__shape shape = {.n_dims = 0};
    mt_tensor *out = NULL;
    MT_TRY(padded_shape(self, pad, &shape));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    MT_TRY(mt_fill_scalar_(out, call->args[2]));
    mt_tensor **from = mt__temp(call);
    mt_tensor **to = mt__temp(call);
    *from = mt_tensor_retain(self);
    *to = mt_tensor_retain(out);
    for (uint32_t i = 0; i < pad->count / 2; i++) {
        int64_t before = pad->of.ints[2 * i];
        int64_t after = pad->of.ints[2 * i + 1];
        uint32_t dim = self->n_dims - 1 - i;
        int64_t first = before < 0 ? -before : 0; /* of self: a negative padding cuts */
        int64_t kept = self->sizes[dim] - first - (after < 0 ? -after : 0);
        if (kept <= 0) {
            return MT_OK; /* all of self is cut off */
        }
        MT_TRY(narrow_in(from, *from, dim, first, kept));
        MT_TRY(narrow_in(to, *to, dim, before > 0 ? before : 0, kept));
    }
    return mt_copy_(*to, *from, false);
}
