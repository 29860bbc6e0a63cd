/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that listens: what it answers, whom, and what garbage, half messages, crowds, forks and
 * killed processes do to it: nothing.
 */
#include "harness/mt_test.h"
#include "mtprof/remote/control_impl.h"
#include "support/traces/trace_view.h"

#include <mtprof/control.h>
#include <mtprof/flight.h>
#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static char folder[256];
static mtprof_control_state state;

static mtprof_control_config config_of(void)
{
    snprintf(folder, sizeof folder, "%s/control", mt_test_tmpdir());
    return (mtprof_control_config){.struct_size = sizeof(mtprof_control_config), .folder = folder};
}

static void listen_here(void)
{
    mtprof_control_config config = config_of();
    REQUIRE_OK(mtprof_control_listen(&config));
}

static const char *in_tmp(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", mt_test_tmpdir(), name);
    return path;
}

static mtprof_status ask(enum mtprof_control_command command, const char *path)
{
    mtprof_control_request request = {
        .struct_size = sizeof request, .command = command, .path = path};
    state = (mtprof_control_state){.struct_size = sizeof state};
    return mtprof_control_call(folder, getpid(), &request, &state);
}

static void check_error(mtprof_status got, mtprof_status status, const char *names)
{
    CHECK_EQ_I64(got, status);
    if (strstr(mtprof_last_error()->message, names) == NULL) {
        FAIL("\"%s\" does not name \"%s\"", mtprof_last_error()->message, names);
    }
}

/* ---- raw connections ---- */

static int open_peer(bool wait)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(mtprof_control_path(address.sun_path, sizeof address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
    REQUIRE(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A line, or less where the other side closes. */
static size_t read_line(int fd, char *text, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && read(fd, text + n, 1) == 1 && text[n++] != '\n') {
    }
    text[n] = '\0';
    return n;
}

static void check_answer(int fd, const char *request, const char *wanted)
{
    static char text[64 * 1024];
    CHECK_EQ_I64(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    read_line(fd, text, sizeof text);
    if (strncmp(text, wanted, strlen(wanted)) != 0) {
        FAIL("%s: %s", request, text);
    }
}

static size_t count_files(const char *where)
{
    size_t n = 0;
    DIR *directory = opendir(where);
    REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        n++;
    }
    closedir(directory);
    return n;
}

/* ---- what is asked ---- */

TEST(status_tells_what_is_recorded)
{
    mtprof_control_config config = config_of();
    config.rank = "7";
    REQUIRE_OK(mtprof_control_listen(&config));
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_I64(state.pid, getpid());
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_OFF);
    CHECK_EQ_STR(state.rank, "7");
    CHECK(strstr(state.program, "test_control") != NULL);
    CHECK(state.version[0] != '\0');

    const char *path = in_tmp("own.mtt");
    mtprof_config own = {.struct_size = sizeof own, .path = path};
    mtprof_session *session;
    REQUIRE_OK(mtprof_session_start(&own, &session));
    mtprof_end(mtprof_begin(&scope));
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_ON);
    CHECK_EQ_U64(state.by_control, 0);
    CHECK_EQ_U64(state.begins, 1);
    CHECK_EQ_U64(state.wants, MTPROF_WANT_DEFAULT);
    CHECK_EQ_STR(state.path, path);
    CHECK(state.since_us > 0);
    CHECK_OK(mtprof_session_pause(session));
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_PAUSED);

    /* The program's own stays the program's. */
    check_error(ask(MTPROF_CONTROL_START, in_tmp("other.mtt")), MTPROF_EBUSY, "own.mtt");
    check_error(ask(MTPROF_CONTROL_STOP, NULL), MTPROF_ESTATE, "by itself");
    CHECK_OK(mtprof_session_resume(session, 0));
    CHECK_OK(mtprof_session_close(session));
    CHECK_OK(mtprof_control_close());
}

