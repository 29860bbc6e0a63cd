# SPDX-License-Identifier: Apache-2.0
#
# Tests of libmindtorch and its kernels: mt_torch_test(test_x unit/path/test_x.c [SHARED] ...).

# ---- core ----

# ---- autograd ----

# ---- kernels ----

# ---- training ----

# ---- the op table, row by row ----
