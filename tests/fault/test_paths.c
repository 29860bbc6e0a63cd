/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths that cannot be recorded to, paths that another process records to, and file systems and
 * limits that make recording harder.
 */
#include "base/compiler.h"
#include "fault/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void check_refused(const char *path, mtprof_status expected, int system_error)
{
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = (mtprof_session *)&config;
    mtprof_status status = mtprof_session_start(&config, &session);
    if (status == MTPROF_OK) {
        FAIL("%s: start did not fail", path);
        mtprof_session_close(session);
        return;
    }
    CHECK_EQ_I64(status, expected);
    CHECK_EQ_PTR(session, NULL);
    CHECK(strstr(mtprof_last_error()->message, path) != NULL);
    if (system_error != 0) {
        CHECK_EQ_I64(mtprof_last_error()->system_error, system_error);
    }
    CHECK(mtprof_i_gate == 0);
}

/* A start that failed has left the process as it was. */
static void check_usable(void)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("usable");
    CHECK_EQ_U64(stress_health(session).others, 1);
    CHECK_OK(mtprof_session_close(session));
}

TEST(paths_that_lead_nowhere)
{
    char file[STRESS_PATH], path[STRESS_PATH + 64];
    const char *folder = mt_test_tmpdir();
    fault_write_file(stress_path(file, "file"), "text");
    snprintf(path, sizeof path, "%s/missing/t.mtt", folder);
    check_refused(path, MTPROF_EIO, ENOENT);
    snprintf(path, sizeof path, "%s/under.mtt", file);
    check_refused(path, MTPROF_EIO, ENOTDIR);
    check_refused(folder, MTPROF_EIO, 0);
    snprintf(path, sizeof path, "%s/", folder);
    check_refused(path, MTPROF_EIO, 0);
    snprintf(path, sizeof path, "%s/dangling", folder);
    REQUIRE_EQ_I64(symlink("nowhere/at/all", path), 0);
    check_refused(path, MTPROF_EIO, ENOENT);
    char long_name[400];
    memset(long_name, 'x', sizeof long_name);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    check_refused(long_name, MTPROF_EIO, ENAMETOOLONG);
    CHECK(fault_holds(file, "text"));
    CHECK_EQ_I64(stress_entries(folder), 2);
    check_usable();
}

static void record_once(const char *path)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("mark");
    CHECK_OK(mtprof_session_close(session));
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

/* Recording and saving, one after the other, at the same kind of path. */
static void save_once(const char *path)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("mark");
    CHECK_OK(mtprof_session_stop(session));
    CHECK_OK(mtprof_session_save(session, path));
    CHECK_OK(mtprof_session_close(session));
}

TEST(links_are_followed)
{
    static void (*const ways[])(const char *) = {record_once, save_once};
    for (size_t i = 0; i < MT_COUNT(ways); i++) {
        char folder[STRESS_PATH], file[STRESS_PATH + 16], link[STRESS_PATH], second[STRESS_PATH];
        struct stat st;
        REQUIRE_EQ_I64(mkdir(stress_path(folder, i == 0 ? "a" : "b"), 0755), 0);
        snprintf(file, sizeof file, "%s/t.mtt", folder);
        fault_write_file(file, "old");
        stress_path(link, i == 0 ? "link_a.mtt" : "link_b.mtt");
        stress_path(second, i == 0 ? "second_a.mtt" : "second_b.mtt");
        REQUIRE_EQ_I64(symlink(i == 0 ? "a/t.mtt" : "b/t.mtt", link), 0);
        REQUIRE_EQ_I64(symlink(link, second), 0); /* a link to a link */
        ways[i](second);
        CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
        CHECK(lstat(second, &st) == 0 && S_ISLNK(st.st_mode));
        rb_check_file(file, false);
        REQUIRE_EQ_I64(unlink(file), 0); /* now they lead nowhere */
        ways[i](second);
        CHECK(lstat(second, &st) == 0 && S_ISLNK(st.st_mode));
        rb_check_file(file, false);
        CHECK_EQ_I64(stress_entries(folder), 1);
    }
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 6);
    char loop[STRESS_PATH];
    REQUIRE_EQ_I64(symlink("loop", stress_path(loop, "loop")), 0);
    check_refused(loop, MTPROF_EIO, ELOOP);
}

