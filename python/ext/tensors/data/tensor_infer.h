/* SPDX-License-Identifier: Apache-2.0
 *
 * Type and sizes of nested Python data; each call sets an exception on failure (-1).
 */
#ifndef PYTHON_EXT_TENSORS_DATA_TENSOR_INFER_H
#define PYTHON_EXT_TENSORS_DATA_TENSOR_INFER_H

#include "tensors/data/data_parts.h"

/* What counts as a dimension: sequences, but not tensors or arrays without dimensions. Text counts,
 * as in torch. */
bool infer_is_sequence(PyObject *object);
bool infer_is_text(PyObject *object); /* str and bytes */

/* As the first elements say, MT_MAX_DIMS at most. Others are compared when they are stored. */
int infer_sizes(PyObject *data, int64_t *sizes, uint32_t *n_dims);

/* As all elements together say; the default for no elements. */
int infer_dtype(PyObject *data, mt_dtype *dtype);

#endif /* PYTHON_EXT_TENSORS_DATA_TENSOR_INFER_H */
