/* SPDX-License-Identifier: Apache-2.0
 *
 * Workloads (runtime_workloads.h): rows for single ops, and an MLP with a fused optimizer.
 */
#include "runtime_workloads.h"

#include <mindtorch/mindtorch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DIMS = 5,
    MAX_LAYERS = 4,
    MAX_LISTED = 2, /* tensors of a list */
    WORDS = 128     /* bytes of a row's text */
};

typedef struct spec {
    const char *name;
    const char *op;     /* NULL: a training step */
    const char *shapes; /* "8x64x56x56 64x64x3x3"; "-" is None; after it T: transposed, S: every
                         * second element of a twice as long last dimension; "2x3+2x3": a list */
    const char *more;   /* further arguments: "1", "0.5", "true", "none", "[1,1]", "float16" */
    mt_dtype dtype;     /* of the tensors; 0: float32 */
    int halves;         /* 1: measured in float16 and bfloat16 too, as NAME_f16 and NAME_bf16 */
    int backward;       /* 1: the derivative is measured as well */
    int64_t stepped;    /* an optimizer's step on so many elements, gradients given */
    int batch;          /* training */
    int layers[MAX_LAYERS + 1];
} spec;

static const spec specs[] = {
    {.name = "add_2x2", .op = "add", .shapes = "2x2 2x2"},
    {.name = "add_1m", .op = "add", .shapes = "1048576 1048576", .halves = 1},
    {.name = "mul_1m", .op = "mul", .shapes = "1048576 1048576", .halves = 1},
    {.name = "div_1m", .op = "div", .shapes = "1048576 1048576", .halves = 1},
    {.name = "relu_1m", .op = "relu", .shapes = "1048576", .halves = 1},
    {.name = "sqrt_1m", .op = "sqrt", .shapes = "1048576"},
    {.name = "exp_1m", .op = "exp", .shapes = "1048576", .halves = 1},
    {.name = "tanh_1m", .op = "tanh", .shapes = "1048576", .halves = 1},
    {.name = "sigmoid_1m", .op = "sigmoid", .shapes = "1048576", .halves = 1},
    {.name = "gelu_1m", .op = "gelu", .shapes = "1048576", .halves = 1},
    {.name = "gt_1m", .op = "gt", .shapes = "1048576 1048576", .halves = 1},
    {.name = "add_row_1m", .op = "add", .shapes = "1024x1024 1024", .halves = 1},
    {.name = "transposed_copy_1m", .op = "contiguous", .shapes = "1024x1024T"},
    {.name = "sum_1m", .op = "sum", .shapes = "1048576", .halves = 1},
    {.name = "mean_1m", .op = "mean", .shapes = "1048576", .halves = 1},
    {.name = "max_1m", .op = "max", .shapes = "1048576", .halves = 1},
    {.name = "sum_dim0", .op = "sum", .shapes = "1024x1024", .more = "[0]", .halves = 1},
    {.name = "sum_dim1", .op = "sum", .shapes = "1024x1024", .more = "[1]", .halves = 1},
    {.name = "argmax_dim1", .op = "argmax", .shapes = "1024x1024", .more = "1"},
    {.name = "matmul_64", .op = "matmul", .shapes = "64x64 64x64", .halves = 1},
    {.name = "matmul_128", .op = "matmul", .shapes = "128x128 128x128"},
    {.name = "matmul_256", .op = "matmul", .shapes = "256x256 256x256", .halves = 1},
    {.name = "matmul_512", .op = "matmul", .shapes = "512x512 512x512", .halves = 1},
    {.name = "matmul_1024", .op = "matmul", .shapes = "1024x1024 1024x1024"},
    {.name = "conv_7x7_3_64",
     .op = "conv2d",
     .shapes = "4x3x224x224 64x3x7x7 -",
     .more = "[2,2] [3,3]"},
    {.name = "conv_3x3_64",
     .op = "conv2d",
     .shapes = "4x64x56x56 64x64x3x3 -",
     .more = "[1,1] [1,1]"},
    {.name = "conv_3x3_128",
     .op = "conv2d",
     .shapes = "4x128x28x28 128x128x3x3 -",
     .more = "[1,1] [1,1]"},
    {.name = "conv_3x3_256",
     .op = "conv2d",
     .shapes = "4x256x14x14 256x256x3x3 -",
     .more = "[1,1] [1,1]"},
    {.name = "conv_3x3_512",
     .op = "conv2d",
     .shapes = "4x512x7x7 512x512x3x3 -",
     .more = "[1,1] [1,1]"},
    {.name = "conv_1x1_256_64", .op = "conv2d", .shapes = "4x256x56x56 64x256x1x1 -"},
    {.name = "softmax_gpt", .op = "softmax", .shapes = "1536x1024", .more = "1", .halves = 1},
    {.name = "layer_norm_gpt",
     .op = "layer_norm",
     .shapes = "1024x768",
     .more = "[768]",
     .halves = 1},
    {.name = "layer_norm_gpt_backward",
     .op = "layer_norm",
     .shapes = "1024x768",
     .more = "[768]",
     .backward = 1},
    {.name = "attention_gpt",
     .op = "scaled_dot_product_attention",
     .shapes = "1x12x1024x64 1x12x1024x64 1x12x1024x64 -",
     .more = "0.0 true"},
    {.name = "attention_gpt_backward",
     .op = "scaled_dot_product_attention",
     .shapes = "1x12x1024x64 1x12x1024x64 1x12x1024x64 -",
     .more = "0.0 true",
     .backward = 1},
    {.name = "mlp_small_32", .batch = 32, .layers = {64, 64, 64, 10}},
    {.name = "mlp_small_1024", .batch = 1024, .layers = {64, 64, 64, 10}},
    {.name = "mlp_mnist_32", .batch = 32, .layers = {784, 128, 128, 10}},
    {.name = "mlp_mnist_1024", .batch = 1024, .layers = {784, 128, 128, 10}},
    {.name = "conv_3x3_28", /* small, for the types of two bytes */
     .op = "conv2d",
     .shapes = "4x64x28x28 64x64x3x3 -",
     .more = "[1,1] [1,1]",
     .halves = 1},
    /* conversions */
    {.name = "float_to_f16", .op = "to", .shapes = "1048576", .more = "float16"},
    {.name = "float_to_bf16", .op = "to", .shapes = "1048576", .more = "bfloat16"},
    {.name = "f16_to_float",
     .op = "to",
     .shapes = "1048576",
     .more = "float32",
     .dtype = MT_DTYPE_F16},
    {.name = "bf16_to_float",
     .op = "to",
     .shapes = "1048576",
     .more = "float32",
     .dtype = MT_DTYPE_BF16},
    /* what moves elements */
    {.name = "flip_1m", .op = "flip", .shapes = "1024x1024", .more = "[1]"},
    {.name = "flip_dim0", .op = "flip", .shapes = "1024x1024", .more = "[0]"},
    {.name = "roll_1m", .op = "roll", .shapes = "1024x1024", .more = "[100] [1]"},
    {.name = "slice_step2", .op = "contiguous", .shapes = "1024x512S"},
    {.name = "add_step2", .op = "add", .shapes = "1024x512S 1024x512S"},
    {.name = "cumsum_dim1", .op = "cumsum", .shapes = "1024x1024", .more = "1"},
    /* powers, logarithms, trigonometry */
    {.name = "pow_tensor", .op = "pow", .shapes = "1048576 1048576"},
    {.name = "pow_2", .op = "pow", .shapes = "1048576", .more = "2"},
    {.name = "pow_3", .op = "pow", .shapes = "1048576", .more = "3"},
    {.name = "pow_1.7", .op = "pow", .shapes = "1048576", .more = "1.7"},
    {.name = "log_1m", .op = "log", .shapes = "1048576"},
    {.name = "sin_1m", .op = "sin", .shapes = "1048576"},
    {.name = "silu_1m", .op = "silu", .shapes = "1048576"},
    /* columns */
    {.name = "sum_columns_64", .op = "sum", .shapes = "16384x64", .more = "[0]"},
    {.name = "mean_dim0", .op = "mean", .shapes = "1024x1024", .more = "[0]"},
    {.name = "amax_dim0", .op = "amax", .shapes = "1024x1024", .more = "[0]"},
    {.name = "sum_channels", .op = "sum", .shapes = "8x64x56x56", .more = "[0,2,3]"},
    {.name = "var_dim1", .op = "var", .shapes = "1024x1024", .more = "[1]"},
    /* layers */
    {.name = "lstm_cell",
     .op = "lstm_cell",
     .shapes = "32x128 32x256+32x256 1024x128 1024x256 1024 1024"},
    {.name = "lstm_cell_small",
     .op = "lstm_cell",
     .shapes = "8x32 8x64+8x64 256x32 256x64 256 256"},
    {.name = "gru_cell", .op = "gru_cell", .shapes = "32x128 32x256 768x128 768x256 768 768"},
    {.name = "conv_transpose_4x4",
     .op = "conv_transpose2d",
     .shapes = "4x64x28x28 64x32x4x4 -",
     .more = "[2,2] [1,1]"},
    {.name = "conv_transpose_3x3",
     .op = "conv_transpose2d",
     .shapes = "4x64x28x28 64x64x3x3 -",
     .more = "[1,1] [1,1]"},
    {.name = "batch_norm",
     .op = "batch_norm",
     .shapes = "8x64x56x56 64 64 64 64",
     .more = "true 0.1 0.00001"},
    {.name = "max_pool_2x2", .op = "max_pool2d", .shapes = "8x64x56x56", .more = "[2,2]"},
    {.name = "interpolate_nearest",
     .op = "upsample_nearest2d",
     .shapes = "4x16x64x64",
     .more = "[128,128]"},
    {.name = "interpolate_bilinear",
     .op = "upsample_bilinear2d",
     .shapes = "4x16x64x64",
     .more = "[128,128] false"},
    {.name = "interpolate_bilinear_backward",
     .op = "upsample_bilinear2d",
     .shapes = "4x16x64x64",
     .more = "[128,128] false",
     .backward = 1},
    {.name = "interpolate_bicubic",
     .op = "upsample_bicubic2d",
     .shapes = "4x16x64x64",
     .more = "[128,128] false"},
    {.name = "interpolate_linear",
     .op = "upsample_linear1d",
     .shapes = "16x64x512",
     .more = "[1024] false"},
    {.name = "interpolate_trilinear",
     .op = "upsample_trilinear3d",
     .shapes = "2x8x16x32x32",
     .more = "[32,64,64] false"},
    {.name = "grid_sample_2d",
     .op = "grid_sampler_2d",
     .shapes = "4x16x64x64 4x64x64x2",
     .more = "0 0 false"},
    {.name = "grid_sample_2d_nearest",
     .op = "grid_sampler_2d",
     .shapes = "4x16x64x64 4x64x64x2",
     .more = "1 0 false"},
    {.name = "grid_sample_2d_bicubic",
     .op = "grid_sampler_2d",
     .shapes = "4x16x64x64 4x64x64x2",
     .more = "2 0 false"},
    {.name = "grid_sample_2d_backward",
     .op = "grid_sampler_2d",
     .shapes = "4x16x64x64 4x64x64x2",
     .more = "0 0 false",
     .backward = 1},
    {.name = "grid_sample_3d",
     .op = "grid_sampler_3d",
     .shapes = "2x8x16x32x32 2x16x32x32x3",
     .more = "0 0 false"},
    /* signals */
    {.name = "fft_1024", .op = "fft_fft", .shapes = "256x1024"},
    {.name = "rfft_1024", .op = "fft_rfft", .shapes = "256x1024"},
    {.name = "rfft_1000", .op = "fft_rfft", .shapes = "256x1000"},
    {.name = "fft2_256", .op = "fft_fft2", .shapes = "4x256x256"},
    /* special functions */
    {.name = "i0_1m", .op = "i0", .shapes = "1048576"},
    {.name = "i0e_1m", .op = "special_i0e", .shapes = "1048576"},
    {.name = "i1_1m", .op = "special_i1", .shapes = "1048576"},
    {.name = "i1e_1m", .op = "special_i1e", .shapes = "1048576"},
    {.name = "bessel_j0", .op = "special_bessel_j0", .shapes = "1048576"},
    {.name = "bessel_j1", .op = "special_bessel_j1", .shapes = "1048576"},
    {.name = "bessel_y0", .op = "special_bessel_y0", .shapes = "1048576"},
    {.name = "bessel_y1", .op = "special_bessel_y1", .shapes = "1048576"},
    {.name = "bessel_k0", .op = "special_modified_bessel_k0", .shapes = "1048576"},
    {.name = "bessel_k1", .op = "special_modified_bessel_k1", .shapes = "1048576"},
    {.name = "spherical_j0", .op = "special_spherical_bessel_j0", .shapes = "1048576"},
    {.name = "lgamma_1m", .op = "lgamma", .shapes = "1048576"},
    {.name = "digamma_1m", .op = "digamma", .shapes = "1048576"},
    {.name = "erfinv_1m", .op = "erfinv", .shapes = "1048576"},
    {.name = "erfc_1m", .op = "erfc", .shapes = "1048576"},
    {.name = "sinh_1m", .op = "sinh", .shapes = "1048576"},
    {.name = "asin_1m", .op = "asin", .shapes = "1048576"},
    {.name = "atan_1m", .op = "atan", .shapes = "1048576"},
    {.name = "atan2_1m", .op = "atan2", .shapes = "1048576 1048576"},
    /* optimizers */
    {.name = "sgd_1m", .stepped = 1048576},
};

