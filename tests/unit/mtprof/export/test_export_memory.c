/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory timeline, recorded live and exported: numbers that are known beforehand
 * (support/fake_training.h), the three forms against each other, devices, errors, no memory.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/fake_training.h"
#include "text_sink.h"

#include <mtprof/export.h>
#include <mtprof/mtprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WANTS = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS | MTPROF_WANT_STACKS |
            MTPROF_WANT_ALLOCS | MTPROF_WANT_DETAILS,
    LAYERS = 3,
    STEPS = 2,
    BATCH = 4,
    WIDTH = 16,
    B = BATCH * WIDTH * 4, /* an activation */
    P = WIDTH * WIDTH * 4, /* a parameter */
    CATEGORIES = 8
};

enum {
    PARAMETER,
    OPTIMIZER_STATE,
    INPUT,
    TEMPORARY,
    ACTIVATION,
    GRADIENT,
    AUTOGRAD_DETAIL,
    UNKNOWN
};

static mtprof_session *start(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = wants};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

static mtprof_model *finish(mtprof_session *session)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    CHECK_OK(mtprof_session_close(session));
    return model;
}

static mtprof_model *train(uint32_t device, uint64_t wants)
{
    fake_training training = {
        .device = device, .layers = LAYERS, .steps = STEPS, .batch = BATCH, .width = WIDTH};
    fake_training_prepare(&training);
    mtprof_session *session = start(wants);
    fake_training_run(&training);
    return finish(session);
}

typedef struct row {
    long long time_ns, action, bytes, category;
} row;

/* Rows of memory_raw; the caller frees them. */
static row *parse_raw(const char *text, size_t *n)
{
    row *rows = calloc(strlen(text) / 8 + 1, sizeof *rows);
    REQUIRE(rows != NULL);
    REQUIRE(text[0] == '[');
    *n = 0;
    for (const char *at = text + 1; *at == '[';) {
        int used = 0;
        row *r = &rows[*n];
        REQUIRE(sscanf(at, "[%lld, %lld, %lld, %lld]%n", &r->time_ns, &r->action, &r->bytes,
                       &r->category, &used) == 4 &&
                used > 0);
        ++*n;
        at += used;
        at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
    }
    return rows;
}

static row *export_raw(mtprof_model *model, const mtprof_export_options *options, size_t *n)
{
    mtprof_status status;
    char *text = text_export(model, MTPROF_EXPORT_MEMORY_RAW, options, &status);
    REQUIRE_OK(status);
    row *rows = parse_raw(text, n);
    free(text);
    return rows;
}

/* The most that each category ever had, and the whole. */
static void peaks_of(const row *rows, size_t n, long long *peaks, long long *peak)
{
    long long sizes[CATEGORIES] = {0};
    long long total = 0;
    memset(peaks, 0, CATEGORIES * sizeof *peaks);
    *peak = 0;
    for (size_t i = 0; i < n; i++) {
        REQUIRE(rows[i].category >= 0 && rows[i].category < CATEGORIES);
        long long *size = &sizes[rows[i].category];
        *size += rows[i].bytes;
        total += rows[i].bytes;
        CHECK(*size >= 0);
        peaks[rows[i].category] = *size > peaks[rows[i].category] ? *size : peaks[rows[i].category];
        *peak = total > *peak ? total : *peak;
    }
}

