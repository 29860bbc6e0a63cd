# SPDX-License-Identifier: Apache-2.0
#
# libmtprof_cuda, libmtprof_itt and libmtprof_nvtx: collectors that programs with CUDA, ITT or NVTX in them open at
# run time (CUDA_INJECTION64_PATH, INTEL_LIBITTNOTIFY64, NVTX_INJECTION64_PATH).
include(src/sources/collect/sources.cmake)
include(src/sources/cuda/sources.cmake)
include(src/sources/itt/sources.cmake)
include(src/sources/nvtx/sources.cmake)

# base is hidden in libmtprof.so: these libraries have their own copies of what they use.
set(collector_base src/base/alloc.c src/base/lock.c)

foreach(name IN ITEMS cuda itt nvtx)
  string(TOUPPER ${name} upper)
  set(MTPROF_${upper}_FILES ${MTPROF_${upper}_SOURCES} ${MTPROF_COLLECT_SOURCES})
  list(TRANSFORM MTPROF_${upper}_FILES PREPEND "${PROJECT_SOURCE_DIR}/")
  list(TRANSFORM collector_base PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE base_files)
  add_library(mtprof_${name} SHARED ${MTPROF_${upper}_FILES} ${base_files})
  mt_settings(mtprof_${name})
  target_include_directories(mtprof_${name} PRIVATE include src)
  target_link_libraries(mtprof_${name} PRIVATE mtprof Threads::Threads)
  # It is opened by its path, which people write into a variable: one name, without a version.
  set_target_properties(mtprof_${name} PROPERTIES OUTPUT_NAME mtprof_${name})
  mt_find_beside(mtprof_${name})
  # nodelete: the program keeps the pointers that it was given.
  target_link_options(mtprof_${name} PRIVATE -Wl,-z,nodelete ${MT_NO_UNDEFINED})
endforeach()
target_sources(mtprof_cuda PRIVATE src/base/shared_object.c)
target_link_libraries(mtprof_cuda PRIVATE mtprof_cupti ${CMAKE_DL_LIBS})
