/* SPDX-License-Identifier: Apache-2.0
 *
 * LAYER_NORM, BATCH_NORM, NLL_LOSS and their derivatives against plain loops in double, at every
 * instruction set.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPS_MILLIONTHS = 10
};
static const double eps = EPS_MILLIONTHS * 1e-6;

static double near_of(mt_dtype dtype)
{
    return dtype == MT_DTYPE_F32 ? 2e-5 : 1e-12;
}

static const mt_array absent = {.n_dims = -1};

static int call_kernel(mt_kernel_fn *run, const mt_array *tensors, uint32_t count,
                       const int64_t *ints, const mt_scalar *scalars)
{
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = count,
                           .tensors = tensors,
                           .ints = ints,
                           .scalars = scalars};
    return run(NULL, NULL, &call);
}

static mt_scalar real(double value)
{
    return (mt_scalar){.kind = MT_KIND_REAL, .of.real = value};
}

/* ---- layer_norm ---- */

typedef struct layer_case {
    strided_array out, mean, rstd, in, weight, bias, grad, grad_in, grad_weight, grad_bias;
    int64_t rows, width;
} layer_case;

static void layer_init(layer_case *c, mt_dtype dtype, int64_t rows, int64_t width, uint64_t *seed)
{
    const int64_t sizes[2] = {rows, width};
    strided_array *big[] = {&c->out, &c->in, &c->grad, &c->grad_in};
    strided_array *wide[] = {&c->weight, &c->bias, &c->grad_weight, &c->grad_bias};
    for (int i = 0; i < 4; i++) {
        strided_array_init(big[i], dtype, sizes, 2, LAYOUT_CONTIGUOUS);
        strided_fill(&big[i]->array, seed);
        strided_array_init(wide[i], dtype, &width, 1, LAYOUT_CONTIGUOUS);
        strided_fill(&wide[i]->array, seed);
    }
    strided_array_init(&c->mean, dtype, &rows, 1, LAYOUT_CONTIGUOUS);
    strided_array_init(&c->rstd, dtype, &rows, 1, LAYOUT_CONTIGUOUS);
    c->rows = rows;
    c->width = width;
}

static void layer_fini(layer_case *c)
{
    strided_array *all[] = {&c->out,  &c->mean, &c->rstd,    &c->in,          &c->weight,
                            &c->bias, &c->grad, &c->grad_in, &c->grad_weight, &c->grad_bias};
    for (int i = 0; i < 10; i++) {
        strided_array_fini(all[i]);
    }
}

static void row_statistics(const layer_case *c, int64_t row, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < c->width; i++) {
        sum += strided_get(&c->in.array, row * c->width + i);
    }
    *mean = sum / (double)c->width;
    for (int64_t i = 0; i < c->width; i++) {
        double off = strided_get(&c->in.array, row * c->width + i) - *mean;
        squares += off * off;
    }
    *rstd = 1 / sqrt(squares / (double)c->width + eps);
}

static void check_layer(const layer_case *c, bool weight, bool bias)
{
    double tolerance = near_of((mt_dtype)c->in.array.dtype);
    for (int64_t row = 0; row < c->rows; row++) {
        double mean, rstd;
        row_statistics(c, row, &mean, &rstd);
        CHECK_NEAR_F64(strided_get(&c->mean.array, row), mean, tolerance);
        CHECK_NEAR_F64(strided_get(&c->rstd.array, row), rstd, tolerance * rstd);
        for (int64_t i = 0; i < c->width; i++) {
            double value = (strided_get(&c->in.array, row * c->width + i) - mean) * rstd;
            value *= weight ? strided_get(&c->weight.array, i) : 1;
            value += bias ? strided_get(&c->bias.array, i) : 0;
            CHECK_NEAR_F64(strided_get(&c->out.array, row * c->width + i), value,
                           tolerance * (fabs(value) + 1));
        }
    }
}

