/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of complex tensors that are made of ops of their real and imaginary parts. Gradients are
 * those of the op itself: what is called here is not recorded.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mindtorch/dispatch/boxing.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/reduce/reduction_plan.h"
#include "mindtorch/ops/type_names.h"

#include <string.h>

/* The tensor, converted to `dtype`, as one of real numbers with a last dimension of 2. */
static int parts_of(mt__call *call, mt_tensor *tensor, mt_dtype dtype, mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__converted(call, tensor, dtype, &tensor));
    MT_TRY(mt__complex_apart(tensor, place));
    *out = *place;
    return MT_OK;
}

/* Result 0 becomes the complex tensor of the numbers in `parts`, which belong to nothing else. */
static int give_joined(mt__call *call, mt_tensor *parts)
{
    mt_tensor **whole = mt__temp(call);
    MT_TRY(mt_contiguous(parts, whole));
    return mt__complex_joined(*whole, mt__result_place(call, 0));
}

static mt_dtype own_type(const mt__call *call)
{
    return (mt_dtype)call->args[0].of.tensor->dtype;
}

static int own_parts(mt__call *call, mt_tensor **out)
{
    return parts_of(call, call->args[0].of.tensor, own_type(call), out);
}

/* One of our ops with boxed arguments; its result is a temporary. */
static int call_op(mt__call *call, uint32_t op, const mt_value *args, uint32_t count,
                   mt_tensor **out)
{
    mt_value result = {.kind = MT_KIND_NONE};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_call(op, args, count, &result, 1));
    *place = result.of.tensor;
    *out = *place;
    return MT_OK;
}

/* ---- random numbers: args size, generator, dtype, device ---- */

static int random_parts(mt__call *call, mt_tensor **out)
{
    mt_value args[4];
    int64_t sizes[MT_MAX_DIMS + 1];
    uint32_t count = call->args[0].count;
    if (count >= MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s: a complex tensor of %u dimensions, at most %d",
                        mt__op_name(call), count, MT_MAX_DIMS - 1);
    }
    memcpy(sizes, call->args[0].of.ints, count * sizeof(sizes[0]));
    sizes[count] = 2;
    memcpy(args, call->args, sizeof(args));
    args[0] = (mt_value){.kind = MT_KIND_INTS, .count = count + 1, .of.ints = sizes};
    args[2].of.integer = mt__part_type(mt__arg_dtype(call, 2));
    return call_op(call, call->row->op, args, 4, out);
}

int mt__complex_rand(mt__call *call)
{
    mt_tensor *parts = NULL;
    MT_TRY(random_parts(call, &parts));
    return give_joined(call, parts);
}

/* The variance of the whole number is 1. */
int mt__complex_randn(mt__call *call)
{
    mt_tensor *parts = NULL;
    MT_TRY(random_parts(call, &parts));
    MT_TRY(mt_mul_scalar_(parts, mt_real(0.70710678118654752440)));
    return give_joined(call, parts);
}

/* The row itself over both parts. */
static int fill_parts(mt__call *call, const mt_value *second, const mt_value *third)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **parts = mt__temp(call);
    mt_value result = {.kind = MT_KIND_NONE};
    MT_TRY(mt__complex_apart(self, parts));
    const mt_value args[] = {mt__box_tensor(*parts), *second, *third, call->args[3]};
    MT_TRY(mt_call(call->row->op, args, MT_COUNT(args), &result, 1));
    mt_value_clear(&result);
    mt__result_same(call, 0, self);
    return MT_OK;
}

int mt__complex_uniform(mt__call *call)
{
    return fill_parts(call, &call->args[1], &call->args[2]);
}

/* The variance of the whole number is the square of the deviation; both parts have the mean. */
int mt__complex_normal(mt__call *call)
{
    double deviation = mt__scalar_real(&call->args[2]);
    if (!(deviation >= 0)) {
        return mtb_fail(MT_ERUNTIME, "normal expects std >= 0.0, but found std %.6g", deviation);
    }
    const mt_value of_parts = mt_real(deviation * 0.70710678118654752440);
    return fill_parts(call, &call->args[1], &of_parts);
}

/* ---- tests ---- */

static const int64_t last = -1; /* the dimension of the parts */

static int test_parts(mt__call *call, mt_tensor **out)
{
    mt_tensor *parts = NULL;
    MT_TRY(own_parts(call, &parts));
    return call_op(call, call->row->op, (const mt_value[]){mt__box_tensor(parts)}, 1, out);
}

int mt__complex_any_part(mt__call *call)
{
    mt_tensor *found = NULL;
    MT_TRY(test_parts(call, &found));
    return mt_any(found, &last, 1, false, mt__result_place(call, 0));
}

