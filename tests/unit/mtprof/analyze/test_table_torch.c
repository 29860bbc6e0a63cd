/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables, byte for byte as torch prints them.
 *
 *   tables.txt    made-up rows, laid out by torch 2.11 (torch_table_cases.py)
 *   evidence.txt  tables of real programs (evidence_cases.py)
 */
#include "harness/mt_test.h"
#include "table_cases.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_difference(const table_case *now, const char *text, size_t length)
{
    size_t line = 1;
    size_t column = 1;
    size_t i = 0;
    for (; i < length && i < now->expected_length && text[i] == now->expected[i]; i++) {
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }
    FAIL("case %s: %zu bytes, expected %zu; they differ in line %zu, column %zu:\nours:     "
         "%.80s\nexpected: %.80s",
         now->name, length, now->expected_length, line, column, text + i, now->expected + i);
}

static unsigned compare_all(const char *file)
{
    size_t size;
    char *text = cases_load(file, &size);
    char *at = text;
    static table_case now;
    unsigned n = 0;
    while (cases_next(&at, text + size, &now)) {
        mtprof__table_input input;
        size_t length;
        int status;
        case_input(&now, &input);
        char *ours = case_write(&input, &now.options, &length, &status);
        REQUIRE_OK(status);
        if (length != now.expected_length || memcmp(ours, now.expected, length) != 0) {
            report_difference(&now, ours, length);
        }
        free(ours);
        n++;
    }
    free(text);
    return n;
}

TEST(tables_as_torch_prints_them)
{
    CHECK(compare_all("tables.txt") >= 90);
}

TEST(tables_of_real_programs)
{
    CHECK(compare_all("evidence.txt") >= 9);
}

/* A locale with a decimal comma: an installed one, or one made here. */
static bool use_comma_locale(void)
{
    const char *tried[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        if (setlocale(LC_ALL, tried[i]) != NULL) {
            return true;
        }
    }
    char command[768];
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>/dev/null", mt_test_tmpdir());
    int made = system(command); /* NOLINT(cert-env33-c): the path is the harness's own */
    setenv("LOCPATH", mt_test_tmpdir(), 1);
    return made == 0 && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

/* TB3: a program with another decimal point gets the same table. */
TEST(tables_in_another_locale)
{
    char text[16];
    if (!use_comma_locale()) {
        MT_SKIP("no locale with a decimal comma is installed, and localedef makes none");
    }
    snprintf(text, sizeof text, "%.1f", 0.5);
    REQUIRE_EQ_STR(text, "0,5");
    CHECK(compare_all("tables.txt") >= 90);
}

/* The widths are those of torch's own defaults when nothing is given. */
TEST(no_options_are_the_defaults)
{
    static table_case rows;
    mtprof__table_input input;
    size_t a_length, b_length;
    int status;
    case_add(&rows, "aten::add")->row.cpu_ns = 1500;
    case_input(&rows, &input);
    mtprof_table_options options = {.struct_size = sizeof options};
    char *a = case_write(&input, NULL, &a_length, &status);
    char *b = case_write(&input, &options, &b_length, &status);
    REQUIRE(a != NULL && b != NULL);
    CHECK_EQ_STR(a, b);
    free(a);
    free(b);
}

TEST(an_empty_list_is_an_empty_text)
{
    static table_case rows;
    mtprof__table_input input;
    size_t length;
    int status;
    case_input(&rows, &input);
    char *text = case_write(&input, NULL, &length, &status);
    CHECK_OK(status);
    CHECK_EQ_U64(length, 0);
    free(text);
}

/* torch-contract 4.3.14: torch swaps the cells of these two columns. Ours are under their headers;
 * everything else of that table is as torch's. */
TEST(flops_and_source_stand_under_their_headers)
{
    static table_case rows;
    mtprof__table_input input;
    size_t length;
    int status;
    case_row *row = case_add(&rows, "aten::add");
    row->row.count = 3;
    row->row.cpu_ns = row->row.self_cpu_ns = 55822;
    row->row.flops = 48;
    row->frames[0] = (mtprof_text){"<string>(13): op", 16};
    row->frames[1] = (mtprof_text){"<string>(27): f1", 16};
    row->n_frames = 2;
    rows.flops = true;
    case_input(&rows, &input);
    char *text = case_write(&input, NULL, &length, &status);
    REQUIRE_OK(status);
    const char *expected =
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  --------------------  ------------  \n"
        "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    "
        "# of Calls  Source Location        Total FLOPs  \n"
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  --------------------  ------------  \n"
        "    aten::add       100.00%      55.822us       100.00%      55.822us      18.607us       "
        "      3  <string>(13): op            48.000  \n"
        "                                                                                       "
        "            <string>(27): f1                    \n"
        "                                                                                       "
        "                                                \n"
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  --------------------  ------------  \n"
        "Self CPU time total: 55.822us\n";
    CHECK_EQ_STR(text, expected);
    free(text);
}

/* torch-contract 4.3.15: torch fails where a raw list has FLOPs and an allocation. Here a row
 * without FLOPs is nothing special. */
TEST(a_row_without_flops_shows_dashes)
{
    static table_case rows;
    mtprof__table_input input;
    size_t length;
    int status;
    case_add(&rows, "[memory]");
    case_add(&rows, "aten::mm")->row.flops = 64;
    rows.flops = true;
    case_input(&rows, &input);
    char *text = case_write(&input, NULL, &length, &status);
    REQUIRE_OK(status);
    CHECK(strstr(text, "            --  \n") != NULL);
    CHECK(strstr(text, "        64.000  \n") != NULL);
    free(text);
}

/* The sums of torch's table fail where the whole is nothing and a part is not; ours say NaN. */
TEST(a_share_of_nothing_is_nan)
{
    static table_case rows;
    mtprof__table_input input;
    size_t length;
    int status;
    case_row *row = case_add(&rows, "op");
    row->row.self_device_ns = row->row.device_ns = 5000; /* no device row: the sum is 0 */
    snprintf(rows.device, sizeof rows.device, "cuda");
    case_input(&rows, &input);
    char *text = case_write(&input, NULL, &length, &status);
    REQUIRE_OK(status);
    CHECK(strstr(text, "     5.000us           NaN       5.000us") != NULL);
    CHECK(strstr(text, "\nSelf CUDA time total: 0.000us\n") != NULL);
    free(text);
}
