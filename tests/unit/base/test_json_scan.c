/* SPDX-License-Identifier: Apache-2.0
 *
 * Scanning JSON: values, strings, numbers without rounding. JSC1 to JSC3 are in json_scan.h.
 */
#include "base/json/json_scan.h"
#include "harness/mt_test.h"
#include "mtprof/import/import_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text with a sentinel after it (JSC1), in memory of its own so that a sanitizer sees its end. */
typedef struct text {
    char *bytes;
    mtb_scan scan;
} text;

static text make(const char *from, size_t length)
{
    text made = {.bytes = malloc(length + 1 + MTB_SCAN_PAD)};
    REQUIRE(made.bytes != NULL);
    memcpy(made.bytes, from, length);
    made.bytes[length] = '"';
    memset(made.bytes + length + 1, 0, MTB_SCAN_PAD);
    made.scan = (mtb_scan){.at = made.bytes, .end = made.bytes + length};
    return made;
}

static int scan(const char *from, mtb_slice *out, size_t *used, text *kept)
{
    *kept = make(from, strlen(from));
    int status = mtb_scan_value(&kept->scan, out);
    *used = (size_t)(kept->scan.at - kept->bytes);
    return status;
}

TEST(values_and_where_they_end)
{
    static const struct {
        const char *text;
        int type;
        size_t used;
    } cases[] = {
        {"true,", MTB_SLICE_TRUE, 4},
        {"false]", MTB_SLICE_FALSE, 5},
        {" null }", MTB_SLICE_NULL, 5},
        {"12,", MTB_SLICE_INT, 2},
        {"-0]", MTB_SLICE_INT, 2},
        {"1.5e-3 ", MTB_SLICE_REAL, 6},
        {"\"a\\\"b\" ", MTB_SLICE_STRING, 6},
        {"[1, [2], \"]\"] ", MTB_SLICE_ARRAY, 13},
        {"{\"a\": {}} ", MTB_SLICE_OBJECT, 9},
        {"NaN,", MTB_SLICE_REAL, 3},
        {"-Infinity,", MTB_SLICE_REAL, 9},
        {"12345678901234567890 ", MTB_SLICE_REAL, 20},
        {"-9223372036854775808 ", MTB_SLICE_REAL, 20}, /* its negative does not fit */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtb_slice slice;
        size_t used;
        text kept;
        memset(&slice, 0xA5, sizeof slice); /* every field is set, whatever the type */
        CHECK_EQ_I64(scan(cases[i].text, &slice, &used, &kept), MTB_SCAN_OK);
        CHECK_EQ_I64(slice.type, cases[i].type);
        CHECK_EQ_I64(slice.escaped, strchr(cases[i].text, '\\') != NULL);
        CHECK_EQ_I64(slice.integer, cases[i].type == MTB_SLICE_INT ? atoi(cases[i].text) : 0);
        CHECK_EQ_U64(used, cases[i].used);
        free(kept.bytes);
    }
}

/* JSC2: every beginning of a text asks for more, and never reads it as something else. */
TEST(cut_values_ask_for_more)
{
    static const char whole[] =
        "{\"a\\\\\": [1, -2.5e+3, \"\\u00e9\\\"\", {\"b\": null}], \"c\": true, \"d\": \"x\"}";
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        text cut = make(whole, length);
        mtb_slice slice;
        CHECK_EQ_I64(mtb_scan_value(&cut.scan, &slice), MTB_SCAN_MORE);
        free(cut.bytes);
    }
}

TEST(bad_values_are_told)
{
    static const char *const cases[] = {"}",     "]",   ",",           "x ", "tru3 ",
                                        "nul1 ", "[1}", "{\"a\": [}]", "-x", "Nan "};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtb_slice slice;
        size_t used;
        text kept;
        CHECK_EQ_I64(scan(cases[i], &slice, &used, &kept), MTB_SCAN_BAD);
        CHECK(kept.scan.wanted != NULL);
        free(kept.bytes);
    }
}

