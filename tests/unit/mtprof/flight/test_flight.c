/* SPDX-License-Identifier: Apache-2.0
 *
 * The flight recorder: its files, its budget of dumps, who may call what and when.
 */
#include "mtprof/record/sys.h"
#include "stress/stress.h"

#include <mtprof/check.h>
#include <mtprof/flight.h>

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

static mtprof_site scope = MTPROF_SITE_INIT("work", MTPROF_KIND_SCOPE);

typedef struct seen {
    uint64_t dumps;
    char reason[64];
    char path[MTPROF_FLIGHT_PATH_BYTES];
} seen;

static void on_dump(void *user, const mtprof_flight_dump_info *dump)
{
    seen *s = user;
    s->dumps++;
    snprintf(s->reason, sizeof s->reason, "%s", dump->reason);
    snprintf(s->path, sizeof s->path, "%s", dump->path);
}

static mtprof_flight *start(mtprof_flight_config config)
{
    static char folder[STRESS_PATH];
    mtprof_flight *flight = NULL;
    config.struct_size = sizeof config;
    config.folder = config.folder != NULL ? config.folder : stress_path(folder, "flight");
    config.name = config.name != NULL ? config.name : "job";
    config.dumps_distance_ns = config.dumps_distance_ns != 0 ? config.dumps_distance_ns : 1;
    REQUIRE_OK(mtprof_flight_start(&config, &flight));
    return flight;
}

static void work(mtprof_flight *flight, int steps)
{
    for (int i = 0; i < steps; i++) {
        for (int j = 0; j < 200; j++) {
            mtprof_end(mtprof_begin(&scope));
        }
        CHECK_OK(mtprof_flight_step(flight));
    }
}

static void check_trace(const char *path)
{
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    CHECK_OK(mtprof_check(path, NULL, &summary));
    CHECK_EQ_U64(summary.errors, 0);
    CHECK_EQ_U64(summary.closed, 1);
    CHECK(summary.spans > 0);
}

static mtprof_flight_counts counts_of(mtprof_flight *flight)
{
    mtprof_flight_counts counts = {.struct_size = sizeof counts};
    CHECK_OK(mtprof_flight_get_counts(flight, &counts));
    return counts;
}

TEST(records_dumps_and_stops)
{
    seen s = {0};
    mtprof_flight *flight = start((mtprof_flight_config){.on_dump = on_dump, .user = &s});
    mtprof_flight *now = mtprof_flight_current();
    CHECK_EQ_PTR(now, flight);
    mtprof_flight_release(now);
    CHECK(mtprof_flight_session(flight) != NULL);
    work(flight, 10);
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_flight_dump(flight, "loss is NaN/inf", &info));
    CHECK_EQ_U64(info.sequence, 1);
    CHECK_EQ_U64(info.step, 10);
    CHECK_EQ_U64(s.dumps, 1);
    CHECK_EQ_STR(s.reason, "loss is NaN/inf");
    CHECK_EQ_STR(s.path, info.path);
    CHECK(strstr(info.path, "/flight/job-2") != NULL);
    CHECK(strstr(info.path, "Z-0001-loss_is_NaN_inf.mtt") != NULL);
    check_trace(info.path);
    work(flight, 10);
    CHECK_OK(mtprof_flight_stop(flight));
    CHECK_OK(mtprof_flight_stop(flight));
    CHECK_EQ_I64(mtprof_flight_step(flight), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_flight_dump(flight, "late", NULL), MTPROF_ESTATE);
    CHECK(mtprof_flight_session(flight) == NULL);
    CHECK(mtprof_flight_current() == NULL);
    mtprof_flight_counts counts = counts_of(flight);
    CHECK_EQ_U64(counts.steps, 20);
    CHECK_EQ_U64(counts.dumps, 1);
    mtprof_flight_release(flight);
    char path[STRESS_PATH];
    check_trace(stress_path(path, "flight/job.ring.mtt"));
}

