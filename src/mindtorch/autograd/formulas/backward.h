/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface for derivative formulas, with an example (which in fact is a FORMULA line).
 *
 *     DERIVATIVE("MulBackward0", ARG(0) | ARG(1), mul_backward)    ops_pointwise.def
 *
 *     int mt__mul_backward(mt__backward *b)
 *     {
 *         if (mt__wants(b, 0)) {                                     // d self = grad * other
 *             MT_TRY(mt_mul(b->grads[0], b->args[1].of.tensor, mt__bw_temp(b)));
 *             mt__bw_give(b, 0, mt__bw_last(b));   // the engine sums it to self's shape
 *         }
 *         ...
 *     }
 *
 *   BF1  Formulas call ops through ops.h, so they are profiled, run on any device, and with
 *        create_graph are differentiated themselves.
 *   BF2  grads[i] is NULL, which means zero, if nothing depended on result i.
 *   BF3  args[i] is the argument of the forward call: numbers and lists always; a tensor only if
 *        the row saves it (else kind NONE), with the version that it had. The same holds for
 *        results[i].
 *   BF4  Inputs have flat numbers: each tensor argument is one input, a list of tensors is as many
 *        inputs as it has tensors. mt__input_of() gives the number of an argument's first tensor.
 */
#ifndef MINDTORCH_AUTOGRAD_FORMULAS_BACKWARD_H
#define MINDTORCH_AUTOGRAD_FORMULAS_BACKWARD_H

#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "mindtorch/dispatch/op_row.h"
#include "op_numbers.h"
#include "private_ops.h"

#include <mindtorch/autograd.h>
#include <mindtorch/ops.h>

enum {
    MT_MAX_BACKWARD_TEMPS = 48
};

/* Properties of a forward tensor that was not saved. */
typedef struct mt__meta {
    mt__shape shape;
    uint8_t dtype;
    bool turned; /* column-major in its last two dimensions: strides[n - 2] == 1 < strides[n - 1] */
    mt_device device;
} mt__meta;

struct mt__backward {
    mt_node *node;
    const mt_value *args;    /* BF3 */
    const mt_value *results; /* BF3: kind NONE unless saved */
    mt_tensor *const *grads; /* BF2, one for each result (lists: flat) */
    uint32_t n_grads;
    uint32_t n_inputs;
    mt_tensor **grads_in; /* n_inputs places, NULL at entry; set with mt__bw_give */
    const bool *wanted;   /* n_inputs */
    uint32_t n_temps;
    mt_tensor **place; /* of the step that is under way (derive_linalg.h) */
    mt_tensor *temps[MT_MAX_BACKWARD_TEMPS];
};

/* Number of the first flat input of argument `arg` (BF4). */
uint32_t mt__input_of(const mt__backward *b, uint32_t arg);

/* Shape, type and device of flat input `input`, of result `result`. */
const mt__meta *mt__input_meta(const mt__backward *b, uint32_t input);
const mt__meta *mt__result_meta(const mt__backward *b, uint32_t result);

/* Strides and offset of the first argument of a VIEW row as the forward saw it; NULL for others. */
typedef struct mt__geometry {
    int64_t offset;
    int64_t strides[MT_MAX_DIMS];
} mt__geometry;
const mt__geometry *mt__self_geometry(const mt__backward *b);

/* Whether argument `arg` (a tensor) wants a gradient. */
bool mt__wants(const mt__backward *b, uint32_t arg);

/* A place for a tensor that is released when the formula is done. */
MT_INLINE mt_tensor **mt__bw_temp(mt__backward *b)
{
    MT_ASSERT(b->n_temps < MT_MAX_BACKWARD_TEMPS);
    mt_tensor **place = &b->temps[b->n_temps++];
    *place = NULL;
    return place;
}

/* The latest temporary that is not NULL. (In `f(mt__bw_last(b), mt__bw_temp(b))` the compiler may
 * take the new, empty place first.) */
MT_INLINE mt_tensor *mt__bw_last(const mt__backward *b)
{
    uint32_t i = b->n_temps;
    while (i > 1 && b->temps[i - 1] == NULL) {
        i--;
    }
    return b->temps[i - 1];
}

/* Sets the gradient of argument `arg` (retained here). If the argument was broadcast, the engine
 * sums the gradient to its shape, and converts it to its type, after the node has run: that is
 * where torch's profiles show it.
 */
void mt__bw_give(mt__backward *b, uint32_t arg, mt_tensor *grad);

#endif /* MINDTORCH_AUTOGRAD_FORMULAS_BACKWARD_H */
