# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_cupti is made of.
set(MTPROF_CUPTI_SOURCES
    src/sources/cupti/cupti_buffers.c
    src/sources/cupti/cupti_calls.c
    src/sources/cupti/cupti_devices.c
    src/sources/cupti/cupti_edges.c
    src/sources/cupti/cupti_graphs.c
    src/sources/cupti/cupti_joins.c
    src/sources/cupti/cupti_library.c
    src/sources/cupti/cupti_names.c
    src/sources/cupti/cupti_records.c
    src/sources/cupti/cupti_source.c)
set(MTPROF_CUPTI_PUBLIC_HEADERS include/mtprof/cupti.h)