TEST(training_run_has_the_sizes_it_must_have)
{
    mtprof_model *model = train(1, WANTS);
    size_t n;
    row *rows = export_raw(model, NULL, &n); /* the accelerator is the default */
    long long peaks[CATEGORIES];
    long long peak;
    peaks_of(rows, n, peaks, &peak);
    CHECK_EQ_I64(peaks[PARAMETER], LAYERS * P);
    CHECK_EQ_I64(peaks[OPTIMIZER_STATE], LAYERS * P);
    CHECK_EQ_I64(peaks[INPUT], B);
    CHECK_EQ_I64(peaks[TEMPORARY], B);
    CHECK_EQ_I64(peaks[ACTIVATION], LAYERS * 2 * B + 4 + B); /* and what the backward starts with */
    CHECK_EQ_I64(peaks[GRADIENT], LAYERS * P);
    CHECK_EQ_I64(peaks[AUTOGRAD_DETAIL], 2 * B);
    CHECK_EQ_I64(peaks[UNKNOWN], 0);
    /* Parameters were there before; they have the size that their shapes say. */
    for (size_t i = 0; i < LAYERS; i++) {
        CHECK_EQ_I64(rows[i].time_ns, -1);
        CHECK_EQ_I64(rows[i].action, 1);
        CHECK_EQ_I64(rows[i].bytes, P);
        CHECK_EQ_I64(rows[i].category, PARAMETER);
    }
    size_t changes = 0;
    for (size_t i = LAYERS; i < n; i++) {
        CHECK(rows[i].action >= 2 && rows[i].action <= 4);
        CHECK(rows[i].time_ns > 1000000000000000000);
        CHECK(i == LAYERS || rows[i].time_ns >= rows[i - 1].time_ns);
        changes += rows[i].action == 3;
    }
    /* Each step changes each parameter, each but the first each state: pairs. */
    CHECK_EQ_U64(changes, 2 * LAYERS * (2 * STEPS - 1));
    free(rows);
    mtprof_model_free(model);
}

/* Where an action goes: up, down, neither (the block stays what it is), or from here to there. */
static int way_of(const row *r)
{
    bool moves = r->action == 3 && r[0].category != r[1].category;
    return r->action == 2 ? 1 : r->action == 4 ? -1 : moves ? 2 : 0;
}

/* torch's [times, sizes] from the raw rows: equal microseconds are one row as long as they go one
 * way, what was there before is one with the time of the next. */
static char *plot_of(const row *rows, size_t n)
{
    char *times = NULL;
    char *sizes = NULL;
    size_t size[2];
    FILE *t = open_memstream(&times, &size[0]);
    FILE *s = open_memstream(&sizes, &size[1]);
    REQUIRE(t != NULL && s != NULL);
    long long now[CATEGORIES] = {0};
    bool first = true;
    int way = 0;
    for (size_t i = 0; i < n; i++) {
        int mine = way_of(&rows[i]);
        now[rows[i].category] += rows[i].bytes;
        if (rows[i].action == 3) { /* two rows */
            i++;
            now[rows[i].category] += rows[i].bytes;
        }
        way = mine != 0 ? mine : way;
        long long us = rows[i].time_ns == -1 ? -1 : rows[i].time_ns / 1000;
        long long next = i + 1 == n                  ? -2
                         : rows[i + 1].time_ns == -1 ? -1
                                                     : rows[i + 1].time_ns / 1000;
        int next_way = i + 1 == n ? 0 : way_of(&rows[i + 1]);
        if (us == next && (next_way == 0 || way == 0 || next_way == way)) {
            continue;
        }
        way = 0;
        fprintf(t, "%s%lld", first ? "" : ", ", us == -1 ? next : us);
        fprintf(s, "%s[0", first ? "" : ", ");
        for (int k = 0; k < CATEGORIES; k++) {
            fprintf(s, ", %lld", now[k]);
        }
        fprintf(s, "]");
        first = false;
    }
    fclose(t);
    fclose(s);
    char *text = NULL;
    REQUIRE(asprintf(&text, "[[%s], [%s]]", times, sizes) > 0);
    free(times);
    free(sizes);
    return text;
}

TEST(the_plot_is_the_sum_of_the_raw_rows)
{
    mtprof_model *model = train(1, WANTS);
    size_t n;
    row *rows = export_raw(model, NULL, &n);
    char *wanted = plot_of(rows, n);
    mtprof_status status;
    char *got = text_export(model, MTPROF_EXPORT_MEMORY, NULL, &status);
    CHECK_OK(status);
    CHECK_EQ_STR(got, wanted);
    free(got);
    got = text_export(model, MTPROF_EXPORT_MEMORY, NULL, &status); /* repeatable */
    CHECK_EQ_STR(got, wanted);
    free(got);
    free(wanted);
    free(rows);
    mtprof_model_free(model);
}

