# SPDX-License-Identifier: Apache-2.0
#
# Tests of libmindtorch and its kernels: mt_torch_test(test_x unit/path/test_x.c [SHARED] ...).

# ---- core ----
mt_torch_test(test_backends unit/mindtorch/core/test_backends.c)
mt_torch_test(test_dtype unit/mindtorch/core/test_dtype.c)
mt_torch_test(test_generator unit/mindtorch/core/test_generator.c)
mt_torch_test(test_shape unit/mindtorch/core/test_shape.c)
mt_torch_test(test_tensor unit/mindtorch/core/test_tensor.c)
mt_torch_test(test_torch_memory unit/mindtorch/core/test_torch_memory.c)

# ---- dispatch ----
foreach(name IN ITEMS test_op_trace test_schema test_user_ops)
  mt_torch_test(${name} unit/mindtorch/dispatch/${name}.c)
endforeach()

# ---- ops ----
mt_torch_test(test_pointwise_ops unit/mindtorch/ops/test_pointwise_ops.c)
mt_torch_test(test_view_ops unit/mindtorch/ops/test_view_ops.c)

# ---- autograd ----
foreach(name IN ITEMS test_autograd test_autograd_faults test_autograd_views test_backward_engine test_custom_function
                        test_grad_hooks)
  mt_torch_test(${name} unit/mindtorch/autograd/${name}.c)
endforeach()

# ---- kernels ----
foreach(name IN ITEMS test_copy_kernels test_pointwise_binary test_pointwise_ternary
                      test_pointwise_unary test_random_kernels test_vector_math)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/pointwise_values.c support/strided_array.c)
endforeach()
mt_torch_test(test_parallel unit/kernels/test_parallel.c)
foreach(name IN ITEMS test_attention test_conv test_gemm)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/strided_array.c)
endforeach()
foreach(name IN ITEMS test_host_lanes test_host_norms test_host_optimizers test_host_reduce)
  mt_torch_test(${name} unit/kernels/${name}.c)
  target_sources(${name} PRIVATE support/strided_array.c)
endforeach()
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
mt_torch_test(test_far unit/mindtorch/test_far.c)
target_sources(test_far PRIVATE support/far_backend.c support/small_models.c)

# ---- the simulated accelerator, end to end ----
if(TARGET mindtorch_sim)
  foreach(name IN ITEMS test_sim_launches)
    mt_torch_test(${name} unit/mindtorch/${name}.c TIMEOUT 120)
    add_dependencies(${name} mindtorch_sim)
    target_compile_definitions(${name} PRIVATE MT_SIM_FILE="$<TARGET_FILE:mindtorch_sim>")
  endforeach()
endif()

# ---- the op table, row by row ----
if(NOT MT_SANITIZE AND NOT MT_HOSTILE)
  set(run_ops ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/ops/run_ops.py $<TARGET_FILE:mindtorch>)
  mt_test_script(test_run_ops ${MT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/ops/test_run_ops.py
                 $<TARGET_FILE:mindtorch>)
  mt_test_script(test_ops_complete ${run_ops} --complete)
  foreach(family IN ITEMS create pointwise reduce view index matrix image nn compose alias optim)
    mt_test_script(test_ops_${family} ${run_ops} --family ${family})
  endforeach()
  # The far device as a shared object: with kernels of its own, because the library hides them.
  add_library(far_backend MODULE support/far_backend.c
                                 ${PROJECT_SOURCE_DIR}/src/backends/cpu/cpu_backend.c
                                 $<TARGET_OBJECTS:mt_kernel_objects> ${MT_ISA_OBJECTS}
                                 $<TARGET_OBJECTS:mindtorch_base>)
  mt_settings(far_backend)
  target_include_directories(far_backend PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                                                 ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(far_backend PRIVATE mindtorch Threads::Threads ${CMAKE_DL_LIBS} m)
  mt_test_script(test_ops_far ${run_ops} --device npu:0 --backend $<TARGET_FILE:far_backend>)
endif()
