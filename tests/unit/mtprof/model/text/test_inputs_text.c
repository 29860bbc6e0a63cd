/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists as torch's JSON and as the text of a row.
 */
#include "base/text_writer.h"
#include "harness/mt_test.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/text/inputs_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char shown[1 << 20];
static size_t shown_length;

static int take(void *context, const void *bytes, size_t length)
{
    (void)context;
    if (shown_length + length < sizeof shown) {
        memcpy(shown + shown_length, bytes, length);
    }
    shown_length += length;
    return 0;
}

typedef void render(mtb_writer *writer, const mtprof__inputs_view *view);

static const char *show(render *function, const mtprof__inputs_view *view)
{
    mtb_writer writer;
    shown_length = 0;
    memset(shown, 0, 4096);
    REQUIRE(mtb_writer_init(&writer, take, NULL));
    function(&writer, view);
    REQUIRE(mtb_writer_finish(&writer) == 0);
    REQUIRE(shown_length < sizeof shown);
    shown[shown_length] = '\0';
    return shown;
}

static void write_keywords(mtb_writer *writer, const mtprof__inputs_view *view)
{
    mtprof__write_keyword_inputs(writer, view, NULL, NULL);
}

static uint64_t word(uint64_t kind, uint64_t dims, uint64_t flags, uint64_t upper)
{
    return kind | dims << 8 | flags << 16 | upper << 32;
}

static uint64_t real(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A model in which strings can be made; ids of strings are name + 1 there. */
static mtprof_model *make_model(void)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof__model_new_foreign(NULL, &model));
    return model;
}

static uint64_t string_of(mtprof_model *model, const char *text)
{
    uint32_t name = 0;
    REQUIRE_OK(
        mtprof__dictionary_name(&model->dictionary, (mtprof_text){text, strlen(text)}, &name));
    return (uint64_t)name + 1;
}

TEST(inputs_are_shown_as_torch_shows_them)
{
    mtprof_model *model = make_model();
    uint64_t f = string_of(model, "float");
    /* aten::addmm(bias [2], [4, 4], [4, 2], 1, 0.5), then what else there is */
    const uint64_t words[] = {
        word(1, 1, 1, f),
        2,
        1,
        word(1, 2, 1, string_of(model, "c10::Half")),
        4,
        4,
        4,
        1,
        word(3, 0, 0, 0),
        word(4, 0, 0, 0),
        word(5, 0, 0, 0),
        word(0, 0, 0, 0),
        word(2, 0, 0, 2),
        word(3, 0, 0, 0), /* a list of integers */
        word(3, 0, 0, 0),
        word(2, 0, 0, 2), /* a list of tensors */
        word(1, 1, 1, f),
        3,
        1,
        word(1, 0, 0, f),
        word(6, 0, 0, 0),
        word(2, 0, 0, 0), /* a string, an empty list */
    };
    const uint64_t scalars[] = {1, real(0.1), 0, 2, (uint64_t)-4, string_of(model, "floor")};
    mtprof__inputs_view view = {model, words, scalars, sizeof words / 8, sizeof scalars / 8};
    CHECK_EQ_STR(show(mtprof__write_input_dims, &view),
                 "[[2], [4, 4], [], [], [], [], [], [[3], []], [], []]");
    CHECK_EQ_STR(show(mtprof__write_input_strides, &view),
                 "[[1], [4, 1], [], [], [], [], [], [[1], []], [], []]");
    CHECK_EQ_STR(show(mtprof__write_input_types, &view),
                 "[\"float\", \"c10::Half\", \"Scalar\", \"Scalar\", \"Scalar\", \"\", "
                 "\"ScalarList\", \"TensorList\", \"\", \"ScalarList\"]");
    CHECK_EQ_STR(show(mtprof__write_concrete_inputs, &view),
                 "[\"\", \"\", \"1\", \"0.10000000000000001\", \"False\", \"\", \"[2, -4]\", \"\", "
                 "\"floor\", \"[]\"]");
    CHECK_EQ_STR(show(mtprof__write_input_shapes, &view),
                 "[[2], [4, 4], [], [], [], [], [], [], [], []]");
    CHECK_EQ_STR(show(write_keywords, &view), "");
    CHECK_EQ_U64(mtprof__inputs_facts(words, sizeof words / 8),
                 MTPROF__INPUTS_TENSORS | MTPROF__INPUTS_STRIDES | MTPROF__INPUTS_SCALARS);
    mtprof_model_free(model);
}

TEST(doubles_are_torchs)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "[\"0.\"]"},
                 {1, "[\"1.\"]"},
                 {-2, "[\"-2.\"]"},
                 {0.5, "[\"0.5\"]"},
                 {0.9, "[\"0.90000000000000002\"]"},
                 {-0.49999999999999994, "[\"-0.49999999999999994\"]"},
                 {1e300, "[\"1.0000000000000001e+300\"]"},
                 {1e16, "[\"10000000000000000.\"]"},
                 {__builtin_inf(), "[\"inf\"]"},
                 {-__builtin_inf(), "[\"-inf\"]"},
                 {__builtin_nan(""), "[\"nan\"]"}};
    const uint64_t words[] = {word(4, 0, 0, 0)};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t scalar = real(cases[i].value);
        mtprof__inputs_view view = {NULL, words, &scalar, 1, 1};
        CHECK_EQ_STR(show(mtprof__write_concrete_inputs, &view), cases[i].text);
    }
}

