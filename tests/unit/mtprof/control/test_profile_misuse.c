/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles used wrongly, callbacks that fail or call back in, sessions that fail, and fork.
 */
#include "harness/mt_test.h"
#include "support/fake_session.h"

#include <mtprof/profile.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void finish(fake_profile *fake)
{
    CHECK_OK(mtprof_profile_free(fake->profile));
    CHECK_EQ_U64(fake_violations(), 0);
    CHECK_EQ_U64(fake_alive(), 0);
}

static void check_log(const char *expected)
{
    CHECK_EQ_STR(fake_log(), expected);
    fake_log_clear();
}

static void begin(fake_profile *fake, const char *script)
{
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(fake, script);
    REQUIRE_OK(fake_profile_make(fake));
}

static bool message_has(const char *text)
{
    return strstr(mtprof_last_error()->message, text) != NULL;
}

/* ---- new ------------------------------------------------------------------------------------- */

TEST(bad_configs_are_refused_by_name)
{
    fake_profile fake;
    mtprof_schedule bad = {.struct_size = sizeof bad};
    mtprof_schedule good = {.struct_size = sizeof good, .active = 1};
    fake_reset();
    fake_profile_init(&fake, NULL);
    fake.config.activities = 0;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("No valid profiler activities found"));
    CHECK(fake.profile == NULL);
    fake.config.activities = 1u << 7;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("activities"));
    fake_profile_init(&fake, NULL);
    fake.config.flags = 1u << 30;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("flags"));
    fake_profile_init(&fake, NULL);
    fake.config.policy = 3;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("policy"));
    fake_profile_init(&fake, NULL);
    fake.config.schedule = &bad;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("Invalid profiler schedule arguments."));
    fake_profile_init(&fake, "r");
    fake.config.schedule = &good;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK(message_has("schedule callback"));
    fake_profile_init(&fake, "r");
    fake.config.struct_size = 0;
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_new(NULL, &fake.profile), MTPROF_EINVAL);
    CHECK_OK(mtprof_profile_free(NULL));
}

TEST(new_asks_for_step_0_and_warns)
{
    fake_profile fake;
    mtprof_schedule schedule = {.struct_size = sizeof schedule, .active = 1};
    fake_reset();
    fake_profile_init(&fake, "!");
    CHECK_EQ_I64(fake_profile_make(&fake), MTPROF_ECALLBACK);
    CHECK(fake.profile == NULL);
    fake_profile_init(&fake, NULL);
    fake.config.schedule = &schedule;
    CHECK_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(fake.n_warnings, 1);
    CHECK_EQ_STR(fake.warning, "Profiler won't be using warmup, this can skew profiler results");
    finish(&fake);
    /* A caller compiled against an older, shorter struct. */
    fake_profile_init(&fake, "!");
    fake.config.struct_size = offsetof(mtprof_profile_config, schedule_callback);
    CHECK_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_current_action(fake.profile), MTPROF_ACTION_RECORD);
    finish(&fake);
}

TEST(the_advice_about_acc_events_comes_once)
{
    fake_profile fake;
    begin(&fake, "SSSn");
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mtprof_profile_start(fake.profile));
        CHECK_OK(mtprof_profile_step(fake.profile));
        CHECK_OK(mtprof_profile_stop(fake.profile));
    }
    CHECK(fake.n_advice <= 1); /* 0: another case of this process had it */
    finish(&fake);
}

/* ---- calls at the wrong time ----------------------------------------------------------------- */

TEST(calls_at_the_wrong_time)
{
    fake_profile fake;
    begin(&fake, "rr");
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_step_num(fake.profile), 0);
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ESTATE);
    CHECK(message_has("Profiler must be initialized before stopping trace"));
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK(mtprof_profile_is_running(fake.profile));
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ESTATE);
    CHECK(message_has("already"));
    CHECK(fake_is_recording());
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 1);
    CHECK_EQ_I64(fake.warning_status, MTPROF_ESTATE);
    CHECK_EQ_I64(fake.n_ready, 1);
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ESTATE);
    CHECK(!mtprof_profile_is_running(fake.profile));
    finish(&fake);
}

