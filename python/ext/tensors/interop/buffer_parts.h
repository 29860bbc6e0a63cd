/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as buffers, for the Tensor type's slots: host memory without a copy. What has no format
 * in struct's language (bfloat16), lies on a device or needs a gradient is refused (BufferError).
 */
#ifndef PYTHON_EXT_TENSORS_INTEROP_BUFFER_PARTS_H
#define PYTHON_EXT_TENSORS_INTEROP_BUFFER_PARTS_H

#include "tensors/module/tensors_state.h"

int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void tensor_releasebuffer(PyObject *self, Py_buffer *view);

#endif /* PYTHON_EXT_TENSORS_INTEROP_BUFFER_PARTS_H */