TEST(keywords_stand_under_their_own_names)
{
    mtprof_model *model = make_model();
    const uint64_t words[] = {word(3, 0, 0, 0),
                              word(7, 0, 0, string_of(model, "stream")),
                              word(3, 0, 0, 0),
                              word(7, 0, 0, string_of(model, "gr\"id")),
                              word(2, 0, 0, 3),
                              word(3, 0, 0, 0),
                              word(2, 0, 0, 1),
                              word(4, 0, 0, 0),
                              word(1, 2, 0, 0),
                              5,
                              6,
                              word(7, 0, 0, string_of(model, "flag")),
                              word(5, 0, 0, 0),
                              word(7, 0, 0, string_of(model, "mode")),
                              word(6, 0, 0, 0),
                              word(7, 0, 0, string_of(model, "none")),
                              word(0, 0, 0, 0),
                              word(7, 0, 0, string_of(model, "empty")),
                              word(2, 0, 0, 0)};
    const uint64_t scalars[] = {9, 7, 1, real(0.5), 1, string_of(model, "max")};
    mtprof__inputs_view view = {model, words, scalars, sizeof words / 8, sizeof scalars / 8};
    CHECK_EQ_STR(show(write_keywords, &view),
                 ", \"stream\": 7, \"gr\\\"id\": [1, [0.5], [5, 6]], \"flag\": true, "
                 "\"mode\": \"max\", \"none\": null, \"empty\": []");
    CHECK_EQ_STR(show(mtprof__write_concrete_inputs, &view), "[\"9\"]");
    CHECK_EQ_STR(show(mtprof__write_input_types, &view), "[\"Scalar\"]");
    CHECK_EQ_STR(show(mtprof__write_input_shapes, &view), "[[]]");
    uint32_t facts = mtprof__inputs_facts(words, sizeof words / 8);
    CHECK_EQ_U64(facts, MTPROF__INPUTS_TENSORS | MTPROF__INPUTS_SCALARS | MTPROF__INPUTS_KEYWORDS |
                            MTPROF__INPUTS_KEYWORD_SCALARS);
    mtprof_model_free(model);
}

TEST(long_lists_are_left_out)
{
    mtprof_model *model = make_model();
    for (unsigned n = 29; n <= 32; n++) {
        uint64_t words[80];
        uint64_t scalars[40] = {0};
        unsigned w = 0;
        words[w++] = word(2, 0, 0, n);
        for (unsigned i = 0; i < n; i++) {
            words[w++] = word(1, 0, 0, 0);
        }
        words[w++] = word(2, 0, 0, n);
        for (unsigned i = 0; i < n; i++) {
            words[w++] = word(3, 0, 0, 0);
        }
        mtprof__inputs_view view = {model, words, scalars, w, n};
        bool dims = strcmp(show(mtprof__write_input_dims, &view), "[[], []]") != 0;
        CHECK(dims == (n <= 30));
        bool values = strcmp(show(mtprof__write_concrete_inputs, &view), "[\"\", \"\"]") != 0;
        CHECK(values == (n <= 30));
    }
    mtprof_model_free(model);
}

TEST(nothing_gives_empty_arrays)
{
    const uint64_t none[1] = {0};
    mtprof__inputs_view view = {NULL, none, none, 0, 0};
    CHECK_EQ_STR(show(mtprof__write_input_dims, &view), "[]");
    CHECK_EQ_STR(show(mtprof__write_input_types, &view), "[]");
    CHECK_EQ_STR(show(mtprof__write_concrete_inputs, &view), "[]");
    CHECK_EQ_STR(show(mtprof__write_input_shapes, &view), "[]");
    CHECK_EQ_U64(mtprof__inputs_facts(none, 0), 0);
}

/* IT1: any words at all, in memory that is exactly as long as they say. */
TEST(any_words_are_read_within_bounds)
{
    uint64_t seed = mt_test_seed();
    mtprof_model *model = make_model();
    render *const renders[] = {mtprof__write_input_dims,   mtprof__write_input_strides,
                               mtprof__write_input_types,  mtprof__write_concrete_inputs,
                               mtprof__write_input_shapes, write_keywords};
    for (int round = 0; round < 4000; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t n = (uint32_t)(seed >> 40) % 24;
        uint32_t n_scalars = (uint32_t)(seed >> 50) % 4;
        uint64_t *words = malloc(n * 8 + 1);
        uint64_t *scalars = malloc(n_scalars * 8 + 1);
        REQUIRE(words != NULL && scalars != NULL);
        for (uint32_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t upper = seed >> 62 == 0 ? 0xFFFFFFFF : seed >> 45 & 7;
            words[i] = word(seed >> 33 & 7, seed >> 36 & 3, seed >> 38 & 1, upper);
        }
        for (uint32_t i = 0; i < n_scalars; i++) {
            scalars[i] = seed + i;
        }
        mtprof__inputs_view view = {model, words, scalars, n, n_scalars};
        for (size_t i = 0; i < sizeof renders / sizeof renders[0]; i++) {
            (void)show(renders[i], &view);
        }
        (void)mtprof__inputs_facts(words, n);
        free(words);
        free(scalars);
    }
    mtprof_model_free(model);
}
