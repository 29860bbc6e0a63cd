/* SPDX-License-Identifier: Apache-2.0
 *
 * The option parser over a command of its own: every type, every form, every refusal.
 */
#include "cli/command.h"
#include "cli/groups.h"
#include "harness/mt_test.h"

#include <mtprof/averages.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const colors[] = {"red", "green", "blue", NULL};

typedef struct settings {
    cli_common common;
    bool flag, other;
    const char *text;
    int choice;
    int64_t number, limit, duration;
    uint64_t size;
    cli_range range;
    cli_groups groups;
} settings;

#define AT(member) offsetof(settings, member)

static const cli_option options[] = {
    {.name = "flag", .letter = 'f', .type = CLI_FLAG, .help = "h", .offset = AT(flag)},
    {.name = "other", .letter = 'g', .type = CLI_FLAG, .help = "h", .offset = AT(other)},
    {.name = "text",
     .letter = 't',
     .type = CLI_TEXT,
     .value = "T",
     .help = "h",
     .offset = AT(text)},
    {.name = "choice",
     .type = CLI_CHOICE,
     .value = "C",
     .choices = colors,
     .help = "h",
     .offset = AT(choice)},
    {.name = "number",
     .letter = 'n',
     .type = CLI_NUMBER,
     .value = "N",
     .least = 1,
     .most = 9,
     .help = "h",
     .offset = AT(number)},
    {.name = "limit", .type = CLI_LIMIT, .value = "N", .help = "h", .offset = AT(limit)},
    {.name = "duration", .type = CLI_DURATION, .value = "D", .help = "h", .offset = AT(duration)},
    {.name = "size", .type = CLI_SIZE, .value = "S", .help = "h", .offset = AT(size)},
    {.name = "range", .type = CLI_SPAN, .value = "A-B", .help = "h", .offset = AT(range)},
    {.name = "group",
     .type = CLI_CUSTOM,
     .value = "LIST",
     .parse = cli_parse_groups,
     .help = "h",
     .offset = AT(groups)},
};

static const cli_command command = {
    .name = "probe",
    .operands = "FILE",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .most_operands = 2,
    .settings_bytes = sizeof(settings),
};

/* What main.c has in the command. */
cli_tables cli_tables_of(const cli_command *of)
{
    return (cli_tables){.options = {of->options}, .n = {of->n_options}};
}

static char said[1024]; /* on standard error by the last parse */

/* Parses words that are separated by blanks; operands joined by '|' in `operands`. */
static bool parse(const char *line, settings *out, char *operands)
{
    static char copy[512];
    char *words[32];
    const char *found[33];
    int n = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        words[n++] = word;
    }
    memset(out, 0, sizeof *out);
    int saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    dup2(fileno(file), STDERR_FILENO);
    cli_parsed parsed = {.operands = found};
    bool ok = cli_parse(&command, out, n, words, &parsed);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    if (operands != NULL) {
        operands[0] = '\0';
        for (size_t i = 0; i < parsed.n_operands; i++) {
            strcat(operands, i == 0 ? "" : "|");
            strcat(operands, parsed.operands[i]);
        }
    }
    return ok;
}

TEST(every_type_is_read)
{
    settings s;
    REQUIRE(parse("--flag --text=a --choice blue --number 9 --limit all --duration 5us --size 2K "
                  "--range 3-7 --group shapes,stack:4",
                  &s, NULL));
    CHECK(s.flag);
    CHECK(!s.other);
    CHECK_EQ_STR(s.text, "a");
    CHECK_EQ_I64(s.choice, 2);
    CHECK_EQ_I64(s.number, 9);
    CHECK_EQ_I64(s.limit, -1);
    CHECK_EQ_I64(s.duration, 5000);
    CHECK_EQ_U64(s.size, 2048);
    CHECK(s.range.given);
    CHECK_EQ_I64(s.range.first, 3);
    CHECK_EQ_I64(s.range.last, 7);
    CHECK_EQ_U64(s.groups.group, MTPROF_GROUP_SHAPES);
    CHECK_EQ_U64(s.groups.stack_n, 4);
}

TEST(short_options_may_be_joined)
{
    settings s;
    REQUIRE(parse("-fgn5", &s, NULL));
    CHECK(s.flag && s.other);
    CHECK_EQ_I64(s.number, 5);
    REQUIRE(parse("-n 6 -tx", &s, NULL));
    CHECK_EQ_I64(s.number, 6);
    CHECK_EQ_STR(s.text, "x");
}

