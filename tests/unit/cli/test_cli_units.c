/* SPDX-License-Identifier: Apache-2.0
 *
 * The command's small parts: quantities, texts of traces, progress.
 */
#include "cli/term.h"
#include "cli/units.h"
#include "harness/mt_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- quantities ------------------------------------------------------------------------------ */

TEST(durations_are_read)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"10us", 10000}, {"1.5ms", 1500000}, {"2s", 2000000000},     {"7 ns", 7},
                {"0", 0},        {"0.5us", 500},     {"2min", 120000000000}, {"3\xC2\xB5s", 3000}};
    static const char *const bad[] = {"",    "10",  "us", "-1us",  "1.2.3s",      "1h",
                                      "1e9", ".ms", "1 ", "10us ", "99999999999s"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ns = -1;
        CHECK(cli_parse_duration(good[i].text, &ns));
        CHECK_EQ_I64(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = -1;
        CHECK(!cli_parse_duration(bad[i], &ns));
        CHECK_EQ_I64(ns, -1);
    }
}

TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"4096", 4096}, {"64MiB", 67108864},  {"64M", 67108864},     {"100MB", 100000000},
                {"1.5K", 1536}, {"1 GB", 1000000000}, {"2GiB", 2147483648u}, {"0", 0},
                {"3B", 3}};
    static const char *const bad[] = {"", "MB", "-1", "1X", "1MiBs", "99999999999TB"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 1;
        CHECK(cli_parse_size(good[i].text, &bytes));
        CHECK_EQ_U64(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes = 1;
        CHECK(!cli_parse_size(bad[i], &bytes));
    }
}

TEST(whole_numbers_are_read)
{
    int64_t value = 0;
    CHECK(cli_parse_int("-42", &value));
    CHECK_EQ_I64(value, -42);
    CHECK(cli_parse_int("9223372036854775807", &value));
    CHECK_EQ_I64(value, INT64_MAX);
    CHECK(!cli_parse_int("9223372036854775808", &value));
    CHECK(!cli_parse_int("", &value));
    CHECK(!cli_parse_int("-", &value));
    CHECK(!cli_parse_int(" 1", &value));
    CHECK(!cli_parse_int("+1", &value));
    CHECK(!cli_parse_int("1x", &value));
}

TEST(durations_have_four_digits)
{
    CHECK_EQ_STR(cli_duration(0).text, "0 ns");
    CHECK_EQ_STR(cli_duration(-0.0).text, "0 ns");
    CHECK_EQ_STR(cli_duration(999).text, "999 ns");
    CHECK_EQ_STR(cli_duration(999.7).text, "1.000 us");
    CHECK_EQ_STR(cli_duration(1234).text, "1.234 us");
    CHECK_EQ_STR(cli_duration(9999.6).text, "10.00 us");
    CHECK_EQ_STR(cli_duration(123456).text, "123.5 us");
    CHECK_EQ_STR(cli_duration(999999).text, "1.000 ms");
    CHECK_EQ_STR(cli_duration(12.34e6).text, "12.34 ms");
    CHECK_EQ_STR(cli_duration(-1.5e6).text, "-1.500 ms");
    CHECK_EQ_STR(cli_duration(1.5e9).text, "1.500 s");
    CHECK_EQ_STR(cli_duration(4000e9).text, "4000 s");
    CHECK_EQ_STR(cli_duration(9.2e18).text, "9200000000 s");
    CHECK_EQ_STR(cli_duration(-1.5e300).text, "-1.500e291 s"); /* from a file that says anything */
    CHECK_EQ_STR(cli_duration((double)INFINITY).text, "inf s");
}

