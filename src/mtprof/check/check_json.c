/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict JSON parser, see check_json.h.
 */
#include "mtprof/check/check_json.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

#include <mtprof/status.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    END = -1,
    NUMBER_BYTES = 512, /* a longer number is one that no reader takes as it was meant */
    FRACTION_DIGITS = 3
};

int mtprof__json_init(mtprof__json *json,
                      int64_t (*read)(void *context, void *buffer, size_t length), void *context)
{
    memset(json, 0, sizeof *json);
    json->read = read;
    json->context = context;
    json->line = 1;
    json->block = mtb_resize(NULL, MTPROF__JSON_BLOCK, 1);
    return json->block != NULL ? MTPROF_OK
                               : mtb_fail(MTPROF_ENOMEM, "check: no memory for %d bytes of text",
                                          MTPROF__JSON_BLOCK);
}

void mtprof__json_fini(mtprof__json *json)
{
    mtb_free(json->block);
    json->block = NULL;
}

/* ---- characters ------------------------------------------------------------------------------ */

MT_COLD static int refill(mtprof__json *json)
{
    if (json->ended || json->failed) {
        return END;
    }
    int64_t n = json->read(json->context, json->block, MTPROF__JSON_BLOCK);
    json->base += json->n;
    json->at = json->n = 0;
    if (n <= 0) {
        json->ended = true;
        json->failed = n < 0;
        json->status = n < 0 ? (int)n : 0;
        return END;
    }
    json->n = (size_t)n;
    return json->block[0];
}

/* The next byte, or END. */
MT_INLINE int peek(mtprof__json *json)
{
    return MT_LIKELY(json->at < json->n) ? json->block[json->at] : refill(json);
}

MT_INLINE int take(mtprof__json *json)
{
    int c = peek(json);
    json->at += c != END;
    return c;
}

static mtprof__json_place place_of(const mtprof__json *json)
{
    uint64_t offset = json->base + json->at;
    return (mtprof__json_place){offset, json->line, offset - json->line_start + 1};
}

/* Notes what is wrong, once. Always false. */
MT_COLD static bool fail_here(mtprof__json *json, mtprof__json_place place, const char *format, ...)
    MT_PRINTF(3, 4);
MT_COLD static bool fail_here(mtprof__json *json, mtprof__json_place place, const char *format, ...)
{
    if (!json->failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(json->message, sizeof json->message, format, args);
        va_end(args);
        json->bad = place;
        json->failed = true;
    }
    return false;
}

MT_COLD static bool unexpected(mtprof__json *json, int c, const char *expected)
{
    if (c == END) {
        return fail_here(json, place_of(json), "the text ends, expected %s", expected);
    }
    if (c > ' ' && c < 0x7F) {
        return fail_here(json, place_of(json), "'%c', expected %s", c, expected);
    }
    return fail_here(json, place_of(json), "byte %02x, expected %s", (unsigned)c, expected);
}

/* Passes white space; whether there was some. */
static bool skip_blanks(mtprof__json *json)
{
    bool some = false;
    for (;; some = true, json->at++) {
        int c = peek(json);
        if (c == '\n') {
            json->line++;
            json->line_start = json->base + json->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return some;
        }
    }
}

mtprof__json_place mtprof__json_here(mtprof__json *json)
{
    skip_blanks(json);
    return place_of(json);
}

/* ---- strings --------------------------------------------------------------------------------- */

static void keep(mtprof__json_value *value, unsigned char byte)
{
    if (value->length < MTPROF__JSON_TEXT) {
        value->text[value->length] = (char)byte;
    }
    value->length++;
    value->hash = (value->hash ^ byte) * 0x100000001B3u;
}

