/* SPDX-License-Identifier: Apache-2.0
 *
 * Small models: see small_models.h.
 */
#include "support/small_models.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TRY(expr)             \
    do {                      \
        int status_ = (expr); \
        if (status_ != 0) {   \
            return status_;   \
        }                     \
    } while (0)

/* x becomes what `expr` puts into the new place `out`. */
#define NEXT(x, expr)              \
    do {                           \
        mt_tensor **out = temp(m); \
        TRY(expr);                 \
        (x) = *out;                \
    } while (0)

/* A place that is emptied after the step. */
static mt_tensor **temp(sm_model *m)
{
    assert(m->n_temps < SM_MAX_TEMPS);
    mt_tensor **place = &m->temps[m->n_temps++];
    *place = NULL;
    return place;
}

static void drop_temps(sm_model *m)
{
    while (m->n_temps > 0) {
        mt_tensor_release(m->temps[--m->n_temps]);
    }
}

/* A parameter of normal numbers; a deviation of 0 gives zeros, below 0 ones. */
static int parameter(sm_model *m, const int64_t *sizes, size_t n_dims, double deviation)
{
    assert(m->n_parameters < SM_MAX_PARAMETERS);
    mt_tensor **place = &m->parameters[m->n_parameters];
    TRY(mt_empty(sizes, n_dims, place));
    m->n_parameters++;
    if (deviation > 0.0) {
        TRY(mt_normal_(*place, 0.0, deviation));
    } else {
        TRY(mt_fill_scalar_(*place, mt_real(deviation < 0.0 ? 1.0 : 0.0)));
    }
    return mt_tensor_set_requires_grad(*place, true);
}

static int linear_parameters(sm_model *m, int64_t in, int64_t out)
{
    TRY(parameter(m, (const int64_t[]){out, in}, 2, 1.0 / sqrt((double)in)));
    return parameter(m, &out, 1, 0.0);
}

/* x weight^T + bias, with parameters i and i + 1. */
static int linear(sm_model *m, mt_tensor **x, size_t i)
{
    NEXT(*x, mt_linear(*x, m->parameters[i], m->parameters[i + 1], out));
    return MT_OK;
}

static int classify(sm_model *m, mt_tensor *logits, mt_tensor **loss)
{
    NEXT(*loss, mt_cross_entropy_loss(logits, m->targets, NULL, MT_REDUCTION_MEAN, -100, 0.0, out));
    return MT_OK;
}

/* ---- a multilayer perceptron on points of three classes ---- */

enum {
    MLP_BATCH = 24,
    MLP_IN = 4,
    MLP_HIDDEN = 16,
    MLP_CLASSES = 3
};

/* Targets that inputs determine: the class of the largest of the first columns. */
static int mlp_make(sm_model *m)
{
    TRY(linear_parameters(m, MLP_IN, MLP_HIDDEN));
    TRY(linear_parameters(m, MLP_HIDDEN, MLP_HIDDEN));
    TRY(linear_parameters(m, MLP_HIDDEN, MLP_CLASSES));
    TRY(mt_randn((const int64_t[]){MLP_BATCH, MLP_IN}, 2, &m->inputs));
    mt_tensor *columns = NULL;
    TRY(mt_narrow(m->inputs, 1, 0, MLP_CLASSES, &columns));
    const int64_t dim = 1;
    int status = mt_argmax(columns, &dim, false, &m->targets);
    mt_tensor_release(columns);
    return status;
}

static int mlp_loss(sm_model *m, mt_tensor **loss)
{
    mt_tensor *x = m->inputs;
    TRY(linear(m, &x, 0));
    NEXT(x, mt_relu(x, out));
    TRY(linear(m, &x, 2));
    NEXT(x, mt_tanh(x, out));
    TRY(linear(m, &x, 4));
    return classify(m, x, loss);
}

/* ---- a convolutional network on images with a bright half ---- */

enum {
    CNN_BATCH = 8,
    CNN_CHANNELS = 4,
    CNN_SIZE = 8,
    CNN_CLASSES = 2
};

