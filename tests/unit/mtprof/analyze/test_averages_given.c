/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages of rows that a caller made: torch's tables from them byte for byte, what is filled in,
 * what is refused.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "table_cases.h"

#include <mtprof/averages.h>
#include <mtprof/export.h>
#include <mtprof/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct text_buffer {
    char bytes[65536];
    size_t length;
} text_buffer;

static text_buffer written;

static int take(void *context, const void *bytes, size_t length)
{
    text_buffer *buffer = context;
    if (buffer->length + length >= sizeof buffer->bytes) {
        return ENOSPC;
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    return 0;
}

static const char *table_of(mtprof_averages *averages, const mtprof_table_options *options)
{
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = take};
    written.length = 0;
    written.bytes[0] = '\0';
    REQUIRE_OK(mtprof_averages_table(averages, options, &output));
    return written.bytes;
}

/* The rows of a case as a caller gives them. */
static mtprof_averages *give(const table_case *from)
{
    static mtprof_row rows[CASE_ROWS];
    static mtprof_text frames[CASE_ROWS * CASE_FRAMES];
    mtprof_given_rows given = {.struct_size = sizeof given, .rows = rows, .frames = frames};
    mtprof_averages *averages = NULL;
    for (uint32_t i = 0; i < from->n_rows; i++) {
        rows[i] = from->rows[i].row;
        rows[i].stack = from->rows[i].n_frames != 0 ? given.n_frames + 1 : 0;
        rows[i].stack_n = from->rows[i].n_frames;
        for (uint32_t k = 0; k < from->rows[i].n_frames; k++) {
            frames[given.n_frames++] = from->rows[i].frames[k];
        }
    }
    given.count = from->n_rows;
    given.memory = from->memory;
    given.flops = from->flops;
    given.device_type = from->device[0] != '\0' ? from->device : NULL;
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    return averages;
}

TEST(given_rows_as_torch_prints_them)
{
    size_t size;
    char *text = cases_load("tables.txt", &size);
    char *at = text;
    static table_case now;
    unsigned n = 0;
    while (cases_next(&at, text + size, &now)) {
        mtprof_averages *averages = give(&now);
        if (now.sort_by[0] != '\0') {
            REQUIRE_OK(mtprof_averages_sort(averages, now.sort_by));
        }
        const char *ours = table_of(averages, &now.options);
        if (written.length != now.expected_length ||
            memcmp(ours, now.expected, now.expected_length) != 0) {
            FAIL("case %s: %zu bytes, expected %zu", now.name, written.length, now.expected_length);
        }
        mtprof_averages_free(averages);
        n++;
    }
    free(text);
    CHECK(n >= 90);
}

static mtprof_row plain_row(const char *key, int64_t ns)
{
    return (mtprof_row){.struct_size = sizeof(mtprof_row),
                        .key = {key, strlen(key)},
                        .count = 2,
                        .cpu_ns = ns,
                        .self_cpu_ns = ns,
                        .step = INT32_MIN,
                        .node_id = -1,
                        .kind = MTPROF_EVENT_KIND_OP};
}

TEST(rows_come_back)
{
    mtprof_row rows[2] = {plain_row("a", 1000), plain_row("b", 3000)};
    rows[1].device = 1;
    mtprof_given_rows given = {
        .struct_size = sizeof given, .count = 2, .rows = rows, .device_type = "NPU"};
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    CHECK_EQ_U64(mtprof_averages_count(averages), 2);
    CHECK(mtprof_averages_model(averages) == NULL);
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_row(averages, 1, &row));
    CHECK_EQ_STR(row.key.bytes, "b");
    CHECK_EQ_STR(row.device_type.bytes, "NPU");
    CHECK_EQ_U64(row.name, UINT32_MAX);
    REQUIRE_OK(mtprof_averages_get_row(averages, 0, &row));
    CHECK_EQ_STR(row.device_type.bytes, "CPU");
    REQUIRE_OK(mtprof_averages_get_total(averages, &row));
    CHECK_EQ_I64(row.cpu_ns, 4000);
    CHECK_EQ_U64(row.count, 4);
    REQUIRE_OK(mtprof_averages_sort(averages, "cpu_time_total"));
    REQUIRE_OK(mtprof_averages_get_row(averages, 0, &row));
    CHECK_EQ_STR(row.key.bytes, "b");
    CHECK_EQ_I64(mtprof_averages_sort(averages, "foo"), MTPROF_EINVAL);
    mtprof_averages_free(averages);
}

