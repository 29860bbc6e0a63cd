/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles of the simulated accelerator through libmtprof's own API: what each activity records,
 * the memory of ops, steps that work belongs to, what devices are, and a stop that waits.
 */
#include "support/devices/sim_device.h"
#include "support/traces/model_events.h"

#include <mtprof/mtprof.h>

#include <string.h>

/* ---- what is recorded ---- */

static model_events of_profile(mtprof_profile *profile)
{
    mtprof_model *model;
    REQUIRE_OK(mtprof_model_from_profile(profile, NULL, &model));
    model_events e = model_events_of(model);
    CHECK_EQ_U64(e.health.lost, 0);
    return e;
}

static mtprof_profile *new_profile(uint32_t activities, uint32_t flags,
                                   const mtprof_schedule *schedule)
{
    mtprof_profile_config config = {.struct_size = sizeof config,
                                    .activities = activities,
                                    .flags = flags,
                                    .schedule = schedule};
    mtprof_profile *profile;
    REQUIRE_OK(mtprof_profile_new(&config, &profile));
    return profile;
}

static void add_on(mt_device device, int64_t count)
{
    mt_tensor *x = sim_ones(device, count);
    mt_tensor *sum;
    REQUIRE_OK(mt_add(x, x, &sum));
    mt_tensor_release(sum);
    mt_tensor_release(x);
}

TEST(activities_record_what_they_say)
{
    static const uint32_t choices[] = {MTPROF_WATCH_CPU, MTPROF_WATCH_DEVICE,
                                       MTPROF_WATCH_CPU | MTPROF_WATCH_DEVICE, MTPROF_WATCH_ALL};
    (void)sim_open("2", "64M");
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        bool host = choices[i] != MTPROF_WATCH_DEVICE;
        bool device = choices[i] != MTPROF_WATCH_CPU;
        mtprof_profile *profile = new_profile(choices[i], 0, NULL);
        REQUIRE_OK(mtprof_profile_start(profile));
        add_on(MT_CPU, 4);
        add_on(MT_NPU, 4);
        REQUIRE_OK(mtprof_profile_stop(profile));
        model_events c = of_profile(profile);
        CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_OP), host ? 4 : 2);
        CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_KERNEL), device ? 2 : 0);
        CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_RUNTIME), device ? 2 : 0);
        uint64_t dispatched = 0;
        for (uint64_t k = 0; k < c.count; k++) {
            dispatched +=
                c.kind[k] == MTPROF_EVENT_KIND_OP && (c.flags[k] & MTPROF_EVENT_FLAG_DISPATCHED);
        }
        CHECK_EQ_U64(dispatched, 2);
        CHECK_EQ_U64(c.health.unmatched, 0);
        mtprof_model_free(c.model);
        REQUIRE_OK(mtprof_profile_free(profile));
    }
}

TEST(memory_of_an_op_is_what_the_allocator_counts)
{
    enum {
        COUNT = 4096
    };
    (void)sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, COUNT);
    mt_tensor *sum;
    mt_memory_stats before = {.struct_size = sizeof before};
    mt_memory_stats after = {.struct_size = sizeof after};
    mtprof_profile *profile = new_profile(MTPROF_WATCH_ALL, MTPROF_PROFILE_MEMORY, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &before));
    REQUIRE_OK(mt_add(x, x, &sum));
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &after));
    REQUIRE_OK(mtprof_profile_stop(profile));
    model_events c = of_profile(profile);
    uint64_t n;
    const int64_t *at_begin = model_column(c.model, MTPROF_COLUMN_MEMORY_BEFORE, &n);
    const int64_t *at_end = model_column(c.model, MTPROF_COLUMN_MEMORY_AFTER, &n);
    const uint8_t *device = model_column(c.model, MTPROF_COLUMN_MEMORY_DEVICE, &n);
    uint64_t op = find_event(&c, MTPROF_EVENT_KIND_OP, "aten::add");
    REQUIRE(at_begin != NULL && at_end != NULL && device != NULL);
    CHECK_EQ_I64(at_begin[op], (int64_t)before.allocated_bytes);
    CHECK_EQ_I64(at_end[op], (int64_t)after.allocated_bytes);
    CHECK_EQ_I64(at_end[op] - at_begin[op], COUNT * 4);
    CHECK_EQ_U64(device[op], 1);
    mtprof_model_free(c.model);
    REQUIRE_OK(mtprof_profile_free(profile));
    mt_tensor_release(sum);
    mt_tensor_release(x);
}

/* ---- steps ---- */

