/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams inside the runtime: which one a thread's work is queued on.
 */
#ifndef MINDTORCH_CORE_DEVICE_STREAMS_H
#define MINDTORCH_CORE_DEVICE_STREAMS_H

#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/thread/thread_state.h"

#include <mindtorch/stream.h>

enum {
    MT_STREAMS_OF_PRIORITY = 32,                /* of a device; then they are handed out again */
    MT_STREAMS = 1 + 2 * MT_STREAMS_OF_PRIORITY /* numbers: 0 default, then normal, then high */
};

struct mt_stream {
    mt_backend_stream *backend; /* NULL: the default stream */
    mt_device device;
    uint32_t number;
    int32_t priority;
};

/* Number of the thread's current stream on an accelerator. */
static inline uint32_t mt__stream_number(mt_device device)
{
    return mt__thread.streams[mt__device_index(device)];
}

/* A stream that was handed out, by its number; not the default one. */
mt_stream *mt__stream_numbered(mt_device device, uint32_t number);

/* The same, or the default one, which is created if necessary. The device must exist. */
int mt__stream_find(mt_device device, uint32_t number, mt_stream **out);

/* Waits for the work on a stream, or for the device if it has no streams. Not reported to the
 * profiler. Returns a failure of earlier work to the caller. */
int mt__stream_wait(const mt_stream *stream);

/* The backend's handle of the thread's current stream on an accelerator; NULL = the default one. */
static inline mt_backend_stream *mt__stream_of(mt_device device)
{
    uint32_t number = mt__stream_number(device);
    return number == 0 ? NULL : mt__stream_numbered(device, number)->backend;
}

#endif /* MINDTORCH_CORE_DEVICE_STREAMS_H */
