/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels, copies and sets as the host calls them: checked, copied into a command, queued. A
 * command has its own copy of everything (B4), with addresses that the worker can access.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_DIMS = 64,
    MAX_TENSORS = 1 << 16
};

/* ---- memory ---- */

static bool is_ours(sim_device *device, const void *memory, uint64_t bytes)
{
    bool ours = sim_pool_has(&device->pool, memory, bytes);
#if defined(MT_DEBUG) && MT_DEBUG
    ours = ours && (bytes == 0 || sim_pool_is_taken(&device->pool, memory, bytes));
#endif
    return ours;
}

/* Whether an address belongs to any device, not to host memory. */
static bool is_far(const void *memory)
{
    bool far = memory == NULL;
    for (uint32_t i = 0; i < sim.n_devices && !far; i++) {
        far = sim_pool_has(&sim.devices[i].pool, memory, 0);
    }
    return far;
}

/* The range of bytes that a view covers: [*first, *first + *bytes). False: the sizes overflow. */
static bool find_reach(const mt_array *array, size_t element, uintptr_t *first, uint64_t *bytes)
{
    int64_t before = 0;
    int64_t behind = 0;
    int64_t span;
    for (int32_t i = 0; i < array->n_dims; i++) {
        int64_t step;
        if (array->sizes[i] <= 0) {
            *bytes = 0;
            return true;
        }
        int64_t *end = array->strides[i] < 0 ? &before : &behind;
        if (__builtin_mul_overflow(array->sizes[i] - 1, array->strides[i], &step) ||
            __builtin_add_overflow(*end, step, end)) {
            return false;
        }
    }
    if (__builtin_sub_overflow(behind, before, &span) || span >= INT64_MAX / (int64_t)element) {
        return false;
    }
    *bytes = (uint64_t)(span + 1) * element;
    *first = (uintptr_t)array->data + (uintptr_t)(before * (int64_t)element);
    return true;
}

/* ---- kernels ---- */

static MT_COLD int refuse(sim_device *device, const mt_kernel_call *call, uint32_t tensor,
                          const char *why)
{
    char name[SIM_NAME_BYTES];
    sim_kernel_name(call, name);
    return sim_fail(MT_ERUNTIME, "kernel %s on npu:%u: tensor %u (%p) %s", name, device->index,
                    tensor, call->tensors[tensor].data, why);
}

/* A view with the worker's address. An absent or empty one has none. */
static int translate(sim_device *device, const mt_kernel_call *call, uint32_t tensor, mt_array *out)
{
    uintptr_t first = 0;
    uint64_t bytes = 0;
    out->data = NULL;
    if (out->n_dims < 0) {
        return MT_OK;
    }
    size_t element = sim_dtype_bytes(out->dtype);
    if (element == 0) {
        return refuse(device, call, tensor, "has an unknown type");
    }
    if (!find_reach(&call->tensors[tensor], element, &first, &bytes)) {
        return refuse(device, call, tensor, "reaches further than memory does");
    }
    if (bytes == 0) {
        return MT_OK;
    }
    if (!is_ours(device, (const void *)first, bytes)) {
        return refuse(device, call, tensor, "is not in the device's memory");
    }
    out->data = sim_pool_near(&device->pool, call->tensors[tensor].data);
    return MT_OK;
}

/* Size of the command's copies; 0: the call is invalid. */
static size_t payload_bytes(const mt_kernel_call *call)
{
    size_t bytes = call->n_tensors * sizeof(mt_array) + call->n_ints * sizeof(int64_t) +
                   call->n_scalars * sizeof(mt_scalar);
    if (call->n_tensors > MAX_TENSORS || (call->n_tensors != 0 && call->tensors == NULL) ||
        (call->n_ints != 0 && call->ints == NULL) ||
        (call->n_scalars != 0 && call->scalars == NULL)) {
        return 0;
    }
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        const mt_array *array = &call->tensors[i];
        if (array->n_dims > MAX_DIMS ||
            (array->n_dims > 0 && (array->sizes == NULL || array->strides == NULL))) {
            return 0;
        }
        bytes += array->n_dims > 0 ? (size_t)array->n_dims * 2 * sizeof(int64_t) : 0;
    }
    return bytes;
}

static char *copy_part(char *at, const void *from, size_t bytes)
{
    if (bytes != 0) {
        memcpy(at, from, bytes);
    }
    return at + bytes;
}

