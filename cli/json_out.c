/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, see json_out.h. One document a process, so its state is static.
 */
#include "cli/json_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int depth;
static bool some;  /* the innermost container has a member */
static bool keyed; /* a key was written, its value comes next */

static void new_line(void)
{
    printf("\n%*s", 2 * depth, "");
}

/* Bytes of the well-formed UTF-8 character at `at`, 0 where there is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (n == 0 || n > left || at[0] > 0xF4) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool bad = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
               (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F);
    return bad ? 0 : n;
}

static void quote(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    putchar('"');
    while (at < end) {
        size_t n = utf8_length(at, (size_t)(end - at));
        if (n == 0) {
            fputs("\\ufffd", stdout);
            n = 1;
        } else if (*at == '"' || *at == '\\') {
            printf("\\%c", *at);
        } else if (*at < 0x20 || *at == 0x7F) {
            printf("\\u%04x", *at);
        } else {
            (void)fwrite(at, 1, n, stdout);
        }
        at += n;
    }
    putchar('"');
}

/* What precedes a value: a comma, a new line, its key. */
static void before(const char *key)
{
    if (keyed) {
        keyed = false;
        return;
    }
    if (some) {
        putchar(',');
    }
    if (depth > 0) {
        new_line();
    }
    if (key != NULL) {
        quote(key, strlen(key));
        fputs(": ", stdout);
    }
    some = true;
}

static void open_with(const char *key, char bracket)
{
    before(key);
    putchar(bracket);
    depth++;
    some = false;
}

static void close_with(char bracket)
{
    depth--;
    if (some) {
        new_line();
    }
    putchar(bracket);
    some = true;
    if (depth == 0) {
        putchar('\n');
        some = false;
    }
}

void cli_json_object(const char *key)
{
    open_with(key, '{');
}

void cli_json_array(const char *key)
{
    open_with(key, '[');
}

void cli_json_end_object(void)
{
    close_with('}');
}

void cli_json_end_array(void)
{
    close_with(']');
}

void cli_json_text(const char *key, mtprof_text value)
{
    before(key);
    quote(value.bytes, value.length);
}

void cli_json_string(const char *key, const char *value)
{
    if (value == NULL) {
        cli_json_null(key);
        return;
    }
    before(key);
    quote(value, strlen(value));
}

void cli_json_int(const char *key, int64_t value)
{
    before(key);
    printf("%lld", (long long)value);
}

void cli_json_uint(const char *key, uint64_t value)
{
    before(key);
    printf("%llu", (unsigned long long)value);
}

void cli_json_real(const char *key, double value)
{
    if (!isfinite(value)) {
        cli_json_null(key);
        return;
    }
    before(key);
    printf("%.15g", value);
}

void cli_json_bool(const char *key, bool value)
{
    before(key);
    fputs(value ? "true" : "false", stdout);
}

void cli_json_null(const char *key)
{
    before(key);
    fputs("null", stdout);
}

void cli_json_member(mtprof_text key)
{
    before(NULL);
    quote(key.bytes, key.length);
    fputs(": ", stdout);
    keyed = true;
}
