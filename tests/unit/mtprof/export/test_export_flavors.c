/* SPDX-License-Identifier: Apache-2.0
 *
 * The flavors of kineto's JSON, and what differs where the device is a GPU of NVIDIA.
 */
#include "chrome_image.h"
#include "harness/mt_test.h"

#include <string.h>

static void export_as(chrome_image *image, mtprof_model *model, uint32_t flavor)
{
    const mtprof_export_options options = {
        .struct_size = sizeof options, .flavor = flavor, .trace_name = "x.json"};
    REQUIRE_OK(image_export(image, model, MTPROF_EXPORT_CHROME, &options));
    image_space_out(image);
}

TEST(calls_of_cudas_runtime_and_driver_have_their_categories)
{
    static const char *const names[] = {"cudaLaunchKernel", "cuLaunchKernel", "cublas", "cu"};
    chrome_image image;
    uint32_t ids[4];
    image_init_device(&image, "CUDA");
    for (size_t i = 0; i < 4; i++) {
        ids[i] = image_string(&image, names[i]);
    }
    image_control(&image, MTPROF_WANT_OPS | MTPROF_WANT_RUNTIME | MTPROF_WANT_DEVICE);
    image_thread(&image, 1);
    for (size_t i = 0; i < 4; i++) {
        image_begin(&image, 2000 + 100 * i, MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH, ids[i]);
        tb_end(&image.b, 1, 2050 + 100 * i);
    }
    image_source(&image);
    mtprof_model *model = image_model(&image);
    export_as(&image, model, MTPROF_FLAVOR_TORCH);
    CHECK_EQ_I64(count_text(image.text, "\"cat\": \"cuda_runtime\""), 3);
    CHECK(strstr(image.text, "\"cat\": \"cuda_driver\", \"name\": \"cuLaunchKernel\"") != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(flavor_mindtorch_has_its_categories)
{
    chrome_image image;
    image_full_op(&image);
    mtprof_model *model = image_model(&image);
    export_as(&image, model, MTPROF_FLAVOR_MINDTORCH);
    CHECK_EQ_I64(count_text(image.text, "\"cat\": \"op\""), 1);
    CHECK_EQ_I64(count_text(image.text, "cpu_op"), 0);
    CHECK(count_text(image.text, "\"ph\": \"M\", \"cat\": \"metadata\"") > 0);
    CHECK(strstr(image.text,
                 "{\"ph\": \"X\", \"cat\": \"runtime\", \"name\": \"dispatch_kernel\", "
                 "\"pid\": 4242, \"tid\": 4242, \"ts\": 906.000, \"dur\": 0.500, \"args\": "
                 "{\"correlation_id\": 100, \"op_name\": \"aten::add\"}}") != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Nothing is lost: what lean leaves out, torch's own args say too. */
TEST(flavor_lean_has_torchs_args_alone)
{
    static const char *const gone[] = {
        "runtime_name", "runtime_tid", "correlation_id",         "device_type",
        "input_shapes", "\"stack\"",   "_memory_allocated_delta"};
    chrome_image image;
    image_full_op(&image);
    mtprof_model *model = image_model(&image);
    export_as(&image, model, MTPROF_FLAVOR_LEAN);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        CHECK_EQ_I64(count_text(image.text, gone[i]), 0);
    }
    CHECK(strstr(image.text,
                 "\"args\": {\"External id\": 100, \"Record function id\": 100, \"Ev Idx\": 0, "
                 "\"Sequence number\": 9, \"Fwd thread id\": 0, \"Concrete Inputs\": [\"\", "
                 "\"1\"], \"Input type\": [\"float\", \"Scalar\"], \"Input Strides\": [[3, 1], "
                 "[]], \"Input Dims\": [[2, 3], []], \"step\": 3, \"flops\": 640, "
                 "\"overload_name\": \"Tensor\", \"Module Hierarchy\": \"top.layer\", "
                 "\"cpu_memory_allocated_before\": 1000, \"cpu_memory_allocated_after\": 400, "
                 "\"Call stack\": \"m.py(7): forward;m.py(7): forward;\", \"lr\": 0.5}}") != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Readers take lines and objects, not blanks; they are a sixth of the bytes. */
TEST(events_have_no_blanks_between_members)
{
    chrome_image image;
    image_full_op(&image);
    mtprof_model *model = image_model(&image);
    const mtprof_export_options options = {.struct_size = sizeof options, .trace_name = "x.json"};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    const char *events = strstr(image.text, "\"traceEvents\"");
    REQUIRE(events != NULL);
    CHECK_EQ_I64(count_text(events + strlen("\"traceEvents\": "), "\": "), 1); /* traceName */
    mtprof_model_free(model);
    image_fini(&image);
}
