/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: every failure that session.h promises, the rules of struct_size, and what each call
 * does in each state.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/record/sys.h"
#include "support/traces/trace_view.h"

#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

static const char *in_tmp(const char *name)
{
    static char path[4][512];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", mt_test_tmpdir(), name);
    return at;
}

static void check_error(mtprof_status got, mtprof_status status, const char *names)
{
    CHECK_EQ_I64(got, status);
    CHECK_EQ_I64(mtprof_last_error()->status, status);
    if (strstr(mtprof_last_error()->message, names) == NULL) {
        FAIL("\"%s\" does not name \"%s\"", mtprof_last_error()->message, names);
    }
}

static void check_refused(const mtprof_config *config, mtprof_status status, const char *names)
{
    mtprof_session *s = (mtprof_session *)(uintptr_t)1;
    check_error(mtprof_session_start(config, &s), status, names);
    CHECK(s == NULL);
    CHECK(!mtprof_wants(UINT32_MAX));
}

/* A session that works: nothing that failed before it has left a trace. */
static void check_can_start(void)
{
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 1);
    tv_free(v);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void check_file(const char *path, const char *text)
{
    char found[64] = "";
    FILE *f = fopen(path, "r");
    REQUIRE(f != NULL);
    size_t n = fread(found, 1, sizeof found - 1, f);
    fclose(f);
    found[n] = '\0';
    CHECK_EQ_STR(found, text);
}

/* ---- start: EINVAL --------------------------------------------------------------------------- */

TEST(a_bad_field_is_named_with_its_value)
{
    mtprof_config c = {0};
    check_refused(NULL, MTPROF_EINVAL, "struct_size");
    check_refused(&c, MTPROF_EINVAL, "struct_size is 0");
    c.struct_size = 4;
    check_refused(&c, MTPROF_EINVAL, "struct_size is 4");
    c = (mtprof_config){.struct_size = sizeof c, .policy = 3};
    check_refused(&c, MTPROF_EINVAL, "policy is 3");
    c = (mtprof_config){.struct_size = sizeof c, .path = ""};
    check_refused(&c, MTPROF_EINVAL, "path");
    c = (mtprof_config){.struct_size = sizeof c, .buffer_bytes = 65535};
    check_refused(&c, MTPROF_EINVAL, "buffer_bytes is 65535");
    c = (mtprof_config){.struct_size = sizeof c, .ring_ns = 1234};
    check_refused(&c, MTPROF_EINVAL, "ring_ns");
    c = (mtprof_config){.struct_size = sizeof c, .wants = (uint64_t)1 << 16};
    check_refused(&c, MTPROF_EINVAL, "0x10000");
    c = (mtprof_config){.struct_size = sizeof c, .wants = (uint64_t)1 << 63};
    check_refused(&c, MTPROF_EINVAL, "wants is 0x8000000000000000");
    c = (mtprof_config){.struct_size = sizeof c};
    check_error(mtprof_session_start(&c, NULL), MTPROF_EINVAL, "session_start");
    check_can_start();
}

TEST(a_null_session_is_refused_by_every_call_but_close)
{
    mtprof_health h = {.struct_size = sizeof h};
    mtprof_bytes b = {.struct_size = sizeof b};
    check_error(mtprof_session_stop(NULL), MTPROF_EINVAL, "session_stop");
    check_error(mtprof_session_pause(NULL), MTPROF_EINVAL, "session_pause");
    check_error(mtprof_session_resume(NULL, 0), MTPROF_EINVAL, "session_resume");
    check_error(mtprof_session_window_open(NULL, 0, 0), MTPROF_EINVAL, "session_window_open");
    check_error(mtprof_session_window_close(NULL, true), MTPROF_EINVAL, "session_window_close");
    check_error(mtprof_session_step(NULL, 0, 0), MTPROF_EINVAL, "session_step");
    check_error(mtprof_session_clear(NULL), MTPROF_EINVAL, "session_clear");
    check_error(mtprof_session_add_metadata(NULL, "k", 1, "v", 1, false), MTPROF_EINVAL,
                "session_metadata");
    check_error(mtprof_session_get_health(NULL, &h), MTPROF_EINVAL, "session_health");
    check_error(mtprof_session_get_bytes(NULL, &b), MTPROF_EINVAL, "session_bytes");
    check_error(mtprof_session_save(NULL, "x"), MTPROF_EINVAL, "session_save");
    CHECK_OK(mtprof_session_close(NULL));
}

