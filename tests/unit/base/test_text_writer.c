/* SPDX-License-Identifier: Apache-2.0
 *
 * Text into a sink: numbers, JSON strings, buffers that are just full.
 */
#include "base/alloc.h"
#include "base/text_writer.h"
#include "harness/mt_test.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *taken;
static size_t taken_length, taken_capacity;
static int sink_error;

static int take(void *context, const void *bytes, size_t length)
{
    (void)context;
    if (sink_error != 0) {
        return sink_error;
    }
    if (taken_length + length + 1 > taken_capacity) {
        taken_capacity = 2 * (taken_length + length + 1);
        taken = realloc(taken, taken_capacity);
        REQUIRE(taken != NULL);
    }
    memcpy(taken + taken_length, bytes, length);
    taken_length += length;
    taken[taken_length] = '\0';
    return 0;
}

static mtb_writer start(void)
{
    mtb_writer writer;
    taken_length = 0;
    REQUIRE(mtb_writer_init(&writer, take, NULL));
    return writer;
}

static const char *finish(mtb_writer *writer)
{
    REQUIRE(mtb_writer_finish(writer) == 0);
    return taken_length > 0 ? taken : "";
}

static void check_number(int64_t value)
{
    char at[64], wanted[64];
    *mtb_put_u64(at, (uint64_t)value) = '\0';
    snprintf(wanted, sizeof wanted, "%" PRIu64, (uint64_t)value);
    CHECK_EQ_STR(at, wanted);
    *mtb_put_i64(at, value) = '\0';
    snprintf(wanted, sizeof wanted, "%" PRId64, value);
    CHECK_EQ_STR(at, wanted);
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *mtb_put_thousandths(at, value) = '\0';
    snprintf(wanted, sizeof wanted, "%s%" PRIu64 ".%03u", value < 0 ? "-" : "", magnitude / 1000,
             (unsigned)(magnitude % 1000));
    CHECK_EQ_STR(at, wanted);
}

TEST(numbers)
{
    uint64_t seed = mt_test_seed();
    for (uint64_t power = 1; power != 0; power = power > UINT64_MAX / 10 ? 0 : power * 10) {
        for (int d = -2; d <= 2; d++) {
            check_number((int64_t)(power + (uint64_t)d));
            check_number(-(int64_t)(power + (uint64_t)d));
        }
    }
    check_number(INT64_MIN);
    check_number(INT64_MAX);
    for (int64_t i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        check_number(i);
        check_number((int64_t)(seed >> (i % 64)));
    }
}

TEST(doubles_read_back_and_ignore_the_locale)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.0"},
                 {-0.0, "-0.0"},
                 {1, "1.0"},
                 {0.1, "0.1"},
                 {1e300, "1e+300"},
                 {1.0 / 3, "0.3333333333333333"},
                 {-2.5, "-2.5"},
                 {__builtin_inf(), "null"},
                 {__builtin_nan(""), "null"}};
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
    for (size_t l = 0; l < sizeof locales / sizeof locales[0]; l++) {
        if (setlocale(LC_NUMERIC, locales[l]) == NULL) {
            continue; /* not installed: the C locale above is always there */
        }
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            mtb_writer writer = start();
            mtb_write_double(&writer, cases[i].value);
            CHECK_EQ_STR(finish(&writer), cases[i].text);
        }
    }
    setlocale(LC_NUMERIC, "C");
}

TEST(json_strings)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *text;
        uint64_t replaced;
    } cases[] = {
        {"", 0, "\"\"", 0},
        {"plain", 5, "\"plain\"", 0},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\"", 0},
        {"\n\r\t\b\f\x01\x1f\x7f", 8, "\"\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f\"", 0},
        {"x\0y", 3, "\"x\\u0000y\"", 0},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"", 0},
        {"\xff", 1, "\"\xEF\xBF\xBD\"", 1},
        {"a\xc3", 2, "\"a\xEF\xBF\xBD\"", 1},
        {"\xc0\x80", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"", 2},                 /* over-long */
        {"\xed\xa0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 3}, /* a surrogate */
        {"\xf4\x90\x80\x80", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 4},
        {"\xe2\x82x", 3, "\"\xEF\xBF\xBDx\"", 2}, /* one mark for a maximal part */
        {"\xf0\x9f\x98", 3, "\"\xEF\xBF\xBD\"", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtb_writer writer = start();
        mtb_write_json(&writer, cases[i].bytes, cases[i].length);
        CHECK_EQ_U64(writer.replaced, cases[i].replaced);
        CHECK_EQ_STR(finish(&writer), cases[i].text);
    }
}

/* Pieces of all sizes around the buffer's end arrive whole and in order. */
TEST(pieces_of_any_size)
{
    enum {
        MOST = 3 * MTB_WRITER_BYTES
    };
    char *piece = malloc(MOST);
    REQUIRE(piece != NULL);
    for (size_t i = 0; i < MOST; i++) {
        piece[i] = (char)('a' + i % 23);
    }
    static const size_t sizes[] = {0,
                                   1,
                                   MTB_WRITER_ROOM - 1,
                                   MTB_WRITER_ROOM,
                                   MTB_WRITER_ROOM + 1,
                                   MTB_WRITER_BYTES - 1,
                                   MTB_WRITER_BYTES,
                                   MTB_WRITER_BYTES + 1,
                                   MOST};
    mtb_writer writer = start();
    uint64_t total = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            mtb_write(&writer, piece, sizes[i]);
            total += sizes[i];
            CHECK_EQ_U64(mtb_writer_total(&writer), total);
        }
    }
    CHECK(mtb_writer_finish(&writer) == 0);
    CHECK_EQ_U64(taken_length, total);
    size_t at = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; at += sizes[i], i++) {
            CHECK(memcmp(taken + at, piece, sizes[i]) == 0);
        }
    }
    free(piece);
}

TEST(a_failure_stays)
{
    mtb_writer writer = start();
    sink_error = ENOSPC;
    mtb_write_text(&writer, "lost");
    mtb_writer_flush(&writer);
    sink_error = 0;
    mtb_write_text(&writer, "also lost");
    CHECK_EQ_I64(mtb_writer_finish(&writer), ENOSPC);
    CHECK_EQ_U64(taken_length, 0);
    mtb_fail_nth(1, false);
    CHECK(!mtb_writer_init(&writer, take, NULL));
    mtb_fail_nth(0, false);
    CHECK_EQ_I64(mtb_writer_finish(&writer), ENOMEM);
}
