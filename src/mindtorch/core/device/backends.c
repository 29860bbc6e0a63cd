/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backend serves which device, see backends.h. The accelerator's is set once and never
 * changed, so readers need no lock.
 */
#include "mindtorch/core/device/backends.h"

#include "base/fail.h"
#include "base/struct_size.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/trace/device_trace.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static _Atomic(const mt_backend *) accelerator; /* NULL: none is registered */

static const char *const kernel_names[] = {
#define X(name) #name,
#include <mindtorch/kernels.def>
#undef X
};
static_assert(MT_COUNT(kernel_names) == MT_KERNEL_COUNT, "a name for each kernel");

const char *mt_kernel_name(mt_kernel kernel)
{
    return (uint32_t)kernel < MT_KERNEL_COUNT ? kernel_names[kernel] : "UNKNOWN";
}

static const mt_backend *find_accelerator(void)
{
    /* Pairs with the exchange in mt_backend_register(). */
    const mt_backend *found = atomic_load_explicit(&accelerator, memory_order_acquire);
    if (MT_UNLIKELY(found == NULL)) {
        mt__backend_look();
        found = atomic_load_explicit(&accelerator, memory_order_acquire);
    }
    return found;
}

static const mt_backend *backend_of_type(mt_device_type type)
{
    if (MT_LIKELY(type == MT_DEVICE_TYPE_CPU)) {
        return mt__cpu_backend();
    }
    return type == MT_DEVICE_TYPE_NPU ? find_accelerator() : NULL;
}

/* ---- registering ---- */

/* A required function, and the group it belongs to: a group is complete or absent. */
typedef struct required_function {
    const char *name;
    size_t offset;
    uint32_t group; /* 0: always required; else if any function of the group exists */
} required_function;

#define REQUIRED(name, group)                      \
    {                                              \
#        name, offsetof(mt_backend, name), (group) \
    }

static const required_function required[] = {
    REQUIRED(name, 0),
    REQUIRED(device_count, 0),
    REQUIRED(device_info, 0),
    REQUIRED(allocate, 0),
    REQUIRED(release, 0),
    REQUIRED(copy, 0),
    REQUIRED(set, 0),
    REQUIRED(synchronize, 0),
    REQUIRED(kernels, 0),
    REQUIRED(host_allocate, 1),
    REQUIRED(host_release, 1),
    REQUIRED(stream_new, 2),
    REQUIRED(stream_free, 2),
    REQUIRED(stream_query, 2),
    REQUIRED(stream_synchronize, 2),
    REQUIRED(event_new, 2),
    REQUIRED(event_free, 2),
    REQUIRED(event_record, 2),
    REQUIRED(event_query, 2),
    REQUIRED(event_synchronize, 2),
    REQUIRED(event_elapsed, 2),
    REQUIRED(stream_wait, 2),
    REQUIRED(activity_start, 3),
    REQUIRED(activity_stop, 3),
    REQUIRED(activity_flush, 3),
    REQUIRED(clock, 3),
};

static bool is_there(const mt_backend *backend, const required_function *function)
{
    static const char nothing[sizeof(void *)];
    return memcmp((const char *)backend + function->offset, nothing, sizeof nothing) != 0;
}

static int check_backend(const mt_backend *backend)
{
    if (backend == NULL || backend->struct_size < sizeof *backend) {
        return mtb_fail(MT_EVALUE, "backend_register: struct_size is %u, version %d has %zu",
                        backend != NULL ? backend->struct_size : 0, MT_BACKEND_VERSION,
                        sizeof *backend);
    }
    if (backend->version != MT_BACKEND_VERSION) {
        return mtb_fail(MT_EVALUE, "backend_register: version %u, expected %d", backend->version,
                        MT_BACKEND_VERSION);
    }
    uint32_t groups = 1; /* bits of the groups that have a function */
    for (size_t i = 0; i < MT_COUNT(required); i++) {
        groups |= is_there(backend, &required[i]) ? 1u << required[i].group : 0;
    }
    for (size_t i = 0; i < MT_COUNT(required); i++) {
        if ((groups >> required[i].group & 1) != 0 && !is_there(backend, &required[i])) {
            return mtb_fail(MT_EVALUE, "backend_register: %s is missing", required[i].name);
        }
    }
    return MT_OK;
}

mt_status mt_backend_register(mt_device_type type, const mt_backend *backend)
{
    MT_TRY(check_backend(backend));
    mt__watch_forks();
    if (type == MT_DEVICE_TYPE_CPU) {
        return mtb_fail(MT_ERUNTIME, "backend_register: cpu is served already");
    }
    if (type != MT_DEVICE_TYPE_NPU) {
        return mtb_fail(MT_EVALUE, "backend_register: unknown device type %d", (int)type);
    }
    const mt_backend *before = NULL;
    if (!atomic_compare_exchange_strong_explicit(&accelerator, &before, backend,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        return mtb_fail(MT_ERUNTIME, "backend_register: npu is served already, by %s",
                        before->name);
    }
    mt__device_trace_attach(backend);
    return MT_OK;
}

const void *mt_backend_extension(mt_device_type type, const char *name)
{
    const mt_backend *backend = backend_of_type(type);
    return backend == NULL || backend->extension == NULL || name == NULL
               ? NULL
               : backend->extension(backend->context, name);
}

/* ---- devices ---- */

const mt_backend *mt__backend_of(mt_device device)
{
    return backend_of_type(mt__device_type(device));
}

uint32_t mt_device_count(mt_device_type type)
{
    const mt_backend *backend = backend_of_type(type);
    uint32_t count = backend != NULL ? backend->device_count(backend->context) : 0;
    return count < MT_DEVICES ? count : MT_DEVICES;
}

int mt__device_check(const char *op, mt_device device)
{
    if (MT_LIKELY(device == MT_CPU)) {
        return MT_OK;
    }
    uint32_t count = device > 0 ? mt_device_count(mt__device_type(device)) : 0;
    if (device < MT_NPU || count == 0) {
        const char *trouble = mt__backend_trouble();
        return mtb_fail(
            MT_ERUNTIME, "%s: device %s is not available: %s", op, mt_device_name(device),
            trouble[0] != '\0'
                ? trouble
                : "no backend serves it (MINDTORCH_NPU=sim asks for the simulated one)");
    }
    if (mt__device_index(device) >= count) {
        return mtb_fail(MT_ERUNTIME, "%s: device %s is not available: there %s %u of its type", op,
                        mt_device_name(device), count == 1 ? "is" : "are", count);
    }
    return MT_OK;
}

mt_status mt_device_synchronize(mt_device device)
{
    MT_TRY(mt__device_check("synchronize", device));
    const mt_backend *backend = mt__backend_of(device);
    mt__trace_token token =
        device == MT_CPU ? 0 : mt__trace_runtime_begin(MT_RUNTIME_DEVICE_SYNCHRONIZE);
    int status = backend->synchronize(backend->context, mt__device_index(device));
    mt__trace_end(token);
    return mt__failure_take(device, status);
}

mt_status mt_device_get_info(mt_device device, mt_device_info *info)
{
    if (info == NULL || info->struct_size < sizeof(uint32_t)) {
        return mtb_fail(MT_EVALUE, "device_info: struct_size is not set");
    }
    MT_TRY(mt__device_check("device_info", device));
    const mt_backend *backend = mt__backend_of(device);
    mt_device_info all = {.struct_size = sizeof all};
    MT_TRY(backend->device_info(backend->context, mt__device_index(device), &all));
    mtb_write_struct(info, &all);
    return MT_OK;
}
