/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of training on the simulated accelerator: an MLP, a CNN and a GPT, two of each on two
 * streams. At the beginning of a step a kernel holds the stream until the host has queued half
 * of the step after it, so what the trace must show does not depend on timing:
 *
 *     host      launch launch launch ... launch  launch ... item (waits)
 *     stream    [ sim_hold ................... ][kernel][kernel] ...
 */
#include "mindtorch/trace/device_trace.h"
#include "support/devices/npu_stream.h"
#include "support/devices/sim_device.h"
#include "support/small_models.h"
#include "support/traces/model_events.h"

#include <mtprof/mtprof.h>

enum {
    MODELS = 2 /* each on a stream of its own */
};

typedef struct trained {
    sm_model model;
    mt_stream *stream;
    uint32_t ahead; /* launches that end the hold */
    double loss;
} trained;

static void open_on(trained *t, const sm_kind *kind, mt_stream *stream, const mt_sim *sim)
{
    uint32_t number = mt_stream_number(stream);
    t->stream = stream;
    use_stream(stream);
    REQUIRE_OK(sm_open(&t->model, kind, MT_OPTIMIZER_ADAMW, 0.01));
    REQUIRE_OK(sm_move(&t->model, MT_NPU, MT_OPTIMIZER_ADAMW, 0.01));
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    REQUIRE_OK(sim->reset_counts(0, number));
    REQUIRE_OK(sm_step(&t->model, &t->loss)); /* the first makes the optimizer's state, too */
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    t->ahead = (uint32_t)sim_counts(sim, 0, number).launches / 2;
    REQUIRE(t->ahead > 10);
    REQUIRE_OK(sim->reset_counts(0, number));
}

static void step_held(trained *t, const mt_sim *sim)
{
    use_stream(t->stream);
    {
        MTPROF_OP("hold"); /* so that its time belongs to an op, as all device time does */
        uint64_t correlation;
        mtprof_token token = mt__trace_launch_begin(MT_RUNTIME_LAUNCH_KERNEL, &correlation);
        sim_hold_now(sim, mt_stream_number(t->stream), t->ahead, correlation);
        mt__trace_end(token);
    }
    REQUIRE_OK(sm_step(&t->model, &t->loss));
    CHECK_EQ_U64(sim_counts(sim, 0, mt_stream_number(t->stream)).gave_up, 0);
}

static bool is_device_work(const model_events *e, uint64_t event)
{
    return e->kind[event] >= MTPROF_EVENT_KIND_KERNEL && e->kind[event] <= MTPROF_EVENT_KIND_SET;
}

static bool is_on(const model_events *e, uint64_t event, const mt_stream *stream)
{
    mtprof_track track;
    return mtprof_model_track(e->model, e->track[event], &track) && track.device != 0 &&
           track.number == mt_stream_number(stream);
}

/* The hold of a stream covers the launches of half a step, and all else there came after it. */
static void check_overlap(const model_events *e, const trained *t)
{
    uint64_t hold = e->count;
    for (uint64_t i = 0; i < e->count; i++) {
        hold = is_on(e, i, t->stream) && event_is_named(e, i, "sim_hold") ? i : hold;
    }
    REQUIRE(hold < e->count);
    uint32_t inside = 0;
    uint32_t early = 0;
    uint32_t works = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        inside += (e->flags[i] & MTPROF_EVENT_FLAG_LAUNCHES) != 0 &&
                  e->start[i] >= e->start[hold] && e->start[i] <= e->end[hold];
        bool other = is_device_work(e, i) && i != hold && is_on(e, i, t->stream);
        works += other;
        early += other && e->start[i] < e->end[hold];
    }
    CHECK(inside >= t->ahead);
    CHECK(works > t->ahead);
    CHECK_EQ_U64(early, 0);
}

static void check_sums(const model_events *e)
{
    uint64_t count;
    const int64_t *self = model_column(e->model, MTPROF_COLUMN_SELF_DEVICE_NS, &count);
    int64_t of_host = 0;
    int64_t of_works = 0;
    uint64_t works = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        bool work = is_device_work(e, i);
        works += work;
        of_works += work ? e->end[i] - e->start[i] : 0;
        of_host += e->kind[i] < MTPROF_EVENT_KIND_KERNEL ? self[i] : 0;
    }
    CHECK(of_works > 0);
    CHECK_EQ_I64(of_host, of_works);
    CHECK_EQ_U64(e->health.launches, works);
    CHECK_EQ_U64(e->health.activities, works);
    CHECK_EQ_U64(e->health.unmatched, 0);
    CHECK_EQ_U64(e->health.lost, 0);
}

/* The loss of the second step on the host. */
static double loss_of_host(const sm_kind *kind)
{
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, MT_OPTIMIZER_ADAMW, 0.01));
    REQUIRE_OK(sm_step(&model, &loss));
    REQUIRE_OK(sm_step(&model, &loss));
    sm_close(&model);
    return loss;
}

static void check_trace(const sm_kind *kind)
{
    const mt_sim *sim = sim_open("1", "64M");
    trained models[MODELS];
    double wanted = loss_of_host(kind);
    for (int i = 0; i < MODELS; i++) {
        open_on(&models[i], kind, i == 0 ? default_stream() : new_stream(), sim);
    }
    mtprof_config config = {.struct_size = sizeof config, .wants = MTPROF_WANT_DEFAULT};
    mtprof_session *session = NULL;
    mtprof_model *trace = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    for (int i = 0; i < MODELS; i++) {
        step_held(&models[i], sim);
    }
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &trace));
    REQUIRE_OK(mtprof_session_close(session));
    model_events events = model_events_of(trace);
    check_sums(&events);
    for (int i = 0; i < MODELS; i++) {
        check_overlap(&events, &models[i]);
        CHECK_EQ_F64(models[i].loss, wanted);
        sm_close(&models[i].model);
    }
    mtprof_model_free(trace);
}

TEST(the_trace_of_an_mlp)
{
    check_trace(&sm_mlp);
}

TEST(the_trace_of_a_cnn)
{
    check_trace(&sm_cnn);
}

TEST(the_trace_of_a_gpt)
{
    check_trace(&sm_gpt);
}
