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

# ---- autograd ----

# ---- kernels ----

# ---- training ----

# ---- the op table, row by row ----
