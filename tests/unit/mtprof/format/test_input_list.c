/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over input lists: every kind, lists and keywords stepped over, words that lie.
 */
#include "harness/mt_test.h"
#include "mtprof/format/input_words.h"

#include <mtprof/status.h>

#include <stdlib.h>

/* f(tensor[2, 3] with strides, [1, [None]], key=[tensor]) */
static const uint64_t list[] = {
    MTPROF_INPUT_TENSOR | 2 << 8 | 1 << 16 | UINT64_C(7) << 32,
    2,
    3,
    3,
    1,
    MTPROF_INPUT_LIST | UINT64_C(2) << 32,
    MTPROF_INPUT_INT,
    MTPROF_INPUT_LIST | UINT64_C(1) << 32,
    MTPROF_INPUT_NONE,
    MTPROF_INPUT_KEYWORD | UINT64_C(9) << 32,
    MTPROF_INPUT_LIST | UINT64_C(1) << 32,
    MTPROF_INPUT_TENSOR,
};

enum {
    WORDS = sizeof list / sizeof list[0]
};

TEST(lists_are_entered)
{
    static const uint32_t kinds[] = {MTPROF_INPUT_TENSOR, MTPROF_INPUT_LIST,  MTPROF_INPUT_INT,
                                     MTPROF_INPUT_LIST,   MTPROF_INPUT_NONE,  MTPROF_INPUT_KEYWORD,
                                     MTPROF_INPUT_LIST,   MTPROF_INPUT_TENSOR};
    mtprof_input_walk walk = mtprof__input_walk(list, WORDS);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        REQUIRE(mtprof_input_next(&walk));
        CHECK_EQ_U64(walk.kind, kinds[i]);
        CHECK(!walk.cut);
    }
    CHECK(!mtprof_input_next(&walk));
    CHECK_EQ_U64(walk.n_scalars, 1);
    CHECK_EQ_U64(walk.n_tensors, 2);
}

TEST(values_are_told)
{
    mtprof_input_walk walk = mtprof__input_walk(list, WORDS);
    REQUIRE(mtprof_input_next(&walk));
    CHECK_EQ_U64(walk.string, 7);
    CHECK(walk.n_dims == 2 && walk.n_sizes == 2 && walk.n_strides == 2);
    CHECK(walk.sizes == list + 1 && walk.strides == list + 3);
    mtprof_input_skip(&walk); /* a tensor holds no values */
    REQUIRE(mtprof_input_next(&walk));
    CHECK(walk.kind == MTPROF_INPUT_LIST && walk.count == 2 && walk.string == 0);
    CHECK(walk.sizes == NULL && walk.strides == NULL && walk.n_dims == 0);
    mtprof_input_skip(&walk);
    CHECK_EQ_U64(walk.n_scalars, 1);
    REQUIRE(mtprof_input_next(&walk));
    CHECK(walk.kind == MTPROF_INPUT_KEYWORD && walk.string == 9);
    mtprof_input_skip(&walk); /* what it names, which is a list */
    CHECK_EQ_U64(walk.word, WORDS);
}

TEST(a_tensor_that_is_cut_off)
{
    for (uint32_t n = 1; n < 5; n++) {
        mtprof_input_walk walk = mtprof__input_walk(list, n);
        REQUIRE(mtprof_input_next(&walk));
        CHECK(walk.cut);
        CHECK_EQ_U64(walk.n_sizes + walk.n_strides, n - 1);
        CHECK(!mtprof_input_next(&walk));
    }
}

TEST(a_walk_without_a_size)
{
    mtprof_input_walk walk = {.words = list, .n_words = WORDS};
    CHECK(!mtprof_input_next(&walk));
    CHECK_EQ_I64(mtprof_last_error()->status, MTPROF_EINVAL);
    CHECK_EQ_U64(walk.word, 0);
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
            words[k] = (words[k] & ~UINT64_C(0xFEFF)) | mt_test_random(&state) % 4 << 8 |
                       mt_test_random(&state) % 9;
        }
        uint64_t sum = 0;
        for (mtprof_input_walk walk = mtprof__input_walk(words, n); mtprof_input_next(&walk);) {
            for (uint32_t k = 0; k < walk.n_sizes; k++) {
                sum += walk.sizes[k];
            }
            for (uint32_t k = 0; k < walk.n_strides; k++) {
                sum += walk.strides[k];
            }
            CHECK(walk.word <= n);
            if (sum % 3 == 0) {
                mtprof_input_skip(&walk);
            }
        }
        free(words);
    }
}