/* As the kernel's protected_symlinks: any user who may write in /tmp could redirect us. */
TEST(links_of_others_in_open_folders_are_not_followed)
{
    if (geteuid() != 0) {
        MT_SKIP("only root can make a link that is somebody else's");
    }
    char folder[STRESS_PATH], link[STRESS_PATH + 16], file[STRESS_PATH];
    fault_write_file(stress_path(file, "precious"), "text");
    REQUIRE_EQ_I64(mkdir(stress_path(folder, "open"), 0777), 0);
    REQUIRE_EQ_I64(chmod(folder, 01777), 0);
    snprintf(link, sizeof link, "%s/t.mtt", folder);
    REQUIRE_EQ_I64(symlink(file, link), 0);
    REQUIRE_EQ_I64(lchown(link, 65534, 65534), 0);
    check_refused(link, MTPROF_EIO, EACCES);
    CHECK(fault_holds(file, "text"));
    REQUIRE_EQ_I64(lchown(link, 0, 0), 0);
    record_once(link);
    rb_check_file(file, false);
}

TEST(permissions_are_kept)
{
    static void (*const ways[])(const char *) = {record_once, save_once};
    char path[STRESS_PATH];
    for (size_t i = 0; i < MT_COUNT(ways); i++) {
        mode_t before = umask(027);
        ways[i](stress_path(path, i == 0 ? "new_a" : "new_b"));
        umask(before);
        CHECK_EQ_U64(mode_of(path), 0640);
        static const mode_t modes[] = {0600, 0666, 0444};
        for (size_t j = 0; j < MT_COUNT(modes); j++) {
            REQUIRE_EQ_I64(chmod(path, modes[j]), 0);
            ways[i](path);
            CHECK_EQ_U64(mode_of(path), modes[j]);
        }
        if (geteuid() == 0) { /* another user's file: its wide permissions are not taken over */
            REQUIRE_EQ_I64(chmod(path, 0666), 0);
            REQUIRE_EQ_I64(chown(path, 65534, 65534), 0);
            before = umask(022);
            ways[i](path);
            umask(before);
            CHECK_EQ_U64(mode_of(path), 0644);
        }
    }
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 2);
}

/* ---- file systems without locks ---- */

static int lock_error;

static int refuse_lock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    errno = lock_error;
    return -1;
}

TEST(a_file_system_without_locks)
{
    static const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS};
    char path[STRESS_PATH];
    mtprof__system.lock = refuse_lock;
    for (size_t i = 0; i < MT_COUNT(errors); i++) {
        lock_error = errors[i];
        fault_warnings warnings = {0};
        mtprof_config config = {.struct_size = sizeof config,
                                .path = stress_path(path, "t.mtt"),
                                .on_warning = fault_on_warning,
                                .user = &warnings};
        mtprof_session *session = NULL;
        REQUIRE_OK(mtprof_session_start(&config, &session));
        MTPROF_INSTANT("mark");
        CHECK_OK(mtprof_session_stop(session));
        CHECK_EQ_U64(stress_health(session).unlocked, 1);
        CHECK_EQ_U64(stress_health(session).written_behind, 0);
        CHECK_OK(mtprof_session_close(session));
        CHECK_EQ_U64(fault_warned(&warnings), 1);
        rb_check_file(path, false);
        rb_trace t;
        if (rb_open(&t, path, NULL, NULL)) {
            CHECK_EQ_U64(t.info.health[MTPROF_HEALTH_WRITTEN_BEHIND], MTPROF_FILE_UNLOCKED);
            rb_close(&t);
        }
    }
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
    mtprof__system = mtprof__system_default;
    record_once(path);
}

/* A start that fails leaves no empty file where there was none. */
TEST(a_start_that_fails_leaves_nothing)
{
    char path[STRESS_PATH];
    stress_path(path, "t.mtt");
    mtprof__system.lock = refuse_lock;
    lock_error = EIO;
    check_refused(path, MTPROF_EIO, EIO);
    mtprof__system = mtprof__system_default;
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 0);
    struct rlimit limit = {1024, RLIM_INFINITY};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    check_refused(path, MTPROF_ENOSPC, EFBIG);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 0);
}

