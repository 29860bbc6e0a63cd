# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_cuda is made of, with src/sources/collect; it links with libmtprof_cupti.
set(MTPROF_CUDA_SOURCES src/sources/cuda/cuda_collector.c)
