/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as tables. The code here knows rows and a few facts about their list, no model: so the
 * formatting is tested on rows made by hand.
 *
 *     input (rows by number) ─► plan (columns, sums, widths) ─► text (torch, fit, Markdown)
 *                            └────────────────────────────────► data (CSV, JSON)
 *
 *   TB1  A cell is one line whatever its bytes are: control characters are written as escapes,
 *        invalid UTF-8 as U+FFFD.
 *   TB2  Widths count characters.
 *   TB3  Numbers have a point, whatever the program's locale says.
 */
#ifndef MTPROF_ANALYZE_TABLE_TABLE_IMPL_H
#define MTPROF_ANALYZE_TABLE_TABLE_IMPL_H

#include "base/compiler.h"
#include "base/text_writer.h"

#include <mtprof/averages.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what a table is made of ----------------------------------------------------------------- */

typedef struct mtprof__table_input {
    uint32_t n_rows;
    void *context;
    /* The row with this number, in the order in which rows are shown. All of *row is written. */
    int (*row)(void *context, uint32_t index, mtprof_row *row);
    /* Its stack, innermost first; the texts live until the next call. NULL: rows have none. */
    int (*stack)(void *context, const mtprof_row *row, const mtprof_text **frames, uint32_t *n);
    /* Duration at quantile q. NULL: not known. */
    int (*quantile)(void *context, uint32_t index, double q, int64_t *ns);
    const mtprof_model *model;   /* for tracks and device types; may be NULL */
    const char *device;          /* "CUDA"; NULL: no device was recorded */
    bool memory, flops;          /* were recorded */
    bool events;                 /* rows are single events */
    const mtprof_health *health; /* NULL: not known */
} mtprof__table_input;

/* The sum of self CPU times: the 100 % of the table. Functions are not part of the tree of ops and
 * scopes (model.h MDL2): with ops or annotations in the list their time would count twice, so they
 * are left out of the sum. In a list of functions alone it is theirs. A row has the kind of its
 * first event: an op with the name of a function would count as one. */
typedef struct mtprof__self_sum {
    uint64_t others, functions; /* hostile traces may have any times: they wrap */
    bool has_others;
} mtprof__self_sum;

MT_INLINE void mtprof__self_sum_add(mtprof__self_sum *sum, const mtprof_row *row)
{
    bool function = row->kind == MTPROF_EVENT_KIND_FUNCTION;
    *(function ? &sum->functions : &sum->others) += (uint64_t)row->self_cpu_ns;
    sum->has_others |= !function && row->device == 0;
}

MT_INLINE int64_t mtprof__self_sum_ns(const mtprof__self_sum *sum)
{
    return (int64_t)(sum->has_others ? sum->others : sum->others + sum->functions);
}

/* ---- fields of a row ------------------------------------------------------------------------- */

enum mtprof__value_type {
    MTPROF__VALUE_NONE, /* the row does not have it */
    MTPROF__VALUE_TEXT,
    MTPROF__VALUE_STACK, /* mtprof__table_input.stack() has it */
    MTPROF__VALUE_I64,
    MTPROF__VALUE_U64,
    MTPROF__VALUE_REAL,
    MTPROF__VALUE_BOOL /* `number` is 0 or 1 */
};

typedef struct mtprof__row_value {
    enum mtprof__value_type type;
    mtprof_text text;
    int64_t integer;
    uint64_t number;
    double real;
} mtprof__row_value;

/* Where a field's value comes from: a member of the row, unless stated. */
enum mtprof__field_form {
    MTPROF__FIELD_TEXT,
    MTPROF__FIELD_STACK,
    MTPROF__FIELD_STEP,
    MTPROF__FIELD_THREAD, /* of its track */
    MTPROF__FIELD_KIND,
    MTPROF__FIELD_DEVICE_TYPE,
    MTPROF__FIELD_FLAG,
    MTPROF__FIELD_U32,
    MTPROF__FIELD_I32,
    MTPROF__FIELD_U64,
    MTPROF__FIELD_I64,
    MTPROF__FIELD_AVERAGE, /* the member divided by the count */
    MTPROF__FIELD_P50,     /* asked of the input; the sum over rows has none */
    MTPROF__FIELD_P99
};