int mt__complex_all_parts(mt__call *call)
{
    mt_tensor *found = NULL;
    MT_TRY(test_parts(call, &found));
    return mt_all(found, &last, 1, false, mt__result_place(call, 0));
}

int mt__complex_equal(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *b = call->args[1].of.tensor;
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected object of data type %s but got data type %s for "
                        "argument #2 'other' in call to equal",
                        mt_dtype_name((mt_dtype)a->dtype), mt_dtype_name((mt_dtype)b->dtype));
    }
    bool same = false;
    MT_TRY(parts_of(call, a, (mt_dtype)a->dtype, &a));
    MT_TRY(parts_of(call, b, (mt_dtype)b->dtype, &b));
    MT_TRY(mt_equal(a, b, &same));
    call->results[0] = mt_bool(same);
    return MT_OK;
}

/* ---- sums ---- */

/* The type to compute in: what is asked for, else the tensor's. */
static int reduced_type(const mt__call *call, uint32_t i, mt_dtype *dtype)
{
    *dtype = mt__arg_dtype(call, i);
    if (*dtype == MT_DTYPE_NONE) {
        *dtype = own_type(call);
    }
    if (mt_dtype_category(*dtype) != MT_CATEGORY_COMPLEX) {
        return mtb_fail(MT_ENOTSUP, "%s(): a complex tensor with dtype=%s is not implemented",
                        mt__op_name(call), mt_dtype_name(*dtype));
    }
    return MT_OK;
}

static int reduce_parts(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *parts = NULL;
    mt_dtype dtype = MT_DTYPE_NONE;
    uint32_t mask = 0;
    int64_t dims[MT_MAX_DIMS];
    uint32_t count = 0;
    MT_TRY(reduced_type(call, 3, &dtype));
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    MT_TRY(parts_of(call, self, dtype, &parts));
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if ((mask >> d & 1) != 0) {
            dims[count++] = d;
        }
    }
    if (count == 0) { /* a number, of which the sum is itself; an empty list would mean all */
        mt_tensor **copy = mt__temp(call);
        MT_TRY(mt_clone(parts, copy));
        return give_joined(call, *copy);
    }
    const mt_value args[] = {mt__box_tensor(parts),
                             {.kind = MT_KIND_INTS, .count = count, .of.ints = dims},
                             call->args[2]};
    mt_tensor *sums = NULL;
    MT_TRY(call_op(call, call->row->op, args, 3, &sums));
    return give_joined(call, sums);
}

int mt__complex_sum(mt__call *call)
{
    return reduce_parts(call);
}

int mt__complex_mean(mt__call *call)
{
    return reduce_parts(call);
}

/* The first half times the second, until one is left: *out has size 1 in dim. */
static int multiply_along(mt_tensor *from, int64_t dim, mt_tensor **out)
{
    mt_tensor *now = mt_tensor_retain(from);
    int64_t n = from->sizes[dim];
    int status = MT_OK;
    while (n > 1 && status == MT_OK) {
        mt_tensor *pieces[5] = {NULL};
        int64_t half = n / 2;
        int64_t ends[] = {0, half, 2 * half, n};
        status = mt_slice(now, dim, &ends[0], &ends[1], 1, &pieces[0]);
        if (status == MT_OK) {
            status = mt_slice(now, dim, &ends[1], &ends[2], 1, &pieces[1]);
        }
        if (status == MT_OK) {
            status = mt_mul(pieces[0], pieces[1], &pieces[2]);
        }
        if (status == MT_OK && n % 2 != 0) {
            int64_t one = 1;
            status = mt_slice(now, dim, &ends[2], &ends[3], 1, &pieces[3]);
            if (status == MT_OK) {
                status = mt_slice(pieces[2], dim, &ends[0], &one, 1, &pieces[4]);
            }
            if (status == MT_OK) {
                status = mt_mul_(pieces[4], pieces[3]);
            }
        }
        mt_tensor_release(now);
        now = pieces[2];
        pieces[2] = NULL;
        for (uint32_t i = 0; i < MT_COUNT(pieces); i++) {
            mt_tensor_release(pieces[i]);
        }
        n = half;
    }
    *out = status == MT_OK ? now : NULL;
    if (status != MT_OK) {
        mt_tensor_release(now);
    }
    return status;
}

static int give_product(mt__call *call, mt_tensor *self, int64_t dim, bool keepdim)
{
    mt_tensor **line = mt__temp(call);
    if (self->sizes[dim] == 0) {
        int64_t sizes[MT_MAX_DIMS];
        memcpy(sizes, self->sizes, self->n_dims * sizeof(sizes[0]));
        sizes[dim] = 1;
        MT_TRY(mt_ones_with(sizes, self->n_dims, (mt_dtype)self->dtype, self->device, line));
    } else if (self->sizes[dim] == 1) {
        MT_TRY(mt_clone(self, line));
    } else {
        MT_TRY(multiply_along(self, dim, line));
    }
    if (keepdim) {
        mt__result_same(call, 0, *line);
        return MT_OK;
    }
    mt_tensor **flat = mt__temp(call);
    MT_TRY(mt_squeeze_dim(*line, dim, flat));
    return mt_clone(*flat, mt__result_place(call, 0));
}

