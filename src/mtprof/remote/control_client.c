/* SPDX-License-Identifier: Apache-2.0
 *
 * The side that asks: one connection a request. What a process answers is hostile text until it is
 * read (control_line.h); a folder or a process of another user is not asked at all, except by root.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/remote/control_impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_MS = 60000,
    LIST_WAIT_MS = 2000,      /* for one process of a list */
    ANSWER_BYTES = 64 * 1024, /* of a line that a process sends */
    LISTED_MOST = 1 << 16     /* sockets in a folder that are looked at */
};

/* A connection, and what came through it that was not read yet. */
typedef struct asking {
    int fd;
    int64_t until_ms;
    size_t used, taken; /* bytes of `text`; those of the line that was read last */
    char *text;         /* ANSWER_BYTES and CTL1's */
    char *line;         /* a copy of one line, with CTL1's room */
    const char *path;   /* of the socket */
} asking;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- one connection -------------------------------------------------------------------------- */

/* Whose folder it is: of the caller's user, or where root asks, of any. */
static mtprof_status folder_owner(const char *folder, mtprof_status missing, uid_t *uid)
{
    struct stat about;
    *uid = geteuid();
    if (*uid == 0 && lstat(folder, &about) == 0) {
        *uid = about.st_uid;
    }
    mtprof_status status = mtprof__control_check_folder(folder, *uid, missing);
    if (status == MTPROF_EINVAL) { /* not of the caller's arguments */
        status = mtb_last_failure()->status = MTPROF_EIO;
    }
    return status;
}

static mtprof_status connect_to(asking *a, const struct sockaddr_un *address, uid_t uid,
                                uint32_t wait_ms)
{
    struct timeval most = {.tv_sec = wait_ms / 1000, .tv_usec = (wait_ms % 1000) * 1000};
    struct ucred who = {0};
    socklen_t length = sizeof who;
    a->path = address->sun_path;
    a->until_ms = now_ms() + wait_ms;
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a->fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "control: cannot make a socket");
    }
    (void)setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most); /* also of connect() */
    while (connect(a->fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        if (errno == EINTR) {
            continue;
        }
        bool nobody = errno == ENOENT || errno == ECONNREFUSED;
        return mtb_fail_errno(nobody ? MTPROF_ENOTSUP : MTPROF_EIO, errno, "control: %s", a->path);
    }
    if (getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
        (who.uid != uid && who.uid != 0)) {
        return mtb_fail(MTPROF_EIO, "control: %s is served by user %u, not by %u", a->path, who.uid,
                        uid);
    }
    return MTPROF_OK;
}

/* The next line, without its end, at a->line. */
static mtprof_status read_line(asking *a, size_t *length)
{
    memmove(a->text, a->text + a->taken, a->used - a->taken);
    a->used -= a->taken;
    a->taken = 0;
    char *end;
    while ((end = memchr(a->text, '\n', a->used)) == NULL) {
        struct pollfd polled = {.fd = a->fd, .events = POLLIN};
        int64_t left = a->until_ms - now_ms();
        if (a->used == ANSWER_BYTES) {
            return mtb_fail(MTPROF_EFORMAT, "control: %s sends a line of more than %d bytes",
                            a->path, ANSWER_BYTES);
        }
        int ready = left > 0 ? poll(&polled, 1, (int)left) : 0;
        if (ready == 0) {
            return mtb_fail(MTPROF_EIO, "control: %s does not answer", a->path);
        }
        ssize_t got = ready > 0 ? recv(a->fd, a->text + a->used, ANSWER_BYTES - a->used, 0) : -1;
        if (got == 0 || (got < 0 && errno == ECONNRESET)) {
            return mtb_fail(MTPROF_EIO, "control: %s was closed before it answered", a->path);
        }
        if (got < 0 && errno != EINTR) {
            return mtb_fail_errno(MTPROF_EIO, errno, "control: %s", a->path);
        }
        a->used += got > 0 ? (size_t)got : 0;
    }
    *length = (size_t)(end - a->text);
    a->taken = *length + 1;
    memcpy(a->line, a->text, *length);
    return MTPROF_OK;
}

