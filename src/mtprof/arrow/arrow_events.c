/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: the model's columns as they are, with dictionaries for what is a number of a text.
 *
 *   ARE1  A column is copied only where rows were picked, or where a number has to change: names of
 *         modules and overloads (0 is none), shapes, and names that are no UTF-8 and became the
 *         same text. The columns `event` and validity bits are new.
 *   ARE2  Numbers of a dictionary's texts are int32 (kinds int8), which pandas needs; they have the
 *         same bits.
 *   ARE3  The table of all events is made once and kept with the model, as derived columns are:
 *         what is new in it (ARE1) costs more than all else. A stream has a table of its own with
 *         the same columns, so that each is released by itself.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "base/text_writer.h"
#include "mtprof/arrow/arrow_table.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/text/inputs_text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    KINDS = MTPROF_EVENT_KIND_ALLOC + 1,
    NO_TEXT = -1,
    BLOCK = 64
};

typedef struct events_table {
    mtprof__arrow_table *table;
    mtprof_model *model;
    uint32_t n;           /* events of the model */
    const uint32_t *rows; /* which of them; NULL: all */
    mtprof__arrow_texts *names;
    int32_t *name_numbers; /* by name: its text in `names` */
    uint32_t n_names;
    bool names_moved; /* the number of some text is not the name's own */
} events_table;

/* ---- values ---------------------------------------------------------------------------------- */

/* The values of the rows. NULL: out of memory. */
static const void *pick(const events_table *e, const mtprof_column *column)
{
    if (e->rows == NULL) {
        return column->data;
    }
    size_t size = column->item_bytes;
    char *values = mtprof__arrow_take(e->table, e->table->rows, size);
    for (uint64_t i = 0; values != NULL && i < e->table->rows; i++) {
        memcpy(values + i * size, (const char *)column->data + e->rows[i] * size, size);
    }
    return values;
}

/* Loops of known length, here and in largest_kind(), so that compilers use vectors. */
static void count_up(uint32_t *numbers, uint64_t n)
{
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (uint32_t k = 0; k < BLOCK; k++) {
            numbers[i + k] = (uint32_t)i + k;
        }
    }
    for (; i < n; i++) {
        numbers[i] = (uint32_t)i;
    }
}

static uint8_t largest_kind(const uint8_t *kinds, uint64_t n)
{
    uint8_t most[BLOCK] = {0};
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (uint32_t k = 0; k < BLOCK; k++) {
            most[k] = kinds[i + k] > most[k] ? kinds[i + k] : most[k];
        }
    }
    for (; i < n; i++) {
        most[0] = kinds[i] > most[0] ? kinds[i] : most[0];
    }
    for (uint32_t k = 1; k < BLOCK; k++) {
        most[0] = most[k] > most[0] ? most[k] : most[0];
    }
    return most[0];
}

/* The events' own numbers, to which `parent` and others refer. */
static bool add_numbers(const events_table *e)
{
    uint32_t *numbers = mtprof__arrow_take(e->table, e->table->rows, sizeof numbers[0]);
    if (numbers != NULL && e->rows != NULL) {
        memcpy(numbers, e->rows, e->table->rows * sizeof numbers[0]);
    } else if (numbers != NULL) {
        count_up(numbers, e->table->rows);
    }
    mtprof__arrow_add(e->table, "event", "I")->values = numbers;
    return numbers != NULL;
}

static const char *format_of(uint32_t id, uint32_t type)
{
    static const char *const formats[] = {
        [MTPROF_TYPE_U8] = "C",  [MTPROF_TYPE_U16] = "S", [MTPROF_TYPE_U32] = "I",
        [MTPROF_TYPE_I32] = "i", [MTPROF_TYPE_U64] = "L", [MTPROF_TYPE_I64] = "l",
    };
    return id == MTPROF_COLUMN_BYTES ? "l" : formats[type]; /* those of memory are signed */
}

