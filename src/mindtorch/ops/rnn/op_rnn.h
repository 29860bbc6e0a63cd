/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of recurrent networks: the argument `mode` of mkldnn_rnn_layer and the code of RNN_CELL.
 */
#ifndef MINDTORCH_OPS_RNN_OP_RNN_H
#define MINDTORCH_OPS_RNN_OP_RNN_H

#include "mindtorch/ops/op_support.h"

typedef enum mt__rnn_mode {
    MT_RNN_RELU,
    MT_RNN_TANH,
    MT_RNN_LSTM,
    MT_RNN_GRU,
    MT_RNN_MODES
} mt__rnn_mode;

/* Gates: the weights have so many times `hidden_size` rows. */
MT_INLINE int64_t mt__rnn_gates(mt__rnn_mode mode)
{
    return mode == MT_RNN_LSTM ? 4 : mode == MT_RNN_GRU ? 3 : 1;
}

/* What RNN_CELL keeps for the derivative besides gates and states, in units of hidden_size. */
MT_INLINE int64_t mt__rnn_rest(mt__rnn_mode mode)
{
    return mode == MT_RNN_LSTM ? 2 : mode == MT_RNN_GRU ? 1 : 0;
}

/* One step by ops, which have derivatives of any order. biases: two, or NULL. places: h, and c of
 * an LSTM (before: the same). */
int mt__rnn_step(mt__rnn_mode mode, mt_tensor *input, mt_tensor *const *before,
                 mt_tensor *const weights[2], mt_tensor *const biases[2],
                 mt_tensor **const *places);

/* The numbers of a 1-D int64 tensor that is not empty; they live as long as the call. A
 * device's tensor is waited for.
 */
int mt__rnn_sizes(mt__call *call, uint32_t arg, const int64_t **sizes, int64_t *count);

#endif /* MINDTORCH_OPS_RNN_OP_RNN_H */
