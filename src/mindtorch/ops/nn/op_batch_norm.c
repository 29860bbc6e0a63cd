/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_norm. Kernels see [N, C, L].
 *
 *   BN1  In training the running statistics are written: their versions grow.
 *   BN2  save_mean and save_invstd are what the output was made with, in evaluation too, so that
 *        the derivative does not read the running statistics, which the next forward may change.
 *        (torch leaves them empty in evaluation.)
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

/* Positions of both forward ops. */
enum {
    INPUT,
    WEIGHT,
    BIAS,
    RUNNING_MEAN,
    RUNNING_VAR,
    TRAINING,
    MOMENTUM,
    EPS
};

/* N, C and the rest. */
static int find_channels(const mt_tensor *input, int64_t sizes[3])
{
    uint32_t dim = 0;
    MT_TRY(mt__wrap_dim(1, input->n_dims, &dim));
    sizes[0] = input->sizes[0];
    sizes[1] = input->sizes[1];
    sizes[2] = 1;
    for (uint32_t i = 2; i < input->n_dims; i++) {
        sizes[2] *= input->sizes[i];
    }
    return MT_OK;
}

static int check_size(const mt__call *call, uint32_t arg, int64_t channels)
{
    const mt_tensor *parameter = mt__arg_tensor(call, arg);
    if (parameter == NULL) {
        return MT_OK;
    }
    if (parameter->numel != channels || parameter->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME, "%s should contain %lld elements not %lld",
                        call->row->params[arg].name, (long long)channels,
                        (long long)parameter->numel);
    }
    return MT_OK;
}

/* The type to compute in, which arguments first...last have. */
static int check_types(const mt__call *call, const mt_tensor *input, uint32_t first, uint32_t last,
                       mt_dtype *compute)
{
    mt_tensor *beside[8];
    uint32_t count = 0;
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    for (uint32_t arg = first; arg <= last; arg++) {
        beside[count++] = mt__arg_tensor(call, arg);
    }
    return mt__norm_type(input, beside, count, compute);
}

static int check_running(const mt__call *call)
{
    bool mean = mt__arg_given(call, RUNNING_MEAN);
    bool var = mt__arg_given(call, RUNNING_VAR);
    if (!mt__arg_bool(call, TRAINING) && !(mean && var)) {
        return mtb_fail(MT_ERUNTIME, "running_%s must be defined in evaluation mode",
                        mean ? "var" : "mean");
    }
    if (mean != var) {
        return mtb_fail(MT_EVALUE,
                        "running_mean and running_var must either both be None or neither be None");
    }
    return MT_OK;
}

static int check_arguments(const mt__call *call, int64_t sizes[3], mt_dtype *compute)
{
    const mt_tensor *input = mt__arg_tensor(call, INPUT);
    MT_TRY(find_channels(input, sizes));
    static const uint32_t order[] = {RUNNING_MEAN, RUNNING_VAR, WEIGHT, BIAS};
    for (size_t i = 0; i < MT_COUNT(order); i++) {
        MT_TRY(check_size(call, order[i], sizes[1]));
    }
    MT_TRY(check_running(call));
    return check_types(call, input, WEIGHT, RUNNING_VAR, compute);
}

