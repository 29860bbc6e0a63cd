/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of a table that torch does not have, and what every form does with odd bytes (TB1, TB2
 * in table_impl.h).
 */
#include "harness/mt_test.h"
#include "mtprof/export/json_text.h"
#include "table_cases.h"

#include <mtprof/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *write_form(table_case *rows, const mtprof_table_options *options,
                        const mtprof_health *health, size_t *length)
{
    mtprof__table_input input;
    int status;
    case_input(rows, &input);
    input.health = health;
    char *text = case_write(&input, options, length, &status);
    REQUIRE_OK(status);
    return text;
}

#define FORM(format_, ...)    \
    (&(mtprof_table_options){ \
        .struct_size = sizeof(mtprof_table_options), .format = format_, __VA_ARGS__})

static void add_samples(table_case *rows)
{
    case_row *row = case_add(rows, "aten::add_, \"x\"|y");
    row->row.kind = MTPROF_EVENT_KIND_OP;
    row->row.count = 2;
    row->row.cpu_ns = 3001;
    row->row.self_cpu_ns = 2001;
    row->row.min_ns = 1000;
    row->row.max_ns = 2001;
    row->row.input_shapes = (mtprof_text){"[[2, 3]]", 8};
    row->row.step = 4;
    row->frames[0] = (mtprof_text){"a.py(1): f", 10};
    row->frames[1] = (mtprof_text){"b.py(2): <g>", 12};
    row->n_frames = 2;
    row = case_add(rows, "gemm");
    row->row.kind = MTPROF_EVENT_KIND_KERNEL;
    row->row.device = 1;
    row->row.device_ns = row->row.self_device_ns = 1500000;
    row->row.track = 9;
    snprintf(rows->device, sizeof rows->device, "npu");
}

/* ---- data ------------------------------------------------------------------------------------ */

TEST(csv_has_every_field)
{
    static table_case rows;
    size_t length;
    add_samples(&rows);
    char *text = write_form(&rows, FORM(MTPROF_TABLE_CSV), NULL, &length);
    CHECK_EQ_STR(
        text,
        "key,overload_name,input_shapes,module,stack,step,thread,kind,device_type,is_async,"
        "is_user_annotation,scope,node_id,count,cpu_time_total_ns,self_cpu_time_total_ns,"
        "cpu_time_ns,device_time_total_ns,self_device_time_total_ns,device_time_ns,"
        "cpu_memory_usage,self_cpu_memory_usage,device_memory_usage,self_device_memory_usage,"
        "flops,min_ns,p50_ns,p99_ns,max_ns,unrecorded\n"
        "\"aten::add_, \"\"x\"\"|y\",,\"[[2, 3]]\",,\"a.py(1): f;b.py(2): <g>\",4,,op,CPU,false,"
        "false,0,-1,2,3001,2001,1500.5,0,0,0.0,0,0,0,0,0,1000,,,2001,0\n"
        "gemm,,,,,,9,kernel,npu,false,false,0,-1,1,0,0,0.0,1500000,1500000,1500000.0,0,0,0,0,0,0,,,"
        "0,0\n");
    free(text);
}

TEST(json_has_rows_total_and_health)
{
    static table_case rows;
    size_t length;
    add_samples(&rows);
    mtprof_health health = {.lost = 7, .begins = 9, .lost_by = {[1] = 7}};
    char *text = write_form(&rows, FORM(MTPROF_TABLE_JSON), &health, &length);
    CHECK(mtprof__json_valid(text, length));
    CHECK(strstr(text, "\"key\": \"aten::add_, \\\"x\\\"|y\", \"overload_name\": \"\"") != NULL);
    CHECK(strstr(text,
                 "\"stack\": [\"a.py(1): f\", \"b.py(2): <g>\"], \"step\": 4, \"thread\": null"));
    CHECK(strstr(text, "\"key\": \"Total\"") != NULL);
    CHECK(strstr(text, "\"count\": 3, \"cpu_time_total_ns\": 3001") != NULL);
    CHECK(strstr(text, "\"begins\": 9") != NULL);
    CHECK(strstr(text, "\"lost\": 7, \"lost_by\": {\"disk\": 7}") != NULL);
    free(text);
    static table_case none;
    text = write_form(&none, FORM(MTPROF_TABLE_JSON), NULL, &length);
    CHECK(mtprof__json_valid(text, length));
    CHECK(strstr(text, "\"rows\": []") != NULL);
    free(text);
}

