/* SPDX-License-Identifier: Apache-2.0
 *
 * Single elements of host memory: from Python's numbers, and to them.
 */
#ifndef PYTHON_EXT_TENSORS_DATA_ELEMENT_CODEC_H
#define PYTHON_EXT_TENSORS_DATA_ELEMENT_CODEC_H

#include "tensors/module/tensors_state.h"

/* Stores a number. A number that the type cannot hold is refused as torch does (RuntimeError):
 * integers beyond its range, NaN and infinities for integers; fractions are cut. -1: exception. */
int element_store(void *place, mt_dtype dtype, const mt_scalar *number);

/* The same for a complex type. */
int element_store_complex(void *place, mt_dtype dtype, double real, double imag);

/* A bool, int or float. NULL: exception. */
PyObject *element_load(const void *place, mt_dtype dtype);

/* "torch.FloatTensor" and so on, as torch's messages have it. */
const char *element_type_title(mt_dtype dtype);

#endif /* PYTHON_EXT_TENSORS_DATA_ELEMENT_CODEC_H */
