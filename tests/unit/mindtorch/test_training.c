/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of small models: the loss falls, memory stays flat over many steps, and a refused
 * request for memory, whichever it is, gives an error and corrupts nothing.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/small_models.h"

#include <mindtorch/mindtorch.h>

#include <math.h>
#include <string.h>

enum {
    MAX_NUMBERS = 4096
};

/* Trains for some steps; the loss must fall below `share` of the first. */
static void check_learns(const sm_kind *kind, mt_optimizer_kind optimizer, double lr, int steps,
                         double share)
{
    uint64_t alive = mt_tensors_alive();
    sm_model model;
    double first = 0.0;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, optimizer, lr));
    for (int i = 0; i < steps; i++) {
        REQUIRE_OK(sm_step(&model, &loss));
        REQUIRE(isfinite(loss));
        first = i == 0 ? loss : first;
    }
    if (!CHECK(loss < share * first)) {
        FAIL("%s: loss %g at first, %g after %d steps", kind->name, first, loss, steps);
    }
    sm_close(&model);
    CHECK_EQ_U64(mt_tensors_alive(), alive);
}

TEST(training_mlp_learns_with_every_optimizer)
{
    check_learns(&sm_mlp, MT_OPTIMIZER_SGD, 0.5, 100, 0.3);
    check_learns(&sm_mlp, MT_OPTIMIZER_ADAM, 0.02, 60, 0.3);
    check_learns(&sm_mlp, MT_OPTIMIZER_ADAMW, 0.02, 60, 0.3);
    check_learns(&sm_mlp, MT_OPTIMIZER_RMSPROP, 0.01, 60, 0.3);
    check_learns(&sm_mlp, MT_OPTIMIZER_ADAGRAD, 0.1, 60, 0.3);
}

TEST(training_cnn_learns)
{
    check_learns(&sm_cnn, MT_OPTIMIZER_ADAM, 0.02, 40, 0.3);
}

TEST(training_gpt_learns)
{
    check_learns(&sm_gpt, MT_OPTIMIZER_ADAMW, 0.02, 80, 0.3);
}

/* Parameters after three steps from the same seed; gives how many numbers they are. */
static size_t train_shortly(const sm_kind *kind, float *values)
{
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, MT_OPTIMIZER_ADAM, 0.01));
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(sm_step(&model, &loss));
    }
    size_t count = sm_read(&model, values, MAX_NUMBERS);
    sm_close(&model);
    REQUIRE(count > 0 && count <= MAX_NUMBERS);
    return count;
}

/* The same seed gives the same numbers, bit for bit. */
TEST(training_is_repeatable)
{
    static const sm_kind *const kinds[] = {&sm_mlp, &sm_cnn, &sm_gpt};
    static float values[2][MAX_NUMBERS];
    for (size_t k = 0; k < 3; k++) {
        size_t count = train_shortly(kinds[k], values[0]);
        CHECK_EQ_U64(train_shortly(kinds[k], values[1]), count);
        CHECK_EQ_MEM(values[0], values[1], count * sizeof(float));
    }
}

static mt_memory_stats stats_now(void)
{
    mt_memory_stats stats = {.struct_size = sizeof(stats)};
    CHECK_OK(mt_device_get_memory_stats(MT_CPU, &stats));
    return stats;
}

TEST(training_keeps_memory_flat_over_10000_steps)
{
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, &sm_mlp, MT_OPTIMIZER_ADAM, 1e-3));
    for (int i = 0; i < 20; i++) {
        REQUIRE_OK(sm_step(&model, &loss));
    }
    uint64_t alive = mt_tensors_alive();
    mt_memory_stats before = stats_now();
    for (int i = 0; i < 10000; i++) {
        REQUIRE_OK(sm_step(&model, &loss));
    }
    mt_memory_stats after = stats_now();
    CHECK_EQ_U64(mt_tensors_alive(), alive);
    CHECK_EQ_U64(after.allocated_bytes, before.allocated_bytes);
    CHECK_EQ_U64(after.reserved_bytes, before.reserved_bytes);
    CHECK_EQ_U64(after.peak_allocated_bytes, before.peak_allocated_bytes);
    CHECK_EQ_U64(after.peak_reserved_bytes, before.peak_reserved_bytes);
    CHECK_EQ_U64(after.allocations - before.allocations, after.releases - before.releases);
    CHECK(loss < 0.1);
    sm_close(&model);
}