TEST(data_has_all_rows_unless_told)
{
    static table_case rows;
    size_t length;
    for (int i = 0; i < 120; i++) {
        case_add(&rows, "op");
    }
    static const struct {
        uint32_t format;
        int64_t limit;
        size_t lines;
    } cases[] = {{MTPROF_TABLE_CSV, 0, 121},    {MTPROF_TABLE_CSV, 5, 6},
                 {MTPROF_TABLE_CSV, -2, 1},     {MTPROF_TABLE_TORCH, 0, 105},
                 {MTPROF_TABLE_TORCH, -1, 125}, {MTPROF_TABLE_TORCH, 110, 115},
                 {MTPROF_TABLE_FIT, 0, 104},    {MTPROF_TABLE_MARKDOWN, 3, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text =
            write_form(&rows, FORM(cases[i].format, .row_limit = cases[i].limit), NULL, &length);
        size_t lines = 0;
        for (size_t at = 0; at < length; at++) {
            lines += text[at] == '\n';
        }
        if (lines != cases[i].lines) {
            FAIL("case %zu: %zu lines, expected %zu", i, lines, cases[i].lines);
        }
        free(text);
    }
}

/* ---- Markdown -------------------------------------------------------------------------------- */

TEST(markdown)
{
    static table_case rows;
    size_t length;
    add_samples(&rows);
    char *text = write_form(&rows, FORM(MTPROF_TABLE_MARKDOWN, .header = "Report"), NULL, &length);
    CHECK_EQ_STR(
        text,
        "Report\n\n"
        "| Name | Self CPU % | Self CPU | CPU total % | CPU total | CPU time avg | Self NPU | "
        "Self NPU % | NPU total | NPU time avg | # of Calls | Step | Thread | Input Shapes | "
        "Source Location |\n"
        "|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|:---|:---|:---|\n"
        "| aten::add\\_, \"x\"\\|y | 100.00% | 2.001us | 149.98% | 3.001us | 1.500us | 0.000us | "
        "0.00% | 0.000us | 0.000us | 2 | 4 |  | \\[\\[2, 3\\]\\] | a.py(1): f<br>b.py(2): \\<g\\> "
        "|\n"
        "| gemm | 0.00% | 0.000us | 0.00% | 0.000us | 0.000us | 1.500ms | 100.00% | 1.500ms | "
        "1.500ms | 1 |  | 9 |  |  |\n\n"
        "Self CPU time total: 2.001us  \n"
        "Self NPU time total: 1.500ms  \n");
    free(text);
}

/* ---- fit ------------------------------------------------------------------------------------- */

static size_t characters(const char *line, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        n += ((unsigned char)line[i] & 0xC0) != 0x80;
    }
    return n;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        size_t n = characters(text, length);
        longest = n > longest ? n : longest;
        text += length + (end != NULL ? 1 : 0);
    }
    return longest;
}

