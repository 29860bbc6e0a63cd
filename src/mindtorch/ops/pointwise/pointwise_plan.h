/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a pointwise op:
 *
 *     operands (tensors, numbers) ─► one shape (broadcast), one type (promotion, conversion)
 *         ─► result: new, laid out like the first operand of full size; or the first argument
 *         ─► one kernel over strided views
 *
 *   PW1  For an in-place op the result's type must be castable to self's, the broadcast shape must
 *        be self's, and self must not contain an element twice. Operands that overlap self without
 *        being the same view are copied first.
 *   PW2  If all tensors are contiguous, kernels get views of one dimension.
 */
#ifndef MINDTORCH_OPS_POINTWISE_POINTWISE_PLAN_H
#define MINDTORCH_OPS_POINTWISE_POINTWISE_PLAN_H

#include "mindtorch/ops/op_support.h"

enum {
    MT_MAX_OPERANDS = 3
};

typedef struct mt__pointwise {
    mt_kernel kernel; /* UNARY, BINARY or TERNARY */
    uint16_t code;
    uint8_t n_operands;
    uint8_t leader;       /* the operand that comes first in shapes, messages and layout */
    bool has_condition;   /* operand 0 is bool and stays so */
    mt_dtype compute;     /* the type to which operands are converted */
    mt_dtype result;      /* what the kernel writes */
    uint32_t n_scalars;   /* UNARY and TERNARY: those that are not operands */
    mt_scalar scalars[2]; /* UNARY: s[0], s[1]; BINARY: alpha; TERNARY: value */
    const mt_value *operands[MT_MAX_OPERANDS];
} mt__pointwise;

/* Runs it; the result is result 0 of the call, in place if the row says so. */
int mt__pointwise_run(mt__call *call, const mt__pointwise *what);

/* FILL, on the tensor's own device. The number is converted to its type. */
int mt__fill(mt_tensor *tensor, const mt_scalar *number);

/* A copy of `self` as result 0 in a format other than PRESERVE. */
int mt__result_format(mt__call *call, mt_tensor *self, mt_memory_format format);

/* A copy of `self` as result 0, converted to `dtype`, on the call's device. */
int mt__result_copy(mt__call *call, mt_tensor *self, mt_dtype dtype);

/* One kernel over contiguous tensors of numel elements each: the fast path of small ops. tensors[0]
 * is written. form and scalars as in kernels.def for BINARY; UNARY and COPY use neither. */
int mt__pointwise_flat(mt__call *call, mt_kernel kernel, uint16_t code, uint32_t n_tensors,
                       mt_tensor *const *tensors, int64_t form, const mt_scalar scalars[2]);

/* A new dense result whose dimensions have the same order in memory as those of `like`, as in
 * torch. */
int mt__result_laid_out(mt__call *call, uint32_t i, mt_dtype dtype, const mt__shape *shape,
                        const mt_tensor *like);

/* PW1: MT_ERUNTIME if an element is contained twice. */
int mt__check_writable(const mt_tensor *self);

/* Whether writing `out` may change elements of `in`; equal views of one storage do not count. */
bool mt__overlaps_badly(const mt_tensor *out, const mt_tensor *in);

/* MT_ERUNTIME: "result type Float can't be cast to the desired output type Long". */
int mt__check_castable(mt_dtype from, mt_dtype to);

MT_INLINE bool mt__is_in_place(const mt__call *call)
{
    return (call->row->flags & MT_OP_INPLACE) != 0;
}

MT_INLINE bool mt__is_number(const mt_value *value)
{
    return value->kind != MT_KIND_TENSOR;
}

/* Bits of types, for tables of what an op takes. */
enum {
    MT_TYPES_BOOL = 1 << MT_DTYPE_BOOL,
    MT_TYPES_INT = 1 << MT_DTYPE_U8 | 1 << MT_DTYPE_I8 | 1 << MT_DTYPE_I16 | 1 << MT_DTYPE_I32 |
                   1 << MT_DTYPE_I64, /* uint16, uint32, uint64: see mt__check_unsigned() */
    MT_TYPES_REAL = 1 << MT_DTYPE_F16 | 1 << MT_DTYPE_BF16 | 1 << MT_DTYPE_F32 | 1 << MT_DTYPE_F64,
    MT_TYPES_NUMBER = MT_TYPES_INT | MT_TYPES_REAL,
    MT_TYPES_ALL = MT_TYPES_BOOL | MT_TYPES_NUMBER
};

#endif /* MINDTORCH_OPS_POINTWISE_POINTWISE_PLAN_H */
