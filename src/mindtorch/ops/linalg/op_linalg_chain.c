/* SPDX-License-Identifier: Apache-2.0
 *
 * Powers and exponentials of matrices, chains of products, products of vectors, and equations of
 * tensors that are read as matrices.
 */
#include "base/alloc.h"
#include "mindtorch/ops/linalg/op_linalg.h"

#include <inttypes.h>
#include <string.h>

/* ---- functions of a matrix ------------------------------------------------------------------- */

int mt__run_linalg_matrix_exp(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(a);
    mt_tensor *out = NULL;
    MT_TRY(mt__need_square("linalg.matrix_exp", "A", a));
    MT_TRY(mt__need_floating("linalg.matrix_exp", a));
    MT_TRY(mt__contiguous(call, a, &a));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)a->dtype, &shape, &out));
    return mt__linalg(
        call, /* exp(a^T) = exp(a)^T */
        &(mt__linalg_args){.code = MT_LINALG_EXPONENTIAL, .kinds = "tt", .tensors = {out, a}});
}

/* a^n, n > 1, by squaring. */
static int power(mt__call *call, mt_tensor *a, uint64_t n, mt_tensor **out)
{
    mt_tensor *result = NULL; /* owned by neither: temporaries of this function */
    mt_tensor *square = mt_tensor_retain(a);
    int status = MT_OK;
    (void)call;
    while (status == MT_OK) {
        mt_tensor *next = NULL;
        if ((n & 1) != 0) {
            if (result == NULL) {
                next = mt_tensor_retain(square);
            } else {
                status = mt_matmul(square, result, &next);
            }
            mt_tensor_release(result);
            result = next;
        }
        n >>= 1;
        if (n == 0 || status != MT_OK) {
            break;
        }
        next = NULL;
        status = mt_matmul(square, square, &next);
        mt_tensor_release(square);
        square = next;
    }
    mt_tensor_release(square);
    if (status != MT_OK) {
        mt_tensor_release(result);
        return status;
    }
    *out = result;
    return MT_OK;
}

int mt__run_linalg_matrix_power(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    int64_t n = mt__arg_int(call, 1);
    MT_TRY(mt__need_square("linalg.matrix_power", "A", a));
    if (n == 0) {
        mt_tensor **line = mt__temp(call);
        mt_tensor **wide = mt__temp(call);
        mt__shape shape = mt__tensor_shape(a);
        MT_TRY(mt_eye_with(mt__rows(a), NULL, (mt_dtype)a->dtype, call->device, line));
        MT_TRY(mt_expand(*line, shape.sizes, shape.n_dims, wide));
        return mt_clone(*wide, mt__result_place(call, 0));
    }
    if (n == 1) {
        return mt_clone(a, mt__result_place(call, 0));
    }
    if (n == -1) {
        return mt_linalg_inv(a, mt__result_place(call, 0));
    }
    if (n < 0) {
        mt_tensor **inverse = mt__temp(call);
        MT_TRY(mt_linalg_inv(a, inverse));
        a = *inverse;
    }
    return power(call, a, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, mt__result_place(call, 0));
}

/* ---- chains of products ---------------------------------------------------------------------- */

enum {
    MOST_FACTORS = 64
};

/* Where the cheapest product of factors i to j is split: [i][j]. */
typedef struct chain {
    mt_tensor *factors[MOST_FACTORS];
    uint8_t split[MOST_FACTORS][MOST_FACTORS];
} chain;

static int multiply(chain *c, uint32_t i, uint32_t j, mt_tensor **out)
{
    if (i == j) {
        *out = mt_tensor_retain(c->factors[i]);
        return MT_OK;
    }
    mt_tensor *left = NULL;
    mt_tensor *right = NULL;
    int status = multiply(c, i, c->split[i][j], &left);
    status = status == MT_OK ? multiply(c, c->split[i][j] + 1U, j, &right) : status;
    status = status == MT_OK ? mt_mm(left, right, out) : status;
    mt_tensor_release(left);
    mt_tensor_release(right);
    return status;
}

/* Fewest multiplications, by the length of the part. */
static void find_splits(chain *c, uint32_t n)
{
    double cost[MOST_FACTORS][MOST_FACTORS];
    for (uint32_t i = 0; i < n; i++) {
        cost[i][i] = 0;
    }
    for (uint32_t length = 1; length < n; length++) {
        for (uint32_t i = 0; i + length < n; i++) {
            uint32_t j = i + length;
            cost[i][j] = -1;
            for (uint32_t k = i; k < j; k++) {
                double here = cost[i][k] + cost[k + 1][j] +
                              (double)mt__rows(c->factors[i]) * (double)mt__columns(c->factors[k]) *
                                  (double)mt__columns(c->factors[j]);
                if (cost[i][j] < 0 || here < cost[i][j]) {
                    cost[i][j] = here;
                    c->split[i][j] = (uint8_t)k;
                }
            }
        }
    }
}