struct workload {
    const spec *of;
    mt_dtype dtype;
    mt_op op;
    uint32_t n_args, n_results;
    mt_value args[MT_MAX_PARAMS];
    int64_t ints[MT_MAX_PARAMS][MAX_DIMS];
    mt_tensor *listed[MT_MAX_PARAMS][MAX_LISTED];
    mt_tensor *grad; /* backward: of the result */
    /* training */
    int n_layers;
    mt_tensor *parameters[2 * MAX_LAYERS];
    mt_tensor *in, *target;
    mt_optimizer *optimizer;
};

static void must(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "%s: %s\n", what, mt_last_error()->message);
        exit(1);
    }
}

/* The row and the type of a workload; false after the last. */
static bool find_spec(size_t index, const spec **of, mt_dtype *dtype)
{
    static const mt_dtype types[] = {MT_DTYPE_F32, MT_DTYPE_F16, MT_DTYPE_BF16};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        size_t count = specs[i].halves ? sizeof types / sizeof types[0] : 1;
        if (index < count) {
            *of = &specs[i];
            *dtype = specs[i].dtype != 0 ? specs[i].dtype : types[index];
            return true;
        }
        index -= count;
    }
    return false;
}

const char *workload_name(size_t index)
{
    static char name[64];
    const spec *of;
    mt_dtype dtype;
    if (!find_spec(index, &of, &dtype)) {
        return NULL;
    }
    snprintf(name, sizeof name, "%s%s", of->name,
             !of->halves              ? ""
             : dtype == MT_DTYPE_F16  ? "_f16"
             : dtype == MT_DTYPE_BF16 ? "_bf16"
                                      : "");
    return name;
}

