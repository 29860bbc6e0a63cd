/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes the flight recorder dump by itself. Waits are long and end with the event: they only
 * tell what happened from what never does.
 */
#include "harness/mt_test.h"
#include "support/hung_threads.h"

#include <mtprof/flight.h>
#include <mtprof/model.h>
#include <mtprof/trace.h>

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LONG_WAIT_S = 60
};

static mtprof_site scope = MTPROF_SITE_INIT("work", MTPROF_KIND_SCOPE);

typedef struct seen {
    sem_t happened;
    char path[1200];
    char reason[200];
    uint32_t kind;
    uint32_t triggers; /* atomic */
    mtprof_status status;
    mtprof_flight *stops; /* in the callback; NULL: none */
} seen;

static void on_dump(void *user, const mtprof_flight_dump_info *dump)
{
    seen *s = user;
    (void)snprintf(s->path, sizeof s->path, "%s", dump->path);
}

static void on_trigger(void *user, const mtprof_flight_trigger_info *trigger)
{
    seen *s = user;
    s->kind = trigger->kind;
    s->status = trigger->status;
    (void)snprintf(s->reason, sizeof s->reason, "%s", trigger->reason);
    if (s->stops != NULL) {
        CHECK_OK(mtprof_flight_stop(s->stops));
        mtprof_flight_release(s->stops);
    }
    __atomic_add_fetch(&s->triggers, 1, __ATOMIC_ACQ_REL); /* partner: wait_for() */
    sem_post(&s->happened);
}

static mtprof_flight_config config_of(seen *s)
{
    sem_init(&s->happened, 0, 0);
    return (mtprof_flight_config){.struct_size = sizeof(mtprof_flight_config),
                                  .folder = mt_test_tmpdir(),
                                  .name = "job",
                                  .dumps_distance_ns = 1,
                                  .on_dump = on_dump,
                                  .on_trigger = on_trigger,
                                  .user = s};
}

static mtprof_flight *start(const mtprof_flight_config *config)
{
    mtprof_flight *flight = NULL;
    REQUIRE_OK(mtprof_flight_start(config, &flight));
    mtprof_end(mtprof_begin(&scope));
    return flight;
}

static void finish(mtprof_flight *flight)
{
    CHECK_OK(mtprof_flight_stop(flight));
    mtprof_flight_release(flight);
}

static bool wait_for(seen *s, int seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    int got;
    while ((got = sem_clockwait(&s->happened, CLOCK_MONOTONIC, &end)) != 0 && errno == EINTR) {
    }
    (void)__atomic_load_n(&s->triggers, __ATOMIC_ACQUIRE); /* ThreadSanitizer knows no clockwait */
    return got == 0;
}

/* A text of a dump's metadata; "" where it has none. Free it. */
static char *metadata_of(const char *path, const char *key)
{
    mtprof_model *model = NULL;
    mtprof_metadatum m;
    char *found = NULL;
    if (!CHECK_OK(mtprof_model_open(path, NULL, &model))) {
        return calloc(1, 1);
    }
    for (uint32_t i = 0; mtprof_model_metadata(model, i, &m); i++) {
        if (m.key.length == strlen(key) && memcmp(m.key.bytes, key, m.key.length) == 0) {
            free(found);
            found = strndup(m.text.bytes, m.text.length);
        }
    }
    mtprof_model_free(model);
    return found != NULL ? found : calloc(1, 1);
}

static void check_metadata(const char *path, const char *key, const char *wanted)
{
    char *text = metadata_of(path, key);
    CHECK_EQ_STR(text, wanted);
    free(text);
}

TEST(a_signal_asks_for_a_dump)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.dump_signal = SIGUSR1;
    mtprof_flight *flight = start(&config);
    for (unsigned i = 1; i <= 3; i++) {
        raise(SIGUSR1);
        REQUIRE(wait_for(&s, LONG_WAIT_S));
        CHECK_EQ_U64(s.kind, MTPROF_TRIGGER_SIGNAL);
        CHECK_OK(s.status);
        check_metadata(s.path, "dump_trigger", "signal");
        check_metadata(s.path, "dump_reason", "signal");
    }
    finish(flight);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
}

static int handled; /* atomic */