TEST(bad_arguments_of_a_session_are_named)
{
    mtprof_session *s = tv_start(0);
    mtprof_health none = {0};
    REQUIRE_OK(mtprof_session_pause(s));
    check_error(mtprof_session_resume(s, (uint64_t)1 << 20), MTPROF_EINVAL, "0x100000");
    check_error(mtprof_session_window_open(s, (uint64_t)1 << 20, 0), MTPROF_EINVAL, "0x100000");
    check_error(mtprof_session_step(s, 1, 4), MTPROF_EINVAL, "4");
    check_error(mtprof_session_add_metadata(s, NULL, 1, "v", 1, false), MTPROF_EINVAL, "key");
    check_error(mtprof_session_add_metadata(s, "k", 0, "v", 1, false), MTPROF_EINVAL, "key");
    check_error(mtprof_session_add_metadata(s, "k", 1, NULL, 1, false), MTPROF_EINVAL, "value");
    check_error(mtprof_session_add_metadata(s, "k", 1, "v", (16 << 20) + 1, false), MTPROF_EINVAL,
                "16777217");
    check_error(mtprof_session_add_metadata(s, "k", (16 << 20) + 1, "v", 1, false), MTPROF_EINVAL,
                "16777217");
    check_error(mtprof_session_get_health(s, &none), MTPROF_EINVAL, "struct_size");
    check_error(mtprof_session_get_health(s, NULL), MTPROF_EINVAL, "health");
    check_error(mtprof_session_get_bytes(s, NULL), MTPROF_EINVAL, "bytes");
    REQUIRE_OK(mtprof_session_stop(s));
    check_error(mtprof_session_save(s, NULL), MTPROF_EINVAL, "path");
    check_error(mtprof_session_save(s, ""), MTPROF_EINVAL, "path");
    CHECK_OK(mtprof_session_close(s));
}

/* ---- start: the rest ------------------------------------------------------------------------- */

TEST(a_second_session_is_busy_until_the_first_stops)
{
    mtprof_session *first = tv_start(0);
    mtprof_session *second = (mtprof_session *)(uintptr_t)1;
    mtprof_config c = {.struct_size = sizeof c};
    check_error(mtprof_session_start(&c, &second), MTPROF_EBUSY, "active");
    CHECK(second == NULL);
    CHECK(mtprof_wants(MTPROF_WANT_SCOPES)); /* the first continues */
    REQUIRE_OK(mtprof_session_pause(first));
    CHECK_EQ_I64(mtprof_session_start(&c, &second), MTPROF_EBUSY);
    REQUIRE_OK(mtprof_session_stop(first));
    REQUIRE_OK(mtprof_session_start(&c, &second)); /* stopped, not closed: does not count */
    mtprof_end(mtprof_begin(&scope));
    CHECK_OK(mtprof_session_close(first));
    trace_view *v = tv_finish(second, NULL);
    CHECK_EQ_U64(v->n_spans, 1);
    tv_free(v);
}

TEST(a_path_that_cannot_be_created_is_an_io_error)
{
    mtprof_config c = {.struct_size = sizeof c, .path = in_tmp("missing/trace.mtt")};
    check_refused(&c, MTPROF_EIO, c.path);
    CHECK_EQ_I64(mtprof_last_error()->system_error, ENOENT);
    c.path = mt_test_tmpdir();
    check_refused(&c, MTPROF_EIO, c.path);
    c.path = in_tmp("file");
    write_file(c.path, "x");
    c.path = in_tmp("file/trace.mtt");
    check_refused(&c, MTPROF_EIO, c.path);
    check_can_start();
}

