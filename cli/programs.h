/* SPDX-License-Identifier: Apache-2.0
 *
 * Other command words are programs: "mtprof WORD" runs mtprof-WORD, as git does. Programs are
 * looked for in the folder of the mtprof command itself, then in the folders of PATH. Folders of
 * PATH that are not absolute are left out: no code is taken from the current directory.
 */
#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

/* The programs that are there, each word once, in alphabetical order. */
typedef struct cli_program {
    char *word; /* "run" of mtprof-run */
    char *path;
    bool beside; /* in the folder of the mtprof command */
} cli_program;

typedef struct cli_programs {
    cli_program *items;
    size_t n;
} cli_programs;

/* Where memory is short the list is shorter. */
void cli_programs_init(cli_programs *programs);
void cli_programs_fini(cli_programs *programs);
const cli_program *cli_find_program(const cli_programs *programs, const char *word);

/* One line about a program, no full stop: known for our own, the path for others. */
const char *cli_program_summary(const cli_program *program);
/* Of a word that belongs to a program of ours: what brings it; NULL for all others. */
const char *cli_program_source(const char *word);

/* Replaces this process by the program, with `first` (may be NULL) and the words as its arguments.
 * Returns only on failure: the exit code, after a message. */
int cli_run_program(const cli_program *program, const char *first, int n_words, char **words);

#endif /* CLI_PROGRAMS_H */
