/* SPDX-License-Identifier: Apache-2.0
 *
 * The pointwise kernels alone, on one thread unless the name says otherwise: nanoseconds an element
 * over 1 M elements, nanoseconds a call over 2 x 2.
 */
#include "bench_harness.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 1024,
    ELEMENTS = SIDE * SIDE
};

typedef struct work {
    const char *name;
    mt_kernel_fn *kernel;
    uint16_t code;
    uint16_t n_inputs;
    uint8_t out_type, in_type, first_type; /* the first input's, where it differs */
    bool turned;                           /* the first input is transposed */
    bool scalar;                           /* the second input is a number */
    uint32_t threads;
} work;

#define F32 MT_DTYPE_F32
#define F64 MT_DTYPE_F64
#define B   MT_DTYPE_BOOL
#define UNARY(name, code)                                                        \
    {                                                                            \
        name, mt__host_UNARY, MT_UNARY_##code, 1, F32, F32, F32, false, false, 1 \
    }
#define BINARY(name, code)                                                         \
    {                                                                              \
        name, mt__host_BINARY, MT_BINARY_##code, 2, F32, F32, F32, false, false, 1 \
    }

static const work works[] = {
    BINARY("add", ADD),
    BINARY("mul", MUL),
    BINARY("div", DIV),
    BINARY("maximum", MAXIMUM),
    BINARY("pow", POW),
    BINARY("gelu_backward", GELU_BACKWARD),
    {"add_scalar", mt__host_BINARY, MT_BINARY_ADD, 1, F32, F32, F32, false, true, 1},
    {"add_turned", mt__host_BINARY, MT_BINARY_ADD, 2, F32, F32, F32, true, false, 1},
    {"add_threads", mt__host_BINARY, MT_BINARY_ADD, 2, F32, F32, F32, false, false, 0},
    {"lt", mt__host_BINARY, MT_BINARY_LT, 2, B, F32, F32, false, false, 1},
    {"eq_i64", mt__host_BINARY, MT_BINARY_EQ, 2, B, MT_DTYPE_I64, MT_DTYPE_I64, false, false, 1},
    UNARY("relu", RELU),
    UNARY("exp", EXP),
    UNARY("log", LOG),
    UNARY("tanh", TANH),
    UNARY("sigmoid", SIGMOID),
    UNARY("gelu", GELU),
    UNARY("gelu_tanh", GELU_TANH),
    UNARY("silu", SILU),
    UNARY("erf", ERF),
    UNARY("sqrt", SQRT),
    UNARY("rsqrt", RSQRT),
    UNARY("sin", SIN),
    {"exp_f64", mt__host_UNARY, MT_UNARY_EXP, 1, F64, F64, F64, false, false, 1},
    {"tanh_f64", mt__host_UNARY, MT_UNARY_TANH, 1, F64, F64, F64, false, false, 1},
    {"exp_threads", mt__host_UNARY, MT_UNARY_EXP, 1, F32, F32, F32, false, false, 0},
    {"where", mt__host_TERNARY, MT_TERNARY_WHERE, 3, F32, F32, B, false, false, 1},
    {"lerp", mt__host_TERNARY, MT_TERNARY_LERP, 3, F32, F32, F32, false, false, 1},
    {"copy", mt__host_COPY, 0, 1, F32, F32, F32, false, false, 1},
    {"copy_turned", mt__host_COPY, 0, 1, F32, F32, F32, true, false, 1},
    {"copy_turned_f64", mt__host_COPY, 0, 1, F64, F64, F64, true, false, 1},
    {"to_f16", mt__host_COPY, 0, 1, MT_DTYPE_F16, F32, F32, false, false, 1},
    {"from_f16", mt__host_COPY, 0, 1, F32, MT_DTYPE_F16, MT_DTYPE_F16, false, false, 1},
    {"to_i64", mt__host_COPY, 0, 1, MT_DTYPE_I64, F32, F32, false, false, 1},
    {"fill", mt__host_FILL, 0, 0, F32, F32, F32, false, false, 1},
    {"rand", mt__host_RANDOM, MT_RANDOM_UNIFORM, 0, F32, F32, F32, false, false, 1},
    {"randn", mt__host_RANDOM, MT_RANDOM_NORMAL, 0, F32, F32, F32, false, false, 1},
    {"randint", mt__host_RANDOM, MT_RANDOM_INTEGER, 0, MT_DTYPE_I64, F32, F32, false, false, 1},
    {"bernoulli", mt__host_RANDOM, MT_RANDOM_BERNOULLI, 0, F32, F32, F32, false, false, 1},
};

static char *buffers[4];

