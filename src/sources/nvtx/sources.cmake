# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_nvtx is made of, with src/sources/collect.
set(MTPROF_NVTX_SOURCES
    src/sources/nvtx/nvtx_collector.c
    src/sources/nvtx/nvtx_names.c)