static int cnn_data(sm_model *m)
{
    float images[CNN_BATCH][1][CNN_SIZE][CNN_SIZE];
    int64_t targets[CNN_BATCH];
    for (int n = 0; n < CNN_BATCH; n++) {
        targets[n] = n % CNN_CLASSES;
        for (int y = 0; y < CNN_SIZE; y++) {
            for (int x = 0; x < CNN_SIZE; x++) {
                float bright = (n % 2 == 0 ? x : y) < CNN_SIZE / 2 ? 1.0F : 0.0F;
                images[n][0][y][x] = bright + 0.1F * (float)((n * 7 + x * 3 + y * 5) % 11);
            }
        }
    }
    const int64_t sizes[4] = {CNN_BATCH, 1, CNN_SIZE, CNN_SIZE};
    const int64_t batch = CNN_BATCH;
    TRY(mt_tensor_from_data(images, MT_DTYPE_F32, sizes, 4, MT_CPU, &m->inputs));
    return mt_tensor_from_data(targets, MT_DTYPE_I64, &batch, 1, MT_CPU, &m->targets);
}

static int cnn_make(sm_model *m)
{
    const int64_t channels = CNN_CHANNELS;
    TRY(parameter(m, (const int64_t[]){CNN_CHANNELS, 1, 3, 3}, 4, 0.3)); /* no bias: */
    TRY(parameter(m, &channels, 1, -1.0)); /* batch_norm takes it away */
    TRY(parameter(m, &channels, 1, 0.0));
    TRY(parameter(m, (const int64_t[]){2 * CNN_CHANNELS, CNN_CHANNELS, 3, 3}, 4, 0.2));
    TRY(parameter(m, (const int64_t[]){2 * CNN_CHANNELS}, 1, 0.0));
    TRY(linear_parameters(m, 2 * CNN_CHANNELS, CNN_CLASSES));
    TRY(mt_zeros(&channels, 1, &m->buffers[0]));
    TRY(mt_ones(&channels, 1, &m->buffers[1]));
    return cnn_data(m);
}

static int cnn_loss(sm_model *m, mt_tensor **loss)
{
    static const int64_t one[2] = {1, 1};
    static const int64_t two[2] = {2, 2};
    static const int64_t zero[2] = {0, 0};
    mt_tensor *const *p = m->parameters;
    mt_tensor *x = m->inputs;
    NEXT(x, mt_conv2d(x, p[0], NULL, one, 2, one, 2, one, 2, 1, out));
    NEXT(x, mt_batch_norm(x, p[1], p[2], m->buffers[0], m->buffers[1], true, 0.1, 1e-5, out));
    NEXT(x, mt_relu(x, out));
    NEXT(x, mt_max_pool2d(x, two, 2, two, 2, zero, 2, one, 2, false, out));
    NEXT(x, mt_conv2d(x, p[3], p[4], one, 2, one, 2, one, 2, 1, out));
    NEXT(x, mt_relu(x, out));
    NEXT(x, mt_adaptive_avg_pool2d(x, one, 2, out));
    NEXT(x, mt_flatten(x, 1, -1, out));
    TRY(linear(m, &x, 5));
    return classify(m, x, loss);
}

/* ---- a GPT of two layers on a text of numbers ---- */

enum {
    GPT_BATCH = 2,
    GPT_TIME = 6,
    GPT_WIDTH = 8,
    GPT_HEADS = 2,
    GPT_WORDS = 11,
    GPT_LAYERS = 2,
    GPT_FIRST_LAYER = 2, /* parameters in front: embeddings of words and places */
    GPT_PER_LAYER = 12
};

static int gpt_data(sm_model *m)
{
    int64_t words[GPT_BATCH][GPT_TIME];
    int64_t next[GPT_BATCH * GPT_TIME];
    for (int b = 0; b < GPT_BATCH; b++) {
        for (int t = 0; t < GPT_TIME; t++) {
            words[b][t] = (3 * t + 5 * b) % GPT_WORDS;
            next[b * GPT_TIME + t] = (3 * (t + 1) + 5 * b) % GPT_WORDS;
        }
    }
    const int64_t sizes[2] = {GPT_BATCH, GPT_TIME};
    const int64_t count = GPT_BATCH * GPT_TIME;
    TRY(mt_tensor_from_data(words, MT_DTYPE_I64, sizes, 2, MT_CPU, &m->inputs));
    return mt_tensor_from_data(next, MT_DTYPE_I64, &count, 1, MT_CPU, &m->targets);
}

