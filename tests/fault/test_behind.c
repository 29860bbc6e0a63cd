/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that cannot be mapped: the helper writes them behind the recording threads (write-behind);
 * they are complete once closed.
 */
#include "fault/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    MARKS = 200000
};

static uint64_t writes, fail_from, fail_to;

static void *map_no_files(size_t bytes, int fd, off_t offset)
{
    if (fd >= 0) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return mtprof__system_default.map(bytes, fd, offset);
}

static int no_allocate(int fd, off_t offset, off_t bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    return EOPNOTSUPP;
}

static int write_or_fail(int fd, const void *bytes, size_t length, off_t offset)
{
    uint64_t number = __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
    if (number >= fail_from && number < fail_to) {
        return EIO;
    }
    return mtprof__system_default.write(fd, bytes, length, offset);
}

static mtprof_session *start_behind(const char *path)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    CHECK_EQ_U64(stress_health(session).written_behind, 1);
    return session;
}

static void record_marks(void)
{
    for (int i = 0; i < MARKS; i++) {
        MTPROF_SCOPE("scope");
        MTPROF_COUNTER("mark", i);
    }
}

static void check_complete(mtprof_session *session, const char *path)
{
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.others, MARKS);
    CHECK_EQ_U64(h.lost, 0);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "behind, live");
        CHECK_EQ_U64(t.others, MARKS);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
    if (rb_open(&t, path, NULL, NULL)) {
        CHECK_EQ_U64(t.others, MARKS);
        CHECK_EQ_U64(t.n_spans, MARKS);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.info.health[MTPROF_HEALTH_WRITTEN_BEHIND], 1);
        rb_close(&t);
    }
}

TEST(file_system_without_mmap)
{
    char path[STRESS_PATH];
    mtprof__system.map = map_no_files;
    mtprof_session *session = start_behind(stress_path(path, "t.mtt"));
    record_marks();
    check_complete(session, path);
}

TEST(file_system_without_fallocate)
{
    char path[STRESS_PATH];
    mtprof__system.allocate = no_allocate;
    mtprof_session *session = start_behind(stress_path(path, "t.mtt"));
    record_marks();
    check_complete(session, path);
}

/* A write that fails once: the chunk is written again, or close says that the file is not whole. */
TEST(a_write_fails_once)
{
    for (uint64_t at = 2; at < 14; at++) {
        char path[STRESS_PATH];
        mtprof__system.map = map_no_files;
        mtprof__system.write = write_or_fail;
        writes = 0;
        fail_from = at;
        fail_to = at + 1;
        mtprof_session *session = start_behind(stress_path(path, "t.mtt"));
        record_marks();
        CHECK_OK(mtprof_session_stop(session));
        mtprof_status status = mtprof_session_close(session);
        rb_trace t;
        if (status == MTPROF_OK && rb_open(&t, path, NULL, NULL)) {
            if (!rb_check_clean(&t, "after a failed write") || t.others != MARKS) {
                FAIL("write %llu failed, close said OK, %llu of %d marks are there",
                     (unsigned long long)at, (unsigned long long)t.others, MARKS);
            }
            rb_close(&t);
        } else {
            CHECK_EQ_I64(status, MTPROF_EIO);
        }
    }
}

/* From some point on nothing can be written: close says so, and nothing crashes. */
TEST(all_writes_fail)
{
    char path[STRESS_PATH];
    mtprof__system.map = map_no_files;
    mtprof__system.write = write_or_fail;
    fail_from = 3;
    fail_to = UINT64_MAX;
    mtprof_session *session = start_behind(stress_path(path, "t.mtt"));
    record_marks();
    CHECK_EQ_I64(mtprof_session_close(session), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, path) != NULL);
    CHECK(access(path, F_OK) == 0);
    session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    CHECK_OK(mtprof_session_close(session));
}

/* The first write fails: nothing has happened. */
TEST(the_first_write_fails)
{
    char path[STRESS_PATH];
    mtprof__system.map = map_no_files;
    mtprof__system.write = write_or_fail;
    fail_from = 1;
    fail_to = UINT64_MAX;
    fault_write_file(stress_path(path, "t.mtt"), "an earlier trace");
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = NULL;
    CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_EIO);
    CHECK(fault_holds(path, "an earlier trace"));
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
}

/* RLIMIT_FSIZE must not kill a process that writes behind. */
TEST(file_size_limit_when_written_behind)
{
    char path[STRESS_PATH];
    signal(SIGXFSZ, SIG_DFL);
    struct rlimit limit = {2 << 20, 2 << 20};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    mtprof__system.map = map_no_files;
    mtprof__system.allocate = no_allocate;
    mtprof_session *session = start_behind(stress_path(path, "t.mtt"));
    record_marks();
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    mtprof_status status = mtprof_session_close(session);
    CHECK(status == MTPROF_EIO || h.lost_by[MTPROF_LOST_DISK] > 0);
}
