/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that only call another row: torch's other names, and methods that need one more step.
 */
#include "mindtorch/ops/op_support.h"

#include <string.h>

/* ---- other names ----------------------------------------------------------------------------- */

/* ALIAS rows: the target takes the same arguments, or more with defaults. */
int mt__run_behind(mt__call *call)
{
    return mt_call(call->row->target, call->args, call->row->n_params, call->results, 1);
}

int mt__run_is_nonzero(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_scalar number = mt_int(0);
    if (self->numel != 1) {
        return mtb_fail(MT_ERUNTIME, "Boolean value of Tensor with %s is ambiguous",
                        self->numel == 0 ? "no values" : "more than one value");
    }
    MT_TRY(mt_item(self, &number));
    call->results[0] =
        mt_bool(number.kind == MT_KIND_REAL ? number.of.real != 0.0 : number.of.integer != 0);
    return MT_OK;
}

/* ---- other sides ----------------------------------------------------------------------------- */

int mt__run_numpy_T(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t dims[MT_MAX_DIMS] = {0};
    for (uint32_t i = 0; i < self->n_dims; i++) {
        dims[i] = (int64_t)self->n_dims - 1 - i;
    }
    return mt_permute(self, dims, self->n_dims, mt__result_place(call, 0));
}

int mt__run_mT(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (self->n_dims == 1) {
        return mtb_fail(MT_ERUNTIME, "tensor.mT is only supported on matrices or batches of "
                                     "matrices. Got 1-D tensor.");
    }
    if (self->n_dims == 0) { /* torch returns 0-d tensors unchanged */
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_transpose(self, -2, -1, mt__result_place(call, 0));
}

/* The device is passed only if it differs, so that profiles show the overload of `to` that torch
 * calls. */
int mt__run_type_as(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *other = mt__arg_tensor(call, 1);
    mt_value args[] = {
        call->args[0],
        {.kind = MT_KIND_DTYPE, .of.integer = other->dtype},
        {.kind = MT_KIND_DEVICE, .of.integer = other->device},
    };
    if (other->dtype == self->dtype) {
        args[1] = (mt_value){.kind = MT_KIND_NONE};
    }
    return mt_call(MT__OP_TO, args, MT_COUNT(args), call->results, 1);
}

int mt__run_ravel(mt__call *call)
{
    mt_tensor **whole = mt__temp(call);
    const int64_t all = -1;
    MT_TRY(mt_contiguous(mt__arg_tensor(call, 0), whole));
    return mt_view(*whole, &all, 1, mt__result_place(call, 0));
}

/* repeat() with as many dimensions as the tensor has. */
int mt__run_tile(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *dims = &call->args[1];
    mt_tensor *out = NULL;
    if (dims->count >= self->n_dims) {
        MT_TRY(mt_repeat(self, dims->of.ints, dims->count, &out));
    } else {
        int64_t repeats[MT_MAX_DIMS];
        uint32_t missing = self->n_dims - dims->count;
        for (uint32_t i = 0; i < self->n_dims; i++) {
            repeats[i] = i < missing ? 1 : dims->of.ints[i - missing];
        }
        MT_TRY(mt_repeat(self, repeats, self->n_dims, &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_flip_side(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const int64_t dim = call->row->op == MT__OP_FLIPLR ? 1 : 0;
    if (self->n_dims <= dim) {
        return mtb_fail(MT_ERUNTIME, "Input must be >= %d-d.", (int)dim + 1);
    }
    return mt_flip(self, &dim, 1, mt__result_place(call, 0));
}

/* ---- new tensors of a tensor's type and device ----------------------------------------------- */

int mt__run_new_empty(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *size = &call->args[1];
    mt_dtype dtype = mt__arg_dtype(call, 2);
    mt_device device =
        mt__arg_given(call, 3) ? (mt_device)mt__arg_int(call, 3) : (mt_device)self->device;
    return mt_empty_with(size->of.ints, size->count,
                         dtype == MT_DTYPE_NONE ? (mt_dtype)self->dtype : dtype, device,
                         mt__result_place(call, 0));
}

/* new_empty() as result 0; type and device are the last two parameters of every row here. */
static int new_empty(mt__call *call, mt_tensor **out)
{
    const mt_value *last = &call->args[call->row->n_params - 2];
    const mt_value args[] = {call->args[0], call->args[1], last[0], last[1]};
    MT_TRY(mt_call(MT__OP_NEW_EMPTY, args, MT_COUNT(args), call->results, 1));
    *out = call->results[0].of.tensor;
    return MT_OK;
}

int mt__run_new_zeros(mt__call *call)
{
    mt_tensor *out = NULL;
    MT_TRY(new_empty(call, &out));
    return mt_zero_(out);
}

int mt__run_new_ones(mt__call *call)
{
    mt_tensor *out = NULL;
    MT_TRY(new_empty(call, &out));
    return mt_fill_scalar_(out, mt_real(1.0));
}

int mt__run_new_full(mt__call *call)
{
    mt_tensor *out = NULL;
    MT_TRY(new_empty(call, &out));
    return mt_fill_scalar_(out, call->args[2]);
}

/* ---- at least so many dimensions, stacks, grids ---------------------------------------------- */

/* torch's order of calls: reshape for 0-d tensors, unsqueeze for others. */
static int deepen(mt_tensor *self, const void *wanted, mt_tensor **out)
{
    static const int64_t ones[] = {1, 1, 1};
    uint32_t n_dims = *(const uint32_t *)wanted;
    if (self->n_dims >= n_dims) {
        *out = mt_tensor_retain(self);
        return MT_OK;
    }
    if (self->n_dims == 0) {
        return mt_reshape(self, ones, n_dims, out);
    }
    if (self->n_dims == 2) {
        return mt_unsqueeze(self, -1, out);
    }
    if (n_dims == 2) {
        return mt_unsqueeze(self, 0, out);
    }
    mt_tensor *row = NULL;
    MT_TRY(mt_unsqueeze(self, 0, &row));
    int status = mt_unsqueeze(row, -1, out);
    mt_tensor_release(row);
    return status;
}

/* The number in "atleast_2d". */
static uint32_t wanted_dims(const mt__call *call)
{
    return (uint32_t)(call->row->name[strlen("atleast_")] - '0');
}

int mt__run_atleast(mt__call *call)
{
    uint32_t wanted = wanted_dims(call);
    return deepen(mt__arg_tensor(call, 0), &wanted, mt__result_place(call, 0));
}

int mt__run_atleast_sequence(mt__call *call)
{
    uint32_t wanted = wanted_dims(call);
    return mt__result_each(call, deepen, &wanted);
}

int mt__run_stacked(mt__call *call)
{
    mt_value args[] = {{.kind = MT_KIND_NONE}, mt_int(0)};
    if (call->args[0].count == 0) {
        return mtb_fail(MT_ERUNTIME, "%s expects a non-empty TensorList", mt__op_name(call));
    }
    mt_op op = call->row->op;
    mt_op deepen_all = op == MT__OP_HSTACK   ? MT__OP_ATLEAST_1D_SEQUENCE
                       : op == MT__OP_DSTACK ? MT__OP_ATLEAST_3D_SEQUENCE
                                             : MT__OP_ATLEAST_2D_SEQUENCE;
    MT_TRY(mt_call(deepen_all, call->args, 1, &args[0], 1));
    if (op == MT__OP_HSTACK) {
        args[1] = mt_int(args[0].of.tensors[0]->n_dims == 1 ? 0 : 1);
    } else if (op == MT__OP_DSTACK) {
        args[1] = mt_int(2);
    }
    int status = mt_call(MT__OP_CAT, args, MT_COUNT(args), call->results, 1);
    mt_value_clear(&args[0]);
    return status;
}

/* A vector or a number as a column, others as they are. */
static int as_column(mt_tensor *self, const void *context, mt_tensor **out)
{
    (void)context;
    if (self->n_dims > 1) {
        *out = mt_tensor_retain(self);
        return MT_OK;
    }
    const int64_t sizes[] = {self->numel, 1};
    return mt_reshape(self, sizes, 2, out);
}

int mt__run_column_stack(mt__call *call)
{
    if (call->args[0].count == 0) {
        return mtb_fail(MT_ERUNTIME, "column_stack expects a non-empty TensorList");
    }
    MT_TRY(mt__result_each(call, as_column, NULL));
    mt_value columns = call->results[0];
    call->results[0] = (mt_value){.kind = MT_KIND_NONE};
    int status = mt_call(MT__OP_HSTACK, &columns, 1, call->results, 1);
    mt_value_clear(&columns);
    return status;
}

static int check_grid(const mt_value *given, const char *indexing)
{
    if (given->count == 0) {
        return mtb_fail(MT_ERUNTIME, "meshgrid expects a non-empty TensorList");
    }
    if (given->count > MT_MAX_DIMS) {
        return mtb_fail(MT_ENOTSUP, "meshgrid: %u tensors are more than %d dimensions",
                        given->count, MT_MAX_DIMS);
    }
    for (uint32_t i = 0; i < given->count; i++) {
        const mt_tensor *tensor = given->of.tensors[i];
        if (tensor->n_dims > 1) {
            return mtb_fail(MT_ERUNTIME,
                            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got "
                            "a %u-D tensor",
                            (unsigned)tensor->n_dims);
        }
        if (tensor->dtype != given->of.tensors[0]->dtype) {
            return mtb_fail(MT_ERUNTIME, "meshgrid expects all tensors to have the same dtype");
        }
    }
    if (indexing != NULL && strcmp(indexing, "ij") != 0 && strcmp(indexing, "xy") != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: "
                        "%s",
                        indexing);
    }
    return MT_OK;
}

/* One tensor along dimension `at` of the grid. */
static int spread_along(mt_tensor *tensor, uint32_t at, const mt__shape *grid, mt_tensor **out)
{
    mt__shape line = *grid;
    mt_tensor *turned = NULL;
    for (uint32_t i = 0; i < line.n_dims; i++) {
        line.sizes[i] = i == at ? -1 : 1;
    }
    if (tensor->numel == 0) {
        line.sizes[at] = 0; /* -1 cannot be inferred for an empty tensor */
    }
    MT_TRY(mt_view(tensor, line.sizes, line.n_dims, &turned));
    int status = mt_expand(turned, grid->sizes, grid->n_dims, out);
    mt_tensor_release(turned);
    return status;
}

int mt__run_meshgrid(mt__call *call)
{
    const mt_value *given = &call->args[0];
    const char *indexing = mt__arg_given(call, 1) ? call->args[1].of.text : NULL;
    MT_TRY(check_grid(given, indexing));
    bool swapped = indexing != NULL && indexing[0] == 'x' && given->count > 1;
    mt__shape grid = {.n_dims = given->count};
    uint32_t place[MT_MAX_DIMS]; /* the dimension of each tensor */
    for (uint32_t i = 0; i < given->count; i++) {
        place[i] = swapped && i < 2 ? 1 - i : i;
        grid.sizes[place[i]] = given->of.tensors[i]->numel;
    }
    mt_tensor *made[MT_MAX_DIMS] = {NULL};
    int status = MT_OK;
    for (uint32_t at = 0; at < given->count && status == MT_OK; at++) {
        uint32_t i = place[at]; /* torch goes by dimensions; the swap is its own inverse */
        status = spread_along(given->of.tensors[i], at, &grid, &made[i]);
    }
    if (status == MT_OK) {
        return mt__give_list(call, 0, made, given->count);
    }
    for (uint32_t i = 0; i < given->count; i++) {
        mt_tensor_release(made[i]); /* NULL is nothing */
    }
    return status;
}