static void keep_code(mtprof__json_value *value, uint32_t code)
{
    if (code < 0x80) {
        keep(value, (unsigned char)code);
        return;
    }
    if (code < 0x800) {
        keep(value, (unsigned char)(0xC0 | code >> 6));
    } else if (code < 0x10000) {
        keep(value, (unsigned char)(0xE0 | code >> 12));
        keep(value, (unsigned char)(0x80 | (code >> 6 & 0x3F)));
    } else {
        keep(value, (unsigned char)(0xF0 | code >> 18));
        keep(value, (unsigned char)(0x80 | (code >> 12 & 0x3F)));
        keep(value, (unsigned char)(0x80 | (code >> 6 & 0x3F)));
    }
    keep(value, (unsigned char)(0x80 | (code & 0x3F)));
}

static bool take_hex(mtprof__json *json, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(json);
        uint32_t digit = 0;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f' && c != END) {
            digit = (uint32_t)((c | 0x20) - 'a' + 10);
        } else {
            return unexpected(json, c, "a hexadecimal digit");
        }
        *code = *code << 4 | digit;
        json->at++;
    }
    return true;
}

static bool is_high(uint32_t code)
{
    return code >= 0xD800 && code < 0xDC00;
}

static bool is_low(uint32_t code)
{
    return code >= 0xDC00 && code < 0xE000;
}

static void note_lone(mtprof__json *json, mtprof__json_value *value, mtprof__json_place place)
{
    if (json->lone_surrogates++ == 0) {
        json->first_lone = place;
    }
    keep_code(value, 0xFFFD);
}

/* Behind "\u". A high half waits in *high for what follows it. */
static bool take_code(mtprof__json *json, mtprof__json_value *value, uint32_t *high)
{
    mtprof__json_place place = place_of(json);
    uint32_t code = 0;
    if (!take_hex(json, &code)) {
        return false;
    }
    if (*high != 0 && is_low(code)) {
        keep_code(value, 0x10000 + ((*high - 0xD800) << 10) + (code - 0xDC00));
        *high = 0;
        return true;
    }
    if (*high != 0) {
        note_lone(json, value, place);
        *high = 0;
    }
    if (is_high(code)) {
        *high = code;
    } else if (is_low(code)) {
        note_lone(json, value, place);
    } else {
        keep_code(value, code);
    }
    return true;
}

/* Behind a backslash. */
static bool take_escape(mtprof__json *json, mtprof__json_value *value, uint32_t *high)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    int c = peek(json);
    if (c == 'u') {
        json->at++;
        return take_code(json, value, high);
    }
    if (*high != 0) {
        note_lone(json, value, place_of(json));
        *high = 0;
    }
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found == NULL) {
        return unexpected(json, c, "one of \"\\/bfnrtu behind a backslash");
    }
    keep(value, (unsigned char)to[found - from]);
    json->at++;
    return true;
}

/* A byte from 0x80 on, and those that belong to it (Unicode 15, table 3-7). */
static bool take_utf8(mtprof__json *json, mtprof__json_value *value)
{
    mtprof__json_place place = place_of(json);
    int lead = take(json);
    int low = 0x80;
    int high = 0xBF;
    int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (lead < 0xC2 || lead > 0xF4) {
        return fail_here(json, place, "byte %02x in a string is no UTF-8", (unsigned)lead);
    }
    low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : low;
    high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : high;
    keep(value, (unsigned char)lead);
    for (; more > 0; more--) {
        int c = peek(json);
        if (c < low || c > high) {
            return fail_here(json, place, "bytes %02x %02x in a string are no UTF-8",
                             (unsigned)lead, (unsigned)c & 0xFF);
        }
        keep(value, (unsigned char)c);
        json->at++;
        low = 0x80;
        high = 0xBF;
    }
    return true;
}