int mt__complex_prod(mt__call *call)
{
    static const int64_t flat = -1;
    mt_dtype dtype = MT_DTYPE_NONE;
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **line = mt__temp(call);
    MT_TRY(reduced_type(call, 1, &dtype));
    MT_TRY(mt__converted(call, self, dtype, &self));
    MT_TRY(mt_reshape(self, &flat, 1, line));
    return give_product(call, *line, 0, false);
}

int mt__complex_prod_dim(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t mask = 0;
    MT_TRY(reduced_type(call, 3, &dtype));
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    MT_TRY(mt__converted(call, self, dtype, &self));
    if (self->n_dims == 0) {
        return mt_clone(self, mt__result_place(call, 0));
    }
    return give_product(call, self, __builtin_ctz(mask), mt__arg_bool(call, 2));
}

/* ---- products of matrices ---- */

/* (a + i b)(c + i d) = (a c - b d) + i (a d + b c): the row's op four times. */
int mt__complex_product(mt__call *call)
{
    mt_tensor *parts[2];
    mt_tensor *of[2][2];       /* operand, part */
    mt_tensor *products[2][2]; /* part of the first, of the second */
    mt_dtype dtype = own_type(call);
    for (uint32_t i = 0; i < 2; i++) {
        mt_tensor *operand = call->args[i].of.tensor;
        if (operand->dtype != dtype) {
            return mtb_fail(
                MT_ERUNTIME, "%s: expected both tensors to have the same dtype, but got: %s != %s",
                mt__op_name(call), mt__type_in_c(dtype), mt__type_in_c((mt_dtype)operand->dtype));
        }
        MT_TRY(parts_of(call, operand, dtype, &parts[i]));
        for (uint32_t k = 0; k < 2; k++) {
            mt_tensor **place = mt__temp(call);
            MT_TRY(mt_select(parts[i], -1, k, place));
            of[i][k] = *place;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            const mt_value args[] = {mt__box_tensor(of[0][i]), mt__box_tensor(of[1][k])};
            MT_TRY(call_op(call, call->row->op, args, 2, &products[i][k]));
        }
    }
    MT_TRY(mt_sub_(products[0][0], products[1][1]));
    MT_TRY(mt_add_(products[0][1], products[1][0]));
    mt_tensor *const whole[] = {products[0][0], products[0][1]};
    return mt__complex_launch(call, MT_COMPLEX_OF_PARTS, whole, 2, mt__part_type(dtype), dtype,
                              NULL);
}

/* ---- choices and moves ---- */

int mt__complex_where(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    mt_tensor *operands[2] = {NULL, NULL};
    mt_tensor **condition = mt__temp(call);
    mt_tensor **chosen = mt__temp(call);
    MT_TRY(mt__promote_values(call->args + 1, 2, &dtype));
    for (uint32_t i = 0; i < 2; i++) {
        MT_TRY(mt__complex_operand(call, &call->args[1 + i], dtype, &operands[i]));
        MT_TRY(parts_of(call, operands[i], dtype, &operands[i]));
    }
    MT_TRY(mt_unsqueeze(call->args[0].of.tensor, -1, condition));
    MT_TRY(mt_where(*condition, operands[0], operands[1], chosen));
    return give_joined(call, *chosen);
}

/* constant_pad_nd(self, pad, value): the last dimension comes first in `pad`. */
int mt__complex_pad(mt__call *call)
{
    mt_tensor *parts = NULL;
    int64_t pad[2 * MT_MAX_DIMS + 2] = {0, 0};
    uint32_t count = call->args[1].count;
    if (mt__scalar_real(&call->args[2]) != 0) {
        return mtb_fail(MT_ENOTSUP, "constant_pad_nd(): complex tensors are padded with 0 only");
    }
    if (count > 2 * MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "constant_pad_nd(): %u numbers, at most %d", count,
                        2 * MT_MAX_DIMS);
    }
    memcpy(pad + 2, call->args[1].of.ints, count * sizeof(pad[0]));
    MT_TRY(own_parts(call, &parts));
    mt_tensor **padded = mt__temp(call);
    MT_TRY(mt_constant_pad_nd(parts, pad, count + 2, mt_int(0), padded));
    return give_joined(call, *padded);
}

int mt__complex_index(mt__call *call)
{
    mt_tensor *parts = NULL;
    mt_tensor *found = NULL;
    MT_TRY(own_parts(call, &parts));
    MT_TRY(call_op(call, call->row->op, (const mt_value[]){mt__box_tensor(parts), call->args[1]}, 2,
                   &found));
    return give_joined(call, found);
}

