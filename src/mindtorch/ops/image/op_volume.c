/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools of volumes [N, C, D, H, W]: windows are products of one of a plane and one of the depth, so
 * that planes are pooled first and then the depth, as images of D rows.
 */
#include "mindtorch/ops/image/op_image.h"

/* A volume as planes [N C, D, H, W], and back. */
typedef struct volume {
    mt__call *call;
    mt__shape shape; /* of the input */
    mt_tensor *planes;
    uint32_t lead; /* dimensions before D: 1 or 2 */
    bool empty;    /* planes has one volume, the input none */
} volume;

static int open_volume(mt__call *call, volume *v)
{
    mt_tensor *self = call->args[0].of.tensor;
    char text[MT_SHAPE_TEXT];
    *v = (volume){.call = call, .shape = mt__tensor_shape(self), .planes = self};
    if (self->n_dims != 4 && self->n_dims != 5) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected 4D or 5D tensor, but got: %s",
                        mt__op_name(call), mt__shape_text(self->sizes, self->n_dims, text));
    }
    v->lead = self->n_dims - 3U;
    const int64_t *sides = &self->sizes[v->lead];
    if (sides[0] == 0 || sides[1] == 0 || sides[2] == 0) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected a non-empty volume, but got: %s",
                        mt__op_name(call), mt__shape_text(self->sizes, self->n_dims, text));
    }
    if (self->sizes[v->lead - 1] == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): Expected input's non-batch dimensions to have positive length, but "
                        "input has a shape of %s and non-batch dimension 0 has length zero!",
                        mt__op_name(call), mt__shape_text(self->sizes, self->n_dims, text));
    }
    int64_t count = self->sizes[0] * (v->lead == 2 ? self->sizes[1] : 1);
    v->empty = count == 0;
    const int64_t sizes[4] = {v->empty ? 1 : count, sides[0], sides[1], sides[2]};
    if (v->empty) { /* one volume shows the sizes of no results, and what is refused */
        mt_tensor **zeros = mt__temp(call);
        MT_TRY(mt_zeros_with(sizes, 4, (mt_dtype)self->dtype, self->device, zeros));
        v->planes = *zeros;
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(self, sizes, 4, place));
    v->planes = *place;
    return MT_OK;
}

/* [NC, D, h, w] as images [NC, D, h w] of which the columns are places of a plane. */
static int by_column(mt__call *call, mt_tensor *pooled, mt_tensor **out)
{
    const int64_t sizes[3] = {pooled->sizes[0], pooled->sizes[1],
                              pooled->sizes[2] * pooled->sizes[3]};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(pooled, sizes, 3, place));
    *out = *place;
    return MT_OK;
}

/* Result i: [NC, d, h w] with the input's first dimensions; sides are those of a plane. */
static int close_volume(const volume *v, uint32_t i, mt_tensor *columns, const int64_t sides[2])
{
    mt__shape shape = v->shape;
    shape.sizes[v->lead] = columns->sizes[1];
    shape.sizes[v->lead + 1] = sides[0];
    shape.sizes[v->lead + 2] = sides[1];
    if (v->empty) {
        mt_tensor **none = mt__temp(v->call);
        MT_TRY(mt_narrow(columns, 0, 0, 0, none));
        columns = *none;
    }
    return mt_reshape(columns, shape.sizes, shape.n_dims, mt__result_place(v->call, i));
}

/* Three numbers, one for all, or none (`otherwise`). */
static int triple(const mt__call *call, uint32_t arg, const int64_t *otherwise, int64_t out[3])
{
    const mt_value *list = &call->args[arg];
    if (list->count != 1 && list->count != 3 && (list->count != 0 || otherwise == NULL)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): %s must either be a single int, or a tuple of three ints",
                        mt__op_name(call), call->row->params[arg].name);
    }
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = list->count == 0 ? otherwise[i] : list->of.ints[list->count == 1 ? 0 : i];
    }
    return mt__image_limit(call, out, 3);
}

