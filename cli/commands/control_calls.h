/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking processes that listen (mtprof/control.h): where their sockets are, and what is said when
 * there is none.
 */
#ifndef CLI_COMMANDS_CONTROL_CALLS_H
#define CLI_COMMANDS_CONTROL_CALLS_H

#include "cli/command.h"

#include <mtprof/control.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONTROL_FOLDERS = 3,
    CONTROL_FOLDER_BYTES = 256
};

/* Folders in which a user's sockets may be. */
typedef struct control_folders {
    size_t n;
    char paths[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
} control_folders;

/* What every command that asks begins with. */
typedef struct control_settings {
    cli_common common;
    const char *folder; /* --folder */
} control_settings;

/* The row of --folder, for the tables of these commands. */
#define CONTROL_FOLDER_OPTION                                                     \
    {                                                                             \
        .name = "folder", .type = CLI_FILE, .value = "FOLDER",                    \
        .help = "where the sockets are (default: mtprof in XDG_RUNTIME_DIR, and " \
                "/tmp/mtprof-UID)",                                               \
        .offset = offsetof(control_settings, folder)                              \
    }

/* Where the sockets of the process's user are; pid 0: of our own user. */
void control_find_folders(const control_settings *settings, int64_t pid, control_folders *out);

/* The operand as a process's number; 0: it is none, and a message was printed. */
int64_t control_pid(const cli_call *call);

/* Asks the process wherever it listens. ENOTSUP: it does not. */
mtprof_status control_ask(const control_settings *settings, int64_t pid,
                          const mtprof_control_request *request, mtprof_control_state *state);
/* The same; a failure is printed. Returns the exit code. */
int control_do(const cli_call *call, int64_t pid, const mtprof_control_request *request,
               mtprof_control_state *state);
/* Prints why a process could not be asked. Returns the exit code. */
int control_failed(const char *command, int64_t pid, mtprof_status status);

/* The absolute path of what -o names, or of NAME-PID.mtt by the process's name in the folder of
 * this command. False: a message was printed. */
bool control_output(const char *command, const char *given, int64_t pid, const char *suffix,
                    char *path, size_t size);

/* What mtprof start and mtprof attach are told. */
typedef struct control_start_settings {
    control_settings control;
    const char *output;
    bool shapes, stacks, memory, calls;
    uint64_t ring;
} control_start_settings;

/* Their options. */
#define CONTROL_START_FLAG(name_, help_)                   \
    {                                                      \
        .name = #name_, .type = CLI_FLAG, .help = (help_), \
        .offset = offsetof(control_start_settings, name_)  \
    }
#define CONTROL_START_OPTIONS                                                        \
    {.name = "output",                                                               \
     .letter = 'o',                                                                  \
     .type = CLI_FILE,                                                               \
     .value = "FILE",                                                                \
     .help = "the trace, which the process writes (default: NAME-PID.mtt)",          \
     .offset = offsetof(control_start_settings, output)},                            \
        CONTROL_START_FLAG(shapes, "shapes and types of ops' inputs"),               \
        CONTROL_START_FLAG(stacks, "the Python stack of every op and scope"),        \
        CONTROL_START_FLAG(memory, "allocations, and the memory that ops allocate"), \
        CONTROL_START_FLAG(calls, "every call of a Python or built-in function"),    \
    {                                                                                \
        .name = "ring", .type = CLI_SIZE, .value = "SIZE",                           \
        .help = "keep only the latest events, in this many bytes (64M, 1G)",         \
        .offset = offsetof(control_start_settings, ring)                             \
    }

/* The process begins to record; and ends. Failures are printed. Return the exit code. */
int control_start(const cli_call *call, int64_t pid, const control_start_settings *settings,
                  mtprof_control_state *state);
int control_stop(const cli_call *call, int64_t pid, mtprof_control_state *state);
/* What was recorded, for people. */
void control_print_stopped(const mtprof_control_state *state);

/* Processes that listen, for completion. */
const char *const *control_pids(void);

/* "12 s", "3 min", "4 h", "5 days" since then. */
typedef struct control_age {
    char text[24];
} control_age;
control_age control_since(uint64_t since_us);

#endif /* CLI_COMMANDS_CONTROL_CALLS_H */
