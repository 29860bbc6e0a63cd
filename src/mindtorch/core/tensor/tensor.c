/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: creating, viewing, inspecting and reading them, see tensor_impl.h.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/device/launch.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/core/thread/thread_state.h"

#include <string.h>

/* ---- making ---- */

/* All fields but sizes and strides. The reference to the storage goes to the tensor. */
MT_INLINE void fill_in(mt_tensor *tensor, mt_dtype dtype, mt_device device, mt__storage *storage,
                       uint32_t n_dims)
{
    atomic_init(&tensor->refs, 1);
    tensor->dtype = (uint8_t)dtype;
    tensor->n_dims = (uint8_t)n_dims;
    tensor->contiguous = true;
    tensor->requires_grad = false;
    tensor->device = device;
    tensor->view_version = 0;
    tensor->view_flags = 0;
    tensor->is_number = false;
    tensor->is_parameter = false;
    tensor->offset = 0;
    tensor->id = mt__next_id();
    tensor->storage = storage;
    tensor->base = NULL;
    tensor->autograd = NULL;
    tensor->host = NULL;
}

static MT_COLD int refuse(const char *op)
{
    (void)mtb_fail(MT_ENOMEM, "%s: no memory for a tensor", op);
    return MT_ENOMEM;
}

static MT_COLD int refuse_sizes(const char *op, const int64_t *sizes, uint32_t n_dims)
{
    char text[MT_SHAPE_TEXT];
    (void)mtb_fail(MT_ERUNTIME, "%s: Storage size calculation overflowed with sizes=%s", op,
                   mt__shape_text(sizes, n_dims, text));
    return MT_ERUNTIME;
}

/* Writes sizes, strides and numel of a contiguous tensor in one pass. False: bytes overflow. */
MT_INLINE bool lay_out(mt_tensor *tensor, const int64_t *sizes, uint32_t n_dims,
                       size_t element_bytes, uint64_t *bytes)
{
    int64_t stride = 1; /* a size of 0 counts as 1 */
    int64_t extent;
    bool empty = false;
    bool overflow = false;
    for (uint32_t i = n_dims; i-- > 0;) {
        int64_t size = sizes[i];
        tensor->sizes[i] = size;
        tensor->strides[i] = stride;
        empty |= size == 0;
        overflow |= __builtin_mul_overflow(stride, size != 0 ? size : 1, &stride);
    }
    overflow |= __builtin_mul_overflow(stride, (int64_t)element_bytes, &extent);
    tensor->numel = empty ? 0 : stride;
    *bytes = empty ? 0 : (uint64_t)extent;
    return !overflow;
}

static int make_contiguous(const char *op, mt_dtype dtype, mt_device device, const int64_t *sizes,
                           uint32_t n_dims, mt_tensor **out)
{
    size_t element_bytes = mt_dtype_size(dtype);
    uint64_t bytes;
    *out = NULL;
    if (MT_UNLIKELY(element_bytes == 0)) {
        (void)mtb_fail(MT_ETYPE, "%s: %u is not an element type", op, (unsigned)dtype);
        return MT_ETYPE;
    }
    mt_tensor *tensor = mt__pool_take_fast(MT_POOL_TENSOR, sizeof *tensor);
    if (MT_UNLIKELY(tensor == NULL)) {
        return refuse(op);
    }
    mt__storage *storage = NULL;
    int status = MT_LIKELY(lay_out(tensor, sizes, n_dims, element_bytes, &bytes))
                     ? mt__storage_new(device, bytes, &storage)
                     : refuse_sizes(op, sizes, n_dims);
    if (MT_UNLIKELY(status != MT_OK)) {
        mt__pool_give_fast(MT_POOL_TENSOR, tensor);
        return status;
    }
    fill_in(tensor, dtype, device, storage, n_dims);
    *out = tensor;
    return MT_OK;
}

int mt__tensor_new(const char *op, mt_dtype dtype, mt_device device, const mt__shape *shape,
                   mt_tensor **out)
{
    if (MT_UNLIKELY(device != MT_CPU)) {
        *out = NULL;
        MT_TRY(mt__place_check(op, device));
    }
    return make_contiguous(op, dtype, device, shape->sizes, shape->n_dims, out);
}

