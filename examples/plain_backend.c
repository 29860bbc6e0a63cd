/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest device that is right: 256 MiB of "device memory" from the heap, the host's kernels,
 * everything done when a call returns. docs/adding-a-device.md builds it and continues from here.
 */
#include <mindtorch/backend.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const mt_backend_host *host; /* what the runtime offers: nothing of it is linked */
static mt_backend backend;
static atomic_size_t used;

enum {
    TOTAL_BYTES = 256 << 20,
    ALIGNMENT = 64
};

static uint32_t device_count(void *context)
{
    (void)context;
    return 1;
}

/* The caller's struct may be older and shorter: no byte past its struct_size is written. */
static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    (void)device;
    mt_device_info all = {.struct_size = info->struct_size, .name = "plain"};
    all.total_bytes = TOTAL_BYTES;
    all.free_bytes = TOTAL_BYTES - atomic_load(&used);
    memcpy(info, &all, info->struct_size < sizeof all ? info->struct_size : sizeof all);
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    (void)device;
    return MT_OK; /* nothing is ever under way */
}

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    (void)device;
    *out = NULL;
    if (bytes <= TOTAL_BYTES && atomic_fetch_add(&used, bytes) + bytes <= TOTAL_BYTES) {
        *out = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    if (*out == NULL) {
        if (bytes <= TOTAL_BYTES) {
            atomic_fetch_sub(&used, bytes);
        }
        return host->fail(MT_ENOMEM, "plain: no memory");
    }
    return MT_OK;
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    (void)device;
    atomic_fetch_sub(&used, bytes);
    free(memory);
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

__attribute__((visibility("default"))) mt_backend_open_fn mt_backend_open;

int mt_backend_open(const mt_backend_host *given, const mt_backend **out)
{
    host = given;
    backend = (mt_backend){.struct_size = sizeof backend,
                           .version = MT_BACKEND_VERSION,
                           .name = "plain",
                           .context = host->cpu->context, /* the kernels below are the cpu's */
                           .device_count = device_count,
                           .device_info = device_info,
                           .synchronize = synchronize,
                           .allocate = allocate,
                           .release = release,
                           .copy = copy,
                           .set = set,
                           .kernels = host->cpu->kernels,
                           .n_kernels = host->cpu->n_kernels};
    *out = &backend;
    return MT_OK;
}
