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
    MAX_TENSORS = 4,
    MAX_LAYERS = 4
};

typedef struct spec {
    const char *name;
    const char *op;     /* NULL: a training step */
    const char *shapes; /* "8x64x56x56 64x64x3x3"; "-" is None; a T after it: transposed */
    const char *more;   /* further arguments: "1", "0.5", "true", "none", "[1,1]" */
    int backward;       /* 1: the derivative is measured as well */
    int batch;          /* training */
    int layers[MAX_LAYERS + 1];
} spec;

static const spec specs[] = {
    {.name = "add_2x2", .op = "add", .shapes = "2x2 2x2"},
    {.name = "add_1m", .op = "add", .shapes = "1048576 1048576"},
    {.name = "mul_1m", .op = "mul", .shapes = "1048576 1048576"},
    {.name = "div_1m", .op = "div", .shapes = "1048576 1048576"},
    {.name = "relu_1m", .op = "relu", .shapes = "1048576"},
    {.name = "sqrt_1m", .op = "sqrt", .shapes = "1048576"},
    {.name = "exp_1m", .op = "exp", .shapes = "1048576"},
    {.name = "tanh_1m", .op = "tanh", .shapes = "1048576"},
    {.name = "sigmoid_1m", .op = "sigmoid", .shapes = "1048576"},
    {.name = "gelu_1m", .op = "gelu", .shapes = "1048576"},
    {.name = "gt_1m", .op = "gt", .shapes = "1048576 1048576"},
    {.name = "add_row_1m", .op = "add", .shapes = "1024x1024 1024"},
    {.name = "transposed_copy_1m", .op = "contiguous", .shapes = "1024x1024T"},
    {.name = "sum_1m", .op = "sum", .shapes = "1048576"},
    {.name = "mean_1m", .op = "mean", .shapes = "1048576"},
    {.name = "max_1m", .op = "max", .shapes = "1048576"},
    {.name = "sum_dim0", .op = "sum", .shapes = "1024x1024", .more = "[0]"},
    {.name = "sum_dim1", .op = "sum", .shapes = "1024x1024", .more = "[1]"},
    {.name = "argmax_dim1", .op = "argmax", .shapes = "1024x1024", .more = "1"},
    {.name = "matmul_64", .op = "matmul", .shapes = "64x64 64x64"},
    {.name = "matmul_128", .op = "matmul", .shapes = "128x128 128x128"},
    {.name = "matmul_256", .op = "matmul", .shapes = "256x256 256x256"},
    {.name = "matmul_512", .op = "matmul", .shapes = "512x512 512x512"},
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
    {.name = "softmax_gpt", .op = "softmax", .shapes = "1536x1024", .more = "1"},
    {.name = "layer_norm_gpt", .op = "layer_norm", .shapes = "1024x768", .more = "[768]"},
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
};

struct workload {
    const spec *of;
    mt_op op;
    uint32_t n_args;
    mt_value args[MT_MAX_PARAMS];
    int64_t ints[MT_MAX_PARAMS][MAX_TENSORS];
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

const char *workload_name(size_t index)
{
    return index < sizeof specs / sizeof specs[0] ? specs[index].name : NULL;
}

static mt_tensor *make_tensor(const char *word)
{
    int64_t sizes[MAX_TENSORS];
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
    mt_tensor *made;
    must(mt_randn(sizes, n_dims, &made), word);
    must(mt_abs_(made), word); /* sqrt and log are at home there */
    if (*at == 'T') {
        mt_tensor *transposed;
        must(mt_t(made, &transposed), word);
        mt_tensor_release(made);
        made = transposed;
    }
    return made;
}

static void add_shapes(workload *w, const char *shapes)
{
    char text[128];
    char *rest = NULL;
    snprintf(text, sizeof text, "%s", shapes);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        mt_value *arg = &w->args[w->n_args++];
        *arg = (mt_value){.kind = MT_KIND_NONE};
        if (word[0] != '-') {
            *arg = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = make_tensor(word)};
            if (w->of->backward) {
                must(mt_tensor_set_requires_grad(arg->of.tensor, true), w->of->name);
            }
        }
    }
}

static void add_more(workload *w, const char *more)
{
    char text[128];
    char *rest = NULL;
    snprintf(text, sizeof text, "%s", more);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        uint32_t i = w->n_args++;
        if (word[0] == '[') {
            uint32_t count = 0;
            for (char *at = word; *at != ']';) {
                w->ints[i][count++] = strtoll(at + 1, &at, 10);
            }
            w->args[i] = (mt_value){.kind = MT_KIND_INTS, .count = count, .of.ints = w->ints[i]};
        } else if (strcmp(word, "true") == 0) {
            w->args[i] = mt_bool(true);
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
    mt_optimizer_options options = {.struct_size = sizeof options};
    must(mt_optimizer_get_defaults(MT_OPTIMIZER_SGD, &options), "defaults");
    options.lr = 1e-3;
    options.momentum = 0.9;
    must(mt_optimizer_new(&options, w->parameters, (size_t)(2 * w->n_layers), &w->optimizer),
         "SGD");
}

workload *workload_open(size_t index)
{
    workload *w = calloc(1, sizeof *w);
    if (w == NULL) {
        exit(1);
    }
    w->of = &specs[index];
    mt_manual_seed(1);
    if (w->of->op == NULL) {
        open_training(w);
        return w;
    }
    must(mt_op_find(w->of->op, &w->op) ? MT_OK : MT_EVALUE, w->of->name);
    add_shapes(w, w->of->shapes);
    add_more(w, w->of->more == NULL ? "" : w->of->more);
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
        if (w->of->op == NULL) {
            train_step(w);
            continue;
        }
        mt_value result;
        must(mt_call(w->op, w->args, w->n_args, &result, 1), w->of->name);
        if (w->of->backward) {
            run_backward(w, result.of.tensor);
        }
        mt_tensor_release(result.of.tensor);
    }
}

void workload_close(workload *w)
{
    for (uint32_t i = 0; i < w->n_args; i++) {
        if (w->args[i].kind == MT_KIND_TENSOR) {
            mt_tensor_release(w->args[i].of.tensor);
        }
    }
    for (int i = 0; i < 2 * w->n_layers; i++) {
        mt_tensor_release(w->parameters[i]);
    }
    mt_tensor_release(w->grad);
    mt_tensor_release(w->in);
    mt_tensor_release(w->target);
    mt_optimizer_free(w->optimizer);
    free(w);
}
