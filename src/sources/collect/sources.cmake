# SPDX-License-Identifier: Apache-2.0
#
# What the collectors (libmtprof_cuda, libmtprof_itt, libmtprof_nvtx) share.
set(MTPROF_COLLECT_SOURCES
    src/sources/collect/collect_names.c
    src/sources/collect/collect_session.c
    src/sources/collect/collect_thread.c)
