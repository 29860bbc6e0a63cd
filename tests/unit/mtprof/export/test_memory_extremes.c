/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory exports of a trace whose times and sizes are as far apart as numbers go. Its checksums
 * hold, so it is a trace like any other; sums and differences stop at the ends of the range.
 */
#include "base/compiler.h"
#include "chrome_image.h"
#include "harness/mt_test.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t moments[] = {0, 2000, UINT64_C(1) << 62, INT64_MAX, UINT64_MAX - 1};
static const int64_t sizes[] = {1, INT64_MAX, INT64_MIN, -INT64_MAX, -1};

static void put_alloc(chrome_image *image, uint64_t ticks, uint64_t address, int64_t bytes,
                      int64_t allocated)
{
    tb_record(&image->b, MTPROF_REC_TIME, 0, 0, WORDS(ticks));
    tb_record(&image->b, MTPROF_REC_ALLOC, 0, 0,
              WORDS(address, (uint64_t)bytes, (uint64_t)allocated));
}

/* Brackets outside of strings, which these exports have none of. */
static void check_brackets(const char *text)
{
    int depth = 0;
    for (; *text != '\0'; text++) {
        depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
        CHECK(depth >= 0);
    }
    CHECK_EQ_I64(depth, 0);
}

static void check_model(chrome_image *image, mtprof_model *model)
{
    REQUIRE_OK(image_export(image, model, MTPROF_EXPORT_MEMORY, NULL));
    check_brackets(image->text);
    REQUIRE_OK(image_export(image, model, MTPROF_EXPORT_MEMORY_RAW, NULL));
    check_brackets(image->text);
    REQUIRE_OK(image_export(image, model, MTPROF_EXPORT_MEMORY_HTML, NULL));
    CHECK_EQ_I64(count_text(image->text, "</html>"), 1);
    mtprof_memory_peak peak = {.struct_size = sizeof peak};
    REQUIRE_OK(mtprof_model_get_memory_peak(model, NULL, &peak));
    CHECK(peak.bytes >= 0);
    mtprof_memory memory = {.struct_size = sizeof memory};
    REQUIRE_OK(mtprof_model_get_memory(model, 0, &memory));
    CHECK(memory.allocated_bytes >= 0 && memory.freed_bytes >= 0);
}

TEST(times_and_sizes_at_the_ends_of_the_range)
{
    const uint64_t wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS |
                           MTPROF_WANT_ALLOCS | MTPROF_WANT_STACKS;
    for (size_t i = 0; i < MT_COUNT(moments) * MT_COUNT(moments); i++) {
        chrome_image image;
        image_init(&image);
        uint32_t step = image_string(&image, "ProfilerStep#0");
        image_control(&image, wants);
        image_thread(&image, 1);
        image_begin(&image, moments[i % MT_COUNT(moments)], MTPROF_KIND_STEP, step);
        for (size_t k = 0; k < MT_COUNT(sizes); k++) {
            uint64_t ticks = moments[(k % 2 == 0 ? i : i / MT_COUNT(moments)) % MT_COUNT(moments)];
            put_alloc(&image, ticks, 0x1000 * (k + 1), sizes[k], sizes[(k + 1) % MT_COUNT(sizes)]);
            put_alloc(&image, ticks, 0x1000 * (k + 1), sizes[MT_COUNT(sizes) - 1 - k], sizes[k]);
            put_alloc(&image, ticks, 0x1000 * (k + 1), -1, INT64_MIN);
        }
        tb_end(&image.b, 1, moments[i / MT_COUNT(moments)]);
        mtprof_model *model = image_model(&image);
        check_model(&image, model);
        mtprof_model_free(model);
        image_fini(&image);
    }
}
