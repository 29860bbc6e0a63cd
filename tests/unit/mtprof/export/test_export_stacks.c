/* SPDX-License-Identifier: Apache-2.0
 *
 * torch's export_stacks, and folded stacks for flame graphs.
 */
#include "harness/mt_test.h"
#include "mtprof/model/text/stack_text.h"
#include "small_image.h"

#include <stdlib.h>
#include <string.h>

static int export_metric(chrome_image *image, mtprof_model *model, enum mtprof_export_format format,
                         const char *metric)
{
    const mtprof_export_options options = {.struct_size = sizeof options, .metric = metric};
    return image_export(image, model, format, &options);
}

TEST(stacks_as_torch_has_them)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_STACKS, NULL));
    CHECK_EQ_STR(image.text, "my_file.py(7):_main;my_file.py(8):_f_g 8\n" /* 8.5 us */
                             "my_file.py(7):_main 3\n");
    static const char *const device[] = {"self_device_time_total", "self_cuda_time_total",
                                         "self_xpu_time_total", "self_privateuse1_time_total",
                                         "self_npu_time_total"};
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++) {
        REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_STACKS, device[i]));
        CHECK_EQ_STR(image.text, "my_file.py(7):_main;my_file.py(8):_f_g 2\n"); /* 2.5 us */
    }
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(stacks_need_stacks)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, false);
    CHECK_EQ_I64(export_metric(&image, model, MTPROF_EXPORT_STACKS, NULL), MTPROF_ENOTSUP);
    CHECK_EQ_STR(mtprof_last_error()->message, "export_stacks() requires with_stack=True");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(metrics_have_names)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    static const enum mtprof_export_format formats[] = {MTPROF_EXPORT_STACKS, MTPROF_EXPORT_FOLDED,
                                                        MTPROF_EXPORT_SPEEDSCOPE};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_I64(export_metric(&image, model, formats[i], "self_tpu_time_total"),
                     MTPROF_EINVAL);
        const char *message = mtprof_last_error()->message;
        CHECK(strstr(message, "metric should be one of: ['self_cpu_time_total', '") != NULL);
        CHECK(strstr(message, "self_tpu_time_total") != NULL);
    }
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(folded_merges_and_sorts)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, NULL));
    CHECK_EQ_STR(image.text, "my_file.py(7):_main;aten::mul 3500\n"
                             "my_file.py(7):_main;my_file.py(8):_f_g;aten::add 8500\n"
                             "other,_\"one\" 1000\n"
                             "outer_step 8000\n");
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, "self_device_time_total"));
    CHECK_EQ_STR(image.text, "my_file.py(7):_main;my_file.py(8):_f_g;aten::add 2500\n");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(folded_without_stacks_is_the_nesting_of_scopes)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, false);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, NULL));
    CHECK_EQ_STR(image.text, "other,_\"one\" 1000\n"
                             "outer_step 8000\n"
                             "outer_step;aten::add 8500\n"
                             "outer_step;aten::add;aten::mul 3500\n");
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, "self_npu_time_total"));
    CHECK_EQ_STR(image.text, "outer_step;aten::add 2500\n");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(equal_paths_are_one_line)
{
    chrome_image image;
    image_init(&image);
    uint32_t a = image_string(&image, "a");
    uint32_t b = image_string(&image, "b");
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    for (uint64_t i = 0; i < 50; i++) {
        image_begin(&image, 2000 + 100 * i, MTPROF_KIND_OP, a);
        image_begin(&image, 2010 + 100 * i, MTPROF_KIND_OP, i % 2 ? b : a);
        tb_end(&image.b, 1, 2030 + 100 * i);
        tb_end(&image.b, 2, 2050 + 100 * i);
    }
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, NULL));
    CHECK_EQ_STR(image.text, "a 1500\na;a 500\na;b 500\n");
    mtprof_model_free(model);
    image_fini(&image);
}