TEST(devices_are_chosen_by_name)
{
    mtprof_model *model = train(1, WANTS);
    mtprof_export_options options = {.struct_size = sizeof options};
    static const struct {
        const char *device;
        long long parameters;
    } known[] = {{"npu:0", LAYERS * P}, {"NPU", LAYERS * P}, {"cpu", 0}, {"CPU:0", 0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        options.device = known[i].device;
        size_t n;
        row *rows = export_raw(model, &options, &n);
        long long peaks[CATEGORIES];
        long long peak;
        peaks_of(rows, n, peaks, &peak);
        CHECK_EQ_I64(peaks[PARAMETER], known[i].parameters);
        CHECK_EQ_I64(peaks[INPUT], B); /* the batch is on the host, its copy on the device */
        free(rows);
    }
    static const char *const unknown[] = {"npu:1", "cuda", "", "np", "cpu:1", "npu:00"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        mtprof_status status;
        options.device = unknown[i];
        CHECK(text_export(model, MTPROF_EXPORT_MEMORY_RAW, &options, &status) == NULL);
        CHECK_EQ_I64(status, MTPROF_EINVAL);
        char wanted[96];
        snprintf(wanted, sizeof wanted, "no device \"%s\", there are: cpu, npu:0", unknown[i]);
        CHECK(strstr(mtprof_last_error()->message, wanted) != NULL);
    }
    mtprof_model_free(model);

    model = train(0, WANTS); /* no accelerator: the host is the default */
    size_t n;
    row *rows = export_raw(model, NULL, &n);
    CHECK_EQ_I64(rows[0].bytes + rows[1].bytes, B + P);
    free(rows);
    mtprof_model_free(model);
}

/* torch-contract 6.2.1, word for word. */
TEST(missing_flags_are_named)
{
    static const struct {
        uint64_t without;
        const char *message;
    } cases[] = {
        {MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS | MTPROF_WANT_STACKS,
         "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."},
        {MTPROF_WANT_ALLOCS | MTPROF_WANT_STACKS,
         "profile_memory=True, with_stack=True required for memory profiling."},
        {MTPROF_WANT_INPUTS | MTPROF_WANT_STACKS,
         "record_shapes=True, with_stack=True required for memory profiling."},
        {MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS,
         "record_shapes=True, profile_memory=True required for memory profiling."},
        {MTPROF_WANT_TENSORS, "record_shapes=True required for memory profiling."},
        {MTPROF_WANT_ALLOCS, "profile_memory=True required for memory profiling."},
        {MTPROF_WANT_STACKS, "with_stack=True required for memory profiling."},
    };
    static const enum mtprof_export_format formats[] = {
        MTPROF_EXPORT_MEMORY, MTPROF_EXPORT_MEMORY_RAW, MTPROF_EXPORT_MEMORY_HTML};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_model *model = train(0, WANTS & ~cases[i].without);
        for (size_t k = 0; k < 3; k++) {
            mtprof_status status;
            CHECK(text_export(model, formats[k], NULL, &status) == NULL);
            CHECK_EQ_I64(status, MTPROF_ENOTSUP);
            CHECK_EQ_STR(mtprof_last_error()->message, cases[i].message);
        }
        mtprof_memory_peak peak = {.struct_size = sizeof peak, .end_bytes = 7};
        CHECK_EQ_I64(mtprof_export_to(model, MTPROF_EXPORT_COUNT, NULL, NULL), MTPROF_EINVAL);
        REQUIRE_OK(mtprof_model_get_memory_peak(model, NULL, &peak));
        CHECK_EQ_I64(peak.bytes, -1);
        CHECK_EQ_I64(peak.end_bytes, 0);
        CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EINVAL); /* an answer leaves it alone */
        mtprof_model_free(model);
    }
}

