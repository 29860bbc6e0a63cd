/* SPDX-License-Identifier: Apache-2.0
 *
 * Round trips: a random trace as .mtt, as Chrome JSON, read back. Both models give the same tables,
 * whatever they are grouped by; where rows are equal their order is that of Ev Idx.
 *
 * And every export of every random trace, also of hostile ones, is a file that our own check, or
 * the grammar of its format, accepts.
 *
 * A short run takes a sample of one in 50 of the 10,000 traces of a long one (MT_LONG=1).
 */
#include "base/json/json_strict.h"
#include "harness/mt_test.h"
#include "support/traces/model_view.h"
#include "support/traces/random_trace.h"

#include <mtprof/averages.h>
#include <mtprof/check.h>
#include <mtprof/export.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACES_LONG = 10000,
    SHARE = 50,
    STEPS = 240
};

/* ---- outputs --------------------------------------------------------------------------------- */

typedef struct text {
    char *bytes; /* followed by a zero byte */
    size_t n, capacity, at;
} text;

static int keep(void *context, const void *bytes, size_t length)
{
    text *t = context;
    if (t->n + length + 1 > t->capacity) {
        t->capacity = (t->n + length + 1) * 2;
        t->bytes = realloc(t->bytes, t->capacity);
        if (t->bytes == NULL) {
            return ENOMEM;
        }
    }
    memcpy(t->bytes + t->n, bytes, length);
    t->n += length;
    t->bytes[t->n] = 0;
    return 0;
}

static mtprof_output output_to(text *t)
{
    t->n = t->at = 0;
    return (mtprof_output){.struct_size = sizeof(mtprof_output), .context = t, .write = keep};
}

static bool save(const text *t, const char *path)
{
    FILE *file = fopen(path, "wb");
    bool fine = file != NULL && fwrite(t->bytes, 1, t->n, file) == t->n;
    return file != NULL && fclose(file) == 0 && fine;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The rows of host events in their order, one name a line: Ev Idx breaks ties among these. */
static void write_host_rows(const mtprof_averages *averages, text *out)
{
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        mtprof_row row = {.struct_size = sizeof row};
        REQUIRE_OK(mtprof_averages_get_row(averages, i, &row));
        if (row.device == 0 && row.kind <= MTPROF_EVENT_KIND_LAUNCH) {
            keep(out, row.key.bytes, row.key.length);
            keep(out, "\n", 1);
        }
    }
}

