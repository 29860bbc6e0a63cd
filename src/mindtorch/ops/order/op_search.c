/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of numbers in sorted rows, and counts of numbers by their place: searchsorted, bucketize,
 * histc, bincount.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- searching ------------------------------------------------------------------------------- */

/* What is looked for, where, and how. */
typedef struct search {
    mt_tensor *sorted;
    const mt_value *wanted;
    mt_tensor *sorter; /* or NULL */
    bool right;
    bool narrow; /* int32 places */
} search;

static const char *shape_text(const mt_tensor *tensor, char text[MT_SHAPE_TEXT])
{
    return mt__shape_text(tensor->sizes, tensor->n_dims, text);
}

static int check_sizes(const mt_tensor *sorted, const mt_tensor *wanted)
{
    bool fits = sorted->n_dims == 1 || sorted->n_dims == wanted->n_dims;
    if (sorted->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.searchsorted(): input value can be a scalar only when boundaries "
                        "tensor dimension is 1, but we got boundaries tensor dim(0) and input "
                        "value's dim(%u) numel(%" PRId64 ")",
                        wanted->n_dims, wanted->numel);
    }
    for (uint32_t d = 0; fits && sorted->n_dims > 1 && d + 1 < sorted->n_dims; d++) {
        fits = sorted->sizes[d] == wanted->sizes[d];
    }
    if (!fits) {
        char of_sorted[MT_SHAPE_TEXT];
        char of_wanted[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "torch.searchsorted(): boundaries tensor should be 1 dimension or the "
                        "first N-1 dimensions of boundaries tensor and input value tensor must "
                        "match, but we got boundaries tensor %s and input value tensor %s",
                        shape_text(sorted, of_sorted), shape_text(wanted, of_wanted));
    }
    return MT_OK;
}

/* A number as a 0-d tensor. */
static int wanted_tensor(mt__call *call, const search *what, mt_tensor **out)
{
    if (what->wanted->kind == MT_KIND_TENSOR) {
        *out = what->wanted->of.tensor;
        return MT_OK;
    }
    if (what->sorted->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.searchsorted(): input value can be a scalar only when boundaries "
                        "tensor dimension is 1, but we got boundaries tensor dim(%u) and input "
                        "value's dim(0) numel(1)",
                        what->sorted->n_dims);
    }
    const mt_value both[] = {{.kind = MT_KIND_TENSOR, .of.tensor = what->sorted}, *what->wanted};
    mt__shape scalar = {.n_dims = 0};
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(both, 2, &dtype));
    MT_TRY(mt__temp_new(call, dtype, &scalar, out));
    return mt__fill(*out, what->wanted);
}

/* A contiguous tensor as [rows, its rest]. */
static mt_array as_matrix(const mt_tensor *tensor, int64_t rows, int64_t sizes[2],
                          int64_t strides[2])
{
    mt_array array = mt__array(tensor);
    sizes[0] = rows;
    sizes[1] = rows == 0 ? 0 : tensor->numel / rows;
    strides[0] = sizes[1];
    strides[1] = 1;
    array.n_dims = 2;
    array.sizes = sizes;
    array.strides = strides;
    return array;
}

static int launch_search(mt__call *call, const search *what, mt_tensor *sorted, mt_tensor *wanted,
                         mt_tensor *sorter, mt_tensor *places)
{
    int64_t sizes[4][2];
    int64_t strides[4][2];
    int64_t n = sorted->sizes[sorted->n_dims - 1];
    int64_t rows = sorted->n_dims == 1 ? 1 : n == 0 ? 0 : sorted->numel / n;
    const int64_t right = what->right;
    if (n == 0) { /* every place is the first */
        const mt_scalar first = mt_int(0);
        return mt__fill(places, &first);
    }
    mt_array arrays[4] = {
        as_matrix(places, rows, sizes[0], strides[0]),
        as_matrix(sorted, rows, sizes[1], strides[1]),
        as_matrix(wanted, rows, sizes[2], strides[2]),
        mt__no_array(),
    };
    if (sorter != NULL) {
        arrays[3] = as_matrix(sorter, rows, sizes[3], strides[3]);
    }
    mt_kernel_call kernel = {.kernel = MT_KERNEL_SEARCH_SORTED,
                             .n_tensors = 4,
                             .tensors = arrays,
                             .n_ints = 1,
                             .ints = &right};
    return mt__launch(call->device, &kernel);
}

