/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for a data set of many traces (docs/dataset.md): the columns of the table of events that
 * cannot be calculated from others, always the same ones, batch by batch.
 *
 *   ARD1  A column's values are the model's own, or of the batch: memory grows with the batch, not
 *         with the trace. Texts of modules, overloads and shapes are numbers of 4 bytes a row.
 *   ARD2  Types are those that every engine knows: what is unsigned in 64 bits is below 2^63 and
 *         becomes signed.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/arrow/arrow_table.h"

#include <string.h>

/* How a column is made from one of the table of events. */
enum how {
    AS_IS,    /* with its own nulls */
    DURATION, /* end - start */
    NUMBER    /* null where it is `none` */
};

typedef struct dataset_column {
    const char *name, *format;
    uint32_t id; /* MTPROF_COLUMN_COUNT: it is in the table anyway */
    enum how how;
    int64_t none;
} dataset_column;

#define ID(name) MTPROF_COLUMN_##name
static const dataset_column columns[] = {
    {"event", "I", MTPROF_COLUMN_COUNT, AS_IS, 0},
    {"start_ns", "l", ID(START_NS), AS_IS, 0},
    {"dur_ns", "l", ID(END_NS), DURATION, 0},
    {"self_ns", "l", ID(SELF_NS), AS_IS, 0},
    {"parent", "I", ID(PARENT), AS_IS, 0},
    {"name", "i", ID(NAME), AS_IS, 0},
    {"kind", "c", ID(KIND), AS_IS, 0},
    {"track", "I", ID(TRACK), AS_IS, 0},
    {"step", "i", ID(STEP), AS_IS, 0},
    {"device", "C", ID(DEVICE), AS_IS, 0},
    {"flags", "S", ID(FLAGS), AS_IS, 0},
    {"correlation", "l", ID(CORRELATION), NUMBER, 0},
    {"link", "I", ID(LINK), AS_IS, 0},
    {"device_ns", "l", ID(DEVICE_NS), NUMBER, 0},
    {"self_device_ns", "l", ID(SELF_DEVICE_NS), NUMBER, 0},
    {"input_shapes", "i", ID(INPUTS), AS_IS, 0},
    {"stack", "I", ID(STACK), NUMBER, 0},
    {"module", "i", ID(MODULE), AS_IS, 0},
    {"overload", "i", ID(OVERLOAD), AS_IS, 0},
    {"sequence", "l", ID(SEQUENCE), NUMBER, -1},
    {"forward", "I", ID(FORWARD), AS_IS, 0},
    {"flops", "l", ID(FLOPS), NUMBER, 0},
    {"bytes", "l", ID(BYTES), NUMBER, 0},
    {"self_cpu_memory", "l", ID(ALLOCATED_SELF_CPU), NUMBER, 0},
    {"self_device_memory", "l", ID(ALLOCATED_SELF_DEVICE), NUMBER, 0},
};
#undef ID

enum {
    N_COLUMNS = MT_COUNT(columns)
};