TEST(null_is_answered)
{
    char text[8];
    mtprof_window window = {.struct_size = sizeof window};
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_EQ_I64(mtprof_profile_start(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_step(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_stop(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_start_trace(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_stop_trace(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_toggle(NULL, true, 1), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_get_window(NULL, &window), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_get_health(NULL, &health), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_get_trace_id(NULL, text, sizeof text), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_explain_empty(NULL, text, sizeof text), MTPROF_EINVAL);
    CHECK(mtprof_profile_session(NULL, 0) == NULL);
    CHECK(!mtprof_profile_is_running(NULL));
}

TEST(a_second_profile_waits_its_turn)
{
    fake_profile one, two;
    begin(&one, "nnr");
    fake_profile_init(&two, NULL);
    REQUIRE_OK(fake_profile_make(&two));
    CHECK_OK(mtprof_profile_start(one.profile)); /* NONE, and active all the same */
    CHECK_EQ_I64(mtprof_profile_start(two.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(two.profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_stop(two.profile), MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_step(one.profile));
    CHECK_OK(mtprof_profile_step(one.profile));
    CHECK(fake_is_recording());
    CHECK_OK(mtprof_profile_stop(one.profile));
    CHECK_OK(mtprof_profile_start(two.profile));
    CHECK_OK(mtprof_profile_stop(two.profile));
    CHECK_EQ_I64(one.n_ready, 1);
    CHECK_EQ_I64(two.n_ready, 1);
    CHECK_OK(mtprof_profile_free(two.profile));
    finish(&one);
}

TEST(free_stops_without_a_callback)
{
    fake_profile fake;
    begin(&fake, "r");
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    finish(&fake);
    check_log("close stop shut");
    CHECK_EQ_I64(fake.n_ready, 0);
    begin(&fake, "r");
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_fail(FAKE_SHUT, MTPROF_EIO);
    CHECK_EQ_I64(mtprof_profile_free(fake.profile), MTPROF_EIO);
    CHECK_EQ_U64(fake_alive(), 0);
}

/* ---- callbacks that fail --------------------------------------------------------------------- */

TEST(a_failing_callback_ends_the_session_in_step)
{
    fake_profile fake;
    begin(&fake, "Srr");
    fake.ready_result = -42;
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    CHECK(message_has("on_trace_ready"));
    check_log("close ready stop");
    CHECK_EQ_I64(mtprof_profile_callback_result(fake.profile), -42);
    CHECK(!mtprof_profile_is_running(fake.profile));
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ESTATE);
    CHECK(mtprof_profile_session(fake.profile, 0) != NULL);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1);
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 1);
    fake.ready_result = 0;
    CHECK_OK(mtprof_profile_start(fake.profile)); /* and it can begin again */
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 2);
    finish(&fake);
}

TEST(a_failing_callback_at_stop_is_told_once)
{
    fake_profile fake;
    begin(&fake, "r");
    fake.ready_result = 1;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ECALLBACK);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

TEST(a_failing_schedule_ends_the_session)
{
    fake_profile fake;
    begin(&fake, "r!");
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    CHECK_EQ_I64(mtprof_profile_callback_result(fake.profile), 7);
    check_log("close stop"); /* results kept, no callback */
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 0);
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK(mtprof_profile_session(fake.profile, 0) != NULL);
    finish(&fake);
}

TEST(a_failing_trace_id_undoes_start_and_ends_a_step)
{
    fake_profile fake;
    begin(&fake, "rSr");
    fake.trace_id_result = 3;
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ECALLBACK);
    check_log("start prep stop shut");
    CHECK(mtprof_profile_session(fake.profile, 0) == NULL);
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(fake.profile), MTPROF_ECALLBACK);
    fake.trace_id_result = 0;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    fake.trace_id_result = 4;
    fake_log_clear();
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    check_log("close ready prep stop");
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

/* ---- callbacks that call back in ------------------------------------------------------------- */

static void stop_inside(fake_profile *fake)
{
    CHECK_OK(mtprof_profile_stop(fake->profile));
}

TEST(stop_inside_the_callback_of_a_step)
{
    fake_profile fake;
    begin(&fake, "Srr");
    fake.in_ready = stop_inside;
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("close ready stop"); /* and nothing begins after it */
    CHECK(!mtprof_profile_is_running(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ESTATE);
    finish(&fake);
}

TEST(stop_inside_a_callback_that_then_fails)
{
    fake_profile fake;
    begin(&fake, "Srr");
    fake.in_ready = stop_inside;
    fake.ready_result = 8;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 0);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 1);
    finish(&fake);
}