TEST(start_and_stop_record_what_runs_between)
{
    listen_here();
    check_error(ask(MTPROF_CONTROL_STOP, NULL), MTPROF_ESTATE, "does not record");
    const char *path = in_tmp("x.mtt");
    mtprof_end(mtprof_begin(&scope));
    REQUIRE_OK(ask(MTPROF_CONTROL_START, path));
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_ON);
    CHECK_EQ_U64(state.by_control, 1);
    CHECK_EQ_STR(state.path, path);
    mtprof_end(mtprof_begin(&scope));
    mtprof_end(mtprof_begin(&scope));
    check_error(ask(MTPROF_CONTROL_START, in_tmp("y.mtt")), MTPROF_EBUSY, "told before");
    REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_OFF);
    CHECK_EQ_U64(state.begins, 2);
    CHECK_EQ_STR(state.path, in_tmp("x.mtt"));
    CHECK(!mtprof_wants(UINT32_MAX));
    trace_view *v = tv_path(in_tmp("x.mtt"));
    CHECK_EQ_U64(v->n_spans, 2);
    tv_free(v);
    /* A path that cannot be written is refused, and the next start works. */
    check_error(ask(MTPROF_CONTROL_START, "/nowhere/at/all.mtt"), MTPROF_EIO, "/nowhere/at/all");
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("z.mtt")));
    CHECK_OK(mtprof_control_close()); /* stops it */
    CHECK(!mtprof_wants(UINT32_MAX));
    tv_free(tv_path(in_tmp("z.mtt")));
}

TEST(details_and_a_ring_are_asked_for)
{
    listen_here();
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_START,
                                      .path = in_tmp("x.mtt"),
                                      .ring_bytes = 1 << 20,
                                      .details = MTPROF_CONTROL_SHAPES | MTPROF_CONTROL_MEMORY};
    state = (mtprof_control_state){.struct_size = sizeof state};
    REQUIRE_OK(mtprof_control_call(folder, getpid(), &request, &state));
    CHECK((state.wants & MTPROF_WANT_INPUTS) != 0);
    CHECK((state.wants & MTPROF_WANT_MEMORY) != 0);
    CHECK((state.wants & MTPROF_WANT_STACKS) == 0);
    REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
    request.details = MTPROF_CONTROL_CALLS;
    check_error(mtprof_control_call(folder, getpid(), &request, &state), MTPROF_ENOTSUP, "Python");
    request.details = 1 << 9;
    check_error(mtprof_control_call(folder, getpid(), &request, &state), MTPROF_EINVAL, "0x200");
    CHECK_OK(mtprof_control_close());
}

static trace_view *view_dump(size_t spans)
{
    trace_view *v = tv_path(state.dump);
    CHECK_EQ_U64(v->n_spans, spans);
    return v;
}

TEST(a_dump_is_a_trace_of_what_there_is)
{
    listen_here();
    check_error(ask(MTPROF_CONTROL_DUMP, in_tmp("d.mtt")), MTPROF_ESTATE, "does not record");
    check_error(ask(MTPROF_CONTROL_DUMP, NULL), MTPROF_ESTATE, "no flight recorder");
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
    for (size_t i = 1; i <= 3; i++) {
        mtprof_end(mtprof_begin(&scope));
        REQUIRE_OK(ask(MTPROF_CONTROL_DUMP, in_tmp("d.mtt")));
        CHECK_EQ_STR(state.dump, in_tmp("d.mtt"));
        CHECK_EQ_U64(state.recording, MTPROF_CONTROL_ON);
        tv_free(view_dump(i));
    }
    check_error(ask(MTPROF_CONTROL_DUMP, "/nowhere/d.mtt"), MTPROF_EIO, "/nowhere");
    REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
    CHECK_EQ_U64(state.begins, 3);

    mtprof_flight_config config = {.struct_size = sizeof config, .folder = in_tmp("flight")};
    mtprof_flight *flight;
    REQUIRE_OK(mtprof_flight_start(&config, &flight));
    mtprof_end(mtprof_begin(&scope));
    REQUIRE_OK(ask(MTPROF_CONTROL_DUMP, NULL));
    CHECK(strstr(state.dump, "/flight/") != NULL);
    CHECK(strstr(state.dump, "control") != NULL);
    tv_free(view_dump(1));
    CHECK_OK(mtprof_flight_stop(flight));
    mtprof_flight_release(flight);
    CHECK_OK(mtprof_control_close());
}

/* ---- callbacks ---- */

static int started, stopped;
static bool refuse;
static mtprof_session *program;

static mtprof_status start_program(void *user, const mtprof_control_request *request,
                                   mtprof_control_answer *answer)
{
    CHECK_EQ_PTR(user, &program);
    started++;
    if (refuse) {
        snprintf(answer->message, sizeof answer->message, "not today");
        return MTPROF_ESTATE;
    }
    mtprof_config config = {.struct_size = sizeof config, .path = request->path};
    return mtprof_session_start(&config, &program);
}