TEST(a_device_without_allocations_has_zeros)
{
    mtprof_model *model = finish(start(WANTS));
    mtprof_memory memory = {.struct_size = sizeof memory, .allocations = 7, .peak_bytes = 7};
    REQUIRE_OK(mtprof_model_get_memory(model, 0, &memory));
    CHECK_EQ_U64(memory.allocations + memory.frees, 0);
    CHECK_EQ_I64(memory.peak_bytes, 0);
    CHECK_EQ_I64(mtprof_model_get_memory(model, 200, &memory), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "model memory: there is no device 200");
    mtprof_model_free(model);
}

TEST(an_empty_trace_gives_empty_files)
{
    mtprof_model *model = finish(start(WANTS));
    mtprof_status status;
    char *text = text_export(model, MTPROF_EXPORT_MEMORY, NULL, &status);
    CHECK_EQ_STR(text, "[[], []]");
    free(text);
    text = text_export(model, MTPROF_EXPORT_MEMORY_RAW, NULL, &status);
    CHECK_EQ_STR(text, "[]");
    free(text);
    text = text_export(model, MTPROF_EXPORT_MEMORY_HTML, NULL, &status);
    CHECK_OK(status);
    CHECK(text != NULL && strstr(text, "rows: [[0,0,0,0,0,0,0,0,0]]") != NULL);
    free(text);
    mtprof_model_free(model);
}

/* ---- the page -------------------------------------------------------------------------------- */

static char *export_html(mtprof_model *model)
{
    mtprof_status status;
    char *text = text_export(model, MTPROF_EXPORT_MEMORY_HTML, NULL, &status);
    REQUIRE_OK(status);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) {
        n++;
    }
    return n;
}

TEST(the_page_stands_alone_and_tells_the_peak)
{
    mtprof_model *model = train(1, WANTS);
    size_t n;
    row *rows = export_raw(model, NULL, &n);
    long long peaks[CATEGORIES];
    long long peak;
    peaks_of(rows, n, peaks, &peak);
    char *text = export_html(model);
    CHECK(strncmp(text, "<!DOCTYPE html>\n", 16) == 0);
    CHECK(strstr(text, "<title>Memory timeline of npu:0, process ") != NULL);
    static const char *const outside[] = {"http:", "https:", "src=", "@import", "url(", "fetch("};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        CHECK_EQ_U64(count_of(text, outside[i]), 0);
    }
    char wanted[64];
    snprintf(wanted, sizeof wanted, "peak <b>%.2f KiB</b>", (double)peak / 1024);
    CHECK(strstr(text, wanted) != NULL);
    /* The table needs no script: every category and its own peak. */
    CHECK_EQ_U64(count_of(text, "<tr><th scope=\"row\"><i class=\"c"), CATEGORIES);
    snprintf(wanted, sizeof wanted, "<td>%.2f KiB</td>", (double)peaks[PARAMETER] / 1024);
    CHECK(strstr(text, wanted) != NULL);
    CHECK(strstr(text, "whole: true") != NULL);
    CHECK_EQ_U64(count_of(text, "\"ProfilerStep#"), STEPS);
    CHECK_EQ_U64(count_of(text, "<script>"), 1);
    CHECK_EQ_U64(count_of(text, "</script>"), 1);
    CHECK_EQ_U64(count_of(text, "</html>"), 1);
    free(text);
    free(rows);
    mtprof_model_free(model);
}

/* The most of a row of the plot, and of each category in any row. */
static long long plot_peak(const char *plot, long long *most)
{
    long long peak = 0;
    const char *at = strstr(plot, "], [[");
    REQUIRE(at != NULL);
    at += 4;
    memset(most, 0, CATEGORIES * sizeof *most);
    while (at[0] == '[' || at[0] == ',') {
        at = strchr(at, '0') + 1;
        long long sum = 0;
        for (int k = 0; k < CATEGORIES; k++) {
            char *end;
            long long bytes = strtoll(at + 2, &end, 10);
            at = end;
            sum += bytes;
            most[k] = bytes > most[k] ? bytes : most[k];
        }
        peak = sum > peak ? sum : peak;
        at++;
    }
    return peak;
}