static int gpt_make(sm_model *m)
{
    const int64_t width = GPT_WIDTH;
    TRY(parameter(m, (const int64_t[]){GPT_WORDS, GPT_WIDTH}, 2, 0.5));
    TRY(parameter(m, (const int64_t[]){GPT_TIME, GPT_WIDTH}, 2, 0.1));
    for (int layer = 0; layer < GPT_LAYERS; layer++) {
        TRY(parameter(m, &width, 1, -1.0)); /* layer_norm before the attention */
        TRY(parameter(m, &width, 1, 0.0));
        TRY(linear_parameters(m, GPT_WIDTH, 3 * GPT_WIDTH)); /* query, key, value */
        TRY(linear_parameters(m, GPT_WIDTH, GPT_WIDTH));
        TRY(parameter(m, &width, 1, -1.0)); /* layer_norm before the perceptron */
        TRY(parameter(m, &width, 1, 0.0));
        TRY(linear_parameters(m, GPT_WIDTH, 2 * GPT_WIDTH));
        TRY(linear_parameters(m, 2 * GPT_WIDTH, GPT_WIDTH));
    }
    TRY(parameter(m, &width, 1, -1.0)); /* the last layer_norm */
    TRY(parameter(m, &width, 1, 0.0));
    return gpt_data(m);
}

static int gpt_norm(sm_model *m, mt_tensor **x, size_t i)
{
    const int64_t width = GPT_WIDTH;
    NEXT(*x, mt_layer_norm(*x, &width, 1, m->parameters[i], m->parameters[i + 1], 1e-5, out));
    return MT_OK;
}

/* One of query, key, value, as [B, heads, T, width / heads]. */
static int gpt_heads(sm_model *m, mt_tensor *all, int64_t which, mt_tensor **part)
{
    const int64_t sizes[4] = {GPT_BATCH, GPT_TIME, GPT_HEADS, GPT_WIDTH / GPT_HEADS};
    NEXT(*part, mt_narrow(all, 2, which * GPT_WIDTH, GPT_WIDTH, out));
    NEXT(*part, mt_reshape(*part, sizes, 4, out));
    NEXT(*part, mt_transpose(*part, 1, 2, out));
    return MT_OK;
}

static int gpt_attention(sm_model *m, mt_tensor **x, size_t first)
{
    const int64_t sizes[3] = {GPT_BATCH, GPT_TIME, GPT_WIDTH};
    mt_tensor *y = *x;
    mt_tensor *part[3];
    TRY(gpt_norm(m, &y, first));
    TRY(linear(m, &y, first + 2));
    for (int64_t i = 0; i < 3; i++) {
        TRY(gpt_heads(m, y, i, &part[i]));
    }
    NEXT(y, mt_scaled_dot_product_attention(part[0], part[1], part[2], NULL, 0.0, true, out));
    NEXT(y, mt_transpose(y, 1, 2, out));
    NEXT(y, mt_reshape(y, sizes, 3, out));
    TRY(linear(m, &y, first + 4));
    NEXT(*x, mt_add(*x, y, out));
    return MT_OK;
}

static int gpt_perceptron(sm_model *m, mt_tensor **x, size_t first)
{
    mt_tensor *y = *x;
    TRY(gpt_norm(m, &y, first + 6));
    TRY(linear(m, &y, first + 8));
    NEXT(y, mt_gelu(y, out));
    TRY(linear(m, &y, first + 10));
    NEXT(*x, mt_add(*x, y, out));
    return MT_OK;
}

