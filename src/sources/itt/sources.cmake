# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_itt is made of, with src/sources/collect.
set(MTPROF_ITT_SOURCES
    src/sources/itt/itt_collector.c
    src/sources/itt/itt_counters.c
    src/sources/itt/itt_ranges.c)
