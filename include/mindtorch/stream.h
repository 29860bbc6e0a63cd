/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of the accelerator, and the device that a thread works on.
 *
 * Work on one stream is done in order; streams run concurrently. Each thread has, for each device,
 * a current stream on which its ops are queued; at first it is the device's default stream. Streams
 * belong to the process: they are handed out and never freed. A device has 32 of normal and 32 of
 * high priority; from the 33rd on they are handed out again in turn.
 *
 * Memory belongs to the stream that was current when it was allocated, and is reused on that stream
 * without waiting. If a tensor is used on another stream, keep it until that use is done or
 * announce the use with mt_tensor_record_stream().
 *
 * Functions that return a status return MT_EVALUE if a stream or event is NULL, and MT_ERUNTIME if
 * there is no such device. Functions that wait also report failures of earlier work of the device
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
/** MT_EVALUE: the device is the host. */
MT_API mt_status mt_set_current_device(mt_device device);

/** A stream of the device; a negative priority asks for one of high priority. MT_ERUNTIME also if
 * the backend has no streams. MT_EVALUE, here and in the next two: the host has no streams. */
MT_API mt_status mt_stream_new(mt_device device, int32_t priority, mt_stream **out);
MT_API mt_status mt_stream_get_default(mt_device device, mt_stream **out);
/** The stream that is current on this thread. */
MT_API mt_status mt_stream_get_current(mt_device device, mt_stream **out);
/** Makes it the current one of its device on this thread; the current device stays. */
MT_API mt_status mt_stream_set_current(mt_stream *stream);

/** The device on which the stream's work runs. */
MT_API mt_device mt_stream_device(const mt_stream *stream);
/** 0 for the default stream; the number under which traces show it. */
MT_API uint32_t mt_stream_number(const mt_stream *stream);
MT_API int32_t mt_stream_priority(const mt_stream *stream);
/** Whether all its work is done; does not wait. */
MT_API mt_status mt_stream_query(mt_stream *stream, bool *done);
/** Waits for all its work. */
MT_API mt_status mt_stream_synchronize(mt_stream *stream);
/** Work put on `stream` later waits for the event, or for the work that is on `other` now. */
MT_API mt_status mt_stream_wait_event(mt_stream *stream, mt_event *event);
MT_API mt_status mt_stream_wait_stream(mt_stream *stream, mt_stream *other);

/** flags: mt_event_flag of backend.h. It belongs to a device from its first record on. */
MT_API mt_status mt_event_new(uint32_t flags, mt_event **out);
/** Accepts NULL. A stream that waits for the event keeps waiting for the work that it marked. */
MT_API void mt_event_free(mt_event *event);
/** The event marks the work that is on the stream so far. MT_ERUNTIME: it belongs to another
 * device. */
MT_API mt_status mt_event_record(mt_event *event, mt_stream *stream);
/** An event that was never recorded is done. */
MT_API mt_status mt_event_query(mt_event *event, bool *done);
/** Waits for the work that it marks. */
MT_API mt_status mt_event_synchronize(mt_event *event);
/** MT_EVALUE: not recorded, of two devices, or made without MT_EVENT_TIMING. MT_ERUNTIME: not done
 * yet. */
MT_API mt_status mt_event_elapsed_ns(mt_event *from, mt_event *to, double *ns);
/** MT_DEVICE_NONE before its first record. */
MT_API mt_device mt_event_device(const mt_event *event);

/** The tensor is used on this stream too: its memory is not reused before that use is done. */
MT_API mt_status mt_tensor_record_stream(mt_tensor *tensor, mt_stream *stream);

/** A copy in pinned host memory, which accelerators access directly; the tensor itself if it is
 * pinned already. MT_ERUNTIME: it is not on the host, or there is no accelerator. */
MT_API mt_status mt_tensor_pin(mt_tensor *tensor, mt_tensor **out);
MT_API bool mt_tensor_is_pinned(const mt_tensor *tensor);

MT_END_DECLS

#endif /* MINDTORCH_STREAM_H */
