/* SPDX-License-Identifier: Apache-2.0
 *
 * Short words for derivatives. A step calls an op and leaves its result in the latest place:
 *
 *     MT_TRY(mt_exp(mt__bw_arg(b, 0), MT_STEP(b)));
 *     MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
 *     return mt__bw_give_last(b, 0);
 */
#ifndef MINDTORCH_AUTOGRAD_FORMULAS_FORMULA_H
#define MINDTORCH_AUTOGRAD_FORMULAS_FORMULA_H

#include "mindtorch/autograd/formulas/backward.h"

/* mt__<name>() where formulas differ in a helper's arguments alone. */
#define MT_FORMULA(name, helper, ...)  \
    int mt__##name(mt__backward *b)    \
    {                                  \
        return helper(b, __VA_ARGS__); \
    }

/* Where the next step's result goes; released when the formula is done. */
#define MT_STEP(b) mt__bw_temp(b)

/* The gradient of result 0: there is one in formulas of ops with one result (BF2). */
MT_INLINE mt_tensor *mt__bw_grad(const mt__backward *b)
{
    return b->grads[0];
}

MT_INLINE mt_tensor *mt__bw_arg(const mt__backward *b, uint32_t i)
{
    return b->args[i].of.tensor;
}

/* The same for an argument that may be absent, or not saved: NULL then. */
MT_INLINE mt_tensor *mt__bw_optional_arg(const mt__backward *b, uint32_t i)
{
    return b->args[i].kind == MT_KIND_TENSOR ? b->args[i].of.tensor : NULL;
}

MT_INLINE mt_tensor *mt__bw_result(const mt__backward *b, uint32_t i)
{
    return b->results[i].of.tensor;
}

MT_INLINE int64_t mt__bw_int(const mt__backward *b, uint32_t i)
{
    return b->args[i].of.integer;
}

/* The shape of a tensor argument, saved or not. */
MT_INLINE const mt__shape *mt__bw_shape(const mt__backward *b, uint32_t arg)
{
    return &mt__input_meta(b, mt__input_of(b, arg))->shape;
}

/* Gives argument `arg` the latest step's result. */
MT_INLINE int mt__bw_give_last(mt__backward *b, uint32_t arg)
{
    mt__bw_give(b, arg, mt__bw_last(b));
    return MT_OK;
}

/* Sets the gradient of argument `arg` to zeros, if it is wanted. */
int mt__bw_give_zeros(mt__backward *b, uint32_t arg);

/* ---- for FORMULA lines: steps with boxed arguments ---- */

/* A call of one of our ops (op_numbers.h). The result is a temporary. */
int mt__bw_call(mt__backward *b, uint32_t op, const mt_value *args, mt_tensor **out);

/* scaled(x, factor): x * factor; x itself where the factor is the number 1. */
int mt__bw_scaled(mt__backward *b, const mt_value *args, mt_tensor **out);

/* times_conj(x, y), over_conj(x, y): x times, or divided by, the conjugate of y, which is y itself
 * where it is not complex. */
int mt__bw_times_conj(mt__backward *b, const mt_value *args, mt_tensor **out);
int mt__bw_over_conj(mt__backward *b, const mt_value *args, mt_tensor **out);

/* conj_of(x): the conjugate of a complex tensor; others as they are. */
int mt__bw_conj_of(mt__backward *b, const mt_value *args, mt_tensor **out);

/* The same for a tensor. */
int mt__bw_conjugate(mt__backward *b, mt_tensor *tensor, mt_tensor **out);

/* zeros_of(sizes), in the gradient's type. */
int mt__bw_zeros_of(mt__backward *b, const mt_value *args, mt_tensor **out);

/* zeros_for(argument): zeros of its sizes, type and device. */
int mt__bw_zeros_for(mt__backward *b, uint32_t arg, mt_tensor **out);

/* moved_to(argument): the gradient in its type, on its device. */
int mt__bw_moved_to(mt__backward *b, uint32_t arg, mt_tensor **out);

/* Formulas of single ops. */
int mt__bw_lerp_self(mt__backward *b, const mt_value *args, mt_tensor **out);
int mt__bw_curved(mt__backward *b, const mt_value *args, mt_tensor **out);
int mt__bw_weighted(mt__backward *b, const mt_value *args, mt_tensor **out);

/* sizes(argument) */
MT_INLINE mt_value mt__bw_sizes(const mt__backward *b, uint32_t arg)
{
    const mt__shape *shape = mt__bw_shape(b, arg);
    return (mt_value){.kind = MT_KIND_INTS, .count = shape->n_dims, .of.ints = shape->sizes};
}

#endif /* MINDTORCH_AUTOGRAD_FORMULAS_FORMULA_H */
