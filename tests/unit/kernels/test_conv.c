/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_CONV and its two derivatives against plain loops, with and without oneDNN.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/onednn.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <mindtorch/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct geometry {
    int64_t n, c, h, w, o, kh, kw;
    int64_t stride, pad, dilation, groups;
} geometry;

/* All tensors of a convolution. */
typedef struct fixture {
    geometry g;
    int64_t oh, ow;
    mt_dtype dtype;
    int64_t ints[7];
    strided_array in, weight, bias, out, grad_in, grad_weight, grad_bias;
} fixture;

static void begin(fixture *f, mt_dtype dtype, geometry g, uint64_t *seed)
{
    *f = (fixture){.g = g, .dtype = dtype};
    f->oh = (g.h + 2 * g.pad - g.dilation * (g.kh - 1) - 1) / g.stride + 1;
    f->ow = (g.w + 2 * g.pad - g.dilation * (g.kw - 1) - 1) / g.stride + 1;
    for (int i = 0; i < 2; i++) {
        f->ints[i] = g.stride;
        f->ints[2 + i] = g.pad;
        f->ints[4 + i] = g.dilation;
    }
    f->ints[6] = g.groups;
    const int64_t in[4] = {g.n, g.c, g.h, g.w};
    const int64_t weight[4] = {g.o, g.c / g.groups, g.kh, g.kw};
    const int64_t out[4] = {g.n, g.o, f->oh, f->ow};
    struct {
        strided_array *array;
        const int64_t *sizes;
        int32_t n;
    } all[] = {{&f->in, in, 4},           {&f->weight, weight, 4}, {&f->bias, &weight[0], 1},
               {&f->out, out, 4},         {&f->grad_in, in, 4},    {&f->grad_weight, weight, 4},
               {&f->grad_bias, weight, 1}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        strided_array_init(all[i].array, dtype, all[i].sizes, all[i].n, LAYOUT_CONTIGUOUS);
        strided_fill(&all[i].array->array, seed);
    }
}

static void end(fixture *f)
{
    strided_array *all[] = {&f->in,      &f->weight,      &f->bias,     &f->out,
                            &f->grad_in, &f->grad_weight, &f->grad_bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        strided_array_fini(all[i]);
    }
}

static int call_kernel(mt_kernel_fn *run, const fixture *f, const mt_array *tensors, uint32_t n)
{
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = n,
                           .n_ints = 7,
                           .tensors = tensors,
                           .ints = f->ints};
    return run(NULL, NULL, &call);
}

static int forward(fixture *f)
{
    mt_array t[4] = {f->out.array, f->in.array, f->weight.array, f->bias.array};
    return call_kernel(mt__host_CONV, f, t, 4);
}

/* `out` is the gradient. */
static int backward(fixture *f)
{
    mt_array in[3] = {f->grad_in.array, f->out.array, f->weight.array};
    mt_array weight[4] = {f->grad_weight.array, f->grad_bias.array, f->out.array, f->in.array};
    int status = call_kernel(mt__host_CONV_BACKWARD_INPUT, f, in, 3);
    return status != 0 ? status : call_kernel(mt__host_CONV_BACKWARD_WEIGHT, f, weight, 4);
}

/* Calls `visit` for every product of a forward pass. */
typedef void visit_fn(void *context, int64_t out, int64_t in, int64_t weight);

static void each_product(const fixture *f, visit_fn *visit, void *context)
{
    const geometry *g = &f->g;
    int64_t channels = g->c / g->groups;
    int64_t taps = channels * g->kh * g->kw;
    int64_t outputs = g->n * g->o * f->oh * f->ow;
    for (int64_t i = 0; i < outputs * taps; i++) {
        int64_t tap = i % taps;
        int64_t out = i / taps;
        int64_t x = out % f->ow * g->stride - g->pad + tap % g->kw * g->dilation;
        int64_t y = out / f->ow % f->oh * g->stride - g->pad + tap / g->kw % g->kh * g->dilation;
        int64_t o = out / f->ow / f->oh % g->o;
        int64_t n = out / f->ow / f->oh / g->o;
        int64_t c = o / (g->o / g->groups) * channels + tap / g->kw / g->kh;
        if (x >= 0 && x < g->w && y >= 0 && y < g->h) {
            visit(context, out, ((n * g->c + c) * g->h + y) * g->w + x, o * taps + tap);
        }
    }
}

typedef struct sums {
    const fixture *f;
    double *out, *in, *weight;
} sums;

static void add_forward(void *context, int64_t out, int64_t in, int64_t weight)
{
    sums *s = context;
    s->out[out] += strided_get(&s->f->in.array, in) * strided_get(&s->f->weight.array, weight);
}

static void add_backward(void *context, int64_t out, int64_t in, int64_t weight)
{
    sums *s = context;
    double grad = strided_get(&s->f->out.array, out);
    s->in[in] += grad * strided_get(&s->f->weight.array, weight);
    s->weight[weight] += grad * strided_get(&s->f->in.array, in);
}

static void compare(const char *what, const fixture *f, const mt_array *got, const double *want)
{
    double bound = f->dtype == MT_DTYPE_F64 ? 1e-11 : 2e-4;
    for (int64_t i = 0; i < strided_numel(got); i++) {
        if (!(fabs(strided_get(got, i) - want[i]) <= bound * (1 + fabs(want[i])))) {
            FAIL("%s of %s c %lld o %lld k %lldx%lld stride %lld pad %lld dilation %lld groups "
                 "%lld: element %lld is %.9g, not %.9g",
                 what, mt_dtype_name(f->dtype), (long long)f->g.c, (long long)f->g.o,
                 (long long)f->g.kh, (long long)f->g.kw, (long long)f->g.stride,
                 (long long)f->g.pad, (long long)f->g.dilation, (long long)f->g.groups,
                 (long long)i, strided_get(got, i), want[i]);
            return;
        }
    }
}

