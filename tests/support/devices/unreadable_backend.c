/* SPDX-License-Identifier: Apache-2.0
 *
 * An accelerator whose memory the host cannot read: proof that nothing above the backends follows a
 * storage pointer.
 *
 *     device: ...XXXXXXXXXXXXXXXX...   addresses that tensors hold; no access: touching one crashes
 *     shadow: ...the real bytes  ...   at the same distance from its beginning
 *
 * Kernels are the host's, called with translated pointers. A pointer that is not one of the device,
 * or a view that reaches over the end of what was allocated, is refused: the caller mixed up
 * memories.
 * Every launch goes through one function, so a kernel that is missing on the host is missing here.
 * Registered by a test (mt_test_backend_register) it uses the host's kernels that it is linked
 * with, opened as a shared object (mt_backend_open) those it is offered.
 */
#include "support/devices/unreadable_backend.h"

#include "backends/cpu/cpu_backend.h"
#include "base/fail.h"

#include <mindtorch/backend.h>
#include <mindtorch/dtype.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MAX_BLOCKS = 1 << 14,
    GAP = 4096 /* between blocks, so that one cannot run into the next */
};

static const size_t region_bytes = (size_t)8 << 30;

typedef struct block {
    size_t offset, bytes;
    bool used;
} block;

static char *device_memory;
static char *shadow;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block blocks[MAX_BLOCKS]; /* by offset */
static size_t n_blocks;
static size_t end; /* of the last block */
static size_t used_bytes;
static _Atomic uint64_t launches;

static const mt_backend_host *offered; /* NULL: registered by a test */

static int fail(int status, const char *message)
{
    return offered != NULL ? offered->fail(status, message) : mt_fail(status, message);
}

/* ---- memory ---- */

static bool is_device_address(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)device_memory < region_bytes;
}

static char *translate(const void *pointer)
{
    return shadow + ((uintptr_t)pointer - (uintptr_t)device_memory);
}

/* Whether [pointer, pointer + bytes) lies in one block that is in use. */
static bool is_inside(const void *pointer, size_t bytes)
{
    size_t offset = (uintptr_t)pointer - (uintptr_t)device_memory;
    bool inside = false;
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n_blocks && !inside; i++) {
        inside = blocks[i].used && offset >= blocks[i].offset &&
                 offset + bytes <= blocks[i].offset + blocks[i].bytes;
    }
    (void)pthread_mutex_unlock(&mutex);
    return is_device_address(pointer) && inside;
}

static block *find_free(size_t bytes)
{
    for (size_t i = 0; i < n_blocks; i++) {
        if (!blocks[i].used && blocks[i].bytes == bytes) {
            return &blocks[i];
        }
    }
    if (n_blocks == MAX_BLOCKS || bytes > region_bytes - end - GAP) {
        return NULL;
    }
    blocks[n_blocks] = (block){.offset = end, .bytes = bytes};
    end += (bytes + GAP + 63) / 64 * 64;
    return &blocks[n_blocks++];
}

static uint32_t device_count(void *context)
{
    (void)context;
    return 2;
}

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    (void)device;
    (void)pthread_mutex_lock(&mutex);
    block *found = find_free(bytes);
    if (found != NULL) {
        found->used = true;
        used_bytes += bytes;
        *out = device_memory + found->offset;
        memset(shadow + found->offset, 0xEE, bytes < 65536 ? bytes : 65536); /* not zeros */
    }
    (void)pthread_mutex_unlock(&mutex);
    return found != NULL ? MT_OK : fail(MT_ENOMEM, "unreadable: no memory left");
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    (void)device;
    size_t offset = (uintptr_t)memory - (uintptr_t)device_memory;
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n_blocks; i++) {
        if (blocks[i].used && blocks[i].offset == offset && blocks[i].bytes == bytes) {
            blocks[i].used = false;
            used_bytes -= bytes;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

static int copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    (void)context;
    (void)stream;
    bool to_device = call->kind != MT_COPY_TO_HOST;
    bool from_device = call->kind != MT_COPY_TO_DEVICE;
    if (call->bytes == 0) {
        return MT_OK;
    }
    if (is_device_address(call->to) != to_device || is_device_address(call->from) != from_device ||
        (to_device && !is_inside(call->to, call->bytes)) ||
        (from_device && !is_inside(call->from, call->bytes))) {
        return fail(MT_ERUNTIME, "unreadable: a copy names memory that is not its own");
    }
    memmove(to_device ? translate(call->to) : call->to,
            from_device ? translate(call->from) : call->from, call->bytes);
    return MT_OK;
}

static int set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    (void)context;
    (void)stream;
    if (call->bytes > 0 && !is_inside(call->to, call->bytes)) {
        return fail(MT_ERUNTIME, "unreadable: a set names memory that is not its own");
    }
    if (call->bytes > 0) {
        memset(translate(call->to), (int)call->value, call->bytes);
    }
    return MT_OK;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    (void)device;
    mt_device_info all = {
        .struct_size = info->struct_size, .name = "unreadable", .total_bytes = region_bytes};
    (void)pthread_mutex_lock(&mutex);
    all.free_bytes = region_bytes - used_bytes;
    (void)pthread_mutex_unlock(&mutex);
    memcpy(info, &all, info->struct_size < sizeof all ? info->struct_size : sizeof all);
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    (void)device;
    return MT_OK;
}

