/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, see json_out.h. One document a process, so its state is static.
 */
#include "cli/json_out.h"

#include "cli/term.h"

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

static void quote(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    putchar('"');
    while (at < end) {
        size_t n = cli_utf8_length((const char *)at, (size_t)(end - at));
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

void cli_json_device(const mtprof_model *model, uint32_t index)
{
    mtprof_device device;
    if (mtprof_model_device(model, index, &device)) {
        cli_json_text("device_type", device.type);
        cli_json_int("device_index", device.index);
    }
}
