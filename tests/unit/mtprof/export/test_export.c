/* SPDX-License-Identifier: Apache-2.0
 *
 * What all exports share: formats, options, files, parts, compression, failures.
 */
#include "base/alloc.h"
#include "base/gzip.h"
#include "chrome_image.h"
#include "harness/mt_test.h"
#include "mtprof/export/json_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPS = 5000 /* two edges each: more than MTPROF__TICKS_BETWEEN */
};

static const char *in_tmp(const char *name)
{
    static char path[4][512];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", mt_test_tmpdir(), name);
    return at;
}

/* All of a file, zero-terminated; NULL: it is not there. To be freed. */
static char *read_all(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    REQUIRE(text != NULL);
    *length = fread(text, 1, size, file);
    text[*length] = '\0';
    fclose(file);
    return text;
}

static int count_files(void)
{
    int n = 0;
    DIR *folder = opendir(mt_test_tmpdir());
    REQUIRE(folder != NULL);
    while (readdir(folder) != NULL) {
        n++;
    }
    closedir(folder);
    return n - 2;
}

/* OPS ops, one after another. */
static mtprof_model *make_model(chrome_image *image)
{
    image_init(image);
    uint32_t op = image_string(image, "aten::add");
    image_control(image, MTPROF_WANT_OPS | MTPROF_WANT_SCOPES);
    image->b.chunk_bytes = 1 << 18;
    image_thread(image, 1);
    for (uint64_t i = 0; i < OPS; i++) {
        image_begin(image, 2000 + 10 * i, MTPROF_KIND_OP, op);
        tb_end(&image->b, 1, 2005 + 10 * i);
    }
    return image_model(image);
}

TEST(formats_have_names_and_endings)
{
    static const struct {
        const char *text;
        enum mtprof_export_format format;
    } cases[] = {{"chrome", MTPROF_EXPORT_CHROME},
                 {"x.json", MTPROF_EXPORT_CHROME},
                 {"a/b.pt.trace.json.gz", MTPROF_EXPORT_CHROME},
                 {"x.pftrace", MTPROF_EXPORT_PERFETTO},
                 {"x.speedscope.json", MTPROF_EXPORT_SPEEDSCOPE},
                 {"x.raw.json.gz", MTPROF_EXPORT_MEMORY_RAW},
                 {"x.html", MTPROF_EXPORT_MEMORY_HTML},
                 {"memory", MTPROF_EXPORT_MEMORY},
                 {"x.csv.gz", MTPROF_EXPORT_CSV},
                 {"x.et.json", MTPROF_EXPORT_EXECUTION}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum mtprof_export_format format = MTPROF_EXPORT_COUNT;
        CHECK_OK(mtprof_export_parse(cases[i].text, &format));
        CHECK_EQ_I64(format, cases[i].format);
    }
    for (int i = 0; i < MTPROF_EXPORT_COUNT; i++) {
        enum mtprof_export_format format = MTPROF_EXPORT_COUNT;
        const char *name = mtprof_export_name((enum mtprof_export_format)i);
        REQUIRE(name != NULL);
        CHECK_OK(mtprof_export_parse(name, &format));
        CHECK_EQ_I64(format, i);
        char path[64];
        snprintf(path, sizeof path, "x%s", mtprof_export_suffix((enum mtprof_export_format)i));
        CHECK_OK(mtprof_export_parse(path, &format));
        CHECK_EQ_I64(format, i);
    }
    enum mtprof_export_format format;
    CHECK_EQ_I64(mtprof_export_parse("nonsense", &format), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "'nonsense'") != NULL);
    CHECK(strstr(mtprof_last_error()->message, "speedscope") != NULL);
    CHECK_EQ_I64(mtprof_export_parse(NULL, &format), MTPROF_EINVAL);
    CHECK(mtprof_export_name(MTPROF_EXPORT_COUNT) == NULL);
    CHECK(mtprof_export_suffix((enum mtprof_export_format) - 1) == NULL);
}

