# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_torch is made of.
set(MTPROF_TORCH_SOURCES
    src/hosts/flops.c
    src/hosts/torch/torch_host.c
    src/hosts/torch/torch_inputs.c
    src/hosts/torch/torch_known.c
    src/hosts/torch/torch_layout.c
    src/hosts/torch/torch_library.c
    src/hosts/torch/torch_memory.c
    src/hosts/torch/torch_observer.c
    src/hosts/torch/torch_sites.c
    src/hosts/torch/torch_tensors.c)
set(MTPROF_TORCH_PUBLIC_HEADERS include/mtprof/torch.h)