TEST(operands_may_stand_anywhere)
{
    settings s;
    char operands[64];
    REQUIRE(parse("a -f b", &s, operands));
    CHECK_EQ_STR(operands, "a|b");
    REQUIRE(parse("-f -- -g --text", &s, operands));
    CHECK_EQ_STR(operands, "-g|--text");
    CHECK(!s.other);
    REQUIRE(parse("-", &s, operands)); /* a name, not an option */
    CHECK_EQ_STR(operands, "-");
}

TEST(ranges_are_read)
{
    static const struct {
        const char *text;
        int64_t first, last;
    } good[] = {{"4", 4, 4}, {"4-", 4, INT32_MAX}, {"--range=-9", 0, 9}, {"0-0", 0, 0}};
    static const char *const bad[] = {"7-3", "-", "a", "1-b", "1-2-3", "1.5", "99999999999"};
    settings s;
    char line[64];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        bool whole = good[i].text[0] == '-';
        (void)snprintf(line, sizeof line, "%s%s", whole ? "" : "--range=", good[i].text);
        REQUIRE(parse(line, &s, NULL));
        CHECK_EQ_I64(s.range.first, good[i].first);
        CHECK_EQ_I64(s.range.last, good[i].last);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(line, sizeof line, "--range=%s", bad[i]);
        CHECK(!parse(line, &s, NULL));
    }
}

TEST(groups_are_read)
{
    settings s;
    REQUIRE(parse("--group overload,module,step,thread", &s, NULL));
    CHECK_EQ_U64(s.groups.group, MTPROF_GROUP_OVERLOAD | MTPROF_GROUP_MODULE | MTPROF_GROUP_STEP |
                                     MTPROF_GROUP_THREAD);
    static const char *const bad[] = {
        "",  "x",          "shapes,", "stack",  "stack:0",      "stack:-1",
        ",", "stack:1001", "stack:x", "Shapes", "shapes;module"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "--group=%s", bad[i]);
        CHECK(!parse(line, &s, NULL));
    }
}

/* Each refusal names the option, the value and what is accepted. */
TEST(mistakes_are_explained)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--flga", "mtprof: probe: unknown option '--flga'\n  hint: did you mean '--flag'?\n"},
        {"--zzzzzz", "mtprof: probe: unknown option '--zzzzzz'\n"
                     "  hint: 'mtprof help probe' shows how it is used\n"},
        {"-x", "mtprof: probe: unknown option '-x'\n"
               "  hint: 'mtprof help probe' shows how it is used\n"},
        {"--flag=1", "mtprof: probe: option '--flag' takes no value, got '1'\n"
                     "  hint: 'mtprof help probe' shows how it is used\n"},
        {"--text", "mtprof: probe: option '--text' needs a value: T\n"
                   "  hint: 'mtprof help probe' shows how it is used\n"},
        {"--text=", "mtprof: probe: option '--text': '': expected a text that is not empty\n"},
        {"--choice gren", "mtprof: probe: option '--choice': 'gren': expected red, green or blue\n"
                          "  hint: did you mean 'green'?\n"},
        {"--number 10", "mtprof: probe: option '--number': '10': expected a number from 1 to 9\n"},
        {"--limit 0",
         "mtprof: probe: option '--limit': '0': expected a number from 1 on, or all\n"},
        {"--duration 5",
         "mtprof: probe: option '--duration': '5': expected a duration like 10us, 1.5ms or 2s\n"},
        {"--size x", "mtprof: probe: option '--size': 'x': expected a size like 64MiB or 100MB\n"},
        {"a b c", "mtprof: probe: unexpected operand 'c': expected FILE\n"
                  "  hint: 'mtprof help probe' shows how it is used\n"},
    };
    settings s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(!parse(cases[i].line, &s, NULL));
        CHECK_EQ_STR(said, cases[i].message);
    }
}

TEST(near_words_are_proposed)
{
    static const char *const words[] = {"report", "recover", "export", "info"};
    CHECK_EQ_STR(cli_nearest("reprot", words, 4), "report");
    CHECK_EQ_STR(cli_nearest("exprt", words, 4), "export");
    CHECK_EQ_STR(cli_nearest("rec", words, 4), "recover");
    CHECK(cli_nearest("zebra", words, 4) == NULL);
    CHECK(cli_nearest("", words, 4) == NULL);
    CHECK(cli_nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", words, 4) ==
          NULL);
}