/* A temporary inside an op is allocated and freed at one time: it is in the peak all the same. */
TEST(the_forms_of_a_timeline_have_one_peak)
{
    static const char *const devices[] = {NULL, "cpu", "npu:0"};
    mtprof_model *model = train(1, WANTS);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        size_t n;
        mtprof_export_options options = {.struct_size = sizeof options, .device = devices[i]};
        row *rows = export_raw(model, &options, &n);
        long long peaks[CATEGORIES], most[CATEGORIES];
        long long peak;
        peaks_of(rows, n, peaks, &peak);
        mtprof_memory_peak found = {.struct_size = sizeof found};
        REQUIRE_OK(mtprof_model_get_memory_peak(model, &options, &found));
        CHECK_EQ_I64(found.bytes, peak);
        mtprof_status status;
        char *plot = text_export(model, MTPROF_EXPORT_MEMORY, &options, &status);
        REQUIRE_OK(status);
        CHECK_EQ_I64(plot_peak(plot, most), peak);
        long long sum = 0;
        for (int k = 0; k < CATEGORIES; k++) {
            CHECK_EQ_I64(found.most[k], peaks[k]);
            CHECK_EQ_I64(most[k], peaks[k]);
            sum += found.categories[k];
        }
        CHECK_EQ_I64(sum, peak);
        char *page = text_export(model, MTPROF_EXPORT_MEMORY_HTML, &options, &status);
        char wanted[64];
        if (peak < 1024) {
            snprintf(wanted, sizeof wanted, "peak <b>%lld B</b>", peak);
        } else {
            snprintf(wanted, sizeof wanted, "peak <b>%.2f KiB</b>", (double)peak / 1024);
        }
        CHECK(strstr(page, wanted) != NULL);
        free(page);
        free(plot);
        free(rows);
    }
    mtprof_memory_peak none = {.struct_size = 0};
    CHECK_EQ_I64(mtprof_model_get_memory_peak(model, NULL, &none), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_model_get_memory_peak(model, NULL, NULL), MTPROF_EINVAL);
    mtprof_model_free(model);
}

TEST(names_cannot_break_out_of_the_page)
{
    mtprof_session *session = start(WANTS);
    static const char evil[] = "</script><b>\"\\\xFF";
    mtprof_token step = mtprof_begin_named(evil, sizeof evil - 1, MTPROF_KIND_STEP);
    mtprof_alloc(0, 0x1000, 64, 64, 0);
    mtprof_end(step);
    mtprof_model *model = finish(session);
    char *text = export_html(model);
    CHECK_EQ_U64(count_of(text, "</script>"), 1);
    CHECK(strstr(text, "\"\\u003c/script>\\u003cb>\\\"\\\\\xEF\xBF\xBD\"") != NULL);
    free(text);
    mtprof_model_free(model);
}

/* Marks of very many steps are thinned out, and the page says so. */
TEST(a_page_says_which_steps_it_marks)
{
    mtprof_session *session = start(WANTS);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "ProfilerStep#%d", i);
        mtprof_token step = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_STEP);
        mtprof_alloc(0, 0x1000, 64, 64, 0);
        mtprof_alloc(0, 0x1000, -64, 0, 0);
        mtprof_end(step);
    }
    mtprof_model *model = finish(session);
    char *text = export_html(model);
    CHECK(strstr(text, "stride: 4,") != NULL);
    CHECK_EQ_U64(count_of(text, "\"ProfilerStep#"), 250);
    CHECK_EQ_U64(count_of(text, "\"ProfilerStep#996\""), 1);
    free(text);
    mtprof_model_free(model);
}