TEST(bad_arguments_are_named)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    mtprof_export_options options = {.struct_size = sizeof options};
    CHECK_EQ_I64(mtprof_export(NULL, MTPROF_EXPORT_CHROME, "x", NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_COUNT, "x", NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, "", NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_export_to(model, MTPROF_EXPORT_CHROME, NULL, NULL), MTPROF_EINVAL);
    options.gzip_level = 4;
    CHECK_EQ_I64(image_export(&image, model, MTPROF_EXPORT_CHROME, &options), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "gzip_level 4") != NULL);
    options.gzip_level = 0;
    options.flavor = 3;
    CHECK_EQ_I64(image_export(&image, model, MTPROF_EXPORT_CHROME, &options), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "flavor 3") != NULL);
    options.struct_size = 0;
    CHECK_EQ_I64(image_export(&image, model, MTPROF_EXPORT_CHROME, &options), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_averages_export_chrome(NULL, "x", NULL), MTPROF_EINVAL);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(a_file_is_what_an_output_gets_and_repeats)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {
        .struct_size = sizeof options, .trace_name = "same", .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    CHECK_EQ_U64(report.events, OPS);
    CHECK_EQ_U64(report.bytes, image.length);
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json"), &options));
        char *text = read_all(in_tmp("x.json"), &n);
        REQUIRE(text != NULL);
        CHECK_EQ_STR(text, image.text);
        CHECK_EQ_U64(report.files, 1);
        CHECK_EQ_U64(report.bytes_written, n);
        free(text);
    }
    CHECK_EQ_I64(count_files(), 1);
    /* An older caller's report: no byte past its size is written. */
    memset(&report, 0x55, sizeof report);
    report.struct_size = 16;
    REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json"), &options));
    CHECK_EQ_U64(report.events, OPS);
    CHECK_EQ_U64(report.clamped, 0x5555555555555555);
    mtprof_model_free(model);
    image_fini(&image);
}

static char *inflate_all(const char *packed, size_t n, size_t *length)
{
    mtb_inflate *inflate = NULL;
    size_t room = (size_t)1 << 24;
    char *text = malloc(room);
    size_t taken = 0;
    REQUIRE(text != NULL);
    REQUIRE_OK(mtb_inflate_open(&inflate));
    REQUIRE_OK(mtb_inflate_run(inflate, packed, n, &taken, text, room - 1, length));
    CHECK_EQ_U64(taken, n);
    CHECK(mtb_inflate_is_whole(inflate));
    mtb_inflate_close(inflate);
    text[*length] = '\0';
    return text;
}

TEST(gz_holds_the_same_bytes)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {
        .struct_size = sizeof options, .trace_name = "same", .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    if (strcmp(mtb_gzip_library(), "none") == 0) {
        MT_SKIP("no library for gzip");
    }
    for (unsigned level = 0; level <= 3; level++) {
        size_t n = 0, length = 0;
        options.gzip_level = level;
        REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json.gz"), &options));
        char *packed = read_all(in_tmp("x.json.gz"), &n);
        REQUIRE(packed != NULL);
        CHECK_EQ_U64(report.bytes_written, n);
        CHECK_EQ_U64(report.bytes, image.length);
        CHECK(n < image.length / 5);
        char *text = inflate_all(packed, n, &length);
        CHECK_EQ_STR(text, image.text);
        free(text);
        free(packed);
    }
    mtb_gzip_choose(MTB_GZIP_NONE);
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("y.json.gz"), &options),
                 MTPROF_ENOTSUP);
    CHECK(strstr(mtprof_last_error()->message, "y.json.gz") != NULL);
    mtb_gzip_choose(MTB_GZIP_BEST);
    CHECK_EQ_I64(count_files(), 1);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Parts: each a whole trace, together every event once. */
