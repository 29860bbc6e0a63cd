/* SPDX-License-Identifier: Apache-2.0
 *
 * Mathematics of signals and samples, and writes into a part of a copy; composed of other ops.
 */
#include "base/fail.h"
#include "mindtorch/ops/op_support.h"

#include <inttypes.h>

/* ---- the trapezoidal rule -------------------------------------------------------------------- */

static int find_dim(mt__call *call, uint32_t arg, const mt_tensor *y, int64_t *dim)
{
    uint32_t found = 0;
    if (y->n_dims == 0) {
        return mtb_fail(MT_EINDEX,
                        "Dimension specified as %" PRId64 " but tensor has no dimensions",
                        mt__arg_int(call, arg));
    }
    if (y->dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "%s: received a bool input for `y`, but bool is not supported",
                        mt__op_name(call));
    }
    MT_TRY(mt__wrap_dim(mt__arg_int(call, arg), y->n_dims, &found));
    *dim = found;
    return MT_OK;
}

/* All but the first and all but the last along a dimension that has elements. */
static int neighbours(mt__call *call, mt_tensor *y, int64_t dim, mt_tensor **after,
                      mt_tensor **before)
{
    mt_tensor **places[2] = {mt__temp(call), mt__temp(call)};
    int64_t length = y->sizes[dim] - 1;
    MT_TRY(mt_narrow(y, dim, 1, length, places[0]));
    MT_TRY(mt_narrow(y, dim, 0, length, places[1]));
    *after = *places[0];
    *before = *places[1];
    return MT_OK;
}

/* Distances between the points x, in y's dimensions. */
static int distances(mt__call *call, mt_tensor *y, mt_tensor *x, int64_t dim, mt_tensor **out)
{
    mt_tensor *after = NULL;
    mt_tensor *before = NULL;
    mt_tensor **width = mt__temp(call);
    if (x->n_dims == 1 && y->n_dims > 1) {
        int64_t sizes[MT_MAX_DIMS];
        mt_tensor **shaped = mt__temp(call);
        for (uint32_t d = 0; d < y->n_dims; d++) {
            sizes[d] = d == (uint32_t)dim ? x->sizes[0] : 1;
        }
        MT_TRY(mt_view(x, sizes, y->n_dims, shaped));
        x = *shaped;
    }
    int64_t x_dim = dim - ((int64_t)y->n_dims - (int64_t)x->n_dims);
    if (x_dim < 0 || x->sizes[x_dim] != y->sizes[dim]) {
        return mtb_fail(MT_ERUNTIME, "%s: There must be one `x` value for each sample point",
                        mt__op_name(call));
    }
    MT_TRY(neighbours(call, x, x_dim, &after, &before));
    MT_TRY(mt_sub(after, before, width));
    *out = *width;
    return MT_OK;
}

/* Zeros of y's sizes without the dimension (of size 0 with `keep`), where there are no areas. */
static int no_areas(mt__call *call, const mt_tensor *y, int64_t dim, bool keep)
{
    int64_t sizes[MT_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t d = 0; d < y->n_dims; d++) {
        if (d != (uint32_t)dim) {
            sizes[n++] = y->sizes[d];
        } else if (keep) {
            sizes[n++] = 0;
        }
    }
    return mt_zeros_with(sizes, n, (mt_dtype)y->dtype, (mt_device)y->device,
                         mt__result_place(call, 0));
}

/* Sums of neighbours times their distances, halved; `so_far`: running sums. */
static int trapezoids(mt__call *call, mt_tensor *x, mt_scalar dx, uint32_t dim_arg, bool so_far)
{
    mt_tensor *y = call->args[0].of.tensor;
    mt_tensor *after = NULL;
    mt_tensor *before = NULL;
    mt_tensor *width = NULL;
    int64_t dim = 0;
    MT_TRY(find_dim(call, dim_arg, y, &dim));
    if (x != NULL && x->dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "%s: received a bool input for `x`, but bool is not supported",
                        mt__op_name(call));
    }
    if (y->sizes[dim] == 0) {
        return no_areas(call, y, dim, so_far);
    }
    if (mt__tensor_category(y) == MT_CATEGORY_INT) { /* sums of two would wrap around */
        mt_tensor **wide = mt__temp(call);
        MT_TRY(mt_to_with(y, MT_DTYPE_I64, MT_DEVICE_NONE, false, false, wide));
        y = *wide;
    }
    mt_tensor **heights = mt__temp(call);
    mt_tensor **areas = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    if (x != NULL) {
        MT_TRY(distances(call, y, x, dim, &width));
    }
    MT_TRY(neighbours(call, y, dim, &after, &before));
    MT_TRY(mt_add(after, before, heights));
    if (width != NULL) {
        MT_TRY(mt_mul(*heights, width, areas));
    } else {
        MT_TRY(mt_mul_scalar(*heights, dx, areas));
    }
    MT_TRY(so_far ? mt_cumsum(*areas, dim, sum) : mt_sum(*areas, &dim, 1, false, sum));
    return mt_div_scalar(*sum, mt_int(2), mt__result_place(call, 0));
}

MT_RUN(trapezoid_x, trapezoids, mt__arg_tensor(call, 1), mt_int(1), 2, false)
MT_RUN(trapezoid_dx, trapezoids, NULL, call->args[1], 2, false)
MT_RUN(cumulative_trapezoid_x, trapezoids, mt__arg_tensor(call, 1), mt_int(1), 2, true)
MT_RUN(cumulative_trapezoid_dx, trapezoids, NULL, call->args[1], 2, true)