static void check_layer_backward(const layer_case *c, bool weight, uint32_t wants)
{
    double tolerance = near_of((mt_dtype)c->in.array.dtype);
    double n = (double)c->width;
    double *gw = calloc((size_t)c->width + 1, sizeof *gw);
    double *gb = calloc((size_t)c->width + 1, sizeof *gb);
    REQUIRE(gw != NULL && gb != NULL);
    for (int64_t row = 0; row < c->rows; row++) {
        double mean, rstd, sum = 0, product = 0;
        row_statistics(c, row, &mean, &rstd);
        for (int64_t i = 0; i < c->width; i++) {
            double g = strided_get(&c->grad.array, row * c->width + i);
            double x = (strided_get(&c->in.array, row * c->width + i) - mean) * rstd;
            gw[i] += g * x;
            gb[i] += g;
            g *= weight ? strided_get(&c->weight.array, i) : 1;
            sum += g;
            product += g * x;
        }
        for (int64_t i = 0; i < c->width && (wants & 1) != 0; i++) {
            double g = strided_get(&c->grad.array, row * c->width + i);
            double x = (strided_get(&c->in.array, row * c->width + i) - mean) * rstd;
            g *= weight ? strided_get(&c->weight.array, i) : 1;
            double value = rstd * (g - sum / n - x * product / n);
            CHECK_NEAR_F64(strided_get(&c->grad_in.array, row * c->width + i), value,
                           tolerance * (fabs(value) + rstd + 1));
        }
    }
    for (int64_t i = 0; i < c->width; i++) {
        if ((wants & 2) != 0) {
            CHECK_NEAR_F64(strided_get(&c->grad_weight.array, i), gw[i],
                           tolerance * (fabs(gw[i]) + sqrt((double)c->rows)));
        }
        if ((wants & 4) != 0) {
            CHECK_NEAR_F64(strided_get(&c->grad_bias.array, i), gb[i],
                           tolerance * (fabs(gb[i]) + sqrt((double)c->rows)));
        }
    }
    free(gw);
    free(gb);
}

static void layer_once(mt_dtype dtype, int64_t rows, int64_t width, uint32_t form, uint64_t *seed)
{
    layer_case c;
    bool weight = (form & 1) != 0, bias = (form & 2) != 0;
    layer_init(&c, dtype, rows, width, seed);
    const mt_scalar number = real(eps);
    const mt_array forward[6] = {c.out.array,
                                 c.mean.array,
                                 c.rstd.array,
                                 c.in.array,
                                 weight ? c.weight.array : absent,
                                 bias ? c.bias.array : absent};
    CHECK_OK(call_kernel(mt__host_LAYER_NORM, forward, 6, NULL, &number));
    check_layer(&c, weight, bias);
    uint32_t wants = (uint32_t)(mt_test_random(seed) % 8);
    const mt_array backward[8] = {(wants & 1) != 0 ? c.grad_in.array : absent,
                                  (wants & 2) != 0 ? c.grad_weight.array : absent,
                                  (wants & 4) != 0 ? c.grad_bias.array : absent,
                                  c.grad.array,
                                  c.in.array,
                                  c.mean.array,
                                  c.rstd.array,
                                  weight ? c.weight.array : absent};
    CHECK_OK(call_kernel(mt__host_LAYER_NORM_BACKWARD, backward, 8, NULL, NULL));
    check_layer_backward(&c, weight, wants);
    layer_fini(&c);
}

TEST(layer_norm_everywhere)
{
    static const int64_t sizes[][2] = {{1, 1},   {3, 2},    {5, 16}, {7, 33},   {66, 64},
                                       {2, 100}, {35, 768}, {0, 5},  {4, 4100}, {1500, 30}};
    uint64_t seed = mt_test_seed();
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (uint32_t form = 0; form < 4; form++) {
                layer_once(MT_DTYPE_F32, sizes[s][0], sizes[s][1], form, &seed);
                layer_once(MT_DTYPE_F64, sizes[s][0], sizes[s][1], form, &seed);
            }
        }
    }
}