/* Makes `copy` a call whose parts are all in the payload: scalars, arrays, ints, sizes, strides. */
static int copy_call(sim_device *device, const mt_kernel_call *call, char *payload,
                     mt_kernel_call *copy)
{
    *copy = *call;
    copy->struct_size = (uint32_t)sizeof *copy; /* fields after it are not copied */
    copy->scalars = (const mt_scalar *)(void *)payload;
    payload = copy_part(payload, call->scalars, call->n_scalars * sizeof(mt_scalar));
    mt_array *arrays = (mt_array *)(void *)payload;
    copy->tensors = arrays;
    payload = copy_part(payload, call->tensors, call->n_tensors * sizeof(mt_array));
    copy->ints = (const int64_t *)(void *)payload;
    payload = copy_part(payload, call->ints, call->n_ints * sizeof(int64_t));
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        MT_TRY(translate(device, call, i, &arrays[i]));
        if (arrays[i].n_dims > 0) {
            size_t bytes = (size_t)arrays[i].n_dims * sizeof(int64_t);
            arrays[i].sizes = (const int64_t *)(void *)payload;
            payload = copy_part(payload, call->tensors[i].sizes, bytes);
            arrays[i].strides = (const int64_t *)(void *)payload;
            payload = copy_part(payload, call->tensors[i].strides, bytes);
        }
    }
    return MT_OK;
}

typedef enum after {
    AFTER_GO_ON,  /* the call returns */
    AFTER_WAIT,   /* it waits for its work; a kept failure stays kept */
    AFTER_REPORT, /* it waits and reports it (B5) */
} after;

/* Queues the command, which belonged to the caller until now. If launches are blocking, waits and
 * returns the command's own failure. */
static int finish(mt_backend_stream *stream, sim_command *command, after then)
{
    sim_outcome outcome;
    bool blocking = sim.blocking;
    uint32_t losses = atomic_load_explicit(&stream->device->losses, memory_order_relaxed);
    if (MT_UNLIKELY(blocking)) {
        outcome.status = MT_OK;
        command->outcome = &outcome;
    }
    uint64_t target = sim_commit(stream, command);
    if (MT_LIKELY(then == AFTER_GO_ON && !blocking)) {
        return MT_OK;
    }
    (void)sim_await(stream, target, 0);
    if (blocking && outcome.status != MT_OK) {
        return sim.host.fail(outcome.status, outcome.message);
    }
    return then == AFTER_REPORT ? sim_report(stream->device, losses) : sim_check(stream->device);
}

int sim_launch(void *context, mt_backend_stream *stream, const mt_kernel_call *call)
{
    (void)context;
    void *payload;
    sim_command *command;
    if (MT_UNLIKELY(call == NULL || call->struct_size < sizeof *call)) {
        return sim_fail(MT_EVALUE, "kernel: struct_size is %u, expected %zu",
                        call != NULL ? call->struct_size : 0, sizeof *call);
    }
    MT_TRY(sim_find_stream("kernel", call->device, stream, &stream));
    const mt_backend *cpu = sim.host.cpu;
    if (MT_UNLIKELY(call->kernel >= MT_KERNEL_COUNT || call->kernel >= cpu->n_kernels ||
                    cpu->kernels[call->kernel] == NULL)) {
        return sim_fail(MT_ENOTSUP, "npu:%u: there is no kernel %u", stream->device->index,
                        call->kernel);
    }
    size_t bytes = payload_bytes(call);
    if (MT_UNLIKELY(bytes == 0)) {
        return sim_fail(MT_EVALUE, "npu:%u: kernel %u has no sound arguments",
                        stream->device->index, call->kernel);
    }
    MT_TRY(sim_begin(stream, SIM_KERNEL, bytes, &payload, &command));
    command->correlation = call->correlation;
    int status = copy_call(stream->device, call, payload, &command->of.kernel);
    if (MT_UNLIKELY(status != MT_OK)) {
        sim_cancel(stream, command);
        return status;
    }
    return finish(stream, command, AFTER_GO_ON);
}

/* ---- copies and sets ---- */

/* The name in records, by kind and whether the host's memory is pinned. */
static const char *copy_name(const mt_copy_call *call)
{
    bool pinned = (call->flags & MT_COPY_PINNED) != 0;
    switch (call->kind) {
    case MT_COPY_TO_DEVICE:
        return pinned ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)";
    case MT_COPY_TO_HOST:
        return pinned ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy DtoH (Device -> Pageable)";
    case MT_COPY_PEER: return "Memcpy PtoP (Device -> Device)";
    default: return "Memcpy DtoD (Device -> Device)";
    }
}

