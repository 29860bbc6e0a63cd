/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing by index along one dimension where several sources may meet: scatter_reduce and
 * index_reduce; index_copy and index_fill. An index for each row is the index for each element that
 * repeats it (stride 0), so all of them are the scatter kernel.
 */
#include "mindtorch/ops/index/op_index_support.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <string.h>

/* ---- what meets ------------------------------------------------------------------------------ */

typedef enum reduction {
    REDUCE_SUM,
    REDUCE_PROD,
    REDUCE_MEAN,
    REDUCE_AMAX,
    REDUCE_AMIN,
    REDUCE_COUNT
} reduction;

static const char *const reduction_names[REDUCE_COUNT] = {"sum", "prod", "mean", "amax", "amin"};

static const mt_scatter_mode reduction_codes[REDUCE_COUNT] = {
    MT_SCATTER_ADD, MT_SCATTER_MULTIPLY, MT_SCATTER_ADD, MT_SCATTER_LARGER, MT_SCATTER_SMALLER,
};

static reduction find_reduction(const char *name)
{
    uint32_t i = 0;
    while (i < REDUCE_COUNT && strcmp(reduction_names[i], name) != 0) {
        i++;
    }
    return (reduction)i;
}

/* How many elements met at each place of `out`: divides by it. */
static int divide_by_counts(mt__call *call, mt_tensor *out, uint32_t dim, mt_tensor *index,
                            bool with_self)
{
    mt__shape shape = mt__tensor_shape(out);
    mt__shape met = mt__tensor_shape(index);
    mt_tensor *counts = NULL;
    mt_tensor *ones = NULL;
    const mt_scalar start = mt_int(with_self ? 1 : 0);
    const mt_scalar one = mt_int(1);
    MT_TRY(mt__temp_new(call, (mt_dtype)out->dtype, &shape, &counts));
    MT_TRY(mt__fill(counts, &start));
    MT_TRY(mt__filled(call, (mt_dtype)out->dtype, &one, &met, &ones));
    MT_TRY(mt__scatter_into(call, counts, dim, index, ones, MT_SCATTER_ADD));
    MT_TRY(mt_clamp_min_(counts, mt_int(1)));
    return mt_div_with_(
        out, counts, mt_dtype_category((mt_dtype)out->dtype) == MT_CATEGORY_REAL ? NULL : "floor");
}

static int reduce_into(mt__call *call, uint32_t dim, mt_tensor *index, mt_tensor *source,
                       reduction kind, bool with_self)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_dtype dtype = (mt_dtype)self->dtype;
    mt_tensor *out = NULL;
    if (kind == REDUCE_MEAN && dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("scatter_gather_tensor_cpu_reduce_mean", dtype);
    }
    MT_TRY(mt__written_result(call, &out));
    if (!with_self && index->numel > 0) {
        mt__shape shape = mt__tensor_shape(index);
        const mt_scalar start = mt_int(kind == REDUCE_PROD);
        mt_tensor *starts = source; /* of an extreme: any of those that meet */
        if (kind != REDUCE_AMAX && kind != REDUCE_AMIN) {
            MT_TRY(mt__filled(call, dtype, &start, &shape, &starts));
        }
        MT_TRY(mt__scatter_into(call, out, dim, index, starts, MT_SCATTER_SET));
    }
    MT_TRY(mt__scatter_into(call, out, dim, index, source, reduction_codes[kind]));
    return kind == REDUCE_MEAN ? divide_by_counts(call, out, dim, index, with_self) : 0;
}

int mt__run_scatter_reduce(mt__call *call)
{
    const char *name = call->args[4].of.text;
    reduction kind = find_reduction(name);
    mt_tensor *index = NULL;
    uint32_t dim;
    if (kind == REDUCE_COUNT) {
        return mtb_fail(MT_ERUNTIME,
                        "reduce argument must be either sum, prod, mean, amax or amin, got %s",
                        name);
    }
    MT_TRY(mt__scatter_operands(call, &dim, &index));
    return reduce_into(call, dim, index, mt__arg_tensor(call, 3), kind, mt__arg_bool(call, 5));
}

/* ---- an index for each row ------------------------------------------------------------------- */

/* The index of a row, read for each element of `shape`. */
static int repeat_index(mt__call *call, mt_tensor *index, uint32_t dim, const mt__shape *shape,
                        mt_tensor **out)
{
    int64_t strides[MT_MAX_DIMS] = {0};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__at_least_1d(call, index, &index));
    strides[dim] = index->strides[0];
    MT_TRY(
        mt__tensor_view(index, shape->sizes, strides, shape->n_dims, index->offset, false, place));
    *out = *place;
    return 0;
}

