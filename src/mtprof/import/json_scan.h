/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON where it stands: a window of text, values as slices of it, no tree.
 *
 *     begin            at                         end   sentinel
 *       |  { "ph": "X",|  "cat": "cpu_op", ...     |  "  0 0 0 ... |
 *
 *   J1  Behind `end` stand a quotation mark and MTPROF__SCAN_PAD bytes of zero. So every loop that
 *       looks for the end of a string, a number or white space ends there without a test of its
 *       own, and wide loads are allowed. Whoever stops at `end` has seen too little: SCAN_MORE.
 *   J2  On SCAN_MORE and SCAN_BAD `at` is where it stopped; the caller starts its item again once
 *       there is more text.
 *   J3  No recursion: depth is bounded by MTPROF__SCAN_DEPTH.
 *
 * Strictness: what decides where things begin and end is checked. Inside values that are only
 * skipped numbers and literals are not.
 */
#ifndef MTPROF_IMPORT_JSON_SCAN_H
#define MTPROF_IMPORT_JSON_SCAN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__SCAN_PAD = 64,
    MTPROF__SCAN_DEPTH = 512
};

enum mtprof__scan_status {
    MTPROF__SCAN_OK = 0,
    MTPROF__SCAN_MORE = 1, /* the text ends in the middle of something */
    MTPROF__SCAN_BAD = 2   /* `wanted` says what was expected at `at` */
};

typedef struct mtprof__scan {
    const char *at, *end;
    const char *wanted;
} mtprof__scan;

enum mtprof__slice_type {
    MTPROF__SLICE_NONE = 0,
    MTPROF__SLICE_STRING, /* bytes: between the quotation marks, escapes and all */
    MTPROF__SLICE_INT,    /* `integer` has it */
    MTPROF__SLICE_REAL,   /* a number with a point or an exponent, or too large */
    MTPROF__SLICE_TRUE,
    MTPROF__SLICE_FALSE,
    MTPROF__SLICE_NULL,
    MTPROF__SLICE_ARRAY,
    MTPROF__SLICE_OBJECT
};

typedef struct mtprof__slice {
    const char *bytes;
    uint32_t length;
    uint8_t type;    /* enum mtprof__slice_type */
    uint8_t escaped; /* STRING: there is a backslash in it */
    int64_t integer; /* INT */
} mtprof__slice;

/* The first byte from p on that is no white space. */
MT_INLINE const char *mtprof__skip_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}

/* The quotation mark that ends the string whose first byte is p, or the end of the text.
 * *escaped is set where a backslash is in it. */
const char *mtprof__string_end(const char *p, const char *end, uint8_t *escaped);

/* Any value at scan->at, which moves behind it. */
int mtprof__scan_value(mtprof__scan *scan, mtprof__slice *out);

/* A number of microseconds as nanoseconds; *known is false where it is none. */
int mtprof__scan_time(mtprof__scan *scan, int64_t *out_ns, bool *known);

/* A string at scan->at (white space before it is skipped). */
int mtprof__scan_string(mtprof__scan *scan, mtprof__slice *out);

/* The character c, white space before it skipped. */
MT_INLINE int mtprof__scan_expect(mtprof__scan *scan, char c, const char *wanted)
{
    const char *p = mtprof__skip_space(scan->at);
    scan->at = p;
    if (MT_LIKELY(*p == c && p < scan->end)) {
        scan->at = p + 1;
        return MTPROF__SCAN_OK;
    }
    scan->wanted = wanted;
    return p >= scan->end ? MTPROF__SCAN_MORE : MTPROF__SCAN_BAD;
}

/*
 * Walks an array or object that was scanned before, so it is known to end. Begin with
 * mtprof__walk_begin(); each call of next gives one item, false at the end.
 */
typedef struct mtprof__walk {
    mtprof__scan scan;
    char close; /* the bracket that ends it */
} mtprof__walk;

/* False when the slice is neither. */
bool mtprof__walk_begin(mtprof__walk *walk, const mtprof__slice *container);
/* key is filled in for objects; it may be NULL for arrays. */
bool mtprof__walk_next(mtprof__walk *walk, mtprof__slice *key, mtprof__slice *value);

/* ---- what slices mean (json_value.c) --------------------------------------------------------- */

/* A decimal number in thousandths, rounded to the nearest: microseconds as nanoseconds, without a
 * double in between. Strings that hold a number are read as one. False: no number, or past
 * 2^62. */
bool mtprof__slice_thousandths(const mtprof__slice *slice, int64_t *out);
/* A number as a whole one (fractions are cut off), also from a string, there also as "0x1f". */
bool mtprof__slice_integer(const mtprof__slice *slice, int64_t *out);
bool mtprof__slice_real(const mtprof__slice *slice, double *out);
bool mtprof__text_real(const char *bytes, size_t length, double *out);

/* Decodes a string's escapes into buffer, which has room for slice->length bytes: decoding never
 * makes a text longer. Escapes that mean nothing, halves of surrogate pairs among them, become
 * U+FFFD or stay as they are; bytes that are no UTF-8 stay. Returns the length. */
size_t mtprof__slice_decode(const mtprof__slice *slice, char *buffer);

/* Whether a slice is a string of these bytes. */
bool mtprof__slice_is(const mtprof__slice *slice, const char *text, size_t length);
#define mtprof__slice_is_literal(slice, literal) \
    mtprof__slice_is((slice), (literal), sizeof(literal) - 1)

#endif /* MTPROF_IMPORT_JSON_SCAN_H */