TEST(stop_inside_the_callback_of_a_stop)
{
    fake_profile fake;
    begin(&fake, "r");
    fake.in_ready = stop_inside;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1);
    CHECK_EQ_I64(fake.n_warnings, 0);
    finish(&fake);
}

static void stop_once_running(fake_profile *fake)
{
    if (mtprof_profile_is_running(fake->profile)) {
        CHECK_OK(mtprof_profile_stop(fake->profile));
    }
}

TEST(stop_inside_the_other_callbacks)
{
    fake_profile fake;
    begin(&fake, "rr"); /* the schedule stops it while a window is open: the window is delivered */
    fake.in_schedule = stop_once_running;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("start prep open:0:0x80b close stop ready");
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);

    begin(&fake, "r"); /* while the trace is being prepared */
    fake.in_trace_id = stop_once_running;
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep stop");
    CHECK_EQ_I64(fake.n_ready, 0);
    finish(&fake);

    begin(&fake, "rn"); /* the warning comes before the window is closed */
    fake.in_warning = stop_once_running;
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("warn close stop");
    finish(&fake);
}

static void start_inside(fake_profile *fake)
{
    CHECK_EQ_I64(mtprof_profile_start(fake->profile), MTPROF_ESTATE);
}

TEST(start_inside_a_preparation_is_refused)
{
    fake_profile fake;
    begin(&fake, "r");
    fake.in_trace_id = start_inside;
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("start prep stop");
    finish(&fake);
}

static void try_everything(fake_profile *fake)
{
    mtprof_profile *profile = fake->profile;
    mtprof_health health = {.struct_size = sizeof health};
    char text[64];
    CHECK_EQ_I64(mtprof_profile_step(profile), MTPROF_ESTATE);
    CHECK(message_has("inside a callback"));
    CHECK_EQ_I64(mtprof_profile_free(profile), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_start_trace(profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_stop_trace(profile), MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_toggle(profile, false, MTPROF_WATCH_CPU));
    CHECK_OK(mtprof_profile_get_health(profile, &health));
    CHECK_OK(mtprof_profile_get_trace_id(profile, text, sizeof text));
    CHECK_EQ_STR(text, "id");
    CHECK_OK(mtprof_profile_add_metadata(profile, "k", 1, "v", 1, false));
    CHECK_OK(mtprof_profile_explain_empty(profile, text, sizeof text));
    CHECK(mtprof_profile_session(profile, 0) != NULL);
    mtprof_window window = {.struct_size = sizeof window};
    CHECK_OK(mtprof_profile_get_window(profile, &window));
    CHECK_EQ_U64(window.results, MTPROF_RESULTS_READY);
    CHECK(!fake_is_recording());
    if (mtprof_profile_is_running(profile)) {
        CHECK_EQ_I64(mtprof_profile_start(profile), MTPROF_ESTATE);
    }
}

TEST(what_a_callback_may_do)
{
    fake_profile fake;
    begin(&fake, "Srr");
    fake.in_ready = try_everything;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK(fake_is_recording());
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 2);
    finish(&fake);
}

static fake_profile *another;
static mtprof_status another_status;

static void start_another(fake_profile *fake)
{
    (void)fake;
    another_status = mtprof_profile_start(another->profile);
    if (another_status == MTPROF_OK) {
        CHECK_OK(mtprof_profile_stop(another->profile));
    }
}

static void stop_and_start_another(fake_profile *fake)
{
    CHECK_OK(mtprof_profile_stop(fake->profile));
    start_another(fake);
}