static void users_handler(int number)
{
    (void)number;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

TEST(the_users_handler_is_called_and_comes_back)
{
    seen s = {0};
    signal(SIGTERM, users_handler);
    mtprof_flight_config config = config_of(&s);
    config.dump_signal = SIGTERM;
    mtprof_flight *flight = start(&config);
    raise(SIGTERM);
    REQUIRE(wait_for(&s, LONG_WAIT_S));
    CHECK_EQ_I64(__atomic_load_n(&handled, __ATOMIC_RELAXED), 1);
    finish(flight);
    raise(SIGTERM);
    CHECK_EQ_I64(__atomic_load_n(&handled, __ATOMIC_RELAXED), 2);
}

static unsigned count_dumps(void)
{
    unsigned n = 0;
    DIR *folder = opendir(mt_test_tmpdir());
    REQUIRE(folder != NULL);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        n += strncmp(e->d_name, "job-", 4) == 0 && strstr(e->d_name, ".mtt") != NULL;
    }
    closedir(folder);
    return n;
}

TEST(a_signal_that_ends_the_program_still_does)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.dump_signal = SIGTERM;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        start(&config);
        raise(SIGTERM);
        sleep(LONG_WAIT_S); /* ends with the signal */
        _exit(7);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_EQ_U64(count_dumps(), 1);
}

/* Workers that a program forks are ended by SIGTERM. */
TEST(a_forked_child_gets_its_signals)
{
    hung_skip_with_tsan();
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.dump_signal = SIGTERM;
    mtprof_flight *flight = start(&config);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        sleep(LONG_WAIT_S); /* ends with the signal */
        _exit(7);
    }
    CHECK(kill(child, SIGTERM) == 0);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_EQ_U64(s.triggers, 0);
    finish(flight);
    CHECK_EQ_U64(count_dumps(), 0);
}

static void rest_ms(long ms)
{
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0,
                          &(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
                          NULL);
}

/* How slow the machine is decides how often this tries, not whether it passes. */
TEST(a_slow_step_is_dumped)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.slow_step = 3;
    mtprof_flight *flight = start(&config);
    bool found = false;
    for (unsigned round = 0; round < 20 && !found; round++) {
        for (unsigned i = 0; i < 40; i++) {
            mtprof_end(mtprof_begin(&scope));
            rest_ms(1);
            CHECK_OK(mtprof_flight_step(flight));
        }
        rest_ms(100 << (round < 5 ? round : 5));
        CHECK_OK(mtprof_flight_step(flight));
        CHECK_OK(mtprof_flight_step(flight));
        found = wait_for(&s, 1);
    }
    REQUIRE(found);
    CHECK_EQ_U64(s.kind, MTPROF_TRIGGER_SLOW_STEP);
    CHECK(strncmp(s.reason, "slow step: step ", 16) == 0);
    CHECK(strcmp(s.reason + strlen(s.reason) - 3, " ms") == 0); /* the usual duration */
    check_metadata(s.path, "dump_trigger", "slow step");
    finish(flight);
}

static void hang_once(void)
{
    seen s = {0};
    hung_set set;
    hung_begin(&set);
    mtprof_flight_config config = config_of(&s);
    config.hang_ns = 30 * 1000 * 1000;
    mtprof_flight *flight = start(&config);
    CHECK_OK(mtprof_flight_step(flight));
    REQUIRE(wait_for(&s, LONG_WAIT_S));
    CHECK_EQ_U64(s.kind, MTPROF_TRIGGER_HANG);
    CHECK(strncmp(s.reason, "hang: step 1 has run for ", 25) == 0);
    check_metadata(s.path, "dump_trigger", "hang");
    char *stacks = metadata_of(s.path, "dump_stacks");
    hung_check_all(&set, stacks);
    free(stacks);
    finish(flight);
    hung_end(&set);
}

TEST(a_hang_is_dumped_with_the_right_stacks)
{
    hung_skip_with_tsan();
    for (unsigned i = 0; i < (mt_test_long() ? 50 : 4); i++) {
        hang_once();
    }
}

TEST(a_hang_is_told_once_and_again_after_a_step)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.hang_ns = 10 * 1000 * 1000;
    config.stacks_signal = -1;
    mtprof_flight *flight = start(&config);
    REQUIRE(wait_for(&s, LONG_WAIT_S)); /* no event */
    CHECK(strncmp(s.reason, "hang: no event for ", 19) == 0);
    check_metadata(s.path, "dump_stacks", "");
    for (unsigned i = 1; i <= 3; i++) {
        CHECK_OK(mtprof_flight_step(flight));
        REQUIRE(wait_for(&s, LONG_WAIT_S));
        CHECK_EQ_U64(s.triggers, i + 1);
    }
    rest_ms(100); /* ten times as long */
    finish(flight);
    CHECK_EQ_U64(s.triggers, 4);
}

static bool write_stacks(void *user, int fd, uint64_t wait_ns)
{
    (void)user;
    CHECK(wait_ns > 0);
    static const char text[] = "language thread 1\n  in forever\n";
    return write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
}

