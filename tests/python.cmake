# SPDX-License-Identifier: Apache-2.0
#
# Tests of the Python packages: unittest programs in tests/python, run on the tree that the build makes
# (cmake/python.cmake). A file of that folder that is not listed here fails test_python_listed.
set(MT_PYTHON_TESTS
    test_activities
    test_api_fuzz
    test_autograd_function
    test_autograd_python
    test_averages
    test_call_tracer
    test_columns
    test_data
    test_data_workers
    test_dtype_device
    test_event_list
    test_events
    test_exports_python
    test_indexing
    test_interop
    test_leaks
    test_load
    test_lr_scheduler
    test_modules
    test_nn_functional
    test_nn_init
    test_nn_module_api
    test_nn_modules
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
    test_tensor_repr
)

# -X dev: CPython's own checks of memory, and warnings that are otherwise not shown.
set(run_python ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE} ${MT_PYTHON} -X dev)
foreach(name IN LISTS MT_PYTHON_TESTS)
  string(REPLACE "test_" "test_python_" test ${name}) # C tests have some of these names
  mt_test_script(${test} ${run_python} ${CMAKE_CURRENT_SOURCE_DIR}/python/${name}.py LABELS python)
endforeach()
mt_test_script(test_python_stubs ${run_python} ${PROJECT_SOURCE_DIR}/tools/make_stubs.py --check LABELS python)
mt_test_script(test_python_listed ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/python/listed.py
               ${MT_PYTHON_TESTS} LABELS python)

# Reference counts need a Python that counts them all.
if(TARGET python_tree_dbg)
  foreach(name IN ITEMS refcounts profile_refcounts)
    mt_test_script(test_python_${name}_debug ${CMAKE_COMMAND} -E env PYTHONPATH=${MT_PYTHON_TREE}_dbg
                   ${MT_PYTHON_DEBUG} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py LABELS python)
  endforeach()
endif()