int mt__tensor_new_like(mt_tensor *like, mt_dtype dtype, mt_tensor **out)
{
    return make_contiguous("empty_like", dtype, like->device, like->sizes, like->n_dims, out);
}

int mt__tensor_view(mt_tensor *base, const int64_t *sizes, const int64_t *strides, uint32_t n_dims,
                    int64_t offset, bool track, mt_tensor **out)
{
    *out = NULL;
    if (MT_UNLIKELY(n_dims > MT_MAX_DIMS)) {
        return mtb_fail(MT_ERUNTIME, "view: %u dimensions, at most %d are supported", n_dims,
                        MT_MAX_DIMS);
    }
    mt_tensor *tensor = mt__pool_take_fast(MT_POOL_TENSOR, sizeof *tensor);
    if (MT_UNLIKELY(tensor == NULL)) {
        return refuse("view");
    }
    fill_in(tensor, (mt_dtype)base->dtype, base->device, mt__storage_retain(base->storage), n_dims);
    int64_t numel = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        tensor->sizes[i] = sizes[i];
        tensor->strides[i] = strides[i];
        numel *= sizes[i];
    }
    tensor->numel = numel;
    tensor->offset = offset;
    tensor->contiguous = mt__shape_is_contiguous(sizes, strides, n_dims);
    if (track) {
        tensor->base = mt_tensor_retain(base->base != NULL ? base->base : base); /* TN3 */
        tensor->view_version = mt_tensor_version(base);
        uint8_t mode = mt__thread.inference != 0  ? MT_VIEW_INFERENCE
                       : mt__thread.grad_disabled ? MT_VIEW_NO_GRAD
                                                  : 0;
        tensor->view_flags = (uint8_t)(base->view_flags | mode);
    }
    *out = tensor;
    return MT_OK;
}

mt_status mt_tensor_from_data(const void *data, mt_dtype dtype, const int64_t *sizes, size_t n_dims,
                              mt_device device, mt_tensor **out)
{
    mt__shape shape;
    *out = NULL;
    device = device == MT_DEVICE_NONE ? MT_CPU : device;
    MT_TRY(mt__shape_make("from_data", sizes, n_dims, &shape));
    mt_tensor *tensor;
    MT_TRY(mt__tensor_new("from_data", dtype, device, &shape, &tensor));
    if (tensor->numel != 0) {
        int status = data == NULL ? mtb_fail(MT_EVALUE, "from_data: data is NULL")
                                  : mt__copy_to_device(device, tensor->storage->data, data,
                                                       (size_t)tensor->storage->bytes, false);
        if (status != MT_OK) {
            mt_tensor_release(tensor);
            return status;
        }
    }
    *out = tensor;
    return MT_OK;
}

mt_status mt_tensor_from_complex(double real, double imag, mt_tensor **out)
{
    const double parts[2] = {real, imag};
    MT_TRY(mt_tensor_from_data(parts, MT_DTYPE_C128, NULL, 0, MT_CPU, out));
    (*out)->is_number = true;
    return MT_OK;
}

bool mt_tensor_number(const mt_tensor *tensor, double parts[2])
{
    const double *number = tensor->is_number ? mt__array(tensor).data : NULL;
    if (MT_LIKELY(number == NULL)) {
        return false;
    }
    parts[0] = number[0];
    parts[1] = number[1];
    return true;
}

/* Bytes from the first element to the end of the last; MT_ERUNTIME on overflow. */
static int extent_of(const mt__shape *shape, const int64_t *strides, size_t element_bytes,
                     uint64_t *bytes)
{
    *bytes = 0;
    int64_t last = 0;
    bool overflow = false;
    bool empty = false;
    for (uint32_t i = 0; i < shape->n_dims; i++) {
        int64_t step;
        if (strides[i] < 0) {
            return mtb_fail(MT_EVALUE,
                            "borrow: stride %lld of dimension %u is negative, which is not "
                            "supported",
                            (long long)strides[i], i);
        }
        empty |= shape->sizes[i] == 0;
        overflow |= __builtin_mul_overflow(shape->sizes[i] - 1, strides[i], &step);
        overflow |= __builtin_add_overflow(last, step, &last);
    }
    int64_t extent = 0;
    overflow = !empty && (overflow || last == INT64_MAX ||
                          __builtin_mul_overflow(last + 1, (int64_t)element_bytes, &extent));
    if (overflow) {
        return mtb_fail(MT_ERUNTIME, "borrow: sizes times strides overflow");
    }
    *bytes = empty ? 0 : (uint64_t)extent;
    return MT_OK;
}

