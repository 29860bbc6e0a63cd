/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict JSON parser, see json_strict.h.
 */
#include "base/json/json_strict.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    END = -1,
    NUMBER_BYTES = 512 /* no reader handles a longer number correctly */
};

bool mtb_json_init(mtb_json *json, int64_t (*read)(void *context, void *buffer, size_t length),
                   void *context)
{
    *json = (mtb_json){.read = read, .context = context, .line = 1, .most_depth = MTB_JSON_DEPTH};
    json->block = json->buffer = mtb_resize(NULL, MTB_JSON_BLOCK, 1);
    return json->buffer != NULL;
}

void mtb_json_init_text(mtb_json *json, const char *text, size_t length)
{
    *json = (mtb_json){.block = (const unsigned char *)text,
                       .n = length,
                       .line = 1,
                       .most_depth = MTB_JSON_DEPTH,
                       .ended = true};
}

void mtb_json_fini(mtb_json *json)
{
    mtb_free(json->buffer);
    json->block = json->buffer = NULL;
}

/* ---- characters ------------------------------------------------------------------------------ */

MT_COLD static int refill(mtb_json *json)
{
    if (json->ended || json->failed) {
        return END;
    }
    int64_t n = json->read(json->context, json->buffer, MTB_JSON_BLOCK);
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
MT_INLINE int peek(mtb_json *json)
{
    return MT_LIKELY(json->at < json->n) ? json->block[json->at] : refill(json);
}

MT_INLINE int take(mtb_json *json)
{
    int c = peek(json);
    json->at += c != END;
    return c;
}

static mtb_json_place place_of(const mtb_json *json)
{
    uint64_t offset = json->base + json->at;
    return (mtb_json_place){offset, json->line, offset - json->line_start + 1};
}

/* Records the first error. Always false. */
MT_COLD static bool fail_here(mtb_json *json, mtb_json_place place, const char *format, ...)
    MT_PRINTF(3, 4);
MT_COLD static bool fail_here(mtb_json *json, mtb_json_place place, const char *format, ...)
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

MT_COLD static bool unexpected(mtb_json *json, int c, const char *expected)
{
    if (c == END) {
        return fail_here(json, place_of(json), "the text ends, expected %s", expected);
    }
    if (c > ' ' && c < 0x7F) {
        return fail_here(json, place_of(json), "'%c', expected %s", c, expected);
    }
    return fail_here(json, place_of(json), "byte %02x, expected %s", (unsigned)c, expected);
}

/* Skips white space; whether there was any. */
static bool skip_blanks(mtb_json *json)
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

/* ---- strings --------------------------------------------------------------------------------- */

static void keep(mtb_json_value *value, unsigned char byte)
{
    if (value->length < MTB_JSON_TEXT) {
        value->text[value->length] = (char)byte;
    }
    value->length++;
    value->hash = (value->hash ^ byte) * 0x100000001B3u;
}

static void keep_code(mtb_json_value *value, uint32_t code)
{
    char bytes[4];
    const char *end = mtb_put_utf8(bytes, code);
    for (const char *at = bytes; at < end; at++) {
        keep(value, (unsigned char)*at);
    }
}

static bool take_hex(mtb_json *json, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(json);
        int digit = mtb_hex_digit(c);
        if (digit < 0) {
            return unexpected(json, c, "a hexadecimal digit");
        }
        *code = *code << 4 | (uint32_t)digit;
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

static void note_lone(mtb_json *json, mtb_json_value *value, mtb_json_place place)
{
    if (json->lone_surrogates++ == 0) {
        json->first_lone = place;
    }
    keep_code(value, 0xFFFD);
}

/* After "\u". A high surrogate is kept in *high until the low one follows. */
static bool take_code(mtb_json *json, mtb_json_value *value, uint32_t *high)
{
    mtb_json_place place = place_of(json);
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

/* After a backslash. */
static bool take_escape(mtb_json *json, mtb_json_value *value, uint32_t *high)
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

/* A byte of 0x80 or more, and the bytes that belong to it (Unicode 15, table 3-7). */
static bool take_utf8(mtb_json *json, mtb_json_value *value)
{
    mtb_json_place place = place_of(json);
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

/* After the opening quote. */
static bool take_string(mtb_json *json, mtb_json_value *value)
{
    uint32_t high = 0;
    value->type = MTB_JSON_STRING;
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
            size_t kept = value->length < MTB_JSON_TEXT ? value->length : MTB_JSON_TEXT;
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

static bool number_keep(mtb_json *json, const mtb_json_value *value, number_text *number)
{
    if (number->length >= NUMBER_BYTES) {
        return fail_here(json, value->place, "a number of more than %d characters", NUMBER_BYTES);
    }
    number->bytes[number->length++] = (char)take(json);
    return true;
}

/* At least one digit; *n how many. */
static bool number_digits(mtb_json *json, const mtb_json_value *value, number_text *number,
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

static bool number_scan(mtb_json *json, const mtb_json_value *value, number_text *number)
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

static bool take_number(mtb_json *json, mtb_json_value *value)
{
    number_text number = {.length = 0};
    if (!number_scan(json, value, &number)) {
        return false;
    }
    number.bytes[number.length] = 0;
    value->type = MTB_JSON_NUMBER;
    value->real = strtod(number.bytes, NULL);
    value->exact = !number.has_exponent &&
                   mtb_text_thousandths(number.bytes, number.length, false, &value->thousandths);
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

static bool take_word(mtb_json *json, const char *word)
{
    for (const char *at = word; *at != 0; at++, json->at++) {
        int c = peek(json);
        if (c != *at) {
            return unexpected(json, c, word);
        }
    }
    return true;
}

bool mtb_json_value_next(mtb_json *json, mtb_json_value *value)
{
    value->blank = skip_blanks(json);
    value->place = place_of(json);
    value->integer = value->exact = false;
    value->length = 0;
    value->text[0] = 0;
    int c = peek(json);
    switch (c) {
    case '{': value->type = MTB_JSON_OBJECT; break;
    case '[': value->type = MTB_JSON_ARRAY; break;
    case '"': json->at++; return take_string(json, value);
    case 't': value->type = MTB_JSON_BOOL; return take_word(json, "true");
    case 'f': value->type = MTB_JSON_BOOL; return take_word(json, "false");
    case 'n': value->type = MTB_JSON_NULL; return take_word(json, "null");
    default:
        return c == '-' || (c >= '0' && c <= '9') ? take_number(json, value)
                                                  : unexpected(json, c, "a value");
    }
    json->at++;
    return true;
}

bool mtb_json_more(mtb_json *json, char closing, bool *first)
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

bool mtb_json_key(mtb_json *json, mtb_json_value *key)
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

bool mtb_json_skip(mtb_json *json, const mtb_json_value *value)
{
    char closing[MTB_JSON_DEPTH];
    size_t depth = 0;
    bool first = true;
    mtb_json_value item = {.type = value->type, .place = value->place};
    for (;;) {
        if (item.type == MTB_JSON_ARRAY || item.type == MTB_JSON_OBJECT) {
            if (depth == json->most_depth) {
                return fail_here(json, item.place, "nested deeper than %u levels",
                                 json->most_depth);
            }
            closing[depth++] = item.type == MTB_JSON_ARRAY ? ']' : '}';
            first = true;
        }
        while (depth > 0 && !mtb_json_more(json, closing[depth - 1], &first)) {
            if (json->failed) {
                return false;
            }
            depth--;
        }
        if (depth == 0) {
            return true;
        }
        if ((closing[depth - 1] == '}' && !mtb_json_key(json, &item)) ||
            !mtb_json_value_next(json, &item)) {
            return false;
        }
    }
}

bool mtb_json_at_end(mtb_json *json)
{
    skip_blanks(json);
    int c = peek(json);
    if (json->failed) {
        return false;
    }
    return c == END || unexpected(json, c, "the end of the text");
}

bool mtb_json_is_valid(const char *text, size_t length, unsigned most_depth)
{
    mtb_json json;
    mtb_json_value value = {0};
    mtb_json_init_text(&json, text, length);
    json.most_depth = most_depth < MTB_JSON_DEPTH ? most_depth : MTB_JSON_DEPTH;
    return mtb_json_value_next(&json, &value) && mtb_json_skip(&json, &value) &&
           mtb_json_at_end(&json) && json.lone_surrogates == 0;
}

bool mtb_json_member(mtb_json *json, bool *first, mtb_json_value *key, mtb_json_value *value)
{
    return mtb_json_more(json, '}', first) && mtb_json_key(json, key) &&
           mtb_json_value_next(json, value);
}