static bool add_values(const events_table *e, uint32_t id, const mtprof_column *data)
{
    mtprof__arrow_column *column =
        mtprof__arrow_add(e->table, mtprof_column_name(id), format_of(id, data->type));
    column->values = pick(e, data);
    bool refers = id == MTPROF_COLUMN_PARENT || id == MTPROF_COLUMN_LINK ||
                  id == MTPROF_COLUMN_FORWARD || id == MTPROF_COLUMN_INDEX;
    return column->values != NULL &&
           (!refers || mtprof__arrow_nulls_u32(e->table, column, column->values, MTPROF_NO_EVENT));
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool read_names(events_table *e)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    (void)mtprof_model_get_info(e->model, &info);
    e->n_names = info.names;
    e->names = mtprof__arrow_texts_new(e->table);
    e->name_numbers =
        mtprof__arrow_take(e->table, (uint64_t)e->n_names + 1, sizeof e->name_numbers[0]);
    bool ok = e->names != NULL && e->name_numbers != NULL;
    for (uint32_t i = 0; ok && i < e->n_names; i++) {
        ok = mtprof__arrow_texts_number(e->names, mtprof_model_name(e->model, i),
                                        &e->name_numbers[i]);
        e->names_moved |= e->name_numbers[i] != (int32_t)i;
    }
    return ok;
}

/* A column of numbers as those of a dictionary's texts: number_of[value], NO_TEXT where that is, or
 * where there is none: null. */
static bool add_mapped(const events_table *e, const char *name, const uint32_t *values,
                       const int32_t *number_of, uint32_t n_numbers,
                       mtprof__arrow_texts *dictionary)
{
    mtprof__arrow_column *column = mtprof__arrow_add(e->table, name, "i");
    int32_t *numbers = mtprof__arrow_take(e->table, e->table->rows, sizeof numbers[0]);
    column->dictionary = dictionary;
    column->values = numbers;
    if (numbers == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < e->table->rows; i++) {
        uint32_t value = values[e->rows != NULL ? e->rows[i] : i];
        numbers[i] = value < n_numbers ? number_of[value] : NO_TEXT;
    }
    if (!mtprof__arrow_nulls_u32(e->table, column, (const uint32_t *)numbers, (uint32_t)NO_TEXT)) {
        return false;
    }
    for (uint64_t i = 0; i < e->table->rows; i++) { /* engines may look at those of nulls, too */
        numbers[i] = numbers[i] == NO_TEXT ? 0 : numbers[i];
    }
    return true;
}

static bool add_names(const events_table *e, const mtprof_column *data)
{
    if (e->names_moved) {
        return add_mapped(e, "name", data->data, e->name_numbers, e->n_names, e->names);
    }
    mtprof__arrow_column *column = mtprof__arrow_add(e->table, "name", "i");
    column->values = pick(e, data); /* all below n_names: they are the dictionary's (DICT1) */
    column->dictionary = e->names;
    return column->values != NULL;
}

/* Columns of name + 1. */
static bool add_optional_names(const events_table *e, uint32_t id, const mtprof_column *data)
{
    int32_t *number_of =
        mtprof__arrow_take(e->table, (uint64_t)e->n_names + 1, sizeof number_of[0]);
    if (number_of == NULL) {
        return false;
    }
    number_of[0] = NO_TEXT;
    memcpy(number_of + 1, e->name_numbers, e->n_names * sizeof number_of[0]);
    return add_mapped(e, mtprof_column_name(id), data->data, number_of, e->n_names + 1, e->names);
}

/* Kinds have gaps, and a dictionary's texts are distinct. */
static bool add_kind_name(mtprof__arrow_texts *texts, uint32_t kind)
{
    char text[32];
    const char *name = kind < KINDS ? mtprof_event_kind_name(kind) : "unknown";
    if (kind < KINDS && strcmp(name, "unknown") == 0) {
        (void)snprintf(text, sizeof text, "unknown %u", kind);
        name = text;
    }
    return mtprof__arrow_texts_add(texts, (mtprof_text){name, strlen(name)});
}

