/* SPDX-License-Identifier: Apache-2.0
 *
 * Training on the simulated accelerator: the host's numbers, bit for bit, while the host runs ahead
 * of the device, on any stream, on several at once and from several threads.
 */
#include "support/devices/npu_stream.h"
#include "support/devices/sim_device.h"
#include "support/small_models.h"

#include <pthread.h>
#include <string.h>

enum {
    MAX_NUMBERS = 8192,
    STEPS = 4,
    AHEAD = 12, /* launches that are queued before the first is begun */
    THREADS = 3
};

static void open_model(sm_model *model, const sm_kind *kind, mt_optimizer_kind optimizer,
                       bool on_device)
{
    REQUIRE_OK(sm_open(model, kind, optimizer, 0.01));
    if (on_device) {
        REQUIRE_OK(sm_move(model, MT_NPU, optimizer, 0.01));
    }
}

typedef struct numbers {
    size_t count;
    float values[MAX_NUMBERS];
} numbers;

/* Parameters, then the losses of all steps. */
static void close_model(sm_model *model, const double *losses, numbers *out)
{
    out->count = sm_read(model, out->values, MAX_NUMBERS - STEPS);
    REQUIRE(out->count > 0 && out->count <= MAX_NUMBERS - STEPS);
    for (int i = 0; i < STEPS; i++) {
        out->values[out->count++] = (float)losses[i];
    }
    sm_close(model);
}

static void train(const sm_kind *kind, mt_optimizer_kind optimizer, const mt_sim *sim, numbers *out)
{
    sm_model model;
    double losses[STEPS];
    open_model(&model, kind, optimizer, sim != NULL);
    for (int i = 0; i < STEPS; i++) {
        if (sim != NULL) {
            mt_stream *stream;
            REQUIRE_OK(mt_stream_get_current(MT_NPU, &stream));
            REQUIRE_OK(sim->hold(0, mt_stream_number(stream), AHEAD, 0));
        }
        REQUIRE_OK(sm_step(&model, &losses[i]));
    }
    close_model(&model, losses, out);
}

static void check_same(const sm_kind *kind, const numbers *there, const numbers *here)
{
    CHECK_EQ_U64(there->count, here->count);
    if (!CHECK_EQ_MEM(there->values, here->values, here->count * sizeof(float))) {
        FAIL("%s differs on the accelerator", kind->name);
    }
}

static void check_nothing_left(void)
{
    mt_memory_stats stats = {.struct_size = sizeof stats};
    CHECK_EQ_U64(mt_tensors_alive(), 0);
    CHECK_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK(stats.peak_allocated_bytes > 0);
}

/* On a stream; the device is held back at the beginning of each step until the host is ahead. */
static void check_training(const sm_kind *kind, mt_optimizer_kind optimizer, const mt_sim *sim,
                           mt_stream *stream)
{
    static numbers here;
    static numbers there;
    uint32_t number = mt_stream_number(stream);
    train(kind, optimizer, NULL, &here);
    REQUIRE_OK(mt_stream_set_current(stream));
    REQUIRE_OK(sim->reset_counts(0, number));
    train(kind, optimizer, sim, &there);
    mt_sim_counts counts = sim_counts(sim, 0, number);
    CHECK_EQ_U64(counts.gave_up, 0); /* no wait before */
    CHECK(counts.most > AHEAD);
    CHECK_EQ_U64(counts.waiting, 0);
    check_same(kind, &there, &here);
    check_nothing_left();
}

TEST(sim_mlp_trains_with_every_optimizer)
{
    const mt_sim *sim = sim_open("1", "256M");
    for (int kind = 0; kind < MT_OPTIMIZER_COUNT; kind++) {
        check_training(&sm_mlp, (mt_optimizer_kind)kind, sim, default_stream());
    }
}

TEST(sim_cnn_trains)
{
    const mt_sim *sim = sim_open("1", "256M");
    check_training(&sm_cnn, MT_OPTIMIZER_ADAM, sim, default_stream());
}

TEST(sim_gpt_trains)
{
    const mt_sim *sim = sim_open("1", "256M");
    check_training(&sm_gpt, MT_OPTIMIZER_ADAMW, sim, default_stream());
}

TEST(sim_models_train_on_streams)
{
    const mt_sim *sim = sim_open("1", "256M");
    check_training(&sm_mlp, MT_OPTIMIZER_ADAM, sim, new_stream());
    check_training(&sm_cnn, MT_OPTIMIZER_SGD, sim, new_stream());
    check_training(&sm_gpt, MT_OPTIMIZER_ADAMW, sim, new_stream());
}

/* Two models on two streams, step by step in turn from one thread. */
TEST(sim_two_models_train_on_two_streams)
{
    static numbers here;
    static numbers there[2];
    (void)sim_open("1", "256M");
    train(&sm_gpt, MT_OPTIMIZER_ADAMW, NULL, &here);
    sm_model models[2];
    mt_stream *streams[2] = {new_stream(), new_stream()};
    double losses[2][STEPS];
    for (int k = 0; k < 2; k++) {
        REQUIRE_OK(mt_stream_set_current(streams[k]));
        open_model(&models[k], &sm_gpt, MT_OPTIMIZER_ADAMW, true);
    }
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < 2; k++) {
            REQUIRE_OK(mt_stream_set_current(streams[k]));
            REQUIRE_OK(sm_step(&models[k], &losses[k][i]));
        }
    }
    for (int k = 0; k < 2; k++) {
        REQUIRE_OK(mt_stream_set_current(streams[k]));
        close_model(&models[k], losses[k], &there[k]);
        check_same(&sm_gpt, &there[k], &here);
    }
    check_nothing_left();
}

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* Making a model seeds and draws from the one generator. */
static void *train_on_thread(void *context)
{
    sm_model model;
    double losses[STEPS];
    CHECK_OK(mt_stream_set_current(new_stream()));
    REQUIRE(pthread_mutex_lock(&opening) == 0);
    open_model(&model, &sm_mlp, MT_OPTIMIZER_ADAM, true);
    REQUIRE(pthread_mutex_unlock(&opening) == 0);
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(sm_step(&model, &losses[i]));
    }
    close_model(&model, losses, context);
    return NULL;
}

TEST(sim_threads_train_on_their_streams)
{
    static numbers here;
    static numbers there[THREADS];
    (void)sim_open("1", "256M");
    train(&sm_mlp, MT_OPTIMIZER_ADAM, NULL, &here);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, train_on_thread, &there[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        check_same(&sm_mlp, &there[i], &here);
    }
    check_nothing_left();
}

/* The step after one whose kernel failed begins clean: the failure is reported once (backend.h,
 * B5). */
TEST(sim_training_goes_on_after_a_failed_kernel)
{
    const mt_sim *sim = sim_open("1", "256M");
    sm_model model;
    double loss;
    open_model(&model, &sm_mlp, MT_OPTIMIZER_SGD, true);
    REQUIRE_OK(sm_step(&model, &loss));
    REQUIRE_OK(sim->fail(0, 5, MT_ERUNTIME, "the sixth launch"));
    CHECK_EQ_I64(sm_step(&model, &loss), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "the sixth launch") != NULL);
    CHECK_OK(mt_device_synchronize(MT_NPU));
    CHECK_OK(sm_step(&model, &loss));
    sm_close(&model);
    check_nothing_left();
}
