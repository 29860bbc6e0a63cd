/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantiles: rows are sorted, and the place q (n - 1) lies on an element or between two.
 *
 *     self ─► rows along the last dimension ─► sorted [..., n]
 *     q ─► places [..., n_q] ─► elements below and above ─► interpolated ─► q's dimension first
 */
#include "base/fail.h"
#include "mindtorch/ops/op_support.h"

#include <inttypes.h>
#include <string.h>

/* Rows along the last dimension; all elements in one row where no dimension is given. */
static int as_rows(mt__call *call, mt_tensor *self, uint32_t dim, bool all, mt_tensor **out)
{
    const int64_t whole = -1;
    mt_tensor **place = mt__temp(call);
    if (all || self->n_dims == 0) {
        MT_TRY(mt_reshape(self, &whole, 1, place));
    } else {
        MT_TRY(mt_movedim(self, dim, -1, place));
    }
    *out = *place;
    return MT_OK;
}

/* q as a tensor of self's type; 0-d or one dimension. */
static int wanted_shares(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    const mt_value *q = &call->args[1];
    const char *name = "quantile"; /* torch's, for nanquantile too */
    if (q->kind != MT_KIND_TENSOR) {
        mt_tensor **place = mt__temp(call);
        double share = mt__scalar_real(q);
        if (!(share >= 0 && share <= 1)) {
            return mtb_fail(MT_ERUNTIME, "%s() q must be in the range [0, 1] but got %g", name,
                            share);
        }
        MT_TRY(mt_scalar_tensor_with(mt_real(share), (mt_dtype)self->dtype, (mt_device)self->device,
                                     place));
        *out = *place;
        return MT_OK;
    }
    mt_tensor *shares = q->of.tensor;
    if (shares->n_dims > 1) {
        return mtb_fail(MT_ERUNTIME, "%s() q must be a scalar or 1D tensor", name);
    }
    if (shares->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "%s() q tensor must be same dtype as the input tensor", name);
    }
    if (shares->device == MT_CPU) { /* elsewhere torch does not look either: it would wait */
        mt_tensor **low = mt__temp(call);
        mt_tensor **high = mt__temp(call);
        mt_tensor **inside = mt__temp(call);
        mt_tensor **all = mt__temp(call);
        bool fits = false;
        MT_TRY(mt_ge_scalar(shares, mt_int(0), low));
        MT_TRY(mt_le_scalar(shares, mt_int(1), high));
        MT_TRY(mt_logical_and(*low, *high, inside));
        MT_TRY(mt_all(*inside, NULL, 0, false, all));
        MT_TRY(mt_is_nonzero(*all, &fits));
        if (!fits) {
            return mtb_fail(MT_ERUNTIME, "%s() q values must be in the range [0, 1]", name);
        }
    }
    *out = shares;
    return MT_OK;
}

/* Places [..., n_q] in sorted rows. Rows with a NaN give it: it is their last element. */
static int find_places(mt__call *call, mt_tensor *sorted, mt_tensor *shares, bool without_nan,
                       mt_tensor **out)
{
    const int64_t last = -1;
    int64_t n = sorted->sizes[sorted->n_dims - 1];
    mt_tensor **nan = mt__temp(call);
    mt_tensor **some = mt__temp(call);
    mt_tensor **place = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    MT_TRY(mt_isnan(sorted, nan));
    if (!without_nan) {
        MT_TRY(mt_any(*nan, &last, 1, true, some));
        MT_TRY(mt_mul_scalar(shares, mt_int(n - 1), scaled));
        MT_TRY(mt_where_scalar_tensor(*some, mt_real((double)(n - 1)), *scaled, place));
    } else {
        mt_tensor **count = mt__temp(call);
        MT_TRY(mt_logical_not(*nan, some));
        MT_TRY(mt_sum(*some, &last, 1, true, count));
        MT_TRY(mt_sub_scalar_(*count, mt_int(1)));
        MT_TRY(mt_mul(shares, *count, scaled));
        MT_TRY(mt_clamp_min(*scaled, mt_int(0), place)); /* a row of NaN alone */
    }
    *out = *place;
    return MT_OK;
}

