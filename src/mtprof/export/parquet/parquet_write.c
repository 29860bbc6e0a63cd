/* SPDX-License-Identifier: Apache-2.0
 *
 * An Arrow stream as a file of Parquet: flat columns, uncompressed.
 *
 *     PAR1 │ group: column│column│… │ group … │ what is where │ its length │ PAR1
 *                   └ dictionary page, data page
 *
 *   PQW1  One row group is in memory at a time: memory does not grow with the stream, but for some
 *         100 bytes a column and row group, which the end of the file needs.
 *   PQW2  A column of numbers is a dictionary where a row group has few distinct ones, else
 *         differences. Neither needs a compressor, and engines read them faster than one.
 *   PQW3  A dictionary of texts has those texts that the row group uses.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "mtprof/export/out_file.h"
#include "mtprof/export/parquet/parquet_encode.h"

#include <mtprof/arrow.h>
#include <mtprof/version.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    ROWS = MTPROF_ARROW_DATASET_ROWS, /* of a row group */
    FEW = 256,                        /* distinct numbers that become a dictionary */
    SLOTS = 4 * FEW,
    TEXT_MOST = 64 /* bytes of a text that becomes a minimum or maximum */
};

/* Numbers of Parquet's definition. */
enum {
    TYPE_BOOLEAN = 0,
    TYPE_INT32 = 1,
    TYPE_INT64 = 2,
    TYPE_DOUBLE = 5,
    TYPE_TEXT = 6,
    ENCODING_PLAIN = 0,
    ENCODING_RLE = 3,
    ENCODING_DELTA = 5,
    ENCODING_DICTIONARY = 8,
    PAGE_DATA = 0,
    PAGE_DICTIONARY = 2
};

typedef struct column {
    const struct ArrowSchema *schema;
    char format; /* of the values, or of the numbers of a dictionary's texts */
    bool is_dictionary, is_optional;
    int type;        /* Parquet's */
    uint32_t *local; /* by number of a text: its place in the row group's dictionary + 1 */
    size_t n_local;  /* entries, of which those that are not in `used` are 0 */
    uint32_t *used;  /* the texts of the row group's dictionary */
    size_t n_used, used_capacity;
} column;

/* A column of a row group, as the end of the file has it. */
typedef struct chunk {
    uint64_t dictionary_at, data_at, end; /* dictionary_at 0: there is none */
    int encoding;
    uint64_t rows, nulls;
    const void *least, *most; /* bytes as in a page; NULL: not known */
    size_t n_least, n_most;
    int64_t numbers[2]; /* least and most of numbers */
} chunk;

typedef struct slot {
    int64_t value;
    uint32_t place; /* + 1; 0: free */
} slot;

typedef struct writer {
    mtprof__out_file file;
    struct ArrowSchema schema;
    column *columns;
    size_t n_columns;
    uint64_t rows;
    mtprof__pb groups; /* descriptions of the row groups */
    mtprof__thrift thrift;
    size_t n_groups;
    mtprof__pb head, body; /* of a page */
    int64_t *values;       /* of a column of a row group, without nulls */
    uint32_t *indices;
    slot *slots;
    int64_t few[FEW];
} writer;

/* ---- the file -------------------------------------------------------------------------------- */

static int put(writer *w, const mtprof__pb *pb)
{
    if (pb->failed) {
        return mtb_fail(MTPROF_ENOMEM, "parquet: no memory for %s", w->file.name);
    }
    int error = mtprof__out_file_write(&w->file, pb->bytes, pb->used);
    return error == 0 ? MTPROF_OK
                      : mtb_fail_errno(mtprof__write_status(error), error,
                                       "parquet: cannot write %s", w->file.name);
}

