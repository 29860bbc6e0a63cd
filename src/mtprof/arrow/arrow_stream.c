/* SPDX-License-Identifier: Apache-2.0
 *
 * A table through the Arrow C stream interface: one batch or several, whose arrays point into the
 * table, or into one that is made for the batch.
 *
 *   ARS1  Every array and schema, parent, child or dictionary, holds a reference of the group that
 *         it was made in, so a child that was moved out of its parent outlives it.
 *   ARS2  A release is harmless on what is already released: its callback is NULL.
 *   ARS3  A batch begins at a multiple of 64 rows, so that bits begin with a byte, and every array
 *         has offset 0.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/arrow/arrow_table.h"

#include <errno.h>
#include <string.h>

/* ---- schemas --------------------------------------------------------------------------------- */

typedef struct schema_group {
    uint32_t references; /* atomic */
    struct ArrowSchema children[MTPROF__ARROW_COLUMNS];
    struct ArrowSchema dictionaries[MTPROF__ARROW_COLUMNS];
    struct ArrowSchema *places[MTPROF__ARROW_COLUMNS];
    char names[]; /* a schema may outlive the table */
} schema_group;

static void give_group(uint32_t *references, void *group)
{
    /* Partner: the other releases. Nobody uses what is freed. */
    if (__atomic_sub_fetch(references, 1, __ATOMIC_ACQ_REL) == 0) {
        mtb_free(group);
    }
}

static void release_schema(struct ArrowSchema *schema)
{
    schema_group *group = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL) {
            schema->children[i]->release(schema->children[i]);
        }
    }
    if (schema->dictionary != NULL && schema->dictionary->release != NULL) {
        schema->dictionary->release(schema->dictionary);
    }
    schema->release = NULL;
    give_group(&group->references, group);
}

static void set_schema(schema_group *group, struct ArrowSchema *schema, const char *name,
                       const char *format, bool nullable)
{
    *schema = (struct ArrowSchema){
        .format = format,
        .name = name,
        .flags = nullable ? ARROW_FLAG_NULLABLE : 0,
        .release = release_schema,
        .private_data = group,
    };
    group->references++;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct array_group {
    uint32_t references; /* atomic */
    mtprof__arrow_table *table;
    struct ArrowArray children[MTPROF__ARROW_COLUMNS];
    struct ArrowArray dictionaries[MTPROF__ARROW_COLUMNS];
    struct ArrowArray *places[MTPROF__ARROW_COLUMNS];
    const void *buffers[MTPROF__ARROW_COLUMNS][3];
    const void *dictionary_buffers[MTPROF__ARROW_COLUMNS][3];
    const void *no_buffers[1];
} array_group;

static void release_array(struct ArrowArray *array)
{
    array_group *group = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL) {
            array->children[i]->release(array->children[i]);
        }
    }
    if (array->dictionary != NULL && array->dictionary->release != NULL) {
        array->dictionary->release(array->dictionary);
    }
    array->release = NULL;
    mtprof__arrow_table *table = group->table; /* of which each array has a reference */
    give_group(&group->references, group);
    mtprof__arrow_table_release(table);
}

static void set_array(array_group *group, struct ArrowArray *array, uint64_t length,
                      int64_t n_buffers, const void **buffers)
{
    *array = (struct ArrowArray){
        .length = (int64_t)length,
        .n_buffers = n_buffers,
        .buffers = buffers,
        .release = release_array,
        .private_data = group,
    };
    group->references++;
    mtprof__arrow_table_retain(group->table);
}

static void set_texts(array_group *group, struct ArrowArray *array, const void **buffers,
                      const mtprof__arrow_texts *texts, uint64_t first, uint64_t n)
{
    buffers[1] = texts->offsets + first;
    buffers[2] = texts->bytes;
    set_array(group, array, n, 3, buffers);
}

/* n rows from `first` on. */
static void set_column(array_group *group, uint32_t i, uint64_t first, uint64_t n)
{
    const mtprof__arrow_column *column = &group->table->columns[i];
    const mtprof__arrow_texts *dictionary = column->dictionary;
    struct ArrowArray *array = &group->children[i];
    if (column->texts != NULL) {
        set_texts(group, array, group->buffers[i], column->texts, first, n);
    } else {
        size_t size = mtprof__arrow_value_bytes(column->format);
        uint64_t at = size != 0 ? first * size : first / 8;
        group->buffers[i][1] = (const char *)column->values + at;
        set_array(group, array, n, 2, group->buffers[i]);
    }
    if (column->nulls != 0) {
        group->buffers[i][0] = (const char *)column->valid + first / 8;
        array->null_count = n == group->table->rows ? column->nulls : -1; /* not counted */
    }
    if (dictionary != NULL) {
        array->dictionary = &group->dictionaries[i];
        set_texts(group, array->dictionary, group->dictionary_buffers[i], dictionary, 0,
                  dictionary->n);
    }
    group->places[i] = array;
}