TEST(budget_of_dumps)
{
    char folder[STRESS_PATH], other[STRESS_PATH];
    stress_path(folder, "flight");
    mtprof_flight *flight = start((mtprof_flight_config){.dumps_max = 3});
    FILE *file = fopen(stress_path(other, "flight/job-notes.mtt"), "w"); /* not a dump's name */
    REQUIRE(file != NULL);
    fclose(file);
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    for (int i = 0; i < 7; i++) {
        work(flight, 1);
        CHECK_OK(mtprof_flight_dump(flight, "again", &info));
    }
    CHECK_EQ_U64(counts_of(flight).deleted, 4);
    check_trace(info.path);
    CHECK_EQ_I64(access(other, F_OK), 0);
    mtprof_flight_release(flight); /* stops */
    int files = stress_entries(folder);
    CHECK_EQ_I64(files, 6); /* three dumps, the ring, the note, the steps */
    /* The next recorder of this name finds them; so few bytes that only its own new one stays. */
    flight = start((mtprof_flight_config){.dumps_bytes_max = 1});
    work(flight, 1);
    CHECK_OK(mtprof_flight_dump(flight, "again", &info));
    CHECK_EQ_U64(counts_of(flight).deleted, 3);
    check_trace(info.path);
    mtprof_flight_release(flight);
}

TEST(dumps_that_come_too_early_are_refused)
{
    mtprof_flight *flight =
        start((mtprof_flight_config){.dumps_distance_ns = (uint64_t)3600 * 1000000000});
    work(flight, 1);
    CHECK_OK(mtprof_flight_dump(flight, NULL, NULL));
    CHECK_EQ_I64(mtprof_flight_dump(flight, NULL, NULL), MTPROF_EBUSY);
    CHECK_EQ_U64(counts_of(flight).refused, 1);
    CHECK_EQ_U64(counts_of(flight).dumps, 1);
    mtprof_flight_release(flight);
}

TEST(windows)
{
    mtprof_flight *flight =
        start((mtprof_flight_config){.keep_steps = 2, .buffer_bytes = 1 << 20, .flags = 1});
    work(flight, 400);
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_flight_dump(flight, "steps", &info));
    check_trace(info.path);
    CHECK(info.bytes < 512 << 10);
    mtprof_flight_release(flight);
    char path[STRESS_PATH];
    CHECK(access(stress_path(path, "flight/job.ring.mtt"), F_OK) != 0); /* in memory */
}

static int full_write(int fd, const void *bytes, size_t length, off_t offset)
{
    return offset > 8192 ? ENOSPC : mtprof__system_default.write(fd, bytes, length, offset);
}

TEST(a_full_disk)
{
    char folder[STRESS_PATH];
    mtprof_flight *flight = start((mtprof_flight_config){.keep_ns = 0});
    work(flight, 50);
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_flight_dump(flight, "before", &info));
    int files = stress_entries(stress_path(folder, "flight"));
    mtprof__system.write = full_write;
    CHECK_EQ_I64(mtprof_flight_dump(flight, "full", NULL), MTPROF_ENOSPC);
    mtprof__system.write = mtprof__system_default.write;
    CHECK_EQ_I64(stress_entries(folder), files); /* no part of a file is left */
    check_trace(info.path);
    CHECK_EQ_U64(counts_of(flight).failed, 1);
    work(flight, 50);
    CHECK_OK(mtprof_flight_dump(flight, "after", &info));
    check_trace(info.path);
    mtprof_flight_release(flight);
}

