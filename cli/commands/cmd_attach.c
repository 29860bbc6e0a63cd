/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof attach: records a process that runs already, until it is interrupted.
 *
 *      it listens ──────────────────────────► start … wait … stop, over its socket
 *      CPython 3.14 or newer, with mtprof ──► sys.remote_exec(): it imports mtprof and listens
 *      else ────────────────────────────────► one sentence: what would be needed
 */
#include "cli/command.h"
#include "cli/commands/control_calls.h"
#include "cli/term.h"
#include "cli/units.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    REMOTE_EXEC_MINOR = 14, /* of Python 3: sys.remote_exec() */
    LISTEN_WAIT_MS = 10000  /* for a process that was told to listen */
};

typedef struct attach_settings {
    control_start_settings start;
    int64_t duration_ns;
} attach_settings;

static const cli_option options[] = {
    CONTROL_START_OPTIONS,
    {.name = "duration",
     .type = CLI_DURATION,
     .value = "TIME",
     .help = "how long (30s, 500ms); default: until this command is interrupted",
     .offset = offsetof(attach_settings, duration_ns)},
    CONTROL_FOLDER_OPTION,
};

/* ---- which Python ---------------------------------------------------------------------------- */

/* N of "python3.N" at the start of a text; 0: it is none. */
static int minor_of(const char *text)
{
    static const char stem[] = "python3.";
    return strncmp(text, stem, sizeof stem - 1) == 0 &&
                   isdigit((unsigned char)text[sizeof stem - 1])
               ? (int)strtol(text + sizeof stem - 1, NULL, 10)
               : 0;
}

/* The minor version of the Python 3 that the process runs, 0 where it runs none. `interpreter` is a
 * program of that version. */
static int find_python(int64_t pid, char *interpreter, size_t size)
{
    char place[64], line[PATH_MAX + 128];
    (void)snprintf(place, sizeof place, "/proc/%lld/exe", (long long)pid);
    ssize_t length = readlink(place, interpreter, size - 1);
    interpreter[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(interpreter, '/');
    int minor = minor_of(slash != NULL ? slash + 1 : interpreter);
    if (minor != 0) {
        return minor;
    }
    /* A program with Python in it, or a Python of another name. */
    (void)snprintf(place, sizeof place, "/proc/%lld/maps", (long long)pid);
    FILE *maps = fopen(place, "r");
    while (maps != NULL && minor == 0 && fgets(line, sizeof line, maps) != NULL) {
        const char *found = strstr(line, "/libpython3.");
        minor = found != NULL ? minor_of(found + strlen("/lib")) : 0;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    if (minor != 0) {
        (void)snprintf(interpreter, size, "python3.%d", minor);
    }
    return minor;
}

/* ---- a Python that can be told --------------------------------------------------------------- */

/* A Python string literal of the text; false: it does not fit. */
static bool quote(char *to, size_t size, const char *text)
{
    size_t n = 0;
    if (size < 3) {
        return false;
    }
    to[n++] = '"';
    for (; *text != 0; text++) {
        if (n + 6 > size) {
            return false;
        }
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ') {
            n += (size_t)snprintf(to + n, size - n, "\\x%02x", (unsigned char)*text);
        } else {
            to[n++] = *text;
        }
    }
    to[n++] = '"';
    to[n] = 0;
    return true;
}

/* What the process runs: failures are written where they can be read. */
static bool write_script(char *script, char *trouble, size_t size, const char *folder)
{
    char folder_text[2 * CONTROL_FOLDER_BYTES], trouble_text[PATH_MAX];
    (void)snprintf(script, size, "/tmp/mtprof-attach-XXXXXX");
    int fd = mkstemp(script);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        cli_error("attach: %s: %s", script, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    int length = snprintf(trouble, size, "%s.txt", script);
    bool fits = length > 0 && (size_t)length < size &&
                quote(folder_text, sizeof folder_text, folder) &&
                quote(trouble_text, sizeof trouble_text, trouble);
    fprintf(file,
            "try:\n"
            "    import mtprof.control as _mtprof_control\n"
            "    _mtprof_control.listen(%s)\n"
            "    del _mtprof_control\n"
            "except BaseException as error:\n"
            "    with open(%s, 'w') as file:\n"
            "        file.write(f'{type(error).__name__}: {error}')\n",
            fits ? folder_text : "''", fits ? trouble_text : "''");
    return fclose(file) == 0 && fits;
}

/* Runs the interpreter with sys.remote_exec(). False: it failed, and said why itself. */
static bool run_remote_exec(const char *interpreter, int64_t pid, const char *script)
{
    char code[PATH_MAX + 64], script_text[PATH_MAX];
    int status = 0;
    if (!quote(script_text, sizeof script_text, script)) {
        return false;
    }
    (void)snprintf(code, sizeof code, "import sys; sys.remote_exec(%lld, %s)", (long long)pid,
                   script_text);
    pid_t made = fork();
    if (made == 0) {
        cli_term_give_up();
        (void)execlp(interpreter, interpreter, "-I", "-c", code, (char *)NULL);
        cli_error("attach: %s: %s", interpreter, strerror(errno));
        _exit(127);
    }
    while (made > 0 && waitpid(made, &status, 0) < 0 && errno == EINTR) {
    }
    return made > 0 && status == 0;
}

static void rest_ms(long ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&rest, NULL);
}

static bool print_trouble(const char *path)
{
    char text[512] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) {
        if (file != NULL) {
            (void)fclose(file);
        }
        return false;
    }
    (void)fclose(file);
    cli_error("attach: in the process: %s", text);
    return true;
}