/* From the narrowest that the four columns which always stay can do with. */
TEST(a_fitted_table_fits)
{
    static table_case rows;
    size_t length;
    size_t before = 0;
    add_samples(&rows);
    case_add(&rows, "autograd::engine::evaluate_function: ConvolutionBackward0 日本語の名前");
    rows.memory = rows.flops = true;
    rows.rows[0].row.flops = 12;
    rows.rows[0].row.self_device_memory = 1;
    for (uint32_t width = 45; width < 400; width++) {
        char *text = write_form(&rows, FORM(MTPROF_TABLE_FIT, .width = width, .quantiles = 1), NULL,
                                &length);
        if (longest_line(text) > width) {
            FAIL("width %u: a line has %zu characters", width, longest_line(text));
        }
        CHECK(strncmp(text, "Name", 4) == 0);
        CHECK(strstr(text, "Self CPU") != NULL);
        CHECK(strstr(text, "CPU total") != NULL);
        CHECK(strstr(text, "# of Calls") != NULL);
        CHECK(strstr(text, "\nSelf NPU time total: 1.500 ms\n") != NULL);
        size_t columns = 0;
        for (const char *at = strchr(text, '\n') + 1; *at != '\n'; at++) {
            columns += *at == '-' && at[-1] != '-';
        }
        CHECK(columns >= before); /* a wider terminal never shows less */
        before = columns;
        free(text);
    }
    CHECK(before > 20);
}

TEST(a_fitted_table_as_it_looks)
{
    static table_case rows;
    size_t length;
    case_add(&rows, "aten::convolution_backward_overrideable")->row.self_cpu_ns = 2000;
    rows.rows[0].row.cpu_ns = 1234567;
    case_add(&rows, "x")->row.count = 12;
    char *text = write_form(&rows, FORM(MTPROF_TABLE_FIT, .width = 60), NULL, &length);
    CHECK_EQ_STR(text, "Name                         Self CPU  CPU total  # of Calls\n"
                       "---------------------------  --------  ---------  ----------\n"
                       "aten::convolu…_overrideable  2.000 us   1.235 ms           1\n"
                       "x                                0 ns       0 ns          12\n"
                       "\n"
                       "Self CPU time total: 2.000 us\n");
    free(text);
}

/* Names keep both ends; paths of modules keep their end. One unit for all where it is asked for. */
TEST(a_fitted_table_shows_where_it_cut)
{
    static table_case rows;
    size_t length;
    rows.memory = true;
    case_add(&rows, "autograd::engine::evaluate_function: AddmmBackward0")->row.self_cpu_ns =
        999499;
    rows.rows[0].row.self_cpu_memory = -1536;
    rows.rows[0].row.module = (mtprof_text){"TOP(Net)::forward.a.very.long.way.down(Linear)", 46};
    char *text = write_form(&rows, FORM(MTPROF_TABLE_FIT, .width = 80), NULL, &length);
    CHECK(strstr(text, "\nautograd::en…mmBackward0  ") != NULL);
    CHECK(strstr(text, "  …") != NULL && strstr(text, "down(Linear)\n") != NULL);
    CHECK(strstr(text, "  999.5 us  ") != NULL);
    free(text);
    text =
        write_form(&rows, FORM(MTPROF_TABLE_FIT, .width = 160, .time_unit = "ms"), NULL, &length);
    CHECK(strstr(text, "  0.999 ms  ") != NULL);
    CHECK(strstr(text, "  -1.5 KiB  ") != NULL);
    free(text);
}

/* ---- odd bytes ------------------------------------------------------------------------------- */

TEST(a_name_is_one_line_whatever_its_bytes)
{
    static table_case rows;
    size_t length;
    case_add(&rows, "a\nb\tc\x1b[31m \xff\xc3 \xe2\x80\xae \xc2\x85 \x7f é 日");
    char *text = write_form(&rows, FORM(MTPROF_TABLE_TORCH), NULL, &length);
    CHECK(strstr(text,
                 "    a\\nb\\tc\\x1b[31m \xEF\xBF\xBD\xEF\xBF\xBD \\u202e \\x85 \\x7f é 日  ") !=
          NULL);
    free(text);
}

