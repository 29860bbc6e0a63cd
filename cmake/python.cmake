# SPDX-License-Identifier: Apache-2.0
#
# The Python packages: build/<preset>/python is a folder to put on PYTHONPATH. Python files in it are
# links to python/, the extensions lie beside them. One build serves one Python (MT_PYTHON).
include(python/ext/sources.cmake)

execute_process(
  COMMAND ${MT_PYTHON} -c "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'))"
  OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${MT_PYTHON} does not run; set MT_PYTHON, or MT_BUILD_PYTHON=OFF")
endif()
string(REPLACE " " ";" said "${said}")
list(GET said 0 MT_PYTHON_INCLUDE)
list(GET said 1 MT_PYTHON_SUFFIX)
if(NOT EXISTS ${MT_PYTHON_INCLUDE}/Python.h)
  message(FATAL_ERROR "no Python.h for ${MT_PYTHON} (Debian: python3-dev); or set MT_BUILD_PYTHON=OFF")
endif()
# Interpreter frames are read from CPython's internal headers where they are: frames_<minor>.c.
# Everywhere else the public API is used, which is slower.
set(MT_PYTHON_TREE ${PROJECT_BINARY_DIR}/python)

# mt_extension(target package module library sources...)
function(mt_extension target package module library)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
  add_library(${target} MODULE ${sources})
  mt_settings(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/python/ext)
  target_include_directories(${target} SYSTEM PRIVATE ${MT_PYTHON_INCLUDE})
  target_link_libraries(${target} PRIVATE ${library})
  # What a casting slot table or a METH_KEYWORDS cast does is CPython's convention.
  target_compile_options(${target} PRIVATE -Wno-cast-function-type)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${module} SUFFIX ${MT_PYTHON_SUFFIX}
    LIBRARY_OUTPUT_DIRECTORY ${MT_PYTHON_TREE}/${package})
endfunction()

mt_extension(py_mtprof mtprof _mtprof mtprof ${MT_PY_PROFILER_SOURCES})
mt_extension(py_mindtorch mindtorch_v2 _C mindtorch ${MT_PY_TENSOR_SOURCES})
target_link_libraries(py_mindtorch PRIVATE mtprof)

add_custom_target(python_tree ALL
  COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR}/python -DTO=${MT_PYTHON_TREE}
          -P ${PROJECT_SOURCE_DIR}/cmake/python_tree.cmake
  DEPENDS py_mtprof py_mindtorch
  VERBATIM)

# ---- what a wheel holds (tools/wheel_backend.py) -------------------------------------------------
# libmtprof lies beside _mtprof, libmindtorch beside _C. mindtorch_v2 imports mtprof first, so the one
# libmtprof of the process is loaded when libmindtorch asks for it by name.
set_target_properties(py_mtprof py_mindtorch PROPERTIES INSTALL_RPATH "$ORIGIN")
foreach(package IN ITEMS mtprof mindtorch_v2)
  install(DIRECTORY python/${package} DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed"
          PATTERN "__pycache__" EXCLUDE)
endforeach()
install(TARGETS py_mtprof mtprof LIBRARY DESTINATION mtprof NAMELINK_SKIP COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS py_mindtorch mindtorch LIBRARY DESTINATION mindtorch_v2 NAMELINK_SKIP COMPONENT python
        EXCLUDE_FROM_ALL)
if(TARGET mtprof_command)
  install(TARGETS mtprof_command RUNTIME DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
endif()
