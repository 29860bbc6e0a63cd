/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, streams and events as Python sees them.
 *
 *   PDV1  The current device and streams belong to threads and live in the library; the default
 *         device (torch.set_default_device, `with torch.device()`) belongs to threads too and lives
 *         here.
 *   PDV2  What may wait for a device runs without the GIL.
 */
#ifndef PYTHON_EXT_TENSORS_DEVICE_DEVICE_PARTS_H
#define PYTHON_EXT_TENSORS_DEVICE_DEVICE_PARTS_H

#include "tensors/module/tensors_state.h"

/* torch.Stream. The stream lives as long as the process. */
typedef struct stream_object {
    PyObject_HEAD mt_stream *stream;
} stream_object;

/* torch.device; index -1: none. NULL: exception. device_object.c */
PyObject *device_object_new(mt_device_type type, int index);

/* `with torch.device()`: methods of the type. default_device.c */
PyObject *device_enter(PyObject *self, PyObject *Py_UNUSED(ignored));
PyObject *device_exit(PyObject *self, PyObject *const *args, Py_ssize_t n_args);

/* Where tensors are made when no device is given; MT_DEVICE_NONE: the library decides
 * (the host). default_device.c */
mt_device device_default(void);

/* An accelerator: as device_from_object(), None gives the thread's current one. ValueError for
 * others. */
int accelerator_from_object(PyObject *object, mt_device *device);

/* What a thread goes back to when a `with` ends: a stack for each `name`. push borrows; pop gives a
 * reference, or NULL and an exception: the block was never entered. */
int thread_stack_push(PyObject *name, PyObject *object);
PyObject *thread_stack_pop(PyObject *name);

/* The object of a stream; NULL: exception. */
PyObject *stream_to_object(mt_stream *stream);

/* torch.Stream, or None for this thread's current stream of the current device. -1: exception. */
int stream_given(PyObject *object, const char *function, mt_stream **stream); /* no None */
int stream_from_object(PyObject *object, const char *function, mt_stream **stream);

/* Makes a stream and its device the current ones of this thread. -1: exception. */
int stream_make_current(mt_stream *stream);

/* A new event, recorded on the stream; NULL: exception. stream_event.c */
PyObject *event_recorded(mt_stream *stream);
/* The event of an object; NULL: TypeError. */
mt_event *event_from_object(PyObject *object, const char *function);

/* The tensor in pinned memory: itself or a copy. A new reference; NULL: exception.
 * device_functions.c */
mt_tensor *tensor_pinned(mt_tensor *tensor);

/* What pin_memory=True makes of a tensor that was just made; takes it over. NULL: exception. */
mt_tensor *tensor_pin_made(mt_tensor *tensor);

#endif /* PYTHON_EXT_TENSORS_DEVICE_DEVICE_PARTS_H */