/* Opening a FIFO must not wait for a reader, and what is no file is left alone. */
TEST(paths_to_what_is_no_file)
{
    char path[STRESS_PATH];
    REQUIRE_EQ_I64(mkfifo(stress_path(path, "fifo"), 0644), 0);
    check_refused(path, MTPROF_EIO, 0);
    struct stat st;
    CHECK(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    check_refused("/dev/null", MTPROF_EIO, 0);
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
    check_usable();
}

TEST(read_only_file_system)
{
    char folder[STRESS_PATH], path[STRESS_PATH + 16];
    if (!fault_mount(folder, "disk", "size=1m", true)) {
        MT_SKIP("needs the right to mount a tmpfs");
    }
    snprintf(path, sizeof path, "%s/t.mtt", folder);
    check_refused(path, MTPROF_EIO, EROFS);
    check_usable();
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    CHECK_OK(mtprof_session_stop(session));
    CHECK_EQ_I64(mtprof_session_save(session, path), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, path) != NULL);
    CHECK_OK(mtprof_session_close(session));
}

TEST(folder_without_permission)
{
    if (geteuid() == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            MT_SKIP("root may do everything, and cannot become somebody else here");
        }
    }
    check_refused("/root-owned.mtt", MTPROF_EIO, EACCES);
    check_usable();
}

static int give_up(void *user, const char *what, uint64_t done, uint64_t total)
{
    int *left = user;
    CHECK(what != NULL && done <= total);
    return --*left == 0;
}

TEST(a_copy_that_is_given_up)
{
    char path[STRESS_PATH];
    fault_write_file(stress_path(path, "t.mtt"), "old");
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    for (int i = 0; i < 100000; i++) {
        MTPROF_INSTANT("mark");
    }
    CHECK_OK(mtprof_session_stop(session));
    for (int after = 1; after < 4; after++) {
        int left = after;
        CHECK_EQ_I64(mtprof_session_save_with(session, path, give_up, &left), MTPROF_ECALLBACK);
        CHECK(fault_holds(path, "old"));
        CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
    }
    int left = 0;
    CHECK_OK(mtprof_session_save_with(session, path, give_up, &left));
    CHECK(left < -2);
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
}

/* ---- two processes, one path ---- */

static void say(int fd)
{
    CHECK_EQ_I64(write(fd, "x", 1), 1);
}

static void hear(int fd)
{
    char byte;
    CHECK_EQ_I64(read(fd, &byte, 1), 1);
}

TEST(two_processes_one_path)
{
    char path[STRESS_PATH];
    int to_child[2], to_parent[2];
    stress_path(path, "shared.mtt");
    REQUIRE(pipe(to_child) == 0 && pipe(to_parent) == 0);
    pid_t child = fork();
    if (child == 0) {
        mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
        for (int i = 0; i < 1000; i++) {
            MTPROF_INSTANT("first process");
        }
        say(to_parent[1]);
        hear(to_child[0]);
        for (int i = 0; i < 1000; i++) {
            MTPROF_INSTANT("first process");
        }
        CHECK_OK(mtprof_session_close(session));
        _exit(0);
    }
    hear(to_parent[0]);
    check_refused(path, MTPROF_EBUSY, 0);
    check_refused(path, MTPROF_EBUSY, 0);
    rb_trace t;
    if (rb_open(&t, path, NULL, NULL)) { /* live, from outside */
        CHECK_EQ_U64(t.others, 1000);
        rb_close(&t);
    }
    say(to_child[1]);
    int status;
    REQUIRE_EQ_I64(waitpid(child, &status, 0), child);
    CHECK_EQ_I64(status, 0);
    rb_check_file(path, false);
    if (rb_open(&t, path, NULL, NULL)) {
        CHECK_EQ_U64(t.others, 2000);
        rb_close(&t);
    }
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("second process");
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
}

