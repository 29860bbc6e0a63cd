/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that appear complete or not at all.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/export/out_file.h"

#include <mtprof/status.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *in_tmp(const char *name)
{
    static char path[4][512];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", mt_test_tmpdir(), name);
    return at;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
}

static const char *get(const char *path)
{
    static char text[256];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static int count_files(void)
{
    int n = 0;
    DIR *folder = opendir(mt_test_tmpdir());
    REQUIRE(folder != NULL);
    while (readdir(folder) != NULL) {
        n++;
    }
    closedir(folder);
    return n - 2;
}

TEST(it_appears_at_commit)
{
    mtprof__out_file file;
    const char *path = in_tmp("x.json");
    REQUIRE_OK(mtprof__out_file_open(&file, path, false));
    CHECK_EQ_I64(mtprof__out_file_write(&file, "hello", 5), 0);
    CHECK(get(path) == NULL);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK(get(path) == NULL);
    CHECK_OK(mtprof__out_file_commit(&file));
    CHECK_EQ_STR(get(path), "hello");
    CHECK_EQ_I64(count_files(), 1);
    mtprof__out_file_abandon(&file); /* again: nothing */
}

TEST(what_was_there_stays_until_commit_and_its_mode_after_it)
{
    mtprof__out_file file;
    const char *path = in_tmp("x.json");
    put(path, "old");
    REQUIRE(chmod(path, 0604) == 0);
    REQUIRE_OK(mtprof__out_file_open(&file, path, false));
    CHECK_EQ_I64(mtprof__out_file_write(&file, "new", 3), 0);
    mtprof__out_file_abandon(&file);
    CHECK_EQ_STR(get(path), "old");
    CHECK_EQ_I64(count_files(), 1);
    REQUIRE_OK(mtprof__out_file_open(&file, path, false));
    CHECK_EQ_I64(mtprof__out_file_write(&file, "new", 3), 0);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK_OK(mtprof__out_file_commit(&file));
    struct stat now;
    CHECK_EQ_STR(get(path), "new");
    REQUIRE(stat(path, &now) == 0);
    CHECK_EQ_U64(now.st_mode & 07777, 0604);
    CHECK_EQ_I64(count_files(), 1);
}

TEST(a_new_file_has_the_modes_of_the_umask)
{
    mtprof__out_file file;
    mode_t before = umask(027);
    REQUIRE_OK(mtprof__out_file_open(&file, in_tmp("x"), false));
    umask(before);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK_OK(mtprof__out_file_commit(&file));
    struct stat now;
    REQUIRE(stat(in_tmp("x"), &now) == 0);
    CHECK_EQ_U64(now.st_mode & 07777, 0640);
}

TEST(links_stay_links)
{
    mtprof__out_file file;
    put(in_tmp("real"), "old");
    REQUIRE(symlink("real", in_tmp("link")) == 0);
    REQUIRE_OK(mtprof__out_file_open(&file, in_tmp("link"), false));
    CHECK_EQ_I64(mtprof__out_file_write(&file, "new", 3), 0);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK_OK(mtprof__out_file_commit(&file));
    struct stat now;
    REQUIRE(lstat(in_tmp("link"), &now) == 0);
    CHECK(S_ISLNK(now.st_mode));
    CHECK_EQ_STR(get(in_tmp("real")), "new");
    /* A link to nowhere: what it names is made. */
    REQUIRE(symlink("later", in_tmp("dangling")) == 0);
    REQUIRE_OK(mtprof__out_file_open(&file, in_tmp("dangling"), false));
    CHECK_EQ_I64(mtprof__out_file_write(&file, "new", 3), 0);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK_OK(mtprof__out_file_commit(&file));
    CHECK_EQ_STR(get(in_tmp("later")), "new");
}

static const char *fifo_text;

static void *read_fifo(void *path)
{
    fifo_text = get(path);
    return NULL;
}

TEST(a_pipe_is_written_as_it_is)
{
    mtprof__out_file file;
    char path[512];
    snprintf(path, sizeof path, "%s", in_tmp("fifo"));
    REQUIRE(mkfifo(path, 0600) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, read_fifo, path) == 0);
    REQUIRE_OK(mtprof__out_file_open(&file, path, false));
    CHECK(!file.aside);
    CHECK_EQ_I64(mtprof__out_file_write(&file, "through", 7), 0);
    CHECK_OK(mtprof__out_file_close(&file));
    CHECK_OK(mtprof__out_file_commit(&file));
    pthread_join(thread, NULL);
    CHECK_EQ_STR(fifo_text, "through");
    CHECK_EQ_I64(count_files(), 1);
}

TEST(failures_name_the_path_and_the_reason)
{
    mtprof__out_file file;
    CHECK_EQ_I64(mtprof__out_file_open(&file, in_tmp("none/x.json"), false), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "none/x.json") != NULL);
    CHECK(strstr(mtprof_last_error()->message, strerror(ENOENT)) != NULL);
    CHECK_EQ_I64(mtprof__out_file_open(&file, mt_test_tmpdir(), false), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, strerror(EISDIR)) != NULL);
    char longer[400];
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    CHECK_EQ_I64(mtprof__out_file_open(&file, in_tmp(longer), true), MTPROF_EIO);
    if (access("/dev/full", W_OK) == 0) {
        REQUIRE_OK(mtprof__out_file_open(&file, "/dev/full", false));
        CHECK_EQ_I64(mtprof__out_file_write(&file, "x", 1), ENOSPC);
        mtprof__out_file_abandon(&file);
    }
    CHECK_EQ_I64(count_files(), 0);
}

TEST(no_memory_leaves_nothing)
{
    put(in_tmp("x"), "old");
    for (uint64_t n = 1; n < 6; n++) {
        mtprof__out_file file;
        mtb_fail_nth(n, false);
        int status = mtprof__out_file_open(&file, in_tmp("x"), false);
        mtb_fail_nth(0, false);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        mtprof__out_file_abandon(&file);
        CHECK_EQ_STR(get(in_tmp("x")), "old");
        CHECK_EQ_I64(count_files(), 1);
    }
}
