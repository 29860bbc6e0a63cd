/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles over the real recorder: what they record is read back.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"

#include <mtprof/profile.h>
#include <mtprof/reader.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- reading back ---------------------------------------------------------------------------- */

enum {
    NAME_MAX_COUNT = 64
};

/* The names of the scopes in some windows of a trace, in order, and a word per epoch. */
typedef struct contents {
    uint32_t n_names;
    char names[NAME_MAX_COUNT][32];
    uint32_t n_epochs, last_window;
} contents;

/* The window in which an epoch was; 0: the trace does not know it. */
static uint32_t window_of_epoch(const mtprof_reader *reader, uint32_t number)
{
    mtprof_epoch_info epoch;
    for (uint32_t i = 0; mtprof_reader_epoch(reader, i, &epoch); i++) {
        if (epoch.epoch == number) {
            return epoch.window;
        }
    }
    return 0;
}

static void add_scopes(const mtprof_reader *reader, uint32_t stream, uint32_t first_window,
                       contents *out)
{
    mtprof_cursor *cursor;
    mtprof_record record;
    REQUIRE_OK(mtprof_cursor_open(reader, stream, &cursor));
    while (mtprof_cursor_next(cursor, &record) == MTPROF_OK) {
        mtprof_text text;
        if (record.kind != MTPROF_REC_BEGIN ||
            window_of_epoch(reader, record.epoch) < first_window ||
            !mtprof_reader_string(reader, record.arg, &text)) {
            continue;
        }
        REQUIRE(out->n_names < NAME_MAX_COUNT);
        snprintf(out->names[out->n_names++], sizeof out->names[0], "%s", text.bytes);
    }
    mtprof_cursor_close(cursor);
}

static contents read_trace(mtprof_reader *reader, uint32_t first_window)
{
    contents out = {0};
    mtprof_epoch_info epoch;
    for (uint32_t i = 0; mtprof_reader_epoch(reader, i, &epoch); i++) {
        out.n_epochs++;
        out.last_window = epoch.window;
    }
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_stream_info info = {.struct_size = sizeof info};
        REQUIRE_OK(mtprof_reader_get_stream(reader, i, &info));
        if (info.kind == MTPROF_STREAM_THREAD) {
            add_scopes(reader, i, first_window, &out);
        }
    }
    return out;
}

static mtprof_reader *open_results(mtprof_profile *profile)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_session_get_bytes(mtprof_profile_session(profile, 0), &bytes));
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    return reader;
}

/* The names in the results: of the windows that belong to them. */
static contents read_results(mtprof_profile *profile)
{
    mtprof_window window = {.struct_size = sizeof window};
    REQUIRE_OK(mtprof_profile_get_window(profile, &window));
    mtprof_reader *reader = open_results(profile);
    contents out = read_trace(reader, window.first_window);
    mtprof_reader_close(reader);
    return out;
}

static bool has_metadata(mtprof_reader *reader, const char *key, const char *value)
{
    mtprof_text k, v;
    bool is_json;
    for (uint32_t i = 0; mtprof_reader_metadata(reader, i, &k, &v, &is_json); i++) {
        if (strcmp(k.bytes, key) == 0) {
            return value == NULL || strcmp(v.bytes, value) == 0;
        }
    }
    return false;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static void work(const char *name)
{
    mtprof_end(mtprof_begin_named(name, strlen(name), MTPROF_KIND_SCOPE));
}

typedef struct seen {
    int n;
    contents results[8];
} seen;

static int read_in_callback(void *user, mtprof_profile *profile)
{
    seen *s = user;
    if (s->n < 8) {
        s->results[s->n++] = read_results(profile);
    }
    return 0;
}

static mtprof_profile *make(const mtprof_schedule *schedule, const char *path, uint32_t flags,
                            seen *s)
{
    mtprof_profile *profile = NULL;
    mtprof_profile_config config = {
        .struct_size = sizeof config,
        .activities = MTPROF_WATCH_ALL,
        .flags = flags,
        .path = path,
        .schedule = schedule,
        .on_trace_ready = s != NULL ? read_in_callback : NULL,
        .user = s,
    };
    REQUIRE_OK(mtprof_profile_new(&config, &profile));
    return profile;
}

/* Eight steps with a scope each: s0 … s7. */
static void run_steps(mtprof_profile *profile)
{
    REQUIRE_OK(mtprof_profile_start(profile));
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        work(name);
        if (i < 7) {
            CHECK_OK(mtprof_profile_step(profile));
        }
    }
    CHECK_OK(mtprof_profile_stop(profile));
}

static void check_names(const contents *c, const char *const *names, uint32_t n)
{
    if (CHECK_EQ_U64(c->n_names, n)) {
        for (uint32_t i = 0; i < n; i++) {
            CHECK_EQ_STR(c->names[i], names[i]);
        }
    }
}

