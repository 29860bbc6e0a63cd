/* SPDX-License-Identifier: Apache-2.0
 *
 * The option parser, see options.h.
 */
#include "cli/options.h"

#include "cli/command.h"
#include "cli/term.h"
#include "cli/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELP_COLUMN = 27, /* where help texts of options begin */
    HELP_WIDTH = 80
};

/* ---- what was probably meant ----------------------------------------------------------------- */

/* Edits (insert, delete, replace, swap of neighbours) between two words of up to 31 letters. */
static size_t distance(const char *a, const char *b)
{
    enum {
        MOST = 32
    };
    size_t rows[3][MOST], n = strlen(a), m = strlen(b);
    if (n >= MOST || m >= MOST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = rows[1][j] = rows[2][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t length = strlen(word), least = length / 3 + 2; /* further away is a guess, not help */
    for (size_t i = 0; i < n; i++) {
        bool starts = length >= 2 && strncmp(words[i], word, length) == 0;
        size_t edits = starts ? 1 : distance(word, words[i]);
        if (edits < least && edits < strlen(words[i])) {
            least = edits;
            best = words[i];
        }
    }
    return best;
}

static size_t count_choices(const char *const *choices)
{
    size_t n = 0;
    while (choices != NULL && choices[n] != NULL) {
        n++;
    }
    return n;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool refuse(cli_refusal *why, const char *text)
{
    (void)snprintf(why->text, sizeof why->text, "%s", text);
    return false;
}

static bool parse_choice(const cli_option *option, const char *text, int *value, cli_refusal *why)
{
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *value = i;
            return true;
        }
    }
    size_t used = (size_t)snprintf(why->text, sizeof why->text, "expected");
    for (int i = 0; option->choices[i] != NULL && used < sizeof why->text; i++) {
        const char *joint = i == 0 ? " " : option->choices[i + 1] == NULL ? " or " : ", ";
        used += (size_t)snprintf(why->text + used, sizeof why->text - used, "%s%s", joint,
                                 option->choices[i]);
    }
    return false;
}

static bool parse_number(const cli_option *option, const char *text, int64_t *value,
                         cli_refusal *why)
{
    if (cli_parse_int(text, value) && *value >= option->least && *value <= option->most) {
        return true;
    }
    (void)snprintf(why->text, sizeof why->text, "expected a number from %lld to %lld",
                   (long long)option->least, (long long)option->most);
    return false;
}

static bool parse_limit(const char *text, int64_t *value, cli_refusal *why)
{
    if (strcmp(text, "all") == 0) {
        *value = -1;
        return true;
    }
    return (cli_parse_int(text, value) && *value > 0) ||
           refuse(why, "expected a number from 1 on, or all");
}

/* "3", "3-7", "3-", "-7". */
static bool parse_range(const char *text, cli_range *range, cli_refusal *why)
{
    char first[24];
    const char *dash = strchr(text, '-');
    size_t length = dash != NULL ? (size_t)(dash - text) : strlen(text);
    const char *last = dash != NULL ? dash + 1 : text;
    *range = (cli_range){.given = true, .first = 0, .last = INT32_MAX};
    bool ok = length < sizeof first && (length > 0 || *last != '\0');
    if (ok && length > 0) {
        memcpy(first, text, length);
        first[length] = '\0';
        ok = cli_parse_int(first, &range->first);
    }
    if (ok && *last != '\0') {
        ok = cli_parse_int(last, &range->last);
    }
    ok = ok && range->first >= 0 && range->last <= INT32_MAX && range->first <= range->last;
    return ok || refuse(why, "expected a number or a range like 3-7, 3- or -7");
}

static bool parse_value(const cli_option *option, void *value, const char *text, cli_refusal *why)
{
    static_assert(CLI_TYPE_COUNT == 10, "a case for each type");
    switch (option->type) {
    case CLI_TEXT:
    case CLI_FILE:
        *(const char **)value = text;
        return *text != '\0' || refuse(why, "expected a text that is not empty");
    case CLI_CHOICE: return parse_choice(option, text, value, why);
    case CLI_NUMBER: return parse_number(option, text, value, why);
    case CLI_LIMIT: return parse_limit(text, value, why);
    case CLI_SPAN: return parse_range(text, value, why);
    case CLI_DURATION:
        return cli_parse_duration(text, value) ||
               refuse(why, "expected a duration like 10us, 1.5ms or 2s");
    case CLI_SIZE:
        return cli_parse_size(text, value) || refuse(why, "expected a size like 64MiB or 100MB");
    default: return option->parse(value, text, why);
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

typedef struct parser {
    const cli_command *command;
    cli_tables tables;
    char *settings;
    char **words;
    int n_words, next;
} parser;

static void misuse_hint(const parser *p)
{
    cli_hint("'mtprof help %s' shows how it is used", p->command->name);
}

static const cli_option *find_option(const parser *p, const char *name, size_t length, char letter)
{
    for (size_t t = 0; t < CLI_TABLES; t++) {
        for (size_t i = 0; i < p->tables.n[t]; i++) {
            const cli_option *option = &p->tables.options[t][i];
            if (letter != 0
                    ? option->letter == letter
                    : strncmp(option->name, name, length) == 0 && option->name[length] == '\0') {
                return option;
            }
        }
    }
    return NULL;
}

static bool unknown_option(const parser *p, const char *name, size_t length)
{
    const char *names[64];
    char word[64];
    size_t n = 0;
    for (size_t t = 0; t < CLI_TABLES; t++) {
        for (size_t i = 0; i < p->tables.n[t] && n < sizeof names / sizeof *names; i++) {
            names[n++] = p->tables.options[t][i].name;
        }
    }
    (void)snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), name);
    const char *near = cli_nearest(word, names, n);
    cli_error("%s: unknown option '--%s'", p->command->name, word);
    if (near != NULL) {
        cli_hint("did you mean '--%s'?", near);
    } else {
        misuse_hint(p);
    }
    return false;
}

static bool set_option(parser *p, const cli_option *option, const char *text)
{
    void *value = p->settings + option->offset;
    cli_refusal why = {{0}};
    if (option->type == CLI_FLAG) {
        if (text != NULL) {
            cli_error("%s: option '--%s' takes no value, got '%s'", p->command->name, option->name,
                      text);
            misuse_hint(p);
            return false;
        }
        *(bool *)value = true;
        return true;
    }
    if (text == NULL && p->next < p->n_words) {
        text = p->words[p->next++];
    }
    if (text == NULL) {
        cli_error("%s: option '--%s' needs a value: %s", p->command->name, option->name,
                  option->value);
        misuse_hint(p);
        return false;
    }
    if (parse_value(option, value, text, &why)) {
        return true;
    }
    cli_error("%s: option '--%s': '%s': %s", p->command->name, option->name, text, why.text);
    const char *near = option->choices != NULL
                           ? cli_nearest(text, option->choices, count_choices(option->choices))
                           : NULL;
    if (near != NULL) {
        cli_hint("did you mean '%s'?", near);
    }
    return false;
}

static bool long_option(parser *p, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find_option(p, word, length, 0);
    if (option == NULL) {
        return unknown_option(p, word, length);
    }
    return set_option(p, option, equals != NULL ? equals + 1 : NULL);
}

/* "-q", "-qn5", "-n 5". */
static bool short_options(parser *p, const char *word)
{
    for (; *word != '\0'; word++) {
        const cli_option *option = find_option(p, NULL, 0, *word);
        if (option == NULL) {
            cli_error("%s: unknown option '-%c'", p->command->name, *word);
            misuse_hint(p);
            return false;
        }
        if (option->type != CLI_FLAG) {
            return set_option(p, option, word[1] != '\0' ? word + 1 : NULL);
        }
        *(bool *)(p->settings + option->offset) = true;
    }
    return true;
}

static bool check_operands(const parser *p, const cli_parsed *parsed)
{
    const cli_command *command = p->command;
    if (((const cli_common *)(const void *)p->settings)->help) {
        return true;
    }
    /* A program's arguments are its own; its name is not empty. */
    for (size_t i = 0; i < (command->runs_program ? 1 : parsed->n_operands); i++) {
        if (parsed->n_operands > i && *parsed->operands[i] == '\0') {
            cli_error("%s: an operand is empty: expected %s", command->name, command->operands);
            misuse_hint(p);
            return false;
        }
    }
    if (parsed->n_operands < command->least_operands) {
        cli_error("%s: missing operand: expected %s", command->name, command->operands);
        misuse_hint(p);
        return false;
    }
    if (parsed->n_operands > command->most_operands) {
        cli_error("%s: unexpected operand '%s': expected %s", command->name,
                  parsed->operands[command->most_operands], command->operands);
        misuse_hint(p);
        return false;
    }
    return true;
}

bool cli_parse(const cli_command *command, void *settings, int n_words, char **words,
               cli_parsed *parsed)
{
    parser p = {.command = command,
                .tables = cli_tables_of(command),
                .settings = settings,
                .words = words,
                .n_words = n_words};
    bool options = true;
    while (p.next < n_words) {
        const char *word = words[p.next++];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && strncmp(word, "--", 2) == 0) {
            if (!long_option(&p, word + 2)) {
                return false;
            }
        } else if (options && word[0] == '-' && word[1] != '\0') {
            if (!short_options(&p, word + 1)) {
                return false;
            }
        } else {
            parsed->operands[parsed->n_operands++] = word;
        }
    }
    return check_operands(&p, parsed);
}

/* ---- help ------------------------------------------------------------------------------------ */

void cli_print_wrapped(const char *text, int indent, int first_column)
{
    int column = first_column;
    while (*text != '\0') {
        size_t length = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)length > HELP_WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column < indent) {
            printf("%*s", indent - column, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += (int)length;
        text += length;
        if (*text == '\n') { /* a paragraph ends */
            putchar('\n');
            column = 0;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

void cli_print_option(const cli_option *option)
{
    int column = option->letter != 0 ? printf("  -%c, --%s", option->letter, option->name)
                                     : printf("      --%s", option->name);
    if (option->value != NULL) {
        column += printf(" %s", option->value);
    }
    if (column >= HELP_COLUMN - 1) {
        putchar('\n');
        column = 0;
    }
    cli_print_wrapped(option->help, HELP_COLUMN, column);
}