TEST(work_belongs_to_the_step_that_launched_it)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 4);
    mt_tensor *made[3];
    mtprof_schedule schedule = {
        .struct_size = sizeof schedule, .warmup = 1, .active = 2, .repeat = 1};
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    mtprof_profile *profile = new_profile(MTPROF_WATCH_ALL, 0, &schedule);
    REQUIRE_OK(mtprof_profile_start(profile));
    REQUIRE_OK(sim->hold(0, 0, UINT32_MAX, 0));
    REQUIRE_OK(mt_add(x, x, &made[0])); /* runs in the window, and is none of its business */
    REQUIRE_OK(mtprof_profile_step(profile));
    REQUIRE_OK(mt_mul(x, x, &made[1]));
    REQUIRE_OK(mtprof_profile_step(profile));
    REQUIRE_OK(mt_sub(x, x, &made[2]));
    REQUIRE_OK(sim->release(0, 0));
    REQUIRE_OK(mtprof_profile_step(profile)); /* the window closes when both are done */
    model_events c = of_profile(profile);
    REQUIRE_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_KERNEL), 2);
    for (uint64_t i = 0, step = 1; i < c.count; i++) {
        if (c.kind[i] == MTPROF_EVENT_KIND_KERNEL) {
            CHECK_EQ_I64(c.step[i], (int64_t)step++);
        }
    }
    uint64_t second = find_event(&c, MTPROF_EVENT_KIND_STEP, "ProfilerStep#2");
    uint64_t late = find_event(&c, MTPROF_EVENT_KIND_ANNOTATION, "ProfilerStep#1");
    CHECK(c.start[late] >= c.start[second]); /* on the device step 1 came during step 2 */
    CHECK_EQ_I64(c.step[late], 1);
    CHECK_EQ_U64(c.health.unmatched, 0);
    mtprof_model_free(c.model);
    REQUIRE_OK(mtprof_profile_free(profile));
    for (int i = 0; i < 3; i++) {
        mt_tensor_release(made[i]);
    }
    mt_tensor_release(x);
}

/* ---- the end ---- */

TEST(a_stop_waits_for_work_that_has_not_begun)
{
    enum {
        LAUNCHES = 200
    };
    /* The host has launched everything long before the device may begin. */
    REQUIRE(setenv("MINDTORCH_NPU_SIM_LATENCY_NS", "50000000", 1) == 0);
    (void)sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 1 << 16);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    for (int i = 0; i < LAUNCHES; i++) {
        mt_tensor *sum;
        REQUIRE_OK(mt_add(x, x, &sum));
        mt_tensor_release(sum);
    }
    REQUIRE_OK(mtprof_session_stop(session));
    mtprof_health health = {.struct_size = sizeof health};
    REQUIRE_OK(mtprof_session_get_health(session, &health));
    CHECK_EQ_U64(health.launches, LAUNCHES);
    CHECK_EQ_U64(health.activities, LAUNCHES);
    CHECK_EQ_U64(health.unmatched, 0);
    REQUIRE_OK(mtprof_session_close(session));
    mt_tensor_release(x);
}

TEST(launches_that_a_lost_device_refuses_are_counted_and_the_next_profile_works)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 4);
    mt_tensor *sum;
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    REQUIRE_OK(mt_add(x, x, &sum)); /* its block is at hand below, so that the launch is reached */
    mt_tensor_release(sum);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    mtprof_profile *profile = new_profile(MTPROF_WATCH_ALL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    REQUIRE_OK(sim->lose(0, true));
    CHECK_EQ_I64(mt_add(x, x, &sum), MT_EDEVICE);
    REQUIRE_OK(mtprof_profile_stop(profile));
    model_events c = of_profile(profile);
    CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_OP), 1);
    CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_KERNEL), 0);
    CHECK_EQ_U64(c.health.unmatched, 1);
    mtprof_model_free(c.model);
    REQUIRE_OK(mtprof_profile_free(profile));
    REQUIRE_OK(sim->lose(0, false));
    profile = new_profile(MTPROF_WATCH_ALL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    add_on(MT_NPU, 4);
    REQUIRE_OK(mtprof_profile_stop(profile));
    c = of_profile(profile);
    CHECK_EQ_U64(count_kind(&c, MTPROF_EVENT_KIND_KERNEL), 2);
    CHECK_EQ_U64(c.health.unmatched, 0);
    mtprof_model_free(c.model);
    REQUIRE_OK(mtprof_profile_free(profile));
    mt_tensor_release(x);
}

/* ---- what devices are ---- */

TEST(a_trace_says_what_the_devices_are)
{
    (void)sim_open("2", "64M");
    mtprof_profile *profile = new_profile(MTPROF_WATCH_ALL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    add_on(MT_NPU, 4);
    REQUIRE_OK(mtprof_profile_stop(profile));
    mtprof_model *model;
    REQUIRE_OK(mtprof_model_from_profile(profile, NULL, &model));
    const char wanted[] =
        "[{\"id\": 0, \"name\": \"Simulated NPU\", \"totalGlobalMem\": 67108864}, "
        "{\"id\": 1, \"name\": \"Simulated NPU\", \"totalGlobalMem\": 67108864}]";
    bool found = false;
    mtprof_metadatum item;
    for (uint32_t i = 0; mtprof_model_metadata(model, i, &item); i++) {
        if (item.key.length == 16 && memcmp(item.key.bytes, "deviceProperties", 16) == 0) {
            found = true;
            REQUIRE_EQ_U64(item.text.length, sizeof wanted - 1);
            CHECK(memcmp(item.text.bytes, wanted, sizeof wanted - 1) == 0);
            CHECK_EQ_U64(item.is_json, 1);
        }
    }
    CHECK(found);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_profile_free(profile));
}