/* wait 1, warm-up 1, active 2: steps 2, 3 and 6, 7 */
static const mtprof_schedule cycle = {
    .struct_size = sizeof cycle, .wait = 1, .warmup = 1, .active = 2};
static const char *const both[] = {"ProfilerStep#2", "s2", "ProfilerStep#3", "s3",
                                   "ProfilerStep#6", "s6", "ProfilerStep#7", "s7"};

/* ---- cases ----------------------------------------------------------------------------------- */

TEST(results_are_the_latest_window)
{
    seen s = {0};
    mtprof_profile *profile = make(&cycle, NULL, 0, &s);
    run_steps(profile);
    CHECK_EQ_I64(s.n, 2);
    check_names(&s.results[0], both, 4);
    check_names(&s.results[1], both + 4, 4);
    contents after = read_results(profile);
    check_names(&after, both + 4, 4);
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_profile_get_health(profile, &health));
    CHECK_EQ_U64(health.lost, 0);
    CHECK_EQ_U64(health.truncated, 0);
    CHECK_OK(mtprof_profile_free(profile));
}

TEST(acc_events_keeps_all_windows)
{
    seen s = {0};
    mtprof_profile *profile = make(&cycle, NULL, MTPROF_PROFILE_ACC_EVENTS, &s);
    run_steps(profile);
    CHECK_EQ_I64(s.n, 2);
    check_names(&s.results[0], both, 4);
    check_names(&s.results[1], both, 8);
    CHECK_OK(mtprof_profile_free(profile));
}

TEST(a_file_has_all_windows_and_results_the_latest)
{
    char path[512];
    seen s = {0};
    snprintf(path, sizeof path, "%s/a.mtt", mt_test_tmpdir());
    mtprof_profile *profile = make(&cycle, path, 0, &s);
    CHECK_OK(mtprof_profile_add_metadata(profile, "who", 3, "me", 2, false));
    run_steps(profile);
    CHECK_EQ_I64(s.n, 2);
    check_names(&s.results[0], both, 4);
    check_names(&s.results[1], both + 4, 4);
    char id[64];
    CHECK_OK(mtprof_profile_get_trace_id(profile, id, sizeof id));
    CHECK_OK(mtprof_profile_free(profile));
    mtprof_reader *reader;
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    contents all = read_trace(reader, 1);
    check_names(&all, both, 8);
    CHECK_EQ_U64(all.n_epochs, 2);
    CHECK_EQ_U64(all.last_window, 2);
    CHECK(has_metadata(reader, "who", "me"));
    CHECK(has_metadata(reader, "trace_id", id));
    mtprof_reader_close(reader);
}

TEST(a_second_run_takes_the_path_over)
{
    char path[512];
    snprintf(path, sizeof path, "%s/b.mtt", mt_test_tmpdir());
    for (uint32_t flags = 0; flags <= MTPROF_PROFILE_ACC_EVENTS;
         flags += MTPROF_PROFILE_ACC_EVENTS) {
        mtprof_profile *profile = make(NULL, path, flags, NULL);
        for (int run = 0; run < 3; run++) {
            CHECK_OK(mtprof_profile_start(profile));
            work(run == 2 ? "third" : "earlier");
            CHECK_OK(mtprof_profile_stop(profile));
        }
        CHECK_OK(mtprof_profile_free(profile));
        mtprof_reader *reader;
        REQUIRE_OK(mtprof_reader_open(path, &reader));
        contents all = read_trace(reader, 1);
        const char *const names[] = {"third"};
        check_names(&all, names, 1);
        mtprof_reader_close(reader);
    }
}

TEST(toggled_parts_are_absent)
{
    mtprof_profile *profile = make(&cycle, NULL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    CHECK_OK(mtprof_profile_step(profile));
    CHECK_OK(mtprof_profile_step(profile));
    work("before");
    CHECK_OK(mtprof_profile_toggle(profile, false, MTPROF_WATCH_ALL));
    work("during");
    CHECK_OK(mtprof_profile_toggle(profile, true, MTPROF_WATCH_ALL));
    work("after");
    CHECK_OK(mtprof_profile_stop(profile));
    contents c = read_results(profile);
    const char *const names[] = {"ProfilerStep#2", "before", "ProfilerStep#2", "after"};
    check_names(&c, names, 4);
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_profile_get_health(profile, &health));
    CHECK_EQ_U64(health.truncated, 0);
    CHECK_OK(mtprof_profile_free(profile));
}