/* Behind the opening quote. */
static bool take_string(mtprof__json *json, mtprof__json_value *value)
{
    uint32_t high = 0;
    value->type = MTPROF__JSON_STRING;
    value->length = 0;
    value->hash = 0xCBF29CE484222325u;
    for (;;) {
        int c = peek(json);
        if (c == '\\') {
            json->at++;
            if (!take_escape(json, value, &high)) {
                return false;
            }
            continue;
        }
        if (high != 0) {
            note_lone(json, value, place_of(json));
            high = 0;
        }
        if (c == '"') {
            json->at++;
            size_t kept = value->length < MTPROF__JSON_TEXT ? value->length : MTPROF__JSON_TEXT;
            value->text[kept] = 0;
            return true;
        }
        if (c < ' ') {
            return c == END ? fail_here(json, value->place, "a string does not end")
                            : fail_here(json, place_of(json),
                                        "control character %02x in a string, expected \\u%04x",
                                        (unsigned)c, (unsigned)c);
        }
        if (c < 0x80) {
            keep(value, (unsigned char)c);
            json->at++;
        } else if (!take_utf8(json, value)) {
            return false;
        }
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct number_text {
    char bytes[NUMBER_BYTES + 1];
    size_t length;
    size_t n_fraction;
    bool has_point, has_exponent;
} number_text;

static bool number_keep(mtprof__json *json, const mtprof__json_value *value, number_text *number)
{
    if (number->length >= NUMBER_BYTES) {
        return fail_here(json, value->place, "a number of more than %d characters", NUMBER_BYTES);
    }
    number->bytes[number->length++] = (char)take(json);
    return true;
}

/* At least one digit; *n how many. */
static bool number_digits(mtprof__json *json, const mtprof__json_value *value, number_text *number,
                          size_t *n)
{
    *n = 0;
    for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json), (*n)++) {
        if (!number_keep(json, value, number)) {
            return false;
        }
    }
    return *n > 0 || unexpected(json, peek(json), "a digit");
}

static bool number_scan(mtprof__json *json, const mtprof__json_value *value, number_text *number)
{
    size_t n = 0;
    if (peek(json) == '-' && !number_keep(json, value, number)) {
        return false;
    }
    bool zero = peek(json) == '0';
    if (!number_digits(json, value, number, &n)) {
        return false;
    }
    if (zero && n > 1) {
        return fail_here(json, value->place, "a number with a leading zero");
    }
    if (peek(json) == '.') {
        number->has_point = true;
        if (!number_keep(json, value, number) ||
            !number_digits(json, value, number, &number->n_fraction)) {
            return false;
        }
    }
    if ((peek(json) | 0x20) == 'e' && peek(json) != END) {
        number->has_exponent = true;
        bool fine = number_keep(json, value, number);
        if (fine && (peek(json) == '+' || peek(json) == '-')) {
            fine = number_keep(json, value, number);
        }
        return fine && number_digits(json, value, number, &n);
    }
    return true;
}

/* Digits with the point moved three places to the right. False where that does not fit. */
static bool number_thousandths(const number_text *number, int64_t *out)
{
    int64_t total = 0;
    size_t fraction = 0;
    bool behind = false;
    bool negative = number->bytes[0] == '-';
    for (size_t i = negative; i < number->length; i++) {
        char c = number->bytes[i];
        if (c == '.') {
            behind = true;
            continue;
        }
        if (behind && fraction++ >= FRACTION_DIGITS) {
            break;
        }
        if (__builtin_mul_overflow(total, 10, &total) ||
            __builtin_add_overflow(total, c - '0', &total)) {
            return false;
        }
    }
    for (; fraction < FRACTION_DIGITS; fraction++) {
        if (__builtin_mul_overflow(total, 10, &total)) {
            return false;
        }
    }
    *out = negative ? -total : total;
    return true;
}