/* *made becomes what `next` is; the old one is released. */
static void replace(mt_tensor **made, mt_tensor *next)
{
    mt_tensor_release(*made);
    *made = next;
}

static mt_tensor *make_tensor(const char *word, mt_dtype dtype)
{
    int64_t sizes[MAX_DIMS];
    size_t n_dims = 0;
    const char *at = word;
    for (;;) {
        char *end;
        sizes[n_dims++] = strtoll(at, &end, 10);
        at = end;
        if (*at != 'x') {
            break;
        }
        at++;
    }
    sizes[n_dims - 1] *= *at == 'S' ? 2 : 1;
    mt_tensor *made, *next;
    must(mt_randn(sizes, n_dims, &made), word);
    must(mt_abs_(made), word); /* sqrt and log are at home there */
    if (dtype != MT_DTYPE_F32) {
        must(mt_to_with(made, dtype, mt_tensor_device(made), false, false, &next), word);
        replace(&made, next);
    }
    if (*at == 'T') {
        must(mt_t(made, &next), word);
        replace(&made, next);
    } else if (*at == 'S') {
        int64_t last = (int64_t)n_dims - 1;
        must(mt_slice(made, last, NULL, NULL, 2, &next), word);
        replace(&made, next);
    }
    return made;
}

static void add_shapes(workload *w, const char *shapes)
{
    char text[WORDS];
    char *rest = NULL;
    snprintf(text, sizeof text, "%s", shapes);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        uint32_t i = w->n_args++;
        char *second = strchr(word, '+');
        if (word[0] == '-') {
            w->args[i] = (mt_value){.kind = MT_KIND_NONE};
        } else if (second != NULL) {
            w->listed[i][0] = make_tensor(word, w->dtype);
            w->listed[i][1] = make_tensor(second + 1, w->dtype);
            w->args[i] = (mt_value){
                .kind = MT_KIND_TENSORS, .count = MAX_LISTED, .of.tensors = w->listed[i]};
        } else {
            w->args[i] =
                (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = make_tensor(word, w->dtype)};
            if (w->of->backward) {
                must(mt_tensor_set_requires_grad(w->args[i].of.tensor, true), w->of->name);
            }
        }
    }
}

