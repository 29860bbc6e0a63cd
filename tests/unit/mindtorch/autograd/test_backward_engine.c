/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine: long and wide graphs, threads, random graphs against finite differences, users' and
 * broken formulas on the way.
 */
#include "autograd_support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

TEST(a_million_nodes_run_and_are_freed_without_recursion)
{
    enum {
        LENGTH = 1000000
    };
    mt_tensor *x = LEAF(1);
    mt_tensor *y = mul_number(x, 1);
    for (int i = 1; i < LENGTH; i++) {
        mt_tensor *made = NULL;
        REQUIRE_OK(mt_add_scalar(y, mt_real(0.5), &made));
        y = next(y, made);
    }
    CHECK_OK(mt_backward(y, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1);
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(a_long_chain_of_saved_tensors_is_freed_without_recursion)
{
    enum {
        LENGTH = 300000
    };
    mt_tensor *x = LEAF(1);
    mt_tensor *one = LEAF(1);
    mt_tensor *y = mul(x, one);
    for (int i = 1; i < LENGTH; i++) {
        y = next(y, mul(y, one)); /* each node keeps the tensor before */
    }
    mt_tensor_release(y); /* never run: all at once */
    y = mul(x, one);
    for (int i = 1; i < LENGTH; i++) {
        y = next(y, mul(y, one));
    }
    CHECK_OK(mt_backward(y, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1);
    CHECK_VALUES(mt_tensor_grad(one), LENGTH);
    RELEASE(x, one, y);
    CHECK_NOTHING_LEFT();
}

TEST(a_graph_of_many_equal_paths_is_run_once_a_node)
{
    mt_tensor *x = LEAF(1);
    mt_tensor *y = mul_number(x, 1);
    for (int i = 0; i < 50; i++) {
        y = next(y, add(y, y)); /* 2^50 paths */
    }
    CHECK_OK(mt_backward(y, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 1125899906842624.0);
    RELEASE(x, y);
    CHECK_NOTHING_LEFT();
}

TEST(a_node_of_many_inputs_and_one_of_many_outputs)
{
    enum {
        COUNT = 300
    };
    mt_tensor *x = LEAF(1, 2, 3);
    mt_tensor *parts[COUNT];
    for (int i = 0; i < COUNT; i++) {
        parts[i] = mul_number(x, i);
    }
    mt_tensor *all = NULL;
    REQUIRE_OK(mt_cat(parts, COUNT, 0, &all));
    mt_value pieces = {.kind = MT_KIND_NONE};
    REQUIRE_OK(mt_split(all, 3, 0, &pieces));
    REQUIRE_EQ_U64(pieces.count, COUNT);
    /* Only some of the pieces are used. */
    mt_tensor *sum = add(pieces.of.tensors[7], pieces.of.tensors[100]);
    mt_tensor *loss = sum_all(sum);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 107, 107, 107);
    for (int i = 0; i < COUNT; i++) {
        mt_tensor_release(parts[i]);
    }
    mt_value_clear(&pieces);
    RELEASE(x, all, sum, loss);
    CHECK_NOTHING_LEFT();
}

TEST(the_latest_node_goes_first)
{
    /* A retained gradient of what was made first is complete although it is used again last. */
    mt_tensor *x = LEAF(2);
    mt_tensor *a = mul_number(x, 3);
    mt_tensor *b = mul(a, a);
    mt_tensor *c = mul(b, a);
    CHECK_OK(mt_tensor_retain_grad(a));
    CHECK_OK(mt_backward(c, NULL, 0)); /* 27 x^3 */
    CHECK_VALUES(mt_tensor_grad(a), 108);
    CHECK_VALUES(mt_tensor_grad(x), 324);
    RELEASE(x, a, b, c);
    CHECK_NOTHING_LEFT();
}

/* ---- random graphs against finite differences ------------------------------------------------ */

enum {
    GRAPH_OPS = 24,
    GRAPH_LEAVES = 3
};

static mt_tensor *random_step(uint64_t *seed, mt_tensor *const *tensors, size_t count)
{
    mt_tensor *a = tensors[mt_test_random(seed) % count];
    mt_tensor *b = tensors[mt_test_random(seed) % count];
    mt_tensor *out = NULL;
    switch (mt_test_random(seed) % 6) {
    case 0: REQUIRE_OK(mt_add(a, b, &out)); break;
    case 1: REQUIRE_OK(mt_sub(a, b, &out)); break;
    case 2: REQUIRE_OK(mt_mul(a, b, &out)); break;
    case 3: REQUIRE_OK(mt_tanh(a, &out)); break;
    case 4: REQUIRE_OK(mt_mul_scalar(a, mt_real(0.7), &out)); break;
    default: REQUIRE_OK(mt_sin(a, &out)); break;
    }
    return out;
}

/* The same graph for the same seed: tanh of the sum of the last tensor. */
static mt_tensor *random_graph(uint64_t seed, mt_tensor *const *leaves)
{
    mt_tensor *tensors[GRAPH_LEAVES + GRAPH_OPS];
    size_t count = GRAPH_LEAVES;
    for (size_t i = 0; i < count; i++) {
        tensors[i] = mt_tensor_retain(leaves[i]);
    }
    while (count < GRAPH_LEAVES + GRAPH_OPS) {
        tensors[count] = random_step(&seed, tensors, count);
        count++;
    }
    mt_tensor *all = mul(tensors[count - 1], tensors[count - 2]);
    mt_tensor *sum = sum_all(all);
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_tanh(sum, &out));
    for (size_t i = 0; i < count; i++) {
        mt_tensor_release(tensors[i]);
    }
    RELEASE(all, sum);
    return out;
}

static double value_of(mt_tensor *tensor)
{
    double value = 0;
    CHECK_OK(mt_tensor_read(tensor, &value, sizeof(value)));
    return value;
}

static double value_at(uint64_t seed, const double values[GRAPH_LEAVES][2])
{
    mt_tensor *leaves[GRAPH_LEAVES];
    for (size_t i = 0; i < GRAPH_LEAVES; i++) {
        leaves[i] = make_vector(values[i], 2);
    }
    mt_tensor *out = random_graph(seed, leaves);
    double value = value_of(out);
    RELEASE(leaves[0], leaves[1], leaves[2], out);
    return value;
}

static void check_random_graph(uint64_t seed)
{
    double values[GRAPH_LEAVES][2] = {{0.3, -0.4}, {0.9, 0.2}, {-0.6, 0.5}};
    mt_tensor *leaves[GRAPH_LEAVES];
    mt_tensor *grads[GRAPH_LEAVES] = {NULL};
    for (size_t i = 0; i < GRAPH_LEAVES; i++) {
        leaves[i] = as_leaf(make_vector(values[i], 2));
    }
    mt_tensor *out = random_graph(seed, leaves);
    if (mt_tensor_requires_grad(out)) {
        CHECK_OK(mt_grad(&out, NULL, 1, leaves, GRAPH_LEAVES, MT_ALLOW_UNUSED, grads));
    }
    for (size_t i = 0; i < GRAPH_LEAVES; i++) {
        double got[2] = {0, 0};
        if (grads[i] != NULL) {
            CHECK_OK(mt_tensor_read(grads[i], got, sizeof(got)));
        }
        for (size_t k = 0; k < 2; k++) {
            double step = 1e-6;
            double was = values[i][k];
            values[i][k] = was + step;
            double up = value_at(seed, values);
            values[i][k] = was - step;
            double down = value_at(seed, values);
            values[i][k] = was;
            if (!CHECK_NEAR_F64(got[k], (up - down) / (2 * step), 1e-6)) {
                FAIL("graph %llu, leaf %zu", (unsigned long long)seed, i);
            }
        }
    }
    RELEASE(leaves[0], leaves[1], leaves[2], grads[0], grads[1], grads[2], out);
}

TEST(random_graphs_have_the_derivatives_of_finite_differences)
{
    uint64_t seed = mt_test_seed();
    int count = mt_test_long() ? 2000 : 100;
    for (int i = 0; i < count; i++) {
        check_random_graph(mt_test_random(&seed));
    }
    CHECK_NOTHING_LEFT();
}

/* ---- threads --------------------------------------------------------------------------------- */

enum {
    THREADS = 4,
    ROUNDS = 50
};

typedef struct shared {
    mt_tensor *x;
    mt_tensor *w;
    mt_tensor *loss; /* of one graph for all, or NULL */
} shared;

static int one_round(const shared *s)
{
    mt_tensor *y = NULL;
    mt_tensor *loss = NULL;
    int status = MT_OK;
    if (s->loss != NULL) {
        return mt_backward(s->loss, NULL, MT_RETAIN_GRAPH);
    }
    status = mt_mul(s->x, s->w, &y);
    if (status == MT_OK) {
        status = mt_sum(y, NULL, 0, false, &loss);
    }
    if (status == MT_OK) {
        status = mt_backward(loss, NULL, 0);
    }
    RELEASE(y, loss);
    return status;
}

static void *work(void *context)
{
    const shared *s = context;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(one_round(s));
    }
    return NULL;
}

static void run_threads(shared *s)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, work, s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

TEST(threads_over_shared_leaves)
{
    shared s = {.x = LEAF(1, 2, 3), .w = LEAF(4, 5, 6)};
    run_threads(&s);
    CHECK_VALUES(mt_tensor_grad(s.x), 800, 1000, 1200);
    CHECK_VALUES(mt_tensor_grad(s.w), 200, 400, 600);
    RELEASE(s.x, s.w);
    CHECK_NOTHING_LEFT();
}

TEST(threads_over_one_graph)
{
    shared s = {.x = LEAF(1, 2, 3), .w = LEAF(4, 5, 6)};
    mt_tensor *y = mul(s.x, s.w);
    mt_tensor *z = mul(y, y);
    s.loss = sum_all(z);
    run_threads(&s);
    CHECK_VALUES(mt_tensor_grad(s.x), 6400, 20000, 43200); /* 200 times 2 x w^2 */
    RELEASE(s.x, s.w, y, z, s.loss);
    CHECK_NOTHING_LEFT();
}

static void *run_once(void *context)
{
    const shared *s = context;
    int status = mt_backward(s->loss, NULL, 0);
    CHECK(status == MT_OK || status == MT_ERUNTIME); /* the second one gets an error */
    return status == MT_OK ? context : NULL;
}

TEST(threads_that_should_have_retained_are_told)
{
    for (int round = 0; round < ROUNDS; round++) {
        shared s = {.x = LEAF(1, 2, 3), .w = LEAF(4, 5, 6)};
        mt_tensor *y = mul(s.x, s.w);
        mt_tensor *z = mul(y, y);
        s.loss = sum_all(z);
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, run_once, &s), 0);
        }
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        RELEASE(s.x, s.w, y, z, s.loss);
    }
    CHECK_NOTHING_LEFT();
}

