/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's data as tensors: numbers, sequences, NumPy arrays, buffers.
 *
 *     data ──sizes──► empty ──fill──► to ──► lift_fresh [──► detach_]        (the rows torch shows)
 */
#ifndef PYTHON_EXT_TENSORS_DATA_DATA_PARTS_H
#define PYTHON_EXT_TENSORS_DATA_DATA_PARTS_H

#include "tensors/module/tensors_state.h"

/* Numbers and nested sequences. dtype NONE: as torch infers it. `indexing`: bool and uint8 stay
 * what they are, everything else becomes int64. NULL: exception. */
mt_tensor *data_from_sequence(PyObject *data, mt_dtype dtype, mt_device device, bool indexing);

/* A NumPy array or scalar? numpy is never imported for the question. */
bool data_is_array(PyObject *object);
bool data_is_array_scalar(PyObject *object);

/* A tensor over a NumPy array's memory, without a copy. NULL: exception. */
mt_tensor *data_from_array(PyObject *array);

/* The dtype of a NumPy array or scalar. -1: exception. */
int data_array_dtype(PyObject *array, mt_dtype *dtype);

/* Rows that change no element but are seen in torch's profiles. They take a reference and give one.
 * NULL: exception. */
typedef enum data_row {
    DATA_ALIAS,
    DATA_LIFT_FRESH,
    DATA_DETACH_,
    DATA_RESOLVE_CONJ,
    DATA_RESOLVE_NEG,
    DATA_ROW_COUNT
} data_row;
mt_tensor *data_pass(mt_tensor *tensor, data_row row);

/* The tensor's memory as a tensor of its own, without an op: it keeps what others look at when the
 * tensor itself gets other data (x.data = y, out=x). A new reference; NULL: exception. */
mt_tensor *data_hold(const mt_tensor *tensor);

/* How many bytes its elements have, one after the other; -1: MemoryError, more than there can be.
 */
int data_bytes(const mt_tensor *tensor, size_t *bytes);

/* Refuses memory whose elements are misaligned, which our loops cannot use. -1: ValueError,
 * or TypeError where the dtype is none. */
int data_refuse_misaligned(const void *data, mt_dtype dtype, const char *what);

/* The array itself, or a copy of it where it is misaligned. A new reference; NULL: exception. */
PyObject *data_aligned_array(PyObject *array);

/* to(), releasing its argument. NONE: as it is. NULL: exception. */
mt_tensor *data_to(mt_tensor *tensor, mt_dtype dtype, mt_device device, bool copy);

/* The tensor, or what to() gives on the host, so that a profile has an op for the copy; releases
 * its argument. NULL: exception. */
mt_tensor *data_near(mt_tensor *tensor);

/* Adds methods to torch.Tensor, from a list that ends with a NULL name. */
int data_add_methods(PyMethodDef *methods);

#endif /* PYTHON_EXT_TENSORS_DATA_DATA_PARTS_H */