static MT_COLD int refuse_copy(const sim_device *device, const mt_copy_call *call)
{
    return sim_fail(
        MT_ERUNTIME, "%s on npu:%u: %llu bytes from %p to %p: memory that is not where it says",
        copy_name(call), device->index, (unsigned long long)call->bytes, call->from, call->to);
}

/* Source and destination as addresses that the worker can access. */
static int find_ends(sim_device *device, const mt_copy_call *call, sim_move *move)
{
    sim_device *target = device;
    if (call->kind == MT_COPY_PEER) {
        MT_TRY(sim_find_device("copy", call->to_device, &target));
    }
    bool from_device = call->kind != MT_COPY_TO_DEVICE;
    bool to_device = call->kind != MT_COPY_TO_HOST;
    bool from_fits = from_device ? is_ours(device, call->from, call->bytes) : !is_far(call->from);
    bool to_fits = to_device ? is_ours(target, call->to, call->bytes) : !is_far(call->to);
    if (!from_fits || !to_fits) {
        return refuse_copy(device, call);
    }
    move->from = from_device ? sim_pool_near(&device->pool, call->from) : call->from;
    move->to = to_device ? sim_pool_near(&target->pool, call->to) : call->to;
    move->bytes = call->bytes;
    move->name = copy_name(call);
    return MT_OK;
}

/* Whether the bytes of a copy from pageable memory are copied into the command, so that the call
 * need not wait until the worker has read them. */
static bool is_staged(mt_backend_stream *stream, const mt_copy_call *call)
{
    return call->kind == MT_COPY_TO_DEVICE && (call->flags & MT_COPY_PINNED) == 0 &&
           call->bytes <= SIM_STAGE_BYTES && !sim.blocking &&
           atomic_load_explicit(&stream->staged, memory_order_relaxed) <= SIM_STAGED_BYTES;
}

int sim_copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    (void)context;
    void *payload;
    sim_command *command;
    sim_move move = {.bytes = 0};
    if (call == NULL || call->struct_size < sizeof *call || call->kind > MT_COPY_PEER) {
        return sim_fail(MT_EVALUE, "copy: struct_size %u, kind %u",
                        call != NULL ? call->struct_size : 0, call != NULL ? call->kind : 0);
    }
    MT_TRY(sim_find_stream("copy", call->device, stream, &stream));
    if (call->bytes == 0) {
        return MT_OK;
    }
    MT_TRY(find_ends(stream->device, call, &move));
    bool staged = is_staged(stream, call);
    MT_TRY(sim_begin(stream, SIM_COPY, staged ? call->bytes : 0, &payload, &command));
    if (staged) {
        memcpy(payload, call->from, call->bytes);
        move.from = payload;
        move.staged = (uint32_t)call->bytes;
        atomic_fetch_add_explicit(&stream->staged, call->bytes, memory_order_relaxed);
    }
    command->of.move = move;
    command->correlation = call->correlation;
    if ((call->flags & MT_COPY_PINNED) != 0) {
        return finish(stream, command, AFTER_GO_ON);
    }
    bool reads_host = call->kind == MT_COPY_TO_DEVICE && !staged;
    return finish(stream, command,
                  call->kind == MT_COPY_TO_HOST ? AFTER_REPORT
                  : reads_host                  ? AFTER_WAIT
                                                : AFTER_GO_ON);
}

int sim_set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    (void)context;
    void *payload;
    sim_command *command;
    if (call == NULL || call->struct_size < sizeof *call) {
        return sim_fail(MT_EVALUE, "set: struct_size is %u, expected %zu",
                        call != NULL ? call->struct_size : 0, sizeof *call);
    }
    MT_TRY(sim_find_stream("set", call->device, stream, &stream));
    if (call->bytes == 0) {
        return MT_OK;
    }
    if (!is_ours(stream->device, call->to, call->bytes)) {
        return sim_fail(MT_ERUNTIME, "set on npu:%u: %llu bytes at %p are not the device's",
                        stream->device->index, (unsigned long long)call->bytes, call->to);
    }
    MT_TRY(sim_begin(stream, SIM_SET, 0, &payload, &command));
    command->of.move = (sim_move){.to = sim_pool_near(&stream->device->pool, call->to),
                                  .bytes = call->bytes,
                                  .name = "Memset (Device)",
                                  .value = call->value};
    command->correlation = call->correlation;
    return finish(stream, command, AFTER_GO_ON);
}
