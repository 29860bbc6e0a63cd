/* SPDX-License-Identifier: Apache-2.0
 *
 * A small table of values that the caller has, cell by cell.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/arrow/arrow_table.h"

#include <string.h>

/* The format as a constant text. NULL: such columns are not made. */
static const char *format_of(char format)
{
    static const char *const formats[] = {"b", "i", "l", "g", "U"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i][0] == format) {
            return formats[i];
        }
    }
    return NULL;
}

static bool set_value(const mtprof__arrow_column *column, char *values, uint64_t row,
                      const mtprof_arrow_cell *cell)
{
    int32_t narrow = (int32_t)cell->number;
    switch (column->format[0]) {
    case 'U': {
        mtprof_text none = {"", 0};
        return mtprof__arrow_texts_add(column->texts, cell->is_null != 0 ? none : cell->text);
    }
    case 'b': values[row / 8] |= (char)((cell->number != 0) << (row % 8)); break;
    case 'i': memcpy(values + row * sizeof narrow, &narrow, sizeof narrow); break;
    case 'g': memcpy(values + row * sizeof cell->real, &cell->real, sizeof cell->real); break;
    default: memcpy(values + row * sizeof cell->number, &cell->number, sizeof cell->number); break;
    }
    return true;
}

/* False: out of memory. */
static bool add_column(mtprof__arrow_table *table, const mtprof_arrow_cells *cells, uint32_t k)
{
    size_t length = strlen(cells->names[k]) + 1;
    char *name = mtprof__arrow_take(table, length, 1);
    char *values = mtprof__arrow_take(table, table->rows, sizeof(int64_t));
    uint8_t *valid = mtprof__arrow_take(table, table->rows / 8 + 1, 1);
    if (name == NULL || values == NULL || valid == NULL) {
        return false;
    }
    memcpy(name, cells->names[k], length);
    mtprof__arrow_column *column = mtprof__arrow_add(table, name, format_of(cells->formats[k]));
    column->values = values;
    column->valid = valid;
    column->nullable = true;
    column->texts = column->format[0] == 'U' ? mtprof__arrow_texts_new(table) : NULL;
    bool ok = column->format[0] != 'U' || column->texts != NULL;
    for (uint64_t row = 0; ok && row < table->rows; row++) {
        const mtprof_arrow_cell *cell = &cells->cells[row * cells->n_columns + k];
        ok = set_value(column, values, row, cell);
        valid[row / 8] |= (uint8_t)((cell->is_null == 0) << (row % 8));
        column->nulls += cell->is_null != 0;
    }
    return ok;
}

mtprof_status mtprof_arrow_from_cells(const mtprof_arrow_cells *cells,
                                      const mtprof_arrow_options *options,
                                      struct ArrowArrayStream *out)
{
    mtprof_arrow_cells own;
    *out = (struct ArrowArrayStream){.release = NULL};
    mtb_read_struct(&own, cells);
    if (own.n_columns > MTPROF__ARROW_TEXTS) {
        return mtb_fail(MTPROF_EINVAL, "arrow: %u columns of cells, at most %d", own.n_columns,
                        MTPROF__ARROW_TEXTS);
    }
    for (uint32_t k = 0; k < own.n_columns; k++) {
        if (format_of(own.formats[k]) == NULL) {
            return mtb_fail(MTPROF_EINVAL, "arrow: column %s of cells has format '%c'",
                            own.names[k], own.formats[k]);
        }
    }
    mtprof__arrow_table *table = mtprof__arrow_table_new(own.n_rows);
    bool ok = table != NULL;
    for (uint32_t k = 0; ok && k < own.n_columns; k++) {
        ok = add_column(table, &own, k);
    }
    return mtprof__arrow_give(table, ok, "cells", options, out);
}
