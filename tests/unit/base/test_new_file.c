/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are made under a temporary name: NF1 to NF4 of base/new_file.h. Recording, saving and
 * exports are tested at their own places (test_paths.c, test_out_file.c).
 */
#include "base/alloc.h"
#include "base/new_file.h"
#include "harness/mt_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[512];

static const char *in_tmp(const char *name)
{
    static char path[4][1024];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(folder, sizeof folder, "%s", mt_test_tmpdir());
    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

static int count_files(void)
{
    int n = 0;
    DIR *opened = opendir(mt_test_tmpdir());
    REQUIRE(opened != NULL);
    while (readdir(opened) != NULL) {
        n++;
    }
    closedir(opened);
    return n - 2;
}

static mode_t mode_of(int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 ? now.st_mode & 07777 : 0;
}

static void check_leads(const char *path, const char *expected)
{
    char *target = mtb_follow_links(path);
    REQUIRE(target != NULL);
    CHECK_EQ_STR(target, expected);
    mtb_free(target);
}

/* NF1 */
TEST(links_are_followed_to_their_end)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "%s", in_tmp("file"));
    check_leads(in_tmp("file"), expected);
    REQUIRE(symlink("file", in_tmp("relative")) == 0);
    check_leads(in_tmp("relative"), expected);
    REQUIRE(symlink(in_tmp("relative"), in_tmp("absolute")) == 0);
    check_leads(in_tmp("absolute"), expected);
    REQUIRE(symlink("loop", in_tmp("loop")) == 0);
    CHECK(mtb_follow_links(in_tmp("loop")) == NULL);
    CHECK_EQ_I64(errno, ELOOP);
    char longer[8000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK(mtb_follow_links(longer) == NULL);
    CHECK_EQ_I64(errno, ENAMETOOLONG);
    REQUIRE(chdir(mt_test_tmpdir()) == 0);
    check_leads("relative", "file");
}

static void write_through(const char *target, bool named)
{
    char *name = NULL;
    int fd = mtb_file_beside(target, named, &name);
    REQUIRE(fd >= 0);
    CHECK(!named || name != NULL);
    CHECK_EQ_I64(write(fd, "x", 1), 1);
    CHECK_EQ_I64(mtb_file_name(fd, target, &name), 0);
    REQUIRE(name != NULL);
    CHECK_EQ_I64(close(fd), 0);
    CHECK_EQ_I64(mtb_file_into_place(&name, target), 0);
    CHECK(name == NULL);
}

/* NF2 */
TEST(permissions)
{
    const char *path = in_tmp("x");
    for (int named = 0; named < 2; named++) {
        char *name = NULL;
        mode_t before = umask(027);
        int fd = mtb_file_beside(path, named != 0, &name);
        CHECK_EQ_U64(mode_of(fd), 0640);
        close(fd);
        mtb_file_remove(&name);
        write_through(path, named != 0);
        REQUIRE(chmod(path, 0606) == 0);
        fd = mtb_file_beside(path, named != 0, &name);
        CHECK_EQ_U64(mode_of(fd), 0606); /* the user's own: as it was, whatever the umask */
        close(fd);
        mtb_file_remove(&name);
        REQUIRE(chmod(path, 06755) == 0);
        fd = mtb_file_beside(path, named != 0, &name);
        CHECK_EQ_U64(mode_of(fd), 0755); /* no bits that make a program special */
        close(fd);
        mtb_file_remove(&name);
        umask(before);
        REQUIRE(unlink(path) == 0);
    }
    CHECK_EQ_I64(count_files(), 0);
}

/* A file without a name leaves nothing, whatever happens. */
TEST(unfinished_files_have_no_name_where_that_is_possible)
{
    char *name = NULL;
    int fd = mtb_file_beside(in_tmp("x"), false, &name);
    REQUIRE(fd >= 0);
    if (name != NULL) {
        close(fd);
        mtb_file_remove(&name);
        MT_SKIP("this file system has no files without a name");
    }
    CHECK_EQ_I64(count_files(), 0);
    close(fd);
    CHECK_EQ_I64(count_files(), 0);
    REQUIRE(chdir(mt_test_tmpdir()) == 0);
    write_through("here", false); /* a path without a folder */
    CHECK_EQ_I64(count_files(), 1);
}

TEST(what_is_no_file_is_not_replaced)
{
    char *name = NULL;
    CHECK_EQ_I64(mtb_file_beside("/dev/null", false, &name), -1);
    CHECK_EQ_I64(errno, EINVAL);
    CHECK_EQ_I64(mtb_file_beside(mt_test_tmpdir(), true, &name), -1);
    CHECK_EQ_I64(errno, EISDIR);
    CHECK_EQ_I64(mtb_file_beside(in_tmp("none/x"), false, &name), -1);
    CHECK_EQ_I64(errno, ENOENT);
    CHECK(name == NULL);
}

TEST(no_memory)
{
    for (uint64_t n = 1; n < 4; n++) {
        char *name = NULL;
        mtb_fail_nth(n, false);
        int fd = mtb_file_beside(in_tmp("x"), true, &name);
        int error = errno;
        char *target = mtb_follow_links(in_tmp("x"));
        mtb_fail_nth(0, false);
        CHECK(fd >= 0 || error == ENOMEM);
        close(fd);
        mtb_file_remove(&name);
        mtb_free(target);
    }
    CHECK_EQ_I64(count_files(), 0);
}

/* NF3 */
TEST(the_limit_on_sizes)
{
    CHECK(!mtb_past_file_limit(UINT64_MAX));
    struct rlimit limit = {1000, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(!mtb_past_file_limit(1000));
    CHECK(mtb_past_file_limit(1001));
    CHECK(mtb_past_file_limit(UINT64_MAX));
}

/* NF4 */
static void end_at_once(int signal)
{
    mtb_files_remove_all(); /* NOLINT(bugprone-signal-handler) it says that it is safe there */
    _exit(signal);
}

TEST(a_handler_removes_what_is_not_finished)
{
    write_through(in_tmp("finished"), true);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char *names[12];
        (void)signal(SIGTERM, end_at_once);
        for (int i = 0; i < 12; i++) { /* more than a handler finds: the others are kept here */
            int fd = mtb_file_beside(in_tmp("x"), true, &names[i]);
            CHECK(fd >= 0);
            if (i >= 8) {
                mtb_file_remove(&names[i]);
            }
        }
        if (count_files() != 9) {
            _exit(1);
        }
        (void)raise(SIGTERM);
        _exit(2);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(WEXITSTATUS(status), SIGTERM);
    CHECK_EQ_I64(count_files(), 1); /* the finished one */
    /* The child of a fork has no right to the parent's files. */
    char *name = NULL;
    REQUIRE(mtb_file_beside(in_tmp("x"), true, &name) >= 0);
    child = fork();
    if (child == 0) {
        mtb_files_remove_all();
        _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(count_files(), 2);
    mtb_files_remove_all();
    CHECK_EQ_I64(count_files(), 1);
    mtb_file_remove(&name);
}