typedef struct mtprof__row_field {
    const char *name;
    enum mtprof__field_form form;
    uint32_t member; /* its offset in mtprof_row */
    bool sorts;      /* rows can be sorted by it */
} mtprof__row_field;

/* All fields, in the order of CSV and JSON. */
enum {
    MTPROF__ROW_FIELDS = 30
};
extern const mtprof__row_field mtprof__row_fields[MTPROF__ROW_FIELDS];

/* index UINT32_MAX: the sum over rows. Fails as the input's quantile() does. */
int mtprof__row_get(const mtprof__table_input *input, const mtprof_row *row, uint32_t index,
                    unsigned field, mtprof__row_value *value);

/* The stack of a row, as the input's stack() gives it; none where that is NULL. */
int mtprof__table_stack(const mtprof__table_input *input, const mtprof_row *row,
                        const mtprof_text **frames, uint32_t *n);

/* Sorts row numbers by an attribute, largest first, equal ones in the order of their numbers.
 * Fails with EINVAL (no such attribute), ENOMEM. */
int mtprof__table_order(const mtprof__table_input *input, const char *key, uint32_t *order);

/* The sum over all rows, with the identity of the last one and the key "Total"; self CPU time as
 * mtprof__self_sum has it. */
int mtprof__table_total(const mtprof__table_input *input, mtprof_row *total);

/* Writes a table. Fails with EINVAL, ENOMEM; what the writer's sink says is the writer's. */
int mtprof__table_write(const mtprof__table_input *input, const mtprof_table_options *options,
                        mtb_writer *writer);

/* ---- cells ----------------------------------------------------------------------------------- */

enum {
    MTPROF__NUMBER_BYTES = 352 /* the longest double with a few digits after the point */
};

typedef struct mtprof__cell {
    const char *bytes;
    size_t length, characters;
} mtprof__cell;

/* Memory for texts that had to be changed. Zero is empty. */
typedef struct mtprof__cell_buffer {
    char *bytes;
    size_t capacity;
} mtprof__cell_buffer;

/* A text as a table may show it (TB1). It lives until the buffer is used again. ENOMEM. */
int mtprof__cell_safe(mtprof__cell_buffer *buffer, mtprof_text text, mtprof__cell *out);
/* Makes room for so many bytes. ENOMEM. */
int mtprof__cell_reserve(mtprof__cell_buffer *buffer, size_t bytes);
/* Only how many characters that has. */
size_t mtprof__cell_characters(mtprof_text text);
/* The bytes of the first n characters. */
size_t mtprof__cell_prefix(const mtprof__cell *cell, size_t n);
void mtprof__cell_buffer_fini(mtprof__cell_buffer *buffer);

/* A number with `decimals` digits after the point; returns its length. buffer has
 * MTPROF__NUMBER_BYTES. */
size_t mtprof__put_fixed(char *buffer, double value, int decimals);
/* "1.500ms"; unit "s", "ms", "us", or anything else for the one that fits. */
size_t mtprof__put_time(char *buffer, double us, const char *unit);
/* "-1.50 KB". */
size_t mtprof__put_memory(char *buffer, int64_t bytes);
/* "12.50%", or "NaN" where the whole is nothing. */
size_t mtprof__put_share(char *buffer, double part, double whole);

/* ---- plan ------------------------------------------------------------------------------------ */