static void check_parts(mtprof_model *model, const char *path, const char *pattern)
{
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {
        .struct_size = sizeof options, .split_bytes = 64 * 1024, .report = &report};
    REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp(path), &options));
    CHECK(report.files > 3);
    CHECK_EQ_I64(count_files(), (int)report.files);
    int ops = 0;
    for (uint32_t i = 0; i < report.files; i++) {
        char name[128];
        size_t n = 0;
        if (i == 0) {
            snprintf(name, sizeof name, "%s", path);
        } else {
            snprintf(name, sizeof name, pattern, i);
        }
        char *text = read_all(in_tmp(name), &n);
        if (text == NULL) {
            FAIL("%s is not there", name);
            return;
        }
        if (mtb_gzip_is(text, n)) {
            char *packed = text;
            text = inflate_all(packed, n, &n);
            free(packed);
        }
        CHECK(mtprof__json_valid(text, n));
        CHECK(n < 80 * 1024);
        CHECK_EQ_I64(count_text(text, "\"schemaVersion\": 1"), 1);
        CHECK_EQ_I64(count_text(text, "Record Window End"), 1);
        CHECK_EQ_I64(count_text(text, "\"thread_name\""), 1);
        ops += count_text(text, "\"name\":\"aten::add\"");
        free(text);
        unlink(in_tmp(name));
    }
    CHECK_EQ_I64(ops, OPS);
}

TEST(parts_are_whole_traces)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    check_parts(model, "x.json", "x.%u.json");
    check_parts(model, "w.pt.trace.json", "w.%u.pt.trace.json");
    check_parts(model, "plain", "plain.%u");
    if (strcmp(mtb_gzip_library(), "none") != 0) {
        check_parts(model, "x.json.gz", "x.%u.json.gz");
    }
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(a_failing_output_is_told)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    image.fail_with = ENOSPC;
    CHECK_EQ_I64(image_export(&image, model, MTPROF_EXPORT_CHROME, NULL), MTPROF_ENOSPC);
    image.fail_with = EPIPE;
    CHECK_EQ_I64(image_export(&image, model, MTPROF_EXPORT_CHROME, NULL), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, strerror(EPIPE)) != NULL);
    if (access("/dev/full", W_OK) == 0) {
        CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, "/dev/full", NULL), MTPROF_ENOSPC);
        CHECK(strstr(mtprof_last_error()->message, "/dev/full") != NULL);
    }
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("none/x.json"), NULL),
                 MTPROF_EIO);
    mtprof_model_free(model);
    image_fini(&image);
}

static int stop_after(void *user, const char *what, uint64_t done, uint64_t total)
{
    int *left = user;
    CHECK(what != NULL && (total == 0 || done <= total));
    return --*left < 0 ? 5 : 0;
}

TEST(progress_may_give_up)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    int calls = 0;
    mtprof_export_options options = {
        .struct_size = sizeof options, .progress = stop_after, .user = &calls};
    CHECK_EQ_I64(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json"), &options),
                 MTPROF_ECALLBACK);
    CHECK(strstr(mtprof_last_error()->message, "returned 5") != NULL);
    CHECK_EQ_I64(count_files(), 0);
    calls = 1000;
    CHECK_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json"), &options));
    CHECK(calls < 1000);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Every request for memory refused once, and from there on: an error or the whole file, and what
 * was at the path stays. */
TEST(no_memory_at_any_place)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    const mtprof_export_options options = {.struct_size = sizeof options,
                                           .split_bytes = 100 * 1024};
    REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json.gz"), &options));
    int files = count_files();
    unsigned refused = 0;
    for (uint64_t n = 1; n < 400; n++) {
        mtb_fail_nth(n, n % 2 == 0);
        int status = mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json.gz"), &options);
        uint64_t asked = mtb_fail_nth(0, false);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        CHECK_EQ_I64(count_files(), files);
        refused += status == MTPROF_ENOMEM;
        if (asked < n) {
            break;
        }
    }
    CHECK(refused > 5);
    CHECK_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, in_tmp("x.json.gz"), &options));
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(averages_are_a_trace_with_a_span_a_row)
{
    chrome_image image;
    mtprof_model *model = make_model(&image);
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    size_t n = 0, again = 0;
    REQUIRE_OK(mtprof_averages_export_chrome(averages, in_tmp("a.json"), NULL));
    char *text = read_all(in_tmp("a.json"), &n);
    REQUIRE(text != NULL);
    CHECK(mtprof__json_valid(text, n));
    CHECK_EQ_STR(text,
                 "{\"traceEvents\":[\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\","
                 "\"pid\":0,\"tid\":0,\"ts\":0.000,\"dur\":25.000,\"args\":{\"count\":"
                 "5000,\"self_cpu_time_total\":25.000,\"cpu_time_total\":25.000,"
                 "\"self_device_time_total\":0.000,\"device_time_total\":0.000,\"min\":0.005,"
                 "\"max\":0.005,\"self_cpu_memory_usage\":0,\"cpu_memory_usage\":0,"
                 "\"self_device_memory_usage\":0,\"device_memory_usage\":0,\"flops\":0,"
                 "\"device_type\":\"CPU\"}}\n]}\n");
    REQUIRE_OK(mtprof_averages_export_chrome(averages, in_tmp("b.json"), NULL));
    char *second = read_all(in_tmp("b.json"), &again);
    REQUIRE(second != NULL);
    CHECK_EQ_STR(second, text);
    free(text);
    free(second);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    image_fini(&image);
}