/* A stack as deep as the format allows must not cost more than its innermost frames. */
TEST(deep_stacks_are_cut)
{
    enum {
        DEPTH = 3000
    };
    chrome_image image;
    image_init(&image);
    uint32_t op = image_string(&image, "op");
    uint32_t f = image_string(&image, "f");
    for (uint32_t i = 1; i <= DEPTH; i++) {
        if (i % 1000 == 0) {
            tb_chunk(&image.b, MTPROF_STREAM_DEFINITIONS, 0);
        }
        tb_record(&image.b, MTPROF_REC_DEF_FRAME, 0, i, WORDS(low_high(f, 0), i, 0));
        tb_record(&image.b, MTPROF_REC_DEF_STACK, 0, i, WORDS(low_high(i - 1, i)));
    }
    image_control(&image, MTPROF_WANT_DEFAULT | MTPROF_WANT_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, op);
    tb_single(&image.b, MTPROF_REC_STACK, (uint64_t)DEPTH << 24);
    tb_end(&image.b, 1, 9000);
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_STACKS, NULL));
    CHECK_EQ_I64(count_text(image.text, "f"), MTPROF__STACK_FRAMES);
    REQUIRE_OK(export_metric(&image, model, MTPROF_EXPORT_FOLDED, NULL));
    CHECK_EQ_I64(count_text(image.text, ";f"), MTPROF__STACK_FRAMES - 1);
    mtprof_model_free(model);
    image_fini(&image);
}

/* A line has its whole path: as deep as scopes may be, lines are not. */
TEST(deep_nesting_is_cut_and_told)
{
    const uint32_t n = 6000;
    const size_t most = 4096;
    chrome_image image;
    image_init(&image);
    uint32_t name = image_string(&image, "d");
    image_control(&image, MTPROF_WANT_DEFAULT);
    image.b.chunk_bytes = 256 * 1024;
    image_thread(&image, 1);
    for (uint32_t i = 0; i < n; i++) {
        image_begin(&image, 2000 + i, MTPROF_KIND_SCOPE, name);
    }
    for (uint32_t i = 0; i < n; i++) {
        tb_end(&image.b, (uint16_t)(i + 1), 2000 + n + i);
    }
    mtprof_model *model = image_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_FOLDED, &options));
    CHECK_EQ_U64(report.events, n);
    CHECK_EQ_U64(report.folded, n - most);
    CHECK_EQ_I64(count_text(image.text, "\n"), (int64_t)most);
    /* Nothing is lost: the deepest line has the time of all that is below. */
    const char *last = strrchr(image.text, ' ');
    CHECK(last != NULL && strtoll(last, NULL, 10) == 2 * (n - (long long)most) + 1);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(failures_are_told)
{
    check_no_memory(MTPROF_EXPORT_STACKS, NULL);
    check_no_memory(MTPROF_EXPORT_FOLDED, NULL);
    check_no_memory(MTPROF_EXPORT_FOLDED, "self_device_time_total");
    check_output(MTPROF_EXPORT_STACKS);
    check_output(MTPROF_EXPORT_FOLDED);
}

/* ---- frames ---------------------------------------------------------------------------------- */

#define TEXT(literal) ((mtprof_text){(literal), sizeof(literal) - 1})

static void check_frame(mtprof_frame frame, const char *expected)
{
    char buffer[64] = {0};
    CHECK_EQ_U64(mtprof__frame_text(&frame, buffer, sizeof buffer - 1), strlen(expected));
    CHECK_EQ_STR(buffer, expected);
    char cut[4] = "...";
    CHECK_EQ_U64(mtprof__frame_text(&frame, cut, 2), strlen(expected));
    CHECK_EQ_MEM(cut, expected, 2);
    CHECK_EQ_I64(cut[2], '.');
    CHECK_EQ_U64(mtprof__frame_text(&frame, NULL, 0), strlen(expected));
}

TEST(frames_as_text)
{
    check_frame((mtprof_frame){TEXT("f"), TEXT("a.py"), 12, 0}, "a.py(12): f");
    check_frame((mtprof_frame){TEXT("f"), TEXT("a.py"), 0, 0}, "a.py(0): f");
    check_frame((mtprof_frame){TEXT("<built-in>"), TEXT(""), 0, 0}, "<built-in>");
    check_frame((mtprof_frame){TEXT(""), TEXT(""), 0, 0x7f66c173e180}, "0x7f66c173e180");
    check_frame((mtprof_frame){TEXT(""), TEXT(""), 0, 0}, "0x0");
    check_frame((mtprof_frame){TEXT("g"), TEXT("b"), UINT64_MAX, 0}, "b(18446744073709551615): g");
}
