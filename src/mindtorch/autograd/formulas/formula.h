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

/* Gives argument `arg` the latest step's result. */
MT_INLINE int mt__bw_give_last(mt__backward *b, uint32_t arg)
{
    mt__bw_give(b, arg, mt__bw_last(b));
    return MT_OK;
}

/* Sets the gradient of argument `arg` to zeros, if it is wanted. */
int mt__bw_give_zeros(mt__backward *b, uint32_t arg);

/* A step: x times an operand, x divided by one; each a tensor or a number. */
int mt__bw_times(mt__backward *b, mt_tensor *x, const mt_value *operand);
int mt__bw_over(mt__backward *b, mt_tensor *x, const mt_value *operand);

/* A step: x * factor; x itself where the factor is the number 1. */
int mt__bw_scaled(mt__backward *b, mt_tensor *x, const mt_scalar *factor);

#endif /* MINDTORCH_AUTOGRAD_FORMULAS_FORMULA_H */