static mtprof_status stop_program(void *user, mtprof_control_answer *answer)
{
    (void)answer;
    CHECK_EQ_PTR(user, &program);
    stopped++;
    return refuse ? MTPROF_EIO : mtprof_session_close(program);
}

TEST(the_programs_callbacks_start_and_stop)
{
    mtprof_control_config config = config_of();
    config.start = start_program;
    config.stop = stop_program;
    config.user = &program;
    REQUIRE_OK(mtprof_control_listen(&config));
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
    CHECK_EQ_U64(state.by_control, 1);
    REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
    CHECK_EQ_I64(started, 1);
    CHECK_EQ_I64(stopped, 1);
    refuse = true;
    check_error(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")), MTPROF_ESTATE, "not today");
    refuse = false;
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
    refuse = true;
    check_error(ask(MTPROF_CONTROL_STOP, NULL), MTPROF_EIO, "refused to stop");
    CHECK_OK(mtprof_control_close());
    CHECK_OK(mtprof_session_close(program));
}

/* ---- the folder and the socket ---- */

TEST(bad_configurations_are_refused)
{
    mtprof_control_config config = config_of();
    config.struct_size = 4;
    check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "struct_size is 4");
    check_error(mtprof_control_listen(NULL), MTPROF_EINVAL, "struct_size is 0");
    config = config_of();
    config.folder = "relative";
    check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "relative");
    config.folder = "/nowhere/at/all";
    check_error(mtprof_control_listen(&config), MTPROF_EIO, "/nowhere/at/all");
    char deep[200];
    snprintf(deep, sizeof deep, "/tmp/%0150d", 0);
    config.folder = deep;
    check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "at most 107");
    config = config_of();
    REQUIRE(mkdir(folder, 0755) == 0);
    check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "0755");
    REQUIRE(rmdir(folder) == 0);
    REQUIRE(symlink("/tmp", folder) == 0);
    check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "not a folder");
    REQUIRE(unlink(folder) == 0);
    if (geteuid() == 0) {
        REQUIRE(mkdir(folder, 0700) == 0 && chown(folder, 65534, 65534) == 0);
        check_error(mtprof_control_listen(&config), MTPROF_EINVAL, "user 65534");
        REQUIRE(rmdir(folder) == 0);
    }
    REQUIRE_OK(mtprof_control_listen(&config));
    check_error(mtprof_control_listen(&config), MTPROF_EBUSY, "already");
    CHECK_OK(mtprof_control_close());
    CHECK_OK(mtprof_control_close());
    CHECK_EQ_U64(count_files(folder), 2);
    check_error(ask(MTPROF_CONTROL_STATUS, NULL), MTPROF_ENOTSUP, ".sock");
}

TEST(folders_have_one_place)
{
    char text[64];
    CHECK_OK(mtprof_control_folder("/run/user/7", 7, text, sizeof text));
    CHECK_EQ_STR(text, "/run/user/7/mtprof");
    CHECK_OK(mtprof_control_folder(NULL, 7, text, sizeof text));
    CHECK_EQ_STR(text, "/tmp/mtprof-7");
    CHECK_OK(mtprof_control_folder("not/absolute", 7, text, sizeof text));
    CHECK_EQ_STR(text, "/tmp/mtprof-7");
    check_error(mtprof_control_folder("/run/user/7", 7, text, 8), MTPROF_EINVAL, "18");
}

static int64_t seen[8];
static size_t n_seen;

static void see(void *user, int64_t pid, const mtprof_control_state *of)
{
    CHECK_EQ_PTR(user, seen);
    CHECK(of != NULL && of->pid == pid);
    REQUIRE(n_seen < 8);
    seen[n_seen++] = pid;
}

/* Runs in a process of its own: listens, says so, and waits to be told to end. */
static pid_t start_listener(int *told)
{
    int ready[2], leave[2];
    char byte = 0;
    REQUIRE(pipe(ready) == 0 && pipe(leave) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        close(leave[1]);
        listen_here();
        CHECK(write(ready[1], "x", 1) == 1);
        while (read(leave[0], &byte, 1) == 1) {
        }
#if defined(__SANITIZE_THREAD__) /* which looks for threads before the library ends its own */
        CHECK_OK(mtprof_control_close());
#endif
        exit(0);
    }
    close(ready[1]);
    close(leave[0]);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    *told = leave[1];
    return pid;
}

