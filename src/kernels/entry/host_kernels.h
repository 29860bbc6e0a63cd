/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels in host memory, one function for each row of kernels.def, shared by the backends whose
 * memory the host can read. Each is what mt_kernel_fn asks for; context and stream are not used.
 */
#ifndef KERNELS_ENTRY_HOST_KERNELS_H
#define KERNELS_ENTRY_HOST_KERNELS_H

#include <mindtorch/backend.h>

#define MT_HOST_KERNEL(name) \
    int mt__host_##name(void *, mt_backend_stream *, const mt_kernel_call *)

/* elementwise */
MT_HOST_KERNEL(fill);
MT_HOST_KERNEL(copy);
MT_HOST_KERNEL(arange);
MT_HOST_KERNEL(eye);
MT_HOST_KERNEL(triangle);
MT_HOST_KERNEL(unary);
MT_HOST_KERNEL(binary);
MT_HOST_KERNEL(ternary);
/* reductions */
MT_HOST_KERNEL(reduce);
MT_HOST_KERNEL(reduce_index);
MT_HOST_KERNEL(var_mean);
MT_HOST_KERNEL(cumsum);
MT_HOST_KERNEL(cumprod);
/* rows */
MT_HOST_KERNEL(softmax);
MT_HOST_KERNEL(softmax_backward);
MT_HOST_KERNEL(layer_norm);
MT_HOST_KERNEL(layer_norm_backward);
MT_HOST_KERNEL(batch_norm);
MT_HOST_KERNEL(batch_norm_backward);
MT_HOST_KERNEL(nll_loss);
MT_HOST_KERNEL(nll_loss_backward);
/* matrices, images, attention */
MT_HOST_KERNEL(gemm);
MT_HOST_KERNEL(conv);
MT_HOST_KERNEL(conv_backward_input);
MT_HOST_KERNEL(conv_backward_weight);
MT_HOST_KERNEL(max_pool);
MT_HOST_KERNEL(max_pool_backward);
MT_HOST_KERNEL(avg_pool);
MT_HOST_KERNEL(avg_pool_backward);
MT_HOST_KERNEL(adaptive_avg_pool);
MT_HOST_KERNEL(adaptive_avg_pool_backward);
MT_HOST_KERNEL(adaptive_max_pool);
MT_HOST_KERNEL(attention);
MT_HOST_KERNEL(attention_backward);
/* indexing */
MT_HOST_KERNEL(index_select);
MT_HOST_KERNEL(index_add);
MT_HOST_KERNEL(gather);
MT_HOST_KERNEL(scatter);
MT_HOST_KERNEL(index);
MT_HOST_KERNEL(index_put);
MT_HOST_KERNEL(nonzero);
MT_HOST_KERNEL(masked_select);
MT_HOST_KERNEL(masked_scatter);
MT_HOST_KERNEL(sort);
MT_HOST_KERNEL(topk);
MT_HOST_KERNEL(cat);
MT_HOST_KERNEL(embedding_backward);
/* random */
MT_HOST_KERNEL(random);
MT_HOST_KERNEL(randperm);
MT_HOST_KERNEL(dropout);
/* optimizers */
MT_HOST_KERNEL(sgd);
MT_HOST_KERNEL(adam);
MT_HOST_KERNEL(rmsprop);
MT_HOST_KERNEL(adagrad);

#endif /* KERNELS_ENTRY_HOST_KERNELS_H */
