/* SPDX-License-Identifier: Apache-2.0
 *
 * Different elements, or rows. Sorted (or as they come), each is compared with the one before it:
 *
 *     marks    true where a new one begins
 *     inverse  running sum of marks - 1, back at the places before the sort
 *     counts   differences of the places of marks
 */
#include "base/fail.h"
#include "mindtorch/ops/op_support.h"

/* Of the n elements in order: results 1 and 2. `order`: where each was before the sort, or NULL. */
static int give_inverse_and_counts(mt__call *call, mt_tensor *marks, mt_tensor *order,
                                   const mt__shape *shape, bool inverse, bool counts)
{
    int64_t n = marks->numel;
    const int64_t none = 0;
    if (inverse) {
        mt_tensor **sums = mt__temp(call);
        MT_TRY(mt_cumsum(marks, 0, sums));
        MT_TRY(mt_sub_scalar_(*sums, mt_int(1)));
        if (order != NULL) {
            mt_tensor **back = mt__temp(call);
            MT_TRY(mt_empty_like(*sums, back));
            MT_TRY(mt_scatter_(*back, 0, order, *sums));
            sums = back;
        }
        MT_TRY(mt_reshape(*sums, shape->sizes, shape->n_dims, mt__result_place(call, 1)));
    } else {
        MT_TRY(mt_empty_with(&none, 1, MT_DTYPE_I64, call->device, mt__result_place(call, 1)));
    }
    if (!counts) {
        return mt_empty_with(&none, 1, MT_DTYPE_I64, call->device, mt__result_place(call, 2));
    }
    mt_tensor **found = mt__temp(call);
    mt_tensor **starts = mt__temp(call);
    mt_tensor **later = mt__temp(call);
    mt_tensor **last = mt__temp(call);
    mt_tensor **ends = mt__temp(call);
    const int64_t one = 1;
    const int64_t size = n > 0 ? 1 : 0;
    MT_TRY(mt_nonzero(marks, found));
    MT_TRY(mt_select(*found, 1, 0, starts));
    MT_TRY(mt_slice(*starts, 0, &one, NULL, 1, later));
    MT_TRY(mt_full_with(&size, 1, mt_int(n), MT_DTYPE_I64, call->device, last));
    MT_TRY(mt_cat((mt_tensor *const[]){*later, *last}, 2, 0, ends));
    return mt_sub(*ends, *starts, mt__result_place(call, 2));
}

/* Whether each of n rows (elements) differs from the one before it. */
static int mark_new(mt__call *call, mt_tensor *rows, mt_tensor **out)
{
    int64_t n = rows->sizes[0];
    const int64_t last = -1;
    const int64_t one = n > 0 ? 1 : 0;
    mt_tensor **first = mt__temp(call);
    mt_tensor **marks = mt__temp(call);
    MT_TRY(mt_full_with(&one, 1, mt_bool(true), MT_DTYPE_BOOL, call->device, first));
    *out = *first;
    if (n < 2) {
        return MT_OK;
    }
    mt_tensor **after = mt__temp(call);
    mt_tensor **before = mt__temp(call);
    mt_tensor **different = mt__temp(call);
    MT_TRY(mt_narrow(rows, 0, 1, n - 1, after));
    MT_TRY(mt_narrow(rows, 0, 0, n - 1, before));
    MT_TRY(mt_ne(*after, *before, different));
    if (rows->n_dims == 2) {
        mt_tensor **some = mt__temp(call);
        MT_TRY(mt_any(*different, &last, 1, false, some));
        different = some;
    }
    MT_TRY(mt_cat((mt_tensor *const[]){*first, *different}, 2, 0, marks));
    *out = *marks;
    return MT_OK;
}

static int flat(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    const int64_t whole = -1;
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(self, &whole, 1, place));
    *out = *place;
    return MT_OK;
}

int mt__run__unique2(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *elements = NULL;
    mt_tensor *marks = NULL;
    mt_tensor **values = mt__temp(call);
    mt_tensor **order = mt__temp(call);
    MT_TRY(flat(call, self, &elements));
    MT_TRY(mt_sort(elements, 0, false, values, order));
    MT_TRY(mark_new(call, *values, &marks));
    MT_TRY(mt_masked_select(*values, marks, mt__result_place(call, 0)));
    return give_inverse_and_counts(call, marks, *order, &shape, mt__arg_bool(call, 2),
                                   mt__arg_bool(call, 3));
}

