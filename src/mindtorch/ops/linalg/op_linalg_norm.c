/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms of matrices, and condition numbers, which are made of them.
 */
#include "mindtorch/ops/linalg/op_linalg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ORDER_TEXT = 40
};

/* Which norm: its name, or its number. */
typedef struct order {
    const char *name; /* NULL: the number */
    double number;
} order;

static order order_of(const mt_value *value)
{
    if (value->kind == MT_KIND_TEXT) {
        return (order){.name = value->of.text};
    }
    return (order){.number = value->kind == MT_KIND_NONE ? 2 : mt__scalar_real(value)};
}

static const char *order_text(const order *o, char text[ORDER_TEXT])
{
    if (o->name != NULL) {
        (void)snprintf(text, ORDER_TEXT, "%.32s", o->name);
    } else {
        (void)snprintf(text, ORDER_TEXT, "%g", o->number);
    }
    return text;
}

static bool is_named(const order *o, const char *name)
{
    return o->name != NULL && strcmp(o->name, name) == 0;
}

static bool is_number(const order *o, double size)
{
    return o->name == NULL && fabs(o->number) == size;
}

/* The largest or the smallest along `dim`. */
static int extreme(mt_tensor *x, bool largest, int64_t dim, bool keepdim, mt_tensor **out)
{
    return largest ? mt_amax(x, &dim, 1, keepdim, out) : mt_amin(x, &dim, 1, keepdim, out);
}

/* The extreme of the rows' or columns' sums. */
static int norm_of_sums(mt__call *call, mt_tensor *a, const order *o, const int64_t dims[2],
                        bool keepdim, mt_tensor **out)
{
    bool rows = isinf(o->number);
    int64_t summed = dims[rows ? 1 : 0];
    int64_t other = dims[rows ? 0 : 1];
    if (!keepdim && summed < other) {
        other--;
    }
    mt_tensor **sums = mt__temp(call);
    MT_TRY(mt_linalg_vector_norm(a, mt_int(1), &summed, 1, keepdim, sums));
    return extreme(*sums, o->number > 0, other, keepdim, out);
}

/* Of singular values: their sum, or one of them. */
static int norm_of_values(mt__call *call, mt_tensor *a, const order *o, const int64_t dims[2],
                          bool keepdim, mt_tensor **out)
{
    static const int64_t last = -1;
    mt_tensor **moved = mt__temp(call);
    mt_tensor **values = mt__temp(call);
    mt_tensor **norm = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    int64_t order_of_dims[MT_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if (i != dims[0] && i != dims[1]) {
            order_of_dims[n++] = i;
        }
    }
    order_of_dims[n++] = dims[0];
    order_of_dims[n++] = dims[1];
    MT_TRY(mt_permute(a, order_of_dims, n, moved));
    MT_TRY(mt_linalg_svdvals(*moved, values));
    bool none = (*values)->sizes[(*values)->n_dims - 1] == 0 && o->number > 0; /* then 0 */
    if (o->name == NULL && !none) {
        MT_TRY(extreme(*values, o->number > 0, last, false, keepdim ? norm : out));
    } else {
        MT_TRY(mt_sum(*values, &last, 1, false, keepdim ? norm : out));
    }
    if (!keepdim) {
        return MT_OK;
    }
    int64_t first = dims[0] < dims[1] ? dims[0] : dims[1];
    MT_TRY(mt_unsqueeze(*norm, first, wide));
    return mt_unsqueeze(*wide, dims[0] + dims[1] - first, out);
}

static int check_order(const order *o)
{
    char text[ORDER_TEXT];
    if (is_named(o, "fro") || is_named(o, "nuc") || is_number(o, 1) || is_number(o, 2) ||
        is_number(o, INFINITY)) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "linalg.matrix_norm: Order %s not supported.",
                    order_text(o, text));
}