static int check_factors(const char *op, mt_tensor *const *tensors, uint32_t n)
{
    char one[MT_SHAPE_TEXT];
    char two[MT_SHAPE_TEXT];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t dims = tensors[i]->n_dims;
        bool end = i == 0 || i == n - 1;
        if (end && dims != 1 && dims != 2) {
            return mtb_fail(MT_ERUNTIME, "%s(): the %s tensor must be 1D or 2D but got %uD", op,
                            i == 0 ? "first" : "last", dims);
        }
        if (!end && dims != 2) {
            return mtb_fail(MT_ERUNTIME, "%s(): tensor %u must be 2D but got %uD", op, i, dims);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (tensors[i]->dtype != tensors[0]->dtype) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): all tensors must have be the same dtype but tensor 0 "
                            "is %s and tensor %u %s",
                            op, mt__type_title((mt_dtype)tensors[0]->dtype), i,
                            mt__type_title((mt_dtype)tensors[i]->dtype));
        }
    }
    for (uint32_t i = 0; i + 1 < n; i++) {
        const mt_tensor *a = tensors[i];
        const mt_tensor *b = tensors[i + 1];
        if (a->sizes[a->n_dims - 1] != b->sizes[b->n_dims == 1 ? 0 : b->n_dims - 2]) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): tensors %u and %u with shapes %s and %s cannot be multiplied",
                            op, i, i + 1, mt__shape_text(a->sizes, a->n_dims, one),
                            mt__shape_text(b->sizes, b->n_dims, two));
        }
    }
    return MT_OK;
}

/* Vectors at the ends become a row and a column, whose dimensions the result loses. */
static int multiply_all(mt__call *call, const char *op)
{
    mt_tensor *const *tensors = call->args[0].of.tensors;
    uint32_t n = call->args[0].count;
    if (n > MOST_FACTORS) {
        return mtb_fail(MT_ERUNTIME, "%s(): %u tensors, at most %d are supported", op, n,
                        MOST_FACTORS);
    }
    MT_TRY(check_factors(op, tensors, n));
    chain c;
    memcpy(c.factors, tensors, n * sizeof(mt_tensor *));
    bool row = tensors[0]->n_dims == 1;
    bool column = tensors[n - 1]->n_dims == 1;
    int64_t sizes[2] = {row ? 1 : tensors[0]->sizes[0], column ? 1 : tensors[n - 1]->sizes[1]};
    if (row) {
        mt_tensor **wide = mt__temp(call);
        MT_TRY(mt_unsqueeze(tensors[0], 0, wide));
        c.factors[0] = *wide;
    }
    if (column) {
        mt_tensor **wide = mt__temp(call);
        MT_TRY(mt_unsqueeze(tensors[n - 1], -1, wide));
        c.factors[n - 1] = *wide;
    }
    find_splits(&c, n);
    mt_tensor **product = mt__temp(call);
    MT_TRY(multiply(&c, 0, n - 1, product));
    return mt_view(*product, &sizes[row ? 1 : 0], (row ? 0U : 1U) + (column ? 0U : 1U),
                   mt__result_place(call, 0));
}

int mt__run_linalg_multi_dot(mt__call *call)
{
    if (call->args[0].count < 2) {
        return mtb_fail(MT_ERUNTIME, "multi_dot(): expected at least 2 tensors but got %u",
                        call->args[0].count);
    }
    return multiply_all(call, "multi_dot");
}

int mt__run_chain_matmul(mt__call *call)
{
    mt_tensor *const *tensors = call->args[0].of.tensors;
    uint32_t n = call->args[0].count;
    for (uint32_t i = 0; i < n; i++) {
        if (tensors[i]->n_dims != 2) {
            return mtb_fail(MT_ERUNTIME, "Tensor dimension is %u, expected 2 instead.",
                            (unsigned)tensors[i]->n_dims);
        }
    }
    if (n == 0) {
        return mtb_fail(MT_ERUNTIME, "chain_matmul(): Expected one or more matrices");
    }
    if (n == 1) {
        return mt_clone(tensors[0], mt__result_place(call, 0));
    }
    return multiply_all(call, "multi_dot");
}

