# SPDX-License-Identifier: Apache-2.0
#
# libmtprof_torch: stock PyTorch as a host. It needs nothing of PyTorch, neither to build nor to link.
include(src/hosts/torch/sources.cmake)
list(TRANSFORM MTPROF_TORCH_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE torch_sources)
# base is hidden in libmtprof.so: this library has its own copy of what it uses.
set(torch_base alloc fail lock shared_object)
list(TRANSFORM torch_base REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/base/\\1.c")
add_library(mtprof_torch SHARED ${torch_sources} ${torch_base})
add_library(mtprof::mtprof_torch ALIAS mtprof_torch)
mt_settings(mtprof_torch)
target_include_directories(mtprof_torch PRIVATE include src)
target_link_libraries(mtprof_torch PUBLIC mtprof PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(mtprof_torch PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
mt_find_beside(mtprof_torch)
# nodelete: torch may call an observer after it was removed (HT2 of torch_impl.h).
target_link_options(mtprof_torch PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})