static int wrap_dims(const mt_tensor *a, const int64_t *given, uint32_t count, int64_t dims[2])
{
    uint32_t wrapped[2];
    if (count != 2) {
        return mtb_fail(MT_ERUNTIME, "linalg.matrix_norm: dim must be a 2-tuple. Got %u", count);
    }
    MT_TRY(mt__wrap_dim(given[0], a->n_dims, &wrapped[0]));
    MT_TRY(mt__wrap_dim(given[1], a->n_dims, &wrapped[1]));
    if (wrapped[0] == wrapped[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.matrix_norm: dims must be different. Got (%" PRId64 ", %" PRId64
                        ")",
                        given[0], given[1]);
    }
    dims[0] = wrapped[0];
    dims[1] = wrapped[1];
    return MT_OK;
}

/* The input in another type, where one is given. */
static int widened(mt__call *call, const char *op, mt_tensor *a, mt_dtype dtype, mt_tensor **out)
{
    *out = a;
    if (dtype == MT_DTYPE_NONE || a->dtype == (uint32_t)dtype) {
        return MT_OK;
    }
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL ||
        mt_promote_types((mt_dtype)a->dtype, dtype) != dtype) {
        return mtb_fail(
            MT_ERUNTIME,
            "%s: the dtype of the input (%s) should be convertible without narrowing to "
            "the specified dtype (%s)",
            op, mt__type_title((mt_dtype)a->dtype), mt__type_title(dtype));
    }
    mt_tensor **wide = mt__temp(call);
    MT_TRY(mt_to_with(a, dtype, MT_DEVICE_NONE, false, false, wide));
    *out = *wide;
    return MT_OK;
}

static int matrix_norm(mt__call *call, mt_tensor *a, const order *o, const mt_value *dim,
                       bool keepdim, mt_tensor **out)
{
    int64_t dims[2];
    MT_TRY(mt__need_matrix("linalg.matrix_norm", "A", a));
    MT_TRY(mt__need_floating("linalg.matrix_norm", a));
    MT_TRY(check_order(o));
    MT_TRY(wrap_dims(a, dim->of.ints, dim->count, dims));
    if (is_named(o, "fro")) {
        return mt_linalg_vector_norm(a, mt_int(2), dims, 2, keepdim, out);
    }
    if (is_named(o, "nuc") || is_number(o, 2)) {
        MT_TRY(mt__need_precision("linalg.matrix_norm", a));
        return norm_of_values(call, a, o, dims, keepdim, out);
    }
    return norm_of_sums(call, a, o, dims, keepdim, out);
}

int mt__run_linalg_matrix_norm(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    order o = order_of(&call->args[1]);
    MT_TRY(widened(call, "linalg.matrix_norm", a, mt__arg_dtype(call, 4), &a));
    return matrix_norm(call, a, &o, &call->args[2], mt__arg_bool(call, 3),
                       mt__result_place(call, 0));
}

int mt__run_linalg_norm(mt__call *call)
{
    static const int64_t both[] = {-2, -1};
    mt_tensor *a = mt__arg_tensor(call, 0);
    const mt_value *dim = &call->args[2];
    bool has_order = mt__arg_given(call, 1);
    bool has_dim = mt__arg_given(call, 2);
    bool keepdim = mt__arg_bool(call, 3);
    order o = order_of(&call->args[1]);
    char text[MT_SHAPE_TEXT];
    if (has_order && has_dim && dim->count != 1 && dim->count != 2) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s",
                        mt__shape_text(dim->of.ints, dim->count, text));
    }
    if (has_order && !has_dim && a->n_dims != 1 && a->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.norm: If dim is not specified but ord is, the input must be 1D or "
                        "2D. Got %uD.",
                        (unsigned)a->n_dims);
    }
    MT_TRY(widened(call, "linalg.norm", a, mt__arg_dtype(call, 4), &a));
    bool matrix = has_order && (o.name != NULL || (has_dim ? dim->count == 2 : a->n_dims == 2));
    if (!matrix) {
        return mt_linalg_vector_norm(a, mt_real(o.number), has_dim ? dim->of.ints : NULL,
                                     has_dim ? dim->count : 0, keepdim, mt__result_place(call, 0));
    }
    const mt_value all = {.kind = MT_KIND_INTS, .count = 2, .of.ints = both};
    return matrix_norm(call, a, &o, has_dim ? dim : &all, keepdim, mt__result_place(call, 0));
}