/* ---- products of vectors --------------------------------------------------------------------- */

int mt__run_linalg_vecdot(mt__call *call)
{
    mt_tensor *x = mt__arg_tensor(call, 0);
    mt_tensor *y = mt__arg_tensor(call, 1);
    int64_t dim = mt__arg_int(call, 2);
    MT_TRY(mt__need_floating("linalg.vecdot", x));
    MT_TRY(mt__need_same_type("linalg.vecdot", (const char *[]){"x", "y"}, x, y));
    if (x->n_dims == 1 && y->n_dims == 1) {
        return mt_dot(x, y, mt__result_place(call, 0));
    }
    mt_tensor **product = mt__temp(call);
    MT_TRY(mt_mul(x, y, product));
    return mt_sum(*product, &dim, 1, false, mt__result_place(call, 0));
}

/* a[i + 1] b[i + 2] - a[i + 2] b[i + 1], i of three. */
int mt__run_linalg_cross(mt__call *call)
{
    mt_tensor *pair[] = {mt__arg_tensor(call, 0), mt__arg_tensor(call, 1)};
    int64_t dim = mt__arg_int(call, 2);
    MT_ASSERT(pair[0] != NULL && pair[1] != NULL); /* the schema says so */
    if (pair[0]->n_dims != pair[1]->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.cross: inputs must have the same number of dimensions.");
    }
    if (pair[0]->n_dims == 0) {
        return mtb_fail(MT_EINDEX,
                        "Dimension specified as %" PRId64 " but tensor has no dimensions", dim);
    }
    uint32_t along = 0;
    MT_TRY(mt__wrap_dim(dim, pair[0]->n_dims, &along));
    if (pair[0]->sizes[along] != 3 || pair[1]->sizes[along] != 3) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.cross: inputs dimension %" PRId64
                        " must have length 3. Got %" PRId64 " and %" PRId64,
                        dim, pair[0]->sizes[along], pair[1]->sizes[along]);
    }
    if (pair[0]->dtype != pair[1]->dtype) {
        return mtb_fail(MT_ERUNTIME, "expected scalar type %s but found %s",
                        mt__type_title((mt_dtype)pair[0]->dtype),
                        mt__type_title((mt_dtype)pair[1]->dtype));
    }
    if (pair[0]->dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("cross", MT_DTYPE_BOOL);
    }
    const int64_t place = along;
    const int64_t shifts[] = {-1, -2};
    mt_tensor **moved[4];
    for (uint32_t i = 0; i < 4; i++) {
        moved[i] = mt__temp(call);
        MT_TRY(mt_roll(pair[i / 2], &shifts[i % 2], 1, &place, 1, moved[i]));
    }
    mt_tensor **first = mt__temp(call);
    mt_tensor **second = mt__temp(call);
    MT_TRY(mt_mul(*moved[0], *moved[3], first));
    MT_TRY(mt_mul(*moved[1], *moved[2], second));
    return mt_sub(*first, *second, mt__result_place(call, 0));
}

/* Without a dimension, the first one of size 3. */
int mt__run_cross(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t dim = mt__arg_given(call, 2) ? mt__arg_int(call, 2) : 0;
    if (!mt__arg_given(call, 2)) {
        while (dim < self->n_dims && self->sizes[dim] != 3) {
            dim++;
        }
        if (dim == self->n_dims) {
            return mtb_fail(MT_ERUNTIME, "no dimension of size 3 in input");
        }
    }
    return mt_linalg_cross_with(self, mt__arg_tensor(call, 1), dim, mt__result_place(call, 0));
}

/* ---- views and powers ------------------------------------------------------------------------ */

int mt__run_linalg_diagonal(mt__call *call)
{
    return mt_diagonal(mt__arg_tensor(call, 0), mt__arg_int(call, 1), mt__arg_int(call, 2),
                       mt__arg_int(call, 3), mt__result_place(call, 0));
}

