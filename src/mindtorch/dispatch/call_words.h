/* SPDX-License-Identifier: Apache-2.0
 *
 * A call as the profiler reports it: the arguments of torch's schema for it, as words (op_trace.h).
 */
#ifndef MINDTORCH_DISPATCH_CALL_WORDS_H
#define MINDTORCH_DISPATCH_CALL_WORDS_H

#include "mindtorch/dispatch/op_row.h"
#include "mindtorch/trace/op_trace.h"

/* Encodes the call in `words`, with strides if they are wanted. If `cut` is set afterwards, the
 * large form (after mt__trace_words_init_large) has more room. */
void mt__call_words(const mt__op_row *row, const mt_value *args, bool strides,
                    mt__trace_words *words);

void mt__call_words_large(const mt__op_row *row, const mt_value *args, bool strides,
                          mt__trace_words *words);

/* The same for tensors only, NULL for absent ones: the gradients that a node of the graph gets. */
void mt__tensor_words(mt_tensor *const *tensors, uint32_t count, bool strides,
                      mt__trace_words *words);
void mt__tensor_words_large(mt_tensor *const *tensors, uint32_t count, bool strides,
                            mt__trace_words *words);

/* Identity of a call's first `most` tensors, lists included; returns how many there are. First
 * those that mt__call_words() shows, in the same order, then other arguments, then the gradients of
 * parameters among them (MT_TRACE_NOT_READ). */
uint32_t mt__call_refs(const mt__op_row *row, const mt_value *args, mt__trace_ref *refs,
                       uint32_t most);

/* The same for results. */
uint32_t mt__result_refs(const mt_value *results, uint32_t count, mt__trace_ref *refs,
                         uint32_t most);

/* role: MT_TRACE_ROLE_*. */
mt__trace_ref mt__tensor_ref(const mt_tensor *tensor, uint16_t role);

#endif /* MINDTORCH_DISPATCH_CALL_WORDS_H */