enum mtprof__cell_id {
    MTPROF__CELL_NAME,
    MTPROF__CELL_OVERLOAD,
    MTPROF__CELL_SELF_CPU_SHARE,
    MTPROF__CELL_SELF_CPU,
    MTPROF__CELL_CPU_SHARE,
    MTPROF__CELL_CPU,
    MTPROF__CELL_CPU_AVERAGE,
    MTPROF__CELL_SELF_DEVICE,
    MTPROF__CELL_SELF_DEVICE_SHARE,
    MTPROF__CELL_DEVICE,
    MTPROF__CELL_DEVICE_AVERAGE,
    MTPROF__CELL_CPU_MEMORY,
    MTPROF__CELL_SELF_CPU_MEMORY,
    MTPROF__CELL_DEVICE_MEMORY,
    MTPROF__CELL_SELF_DEVICE_MEMORY,
    MTPROF__CELL_CALLS,
    MTPROF__CELL_NODE,
    MTPROF__CELL_STEP,
    MTPROF__CELL_THREAD,
    MTPROF__CELL_MODULE,
    MTPROF__CELL_SHAPES,
    MTPROF__CELL_SOURCE,
    MTPROF__CELL_FLOPS,
    MTPROF__CELL_MIN,
    MTPROF__CELL_P50,
    MTPROF__CELL_P99,
    MTPROF__CELL_MAX,
    MTPROF__CELL_TOTAL_US,
    MTPROF__CELL_COUNT,
    MTPROF__CELL_KINDS
};

typedef struct mtprof__table_column {
    uint32_t id; /* enum mtprof__cell_id */
    bool is_left, is_text;
    size_t width;
    char header[96];
} mtprof__table_column;

typedef struct mtprof__table_plan {
    const mtprof__table_input *input;
    mtprof_table_options options;
    mtprof__table_column columns[MTPROF__CELL_KINDS];
    size_t n_columns;
    uint64_t limit;                     /* rows to print */
    double self_cpu_us, self_device_us; /* sums over all rows */
    bool has_device, has_stack;
    char device[64]; /* "CUDA" */
    double flops_scale;
    mtprof__cell_buffer name, text; /* for cells */
    char number[MTPROF__NUMBER_BYTES];
    uint64_t json_rows; /* written so far */
} mtprof__table_plan;

/* Reads all rows once. Must be finished also where it fails. EINVAL, ENOMEM. */
int mtprof__plan_init(mtprof__table_plan *plan, const mtprof__table_input *input,
                      const mtprof_table_options *options);
void mtprof__plan_fini(mtprof__table_plan *plan);

/* A cell of a row; it lives until the next call. SOURCE: the first frame. Texts are cut as torch
 * cuts them where `cut`. */
int mtprof__plan_cell(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index, uint32_t id,
                      bool cut, mtprof__cell *out);
/* A time in the table's unit, in plan->number; its length. */
size_t mtprof__plan_time(mtprof__table_plan *plan, double us);
/* A frame as a source cell, cut to the column's width. */
int mtprof__plan_frame(mtprof__table_plan *plan, mtprof_text frame, size_t width,
                       mtprof__cell *out);

/* "CPU", "CUDA". */
mtprof_text mtprof__table_device_type(const mtprof__table_input *input, const mtprof_row *row);

/* Calls `visit` for each row that is to be printed. */
typedef int mtprof__table_visit(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                                mtb_writer *writer);
int mtprof__table_each(mtprof__table_plan *plan, mtb_writer *writer, mtprof__table_visit *visit);

void mtprof__write_repeated(mtb_writer *writer, char byte, size_t n);

/* The sums below a table, and the line about losses where there is one. */
void mtprof__table_footers(mtprof__table_plan *plan, const char *line_end, mtb_writer *writer);

/* The line about losses, without its end; 0 where nothing was lost. */
enum {
    MTPROF__HEALTH_BYTES = 1024 /* of its buffer */
};
size_t mtprof__health_line(const mtprof_health *health, char *buffer);

/* ---- forms ----------------------------------------------------------------------------------- */

int mtprof__table_torch(mtprof__table_plan *plan, mtb_writer *writer);
int mtprof__table_fit(mtprof__table_plan *plan, mtb_writer *writer);
int mtprof__table_markdown(mtprof__table_plan *plan, mtb_writer *writer);
int mtprof__table_html(mtprof__table_plan *plan, mtb_writer *writer);
int mtprof__table_csv(mtprof__table_plan *plan, mtb_writer *writer);
int mtprof__table_json(mtprof__table_plan *plan, mtb_writer *writer);

#endif /* MTPROF_ANALYZE_TABLE_TABLE_IMPL_H */
