/* SPDX-License-Identifier: Apache-2.0
 *
 * Advanced indexing: x[a, :, b] and its assignment. An entry that is not given means the whole
 * dimension.
 *
 *     indices [None, mask, i] ── masks become their coordinates, types become int64
 *         ── broadcast to one shape ── placed: in their own position if adjacent, else first
 *
 * The kernel gets the index tensors as views of the common shape and the dimensions they pick from
 * (kernels.def, INDEX).
 */
#include "mindtorch/ops/index/op_index_support.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>

typedef struct index_plan {
    uint32_t n;                                /* index tensors */
    uint32_t next_dim;                         /* of self, for the next entry */
    mt_tensor *tensors[MT_MAX_DIMS];           /* int64; the call's temporaries, or arguments */
    int64_t dims[MT_MAX_DIMS];                 /* which each picks from */
    mt__shape shape;                           /* of all of them together */
    int64_t strides[MT_MAX_DIMS][MT_MAX_DIMS]; /* by tensor, for that shape */
    uint32_t first;                            /* their first dimension in the result */
    mt__shape result;
} index_plan;

/* ---- entries --------------------------------------------------------------------------------- */

static int add_index(index_plan *plan, const mt_tensor *self, mt_tensor *index)
{
    if (plan->next_dim >= self->n_dims) {
        return mtb_fail(MT_EINDEX, "too many indices for tensor of dimension %u (got %u)",
                        self->n_dims, plan->next_dim + 1);
    }
    plan->tensors[plan->n] = index;
    plan->dims[plan->n++] = plan->next_dim++;
    return 0;
}

/* A host tensor moved to the device of the op: a temporary of this type. */
static int moved(mt__call *call, mt_tensor *tensor, mt_dtype dtype, mt_tensor **out)
{
    mt__shape shape = mt__tensor_shape(tensor);
    MT_TRY(mt__temp_new(call, dtype, &shape, out));
    return mt__copy_elements(*out, tensor);
}

/* Coordinates of the mask's true elements, on the device of the op. A mask on the host is evaluated
 * on the host. */
static int find_true(const mt__call *call, mt_tensor *mask, mt_tensor **found)
{
    MT_TRY(mt_nonzero(mask, found));
    if ((*found)->device == call->device) {
        return 0;
    }
    mt_tensor *here = *found;
    int status = mt_to_with(here, MT_DTYPE_NONE, call->device, false, false, found);
    mt_tensor_release(here);
    return status;
}

/* A mask over several dimensions becomes an index for each of them. */
static int add_mask(mt__call *call, index_plan *plan, mt_tensor *self, mt_tensor *mask)
{
    char text[MT_SHAPE_TEXT];
    char more[MT_SHAPE_TEXT];
    if (mask->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "%s: a mask without dimensions picks nothing; unsqueeze both",
                        mt__op_name(call));
    }
    for (uint32_t d = 0; d < mask->n_dims; d++) {
        uint32_t at = plan->next_dim + d;
        if (at >= self->n_dims) {
            return mtb_fail(MT_EINDEX, "too many indices for tensor of dimension %u (got %u)",
                            self->n_dims, plan->next_dim + mask->n_dims);
        }
        if (mask->sizes[d] != self->sizes[at]) {
            return mtb_fail(MT_EINDEX,
                            "The shape of the mask %s at index %u does not match the shape of the "
                            "indexed tensor %s at index %u",
                            mt__shape_text(mask->sizes, mask->n_dims, text), d,
                            mt__shape_text(self->sizes, self->n_dims, more), at);
        }
    }
    mt_tensor *found = NULL;
    MT_TRY(find_true(call, mask, &found));
    int status = 0;
    for (uint32_t d = 0; d < mask->n_dims && status == 0; d++) {
        mt_tensor **column = mt__temp(call);
        status = mt__tensor_view(found, &found->sizes[0], &found->strides[0], 1,
                                 found->offset + d * found->strides[1], false, column);
        if (status == 0) {
            status = add_index(plan, self, *column);
        }
    }
    mt_tensor_release(found);
    return status;
}

static int add_entry(mt__call *call, index_plan *plan, mt_tensor *self, mt_tensor *entry)
{
    if (entry == NULL) {
        plan->next_dim++;
        return 0;
    }
    if (entry->device != call->device && entry->device != MT_CPU) {
        return mtb_fail(MT_ERUNTIME,
                        "indices should be either on cpu or on the same device as the indexed "
                        "tensor (%s)",
                        mt_device_name(call->device));
    }
    if (entry->dtype == MT_DTYPE_BOOL || entry->dtype == MT_DTYPE_U8) {
        return add_mask(call, plan, self, entry);
    }
    if (entry->dtype != MT_DTYPE_I64 && entry->dtype != MT_DTYPE_I32) {
        return mtb_fail(MT_EINDEX,
                        "tensors used as indices must be long, int, byte or bool tensors");
    }
    mt_tensor *index = NULL;
    if (entry->device != call->device) {
        MT_TRY(moved(call, entry, MT_DTYPE_I64, &index));
    } else {
        MT_TRY(mt__converted(call, entry, MT_DTYPE_I64, &index));
    }
    return add_index(plan, self, index);
}

