# SPDX-License-Identifier: Apache-2.0
#
# Tests of the Python packages: unittest programs in tests/python, run on the tree that the build makes
# (cmake/python.cmake). A file of that folder that is not listed here fails test_python_listed.
# Those in npu are on the simulated accelerator, which they ask for themselves (support_npu.py).
set(MT_PYTHON_TESTS
    contract/test_contract_events
    contract/test_contract_mindtorch
    contract/test_contract_npu
    contract/test_contract_npu_profile
    contract/test_contract_npu_programs
    contract/test_contract_others
    contract/test_contract_profile
    contract/test_contract_runtime
    contract/test_contract_scopes
    contract/test_contract_tables
    contract/test_contract_trace
    nn/test_data
    nn/test_data_workers
    nn/test_lr_scheduler
    nn/test_nn_containers
    nn/test_nn_functional
    nn/test_nn_hooks
    nn/test_nn_init
    nn/test_nn_module_api
    nn/test_nn_modules
    nn/test_distributions
    nn/test_one_process
    nn/test_optim
    dataset/test_dataset
    dataset/test_parquet_files
    notebook/test_notebook
    notebook/test_report_page
    npu/test_npu_data
    npu/test_npu_devices
    npu/test_npu_exit
    npu/test_npu_explain
    npu/test_npu_profile
    npu/test_npu_profile_trace
    npu/test_npu_streams
    npu/test_npu_tensors
    npu/test_npu_trace_schema
    npu/test_npu_training
    profiler/test_activities
    profiler/test_arrow_python
    profiler/test_averages
    profiler/test_call_tracer
    profiler/test_columns
    profiler/test_documented
    profiler/test_event_list
    profiler/test_events
    profiler/test_explain_imported
    profiler/test_exports_python
    profiler/test_flight
    profiler/test_frames
    profiler/test_load
    profiler/test_marks_python
    profiler/test_memory_timeline
    profiler/test_module_start
    profiler/test_modules
    profiler/test_profile_lifecycle
    profiler/test_profile_misuse
    profiler/test_profile_threads
    profiler/test_profiler_modules
    profiler/test_record_function
    profiler/test_schedule_goldens
    profiler/test_schedule_python
    profiler/test_stacks
    profiler/test_stacks_hard
    profiler/test_stacks_nogil
    profiler/test_tables_python
    profiler/test_tasks
    profiler/test_types
    robust/test_api_fuzz
    robust/test_bounds
    robust/test_flight_triggers
    robust/test_hardening
    robust/test_hostile_pickles
    robust/test_huge_arguments
    robust/test_interrupted_work
    robust/test_interrupts
    robust/test_leaks
    robust/test_nomemory
    robust/test_profile_refcounts
    robust/test_refcounts
    robust/test_tensor_refcounts
    run/test_as_torch
    run/test_control
    run/test_run_options
    run/test_run_programs
    run/test_view
    tensors/test_alias_rows
    tensors/test_argument_forms
    tensors/test_autograd_function
    tensors/test_autograd_graph
    tensors/test_autograd_python
    tensors/test_amp
    tensors/test_dtype_device
    tensors/test_error_texts
    tensors/test_extreme_numbers
    tensors/test_further
    tensors/test_functional
    tensors/test_inference_mode
    tensors/test_meta
    tensors/test_indexing
    tensors/test_complex
    linalg/test_eig
    nn/test_ctc_loss
    nn/test_rare
    linalg/test_signal_windows
    linalg/test_lowrank
    linalg/test_rare_functions
    tensors/test_integer_types
    tensors/test_interop
    tensors/test_legacy_types
    tensors/test_library
    linalg/test_linalg
    tensors/test_op_binding
    tensors/test_package_names
    tensors/test_order
    tensors/test_special
    tensors/test_pickling
    tensors/test_serialization
    tensors/test_tensor
    tensors/test_tensor_repr
    tensors/test_torch_function
    tensors/test_wrong_uses
)

# -X dev: CPython's own checks of memory, and warnings that are otherwise not shown.
set(run_python ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE}:${CMAKE_CURRENT_SOURCE_DIR}/python ${MT_PYTHON} -X dev)
set(run_tests ${MT_PYTHON_TESTS})
if(MT_SANITIZE STREQUAL "address")
  # The interpreter is not ours: AddressSanitizer is loaded before it, sees every Python object as a
  # piece of memory of its own, and leaves alone what the interpreter leaks by design. Not here: tests
  # of memory's growth, and those that take long and add little C.
  list(REMOVE_ITEM run_tests nn/test_data_workers robust/test_huge_arguments
       robust/test_leaks nn/test_nn_functional nn/test_nn_init nn/test_optim robust/test_profile_refcounts
       robust/test_refcounts
       profiler/test_schedule_goldens profiler/test_stacks_hard run/test_as_torch
       run/test_run_options run/test_run_programs)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
                  OUTPUT_VARIABLE libasan OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS "${libasan}")
    message(STATUS "Python's tests are left out: ${CMAKE_C_COMPILER} has no libasan.so")
    return()
  endif()
  set(run_python ${CMAKE_COMMAND} -E env LD_PRELOAD=${libasan} PYTHONMALLOC=malloc
      ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 MT_NOMEMORY_MOST=60
      PYTHONPATH=${MT_PYTHON_TREE}:${CMAKE_CURRENT_SOURCE_DIR}/python ${MT_PYTHON} -X dev)
endif()
foreach(name IN LISTS run_tests)
  cmake_path(GET name FILENAME test)
  string(REPLACE "test_" "test_python_" test ${test}) # C tests have some of these names
  # -v: the reasons of skipped tests are printed.
  mt_test_script(${test} ${run_python} ${CMAKE_CURRENT_SOURCE_DIR}/python/${name}.py -v LABELS python)
endforeach()
if(MT_SANITIZE)
  return()
endif()
mt_test_script(test_soak ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} MTPROF_COMMAND=$<TARGET_FILE:mtprof_command>
               ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/stress/soak_profiler.py LABELS stress)
mt_test_script(test_python_stubs ${run_python} ${PROJECT_SOURCE_DIR}/tools/make_stubs.py --check LABELS python)
mt_test_script(test_docs ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} MT_CC=${CMAKE_C_COMPILER}
               MT_INCLUDES=${PROJECT_SOURCE_DIR}/include:${PROJECT_SOURCE_DIR}/src:${MT_GENERATED} ${MT_PYTHON}
               ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_docs.py LABELS tools)
mt_test_script(test_python_listed ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/python/listed.py
               ${MT_PYTHON_TESTS} LABELS python)

# Reference counts need a Python that counts them all.
if(TARGET python_tree_dbg)
  foreach(name IN ITEMS robust/test_refcounts robust/test_profile_refcounts robust/test_tensor_refcounts npu/test_npu_streams)
    cmake_path(GET name FILENAME test)
    string(REPLACE "test_" "test_python_" test ${test})
    mt_test_script(${test}_debug ${CMAKE_COMMAND} -E env
                   PYTHONPATH=${MT_PYTHON_TREE}_dbg:${CMAKE_CURRENT_SOURCE_DIR}/python
                   ${MT_PYTHON_DEBUG} ${CMAKE_CURRENT_SOURCE_DIR}/python/${name}.py LABELS python)
  endforeach()
endif()