/* The type that a word names, MT_DTYPE_NONE where it names none. */
static mt_dtype type_of(const char *word)
{
    for (int i = 0; i < MT_DTYPE_COUNT; i++) {
        if (strcmp(mt_dtype_name((mt_dtype)i), word) == 0) {
            return (mt_dtype)i;
        }
    }
    return MT_DTYPE_NONE;
}

static void add_more(workload *w, const char *more)
{
    char text[WORDS];
    char *rest = NULL;
    snprintf(text, sizeof text, "%s", more);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        uint32_t i = w->n_args++;
        mt_dtype dtype = type_of(word);
        if (word[0] == '[') {
            uint32_t count = 0;
            for (char *at = word; *at != ']';) {
                w->ints[i][count++] = strtoll(at + 1, &at, 10);
            }
            w->args[i] = (mt_value){.kind = MT_KIND_INTS, .count = count, .of.ints = w->ints[i]};
        } else if (dtype != MT_DTYPE_NONE) {
            w->args[i] = (mt_value){.kind = MT_KIND_DTYPE, .of.integer = dtype};
        } else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
            w->args[i] = mt_bool(word[0] == 't');
        } else if (strcmp(word, "none") == 0) {
            w->args[i] = (mt_value){.kind = MT_KIND_NONE};
        } else if (strchr(word, '.') != NULL) {
            w->args[i] = mt_real(strtod(word, NULL));
        } else {
            w->args[i] = mt_int(strtoll(word, NULL, 10));
        }
    }
}