/* Checks what index_copy and index_reduce take; gives both operands in at least one dimension. */
static int check_rows(mt__call *call, uint32_t *dim, mt_tensor **index, mt_tensor **source)
{
    const char *op = mt__op_name(call);
    mt_tensor *self = mt__arg_tensor(call, 0);
    *index = mt__arg_tensor(call, 2);
    *source = mt__arg_tensor(call, 3);
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, dim));
    if ((*index)->n_dims > 1) {
        return mtb_fail(MT_EINDEX, "%s(): Index should have dimension 1 or 0 (got %u)", op,
                        (*index)->n_dims);
    }
    if ((*index)->dtype != MT_DTYPE_I64) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected a long tensor for index, but got %s", op,
                        mt__type_title((mt_dtype)(*index)->dtype));
    }
    if (self->dtype != (*source)->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): self and source expected to have the same dtype, but got (self) %s "
                        "and (source) %s",
                        op, mt__type_title((mt_dtype)self->dtype),
                        mt__type_title((mt_dtype)(*source)->dtype));
    }
    MT_TRY(mt__at_least_1d(call, self, &self));
    MT_TRY(mt__at_least_1d(call, *source, source));
    if (self->n_dims != (*source)->n_dims) {
        return mtb_fail(MT_EINDEX,
                        "%s(): When source and destination are not scalars, their dimensionality "
                        "must match. Source dimensionality (%u), destination dimensionality (%u)",
                        op, (*source)->n_dims, self->n_dims);
    }
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if (d != *dim && self->sizes[d] != (*source)->sizes[d]) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): Source/destination tensor must have same slice shapes; "
                            "dimension %u has size %" PRId64 " in the destination and %" PRId64
                            " in the source",
                            op, d, self->sizes[d], (*source)->sizes[d]);
        }
    }
    if ((*index)->numel != (*source)->sizes[*dim]) {
        return mtb_fail(MT_EINDEX,
                        "%s(): Number of indices (%" PRId64
                        ") should be equal to source.size(dim) (%" PRId64 ")",
                        op, (*index)->numel, (*source)->sizes[*dim]);
    }
    mt__shape shape = mt__tensor_shape(*source);
    return repeat_index(call, *index, *dim, &shape, index);
}

int mt__run_index_copy(mt__call *call)
{
    mt_tensor *index = NULL;
    mt_tensor *source = NULL;
    mt_tensor *out = NULL;
    uint32_t dim;
    MT_TRY(check_rows(call, &dim, &index, &source));
    MT_TRY(mt__written_result(call, &out));
    return mt__scatter_into(call, out, dim, index, source, MT_SCATTER_SET);
}

int mt__run_index_reduce(mt__call *call)
{
    const char *name = call->args[4].of.text;
    reduction kind = find_reduction(name);
    mt_tensor *index = NULL;
    mt_tensor *source = NULL;
    uint32_t dim;
    if (kind == REDUCE_COUNT || kind == REDUCE_SUM) {
        return mtb_fail(MT_ERUNTIME,
                        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but "
                        "got %s.",
                        name);
    }
    MT_TRY(check_rows(call, &dim, &index, &source));
    return reduce_into(call, dim, index, source, kind, mt__arg_bool(call, 5));
}

/* The number or tensor that fills, read as `shape` (strides of 0). Nothing waits for a device,
 * unless the tensor is on another one. */
static int fill_source(mt__call *call, const mt__shape *shape, mt_tensor **out)
{
    const mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *value = mt__arg_tensor(call, 3);
    mt_scalar number = call->args[3];
    if (value != NULL && value->device == self->device) {
        const int64_t strides[MT_MAX_DIMS] = {0};
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt__converted(call, value, (mt_dtype)self->dtype, &value));
        MT_TRY(mt__tensor_view(value, shape->sizes, strides, shape->n_dims, value->offset, false,
                               place));
        *out = *place;
        return 0;
    }
    if (value != NULL) {
        MT_TRY(mt_item(value, &number));
    }
    return mt__filled(call, (mt_dtype)self->dtype, &number, shape, out);
}

int mt__run_index_fill(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *index = mt__arg_tensor(call, 2);
    mt_tensor *value = mt__arg_tensor(call, 3); /* NULL: a number */
    mt_tensor *out = NULL;
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (index->n_dims > 1) {
        return mtb_fail(MT_ERUNTIME, "Index has to be a vector/scalar");
    }
    if (index->dtype != MT_DTYPE_I64) {
        return mtb_fail(MT_EINDEX, "index_fill_(): Expected dtype int64 for index.");
    }
    if (value != NULL && value->n_dims != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %u dimension(s).",
                        value->n_dims);
    }
    mt__shape shape = mt__tensor_shape(self);
    shape.n_dims = shape.n_dims == 0 ? 1 : shape.n_dims;
    int64_t size = self->n_dims == 0 ? 1 : self->sizes[dim];
    shape.sizes[dim] = index->numel;
    mt_tensor *source = NULL;
    mt_tensor **negative = mt__temp(call);
    mt_tensor **from_end = mt__temp(call);
    mt_tensor **wrapped = mt__temp(call);
    MT_TRY(mt_lt_scalar(index, mt_int(0), negative));
    MT_TRY(mt_add_scalar(index, mt_int(size), from_end));
    MT_TRY(mt_where(*negative, *from_end, index, wrapped));
    MT_TRY(fill_source(call, &shape, &source));
    MT_TRY(mt__written_result(call, &out));
    MT_TRY(repeat_index(call, *wrapped, dim, &shape, &index));
    return mt__scatter_into(call, out, dim, index, source, MT_SCATTER_SET);
}
