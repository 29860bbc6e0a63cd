/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of a custom function as nodes and engine see it. See function.c.
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_FUNCTION_CALL_H
#define MINDTORCH_AUTOGRAD_GRAPH_FUNCTION_CALL_H

#include <mindtorch/autograd.h>

const char *mt__function_call_name(const mt_function_call *call);
void mt__function_release_saved(mt_function_call *call);
void mt__function_call_free(mt_function_call *call);

/* The user's backward. grads_in: NULL at entry. */
int mt__function_backward(mt_function_call *call, mt_tensor *const *grads, uint32_t n_grads,
                          mt_tensor **grads_in, uint32_t n_inputs);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_FUNCTION_CALL_H */
