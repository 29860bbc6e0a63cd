/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto's JSON where the device is a GPU of NVIDIA.
 */
#include "chrome_image.h"
#include "harness/mt_test.h"

#include <string.h>

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
    const mtprof_export_options options = {
        .struct_size = sizeof options, .flavor = MTPROF_FLAVOR_TORCH, .trace_name = "x.json"};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    CHECK_EQ_I64(count_text(image.text, "\"cat\": \"cuda_runtime\""), 3);
    CHECK(strstr(image.text, "\"cat\": \"cuda_driver\", \"name\": \"cuLaunchKernel\"") != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}
