/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON from outside: what is believed, and how it is written again.
 */
#include "base/text_writer.h"
#include "harness/mt_test.h"
#include "mtprof/export/json_text.h"

#include <stdlib.h>
#include <string.h>

static char shown[4096];
static size_t shown_length;

static int take(void *context, const void *bytes, size_t length)
{
    (void)context;
    REQUIRE(shown_length + length < sizeof shown);
    memcpy(shown + shown_length, bytes, length);
    shown_length += length;
    return 0;
}

static const char *spaced(const char *text, size_t length)
{
    mtb_writer writer;
    shown_length = 0;
    REQUIRE(mtb_writer_init(&writer, take, NULL));
    mtprof__json_write_spaced(&writer, text, length);
    REQUIRE(mtb_writer_finish(&writer) == 0);
    shown[shown_length] = '\0';
    return shown;
}

TEST(valid_json_is_believed)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1.5e+10",
                                        "-12.25E-3",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "\"a\\n\\u00e4\"",
                                        "\"\\ud83d\\ude00\"",
                                        "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"",
                                        "[]",
                                        "{}",
                                        " [ ] ",
                                        "[1,2 , 3]",
                                        "{\"a\":1}",
                                        "{\"a\":{\"b\":[{},[]]},\"c\":null}\n",
                                        "\t[[[[]]]]\r\n",
                                        "{\"rank\":0,\"world_size\":8}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!CHECK(mtprof__json_valid(texts[i], strlen(texts[i])))) {
            FAIL("refused: %s", texts[i]);
        }
    }
}

TEST(what_is_no_json_is_refused)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "01",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "-",
                                        "tru",
                                        "nul",
                                        "NaN",
                                        "Infinity",
                                        "-Infinity",
                                        "'a'",
                                        "\"",
                                        "\"a",
                                        "\"\n\"",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\ud83d\"",
                                        "\"\\ude00\"",
                                        "\"\\ud83dx\"",
                                        "[",
                                        "]",
                                        "[1",
                                        "[1,]",
                                        "[,1]",
                                        "{",
                                        "}",
                                        "{a:1}",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{\"a\" 1}",
                                        "[1 2]",
                                        "1 2",
                                        "{}{}",
                                        "[}",
                                        "{]",
                                        "\"\xff\"",
                                        "\"\xc3\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xc0\x80\"",
                                        "// c\n1",
                                        "{\"a\":1 \"b\":2}",
                                        "[\"a\":1]",
                                        "{1:2}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!CHECK(!mtprof__json_valid(texts[i], strlen(texts[i])))) {
            FAIL("believed: %s", texts[i]);
        }
    }
    CHECK(!mtprof__json_valid("1\0", 2));
    CHECK(!mtprof__json_valid("\"\0\"", 3));
}

TEST(depth_is_bounded)
{
    char text[2 * MTPROF__EMBED_DEPTH + 2];
    for (size_t depth = MTPROF__EMBED_DEPTH - 1; depth <= MTPROF__EMBED_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK(mtprof__json_valid(text, 2 * depth) == (depth <= MTPROF__EMBED_DEPTH));
    }
    /* Only brackets that open: the end is reached long before the depth is. */
    memset(text, '{', sizeof text);
    CHECK(!mtprof__json_valid(text, sizeof text));
}

TEST(numbers_are_bounded)
{
    char text[513];
    memset(text, '1', sizeof text);
    CHECK(mtprof__json_valid(text, 512));
    CHECK(!mtprof__json_valid(text, 513));
}

TEST(json_is_written_on_one_line_with_blanks)
{
    static const char *const pairs[][2] = {
        {"{\"rank\":0}", "{\"rank\": 0}"},
        {"{\n \"rank\" : 0 ,\n\"b\":[1,2]\t}", "{\"rank\": 0, \"b\": [1, 2]}"},
        {" \"a, b: \\\"c\\\" \" ", "\"a, b: \\\"c\\\" \""},
        {"[]", "[]"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        CHECK_EQ_STR(spaced(pairs[i][0], strlen(pairs[i][0])), pairs[i][1]);
    }
}

TEST(metadata_becomes_valid_json)
{
    static const struct {
        mtprof_metadatum item;
        const char *text;
    } cases[] = {
        {{.type = MTPROF_META_INT, .value = (uint64_t)-5}, "-5"},
        {{.type = MTPROF_META_UINT, .value = UINT64_MAX}, "18446744073709551615"},
        {{.type = MTPROF_META_BOOL, .value = 1}, "true"},
        {{.type = MTPROF_META_REAL, .value = 0x3FE0000000000000}, "0.5"},
        {{.type = MTPROF_META_REAL, .value = 0x7FF0000000000000}, "null"},
        {{.type = MTPROF_META_TEXT, .text = {"a\"\\\n\xff", 5}}, "\"a\\\"\\\\\\n\xEF\xBF\xBD\""},
        {{.type = MTPROF_META_TEXT, .is_json = 1, .text = {"{\"a\":1}", 7}}, "{\"a\": 1}"},
        {{.type = MTPROF_META_TEXT, .is_json = 1, .text = {"{a:1}", 5}}, "\"{a:1}\""},
        {{.type = MTPROF_META_TEXT, .is_json = 1, .text = {"", 0}}, "\"\""},
        {{.type = 99, .text = {"x", 1}}, "\"x\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtb_writer writer;
        shown_length = 0;
        REQUIRE(mtb_writer_init(&writer, take, NULL));
        mtprof__json_write_metadatum(&writer, &cases[i].item);
        REQUIRE(mtb_writer_finish(&writer) == 0);
        shown[shown_length] = '\0';
        CHECK_EQ_STR(shown, cases[i].text);
        CHECK(mtprof__json_valid(shown, shown_length));
    }
}

/* Random bytes made of JSON's own characters: what is believed can be written and is believed
 * again, and no byte outside is read (the buffer is exactly as long). */
TEST(random_texts)
{
    static const char letters[] = "{}[]\",:\\u0123456789eE+-. tfn\n\x80\xc3\xa4rulsa";
    uint64_t seed = mt_test_seed();
    unsigned believed = 0;
    for (int round = 0; round < 200000; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t n = (seed >> 40) % 10;
        char *text = malloc(n + 1);
        REQUIRE(text != NULL);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = letters[(seed >> 33) % (sizeof letters - 1)];
        }
        char *exact = realloc(text, n > 0 ? n : 1);
        REQUIRE(exact != NULL);
        if (mtprof__json_valid(exact, n)) {
            believed++;
            char again[64];
            const char *written = spaced(exact, n);
            size_t length = shown_length;
            REQUIRE(length < sizeof again);
            memcpy(again, written, length);
            CHECK(mtprof__json_valid(again, length));
        }
        free(exact);
    }
    CHECK(believed > 100);
}
