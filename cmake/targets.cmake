# SPDX-License-Identifier: Apache-2.0
#
# How targets are declared. Each of these is one line per target at its place of use:
#
#   mt_test(test_ring unit/mtprof/record/test_ring.c [SHARED] [LABELS l...] [TIMEOUT s])
#   mt_test_script(test_abi COMMAND... [LABELS l...] [TIMEOUT s])
#   mt_torch_test(test_shape unit/mindtorch/core/test_shape.c [SHARED] ...)
#   mt_bench(bench_scope bench_scope.c [STATIC] [TORCH])
#   mt_fuzz(fuzz_reader fuzz_reader.c ... [MUTATOR fuzz_mutate.c])
#
# What was declared is written to tests.txt, bench.txt and fuzz.txt in the build folder, one line a
# target, fields separated by tabs; tools/run_tests.py, tools/run_bench.py and ./dev read them.
#   tests.txt   name, labels (comma separated), timeout in seconds (0 = default), command, arguments...
#   bench.txt   name, program
#   fuzz.txt    name, program
# The label "serial" runs a test alone, after the others.
string(ASCII 9 MT_TAB)

# What all our own C code is compiled with.
function(mt_settings target)
  mt_warnings(${target})
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                             C_VISIBILITY_PRESET hidden)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE $<$<BOOL:${MT_DEBUG}>:MT_DEBUG=1>
                                               $<$<BOOL:${MT_HOSTILE}>:MT_HOSTILE=1>
                                               $<$<BOOL:${MT_FUZZ}>:MT_FUZZ=1>)
  # Source paths are relative to the repository's root, in traces too: they do not show where it
  # was built.
  target_compile_options(${target} PRIVATE -fno-omit-frame-pointer
                                           -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
endfunction()

# The libraries that a target needs are found in its own folder, wherever that is, in the build tree as where
# it is installed. One search path for both: CMake would end the build tree's in ':' to make room for
# the other, and the loader takes an empty entry for the current directory.
function(mt_find_beside target)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

function(mt_list_append list)
  list(JOIN ARGN "${MT_TAB}" line)
  set_property(GLOBAL APPEND_STRING PROPERTY MT_LIST_${list} "${line}\n")
endfunction()

# Writes the lists; called once, after everything was declared.
function(mt_write_lists)
  foreach(list IN ITEMS tests bench fuzz)
    get_property(text GLOBAL PROPERTY MT_LIST_${list})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${list}.txt CONTENT "${text}")
  endforeach()
endfunction()

# A program of ours that may look inside the library (linked statically) or only at its face (SHARED).
function(mt_program target lib)
  add_executable(${target} ${ARGN})
  mt_settings(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${lib} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

function(mt_register_test name labels timeout)
  list(JOIN labels "," labels)
  if(NOT timeout)
    set(timeout 0)
  endif()
  mt_list_append(tests "${name}" "${labels}" ${timeout} ${ARGN})
  # The same for ctest and IDEs: run_tests.py gives each its folder, its environment and its time.
  add_test(NAME ${name} COMMAND ${MT_PYTHON} ${PROJECT_SOURCE_DIR}/tools/run_tests.py ${PROJECT_BINARY_DIR}
                                ${name} --exact --verbose)
  string(REPLACE "," ";" ctest_labels "${labels}")
  set_tests_properties(${name} PROPERTIES LABELS "${ctest_labels}" SKIP_RETURN_CODE 77)
  if("serial" IN_LIST ctest_labels)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

function(mt_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SHARED" "TIMEOUT" "LABELS")
  mt_no_leftovers(mt_test ${name} "${arg_UNPARSED_ARGUMENTS}")
  mt_program(${name} $<IF:$<BOOL:${arg_SHARED}>,mtprof,mtprof_static> ${source})
  target_link_libraries(${name} PRIVATE mt_harness)
  mt_register_test(${name} "${arg_LABELS}" "${arg_TIMEOUT}" $<TARGET_FILE:${name}>)
endfunction()

# A test of libmindtorch: it sees the insides of the runtime, or only its face (SHARED).
function(mt_torch_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SHARED" "TIMEOUT" "LABELS")
  mt_no_leftovers(mt_torch_test ${name} "${arg_UNPARSED_ARGUMENTS}")
  mt_program(${name} $<IF:$<BOOL:${arg_SHARED}>,mindtorch,mindtorch_static> ${source})
  target_link_libraries(${name} PRIVATE mt_harness m)
  mt_register_test(${name} "${arg_LABELS}" "${arg_TIMEOUT}" $<TARGET_FILE:${name}>)
endfunction()

function(mt_test_script name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS")
  mt_register_test(${name} "${arg_LABELS}" "${arg_TIMEOUT}" ${arg_UNPARSED_ARGUMENTS})
endfunction()

function(mt_bench name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "STATIC;TORCH" "" "")
  mt_no_leftovers(mt_bench ${name} "${arg_UNPARSED_ARGUMENTS}")
  set(lib $<IF:$<BOOL:${arg_TORCH}>,mindtorch,mtprof>)
  mt_program(${name} ${lib}$<$<BOOL:${arg_STATIC}>:_static> ${source})
  mt_list_append(bench ${name} $<TARGET_FILE:${name}>)
endfunction()

# Defines LLVMFuzzerTestOneInput(). Outside the fuzz presets it becomes a test that replays its
# corpus; MUTATOR names sources that only a fuzzer needs.
function(mt_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "MUTATOR")
  if(MT_SANITIZE MATCHES "^fuzzer")
    mt_program(${name} mtprof_static ${arg_UNPARSED_ARGUMENTS} ${arg_MUTATOR})
    # Nothing but the C library is needed, so that the program runs on other machines, too.
    target_link_options(${name} PRIVATE -fsanitize=fuzzer -nostdlib++ -static-libgcc)
    target_link_libraries(${name} PRIVATE -Wl,-Bstatic stdc++ -Wl,-Bdynamic)
    mt_list_append(fuzz ${name} $<TARGET_FILE:${name}>)
  else()
    mt_program(${name} mtprof_static ${arg_UNPARSED_ARGUMENTS}
               ${PROJECT_SOURCE_DIR}/tests/harness/fuzz_replay.c)
    mt_register_test(${name} fuzz "" $<TARGET_FILE:${name}> ${PROJECT_SOURCE_DIR}/tests/corpus/${name})
  endif()
endfunction()

function(mt_no_leftovers function name leftovers)
  if(leftovers)
    message(FATAL_ERROR "${function}(${name}): unexpected arguments: ${leftovers}")
  endif()
endfunction()