/* ---- largest elements ------------------------------------------------------------------------ */

/* Where the largest elements of a volume are: those of planes, picked where the depth's are. */
static int join_indices(const volume *v, mt_tensor *in_plane, mt_tensor *in_column,
                        const int64_t sides[2])
{
    mt__call *call = v->call;
    int64_t columns = sides[0] * sides[1];
    int64_t plane = v->planes->sizes[2] * v->planes->sizes[3];
    mt_tensor **flat = mt__temp(call);
    mt_tensor **where = mt__temp(call);
    mt_tensor **picked = mt__temp(call);
    mt_tensor **depth = mt__temp(call);
    mt_tensor **start = mt__temp(call);
    mt_tensor **shaped = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_flatten(in_plane, 1, -1, flat));
    MT_TRY(mt_flatten(in_column, 1, -1, where));
    MT_TRY(mt_gather(*flat, 1, *where, picked));
    MT_TRY(mt_floor_divide_scalar(*where, mt_int(columns), depth));
    MT_TRY(mt_mul_scalar(*depth, mt_int(plane), start));
    MT_TRY(mt_add(*picked, *start, sum));
    MT_TRY(mt_view(*sum, in_column->sizes, in_column->n_dims, shaped));
    return close_volume(v, 1, *shaped, sides);
}

int mt__run_max_pool3d_with_indices(mt__call *call)
{
    static const int64_t ones[3] = {1, 1, 1};
    static const int64_t zeros[3] = {0, 0, 0};
    volume v = {.call = call, .planes = call->args[0].of.tensor};
    int64_t lists[4][3] = {{0}}; /* kernel, stride, padding, dilation */
    MT_TRY(open_volume(call, &v));
    MT_TRY(triple(call, 1, NULL, lists[0]));
    MT_TRY(triple(call, 2, lists[0], lists[1]));
    MT_TRY(triple(call, 3, zeros, lists[2]));
    MT_TRY(triple(call, 4, ones, lists[3]));
    bool ceil_mode = mt__arg_bool(call, 5);
    mt_tensor **plane = mt__temp(call);
    mt_tensor **in_plane = mt__temp(call);
    mt_tensor **deep = mt__temp(call);
    mt_tensor **in_column = mt__temp(call);
    mt_tensor *columns = NULL;
    MT_TRY(mt_max_pool2d_with_indices(v.planes, &lists[0][1], 2, &lists[1][1], 2, &lists[2][1], 2,
                                      &lists[3][1], 2, ceil_mode, plane, in_plane));
    MT_TRY(by_column(call, *plane, &columns));
    const int64_t down[4][2] = {
        {lists[0][0], 1}, {lists[1][0], 1}, {lists[2][0], 0}, {lists[3][0], 1}};
    MT_TRY(mt_max_pool2d_with_indices(columns, down[0], 2, down[1], 2, down[2], 2, down[3], 2,
                                      ceil_mode, deep, in_column));
    MT_TRY(close_volume(&v, 0, *deep, &(*plane)->sizes[2]));
    return join_indices(&v, *in_plane, *in_column, &(*plane)->sizes[2]);
}

int mt__run_max_pool3d(mt__call *call)
{
    const mt_value *a = call->args;
    mt_tensor **indices = mt__temp(call);
    return mt_max_pool3d_with_indices(a[0].of.tensor, a[1].of.ints, a[1].count, a[2].of.ints,
                                      a[2].count, a[3].of.ints, a[3].count, a[4].of.ints,
                                      a[4].count, a[5].of.integer != 0, mt__result_place(call, 0),
                                      indices);
}