TEST(bad_configurations)
{
    char folder[STRESS_PATH], file[STRESS_PATH];
    mtprof_flight *flight = NULL;
    mtprof_flight_config good = {.struct_size = sizeof good, .folder = stress_path(folder, "f")};
    mtprof_flight_config config = good;
    CHECK_EQ_I64(mtprof_flight_start(NULL, &flight), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_flight_start(&good, NULL), MTPROF_EINVAL);
    config.struct_size = 4;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    config = good;
    config.folder = "";
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    static const char *const names[] = {"", "a/b", "..", ".x", "a b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        config = good;
        config.name = names[i];
        CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    }
    config = good;
    config.flags = 64;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    config = good;
    config.keep_steps = MTPROF_SESSION_STEPS_MAX;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    config = good;
    config.folder = "/nowhere/at/all";
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EIO);
    fclose(fopen(stress_path(file, "a_file"), "w"));
    config.folder = file;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EIO);
    CHECK(flight == NULL);
    CHECK(mtprof_flight_current() == NULL);
    CHECK_EQ_I64(mtprof_flight_step(NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_flight_dump(NULL, "x", NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_flight_stop(NULL), MTPROF_EINVAL);
    mtprof_flight_release(NULL);
}

TEST(one_at_a_time)
{
    mtprof_flight *flight = start((mtprof_flight_config){.flags = MTPROF_FLIGHT_IN_MEMORY});
    char folder[STRESS_PATH];
    mtprof_flight_config config = {.struct_size = sizeof config,
                                   .folder = stress_path(folder, "second")};
    mtprof_flight *second = NULL;
    CHECK_EQ_I64(mtprof_flight_start(&config, &second), MTPROF_EBUSY);
    mtprof_config plain = {.struct_size = sizeof plain};
    mtprof_session *session = NULL;
    CHECK_EQ_I64(mtprof_session_start(&plain, &session), MTPROF_EBUSY);
    mtprof_flight_release(flight);
    CHECK_OK(mtprof_session_start(&plain, &session));
    CHECK_EQ_I64(mtprof_flight_start(&config, &second), MTPROF_EBUSY);
    CHECK(mtprof_flight_current() == NULL);
    CHECK_OK(mtprof_session_close(session));
    CHECK_OK(mtprof_flight_start(&config, &second));
    mtprof_flight_release(second);
}

TEST(a_forked_child_has_none)
{
    mtprof_flight *flight = start((mtprof_flight_config){.flags = MTPROF_FLIGHT_IN_MEMORY});
    work(flight, 1);
    pid_t child = fork();
    if (child == 0) {
        CHECK(mtprof_flight_current() == NULL);
        CHECK_EQ_I64(mtprof_flight_step(flight), MTPROF_ESTATE);
        CHECK_EQ_I64(mtprof_flight_dump(flight, "child", NULL), MTPROF_ESTATE);
        CHECK_EQ_I64(mtprof_flight_stop(flight), MTPROF_ESTATE);
        mtprof_flight_release(flight);
#if !STRESS_TSAN /* it does not allow a thread after a fork */
        mtprof_flight *own = start((mtprof_flight_config){.name = "child"});
        work(own, 2);
        CHECK_OK(mtprof_flight_dump(own, "of the child", NULL));
        mtprof_flight_release(own);
#endif
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ_I64(status, 0);
    work(flight, 1);
    CHECK_OK(mtprof_flight_dump(flight, "parent", NULL));
    mtprof_flight_release(flight);
}

/* ---- threads ---- */

static uint64_t leave;

static void *dump_often(void *argument)
{
    (void)argument;
    while (stress_get(&leave) == 0) {
        mtprof_flight *flight = mtprof_flight_current();
        mtprof_status status = flight != NULL ? mtprof_flight_dump(flight, "often", NULL) : 0;
        CHECK(status == MTPROF_OK || status == MTPROF_ESTATE || status == MTPROF_EBUSY);
        mtprof_flight_release(flight);
    }
    return NULL;
}

static void *step_often(void *argument)
{
    (void)argument;
    while (stress_get(&leave) == 0) {
        mtprof_flight *flight = mtprof_flight_current();
        if (flight != NULL) {
            mtprof_end(mtprof_begin(&scope));
            mtprof_status status = mtprof_flight_step(flight);
            CHECK(status == MTPROF_OK || status == MTPROF_ESTATE);
        }
        mtprof_flight_release(flight);
    }
    return NULL;
}

TEST(start_and_stop_while_others_dump)
{
    pthread_t threads[3];
    threads[0] = stress_thread(dump_often, NULL);
    threads[1] = stress_thread(dump_often, NULL);
    threads[2] = stress_thread(step_often, NULL);
    for (int i = 0; i < 20; i++) {
        mtprof_flight *flight =
            start((mtprof_flight_config){.flags = MTPROF_FLIGHT_IN_MEMORY, .dumps_max = 2});
        stress_rest_us(1000);
        CHECK_OK(mtprof_flight_stop(flight));
        mtprof_flight_release(flight);
    }
    stress_add(&leave, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}