/* ---- along a dimension ----------------------------------------------------------------------- */

/* A matrix whose rows are what lies at each place of the dimension. */
static int as_matrix(mt__call *call, mt_tensor *self, uint32_t dim, mt_tensor **out)
{
    mt_tensor **moved = mt__temp(call);
    mt_tensor **matrix = mt__temp(call);
    mt_tensor **whole = mt__temp(call);
    int64_t n = self->sizes[dim];
    const int64_t sizes[] = {n, n == 0 ? 1 : self->numel / n};
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if (d != dim && self->sizes[d] == 0) {
            return mtb_fail(MT_ERUNTIME, "There are 0 sized dimensions, and they aren't selected, "
                                         "so unique cannot be applied");
        }
    }
    if (n == 0) {
        MT_TRY(mt_empty_with(sizes, 2, (mt_dtype)self->dtype, call->device, whole));
        *out = *whole;
        return MT_OK;
    }
    MT_TRY(mt_movedim(self, dim, 0, moved));
    MT_TRY(mt_reshape(*moved, sizes, 2, matrix));
    MT_TRY(mt_contiguous(*matrix, whole));
    *out = *whole;
    return MT_OK;
}

/* Those places of the dimension, in this order, at which a row begins; then results 1 and 2. */
static int give_rows(mt__call *call, mt_tensor *self, uint32_t dim, mt_tensor *rows,
                     mt_tensor *order, bool inverse, bool counts)
{
    MT_ASSERT(rows != NULL);
    mt__shape line = {.n_dims = 1, .sizes = {rows->sizes[0]}};
    mt_tensor *marks = NULL;
    mt_tensor **found = mt__temp(call);
    mt_tensor **places = mt__temp(call);
    MT_TRY(mark_new(call, rows, &marks));
    MT_TRY(mt_nonzero(marks, found));
    MT_TRY(mt_select(*found, 1, 0, places));
    if (order != NULL) {
        mt_tensor **before = mt__temp(call);
        MT_TRY(mt_index_select(order, 0, *places, before));
        places = before;
    }
    MT_TRY(mt_index_select(self, dim, *places, mt__result_place(call, 0)));
    return give_inverse_and_counts(call, marks, order, &line, inverse, counts);
}

static int find_dim(mt__call *call, uint32_t i, mt_tensor *self, uint32_t *dim)
{
    if (self->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "Dimension specified as %lld but tensor has no dimensions",
                        (long long)mt__arg_int(call, i));
    }
    return mt__wrap_dim(mt__arg_int(call, i), self->n_dims, dim);
}

int mt__run_unique_dim(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *rows = NULL;
    mt_tensor *order = NULL;
    uint32_t dim = 0;
    MT_TRY(find_dim(call, 1, self, &dim));
    MT_TRY(as_matrix(call, self, dim, &rows));
    mt__shape line = {.n_dims = 1, .sizes = {rows->sizes[0]}};
    mt_tensor **sorted = mt__temp(call);
    MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &line, &order));
    if (order->numel > 0) {
        const mt__kernel_args args = {.kernel = MT_KERNEL_SORT_ROWS, MT_TENSORS(order, rows)};
        MT_TRY(mt__kernel(call, &args));
    }
    MT_TRY(mt_index_select(rows, 0, order, sorted));
    /* torch gives all three, whatever was asked for */
    return give_rows(call, self, dim, *sorted, order, true, true);
}

int mt__run_unique_consecutive(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    bool inverse = mt__arg_bool(call, 1);
    bool counts = mt__arg_bool(call, 2);
    mt_tensor *rows = NULL;
    mt_tensor *marks = NULL;
    uint32_t dim = 0;
    if (mt__arg_given(call, 3)) {
        MT_TRY(find_dim(call, 3, self, &dim));
        MT_TRY(as_matrix(call, self, dim, &rows));
        return give_rows(call, self, dim, rows, NULL, inverse, counts);
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(flat(call, self, &rows));
    MT_TRY(mark_new(call, rows, &marks));
    MT_TRY(mt_masked_select(rows, marks, mt__result_place(call, 0)));
    return give_inverse_and_counts(call, marks, NULL, &shape, inverse, counts);
}