/* Gradients of weight and bias do not depend on the number of threads. */
TEST(layer_norm_backward_with_threads)
{
    uint64_t seed = mt_test_seed();
    layer_case c;
    layer_init(&c, MT_DTYPE_F32, 3000, 70, &seed);
    const mt_scalar number = real(eps);
    const mt_array forward[6] = {c.out.array, c.mean.array, c.rstd.array,
                                 c.in.array,  absent,       absent};
    CHECK_OK(call_kernel(mt__host_LAYER_NORM, forward, 6, NULL, &number));
    const mt_array backward[8] = {
        c.grad_in.array, c.grad_weight.array, c.grad_bias.array, c.grad.array,
        c.in.array,      c.mean.array,        c.rstd.array,      absent};
    float first[70];
    for (uint32_t threads = 1; threads <= 3; threads++) {
        mt__parallel_set_threads(threads);
        CHECK_OK(call_kernel(mt__host_LAYER_NORM_BACKWARD, backward, 8, NULL, NULL));
        if (threads == 1) {
            memcpy(first, c.grad_weight.array.data, sizeof first);
        }
        CHECK_EQ_MEM(first, c.grad_weight.array.data, sizeof first);
    }
    mtb_fail_nth(1, true);
    int status = call_kernel(mt__host_LAYER_NORM_BACKWARD, backward, 8, NULL, NULL);
    mtb_fail_nth(0, false);
    CHECK(status == MT_OK || status == MT_ENOMEM);
    layer_fini(&c);
}

/* ---- batch_norm ---- */

enum {
    OUT,
    IN,
    GRAD,
    GRAD_IN,
    WEIGHT,
    BIAS,
    RUNNING_MEAN,
    RUNNING_VAR,
    SAVE_MEAN,
    SAVE_RSTD,
    GRAD_WEIGHT,
    GRAD_BIAS,
    ARRAYS
};

typedef struct batch_case {
    strided_array arrays[ARRAYS];
    int64_t n, c, l;
    double momentum;
    bool training, affine, running;
    double *mean, *var, *old_mean, *old_var; /* by channel */
} batch_case;

static const mt_array *at(const batch_case *b, int which)
{
    return &b->arrays[which].array;
}

static void batch_init(batch_case *b, mt_dtype dtype, const int64_t sizes[3], uint64_t *seed)
{
    b->n = sizes[0];
    b->c = sizes[1];
    b->l = sizes[2];
    for (int i = 0; i < ARRAYS; i++) {
        if (i < WEIGHT) {
            strided_array_init(&b->arrays[i], dtype, sizes, 3, LAYOUT_CONTIGUOUS);
        } else {
            strided_array_init(&b->arrays[i], dtype, &b->c, 1, LAYOUT_CONTIGUOUS);
        }
        strided_fill(&b->arrays[i].array, seed);
    }
    double **numbers[] = {&b->mean, &b->var, &b->old_mean, &b->old_var};
    for (int i = 0; i < 4; i++) {
        *numbers[i] = calloc((size_t)b->c, sizeof(double));
        REQUIRE(*numbers[i] != NULL);
    }
    for (int64_t c = 0; c < b->c; c++) {
        strided_set(at(b, RUNNING_VAR), c, fabs(strided_get(at(b, RUNNING_VAR), c)) + 0.1);
        b->old_mean[c] = strided_get(at(b, RUNNING_MEAN), c);
        b->old_var[c] = strided_get(at(b, RUNNING_VAR), c);
        double sum = 0, squares = 0, count = (double)(b->n * b->l);
        for (int64_t i = 0; i < b->n * b->l; i++) {
            sum += strided_get(at(b, IN), (i / b->l * b->c + c) * b->l + i % b->l);
        }
        for (int64_t i = 0; i < b->n * b->l; i++) {
            double x = strided_get(at(b, IN), (i / b->l * b->c + c) * b->l + i % b->l);
            squares += (x - sum / count) * (x - sum / count);
        }
        b->mean[c] = b->training ? sum / count : b->old_mean[c];
        b->var[c] = b->training ? squares / count : b->old_var[c];
    }
}

