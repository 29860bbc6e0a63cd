/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that fits a terminal: the cells of the other forms, in columns as narrow as their texts.
 *
 * Where that is too wide, texts are narrowed first; then columns go, those that repeat others
 * first, until the rest fits. Name, self time, total time and calls always stay.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <string.h>

enum {
    USUAL_WIDTH = 80,
    GAP = 2,
    LEAST_NAME = 24, /* before a column goes */
    LEAST_TEXT = 12,
    LAST_NAME = 8 /* when no column can go any more */
};

/* The order of removal. Shares and averages follow from other columns; what identifies rows goes
 * last. */
static const uint32_t leaving[] = {
    MTPROF__CELL_TOTAL_US,
    MTPROF__CELL_COUNT,
    MTPROF__CELL_NODE,
    MTPROF__CELL_CPU_SHARE,
    MTPROF__CELL_DEVICE_AVERAGE,
    MTPROF__CELL_CPU_AVERAGE,
    MTPROF__CELL_SELF_DEVICE_SHARE,
    MTPROF__CELL_MIN,
    MTPROF__CELL_MAX,
    MTPROF__CELL_CPU_MEMORY,
    MTPROF__CELL_DEVICE_MEMORY,
    MTPROF__CELL_FLOPS,
    MTPROF__CELL_SELF_CPU_SHARE,
    MTPROF__CELL_P50,
    MTPROF__CELL_P99,
    MTPROF__CELL_SELF_CPU_MEMORY,
    MTPROF__CELL_SELF_DEVICE_MEMORY,
    MTPROF__CELL_DEVICE,
    MTPROF__CELL_SOURCE,
    MTPROF__CELL_SELF_DEVICE,
    MTPROF__CELL_SHAPES,
    MTPROF__CELL_MODULE,
    MTPROF__CELL_THREAD,
    MTPROF__CELL_OVERLOAD,
    MTPROF__CELL_STEP,
};

static int measure_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                       mtb_writer *writer)
{
    (void)writer;
    for (size_t i = 0; i < plan->n_columns; i++) {
        mtprof__cell cell;
        MT_TRY(mtprof__plan_cell(plan, row, index, plan->columns[i].id, false, &cell));
        if (cell.characters > plan->columns[i].width) {
            plan->columns[i].width = cell.characters;
        }
    }
    return 0;
}

static size_t line_width(const mtprof__table_plan *plan)
{
    size_t width = 0;
    for (size_t i = 0; i < plan->n_columns; i++) {
        width += plan->columns[i].width + (i != 0 ? GAP : 0);
    }
    return width;
}

static size_t least_width(const mtprof__table_column *column, size_t least_name)
{
    size_t least = column->id == MTPROF__CELL_NAME ? least_name : LEAST_TEXT;
    if (!column->is_text || column->width < least) {
        return column->width;
    }
    return least;
}

/* The least that the columns that are there can do with. */
static size_t narrowest(const mtprof__table_plan *plan, size_t least_name)
{
    size_t width = 0;
    for (size_t i = 0; i < plan->n_columns; i++) {
        width += least_width(&plan->columns[i], least_name) + (i != 0 ? GAP : 0);
    }
    return width;
}

static void drop_column(mtprof__table_plan *plan, uint32_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->n_columns; i++) {
        if (plan->columns[i].id != id) {
            plan->columns[kept++] = plan->columns[i];
        }
    }
    plan->n_columns = kept;
}

/* Takes what is too much from the widest text, again and again. */
static void narrow(mtprof__table_plan *plan, size_t width, size_t least_name)
{
    for (size_t now = line_width(plan); now > width; now--) {
        mtprof__table_column *widest = NULL;
        for (size_t i = 0; i < plan->n_columns; i++) {
            mtprof__table_column *column = &plan->columns[i];
            if (column->width > least_width(column, least_name) &&
                (widest == NULL || column->width > widest->width)) {
                widest = column;
            }
        }
        if (widest == NULL) {
            return;
        }
        widest->width--;
    }
}