static int gpt_loss(sm_model *m, mt_tensor **loss)
{
    const int64_t sizes[2] = {GPT_BATCH * GPT_TIME, GPT_WIDTH};
    mt_tensor *x = NULL;
    NEXT(x, mt_embedding(m->parameters[0], m->inputs, -1, out));
    NEXT(x, mt_add(x, m->parameters[1], out));
    for (size_t layer = 0; layer < GPT_LAYERS; layer++) {
        size_t first = GPT_FIRST_LAYER + GPT_PER_LAYER * layer;
        TRY(gpt_attention(m, &x, first));
        TRY(gpt_perceptron(m, &x, first));
    }
    TRY(gpt_norm(m, &x, GPT_FIRST_LAYER + GPT_PER_LAYER * GPT_LAYERS));
    NEXT(x, mt_reshape(x, sizes, 2, out));
    NEXT(x, mt_linear(x, m->parameters[0], NULL, out)); /* the words' embedding again */
    return classify(m, x, loss);
}

const sm_kind sm_mlp = {"mlp", mlp_make, mlp_loss};
const sm_kind sm_cnn = {"cnn", cnn_make, cnn_loss};
const sm_kind sm_gpt = {"gpt", gpt_make, gpt_loss};

/* ---- training ---- */

static int make_optimizer(sm_model *m, mt_optimizer_kind kind, double lr)
{
    mt_optimizer_options options = {.struct_size = sizeof options};
    int status = mt_optimizer_get_defaults(kind, &options);
    options.lr = lr;
    return status != MT_OK
               ? status
               : mt_optimizer_new(&options, m->parameters, m->n_parameters, &m->optimizer);
}

int sm_open(sm_model *m, const sm_kind *kind, mt_optimizer_kind optimizer, double lr)
{
    memset(m, 0, sizeof(*m));
    m->kind = kind;
    mt_manual_seed(42);
    TRY(kind->make(m));
    return make_optimizer(m, optimizer, lr);
}

static int move(mt_tensor **place, mt_device device, bool parameter)
{
    mt_tensor *moved;
    if (*place == NULL) {
        return MT_OK;
    }
    bool before = mt_set_grad_enabled(false);
    int status = mt_to_with(*place, MT_DTYPE_NONE, device, false, false, &moved);
    (void)mt_set_grad_enabled(before);
    TRY(status);
    mt_tensor_release(*place);
    *place = moved;
    return parameter ? mt_tensor_set_requires_grad(moved, true) : MT_OK;
}

int sm_move(sm_model *m, mt_device device, mt_optimizer_kind optimizer, double lr)
{
    for (size_t i = 0; i < m->n_parameters; i++) {
        TRY(move(&m->parameters[i], device, true));
    }
    TRY(move(&m->buffers[0], device, false));
    TRY(move(&m->buffers[1], device, false));
    TRY(move(&m->inputs, device, false));
    TRY(move(&m->targets, device, false));
    mt_optimizer_free(m->optimizer);
    m->optimizer = NULL;
    return make_optimizer(m, optimizer, lr);
}

void sm_close(sm_model *m)
{
    drop_temps(m);
    mt_optimizer_free(m->optimizer);
    for (size_t i = 0; i < m->n_parameters; i++) {
        mt_tensor_release(m->parameters[i]);
    }
    mt_tensor_release(m->buffers[0]);
    mt_tensor_release(m->buffers[1]);
    mt_tensor_release(m->inputs);
    mt_tensor_release(m->targets);
    memset(m, 0, sizeof(*m));
}

static int step(sm_model *m, double *value)
{
    mt_tensor *loss = NULL;
    mt_scalar number = mt_real(0.0);
    TRY(mt_optimizer_zero_grad(m->optimizer));
    TRY(m->kind->loss(m, &loss));
    TRY(mt_backward(loss, NULL, 0));
    TRY(mt_item(loss, &number));
    TRY(mt_optimizer_step(m->optimizer));
    *value = number.of.real;
    return MT_OK;
}

int sm_step(sm_model *m, double *loss)
{
    int status = step(m, loss);
    drop_temps(m);
    return status;
}

size_t sm_read(const sm_model *m, float *values, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < m->n_parameters; i++) {
        size_t numel = (size_t)mt_tensor_numel(m->parameters[i]);
        if (count + numel <= capacity &&
            mt_tensor_read(m->parameters[i], values + count, numel * sizeof(float)) != MT_OK) {
            return 0;
        }
        count += numel;
    }
    return count;
}
