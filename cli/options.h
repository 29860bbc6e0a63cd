/* SPDX-License-Identifier: Apache-2.0
 *
 * One option parser for all commands.
 *
 * An option is a row that says where its value goes; the parser writes typed values, so commands
 * never look at text. Long options take their value after '=' or as the next word, short ones
 * attached or as the next word. Options and operands may be mixed; "--" ends the options.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_option_type {
    CLI_FLAG = 0, /* bool */
    CLI_TEXT,     /* const char *; choices, if any, are proposals */
    CLI_FILE,     /* const char * */
    CLI_CHOICE,   /* int: index into choices */
    CLI_NUMBER,   /* int64_t, least to most */
    CLI_LIMIT,    /* int64_t: a number, or -1 for "all" */
    CLI_SPAN,     /* cli_range: "3", "3-7", "3-", "-7" */
    CLI_DURATION, /* int64_t: nanoseconds */
    CLI_SIZE,     /* uint64_t: bytes */
    CLI_CUSTOM,   /* parse() */
    CLI_TYPE_COUNT
};

typedef struct cli_range {
    bool given;
    int64_t first, last;
} cli_range;

/* Why a value was refused: the end of a message that begins with option and value. */
typedef struct cli_refusal {
    char text[200];
} cli_refusal;

typedef struct cli_option {
    const char *name;  /* long name */
    char letter;       /* short name, or 0 */
    uint8_t type;      /* enum cli_option_type */
    const char *value; /* what the help calls the value; NULL for flags */
    const char *help;
    const char *const *choices; /* ended by NULL */
    size_t offset;              /* of the value in the settings */
    int64_t least, most;        /* CLI_NUMBER */
    bool (*parse)(void *value, const char *text, cli_refusal *why); /* CLI_CUSTOM */
} cli_option;

struct cli_command;

/* What parsing gave. The operands are the caller's words in their order. */
typedef struct cli_parsed {
    const char **operands; /* room for all words; the caller's */
    size_t n_operands;
} cli_parsed;

/*
 * Reads the words after a command's name into settings. On a mistake it prints what is wrong and
 * what to do, and returns false.
 */
bool cli_parse(const struct cli_command *command, void *settings, int n_words, char **words,
               cli_parsed *parsed);

/* "  -o, --output FILE" with its help wrapped after it, at 80 columns, to standard output. */
void cli_print_option(const cli_option *option);
/* A paragraph wrapped at 80 columns, indented. */
void cli_print_wrapped(const char *text, int indent, int first_column);

/* The item (of n texts, stride bytes apart) that a mistyped word most likely means, or NULL. */
const char *cli_nearest(const char *word, const char *const *words, size_t n);

#endif /* CLI_OPTIONS_H */