static int run_search(mt__call *call, const search *what)
{
    mt_tensor *sorted = what->sorted;
    mt_tensor *sorter = what->sorter;
    mt_tensor *wanted = NULL;
    mt_tensor *out = NULL;
    mt_tensor *places = NULL;
    MT_TRY(wanted_tensor(call, what, &wanted));
    MT_ASSERT(wanted != NULL);
    MT_TRY(check_sizes(sorted, wanted));
    const mt_value both[] = {{.kind = MT_KIND_TENSOR, .of.tensor = sorted},
                             {.kind = MT_KIND_TENSOR, .of.tensor = wanted}};
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(both, 2, &dtype));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("searchsorted_out_cpu", dtype);
    }
    mt__shape shape = mt__tensor_shape(wanted);
    MT_TRY(mt__result_new(call, 0, what->narrow ? MT_DTYPE_I32 : MT_DTYPE_I64, &shape, &out));
    if (out->numel == 0) {
        return MT_OK;
    }
    places = out;
    if (what->narrow) {
        MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &shape, &places));
    }
    MT_TRY(mt__converted(call, sorted, dtype, &sorted));
    MT_TRY(mt__converted(call, wanted, dtype, &wanted));
    MT_TRY(mt__contiguous(call, sorted, &sorted));
    MT_TRY(mt__contiguous(call, wanted, &wanted));
    if (sorter != NULL) {
        MT_TRY(mt__contiguous(call, sorter, &sorter));
    }
    MT_TRY(launch_search(call, what, sorted, wanted, sorter, places));
    return places == out ? MT_OK : mt__copy_elements(out, places);
}

int mt__run_searchsorted(mt__call *call)
{
    search what = {.sorted = call->args[0].of.tensor,
                   .wanted = &call->args[1],
                   .sorter = mt__arg_tensor(call, 5),
                   .right = mt__arg_bool(call, 3),
                   .narrow = mt__arg_bool(call, 2)};
    if (mt__arg_given(call, 4)) {
        const char *side = call->args[4].of.text;
        bool right = strcmp(side, "right") == 0;
        if (!right && strcmp(side, "left") != 0) {
            return mtb_fail(MT_ERUNTIME,
                            "torch.searchsorted(): side can only be 'left' or 'right' but got %s",
                            side);
        }
        if (what.right && !right) {
            return mtb_fail(MT_ERUNTIME, "torch.searchsorted(): side and right can't be set to "
                                         "opposites, got side of left while right was True");
        }
        what.right = right;
    }
    if (what.sorter != NULL) {
        char of_sorted[MT_SHAPE_TEXT];
        char of_sorter[MT_SHAPE_TEXT];
        const char *expected = shape_text(what.sorted, of_sorted);
        const char *given = shape_text(what.sorter, of_sorter);
        if (strcmp(expected, given) != 0) {
            return mtb_fail(MT_ERUNTIME,
                            "torch.searchsorted(): boundary and sorter must have the same size, "
                            "but got boundary tensor %s and got sorter tensor %s",
                            expected, given);
        }
        if (what.sorter->dtype != MT_DTYPE_I64) {
            return mtb_fail(MT_ERUNTIME,
                            "torch.searchsorted(): sorter must be a tensor of long dtype but got "
                            "dtype %s",
                            mt__type_title((mt_dtype)what.sorter->dtype));
        }
    }
    return run_search(call, &what);
}

int mt__run_bucketize(mt__call *call)
{
    const search what = {.sorted = call->args[1].of.tensor,
                         .wanted = &call->args[0],
                         .right = mt__arg_bool(call, 3),
                         .narrow = mt__arg_bool(call, 2)};
    if (what.sorted->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME, "boundaries tensor must be 1 dimension, but got dim(%u)",
                        what.sorted->n_dims);
    }
    return run_search(call, &what);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Adds `weights` (or 1 each) at `places` to the zeros of a new result. */
static int count_at(mt__call *call, mt_tensor *places, mt_tensor *weights, int64_t length,
                    mt_dtype dtype)
{
    mt__shape shape = {.n_dims = 1, .sizes = {length}};
    mt_tensor *out = NULL;
    const mt_scalar zero = mt_int(0);
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    MT_TRY(mt__fill(out, &zero));
    if (weights == NULL) {
        mt__shape each = mt__tensor_shape(places);
        const mt_scalar one = mt_int(1);
        MT_TRY(mt__temp_new(call, dtype, &each, &weights));
        MT_TRY(mt__fill(weights, &one));
    }
    return places->numel == 0 ? MT_OK : mt_index_add_(out, 0, places, weights);
}

