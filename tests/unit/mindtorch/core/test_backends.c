/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of backends, and the call of a kernel.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mindtorch/core/device/launch.h"
#include "mindtorch/core/memory/memory.h"

#include <mindtorch/tensor.h>

#include <stdlib.h>
#include <string.h>

static int last_kernel = -1;
static int n_refusals; /* how many allocations are refused from now on */
static size_t given;   /* bytes that are out */

static uint32_t two(void *context)
{
    (void)context;
    return 2;
}

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    (void)device;
    if (n_refusals > 0) {
        n_refusals--;
        return mt_fail(MT_ENOMEM, "fake: full");
    }
    *out = aligned_alloc(64, bytes);
    given += bytes;
    return MT_OK;
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    (void)device;
    given -= bytes;
    free(memory);
}

static int copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    (void)context;
    (void)stream;
    memcpy(call->to, call->from, call->bytes);
    return MT_OK;
}

static int set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    (void)context;
    (void)stream;
    memset(call->to, (int)call->value, call->bytes);
    return MT_OK;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    (void)device;
    *info = (mt_device_info){.struct_size = info->struct_size, .name = "fake"};
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    return device == 1 ? mt_fail(MT_ERUNTIME, "fake: lost") : MT_OK;
}

static int note_kernel(void *context, mt_backend_stream *stream, const mt_kernel_call *call)
{
    (void)context;
    (void)stream;
    CHECK_EQ_U64(call->struct_size, sizeof *call);
    last_kernel = call->kernel;
    return MT_OK;
}

static mt_kernel_fn *const kernels[] = {[MT_KERNEL_FILL] = note_kernel, [MT_KERNEL_COPY] = NULL};

static const mt_backend fake = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "fake",
    .device_count = two,
    .device_info = device_info,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .set = set,
    .synchronize = synchronize,
    .kernels = kernels,
    .n_kernels = MT_COUNT(kernels),
};

TEST(backends_the_host_is_there)
{
    CHECK_EQ_U64(mt_device_count(MT_DEVICE_TYPE_CPU), 1);
    CHECK_EQ_U64(mt_device_count(MT_DEVICE_TYPE_NPU), 0);
    CHECK_EQ_U64(mt_device_count((mt_device_type)9), 0);
    CHECK_OK(mt_device_synchronize(MT_CPU));
    CHECK_OK(mt__device_check("op", MT_CPU));
    CHECK_EQ_I64(mt__device_check("op", MT_NPU), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "op: device npu:0 is not available: no backend serves it "
                 "(MINDTORCH_NPU=sim asks for the simulated one)");
    CHECK_EQ_I64(mt__device_check("op", 1), MT_ERUNTIME);
    CHECK_EQ_I64(mt__device_check("op", -1), MT_ERUNTIME);
    CHECK_EQ_STR(mt_kernel_name(MT_KERNEL_GEMM), "GEMM");
    CHECK(mt_kernel_name((mt_kernel)9999) != NULL);
    const mt_backend *host = mt__backend_of(MT_CPU);
    for (uint32_t i = 0; i < MT_KERNEL_COUNT; i++) {
        if (i >= host->n_kernels || host->kernels[i] == NULL) {
            FAIL("the host has no kernel %s", mt_kernel_name((mt_kernel)i));
        }
    }
}

TEST(backends_register_checks)
{
    mt_backend wrong = fake;
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_NPU, NULL), MT_EVALUE);
    wrong.struct_size = 8;
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_NPU, &wrong), MT_EVALUE);
    wrong = fake;
    wrong.version = 99;
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_NPU, &wrong), MT_EVALUE);
    wrong = fake;
    wrong.copy = NULL;
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_NPU, &wrong), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "backend_register: copy is missing");
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_CPU, &fake), MT_ERUNTIME);
    CHECK_EQ_I64(mt_backend_register((mt_device_type)7, &fake), MT_EVALUE);
    CHECK_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake));
    CHECK_EQ_I64(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "backend_register: npu is served already, by fake");
}