static bool write_table(mtprof_model *model, uint32_t group, text *out, text *hosts)
{
    mtprof_averages_options options = {.struct_size = sizeof options, .group = group};
    mtprof_table_options table = {.struct_size = sizeof table,
                                  .row_limit = -1,
                                  .max_name_column_width = -1,
                                  .max_shapes_column_width = -1,
                                  .time_unit = "us",
                                  .hide_health = 1};
    mtprof_averages *averages = NULL;
    mtprof_output output = output_to(out);
    hosts->n = 0;
    bool fine = CHECK_OK(mtprof_averages_new(model, &options, &averages)) &&
                CHECK_OK(mtprof_averages_table(averages, &table, &output));
    if (fine) {
        write_host_rows(averages, hosts);
    }
    mtprof_averages_free(averages);
    return fine;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Cuts a text into its lines, sorted. */
static char **sorted_lines(text *t, size_t *n)
{
    char **lines = calloc(t->n + 1, sizeof *lines);
    REQUIRE(lines != NULL);
    *n = 0;
    for (char *at = t->n > 0 ? t->bytes : NULL; at != NULL && *at != 0;) {
        char *end = strchr(at, '\n');
        lines[(*n)++] = at;
        at = end != NULL ? end + 1 : NULL;
        if (end != NULL) {
            *end = 0;
        }
    }
    qsort(lines, *n, sizeof *lines, compare_lines);
    return lines;
}

/* Device work has no Ev Idx, so which of two rows that began at the same time comes first is open:
 * the lines of the tables are compared, and the order of the rows of host events. */
static bool same_lines(text *a, text *b, uint32_t group)
{
    size_t n = 0;
    size_t m = 0;
    char **left = sorted_lines(a, &n);
    char **right = sorted_lines(b, &m);
    bool same = CHECK_EQ_U64(n, m);
    for (size_t i = 0; i < n && same; i++) {
        same = strcmp(left[i], right[i]) == 0;
        if (!same) {
            FAIL("grouped by %x:\n  %s\nread back:\n  %s", group, left[i], right[i]);
        }
    }
    free((void *)left);
    free((void *)right);
    return same;
}

static bool same_tables(mtprof_model *a, mtprof_model *b)
{
    static const uint32_t groups[] = {0,
                                      MTPROF_GROUP_SHAPES,
                                      MTPROF_GROUP_STEP,
                                      MTPROF_GROUP_THREAD,
                                      MTPROF_GROUP_OVERLOAD,
                                      MTPROF_GROUP_MODULE,
                                      MTPROF_GROUP_SHAPES | MTPROF_GROUP_STEP |
                                          MTPROF_GROUP_THREAD};
    text tables[2] = {{.n = 0}, {.n = 0}};
    text hosts[2] = {{.n = 0}, {.n = 0}};
    bool same = true;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && same; i++) {
        same = write_table(a, groups[i], &tables[0], &hosts[0]) &&
               write_table(b, groups[i], &tables[1], &hosts[1]) &&
               same_lines(&tables[0], &tables[1], groups[i]) &&
               (hosts[0].n == 0 || CHECK_EQ_STR(hosts[0].bytes, hosts[1].bytes));
    }
    for (size_t i = 0; i < 2; i++) {
        free(tables[i].bytes);
        free(hosts[i].bytes);
    }
    return same;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int show(void *user, const mtprof_finding *finding)
{
    (void)user;
    if (finding->severity == MTPROF_CHECK_ERROR) {
        FAIL("%s at byte %llu: %s", finding->rule, (unsigned long long)finding->offset,
             finding->message);
    }
    return 0;
}

static bool check_accepts(const char *path)
{
    mtprof_check_options options = {
        .struct_size = sizeof options, .most_per_rule = 2, .report = show};
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    return CHECK_OK(mtprof_check(path, &options, &summary)) && CHECK_EQ_U64(summary.errors, 0);
}

static bool round_trip(uint64_t seed)
{
    char path[512];
    text json = {.n = 0};
    rt_options options = {.seed = seed, .steps = STEPS, .plain = true};
    rt_trace trace;
    mtprof_model *back = NULL;
    rt_make(&trace, &options);
    snprintf(path, sizeof path, "%s/trace.json", mt_test_tmpdir());
    mtprof_model_options model_options = {.struct_size = sizeof model_options, .workers = 1};
    mtprof_model *model = model_of_bytes(trace.bytes, trace.size, &model_options);
    mtprof_output output = output_to(&json);
    bool fine =
        model != NULL && CHECK_OK(mtprof_export_to(model, MTPROF_EXPORT_CHROME, &output, NULL)) &&
        CHECK(save(&json, path)) && check_accepts(path) &&
        CHECK_OK(mtprof_model_open(path, &model_options, &back)) && same_tables(model, back);
    mtprof_model_free(back);
    mtprof_model_free(model);
    rt_free(&trace);
    free(json.bytes);
    return fine;
}

TEST(round_trips)
{
    uint64_t seed = mt_test_seed();
    int n = mt_test_long() ? TRACES_LONG : TRACES_LONG / SHARE;
    for (int i = 0; i < n; i++) {
        uint64_t next = mt_test_random(&seed);
        if (!round_trip(next)) {
            FAIL("trace seed %llu, number %d", (unsigned long long)next, i);
            break;
        }
    }
}

/* ---- every export ---------------------------------------------------------------------------- */

static int64_t read_text(void *context, void *buffer, size_t length)
{
    text *t = context;
    size_t n = t->n - t->at < length ? t->n - t->at : length;
    memcpy(buffer, t->bytes + t->at, n);
    t->at += n;
    return (int64_t)n;
}

static bool is_json(text *t)
{
    mtb_json json;
    mtb_json_value value;
    REQUIRE(mtb_json_init(&json, read_text, t));
    bool fine = mtb_json_value_next(&json, &value) && mtb_json_skip(&json, &value) &&
                mtb_json_at_end(&json);
    if (!fine) {
        FAIL("byte %llu: %s", (unsigned long long)json.bad.offset, json.message);
    }
    mtb_json_fini(&json);
    return fine;
}

/* Lines of a folded or stacks file end in a number. */
static bool is_folded(const text *t)
{
    for (const char *line = t->n > 0 ? t->bytes : ""; *line != 0;) {
        size_t n = strcspn(line, "\n");
        size_t digits = 0;
        while (digits < n && line[n - 1 - digits] >= '0' && line[n - 1 - digits] <= '9') {
            digits++;
        }
        if (digits == 0 || digits == n || line[n - 1 - digits] != ' ' || line[n] != '\n') {
            FAIL("no stack and number: %.*s", (int)n, line);
            return false;
        }
        line += n + 1;
    }
    return true;
}

static bool is_acceptable(enum mtprof_export_format format, text *out, const char *path)
{
    switch (format) {
    case MTPROF_EXPORT_CHROME: return CHECK(save(out, path)) && check_accepts(path);
    case MTPROF_EXPORT_SPEEDSCOPE:
    case MTPROF_EXPORT_MEMORY:
    case MTPROF_EXPORT_MEMORY_RAW:
    case MTPROF_EXPORT_EXECUTION: return is_json(out);
    case MTPROF_EXPORT_STACKS:
    case MTPROF_EXPORT_FOLDED: return is_folded(out);
    default: return CHECK(out->n > 0); /* decoded by scripts of their own */
    }
}

static bool export_all(mtprof_model *model, const char *path)
{
    text out = {.n = 0};
    bool fine = true;
    for (int format = 0; format < MTPROF_EXPORT_COUNT && fine; format++) {
        for (uint32_t flavor = 0; flavor < (format == MTPROF_EXPORT_CHROME ? 2 : 1) && fine;
             flavor++) {
            mtprof_export_options options = {.struct_size = sizeof options, .flavor = flavor};
            mtprof_output output = output_to(&out);
            mtprof_status status =
                mtprof_export_to(model, (enum mtprof_export_format)format, &output, &options);
            if (status == MTPROF_ENOTSUP) {
                continue; /* the trace lacks what the format needs */
            }
            fine = CHECK_OK(status) && is_acceptable((enum mtprof_export_format)format, &out, path);
            if (!fine) {
                FAIL("format %s, flavor %u", mtprof_export_name((enum mtprof_export_format)format),
                     flavor);
            }
        }
    }
    free(out.bytes);
    return fine;
}

static void export_traces(bool hostile)
{
    char path[512];
    uint64_t seed = mt_test_seed() + hostile;
    int n = (mt_test_long() ? TRACES_LONG : TRACES_LONG / SHARE) / 2;
    snprintf(path, sizeof path, "%s/export.json", mt_test_tmpdir());
    for (int i = 0; i < n; i++) {
        rt_options options = {
            .seed = mt_test_random(&seed), .steps = STEPS, .hostile = hostile, .any_bytes = true};
        rt_trace trace;
        rt_make(&trace, &options);
        mtprof_model *model = model_of_bytes(trace.bytes, trace.size, NULL);
        bool fine = model != NULL && export_all(model, path);
        mtprof_model_free(model);
        rt_free(&trace);
        if (!fine) {
            FAIL("trace seed %llu, number %d", (unsigned long long)options.seed, i);
            break;
        }
    }
}

TEST(exports_are_accepted)
{
    export_traces(false);
}

TEST(hostile_exports_are_accepted)
{
    export_traces(true);
}

/* As files: compressed, and in parts. */
TEST(files_are_accepted)
{
    uint64_t seed = mt_test_seed() + 2;
    for (int i = 0; i < 10; i++) {
        char path[512];
        rt_options options = {.seed = mt_test_random(&seed), .steps = STEPS, .any_bytes = true};
        rt_trace trace;
        rt_make(&trace, &options);
        mtprof_model *model = model_of_bytes(trace.bytes, trace.size, NULL);
        REQUIRE(model != NULL);
        snprintf(path, sizeof path, "%s/trace.json.gz", mt_test_tmpdir());
        mtprof_status status = mtprof_export(model, MTPROF_EXPORT_CHROME, path, NULL);
        CHECK(status == MTPROF_ENOTSUP || (CHECK_OK(status) && check_accepts(path)));
        snprintf(path, sizeof path, "%s/parts.json", mt_test_tmpdir());
        mtprof_export_report report = {.struct_size = sizeof report};
        mtprof_export_options parts = {
            .struct_size = sizeof parts, .split_bytes = 20000, .report = &report};
        REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, path, &parts));
        for (uint32_t part = 0; part < report.files; part++) {
            if (part > 0) {
                snprintf(path, sizeof path, "%s/parts.%u.json", mt_test_tmpdir(), part);
            }
            CHECK(check_accepts(path));
        }
        mtprof_model_free(model);
        rt_free(&trace);
    }
}
