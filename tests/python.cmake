# SPDX-License-Identifier: Apache-2.0
#
# Tests of the Python packages: unittest programs in tests/python, run on the tree that the build makes
# (cmake/python.cmake). A file of that folder that is not listed here fails test_python_listed.
set(MT_PYTHON_TESTS
    test_activities
    test_alias_rows
    test_api_fuzz
    test_autograd_function
    test_autograd_python
    test_averages
    test_call_tracer
    test_columns
    test_contract_events
    test_contract_mindtorch
    test_contract_npu
    test_contract_npu_profile
    test_contract_npu_programs
    test_contract_others
    test_contract_profile
    test_contract_runtime
    test_contract_scopes
    test_contract_tables
    test_contract_trace
    test_data
    test_data_workers
    test_documented
    test_dtype_device
    test_event_list
    test_error_texts
    test_events
    test_extreme_numbers
    test_exports_python
    test_frames
    test_tasks
    test_hardening
    test_hostile_pickles
    test_huge_arguments
    test_indexing
    test_interop
    test_interrupted_work
    test_interrupts
    test_leaks
    test_bounds
    test_load
    test_lr_scheduler
    test_marks_python
    test_memory_timeline
    test_module_start
    test_modules
    test_nn_containers
    test_nn_functional
    test_nn_hooks
    test_nn_init
    test_nn_module_api
    test_nn_modules
    test_nomemory
    # On the simulated accelerator, which these ask for themselves (support_npu.py).
    test_npu_data
    test_npu_devices
    test_npu_exit
    test_npu_profile
    test_npu_profile_trace
    test_npu_streams
    test_npu_tensors
    test_npu_trace_schema
    test_npu_training
    test_op_binding
    test_optim
    test_pickling
    test_profile_lifecycle
    test_profile_misuse
    test_profile_refcounts
    test_profile_threads
    test_profiler_modules
    test_record_function
    test_refcounts
    test_schedule_goldens
    test_schedule_python
    test_serialization
    test_stacks
    test_stacks_hard
    test_tables_python
    test_tensor
    test_tensor_refcounts
    test_tensor_repr
    test_types
)

# -X dev: CPython's own checks of memory, and warnings that are otherwise not shown.
set(run_python ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} ${MT_PYTHON} -X dev)
set(run_tests ${MT_PYTHON_TESTS})
if(MT_SANITIZE STREQUAL "address")
  # The interpreter is not ours: AddressSanitizer is loaded before it, sees every Python object as a
  # piece of memory of its own, and leaves alone what the interpreter leaks by design. Not here: tests
  # of memory's growth, and those that take long and add little C.
  list(REMOVE_ITEM run_tests test_data_workers test_huge_arguments test_leaks test_nn_functional test_nn_init test_optim
       test_profile_refcounts test_refcounts test_schedule_goldens test_stacks_hard)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
                  OUTPUT_VARIABLE libasan OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS "${libasan}")
    message(STATUS "Python's tests are left out: ${CMAKE_C_COMPILER} has no libasan.so")
    return()
  endif()
  set(run_python ${CMAKE_COMMAND} -E env LD_PRELOAD=${libasan} PYTHONMALLOC=malloc
      ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 MT_NOMEMORY_MOST=60
      PYTHONPATH=${MT_PYTHON_TREE} ${MT_PYTHON} -X dev)
endif()
foreach(name IN LISTS run_tests)
  string(REPLACE "test_" "test_python_" test ${name}) # C tests have some of these names
  mt_test_script(${test} ${run_python} ${CMAKE_CURRENT_SOURCE_DIR}/python/${name}.py LABELS python)
endforeach()
if(MT_SANITIZE)
  return()
endif()
mt_test_script(test_soak ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} MTPROF_COMMAND=$<TARGET_FILE:mtprof_command>
               ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/stress/soak_profiler.py LABELS stress)
mt_test_script(test_python_stubs ${run_python} ${PROJECT_SOURCE_DIR}/tools/make_stubs.py --check LABELS python)
mt_test_script(test_docs ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} MT_CC=${CMAKE_C_COMPILER}
               MT_INCLUDES=${PROJECT_SOURCE_DIR}/include:${MT_GENERATED} ${MT_PYTHON}
               ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_docs.py LABELS tools)
mt_test_script(test_python_listed ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/python/listed.py
               ${MT_PYTHON_TESTS} LABELS python)

# Reference counts need a Python that counts them all.
if(TARGET python_tree_dbg)
  foreach(name IN ITEMS refcounts profile_refcounts tensor_refcounts npu_streams)
    mt_test_script(test_python_${name}_debug ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE}_dbg
                   ${MT_PYTHON_DEBUG} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py LABELS python)
  endforeach()
endif()