/* ---- condition numbers ----------------------------------------------------------------------- */

/* The largest singular value over the smallest one, or the other way round. */
static int cond_of_values(mt__call *call, mt_tensor *a, bool largest)
{
    mt_tensor **values = mt__temp(call);
    mt_tensor **first = mt__temp(call);
    mt_tensor **end = mt__temp(call);
    mt_tensor **ratio = mt__temp(call);
    MT_TRY(mt_linalg_svdvals(a, values));
    int64_t k = (*values)->sizes[(*values)->n_dims - 1];
    MT_TRY(mt_narrow(*values, -1, 0, 1, first));
    MT_TRY(mt_narrow(*values, -1, k - 1, 1, end));
    MT_TRY(largest ? mt_div(*first, *end, ratio) : mt_div(*end, *first, ratio));
    return mt_squeeze_dim(*ratio, -1, mt__result_place(call, 0));
}

/* Infinity in place of inverses that do not exist. */
static int inverse_or_infinity(mt__call *call, mt_tensor *a, mt_tensor **out)
{
    mt_tensor **inverse = mt__temp(call);
    mt_tensor **info = mt__temp(call);
    mt_tensor **singular = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    mt_tensor **wider = mt__temp(call);
    mt_tensor **filled = mt__temp(call);
    MT_TRY(mt_linalg_inv_ex(a, inverse, info));
    MT_TRY(mt_gt_scalar(*info, mt_int(0), singular));
    MT_TRY(mt_unsqueeze(*singular, -1, wide));
    MT_TRY(mt_unsqueeze(*wide, -1, wider));
    MT_TRY(mt_masked_fill_scalar(*inverse, *wider, mt_real(INFINITY), filled));
    *out = *filled;
    return MT_OK;
}

int mt__run_linalg_cond(mt__call *call)
{
    static const int64_t both[] = {-2, -1};
    mt_tensor *a = mt__arg_tensor(call, 0);
    order o = order_of(&call->args[1]);
    char text[ORDER_TEXT];
    char op[ORDER_TEXT + 24];
    if (a->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.cond: The input tensor must have at least 2 dimensions.");
    }
    if (a->numel == 0) {
        mt__shape numbers = mt__batch_and(a, 0, 0, 0);
        return mt_zeros_with(numbers.sizes, numbers.n_dims, (mt_dtype)a->dtype, call->device,
                             mt__result_place(call, 0));
    }
    if (is_number(&o, 2)) {
        return cond_of_values(call, a, o.number > 0);
    }
    if (o.name == NULL && check_order(&o) != MT_OK) {
        return mtb_fail(MT_ERUNTIME, "linalg.cond got an invalid norm type: %s",
                        order_text(&o, text));
    }
    (void)snprintf(op, sizeof op, "linalg.cond(ord=%s)", order_text(&o, text));
    MT_TRY(mt__need_square(op, "A", a));
    if (check_order(&o) != MT_OK) {
        return mtb_fail(MT_ERUNTIME, "linalg.cond got an invalid norm type: %s",
                        order_text(&o, text));
    }
    const mt_value all = {.kind = MT_KIND_INTS, .count = 2, .of.ints = both};
    mt_tensor *inverse = NULL;
    mt_tensor **first = mt__temp(call);
    mt_tensor **second = mt__temp(call);
    MT_TRY(inverse_or_infinity(call, a, &inverse));
    if (is_named(&o, "nuc")) { /* the singular values of a matrix of infinities do not exist */
        mt_tensor **inverse_place = mt__temp(call);
        MT_TRY(mt_linalg_inv(a, inverse_place));
        inverse = *inverse_place;
    }
    MT_TRY(matrix_norm(call, a, &o, &all, false, first));
    MT_TRY(matrix_norm(call, inverse, &o, &all, false, second));
    return mt_mul(*first, *second, mt__result_place(call, 0));
}