/* A path that the environment gives to every process: each records, under a name of its own. */
TEST(processes_share_a_path)
{
    if (MT_TSAN) {
        MT_SKIP("TSan starts no thread in the child of a process with threads");
    }
    char path[STRESS_PATH], own[STRESS_PATH + 64];
    stress_path(path, "shared.v1.mtt");
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            fault_warnings warnings = {0};
            mtprof_config config = {.struct_size = sizeof config,
                                    .path = path,
                                    .path_shared = 1,
                                    .on_warning = fault_on_warning,
                                    .user = &warnings};
            mtprof_session *mine = NULL;
            CHECK_OK(mtprof_session_start(&config, &mine));
            MTPROF_INSTANT("mine");
            CHECK_OK(mtprof_session_close(mine));
            CHECK_EQ_U64(fault_warned(&warnings), 1);
            char with_pid[STRESS_PATH + 8];
            snprintf(with_pid, sizeof with_pid, "%s.%%p.%%p", path);
            config.path = with_pid;
            CHECK_OK(mtprof_session_start(&config, &mine));
            MTPROF_INSTANT("mine");
            CHECK_OK(mtprof_session_close(mine));
            CHECK_EQ_U64(fault_warned(&warnings), 1); /* still */
            _exit(0);
        }
    }
    for (int i = 0; i < 3; i++) {
        int status, pid = (int)children[i];
        REQUIRE_EQ_I64(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ_I64(status, 0);
        snprintf(own, sizeof own, "%s/shared.v1.%d.mtt", mt_test_tmpdir(), pid);
        rb_check_file(own, false);
        snprintf(own, sizeof own, "%s.%d.%d", path, pid, pid);
        rb_check_file(own, false);
    }
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 7);
    mtprof_config config = {.struct_size = sizeof config, .path = path, .path_shared = 2};
    CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_EINVAL);
}

/* Many processes want one path at the same moment: one gets it, the others hear EBUSY. */
TEST(many_processes_race_for_a_path)
{
    char path[STRESS_PATH];
    stress_path(path, "race.mtt");
    for (int round = 0; round < 10; round++) {
        int go[2], gone[2];
        REQUIRE(pipe(go) == 0 && pipe(gone) == 0);
        pid_t children[6];
        for (int i = 0; i < 6; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                mtprof_config config = {.struct_size = sizeof config, .path = path};
                mtprof_session *session = NULL;
                mtprof_status status = mtprof_session_start(&config, &session);
                CHECK(status == MTPROF_OK || status == MTPROF_EBUSY);
                say(gone[1]);
                hear(go[0]); /* the winner keeps the path until all have tried */
                MTPROF_INSTANT("winner");
                CHECK_OK(mtprof_session_close(session));
                _exit(status == MTPROF_OK ? 0 : 1);
            }
        }
        for (int i = 0; i < 6; i++) {
            hear(gone[0]);
        }
        int winners = 0;
        for (int i = 0; i < 6; i++) {
            say(go[1]);
        }
        for (int i = 0; i < 6; i++) {
            int status;
            REQUIRE_EQ_I64(waitpid(children[i], &status, 0), children[i]);
            winners += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        CHECK_EQ_I64(winners, 1);
        rb_check_file(path, false);
        close(go[0]);
        close(go[1]);
        close(gone[0]);
        close(gone[1]);
    }
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
}

/* ---- limits ---- */

static void ignore_nothing(void)
{
    signal(SIGXFSZ, SIG_DFL);
}

TEST(file_size_limit_while_recording)
{
    char path[STRESS_PATH];
    ignore_nothing();
    struct rlimit limit = {3 << 20, 3 << 20};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fault_warnings warnings = {0};
    mtprof_config config = {.struct_size = sizeof config,
                            .path = stress_path(path, "t.mtt"),
                            .on_warning = fault_on_warning,
                            .user = &warnings};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    for (int i = 0; i < 400000; i++) {
        MTPROF_INSTANT("mark");
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    CHECK(h.lost > 0);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_DISK], h.lost);
    CHECK_EQ_U64(h.others + h.lost, 400000);
    CHECK_EQ_U64(fault_warned(&warnings), 1);
    rb_check_file(path, false);
}

TEST(file_size_limit_while_saving)
{
    char path[STRESS_PATH];
    ignore_nothing();
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    for (int i = 0; i < 200000; i++) {
        MTPROF_INSTANT("mark");
    }
    CHECK_OK(mtprof_session_stop(session));
    struct rlimit limit = {1 << 20, RLIM_INFINITY};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    mtprof_status status = mtprof_session_save(session, stress_path(path, "t.mtt"));
    CHECK(status == MTPROF_ENOSPC || status == MTPROF_EIO);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 0);
    limit.rlim_cur = RLIM_INFINITY;
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_OK(mtprof_session_save(session, path));
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, false);
}