typedef struct call_memory {
    mt_kernel_call call;
    mt_array arrays[4];
    int64_t sizes[2], straight[2], turned[2];
    int64_t ints[2];
    mt_scalar scalars[4];
} call_memory;

static void make_call(const work *w, int64_t side, call_memory *m)
{
    memset(m, 0, sizeof *m);
    m->sizes[0] = m->sizes[1] = side;
    m->straight[0] = m->turned[1] = side;
    m->straight[1] = m->turned[0] = 1;
    for (uint32_t k = 0; k <= w->n_inputs; k++) {
        m->arrays[k] = (mt_array){.data = buffers[k],
                                  .sizes = m->sizes,
                                  .strides = k == 1 && w->turned ? m->turned : m->straight,
                                  .n_dims = 2,
                                  .dtype = k == 0   ? w->out_type
                                           : k == 1 ? w->first_type
                                                    : w->in_type};
    }
    bool is_random = w->kernel == mt__host_RANDOM;
    m->ints[0] = is_random ? 42 : w->scalar;
    m->scalars[0] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = 0.25};
    m->scalars[1] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = is_random ? 1000 : 1};
    m->call = (mt_kernel_call){.struct_size = sizeof m->call,
                               .code = w->code,
                               .n_tensors = w->n_inputs + 1U,
                               .n_ints = 2,
                               .n_scalars = 2,
                               .tensors = m->arrays,
                               .ints = m->ints,
                               .scalars = m->scalars};
}

static void fill_inputs(const work *w, int64_t n)
{
    for (uint32_t k = 1; k <= w->n_inputs; k++) {
        uint8_t type = k == 1 ? w->first_type : w->in_type;
        for (int64_t i = 0; i < n; i++) {
            double x = (double)(((uint64_t)i * k * 2654435761U) >> 7 & 0xffff) / 8192.0 + 0.01;
            switch (type) {
            case MT_DTYPE_F32:
                ((float *)buffers[k])[i] = (float)(x - (w->code == MT_UNARY_LOG ? 0 : 4));
                break;
            case MT_DTYPE_F64: ((double *)buffers[k])[i] = x - 4; break;
            case MT_DTYPE_I64: ((int64_t *)buffers[k])[i] = (int64_t)x; break;
            case MT_DTYPE_F16: ((uint16_t *)buffers[k])[i] = (uint16_t)(x * 3000); break;
            default: buffers[k][i] = (int64_t)(x * 8192) & 1; break;
            }
        }
    }
}

static void run_work(void *context, uint64_t n)
{
    const work *w = context;
    call_memory m;
    make_call(w, SIDE, &m);
    for (uint64_t i = 0; i < n; i++) {
        w->kernel(NULL, NULL, &m.call);
        BENCH_FENCE();
    }
}

static void run_small(void *context, uint64_t n)
{
    const work *w = context;
    call_memory m;
    make_call(w, 2, &m);
    for (uint64_t i = 0; i < n; i++) {
        w->kernel(NULL, NULL, &m.call);
        BENCH_FENCE();
    }
}

static void measure(const work *w)
{
    char name[64];
    snprintf(name, sizeof name, "kernel_%s_ns_per_element", w->name);
    if (!bench_wants(name)) {
        return;
    }
    mt__parallel_set_threads(w->threads);
    fill_inputs(w, ELEMENTS);
    bench_case one = {.name = name, .run = run_work, .context = (void *)(uintptr_t)w};
    bench_compare(&one, 1, 1, (int)bench_pick(60, 15));
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = one.best_ns / ELEMENTS,
                               .median = one.median_ns / ELEMENTS});
}

static void measure_small(const work *w)
{
    char name[64];
    snprintf(name, sizeof name, "kernel_%s_2x2_ns", w->name);
    if (!bench_wants(name)) {
        return;
    }
    fill_inputs(w, 4);
    bench_case one = {.name = name, .run = run_small, .context = (void *)(uintptr_t)w};
    bench_compare(&one, 1, 20000, (int)bench_pick(60, 15));
    bench_emit(
        &(bench_figure){.name = name, .unit = "ns", .value = one.best_ns, .median = one.median_ns});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    for (int i = 0; i < 4; i++) {
        buffers[i] = aligned_alloc(64, ELEMENTS * 8);
        if (buffers[i] == NULL) {
            return 1;
        }
        memset(buffers[i], 1, ELEMENTS * 8);
    }
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        measure(&works[i]);
    }
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        if (strcmp(works[i].name, "add") == 0 || strcmp(works[i].name, "add_scalar") == 0 ||
            strcmp(works[i].name, "relu") == 0 || strcmp(works[i].name, "add_turned") == 0 ||
            strcmp(works[i].name, "copy") == 0) {
            measure_small(&works[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        free(buffers[i]);
    }
    return 0;
}
