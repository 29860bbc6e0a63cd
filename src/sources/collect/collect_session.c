/* SPDX-License-Identifier: Apache-2.0
 *
 * The session of a program that `mtprof run -- PROGRAM` started. The command sets
 *
 *     MTPROF_COLLECT=PID:BYTES:PATH
 *
 * PID is the program's process, which records to PATH; other processes that inherit the variable
 * record to NAME.PID.mtt beside it, each from its first use of the interface on. BYTES is the size
 * of a ring; 0: everything is kept. Where something
 * records already, a Python program under `mtprof run` say, its session is used.
 *
 * The session ends with the process. What ends it otherwise, _exit() or a signal, leaves the file
 * as it is, and it opens with all that was recorded.
 */
#include "base/lock.h"
#include "sources/collect/collect.h"

#include <mtprof/control.h>
#include <mtprof/session.h>
#include <mtprof/status.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool collect_forked;
mtb_lock collect_objects = MTB_LOCK_INIT(MTB_RANK_COLLECT_OBJECTS);

static struct {
    mtb_lock lock;
    bool prepared;
    mtprof_session *session; /* ours */
    bool stopped;            /* over the socket */
    bool listens;            /* on a socket that we opened; atomic */
} here = {.lock = MTB_LOCK_INIT(MTB_RANK_COLLECT_SESSION)};

static void after_fork(void)
{
    mtb_locks_forget();
    mtb_lock_reset(&here.lock);
    mtb_lock_reset(&collect_objects); /* lists are changed by one store */
    collect_names_after_fork();
    collect_thread_after_fork();
    here.stopped = here.listens = false;
    __atomic_store_n(&collect_forked, here.session != NULL, __ATOMIC_RELAXED);
}

/* "NAME.PID.mtt" for "NAME.mtt". False: it is too long. */
static bool make_path(char *path, size_t size, const char *asked, long owner)
{
    size_t length = strlen(asked);
    const char *ending = length > 4 && strcmp(asked + length - 4, ".mtt") == 0 ? ".mtt" : "";
    long own = (long)getpid();
    int made = own == owner ? snprintf(path, size, "%s", asked)
                            : snprintf(path, size, "%.*s.%ld%s", (int)(length - strlen(ending)),
                                       asked, own, ending);
    return made > 0 && (size_t)made < size;
}

void collect_say(const char *subject, const char *message)
{
    char line[PATH_MAX + 512];
    int length = snprintf(line, sizeof line, "mtprof: run: %s: %s\n", subject, message);
    if (length > 0) {
        size_t bytes = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
        ssize_t ignored = write(STDERR_FILENO, line, bytes);
        (void)ignored;
    }
}

static void warn(void *user, mtprof_status status, const char *message)
{
    (void)status;
    collect_say(user, message);
}

static void add_command(mtprof_session *session)
{
    char words[4096];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, words, sizeof words) : -1;
    if (file >= 0) {
        (void)close(file);
    }
    for (ssize_t i = 0; i < length; i++) {
        if (words[i] == 0) {
            words[i] = ' ';
        }
    }
    if (length > 1) {
        (void)mtprof_session_add_metadata(session, "command", strlen("command"), words,
                                          (size_t)length - 1, false);
    }
}

static void start_session(const char *setting)
{
    static char path[PATH_MAX];
    char *end;
    errno = 0;
    long owner = strtol(setting, &end, 10);
    if (errno != 0 || end == setting || *end != ':') {
        return;
    }
    const char *number = end + 1;
    uint64_t ring = strtoull(number, &end, 10);
    if (errno != 0 || end == number || *end != ':' || end[1] == 0) {
        return;
    }
    if (!make_path(path, sizeof path, end + 1, owner)) {
        collect_say(end + 1, "the name is too long");
        return;
    }
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = ring != 0 ? MTPROF_POLICY_RING : 0,
                            .path = path,
                            .buffer_bytes = ring,
                            .on_warning = warn,
                            .user = path};
    mtprof_session *session = NULL;
    mtprof_status status = mtprof_session_start(&config, &session);
    if (status == MTPROF_OK) {
        add_command(session);
        here.session = session;
    } else if (status != MTPROF_EBUSY) {
        collect_say(path, mtprof_last_error()->message);
    }
}

/* mtprof stop: the recording of the whole program ends, and does not begin again by itself. */
static mtprof_status stop_session(void *user, mtprof_control_answer *answer)
{
    (void)user;
    mtb_lock_acquire(&here.lock);
    mtprof_session *session = collect_forked ? NULL : here.session;
    here.session = session != NULL ? NULL : here.session;
    here.stopped = true;
    mtb_lock_release(&here.lock);
    if (session == NULL) {
        (void)snprintf(answer->message, sizeof answer->message,
                       "process %ld records by itself: it was not told to over this socket",
                       (long)getpid());
        return MTPROF_ESTATE;
    }
    return mtprof_session_close(session);
}

/* The program can be asked what it records (docs/control.md), unless MTPROF_CONTROL is 0. Where it
 * cannot be, it is recorded all the same. */
static bool listen_too(void)
{
    char folder[PATH_MAX];
    const char *asked = secure_getenv("MTPROF_CONTROL");
    if (asked != NULL && strcmp(asked, "0") == 0) {
        return false;
    }
    bool given = asked != NULL && asked[0] == '/';
    if (!given && mtprof_control_folder(secure_getenv("XDG_RUNTIME_DIR"), geteuid(), folder,
                                        sizeof folder) != MTPROF_OK) {
        return false;
    }
    mtprof_control_config config = {.struct_size = sizeof config,
                                    .folder = given ? asked : folder,
                                    .rank = secure_getenv("RANK"),
                                    .stop = stop_session};
    return mtprof_control_listen(&config) == MTPROF_OK;
}

void collect_start(void)
{
    const char *setting = secure_getenv("MTPROF_COLLECT");
    mtb_lock_acquire(&here.lock);
    if (!here.prepared) {
        here.prepared = true;
        (void)pthread_atfork(NULL, NULL, after_fork);
    }
    bool starts = setting != NULL && here.session == NULL && !here.stopped;
    if (starts) {
        start_session(setting);
    }
    bool listens = starts && here.session != NULL;
    mtb_lock_release(&here.lock);
    if (listens && listen_too()) {
        __atomic_store_n(&here.listens, true, __ATOMIC_RELAXED);
    }
}

MT_COLD void collect_start_again(void)
{
    mtb_lock_acquire(&here.lock);
    if (__atomic_exchange_n(&collect_forked, false, __ATOMIC_RELAXED)) {
        (void)mtprof_session_close(here.session); /* the parent's: only its memory is freed here */
        here.session = NULL;
    }
    mtb_lock_release(&here.lock);
    collect_start();
}

void collect_pause(bool paused)
{
    mtb_lock_acquire(&here.lock);
    if (here.session != NULL && !collect_forked) {
        (void)(paused ? mtprof_session_pause(here.session)
                      : mtprof_session_resume(here.session, 0));
    }
    mtb_lock_release(&here.lock);
}

/* After the program's own exit handlers. Other threads may still report: into nothing then. */
__attribute__((destructor)) static void finish(void)
{
    if (__atomic_load_n(&here.listens, __ATOMIC_RELAXED)) {
        (void)mtprof_control_close(); /* whose thread may stop the session */
    }
    if (here.session != NULL && !__atomic_load_n(&collect_forked, __ATOMIC_RELAXED)) {
        (void)mtprof_session_close(here.session);
        here.session = NULL;
    }
}
