/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/json_text.h"

#include <mtprof/format.h>

typedef struct scan {
    const char *at, *end;
} scan;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void pass_space(scan *s)
{
    while (s->at < s->end && is_space(*s->at)) {
        s->at++;
    }
}

static bool pass_byte(scan *s, char c)
{
    if (s->at == s->end || *s->at != c) {
        return false;
    }
    s->at++;
    return true;
}

static bool pass_word(scan *s, const char *word, size_t length)
{
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) {
        return false;
    }
    s->at += length;
    return true;
}

static bool pass_digits(scan *s)
{
    const char *from = s->at;
    while (s->at < s->end && is_digit(*s->at)) {
        s->at++;
    }
    return s->at > from;
}

static bool pass_number(scan *s)
{
    (void)pass_byte(s, '-');
    if (!pass_byte(s, '0') && !pass_digits(s)) {
        return false;
    }
    if (pass_byte(s, '.') && !pass_digits(s)) {
        return false;
    }
    if (pass_byte(s, 'e') || pass_byte(s, 'E')) {
        if (!pass_byte(s, '+')) {
            (void)pass_byte(s, '-');
        }
        return pass_digits(s);
    }
    return true;
}

/* Four hexadecimal digits; their value, or -1. */
static int pass_hex(scan *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        if (s->at == s->end) {
            return -1;
        }
        char c = *s->at;
        int digit = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

/* Behind the backslash. Half a surrogate pair is refused: many readers cannot hold it. */
static bool pass_escape(scan *s)
{
    if (s->at == s->end) {
        return false;
    }
    char c = *s->at++;
    if (c != 'u') {
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    }
    int unit = pass_hex(s);
    if (unit < 0xD800 || unit > 0xDFFF) {
        return unit >= 0;
    }
    int low = unit < 0xDC00 && pass_byte(s, '\\') && pass_byte(s, 'u') ? pass_hex(s) : -1;
    return low >= 0xDC00 && low <= 0xDFFF;
}

static bool pass_string(scan *s)
{
    if (!pass_byte(s, '"')) {
        return false;
    }
    while (s->at < s->end) {
        unsigned char c = (unsigned char)*s->at;
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20) {
            return false;
        }
        if (c == '\\') {
            s->at++;
            if (!pass_escape(s)) {
                return false;
            }
            continue;
        }
        unsigned bad = 0;
        unsigned n = mtb_utf8_length(s->at, (size_t)(s->end - s->at), &bad);
        if (n == 0) {
            return false;
        }
        s->at += n;
    }
    return false;
}

static bool pass_plain(scan *s)
{
    switch (s->at < s->end ? *s->at : '\0') {
    case '"': return pass_string(s);
    case 't': return pass_word(s, "true", 4);
    case 'f': return pass_word(s, "false", 5);
    case 'n': return pass_word(s, "null", 4);
    default: return pass_number(s);
    }
}

/* A member's key and colon. */
static bool pass_key(scan *s)
{
    pass_space(s);
    if (!pass_string(s)) {
        return false;
    }
    pass_space(s);
    return pass_byte(s, ':');
}

/* Behind a value: closes what ends here, and stands before the next value or at the end of it all.
 * False: something else follows. */
static bool pass_behind(scan *s, const char *closers, unsigned *depth)
{
    while (*depth > 0) {
        pass_space(s);
        if (pass_byte(s, ',')) {
            return closers[*depth - 1] == ']' || pass_key(s);
        }
        if (!pass_byte(s, closers[*depth - 1])) {
            return false;
        }
        (*depth)--;
    }
    return true;
}

bool mtprof__json_valid(const char *text, size_t length)
{
    scan s = {text, text + length};
    char closers[MTPROF__JSON_DEPTH];
    unsigned depth = 0;
    do {
        pass_space(&s);
        char c = s.at < s.end ? *s.at : '\0';
        if (c == '[' || c == '{') {
            if (depth == MTPROF__JSON_DEPTH) {
                return false;
            }
            s.at++;
            closers[depth++] = c == '[' ? ']' : '}';
            pass_space(&s);
            if (s.at == s.end || *s.at != closers[depth - 1]) {
                if (c == '{' && !pass_key(&s)) {
                    return false;
                }
                continue;
            }
            s.at++;
            depth--;
        } else if (!pass_plain(&s)) {
            return false;
        }
        if (!pass_behind(&s, closers, &depth)) {
            return false;
        }
    } while (depth > 0);
    pass_space(&s);
    return s.at == s.end;
}

void mtprof__json_write_spaced(mtb_writer *writer, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        if (*text == '"') {
            scan s = {text, end};
            (void)pass_string(&s);
            mtb_write(writer, text, (size_t)(s.at - text));
            text = s.at > text ? s.at : text + 1;
        } else if (is_space(*text)) {
            text++;
        } else {
            mtb_write(writer, text, 1);
            if (*text == ',' || *text == ':') {
                mtb_write_literal(writer, " ");
            }
            text++;
        }
    }
}

void mtprof__json_write_metadatum(mtb_writer *writer, const mtprof_metadatum *item)
{
    double real;
    switch (item->type) {
    case MTPROF_META_INT: mtb_write_i64(writer, (int64_t)item->value); break;
    case MTPROF_META_UINT: mtb_write_u64(writer, item->value); break;
    case MTPROF_META_DOUBLE:
        memcpy(&real, &item->value, sizeof real);
        mtb_write_double(writer, real);
        break;
    case MTPROF_META_BOOL: mtb_write_text(writer, item->value != 0 ? "true" : "false"); break;
    default:
        if (item->is_json != 0 && mtprof__json_valid(item->text.bytes, item->text.length)) {
            mtprof__json_write_spaced(writer, item->text.bytes, item->text.length);
        } else {
            mtb_write_json(writer, item->text.bytes, item->text.length);
        }
        break;
    }
}