static double *zeros(const mt_array *like)
{
    return calloc((size_t)strided_numel(like) + 1, sizeof(double));
}

static void check_geometry(mt_dtype dtype, geometry g, uint64_t *seed)
{
    fixture f;
    begin(&f, dtype, g, seed);
    sums s = {&f, zeros(&f.out.array), zeros(&f.in.array), zeros(&f.weight.array)};
    int64_t plane = f.oh * f.ow;
    for (int64_t i = 0; i < strided_numel(&f.out.array); i++) {
        s.out[i] = strided_get(&f.bias.array, i / plane % g.o);
    }
    each_product(&f, add_forward, &s);
    REQUIRE_OK(forward(&f));
    compare("forward", &f, &f.out.array, s.out);
    if (dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64) {
        double *bias = zeros(&f.bias.array);
        strided_fill(&f.out.array, seed);
        each_product(&f, add_backward, &s);
        for (int64_t i = 0; i < strided_numel(&f.out.array); i++) {
            bias[i / plane % g.o] += strided_get(&f.out.array, i);
        }
        REQUIRE_OK(backward(&f));
        compare("d input", &f, &f.grad_in.array, s.in);
        compare("d weight", &f, &f.grad_weight.array, s.weight);
        compare("d bias", &f, &f.grad_bias.array, bias);
        free(bias);
    }
    free(s.out);
    free(s.in);
    free(s.weight);
    end(&f);
}

static const geometry geometries[] = {
    {2, 4, 9, 9, 6, 3, 3, 1, 1, 1, 1},     {2, 4, 9, 7, 6, 3, 2, 2, 1, 2, 2},
    {1, 6, 9, 9, 6, 3, 3, 1, 0, 1, 6},     {3, 4, 8, 8, 8, 1, 1, 1, 0, 1, 2},
    {2, 4, 8, 8, 8, 3, 3, 3, 2, 2, 1},     {2, 16, 10, 10, 32, 5, 5, 2, 2, 1, 1},
    {1, 16, 10, 9, 32, 3, 3, 2, 0, 1, 16}, {2, 3, 12, 12, 16, 7, 7, 2, 3, 1, 1},
    {1, 1, 1, 9, 2, 1, 4, 1, 0, 1, 1},     {2, 17, 5, 5, 19, 3, 3, 1, 1, 1, 1},
    {1, 2, 3, 3, 2, 1, 1, 2, 0, 1, 1},     {1, 2, 3, 3, 2, 1, 1, 1, 1, 1, 1},
};

static void check_all(mt_dtype dtype)
{
    uint64_t seed = mt_test_seed();
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        check_geometry(dtype, geometries[i], &seed);
    }
}

TEST(with_onednn)
{
    if (!mt__onednn_here()) {
        MT_SKIP("oneDNN is not here");
    }
    check_all(MT_DTYPE_F32);
    check_all(MT_DTYPE_F32); /* from kept primitives */
}

TEST(by_columns)
{
    mt__onednn_allow(false);
    check_all(MT_DTYPE_F32);
    check_all(MT_DTYPE_F64);
}

TEST(integers_forward)
{
    check_all(MT_DTYPE_I64);
    check_all(MT_DTYPE_I32);
}

static void check_same(const mt_array *a, const mt_array *b)
{
    CHECK_EQ_MEM(a->data, b->data, (size_t)strided_numel(a) * sizeof(float));
}

TEST(threads_change_nothing)
{
    static const geometry cases[] = {{5, 32, 20, 20, 64, 3, 3, 1, 1, 1, 1},
                                     {1, 32, 20, 20, 96, 3, 3, 1, 1, 1, 1},
                                     {4, 64, 20, 20, 64, 1, 1, 1, 0, 1, 1}};
    for (int library = 0; library < 2; library++) {
        mt__onednn_allow(library == 0);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            uint64_t seeds[2] = {mt_test_seed(), mt_test_seed()};
            fixture f[2];
            for (uint32_t t = 0; t < 2; t++) {
                mt__parallel_set_threads(t == 0 ? 1 : 3);
                begin(&f[t], MT_DTYPE_F32, cases[i], &seeds[t]);
                REQUIRE_OK(forward(&f[t]));
                REQUIRE_OK(backward(&f[t]));
            }
            check_same(&f[0].out.array, &f[1].out.array);
            check_same(&f[0].grad_in.array, &f[1].grad_in.array);
            check_same(&f[0].grad_weight.array, &f[1].grad_weight.array);
            check_same(&f[0].grad_bias.array, &f[1].grad_bias.array);
            end(&f[0]);
            end(&f[1]);
        }
    }
}

TEST(refused_memory)
{
    uint64_t seed = mt_test_seed();
    fixture f;
    begin(&f, MT_DTYPE_F32, geometries[0], &seed);
    /* Where oneDNN cannot have memory columns are tried; where these cannot, the call fails. What
     * is only kept for the next call may be refused unseen. */
    uint64_t requests = 1;
    bool failed = false;
    for (uint64_t n = 1; n <= requests; n++) {
        (void)mtb_fail_nth(n, true);
        int status = forward(&f);
        requests = mtb_fail_nth(0, false);
        CHECK(status == 0 || status == MT_ENOMEM);
        failed = failed || status != 0;
    }
    CHECK(failed);
    REQUIRE_OK(forward(&f));
    end(&f);
}