static bool take_number(mtprof__json *json, mtprof__json_value *value)
{
    number_text number = {.length = 0};
    if (!number_scan(json, value, &number)) {
        return false;
    }
    number.bytes[number.length] = 0;
    value->type = MTPROF__JSON_NUMBER;
    value->real = strtod(number.bytes, NULL);
    value->exact = !number.has_exponent && number_thousandths(&number, &value->thousandths);
    if (!value->exact) {
        double scaled = value->real * 1000;
        value->thousandths = fabs(scaled) < 9.2e18 ? (int64_t)scaled : INT64_MAX;
    }
    char *end = NULL;
    value->units = strtoll(number.bytes, &end, 10);
    value->integer =
        !number.has_point && !number.has_exponent && (value->exact || fabs(value->real) < 9.2e18);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool take_word(mtprof__json *json, const char *word)
{
    for (const char *at = word; *at != 0; at++, json->at++) {
        int c = peek(json);
        if (c != *at) {
            return unexpected(json, c, word);
        }
    }
    return true;
}

bool mtprof__json_value_next(mtprof__json *json, mtprof__json_value *value)
{
    value->blank = skip_blanks(json);
    value->place = place_of(json);
    value->integer = value->exact = false;
    value->length = 0;
    value->text[0] = 0;
    int c = peek(json);
    switch (c) {
    case '{': value->type = MTPROF__JSON_OBJECT; break;
    case '[': value->type = MTPROF__JSON_ARRAY; break;
    case '"': json->at++; return take_string(json, value);
    case 't': value->type = MTPROF__JSON_BOOL; return take_word(json, "true");
    case 'f': value->type = MTPROF__JSON_BOOL; return take_word(json, "false");
    case 'n': value->type = MTPROF__JSON_NULL; return take_word(json, "null");
    default:
        return c == '-' || (c >= '0' && c <= '9') ? take_number(json, value)
                                                  : unexpected(json, c, "a value");
    }
    json->at++;
    return true;
}

bool mtprof__json_more(mtprof__json *json, char closing, bool *first)
{
    bool was_first = *first;
    *first = false;
    skip_blanks(json);
    int c = peek(json);
    if (json->failed) {
        return false;
    }
    if (c == closing) {
        json->at++;
        return false;
    }
    if (was_first) {
        return c != END || unexpected(json, c, closing == ']' ? "a value or ]" : "a key or }");
    }
    if (c != ',') {
        return unexpected(json, c, closing == ']' ? ", or ]" : ", or }");
    }
    json->at++;
    skip_blanks(json);
    return peek(json) != closing || unexpected(json, closing, "a member behind the comma");
}

bool mtprof__json_key(mtprof__json *json, mtprof__json_value *key)
{
    key->blank = skip_blanks(json);
    key->place = place_of(json);
    int c = peek(json);
    if (c != '"') {
        return unexpected(json, c, "a key in quotes");
    }
    json->at++;
    if (!take_string(json, key)) {
        return false;
    }
    skip_blanks(json);
    c = peek(json);
    if (c != ':') {
        return unexpected(json, c, ":");
    }
    json->at++;
    return true;
}

bool mtprof__json_skip(mtprof__json *json, const mtprof__json_value *value)
{
    char closing[MTPROF__JSON_DEPTH];
    size_t depth = 0;
    bool first = true;
    mtprof__json_value item = {.type = value->type, .place = value->place};
    for (;;) {
        if (item.type == MTPROF__JSON_ARRAY || item.type == MTPROF__JSON_OBJECT) {
            if (depth == MTPROF__JSON_DEPTH) {
                return fail_here(json, item.place, "nested deeper than %d levels",
                                 MTPROF__JSON_DEPTH);
            }
            closing[depth++] = item.type == MTPROF__JSON_ARRAY ? ']' : '}';
            first = true;
        }
        while (depth > 0 && !mtprof__json_more(json, closing[depth - 1], &first)) {
            if (json->failed) {
                return false;
            }
            depth--;
        }
        if (depth == 0) {
            return true;
        }
        if ((closing[depth - 1] == '}' && !mtprof__json_key(json, &item)) ||
            !mtprof__json_value_next(json, &item)) {
            return false;
        }
    }
}

bool mtprof__json_at_end(mtprof__json *json)
{
    skip_blanks(json);
    int c = peek(json);
    if (json->failed) {
        return false;
    }
    return c == END || unexpected(json, c, "the end of the text");
}

bool mtprof__json_is(const mtprof__json_value *value, const char *text)
{
    return value->type == MTPROF__JSON_STRING && strcmp(value->text, text) == 0 &&
           value->length == strlen(text);
}