static mt_tensor *parameter(int64_t outputs, int64_t inputs, size_t n_dims)
{
    mt_tensor *made;
    must(mt_empty((int64_t[]){outputs, inputs}, n_dims, &made), "parameter");
    must(mt_uniform_(made, -0.05, 0.05), "parameter");
    must(mt_tensor_set_requires_grad(made, true), "parameter");
    return made;
}

static void open_optimizer(workload *w, size_t count)
{
    mt_optimizer_options options = {.struct_size = sizeof options};
    must(mt_optimizer_get_defaults(MT_OPTIMIZER_SGD, &options), "defaults");
    options.lr = 1e-3;
    options.momentum = 0.9;
    must(mt_optimizer_new(&options, w->parameters, count, &w->optimizer), "SGD");
}

static void open_training(workload *w)
{
    const int *layers = w->of->layers;
    while (w->n_layers < MAX_LAYERS && layers[w->n_layers + 1] != 0) {
        int i = w->n_layers++;
        w->parameters[2 * i] = parameter(layers[i + 1], layers[i], 2);
        w->parameters[2 * i + 1] = parameter(layers[i + 1], layers[i], 1);
    }
    must(mt_randn((int64_t[]){w->of->batch, layers[0]}, 2, &w->in), "data");
    must(mt_randint(0, layers[w->n_layers], (int64_t[]){w->of->batch}, 1, &w->target), "data");
    open_optimizer(w, (size_t)(2 * w->n_layers));
}

