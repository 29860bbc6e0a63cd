/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking processes that listen, see control_calls.h.
 */
#include "cli/commands/control_calls.h"

#include "cli/term.h"
#include "cli/units.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void add_folder(control_folders *folders, const char *runtime, uid_t uid)
{
    char *path = folders->paths[folders->n];
    if (folders->n < CONTROL_FOLDERS &&
        mtprof_control_folder(runtime, uid, path, CONTROL_FOLDER_BYTES) == MTPROF_OK) {
        for (size_t i = 0; i < folders->n; i++) {
            if (strcmp(folders->paths[i], path) == 0) {
                return;
            }
        }
        folders->n++;
    }
}

void control_find_folders(const control_settings *settings, int64_t pid, control_folders *out)
{
    const char *variable = getenv("MTPROF_CONTROL");
    const char *given = settings->folder != NULL                 ? settings->folder
                        : variable != NULL && variable[0] == '/' ? variable
                                                                 : NULL;
    char place[64];
    struct stat about;
    uid_t uid = geteuid();
    out->n = 0;
    if (given != NULL) {
        char whole[PATH_MAX];
        const char *path = realpath(given, whole) != NULL ? whole : given;
        int length = snprintf(out->paths[0], CONTROL_FOLDER_BYTES, "%s", path);
        out->n = length > 0 && length < CONTROL_FOLDER_BYTES;
        return;
    }
    (void)snprintf(place, sizeof place, "/proc/%lld", (long long)pid);
    if (pid != 0 && stat(place, &about) == 0) {
        uid = about.st_uid;
    }
    if (uid == geteuid()) {
        add_folder(out, getenv("XDG_RUNTIME_DIR"), uid);
    } else {
        (void)snprintf(place, sizeof place, "/run/user/%u", uid);
        add_folder(out, place, uid);
    }
    add_folder(out, NULL, uid);
}

int64_t control_pid(const cli_call *call)
{
    int64_t pid = 0;
    if (!cli_parse_int(call->operands[0], &pid) || pid <= 0 || pid > INT_MAX) {
        cli_error("%s: '%s' is not the number of a process", call->command->name,
                  call->operands[0]);
        cli_hint("'mtprof ps' lists those that listen");
        return 0;
    }
    return pid;
}

mtprof_status control_ask(const control_settings *settings, int64_t pid,
                          const mtprof_control_request *request, mtprof_control_state *state)
{
    control_folders folders;
    mtprof_status status = MTPROF_ENOTSUP;
    control_find_folders(settings, pid, &folders);
    for (size_t i = 0; i < folders.n && status == MTPROF_ENOTSUP; i++) {
        state->struct_size = sizeof *state;
        status = mtprof_control_call(folders.paths[i], pid, request, state);
    }
    return status;
}

int control_failed(const char *command, int64_t pid, mtprof_status status)
{
    const char *message = mtprof_last_error()->message;
    static const char prefix[] = "control: ";
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        cli_error("%s: there is no process %lld", command, (long long)pid);
    } else if (status == MTPROF_ENOTSUP && strstr(message, ".sock") != NULL) {
        cli_error("%s: process %lld does not listen", command, (long long)pid);
        cli_hint("a Python program that imports mtprof listens when it is started with "
                 "MTPROF_CONTROL=1; so does one that 'mtprof run' starts");
    } else {
        bool own = strncmp(message, prefix, sizeof prefix - 1) == 0;
        cli_error("%s: %s", command, own ? message + sizeof prefix - 1 : message);
    }
    return CLI_FAILED;
}

int control_do(const cli_call *call, int64_t pid, const mtprof_control_request *request,
               mtprof_control_state *state)
{
    mtprof_status status = control_ask(call->settings, pid, request, state);
    return status == MTPROF_OK ? CLI_OK : control_failed(call->command->name, pid, status);
}

