# SPDX-License-Identifier: Apache-2.0
#
# The Python packages: build/<preset>/python is a folder to put on PYTHONPATH. Python files in it are
# links to python/, the extensions are next to them. One build is for one Python (MT_PYTHON); in
# addition, build/<preset>/python_dbg is for a Python that counts references (MT_PYTHON_DEBUG), for
# tests.
include(python/ext/sources.cmake)

# Asks a Python for its headers and the ending of its extensions.
function(mt_ask_python python include suffix)
  execute_process(
    COMMAND ${python} -c "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'))"
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${python} does not run; set MT_PYTHON, or MT_BUILD_PYTHON=OFF")
  endif()
  string(REPLACE " " ";" said "${said}")
  list(GET said 0 folder)
  list(GET said 1 ending)
  if(NOT EXISTS ${folder}/Python.h)
    message(FATAL_ERROR "no Python.h for ${python} (Debian: python3-dev); or set MT_BUILD_PYTHON=OFF")
  endif()
  set(${include} ${folder} PARENT_SCOPE)
  set(${suffix} ${ending} PARENT_SCOPE)
endfunction()

# mt_extension(target python tree package module library sources...)
function(mt_extension target python tree package module library)
  mt_ask_python(${python} include suffix)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
  add_library(${target} MODULE ${sources})
  mt_settings(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/python/ext)
  target_include_directories(${target} SYSTEM PRIVATE ${include})
  target_link_libraries(${target} PRIVATE ${library} mtprof)
  # CPython's tables hold functions of several types; casting them is its convention.
  target_compile_options(${target} PRIVATE -Wno-cast-function-type)
  # Beside its library in a wheel (tools/wheel_backend.py) and, as a link, in the build's tree. mindtorch_v2
  # imports mtprof first, so the one libmtprof of the process is there when libmindtorch asks for it by name.
  mt_find_beside(${target})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${module} SUFFIX ${suffix}
    LIBRARY_OUTPUT_DIRECTORY ${tree}/${package})
endfunction()

# mt_python_tree(target python tree): both extensions, and links to the Python files.
function(mt_python_tree target python tree)
  mt_extension(py_mtprof${target} ${python} ${tree} mtprof _mtprof mtprof ${MT_PY_PROFILER_SOURCES})
  mt_extension(py_mindtorch${target} ${python} ${tree} mindtorch_v2 _C mindtorch ${MT_PY_TENSOR_SOURCES})
  add_custom_target(python_tree${target} ALL
    COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR}/python -DTO=${tree}
            "-DLIBRARIES_mtprof=$<TARGET_SONAME_FILE:mtprof>;$<TARGET_SONAME_FILE:mtprof_torch>;$<TARGET_SONAME_FILE:mtprof_cupti>;$<TARGET_FILE:mtprof_cuda>;$<TARGET_FILE:mtprof_itt>;$<TARGET_FILE:mtprof_nvtx>"
            "-DLIBRARIES_mindtorch_v2=$<TARGET_SONAME_FILE:mindtorch>;$<TARGET_FILE:mindtorch_sim>"
            -P ${PROJECT_SOURCE_DIR}/cmake/python_tree.cmake
    DEPENDS py_mtprof${target} py_mindtorch${target} mtprof_torch mtprof_cupti mtprof_cuda mtprof_itt mtprof_nvtx mindtorch_sim # found next to libmindtorch
    VERBATIM)
endfunction()

set(MT_PYTHON_TREE ${PROJECT_BINARY_DIR}/python)
mt_python_tree("" ${MT_PYTHON} ${MT_PYTHON_TREE})
if(MT_BUILD_TESTS AND NOT MT_SANITIZE)
  find_program(MT_PYTHON_DEBUG NAMES python3-dbg PATHS /usr/bin NO_DEFAULT_PATH)
  if(MT_PYTHON_DEBUG)
    mt_python_tree(_dbg ${MT_PYTHON_DEBUG} ${MT_PYTHON_TREE}_dbg)
    # Said here, because its headers are links to those of the plain Python.
    target_compile_definitions(py_mtprof_dbg PRIVATE Py_DEBUG=1)
    target_compile_definitions(py_mindtorch_dbg PRIVATE Py_DEBUG=1)
  endif()
endif()

# Programs beside the command of the build; in a wheel they are entry points (pyproject.toml).
foreach(program IN ITEMS run:run.run_command view:view parquet:dataset.parquet_command query:dataset.query_command)
  string(REPLACE ":" ";" program ${program})
  list(GET program 0 word)
  list(GET program 1 module)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/cli/mtprof-${word}
    CONTENT "#!${MT_PYTHON}
import sys
sys.path.insert(0, '${MT_PYTHON_TREE}')
from mtprof.${module} import main
sys.exit(main())
"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()

# ---- what a wheel holds --------------------------------------------------------------------------
foreach(package IN ITEMS mtprof mindtorch_v2)
  install(DIRECTORY python/${package} DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "*.cpp" PATTERN "*.sql"
          PATTERN "__pycache__" EXCLUDE)
endforeach()
install(TARGETS py_mtprof mtprof mtprof_torch mtprof_cupti mtprof_cuda mtprof_itt mtprof_nvtx LIBRARY DESTINATION mtprof NAMELINK_SKIP COMPONENT python
        EXCLUDE_FROM_ALL)
install(TARGETS py_mindtorch mindtorch LIBRARY DESTINATION mindtorch_v2 NAMELINK_SKIP COMPONENT python
        EXCLUDE_FROM_ALL)
install(TARGETS mindtorch_sim LIBRARY DESTINATION mindtorch_v2 COMPONENT python EXCLUDE_FROM_ALL)
if(TARGET mtprof_command)
  install(TARGETS mtprof_command RUNTIME DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
endif()