/* A writer's sink. */
static int send_bytes(void *context, const void *bytes, size_t length)
{
    const asking *a = context;
    if (length > MTPROF__LINE_BYTES) {
        return mtb_fail(MTPROF_EINVAL, "control: a request of %zu bytes, at most %d are allowed",
                        length, MTPROF__LINE_BYTES);
    }
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(a->fd, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return mtb_fail_errno(MTPROF_EIO, errno, "control: %s", a->path);
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

static mtprof_status send_request(asking *a, const mtprof_control_request *request)
{
    mtb_writer writer;
    if (!mtb_writer_init(&writer, send_bytes, a)) {
        (void)mtb_writer_finish(&writer);
        return mtb_fail(MTPROF_ENOMEM, "control: no memory for a request");
    }
    mtprof__control_write_request(&writer, request);
    bool replaced = writer.replaced != 0;
    if (replaced) {
        writer.used = 0; /* not sent */
    }
    mtprof_status status = mtb_writer_finish(&writer);
    return replaced ? mtb_fail(MTPROF_EINVAL, "control: the path or the reason is not UTF-8")
                    : status;
}

static mtprof_status talk(asking *a, const struct sockaddr_un *address, uid_t uid,
                          const mtprof_control_request *request, mtprof_control_state *state)
{
    mtprof__control_hello hello;
    size_t length = 0;
    MT_TRY(connect_to(a, address, uid, request->wait_ms != 0 ? request->wait_ms : WAIT_MS));
    MT_TRY(read_line(a, &length));
    MT_TRY(mtprof__control_read_hello(a->line, length, &hello));
    MT_TRY(send_request(a, request));
    MT_TRY(read_line(a, &length));
    return mtprof__control_read_answer(a->line, length, state);
}

static mtprof_status ask(const char *folder, int64_t pid, uid_t uid,
                         const mtprof_control_request *request, mtprof_control_state *state)
{
    mtprof__control_place place;
    MT_TRY(mtprof__control_name(folder, pid, &place));
    asking a = {.fd = -1,
                .text = mtb_calloc(1, ANSWER_BYTES),
                .line = mtb_calloc(1, ANSWER_BYTES + MTPROF__LINE_PAD)};
    mtprof_status status = a.text != NULL && a.line != NULL
                               ? talk(&a, &place.address, uid, request, state)
                               : mtb_fail(MTPROF_ENOMEM, "control: no memory");
    if (a.fd >= 0) {
        (void)close(a.fd);
    }
    mtb_free(a.text);
    mtb_free(a.line);
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------- */

mtprof_status mtprof_control_call(const char *folder, int64_t pid,
                                  const mtprof_control_request *request,
                                  mtprof_control_state *state)
{
    mtprof_control_request checked;
    mtprof_control_state full;
    uid_t uid;
    if (folder == NULL || folder[0] != '/' || pid <= 0 || request == NULL || state == NULL ||
        request->struct_size < offsetof(mtprof_control_request, path) || state->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "control_call: %s",
                        folder == NULL || folder[0] != '/' ? "folder must be an absolute path"
                        : pid <= 0                         ? "pid must be positive"
                        : request == NULL ||
                                request->struct_size < offsetof(mtprof_control_request, path)
                            ? "request is NULL, or its struct_size is too small"
                            : "state is NULL, or its struct_size is 0");
    }
    mtb_read_struct(&checked, request);
    MT_TRY(mtprof__control_check(&checked));
    if ((checked.path != NULL && strlen(checked.path) >= MTPROF_CONTROL_PATH_BYTES) ||
        (checked.reason != NULL && strlen(checked.reason) >= MTPROF_CONTROL_TEXT_BYTES)) {
        return mtb_fail(MTPROF_EINVAL, "control_call: the path has at most %d bytes, the reason %d",
                        MTPROF_CONTROL_PATH_BYTES - 1, MTPROF_CONTROL_TEXT_BYTES - 1);
    }
    MT_TRY(folder_owner(folder, MTPROF_ENOTSUP, &uid));
    MT_TRY(ask(folder, pid, uid, &checked, &full));
    mtb_write_struct(state, &full);
    return MTPROF_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The process whose socket has this name, or 0. */
static int64_t pid_of(const char *name)
{
    char *end;
    errno = 0;
    long long pid = name[0] >= '1' && name[0] <= '9' ? strtoll(name, &end, 10) : 0;
    return pid > 0 && errno == 0 && strcmp(end, ".sock") == 0 ? pid : 0;
}

static mtprof_status list(const char *folder, int64_t **pids, size_t *n)
{
    size_t room = 0;
    mtprof_status status = MTPROF_OK;
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return mtb_fail_errno(MTPROF_EIO, errno, "control: %s", folder);
    }
    const struct dirent *entry;
    while (status == MTPROF_OK && *n < LISTED_MOST && (entry = readdir(directory)) != NULL) {
        int64_t pid = pid_of(entry->d_name);
        if (pid != 0 && !mtb_append(*pids, *n, room, &pid)) {
            status = mtb_fail(MTPROF_ENOMEM, "control: no memory for %zu processes", *n + 1);
        }
    }
    (void)closedir(directory);
    return status;
}

mtprof_status mtprof_control_visit(const char *folder,
                                   void (*visit)(void *user, int64_t pid,
                                                 const mtprof_control_state *state),
                                   void *user)
{
    static const mtprof_control_request request = {
        .struct_size = sizeof request, .command = MTPROF_CONTROL_STATUS, .wait_ms = LIST_WAIT_MS};
    mtprof_control_state state;
    mtprof__control_place place;
    int64_t *pids = NULL;
    size_t n = 0;
    uid_t uid;
    if (folder == NULL || folder[0] != '/' || visit == NULL) {
        return mtb_fail(MTPROF_EINVAL, "control_visit: %s",
                        visit == NULL ? "visit is NULL" : "folder must be an absolute path");
    }
    mtprof_status status = folder_owner(folder, MTPROF_ENOTSUP, &uid);
    if (status != MTPROF_OK) {
        return status == MTPROF_ENOTSUP ? MTPROF_OK : status;
    }
    status = list(folder, &pids, &n);
    if (n > 1) {
        qsort(pids, n, sizeof *pids, by_number);
    }
    for (size_t i = 0; status == MTPROF_OK && i < n; i++) {
        mtprof_status answered = ask(folder, pids[i], uid, &request, &state);
        if (answered == MTPROF_ENOTSUP) {
            /* Between bind() and listen() a living process refuses as well. */
            if (kill((pid_t)pids[i], 0) != 0 && errno == ESRCH &&
                mtprof__control_name(folder, pids[i], &place) == MTPROF_OK) {
                (void)unlink(place.address.sun_path);
            }
            continue;
        }
        visit(user, pids[i], answered == MTPROF_OK ? &state : NULL);
    }
    mtb_free(pids);
    return status;
}