TEST(a_callback_may_start_another_profile_once_its_own_is_stopped)
{
    fake_profile fake, other;
    begin(&fake, "Srr");
    fake_profile_init(&other, NULL);
    REQUIRE_OK(fake_profile_make(&other));
    another = &other;
    fake.in_ready = start_another;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile)); /* the session continues: busy */
    CHECK_EQ_I64(another_status, MTPROF_EBUSY);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(another_status, MTPROF_OK);
    fake.in_ready = stop_and_start_another;
    fake.script = "S";
    CHECK_OK(mtprof_profile_start(fake.profile)); /* with the action of last time, RECORD */
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK(mtprof_profile_is_running(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK(!mtprof_profile_is_running(fake.profile));
    CHECK_EQ_I64(another_status, MTPROF_OK);
    CHECK_EQ_I64(other.n_ready, 2);
    CHECK_OK(mtprof_profile_free(other.profile));
    finish(&fake);
}

static void restart(fake_profile *fake)
{
    if (fake->n_ready == 1) {
        CHECK_OK(mtprof_profile_stop(fake->profile));
        CHECK_OK(mtprof_profile_start(fake->profile));
    }
}

TEST(a_callback_may_start_its_own_profile_again)
{
    fake_profile fake;
    begin(&fake, "SS");
    fake.in_ready = restart;
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("close ready stop start prep shut open:1:0x80b");
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 2);
    finish(&fake);
}

static void fail_and_restart(fake_profile *fake)
{
    fake->ready_result = 5;
    restart(fake);
}

TEST(a_failure_does_not_end_the_session_that_came_after)
{
    fake_profile fake;
    begin(&fake, "SS");
    fake.in_ready = fail_and_restart;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    CHECK(mtprof_profile_is_running(fake.profile));
    CHECK(fake_is_recording());
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ECALLBACK);
    finish(&fake);
}

/* ---- the observer ---------------------------------------------------------------------------- */

static int observer_result;
static bool observer_stops;

static int observe(void *user, mtprof_profile *profile, enum mtprof_observe event)
{
    (void)user;
    fake_note(event == MTPROF_OBSERVE_START ? "observe+" : "observe-");
    if (observer_stops) {
        CHECK_OK(mtprof_profile_stop(profile));
    }
    return observer_result;
}

static void begin_observed(fake_profile *fake, const char *script)
{
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(fake, script);
    fake->config.observer = observe;
    observer_result = 0;
    observer_stops = false;
    REQUIRE_OK(fake_profile_make(fake));
}

TEST(the_observer_is_told_around_each_window)
{
    fake_profile fake;
    begin_observed(&fake, "SSn");
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep observe+ open:0:0x80b");
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("observe- close ready prep clear observe+ open:1:0x80b");
    observer_result = 9;
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ECALLBACK);
    check_log("observe- close stop");
    CHECK_EQ_I64(mtprof_profile_callback_result(fake.profile), 9);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    finish(&fake);

    begin_observed(&fake, "r");
    observer_result = 9;
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ECALLBACK);
    check_log("start prep observe+ observe- stop shut");
    finish(&fake);

    begin_observed(&fake, "rr");
    fake_fail(FAKE_OPEN, MTPROF_ENOSPC);
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ENOSPC);
    check_log("start prep observe+ observe- stop shut");
    finish(&fake);
}

TEST(the_observer_may_stop_the_profile)
{
    fake_profile fake;
    begin_observed(&fake, "r");
    observer_stops = true;
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep observe+ observe- stop");
    finish(&fake);
    begin_observed(&fake, "w");
    observer_stops = true;
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("start prep observe+ observe- stop");
    finish(&fake);
    begin_observed(&fake, "r");
    CHECK_OK(mtprof_profile_start(fake.profile));
    observer_stops = true;
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("start prep observe+ open:0:0x80b observe- close stop ready");
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

/* ---- sessions that fail ---------------------------------------------------------------------- */

TEST(a_session_that_fails_to_start)
{
    fake_profile fake;
    begin(&fake, "r");
    fake_fail(FAKE_START, MTPROF_ENOSPC);
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ENOSPC);
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ESTATE);
    fake_fail(FAKE_OPEN, MTPROF_ENOMEM);
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ENOMEM);
    CHECK(message_has("fake failure"));
    mtprof_window window = {.struct_size = sizeof window};
    CHECK_OK(mtprof_profile_get_window(fake.profile, &window));
    CHECK_EQ_U64(window.results, MTPROF_RESULTS_NONE);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

