/* SPDX-License-Identifier: Apache-2.0
 *
 * A strict JSON parser with positions, for checking. It pulls: the caller asks for what it expects
 * next, and everything that it skips is validated as well.
 *
 *   J1  Nothing is accepted that RFC 8259 does not allow. The first thing that is not ends the
 *       parsing: *_failed is set, and `message` says what stood where.
 *   J2  Memory does not depend on the text: strings are kept up to a bound, with a hash of all of
 *       their bytes.
 */
#ifndef MTPROF_CHECK_CHECK_JSON_H
#define MTPROF_CHECK_CHECK_JSON_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__JSON_BLOCK = 256 * 1024,
    MTPROF__JSON_DEPTH = 512,
    MTPROF__JSON_TEXT = 120 /* bytes of a string that are kept */
};

typedef struct mtprof__json_place {
    uint64_t offset, line, column; /* the two latter from 1 */
} mtprof__json_place;

enum mtprof__json_type {
    MTPROF__JSON_NULL,
    MTPROF__JSON_BOOL,
    MTPROF__JSON_NUMBER,
    MTPROF__JSON_STRING,
    MTPROF__JSON_ARRAY,
    MTPROF__JSON_OBJECT
};

typedef struct mtprof__json_value {
    enum mtprof__json_type type;
    mtprof__json_place place;
    bool blank; /* white space stands before it */
    /* NUMBER */
    bool integer;        /* no point and no exponent, and `units` has it exactly */
    bool exact;          /* `thousandths` has it exactly, but for digits behind the third */
    int64_t units;       /* its value, where it is an integer */
    int64_t thousandths; /* a thousand times its value: microseconds as nanoseconds */
    double real;
    /* STRING */
    uint64_t hash;
    size_t length;                    /* in bytes, escapes decoded */
    char text[MTPROF__JSON_TEXT + 1]; /* the first bytes, and a zero byte */
} mtprof__json_value;

typedef struct mtprof__json {
    /* Fills the buffer: how many bytes, 0 at the end, or a negative status. */
    int64_t (*read)(void *context, void *buffer, size_t length);
    void *context;
    unsigned char *block;
    size_t at, n;        /* in the block */
    uint64_t base;       /* offset of the block in the text */
    uint64_t line;       /* from 1 */
    uint64_t line_start; /* its offset */
    bool ended;
    bool failed;
    int status; /* of a read that failed; 0: the text is at fault */
    mtprof__json_place bad;
    char message[160];
    uint64_t lone_surrogates; /* escapes of half a pair: JSON allows them, few readers like them */
    mtprof__json_place first_lone;
} mtprof__json;

/* Fails with ENOMEM. */
int mtprof__json_init(mtprof__json *json,
                      int64_t (*read)(void *context, void *buffer, size_t length), void *context);
void mtprof__json_fini(mtprof__json *json);

/* The place of the next character that is not white space. */
mtprof__json_place mtprof__json_here(mtprof__json *json);

/* Takes a value; of an array or object only its opening bracket. False: failed. */
bool mtprof__json_value_next(mtprof__json *json, mtprof__json_value *value);

/* Behind an opening bracket, or behind a value of the array or object: whether another one comes.
 * false also takes the closing bracket, or is a failure. `first` starts as true. */
bool mtprof__json_more(mtprof__json *json, char closing, bool *first);

/* A key of an object and the colon behind it. */
bool mtprof__json_key(mtprof__json *json, mtprof__json_value *key);

/* Takes the rest of a value whose opening bracket was taken; does nothing for other types. */
bool mtprof__json_skip(mtprof__json *json, const mtprof__json_value *value);

/* Nothing but white space is left. False: something stands there, or failed. */
bool mtprof__json_at_end(mtprof__json *json);

/* Whether a string value has exactly this text (of less than MTPROF__JSON_TEXT bytes). */
bool mtprof__json_is(const mtprof__json_value *value, const char *text);

#endif /* MTPROF_CHECK_CHECK_JSON_H */