TEST(a_file_that_another_process_records_is_busy_and_unharmed)
{
    const char *path = in_tmp("trace.mtt");
    int ready[2], leave[2];
    REQUIRE(pipe(ready) == 0 && pipe(leave) == 0);
    pid_t child = fork();
    if (child == 0) {
        mtprof_config c = {.struct_size = sizeof c, .path = path};
        mtprof_session *s = NULL;
        char byte = 0;
        bool fine = mtprof_session_start(&c, &s) == MTPROF_OK;
        mtprof_end(mtprof_begin(&scope));
        fine = write(ready[1], "x", 1) == 1 && read(leave[0], &byte, 1) == 1 && fine;
        fine = mtprof_session_close(s) == MTPROF_OK && fine;
        _exit(fine ? 0 : 1);
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    mtprof_config c = {.struct_size = sizeof c, .path = path};
    check_refused(&c, MTPROF_EBUSY, path);
    REQUIRE(write(leave[1], "x", 1) == 1);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ_I64(status, 0);
    trace_view *v = tv_path(path);
    CHECK_EQ_U64(v->n_spans, 1);
    tv_free(v);
    mtprof_session *s = NULL;
    CHECK_OK(mtprof_session_start(&c, &s)); /* free now */
    CHECK_OK(mtprof_session_close(s));
}

static int no_space(int fd, off_t offset, off_t bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    return ENOSPC;
}

static int no_space_to_write(int fd, const void *bytes, size_t length, off_t offset)
{
    (void)fd;
    (void)bytes;
    (void)length;
    (void)offset;
    return ENOSPC;
}

TEST(a_full_disk_is_told_and_the_file_that_stood_there_is_unharmed)
{
    const char *path = in_tmp("trace.mtt");
    write_file(path, "precious");
    mtprof__system.allocate = no_space;
    mtprof_config c = {.struct_size = sizeof c, .path = path};
    check_refused(&c, MTPROF_ENOSPC, path);
    CHECK_EQ_I64(mtprof_last_error()->system_error, ENOSPC);
    mtprof__system = mtprof__system_default;
    check_file(path, "precious");
    const char *fresh = in_tmp("fresh.mtt");
    mtprof__system.allocate = no_space;
    c.path = fresh;
    check_refused(&c, MTPROF_ENOSPC, fresh);
    mtprof__system = mtprof__system_default;
    CHECK(access(fresh, F_OK) != 0); /* nothing is left */
    check_can_start();
}

static void *no_map(size_t bytes, int fd, off_t offset)
{
    (void)bytes;
    (void)fd;
    (void)offset;
    errno = ENOMEM;
    return MAP_FAILED;
}

TEST(no_memory_to_start_is_told)
{
    mtprof__system.map = no_map;
    mtprof_config c = {.struct_size = sizeof c};
    check_refused(&c, MTPROF_ENOMEM, "session_start");
    mtprof__system = mtprof__system_default;
    check_can_start();
}

TEST(every_refused_request_of_memory_is_survived_by_start)
{
    const char *path = in_tmp("trace.mtt");
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        mtprof_config c = {
            .struct_size = sizeof c, .path = n % 2 == 0 ? path : NULL, .spill_directory = "/tmp"};
        mtprof_session *s = NULL;
        mtb_fail_nth(n, false);
        mtprof_status status = mtprof_session_start(&c, &s);
        uint64_t requests = mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            CHECK_OK(mtprof_session_close(s));
            if (requests < n) {
                break; /* it was never reached: all have been refused once */
            }
        } else {
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
            CHECK(s == NULL);
            failures++;
        }
    }
    CHECK(failures >= 3);
    check_can_start();
}

/* ---- struct_size ----------------------------------------------------------------------------- */

TEST(a_shorter_config_of_an_older_program_works)
{
    mtprof_config full = {.policy = MTPROF_POLICY_STOP, .buffer_bytes = 1 << 20};
    size_t sizes[] = {offsetof(mtprof_config, wants), offsetof(mtprof_config, paused),
                      offsetof(mtprof_config, on_warning), sizeof full};
    for (size_t i = 0; i < 4; i++) {
        mtprof_config *c = malloc(sizes[i]); /* exactly: a sanitizer sees what is read past it */
        mtprof_session *s = NULL;
        REQUIRE(c != NULL);
        full.struct_size = (uint32_t)sizes[i];
        memcpy(c, &full, sizes[i]);
        CHECK_OK(mtprof_session_start(c, &s));
        CHECK(mtprof_wants(MTPROF_WANT_SCOPES)); /* what it does not have is the default */
        CHECK_OK(mtprof_session_close(s));
        free(c);
    }
}

TEST(a_longer_config_of_a_newer_program_works)
{
    struct {
        mtprof_config config;
        uint64_t more[8];
    } newer = {.config.struct_size = sizeof newer, .more = {0}};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&newer.config, &s));
    CHECK_OK(mtprof_session_close(s));
}

TEST(no_byte_past_struct_size_is_written)
{
    enum {
        GUARD = 0xA5
    };
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_health whole = {.struct_size = sizeof whole};
    REQUIRE_OK(mtprof_session_get_health(s, &whole));
    for (uint32_t size = 4; size <= sizeof whole + 64; size += 4) {
        unsigned char space[sizeof whole + 128];
        memset(space, GUARD, sizeof space);
        memcpy(space, &size, sizeof size);
        REQUIRE_OK(mtprof_session_get_health(s, (mtprof_health *)(void *)space));
        uint32_t filled = size < sizeof whole ? size : (uint32_t)sizeof whole;
        CHECK_EQ_MEM(space + 4, (const unsigned char *)&whole + 4, filled - 4);
        CHECK_EQ_MEM(space, &size, sizeof size);
        for (size_t i = filled; i < sizeof space; i++) {
            if (space[i] != GUARD) {
                FAIL("struct_size %u: byte %zu was written", size, i);
                break;
            }
        }
    }
    CHECK_OK(mtprof_session_close(s));
}

/* ---- save and close -------------------------------------------------------------------------- */

