/* SPDX-License-Identifier: Apache-2.0
 *
 * The mtprof command: reports on traces. This file finds the subcommand and prints help; the
 * subcommands are in commands/cmd_*.c, other words are programs (programs.h). It uses the public
 * headers of libmtprof only.
 */
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/programs.h"
#include "cli/term.h"

#include <mtprof/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON(member) offsetof(cli_common, member)

static const char *const color_choices[] = {"auto", "always", "never", NULL};

static const cli_option common_options[] = {
    {.name = "json",
     .type = CLI_FLAG,
     .help = "machine-readable output: one JSON object with stable keys",
     .offset = COMMON(json)},
    {.name = "quiet",
     .letter = 'q',
     .type = CLI_FLAG,
     .help = "only results and errors: no notes, no progress",
     .offset = COMMON(quiet)},
    {.name = "color",
     .type = CLI_CHOICE,
     .value = "WHEN",
     .help = "auto (on a terminal, unless NO_COLOR is set), always or never",
     .choices = color_choices,
     .offset = COMMON(color)},
    {.name = "help", .letter = 'h', .type = CLI_FLAG, .help = "this text", .offset = COMMON(help)},
};

static const cli_option trace_options[] = {
    {.name = "window",
     .type = CLI_SPAN,
     .value = "A-B",
     .help = "only these windows of a .mtt trace, counted from 1",
     .offset = COMMON(windows)},
    {.name = "discarded",
     .type = CLI_FLAG,
     .help = "also windows that the program did not keep",
     .offset = COMMON(discarded)},
};

static const cli_command *const commands[] = {
    &cli_cmd_explain,    &cli_cmd_report, &cli_cmd_info,    &cli_cmd_export, &cli_cmd_diff,
    &cli_cmd_memory,     &cli_cmd_stacks, &cli_cmd_top,     &cli_cmd_steps,  &cli_cmd_merge,
    &cli_cmd_stragglers, &cli_cmd_check,  &cli_cmd_recover, &cli_cmd_ps,     &cli_cmd_status,
    &cli_cmd_start,      &cli_cmd_stop,   &cli_cmd_dump,    &cli_cmd_attach,
};

const cli_command *cli_command_at(size_t index)
{
    return index < sizeof commands / sizeof *commands ? commands[index] : NULL;
}

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        if (strcmp(cli_command_at(i)->name, name) == 0) {
            return cli_command_at(i);
        }
    }
    return NULL;
}

cli_tables cli_tables_of(const cli_command *command)
{
    return (cli_tables){
        .options = {command->options, trace_options, common_options},
        .n = {command->n_options,
              command->reads_trace ? sizeof trace_options / sizeof *trace_options : 0,
              sizeof common_options / sizeof *common_options},
    };
}

/* ---- help ------------------------------------------------------------------------------------ */

static void print_row(const char *word, const char *summary)
{
    printf("  %s%-10s%s %s\n", cli_style(CLI_BOLD), word, cli_style(CLI_PLAIN), summary);
}

static void print_programs(void)
{
    cli_programs programs;
    cli_programs_init(&programs);
    if (cli_find_program(&programs, "run") == NULL) { /* the part of it that is in this command */
        print_row(cli_cmd_run.name, cli_cmd_run.summary);
    }
    if (programs.n > 0) {
        fputs("\nPrograms, mtprof-COMMAND beside mtprof or on the path:\n\n", stdout);
    }
    for (size_t i = 0; i < programs.n; i++) {
        print_row(programs.items[i].word, cli_program_summary(&programs.items[i]));
    }
    cli_programs_fini(&programs);
}

static void print_usage(void)
{
    fputs("usage: mtprof COMMAND [OPTIONS] FILE...\n\n"
          "Reads .mtt traces, and Chrome JSON traces (.json, .json.gz) of other tools.\n\n",
          stdout);
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        print_row(cli_command_at(i)->name, cli_command_at(i)->summary);
    }
    print_row("help", "this text, or the options of a command");
    print_programs();
    fputs("\n'mtprof help COMMAND' or 'mtprof COMMAND --help' tells more; so does man mtprof.\n"
          "'mtprof --version' prints the version.\n\n"
          "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 found something (diff:\n"
          "slower; check: problems), 4 done with what is left of a damaged trace.\n",
          stdout);
}

static void print_command_help(const cli_command *command)
{
    cli_tables tables = cli_tables_of(command);
    printf("usage: mtprof %s [OPTIONS] %s\n\n", command->name, command->operands);
    printf("%s.\n\n", command->summary);
    for (size_t t = 0; t < CLI_TABLES; t++) {
        for (size_t i = 0; i < tables.n[t]; i++) {
            cli_print_option(&tables.options[t][i]);
        }
    }
    if (command->details != NULL) {
        putchar('\n');
        cli_print_wrapped(command->details, 0, 0);
    }
}

