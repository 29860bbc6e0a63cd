/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops that read and write elements by index.
 */
#ifndef MINDTORCH_OPS_INDEX_OP_INDEX_SUPPORT_H
#define MINDTORCH_OPS_INDEX_OP_INDEX_SUPPORT_H

#include "mindtorch/ops/op_support.h"

/* An index tensor as kernels take it: int64. MT_ERUNTIME for types other than int32 and int64. */
int mt__index_arg(mt__call *call, mt_tensor *index, mt_tensor **out);

/* The tensor itself, or a view of one dimension where it has none. */
int mt__at_least_1d(mt__call *call, mt_tensor *tensor, mt_tensor **out);

/* All elements of a tensor in one dimension: a view where it is contiguous, else of a copy. */
int mt__flat(mt__call *call, mt_tensor *tensor, mt_tensor **out);

/* The tensor that an op writes, which is result 0: for an in-place row the first argument itself,
 * checked (torch refuses tensors that contain an element twice), else a copy of it. */
int mt__written_result(mt__call *call, mt_tensor **out);

/* The tensor, or a copy of it if it shares the storage of the written tensor. */
int mt__apart_from(mt__call *call, mt_tensor *written, mt_tensor *tensor, mt_tensor **out);

/* A temporary of one type filled with a number, read as `shape` (strides of 0). */
int mt__filled(mt__call *call, mt_dtype dtype, const mt_scalar *number, const mt__shape *shape,
               mt_tensor **out);

/* scatter()'s dimension and index, checked against self and source. */
int mt__scatter_operands(mt__call *call, uint32_t *dim, mt_tensor **index);

/* Writes the source's elements, or what `code` makes of both, where the index says. */
int mt__scatter_into(mt__call *call, mt_tensor *out, uint32_t dim, mt_tensor *index,
                     mt_tensor *source, mt_scatter_mode code);

/* How many elements are not zero; waits for the device. */
int mt__count_nonzero(mt__call *call, mt_tensor *tensor, int64_t *count);

#endif /* MINDTORCH_OPS_INDEX_OP_INDEX_SUPPORT_H */
