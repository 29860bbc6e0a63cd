# SPDX-License-Identifier: Apache-2.0
#
# What libmtprof_itt is made of.
set(MTPROF_ITT_SOURCES src/sources/itt/itt_collector.c)