static void fit_columns(mtprof__table_plan *plan, size_t width)
{
    for (size_t i = 0; i < MT_COUNT(leaving) && narrowest(plan, LEAST_NAME) > width; i++) {
        drop_column(plan, leaving[i]);
    }
    narrow(plan, width, narrowest(plan, LEAST_NAME) <= width ? LEAST_NAME : LAST_NAME);
}

/* A text in its column. One that is too long shows where it was cut: names keep both ends, since
 * many begin alike; paths of files and modules keep their end. */
static void write_fitted(mtb_writer *writer, const mtprof__cell *cell,
                         const mtprof__table_column *column)
{
    size_t width = column->width;
    if (cell->characters <= width || !column->is_text || width < 4) {
        mtb_write(writer, cell->bytes, mtprof__cell_prefix(cell, width));
        return;
    }
    bool is_path = column->id == MTPROF__CELL_SOURCE || column->id == MTPROF__CELL_MODULE;
    size_t head = is_path ? 0 : width / 2;
    size_t from = mtprof__cell_prefix(cell, cell->characters - (width - 1 - head));
    mtb_write(writer, cell->bytes, mtprof__cell_prefix(cell, head));
    mtb_write_literal(writer, "\xE2\x80\xA6");
    mtb_write(writer, cell->bytes + from, cell->length - from);
}

static int write_fit_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                         mtb_writer *writer)
{
    size_t pending = 0; /* blanks: none at the end of a line */
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        mtprof__cell cell;
        MT_TRY(mtprof__plan_cell(plan, row, index, column->id, false, &cell));
        size_t blanks = column->width > cell.characters ? column->width - cell.characters : 0;
        pending += column->is_text ? 0 : blanks;
        if (cell.length != 0) {
            mtprof__write_repeated(writer, ' ', pending);
            write_fitted(writer, &cell, column);
            pending = 0;
        }
        pending += (column->is_text ? blanks : 0) + GAP;
    }
    mtb_write_literal(writer, "\n");
    return 0;
}

static void write_fit_headers(const mtprof__table_plan *plan, mtb_writer *writer)
{
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        size_t length = strlen(column->header);
        length = length < column->width ? length : column->width;
        bool is_last = i + 1 == plan->n_columns;
        mtprof__write_repeated(writer, ' ', column->is_text ? 0 : column->width - length);
        mtb_write(writer, column->header, length);
        mtprof__write_repeated(writer, ' ',
                               (column->is_text && !is_last ? column->width - length : 0) +
                                   (is_last ? 0 : GAP));
    }
    mtb_write_literal(writer, "\n");
    for (size_t i = 0; i < plan->n_columns; i++) {
        mtprof__write_repeated(writer, '-', plan->columns[i].width);
        mtprof__write_repeated(writer, ' ', i + 1 == plan->n_columns ? 0 : GAP);
    }
    mtb_write_literal(writer, "\n");
}

int mtprof__table_fit(mtprof__table_plan *plan, mtb_writer *writer)
{
    if (plan->input->n_rows == 0) {
        return 0;
    }
    for (size_t i = 0; i < plan->n_columns; i++) {
        plan->columns[i].width = strlen(plan->columns[i].header);
    }
    MT_TRY(mtprof__table_each(plan, writer, measure_row));
    fit_columns(plan, plan->options.width != 0 ? plan->options.width : USUAL_WIDTH);
    if (plan->options.header != NULL) {
        mtb_write_text(writer, plan->options.header);
        mtb_write_literal(writer, "\n");
    }
    write_fit_headers(plan, writer);
    MT_TRY(mtprof__table_each(plan, writer, write_fit_row));
    mtb_write_literal(writer, "\n");
    mtprof__table_footers(plan, "\n", writer);
    return 0;
}
