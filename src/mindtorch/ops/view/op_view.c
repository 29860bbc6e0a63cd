/* SPDX-License-Identifier: Apache-2.0
 *
 * Views: one small tensor each, over the storage of the first argument.
 *
 *   VW1  A leaf here never reads or writes an element and allocates nothing but the tensor itself.
 *   VW2  All elements of a view lie inside the storage.
 */
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>
#include <string.h>

/* ---- other sizes for the same elements ------------------------------------------------------- */

/* The strides with which the tensor can be viewed as `shape`; false if there are none. */
static bool reads_as(const mt_tensor *self, const mt__shape *shape, mt__view_geometry *g)
{
    g->n_dims = shape->n_dims;
    g->offset = self->offset;
    memcpy(g->sizes, shape->sizes, shape->n_dims * sizeof(shape->sizes[0]));
    if (self->contiguous) {
        mt__shape_strides(shape->sizes, shape->n_dims, g->strides);
        return true;
    }
    return mt__shape_view_strides(self->sizes, self->strides, self->n_dims, shape, g->strides);
}

int mt__run_view(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape shape;
    mt__view_geometry g;
    MT_TRY(mt__shape_infer(call->args[1].of.ints, call->args[1].count, self->numel, &shape));
    if (!reads_as(self, &shape, &g)) {
        return mtb_fail(MT_ERUNTIME,
                        "view size is not compatible with input tensor's size and stride (at least "
                        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
                        "instead.");
    }
    return mt__give_view(call, self, &g);
}

/* The bytes of the elements as elements of another type. The last dimension grows or shrinks where
 * the sizes of the types differ; `ratio` is how many of the smaller make one of the larger. */
static int read_as_type(const mt_tensor *self, mt_dtype dtype, mt__view_geometry *g)
{
    const char *from = mt__type_title((mt_dtype)self->dtype);
    const char *to = mt__type_title(dtype);
    int64_t old_bytes = (int64_t)mt_dtype_size((mt_dtype)self->dtype);
    int64_t new_bytes = (int64_t)mt_dtype_size(dtype);
    mt__geometry_of(self, g);
    if (old_bytes == new_bytes) {
        return MT_OK;
    }
    if (g->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "self.dim() cannot be 0 to view %s as %s (different element sizes)", from,
                        to);
    }
    uint32_t last = g->n_dims - 1;
    if (g->strides[last] != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "self.stride(-1) must be 1 to view %s as %s (different element sizes), but "
                        "got %" PRId64,
                        from, to, g->strides[last]);
    }
    bool grows = old_bytes > new_bytes;
    int64_t ratio = grows ? old_bytes / new_bytes : new_bytes / old_bytes;
    if (!grows && (g->sizes[last] % ratio != 0 || g->offset % ratio != 0)) {
        bool size = g->sizes[last] % ratio != 0;
        return mtb_fail(MT_ERUNTIME,
                        "self.%s must be divisible by %" PRId64
                        " to view %s as %s (different element sizes), but got %" PRId64,
                        size ? "size(-1)" : "storage_offset()", ratio, from, to,
                        size ? g->sizes[last] : g->offset);
    }
    for (uint32_t d = 0; d < last; d++) {
        if (!grows && g->strides[d] % ratio != 0) {
            return mtb_fail(MT_ERUNTIME,
                            "self.stride(%u) must be divisible by %" PRId64
                            " to view %s as %s (different element sizes), but got %" PRId64,
                            d, ratio, from, to, g->strides[d]);
        }
        g->strides[d] = grows ? g->strides[d] * ratio : g->strides[d] / ratio;
    }
    g->sizes[last] = grows ? g->sizes[last] * ratio : g->sizes[last] / ratio;
    g->offset = grows ? g->offset * ratio : g->offset / ratio;
    return MT_OK;
}

/* No gradient passes, so it is not tracked: the graph would need the type of the base. */
int mt__run_view_dtype(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_dtype dtype = mt__arg_dtype(call, 1);
    mt__view_geometry g;
    MT_TRY(read_as_type(self, dtype, &g));
    mt_tensor **out = mt__result_place(call, 0);
    MT_TRY(mt__geometry_view(self, &g, false, out));
    (*out)->dtype = (uint8_t)dtype;
    return MT_OK;
}

