/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backend serves which device, see backends.h. The host's is known at build time; another is
 * set once and never changed, so readers need no lock.
 */
#include "mindtorch/core/backends.h"

#include "base/fail.h"

#include <stdatomic.h>
#include <stddef.h>

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

static const mt_backend *backend_of_type(mt_device_type type)
{
    if (MT_LIKELY(type == MT_DEVICE_TYPE_CPU)) {
        return mt__cpu_backend();
    }
    /* Pairs with the exchange in mt_backend_register(). */
    return type == MT_DEVICE_TYPE_NPU ? atomic_load_explicit(&accelerator, memory_order_acquire)
                                      : NULL;
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
    const char *missing = backend->name == NULL           ? "name"
                          : backend->device_count == NULL ? "device_count"
                          : backend->allocate == NULL     ? "allocate"
                          : backend->release == NULL      ? "release"
                          : backend->copy == NULL         ? "copy"
                          : backend->synchronize == NULL  ? "synchronize"
                          : backend->kernels == NULL      ? "kernels"
                                                          : NULL;
    return missing == NULL ? MT_OK
                           : mtb_fail(MT_EVALUE, "backend_register: %s is missing", missing);
}

int mt_backend_register(mt_device_type type, const mt_backend *backend)
{
    MT_TRY(check_backend(backend));
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
    return MT_OK;
}

const mt_backend *mt__backend_of(mt_device device)
{
    return backend_of_type(mt__device_type(device));
}

uint32_t mt_device_count(mt_device_type type)
{
    const mt_backend *backend = backend_of_type(type);
    uint32_t count = backend != NULL ? backend->device_count(backend->context) : 0;
    return count < 256 ? count : 256; /* what a device's number has room for */
}

int mt__device_check(const char *op, mt_device device)
{
    if (MT_LIKELY(device == MT_CPU)) {
        return MT_OK;
    }
    uint32_t count = device > 0 ? mt_device_count(mt__device_type(device)) : 0;
    if (device < MT_NPU || count == 0) {
        return mtb_fail(MT_ERUNTIME, "%s: device %s is not available: no backend serves it", op,
                        mt_device_name(device));
    }
    if (mt__device_index(device) >= count) {
        return mtb_fail(MT_ERUNTIME, "%s: device %s is not available: there are %u of its type", op,
                        mt_device_name(device), count);
    }
    return MT_OK;
}

mt_stream *mt__current_stream(mt_device device)
{
    (void)device; /* version 0 has the default stream alone */
    return NULL;
}

int mt__launch(mt_device device, mt_kernel_call *call)
{
    const mt_backend *backend = mt__backend_of(device);
    if (MT_UNLIKELY(backend == NULL)) {
        return mt__device_check(mt_kernel_name((mt_kernel)call->kernel), device);
    }
    mt_kernel_fn *run = call->kernel < backend->n_kernels ? backend->kernels[call->kernel] : NULL;
    if (MT_UNLIKELY(run == NULL)) {
        return mtb_fail(MT_ENOTSUP, "kernel %s is not implemented by backend %s",
                        mt_kernel_name((mt_kernel)call->kernel), backend->name);
    }
    call->struct_size = (uint32_t)sizeof *call;
    return run(backend->context, mt__current_stream(device), call);
}

int mt_device_synchronize(mt_device device)
{
    MT_TRY(mt__device_check("synchronize", device));
    const mt_backend *backend = mt__backend_of(device);
    return backend->synchronize(backend->context, mt__device_index(device));
}
