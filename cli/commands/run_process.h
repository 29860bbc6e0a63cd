/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting a program with the collectors in its environment, and waiting for it.
 */
#ifndef CLI_COMMANDS_RUN_PROCESS_H
#define CLI_COMMANDS_RUN_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    RUN_COLLECTORS = 3
};

/* The libraries that programs with CUDA, NVTX or ITT in them open. */
typedef struct run_collectors {
    char paths[RUN_COLLECTORS][PATH_MAX];
} run_collectors;

/* The variable that names the collector, and the collector's file. */
extern const struct run_collector {
    const char *interface, *variable, *file;
} run_collector_list[RUN_COLLECTORS];

/* Looks for the collectors of this command: in its build tree, its prefix or its wheel. False: one
 * is missing; `missing` is its file. */
bool run_find_collectors(run_collectors *out, const char **missing);

typedef struct run_program {
    char *const *words; /* the program and its arguments, ended by NULL */
    const run_collectors *collectors;
    /* The recording's path for the program's process. False: a message was printed. */
    bool (*choose_path)(void *context, pid_t pid, char *path, size_t size);
    void *context;
    uint64_t ring_bytes; /* 0: everything is kept */
} run_program;

/* Runs the program to its end; signals that this process is sent are passed on to it. 0: *status is
 * as waitpid() tells it, *pid is its process. Otherwise it was not started: why, an errno. */
int run_and_wait(const run_program *program, pid_t *pid, int *status);

/* The exit status that a shell gives for what run_and_wait() returned: 127 or 126. */
int run_refusal(int error);

/* Ends this process as the program ended. */
_Noreturn void run_end_like(int status);

#endif /* CLI_COMMANDS_RUN_PROCESS_H */