TEST(saving_fails_cleanly)
{
    const char *path = in_tmp("saved.mtt");
    mtprof_session *s = tv_start(0);
    check_error(mtprof_session_save(s, path), MTPROF_ESTATE, "is recording");
    REQUIRE_OK(mtprof_session_pause(s));
    check_error(mtprof_session_save(s, path), MTPROF_ESTATE, "session_save");
    REQUIRE_OK(mtprof_session_stop(s));
    write_file(path, "old");
    mtprof__system.write = no_space_to_write;
    check_error(mtprof_session_save(s, path), MTPROF_ENOSPC, path);
    mtprof__system = mtprof__system_default;
    check_file(path, "old");
    check_error(mtprof_session_save(s, in_tmp("none/x.mtt")), MTPROF_EIO, "none/x.mtt");
    for (uint64_t n = 1; n < 50; n++) {
        mtb_fail_nth(n, false);
        mtprof_status status = mtprof_session_save(s, path);
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            CHECK(n > 1);
            break;
        }
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        check_file(path, "old");
    }
    CHECK_OK(mtprof_session_save(s, path));
    CHECK_OK(mtprof_session_save(s, path)); /* as often as one likes */
    CHECK_OK(mtprof_session_close(s));
    tv_free(tv_path(path));
    char command[600];
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep part)\"", mt_test_tmpdir());
    CHECK_EQ_I64(system(command), 0); /* no half file is left */
}

TEST(a_file_that_cannot_be_finished_is_an_io_error_and_the_session_is_gone)
{
    const char *path = in_tmp("trace.mtt");
    mtprof_config c = {.struct_size = sizeof c, .path = path};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    mtprof_end(mtprof_begin(&scope));
    /* The descriptor is read-only now: the file cannot be cut to its size. */
    for (int fd = 3; fd < 64; fd++) {
        char link[64], target[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (n > 0 && strcmp(target, path) == 0) {
            int read_only = open(path, O_RDONLY);
            REQUIRE(read_only >= 0 && dup2(read_only, fd) == fd);
            close(read_only);
        }
    }
    check_error(mtprof_session_close(s), MTPROF_EIO, path);
    mtprof_reader *reader = NULL; /* what was recorded is still in it */
    mtprof_stream_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    REQUIRE_OK(mtprof_reader_get_stream(reader, 2, &info));
    CHECK_EQ_U64(info.kind, MTPROF_STREAM_THREAD);
    CHECK_EQ_U64(info.bytes, 24); /* a begin and an end */
    mtprof_reader_close(reader);
    check_can_start();
}

/* ---- a program that closes descriptors it does not know (ST7) ---- */

/* Gives the number of the trace's descriptor to a file of the program. False: there is none. */
static bool take_descriptor(const char *trace, const char *own)
{
    struct stat file;
    struct stat other;
    REQUIRE(stat(trace, &file) == 0);
    for (int fd = 3; fd < 1024; fd++) {
        if (fstat(fd, &other) == 0 && other.st_ino == file.st_ino && other.st_dev == file.st_dev) {
            int mine = open(own, O_RDWR | O_CREAT | O_TRUNC, 0600);
            REQUIRE(mine >= 0 && dup2(mine, fd) == fd);
            close(mine);
            REQUIRE(write(fd, "the program's own text", 22) == 22);
            return true;
        }
    }
    return false;
}

static void check_own_file(const char *own)
{
    char text[64] = {0};
    FILE *file = fopen(own, "r");
    REQUIRE(file != NULL);
    CHECK_EQ_U64(fread(text, 1, sizeof text - 1, file), 22);
    CHECK_EQ_STR(text, "the program's own text");
    fclose(file);
}

TEST(a_taken_descriptor_is_not_written_to_and_the_trace_is_whole)
{
    const char *path = in_tmp("taken.mtt");
    const char *own = in_tmp("own.txt");
    const mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &s));
    mtprof_end(mtprof_begin(&scope));
    REQUIRE(take_descriptor(path, own));
    for (int i = 0; i < 200000; i++) { /* the file grows meanwhile */
        mtprof_end(mtprof_begin(&scope));
    }
    CHECK_OK(mtprof_session_close(s));
    check_own_file(own);
    trace_view *v = tv_path(path);
    CHECK_EQ_U64(v->n_spans, 200001);
    mtprof_trace_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_reader_get_info(v->reader, &info));
    CHECK(info.closed);
    tv_free(v);
}

TEST(a_taken_descriptor_of_a_file_that_is_gone_is_an_io_error)
{
    const char *path = in_tmp("gone.mtt");
    const char *own = in_tmp("own.txt");
    const mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &s));
    mtprof_end(mtprof_begin(&scope));
    REQUIRE(take_descriptor(path, own));
    REQUIRE(unlink(path) == 0);
    check_error(mtprof_session_close(s), MTPROF_EIO, "closed the descriptor of");
    check_own_file(own);
    check_can_start();
}