/* The parameters after one undisturbed step. */
static size_t step_undisturbed(const sm_kind *kind, float *values)
{
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, MT_OPTIMIZER_ADAM, 0.01));
    REQUIRE_OK(sm_step(&model, &loss));
    size_t count = sm_read(&model, values, MAX_NUMBERS);
    sm_close(&model);
    REQUIRE(count > 0 && count <= MAX_NUMBERS);
    return count;
}

/* A kernel that gets no scratch memory may take another way, which rounds differently. */
static bool check_near(const float *values, const float *expected, size_t count)
{
    bool near = true;
    for (size_t i = 0; near && i < count; i++) {
        near = CHECK_NEAR_F64((double)values[i], (double)expected[i], 1e-5);
    }
    return near;
}

/* Request n of one step is refused. False when the step makes fewer requests. Afterwards the same
 * model makes its step again, and so does a new one: both give the expected numbers. */
static bool check_refused(const sm_kind *kind, uint64_t n, const float *expected, size_t count)
{
    static float values[MAX_NUMBERS];
    uint64_t alive = mt_tensors_alive();
    uint64_t allocated = stats_now().allocated_bytes;
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, MT_OPTIMIZER_ADAM, 0.01));
    (void)mtb_fail_nth(n, false);
    int status = sm_step(&model, &loss);
    uint64_t made = mtb_fail_nth(0, false);
    if (made >= n && status != MT_ENOMEM && status != MT_OK) {
        FAIL("%s: request %llu refused gave %s: %s", kind->name, (unsigned long long)n,
             mt_status_name(status), mt_last_error()->message);
    }
    bool survived = status == MT_OK; /* the step is whole without what was refused */
    if (!survived) {
        REQUIRE_OK(sm_step(&model, &loss));
    }
    CHECK_EQ_U64(sm_read(&model, values, MAX_NUMBERS), count);
    if (survived ? !check_near(values, expected, count)
                 : !CHECK_EQ_MEM(values, expected, count * sizeof(float))) {
        FAIL("%s: after request %llu was refused the same model differs", kind->name,
             (unsigned long long)n);
    }
    sm_close(&model);
    CHECK_EQ_U64(step_undisturbed(kind, values), count);
    if (!CHECK_EQ_MEM(values, expected, count * sizeof(float))) {
        FAIL("%s: after request %llu was refused a new model differs", kind->name,
             (unsigned long long)n);
    }
    if (!CHECK_EQ_U64(mt_tensors_alive(), alive) ||
        !CHECK_EQ_U64(stats_now().allocated_bytes, allocated)) {
        FAIL("%s: request %llu refused leaks", kind->name, (unsigned long long)n);
    }
    return made >= n;
}

static void check_every_request(const sm_kind *kind)
{
    static float expected[MAX_NUMBERS];
    size_t count = step_undisturbed(kind, expected);
    uint64_t n = 1;
    while (check_refused(kind, n, expected, count)) {
        n++;
        REQUIRE(n < 100000);
    }
#if defined(MT_DEBUG) && MT_DEBUG /* elsewhere caches answer most requests */
    CHECK(n > 100);
#endif
}

TEST(training_mlp_survives_every_refused_request)
{
    check_every_request(&sm_mlp);
}

TEST(training_cnn_survives_every_refused_request)
{
    check_every_request(&sm_cnn);
}

TEST(training_gpt_survives_every_refused_request)
{
    check_every_request(&sm_gpt);
}