/* Every form, any bytes: as many lines as ever, all of a table's lines equally wide, JSON valid. */
TEST(random_bytes_in_names)
{
    uint64_t state = mt_test_seed();
    for (int round = 0; round < 300; round++) {
        static table_case rows;
        static char names[4][64];
        size_t length;
        memset(&rows, 0, sizeof rows);
        for (int i = 0; i < 4; i++) {
            size_t n = mt_test_random(&state) % sizeof names[i];
            case_row *row = case_add(&rows, "");
            for (size_t at = 0; at < n; at++) {
                uint64_t random = mt_test_random(&state);
                names[i][at] = (char)(random % 3 == 0 ? random >> 8 : 0xE2 - (random >> 8) % 0x70);
            }
            row->row.key = (mtprof_text){names[i], n};
            row->row.module = (mtprof_text){names[(i + 1) % 4], n};
        }
        char *text = write_form(&rows, FORM(MTPROF_TABLE_JSON), NULL, &length);
        CHECK(mtprof__json_valid(text, length));
        free(text);
        text = write_form(&rows, FORM(MTPROF_TABLE_TORCH), NULL, &length);
        const char *line = text;
        size_t rule = characters(line, (size_t)(strchr(line, '\n') - line));
        for (int i = 0; i < 8; i++) {
            const char *end = strchr(line, '\n');
            REQUIRE(end != NULL);
            CHECK_EQ_U64(characters(line, (size_t)(end - line)), rule);
            line = end + 1;
        }
        CHECK(strncmp(line, "Self CPU time total", 19) == 0);
        free(text);
    }
}

/* ---- health ---------------------------------------------------------------------------------- */

TEST(losses_are_told_and_only_they)
{
    static table_case rows;
    size_t length;
    case_add(&rows, "op");
    const mtprof_health fine = {.begins = 100, .stalls = 3, .evicted = 8};
    const mtprof_health lost = {.lost = 12, .lost_by = {10, 2}, .unmatched = 3, .truncated = 1};
    const char *line =
        "\nNot complete: 12 events lost (memory 10, disk 2), 3 launches unmatched, 1 "
        "scopes truncated\n";
    for (uint32_t format = 0; format < 5; format++) {
        char *text = write_form(&rows, FORM(format), &fine, &length);
        CHECK(strstr(text, "Not complete") == NULL);
        free(text);
        if (format == MTPROF_TABLE_TORCH || format == MTPROF_TABLE_FIT) {
            text = write_form(&rows, FORM(format), &lost, &length);
            CHECK(strstr(text, line) != NULL);
            free(text);
            text = write_form(&rows, FORM(format, .hide_health = 1), &lost, &length);
            CHECK(strstr(text, "Not complete") == NULL);
            free(text);
        }
    }
    char buffer[MTPROF__HEALTH_BYTES];
    mtprof_health worst = {.lost = UINT64_MAX,
                           .unmatched = UINT64_MAX,
                           .truncated = UINT64_MAX,
                           .problems = UINT64_MAX,
                           .problem_bytes = UINT64_MAX,
                           .texts_cut = UINT64_MAX,
                           .stacks_missed = UINT64_MAX};
    memset(worst.lost_by, 0xFF, sizeof worst.lost_by);
    CHECK(mtprof__health_line(&worst, buffer) < sizeof buffer);
    mtprof_health cut = {.texts_cut = 2, .stacks_missed = 1};
    CHECK(mtprof__health_line(&cut, buffer) > 0);
    CHECK(strstr(buffer, ", 2 payloads cut, 1 stack missing") != NULL);
}

/* ---- further columns ------------------------------------------------------------------------- */

TEST(mindtorch_columns_stand_last)
{
    static table_case rows;
    size_t length;
    case_add(&rows, "op")->row.cpu_ns = 1500000;
    char *text = write_form(&rows, FORM(MTPROF_TABLE_TORCH, .mindtorch = 1), NULL, &length);
    CHECK(strstr(text, "  # of Calls     Total(us)         Count  \n") != NULL);
    CHECK(strstr(text, "             1      1500.000             1  \n") != NULL);
    free(text);
}