/* Writes the body as a page. */
static int put_page(writer *w, int page, uint64_t n, int encoding)
{
    if (w->body.used > INT_MAX) {
        return mtb_fail(MTPROF_EINVAL, "parquet: a page of %zu bytes, at most %d can be written",
                        w->body.used, INT_MAX);
    }
    mtprof__pb_clear(&w->head);
    mtprof__thrift thrift = {.to = &w->head};
    mtprof__thrift_number(&thrift, 1, MTPROF__THRIFT_I32, page);
    mtprof__thrift_number(&thrift, 2, MTPROF__THRIFT_I32, (int64_t)w->body.used);
    mtprof__thrift_number(&thrift, 3, MTPROF__THRIFT_I32, (int64_t)w->body.used);
    mtprof__thrift_begin(&thrift, page == PAGE_DATA ? 5 : 7);
    mtprof__thrift_number(&thrift, 1, MTPROF__THRIFT_I32, (int64_t)n);
    mtprof__thrift_number(&thrift, 2, MTPROF__THRIFT_I32, encoding);
    if (page == PAGE_DATA) {
        mtprof__thrift_number(&thrift, 3, MTPROF__THRIFT_I32, ENCODING_RLE);
        mtprof__thrift_number(&thrift, 4, MTPROF__THRIFT_I32, ENCODING_RLE);
    }
    mtprof__thrift_end(&thrift);
    mtprof__pb_raw(&w->head, "", 1); /* the end of the outermost struct */
    MT_TRY(put(w, &w->head));
    return put(w, &w->body);
}

/* ---- numbers --------------------------------------------------------------------------------- */

