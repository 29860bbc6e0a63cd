/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of stream.h about a tensor's memory: other streams that use it, and pinned copies.
 */
#include "base/fail.h"
#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/memory/pinned.h"
#include "mindtorch/core/tensor/tensor_impl.h"

#include <mindtorch/status.h>
#include <mindtorch/stream.h>

mt_status mt_tensor_record_stream(mt_tensor *tensor, mt_stream *stream)
{
    if (tensor == NULL || stream == NULL) {
        return mtb_fail(MT_EVALUE, "record_stream: the %s is NULL",
                        tensor == NULL ? "tensor" : "stream");
    }
    if (tensor->device == MT_CPU) {
        return mtb_fail(MT_ERUNTIME, "record_stream: expected a tensor of an accelerator, got cpu");
    }
    return mt__storage_used(tensor->storage, stream);
}

bool mt_tensor_is_pinned(const mt_tensor *tensor)
{
    return tensor != NULL && mt__pinned_of(tensor->storage) != NULL;
}

/* ---- pinned copies ---- */

static int check_pin(const mt_tensor *tensor)
{
    if (tensor == NULL) {
        return mtb_fail(MT_EVALUE, "pin_memory: the tensor is NULL");
    }
    if (tensor->device != MT_CPU) {
        return mtb_fail(MT_ERUNTIME,
                        "cannot pin a %s tensor of %s, only dense CPU tensors can be "
                        "pinned",
                        mt_dtype_name((mt_dtype)tensor->dtype), mt_device_name(tensor->device));
    }
    if (mt_device_count(MT_DEVICE_TYPE_NPU) == 0) {
        const char *trouble = mt__backend_trouble();
        return mtb_fail(MT_ERUNTIME,
                        "Cannot access accelerator device when none is available.%s%.300s",
                        trouble[0] != '\0' ? " " : "", trouble);
    }
    return MT_OK;
}

mt_status mt_tensor_pin(mt_tensor *tensor, mt_tensor **out)
{
    mt__pinned *block;
    *out = NULL;
    MT_TRY(check_pin(tensor));
    if (mt_tensor_is_pinned(tensor)) {
        *out = mt_tensor_retain(tensor);
        return MT_OK;
    }
    mt_dtype dtype = (mt_dtype)tensor->dtype;
    MT_TRY(mt__pinned_take((uint64_t)tensor->numel * mt_dtype_size(dtype), &block));
    void *memory = mt__pinned_memory(block);
    int status = mt_tensor_borrow(memory, dtype, tensor->sizes, NULL, tensor->n_dims,
                                  mt__pinned_free, block, out);
    if (status != MT_OK) {
        mt__pinned_free(block, memory);
        return status;
    }
    status = mt__tensor_copy_into(*out, tensor);
    if (status != MT_OK) {
        mt_tensor_release(*out);
        *out = NULL;
    }
    return status;
}
