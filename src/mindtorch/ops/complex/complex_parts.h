/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of complex numbers share.
 */
#ifndef MINDTORCH_OPS_COMPLEX_COMPLEX_PARTS_H
#define MINDTORCH_OPS_COMPLEX_COMPLEX_PARTS_H

#include "mindtorch/ops/op_support.h"

/* complex64 for float32, and for types that become the default type; complex128 for float64. */
mt_dtype mt__complex_type(mt_dtype dtype);

/* float32 for complex64, float64 for complex128; other types as they are. */
mt_dtype mt__part_type(mt_dtype dtype);

MT_INLINE bool mt__is_complex(const mt_tensor *tensor)
{
    return mt__tensor_category(tensor) == MT_CATEGORY_COMPLEX;
}

/* An operand (a tensor or a number) as a tensor of the type, on the call's device. */
int mt__complex_operand(mt__call *call, const mt_value *value, mt_dtype dtype, mt_tensor **out);

/* The kernel COMPLEX over one or two tensors of type `compute`; result 0, in place or new. */
int mt__complex_launch(mt__call *call, mt_complex_code code, mt_tensor *const *operands,
                       uint32_t count, mt_dtype compute, mt_dtype result, const mt_scalar *alpha);

/* view_as_real() and view_as_complex() of tensors to which nothing else refers: the results share
 * the memory alone, and autograd does not see it. */
int mt__complex_apart(mt_tensor *self, mt_tensor **out);
int mt__complex_joined(mt_tensor *parts, mt_tensor **out);

/* What complex_ops.def names. */
#define X(id, way, gradients) int mt__complex_##way(mt__call *call);
#include "mindtorch/ops/complex/complex_ops.def"
#undef X

#endif /* MINDTORCH_OPS_COMPLEX_COMPLEX_PARTS_H */