/* ---- turns ----------------------------------------------------------------------------------- */

int mt__run_rot90(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t k = mt__arg_int(call, 1) % 4;
    const mt_value *dims = &call->args[2];
    uint32_t wrapped[2] = {0, 0};
    mt_tensor **turned = mt__temp(call);
    if (dims->count != 2) {
        return mtb_fail(MT_ERUNTIME, "expected total rotation dims == 2, but got dims = %u",
                        dims->count);
    }
    if (self->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "expected total dims >= 2, but got total dims = %u",
                        self->n_dims);
    }
    for (uint32_t i = 0; i < 2; i++) {
        MT_TRY(mt__wrap_dim(dims->of.ints[i], self->n_dims, &wrapped[i]));
    }
    if (wrapped[0] == wrapped[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "expected rotation dims to be different, but got dim0 = %" PRId64
                        " and dim1 = %" PRId64,
                        dims->of.ints[0], dims->of.ints[1]);
    }
    k = k < 0 ? k + 4 : k;
    const int64_t both[] = {wrapped[0], wrapped[1]};
    if (k == 0) {
        return mt_clone(self, mt__result_place(call, 0));
    }
    if (k == 2) {
        return mt_flip(self, both, 2, mt__result_place(call, 0));
    }
    MT_TRY(mt_flip(self, &both[k == 1 ? 1 : 0], 1, turned));
    mt_tensor **view = mt__temp(call);
    MT_TRY(mt_transpose(*turned, both[0], both[1], view));
    return mt_clone(*view, mt__result_place(call, 0));
}

/* ---- a part of a copy ------------------------------------------------------------------------ */

/* Zeros with self on a diagonal of the last dimension's elements. */
int mt__run_diag_embed(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t offset = mt__arg_int(call, 1);
    uint32_t dims[2] = {0, 0};
    int64_t sizes[MT_MAX_DIMS];
    for (uint32_t i = 0; i < 2; i++) {
        MT_TRY(mt__wrap_dim(mt__arg_int(call, 2 + i), self->n_dims + 1, &dims[i]));
    }
    if (dims[0] == dims[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "diagonal dimensions cannot be identical %" PRId64 ", %" PRId64,
                        mt__arg_int(call, 2), mt__arg_int(call, 3));
    }
    if (self->n_dims + 1 > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "diag_embed(): the result would have more than %d dimensions",
                        MT_MAX_DIMS);
    }
    int64_t size = self->sizes[self->n_dims - 1];
    if (__builtin_add_overflow(size, offset < 0 ? -offset : offset, &size)) {
        return mtb_fail(MT_ERUNTIME, "diag_embed(): offset %" PRId64 " is too large", offset);
    }
    for (uint32_t d = 0, from = 0; d <= self->n_dims; d++) {
        sizes[d] = d == dims[0] || d == dims[1] ? size : self->sizes[from++];
    }
    mt_tensor **out = mt__result_place(call, 0);
    mt_tensor **diagonal = mt__temp(call);
    MT_TRY(mt_zeros_with(sizes, self->n_dims + 1, (mt_dtype)self->dtype, (mt_device)self->device,
                         out));
    MT_TRY(mt_diagonal(*out, offset, dims[0], dims[1], diagonal));
    return mt_copy_(*diagonal, self, false);
}

/* A copy of self as result 0, whose `part` (a view that `see` makes) becomes src. */
static int scatter_part(mt__call *call,
                        int (*see)(mt__call *call, mt_tensor *copy, mt_tensor **out))
{
    mt_tensor *src = call->args[1].of.tensor;
    mt_tensor **copy = mt__result_place(call, 0);
    mt_tensor **part = mt__temp(call);
    MT_TRY(mt_clone(mt__arg_tensor(call, 0), copy));
    MT_TRY(see(call, *copy, part));
    bool same = (*part)->n_dims == src->n_dims;
    for (uint32_t d = 0; same && d < src->n_dims; d++) {
        same = (*part)->sizes[d] == src->sizes[d];
    }
    if (!same) {
        char of_src[MT_SHAPE_TEXT];
        char of_part[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "expected src to have a size equal to the slice of self. src size = %s, "
                        "slice size = %s",
                        mt__shape_text(src->sizes, src->n_dims, of_src),
                        mt__shape_text((*part)->sizes, (*part)->n_dims, of_part));
    }
    return mt_copy_(*part, src, false);
}

static int see_select(mt__call *call, mt_tensor *copy, mt_tensor **out)
{
    return mt_select(copy, mt__arg_int(call, 2), mt__arg_int(call, 3), out);
}

static int see_slice(mt__call *call, mt_tensor *copy, mt_tensor **out)
{
    return mt_slice(
        copy, mt__arg_int(call, 2), mt__arg_given(call, 3) ? &call->args[3].of.integer : NULL,
        mt__arg_given(call, 4) ? &call->args[4].of.integer : NULL, mt__arg_int(call, 5), out);
}

static int see_diagonal(mt__call *call, mt_tensor *copy, mt_tensor **out)
{
    return mt_diagonal(copy, mt__arg_int(call, 2), mt__arg_int(call, 3), mt__arg_int(call, 4), out);
}

MT_RUN(select_scatter, scatter_part, see_select)
MT_RUN(slice_scatter, scatter_part, see_slice)
MT_RUN(diagonal_scatter, scatter_part, see_diagonal)
