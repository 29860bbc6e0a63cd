/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_ATTENTION and its derivative against plain loops in double.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <mindtorch/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct setup {
    mt_dtype dtype;
    int64_t batch, heads, queries, keys, depth, values;
    bool causal;
    int mask; /* 0 none, 1 numbers, 2 also -inf, the second row altogether */
    strided_layout layout;
} setup;

enum {
    OUT,
    LSE,
    Q,
    K,
    V,
    GRAD,
    GRAD_Q,
    GRAD_K,
    GRAD_V,
    MASK,
    N_ARRAYS
};

typedef struct fixture {
    setup s;
    double scale;
    strided_array t[N_ARRAYS];
} fixture;

static void begin(fixture *f, setup s, uint64_t *seed)
{
    f->s = s;
    f->scale = 1 / sqrt((double)s.depth);
    for (int i = 0; i < N_ARRAYS; i++) {
        bool of_keys = i == K || i == V || i == GRAD_K || i == GRAD_V;
        bool of_values = i == OUT || i == V || i == GRAD || i == GRAD_V;
        int64_t sizes[4] = {s.batch, s.heads, of_keys ? s.keys : s.queries,
                            i == MASK   ? s.keys
                            : of_values ? s.values
                                        : s.depth};
        strided_array_init(&f->t[i], s.dtype, sizes, i == LSE ? 3 : 4,
                           i == LSE ? LAYOUT_CONTIGUOUS : s.layout);
        strided_fill(&f->t[i].array, seed);
    }
    for (int64_t i = 0; s.mask == 2 && i < strided_numel(&f->t[MASK].array); i++) {
        bool second = i / s.keys % s.queries == 1;
        if (second || i % 3 == 0) {
            strided_set(&f->t[MASK].array, i, -(double)INFINITY);
        }
    }
}

static void end(fixture *f)
{
    for (int i = 0; i < N_ARRAYS; i++) {
        strided_array_fini(&f->t[i]);
    }
}

static int run(fixture *f, bool backward)
{
    mt_array none = {.n_dims = -1};
    mt_array mask = f->s.mask == 0 ? none : f->t[MASK].array;
    mt_array forward_t[6] = {f->t[OUT].array, f->t[LSE].array, f->t[Q].array,
                             f->t[K].array,   f->t[V].array,   mask};
    mt_array backward_t[10] = {
        f->t[GRAD_Q].array, f->t[GRAD_K].array, f->t[GRAD_V].array, f->t[GRAD].array, f->t[Q].array,
        f->t[K].array,      f->t[V].array,      f->t[OUT].array,    f->t[LSE].array,  mask};
    int64_t causal = f->s.causal ? 1 : 0;
    mt_scalar scale = {.kind = MT_KIND_REAL, .of.real = f->scale};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = backward ? 10 : 6,
                           .n_ints = 1,
                           .n_scalars = 1,
                           .tensors = backward ? backward_t : forward_t,
                           .ints = &causal,
                           .scalars = &scale};
    return backward ? mt__host_ATTENTION_BACKWARD(NULL, NULL, &call)
                    : mt__host_ATTENTION(NULL, NULL, &call);
}

static double get(const fixture *f, int which, int64_t head, int64_t row, int64_t column)
{
    const mt_array *a = &f->t[which].array;
    return strided_get(a, (head * a->sizes[2] + row) * a->sizes[3] + column);
}

/* Probabilities of one query; false: it sees nothing. */
static bool probabilities(const fixture *f, int64_t head, int64_t query, double *p)
{
    double most = -(double)INFINITY;
    double total = 0;
    for (int64_t key = 0; key < f->s.keys; key++) {
        double score = 0;
        for (int64_t d = 0; d < f->s.depth; d++) {
            score += get(f, Q, head, query, d) * get(f, K, head, key, d);
        }
        p[key] = score * f->scale + (f->s.mask != 0 ? get(f, MASK, head, query, key) : 0);
        p[key] = f->s.causal && key > query ? -(double)INFINITY : p[key];
        most = fmax(most, p[key]);
    }
    for (int64_t key = 0; key < f->s.keys; key++) {
        p[key] = isinf(most) ? 0 : exp(p[key] - most);
        total += p[key];
    }
    for (int64_t key = 0; key < f->s.keys; key++) {
        p[key] = total == 0 ? 0 : p[key] / total;
    }
    return total != 0;
}

/* What should come out, in double. */
typedef struct expected {
    double *out, *q, *k, *v;
} expected;

static void expect_query(const fixture *f, int64_t head, int64_t query, expected *e)
{
    const setup *s = &f->s;
    double *p = calloc((size_t)s->keys + 1, sizeof *p);
    (void)probabilities(f, head, query, p);
    double delta = 0;
    for (int64_t d = 0; d < s->values; d++) {
        double sum = 0;
        for (int64_t key = 0; key < s->keys; key++) {
            sum += p[key] * get(f, V, head, key, d);
            e->v[(head * s->keys + key) * s->values + d] += p[key] * get(f, GRAD, head, query, d);
        }
        e->out[(head * s->queries + query) * s->values + d] = sum;
        delta += sum * get(f, GRAD, head, query, d);
    }
    for (int64_t key = 0; key < s->keys; key++) {
        double dp = 0;
        for (int64_t d = 0; d < s->values; d++) {
            dp += get(f, GRAD, head, query, d) * get(f, V, head, key, d);
        }
        double ds = p[key] * (dp - delta) * f->scale;
        for (int64_t d = 0; d < s->depth; d++) {
            e->q[(head * s->queries + query) * s->depth + d] += ds * get(f, K, head, key, d);
            e->k[(head * s->keys + key) * s->depth + d] += ds * get(f, Q, head, query, d);
        }
    }
    free(p);
}