TEST(a_live_window_can_be_read)
{
    mtprof_profile *profile = make(NULL, NULL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    work("one");
    contents c = read_results(profile);
    const char *const names[] = {"one", "two"};
    check_names(&c, names, 1);
    work("two");
    CHECK_OK(mtprof_profile_stop(profile));
    c = read_results(profile);
    check_names(&c, names, 2);
    CHECK_OK(mtprof_profile_free(profile));
}

TEST(only_one_session_at_a_time)
{
    mtprof_profile *one = make(&cycle, NULL, 0, NULL);
    mtprof_profile *two = make(NULL, NULL, 0, NULL);
    CHECK_OK(mtprof_profile_start(one));
    CHECK_EQ_I64(mtprof_profile_start(two), MTPROF_EBUSY);
    CHECK_OK(mtprof_profile_stop(one));
    CHECK_OK(mtprof_profile_start(two));
    CHECK_OK(mtprof_profile_stop(two));
    CHECK_OK(mtprof_profile_free(one));
    CHECK_OK(mtprof_profile_free(two));
}

TEST(a_bad_path_fails_and_may_be_tried_again)
{
    char path[512];
    snprintf(path, sizeof path, "%s/none/c.mtt", mt_test_tmpdir());
    mtprof_profile *profile = make(NULL, path, 0, NULL);
    CHECK_EQ_I64(mtprof_profile_start(profile), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_profile_start(profile), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_profile_stop(profile), MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_free(profile));
    profile = make(NULL, NULL, 0, NULL);
    CHECK_OK(mtprof_profile_start(profile));
    CHECK_OK(mtprof_profile_free(profile));
}

static void check_child_records(void)
{
    mtprof_profile *own = make(NULL, NULL, 0, NULL);
    CHECK_OK(mtprof_profile_start(own));
    work("child");
    CHECK_OK(mtprof_profile_stop(own));
    contents c = read_results(own);
    const char *const names[] = {"child"};
    check_names(&c, names, 1);
    CHECK_OK(mtprof_profile_free(own));
}

TEST(a_forked_child_is_on_its_own)
{
    mtprof_profile *profile = make(NULL, NULL, 0, NULL);
    REQUIRE_OK(mtprof_profile_start(profile));
    work("parent");
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        CHECK_EQ_I64(mtprof_profile_stop(profile), MTPROF_ESTATE);
        CHECK_OK(mtprof_profile_free(profile));
        if (!MT_TSAN) { /* it starts no thread in the child of a process with threads */
            check_child_records();
        }
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_OK(mtprof_profile_stop(profile));
    contents c = read_results(profile);
    const char *const names[] = {"parent"};
    check_names(&c, names, 1);
    CHECK_OK(mtprof_profile_free(profile));
}

/* ---- threads --------------------------------------------------------------------------------- */

static int stop_storm;

static void *storm(void *argument)
{
    mtprof_profile *profile = argument;
    char text[128];
    while (!__atomic_load_n(&stop_storm, __ATOMIC_RELAXED)) {
        mtprof_health health = {.struct_size = sizeof health};
        work("storm");
        CHECK_OK(mtprof_profile_get_health(profile, &health));
        CHECK_OK(mtprof_profile_add_metadata(profile, "k", 1, "v", 1, false));
        CHECK_OK(mtprof_profile_explain_empty(profile, text, sizeof text));
        mtprof_status status = mtprof_profile_toggle(profile, health.begins % 2, 1);
        CHECK(status == MTPROF_OK || status == MTPROF_EBUSY);
    }
    return NULL;
}

static int count_ready(void *user, mtprof_profile *profile)
{
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_profile_get_health(profile, &health));
    ++*(int *)user;
    return 0;
}

TEST(threads_look_and_toggle_while_windows_come_and_go)
{
    int n_ready = 0;
    pthread_t threads[2];
    mtprof_profile *profile = NULL;
    mtprof_schedule schedule = {.struct_size = sizeof schedule, .warmup = 1, .active = 1};
    mtprof_profile_config config = {.struct_size = sizeof config,
                                    .activities = MTPROF_WATCH_CPU,
                                    .buffer_bytes = 4 << 20,
                                    .schedule = &schedule,
                                    .on_trace_ready = count_ready,
                                    .user = &n_ready};
    REQUIRE_OK(mtprof_profile_new(&config, &profile));
    REQUIRE_OK(mtprof_profile_start(profile));
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, storm, profile) == 0);
    }
    for (int i = 0; i < (mt_test_long() ? 4000 : 200); i++) {
        work("step");
        CHECK_OK(mtprof_profile_step(profile));
    }
    __atomic_store_n(&stop_storm, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_OK(mtprof_profile_stop(profile));
    CHECK_EQ_I64(n_ready, mt_test_long() ? 2000 : 100);
    CHECK_OK(mtprof_profile_free(profile));
}