MT_INLINE int64_t number_at(const char *values, size_t i, char format)
{
    switch (format) {
    case 'c': return ((const int8_t *)values)[i];
    case 'C': return ((const uint8_t *)values)[i];
    case 's': return ((const int16_t *)values)[i];
    case 'S': return ((const uint16_t *)values)[i];
    case 'i':
    case 'I': return ((const int32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
    }
}

static bool is_valid(const uint8_t *valid, uint64_t row)
{
    return (valid[row / 8] >> (row % 8) & 1) != 0;
}

MT_INLINE size_t gather_format(int64_t *to, const char *values, const uint8_t *valid,
                               uint64_t first, size_t n, char format)
{
    size_t taken = 0;
    if (valid == NULL) {
        for (size_t i = 0; i < n; i++) {
            to[i] = number_at(values, first + i, format);
        }
        return n;
    }
    for (size_t i = 0; i < n; i++) { /* without a branch that no predictor could guess */
        to[taken] = number_at(values, first + i, format);
        taken += is_valid(valid, first + i);
    }
    return taken;
}

/* The values of rows that have one; how many. `to` has room for one more than n. */
static size_t gather(int64_t *to, const char *values, const uint8_t *valid, uint64_t first,
                     size_t n, char format)
{
    switch (format) {
    case 'c': return gather_format(to, values, valid, first, n, 'c');
    case 'C': return gather_format(to, values, valid, first, n, 'C');
    case 's': return gather_format(to, values, valid, first, n, 's');
    case 'S': return gather_format(to, values, valid, first, n, 'S');
    case 'i':
    case 'I': return gather_format(to, values, valid, first, n, 'i');
    default: return gather_format(to, values, valid, first, n, 'l');
    }
}

/* A number so that signed order is that of the column. */
MT_INLINE int64_t ordered(int64_t value, char format)
{
    return format == 'I'   ? (int64_t)(uint32_t)value
           : format == 'L' ? (int64_t)((uint64_t)value ^ (uint64_t)INT64_MIN)
                           : value;
}

MT_INLINE void find_ends(int64_t *ends, const int64_t *values, size_t n, char format)
{
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        int64_t value = ordered(values[i], format);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    ends[0] = ordered(least, format == 'I' ? 'l' : format);
    ends[1] = ordered(most, format == 'I' ? 'l' : format);
}

static void add_ends(chunk *made, const int64_t *values, size_t n, const column *c)
{
    if (n == 0) {
        return;
    }
    switch (c->format) {
    case 'I': find_ends(made->numbers, values, n, 'I'); break;
    case 'L': find_ends(made->numbers, values, n, 'L'); break;
    default: find_ends(made->numbers, values, n, 'l'); break;
    }
    made->least =
        &made->numbers[0]; /* little-endian: the first 4 bytes are the number of 32 bits */
    made->most = &made->numbers[1];
    made->n_least = made->n_most = c->type == TYPE_INT32 ? sizeof(int32_t) : sizeof(int64_t);
}

/* The numbers' places among the distinct ones, w->few; how many of those. 0: more than FEW. */
static size_t number_few(writer *w, const int64_t *values, size_t n)
{
    size_t n_few = 0;
    uint32_t place = 0; /* of the number before, which is often the same one */
    memset(w->slots, 0, SLOTS * sizeof w->slots[0]);
    for (size_t i = 0; i < n; i++) {
        int64_t value = values[i];
        if (i > 0 && value == values[i - 1]) {
            w->indices[i] = place;
            continue;
        }
        size_t at = (uint64_t)value * 0x9E3779B97F4A7C15u >> 54;
        while (w->slots[at].place != 0 && w->slots[at].value != value) {
            at = (at + 1) % SLOTS;
        }
        if (w->slots[at].place == 0) {
            if (n_few == FEW) {
                return 0;
            }
            w->few[n_few++] = value;
            w->slots[at] = (slot){value, (uint32_t)n_few};
        }
        place = w->slots[at].place - 1;
        w->indices[i] = place;
    }
    return n_few;
}

static void put_indices(writer *w, size_t n, size_t n_distinct)
{
    unsigned width = mtprof__parquet_width(n_distinct - 1);
    width = width > 0 ? width : 1; /* of one text; readers do not expect 0 */
    uint8_t byte = (uint8_t)width;
    mtprof__pb_raw(&w->body, &byte, 1);
    mtprof__parquet_indices(&w->body, w->indices, n, width);
}

static int put_few(writer *w, const column *c, chunk *made, size_t n_few)
{
    size_t size = c->type == TYPE_INT32 ? sizeof(int32_t) : sizeof(int64_t);
    made->dictionary_at = w->file.bytes;
    made->encoding = ENCODING_DICTIONARY;
    mtprof__pb_clear(&w->body);
    for (size_t i = 0; i < n_few; i++) {
        mtprof__pb_raw(&w->body, &w->few[i], size);
    }
    return put_page(w, PAGE_DICTIONARY, n_few, ENCODING_PLAIN);
}

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct text {
    const char *bytes;
    size_t length;
} text;

static text text_at(const struct ArrowArray *array, uint64_t i)
{
    const int64_t *offsets = array->buffers[1];
    i += (uint64_t)array->offset;
    return (text){(const char *)array->buffers[2] + offsets[i],
                  (size_t)(offsets[i + 1] - offsets[i])};
}

static void put_text(mtprof__pb *pb, text t)
{
    uint32_t length = (uint32_t)t.length;
    mtprof__pb_raw(pb, &length, sizeof length);
    mtprof__pb_raw(pb, t.bytes, t.length);
}

static int compare_texts(text a, text b)
{
    int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* Numbers of texts become places in the row group's own dictionary. */
static int number_texts(writer *w, column *c, const int64_t *values, size_t n, uint64_t n_texts)
{
    if (c->n_local < n_texts) {
        uint32_t *local = mtb_calloc(n_texts, sizeof local[0]);
        if (local == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "parquet: no memory for %s", c->schema->name);
        }
        mtb_free(c->local);
        c->local = local;
        c->n_local = n_texts;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t number = (uint64_t)values[i];
        if (number >= n_texts) {
            return mtb_fail(MTPROF_EINVAL, "parquet: %s has text %llu of %llu", c->schema->name,
                            (unsigned long long)number, (unsigned long long)n_texts);
        }
        if (c->local[number] == 0) {
            if (!mtb_grow((void **)&c->used, &c->used_capacity, c->n_used + 1, sizeof c->used[0])) {
                return mtb_fail(MTPROF_ENOMEM, "parquet: no memory for %s", c->schema->name);
            }
            c->used[c->n_used++] = (uint32_t)number;
            c->local[number] = (uint32_t)c->n_used;
        }
        w->indices[i] = c->local[number] - 1;
    }
    return MTPROF_OK;
}

static int put_dictionary(writer *w, column *c, const struct ArrowArray *dictionary, chunk *made)
{
    text least = {NULL, 0};
    text most = {NULL, 0};
    made->dictionary_at = w->file.bytes;
    made->encoding = ENCODING_DICTIONARY;
    mtprof__pb_clear(&w->body);
    for (size_t i = 0; i < c->n_used; i++) {
        text t = text_at(dictionary, c->used[i]);
        put_text(&w->body, t);
        least = i == 0 || compare_texts(t, least) < 0 ? t : least;
        most = i == 0 || compare_texts(t, most) > 0 ? t : most;
        c->local[c->used[i]] = 0;
    }
    if (c->n_used > 0 && least.length <= TEXT_MOST && most.length <= TEXT_MOST) {
        made->least = least.bytes;
        made->most = most.bytes;
        made->n_least = least.length;
        made->n_most = most.length;
    }
    return put_page(w, PAGE_DICTIONARY, c->n_used, ENCODING_PLAIN);
}

/* ---- columns --------------------------------------------------------------------------------- */

static uint64_t count_nulls(const struct ArrowArray *array, const uint8_t *valid, uint64_t first,
                            size_t n)
{
    uint64_t nulls = 0;
    if (valid == NULL || array->null_count == 0) {
        return 0;
    }
    if (array->null_count == array->length) {
        return n;
    }
    for (size_t i = 0; i < n;) {
        uint64_t row = first + i;
        if (row % 8 == 0 && n - i >= 8) {
            nulls += 8 - (unsigned)__builtin_popcount(valid[row / 8]);
            i += 8;
        } else {
            nulls += !is_valid(valid, row);
            i++;
        }
    }
    return nulls;
}

/* Values that are stored as they are: bits, reals, texts. */
static void put_plain(writer *w, const column *c, const struct ArrowArray *array,
                      const uint8_t *valid, uint64_t first, size_t n)
{
    const char *values = array->buffers[1];
    size_t taken = 0;
    uint8_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t row = first + i;
        if (valid != NULL && !is_valid(valid, row)) {
            continue;
        }
        if (c->format == 'U') {
            put_text(&w->body, text_at(array, row - (uint64_t)array->offset));
        } else if (c->format == 'g') {
            mtprof__pb_raw(&w->body, values + row * sizeof(double), sizeof(double));
        } else {
            bits |= (uint8_t)(is_valid((const uint8_t *)values, row) << (taken % 8));
            if (taken % 8 == 7) {
                mtprof__pb_raw(&w->body, &bits, 1);
                bits = 0;
            }
        }
        taken++;
    }
    if (c->format == 'b' && taken % 8 != 0) {
        mtprof__pb_raw(&w->body, &bits, 1);
    }
}

static bool is_plain(const column *c)
{
    return c->format == 'U' || c->format == 'g' || c->format == 'b';
}

static int put_chunk(writer *w, column *c, const struct ArrowArray *array, uint64_t first, size_t n,
                     chunk *made)
{
    const uint8_t *valid = array->buffers[0];
    size_t taken = 0;
    size_t n_distinct = 0;
    first += (uint64_t)array->offset;
    uint64_t nulls = count_nulls(array, valid, first, n);
    if (!c->is_optional && nulls != 0) {
        return mtb_fail(MTPROF_EINVAL, "parquet: %s has nulls and says that it has none",
                        c->schema->name);
    }
    valid = nulls == 0 ? NULL : valid;
    *made = (chunk){.rows = n, .nulls = nulls, .encoding = ENCODING_PLAIN};
    const int64_t *values = w->values;
    if (!is_plain(c) && nulls != n) {
        if (valid == NULL && (c->format == 'l' || c->format == 'L')) { /* as they are */
            values = (const int64_t *)array->buffers[1] + first;
            taken = n;
        } else {
            taken = gather(w->values, array->buffers[1], valid, first, n, c->format);
        }
        if (c->is_dictionary) {
            c->n_used = 0;
            MT_TRY(number_texts(w, c, values, taken, (uint64_t)array->dictionary->length));
            n_distinct = c->n_used;
            MT_TRY(put_dictionary(w, c, array->dictionary, made));
        } else {
            made->encoding = ENCODING_DELTA;
            n_distinct = number_few(w, values, taken);
            add_ends(made, n_distinct != 0 ? w->few : values, n_distinct != 0 ? n_distinct : taken,
                     c);
            MT_TRY(n_distinct != 0 ? put_few(w, c, made, n_distinct) : MTPROF_OK);
        }
    }
    made->data_at = w->file.bytes;
    mtprof__pb_clear(&w->body);
    if (c->is_optional) {
        mtprof__parquet_levels(&w->body, nulls == n ? NULL : valid, first, n, nulls != n);
    }
    if (nulls == n) {
        /* no value */
    } else if (is_plain(c)) {
        put_plain(w, c, array, valid, first, n);
    } else if (n_distinct != 0) {
        put_indices(w, taken, n_distinct);
    } else {
        mtprof__parquet_delta(&w->body, values, taken, c->type == TYPE_INT32 ? 32 : 64);
    }
    MT_TRY(put_page(w, PAGE_DATA, n, made->encoding));
    made->end = w->file.bytes;
    return MTPROF_OK;
}

static void describe_chunk(mtprof__thrift *thrift, const column *c, const chunk *made)
{
    uint64_t start = made->dictionary_at != 0 ? made->dictionary_at : made->data_at;
    bool has_dictionary = made->dictionary_at != 0;
    mtprof__thrift_begin(thrift, 0);
    mtprof__thrift_number(thrift, 2, MTPROF__THRIFT_I64, (int64_t)start);
    mtprof__thrift_begin(thrift, 3);
    mtprof__thrift_number(thrift, 1, MTPROF__THRIFT_I32, c->type);
    mtprof__thrift_list(thrift, 2, MTPROF__THRIFT_I32, has_dictionary ? 3 : 2);
    mtprof__thrift_item(thrift, ENCODING_RLE);
    mtprof__thrift_item(thrift, made->encoding);
    if (has_dictionary) {
        mtprof__thrift_item(thrift, ENCODING_PLAIN);
    }
    mtprof__thrift_list(thrift, 3, MTPROF__THRIFT_TEXT, 1);
    mtprof__thrift_text(thrift, 0, c->schema->name, strlen(c->schema->name));
    mtprof__thrift_number(thrift, 4, MTPROF__THRIFT_I32, 0); /* uncompressed */
    mtprof__thrift_number(thrift, 5, MTPROF__THRIFT_I64, (int64_t)made->rows);
    mtprof__thrift_number(thrift, 6, MTPROF__THRIFT_I64, (int64_t)(made->end - start));
    mtprof__thrift_number(thrift, 7, MTPROF__THRIFT_I64, (int64_t)(made->end - start));
    mtprof__thrift_number(thrift, 9, MTPROF__THRIFT_I64, (int64_t)made->data_at);
    if (has_dictionary) {
        mtprof__thrift_number(thrift, 11, MTPROF__THRIFT_I64, (int64_t)made->dictionary_at);
    }
    mtprof__thrift_begin(thrift, 12);
    mtprof__thrift_number(thrift, 3, MTPROF__THRIFT_I64, (int64_t)made->nulls);
    if (made->least != NULL) {
        mtprof__thrift_text(thrift, 5, made->most, made->n_most);
        mtprof__thrift_text(thrift, 6, made->least, made->n_least);
    }
    mtprof__thrift_end(thrift);
    mtprof__thrift_end(thrift);
    mtprof__thrift_end(thrift);
}

static int put_group(writer *w, const struct ArrowArray *batch, uint64_t first, size_t n)
{
    uint64_t start = w->file.bytes;
    mtprof__thrift_begin(&w->thrift, 0);
    mtprof__thrift_list(&w->thrift, 1, MTPROF__THRIFT_STRUCT, w->n_columns);
    for (size_t i = 0; i < w->n_columns; i++) {
        chunk made;
        MT_TRY(put_chunk(w, &w->columns[i], batch->children[i], first, n, &made));
        describe_chunk(&w->thrift, &w->columns[i], &made);
    }
    mtprof__thrift_number(&w->thrift, 2, MTPROF__THRIFT_I64, (int64_t)(w->file.bytes - start));
    mtprof__thrift_number(&w->thrift, 3, MTPROF__THRIFT_I64, (int64_t)n);
    mtprof__thrift_end(&w->thrift);
    w->n_groups++;
    w->rows += n;
    return MTPROF_OK;
}

/* ---- what is where --------------------------------------------------------------------------- */

static void describe_integer(mtprof__thrift *thrift, char format)
{
    static const char formats[] = "CSILcsil"; /* as the numbers 11 to 18 of Parquet's definition */
    const char *found = strchr(formats, format);
    int place = (int)(found - formats);
    mtprof__thrift_number(thrift, 6, MTPROF__THRIFT_I32, 11 + place);
    mtprof__thrift_begin(thrift, 10);
    mtprof__thrift_begin(thrift, 10);
    mtprof__thrift_number(thrift, 1, MTPROF__THRIFT_I8, (int64_t)8 << (place % 4));
    mtprof__thrift_number(thrift, 2, place < 4 ? MTPROF__THRIFT_FALSE : MTPROF__THRIFT_TRUE, 0);
    mtprof__thrift_end(thrift);
    mtprof__thrift_end(thrift);
}

static void describe_column(mtprof__thrift *thrift, const column *c)
{
    mtprof__thrift_begin(thrift, 0);
    mtprof__thrift_number(thrift, 1, MTPROF__THRIFT_I32, c->type);
    mtprof__thrift_number(thrift, 3, MTPROF__THRIFT_I32, c->is_optional);
    mtprof__thrift_text(thrift, 4, c->schema->name, strlen(c->schema->name));
    if (c->type == TYPE_TEXT) {
        mtprof__thrift_number(thrift, 6, MTPROF__THRIFT_I32, 0);
        mtprof__thrift_begin(thrift, 10);
        mtprof__thrift_begin(thrift, 1);
        mtprof__thrift_end(thrift);
        mtprof__thrift_end(thrift);
    } else if (!is_plain(c)) {
        describe_integer(thrift, c->format);
    }
    mtprof__thrift_end(thrift);
}

/* The end of the file. */
static int put_end(writer *w)
{
    static const char author[] = "mtprof version ";
    const char *version = mtprof_version_string();
    char made_by[64];
    int length = snprintf(made_by, sizeof made_by, "%s%s", author, version);
    mtprof__pb_clear(&w->body);
    mtprof__thrift thrift = {.to = &w->body};
    mtprof__thrift_number(&thrift, 1, MTPROF__THRIFT_I32, 2);
    mtprof__thrift_list(&thrift, 2, MTPROF__THRIFT_STRUCT, w->n_columns + 1);
    mtprof__thrift_begin(&thrift, 0);
    mtprof__thrift_text(&thrift, 4, "schema", 6);
    mtprof__thrift_number(&thrift, 5, MTPROF__THRIFT_I32, (int64_t)w->n_columns);
    mtprof__thrift_end(&thrift);
    for (size_t i = 0; i < w->n_columns; i++) {
        describe_column(&thrift, &w->columns[i]);
    }
    mtprof__thrift_number(&thrift, 3, MTPROF__THRIFT_I64, (int64_t)w->rows);
    mtprof__thrift_list(&thrift, 4, MTPROF__THRIFT_STRUCT, w->n_groups);
    mtprof__pb_raw(&w->body, w->groups.bytes, w->groups.used);
    w->body.failed |= w->groups.failed;
    mtprof__thrift_text(&thrift, 6, made_by, (size_t)length);
    mtprof__thrift_list(&thrift, 7, MTPROF__THRIFT_STRUCT, w->n_columns);
    for (size_t i = 0; i < w->n_columns; i++) { /* minima and maxima are in the types' own order */
        mtprof__thrift_begin(&thrift, 0);
        mtprof__thrift_begin(&thrift, 1);
        mtprof__thrift_end(&thrift);
        mtprof__thrift_end(&thrift);
    }
    mtprof__pb_raw(&w->body, "", 1);
    uint32_t bytes = (uint32_t)w->body.used;
    mtprof__pb_raw(&w->body, &bytes, sizeof bytes);
    mtprof__pb_raw(&w->body, "PAR1", 4);
    return put(w, &w->body);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int choose_type(column *c, const struct ArrowSchema *schema)
{
    const char *format = schema->format;
    bool is_one = format[0] != '\0' && format[1] == '\0';
    *c = (column){.schema = schema,
                  .format = format[0],
                  .is_dictionary = schema->dictionary != NULL,
                  .is_optional = (schema->flags & ARROW_FLAG_NULLABLE) != 0};
    bool is_number = is_one && strchr("cCsSiIlL", format[0]) != NULL;
    bool ok = c->is_dictionary ? is_number && strcmp(schema->dictionary->format, "U") == 0
                               : is_number || (is_one && strchr("Ugb", format[0]) != NULL);
    if (!ok || schema->n_children != 0) {
        return mtb_fail(MTPROF_EINVAL, "parquet: column %s has format %s, which is not written",
                        schema->name, format);
    }
    c->type = c->is_dictionary || c->format == 'U'   ? TYPE_TEXT
              : c->format == 'l' || c->format == 'L' ? TYPE_INT64
              : c->format == 'g'                     ? TYPE_DOUBLE
              : c->format == 'b'                     ? TYPE_BOOLEAN
                                                     : TYPE_INT32;
    return MTPROF_OK;
}

static int fail_stream(struct ArrowArrayStream *stream, int error)
{
    const char *why = stream->get_last_error(stream);
    return mtb_fail(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_ECALLBACK,
                    "parquet: the stream failed with %d: %s", error,
                    why != NULL ? why : "no reason");
}

static int start(writer *w, struct ArrowArrayStream *stream)
{
    int error = stream->get_schema(stream, &w->schema);
    if (error != 0) {
        w->schema.release = NULL;
        return fail_stream(stream, error);
    }
    if (strcmp(w->schema.format, "+s") != 0) {
        return mtb_fail(MTPROF_EINVAL, "parquet: a stream of format %s, expected structs",
                        w->schema.format);
    }
    w->n_columns = (size_t)w->schema.n_children;
    w->columns = mtb_calloc(w->n_columns + 1, sizeof w->columns[0]);
    w->values = mtb_array_take(ROWS + 1, sizeof w->values[0]);
    w->indices = mtb_array_take(ROWS, sizeof w->indices[0]);
    w->slots = mtb_calloc(SLOTS, sizeof w->slots[0]);
    if (w->columns == NULL || w->values == NULL || w->indices == NULL || w->slots == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "parquet: no memory for a row group");
    }
    w->thrift.to = &w->groups;
    for (size_t i = 0; i < w->n_columns; i++) {
        MT_TRY(choose_type(&w->columns[i], w->schema.children[i]));
    }
    mtprof__pb_raw(&w->body, "PAR1", 4);
    return put(w, &w->body);
}

static int put_batches(writer *w, struct ArrowArrayStream *stream)
{
    for (;;) {
        struct ArrowArray batch;
        int error = stream->get_next(stream, &batch);
        if (error != 0) {
            return fail_stream(stream, error);
        }
        if (batch.release == NULL) {
            return MTPROF_OK;
        }
        int status = MTPROF_OK;
        uint64_t rows = (uint64_t)batch.length;
        for (uint64_t first = 0; status == MTPROF_OK && first < rows; first += ROWS) {
            uint64_t left = rows - first;
            status = put_group(w, &batch, first, left < ROWS ? (size_t)left : ROWS);
        }
        batch.release(&batch);
        MT_TRY(status);
    }
}

static int write_all(writer *w, struct ArrowArrayStream *stream)
{
    MT_TRY(start(w, stream));
    MT_TRY(put_batches(w, stream));
    MT_TRY(put_end(w));
    MT_TRY(mtprof__out_file_close(&w->file));
    return mtprof__out_file_commit(&w->file);
}

mtprof_status mtprof_arrow_write_parquet(struct ArrowArrayStream *stream, const char *path,
                                         uint64_t *rows)
{
    writer w = {.n_columns = 0};
    *rows = 0;
    MT_TRY(mtprof__out_file_open(&w.file, path, false));
    int status = write_all(&w, stream);
    if (status == MTPROF_OK) {
        *rows = w.rows;
    } else {
        mtprof__out_file_abandon(&w.file);
    }
    for (size_t i = 0; w.columns != NULL && i < w.n_columns; i++) {
        mtb_free(w.columns[i].local);
        mtb_free(w.columns[i].used);
    }
    mtb_free(w.columns);
    mtb_free(w.slots);
    mtb_array_give(w.values, ROWS + 1, sizeof w.values[0]);
    mtb_array_give(w.indices, ROWS, sizeof w.indices[0]);
    mtprof__pb_fini(&w.groups);
    mtprof__pb_fini(&w.head);
    mtprof__pb_fini(&w.body);
    if (w.schema.release != NULL) {
        w.schema.release(&w.schema);
    }
    return status;
}