int mt__run_adaptive_max_pool3d(mt__call *call)
{
    volume v = {.call = call, .planes = call->args[0].of.tensor};
    int64_t size[3] = {0};
    MT_TRY(open_volume(call, &v));
    MT_TRY(triple(call, 1, NULL, size));
    mt_tensor **plane = mt__temp(call);
    mt_tensor **in_plane = mt__temp(call);
    mt_tensor **deep = mt__temp(call);
    mt_tensor **in_column = mt__temp(call);
    mt_tensor *columns = NULL;
    MT_TRY(mt_adaptive_max_pool2d(v.planes, &size[1], 2, plane, in_plane));
    MT_TRY(by_column(call, *plane, &columns));
    const int64_t down[2] = {size[0], size[1] * size[2]};
    MT_TRY(mt_adaptive_max_pool2d(columns, down, 2, deep, in_column));
    MT_TRY(close_volume(&v, 0, *deep, &(*plane)->sizes[2]));
    return join_indices(&v, *in_plane, *in_column, &(*plane)->sizes[2]);
}

int mt__run_adaptive_max_pool1d(mt__call *call)
{
    const mt_value *size = &call->args[1];
    mt_tensor **image = mt__temp(call);
    mt_tensor **pooled = mt__temp(call);
    mt_tensor **indices = mt__temp(call);
    if (size->count != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "adaptive_max_pool1d() argument 'output_size' should contain "
                        "one int (got %u)",
                        size->count);
    }
    MT_TRY(mt_unsqueeze(mt__arg_tensor(call, 0), -2, image));
    MT_TRY(mt_adaptive_max_pool2d(*image, (int64_t[]){1, size->of.ints[0]}, 2, pooled, indices));
    MT_TRY(mt_squeeze_dim(*pooled, -2, mt__result_place(call, 0)));
    return mt_squeeze_dim(*indices, -2, mt__result_place(call, 1));
}

/* ---- means ----------------------------------------------------------------------------------- */

int mt__run_avg_pool3d(mt__call *call)
{
    static const int64_t zeros[3] = {0, 0, 0};
    volume v = {.call = call, .planes = call->args[0].of.tensor};
    int64_t lists[3][3] = {{0}}; /* kernel, stride, padding */
    MT_TRY(open_volume(call, &v));
    MT_TRY(triple(call, 1, NULL, lists[0]));
    MT_TRY(triple(call, 2, lists[0], lists[1]));
    MT_TRY(triple(call, 3, zeros, lists[2]));
    bool ceil_mode = mt__arg_bool(call, 4);
    bool padding_counts = mt__arg_bool(call, 5);
    bool divided = mt__arg_given(call, 6);
    static const int64_t one = 1;
    const int64_t *divisor = divided ? &one : NULL; /* sums, then */
    if (divided && mt__arg_int(call, 6) == 0) {
        return mtb_fail(MT_ERUNTIME, "divisor must be not zero");
    }
    mt_tensor **plane = mt__temp(call);
    mt_tensor **deep = mt__temp(call);
    mt_tensor *columns = NULL;
    MT_TRY(mt_avg_pool2d(v.planes, &lists[0][1], 2, &lists[1][1], 2, &lists[2][1], 2, ceil_mode,
                         padding_counts, divisor, plane));
    MT_TRY(by_column(call, *plane, &columns));
    const int64_t down[3][2] = {{lists[0][0], 1}, {lists[1][0], 1}, {lists[2][0], 0}};
    MT_TRY(mt_avg_pool2d(columns, down[0], 2, down[1], 2, down[2], 2, ceil_mode, padding_counts,
                         divisor, deep));
    if (divided) {
        mt_tensor **mean = mt__temp(call);
        MT_TRY(mt_div_scalar(*deep, mt_int(mt__arg_int(call, 6)), mean));
        deep = mean;
    }
    return close_volume(&v, 0, *deep, &(*plane)->sizes[2]);
}

