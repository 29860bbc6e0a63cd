/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of input lists: sizes, extents, and words that lie.
 */
#include "harness/mt_test.h"
#include "mtprof/format/input_words.h"
#include "mtprof/model/text/tensor_words.h"

#include <mtprof/format.h>

#include <stdlib.h>
#include <string.h>

static uint64_t head(unsigned kind, unsigned n_dims, bool strides, uint32_t upper)
{
    return kind | (uint64_t)n_dims << 8 | (uint64_t)strides << 16 | (uint64_t)upper << 32;
}

TEST(tensors_are_found_in_lists)
{
    const uint64_t words[] = {
        head(MTPROF_INPUT_LIST, 0, false, 2), head(MTPROF_INPUT_TENSOR, 2, true, 7), 3, 5, 10, 2,
        head(MTPROF_INPUT_INT, 0, false, 0),  head(MTPROF_INPUT_TENSOR, 0, false, 8)};
    mtprof_input_walk t = mtprof__input_walk(words, 8);
    CHECK_EQ_U64(mtprof__count_tensors(t), 2);
    REQUIRE(mtprof__next_tensor(&t));
    CHECK_EQ_U64(t.string, 7);
    CHECK_EQ_I64(mtprof__tensor_elements(&t), 15);
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 4, 8), (4 + 1 + 2 * 10 + 4 * 2) * 8);
    REQUIRE(mtprof__next_tensor(&t));
    CHECK_EQ_U64(t.string, 8);
    CHECK_EQ_I64(mtprof__tensor_elements(&t), 1); /* no dimensions: a number */
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 0, 2), 2);
    CHECK(!mtprof__next_tensor(&t));
    CHECK_EQ_U64(t.word, 8);
    CHECK_EQ_U64(mtprof__count_tensors(mtprof__input_walk(words, 4)), 0); /* no strides: cut off */
}

TEST(nonsense_has_no_size)
{
    const uint64_t big[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    const uint64_t negative[] = {(uint64_t)-3, 4};
    const uint64_t strides[] = {(uint64_t)INT64_MAX, 1};
    const uint64_t back[] = {(uint64_t)-1, (uint64_t)INT64_MIN};
    const uint64_t small[] = {2, 2};
    mtprof_input_walk t = {.sizes = big, .n_dims = 2, .n_sizes = 2};
    CHECK_EQ_I64(mtprof__tensor_elements(&t), 0);
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 0, 4), 0);
    t.sizes = negative;
    CHECK_EQ_I64(mtprof__tensor_elements(&t), 0);
    t = (mtprof_input_walk){.sizes = small, .strides = strides, .n_dims = 2, .n_sizes = 2};
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 0, 4), 0);
    t.strides = back; /* a step back reaches no further */
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 0, 4), 4);
    t.strides = NULL;
    CHECK_EQ_I64(mtprof__tensor_extent(&t, INT64_MAX, 4), 0);
    CHECK_EQ_I64(mtprof__tensor_extent(&t, -1, 4), 0);
    CHECK_EQ_I64(mtprof__tensor_extent(&t, 0, 0), 0);
}

TEST(any_words_are_read_within_bounds)
{
    uint64_t state = mt_test_seed();
    for (int i = 0; i < 20000; i++) {
        uint32_t n = (uint32_t)(mt_test_random(&state) % 8);
        uint64_t *words =
            malloc(n * sizeof *words + 1); /* exactly: a sanitizer sees any step over */
        REQUIRE(words != NULL);
        for (uint32_t k = 0; k < n; k++) {
            words[k] = mt_test_random(&state) & mt_test_random(&state);
            words[k] = (words[k] & ~UINT64_C(0xFEFF)) | mt_test_random(&state) % 4 << 8 | 1;
        }
        mtprof_input_walk t = mtprof__input_walk(words, n);
        uint32_t seen = 0;
        while (mtprof__next_tensor(&t)) {
            CHECK(t.word <= n);
            (void)mtprof__tensor_extent(&t, (int64_t)mt_test_random(&state), 8);
            seen++;
        }
        CHECK_EQ_U64(mtprof__count_tensors(mtprof__input_walk(words, n)), seen);
        free(words);
    }
}

TEST(types_and_devices_have_names)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {{"float", 4},
                 {"double", 8},
                 {"c10::Half", 2},
                 {"long int", 8},
                 {"bool", 1},
                 {"bfloat16", 2},
                 {"c10::complex<double>", 16},
                 {"", 0},
                 {"floa", 0},
                 {"floats", 0}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        CHECK_EQ_U64(mtprof__type_bytes((mtprof_text){types[i].name, strlen(types[i].name)}),
                     types[i].bytes);
    }
    char name[32];
    mtprof__device_text(&(mtprof_device){{"CPU", 3}, -1}, name, sizeof name);
    CHECK_EQ_STR(name, "cpu");
    mtprof__device_text(&(mtprof_device){{"NPU", 3}, 12}, name, sizeof name);
    CHECK_EQ_STR(name, "npu:12");
    mtprof__device_text(&(mtprof_device){{"a\n\xC3\xA9 b", 6}, 2147483647}, name, sizeof name);
    CHECK_EQ_STR(name, "a????b:2147483647");
    mtprof__device_text(&(mtprof_device){{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40}, 3}, name,
                        sizeof name);
    CHECK_EQ_STR(name, "aaaaaaaaaaaaaaaa:3");
}