/* ---- the stream ------------------------------------------------------------------------------ */

typedef struct stream_state {
    mtprof__arrow_table *table;
    uint64_t first, batch_rows; /* of the next batch */
    bool is_done;               /* the last batch was given */
    const char *error;
} stream_state;

static int fail_stream(stream_state *state, int error, const char *text)
{
    state->error = text;
    return error;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    stream_state *state = stream->private_data;
    const mtprof__arrow_table *table = state->table;
    size_t bytes = 0;
    for (uint32_t i = 0; i < table->n_columns; i++) {
        bytes += strlen(table->columns[i].name) + 1;
    }
    schema_group *group = mtb_calloc(1, sizeof *group + bytes);
    *out = (struct ArrowSchema){.release = NULL};
    if (group == NULL) {
        return fail_stream(state, ENOMEM, "arrow: no memory for a schema");
    }
    char *name = group->names;
    set_schema(group, out, "", "+s", false);
    for (uint32_t i = 0; i < table->n_columns; i++) {
        const mtprof__arrow_column *column = &table->columns[i];
        struct ArrowSchema *child = &group->children[i];
        size_t length = strlen(column->name) + 1;
        memcpy(name, column->name, length);
        set_schema(group, child, name, column->format, column->nullable);
        name += length;
        if (column->dictionary != NULL) {
            child->dictionary = &group->dictionaries[i];
            set_schema(group, child->dictionary, "", "U", false);
        }
        group->places[i] = child;
    }
    out->n_children = table->n_columns;
    out->children = group->places;
    return 0;
}

/* A table with the values of a batch. NULL: out of memory. */
static mtprof__arrow_table *make_batch(mtprof__arrow_table *table, uint64_t first, uint64_t n)
{
    mtprof__arrow_table *batch = mtprof__arrow_table_new(n);
    if (batch != NULL) {
        mtprof__arrow_table_retain(table);
        batch->source = table;
        if (!table->make_batch(table, first, batch)) {
            mtprof__arrow_table_release(batch);
            batch = NULL;
        }
    }
    return batch;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    stream_state *state = stream->private_data;
    mtprof__arrow_table *table = state->table;
    uint64_t first = state->first;
    *out = (struct ArrowArray){.release = NULL};
    if (state->is_done) {
        return 0;
    }
    uint64_t n = table->rows - first < state->batch_rows ? table->rows - first : state->batch_rows;
    array_group *group = mtb_calloc(1, sizeof *group);
    bool is_made = table->make_batch != NULL;
    mtprof__arrow_table *batch = is_made && group != NULL ? make_batch(table, first, n) : table;
    if (group == NULL || batch == NULL) {
        mtb_free(group);
        return fail_stream(state, ENOMEM, "arrow: no memory for a record batch");
    }
    group->table = batch;
    set_array(group, out, n, 1, group->no_buffers);
    for (uint32_t i = 0; i < batch->n_columns; i++) {
        set_column(group, i, is_made ? 0 : first, n);
    }
    out->n_children = batch->n_columns;
    out->children = group->places;
    if (is_made) {
        mtprof__arrow_table_release(batch); /* the arrays have it */
    }
    state->first = first + n;
    state->is_done = state->first == table->rows;
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    return ((const stream_state *)stream->private_data)->error;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    stream_state *state = stream->private_data;
    mtprof__arrow_table *table = state->table;
    stream->release = NULL;
    mtb_free(state);
    mtprof__arrow_table_release(table);
}

uint64_t mtprof__arrow_batch_rows(const mtprof__arrow_table *table,
                                  const mtprof_arrow_options *options)
{
    mtprof_arrow_options own = {.struct_size = sizeof own};
    if (options != NULL) {
        mtb_read_struct(&own, options);
    }
    if (own.batch_rows != 0) { /* ARS3 */
        return ((uint64_t)own.batch_rows + 63) / 64 * 64;
    }
    return table->make_batch != NULL ? MTPROF_ARROW_DATASET_ROWS : UINT64_MAX;
}

int mtprof__arrow_give(mtprof__arrow_table *table, bool complete, const char *what,
                       const mtprof_arrow_options *options, struct ArrowArrayStream *out)
{
    stream_state *state = table != NULL && complete ? mtb_calloc(1, sizeof *state) : NULL;
    *out = (struct ArrowArrayStream){.release = NULL};
    if (state == NULL) {
        mtprof__arrow_table_release(table);
        return mtb_fail(MTPROF_ENOMEM, "arrow: no memory for a table of %s", what);
    }
    state->batch_rows = mtprof__arrow_batch_rows(table, options);
    if (options != NULL) {
        mtprof_arrow_options own;
        mtb_read_struct(&own, options);
        table->release = own.release;
        table->user = own.user;
    }
    state->table = table;
    *out = (struct ArrowArrayStream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release_stream,
        .private_data = state,
    };
    return MTPROF_OK;
}