static int read_real(mt__call *call, int (*reduce)(mt_tensor *self, mt_tensor **out),
                     mt_tensor *self, double *number)
{
    mt_tensor **value = mt__temp(call);
    mt_scalar read = mt_int(0);
    MT_TRY(reduce(self, value));
    MT_TRY(mt_item(*value, &read));
    *number = mt__scalar_real(&read);
    return MT_OK;
}

/* The range that counts: all numbers where the bounds are equal; one apart where all are. */
static int find_range(mt__call *call, mt_tensor *self, double *low, double *high)
{
    if (*low == *high && self->numel > 0) {
        MT_TRY(read_real(call, mt_min, self, low));
        MT_TRY(read_real(call, mt_max, self, high));
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
    if (!isfinite(*low) || !isfinite(*high)) {
        return mtb_fail(MT_ERUNTIME, "torch.histc: range of [%g, %g] is not finite", *low, *high);
    }
    return *low < *high ? MT_OK : mtb_fail(MT_ERUNTIME, "torch.histc: max must be larger than min");
}

int mt__run_histc(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t bins = mt__arg_int(call, 1);
    double low = mt__arg_real(call, 2);
    double high = mt__arg_real(call, 3);
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type("histogram_cpu", dtype);
    }
    if (bins <= 0) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.histogram(): bins must be > 0, but got %" PRId64 " for dimension 0",
                        bins);
    }
    MT_TRY(find_range(call, self, &low, &high));
    mt_tensor **above = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    mt_tensor **inside = mt__temp(call);
    mt_tensor **counted = mt__temp(call);
    mt_tensor **places = mt__temp(call);
    MT_TRY(mt_ge_scalar(self, mt_real(low), above));
    MT_TRY(mt_le_scalar(self, mt_real(high), below));
    MT_TRY(mt_logical_and(*above, *below, inside));
    MT_TRY(mt_masked_select(self, *inside, counted));
    MT_TRY(mt_sub_scalar_(*counted, mt_real(low)));
    MT_TRY(mt_mul_scalar_(*counted, mt_real((double)bins)));
    MT_TRY(mt_div_scalar_(*counted, mt_real(high - low)));
    MT_TRY(mt_to_with(*counted, MT_DTYPE_I64, MT_DEVICE_NONE, false, false, places));
    /* the last bin has both its ends; a range near that of the type overflows */
    const mt_scalar first = mt_int(0);
    const mt_scalar last = mt_int(bins - 1);
    MT_TRY(mt_clamp_(*places, &first, &last));
    return count_at(call, *places, NULL, bins, dtype);
}

int mt__run_bincount(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *weights = mt__arg_tensor(call, 1);
    int64_t length = mt__arg_int(call, 2);
    mt_dtype dtype = (mt_dtype)self->dtype;
    double low = 0;
    double high = -1;
    if (mt_dtype_category(dtype) != MT_CATEGORY_INT) {
        return mt__refuse_type("bincount_cpu", dtype);
    }
    if (length < 0) {
        return mtb_fail(MT_ERUNTIME, "minlength should be >= 0");
    }
    if (self->n_dims == 1 && self->numel > 0) {
        MT_TRY(read_real(call, mt_min, self, &low));
        MT_TRY(read_real(call, mt_max, self, &high));
    }
    if (self->n_dims != 1 || low < 0) {
        return mtb_fail(MT_ERUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (weights != NULL && (weights->n_dims != 1 || weights->numel != self->numel)) {
        return mtb_fail(MT_ERUNTIME, "weights should be 1-d and have the same length as input");
    }
    length = high >= (double)length ? (int64_t)high + 1 : length;
    dtype = weights == NULL                  ? MT_DTYPE_I64
            : weights->dtype == MT_DTYPE_F32 ? MT_DTYPE_F32
                                             : MT_DTYPE_F64;
    MT_TRY(mt__converted(call, self, MT_DTYPE_I64, &self));
    if (weights != NULL) {
        MT_TRY(mt__converted(call, weights, dtype, &weights));
    }
    return count_at(call, self, weights, length, dtype);
}
