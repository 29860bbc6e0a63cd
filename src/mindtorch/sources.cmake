# SPDX-License-Identifier: Apache-2.0
#
# What libmindtorch is made of, by stage. Explicit on purpose: a file that is not listed here is not
# built.
set(MINDTORCH_SOURCES
    src/mindtorch/trace/flops.c
    src/mindtorch/trace/op_trace.c
    # core
    src/mindtorch/core/backends.c
    src/mindtorch/core/device.c
    src/mindtorch/core/dtype.c
    src/mindtorch/core/memory.c
    src/mindtorch/core/pool.c
    src/mindtorch/core/random.c
    src/mindtorch/core/shape.c
    src/mindtorch/core/status_text.c
    src/mindtorch/core/storage.c
    src/mindtorch/core/tensor.c
    src/mindtorch/core/thread_cache.c
    src/mindtorch/core/thread_state.c
    src/mindtorch/core/value.c
    # dispatch
    src/mindtorch/dispatch/dispatch.c
    src/mindtorch/dispatch/op_api.c
    src/mindtorch/dispatch/schema.c
    src/mindtorch/dispatch/typed_results.c
    src/mindtorch/dispatch/user_ops.c
    # ops
    src/mindtorch/ops/op_batch_norm.c
    src/mindtorch/ops/op_binary.c
    src/mindtorch/ops/op_copy.c
    src/mindtorch/ops/op_create.c
    src/mindtorch/ops/op_cross_entropy.c
    src/mindtorch/ops/op_dropout.c
    src/mindtorch/ops/op_embedding.c
    src/mindtorch/ops/op_equal.c
    src/mindtorch/ops/op_extreme.c
    src/mindtorch/ops/op_layer_norm.c
    src/mindtorch/ops/op_loss.c
    src/mindtorch/ops/op_loss_bce.c
    src/mindtorch/ops/op_matmul.c
    src/mindtorch/ops/op_matrix.c
    src/mindtorch/ops/op_nll_loss.c
    src/mindtorch/ops/op_nn_support.c
    src/mindtorch/ops/op_norm.c
    src/mindtorch/ops/op_optim.c
    src/mindtorch/ops/op_random.c
    src/mindtorch/ops/op_reduce.c
    src/mindtorch/ops/op_sample.c
    src/mindtorch/ops/op_softmax.c
    src/mindtorch/ops/op_split.c
    src/mindtorch/ops/op_support.c
    src/mindtorch/ops/op_ternary.c
    src/mindtorch/ops/op_unary.c
    src/mindtorch/ops/op_view.c
    src/mindtorch/ops/op_view_backward.c
    src/mindtorch/ops/pointwise_plan.c
    src/mindtorch/ops/reduce_plan.c
    src/mindtorch/ops/type_names.c
    src/mindtorch/ops/view_geometry.c
    # autograd
    src/mindtorch/autograd/derive_loss.c
    src/mindtorch/autograd/derive_matrix.c
    src/mindtorch/autograd/derive_nn.c
    src/mindtorch/autograd/derive_view.c
    # optim
    src/mindtorch/optim/clip_grad_norm.c
    src/mindtorch/optim/optimizer.c
    src/mindtorch/optim/optimizer_options.c
    # the CPU's backend
    src/backends/cpu/cpu_backend.c
    src/backends/cpu/cpu_threads.c
)

# Kernels in host memory.
set(MT_KERNEL_SOURCES
    src/kernels/gemm.c
    src/kernels/index_gather.c
    src/kernels/index_mask.c
    src/kernels/index_read.c
    src/kernels/index_rows.c
    src/kernels/index_walk.c
    src/kernels/index_write.c
    src/kernels/join_cat.c
    src/kernels/onednn.c
    src/kernels/product.c
    src/kernels/scratch.c
    src/kernels/sort_keys.c
    src/kernels/sort_rows.c
)

# Kernels compiled for each level of instruction set (src/kernels/isa.h).
set(MT_ISA_SOURCES
    src/kernels/isa/product_loops.c
)

set(MINDTORCH_PUBLIC_HEADERS
    include/mindtorch/autograd.h
    include/mindtorch/backend.h
    include/mindtorch/device.h
    include/mindtorch/dtype.def
    include/mindtorch/dtype.h
    include/mindtorch/export.h
    include/mindtorch/generator.h
    include/mindtorch/kernel_codes.h
    include/mindtorch/kernels.def
    include/mindtorch/mindtorch.h
    include/mindtorch/op.h
    include/mindtorch/optim.h
    include/mindtorch/status.def
    include/mindtorch/status.h
    include/mindtorch/tensor.h
    include/mindtorch/value.h
)