/* A dimension, or several, that count from the end, made to count from the start. */
static int count_from_start(mt__call *call, uint32_t n_dims, mt_value *value,
                            int64_t dims[MT_MAX_DIMS])
{
    int64_t n = n_dims == 0 ? 1 : n_dims;
    uint32_t count = value->kind == MT_KIND_INTS ? value->count : 1;
    if (count > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s(): %u dimensions, at most %d", mt__op_name(call), count,
                        MT_MAX_DIMS);
    }
    for (uint32_t k = 0; k < count; k++) {
        int64_t dim = value->kind == MT_KIND_INTS ? value->of.ints[k] : value->of.integer;
        if (dim < -n || dim >= n) {
            return mtb_fail(MT_EINDEX,
                            "Dimension out of range (expected to be in range of [%lld, %lld], but "
                            "got %lld)",
                            (long long)-n, (long long)n - 1, (long long)dim);
        }
        dims[k] = dim < 0 ? dim + n : dim;
    }
    if (value->kind == MT_KIND_INTS) {
        value->of.ints = dims;
    } else {
        value->of.integer = dims[0];
    }
    return MT_OK;
}

/* cat and stack: the parts of all tensors, in one type. */
static int join_parts(mt__call *call)
{
    const mt_value *list = &call->args[0];
    mt_dtype dtype = MT_DTYPE_NONE;
    int64_t dims[MT_MAX_DIMS];
    mt_value dim = call->args[1];
    uint32_t n_dims = list->of.tensors[0]->n_dims + (call->row->op == MT__OP_STACK);
    MT_TRY(count_from_start(call, n_dims, &dim, dims));
    for (uint32_t i = 0; i < list->count; i++) {
        mt_dtype other = (mt_dtype)list->of.tensors[i]->dtype;
        dtype = dtype == MT_DTYPE_NONE ? other : mt_promote_types(dtype, other);
        if (dtype == MT_DTYPE_NONE) {
            return MT_ERUNTIME;
        }
    }
    mt_tensor **parts = mtb_calloc((size_t)list->count * 2, sizeof(mt_tensor *));
    if (parts == NULL) {
        return mtb_fail(MT_ENOMEM, "%s: no memory for %u tensors", mt__op_name(call), list->count);
    }
    int status = MT_OK;
    for (uint32_t i = 0; i < list->count && status == MT_OK; i++) {
        mt_tensor **whole = &parts[list->count + i];
        status = mt_to_with(list->of.tensors[i], dtype, MT_DEVICE_NONE, false, false, whole);
        if (status == MT_OK) {
            status = mt__complex_apart(*whole, &parts[i]);
        }
    }
    mt_tensor *joined = NULL;
    if (status == MT_OK) {
        const mt_value args[] = {
            {.kind = MT_KIND_TENSORS, .count = list->count, .of.tensors = parts}, dim};
        status = call_op(call, call->row->op, args, 2, &joined);
    }
    for (uint32_t i = 0; i < 2 * list->count; i++) {
        mt_tensor_release(parts[i]);
    }
    mtb_free(parts);
    return status == MT_OK ? give_joined(call, joined) : status;
}

/* roll() without dimensions: of the elements in one line. */
static int roll_flat(mt__call *call)
{
    static const int64_t flat = -1;
    static const int64_t first = 0;
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **line = mt__temp(call);
    mt_tensor **rolled = mt__temp(call);
    MT_TRY(mt_reshape(self, &flat, 1, line));
    MT_TRY(mt_roll(*line, call->args[1].of.ints, call->args[1].count, &first, 1, rolled));
    return mt_reshape(*rolled, self->sizes, self->n_dims, mt__result_place(call, 0));
}

int mt__complex_parts(mt__call *call)
{
    if (call->args[0].kind == MT_KIND_TENSORS) {
        return join_parts(call);
    }
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *parts = NULL;
    mt_tensor *moved = NULL;
    int64_t dims[MT_MAX_DIMS];
    mt_value args[3];
    uint32_t at = call->row->op == MT__OP_ROLL ? 2 : 1; /* where the dimensions are */
    memcpy(args, call->args, call->row->n_params * sizeof(args[0]));
    if (call->row->op == MT__OP_ROLL && (!mt__arg_given(call, 2) || call->args[2].count == 0)) {
        return roll_flat(call);
    }
    MT_TRY(count_from_start(call, self->n_dims, &args[at], dims));
    MT_TRY(own_parts(call, &parts));
    args[0] = mt__box_tensor(parts);
    MT_TRY(call_op(call, call->row->op, args, call->row->n_params, &moved));
    return give_joined(call, moved);
}