/* A view that shares only the storage with `self` and is not tracked: for fresh copies to which
 * nothing else refers. */
int mt__run__unsafe_view(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape shape;
    mt__view_geometry g;
    MT_TRY(mt__shape_infer(call->args[1].of.ints, call->args[1].count, self->numel, &shape));
    if (!reads_as(self, &shape, &g)) {
        return mtb_fail(MT_ERUNTIME,
                        "_unsafe_view: view size is not compatible with input tensor's size and "
                        "stride");
    }
    return mt__geometry_view(self, &g, false, mt__result_place(call, 0));
}

/* Reads `self` as `sizes`, copied first where strides do not allow it. */
static int reshape(mt__call *call, mt_tensor *self, const int64_t *sizes, size_t n_dims)
{
    mt__shape shape;
    mt__view_geometry g;
    mt_tensor *out = NULL;
    MT_TRY(mt__shape_infer(sizes, n_dims, self->numel, &shape));
    if (reads_as(self, &shape, &g)) {
        MT_TRY(mt_view(self, shape.sizes, shape.n_dims, &out));
    } else {
        mt_tensor **copy = mt__temp(call);
        const int64_t format = 0; /* contiguous */
        MT_TRY(mt_clone_with(self, &format, copy));
        MT_TRY(mt__unsafe_view(*copy, shape.sizes, shape.n_dims, &out));
    }
    mt__give(call, 0, out);
    return 0;
}

int mt__run_reshape(mt__call *call)
{
    return reshape(call, mt__arg_tensor(call, 0), call->args[1].of.ints, call->args[1].count);
}

int mt__run_flatten(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t sizes[MT_MAX_DIMS];
    uint32_t n = 0;
    uint32_t first;
    uint32_t last;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &first));
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &last));
    if (first > last) {
        return mtb_fail(MT_ERUNTIME,
                        "flatten() has invalid args: start_dim cannot come after end_dim");
    }
    if (self->n_dims == 0) {
        return reshape(call, self, (const int64_t[]){1}, 1);
    }
    if (first == last) {
        mt__result_same(call, 0, self);
        return 0;
    }
    int64_t joined = 1;
    for (uint32_t i = 0; i < self->n_dims; i++) {
        if (i >= first && i <= last) {
            joined *= self->sizes[i];
        }
        if (i < first || i > last) {
            sizes[n++] = self->sizes[i];
        } else if (i == last) {
            sizes[n++] = joined;
        }
    }
    return reshape(call, self, sizes, n);
}

/* Fills in a -1 of `sizes` so that they multiply up to `size`. */
static int infer_parts(int64_t *sizes, uint32_t n, uint32_t dim, int64_t size)
{
    char text[MT_SHAPE_TEXT];
    int64_t known = 1;
    int64_t unknown = -1;
    bool fits = true;
    for (uint32_t i = 0; i < n; i++) {
        if (sizes[i] == -1 && unknown >= 0) {
            return mtb_fail(MT_ERUNTIME, "unflatten: only one dimension can be inferred, got %s",
                            mt__shape_text(sizes, n, text));
        }
        if (sizes[i] < -1) {
            return mtb_fail(MT_ERUNTIME,
                            "unflatten: invalid shape dimension %" PRId64
                            " at index %u of shape %s",
                            sizes[i], i, mt__shape_text(sizes, n, text));
        }
        if (sizes[i] == -1) {
            unknown = i;
        } else {
            fits = fits && !__builtin_mul_overflow(known, sizes[i], &known);
        }
    }
    if (unknown >= 0 && known == 0 && size == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "unflatten: the unspecified dimension of %s can be any value and is "
                        "ambiguous",
                        mt__shape_text(sizes, n, text));
    }
    if (fits && unknown >= 0 && known != 0 && size % known == 0) {
        sizes[unknown] = size / known;
        return 0;
    }
    if (!fits || unknown >= 0 || known != size) {
        return mtb_fail(MT_ERUNTIME,
                        "unflatten: Provided sizes %s don't multiply up to the size of dim %u "
                        "(%" PRId64 ") in the input tensor",
                        mt__shape_text(sizes, n, text), dim, size);
    }
    return 0;
}

