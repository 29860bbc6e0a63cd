/* SPDX-License-Identifier: Apache-2.0
 *
 * The accelerator in the profile: calls of its runtime as scopes of the host, and its records as
 * events of a source (mtprof/source.h). A launch's key is the correlation that the backend gets, so
 * work finds its way back to the op that launched it whatever the clocks say.
 */
#ifndef MINDTORCH_TRACE_DEVICE_TRACE_H
#define MINDTORCH_TRACE_DEVICE_TRACE_H

#include "mindtorch/trace/op_trace.h"

#include <mindtorch/backend.h>

/* Calls of the device's runtime. Those that launch come first. */
typedef enum mt__runtime_call {
    MT_RUNTIME_LAUNCH_KERNEL,
    MT_RUNTIME_MEMCPY,
    MT_RUNTIME_MEMCPY_ASYNC,
    MT_RUNTIME_MEMSET,
    MT_RUNTIME_DEVICE_SYNCHRONIZE,
    MT_RUNTIME_STREAM_SYNCHRONIZE,
    MT_RUNTIME_STREAM_WAIT_EVENT,
    MT_RUNTIME_EVENT_RECORD,
    MT_RUNTIME_EVENT_SYNCHRONIZE,
    MT_RUNTIME_CALLS
} mt__runtime_call;

extern mt__trace_site mt__runtime_sites[MT_RUNTIME_CALLS];

/* Makes the backend's records a source of libmtprof, where it has any. Once in a process. */
void mt__device_trace_attach(const mt_backend *backend);

/* 0 while nothing records. Ended with mt__trace_end(). */
static inline mt__trace_token mt__trace_runtime_begin(mt__runtime_call call)
{
    return mtprof_wants((uint32_t)MTPROF_WANT_RUNTIME | (uint32_t)MTPROF_WANT_DEVICE)
               ? mtprof_begin(&mt__runtime_sites[call])
               : 0;
}

static inline mt__trace_token mt__trace_launch_begin(mt__runtime_call call, uint64_t *correlation)
{
    mt__trace_token token = mt__trace_runtime_begin(call);
    *correlation = mtprof_launch_key(token);
    return token;
}

#endif /* MINDTORCH_TRACE_DEVICE_TRACE_H */
