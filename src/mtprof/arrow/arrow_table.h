/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that becomes an Arrow stream: columns over borrowed or own memory, and the one owner of
 * that memory.
 *
 *     mtprof__arrow_table ◄── stream, and each schema and batch that it gave
 *       ├─ columns            (a reference each)
 *       ├─ texts              offsets and bytes: values of a column, or its dictionary
 *       └─ blocks             other memory of its own
 *
 *   ART1  A table is filled by one thread and only read once a stream has it.
 *   ART2  The last reference frees it, then calls the caller's release.
 */
#ifndef MTPROF_ARROW_ARROW_TABLE_H
#define MTPROF_ARROW_ARROW_TABLE_H

#include "base/idmap.h"

#include <mtprof/arrow.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__ARROW_COLUMNS = 48,
    MTPROF__ARROW_TEXTS = 16,
    MTPROF__ARROW_BLOCKS = 96
};

/* Texts one after the other, as UTF-8. */
typedef struct mtprof__arrow_texts {
    int64_t *offsets; /* n + 1 of them, the first is 0 */
    size_t n, offsets_capacity;
    char *bytes;
    size_t length, capacity;
    mtb_idmap map; /* number + 1; of texts that are distinct */
} mtprof__arrow_texts;

typedef struct mtprof__arrow_column {
    const char *name;   /* lives as long as the table */
    const char *format; /* constant; of the values, or of the numbers of a dictionary's texts */
    const void *values;
    const void *valid; /* a bit a row, 0: null; NULL: none is */
    int64_t nulls;
    bool nullable;
    mtprof__arrow_texts *texts;      /* format "U": the values */
    mtprof__arrow_texts *dictionary; /* NULL: values are values */
} mtprof__arrow_column;

typedef struct mtprof__arrow_block {
    void *memory;
    size_t bytes;
} mtprof__arrow_block;

typedef struct mtprof__arrow_table mtprof__arrow_table;

/* The rows from `first` on, as many as batch->rows says, of a table whose columns have no values
 * yet; `first` is a multiple of 64. False: out of memory. */
typedef bool mtprof__arrow_batch(const mtprof__arrow_table *table, uint64_t first,
                                 mtprof__arrow_table *batch);

struct mtprof__arrow_table {
    uint32_t references; /* atomic */
    uint32_t n_columns, n_texts, n_blocks;
    uint64_t rows;
    mtprof__arrow_batch *make_batch; /* NULL: the columns have all values */
    mtprof__arrow_table *source;     /* what it refers to, a reference; NULL: nothing */
    mtprof__arrow_column columns[MTPROF__ARROW_COLUMNS];
    mtprof__arrow_texts texts[MTPROF__ARROW_TEXTS];
    mtprof__arrow_block blocks[MTPROF__ARROW_BLOCKS];
    void (*release)(void *user);
    void *user;
};

/* A table without columns; one reference. NULL: out of memory. */
mtprof__arrow_table *mtprof__arrow_table_new(uint64_t rows);
void mtprof__arrow_table_retain(mtprof__arrow_table *table);
/* Accepts NULL. */
void mtprof__arrow_table_release(mtprof__arrow_table *table);

/* Zeroed memory that lives as long as the table; not NULL for 0 bytes. NULL: out of memory. */
void *mtprof__arrow_take(mtprof__arrow_table *table, uint64_t count, size_t size);

/* The next column; values are the caller's to set. */
mtprof__arrow_column *mtprof__arrow_add(mtprof__arrow_table *table, const char *name,
                                        const char *format);

/* Texts of the table. NULL: out of memory. */
mtprof__arrow_texts *mtprof__arrow_texts_new(mtprof__arrow_table *table);
/* Appends a text. False: out of memory. */
bool mtprof__arrow_texts_add(mtprof__arrow_texts *texts, mtprof_text text);
/* The number of a text among distinct ones, appended where it is not there. False: out of memory,
 * or as many as int32 can number. */
bool mtprof__arrow_texts_number(mtprof__arrow_texts *texts, mtprof_text text, int32_t *number);

/* Makes those rows of a column null whose value is `none`. False: out of memory. */
bool mtprof__arrow_nulls_u32(mtprof__arrow_table *table, mtprof__arrow_column *column,
                             const uint32_t *values, uint32_t none);
/* Makes those rows of a column null for which two columns have the same value; same_stride 0: one
 * value for all. False: out of memory. */
bool mtprof__arrow_nulls_i64(mtprof__arrow_table *table, mtprof__arrow_column *column,
                             const int64_t *values, const int64_t *same, size_t same_stride);
/* Bytes of a value of a format; 0: it is less than one (bits). */
size_t mtprof__arrow_value_bytes(const char *format);

/* The table of events; a bit of `wanted` a mtprof_column_id. */
int mtprof__arrow_events_table(mtprof_model *model, uint64_t wanted,
                               const mtprof_arrow_options *options, mtprof__arrow_table **out);

/* A field of a struct that is a row, for tables that are made row by row. */
typedef struct mtprof__arrow_field {
    const char *name;
    /* "U": a mtprof_text; "b": a uint8_t, not 0 is true; others: a number of that size. */
    const char *format;
    uint32_t offset, bytes;
    uint32_t flag; /* not 0: the offset of a uint8_t that says whether there is a value */
    bool distinct; /* "U": through a dictionary, for texts that come often */
    bool nullable; /* without a flag: a number that is `none`, or an empty text, is null */
    int64_t none;
} mtprof__arrow_field;

#define MTPROF__ARROW_FIELD(row, member, name_, format_, ...)                            \
    {                                                                                    \
        .name = (name_), .format = (format_), .offset = (uint32_t)offsetof(row, member), \
        .bytes = (uint32_t)sizeof(((row *)NULL)->member), __VA_ARGS__                    \
    }

/* What rows are written to. */
typedef struct mtprof__arrow_filler {
    mtprof__arrow_table *table;
    const mtprof__arrow_field *fields;
    size_t n_fields;
    uint64_t row; /* the next one */
    struct {
        mtprof__arrow_column *column;
        char *values; /* NULL: they are texts */
        uint8_t *valid;
    } places[MTPROF__ARROW_COLUMNS];
} mtprof__arrow_filler;

/* Adds the columns. False: out of memory. */
bool mtprof__arrow_fill_start(mtprof__arrow_filler *filler, mtprof__arrow_table *table,
                              const mtprof__arrow_field *fields, size_t n_fields);
/* Adds a row, the struct; there must be room for it. False: out of memory. */
bool mtprof__arrow_fill_row(mtprof__arrow_filler *filler, const void *row);

/* Fills in *row, the struct, with row `index`. Its texts live until the next one. */
typedef void mtprof__arrow_row(const void *context, uint64_t index, void *row);

/* Columns from structs, all of them. False: out of memory. */
bool mtprof__arrow_fill(mtprof__arrow_table *table, const mtprof__arrow_field *fields,
                        size_t n_fields, mtprof__arrow_row *read, const void *context, void *row);

/* Most rows of a batch of the table. options may be NULL. */
uint64_t mtprof__arrow_batch_rows(const mtprof__arrow_table *table,
                                  const mtprof_arrow_options *options);
/* Hands a table that is complete to a stream; NULL, and then also an incomplete one: out of memory
 * for `what`, and the table is released without calling the caller's release. */
int mtprof__arrow_give(mtprof__arrow_table *table, bool complete, const char *what,
                       const mtprof_arrow_options *options, struct ArrowArrayStream *out);

#endif /* MTPROF_ARROW_ARROW_TABLE_H */
