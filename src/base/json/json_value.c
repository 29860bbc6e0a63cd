/* SPDX-License-Identifier: Apache-2.0
 *
 * What JSON values mean: numbers without rounding where whole ones are wanted, strings without
 * their escapes.
 */
#include "base/json/json_scan.h"

#include <stdlib.h>
#include <string.h>

enum {
    REAL_BYTES = 512,  /* longest text that is read as a double */
    EXPONENT_MOST = 99 /* larger ones overflow to infinity, or underflow to zero */
};

static const int64_t limit = (int64_t)1 << 62;

static bool is_digit(char c)
{
    return (unsigned)(c - '0') < 10;
}

/* A decimal number as mantissa * 10^exponent; digits past the 19th only change the exponent. */
typedef struct decimal {
    uint64_t mantissa;
    int exponent;
    bool negative;
} decimal;

static const char *read_exponent(const char *p, const char *end, int *exponent)
{
    bool negative = p < end && *p == '-';
    int value = 0;
    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && is_digit(*p); p++) {
        value = value < 100000 ? value * 10 + (*p - '0') : value;
    }
    *exponent += negative ? -value : value;
    return p;
}

static bool read_decimal(const char *p, const char *end, decimal *out)
{
    bool any = false;
    bool point = false;
    *out = (decimal){.negative = p < end && *p == '-'};
    p += out->negative;
    for (; p < end; p++) {
        if (*p == '.' && !point) {
            point = true;
        } else if (is_digit(*p)) {
            any = true;
            if (out->mantissa < UINT64_MAX / 10 - 1) {
                out->mantissa = out->mantissa * 10 + (uint64_t)(*p - '0');
                out->exponent -= point;
            } else {
                out->exponent += !point;
            }
        } else {
            break;
        }
    }
    if (any && p < end && (*p == 'e' || *p == 'E')) {
        p = read_exponent(p + 1, end, &out->exponent);
    }
    return any && p == end;
}

/* mantissa * 10^exponent as an integer; `half` is added before digits are cut off. */
static bool scale(const decimal *number, bool round, int64_t *out)
{
    uint64_t value = number->mantissa;
    int exponent = number->exponent;
    for (; exponent > 0 && value != 0; exponent--) {
        if (value >= (uint64_t)limit / 10) {
            return false;
        }
        value *= 10;
    }
    unsigned last = 0;
    for (; exponent < 0 && (value != 0 || last != 0); exponent++) {
        last = (unsigned)(value % 10);
        value /= 10;
    }
    if (round && last >= 5) {
        value++;
    }
    if (value >= (uint64_t)limit) {
        return false;
    }
    *out = number->negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool is_number(const mtb_slice *slice)
{
    return slice->type == MTB_SLICE_INT || slice->type == MTB_SLICE_REAL ||
           slice->type == MTB_SLICE_STRING;
}

bool mtb_text_thousandths(const char *bytes, size_t length, bool round, int64_t *out)
{
    decimal number;
    if (!read_decimal(bytes, bytes + length, &number)) {
        return false;
    }
    number.exponent += 3;
    return scale(&number, round, out);
}

bool mtb_slice_thousandths(const mtb_slice *slice, int64_t *out)
{
    return is_number(slice) && mtb_text_thousandths(slice->bytes, slice->length, true, out);
}

int mtb_hex_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    int letter = c | 0x20;
    return c > 0 && letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

static bool read_hex(const char *p, const char *end, int64_t *out)
{
    uint64_t value = 0;
    if (end - p < 3 || end - p > 18 || p[0] != '0' || (p[1] != 'x' && p[1] != 'X')) {
        return false;
    }
    for (p += 2; p < end; p++) {
        int digit = mtb_hex_digit((unsigned char)*p);
        if (digit < 0) {
            return false;
        }
        value = value << 4 | (unsigned)digit;
    }
    *out = (int64_t)value;
    return true;
}

bool mtb_slice_integer(const mtb_slice *slice, int64_t *out)
{
    if (slice->type == MTB_SLICE_INT) {
        *out = slice->integer;
        return true;
    }
    if (!is_number(slice)) {
        return false;
    }
    decimal number;
    const char *end = slice->bytes + slice->length;
    if (read_decimal(slice->bytes, end, &number)) {
        return scale(&number, false, out);
    }
    return slice->type == MTB_SLICE_STRING && read_hex(slice->bytes, end, out);
}

bool mtb_text_real(const char *bytes, size_t length, double *out)
{
    char text[REAL_BYTES];
    if (length == 0 || length >= sizeof text) {
        return false;
    }
    memcpy(text, bytes, length);
    text[length] = '\0';
    char *end = text;
    double value = strtod(text, &end);
    if (end != text + length) {
        return false;
    }
    *out = value;
    return true;
}

bool mtb_slice_real(const mtb_slice *slice, double *out)
{
    return is_number(slice) && mtb_text_real(slice->bytes, slice->length, out);
}

/* ---- strings --------------------------------------------------------------------------------- */

char *mtb_put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Four hexadecimal digits at p, or UINT32_MAX. */
static uint32_t read_unit(const char *p, const char *end)
{
    uint32_t value = 0;
    if (end - p < 4) {
        return UINT32_MAX;
    }
    for (int i = 0; i < 4; i++) {
        int digit = mtb_hex_digit((unsigned char)p[i]);
        if (digit < 0) {
            return UINT32_MAX;
        }
        value = value << 4 | (unsigned)digit;
    }
    return value;
}

/* "\u1234" at p (after the 'u'), with the other half if it is one of a surrogate pair. */
static const char *decode_unit(const char *p, const char *end, char **to)
{
    uint32_t code = read_unit(p, end);
    if (code == UINT32_MAX) {
        *to = mtb_put_utf8(*to, 'u');
        return p;
    }
    p += 4;
    if (code >= 0xD800 && code < 0xE000) {
        uint32_t low = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? read_unit(p + 2, end) : 0;
        if (code < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        } else {
            code = 0xFFFD;
        }
    }
    *to = mtb_put_utf8(*to, code);
    return p;
}

size_t mtb_slice_decode(const mtb_slice *slice, char *buffer)
{
    const char *p = slice->bytes;
    const char *end = p + slice->length;
    char *to = buffer;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((slash != NULL ? slash : end) - p);
        memcpy(to, p, plain);
        to += plain;
        p += plain;
        if (p + 1 >= end) {
            break; /* cannot happen: a backslash at the end would escape the quote */
        }
        char c = p[1];
        p += 2;
        switch (c) {
        case 'b': *to++ = '\b'; break;
        case 'f': *to++ = '\f'; break;
        case 'n': *to++ = '\n'; break;
        case 'r': *to++ = '\r'; break;
        case 't': *to++ = '\t'; break;
        case 'u': p = decode_unit(p, end, &to); break;
        default: *to++ = c; break; /* '"', '\\', '/', and unknown escapes */
        }
    }
    return (size_t)(to - buffer);
}

bool mtb_slice_is(const mtb_slice *slice, const char *text, size_t length)
{
    return slice->type == MTB_SLICE_STRING && slice->length == length &&
           memcmp(slice->bytes, text, length) == 0;
}
