/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN 2.x, opened when it is first needed. Without it everything works, but large products and
 * convolutions are slower. Calls use one OpenMP thread: we divide the work among threads ourselves
 * (parallel.h), because our pool survives fork() and must not compete with a second one.
 */
#ifndef KERNELS_MATRIX_ONEDNN_H
#define KERNELS_MATRIX_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

#ifndef MT_HAVE_ONEDNN
#    if defined(__has_include)
#        if __has_include(<dnnl.h>)
#            define MT_HAVE_ONEDNN 1
#        endif
#    endif
#endif
#ifndef MT_HAVE_ONEDNN
#    define MT_HAVE_ONEDNN 0
#endif

/* Whether the library is installed; opens it. */
bool mt__onednn_here(void);

/* The same, on a processor that multiplies bfloat16 (an extension of AVX-512). */
bool mt__onednn_bf16(void);

/* For tests and measurements: false acts as if the library were missing. */
void mt__onednn_allow(bool allowed);

#if MT_HAVE_ONEDNN
#    include <dnnl.h>

/* The functions that we use. Types come from its header, so that a wrong signature does not
 * compile. */
#    define MT_ONEDNN_FUNCTIONS(X)                          \
        X(dnnl_sgemm)                                       \
        X(dnnl_engine_create)                               \
        X(dnnl_stream_create)                               \
        X(dnnl_memory_create)                               \
        X(dnnl_memory_destroy)                              \
        X(dnnl_memory_desc_init_by_strides)                 \
        X(dnnl_memory_desc_init_by_tag)                     \
        X(dnnl_memory_desc_equal)                           \
        X(dnnl_memory_desc_get_size)                        \
        X(dnnl_primitive_attr_create)                       \
        X(dnnl_primitive_attr_destroy)                      \
        X(dnnl_primitive_attr_set_scratchpad_mode)          \
        X(dnnl_primitive_desc_create)                       \
        X(dnnl_primitive_desc_destroy)                      \
        X(dnnl_primitive_desc_query_md)                     \
        X(dnnl_primitive_create)                            \
        X(dnnl_primitive_destroy)                           \
        X(dnnl_primitive_execute)                           \
        X(dnnl_reorder_primitive_desc_create)               \
        X(dnnl_matmul_desc_init)                            \
        X(dnnl_dilated_convolution_forward_desc_init)       \
        X(dnnl_dilated_convolution_backward_data_desc_init) \
        X(dnnl_dilated_convolution_backward_weights_desc_init)

typedef struct mt__onednn_table {
#    define X(name) __typeof__(name) *name;
    MT_ONEDNN_FUNCTIONS(X)
#    undef X
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* of the CPU: calls are done on return */
} mt__onednn_table;

/* NULL if the library is not installed. */
const mt__onednn_table *mt__onednn(void);

/* Around a call: one OpenMP thread inside, the user's number again afterwards. */
int mt__onednn_enter(void);
void mt__onednn_leave(int threads);
#endif

#endif /* KERNELS_MATRIX_ONEDNN_H */
