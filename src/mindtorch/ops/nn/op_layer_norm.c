/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_norm. Kernels see [rows, width]: the dimensions of normalized_shape are one row.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>
#include <string.h>

/* How an input falls into rows. */
typedef struct rows {
    mt__shape shape;   /* of the row: normalized_shape */
    int64_t sizes[2];  /* rows, width */
    uint32_t n_before; /* dimensions in front of the row's */
} rows;

static int check_size(const rows *r, const mt_tensor *parameter, const char *name)
{
    if (parameter == NULL) {
        return MT_OK;
    }
    mt__shape shape = mt__tensor_shape(parameter);
    if (mt__shape_equal(&shape, &r->shape)) {
        return MT_OK;
    }
    char a[MT_SHAPE_TEXT];
    char b[MT_SHAPE_TEXT];
    return mtb_fail(MT_ERUNTIME,
                    "Expected %s to be of same shape as normalized_shape, but got %s of shape %s "
                    "and normalized_shape = %s",
                    name, name, mt__shape_text(parameter->sizes, parameter->n_dims, a),
                    mt__shape_text(r->shape.sizes, r->shape.n_dims, b));
}

/* Checks normalized_shape, argument `arg`, against the input. */
static int find_rows(const mt__call *call, const mt_tensor *input, uint32_t arg, rows *r)
{
    const mt_value *given = &call->args[arg];
    if (given->count == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected normalized_shape to be at least 1-dimensional, i.e., "
                        "containing at least one element, but got normalized_shape = []");
    }
    MT_TRY(mt__shape_make(mt__op_name(call), given->of.ints, given->count, &r->shape));
    uint32_t n = r->shape.n_dims;
    if (n > input->n_dims || memcmp(input->sizes + (input->n_dims - n), r->shape.sizes,
                                    n * sizeof(r->shape.sizes[0])) != 0) {
        char text[MT_SHAPE_TEXT];
        char size[MT_SHAPE_TEXT];
        mt__shape_text(r->shape.sizes, n, text);
        return mtb_fail(
            MT_ERUNTIME,
            "Given normalized_shape=%s, expected input with shape [*, %s, but got input "
            "of size%s",
            text, text + 1, mt__shape_text(input->sizes, input->n_dims, size));
    }
    r->n_before = input->n_dims - n;
    r->sizes[0] = 1;
    r->sizes[1] = 1;
    for (uint32_t i = 0; i < input->n_dims; i++) {
        r->sizes[i < r->n_before ? 0 : 1] *= input->sizes[i];
    }
    return MT_OK;
}

/* [rows, width], [width] or [rows] of what may be absent. */
static int as_rows(mt__call *call, mt_tensor *tensor, const int64_t *sizes, uint32_t n_dims,
                   mt_tensor **out)
{
    *out = NULL;
    if (tensor == NULL) {
        return MT_OK;
    }
    mt_tensor *dense = NULL;
    MT_TRY(mt__contiguous(call, tensor, &dense));
    return mt__nn_view(call, dense, sizes, n_dims, out);
}

static int fill(mt__call *call, mt_tensor *out, double value)
{
    mt__kernel_args args = {
        .kernel = MT_KERNEL_FILL,
        MT_TENSORS(out),
        MT_SCALARS(mt_real(value)),
    };
    return mt__kernel(call, &args);
}

int mt__run_layer_norm(mt__call *call)
{
    return mt_native_layer_norm(mt__arg_tensor(call, 0), call->args[1].of.ints, call->args[1].count,
                                mt__arg_tensor(call, 2), mt__arg_tensor(call, 3),
                                mt__arg_real(call, 4), mt__result_place(call, 0), NULL, NULL);
}

