# SPDX-License-Identifier: Apache-2.0
#
# Tests of libmindtorch and its kernels: mt_torch_test(test_x unit/path/test_x.c [SHARED] ...).

# Tests on the simulated accelerator, opened from where it was built:
# mt_sim_test(test_x unit/path/test_x.c [TIMEOUT s] [SOURCES support/x.c ...]).
function(mt_sim_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "SOURCES")
  mt_no_leftovers(mt_sim_test ${name} "${arg_UNPARSED_ARGUMENTS}")
  mt_torch_test(${name} ${source} TIMEOUT ${arg_TIMEOUT})
  target_sources(${name} PRIVATE ${arg_SOURCES})
  target_compile_definitions(${name} PRIVATE MT_SIM_FILE="$<TARGET_FILE:mindtorch_sim>")
  add_dependencies(${name} mindtorch_sim)
endfunction()

# ---- core ----
mt_torch_test(test_backends unit/mindtorch/core/test_backends.c)
mt_torch_test(test_dtype unit/mindtorch/core/test_dtype.c)
mt_torch_test(test_generator unit/mindtorch/core/test_generator.c)
mt_torch_test(test_shape unit/mindtorch/core/test_shape.c)
mt_torch_test(test_tensor unit/mindtorch/core/test_tensor.c)
mt_torch_test(test_torch_memory unit/mindtorch/core/test_torch_memory.c)

# ---- memory of accelerators, pinned memory ----
foreach(name IN ITEMS test_device_memory test_pinned)
  mt_torch_test(${name} unit/mindtorch/core/${name}.c)
  target_sources(${name} PRIVATE support/devices/held_backend.c)
endforeach()
mt_sim_test(test_device_memory_sim unit/mindtorch/core/test_device_memory_sim.c)

# ---- dispatch ----
foreach(name IN ITEMS test_op_trace test_schema test_user_ops)
  mt_torch_test(${name} unit/mindtorch/dispatch/${name}.c)
endforeach()

# ---- ops ----
mt_torch_test(test_pointwise_ops unit/mindtorch/ops/test_pointwise_ops.c)
mt_torch_test(test_view_ops unit/mindtorch/ops/test_view_ops.c)

# ---- autograd ----
foreach(name IN ITEMS test_autograd test_autograd_faults test_autograd_views test_backward_engine test_custom_function
                        test_grad_hooks test_graph_modes test_saved_tensors)
  mt_torch_test(${name} unit/mindtorch/autograd/${name}.c)
endforeach()
mt_torch_test(test_opgen_formulas unit/mindtorch/autograd/test_opgen_formulas.c)
target_sources(test_opgen_formulas PRIVATE ${PROJECT_SOURCE_DIR}/tools/opgen/opgen_formulas.c
                                           ${PROJECT_SOURCE_DIR}/tools/opgen/opgen_typed.c)
target_include_directories(test_opgen_formulas PRIVATE ${PROJECT_SOURCE_DIR}/tools/opgen)

# ---- kernels ----
foreach(name IN ITEMS test_copy_kernels test_narrow test_pointwise_binary test_pointwise_ternary
                      test_pointwise_unary test_random_kernels test_vector_math)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/pointwise_values.c support/strided_array.c)
endforeach()
mt_torch_test(test_parallel unit/kernels/test_parallel.c)
mt_torch_test(test_fft unit/kernels/test_fft.c)
foreach(name IN ITEMS test_attention test_conv test_gemm)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/strided_array.c)
endforeach()
foreach(name IN ITEMS test_gamma test_special test_host_lanes test_host_norms test_host_optimizers test_host_reduce)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/strided_array.c)
endforeach()
mt_torch_test(test_linalg unit/kernels/test_linalg.c)
foreach(name IN ITEMS test_index_kernels test_sort)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/strided_array.c)
endforeach()

# ---- training ----
mt_torch_test(test_layers unit/mindtorch/ops/test_layers.c)
mt_torch_test(test_optimizer unit/mindtorch/optim/test_optimizer.c)
mt_torch_test(test_training unit/mindtorch/test_training.c TIMEOUT 300)
mt_torch_test(test_training_trace unit/mindtorch/test_training_trace.c)
foreach(name IN ITEMS test_training test_training_trace)
  target_sources(${name} PRIVATE support/small_models.c)
endforeach()

# ---- a device whose memory the host cannot read ----
mt_torch_test(test_unreadable_device unit/mindtorch/test_unreadable_device.c)
target_sources(test_unreadable_device PRIVATE support/devices/unreadable_backend.c support/small_models.c)

# ---- ops: several devices in one call ----
mt_torch_test(test_mixed_devices unit/mindtorch/ops/test_mixed_devices.c)
target_sources(test_mixed_devices PRIVATE support/devices/unreadable_backend.c)