static int unknown_command(const char *name, const cli_programs *programs)
{
    enum {
        MOST = 64 /* words that a mistyped one is compared with */
    };
    const char *names[MOST] = {"help"};
    size_t n = 1;
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        names[n++] = cli_command_at(i)->name;
    }
    for (size_t i = 0; i < programs->n && n < MOST; i++) {
        names[n++] = programs->items[i].word;
    }
    const char *near = cli_nearest(name, names, n);
    const char *source = cli_program_source(name);
    if (source != NULL) {
        cli_error("the program mtprof-%s is neither beside mtprof nor on the path", name);
        cli_hint("%s", source);
        return CLI_MISUSE;
    }
    cli_error("unknown command '%s'", name);
    if (near != NULL) {
        cli_hint("did you mean '%s'?", near);
    } else {
        cli_hint("'mtprof help' lists the commands");
    }
    return CLI_MISUSE;
}

/* A word that is no command: the program of that name, or a message. `first`: its first argument,
 * or NULL. */
static int run_other(const char *name, const char *first, int n_words, char **words)
{
    cli_programs programs;
    cli_programs_init(&programs);
    const cli_program *program = cli_find_program(&programs, name);
    int code = program != NULL ? cli_run_program(program, first, n_words, words)
                               : unknown_command(name, &programs);
    cli_programs_fini(&programs);
    return code;
}

static bool has_program(const char *name)
{
    cli_programs programs;
    cli_programs_init(&programs);
    bool has = cli_find_program(&programs, name) != NULL;
    cli_programs_fini(&programs);
    return has;
}

static int run_help(int n_words, char **words)
{
    if (n_words == 0) {
        print_usage();
        return CLI_OK;
    }
    if (strcmp(words[0], "help") == 0) {
        fputs("usage: mtprof help [COMMAND]\n\nTells what commands there are, or how one is "
              "used.\n",
              stdout);
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(words[0]);
    if (command == NULL && strcmp(words[0], "run") == 0 && !has_program("run")) {
        command = &cli_cmd_run;
    }
    if (command == NULL) {
        return run_other(words[0], "--help", 0, NULL);
    }
    print_command_help(command);
    return CLI_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static int run_command(const cli_command *command, int n_words, char **words)
{
    cli_common *common = calloc(1, command->settings_bytes);
    cli_parsed parsed = {.operands = calloc((size_t)n_words + 1, sizeof *parsed.operands)};
    int code = CLI_MISUSE;
    if (common == NULL || parsed.operands == NULL) {
        cli_error("%s: out of memory", command->name);
        code = CLI_FAILED;
    } else if (cli_parse(command, common, n_words, words, &parsed)) {
        cli_term_color((enum cli_color)common->color);
        cli_call call = {.command = command,
                         .common = common,
                         .settings = common,
                         .operands = parsed.operands,
                         .n_operands = parsed.n_operands};
        if (common->help) {
            print_command_help(command);
            code = CLI_OK;
        } else {
            code = command->run(&call);
        }
        cli_progress_end();
    }
    free(parsed.operands);
    free(common);
    return code;
}

static int dispatch(int n_words, char **words)
{
    const char *name = n_words > 0 ? words[0] : NULL;
    if (name == NULL) {
        cli_error("missing command");
        cli_hint("'mtprof help' lists the commands");
        return CLI_MISUSE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("mtprof %s\n", mtprof_version_string());
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        return run_help(n_words - 1, words + 1);
    }
    if (strcmp(name, "__complete") == 0) {
        return cli_complete(n_words - 1, words + 1);
    }
    if (strcmp(name, "run") == 0 && cli_run_has_program(n_words - 1, words + 1)) {
        return run_command(&cli_cmd_run, n_words - 1, words + 1);
    }
    if (cli_is_parquet(n_words, words)) {
        return run_other(words[1], NULL, n_words - 2, words + 2);
    }
    const cli_command *command = cli_find_command(name);
    if (command == NULL) {
        if (name[0] == '-') {
            cli_error("unknown option '%s'", name);
            cli_hint("options stand behind the command; 'mtprof help' lists the commands");
            return CLI_MISUSE;
        }
        return run_other(name, NULL, n_words - 1, words + 1);
    }
    return run_command(command, n_words - 1, words + 1);
}

int main(int argc, char **argv)
{
    cli_term_start();
    return cli_finish_stdout(dispatch(argc - 1, argv + 1));
}