static int check(const mt_tensor *self, const char *way)
{
    static const char *const ways[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    const char *name = "quantile"; /* torch's, for nanquantile too */
    bool known = false;
    for (uint32_t i = 0; i < MT_COUNT(ways); i++) {
        known = known || strcmp(way, ways[i]) == 0;
    }
    if (self->numel == 0) {
        return mtb_fail(MT_ERUNTIME, "%s() input tensor must be non-empty", name);
    }
    if (self->dtype != MT_DTYPE_F32 && self->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME, "%s() input tensor must be either float or double dtype",
                        name);
    }
    if (!known) {
        return mtb_fail(MT_ERUNTIME,
                        "%s() interpolation must be one of linear, lower, higher, midpoint or "
                        "nearest, but got %s",
                        name, way);
    }
    return MT_OK;
}

/* The element at `places`, rounded as `round` does. */
static int element_at(mt__call *call, mt_tensor *sorted, mt_tensor *places,
                      int (*round)(mt_tensor *self, mt_tensor **out), mt_tensor **out)
{
    mt_tensor **whole = mt__temp(call);
    mt_tensor **index = mt__temp(call);
    mt_tensor **found = mt__temp(call);
    MT_TRY(round(places, whole));
    MT_TRY(mt_to_with(*whole, MT_DTYPE_I64, MT_DEVICE_NONE, false, false, index));
    MT_TRY(mt_gather(sorted, -1, *index, found));
    *out = *found;
    return MT_OK;
}

static int interpolate(mt__call *call, mt_tensor *sorted, mt_tensor *places, const char *way,
                       mt_tensor **out)
{
    mt_tensor *below = NULL;
    mt_tensor *above = NULL;
    if (strcmp(way, "nearest") == 0) {
        return element_at(call, sorted, places, mt_round, out);
    }
    if (strcmp(way, "higher") == 0) {
        return element_at(call, sorted, places, mt_ceil, out);
    }
    MT_TRY(element_at(call, sorted, places, mt_floor, &below));
    *out = below;
    if (strcmp(way, "lower") == 0) {
        return MT_OK;
    }
    mt_tensor **between = mt__temp(call);
    MT_TRY(element_at(call, sorted, places, mt_ceil, &above));
    if (strcmp(way, "midpoint") == 0) {
        MT_TRY(mt_lerp_scalar(below, above, mt_real(0.5), between));
    } else {
        mt_tensor **weight = mt__temp(call);
        MT_TRY(mt_frac(places, weight));
        MT_TRY(mt_lerp(below, above, *weight, between));
    }
    *out = *between;
    return MT_OK;
}

/* [..., n_q] to the result's shape. */
static int shape_result(mt__call *call, mt_tensor *found, bool one, bool all, uint32_t dim)
{
    mt_tensor *self = call->args[0].of.tensor;
    bool keepdim = mt__arg_bool(call, 3);
    mt_tensor **first = mt__temp(call);
    mt_tensor **kept = mt__temp(call);
    int64_t sizes[MT_MAX_DIMS + 1];
    uint32_t n = 0;
    MT_TRY(mt_movedim(found, -1, 0, first)); /* q's dimension goes to the front */
    if (!one) {
        sizes[n++] = found->sizes[found->n_dims - 1];
    }
    for (uint32_t d = 0; d < self->n_dims; d++) {
        bool reduced = all || d == dim;
        if (!reduced || keepdim) {
            sizes[n++] = reduced ? 1 : self->sizes[d];
        }
    }
    if (n > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s(): the result would have %u dimensions", mt__op_name(call),
                        n);
    }
    MT_TRY(mt_contiguous(*first, kept));
    return mt_reshape(*kept, sizes, n, mt__result_place(call, 0));
}

int mt__run_quantile(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const char *way = call->args[4].of.text;
    bool all = !mt__arg_given(call, 2);
    uint32_t dim = 0;
    mt_tensor *shares = NULL;
    mt_tensor *rows = NULL;
    mt_tensor *places = NULL;
    mt_tensor *found = NULL;
    MT_TRY(check(self, way));
    MT_TRY(wanted_shares(call, self, &shares));
    MT_ASSERT(shares != NULL);
    if (!all) {
        MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &dim));
    }
    MT_TRY(as_rows(call, self, dim, all, &rows));
    mt_tensor **sorted = mt__temp(call);
    mt_tensor **order = mt__temp(call);
    MT_TRY(mt_sort(rows, -1, false, sorted, order));
    MT_TRY(find_places(call, *sorted, shares, call->row->op == MT__OP_NANQUANTILE, &places));
    MT_TRY(interpolate(call, *sorted, places, way, &found));
    return shape_result(call, found, shares->n_dims == 0, all, dim);
}