static void batch_fini(batch_case *b)
{
    for (int i = 0; i < ARRAYS; i++) {
        strided_array_fini(&b->arrays[i]);
    }
    free(b->mean);
    free(b->var);
    free(b->old_mean);
    free(b->old_var);
}

static void check_batch(const batch_case *b, double tolerance)
{
    double count = (double)(b->n * b->l);
    for (int64_t c = 0; c < b->c; c++) {
        double rstd = 1 / sqrt(b->var[c] + eps);
        CHECK_NEAR_F64(strided_get(at(b, SAVE_MEAN), c), b->mean[c], tolerance);
        CHECK_NEAR_F64(strided_get(at(b, SAVE_RSTD), c), rstd, tolerance * rstd);
        if (b->training && b->running) {
            double mean = (1 - b->momentum) * b->old_mean[c] + b->momentum * b->mean[c];
            double var =
                (1 - b->momentum) * b->old_var[c] + b->momentum * b->var[c] * count / (count - 1);
            CHECK_NEAR_F64(strided_get(at(b, RUNNING_MEAN), c), mean, tolerance);
            CHECK_NEAR_F64(strided_get(at(b, RUNNING_VAR), c), var, tolerance);
        } else {
            CHECK_EQ_F64(strided_get(at(b, RUNNING_VAR), c), b->old_var[c]);
        }
    }
    for (int64_t i = 0; i < b->n * b->c * b->l; i++) {
        int64_t c = i / b->l % b->c;
        double value = (strided_get(at(b, IN), i) - b->mean[c]) / sqrt(b->var[c] + eps);
        value =
            b->affine ? value * strided_get(at(b, WEIGHT), c) + strided_get(at(b, BIAS), c) : value;
        CHECK_NEAR_F64(strided_get(at(b, OUT), i), value, tolerance * (fabs(value) + 1));
    }
}

static void check_batch_backward(const batch_case *b, double tolerance)
{
    double count = (double)(b->n * b->l);
    for (int64_t c = 0; c < b->c; c++) {
        double rstd = 1 / sqrt(b->var[c] + eps);
        double sum = 0, product = 0;
        for (int64_t i = 0; i < b->n * b->l; i++) {
            int64_t place = (i / b->l * b->c + c) * b->l + i % b->l;
            double g = strided_get(at(b, GRAD), place);
            sum += g;
            product += g * (strided_get(at(b, IN), place) - b->mean[c]) * rstd;
        }
        if (b->affine) {
            CHECK_NEAR_F64(strided_get(at(b, GRAD_WEIGHT), c), product, tolerance * (count + 1));
            CHECK_NEAR_F64(strided_get(at(b, GRAD_BIAS), c), sum, tolerance * (count + 1));
        }
        double weight = b->affine ? strided_get(at(b, WEIGHT), c) : 1;
        for (int64_t i = 0; i < b->n * b->l; i++) {
            int64_t place = (i / b->l * b->c + c) * b->l + i % b->l;
            double g = strided_get(at(b, GRAD), place);
            double x = (strided_get(at(b, IN), place) - b->mean[c]) * rstd;
            double value = b->training ? weight * rstd * (g - sum / count - x * product / count)
                                       : weight * rstd * g;
            CHECK_NEAR_F64(strided_get(at(b, GRAD_IN), place), value,
                           tolerance * (fabs(value) + rstd + 1));
        }
    }
}