int mt__run_unflatten(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *parts = &call->args[2];
    int64_t sizes[2 * MT_MAX_DIMS];
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (self->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "unflatten: the input has no dimensions");
    }
    if (parts->count == 0) {
        return mtb_fail(MT_ERUNTIME, "unflatten: sizes must be non-empty");
    }
    if (parts->count > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "unflatten: %u sizes, at most %d", parts->count, MT_MAX_DIMS);
    }
    memcpy(sizes, self->sizes, dim * sizeof(sizes[0]));
    memcpy(sizes + dim, parts->of.ints, parts->count * sizeof(sizes[0]));
    memcpy(sizes + dim + parts->count, self->sizes + dim + 1,
           (self->n_dims - dim - 1) * sizeof(sizes[0]));
    MT_TRY(infer_parts(sizes + dim, parts->count, dim, self->sizes[dim]));
    return mt_view(self, sizes, self->n_dims + parts->count - 1, mt__result_place(call, 0));
}

int mt__run_expand(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const int64_t *sizes = call->args[1].of.ints;
    uint32_t n = call->args[1].count;
    char have[MT_SHAPE_TEXT];
    char want[MT_SHAPE_TEXT];
    if (n < self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "expand(%s, size=%s): the number of sizes provided (%u) must be greater or "
                        "equal to the number of dimensions in the tensor (%u)",
                        mt__shape_text(self->sizes, self->n_dims, have),
                        mt__shape_text(sizes, n, want), n, self->n_dims);
    }
    if (n > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "expand: %u dimensions, at most %d", n, MT_MAX_DIMS);
    }
    mt__view_geometry g = {.n_dims = n, .offset = self->offset};
    uint32_t fresh = n - self->n_dims;
    for (uint32_t i = n; i-- > 0;) {
        int64_t old = i < fresh ? 1 : self->sizes[i - fresh];
        if (i < fresh && sizes[i] < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "The expanded size of the tensor (%" PRId64
                            ") isn't allowed in a leading, non-existing dimension %u",
                            sizes[i], i);
        }
        g.sizes[i] = sizes[i] == -1 ? old : sizes[i];
        if (g.sizes[i] != old && (old != 1 || g.sizes[i] < 0)) {
            return mtb_fail(MT_ERUNTIME,
                            "The expanded size of the tensor (%" PRId64
                            ") must match the existing size (%" PRId64
                            ") at non-singleton dimension %u.  Target sizes: %s.  Tensor sizes: %s",
                            g.sizes[i], old, i, mt__shape_text(sizes, n, want),
                            mt__shape_text(self->sizes, self->n_dims, have));
        }
        int64_t dense = i + 1 < n ? g.sizes[i + 1] * g.strides[i + 1] : 1;
        int64_t stride = i >= fresh ? self->strides[i - fresh] : self->n_dims == 0 ? 0 : dense;
        g.strides[i] = g.sizes[i] == old ? stride : 0;
    }
    MT_TRY(mt__geometry_check_numel("expand", &g));
    return mt__give_view(call, self, &g);
}

/* ---- dimensions in another order ------------------------------------------------------------- */

static int permuted(const mt_tensor *self, const int64_t *dims, uint32_t n, mt__view_geometry *g)
{
    uint32_t seen = 0;
    g->n_dims = n;
    g->offset = self->offset;
    if (n != self->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "permute(): number of dimensions in the tensor input does not match the "
                        "length of the desired ordering of dimensions i.e. input.dim() = %u is not "
                        "equal to len(dims) = %u",
                        self->n_dims, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d;
        MT_TRY(mt__wrap_dim(dims[i], n, &d));
        if ((seen >> d & 1U) != 0) {
            return mtb_fail(MT_ERUNTIME, "permute(): duplicate dims are not allowed.");
        }
        seen |= 1U << d;
        g->sizes[i] = self->sizes[d];
        g->strides[i] = self->strides[d];
    }
    return 0;
}

int mt__run_permute(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    MT_TRY(permuted(self, call->args[1].of.ints, call->args[1].count, &g));
    return mt__give_view(call, self, &g);
}

