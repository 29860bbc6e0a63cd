# SPDX-License-Identifier: Apache-2.0
#
# The host's kernels. Files of MT_ISA_SOURCES are compiled once for each level of instruction set;
# src/kernels/isa/isa.h says how the right one is found at run time.
include(CheckIncludeFile)

# OpenBLAS and oneDNN are opened at run time where they are (src/kernels/matrix/product.c, onednn.c): what we
# install depends on neither. oneDNN's header is needed here.
check_include_file(dnnl.h MT_HAVE_ONEDNN)
if(NOT MT_HAVE_ONEDNN)
  message(STATUS "oneDNN's headers are not here: convolutions run on our own kernels, slower")
endif()

set(MT_ISA_LEVELS base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND MT_ISA_LEVELS v3 v4)
endif()
set(MT_ISA_FLAGS_base "")
set(MT_ISA_FLAGS_v3 -march=x86-64-v3 -mprefer-vector-width=256)
set(MT_ISA_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)

# Kernels are optimised in debug builds too: tests run them on real sizes.
set(MT_KERNEL_FLAGS -O3 -fno-math-errno -fno-trapping-math)
if(MT_SANITIZE)
  set(MT_KERNEL_FLAGS -O1 -fno-math-errno -fno-trapping-math)
endif()

set(MT_ISA_OBJECTS "")
list(TRANSFORM MT_ISA_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE isa_sources)
foreach(level IN LISTS MT_ISA_LEVELS)
  add_library(mt_isa_${level} OBJECT ${isa_sources})
  mt_settings(mt_isa_${level})
  target_include_directories(mt_isa_${level} PRIVATE include src)
  target_compile_definitions(mt_isa_${level} PRIVATE MT_ISA_LEVEL=${level})
  target_compile_options(mt_isa_${level} PRIVATE ${MT_KERNEL_FLAGS} -ffp-contract=fast
                                                 ${MT_ISA_FLAGS_${level}})
  set_target_properties(mt_isa_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND MT_ISA_OBJECTS $<TARGET_OBJECTS:mt_isa_${level}>)
endforeach()
