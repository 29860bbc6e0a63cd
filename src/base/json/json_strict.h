/* SPDX-License-Identifier: Apache-2.0
 *
 * A strict JSON parser with positions. It is a pull parser: the caller asks for what it expects
 * next, and everything that it skips is validated as well. json_scan.h is faster and checks less.
 *
 *   JS1  Only what RFC 8259 allows is accepted. The first error ends the parsing: `failed` is set,
 *        `message` says what was found and `bad` where.
 *   JS2  Memory use does not depend on the text: strings are kept up to a bound, with a hash of all
 *        their bytes.
 */
#ifndef BASE_JSON_JSON_STRICT_H
#define BASE_JSON_JSON_STRICT_H

#include "base/json/json_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTB_JSON_BLOCK = 256 * 1024,
    MTB_JSON_TEXT = 120 /* bytes of a string that are kept */
};

typedef struct mtb_json_place {
    uint64_t offset, line, column; /* the two latter from 1 */
} mtb_json_place;

enum mtb_json_type {
    MTB_JSON_NULL,
    MTB_JSON_BOOL,
    MTB_JSON_NUMBER,
    MTB_JSON_STRING,
    MTB_JSON_ARRAY,
    MTB_JSON_OBJECT
};

typedef struct mtb_json_value {
    enum mtb_json_type type;
    mtb_json_place place;
    bool blank; /* there is white space before it */
    /* NUMBER */
    bool integer;        /* no point and no exponent, and `units` has it exactly */
    bool exact;          /* `thousandths` has it exactly, except for digits after the third */
    int64_t units;       /* its value, where it is an integer */
    int64_t thousandths; /* a thousand times its value: microseconds as nanoseconds */
    double real;
    /* STRING */
    uint64_t hash;
    size_t length;                /* in bytes, escapes decoded */
    char text[MTB_JSON_TEXT + 1]; /* the first bytes, and a zero byte */
} mtb_json_value;

typedef struct mtb_json {
    /* Fills the buffer: how many bytes, 0 at the end, or a negative status. */
    int64_t (*read)(void *context, void *buffer, size_t length);
    void *context;
    const unsigned char *block;
    unsigned char *buffer; /* the block, if it was allocated */
    size_t at, n;          /* in the block */
    unsigned most_depth;   /* what is nested deeper is refused */
    uint64_t base;         /* offset of the block in the text */
    uint64_t line;         /* from 1 */
    uint64_t line_start;   /* its offset */
    bool ended;
    bool failed;
    int status; /* of a read that failed; 0: the text is at fault */
    mtb_json_place bad;
    char message[160];
    uint64_t lone_surrogates; /* escapes of half a pair: JSON allows them, many readers do not */
    mtb_json_place first_lone;
} mtb_json;

/* Parses what `read` gives. False: no memory. */
bool mtb_json_init(mtb_json *json, int64_t (*read)(void *context, void *buffer, size_t length),
                   void *context);
/* Parses a text in memory, which must stay there. */
void mtb_json_init_text(mtb_json *json, const char *text, size_t length);
void mtb_json_fini(mtb_json *json);

/* Takes a value; of an array or object only its opening bracket. False: failed. */
bool mtb_json_value_next(mtb_json *json, mtb_json_value *value);

/* After an opening bracket, or after a value of the array or object: whether another value follows.
 * If not, takes the closing bracket; false is also returned on failure. `first` starts as true. */
bool mtb_json_more(mtb_json *json, char closing, bool *first);

/* A key of an object and the colon after it. */
bool mtb_json_key(mtb_json *json, mtb_json_value *key);

/* The next member of an object, as mtb_json_more(), mtb_json_key() and mtb_json_value_next(); false
 * at its end and on failure. */
bool mtb_json_member(mtb_json *json, bool *first, mtb_json_value *key, mtb_json_value *value);

/* Takes the rest of a value whose opening bracket was taken; does nothing for other types. */
bool mtb_json_skip(mtb_json *json, const mtb_json_value *value);

/* Whether only white space is left. False: something else follows, or failed. */
bool mtb_json_at_end(mtb_json *json);

/* Whether the text is one JSON value in UTF-8, white space around it allowed, nested no deeper than
 * `most_depth`, without lone surrogates. */
bool mtb_json_is_valid(const char *text, size_t length, unsigned most_depth);

#endif /* BASE_JSON_JSON_STRICT_H */