static void batch_once(mt_dtype dtype, const int64_t sizes[3], uint32_t form, uint64_t *seed)
{
    batch_case b = {.momentum = 0.3,
                    .training = (form & 1) != 0,
                    .affine = (form & 2) != 0,
                    .running = (form & 5) != 1};
    batch_init(&b, dtype, sizes, seed);
    double tolerance = near_of(dtype);
    const int64_t training = b.training;
    const mt_scalar numbers[2] = {real(b.momentum), real(eps)};
    const mt_array forward[8] = {*at(&b, OUT),
                                 *at(&b, SAVE_MEAN),
                                 *at(&b, SAVE_RSTD),
                                 *at(&b, IN),
                                 b.affine ? *at(&b, WEIGHT) : absent,
                                 b.affine ? *at(&b, BIAS) : absent,
                                 b.running ? *at(&b, RUNNING_MEAN) : absent,
                                 b.running ? *at(&b, RUNNING_VAR) : absent};
    CHECK_OK(call_kernel(mt__host_BATCH_NORM, forward, 8, &training, numbers));
    check_batch(&b, tolerance);
    /* Without saved statistics those in use are taken. */
    bool saved = b.training || (form & 4) != 0;
    const mt_array backward[10] = {*at(&b, GRAD_IN),
                                   b.affine ? *at(&b, GRAD_WEIGHT) : absent,
                                   b.affine ? *at(&b, GRAD_BIAS) : absent,
                                   *at(&b, GRAD),
                                   *at(&b, IN),
                                   b.affine ? *at(&b, WEIGHT) : absent,
                                   b.running ? *at(&b, RUNNING_MEAN) : absent,
                                   b.running ? *at(&b, RUNNING_VAR) : absent,
                                   saved ? *at(&b, SAVE_MEAN) : absent,
                                   saved ? *at(&b, SAVE_RSTD) : absent};
    CHECK_OK(call_kernel(mt__host_BATCH_NORM_BACKWARD, backward, 10, &training, numbers + 1));
    check_batch_backward(&b, tolerance);
    batch_fini(&b);
}

TEST(batch_norm_everywhere)
{
    static const int64_t sizes[][3] = {{5, 3, 1},   {40, 70, 1},  {2, 3, 4},   {3, 5, 49},
                                       {2, 2, 130}, {1, 4, 9000}, {33, 600, 1}};
    uint64_t seed = mt_test_seed();
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (uint32_t form = 0; form < 8; form++) {
                batch_once(MT_DTYPE_F32, sizes[s], form, &seed);
                batch_once(MT_DTYPE_F64, sizes[s], form, &seed);
            }
        }
    }
}

/* ---- nll_loss ---- */

