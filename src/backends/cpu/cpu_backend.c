/* SPDX-License-Identifier: Apache-2.0
 *
 * The host as a backend: memory from the heap, large blocks in huge pages, kernels of src/kernels.
 * A call returns when its work is done, so there are no streams and nothing to wait for.
 */
#include "backends/cpu/cpu_backend.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/large.h"
#include "base/struct_size.h"
#include "kernels/entry/host_kernels.h"

#include <string.h>
#include <unistd.h>

enum {
    LARGE_BYTES = 2 << 20 /* larger blocks get pages of their own */
};

static uint32_t device_count(void *context)
{
    (void)context;
    return 1;
}

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    (void)device;
    *out = bytes >= LARGE_BYTES ? mtb_large_take(bytes) : mtb_aligned_take(bytes);
    return *out != NULL ? MT_OK : mt_fail(MT_ENOMEM, "cpu: memory was refused");
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    (void)device;
    if (bytes >= LARGE_BYTES) {
        mtb_large_give(memory);
    } else {
        mtb_free(memory);
    }
}

static int copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    (void)context;
    (void)stream;
    memmove(call->to, call->from, (size_t)call->bytes);
    return MT_OK;
}

static int set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    (void)context;
    (void)stream;
    memset(call->to, (int)call->value, (size_t)call->bytes);
    return MT_OK;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    (void)device;
    mt_device_info all = {.name = "CPU"};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    all.total_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
    all.free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
    mtb_write_struct(info, &all);
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    (void)device;
    return MT_OK;
}

static mt_kernel_fn *const kernels[] = {
    [MT_KERNEL_FILL] = mt__host_fill,
    [MT_KERNEL_COPY] = mt__host_copy,
    [MT_KERNEL_ARANGE] = mt__host_arange,
    [MT_KERNEL_EYE] = mt__host_eye,
    [MT_KERNEL_TRIANGLE] = mt__host_triangle,
    [MT_KERNEL_UNARY] = mt__host_unary,
    [MT_KERNEL_BINARY] = mt__host_binary,
    [MT_KERNEL_TERNARY] = mt__host_ternary,
    [MT_KERNEL_REDUCE] = mt__host_reduce,
    [MT_KERNEL_REDUCE_INDEX] = mt__host_reduce_index,
    [MT_KERNEL_VAR_MEAN] = mt__host_var_mean,
    [MT_KERNEL_CUMSUM] = mt__host_cumsum,
    [MT_KERNEL_CUMPROD] = mt__host_cumprod,
    [MT_KERNEL_SOFTMAX] = mt__host_softmax,
    [MT_KERNEL_SOFTMAX_BACKWARD] = mt__host_softmax_backward,
    [MT_KERNEL_LAYER_NORM] = mt__host_layer_norm,
    [MT_KERNEL_LAYER_NORM_BACKWARD] = mt__host_layer_norm_backward,
    [MT_KERNEL_BATCH_NORM] = mt__host_batch_norm,
    [MT_KERNEL_BATCH_NORM_BACKWARD] = mt__host_batch_norm_backward,
    [MT_KERNEL_NLL_LOSS] = mt__host_nll_loss,
    [MT_KERNEL_NLL_LOSS_BACKWARD] = mt__host_nll_loss_backward,
    [MT_KERNEL_GEMM] = mt__host_gemm,
    [MT_KERNEL_CONV] = mt__host_conv,
    [MT_KERNEL_CONV_BACKWARD_INPUT] = mt__host_conv_backward_input,
    [MT_KERNEL_CONV_BACKWARD_WEIGHT] = mt__host_conv_backward_weight,
    [MT_KERNEL_MAX_POOL] = mt__host_max_pool,
    [MT_KERNEL_MAX_POOL_BACKWARD] = mt__host_max_pool_backward,
    [MT_KERNEL_AVG_POOL] = mt__host_avg_pool,
    [MT_KERNEL_AVG_POOL_BACKWARD] = mt__host_avg_pool_backward,
    [MT_KERNEL_ADAPTIVE_AVG_POOL] = mt__host_adaptive_avg_pool,
    [MT_KERNEL_ADAPTIVE_AVG_POOL_BACKWARD] = mt__host_adaptive_avg_pool_backward,
    [MT_KERNEL_ADAPTIVE_MAX_POOL] = mt__host_adaptive_max_pool,
    [MT_KERNEL_ATTENTION] = mt__host_attention,
    [MT_KERNEL_ATTENTION_BACKWARD] = mt__host_attention_backward,
    [MT_KERNEL_INDEX_SELECT] = mt__host_index_select,
    [MT_KERNEL_INDEX_ADD] = mt__host_index_add,
    [MT_KERNEL_GATHER] = mt__host_gather,
    [MT_KERNEL_SCATTER] = mt__host_scatter,
    [MT_KERNEL_INDEX] = mt__host_index,
    [MT_KERNEL_INDEX_PUT] = mt__host_index_put,
    [MT_KERNEL_NONZERO] = mt__host_nonzero,
    [MT_KERNEL_MASKED_SELECT] = mt__host_masked_select,
    [MT_KERNEL_MASKED_SCATTER] = mt__host_masked_scatter,
    [MT_KERNEL_SORT] = mt__host_sort,
    [MT_KERNEL_TOPK] = mt__host_topk,
    [MT_KERNEL_CAT] = mt__host_cat,
    [MT_KERNEL_EMBEDDING_BACKWARD] = mt__host_embedding_backward,
    [MT_KERNEL_RANDOM] = mt__host_random,
    [MT_KERNEL_RANDPERM] = mt__host_randperm,
    [MT_KERNEL_DROPOUT] = mt__host_dropout,
    [MT_KERNEL_SGD] = mt__host_sgd,
    [MT_KERNEL_ADAM] = mt__host_adam,
    [MT_KERNEL_RMSPROP] = mt__host_rmsprop,
    [MT_KERNEL_ADAGRAD] = mt__host_adagrad,
};
static_assert(MT_COUNT(kernels) == MT_KERNEL_COUNT, "a kernel for each row");

static const mt_backend backend = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "cpu",
    .device_count = device_count,
    .device_info = device_info,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .set = set,
    .synchronize = synchronize,
    .kernels = kernels,
    .n_kernels = MT_KERNEL_COUNT,
};

const mt_backend *mt__cpu_backend(void)
{
    return &backend;
}
