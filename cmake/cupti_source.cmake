# SPDX-License-Identifier: Apache-2.0
#
# libmtprof_cupti: what NVIDIA's GPUs did. It needs nothing of CUDA, neither to build nor to link.
include(src/sources/cupti/sources.cmake)
list(TRANSFORM MTPROF_CUPTI_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE cupti_sources)
# base is hidden in libmtprof.so: this library has its own copy of what it uses.
set(cupti_base alloc fail lock pages shared_object)
list(TRANSFORM cupti_base REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/base/\\1.c")
add_library(mtprof_cupti SHARED ${cupti_sources} ${cupti_base})
add_library(mtprof::mtprof_cupti ALIAS mtprof_cupti)
mt_settings(mtprof_cupti)
target_include_directories(mtprof_cupti PRIVATE include src)
target_link_libraries(mtprof_cupti PUBLIC mtprof PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(mtprof_cupti PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
mt_find_beside(mtprof_cupti)
# nodelete: a thread of CUPTI may be in it (CU4 of cupti_impl.h).
target_link_options(mtprof_cupti PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})