static void nll_once(mt_dtype dtype, strided_layout layout, int64_t reduction, bool weighted,
                     uint64_t *seed)
{
    enum {
        ROWS = 9,
        CLASSES = 4
    };
    const int64_t sizes[2] = {ROWS, CLASSES};
    const int64_t ignore = 2;
    strided_array in, out, target, weight, total, grad, grad_in;
    strided_array_init(&in, dtype, sizes, 2, layout);
    strided_array_init(&grad_in, dtype, sizes, 2, layout == LAYOUT_REPEATED ? 0 : layout);
    strided_array_init(&out, dtype, sizes, reduction == 0, LAYOUT_SLICED);
    strided_array_init(&grad, dtype, sizes, reduction == 0, LAYOUT_SLICED);
    strided_array_init(&total, dtype, sizes, 0, LAYOUT_CONTIGUOUS);
    strided_array_init(&target, MT_DTYPE_I64, sizes, 1, LAYOUT_SLICED);
    strided_array_init(&weight, dtype, sizes + 1, 1, LAYOUT_SLICED);
    strided_fill(&in.array, seed);
    strided_fill(&weight.array, seed);
    strided_fill(&grad.array, seed);
    double loss = 0, sum = 0, each[ROWS], weights[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t c = (int64_t)(mt_test_random(seed) % CLASSES);
        strided_set(&target.array, i, (double)c);
        weights[i] = c == ignore ? 0 : weighted ? strided_get(&weight.array, c) : 1;
        each[i] = -weights[i] * strided_get(&in.array, i * CLASSES + c);
        loss += each[i];
        sum += weights[i];
    }
    const int64_t ints[2] = {reduction, ignore};
    const mt_array forward[5] = {out.array, total.array, in.array, target.array,
                                 weighted ? weight.array : absent};
    CHECK_OK(call_kernel(mt__host_NLL_LOSS, forward, 5, ints, NULL));
    double tolerance = near_of(dtype);
    for (int64_t i = 0; i < (reduction == 0 ? ROWS : 1); i++) {
        double value = reduction == 0 ? each[i] : reduction == 1 ? loss / sum : loss;
        CHECK_NEAR_F64(strided_get(&out.array, i), value, tolerance * (fabs(value) + 1));
    }
    CHECK_NEAR_F64(strided_get(&total.array, 0), reduction == 0 ? 0 : sum, tolerance * 10);
    const mt_array backward[6] = {
        grad_in.array, grad.array, in.array, target.array, weighted ? weight.array : absent,
        total.array};
    CHECK_OK(call_kernel(mt__host_NLL_LOSS_BACKWARD, backward, 6, ints, NULL));
    for (int64_t i = 0; i < ROWS * CLASSES; i++) {
        int64_t row = i / CLASSES;
        double g = strided_get(&grad.array, reduction == 0 ? row : 0);
        double value = -weights[row] * g / (reduction == 1 ? sum : 1);
        value = strided_get_integer(&target.array, row) == i % CLASSES ? value : 0;
        CHECK_NEAR_F64(strided_get(&grad_in.array, i), value, tolerance * (fabs(value) + 1));
    }
    strided_array *all[] = {&in, &out, &target, &weight, &total, &grad, &grad_in};
    for (int i = 0; i < 7; i++) {
        strided_array_fini(all[i]);
    }
}

TEST(nll_loss_everywhere)
{
    uint64_t seed = mt_test_seed();
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (int64_t reduction = 0; reduction < 3; reduction++) {
            for (int k = 0; k < 8; k++) {
                nll_once(k % 2 == 0 ? MT_DTYPE_F32 : MT_DTYPE_F64, (strided_layout)layout,
                         reduction, k % 4 < 2, &seed);
            }
        }
    }
}

TEST(nll_loss_of_bad_targets)
{
    const int64_t sizes[2] = {2, 3};
    int64_t strides[2] = {3, 1};
    int64_t ints[2] = {1, -100};
    int64_t targets[2] = {1, 3};
    float in[6] = {0}, grad_in[6], out, total = 2, grad = 1;
    mt_array matrix = {
        .data = in, .sizes = sizes, .strides = strides, .n_dims = 2, .dtype = MT_DTYPE_F32};
    mt_array target = {.data = targets,
                       .sizes = sizes,
                       .strides = strides + 1,
                       .n_dims = 1,
                       .dtype = MT_DTYPE_I64};
    mt_array number = {.data = &out, .dtype = MT_DTYPE_F32};
    mt_array tensors[6] = {number, number, matrix, target, absent, number};
    tensors[1].data = &total;
    CHECK_EQ_I64(call_kernel(mt__host_NLL_LOSS, tensors, 5, ints, NULL), MT_EINDEX);
    CHECK_EQ_STR(mtb_last_failure()->message, "Target 3 is out of bounds.");
    tensors[0] = matrix;
    tensors[0].data = grad_in;
    tensors[1].data = &grad;
    tensors[5].data = &total;
    targets[1] = -1;
    CHECK_EQ_I64(call_kernel(mt__host_NLL_LOSS_BACKWARD, tensors, 6, ints, NULL), MT_EINDEX);
    CHECK_EQ_STR(mtb_last_failure()->message, "Target -1 is out of bounds.");
    targets[0] = targets[1] = -100; /* none is left */
    tensors[0] = number;
    tensors[1].data = &total;
    CHECK_OK(call_kernel(mt__host_NLL_LOSS, tensors, 5, ints, NULL));
    CHECK(isnan(out));
    CHECK_EQ_F64((double)total, 0);
}
