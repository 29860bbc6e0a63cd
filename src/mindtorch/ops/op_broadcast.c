/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors brought to the sizes of others, and padding.
 */
#include "base/alloc.h"
#include "mindtorch/ops/op_support.h"

#include <inttypes.h>
#include <string.h>

/* One tensor in the common sizes: itself where it has them, as torch gives it. */
static int spread(mt_tensor *tensor, const mt__shape *shape, mt_tensor **out)
{
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
    mt_tensor **made = mtb_calloc(count == 0 ? 1 : count, sizeof(mt_tensor *));
    if (made == NULL) {
        return mtb_fail(MT_ENOMEM, "broadcast_tensors: no memory for %u tensors", count);
    }
    int status = MT_OK;
    uint32_t done = 0;
    while (done < count && status == MT_OK) {
        status = spread(given[done], &shape, &made[done]);
        done += status == MT_OK;
    }
    if (status == MT_OK) {
        status = mt__give_list(call, 0, made, count); /* takes them in any case */
    } else {
        for (uint32_t i = 0; i < done; i++) {
            mt_tensor_release(made[i]);
        }
    }
    mtb_free(made);
    return status;
}

int mt__run_expand_as(mt__call *call)
{
    mt_tensor *other = mt__arg_tensor(call, 1);
    mt_tensor *out = NULL;
    MT_TRY(mt_expand(mt__arg_tensor(call, 0), other->sizes, other->n_dims, &out));
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_view_as(mt__call *call)
{
    mt_tensor *other = mt__arg_tensor(call, 1);
    mt_tensor *out = NULL;
    MT_TRY(mt_view(mt__arg_tensor(call, 0), other->sizes, other->n_dims, &out));
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_pad(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *pad = &call->args[1];
    const char *mode = call->args[2].of.text;
    mt_tensor *out = NULL;
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
    MT_TRY(mt_constant_pad_nd(self, pad->of.ints, pad->count, mt_real(value), &out));
    mt__give(call, 0, out);
    return MT_OK;
}

/* The sizes behind padding; MT_ERUNTIME where nothing would be left. */
static int padded_shape(const mt_tensor *self, const mt_value *pad, mt__shape *shape)
{
    *shape = mt__tensor_shape(self);
    if (pad->count % 2 != 0 || pad->count / 2 > self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "constant_pad_nd: %u sizes of padding for an input of dimension %u",
                        pad->count, (unsigned)self->n_dims);
    }
    for (uint32_t i = 0; i < pad->count / 2; i++) {
        uint32_t dim = self->n_dims - 1 - i;
        int64_t size = 0;
        if (__builtin_add_overflow(shape->sizes[dim], pad->of.ints[2 * i], &size) ||
            __builtin_add_overflow(size, pad->of.ints[2 * i + 1], &size) || size < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "The input size %" PRId64 ", plus negative padding %" PRId64
                            " and %" PRId64 ", resulted in a negative output size, which is "
                            "invalid. Check dimension %u of your input.",
                            shape->sizes[dim], pad->of.ints[2 * i], pad->of.ints[2 * i + 1], dim);
        }
        shape->sizes[dim] = size;
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
            return MT_OK; /* nothing of self is left */
        }
        MT_TRY(narrow_in(from, *from, dim, first, kept));
        MT_TRY(narrow_in(to, *to, dim, before > 0 ? before : 0, kept));
    }
    return mt_copy_(*to, *from, false);
}