static void *read_view(void *context)
{
    const shared *s = context;
    mt_tensor *y = NULL;
    CHECK_OK(mt_mul(s->loss, s->loss, &y));
    CHECK(mt_tensor_requires_grad(y));
    mt_tensor_release(y);
    return NULL;
}

TEST(threads_that_read_one_stale_view)
{
    for (int round = 0; round < ROUNDS; round++) {
        shared s = {.x = LEAF(1, 2, 3)};
        mt_tensor *base = mul_number(s.x, 2);
        int64_t three = 3;
        REQUIRE_OK(mt_view(base, &three, 1, &s.loss));
        REQUIRE_OK(mt_mul_scalar_(base, mt_real(3)));
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, read_view, &s), 0);
        }
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        RELEASE(s.x, base, s.loss);
    }
    CHECK_NOTHING_LEFT();
}

static void *use_leaf_elsewhere(void *context)
{
    mt_tensor *x = context;
    mt_tensor *y = mul(x, x);
    mt_tensor *loss = sum_all(y);
    mt_tensor_release(y);
    return loss;
}

TEST(a_graph_may_be_made_on_one_thread_and_run_on_another)
{
    mt_tensor *x = LEAF(1, 2);
    pthread_t thread;
    void *loss = NULL;
    REQUIRE_EQ_I64(pthread_create(&thread, NULL, use_leaf_elsewhere, x), 0);
    pthread_join(thread, &loss);
    CHECK_OK(mt_backward(loss, NULL, 0));
    CHECK_VALUES(mt_tensor_grad(x), 2, 4);
    RELEASE(x, loss);
    CHECK_NOTHING_LEFT();
}