/* ---- kernels ---- */

/* How far a view reaches before and after its first element, in elements. False: it is empty. */
static bool find_reach(const mt_array *array, int64_t *before, int64_t *after)
{
    *before = 0;
    *after = 0;
    for (int32_t i = 0; i < array->n_dims; i++) {
        if (array->sizes[i] == 0) {
            return false;
        }
        int64_t step = (array->sizes[i] - 1) * array->strides[i];
        *(step < 0 ? before : after) += step;
    }
    return true;
}

static int translate_array(mt_array *array)
{
    int64_t before;
    int64_t after;
    if (array->n_dims < 0 || !find_reach(array, &before, &after)) {
        array->data = NULL; /* absent or empty: nothing may be read from it */
        return MT_OK;
    }
    int64_t size = (int64_t)mt_dtype_size((mt_dtype)array->dtype);
    uintptr_t first = (uintptr_t)array->data + (uintptr_t)(before * size);
    if (!is_inside((const void *)first, (size_t)((after - before + 1) * size))) {
        return fail(MT_ERUNTIME, "unreadable: a kernel was given memory that is not its own");
    }
    array->data = translate(array->data);
    return MT_OK;
}

static int run_kernel(const mt_kernel_call *call, mt_array *arrays)
{
    mt_kernel_call here = *call;
    here.tensors = arrays;
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        arrays[i] = call->tensors[i];
        int status = translate_array(&arrays[i]);
        if (status != MT_OK) {
            return status;
        }
    }
    const mt_backend *host = offered != NULL ? offered->cpu : mt__cpu_backend();
    mt_kernel_fn *run = host->kernels[call->kernel];
    if (run == NULL) {
        return fail(MT_ENOTSUP, "unreadable: the host has no such kernel");
    }
    int status = run(host->context, NULL, &here);
    if (status != MT_OK) {
        /* As a shared object this has a copy of src/base: the detail must reach the runtime's. */
        char message[MTB_MESSAGE_BYTES];
        (void)snprintf(message, sizeof message, "%s",
                       offered != NULL ? offered->last_error()->message
                                       : mtb_last_failure()->message);
        return fail(status, message);
    }
    return MT_OK;
}

static int forward(void *context, mt_backend_stream *stream, const mt_kernel_call *call)
{
    (void)context;
    (void)stream;
    atomic_fetch_add(&launches, 1);
    mt_array few[32];
    if (call->n_tensors <= 32) {
        return run_kernel(call, few);
    }
    mt_array *many = calloc(call->n_tensors, sizeof *many);
    int status = many != NULL ? run_kernel(call, many) : fail(MT_ENOMEM, "unreadable: no memory");
    free(many);
    return status;
}

/* ---- registration ---- */

static mt_kernel_fn *kernels[MT_KERNEL_COUNT];

static const mt_backend unreadable_backend = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "unreadable",
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

static int prepare(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *unreadable = mmap(NULL, region_bytes, PROT_NONE, flags, -1, 0);
    void *readable = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (unreadable == MAP_FAILED || readable == MAP_FAILED) {
        return fail(MT_ENOMEM, "unreadable: no addresses");
    }
    device_memory = unreadable;
    shadow = readable;
    for (size_t i = 0; i < MT_KERNEL_COUNT; i++) {
        kernels[i] = forward;
    }
    return MT_OK;
}

int mt_test_backend_register(void)
{
    int status = prepare();
    return status != MT_OK ? status : mt_backend_register(MT_DEVICE_TYPE_NPU, &unreadable_backend);
}

int mt_backend_open(const mt_backend_host *host, const mt_backend **out)
{
    offered = host;
    *out = &unreadable_backend;
    return prepare();
}

uint64_t mt_test_backend_launches(void)
{
    return atomic_load(&launches);
}
