# SPDX-License-Identifier: Apache-2.0
#
# Tests of libmindtorch and its kernels: mt_torch_test(test_x unit/path/test_x.c [SHARED] ...).

# ---- core ----

# ---- dispatch ----
foreach(name IN ITEMS test_op_trace test_schema test_user_ops)
  mt_torch_test(${name} unit/mindtorch/dispatch/${name}.c)
endforeach()

# ---- autograd ----

# ---- kernels ----

# ---- training ----

# ---- the op table, row by row ----
