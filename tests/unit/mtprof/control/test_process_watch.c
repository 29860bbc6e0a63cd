/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of the process in a session's trace: that they are there, plausible and in exports, and
 * what stops, pauses and forks do to them.
 */
#include "stress/stress.h"

#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/session.h>

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static int threads(void)
{
    return stress_entries("/proc/self/task");
}

static mtprof_session *start(uint32_t hz, uint32_t paused)
{
    static char path[STRESS_PATH];
    mtprof_session *session = NULL;
    mtprof_config config = {.struct_size = sizeof config,
                            .path = stress_path(path, "t.mtt"),
                            .paused = paused,
                            .counters_hz = hz};
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

/* How often a text is in a file. */
static int count_in(const char *path, const char *text)
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    size_t n = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[n] = 0;
    int found = 0;
    for (const char *at = bytes; (at = memmem(at, (size_t)(bytes + n - at), text, strlen(text)));) {
        found++;
        at++;
    }
    return found;
}

TEST(counters_are_tracks)
{
    char trace[STRESS_PATH], json[STRESS_PATH], perfetto[STRESS_PATH];
    mtprof_model *model = NULL;
    mtprof_session *session = start(200, 0);
    sleep_ms(100);
    REQUIRE_OK(mtprof_session_close(session));
    REQUIRE_OK(mtprof_model_open(stress_path(trace, "t.mtt"), NULL, &model));
    CHECK_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, stress_path(json, "t.json"), NULL));
    CHECK_OK(
        mtprof_export(model, MTPROF_EXPORT_PERFETTO, stress_path(perfetto, "t.pftrace"), NULL));
    mtprof_model_free(model);
    CHECK(count_in(json, "process: resident bytes") >= 2);
    CHECK(count_in(json, "process: CPU cores in use") >= 2);
    CHECK(count_in(json, "process: minor page faults/s") >= 2);
    CHECK(count_in(json, "process_counters") == 1);
    CHECK(count_in(perfetto, "process: resident bytes") >= 1);
}

TEST(only_while_it_records)
{
    int before = threads();
    mtprof_session *session = start(0, 0);
    int without = threads();
    REQUIRE_OK(mtprof_session_close(session));
    session = start(100, 1);
    CHECK_EQ_I64(threads(), without + 1);
    sleep_ms(30);
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_session_get_health(session, &health));
    CHECK_EQ_U64(health.others, 0); /* the gate is shut */
    CHECK_OK(mtprof_session_resume(session, 0));
    for (int i = 0; i < 1000 && health.others == 0; i++) {
        sleep_ms(10);
        CHECK_OK(mtprof_session_get_health(session, &health));
    }
    CHECK(health.others > 0);
    REQUIRE_OK(mtprof_session_close(session));
    CHECK_EQ_I64(threads(), before);
    mtprof_config config = {.struct_size = sizeof config, .counters_hz = 1001};
    CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_EINVAL);
}

TEST(a_forked_child_has_none)
{
    mtprof_session *session = start(100, 0);
    pid_t child = fork();
    if (child == 0) {
        int left = threads();
        (void)mtprof_session_close(session);
        _exit(left == 1 ? 0 : 1);
    }
    int status = -1;
    REQUIRE_EQ_I64(waitpid(child, &status, 0), child);
    CHECK_EQ_I64(status, 0);
    REQUIRE_OK(mtprof_session_close(session));
}
