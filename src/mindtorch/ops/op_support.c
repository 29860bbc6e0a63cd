/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops, see op_support.h.
 */
#include "mindtorch/ops/op_support.h"

#include "base/alloc.h"
#include "mindtorch/core/memory/pinned.h"
#include "mindtorch/ops/type_names.h"

int mt__result_new(mt__call *call, uint32_t i, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out)
{
    *out = NULL;
    MT_TRY(mt__tensor_new(mt__op_name(call), dtype, call->device, shape, out));
    mt__give(call, i, *out);
    return MT_OK;
}

int mt__temp_new(mt__call *call, mt_dtype dtype, const mt__shape *shape, mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    *out = NULL;
    MT_TRY(mt__tensor_new(mt__op_name(call), dtype, call->device, shape, place));
    *out = *place;
    return MT_OK;
}

void mt__result_same(mt__call *call, uint32_t i, mt_tensor *tensor)
{
    mt__give(call, i, mt_tensor_retain(tensor));
}

int mt__result_each(mt__call *call,
                    int (*make)(mt_tensor *given, const void *context, mt_tensor **out),
                    const void *context)
{
    uint32_t count = call->args[0].count;
    mt_tensor **made = mtb_calloc((size_t)count + 1, sizeof(mt_tensor *));
    if (made == NULL) {
        return mtb_fail(MT_ENOMEM, "%s: no memory for %u tensors", mt__op_name(call), count);
    }
    int status = MT_OK;
    uint32_t done = 0;
    while (done < count && status == MT_OK) {
        status = make(call->args[0].of.tensors[done], context, &made[done]);
        done += status == MT_OK;
    }
    if (status == MT_OK) {
        status = mt__give_list(call, 0, made, count); /* takes them in any case */
    } else {
        for (uint32_t i = 0; i < done; i++) {
            mt_tensor_release(made[i]);
        }
    }
    mtb_free(made);
    return status;
}

/* A copy on the tensor's own device. */
static int copied(mt__call *call, mt_tensor *tensor, mt_dtype dtype, mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    mt__shape shape = mt__tensor_shape(tensor);
    *out = NULL;
    MT_TRY(mt__tensor_new(mt__op_name(call), dtype, tensor->device, &shape, place));
    *out = *place;
    return mt__copy_elements(*place, tensor);
}

int mt__contiguous(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    return tensor->contiguous ? MT_OK : copied(call, tensor, (mt_dtype)tensor->dtype, out);
}

int mt__converted(mt__call *call, mt_tensor *tensor, mt_dtype dtype, mt_tensor **out)
{
    *out = tensor;
    return tensor->dtype == dtype ? MT_OK : copied(call, tensor, dtype, out);
}

int mt__kernel(mt__call *call, const mt__kernel_args *args)
{
    mt_array arrays[MT_COUNT(args->tensors)];
    if (args->tensors[0] != NULL) {
        MT_TRY(
            mt__check_unsigned(call, args->kernel, args->code, (mt_dtype)args->tensors[0]->dtype));
    }
    for (uint32_t i = 0; i < args->n_tensors; i++) {
        arrays[i] = args->tensors[i] == NULL ? mt__no_array() : mt__array(args->tensors[i]);
    }
    mt_kernel_call kernel = {
        .kernel = (uint16_t)args->kernel,
        .code = args->code,
        .n_tensors = args->n_tensors,
        .n_ints = args->n_ints,
        .n_scalars = args->n_scalars,
        .tensors = arrays,
        .ints = args->ints,
        .scalars = args->scalars,
    };
    return mt__launch(call->device, &kernel);
}

/* COPY where both are on one device; `from` is expanded to `to`. */
static int copy_within(mt_tensor *to, mt_tensor *from)
{
    int64_t strides[MT_MAX_DIMS];
    mt__shape shape = mt__tensor_shape(to);
    mt__shape_expand_strides(from->sizes, from->strides, from->n_dims, &shape, strides);
    mt_array arrays[2] = {mt__array(to), mt__array(from)};
    arrays[1].sizes = to->sizes;
    arrays[1].strides = strides;
    arrays[1].n_dims = to->n_dims;
    mt_kernel_call kernel = {
        .kernel = MT_KERNEL_COPY,
        .n_tensors = 2,
        .tensors = arrays,
    };
    return mt__launch(to->device, &kernel);
}

/* Between the host and an accelerator. Only pinned memory can be copied without waiting. */
static int copy_bytes_far(mt_tensor *to, mt_tensor *from, size_t bytes, bool non_blocking)
{
    bool home = to->device == MT_CPU;
    mt_device far = home ? from->device : to->device;
    void *place = mt__array(to).data;
    const void *data = mt__array(from).data;
    mt__pinned *pinned = NULL;
    mt_stream *stream = NULL;
    if (non_blocking && mt__pinned_copies_alone(far)) {
        pinned = mt__pinned_of(home ? to->storage : from->storage);
    }
    if (pinned != NULL) {
        MT_TRY(mt_stream_get_current(far, &stream));
    }
    int status = home ? mt__copy_to_host(far, place, data, bytes, pinned != NULL)
                      : mt__copy_to_device(far, place, data, bytes, pinned != NULL);
    if (pinned != NULL) {
        mt__pinned_used(pinned, stream);
    }
    return status;
}

