/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax and log_softmax. The composites convert first where a type is given, the leaves (with an
 * underscore in front) compute.
 */
#include "mindtorch/ops/nn/op_nn_support.h"

/* mt_kernel SOFTMAX's codes. */
enum {
    SOFTMAX = 0,
    LOG_SOFTMAX = 1
};

static int run_composite(mt__call *call, mt_status (*leaf)(mt_tensor *self, int64_t dim,
                                                           bool half_to_float, mt_tensor **out))
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_dtype dtype = mt__arg_dtype(call, 2);
    if (dtype != MT_DTYPE_NONE && self->dtype != (uint8_t)dtype) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_to_with(self, dtype, MT_DEVICE_NONE, false, false, place));
        self = *place;
    }
    return leaf(self, mt__arg_int(call, 1), false, mt__result_place(call, 0));
}

MT_RUN(softmax, run_composite, mt__softmax)
MT_RUN(log_softmax, run_composite, mt__log_softmax)

static int run_forward(mt__call *call, uint16_t code)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    MT_TRY(mt__need_real(call, (mt_dtype)self->dtype));
    if (mt__arg_bool(call, 2)) {
        return mtb_fail(MT_ERUNTIME, "%s with half to float conversion is not supported",
                        code == SOFTMAX ? "softmax" : "log_softmax");
    }
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (self->numel == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_SOFTMAX,
        .code = code,
        MT_TENSORS(out, self),
        MT_INTS(dim),
    };
    if (self->n_dims == 0) { /* kernels need a dimension */
        const int64_t one = 1;
        MT_TRY(mt__nn_view(call, out, &one, 1, &args.tensors[0]));
        MT_TRY(mt__nn_view(call, self, &one, 1, &args.tensors[1]));
    }
    return mt__kernel(call, &args);
}

MT_RUN(_softmax, run_forward, SOFTMAX)
MT_RUN(_log_softmax, run_forward, LOG_SOFTMAX)

static int run_backward(mt__call *call, uint16_t code)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *output = mt__arg_tensor(call, 1);
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), grad->n_dims, &dim));
    mt__shape shape = mt__tensor_shape(grad);
    mt__shape other = mt__tensor_shape(output);
    if (!mt__shape_equal(&shape, &other)) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "Expected tensor for argument #1 'grad' to have same size as tensor for "
                        "argument #2 'output'; but %s does not equal %s (while checking arguments "
                        "for %s)",
                        mt__shape_text(grad->sizes, grad->n_dims, a),
                        mt__shape_text(output->sizes, output->n_dims, b), mt__op_name(call));
    }
    MT_TRY(mt__need_real(call, (mt_dtype)grad->dtype));
    MT_TRY(mt__need_type(output, (mt_dtype)grad->dtype));
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &shape, &out));
    if (grad->numel == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_SOFTMAX_BACKWARD,
        .code = code,
        MT_TENSORS(out, grad, output),
        MT_INTS(dim),
    };
    for (uint32_t i = 0; grad->n_dims == 0 && i < args.n_tensors; i++) {
        const int64_t one = 1;
        MT_TRY(mt__nn_view(call, args.tensors[i], &one, 1, &args.tensors[i]));
    }
    return mt__kernel(call, &args);
}

MT_RUN(_softmax_backward_data, run_backward, SOFTMAX)
MT_RUN(_log_softmax_backward_data, run_backward, LOG_SOFTMAX)
