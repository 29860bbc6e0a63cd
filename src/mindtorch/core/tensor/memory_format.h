/* SPDX-License-Identifier: Apache-2.0
 *
 * Channels last: images [N, C, H, W] and volumes [N, C, D, H, W] whose channels are innermost in
 * memory. It is an order of strides and nothing else.
 */
#ifndef MINDTORCH_CORE_TENSOR_MEMORY_FORMAT_H
#define MINDTORCH_CORE_TENSOR_MEMORY_FORMAT_H

#include "mindtorch/core/tensor/tensor_impl.h"

/* The dimensions from the outermost to the innermost: N, H, W, C. */
void mt__channels_last_order(uint32_t n_dims, uint32_t *order);

/* MT_ERUNTIME unless it is a format for this many dimensions. */
int mt__need_format(int64_t format, uint32_t n_dims);

/* Whether strides say "channels last" by torch's rule, which results follow: of those that fit both
 * formats (one channel, images of one element) some do not. */
bool mt__is_channels_last(const mt_tensor *tensor);

#endif /* MINDTORCH_CORE_TENSOR_MEMORY_FORMAT_H */