TEST(a_list_has_the_living_and_removes_the_rest)
{
    int first_told, second_told, status;
    (void)config_of();
    CHECK_OK(mtprof_control_visit(folder, see, seen)); /* a folder that is missing has none */
    CHECK_EQ_U64(n_seen, 0);
    pid_t first = start_listener(&first_told);
    pid_t second = start_listener(&second_told);
    CHECK_OK(mtprof_control_visit(folder, see, seen));
    REQUIRE_EQ_U64(n_seen, 2);
    CHECK_EQ_I64(seen[0], first < second ? first : second);
    CHECK_EQ_I64(seen[1], first < second ? second : first);

    /* Killed: its socket stays, and goes with the next list. */
    REQUIRE(kill(first, SIGKILL) == 0 && waitpid(first, &status, 0) == first);
    CHECK_EQ_U64(count_files(folder), 4);
    n_seen = 0;
    CHECK_OK(mtprof_control_visit(folder, see, seen));
    REQUIRE_EQ_U64(n_seen, 1);
    CHECK_EQ_I64(seen[0], second);
    CHECK_EQ_U64(count_files(folder), 3);

    /* Ended: it takes its socket along. */
    close(first_told);
    close(second_told);
    REQUIRE(waitpid(second, &status, 0) == second);
    CHECK_EQ_I64(status, 0);
    CHECK_EQ_U64(count_files(folder), 2);
    check_error(mtprof_control_visit("relative", see, seen), MTPROF_EINVAL, "absolute");
    REQUIRE(chmod(folder, 0777) == 0);
    check_error(mtprof_control_visit(folder, see, seen), MTPROF_EIO, "0777");
}

TEST(a_socket_that_a_killed_process_left_is_replaced)
{
    mtprof_control_config config = config_of();
    REQUIRE(mkdir(folder, 0700) == 0);
    mtprof__control_place place;
    REQUIRE_OK(mtprof__control_name(folder, getpid(), &place));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(fd, (const struct sockaddr *)&place.address, sizeof place.address) == 0);
    close(fd);
    REQUIRE_OK(mtprof_control_listen(&config));
    CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_OK(mtprof_control_close());
    /* Somebody else is there: it is left alone. */
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(fd, (const struct sockaddr *)&place.address, sizeof place.address) == 0);
    REQUIRE(listen(fd, 1) == 0);
    check_error(mtprof_control_listen(&config), MTPROF_EBUSY, place.address.sun_path);
    close(fd);
}

static void wait_for(pid_t child)
{
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
}

TEST(a_forked_child_does_not_listen)
{
    listen_here();
    int peer = open_peer(true);
    char text[256], path[256];
    CHECK(read_line(peer, text, sizeof text) > 0);
    check_answer(peer, "{\"do\":\"status\"}\n", "{\"ok\":true");
    pid_t child = fork();
    if (child == 0) {
        CHECK(!mtprof_control_path(path, sizeof path));
        for (int fd = 3; fd < 64; fd++) { /* none of the listener's sockets is left */
            int is_socket = 0;
            socklen_t length = sizeof is_socket;
            CHECK(fd == peer || getsockopt(fd, SOL_SOCKET, SO_TYPE, &is_socket, &length) != 0);
        }
        close(peer);
#if !defined(__SANITIZE_THREAD__) /* which allows no threads after a fork */
        listen_here();            /* under its own number */
        CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
        CHECK_EQ_U64(count_files(folder), 4);
#endif
        exit(0); /* removes its own socket, not its parent's */
    }
    wait_for(child);
    CHECK_EQ_U64(count_files(folder), 3);

    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
#if !defined(__SANITIZE_THREAD__)
    child = fork();
    if (child == 0) { /* the session is its parent's */
        listen_here();
        CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
        CHECK_EQ_U64(state.recording, MTPROF_CONTROL_OFF);
        CHECK_OK(mtprof_control_close());
        _exit(0);
    }
    wait_for(child);
#endif
    check_answer(peer, "{\"do\":\"stop\"}\n", "{\"ok\":true");
    close(peer);
    CHECK_OK(mtprof_control_close());
}

/* ---- strangers, garbage, crowds ---- */