static void compare(const fixture *f, const char *what, int which, const double *want)
{
    const mt_array *got = &f->t[which].array;
    double bound = f->s.dtype == MT_DTYPE_F64 ? 1e-12 : 2e-5;
    for (int64_t i = 0; i < strided_numel(got); i++) {
        if (!(fabs(strided_get(got, i) - want[i]) <= bound * (1 + fabs(want[i])))) {
            FAIL("%s: T %lld S %lld causal %d mask %d layout %d: element %lld is %.9g, not %.9g",
                 what, (long long)f->s.queries, (long long)f->s.keys, f->s.causal, f->s.mask,
                 f->s.layout, (long long)i, strided_get(got, i), want[i]);
            return;
        }
    }
}

static void check_setup(setup s)
{
    uint64_t seed = mt_test_seed();
    fixture f;
    begin(&f, s, &seed);
    int64_t heads = s.batch * s.heads;
    size_t rows = (size_t)(heads * (s.queries + s.keys) * (s.depth + s.values) + 1);
    expected e = {calloc(rows, 8), calloc(rows, 8), calloc(rows, 8), calloc(rows, 8)};
    for (int64_t i = 0; i < heads * s.queries; i++) {
        expect_query(&f, i / s.queries, i % s.queries, &e);
    }
    REQUIRE_OK(run(&f, false));
    REQUIRE_OK(run(&f, true));
    compare(&f, "out", OUT, e.out);
    compare(&f, "d query", GRAD_Q, e.q);
    compare(&f, "d key", GRAD_K, e.k);
    compare(&f, "d value", GRAD_V, e.v);
    free(e.out);
    free(e.q);
    free(e.k);
    free(e.v);
    end(&f);
}

static void check_all(mt_dtype dtype)
{
    static const int64_t lengths[][2] = {{1, 1}, {3, 5}, {5, 3}, {70, 70}, {65, 140}, {3, 600}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (int how = 0; how < 6; how++) {
            check_setup((setup){.dtype = dtype,
                                .batch = 2,
                                .heads = 2,
                                .queries = lengths[i][0],
                                .keys = lengths[i][1],
                                .depth = 4 + (int64_t)i,
                                .values = how == 1 ? 3 : 4 + (int64_t)i,
                                .causal = how % 2 == 1,
                                .mask = how / 2,
                                .layout = (strided_layout)((how + (int)i) % LAYOUT_REPEATED)});
        }
    }
}

TEST(single_precision)
{
    check_all(MT_DTYPE_F32);
}

TEST(double_precision)
{
    check_all(MT_DTYPE_F64);
}

TEST(every_level)
{
    for (int level = MT_ISA_BASE; level <= (int)mt__isa_level(); level++) {
        mt__isa_limit((mt__isa)level);
        check_all(MT_DTYPE_F32);
        if (level == MT_ISA_BASE) {
            check_all(MT_DTYPE_F64);
        }
        mt__isa_limit(MT_ISA_V4);
    }
}

static const setup plain = {.dtype = MT_DTYPE_F32,
                            .batch = 2,
                            .heads = 3,
                            .queries = 130,
                            .keys = 130,
                            .depth = 8,
                            .values = 8,
                            .causal = true};

/* AT1 */
TEST(threads_change_nothing)
{
    fixture f[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t seed = mt_test_seed();
        mt__parallel_set_threads(i == 0 ? 1 : 4);
        begin(&f[i], plain, &seed);
        REQUIRE_OK(run(&f[i], false));
        REQUIRE_OK(run(&f[i], true));
    }
    for (int i = 0; i < N_ARRAYS; i++) {
        size_t bytes = (size_t)strided_numel(&f[0].t[i].array) * sizeof(float);
        CHECK_EQ_MEM(f[1].t[i].array.data, f[0].t[i].array.data, bytes);
    }
    end(&f[0]);
    end(&f[1]);
}

/* ATR2: a NaN in a query spoils its own row and no other. */
TEST(nan_stays_in_its_row)
{
    uint64_t seed = mt_test_seed();
    fixture f;
    begin(&f, plain, &seed);
    int64_t bad = 5;
    strided_set(&f.t[Q].array, bad * plain.depth, NAN);
    REQUIRE_OK(run(&f, false));
    for (int64_t i = 0; i < plain.queries * plain.values; i++) {
        bool is_nan = isnan(strided_get(&f.t[OUT].array, i)) != 0;
        if (is_nan != (i / plain.values == bad)) {
            FAIL("element %lld of the first head: %s", (long long)i, is_nan ? "NaN" : "no NaN");
            break;
        }
    }
    end(&f);
}

TEST(refused_memory)
{
    uint64_t seed = mt_test_seed();
    fixture f;
    begin(&f, plain, &seed);
    for (int backward = 0; backward < 2; backward++) {
        (void)mtb_fail_nth(1, true);
        CHECK_EQ_I64(run(&f, backward == 1), MT_ENOMEM);
        (void)mtb_fail_nth(0, false);
        REQUIRE_OK(run(&f, backward == 1));
    }
    end(&f);
}