int mt__run_linalg_vander(mt__call *call)
{
    mt_tensor *x = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(x);
    if (x->dtype == MT_DTYPE_BOOL || x->dtype == MT_DTYPE_F16 || x->dtype == MT_DTYPE_BF16) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.vander supports floating point, complex, and integer tensors, but "
                        "got %s",
                        mt__type_title((mt_dtype)x->dtype));
    }
    int64_t n = mt__arg_given(call, 1) ? mt__arg_int(call, 1)
                : x->n_dims == 0       ? 1
                                       : x->sizes[x->n_dims - 1];
    if (n <= 1) {
        return mtb_fail(MT_ERUNTIME, "N must be greater than 1.");
    }
    if (shape.n_dims >= MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "linalg.vander: %u dimensions are too many", shape.n_dims);
    }
    mt_tensor **column = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    mt_tensor **powers = mt__temp(call);
    mt_tensor **ones = mt__temp(call);
    shape.sizes[shape.n_dims++] = n - 1;
    MT_TRY(mt_unsqueeze(x, -1, column));
    MT_TRY(mt_expand(*column, shape.sizes, shape.n_dims, wide));
    MT_TRY(mt_cumprod(*wide, -1, powers));
    shape.sizes[shape.n_dims - 1] = 1;
    MT_TRY(mt_ones_with(shape.sizes, shape.n_dims, (mt_dtype)(*powers)->dtype, call->device, ones));
    mt_tensor *const parts[] = {*ones, *powers};
    return mt_cat(parts, 2, -1, mt__result_place(call, 0));
}

/* ---- tensors as matrices --------------------------------------------------------------------- */

static int64_t product_of(const int64_t *sizes, uint32_t n)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < n; i++) {
        product *= sizes[i];
    }
    return product;
}

int mt__run_linalg_tensorinv(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    int64_t ind = mt__arg_int(call, 1);
    if (ind <= 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected a strictly positive integer for 'ind', but got %" PRId64, ind);
    }
    uint32_t first = ind < a->n_dims ? (uint32_t)ind : a->n_dims;
    uint32_t rest = a->n_dims - first;
    int64_t rows = product_of(a->sizes, first);
    int64_t columns = product_of(a->sizes + first, rest);
    if (rows != columns) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                        "prod(self.shape[:ind]), but got %" PRId64 " != %" PRId64,
                        columns, rows);
    }
    int64_t sizes[MT_MAX_DIMS];
    memcpy(sizes, a->sizes + first, rest * sizeof(int64_t));
    memcpy(sizes + rest, a->sizes, first * sizeof(int64_t));
    mt_tensor **matrix = mt__temp(call);
    mt_tensor **inverse = mt__temp(call);
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_reshape(a, (const int64_t[]){rows, columns}, 2, matrix));
    MT_TRY(mt_linalg_inv_ex(*matrix, inverse, info));
    MT_TRY(mt__linalg_check("inv", *info, MT_FAILED_INVERSE));
    return mt_reshape(*inverse, sizes, a->n_dims, mt__result_place(call, 0));
}

/* The dimensions of `dims` moved to the end, in their order. */
static int move_to_end(mt__call *call, mt_tensor *a, const mt_value *dims, mt_tensor **out)
{
    int64_t order[MT_MAX_DIMS];
    uint32_t mask = 0;
    uint32_t n = 0;
    MT_TRY(mt__dim_mask(dims->of.ints, dims->count, a->n_dims, &mask));
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if ((mask >> i & 1) == 0) {
            order[n++] = i;
        }
    }
    for (uint32_t i = 0; i < dims->count; i++) {
        order[n++] = dims->of.ints[i];
    }
    mt_tensor **moved = mt__temp(call);
    MT_TRY(mt_permute(a, order, n, moved));
    *out = *moved;
    return MT_OK;
}

int mt__run_linalg_tensorsolve(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *b = mt__arg_tensor(call, 1);
    if (mt__arg_given(call, 2) && call->args[2].count > 0) {
        MT_TRY(move_to_end(call, a, &call->args[2], &a));
    }
    uint32_t first = b->n_dims < a->n_dims ? b->n_dims : a->n_dims;
    uint32_t rest = a->n_dims - first;
    int64_t rows = b->numel;
    int64_t columns = product_of(a->sizes + first, rest);
    if (rows != columns) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                        "prod(self.shape[:other.ndim]), but got %" PRId64 " != %" PRId64,
                        columns, rows);
    }
    int64_t sizes[MT_MAX_DIMS];
    const int64_t all = -1;
    memcpy(sizes, a->sizes + first, rest * sizeof(int64_t));
    mt_tensor **matrix = mt__temp(call);
    mt_tensor **line = mt__temp(call);
    mt_tensor **solution = mt__temp(call);
    MT_TRY(mt_reshape(a, (const int64_t[]){rows, columns}, 2, matrix));
    MT_TRY(mt_reshape(b, &all, 1, line));
    MT_TRY(mt_linalg_solve(*matrix, *line, solution));
    return mt_reshape(*solution, sizes, rest, mt__result_place(call, 0));
}
