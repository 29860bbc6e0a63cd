/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of the accelerator, and the device that a thread works on.
 *
 * Work on one stream is done in order; streams run beside each other. Each thread has, for each
 * device, a current stream on which its ops go; it begins as the device's default stream. Streams
 * belong to the process: they are handed out and never freed. A device has 32 of normal and 32 of
 * high priority; from the 33rd on they are handed out again in turn.
 *
 * Memory belongs to the stream that was current when it was allocated, and is used again on that
 * stream without waiting. A tensor that is used on another one must be kept until that is done, or
 * be told: mt_tensor_record_stream().
 *
 * Functions that return a status answer MT_EVALUE where a stream or event is NULL, and MT_ERUNTIME
 * where there is no such device. What waits also reports failures of earlier work of the device
 * (backend.h, B5).
 */
#ifndef MINDTORCH_STREAM_H
#define MINDTORCH_STREAM_H

#include <mindtorch/device.h>
#include <mindtorch/tensor.h>

#include <stdbool.h>

MT_BEGIN_DECLS

typedef struct mt_stream mt_stream;
typedef struct mt_event mt_event;

/** The accelerator that "npu" without a number means on this thread: npu:0 at first. */
MT_API mt_device mt_current_device(void);
/** MT_EVALUE: it is the host. */
MT_API mt_status mt_set_current_device(mt_device device);

/** A stream of the device's. priority below 0: a high one. MT_ERUNTIME: its backend has no streams,
 * too. MT_EVALUE, here and in the next two: the host has none. */
MT_API mt_status mt_stream_new(mt_device device, int32_t priority, mt_stream **out);
MT_API mt_status mt_stream_get_default(mt_device device, mt_stream **out);
/** This thread's. */
MT_API mt_status mt_stream_get_current(mt_device device, mt_stream **out);
/** Makes it the current one of its device on this thread; the current device stays. */
MT_API mt_status mt_stream_set_current(mt_stream *stream);

/** The device on which the stream's work runs. */
MT_API mt_device mt_stream_device(const mt_stream *stream);
/** 0 for the default stream; the number under which traces show it. */
MT_API uint32_t mt_stream_number(const mt_stream *stream);
MT_API int32_t mt_stream_priority(const mt_stream *stream);
/** Whether all that is on it is done; does not wait. */
MT_API mt_status mt_stream_query(mt_stream *stream, bool *done);
/** Waits for all that is on it. */
MT_API mt_status mt_stream_synchronize(mt_stream *stream);
/** What comes on `stream` later waits for the event, or for what is on `other` now. */
MT_API mt_status mt_stream_wait_event(mt_stream *stream, mt_event *event);
MT_API mt_status mt_stream_wait_stream(mt_stream *stream, mt_stream *other);

/** flags: mt_event_flag of backend.h. It belongs to a device from its first record on. */
MT_API mt_status mt_event_new(uint32_t flags, mt_event **out);
/** Accepts NULL. What waits for it goes on waiting for what it stood for. */
MT_API void mt_event_free(mt_event *event);
/** It stands for what is on the stream so far. MT_ERUNTIME: it belongs to another device. */
MT_API mt_status mt_event_record(mt_event *event, mt_stream *stream);
/** An event that was never recorded is done. */
MT_API mt_status mt_event_query(mt_event *event, bool *done);
/** Waits for what it stands for. */
MT_API mt_status mt_event_synchronize(mt_event *event);
/** MT_EVALUE: not recorded, of two devices, or made without MT_EVENT_TIMING. MT_ERUNTIME: not done
 * yet. */
MT_API mt_status mt_event_elapsed_ns(mt_event *from, mt_event *to, double *ns);
/** MT_DEVICE_NONE before its first record. */
MT_API mt_device mt_event_device(const mt_event *event);

/** The tensor is used on this stream too: its memory is not used again before that is done. */
MT_API mt_status mt_tensor_record_stream(mt_tensor *tensor, mt_stream *stream);

/** A copy in host memory that accelerators copy from and to by themselves; the tensor itself where
 * it is one. MT_ERUNTIME: it is not on the host, or there is no accelerator. */
MT_API mt_status mt_tensor_pin(mt_tensor *tensor, mt_tensor **out);
MT_API bool mt_tensor_is_pinned(const mt_tensor *tensor);

MT_END_DECLS

#endif /* MINDTORCH_STREAM_H */