TEST(a_stranger_gets_nothing)
{
    if (geteuid() != 0) {
        MT_SKIP("another user is needed: only root can become one");
    }
    listen_here();
    char path[256], text[64];
    int status;
    REQUIRE(mtprof_control_path(path, sizeof path));
    for (int open_folder = 0; open_folder <= 1; open_folder++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            struct sockaddr_un address = {.sun_family = AF_UNIX};
            /* Inside the folder, because those above the temporary one may keep strangers out. */
            REQUIRE(chdir(folder) == 0);
            strcpy(address.sun_path, strrchr(path, '/') + 1);
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
            int connected = connect(fd, (const struct sockaddr *)&address, sizeof address);
            if (open_folder == 0) {
                CHECK(connected != 0 && errno == EACCES);
            } else { /* who gets so far is not greeted */
                CHECK_EQ_I64(connected, 0);
                ssize_t sent = send(fd, "{\"do\":\"status\"}\n", 16, MSG_NOSIGNAL);
                (void)sent;
                CHECK(read(fd, text, sizeof text) <= 0);
            }
            _exit(0);
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_EQ_I64(status, 0);
        /* As if the folder, the socket and those above them let everybody in. */
        REQUIRE(chmod(mt_test_tmpdir(), 0755) == 0 && chmod(folder, 0755) == 0 &&
                chmod(path, 0666) == 0);
    }
    REQUIRE(chmod(folder, 0700) == 0);
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_U64(state.refused, 1);
    CHECK_OK(mtprof_control_close());
}

TEST(garbage_is_answered_and_survived)
{
    listen_here();
    char text[256];
    int fd = open_peer(true);
    CHECK(read_line(fd, text, sizeof text) > 0);
    CHECK(strncmp(text, "{\"mtprof\":", 10) == 0);
    check_answer(fd, "hello\n", "{\"ok\":false,\"status\":\"EINVAL\"");
    check_answer(fd, "\n", "{\"ok\":false,\"status\":\"EINVAL\"");
    check_answer(fd, "\xFF\xFE{}\r\n", "{\"ok\":false,\"status\":\"EINVAL\"");
    check_answer(fd, "{\"do\":\"status\"}\r\n", "{\"ok\":true");
    /* Two requests in one write: two answers; a request in two: one. */
    check_answer(fd, "{\"do\":\"status\"}\n{\"do\":\"nothing\"}\n", "{\"ok\":true");
    check_answer(fd, "{\"do\":", "{\"ok\":false");
    check_answer(fd, "\"status\"}\n", "{\"ok\":true");
    /* A line without an end is cut off. */
    static char endless[2 * MTPROF__LINE_BYTES];
    memset(endless, 'x', sizeof endless);
    for (size_t sent = 0; sent < sizeof endless;) {
        ssize_t n = send(fd, endless + sent, sizeof endless - sent, MSG_NOSIGNAL);
        if (n < 0) {
            break;
        }
        sent += (size_t)n;
    }
    CHECK(read(fd, text, sizeof text) <= 0);
    close(fd);
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_U64(state.dropped, 1);
    CHECK_OK(mtprof_control_close());
}

TEST(random_bytes_do_no_harm)
{
    listen_here();
    uint64_t random = mt_test_seed();
    char bytes[512];
    for (int round = 0; round < 200; round++) {
        int fd = open_peer(true);
        REQUIRE(fd >= 0);
        size_t n = mt_test_random(&random) % sizeof bytes;
        for (size_t i = 0; i < n; i++) {
            bytes[i] = (char)mt_test_random(&random);
        }
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        (void)sent;
        close(fd);
    }
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_EQ_U64(state.recording, MTPROF_CONTROL_OFF);
    CHECK_OK(mtprof_control_close());
}

TEST(a_half_message_keeps_nobody_waiting)
{
    listen_here();
    char text[256];
    int half = open_peer(true);
    CHECK(read_line(half, text, sizeof text) > 0);
    CHECK_EQ_I64(write(half, "{\"do\":", 6), 6);
    CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    close(half);
    int silent = open_peer(true); /* neither writes nor reads */
    CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_OK(mtprof_control_close()); /* with a connection open */
    CHECK(read_line(silent, text, sizeof text) > 0);
    CHECK_EQ_U64(read_line(silent, text, sizeof text), 0);
    close(silent);
}

