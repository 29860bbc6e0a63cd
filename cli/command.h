/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command is: a row of the table in main.c. Help texts, the parser and shell completion all
 * come from these rows, so they cannot disagree.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes; documented in docs/mtprof.1. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* input, output, memory, or a file damaged beyond use */
    CLI_MISUSE = 2, /* the command line is wrong */
    CLI_FOUND = 3,  /* it worked and found what it looks for: a regression, a problem */
    CLI_DAMAGED = 4 /* it worked on what is left of a damaged trace */
};

/* What every command's settings begin with. */
typedef struct cli_common {
    bool json, quiet, help;
    int color;         /* enum cli_color */
    cli_range windows; /* commands that read a trace */
    bool discarded;
} cli_common;

typedef struct cli_command cli_command;

/* A command line that was understood. */
typedef struct cli_call {
    const cli_command *command;
    const cli_common *common;
    const void *settings; /* the command's own struct */
    const char *const *operands;
    size_t n_operands;
} cli_call;

struct cli_command {
    const char *name;
    const char *summary;  /* one line, no full stop */
    const char *operands; /* "TRACE" */
    const char *details;  /* paragraphs after the options; NULL: none */
    const cli_option *options;
    size_t n_options;
    size_t least_operands, most_operands;
    size_t settings_bytes; /* of the command's struct, which begins with cli_common */
    /* Words that the first operand may be, for completion; NULL: it is a file. */
    const char *const *(*first_operand)(void);
    bool reads_trace;  /* has --window and --discarded */
    bool runs_program; /* operands are a program's words: any texts */
    int (*run)(const cli_call *call);
};

/* The commands in the order of the help; NULL after the last. */
const cli_command *cli_command_at(size_t index);
const cli_command *cli_find_command(const char *name);

/* The option tables that apply to a command: its own, those of traces, those of all. */
enum {
    CLI_TABLES = 3
};
typedef struct cli_tables {
    const cli_option *options[CLI_TABLES];
    size_t n[CLI_TABLES];
} cli_tables;
cli_tables cli_tables_of(const cli_command *command);

/* Whether the words after "run" are for a program that is not Python's: "--" stands before it. */
bool cli_run_has_program(int n_words, char **words);

/* Whether the words are "export parquet …", for a program that is not part of the command. */
bool cli_is_parquet(int n_words, char **words);

extern const cli_command cli_cmd_run; /* for such words; it is not in the list */
extern const cli_command cli_cmd_report, cli_cmd_export, cli_cmd_info, cli_cmd_check,
    cli_cmd_recover, cli_cmd_diff, cli_cmd_stacks, cli_cmd_memory, cli_cmd_explain, cli_cmd_top,
    cli_cmd_steps, cli_cmd_merge, cli_cmd_stragglers;
extern const cli_command cli_cmd_ps, cli_cmd_status, cli_cmd_start, cli_cmd_stop, cli_cmd_dump,
    cli_cmd_attach;

#endif /* CLI_COMMAND_H */
