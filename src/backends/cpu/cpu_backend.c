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

static mt_kernel_fn *const kernels[MT_KERNEL_COUNT] = {
#define X(name) [MT_KERNEL_##name] = mt__host_##name,
#include <mindtorch/kernels.def>
#undef X
};

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