TEST(backends_launch)
{
    REQUIRE_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake));
    CHECK_EQ_U64(mt_device_count(MT_DEVICE_TYPE_NPU), 2);
    CHECK_OK(mt__device_check("op", MT_NPU + 1));
    CHECK_EQ_I64(mt__device_check("op", MT_NPU + 2), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "op: device npu:2 is not available: there are 2 of its type");
    mt_kernel_call call = {.kernel = MT_KERNEL_FILL};
    CHECK_OK(mt__launch(MT_NPU, &call));
    CHECK_EQ_I64(last_kernel, MT_KERNEL_FILL);
    call.kernel = MT_KERNEL_COPY; /* in the table, but missing (B3) */
    CHECK_EQ_I64(mt__launch(MT_NPU, &call), MT_ENOTSUP);
    CHECK_EQ_STR(mt_last_error()->message, "kernel COPY is not implemented by backend fake");
    call.kernel = MT_KERNEL_GEMM; /* past the table */
    CHECK_EQ_I64(mt__launch(MT_NPU, &call), MT_ENOTSUP);
    CHECK_OK(mt_device_synchronize(MT_NPU));
    CHECK_EQ_I64(mt_device_synchronize(MT_NPU + 1), MT_ERUNTIME);
}

TEST(backends_memory_is_cached_for_each_device)
{
    REQUIRE_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake));
    void *block;
    uint32_t block_class;
    mt_memory_stats stats = {.struct_size = sizeof stats};
    REQUIRE_OK(mt__memory_take(MT_NPU + 1, 100, &block, &block_class));
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU + 1, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 100);
    CHECK_EQ_U64(stats.reserved_bytes, given);
    CHECK_EQ_U64(stats.allocations, 1);
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.reserved_bytes, 0);
    mt__memory_give(MT_NPU + 1, block, 100, block_class);
    CHECK(given > 0);
    CHECK_EQ_I64(mt_device_empty_cache(MT_NPU + 1),
                 MT_ERUNTIME); /* it waits, and says what it saw */
    CHECK_EQ_STR(mt_last_error()->message, "fake: lost");
    CHECK_EQ_U64(given, 0);
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU + 1, &stats));
    CHECK_EQ_U64(stats.releases, 1);
    CHECK_EQ_U64(stats.reserved_bytes, 0);
    CHECK_EQ_I64(mt_device_empty_cache(MT_NPU + 2), MT_ERUNTIME);
}

/* MEM3 */
TEST(backends_a_refusal_empties_the_cache_first)
{
    REQUIRE_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake));
    void *block;
    uint32_t block_class;
    REQUIRE_OK(mt__memory_take(MT_NPU, 3 << 20, &block, &block_class));
    mt__memory_give(MT_NPU, block, 3 << 20, block_class);
    size_t cached = given;
    n_refusals = 1;
    REQUIRE_OK(mt__memory_take(MT_NPU, 9 << 20, &block, &block_class));
    CHECK(given >= 9 << 20);
    CHECK(given < cached + (9 << 20) + (2 << 20)); /* the first one went back */
    mt__memory_give(MT_NPU, block, 9 << 20, block_class);
    n_refusals = 2;
    CHECK_EQ_I64(mt__memory_take(MT_NPU, 20 << 20, &block, &block_class), MT_EOOM);
    CHECK(block == NULL);
    CHECK_EQ_U64(given, 0);
    mt_memory_stats stats = {.struct_size = sizeof stats};
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK_EQ_U64(stats.reserved_bytes, 0);
}

TEST(backends_tensors_of_a_device)
{
    REQUIRE_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &fake));
    mt_tensor *tensor;
    float values[3] = {1, 2, 3};
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F32, (const int64_t[]){3}, 1, MT_NPU, &tensor));
    CHECK_EQ_I64(mt_tensor_device(tensor), MT_NPU);
    CHECK(mt_tensor_data(tensor) == NULL);
    CHECK(mt_tensor_storage_address(tensor) != 0);
    float back[3] = {0};
    CHECK_OK(mt_tensor_read(tensor, back, sizeof back));
    CHECK_EQ_MEM(back, values, sizeof back);
    mt_tensor_release(tensor);
    CHECK_EQ_I64(
        mt_tensor_from_data(values, MT_DTYPE_F32, (const int64_t[]){3}, 1, MT_NPU + 5, &tensor),
        MT_ERUNTIME);
    CHECK(tensor == NULL);
}
