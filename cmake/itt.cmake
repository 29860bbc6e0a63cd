# SPDX-License-Identifier: Apache-2.0
#
# libmtprof_itt: a collector that programs with ITT in them open at run time (INTEL_LIBITTNOTIFY64).
include(src/sources/itt/sources.cmake)
list(TRANSFORM MTPROF_ITT_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE itt_sources)
# base is hidden in libmtprof.so: this library has its own copy of what it uses.
set(itt_base alloc lock)
list(TRANSFORM itt_base REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/base/\\1.c")
add_library(mtprof_itt SHARED ${itt_sources} ${itt_base})
mt_settings(mtprof_itt)
target_include_directories(mtprof_itt PRIVATE include src)
target_link_libraries(mtprof_itt PRIVATE mtprof Threads::Threads)
# It is opened by its path, which people write into a variable: one name, without a version.
set_target_properties(mtprof_itt PROPERTIES OUTPUT_NAME mtprof_itt)
mt_find_beside(mtprof_itt)
# nodelete: the program keeps the pointers that it was given.
target_link_options(mtprof_itt PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})
