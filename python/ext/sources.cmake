# SPDX-License-Identifier: Apache-2.0
#
# Sources of the Python extensions, one line a file, in order. ext/common is compiled into both.
set(MT_PY_COMMON_SOURCES
    python/ext/common/py_errors.c
)

# mtprof._mtprof
set(MT_PY_PROFILER_SOURCES
    ${MT_PY_COMMON_SOURCES}
    python/ext/profiler/profiler_module.c
)

# mindtorch_v2._C
set(MT_PY_TENSOR_SOURCES
    ${MT_PY_COMMON_SOURCES}
    python/ext/tensors/tensors_module.c
)