/* One parameter with a gradient, as after a backward pass. */
static void open_step(workload *w)
{
    mt_tensor *grad;
    w->parameters[0] = parameter(w->of->stepped, 1, 1);
    must(mt_ones_like(w->parameters[0], &grad), "gradient");
    must(mt_tensor_set_grad(w->parameters[0], grad), "gradient");
    mt_tensor_release(grad);
    open_optimizer(w, 1);
}

workload *workload_open(size_t index)
{
    workload *w = calloc(1, sizeof *w);
    if (w == NULL || !find_spec(index, &w->of, &w->dtype)) {
        exit(1);
    }
    mt_manual_seed(1);
    if (w->of->stepped != 0) {
        open_step(w);
        return w;
    }
    if (w->of->op == NULL) {
        open_training(w);
        return w;
    }
    must(mt_op_find(w->of->op, &w->op) ? MT_OK : MT_EVALUE, w->of->name);
    add_shapes(w, w->of->shapes);
    add_more(w, w->of->more == NULL ? "" : w->of->more);
    mt_op_info info = {.struct_size = sizeof info};
    must(mt_op_get_info(w->op, &info), w->of->name);
    w->n_results = info.n_results;
    return w;
}

static void train_step(workload *w)
{
    mt_tensor *x = mt_tensor_retain(w->in);
    mt_tensor *next;
    for (int i = 0; i < w->n_layers; i++) {
        must(mt_linear(x, w->parameters[2 * i], w->parameters[2 * i + 1], &next), "linear");
        mt_tensor_release(x);
        x = next;
        if (i + 1 < w->n_layers) {
            must(mt_relu(x, &next), "relu");
            mt_tensor_release(x);
            x = next;
        }
    }
    must(mt_cross_entropy_loss(x, w->target, NULL, MT_REDUCTION_MEAN, -100, 0, &next), "loss");
    must(mt_optimizer_zero_grad(w->optimizer), "zero_grad");
    must(mt_backward(next, NULL, 0), "backward");
    must(mt_optimizer_step(w->optimizer), "step");
    mt_tensor_release(x);
    mt_tensor_release(next);
}

static void run_backward(workload *w, mt_tensor *result)
{
    if (w->grad == NULL) {
        must(mt_ones_like(result, &w->grad), w->of->name);
    }
    must(mt_backward(result, w->grad, 0), w->of->name);
    for (uint32_t i = 0; i < w->n_args; i++) {
        if (w->args[i].kind == MT_KIND_TENSOR) {
            must(mt_tensor_set_grad(w->args[i].of.tensor, NULL), w->of->name);
        }
    }
}

void workload_run(void *opened, uint64_t n)
{
    workload *w = opened;
    for (uint64_t i = 0; i < n; i++) {
        if (w->of->stepped != 0) {
            must(mt_optimizer_step(w->optimizer), w->of->name);
            continue;
        }
        if (w->of->op == NULL) {
            train_step(w);
            continue;
        }
        mt_value results[MT_MAX_RESULTS];
        must(mt_call(w->op, w->args, w->n_args, results, w->n_results), w->of->name);
        if (w->of->backward) {
            run_backward(w, results[0].of.tensor);
        }
        for (uint32_t k = 0; k < w->n_results; k++) {
            mt_value_clear(&results[k]);
        }
    }
}

void workload_close(workload *w)
{
    for (uint32_t i = 0; i < w->n_args; i++) {
        if (w->args[i].kind == MT_KIND_TENSOR) {
            mt_tensor_release(w->args[i].of.tensor);
        }
        for (int k = 0; k < MAX_LISTED; k++) {
            mt_tensor_release(w->listed[i][k]);
        }
    }
    for (int i = 0; i < 2 * MAX_LAYERS; i++) {
        mt_tensor_release(w->parameters[i]);
    }
    mt_tensor_release(w->grad);
    mt_tensor_release(w->in);
    mt_tensor_release(w->target);
    mt_optimizer_free(w->optimizer);
    free(w);
}