TEST(bytes_and_counts_are_printed)
{
    CHECK_EQ_STR(cli_bytes(0).text, "0 B");
    CHECK_EQ_STR(cli_bytes(1023).text, "1023 B");
    CHECK_EQ_STR(cli_bytes(1024).text, "1.0 KiB");
    CHECK_EQ_STR(cli_bytes(-1536).text, "-1.5 KiB");
    CHECK_EQ_STR(cli_bytes(1048575).text, "1.0 MiB");
    CHECK_EQ_STR(cli_bytes(3.0 * 1024 * 1024 * 1024).text, "3.0 GiB");
    CHECK_EQ_STR(cli_signed_bytes(64).text, "+64 B");
    CHECK_EQ_STR(cli_signed_bytes(0).text, "0 B");
    CHECK_EQ_STR(cli_count(0).text, "0");
    CHECK_EQ_STR(cli_count(999).text, "999");
    CHECK_EQ_STR(cli_count(1000).text, "1,000");
    CHECK_EQ_STR(cli_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    CHECK_EQ_STR(cli_change(0.0004).text, "0.0 %");
    CHECK_EQ_STR(cli_change(0.123).text, "+12.3 %");
    CHECK_EQ_STR(cli_change(-0.5).text, "-50.0 %");
    CHECK_EQ_STR(cli_change(11).text, "x12.0");
}

/* ---- text of traces -------------------------------------------------------------------------- */

static const char *shown(const char *bytes, size_t length, size_t width)
{
    static char text[256];
    FILE *out = fmemopen(text, sizeof text, "w");
    REQUIRE(out != NULL);
    cli_print_text(out, (mtprof_text){bytes, length}, width);
    fputc('\0', out);
    fclose(out);
    return text;
}

TEST(text_cannot_hurt_a_terminal)
{
    CHECK_EQ_STR(shown("a\033[31mb\n", 8, 0), "a\\x1b[31mb\\x0a");
    CHECK_EQ_STR(shown("\xC2\x9B", 2, 0), "\\x9b"); /* CSI in one character */
    CHECK_EQ_STR(shown("x\xFF\xC0\x80y", 5, 0), "x\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDy");
    CHECK_EQ_STR(shown("\xED\xA0\x80", 3, 0), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK_EQ_STR(shown("\xC3", 1, 0), "\xEF\xBF\xBD"); /* cut short */
    CHECK_EQ_STR(shown("\x7F", 1, 0), "\\x7f");
}

TEST(text_keeps_its_columns)
{
    CHECK_EQ_STR(shown("abc", 3, 5), "abc  ");
    CHECK_EQ_STR(shown("abcde", 5, 5), "abcde");
    CHECK_EQ_STR(shown("abcdef", 6, 5), "ab\xE2\x80\xA6"
                                        "ef");
    CHECK_EQ_STR(shown("aten::convolution_backward", 26, 14), "aten::c\xE2\x80\xA6"
                                                              "ckward");
    CHECK_EQ_STR(shown("\xC3\xBC\xC3\xBC\xC3\xBC", 6, 4), "\xC3\xBC\xC3\xBC\xC3\xBC ");
    CHECK_EQ_STR(shown("\n\n", 2, 6), "\xE2\x80\xA6     "); /* neither fits */
    CHECK_EQ_STR(shown("a\n\n", 3, 6), "a\xE2\x80\xA6    ");
    CHECK_EQ_U64(cli_text_width((mtprof_text){"\n\xC3\xBC", 3}), 5);
}

/* ---- progress -------------------------------------------------------------------------------- */

static int64_t now_ms;

static int64_t test_clock(void)
{
    return now_ms;
}

TEST(progress_waits_a_second_and_cleans_up)
{
    char text[512] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    REQUIRE(out != NULL);
    setvbuf(out, NULL, _IONBF, 0);
    cli_progress_test(test_clock, out);
    now_ms = 5000;
    cli_progress_start("x.mtt", false);
    now_ms = 5999;
    CHECK_EQ_I64(cli_progress_step(NULL, "reading", 1, 4), 0);
    CHECK_EQ_STR(text, "");
    now_ms = 6000;
    cli_progress_step(NULL, "reading", 2, 4);
    CHECK_EQ_STR(text, "\r\033[Kx.mtt: reading  50 %");
    now_ms = 6050; /* too soon to draw again */
    cli_progress_step(NULL, "reading", 3, 4);
    CHECK_EQ_STR(text, "\r\033[Kx.mtt: reading  50 %");
    cli_progress_end();
    CHECK_EQ_STR(text, "\r\033[Kx.mtt: reading  50 %\r\033[K");
    cli_progress_end(); /* nothing left to remove */
    CHECK_EQ_STR(text, "\r\033[Kx.mtt: reading  50 %\r\033[K");
    fclose(out);
}

TEST(progress_is_quiet_when_asked)
{
    char text[128] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    REQUIRE(out != NULL);
    setvbuf(out, NULL, _IONBF, 0);
    cli_progress_test(test_clock, out);
    now_ms = 0;
    cli_progress_start("x.mtt", true);
    now_ms = 100000;
    cli_progress_step(NULL, "reading", 1, 4);
    cli_progress_end();
    CHECK_EQ_STR(text, "");
    fclose(out);
}

TEST(progress_without_total_counts)
{
    char text[128] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    REQUIRE(out != NULL);
    setvbuf(out, NULL, _IONBF, 0);
    cli_progress_test(test_clock, out);
    now_ms = 0;
    cli_progress_start("x.json", false);
    now_ms = 1500;
    cli_progress_step(NULL, "reading", 12345, 0);
    CHECK_EQ_STR(text, "\r\033[Kx.json: reading 12,345");
    fclose(out);
}