/* Tells the process to listen. Whether it does now; if not, a message was printed. */
static bool make_it_listen(const control_settings *settings, int64_t pid, const char *interpreter)
{
    enum {
        EVERY_MS = 50
    };
    mtprof_control_request request = {.struct_size = sizeof request};
    mtprof_control_state state;
    control_folders folders;
    char script[PATH_MAX], trouble[PATH_MAX];
    bool listens = false, told = false;
    control_find_folders(settings, pid, &folders);
    if (folders.n == 0 || !write_script(script, trouble, sizeof script, folders.paths[0])) {
        return false;
    }
    struct stat about;
    char place[64];
    (void)snprintf(place, sizeof place, "/proc/%lld", (long long)pid);
    if (stat(place, &about) == 0 && about.st_uid != geteuid()) { /* root: the process reads it */
        (void)!chown(script, about.st_uid, (gid_t)-1);
    }
    if (run_remote_exec(interpreter, pid, script)) {
        for (int waited = 0; !listens && !told && waited < LISTEN_WAIT_MS; waited += EVERY_MS) {
            rest_ms(EVERY_MS);
            listens = control_ask(settings, pid, &request, &state) == MTPROF_OK;
            told = !listens && print_trouble(trouble);
        }
        if (!listens && !told) {
            cli_error("attach: process %lld does not listen after %d s: its main thread runs no "
                      "Python code",
                      (long long)pid, LISTEN_WAIT_MS / 1000);
        }
    }
    (void)unlink(script);
    (void)unlink(trouble);
    return listens;
}

/* The process does not listen. Whether it does now; if not, what would be needed was printed. */
static bool help_it_listen(const control_settings *settings, int64_t pid)
{
    char interpreter[PATH_MAX];
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        cli_error("attach: there is no process %lld", (long long)pid);
        return false;
    }
    int minor = find_python(pid, interpreter, sizeof interpreter);
    if (minor >= REMOTE_EXEC_MINOR) {
        return make_it_listen(settings, pid, interpreter);
    }
    if (minor != 0) {
        cli_error("attach: process %lld does not listen, and Python 3.%d cannot be told to from "
                  "outside (3.%d can): start it with MTPROF_CONTROL=1 and 'import mtprof' in it, "
                  "or by 'mtprof run'",
                  (long long)pid, minor, REMOTE_EXEC_MINOR);
    } else {
        cli_error("attach: process %lld does not listen, and is no Python program: it must call "
                  "mtprof_control_listen(), or be started by 'mtprof run -- PROGRAM' where it "
                  "uses NVTX or ITT",
                  (long long)pid);
    }
    return false;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Waits for an interrupt, the end of the process, or the time. Whether the process still runs. */
static bool wait_for_end(int64_t pid, int64_t duration_ns, const sigset_t *signals)
{
    enum {
        LOOK_NS = 500 * 1000 * 1000
    };
    int64_t left = duration_ns > 0 ? duration_ns : INT64_MAX;
    while (left > 0) {
        int64_t slice = left < LOOK_NS ? left : LOOK_NS;
        struct timespec most = {0, (long)slice};
        if (sigtimedwait(signals, NULL, &most) > 0) {
            return true;
        }
        if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            return false;
        }
        left -= duration_ns > 0 ? slice : 0;
    }
    return true;
}

static int run(const cli_call *call)
{
    const attach_settings *s = call->settings;
    mtprof_control_request request = {.struct_size = sizeof request};
    mtprof_control_state state;
    sigset_t signals, before;
    int64_t pid = control_pid(call);
    if (pid == 0) {
        return CLI_MISUSE;
    }
    if (call->common->json) {
        cli_error("attach: there is no --json here: 'mtprof start --json' has it");
        return CLI_MISUSE;
    }
    mtprof_status status = control_ask(call->settings, pid, &request, &state);
    if (status == MTPROF_ENOTSUP) {
        if (!help_it_listen(call->settings, pid)) {
            return CLI_FAILED;
        }
    } else if (status != MTPROF_OK) {
        return control_failed("attach", pid, status);
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &signals, &before); /* from here on they end the recording */
    int code = control_start(call, pid, &s->start, &state);
    if (code == CLI_OK) {
        if (!call->common->quiet) {
            fprintf(stderr, "mtprof: process %lld records to %s; interrupt to end it\n",
                    (long long)pid, state.path);
        }
        if (wait_for_end(pid, s->duration_ns, &signals)) {
            code = control_stop(call, pid, &state);
        } else if (!call->common->quiet) {
            fprintf(stderr, "mtprof: the process has ended; its trace has all of it\n");
        }
        if (code == CLI_OK && !call->common->quiet) {
            control_print_stopped(&state);
        }
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

const cli_command cli_cmd_attach = {
    .name = "attach",
    .summary = "Record a running process until this command is interrupted",
    .operands = "PID",
    .details =
        "A process that listens ('mtprof ps') is asked over its socket. A Python program of "
        "version 3.14 or newer that does not listen is told to by sys.remote_exec(), if it can "
        "import mtprof and its system lets us. Others must be started so that they listen.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(attach_settings),
    .first_operand = control_pids,
    .run = run,
};
