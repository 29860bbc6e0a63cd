/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell completion, see complete.h. The scripts in cli/completion only pass words on.
 */
#include "cli/complete.h"

#include "cli/command.h"
#include "cli/programs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void offer(const char *prefix, const char *word, const char *current, const char *about)
{
    if (starts_with(word, current)) {
        printf("%s%s\t%s\n", prefix, word, about);
    }
}

static void offer_commands(const char *current, bool with_help)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        offer("", cli_command_at(i)->name, current, cli_command_at(i)->summary);
    }
    cli_programs programs;
    cli_programs_init(&programs);
    for (size_t i = 0; i < programs.n; i++) {
        offer("", programs.items[i].word, current, cli_program_summary(&programs.items[i]));
    }
    cli_programs_fini(&programs);
    if (with_help) {
        offer("", "help", current, "what commands there are, or how one is used");
        offer("", "--version", current, "the version");
    }
}

/* Values of an option. Of a list ("a,b") the last item is being typed. */
static void offer_values(const cli_option *option, const char *prefix, const char *current)
{
    char before[256];
    const char *comma = option->type == CLI_CUSTOM ? strrchr(current, ',') : NULL;
    if (option->type == CLI_FILE) {
        puts(":files");
        return;
    }
    if (option->choices == NULL) {
        return;
    }
    size_t kept = comma != NULL ? (size_t)(comma + 1 - current) : 0;
    (void)snprintf(before, sizeof before, "%s%.*s", prefix, (int)kept, current);
    for (size_t i = 0; option->choices[i] != NULL; i++) {
        offer(before, option->choices[i], current + kept, option->help);
    }
}

static const cli_option *find_option(const cli_tables *tables, const char *word)
{
    size_t length = strcspn(word, "=");
    for (size_t t = 0; t < CLI_TABLES; t++) {
        for (size_t i = 0; i < tables->n[t]; i++) {
            const cli_option *option = &tables->options[t][i];
            bool by_name = starts_with(word, "--") && strlen(option->name) + 2 == length &&
                           strncmp(option->name, word + 2, length - 2) == 0;
            bool by_letter =
                length == 2 && word[0] == '-' && option->letter != 0 && word[1] == option->letter;
            if (by_name || by_letter) {
                return option;
            }
        }
    }
    return NULL;
}

static void offer_options(const cli_tables *tables, const char *current)
{
    char word[64];
    for (size_t t = 0; t < CLI_TABLES; t++) {
        for (size_t i = 0; i < tables->n[t]; i++) {
            (void)snprintf(word, sizeof word, "--%s", tables->options[t][i].name);
            offer("", word, current, tables->options[t][i].help);
        }
    }
}

static void offer_operand(const cli_command *command, size_t n_operands, const char *current)
{
    if (n_operands == 0 && command->first_operand != NULL) {
        const char *const *words = command->first_operand();
        for (size_t i = 0; words[i] != NULL; i++) {
            offer("", words[i], current, command->summary);
        }
    }
    if (n_operands < command->most_operands) {
        puts(":files");
    }
}

/* A program completes its own words; it is asked only where it is beside mtprof, and so one of
 * ours. */
static int ask_program(int n_words, char **words)
{
    cli_programs programs;
    cli_programs_init(&programs);
    const cli_program *program = cli_find_program(&programs, words[0]);
    int code = CLI_OK;
    if (program != NULL && program->beside) {
        code = cli_run_program(program, "__complete", n_words - 1, words + 1);
    } else if (program != NULL) {
        puts(":files");
    }
    cli_programs_fini(&programs);
    return code;
}

int cli_complete(int n_words, char **words)
{
    const char *current = n_words > 0 ? words[n_words - 1] : "";
    if (n_words <= 1) {
        offer_commands(current, true);
        return CLI_OK;
    }
    if (n_words > 2 && cli_is_parquet(n_words, words)) {
        return ask_program(n_words - 1, words + 1);
    }
    const cli_command *command = cli_find_command(words[0]);
    if (command == NULL) {
        if (strcmp(words[0], "help") == 0 && n_words == 2) {
            offer_commands(current, false);
            return CLI_OK;
        }
        return ask_program(n_words, words);
    }
    cli_tables tables = cli_tables_of(command);
    size_t n_operands = 0;
    const cli_option *pending = NULL; /* an option that waits for its value */
    for (int i = 1; i < n_words - 1; i++) {
        const cli_option *option = pending == NULL ? find_option(&tables, words[i]) : NULL;
        n_operands += pending == NULL && words[i][0] != '-';
        bool waits = option != NULL && option->type != CLI_FLAG && strchr(words[i], '=') == NULL;
        pending = waits ? option : NULL;
    }
    if (pending != NULL) {
        offer_values(pending, "", current);
    } else if (starts_with(current, "--") && strchr(current, '=') != NULL) {
        char prefix[64];
        const cli_option *option = find_option(&tables, current);
        size_t length = strcspn(current, "=") + 1;
        (void)snprintf(prefix, sizeof prefix, "%.*s", (int)length, current);
        if (option != NULL) {
            offer_values(option, prefix, current + length);
        }
    } else if (current[0] == '-') {
        offer_options(&tables, current);
    } else {
        offer_operand(command, n_operands, current);
    }
    return CLI_OK;
}