bool control_output(const char *command, const char *given, int64_t pid, const char *suffix,
                    char *path, size_t size)
{
    char made[128], name[64] = "", file[64], folder[PATH_MAX];
    if (given == NULL) {
        (void)snprintf(file, sizeof file, "/proc/%lld/comm", (long long)pid);
        FILE *comm = fopen(file, "r");
        if (comm != NULL) {
            if (fgets(name, sizeof name, comm) != NULL) {
                name[strcspn(name, "\n")] = 0;
            }
            (void)fclose(comm);
        }
        for (char *at = name; *at != 0; at++) {
            *at = *at == '/' || *at == ' ' ? '_' : *at;
        }
        (void)snprintf(made, sizeof made, "%s-%lld%s", name[0] != 0 ? name : "process",
                       (long long)pid, suffix);
        given = made;
    }
    if (given[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        cli_error("%s: the current folder: %s", command, strerror(errno));
        return false;
    }
    int length = given[0] == '/' ? snprintf(path, size, "%s", given)
                                 : snprintf(path, size, "%s/%s", folder, given);
    if (length < 0 || (size_t)length >= size) {
        cli_error("%s: %s: the name is too long", command, given);
        return false;
    }
    return true;
}

/* ---- start and stop -------------------------------------------------------------------------- */

int control_start(const cli_call *call, int64_t pid, const control_start_settings *s,
                  mtprof_control_state *state)
{
    const char *command = call->command->name;
    char path[MTPROF_CONTROL_PATH_BYTES];
    if (s->ring != 0 && s->ring < 1 << 16) {
        cli_error("%s: option '--ring': expected a number of bytes, as in 64M or 1G, 64K or more",
                  command);
        return CLI_MISUSE;
    }
    if (!control_output(command, s->output, pid, ".mtt", path, sizeof path)) {
        return CLI_MISUSE;
    }
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_START,
                                      .path = path,
                                      .ring_bytes = s->ring,
                                      .details = (s->shapes ? MTPROF_CONTROL_SHAPES : 0U) |
                                                 (s->stacks ? MTPROF_CONTROL_STACKS : 0U) |
                                                 (s->memory ? MTPROF_CONTROL_MEMORY : 0U) |
                                                 (s->calls ? MTPROF_CONTROL_CALLS : 0U)};
    return control_do(call, pid, &request, state);
}

int control_stop(const cli_call *call, int64_t pid, mtprof_control_state *state)
{
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_STOP};
    return control_do(call, pid, &request, state);
}

void control_print_stopped(const mtprof_control_state *state)
{
    uint64_t events = state->begins + state->others;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    double lasted_ns =
        (double)now.tv_sec * 1e9 + (double)now.tv_nsec - (double)state->since_us * 1e3;
    cli_print_text(stdout, cli_text(state->path[0] != 0 ? state->path : "(memory)"), 0);
    printf(": %s event%s in %s, %s lost\n", cli_count(events).text, cli_plural(events),
           cli_duration(lasted_ns > 0 ? lasted_ns : 0).text,
           state->lost > 0 ? cli_count(state->lost).text : "none");
}

/* ---- completion ------------------------------------------------------------------------------ */

enum {
    OFFERED = 64
};

typedef struct offered_pids {
    size_t n;
    char texts[OFFERED][24];
    const char *words[OFFERED + 1];
} offered_pids;

static void offer(void *user, int64_t pid, const mtprof_control_state *state)
{
    offered_pids *offered = user;
    (void)state;
    if (offered->n < OFFERED) {
        (void)snprintf(offered->texts[offered->n], sizeof offered->texts[0], "%lld",
                       (long long)pid);
        offered->words[offered->n] = offered->texts[offered->n];
        offered->n++;
    }
}

const char *const *control_pids(void)
{
    static offered_pids offered;
    control_settings settings = {.folder = NULL};
    control_folders folders;
    control_find_folders(&settings, 0, &folders);
    for (size_t i = 0; i < folders.n; i++) {
        (void)mtprof_control_visit(folders.paths[i], offer, &offered);
    }
    offered.words[offered.n] = NULL;
    return offered.words;
}

/* ---- time ------------------------------------------------------------------------------------ */

control_age control_since(uint64_t since_us)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    struct timespec now;
    control_age age;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t seconds = (int64_t)now.tv_sec - (int64_t)(since_us / 1000000);
    seconds = seconds > 0 ? seconds : 0;
    size_t u = 0;
    while (u < 3 && seconds < 2 * units[u].seconds) {
        u++;
    }
    (void)snprintf(age.text, sizeof age.text, "%lld %s", (long long)(seconds / units[u].seconds),
                   units[u].unit);
    return age;
}
