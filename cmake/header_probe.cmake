# SPDX-License-Identifier: Apache-2.0
#
# One C11 and one C++17 translation unit per public header, each including it twice: a header that
# needs another one first, has no guard, or is not both languages does not build.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
else()
  message(STATUS "header probe: no C++ compiler, probing public headers as C only")
endif()

function(mt_header_probe library)
  set(folder ${PROJECT_BINARY_DIR}/header_probe)
  set(units_c "")
  set(units_cxx "")
  foreach(header IN LISTS ARGN)
    if(NOT header MATCHES "^include/(.*)\\.h$")
      continue() # a .def list is included by a header, not by users
    endif()
    string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_1}" name)
    set(include_line "#include <${CMAKE_MATCH_1}.h>")
    # The declaration is for -pedantic, which refuses an empty unit.
    set(text "${include_line}\n${include_line}\nextern int mt_probe_${name};\n")
    file(CONFIGURE OUTPUT ${folder}/probe_${name}.c CONTENT "${text}")
    file(CONFIGURE OUTPUT ${folder}/probe_${name}.cpp CONTENT "${text}")
    list(APPEND units_c ${folder}/probe_${name}.c)
    list(APPEND units_cxx ${folder}/probe_${name}.cpp)
  endforeach()
  if(units_c)
    add_library(${library}_probe_c OBJECT ${units_c})
    set_target_properties(${library}_probe_c PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
    mt_header_probe_settings(${library}_probe_c)
  endif()
  if(units_cxx AND CMAKE_CXX_COMPILER)
    add_library(${library}_probe_cxx OBJECT ${units_cxx})
    set_target_properties(${library}_probe_cxx PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
    mt_header_probe_settings(${library}_probe_cxx)
  endif()
endfunction()

function(mt_header_probe_settings target)
  mt_warnings(${target})
  target_compile_options(${target} PRIVATE -pedantic -Wsign-conversion)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${MT_GENERATED})
  if(TARGET mt_generated) # ops.h
    add_dependencies(${target} mt_generated)
  endif()
endfunction()
