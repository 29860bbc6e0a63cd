/* SPDX-License-Identifier: Apache-2.0
 *
 * The derivative of a recurrent layer: one op.
 */
#include "mindtorch/autograd/formulas/formula.h"

/* Places of mkldnn_rnn_layer's tensors among its arguments. */
enum {
    N_PLACES = 7
};

int mt__rnn_layer_backward(mt__backward *b)
{
    const mt_value *a = b->args;
    mt_tensor **places[N_PLACES];
    for (uint32_t i = 0; i < N_PLACES; i++) {
        places[i] = mt__bw_temp(b);
    }
    mt_tensor *rest = b->results[5].kind == MT_KIND_TENSOR ? b->results[5].of.tensor : NULL;
    bool cell = b->n_grads > 2 && a[9].of.integer == 2;
    MT_TRY(mt_mkldnn_rnn_layer_backward(
        a[0].of.tensor, a[1].of.tensor, a[2].of.tensor, b->results[0].of.tensor,
        b->results[3].of.tensor, b->results[4].of.tensor, rest, b->grads[0], b->grads[1],
        cell ? b->grads[2] : NULL, a[7].of.integer != 0, a[8].of.ints, a[8].count, a[9].of.integer,
        places[0], places[1], places[2], places[3], places[4], places[5], places[6]));
    for (uint32_t i = 0; i < N_PLACES; i++) {
        if (*places[i] != NULL && mt__wants(b, i)) {
            mt__bw_give(b, i, *places[i]);
        }
    }
    return MT_OK;
}