/* The column of a table of events that a column of the data set is made from; NULL: none. */
static const mtprof__arrow_column *find_column(const mtprof__arrow_table *events,
                                               const dataset_column *column)
{
    const char *name =
        column->id < MTPROF_COLUMN_COUNT ? mtprof_column_name(column->id) : column->name;
    if (column->id == MTPROF_COLUMN_INPUTS) {
        name = "input_shapes";
    }
    for (uint32_t i = 0; i < events->n_columns; i++) {
        if (strcmp(events->columns[i].name, name) == 0) {
            return &events->columns[i];
        }
    }
    return NULL;
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool make_durations(mtprof__arrow_table *batch, mtprof__arrow_column *column,
                           const int64_t *start_ns, const int64_t *end_ns)
{
    int64_t *values = mtprof__arrow_take(batch, batch->rows, sizeof values[0]);
    for (uint64_t i = 0; values != NULL && i < batch->rows; i++) {
        values[i] = end_ns[i] - start_ns[i];
    }
    column->values = values;
    return values != NULL;
}

/* A column without values: all rows are null. What it points to are zeros, as many as the largest
 * batch needs, which the table has for all of them. */
static void make_nulls(const mtprof__arrow_table *batch, mtprof__arrow_column *column)
{
    column->valid = column->values;
    column->nulls = (int64_t)batch->rows;
}

static bool make_numbers(mtprof__arrow_table *batch, mtprof__arrow_column *column, int64_t none)
{
    return mtprof__arrow_value_bytes(column->format) == sizeof(uint32_t)
               ? mtprof__arrow_nulls_u32(batch, column, column->values, (uint32_t)none)
               : mtprof__arrow_nulls_i64(batch, column, column->values, &none, 0);
}

static bool make_column(const mtprof__arrow_table *events, uint64_t first,
                        mtprof__arrow_table *batch, uint32_t i)
{
    const mtprof__arrow_column *from = find_column(events, &columns[i]);
    mtprof__arrow_column *column = &batch->columns[i];
    if (from == NULL) {
        make_nulls(batch, column);
        return true;
    }
    column->values = (const char *)from->values + first * mtprof__arrow_value_bytes(column->format);
    switch (columns[i].how) {
    case DURATION: return make_durations(batch, column, batch->columns[1].values, column->values);
    case NUMBER: return make_numbers(batch, column, columns[i].none);
    default: break;
    }
    if (from->nulls != 0) {
        column->valid = (const char *)from->valid + first / 8;
        column->nulls = -1; /* not counted */
    }
    return true;
}

static bool make_batch(const mtprof__arrow_table *table, uint64_t first, mtprof__arrow_table *batch)
{
    bool ok = true;
    memcpy(batch->columns, table->columns, sizeof batch->columns);
    batch->n_columns = table->n_columns;
    for (uint32_t i = 0; ok && i < batch->n_columns; i++) {
        ok = make_column(table->source, first, batch, i);
    }
    return ok;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Adds the columns, without values but for those that are not there. False: out of memory. */
static bool add_columns(mtprof__arrow_table *table, uint64_t batch_rows)
{
    mtprof__arrow_texts *none = mtprof__arrow_texts_new(table);
    const void *zeros = mtprof__arrow_take(table, batch_rows, sizeof(int64_t));
    bool ok = none != NULL && zeros != NULL && mtprof__arrow_texts_add(none, (mtprof_text){"", 0});
    for (uint32_t i = 0; ok && i < N_COLUMNS; i++) {
        const dataset_column *made = &columns[i];
        const mtprof__arrow_column *from = find_column(table->source, made);
        mtprof__arrow_column *column = mtprof__arrow_add(table, made->name, made->format);
        bool is_text = made->id == MTPROF_COLUMN_INPUTS || made->id == MTPROF_COLUMN_MODULE ||
                       made->id == MTPROF_COLUMN_OVERLOAD;
        column->dictionary = from != NULL ? from->dictionary : is_text ? none : NULL;
        column->values = zeros;
        column->nullable = made->how == NUMBER || is_text || made->id == MTPROF_COLUMN_PARENT ||
                           made->id == MTPROF_COLUMN_LINK || made->id == MTPROF_COLUMN_FORWARD;
    }
    return ok;
}

mtprof_status mtprof_arrow_dataset(mtprof_model *model, const mtprof_arrow_options *options,
                                   struct ArrowArrayStream *out)
{
    mtprof_arrow_options all = {.struct_size = sizeof all};
    mtprof__arrow_table *events = NULL;
    uint64_t wanted = 0;
    *out = (struct ArrowArrayStream){.release = NULL};
    for (uint32_t i = 0; i < N_COLUMNS; i++) {
        wanted |= (uint64_t)(columns[i].id < MTPROF_COLUMN_COUNT) << columns[i].id % 64;
    }
    MT_TRY(mtprof__arrow_events_table(model, wanted, &all, &events));
    mtprof__arrow_table *table = mtprof__arrow_table_new(events->rows);
    if (table == NULL) {
        mtprof__arrow_table_release(events);
        return mtprof__arrow_give(NULL, false, "a data set's events", options, out);
    }
    table->source = events; /* the table has it now */
    table->make_batch = make_batch;
    uint64_t batch_rows = mtprof__arrow_batch_rows(table, options);
    batch_rows = batch_rows < table->rows ? batch_rows : table->rows;
    return mtprof__arrow_give(table, add_columns(table, batch_rows), "a data set's events", options,
                              out);
}