TEST(the_language_adds_its_stacks)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.hang_ns = 10 * 1000 * 1000;
    config.stacks_signal = -1;
    config.write_stacks = write_stacks;
    mtprof_flight *flight = start(&config);
    REQUIRE(wait_for(&s, LONG_WAIT_S));
    check_metadata(s.path, "dump_stacks", "language thread 1\n  in forever\n");
    finish(flight);
}

TEST(the_end_is_dumped_where_asked)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.dump_at_stop = 1;
    mtprof_flight *flight = start(&config);
    CHECK_OK(mtprof_flight_stop(flight));
    CHECK_OK(mtprof_flight_stop(flight));
    mtprof_flight_release(flight);
    CHECK_EQ_U64(s.triggers, 1);
    check_metadata(s.path, "dump_trigger", "exit");
    CHECK_EQ_U64(count_dumps(), 1);
}

TEST(the_job_triggers)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    mtprof_flight *flight = start(&config);
    CHECK_OK(mtprof_flight_trigger(flight, MTPROF_TRIGGER_EXCEPTION, "ValueError: no", NULL));
    CHECK_EQ_U64(s.triggers, 1);
    check_metadata(s.path, "dump_trigger", "exception");
    check_metadata(s.path, "dump_reason", "ValueError: no");
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_flight_trigger(flight, MTPROF_TRIGGER_ELSEWHERE, NULL, &info));
    CHECK_EQ_U64(info.sequence, 2);
    check_metadata(s.path, "dump_trigger", "elsewhere");
    CHECK_EQ_U64(s.triggers, 1); /* not an answer to the other rank */
    CHECK_EQ_I64(mtprof_flight_trigger(flight, MTPROF_TRIGGER_COUNT, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_flight_trigger(NULL, 0, NULL, NULL), MTPROF_EINVAL);
    finish(flight);
    CHECK_EQ_STR(mtprof_flight_trigger_name(MTPROF_TRIGGER_HANG), "hang");
    CHECK_EQ_STR(mtprof_flight_trigger_name(99), "unknown");
}

TEST(the_budget_holds_for_triggers)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.dumps_distance_ns = UINT64_C(3600) * 1000000000;
    mtprof_flight *flight = start(&config);
    CHECK_OK(mtprof_flight_trigger(flight, MTPROF_TRIGGER_MEMORY, NULL, NULL));
    CHECK_EQ_I64(mtprof_flight_trigger(flight, MTPROF_TRIGGER_MEMORY, NULL, NULL), MTPROF_EBUSY);
    CHECK_EQ_U64(s.triggers, 1);
    finish(flight);
}

TEST(a_callback_may_stop_the_recorder)
{
    for (unsigned i = 0; i < 5; i++) {
        seen s = {0};
        mtprof_flight_config config = config_of(&s);
        config.dump_signal = SIGUSR1;
        config.hang_ns = UINT64_C(3600) * 1000000000;
        mtprof_flight *flight = start(&config);
        s.stops = flight;
        raise(SIGUSR1);
        REQUIRE(wait_for(&s, LONG_WAIT_S));
        CHECK(mtprof_flight_current() == NULL);
        struct sigaction now;
        sigaction(SIGUSR1, NULL, &now);
        CHECK(now.sa_handler == SIG_DFL);
    }
}

TEST(nothing_is_installed_unless_asked_for)
{
    seen s = {0};
    mtprof_flight_config config = config_of(&s);
    config.slow_step = 2;
    mtprof_flight *flight = start(&config);
    for (int i = 1; i <= SIGRTMAX; i++) {
        struct sigaction now;
        if (sigaction(i, NULL, &now) == 0 && i >= SIGRTMIN) {
            CHECK(now.sa_handler == SIG_DFL);
        }
    }
    finish(flight);
}

TEST(bad_fields_are_refused)
{
    seen s = {0};
    mtprof_flight *flight;
    mtprof_flight_config config = config_of(&s);
    config.dump_at_stop = 1;
    config.slow_step = 0.5;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    CHECK_EQ_PTR(flight, NULL);
    config.slow_step = 0;
    config.hang_ns = 5;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    config.hang_ns = 0;
    config.dump_signal = SIGSEGV;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    config.dump_signal = 0;
    config.hang_ns = UINT64_C(1000000000);
    config.stacks_signal = SIGKILL;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EINVAL);
    signal(SIGUSR2, users_handler);
    config.stacks_signal = SIGUSR2;
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EBUSY);
    CHECK_EQ_U64(count_dumps(), 0);
    config.stacks_signal = 0;
    finish(start(&config)); /* nothing was left behind */
}