mt_status mt_tensor_borrow(void *data, mt_dtype dtype, const int64_t *sizes, const int64_t *strides,
                           size_t n_dims, mt_free_fn *free_data, void *context, mt_tensor **out)
{
    mt__shape shape;
    int64_t numel;
    int64_t plain[MT_MAX_DIMS];
    uint64_t bytes;
    *out = NULL;
    size_t element_bytes = mt_dtype_size(dtype);
    if (element_bytes == 0) {
        return mtb_fail(MT_ETYPE, "borrow: %u is not an element type", (unsigned)dtype);
    }
    MT_TRY(mt__shape_make("borrow", sizes, n_dims, &shape));
    MT_TRY(mt__shape_numel("borrow", &shape, element_bytes, &numel));
    if (strides == NULL) {
        mt__shape_strides(shape.sizes, shape.n_dims, plain);
        strides = plain;
    }
    MT_TRY(extent_of(&shape, strides, element_bytes, &bytes));
    if (data == NULL && numel != 0) {
        return mtb_fail(MT_EVALUE, "borrow: data is NULL");
    }
    mt_tensor *tensor = mt__pool_take_fast(MT_POOL_TENSOR, sizeof *tensor);
    if (tensor == NULL) {
        return refuse("borrow");
    }
    mt__storage *storage;
    int status = mt__storage_borrow(data, bytes, free_data, context, &storage);
    if (status != MT_OK) {
        mt__pool_give_fast(MT_POOL_TENSOR, tensor);
        return status;
    }
    fill_in(tensor, dtype, MT_CPU, storage, shape.n_dims);
    tensor->numel = numel;
    memcpy(tensor->sizes, shape.sizes, n_dims * sizeof *sizes);
    memcpy(tensor->strides, strides, n_dims * sizeof *strides);
    tensor->contiguous = mt__shape_is_contiguous(shape.sizes, strides, shape.n_dims);
    *out = tensor;
    return MT_OK;
}

/* ---- references ---- */

mt_tensor *mt_tensor_retain(mt_tensor *tensor)
{
    if (tensor != NULL) {
        atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
    }
    return tensor;
}

