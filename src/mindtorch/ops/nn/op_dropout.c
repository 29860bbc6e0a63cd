/* SPDX-License-Identifier: Apache-2.0
 *
 * dropout: whether element n is kept depends on draw n after the generator's offset, for any
 * layout.
 */
#include "mindtorch/core/device/random.h"
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

static int check_type(const mt__call *call, const mt_tensor *input)
{
    if (mt__tensor_category(input) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "result type Float can't be cast to the desired output type %s",
                        mt__type_title((mt_dtype)input->dtype));
    }
    return mt__need_real(call, (mt_dtype)input->dtype);
}

int mt__run_dropout(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    double p = mt__arg_real(call, 1);
    MT_TRY(mt__need_probability(p));
    if (p == 0.0 || !mt__arg_bool(call, 2) || input->numel == 0) {
        mt__result_same(call, 0, input);
        return MT_OK;
    }
    return mt_native_dropout(input, p, mt__result_place(call, 0), NULL);
}

int mt__run_native_dropout(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    double p = mt__arg_real(call, 1);
    MT_TRY(mt__need_probability(p));
    MT_TRY(check_type(call, input));
    mt__shape shape = mt__tensor_shape(input);
    mt__kernel_args args = {
        .kernel = MT_KERNEL_DROPOUT,
        MT_TENSORS(NULL, NULL, input),
        .n_ints = 2,
        MT_SCALARS(mt_real(p)),
    };
    MT_TRY(mt__result_new(call, 0, (mt_dtype)input->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_BOOL, &shape, &args.tensors[1]));
    if (input->numel == 0) {
        return MT_OK;
    }
    mt__generator_reserve(mt__arg_generator(call, 2), input->numel, args.ints);
    MT_TRY(mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, input);
}

/* grad * mask * scale */
int mt__run_native_dropout_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *mask = mt__arg_tensor(call, 1);
    MT_TRY(mt__need_real(call, (mt_dtype)grad->dtype));
    mt__shape shape = mt__tensor_shape(grad);
    mt__shape mask_shape = mt__tensor_shape(mask);
    if (mask->dtype != MT_DTYPE_BOOL || !mt__shape_equal(&shape, &mask_shape)) {
        return mtb_fail(MT_ERUNTIME,
                        "native_dropout_backward(): mask must be bool and of the size "
                        "of grad_output, got %s",
                        mt_dtype_name((mt_dtype)mask->dtype));
    }
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &shape, &out));
    const mt_scalar scale = mt_real(mt__arg_real(call, 2));
    mt__kernel_args where = {
        .kernel = MT_KERNEL_TERNARY,
        .code = MT_TERNARY_WHERE,
        MT_TENSORS(out, mask, NULL, NULL),
        MT_INTS(1 << 1 | 1 << 2), /* b and c are numbers */
        MT_SCALARS(mt_real(0.0), mt_real(0.0), scale, mt_real(0.0)),
    };
    MT_TRY(mt__kernel(call, &where));
    return mt__nn_binary(call, MT_BINARY_MUL, out, grad, out, 1.0);
}