int mt__run_movedim(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t dims[MT_MAX_DIMS];
    uint32_t n = 0;
    uint32_t from;
    uint32_t to;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &from));
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &to));
    for (uint32_t i = 0; i < self->n_dims; i++) {
        if (i == from) {
            continue;
        }
        if (n == to) {
            dims[n++] = from;
        }
        dims[n++] = i;
    }
    if (n < self->n_dims) {
        dims[n] = from;
    }
    return mt_permute(self, dims, self->n_dims, mt__result_place(call, 0));
}

static int give_swapped(mt__call *call, mt_tensor *self, uint32_t a, uint32_t b)
{
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    if (self->n_dims > 0) {
        g.sizes[a] = self->sizes[b];
        g.sizes[b] = self->sizes[a];
        g.strides[a] = self->strides[b];
        g.strides[b] = self->strides[a];
    }
    return mt__give_view(call, self, &g);
}

int mt__run_transpose(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    uint32_t a;
    uint32_t b;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &a));
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &b));
    return give_swapped(call, self, a, b);
}

int mt__run_t(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (self->n_dims > 2) {
        return mtb_fail(MT_ERUNTIME, "t() expects a tensor with <= 2 dimensions, but self is %uD",
                        self->n_dims);
    }
    return give_swapped(call, self, 0, self->n_dims == 2 ? 1 : 0);
}

/* ---- dimensions of size 1 -------------------------------------------------------------------- */

/* Without the dimensions of size 1 that the mask has. */
static int give_squeezed(mt__call *call, uint32_t mask)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g = {.offset = self->offset};
    for (uint32_t i = 0; i < self->n_dims; i++) {
        if (self->sizes[i] != 1 || (mask >> i & 1U) == 0) {
            g.sizes[g.n_dims] = self->sizes[i];
            g.strides[g.n_dims++] = self->strides[i];
        }
    }
    return mt__give_view(call, self, &g);
}

int mt__run_squeeze(mt__call *call)
{
    return give_squeezed(call, UINT32_MAX);
}

int mt__run_squeeze_dim(mt__call *call)
{
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), mt__arg_tensor(call, 0)->n_dims, &dim));
    return give_squeezed(call, 1U << dim);
}

int mt__run_squeeze_dims(mt__call *call)
{
    uint32_t mask = 0;
    if (call->args[1].count > 0) { /* no dimension, where other ops mean all */
        MT_TRY(mt__dim_mask(call->args[1].of.ints, call->args[1].count,
                            mt__arg_tensor(call, 0)->n_dims, &mask));
    }
    return give_squeezed(call, mask);
}

int mt__run_unsqueeze(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    uint32_t dim;
    mt__view_geometry g;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims + 1U, &dim));
    if (self->n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "unsqueeze: the result would have %d dimensions, at most %d",
                        MT_MAX_DIMS + 1, MT_MAX_DIMS);
    }
    mt__geometry_of(self, &g);
    int64_t stride =
        dim < self->n_dims ? (int64_t)((uint64_t)g.sizes[dim] * (uint64_t)g.strides[dim]) : 1;
    mt__geometry_insert(&g, dim, 1, stride);
    return mt__give_view(call, self, &g);
}

/* ---- parts of a tensor ----------------------------------------------------------------------- */

int mt__run_select(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    MT_TRY(mt__geometry_select(&g, mt__arg_int(call, 1), mt__arg_int(call, 2)));
    return mt__give_view(call, self, &g);
}

int mt__run_slice(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    MT_TRY(mt__geometry_slice(
        &g, mt__arg_int(call, 1), mt__arg_given(call, 2) ? mt__arg_int(call, 2) : 0,
        mt__arg_given(call, 3) ? mt__arg_int(call, 3) : INT64_MAX, mt__arg_int(call, 4)));
    return mt__give_view(call, self, &g);
}

int mt__run_narrow(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t start = mt__arg_int(call, 2);
    int64_t length = mt__arg_int(call, 3);
    uint32_t dim;
    if (self->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "narrow() cannot be applied to a 0-dim tensor.");
    }
    if (length < 0) {
        return mtb_fail(MT_ERUNTIME, "narrow(): length must be non-negative.");
    }
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    int64_t size = self->sizes[dim];
    if (start < -size || start > size) {
        return mtb_fail(MT_EINDEX,
                        "start out of range (expected to be in range of [%" PRId64 ", %" PRId64
                        "], but got %" PRId64 ")",
                        -size, size, start);
    }
    start = start < 0 ? start + size : start;
    if (length > size - start) {
        return mtb_fail(MT_ERUNTIME,
                        "start (%" PRId64 ") + length (%" PRId64
                        ") exceeds dimension size (%" PRId64 ").",
                        start, length, size);
    }
    int64_t end = start + length;
    return mt_slice(self, dim, &start, &end, 1, mt__result_place(call, 0));
}

