/* SPDX-License-Identifier: Apache-2.0
 *
 * Scanning JSON in place: a window of text, values as slices of it, no tree.
 *
 *     begin            at                         end   sentinel
 *       |  { "ph": "X",|  "cat": "cpu_op", ...     |  "  0 0 0 ... |
 *
 *   JSC1  A quotation mark and MTB_SCAN_PAD zero bytes follow `end`. So every loop that looks for
 *         the end of a string, a number or white space stops there without a separate check, and
 *         wide loads are allowed. A scan that stops at `end` needs more text: SCAN_MORE.
 *   JSC2  On SCAN_MORE and SCAN_BAD `at` is where the scan stopped; on SCAN_MORE the caller scans
 *         the item again once there is more text.
 *   JSC3  No recursion: depth is bounded by MTB_JSON_DEPTH.
 *
 * Strictness: everything that decides where values begin and end is checked. Numbers and literals
 * inside values that are skipped are not.
 */
#ifndef BASE_JSON_JSON_SCAN_H
#define BASE_JSON_JSON_SCAN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTB_SCAN_PAD = 64,
    MTB_JSON_DEPTH = 512 /* levels that are read, here and by json_strict.h */
};

enum mtb_scan_status {
    MTB_SCAN_OK = 0,
    MTB_SCAN_MORE = 1, /* the text ends in the middle of something */
    MTB_SCAN_BAD = 2   /* `wanted` says what was expected at `at` */
};

typedef struct mtb_scan {
    const char *at, *end;
    const char *wanted;
} mtb_scan;

enum mtb_slice_type {
    MTB_SLICE_NONE = 0,
    MTB_SLICE_STRING, /* bytes: between the quotation marks, escapes not decoded */
    MTB_SLICE_INT,    /* `integer` has it */
    MTB_SLICE_REAL,   /* a number with a point or an exponent, or too large */
    MTB_SLICE_TRUE,
    MTB_SLICE_FALSE,
    MTB_SLICE_NULL,
    MTB_SLICE_ARRAY,
    MTB_SLICE_OBJECT
};

typedef struct mtb_slice {
    const char *bytes;
    uint32_t length;
    uint8_t type;    /* enum mtb_slice_type */
    uint8_t escaped; /* STRING: there is a backslash in it */
    int64_t integer; /* INT */
} mtb_slice;

/* The first byte from p on that is not white space. */
MT_INLINE const char *mtb_skip_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}

/* The quotation mark that ends the string whose first byte is p, or the end of the text.
 * *escaped is set where a backslash is in it. */
const char *mtb_string_end(const char *p, const char *end, uint8_t *escaped);

/* Any value at scan->at, which moves past it. */
int mtb_scan_value(mtb_scan *scan, mtb_slice *out);

/* A number of microseconds as nanoseconds; *known is false if it is not a number. */
int mtb_scan_time(mtb_scan *scan, int64_t *out_ns, bool *known);

/* A string at scan->at (white space before it is skipped). */
int mtb_scan_string(mtb_scan *scan, mtb_slice *out);

/* The character c, white space before it skipped. */
MT_INLINE int mtb_scan_expect(mtb_scan *scan, char c, const char *wanted)
{
    const char *p = mtb_skip_space(scan->at);
    scan->at = p;
    if (MT_LIKELY(*p == c && p < scan->end)) {
        scan->at = p + 1;
        return MTB_SCAN_OK;
    }
    scan->wanted = wanted;
    return p >= scan->end ? MTB_SCAN_MORE : MTB_SCAN_BAD;
}

/*
 * Walks an array or object that was scanned before, so it is known to end. Begin with
 * mtb_walk_begin(); each call of next gives one item, false at the end.
 */
typedef struct mtb_walk {
    mtb_scan scan;
    char close; /* the bracket that ends it */
} mtb_walk;

/* False when the slice is neither. */
bool mtb_walk_begin(mtb_walk *walk, const mtb_slice *container);
/* key is filled in for objects; it may be NULL for arrays. */
bool mtb_walk_next(mtb_walk *walk, mtb_slice *key, mtb_slice *value);

/* ---- what slices mean (json_value.c) --------------------------------------------------------- */

/* A decimal number in thousandths, rounded to the nearest: microseconds as nanoseconds, without a
 * double in between. A string that holds a number is read as a number. False: not a number, or past
 * 2^62. */
bool mtb_slice_thousandths(const mtb_slice *slice, int64_t *out);
/* The same for a text; `round` false: digits past the third are cut off. */
bool mtb_text_thousandths(const char *bytes, size_t length, bool round, int64_t *out);
/* A number as an integer (fractions are cut off); also from a string, there also as "0x1f". */
bool mtb_slice_integer(const mtb_slice *slice, int64_t *out);
bool mtb_slice_real(const mtb_slice *slice, double *out);
bool mtb_text_real(const char *bytes, size_t length, double *out);

/* Decodes a string's escapes into buffer, which has room for slice->length bytes: decoding never
 * makes a text longer. Invalid escapes, lone surrogates included, become U+FFFD or stay as they
 * are; bytes that are not UTF-8 stay. Returns the length. */
size_t mtb_slice_decode(const mtb_slice *slice, char *buffer);

/* Writes a code point as up to four bytes at `to`; returns the end. */
char *mtb_put_utf8(char *to, uint32_t code);
/* The value of a hexadecimal digit, or -1. */
int mtb_hex_digit(int c);

/* Whether a slice is a string of these bytes. */
bool mtb_slice_is(const mtb_slice *slice, const char *text, size_t length);
#define mtb_slice_is_literal(slice, literal) mtb_slice_is((slice), (literal), sizeof(literal) - 1)

#endif /* BASE_JSON_JSON_SCAN_H */
