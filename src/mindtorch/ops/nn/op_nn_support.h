/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of layers and losses: checks with torch's messages, views for kernels that need other
 * sizes, and pointwise kernels over tensors that already have one type and size.
 *
 * Tensors given through `out` belong to the call. None of these is recorded in a graph: they are
 * for leaves.
 */
#ifndef MINDTORCH_OPS_NN_OP_NN_SUPPORT_H
#define MINDTORCH_OPS_NN_OP_NN_SUPPORT_H

#include "mindtorch/ops/op_support.h"

/* MT_ENOTSUP unless it is float32 or float64. */
int mt__need_real(const mt__call *call, mt_dtype dtype);

/* In which type a norm computes and has its statistics: the input's, of which all parameters (NULL
 * where absent) must be, or float32 for a half type with parameters of float32. */
int mt__norm_type(const mt_tensor *input, mt_tensor *const *parameters, uint32_t count,
                  mt_dtype *compute);

/* MT_ERUNTIME "expected scalar type Float but found Double". */
int mt__need_type(const mt_tensor *tensor, mt_dtype dtype);

/* MT_ERUNTIME if a graph is recorded and the argument, which has no derivative, requires a
 * gradient. */
int mt__need_constant(const mt__call *call, uint32_t arg);

/* MT_ERUNTIME for a dropout probability that is none. */
int mt__need_probability(double p);

/* MT_EVALUE unless it is one of mt__reduction. */
int mt__need_reduction(int64_t reduction);

/* A contiguous tensor with other sizes of as many elements. */
int mt__nn_view(mt__call *call, mt_tensor *tensor, const int64_t *sizes, uint32_t n_dims,
                mt_tensor **out);

/* The tensor in another type and repeated to `shape`, to which it broadcasts. */
int mt__nn_operand(mt__call *call, mt_tensor *tensor, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out);

/* Pointwise, sizes and types equal; out may be an operand. */
int mt__nn_unary(mt__call *call, mt_unary code, mt_tensor *out, mt_tensor *in);
int mt__nn_clamp(mt__call *call, mt_tensor *out, mt_tensor *in, const double *lower,
                 const double *upper);
int mt__nn_binary(mt__call *call, mt_binary code, mt_tensor *out, mt_tensor *a, mt_tensor *b,
                  double alpha);
int mt__nn_binary_scalar(mt__call *call, mt_binary code, mt_tensor *out, mt_tensor *a, double b);

/* Where losses put their elements: result 0 itself without reduction, else a temporary. */
int mt__loss_elements(mt__call *call, int64_t reduction, mt_dtype dtype, const mt__shape *shape,
                      mt_tensor **out);

/* Gives result 0 from the (contiguous) elements of a loss. */
int mt__loss_reduce(mt__call *call, int64_t reduction, mt_tensor *elements);

/* The same of elements that ops have made, by mean() and sum(), which can be differentiated. */
int mt__loss_mean_or_sum(mt__call *call, mt_tensor *elements, int64_t reduction);

/* What a mean divides by; 1 for the other reductions. */
MT_INLINE double mt__loss_divisor(int64_t reduction, int64_t numel)
{
    return reduction == MT_REDUCTION_MEAN ? (double)numel : 1.0;
}

#endif /* MINDTORCH_OPS_NN_OP_NN_SUPPORT_H */