static int add_entries(mt__call *call, index_plan *plan, mt_tensor *self)
{
    const mt_value *entries = &call->args[1];
    if (entries->count > self->n_dims) {
        return mtb_fail(MT_EINDEX, "too many indices for tensor of dimension %u (got %u)",
                        self->n_dims, entries->count);
    }
    for (uint32_t i = 0; i < entries->count; i++) {
        MT_TRY(add_entry(call, plan, self, entries->of.tensors[i]));
    }
    if (plan->n == 0) {
        return mtb_fail(MT_EINDEX, "at least one index must be provided");
    }
    return 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static MT_COLD int refuse_shapes(const index_plan *plan)
{
    char list[2 * MT_SHAPE_TEXT];
    char text[MT_SHAPE_TEXT];
    size_t used = 0;
    list[0] = '\0';
    for (uint32_t i = 0; i < plan->n; i++) {
        const char *shape = mt__shape_text(plan->tensors[i]->sizes, plan->tensors[i]->n_dims, text);
        const char *comma = i == 0 ? "" : ", ";
        for (const char *c = comma; *c != '\0' && used + 1 < sizeof(list); c++) {
            list[used++] = *c;
        }
        for (const char *c = shape; *c != '\0' && used + 1 < sizeof(list); c++) {
            list[used++] = *c;
        }
        list[used] = '\0';
    }
    return mtb_fail(MT_EINDEX,
                    "shape mismatch: indexing tensors could not be broadcast together with shapes "
                    "%s",
                    list);
}

static int broadcast_indices(index_plan *plan)
{
    for (uint32_t i = 0; i < plan->n; i++) {
        if (mt__shape_broadcast(&plan->shape, plan->tensors[i]->sizes, plan->tensors[i]->n_dims) !=
            0) {
            return refuse_shapes(plan);
        }
    }
    for (uint32_t i = 0; i < plan->n; i++) {
        const mt_tensor *t = plan->tensors[i];
        mt__shape_expand_strides(t->sizes, t->strides, t->n_dims, &plan->shape, plan->strides[i]);
    }
    return 0;
}

/* Computes the place of the indices' dimensions in the result, and all sizes. */
static int place_indices(index_plan *plan, const mt_tensor *self)
{
    bool neighbours = true;
    uint32_t picked = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        neighbours &= plan->dims[i] == plan->dims[0] + i;
        picked |= 1U << plan->dims[i];
    }
    plan->first = neighbours ? (uint32_t)plan->dims[0] : 0;
    if (self->n_dims - plan->n + plan->shape.n_dims > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "index: the result would have %u dimensions, at most %d",
                        self->n_dims - plan->n + plan->shape.n_dims, MT_MAX_DIMS);
    }
    mt__shape *result = &plan->result;
    uint32_t kept = 0;
    for (uint32_t d = 0; d <= self->n_dims; d++) {
        if (kept == plan->first && result->n_dims == kept) {
            for (uint32_t k = 0; k < plan->shape.n_dims; k++) {
                result->sizes[result->n_dims++] = plan->shape.sizes[k];
            }
            kept = MT_MAX_DIMS + 1; /* done */
        }
        if (d < self->n_dims && (picked >> d & 1U) == 0) {
            result->sizes[result->n_dims++] = self->sizes[d];
            kept++;
        }
    }
    return 0;
}

/* Indexing a dimension of size 0 is an error. The kernel would not check it if the result has no
 * elements for another reason. */
static int check_not_empty(const index_plan *plan, const mt_tensor *self)
{
    bool any = true;
    for (uint32_t d = 0; d < plan->shape.n_dims; d++) {
        any = any && plan->shape.sizes[d] > 0;
    }
    for (uint32_t i = 0; any && i < plan->n; i++) {
        if (self->sizes[plan->dims[i]] == 0) {
            return mtb_fail(MT_EINDEX, "index is out of bounds for dimension with size 0");
        }
    }
    return 0;
}

static int plan_init(mt__call *call, index_plan *plan, mt_tensor *self)
{
    plan->n = 0;
    plan->next_dim = 0;
    plan->dims[0] = 0;
    plan->first = 0;
    plan->shape.n_dims = 0;
    plan->result.n_dims = 0;
    MT_TRY(add_entries(call, plan, self));
    MT_TRY(broadcast_indices(plan));
    MT_TRY(check_not_empty(plan, self));
    return place_indices(plan, self);
}