static bool add_kinds(const events_table *e, const mtprof_column *data)
{
    static_assert(KINDS < INT8_MAX, "ARE2");
    mtprof__arrow_column *column = mtprof__arrow_add(e->table, "kind", "c");
    const uint8_t *kinds = pick(e, data);
    bool ok = kinds != NULL && (column->dictionary = mtprof__arrow_texts_new(e->table)) != NULL;
    for (uint32_t kind = 0; ok && kind <= KINDS; kind++) {
        ok = add_kind_name(column->dictionary, kind);
    }
    column->values = kinds;
    if (ok && largest_kind(kinds, e->table->rows) >= KINDS) { /* none is known today */
        uint8_t *copy = mtprof__arrow_take(e->table, e->table->rows, 1);
        for (uint64_t i = 0; copy != NULL && i < e->table->rows; i++) {
            copy[i] = kinds[i] < KINDS ? kinds[i] : (uint8_t)KINDS;
        }
        column->values = copy;
    }
    return ok && column->values != NULL;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct shape_text {
    char *bytes;
    size_t length, capacity;
} shape_text;

static int take_bytes(void *context, const void *bytes, size_t length)
{
    shape_text *text = context;
    if (!mtb_grow((void **)&text->bytes, &text->capacity, text->length + length, 1)) {
        return ENOMEM;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    return 0;
}

/* The text of each input list that there is, by its number. */
static bool read_shapes(const events_table *e, mtprof__arrow_texts *texts, int32_t *number_of,
                        uint32_t n)
{
    mtb_writer writer;
    shape_text text = {.bytes = NULL};
    mtprof__inputs_view view = {.model = e->model};
    bool ok = mtb_writer_init(&writer, take_bytes, &text);
    number_of[0] = NO_TEXT;
    for (uint32_t i = 1; ok && i < n; i++) {
        number_of[i] = NO_TEXT;
        if (mtprof_model_inputs(e->model, i, &view.words, &view.n_words)) {
            text.length = 0;
            mtprof__write_input_shapes(&writer, &view);
            mtb_writer_flush(&writer);
            ok = writer.error == 0 &&
                 mtprof__arrow_texts_number(texts, (mtprof_text){text.bytes, text.length},
                                            &number_of[i]);
        }
    }
    ok = mtb_writer_finish(&writer) == 0 && ok;
    mtb_free(text.bytes);
    return ok;
}

static bool add_shapes(const events_table *e, const mtprof_column *data)
{
    const mtprof__dictionary *dictionary = &e->model->dictionary;
    uint64_t n = dictionary->n_reader_inputs + (uint64_t)dictionary->n_inputs + 1;
    n = n < UINT32_MAX ? n : UINT32_MAX;
    mtprof__arrow_texts *texts = mtprof__arrow_texts_new(e->table);
    int32_t *number_of = mtprof__arrow_take(e->table, n, sizeof number_of[0]);
    return texts != NULL && number_of != NULL && read_shapes(e, texts, number_of, (uint32_t)n) &&
           add_mapped(e, "input_shapes", data->data, number_of, (uint32_t)n, texts);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool add_column(const events_table *e, uint32_t id, const mtprof_column *data)
{
    switch (id) {
    case MTPROF_COLUMN_NAME: return add_names(e, data);
    case MTPROF_COLUMN_KIND: return add_kinds(e, data);
    case MTPROF_COLUMN_INPUTS: return add_shapes(e, data);
    case MTPROF_COLUMN_OVERLOAD:
    case MTPROF_COLUMN_MODULE: return add_optional_names(e, id, data);
    case MTPROF_COLUMN_SCALARS: /* numbers of lists that no table has */
    case MTPROF_COLUMN_METADATA:
    case MTPROF_COLUMN_FIRST_CHILD: /* `parent` says the same */
    case MTPROF_COLUMN_NEXT_SIBLING: return true;
    default: return add_values(e, id, data);
    }
}

static int check_rows(const mtprof_arrow_options *options, uint64_t events)
{
    for (uint32_t i = 0; options->rows != NULL && i < options->n_rows; i++) {
        if (options->rows[i] >= events) {
            return mtb_fail(MTPROF_EINVAL, "arrow: row %u is event %u of %llu", i, options->rows[i],
                            (unsigned long long)events);
        }
    }
    return MTPROF_OK;
}

int mtprof__arrow_events_table(mtprof_model *model, uint64_t wanted,
                               const mtprof_arrow_options *options, mtprof__arrow_table **out)
{
    mtprof_column columns[MTPROF_COLUMN_COUNT];
    *out = NULL;
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        columns[id] = (mtprof_column){.data = NULL};
        if ((wanted >> id & 1) != 0) { /* it would be made */
            MT_TRY(mtprof_model_get_column(model, (enum mtprof_column_id)id, &columns[id]));
        }
    }
    uint64_t n = columns[MTPROF_COLUMN_START_NS].count;
    MT_TRY(check_rows(options, n));
    events_table e = {.model = model, .n = (uint32_t)n, .rows = options->rows};
    e.table = mtprof__arrow_table_new(options->rows != NULL ? options->n_rows : n);
    bool ok = e.table != NULL && read_names(&e) && add_numbers(&e);
    for (uint32_t id = 0; ok && id < MTPROF_COLUMN_COUNT; id++) {
        ok = columns[id].data == NULL || add_column(&e, id, &columns[id]);
    }
    if (!ok) {
        mtprof__arrow_table_release(e.table);
        return mtb_fail(MTPROF_ENOMEM, "arrow: no memory for a table of events");
    }
    *out = e.table;
    return MTPROF_OK;
}

/* ---- the table of all events ----------------------------------------------------------------- */

typedef struct kept_table {
    mtprof__kept head;
    mtprof__arrow_table *table;
} kept_table;

static void free_kept(mtprof__kept *kept)
{
    mtprof__arrow_table_release(((kept_table *)kept)->table);
    mtb_free(kept);
}

/* Keeps a table; where another thread was faster, its table takes this one's place. Without memory
 * the table is not kept. */
static void keep(mtprof_model *model, mtprof__arrow_table **table)
{
    kept_table *kept = mtb_calloc(1, sizeof *kept);
    mtprof__kept *other = NULL;
    if (kept == NULL) {
        return;
    }
    *kept = (kept_table){.head.free = free_kept, .table = *table};
    /* Partner: the load in all_events(). Who sees the pointer sees the table. */
    if (__atomic_compare_exchange_n(&model->arrow, &other, &kept->head, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        mtprof__arrow_table_retain(*table);
        return;
    }
    mtb_free(kept);
    mtprof__arrow_table_release(*table);
    *table = ((kept_table *)other)->table;
    mtprof__arrow_table_retain(*table);
}

/* ARE3: *out is a table with the columns of the one that is kept. */
static int all_events(mtprof_model *model, uint64_t wanted, const mtprof_arrow_options *options,
                      mtprof__arrow_table **out)
{
    mtprof__kept *kept = __atomic_load_n(&model->arrow, __ATOMIC_ACQUIRE);
    mtprof__arrow_table *all = NULL;
    *out = NULL;
    if (kept != NULL) {
        all = ((kept_table *)kept)->table;
        mtprof__arrow_table_retain(all);
    } else {
        MT_TRY(mtprof__arrow_events_table(model, wanted, options, &all));
        keep(model, &all);
    }
    mtprof__arrow_table *table = mtprof__arrow_table_new(all->rows);
    if (table == NULL) {
        mtprof__arrow_table_release(all);
        return mtb_fail(MTPROF_ENOMEM, "arrow: no memory for a table of events");
    }
    memcpy(table->columns, all->columns, sizeof table->columns);
    table->n_columns = all->n_columns;
    table->source = all; /* the table has it now */
    *out = table;
    return MTPROF_OK;
}

mtprof_status mtprof_arrow_events(mtprof_model *model, const mtprof_arrow_options *options,
                                  struct ArrowArrayStream *out)
{
    static_assert(MTPROF_COLUMN_COUNT < 64, "a bit each");
    uint64_t all = ((uint64_t)1 << MTPROF_COLUMN_COUNT) - 1;
    uint64_t left_out = (uint64_t)1 << MTPROF_COLUMN_FIRST_CHILD |
                        (uint64_t)1 << MTPROF_COLUMN_NEXT_SIBLING; /* `parent` says the same */
    mtprof_arrow_options own = {.struct_size = sizeof own};
    mtprof__arrow_table *table = NULL;
    *out = (struct ArrowArrayStream){.release = NULL};
    if (options != NULL) {
        mtb_read_struct(&own, options);
    }
    uint64_t wanted = all & ~left_out;
    MT_TRY(own.rows != NULL ? mtprof__arrow_events_table(model, wanted, &own, &table)
                            : all_events(model, wanted, &own, &table));
    return mtprof__arrow_give(table, true, "events", options, out);
}