/* Nothing to normalise: a tensor of the right size that weight and bias belong to. */
static int run_empty(mt__call *call, int64_t channels)
{
    mt_tensor *last = mt__arg_tensor(call, INPUT);
    mt_tensor *out = NULL;
    mt_tensor **clone = mt__temp(call);
    MT_TRY(mt_clone(last, clone));
    last = *clone;
    int64_t sizes[MT_MAX_DIMS];
    for (uint32_t i = 0; i < last->n_dims; i++) {
        sizes[i] = i == 1 ? channels : 1;
    }
    for (uint32_t arg = WEIGHT; arg <= BIAS; arg++) {
        if (mt__arg_given(call, arg)) {
            mt_tensor **wide = mt__temp(call);
            mt_tensor **next = mt__temp(call);
            MT_TRY(mt_view(mt__arg_tensor(call, arg), sizes, last->n_dims, wide));
            MT_TRY(arg == WEIGHT ? mt_mul(last, *wide, next) : mt_add(last, *wide, next));
            last = *next;
        }
    }
    out = mt_tensor_retain(last);
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_batch_norm(mt__call *call)
{
    int64_t sizes[3];
    mt_dtype compute = MT_DTYPE_NONE;
    MT_TRY(check_arguments(call, sizes, &compute));
    if (call->args[INPUT].of.tensor->numel == 0) {
        return run_empty(call, sizes[1]);
    }
    return mt_native_batch_norm(mt__arg_tensor(call, INPUT), mt__arg_tensor(call, WEIGHT),
                                mt__arg_tensor(call, BIAS), mt__arg_tensor(call, RUNNING_MEAN),
                                mt__arg_tensor(call, RUNNING_VAR), mt__arg_bool(call, TRAINING),
                                mt__arg_real(call, MOMENTUM), mt__arg_real(call, EPS),
                                mt__result_place(call, 0), NULL, NULL);
}

/* Contiguous, or NULL where it is absent. */
static int dense_argument(mt__call *call, uint32_t arg, mt_tensor **out)
{
    mt_tensor *tensor = mt__arg_tensor(call, arg);
    *out = NULL;
    return tensor == NULL ? MT_OK : mt__contiguous(call, tensor, out);
}

/* What the kernel wrote into a contiguous copy goes back. */
static int write_back(const mt__call *call, uint32_t arg, mt_tensor *dense)
{
    mt_tensor *tensor = mt__arg_tensor(call, arg);
    if (tensor == NULL) {
        return MT_OK;
    }
    if (tensor != dense) {
        MT_TRY(mt__copy_elements(tensor, dense));
    }
    mt__tensor_bump(tensor);
    return MT_OK;
}

int mt__run_native_batch_norm(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, INPUT);
    int64_t sizes[3];
    mt_dtype compute = MT_DTYPE_NONE;
    MT_TRY(check_arguments(call, sizes, &compute));
    if (input->numel == 0) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "input tensor must have at least one element, but got input_sizes = %s",
                        mt__shape_text(input->sizes, input->n_dims, text));
    }
    bool training = mt__arg_bool(call, TRAINING);
    mt__shape shape = mt__tensor_shape(input);
    mt__shape channels = {.n_dims = 1, .sizes = {sizes[1]}};
    mt_tensor *results[3];
    for (uint32_t i = 0; i < 3; i++) {
        MT_TRY(mt__result_new(call, i, i == 0 ? (mt_dtype)input->dtype : compute,
                              i == 0 ? &shape : &channels, &results[i]));
    }
    mt_tensor *made = results[0];
    if (compute != (mt_dtype)input->dtype) {
        MT_TRY(mt__temp_new(call, compute, &shape, &made));
        MT_TRY(mt__converted(call, input, compute, &input));
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_BATCH_NORM,
        .n_tensors = 8,
        .tensors = {NULL, results[1], results[2]},
        MT_INTS(training),
        MT_SCALARS(mt_real(mt__arg_real(call, MOMENTUM)), mt_real(mt__arg_real(call, EPS))),
    };
    mt_tensor *dense = NULL;
    MT_TRY(mt__nn_view(call, made, sizes, 3, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, input, &dense));
    MT_TRY(mt__nn_view(call, dense, sizes, 3, &args.tensors[3]));
    for (uint32_t arg = WEIGHT; arg <= RUNNING_VAR; arg++) {
        MT_TRY(dense_argument(call, arg, &args.tensors[3 + arg]));
    }
    MT_TRY(mt__kernel(call, &args));
    if (training) {
        MT_TRY(write_back(call, RUNNING_MEAN, args.tensors[3 + RUNNING_MEAN]));
        MT_TRY(write_back(call, RUNNING_VAR, args.tensors[3 + RUNNING_VAR]));
    }
    if (made != results[0]) {
        MT_TRY(mt__copy_elements(results[0], made));
    }
    return mt__keep_channels_last(call, 0, mt__arg_tensor(call, INPUT));
}