enum {
    LATE_TEXT = 1000,
    LATE_TEXTS = 6
};

/* Late payloads of a scope: its payload store grows and moves. */
static void put_late_text(chrome_image *image, uint64_t key, uint32_t note)
{
    static char text[LATE_TEXT + 1];
    memset(text, 'T', LATE_TEXT);
    tb_record(&image->b, MTPROF_REC_ATTACH, 0, 0, WORDS(key));
    tb_record_texts(&image->b, MTPROF_REC_META, MTPROF_META_TEXT, note, WORDS(LATE_TEXT), 1,
                    (const char *const[]){text});
}

TEST(names_in_full_survive_metadata_that_comes_later)
{
    static const enum mtprof_export_format formats[] = {
        MTPROF_EXPORT_CHROME,     MTPROF_EXPORT_PERFETTO, MTPROF_EXPORT_FOLDED,
        MTPROF_EXPORT_SPEEDSCOPE, MTPROF_EXPORT_CSV,      MTPROF_EXPORT_EXECUTION};
    static const char name[] = "a-name-in-full";
    const uint64_t key = (uint64_t)1 << MTPROF_ORDINAL_BITS;
    chrome_image image;
    image_init(&image);
    uint32_t inner = image_string(&image, "inner");
    uint32_t note = image_string(&image, "note");
    uint32_t kernel = image_string(&image, "kernel");
    image_control(&image, MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_DEVICE);
    image.b.chunk_bytes = 1 << 16;
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_SCOPE | MTPROF_FLAG_PAYLOAD, 0);
    tb_record_texts(&image.b, MTPROF_REC_NAME, 0, 0, WORDS(sizeof name - 1), 1,
                    (const char *const[]){name});
    for (uint64_t i = 0; i < LATE_TEXTS; i++) {
        image_begin(&image, 3000 + 100 * i, MTPROF_KIND_OP, inner);
        tb_end(&image.b, 1, 3050 + 100 * i);
        put_late_text(&image, key, note);
    }
    /* What is launched here is annotated with the name on the device. */
    image_begin(&image, 5000, MTPROF_KIND_OP | MTPROF_FLAG_LAUNCH, inner);
    tb_end(&image.b, 1, 6000);
    tb_end(&image.b, LATE_TEXTS + 2, 9000);
    image_source(&image);
    tb_record(&image.b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, kernel,
              WORDS(10000, 12500, key | (LATE_TEXTS + 1), low_high(0, 7), 77, 0));
    mtprof_model *model = image_model(&image);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        REQUIRE_OK(image_export(&image, model, formats[i], NULL));
        int seen = 0;
        for (size_t at = 0; at + sizeof name - 1 <= image.length; at++) {
            seen += memcmp(image.text + at, name, sizeof name - 1) == 0;
        }
        bool device = formats[i] == MTPROF_EXPORT_CHROME || formats[i] == MTPROF_EXPORT_PERFETTO ||
                      formats[i] == MTPROF_EXPORT_CSV;
        if (seen < (device ? 2 : 1)) {
            FAIL("%s has the name %d times", mtprof_export_name(formats[i]), seen);
        }
    }
    mtprof_model_free(model);
    image_fini(&image);
}