int mt__run_native_layer_norm(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    mt_tensor *weight = mt__arg_tensor(call, 2);
    mt_tensor *bias = mt__arg_tensor(call, 3);
    rows r = {.n_before = 0};
    MT_TRY(find_rows(call, input, 1, &r));
    MT_TRY(check_size(&r, weight, "weight"));
    MT_TRY(check_size(&r, bias, "bias"));
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    mt_dtype compute = MT_DTYPE_NONE;
    MT_TRY(mt__norm_type(input, (mt_tensor *const[]){weight, bias}, 2, &compute));
    mt__shape shape = mt__tensor_shape(input);
    mt__shape statistics = shape;
    for (uint32_t i = r.n_before; i < shape.n_dims; i++) {
        statistics.sizes[i] = 1;
    }
    mt_tensor *results[3];
    for (uint32_t i = 0; i < 3; i++) {
        MT_TRY(mt__result_new(call, i, i == 0 ? (mt_dtype)input->dtype : compute,
                              i == 0 ? &shape : &statistics, &results[i]));
    }
    mt_tensor *made = results[0];
    if (compute != (mt_dtype)input->dtype) {
        MT_TRY(mt__temp_new(call, compute, &shape, &made));
        MT_TRY(mt__converted(call, input, compute, &input));
    }
    if (r.sizes[0] == 0) {
        return MT_OK;
    }
    if (r.sizes[1] == 0) { /* rows without elements: what torch says of them */
        MT_TRY(fill(call, results[1], 0.0));
        return fill(call, results[2], (double)NAN);
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_LAYER_NORM,
        .n_tensors = 6,
        MT_SCALARS(mt_real(mt__arg_real(call, 4))),
    };
    MT_TRY(as_rows(call, made, r.sizes, 2, &args.tensors[0]));
    MT_TRY(as_rows(call, results[1], r.sizes, 1, &args.tensors[1]));
    MT_TRY(as_rows(call, results[2], r.sizes, 1, &args.tensors[2]));
    MT_TRY(as_rows(call, input, r.sizes, 2, &args.tensors[3]));
    MT_TRY(as_rows(call, weight, r.sizes + 1, 1, &args.tensors[4]));
    MT_TRY(as_rows(call, bias, r.sizes + 1, 1, &args.tensors[5]));
    MT_TRY(mt__kernel(call, &args));
    return made == results[0] ? MT_OK : mt__copy_elements(results[0], made);
}

/* Statistics have a number for each row, of the type that was computed in. */
static int check_statistics(const rows *r, mt_dtype compute, const mt_tensor *statistics,
                            const char *name)
{
    if (statistics->numel != r->sizes[0] || statistics->dtype != (uint8_t)compute) {
        return mtb_fail(MT_ERUNTIME,
                        "native_layer_norm_backward(): %s must hold %lld elements of type %s, got "
                        "%lld of type %s",
                        name, (long long)r->sizes[0], mt_dtype_name(compute),
                        (long long)statistics->numel, mt_dtype_name((mt_dtype)statistics->dtype));
    }
    return MT_OK;
}

int mt__run_native_layer_norm_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *input = mt__arg_tensor(call, 1);
    mt_tensor *weight = mt__arg_tensor(call, 5);
    const mt_value *mask = &call->args[7];
    rows r = {.n_before = 0};
    MT_TRY(find_rows(call, input, 2, &r));
    MT_TRY(check_size(&r, weight, "weight"));
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    mt_dtype compute = MT_DTYPE_NONE;
    mt_tensor *const beside[] = {weight, mt__arg_tensor(call, 3)};
    MT_TRY(mt__norm_type(input, beside, 2, &compute));
    MT_TRY(check_statistics(&r, compute, mt__arg_tensor(call, 3), "mean"));
    MT_TRY(check_statistics(&r, compute, mt__arg_tensor(call, 4), "rstd"));
    MT_TRY(mt__need_type(grad, (mt_dtype)input->dtype));
    mt__shape shape = mt__tensor_shape(input);
    mt__shape grad_shape = mt__tensor_shape(grad);
    if (!mt__shape_equal(&shape, &grad_shape) || mask->count != 3) {
        return mtb_fail(MT_ERUNTIME, "native_layer_norm_backward(): grad_out must have the input's "
                                     "sizes and output_mask three entries");
    }
    mt_tensor *results[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < 3; i++) {
        if (mask->of.ints[i] != 0) {
            MT_TRY(mt__result_new(call, i, i == 0 ? (mt_dtype)input->dtype : compute,
                                  i == 0 ? &shape : &r.shape, &results[i]));
        }
    }
    mt_tensor *made = results[0];
    if (compute != (mt_dtype)input->dtype) {
        if (made != NULL) {
            MT_TRY(mt__temp_new(call, compute, &shape, &made));
        }
        MT_TRY(mt__converted(call, input, compute, &input));
        MT_TRY(mt__converted(call, grad, compute, &grad));
    }
    mt__kernel_args args = {.kernel = MT_KERNEL_LAYER_NORM_BACKWARD, .n_tensors = 8};
    MT_TRY(as_rows(call, made, r.sizes, 2, &args.tensors[0]));
    MT_TRY(as_rows(call, results[1], r.sizes + 1, 1, &args.tensors[1]));
    MT_TRY(as_rows(call, results[2], r.sizes + 1, 1, &args.tensors[2]));
    MT_TRY(as_rows(call, grad, r.sizes, 2, &args.tensors[3]));
    MT_TRY(as_rows(call, input, r.sizes, 2, &args.tensors[4]));
    MT_TRY(as_rows(call, mt__arg_tensor(call, 3), r.sizes, 1, &args.tensors[5]));
    MT_TRY(as_rows(call, mt__arg_tensor(call, 4), r.sizes, 1, &args.tensors[6]));
    MT_TRY(as_rows(call, weight, r.sizes + 1, 1, &args.tensors[7]));
    MT_TRY(mt__kernel(call, &args));
    return made == results[0] ? MT_OK : mt__copy_elements(results[0], made);
}