TEST(depth_is_bounded)
{
    char deep[2 * MTB_JSON_DEPTH + 8];
    for (int extra = 0; extra < 2; extra++) {
        size_t n = MTB_JSON_DEPTH + (size_t)extra;
        memset(deep, '[', n);
        memset(deep + n, ']', n);
        deep[2 * n] = '\0';
        mtb_slice slice;
        size_t used;
        text kept;
        CHECK_EQ_I64(scan(deep, &slice, &used, &kept), extra == 0 ? MTB_SCAN_OK : MTB_SCAN_BAD);
        free(kept.bytes);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void check_ns(const char *number, bool known, int64_t ns)
{
    char padded[128];
    snprintf(padded, sizeof padded, "%s,", number);
    text kept = make(padded, strlen(padded));
    int64_t value = 0;
    bool is_known = false;
    CHECK_EQ_I64(mtb_scan_time(&kept.scan, &value, &is_known), MTB_SCAN_OK);
    if (is_known != known || (known && value != ns)) {
        FAIL("%s: %lld ns (%s), expected %lld", number, (long long)value,
             is_known ? "known" : "unknown", (long long)ns);
    }
    CHECK_EQ_I64(kept.scan.at - kept.bytes, (int64_t)strlen(number));
    free(kept.bytes);
}

TEST(times_are_exact)
{
    check_ns("3867963656005.998", true, 3867963656005998);
    check_ns("3867963656005.9", true, 3867963656005900);
    check_ns("3867963656005", true, 3867963656005000);
    check_ns("0", true, 0);
    check_ns("0.001", true, 1);
    check_ns("0.0004", true, 0);
    check_ns("0.0005", true, 1);
    check_ns("0.00049999999999", true, 0);
    check_ns("14.980000000000018", true, 14980);
    check_ns("31.712999999999965", true, 31713);
    check_ns("-5.5", true, -5500);
    check_ns("1e3", true, 1000000);
    check_ns("1.5E+2", true, 150000);
    check_ns("25e-4", true, 3); /* 2.5 ns, rounded away from zero */
    check_ns("4007199254740993.125", true, 4007199254740993125); /* no double has it */
    check_ns("4611686018427387.903", true, 4611686018427387903);
    check_ns("4611686018427387.904", false, 0); /* 2^62 */
    check_ns("1e30", false, 0);
    check_ns("1e-30", true, 0);
    check_ns("1e999999999999", false, 0);
    check_ns("0e999999999999", true, 0);
    check_ns("\"12.5\"", true, 12500);
    check_ns("null", false, 0);
    check_ns("[1]", false, 0);
    check_ns("NaN", false, 0);
}

/* Any nanosecond, written with three digits or with as many as a double needs. */
TEST(times_random)
{
    uint64_t state = mt_test_seed();
    for (int i = 0; i < 20000; i++) {
        int64_t ns = (int64_t)(mt_test_random(&state) >> (mt_test_random(&state) % 50 + 2));
        char number[64];
        snprintf(number, sizeof number, "%lld.%03lld", (long long)ns / 1000, (long long)ns % 1000);
        check_ns(number, ns < (int64_t)1 << 62, ns);
        if (ns < (int64_t)1 << 48) { /* up to here a double distinguishes them */
            snprintf(number, sizeof number, "%.17g", (double)ns / 1e3);
            check_ns(number, true, ns);
        }
    }
}

static bool integer_of(const char *from, int64_t *out)
{
    mtb_slice slice;
    size_t used;
    text kept;
    char padded[128];
    snprintf(padded, sizeof padded, "%s ", from);
    CHECK_EQ_I64(scan(padded, &slice, &used, &kept), MTB_SCAN_OK);
    bool known = mtb_slice_integer(&slice, out);
    free(kept.bytes);
    return known;
}

TEST(whole_numbers)
{
    int64_t value = 0;
    CHECK(integer_of("140318124042752", &value) && value == 140318124042752);
    CHECK(integer_of("-1", &value) && value == -1);
    CHECK(integer_of("7.9", &value) && value == 7);
    CHECK(integer_of("1e3", &value) && value == 1000);
    CHECK(integer_of("\"0x1f\"", &value) && value == 31);
    CHECK(integer_of("\"42\"", &value) && value == 42);
    CHECK(integer_of("999999999999999999", &value) && value == 999999999999999999);
    CHECK(!integer_of("99999999999999999999", &value));
    CHECK(!integer_of("\"0xg\"", &value));
    CHECK(!integer_of("\"abc\"", &value));
    CHECK(!integer_of("true", &value));
}

/* ---- strings --------------------------------------------------------------------------------- */

static void check_text(const char *json, const char *want, size_t length)
{
    mtb_slice slice;
    size_t used;
    text kept;
    char room[256];
    char padded[256];
    snprintf(padded, sizeof padded, "%s ", json);
    CHECK_EQ_I64(scan(padded, &slice, &used, &kept), MTB_SCAN_OK);
    REQUIRE(slice.length <= sizeof room);
    CHECK_EQ_U64(mtb_slice_decode(&slice, room), length);
    CHECK_EQ_MEM(room, want, length);
    free(kept.bytes);
}

TEST(escapes)
{
    check_text("\"plain\"", "plain", 5);
    check_text("\"\"", "", 0);
    check_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    check_text("\"\\u0041\\u00e9\\u20ac\"", "A\xC3\xA9\xE2\x82\xAC", 6);
    check_text("\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80", 4);
    check_text("\"\\ud83d\"", "\xEF\xBF\xBD", 3);   /* half a pair */
    check_text("\"\\ude00x\"", "\xEF\xBF\xBDx", 4); /* the other half */
    check_text("\"\\ud83d\\u0041\"",
               "\xEF\xBF\xBD"
               "A",
               4); /* half, then something else */
    check_text("\"\\uD83D\\uDE00\"", "\xF0\x9F\x98\x80", 4);
    check_text("\"\\u12\"", "u12", 3);
    check_text("\"\\uzzzz\"", "uzzzz", 5);
    check_text("\"\\x\"", "x", 1);
    check_text("\"\xFF\xFE\"", "\xFF\xFE", 2); /* no UTF-8: left alone */
    check_text("\"\\u0000\"", "", 1);
}

TEST(long_strings_at_any_offset)
{
    for (size_t length = 0; length < 70; length++) {
        char from[128];
        from[0] = '"';
        memset(from + 1, 'x', length);
        memcpy(from + 1 + length, "\\\"\" ", 5);
        mtb_slice slice;
        size_t used;
        text kept;
        CHECK_EQ_I64(scan(from, &slice, &used, &kept), MTB_SCAN_OK);
        CHECK_EQ_U64(slice.length, length + 2);
        CHECK_EQ_U64(slice.escaped, 1);
        free(kept.bytes);
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

TEST(every_known_argument_is_found)
{
    for (unsigned arg = 0; arg < MTPROF__ARG_COUNT; arg++) {
        mtprof_text key = mtprof__arg_key(arg);
        unsigned found = mtprof__arg_of(key.bytes, key.length);
        if (found != arg) {
            FAIL("'%s' is argument %u, found %u", key.bytes, arg, found);
        }
    }
    CHECK_EQ_U64(mtprof__arg_of("External if", 11), MTPROF__ARG_COUNT);
    CHECK_EQ_U64(mtprof__arg_of("", 0), MTPROF__ARG_COUNT);
}

TEST(entry_in_any_order)
{
    static const char entry[] =
        "{\"args\": {\"External id\": 7, \"odd\": [1], \"correlation\": 9}, \"dur\": 1.5, \"tts\": 3,"
        " \"ts\": 2, \"tid\": \"a\", \"pid\": 1, \"name\": \"n\", \"cat\": \"c\", \"ph\": \"X\"} ";
    text kept = make(entry, sizeof entry - 1);
    mtprof__raw_event *raw = malloc(sizeof *raw);
    REQUIRE(raw != NULL);
    memset(raw, 0xA5, sizeof *raw);
    CHECK_EQ_I64(mtprof__scan_event(&kept.scan, raw), MTB_SCAN_OK);
    CHECK_EQ_I64(raw->phase, 'X');
    CHECK(raw->id.type == MTB_SLICE_NONE && raw->id.bytes == NULL && raw->id.length == 0);
    CHECK(raw->has_ts && raw->ts_ns == 2000 && raw->has_dur && raw->dur_ns == 1500);
    CHECK_EQ_U64(raw->n_others, 1);
    const mtb_slice *id = mtprof__raw_arg(raw, MTPROF__ARG_EXTERNAL_ID);
    REQUIRE(id != NULL);
    CHECK_EQ_I64(id->integer, 7);
    CHECK(mtprof__raw_arg(raw, MTPROF__ARG_STEP) == NULL);
    free(raw);
    free(kept.bytes);
}