/* native_batch_norm_backward's positions. */
enum {
    BW_GRAD,
    BW_INPUT,
    BW_WEIGHT,
    BW_RUNNING_MEAN,
    BW_RUNNING_VAR,
    BW_SAVE_MEAN,
    BW_SAVE_INVSTD,
    BW_TRAIN,
    BW_EPS,
    BW_MASK
};

static int check_backward(const mt__call *call, int64_t sizes[3], mt_dtype *compute)
{
    const mt_tensor *grad = mt__arg_tensor(call, BW_GRAD);
    const mt_tensor *input = mt__arg_tensor(call, BW_INPUT);
    MT_TRY(find_channels(input, sizes));
    MT_TRY(mt__need_type(grad, (mt_dtype)input->dtype));
    mt__shape shape = mt__tensor_shape(input);
    mt__shape grad_shape = mt__tensor_shape(grad);
    if (!mt__shape_equal(&shape, &grad_shape) || call->args[BW_MASK].count != 3) {
        return mtb_fail(MT_ERUNTIME, "native_batch_norm_backward(): grad_out must have the input's "
                                     "sizes and output_mask three entries");
    }
    for (uint32_t arg = BW_WEIGHT; arg <= BW_SAVE_INVSTD; arg++) {
        MT_TRY(check_size(call, arg, sizes[1]));
    }
    MT_TRY(check_types(call, input, BW_WEIGHT, BW_SAVE_INVSTD, compute));
    bool saved = mt__arg_given(call, BW_SAVE_MEAN) && mt__arg_given(call, BW_SAVE_INVSTD);
    bool running = mt__arg_given(call, BW_RUNNING_MEAN) && mt__arg_given(call, BW_RUNNING_VAR);
    if (!saved && (mt__arg_bool(call, BW_TRAIN) || !running)) {
        return mtb_fail(MT_ERUNTIME,
                        "native_batch_norm_backward(): save_mean and save_invstd must "
                        "be defined%s",
                        running ? " in training mode" : " where running statistics are not");
    }
    return MT_OK;
}

int mt__run_native_batch_norm_backward(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, BW_INPUT);
    int64_t sizes[3];
    mt_dtype compute = MT_DTYPE_NONE;
    MT_TRY(check_backward(call, sizes, &compute));
    mt__shape shape = mt__tensor_shape(input);
    mt__shape channels = {.n_dims = 1, .sizes = {sizes[1]}};
    mt__kernel_args args = {
        .kernel = MT_KERNEL_BATCH_NORM_BACKWARD,
        .n_tensors = 10,
        MT_INTS(mt__arg_bool(call, BW_TRAIN)),
        MT_SCALARS(mt_real(mt__arg_real(call, BW_EPS))),
    };
    for (uint32_t i = 0; i < 3; i++) {
        if (call->args[BW_MASK].of.ints[i] != 0) {
            MT_TRY(mt__result_new(call, i, i == 0 ? (mt_dtype)input->dtype : compute,
                                  i == 0 ? &shape : &channels, &args.tensors[i]));
        }
    }
    mt_tensor *given = args.tensors[0];
    mt_tensor *made = given;
    if (given != NULL && compute != (mt_dtype)input->dtype) {
        MT_TRY(mt__temp_new(call, compute, &shape, &made));
    }
    if (made != NULL) {
        MT_TRY(mt__nn_view(call, made, sizes, 3, &args.tensors[0]));
    }
    for (uint32_t arg = BW_GRAD; arg <= BW_SAVE_INVSTD; arg++) {
        MT_TRY(dense_argument(call, arg, &args.tensors[3 + arg]));
        if (arg <= BW_INPUT) {
            MT_TRY(mt__converted(call, args.tensors[3 + arg], compute, &args.tensors[3 + arg]));
            MT_TRY(mt__nn_view(call, args.tensors[3 + arg], sizes, 3, &args.tensors[3 + arg]));
        }
    }
    MT_TRY(mt__kernel(call, &args));
    if (made != given) {
        MT_TRY(mt__copy_elements(given, made));
    }
    return mt__keep_channels_last(call, 0, mt__arg_tensor(call, BW_INPUT));
}
