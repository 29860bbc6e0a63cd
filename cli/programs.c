/* SPDX-License-Identifier: Apache-2.0
 *
 * Command words that are programs, see programs.h.
 */
#include "cli/programs.h"

#include "cli/command.h"
#include "cli/term.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "mtprof-"

/* Programs that belong to mtprof but are not part of the command. */
static const struct {
    const char *word, *summary, *source;
} known[] = {
    {"run", "Run a program and record a trace of it",
     "the Python package mtprof brings it, for Python programs; others stand behind '--'"},
    {"parquet", "'export parquet': add traces to a data set for SQL",
     "the Python package mtprof brings it"},
    {"query", "Ask one trace or many in SQL", "the Python package mtprof brings it"},
    {"view", "Open a trace in Perfetto's UI", "the Python package mtprof brings it"},
};

/* ---- finding --------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* What a person can type and a help text can show. */
static bool is_word(const char *word)
{
    size_t length = strlen(word);
    return length > 0 && word[0] != '-' && word[0] != '.' &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               length;
}

const cli_program *cli_find_program(const cli_programs *programs, const char *word)
{
    for (size_t i = 0; i < programs->n; i++) {
        if (strcmp(programs->items[i].word, word) == 0) {
            return &programs->items[i];
        }
    }
    return NULL;
}

static void add_program(cli_programs *programs, const char *folder, const char *name, bool beside)
{
    const char *word = name + strlen(PREFIX);
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path || !is_word(word) ||
        cli_find_program(programs, word) != NULL || !is_program(path)) {
        return;
    }
    cli_program *more = realloc(programs->items, (programs->n + 1) * sizeof *more);
    if (more == NULL) {
        return;
    }
    programs->items = more;
    cli_program made = {.word = strdup(word), .path = strdup(path), .beside = beside};
    if (made.word == NULL || made.path == NULL) {
        free(made.word);
        free(made.path);
        return;
    }
    programs->items[programs->n++] = made;
}

static void look_in(cli_programs *programs, const char *folder, bool beside)
{
    DIR *opened = folder[0] == '/' ? opendir(folder) : NULL;
    const struct dirent *entry = NULL;
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0) {
            add_program(programs, folder, entry->d_name, beside);
        }
    }
    if (opened != NULL) {
        (void)closedir(opened);
    }
}

static int by_word(const void *a, const void *b)
{
    return strcmp(((const cli_program *)a)->word, ((const cli_program *)b)->word);
}

void cli_programs_init(cli_programs *programs)
{
    char own[PATH_MAX];
    const char *path = getenv("PATH");
    char *folders = path != NULL ? strdup(path) : NULL, *rest = NULL;
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    *programs = (cli_programs){0};
    if (length > 0) {
        own[length] = 0;
        char *slash = strrchr(own, '/');
        if (slash != NULL) {
            *slash = 0;
            look_in(programs, own, true);
        }
    }
    for (char *folder = folders != NULL ? strtok_r(folders, ":", &rest) : NULL; folder != NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        look_in(programs, folder, false);
    }
    free(folders);
    if (programs->n > 1) {
        qsort(programs->items, programs->n, sizeof *programs->items, by_word);
    }
}

void cli_programs_fini(cli_programs *programs)
{
    for (size_t i = 0; i < programs->n; i++) {
        free(programs->items[i].word);
        free(programs->items[i].path);
    }
    free(programs->items);
    *programs = (cli_programs){0};
}

/* ---- telling --------------------------------------------------------------------------------- */

const char *cli_program_summary(const cli_program *program)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].word, program->word) == 0) {
            return known[i].summary;
        }
    }
    return program->path;
}

const char *cli_program_source(const char *word)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].word, word) == 0) {
            return known[i].source;
        }
    }
    return NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

int cli_run_program(const cli_program *program, const char *first, int n_words, char **words)
{
    char **arguments = calloc((size_t)n_words + 3, sizeof *arguments);
    size_t n = 0;
    if (arguments == NULL) {
        (void)cli_no_memory(program->path);
        return CLI_FAILED;
    }
    arguments[n++] = program->path;
    if (first != NULL) {
        arguments[n++] = (char *)(uintptr_t)first; /* execv() does not write to it */
    }
    for (int i = 0; i < n_words; i++) {
        arguments[n++] = words[i];
    }
    (void)cli_finish_stdout(CLI_OK);
    cli_term_give_up();
    (void)execv(program->path, arguments);
    cli_error("%s: cannot be run: %s", program->path, strerror(errno));
    free(arguments);
    return CLI_FAILED;
}