int mt__run_adaptive_avg_pool3d(mt__call *call)
{
    volume v = {.call = call, .planes = call->args[0].of.tensor};
    int64_t size[3] = {0};
    MT_TRY(triple(call, 1, NULL, size));
    uint32_t n = v.planes->n_dims;
    if (size[0] == 1 && size[1] == 1 && size[2] == 1 && (n == 4 || n == 5)) {
        static const int64_t sides[3] = {-1, -2, -3};
        return mt_mean(call->args[0].of.tensor, sides, 3, true, mt__result_place(call, 0));
    }
    MT_TRY(open_volume(call, &v));
    mt_tensor **plane = mt__temp(call);
    mt_tensor **deep = mt__temp(call);
    mt_tensor *columns = NULL;
    MT_TRY(mt_adaptive_avg_pool2d(v.planes, &size[1], 2, plane));
    MT_TRY(by_column(call, *plane, &columns));
    const int64_t down[2] = {size[0], size[1] * size[2]};
    MT_TRY(mt_adaptive_avg_pool2d(columns, down, 2, deep));
    return close_volume(&v, 0, *deep, &(*plane)->sizes[2]);
}

/* ---- back ------------------------------------------------------------------------------------ */

/* Elements at their places in planes (volumes) of zeros. */
static int run_unpool(mt__call *call, uint32_t dims)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *indices = call->args[1].of.tensor;
    const mt_value *size = &call->args[2];
    mt__shape shape = mt__tensor_shape(self);
    mt__shape other = mt__tensor_shape(indices);
    char text[2][MT_SHAPE_TEXT];
    MT_TRY(mt__need_pooled_type(self, mt__op_name(call)));
    if (indices->dtype != MT_DTYPE_I64) {
        return mtb_fail(MT_ERUNTIME, "elements in indices should be type int64 but got: %s",
                        mt_dtype_name((mt_dtype)indices->dtype));
    }
    if (size->count != dims || self->n_dims < dims + 1 || self->n_dims > dims + 2) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): expected %u sizes and an input of %u or %u dimensions, got %u and "
                        "%s",
                        mt__op_name(call), dims, dims + 1, dims + 2, size->count,
                        mt__shape_text(shape.sizes, shape.n_dims, text[0]));
    }
    if (!mt__shape_equal(&shape, &other)) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected shape of indices to be same as that of the input tensor (%s) but "
                        "got indices tensor with shape: %s",
                        mt__shape_text(shape.sizes, shape.n_dims, text[0]),
                        mt__shape_text(other.sizes, other.n_dims, text[1]));
    }
    uint32_t lead = shape.n_dims - dims;
    for (uint32_t i = shape.n_dims - dims - (dims == 3 || lead == 2 ? 1U : 0U); i < shape.n_dims;
         i++) {
        if (shape.sizes[i] == 0) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): Expected input to have non-zero size for non-batch dimensions, "
                            "but got %s with dimension %u being empty.",
                            mt__op_name(call), mt__shape_text(shape.sizes, shape.n_dims, text[0]),
                            i);
        }
    }
    int64_t places = 1;
    for (uint32_t i = 0; i < dims; i++) {
        shape.sizes[lead + i] = size->of.ints[i];
        places *= size->of.ints[i];
    }
    mt__shape flat = shape;
    flat.n_dims = lead + 1;
    flat.sizes[lead] = places;
    mt_tensor **zeros = mt__temp(call);
    mt_tensor **from = mt__temp(call);
    mt_tensor **where = mt__temp(call);
    mt_tensor **made = mt__temp(call);
    MT_TRY(mt_zeros_with(flat.sizes, flat.n_dims, (mt_dtype)self->dtype, self->device, zeros));
    MT_TRY(mt_flatten(self, (int64_t)lead, -1, from));
    MT_TRY(mt_flatten(indices, (int64_t)lead, -1, where));
    MT_TRY(mt_scatter(*zeros, -1, *where, *from, made));
    return mt_view(*made, shape.sizes, shape.n_dims, mt__result_place(call, 0));
}

MT_RUN(max_unpool2d, run_unpool, 2)
MT_RUN(max_unpool3d, run_unpool, 3)
