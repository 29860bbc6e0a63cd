# SPDX-License-Identifier: Apache-2.0
#
# What libmindtorch is made of, by stage. Explicit on purpose: a file that is not listed here is not
# built.
set(MINDTORCH_SOURCES
    src/mindtorch/trace/flops.c
    src/mindtorch/trace/trace.c
    # core
    # dispatch
    src/mindtorch/dispatch/dispatch.c
    src/mindtorch/dispatch/op_api.c
    src/mindtorch/dispatch/schema.c
    src/mindtorch/dispatch/typed.c
    src/mindtorch/dispatch/user_ops.c
    # ops
    src/mindtorch/ops/op_support.c
    # autograd
    # optim
    # the CPU's backend
)

# Kernels in host memory.
set(MT_KERNEL_SOURCES
    src/kernels/gemm.c
    src/kernels/onednn.c
    src/kernels/product.c
    src/kernels/scratch.c
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