TEST(a_thousand_connections_at_once_do_not_disturb_the_program)
{
    enum {
        CROWD = 1000
    };
    static int crowd[CROWD];
    struct rlimit files;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < CROWD + 100) {
        MT_SKIP("1,100 open files are needed, the limit is lower");
    }
    files.rlim_cur = CROWD + 100;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &files) == 0);
    listen_here();
    size_t before = count_files("/proc/self/fd");
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
    int connected = 0;
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = open_peer(false);
        connected += crowd[i] >= 0;
        mtprof_end(mtprof_begin(&scope));
    }
    CHECK(connected >= MTPROF__PEERS);
    REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL)); /* behind all of them */
    CHECK_EQ_U64(state.begins, CROWD);
    CHECK_EQ_U64(state.lost, 0);
    for (int i = 0; i < CROWD; i++) {
        if (crowd[i] >= 0) {
            close(crowd[i]);
        }
    }
    REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
    CHECK_EQ_U64(state.begins, CROWD);
    CHECK_OK(mtprof_control_close());
    CHECK_EQ_U64(count_files("/proc/self/fd"), before - 1); /* the socket */
}

TEST(without_free_descriptors_it_waits_and_recovers)
{
    listen_here();
    struct rlimit before, none;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    int fd = open_peer(true); /* one that is there already is served */
    char text[256];
    CHECK(read_line(fd, text, sizeof text) > 0);
    int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(mtprof_control_path(address.sun_path, sizeof address.sun_path));
    none = before;
    none.rlim_cur = 64;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int taken[64], n = 0;
    while (n < 64 && (taken[n] = dup(fd)) >= 0) {
        n++;
    }
    CHECK_EQ_I64(errno, EMFILE);
    CHECK_EQ_I64(connect(waiting, (const struct sockaddr *)&address, sizeof address), 0);
    check_answer(fd, "{\"do\":\"status\"}\n", "{\"ok\":true");
    while (n > 0) {
        close(taken[--n]);
    }
    CHECK(read_line(waiting, text, sizeof text) > 0);
    close(waiting);
    close(fd);
    CHECK_OK(mtprof_control_close());
}

TEST(a_program_may_close_all_files)
{
    listen_here();
    int peer = open_peer(true);
    char text[256];
    CHECK(read_line(peer, text, sizeof text) > 0);
    REQUIRE_OK(ask(MTPROF_CONTROL_START, in_tmp("x.mtt")));
    int mine = open(in_tmp("mine"), O_RDWR | O_CREAT, 0600);
    for (int fd = 3; fd < 64; fd++) {
        struct stat about;
        if (fd != peer && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) {
            CHECK_EQ_I64(dup2(mine, fd), fd); /* gets its number */
        }
    }
    ssize_t sent = send(peer, "{}\n", 3, MSG_NOSIGNAL); /* wakes the helper, if it is heard */
    (void)sent;
    CHECK_OK(mtprof_control_close()); /* does not wait for what cannot come */
    struct stat about;
    CHECK(stat(in_tmp("mine"), &about) == 0 && about.st_size == 0);
    listen_here();
    CHECK_OK(ask(MTPROF_CONTROL_STATUS, NULL));
    CHECK_OK(mtprof_control_close());
}

/* ---- over and over ---- */

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    REQUIRE(f != NULL && fscanf(f, "%*d %ld", &pages) == 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(rounds_leak_nothing)
{
    enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* which keep freed memory */
        MORE_KIB = 1024 * 1024
#else
        MORE_KIB = 8 * 1024
#endif
    };
    int rounds = mt_test_long() ? 1000 : 50;
    const char *path = in_tmp("x.mtt");
    size_t files = 0, threads = 0;
    long kib = 0;
    for (int i = 0; i < rounds; i++) {
        listen_here();
        REQUIRE_OK(ask(MTPROF_CONTROL_START, path));
        mtprof_end(mtprof_begin(&scope));
        REQUIRE_OK(ask(MTPROF_CONTROL_STATUS, NULL));
        REQUIRE_OK(ask(MTPROF_CONTROL_STOP, NULL));
        REQUIRE_EQ_U64(state.begins, 1);
        REQUIRE_OK(mtprof_control_close());
        if (i == 9) {
            files = count_files("/proc/self/fd");
            threads = count_files("/proc/self/task");
            kib = resident_kib();
        }
    }
    CHECK_EQ_U64(count_files("/proc/self/fd"), files);
    CHECK_EQ_U64(count_files("/proc/self/task"), threads);
    CHECK(resident_kib() < kib + MORE_KIB);
}
