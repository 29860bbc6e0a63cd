/* SPDX-License-Identifier: Apache-2.0
 *
 * Work for a device, see launch.h. The path for the host is short: it has no streams and no
 * records.
 */
#include "mindtorch/core/device/launch.h"

#include "base/fail.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/device/streams.h"
#include "mindtorch/trace/device_trace.h"

static MT_COLD int refuse_kernel(const mt_backend *backend, const mt_kernel_call *call)
{
    return mtb_fail(MT_ENOTSUP, "kernel %s is not implemented by backend %s",
                    mt_kernel_name((mt_kernel)call->kernel), backend->name);
}

/* NULL: the backend has none (B3). */
MT_INLINE mt_kernel_fn *kernel_of(const mt_backend *backend, const mt_kernel_call *call)
{
    return call->kernel < backend->n_kernels ? backend->kernels[call->kernel] : NULL;
}

static MT_NOINLINE int launch_far(mt_device device, mt_kernel_call *call)
{
    if (device == MT_META) {
        return MT_OK; /* the results are there, and have no elements */
    }
    const mt_backend *backend = mt__backend_of(device);
    if (MT_UNLIKELY(backend == NULL)) {
        return mt__device_check(mt_kernel_name((mt_kernel)call->kernel), device);
    }
    mt_kernel_fn *run = kernel_of(backend, call);
    if (MT_UNLIKELY(run == NULL)) {
        return refuse_kernel(backend, call);
    }
    call->struct_size = (uint32_t)sizeof *call;
    call->device = mt__device_index(device);
    mt__trace_token token = mt__trace_launch_begin(MT_RUNTIME_LAUNCH_KERNEL, &call->correlation);
    int status = run(backend->context, mt__stream_of(device), call);
    mt__trace_end(token);
    return status;
}

int mt__launch(mt_device device, mt_kernel_call *call)
{
    if (MT_UNLIKELY(device != MT_CPU)) {
        return launch_far(device, call);
    }
    const mt_backend *host = mt__cpu_backend();
    mt_kernel_fn *run = kernel_of(host, call);
    if (MT_UNLIKELY(run == NULL)) {
        return refuse_kernel(host, call);
    }
    call->struct_size = (uint32_t)sizeof *call;
    return run(host->context, NULL, call);
}

static MT_COLD int refuse_meta(void)
{
    return mtb_fail(MT_ENOTSUP, "Cannot copy out of meta tensor; no data!");
}

/* `call` has all fields but those that are the same for every copy. */
static int copy(mt_device device, mt_copy_call *call)
{
    if (MT_UNLIKELY(device == MT_META)) {
        return call->kind == MT_COPY_TO_DEVICE ? MT_OK : refuse_meta();
    }
    const mt_backend *backend = mt__backend_of(device);
    if (MT_UNLIKELY(backend == NULL)) {
        return mt__device_check("copy", device);
    }
    call->struct_size = (uint32_t)sizeof *call;
    if (device == MT_CPU) {
        return backend->copy(backend->context, NULL, call);
    }
    call->device = mt__device_index(device);
    bool waits = call->kind == MT_COPY_TO_HOST && (call->flags & MT_COPY_PINNED) == 0;
    mt__trace_token token = mt__trace_launch_begin(
        waits ? MT_RUNTIME_MEMCPY : MT_RUNTIME_MEMCPY_ASYNC, &call->correlation);
    int status = backend->copy(backend->context, mt__stream_of(device), call);
    mt__trace_end(token);
    return waits ? mt__failure_take(device, status) : status;
}

int mt__copy_to_device(mt_device device, void *to, const void *from, size_t bytes, bool pinned)
{
    mt_copy_call call = {.kind = MT_COPY_TO_DEVICE,
                         .flags = pinned ? MT_COPY_PINNED : 0,
                         .to_device = mt__device_index(device),
                         .to = to,
                         .from = from,
                         .bytes = bytes};
    return bytes == 0 ? MT_OK : copy(device, &call);
}

int mt__copy_to_host(mt_device device, void *to, const void *from, size_t bytes, bool pinned)
{
    mt_copy_call call = {.kind = MT_COPY_TO_HOST,
                         .flags = pinned ? MT_COPY_PINNED : 0,
                         .to = to,
                         .from = from,
                         .bytes = bytes};
    return bytes == 0 ? MT_OK : copy(device, &call);
}

int mt__copy_peer(mt_device to_device, void *to, mt_device from_device, const void *from,
                  size_t bytes)
{
    mt_copy_call call = {.kind = MT_COPY_PEER,
                         .to_device = mt__device_index(to_device),
                         .to = to,
                         .from = from,
                         .bytes = bytes};
    if (bytes == 0 || to_device == MT_META) {
        return MT_OK;
    }
    if (from_device == MT_META) {
        return refuse_meta();
    }
    mt_stream *source;
    mt_stream *target;
    MT_TRY(mt_stream_get_current(from_device, &source));
    MT_TRY(mt_stream_get_current(to_device, &target));
    MT_TRY(mt_stream_wait_stream(source, target)); /* earlier users of the destination */
    MT_TRY(copy(from_device, &call));
    return mt_stream_wait_stream(target, source);
}

int mt__set_bytes(mt_device device, void *to, uint8_t value, size_t bytes)
{
    if (device == MT_META) {
        return MT_OK;
    }
    const mt_backend *backend = mt__backend_of(device);
    if (MT_UNLIKELY(backend == NULL)) {
        return mt__device_check("set", device);
    }
    mt_set_call call = {.struct_size = (uint32_t)sizeof call,
                        .device = mt__device_index(device),
                        .to = to,
                        .bytes = bytes,
                        .value = value};
    if (bytes == 0) {
        return MT_OK;
    }
    mt__trace_token token = mt__trace_launch_begin(MT_RUNTIME_MEMSET, &call.correlation);
    int status = backend->set(backend->context, mt__stream_of(device), &call);
    mt__trace_end(token);
    return status;
}
