/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope's JSON. tests/export/check_exports.py reads larger ones back.
 */
#include "harness/mt_test.h"
#include "mtprof/export/json_text.h"
#include "small_image.h"

#include <string.h>

TEST(a_profile_for_each_thread)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, false);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_SPEEDSCOPE, NULL));
    CHECK(mtprof__json_valid(image.text, image.length));
    const char *profiles = strstr(image.text, "\"profiles\"");
    REQUIRE(profiles != NULL);
    /* The window opens at 5000. */
    CHECK_EQ_STR(profiles,
                 "\"profiles\":[\n"
                 "{\"type\":\"evented\",\"name\":\"main thread (4242)\",\"unit\":\"nanoseconds\","
                 "\"startValue\":0,\"events\":[\n"
                 "{\"type\":\"O\",\"frame\":0,\"at\":1000},\n"
                 "{\"type\":\"O\",\"frame\":1,\"at\":3000},\n"
                 "{\"type\":\"O\",\"frame\":2,\"at\":5000},\n"
                 "{\"type\":\"C\",\"frame\":2,\"at\":8500},\n"
                 "{\"type\":\"C\",\"frame\":1,\"at\":15000},\n"
                 "{\"type\":\"C\",\"frame\":0,\"at\":21000}],\"endValue\":21000},\n"
                 "{\"type\":\"evented\",\"name\":\"thread 4243\",\"unit\":\"nanoseconds\","
                 "\"startValue\":0,\"events\":[\n"
                 "{\"type\":\"O\",\"frame\":3,\"at\":6000},\n"
                 "{\"type\":\"C\",\"frame\":3,\"at\":7000}],\"endValue\":7000}],\n"
                 "\"shared\":{\"frames\":[\n"
                 "{\"name\":\"outer step\"},\n"
                 "{\"name\":\"aten::add\"},\n"
                 "{\"name\":\"aten::mul\"},\n"
                 "{\"name\":\"other, \\\"one\\\"\"}]}}\n");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(a_profile_for_each_queue)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, false);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {
        .struct_size = sizeof options, .metric = "self_npu_time_total", .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_SPEEDSCOPE, &options));
    CHECK(mtprof__json_valid(image.text, image.length));
    CHECK_EQ_I64(count_text(image.text, "evented"), 1);
    CHECK(strstr(image.text,
                 "{\"type\":\"O\",\"frame\":0,\"at\":9000},\n"
                 "{\"type\":\"C\",\"frame\":0,\"at\":11500}],\"endValue\":11500}") != NULL);
    CHECK_EQ_U64(report.events, 1);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(nothing_is_valid_too)
{
    chrome_image image;
    image_init(&image);
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_SPEEDSCOPE, NULL));
    CHECK(mtprof__json_valid(image.text, image.length));
    CHECK(strstr(image.text, "\"profiles\":[],") != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(failures_are_told)
{
    check_no_memory(MTPROF_EXPORT_SPEEDSCOPE, NULL);
    check_no_memory(MTPROF_EXPORT_SPEEDSCOPE, "self_device_time_total");
    check_output(MTPROF_EXPORT_SPEEDSCOPE);
}