/* 40,000 small allocations and a short high one: it is in what is left of them. */
TEST(a_long_timeline_keeps_its_peak)
{
    enum {
        SMALL = 40000,
        BIG_BYTES = 123456789
    };
    mtprof_session *session = start(WANTS);
    for (uint64_t i = 0; i < SMALL; i++) {
        MTPROF_SCOPE("work"); /* moves the time on */
        mtprof_alloc(0, 0x1000, 64, 64, 0);
        if (i == SMALL / 3) {
            mtprof_alloc(0, 0x9000, BIG_BYTES, 64 + BIG_BYTES, 0);
            mtprof_alloc(0, 0x9000, -BIG_BYTES, 64, 0);
        }
        mtprof_alloc(0, 0x1000, -64, 0, 0);
    }
    mtprof_model *model = finish(session);
    char *text = export_html(model);
    CHECK(strstr(text, "whole: false") != NULL);
    text_sink sink = {0};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &sink, .write = text_sink_write};
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    CHECK_OK(mtprof_export_to(model, MTPROF_EXPORT_MEMORY_HTML, &output, &options));
    CHECK(report.left_out > 2 * SMALL - 6000); /* drawn only as parts of their slices */
    free(sink.text);
    CHECK(strstr(text, "peak <b>117.74 MiB</b>") != NULL);
    char *rows = strstr(text, "rows: [");
    REQUIRE(rows != NULL);
    char *end = strstr(rows, "]};");
    REQUIRE(end != NULL);
    *end = '\0';
    CHECK_EQ_U64(count_of(rows, ",123456853]"), 1); /* the row: all of it unknown */
    size_t n = count_of(rows, "\n[");
    CHECK(n > 100 && n <= 6000);
    /* In order of time. */
    long long last = -1;
    for (const char *at = strchr(rows, '['); (at = strchr(at + 1, '[')) != NULL;) {
        long long time;
        if (sscanf(at, "[%lld,", &time) == 1) {
            CHECK(time >= last);
            last = time;
        }
    }
    free(text);
    mtprof_model_free(model);
}

/* ---- trouble --------------------------------------------------------------------------------- */

TEST(every_refused_request_is_told)
{
    mtprof_model *model = train(1, WANTS);
    static const enum mtprof_export_format formats[] = {
        MTPROF_EXPORT_MEMORY, MTPROF_EXPORT_MEMORY_RAW, MTPROF_EXPORT_MEMORY_HTML};
    for (size_t k = 0; k < 3; k++) {
        mtprof_status status;
        free(text_export(model, formats[k], NULL, &status));
        REQUIRE_OK(status);
        uint64_t refused = 0;
        for (uint64_t nth = 1; status != MTPROF_OK || nth == 1; nth++) {
            mtb_fail_nth(nth, false);
            char *text = text_export(model, formats[k], NULL, &status);
            mtb_fail_nth(0, false);
            CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
            CHECK((text == NULL) == (status != MTPROF_OK));
            refused += status != MTPROF_OK;
            free(text);
        }
        CHECK(refused > 10);
    }
    mtprof_model_free(model);
}

TEST(an_output_that_fails)
{
    mtprof_model *model = train(1, WANTS);
    text_sink sink = {.fail_after = 100};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &sink, .write = text_sink_write};
    CHECK_EQ_I64(mtprof_export_to(model, MTPROF_EXPORT_MEMORY_HTML, &output, NULL), MTPROF_EIO);
    free(sink.text);
    mtprof_model_free(model);
}

TEST(nonsense_in_allocations)
{
    mtprof_session *session = start(WANTS);
    uint64_t state = mt_test_seed();
    for (int i = 0; i < 20000; i++) {
        uint64_t r = mt_test_random(&state);
        mtprof_alloc((uint32_t)(r % 3), r >> 60, (int64_t)mt_test_random(&state),
                     mt_test_random(&state), r);
    }
    mtprof_model *model = finish(session);
    mtprof_export_options options = {.struct_size = sizeof options, .device = "cpu"};
    mtprof_status status;
    for (int format = MTPROF_EXPORT_MEMORY; format <= MTPROF_EXPORT_MEMORY_HTML; format++) {
        free(text_export(model, (enum mtprof_export_format)format, &options, &status));
        CHECK_OK(status);
    }
    mtprof_model_free(model);
}