/* The bytes of one contiguous tensor to another of the same type and number. */
static int copy_bytes(mt_tensor *to, mt_tensor *from, bool non_blocking)
{
    size_t bytes = (size_t)to->numel * mt_dtype_size((mt_dtype)to->dtype);
    return to->device == MT_CPU || from->device == MT_CPU
               ? copy_bytes_far(to, from, bytes, non_blocking)
               : mt__copy_peer(to->device, mt__array(to).data, from->device, mt__array(from).data,
                               bytes);
}

/* Across devices: the source is made contiguous and converted on its own device, the bytes are
 * copied, and the destination's device lays them out. */
static int copy_across(mt_tensor *to, mt_tensor *from, bool non_blocking)
{
    mt_tensor *packed = NULL;
    mt_tensor *arrived = NULL;
    mt__shape shape = mt__tensor_shape(from);
    int status = MT_OK;
    if (!from->contiguous || from->dtype != to->dtype) {
        status = mt__tensor_new("copy_", (mt_dtype)to->dtype, from->device, &shape, &packed);
        if (status == MT_OK) {
            status = copy_within(packed, from);
        }
        from = packed;
    }
    bool direct = to->contiguous && to->numel == from->numel; /* else `from` is repeated */
    if (status == MT_OK && direct) {
        status = copy_bytes(to, from, non_blocking);
    } else if (status == MT_OK) {
        status = mt__tensor_new("copy_", (mt_dtype)to->dtype, to->device, &shape, &arrived);
        if (status == MT_OK) {
            status = copy_bytes(arrived, from, non_blocking);
        }
        if (status == MT_OK) {
            status = copy_within(to, arrived);
        }
    }
    mt_tensor_release(packed);
    mt_tensor_release(arrived);
    return status;
}

int mt__copy_elements_with(mt_tensor *to, mt_tensor *from, bool non_blocking)
{
    if (to->numel == 0) {
        return MT_OK;
    }
    return to->device == from->device ? copy_within(to, from) : copy_across(to, from, non_blocking);
}

int mt__copy_elements(mt_tensor *to, mt_tensor *from)
{
    return mt__copy_elements_with(to, from, false);
}

/* The type that stands for a number's category; of a tensor for that of complex numbers. */
static mt_dtype number_type(const mt_value *value)
{
    if (value->kind == MT_KIND_TENSOR) {
        return mt_default_dtype() == MT_DTYPE_F64 ? MT_DTYPE_C128 : MT_DTYPE_C64;
    }
    return value->kind == MT_KIND_BOOL  ? MT_DTYPE_BOOL
           : value->kind == MT_KIND_INT ? MT_DTYPE_I64
                                        : mt_default_dtype();
}

static bool is_number(const mt_value *value)
{
    return value->kind == MT_KIND_TENSOR
               ? value->of.tensor->is_number
               : value->kind >= MT_KIND_BOOL && value->kind <= MT_KIND_REAL;
}

static int join(mt_dtype *a, mt_dtype b)
{
    *a = *a == MT_DTYPE_NONE ? b : mt_promote_types(*a, b);
    return *a == MT_DTYPE_NONE ? MT_ERUNTIME : MT_OK;
}

/* The effect of a weaker class on the type: none unless its category is higher. */
static int join_weaker(mt_dtype *strong, mt_dtype weak)
{
    bool matters = weak != MT_DTYPE_NONE && (*strong == MT_DTYPE_NONE ||
                                             mt_dtype_category(weak) > mt_dtype_category(*strong));
    return matters ? join(strong, weak) : MT_OK;
}

int mt__promote_values(const mt_value *values, uint32_t count, mt_dtype *dtype)
{
    mt_dtype with_dims = MT_DTYPE_NONE;
    mt_dtype without_dims = MT_DTYPE_NONE;
    mt_dtype numbers = MT_DTYPE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (is_number(&values[i])) {
            MT_TRY(join(&numbers, number_type(&values[i])));
        } else if (values[i].kind == MT_KIND_TENSOR) {
            const mt_tensor *tensor = values[i].of.tensor;
            mt_dtype *class = tensor->n_dims > 0 ? &with_dims : &without_dims;
            MT_TRY(join(class, (mt_dtype)tensor->dtype));
        }
    }
    *dtype = with_dims;
    MT_TRY(join_weaker(dtype, without_dims));
    return join_weaker(dtype, numbers);
}

mt_dtype mt__to_floating(mt_dtype dtype)
{
    return mt_dtype_category(dtype) == MT_CATEGORY_REAL ? dtype : mt_default_dtype();
}

mt_dtype mt__sums_type(mt_dtype dtype)
{
    return dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16 ? MT_DTYPE_F32 : dtype;
}
