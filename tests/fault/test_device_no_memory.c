/* SPDX-License-Identifier: Apache-2.0
 *
 * Every single request for memory fails once, or from there on always, while a program uses the
 * simulated accelerator: streams, events, tensors, pinned memory, copies, a profile. A call says so
 * (or a later wait does); nothing crashes or leaks, and the next round is a normal one. The
 * accelerator is linked into this program, so that its own requests are counted too.
 */
#include "backends/cpu/cpu_backend.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>
#include <mindtorch/stream.h>
#include <mtprof/mtprof.h>

#include <string.h>

enum {
    COUNT = 3000, /* elements */
    REQUESTS_MAX = 3000
};

mt_backend_open_fn mt_backend_open; /* sim_backend.c */

static const char *setting(const char *name)
{
    return strcmp(name, "SIM_DEVICES") == 0 ? "2" : strcmp(name, "SIM_MEMORY") == 0 ? "64M" : NULL;
}

static int try_open(void)
{
    static mt_backend_host host = {.struct_size = sizeof host,
                                   .version = MT_BACKEND_VERSION,
                                   .fail = mt_fail,
                                   .last_error = mt_last_error,
                                   .setting = setting};
    const mt_backend *backend;
    host.cpu = mt__cpu_backend();
    int status = mt_backend_open(&host, &backend);
    CHECK_EQ_I64(backend != NULL, status == MT_OK);
    return status == MT_OK ? mt_backend_register(MT_DEVICE_TYPE_NPU, backend) : status;
}

static void check_refusal(int status)
{
    if (status != MT_ENOMEM && status != MT_EOOM) {
        CHECK_OK(status); /* prints its message */
        CHECK_EQ_I64(status, MT_ENOMEM);
    }
}

/* ---- a program ---- */

typedef struct things {
    mt_stream *stream;
    mt_event *event;
    mt_tensor *host, *pinned, *on_npu, *sum, *peer;
} things;

static int use_device(things *t, float values[COUNT])
{
    const int64_t size = COUNT;
    bool done;
    MT_TRY(mt_stream_new(MT_NPU, 0, &t->stream));
    MT_TRY(mt_event_new(MT_EVENT_TIMING, &t->event));
    MT_TRY(mt_full_with(&size, 1, mt_real(2), MT_DTYPE_F32, MT_CPU, &t->host));
    MT_TRY(mt_tensor_pin(t->host, &t->pinned));
    MT_TRY(mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, MT_NPU, &t->on_npu));
    MT_TRY(mt_stream_wait_stream(t->stream, t->stream));
    MT_TRY(mt_stream_set_current(t->stream));
    mt_stream *home;
    MT_TRY(mt_stream_get_default(MT_NPU, &home));
    MT_TRY(mt_stream_wait_stream(t->stream, home));
    MT_TRY(mt_tensor_record_stream(t->on_npu, t->stream));
    MT_TRY(mt_copy_(t->on_npu, t->pinned, true));
    MT_TRY(mt_add(t->on_npu, t->on_npu, &t->sum));
    MT_TRY(mt_event_record(t->event, t->stream));
    MT_TRY(mt_event_query(t->event, &done));
    MT_TRY(mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, MT_NPU + 1, &t->peer));
    MT_TRY(mt_copy_(t->peer, t->sum, false));
    MT_TRY(mt_event_synchronize(t->event));
    MT_TRY(mt_tensor_read(t->peer, values, COUNT * sizeof values[0]));
    return mt_device_synchronize(MT_NPU);
}

static uint64_t asked; /* requests of the last round */
static uint64_t refused_at;

/* MT_OK: everything was as it should be. */
static int one_round(void)
{
    static float values[COUNT];
    things t = {.stream = NULL};
    mt_stream *home;
    int status = use_device(&t, values);
    if (status == MT_OK) {
        CHECK(values[0] == 4 && values[COUNT - 1] == 4);
    }
    mt_tensor_release(t.peer);
    mt_tensor_release(t.sum);
    mt_tensor_release(t.on_npu);
    mt_tensor_release(t.pinned);
    mt_tensor_release(t.host);
    mt_event_free(t.event);
    /* What a round leaves must not affect the next one: kept failures, the current stream, blocks.
     */
    asked = mtb_fail_nth(0, false);
    for (mt_device device = MT_NPU; device < MT_NPU + 2; device++) {
        int late = mt_device_synchronize(device);
        if (late != MT_OK) {
            check_refusal(late);
            status = status == MT_OK ? late : status;
        }
        CHECK_OK(mt_device_empty_cache(device));
    }
    CHECK_OK(mt_stream_get_default(MT_NPU, &home));
    CHECK_OK(mt_stream_set_current(home));
    return status;
}

static int one_profile(void)
{
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session;
    int started = mtprof_session_start(&config, &session);
    int status = one_round(); /* switches the refusals off */
    if (started == MTPROF_OK) {
        mtprof_health health = {.struct_size = sizeof health};
        CHECK_OK(mtprof_session_stop(session));
        CHECK_OK(mtprof_session_get_health(session, &health));
        if (asked < refused_at) { /* nothing was refused */
            CHECK_EQ_U64(health.unmatched, 0);
        }
        CHECK_OK(mtprof_session_close(session));
    } else {
        CHECK_EQ_I64(started, MTPROF_ENOMEM);
    }
    return status;
}

/* Refuses the first, second, ... request of a round, until a round needs no more. */
static void refuse_each(int (*round)(void), bool forever)
{
    uint64_t refused = 0;
    bool enough = false;
    for (uint64_t n = 1; n <= REQUESTS_MAX && !enough; n++) {
        refused_at = n;
        mtb_fail_nth(n, forever);
        int status = round();
        enough = asked < n;
        if (status != MT_OK) {
            check_refusal(status);
            refused++;
        }
        CHECK_OK(one_round());
    }
    CHECK(enough);
    CHECK(refused > 10);
}

TEST(opening_the_device_survives_refusals)
{
    uint64_t n = 0;
    int status;
    do {
        mtb_fail_nth(++n, false);
        status = try_open();
        mtb_fail_nth(0, false);
        if (status != MT_OK) {
            check_refusal(status);
        }
    } while (status != MT_OK && n < REQUESTS_MAX);
    CHECK(n > 1);
    CHECK_OK(one_round());
}

TEST(each_request_of_a_program_is_refused_once)
{
    REQUIRE_OK(try_open());
    refuse_each(one_round, false);
}

TEST(each_request_of_a_program_and_all_later_ones_are_refused)
{
    REQUIRE_OK(try_open());
    refuse_each(one_round, true);
}

TEST(each_request_of_a_profile_is_refused_once)
{
    REQUIRE_OK(try_open());
    refuse_each(one_profile, false);
}

TEST(each_request_of_a_profile_and_all_later_ones_are_refused)
{
    REQUIRE_OK(try_open());
    refuse_each(one_profile, true);
}