TEST(what_needs_events_is_absent)
{
    mtprof_row row = plain_row("a", 1000);
    mtprof_given_rows given = {.struct_size = sizeof given, .count = 1, .rows = &row};
    mtprof_averages *averages = NULL;
    int64_t ns = 0;
    mtprof_row_noise noise = {.struct_size = sizeof noise, .steps = 7, .mean_ns = 1};
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    REQUIRE_OK(mtprof_averages_get_quantile(averages, 0, 0.5, &ns));
    CHECK_EQ_I64(ns, -1);
    CHECK_EQ_I64(mtprof_averages_get_quantile(averages, 1, 0.5, &ns), MTPROF_EINVAL);
    REQUIRE_OK(mtprof_averages_get_noise(averages, 0, &noise));
    CHECK_EQ_U64(noise.steps, 0);
    CHECK(noise.mean_ns == 0);
    mtprof_table_options options = {.struct_size = sizeof options, .quantiles = 1};
    CHECK(strstr(table_of(averages, &options), "--") != NULL);
    options.format = MTPROF_TABLE_JSON;
    CHECK(strstr(table_of(averages, &options), "\"a\"") != NULL);
    mtprof_averages_free(averages);
}

TEST(bad_rows_are_refused)
{
    mtprof_row row = plain_row("a", 1000);
    mtprof_text frame = {"f", 1};
    mtprof_averages *averages = NULL;
    mtprof_given_rows given = {.struct_size = sizeof given, .count = 1, .rows = &row};
    CHECK_EQ_I64(mtprof_averages_from_rows(NULL, &averages), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, NULL), MTPROF_EINVAL);
    given.struct_size = 4;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    given.struct_size = sizeof given;
    given.rows = NULL;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    given.rows = &row;
    given.n_frames = 1;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    given.frames = &frame;
    row.stack = 1;
    row.stack_n = 2;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    row.stack = UINT32_MAX;
    row.stack_n = UINT32_MAX;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    CHECK(averages == NULL);
    row.stack = 1;
    row.stack_n = 1;
    frame.bytes = NULL;
    CHECK_EQ_I64(mtprof_averages_from_rows(&given, &averages), MTPROF_EINVAL);
    frame.bytes = "f";
    row.overload = (mtprof_text){NULL, 7}; /* no bytes: an empty text */
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    mtprof_row read = {.struct_size = sizeof read};
    REQUIRE_OK(mtprof_averages_get_row(averages, 0, &read));
    CHECK_EQ_U64(read.overload.length, 0);
    mtprof_averages_free(averages);
}

TEST(no_rows_are_an_empty_table_and_trace)
{
    mtprof_given_rows given = {.struct_size = sizeof given};
    mtprof_averages *averages = NULL;
    char path[] = "/tmp/test_averages_given.XXXXXX";
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    CHECK_EQ_STR(table_of(averages, NULL), "");
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    close(file);
    REQUIRE_OK(mtprof_averages_export_chrome(averages, path, NULL));
    FILE *stream = fopen(path, "r");
    REQUIRE(stream != NULL);
    char text[64] = "";
    CHECK(fgets(text, sizeof text, stream) != NULL);
    CHECK_EQ_STR(text, "{\"traceEvents\":[]}\n");
    fclose(stream);
    unlink(path);
    mtprof_averages_free(averages);
}

TEST(losses_are_told)
{
    mtprof_row row = plain_row("a", 1000);
    mtprof_health health = {.struct_size = sizeof health, .truncated = 3};
    mtprof_given_rows given = {
        .struct_size = sizeof given, .count = 1, .rows = &row, .health = &health};
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_from_rows(&given, &averages));
    CHECK(strstr(table_of(averages, NULL), "3 scopes truncated") != NULL);
    mtprof_averages_free(averages);
}

TEST(names_that_are_not_listed)
{
    CHECK(mtprof_averages_lists((mtprof_text){"aten::add", 9}));
    CHECK(!mtprof_averages_lists((mtprof_text){"aten::is_leaf", 13}));
    CHECK(mtprof_averages_lists((mtprof_text){"aten::is_leaf", 12}));
}