/* `written` is INDEX's out, or INDEX_PUT's; `read` INDEX's in, or INDEX_PUT's values. */
static int launch(mt__call *call, const index_plan *plan, mt_kernel kernel, uint16_t code,
                  const mt_array *written, const mt_array *read)
{
    mt_array arrays[2 + MT_MAX_DIMS] = {*written, *read};
    int64_t ints[1 + MT_MAX_DIMS] = {plan->first};
    for (uint32_t i = 0; i < plan->n; i++) {
        arrays[2 + i] = mt__array(plan->tensors[i]);
        arrays[2 + i].sizes = plan->shape.sizes;
        arrays[2 + i].strides = plan->strides[i];
        arrays[2 + i].n_dims = (int32_t)plan->shape.n_dims;
        ints[1 + i] = plan->dims[i];
    }
    mt_kernel_call args = {
        .kernel = (uint16_t)kernel,
        .code = code,
        .n_tensors = 2 + plan->n,
        .tensors = arrays,
        .n_ints = 1 + plan->n,
        .ints = ints,
    };
    MT_TRY(mt__check_unsigned(call, (mt_kernel)args.kernel, args.code, (mt_dtype)written->dtype));
    return mt__launch(call->device, &args);
}

int mt__run_index(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *out = NULL;
    index_plan plan;
    MT_TRY(plan_init(call, &plan, self));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &plan.result, &out));
    if (out->numel == 0) {
        return 0;
    }
    mt_array written = mt__array(out);
    mt_array read = mt__array(self);
    return launch(call, &plan, MT_KERNEL_INDEX, 0, &written, &read);
}

/* ---- assignment ------------------------------------------------------------------------------ */

/* The values as they are read for the indexed places. */
static int expand_values(const index_plan *plan, const mt_tensor *values,
                         int64_t strides[MT_MAX_DIMS])
{
    const mt__shape *to = &plan->result;
    bool fits = values->n_dims <= to->n_dims;
    for (uint32_t d = 0; fits && d < values->n_dims; d++) {
        int64_t size = values->sizes[values->n_dims - 1 - d];
        fits = size == 1 || size == to->sizes[to->n_dims - 1 - d];
    }
    if (!fits) {
        char text[MT_SHAPE_TEXT];
        char more[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "shape mismatch: value tensor of shape %s cannot be broadcast to indexing "
                        "result of shape %s",
                        mt__shape_text(values->sizes, values->n_dims, text),
                        mt__shape_text(to->sizes, to->n_dims, more));
    }
    mt__shape_expand_strides(values->sizes, values->strides, values->n_dims, to, strides);
    return 0;
}

/* Expanded tensors may be assigned to, as in torch: the last one wins. */
static int put_target(mt__call *call, mt_tensor **out)
{
    if (mt__is_in_place(call)) {
        *out = mt__arg_tensor(call, 0);
        mt__result_same(call, 0, *out);
        return 0;
    }
    return mt__written_result(call, out);
}

int mt__run_index_put(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *values = mt__arg_tensor(call, 2);
    bool accumulate = mt__arg_bool(call, 3);
    mt_tensor *out = NULL;
    index_plan plan;
    int64_t strides[MT_MAX_DIMS];
    if (self->dtype != values->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Index put requires the source and destination dtypes match, got %s for "
                        "the destination and %s for the source.",
                        mt__type_title((mt_dtype)self->dtype),
                        mt__type_title((mt_dtype)values->dtype));
    }
    if (accumulate) {
    }
    if (values->device != self->device) {
        if (values->n_dims > 0) {
            return mt__refuse_devices(call->row, call->args);
        }
        MT_TRY(moved(call, values, (mt_dtype)values->dtype, &values));
    }
    MT_TRY(plan_init(call, &plan, self));
    MT_TRY(expand_values(&plan, values, strides));
    MT_TRY(put_target(call, &out));
    for (uint32_t d = 0; d < plan.result.n_dims; d++) {
        if (plan.result.sizes[d] == 0) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < plan.n; i++) {
        mt_tensor *index = plan.tensors[i];
        if (mt__storage_same(index->storage, out->storage)) {
            MT_TRY(mt__apart_from(call, out, index, &plan.tensors[i]));
            index = plan.tensors[i];
            mt__shape_expand_strides(index->sizes, index->strides, index->n_dims, &plan.shape,
                                     plan.strides[i]);
        }
    }
    if (mt__storage_same(values->storage, out->storage)) {
        MT_TRY(mt__apart_from(call, out, values, &values));
        MT_TRY(expand_values(&plan, values, strides));
    }
    mt_array written = mt__array(out);
    mt_array read = mt__array(values);
    read.sizes = plan.result.sizes;
    read.strides = strides;
    read.n_dims = (int32_t)plan.result.n_dims;
    return launch(call, &plan, MT_KERNEL_INDEX_PUT, accumulate ? 1 : 0, &written, &read);
}