int mt__run_diagonal(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    MT_TRY(mt__geometry_diagonal(&g, mt__arg_int(call, 1), mt__arg_int(call, 2),
                                 mt__arg_int(call, 3)));
    return mt__give_view(call, self, &g);
}

int mt__run_unfold(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    MT_TRY(
        mt__geometry_unfold(&g, mt__arg_int(call, 1), mt__arg_int(call, 2), mt__arg_int(call, 3)));
    MT_TRY(mt__geometry_check_numel("unfold", &g));
    return mt__give_view(call, self, &g);
}

/* Sizes, strides and offset as a user gave them, checked against a storage of `bytes`. */
static int given_geometry(const mt__call *call, const mt_tensor *self, mt__view_geometry *g)
{
    const mt_value *sizes = &call->args[1];
    const mt_value *strides = &call->args[2];
    int64_t bytes = (int64_t)mt_dtype_size((mt_dtype)self->dtype);
    int64_t reach;
    char text[MT_SHAPE_TEXT];
    char more[MT_SHAPE_TEXT];
    g->n_dims = sizes->count;
    g->offset = mt__arg_given(call, 3) ? mt__arg_int(call, 3) : self->offset;
    if (sizes->count != strides->count) {
        return mtb_fail(MT_ERUNTIME, "as_strided: mismatch in length of strides and shape");
    }
    mt__shape shape;
    MT_TRY(mt__shape_make("as_strided", sizes->of.ints, sizes->count, &shape));
    for (uint32_t i = 0; i < g->n_dims; i++) {
        g->sizes[i] = shape.sizes[i];
        g->strides[i] = strides->of.ints[i];
        if (g->strides[i] < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "as_strided: Negative strides are not supported at the moment, got "
                            "strides: %s",
                            mt__shape_text(strides->of.ints, strides->count, text));
        }
    }
    if (g->offset < 0) {
        return mtb_fail(MT_ERUNTIME, "Tensor: invalid storage offset %" PRId64, g->offset);
    }
    MT_TRY(mt__geometry_check_numel("as_strided", g));
    MT_TRY(mt__geometry_reach("as_strided", g, &reach));
    if (reach > (int64_t)(self->storage->bytes / (uint64_t)bytes)) {
        return mtb_fail(MT_ERUNTIME,
                        "setStorage: sizes %s, strides %s, storage offset %" PRId64
                        ", and itemsize %" PRId64 " requiring a storage size of %" PRIu64
                        " are out of bounds for storage of size %" PRIu64,
                        mt__shape_text(g->sizes, g->n_dims, text),
                        mt__shape_text(g->strides, g->n_dims, more), g->offset, bytes,
                        (uint64_t)reach * (uint64_t)bytes, self->storage->bytes);
    }
    return 0;
}

int mt__run_as_strided(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    MT_TRY(given_geometry(call, self, &g));
    return mt__give_view(call, self, &g);
}

/* Only the storage is shared: no view of autograd's. */
int mt__run_detach(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    return mt__tensor_view(self, self->sizes, self->strides, self->n_dims, self->offset, false,
                           mt__result_place(call, 0));
}

/* No write of elements: the version stays, and leaves may be detached too. */
int mt__run_detach_(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    MT_TRY(mt_tensor_detach_inplace(self));
    mt__result_same(call, 0, self);
    return 0;
}

int mt__run_alias(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__view_geometry g;
    mt__geometry_of(self, &g);
    return mt__give_view(call, self, &g);
}

/* What torch shows where it makes sure of something that always holds here: fresh tensors are
 * lifted, and nothing is lazily conjugate or negative. */
int mt__run_same(mt__call *call)
{
    mt__result_same(call, 0, mt__arg_tensor(call, 0));
    return 0;
}