TEST(a_session_that_fails_in_a_step_ends)
{
    static const enum fake_call calls[] = {FAKE_CLOSE, FAKE_CLEAR, FAKE_OPEN};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fake_profile fake;
        begin(&fake, "SSS");
        CHECK_OK(mtprof_profile_start(fake.profile));
        fake_fail(calls[i], MTPROF_ENOMEM);
        CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ENOMEM);
        CHECK(message_has("fake failure"));
        CHECK_EQ_I64(fake.n_ready, calls[i] == FAKE_CLOSE ? 0 : 1);
        CHECK(!mtprof_profile_is_running(fake.profile));
        CHECK_OK(mtprof_profile_stop(fake.profile));
        CHECK_EQ_I64(fake.n_ready, calls[i] == FAKE_CLOSE ? 0 : 1);
        finish(&fake);
    }
}

TEST(a_session_that_fails_to_stop)
{
    fake_profile fake;
    begin(&fake, "r");
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_fail(FAKE_CLOSE, MTPROF_ENOSPC);
    CHECK_EQ_I64(mtprof_profile_stop(fake.profile), MTPROF_ENOSPC);
    CHECK(!mtprof_profile_is_running(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 0);
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_fail(FAKE_SHUT, MTPROF_EIO);
    CHECK_EQ_I64(mtprof_profile_free(fake.profile), MTPROF_EIO);
}

TEST(earlier_results_that_cannot_be_finished_are_a_warning)
{
    fake_profile fake;
    begin(&fake, "r");
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    fake_fail(FAKE_SHUT, MTPROF_EIO);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 1);
    CHECK_EQ_I64(fake.warning_status, MTPROF_EIO);
    finish(&fake);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Waits for a child that ran checks of its own. */
static void reap(pid_t child)
{
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_child(mtprof_profile *profile)
{
    char text[8];
    mtprof_window window = {.struct_size = sizeof window};
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_EQ_I64(mtprof_profile_start(profile), MTPROF_ESTATE);
    CHECK(message_has("parent"));
    CHECK_EQ_I64(mtprof_profile_step(profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_stop(profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_prepare_trace(profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_toggle(profile, true, 1), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_add_metadata(profile, "k", 1, "v", 1, false), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_get_window(profile, &window), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_get_health(profile, &health), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_get_trace_id(profile, text, sizeof text), MTPROF_ESTATE);
    CHECK(mtprof_profile_session(profile, 0) == NULL);
    CHECK(!mtprof_profile_is_running(profile));
    (void)mtprof_profile_step_num(profile);
    CHECK_OK(mtprof_profile_free(profile));
}

TEST(after_fork_the_child_has_no_profile)
{
    for (int state = 0; state < 4; state++) { /* new, NONE, recording, stopped */
        fake_profile fake;
        begin(&fake, state == 1 ? "n" : "r");
        if (state > 0) {
            CHECK_OK(mtprof_profile_start(fake.profile));
        }
        if (state == 3) {
            CHECK_OK(mtprof_profile_stop(fake.profile));
        }
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            check_child(fake.profile);
            /* A profile of the child's own works. */
            fake_profile own;
            fake_reset();
            fake_profile_init(&own, NULL);
            CHECK_OK(fake_profile_make(&own));
            CHECK_OK(mtprof_profile_start(own.profile));
            CHECK_OK(mtprof_profile_stop(own.profile));
            CHECK_OK(mtprof_profile_free(own.profile));
            _exit(0);
        }
        reap(child);
        if (state == 1 || state == 2) {
            CHECK_OK(mtprof_profile_step(fake.profile));
            CHECK_OK(mtprof_profile_stop(fake.profile));
        }
        finish(&fake);
    }
}

static pid_t forked;

static void fork_inside(fake_profile *fake)
{
    (void)fake;
    forked = fork();
}

TEST(fork_inside_a_callback)
{
    fake_profile fake;
    begin(&fake, "Srr");
    fake.in_ready = fork_inside;
    CHECK_OK(mtprof_profile_start(fake.profile));
    mtprof_status status = mtprof_profile_step(fake.profile);
    REQUIRE(forked >= 0);
    if (forked == 0) {
        CHECK_EQ_I64(status, MTPROF_ESTATE); /* the session is the parent's */
        CHECK_OK(mtprof_profile_free(fake.profile));
        _exit(0);
    }
    CHECK_OK(status);
    reap(forked);
    CHECK(fake_is_recording());
    fake.in_ready = NULL;
    CHECK_OK(mtprof_profile_stop(fake.profile));
    finish(&fake);
}
