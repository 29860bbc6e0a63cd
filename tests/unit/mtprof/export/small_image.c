/* SPDX-License-Identifier: Apache-2.0
 */
#include "small_image.h"

#include "base/alloc.h"
#include "harness/mt_test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_stack(chrome_image *image, uint32_t node)
{
    tb_single(&image->b, MTPROF_REC_STACK, (uint64_t)node << 24);
}

mtprof_model *small_image(chrome_image *image, bool stacks)
{
    const uint16_t op = MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD;
    image_init(image);
    uint32_t outer = image_string(image, "outer step");
    uint32_t add = image_string(image, "aten::add");
    uint32_t mul = image_string(image, "aten::mul");
    uint32_t other = image_string(image, "other, \"one\"");
    uint32_t kernel = image_string(image, "kernel");
    uint32_t file = image_string(image, "my file.py");
    uint32_t functions[] = {image_string(image, "main"), image_string(image, "f;g")};
    for (uint32_t i = 0; i < 2; i++) {
        tb_record(&image->b, MTPROF_REC_DEF_FRAME, 0, i + 1,
                  WORDS(low_high(functions[i], file), 7 + i, 0));
        tb_record(&image->b, MTPROF_REC_DEF_STACK, 0, i + 1, WORDS(low_high(i, i + 1)));
    }
    image_control(image, MTPROF_WANT_DEFAULT | (stacks ? MTPROF_WANT_STACKS : 0));
    image_metadata(image, "note", "a \"b\"", false);
    image_thread(image, 1);
    image_begin(image, 2000, MTPROF_KIND_SCOPE, outer);
    image_begin(image, 4000, op | MTPROF_FLAG_LAUNCH, add);
    if (stacks) {
        put_stack(image, 2);
    }
    image_begin(image, 6000, op, mul);
    if (stacks) {
        put_stack(image, 1);
    }
    tb_end(&image->b, 1, 9500);
    tb_end(&image->b, 2, 16000);
    tb_end(&image->b, 3, 22000);
    image_thread(image, 2);
    image_begin(image, 7000, MTPROF_KIND_SCOPE, other);
    tb_end(&image->b, 1, 8000);
    image_source(image);
    tb_record(&image->b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, kernel,
              WORDS(10000, 12500, (uint64_t)1 << 40 | 1, low_high(0, 7), 77, 0));
    return image_model(image);
}

void check_no_memory(enum mtprof_export_format format, const char *metric)
{
    const mtprof_export_options options = {.struct_size = sizeof options, .metric = metric};
    int status = MTPROF_ENOMEM;
    uint64_t n = 0;
    while (status != MTPROF_OK && n < 10000) {
        chrome_image image;
        mtprof_model *model = small_image(&image, true);
        (void)mtb_fail_nth(++n, true);
        status = image_export(&image, model, format, &options);
        (void)mtb_fail_nth(0, false);
        if (status != MTPROF_OK) {
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
        }
        mtprof_model_free(model);
        image_fini(&image);
    }
    CHECK_OK(status);
    CHECK(n > 3);
}

void check_output(enum mtprof_export_format format)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    CHECK_OK(image_export(&image, model, format, NULL));
    size_t length = image.length;
    char *first = malloc(length + 1);
    REQUIRE(first != NULL);
    memcpy(first, image.text, length);
    CHECK_OK(image_export(&image, model, format, NULL));
    if (CHECK_EQ_U64(image.length, length)) {
        CHECK_EQ_MEM(image.text, first, length);
    }
    free(first);
    image.fail_with = EPIPE;
    image.fail_after = length / 2;
    CHECK_EQ_I64(image_export(&image, model, format, NULL), MTPROF_EIO);
    image.fail_with = ENOSPC;
    CHECK_EQ_I64(image_export(&image, model, format, NULL), MTPROF_ENOSPC);
    mtprof_model_free(model);
    image_fini(&image);
}