# ---- the simulated accelerator, end to end ----
mt_sim_test(test_sim_launches unit/mindtorch/test_sim_launches.c TIMEOUT 120)
mt_sim_test(test_sim_profile unit/mindtorch/test_sim_profile.c)
mt_sim_test(test_sim_training unit/mindtorch/test_sim_training.c SOURCES support/small_models.c)
mt_sim_test(test_sim_traces unit/mindtorch/test_sim_traces.c SOURCES support/small_models.c)
mt_sim_test(test_backward_streams unit/mindtorch/autograd/test_backward_streams.c)

# ---- the op table, row by row ----
if(NOT MT_SANITIZE AND NOT MT_HOSTILE)
  set(run_ops ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/ops/run_ops.py $<TARGET_FILE:mindtorch>)
  mt_test_script(test_run_ops ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/ops/test_run_ops.py
                 $<TARGET_FILE:mindtorch>)
  mt_test_script(test_ops_complete ${run_ops} --complete)
  foreach(family IN ITEMS create pointwise gamma special reduce view index order matrix linalg eig image resample volume
          grid rnn nn complex compose alias math optim)
    mt_test_script(test_ops_${family} ${run_ops} --family ${family})
  endforeach()
  # The device with unreadable memory as a shared object: with kernels of its own, because the library hides them.
  add_library(unreadable_backend MODULE support/devices/unreadable_backend.c
                                 ${PROJECT_SOURCE_DIR}/src/backends/cpu/cpu_backend.c
                                 $<TARGET_OBJECTS:mt_kernel_objects> ${MT_ISA_OBJECTS}
                                 $<TARGET_OBJECTS:mindtorch_base>)
  mt_settings(unreadable_backend)
  target_include_directories(unreadable_backend PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                                                 ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(unreadable_backend PRIVATE mindtorch Threads::Threads ${CMAKE_DL_LIBS} m)
  mt_test_script(test_ops_unreadable ${run_ops} --device npu:0 --backend $<TARGET_FILE:unreadable_backend>
                 --share 3)
  foreach(part IN ITEMS 1 2) # every case; the backend is looked for next to libmindtorch
    mt_test_script(test_ops_sim_${part} ${run_ops} --device npu:0 --backend sim --part ${part}/2
                   TIMEOUT 300)
  endforeach()
endif()

# ---- conformance: what any backend must do ----
mt_program(backend_conformance mindtorch_static conformance/backend_conformance.c)
foreach(part IN ITEMS activity cases copy device event failure kernels memory process stream support)
  target_sources(backend_conformance PRIVATE conformance/conform_${part}.c)
endforeach()
target_link_libraries(backend_conformance PRIVATE m)
add_library(broken_backend MODULE conformance/broken_backend.c conformance/broken_queue.c)
mt_settings(broken_backend)
target_include_directories(broken_backend PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                                                  ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(broken_backend PRIVATE Threads::Threads)
set(conformance $<TARGET_FILE:backend_conformance> --strict)
mt_test_script(test_conformance_cpu ${conformance} cpu)
mt_test_script(test_conformance_broken ${conformance} $<TARGET_FILE:broken_backend>)
if(TARGET unreadable_backend)
  mt_test_script(test_conformance_unreadable ${conformance} $<TARGET_FILE:unreadable_backend>)
endif()
mt_test_script(
  test_conformance_sim ${CMAKE_COMMAND} -E env MINDTORCH_NPU_SIM_DEVICES=2
  MINDTORCH_NPU_SIM_MEMORY=96M ${conformance} $<TARGET_FILE:mindtorch_sim>)
if(NOT MT_SANITIZE AND NOT MT_HOSTILE)
  mt_test_script(test_conformance ${MT_PYTHON}
                 ${CMAKE_CURRENT_SOURCE_DIR}/conformance/test_conformance.py
                 $<TARGET_FILE:backend_conformance> $<TARGET_FILE:broken_backend>)
endif()

# ---- sim: the simulated accelerator as its bare table ----
foreach(name IN ITEMS test_sim_activity test_sim_failures test_sim_memory test_sim_streams
                      test_sim_work)
  mt_sim_test(${name} unit/backends/sim/${name}.c SOURCES support/devices/sim_table.c)
endforeach()
if(NOT MT_SANITIZE)
  mt_test_script(test_abi_sim ${MT_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_abi.py
                 $<TARGET_FILE:mindtorch_sim>)
endif()

# ---- the simulated accelerator under stress: threads, forks, exits, refused memory ----
mt_sim_test(test_device_stress stress/test_device_stress.c TIMEOUT 120)
mt_torch_test(test_device_no_memory fault/test_device_no_memory.c)
list(TRANSFORM MT_SIM_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE linked_sim)
target_sources(test_device_no_memory PRIVATE ${linked_sim}) # linked in: its requests count too
mt_sim_test(test_device_exit stress/test_device_exit.c TIMEOUT 120)