void mt_tensor_release(mt_tensor *tensor)
{
    if (tensor == NULL) {
        return;
    }
    /* As in mt__storage_release(): a thread that sees 1 has the only reference. The acquire pairs
     * with the release below.
     */
    if (atomic_load_explicit(&tensor->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&tensor->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (MT_UNLIKELY(tensor->autograd != NULL)) {
        mt__autograd_free(tensor->autograd);
    }
    mt_tensor *base = tensor->base;
    mt__storage_release(tensor->storage);
    mt__pool_give_fast(MT_POOL_TENSOR, tensor);
    if (MT_UNLIKELY(base != NULL)) {
        mt_tensor_release(base); /* has no base itself (TN3): one level deep */
    }
}

uint32_t mt_tensor_use_count(const mt_tensor *tensor)
{
    return atomic_load_explicit(&tensor->refs, memory_order_acquire);
}

uint64_t mt_tensors_alive(void)
{
    mt__cache_sums sums;
    mt__cache_sum(&sums);
    return (uint64_t)sums.in_use[MT_POOL_TENSOR];
}

/* ---- asking ---- */

mt_dtype mt_tensor_dtype(const mt_tensor *tensor)
{
    return (mt_dtype)tensor->dtype;
}

mt_device mt_tensor_device(const mt_tensor *tensor)
{
    return tensor->device;
}

uint32_t mt_tensor_n_dims(const mt_tensor *tensor)
{
    return tensor->n_dims;
}

const int64_t *mt_tensor_sizes(const mt_tensor *tensor)
{
    return tensor->sizes;
}

const int64_t *mt_tensor_strides(const mt_tensor *tensor)
{
    return tensor->strides;
}

int64_t mt_tensor_offset(const mt_tensor *tensor)
{
    return tensor->offset;
}

int64_t mt_tensor_numel(const mt_tensor *tensor)
{
    return tensor->numel;
}

bool mt_tensor_is_contiguous(const mt_tensor *tensor)
{
    return tensor->contiguous;
}

void *mt_tensor_host(const mt_tensor *tensor)
{
    return tensor->host;
}

void mt_tensor_set_host(mt_tensor *tensor, void *host)
{
    tensor->host = host;
}

void mt_tensor_set_parameter(mt_tensor *tensor, bool is_parameter)
{
    tensor->is_parameter = is_parameter;
}

bool mt_tensor_is_parameter(const mt_tensor *tensor)
{
    return tensor->is_parameter;
}

uint64_t mt_tensor_id(const mt_tensor *tensor)
{
    return tensor->id;
}

void mt_tensor_raise_version(mt_tensor *tensor)
{
    mt__tensor_bump(tensor);
}

bool mt_tensor_is_inference(const mt_tensor *tensor)
{
    return tensor->storage->inference;
}

uint32_t mt_tensor_version(const mt_tensor *tensor)
{
    return mt__tensor_version(tensor);
}

uint64_t mt_tensor_storage_address(const mt_tensor *tensor)
{
    return (uint64_t)(uintptr_t)tensor->storage->data;
}

uint64_t mt_tensor_storage_bytes(const mt_tensor *tensor)
{
    return tensor->storage->bytes;
}

mt_status mt_tensor_storage_row(mt_tensor *tensor, mt_dtype dtype, mt_tensor **out)
{
    static const int64_t stride = 1;
    *out = NULL;
    size_t bytes = mt_dtype_size(dtype);
    if (bytes == 0) {
        return mtb_fail(MT_EVALUE, "storage_row: %u is not a type", (unsigned)dtype);
    }
    int64_t count = (int64_t)(tensor->storage->bytes / bytes);
    MT_TRY(mt__tensor_view(tensor, &count, &stride, 1, 0, false, out));
    (*out)->dtype = (uint8_t)dtype;
    return MT_OK;
}

void *mt_tensor_data(const mt_tensor *tensor)
{
    if (tensor->device != MT_CPU || tensor->numel == 0) {
        return NULL;
    }
    return mt__array(tensor).data;
}

/* ---- reading ---- */

int mt__tensor_copy_into(const mt_tensor *to, const mt_tensor *from)
{
    mt_array arrays[2] = {mt__array(to), mt__array(from)};
    mt_kernel_call call = {.kernel = MT_KERNEL_COPY, .n_tensors = 2, .tensors = arrays};
    return to->numel == 0 ? MT_OK : mt__launch(to->device, &call);
}

/* Gives a contiguous tensor of the same elements: another reference, or a copy. */
static int as_contiguous(mt_tensor *tensor, mt_tensor **out)
{
    if (tensor->contiguous) {
        *out = mt_tensor_retain(tensor);
        return MT_OK;
    }
    mt_tensor *copy;
    *out = NULL;
    MT_TRY(mt__tensor_new_like(tensor, (mt_dtype)tensor->dtype, &copy));
    int status = mt__tensor_copy_into(copy, tensor);
    if (status != MT_OK) {
        mt_tensor_release(copy);
        return status;
    }
    *out = copy;
    return MT_OK;
}

mt_status mt_tensor_read(mt_tensor *tensor, void *buffer, size_t bytes)
{
    uint64_t wanted = (uint64_t)tensor->numel * mt_dtype_size((mt_dtype)tensor->dtype);
    if (bytes != wanted) {
        return mtb_fail(MT_EVALUE, "read: the buffer has %zu bytes, the tensor %llu", bytes,
                        (unsigned long long)wanted);
    }
    if (wanted == 0) {
        return MT_OK;
    }
    if (buffer == NULL) {
        return mtb_fail(MT_EVALUE, "read: buffer is NULL");
    }
    mt_tensor *source;
    MT_TRY(as_contiguous(tensor, &source));
    int status = mt__copy_to_host(tensor->device, buffer, mt__array(source).data, bytes, false);
    mt_tensor_release(source);
    return status;
}
