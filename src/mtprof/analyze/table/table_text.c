/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for reading: torch's layout byte for byte (torch-contract 4.3), and Markdown.
 *
 *     ===============   header, where there is one
 *     ---------------   rule: dashes per column
 *     Name  Self CPU    every column is followed by two blanks, the last one too
 *     ---------------
 *     rows              a row with a stack: further frames below it, then a line of blanks
 *     ---------------
 *     Self CPU time total: 1.234ms
 *
 * torch prints FLOPs under "Source Location" and the other way round (a bug, torch-contract
 * 4.3.14). Here each cell is under its header.
 */
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/health.h>
#include <mtprof/status.h>

#include <stdio.h>
#include <string.h>

enum {
    GAP = 2
};

void mtprof__write_repeated(mtb_writer *writer, char byte, size_t n)
{
    char piece[256];
    memset(piece, byte, sizeof piece);
    while (n > 0) {
        size_t now = n < sizeof piece ? n : sizeof piece;
        mtb_write(writer, piece, now);
        n -= now;
    }
}

static void write_padded(mtb_writer *writer, const mtprof__cell *cell, size_t width, bool is_left)
{
    size_t blanks = width > cell->characters ? width - cell->characters : 0;
    if (!is_left) {
        mtprof__write_repeated(writer, ' ', blanks);
    }
    mtb_write(writer, cell->bytes, cell->length);
    if (is_left) {
        mtprof__write_repeated(writer, ' ', blanks);
    }
}

/* ---- lines around the rows ------------------------------------------------------------------- */

/* What the limit of the overhead left out. */
static size_t limit_text(const mtprof_health *health, char *buffer)
{
    size_t at =
        (size_t)snprintf(buffer, 160, "Left out to keep the overhead below %g %%: %llu event%s",
                         health->limit_ppm / 1e4, (unsigned long long)health->unrecorded,
                         health->unrecorded == 1 ? "" : "s");
    if (health->unrecorded_estimated != 0) {
        at += (size_t)snprintf(buffer + at, 64, " (%llu of them an estimate)",
                               (unsigned long long)health->unrecorded_estimated);
    }
    if (health->without_payload != 0) {
        at += (size_t)snprintf(buffer + at, 64, ", payloads of %llu",
                               (unsigned long long)health->without_payload);
    }
    if (health->unrecorded > health->unrecorded_estimated) {
        at += (size_t)snprintf(buffer + at, 64, "; calls with a + are a sample");
    }
    return at;
}

static size_t loss_text(const mtprof_health *health, char *buffer)
{
    if ((health->lost | health->unmatched | health->truncated | health->problems |
         health->texts_cut | health->stacks_missed) == 0) {
        return 0;
    }
    size_t at = (size_t)snprintf(buffer, 128, "Not complete: %llu events lost",
                                 (unsigned long long)health->lost);
    const char *before = " (";
    for (uint32_t cause = 0; cause < MTPROF_HEALTH_LOST_END && at < 350; cause++) {
        if (health->lost_by[cause] != 0) {
            at +=
                (size_t)snprintf(buffer + at, 64, "%s%.24s %llu", before, mtprof_lost_cause(cause),
                                 (unsigned long long)health->lost_by[cause]);
            before = ", ";
        }
    }
    at += (size_t)snprintf(buffer + at, 96, "%s, %llu launches unmatched, %llu scopes truncated",
                           before[0] == ',' ? ")" : "", (unsigned long long)health->unmatched,
                           (unsigned long long)health->truncated);
    if (health->problems > 0) {
        at +=
            (size_t)snprintf(buffer + at, 96, ", %llu damaged place%s (%llu bytes)",
                             (unsigned long long)health->problems, health->problems == 1 ? "" : "s",
                             (unsigned long long)health->problem_bytes);
    }
    if (health->texts_cut > 0) {
        at += (size_t)snprintf(buffer + at, 64, ", %llu payload%s cut",
                               (unsigned long long)health->texts_cut,
                               health->texts_cut == 1 ? "" : "s");
    }
    if (health->stacks_missed > 0) {
        at += (size_t)snprintf(buffer + at, 64, ", %llu stack%s missing",
                               (unsigned long long)health->stacks_missed,
                               health->stacks_missed == 1 ? "" : "s");
    }
    return at;
}

size_t mtprof__health_line(const mtprof_health *health, char *buffer)
{
    if (health == NULL) {
        return 0;
    }
    size_t at = loss_text(health, buffer);
    bool limited = (health->unrecorded | health->without_payload) != 0;
    if (limited && at != 0) {
        at += (size_t)snprintf(buffer + at, 8, ". ");
    }
    return at + (limited ? limit_text(health, buffer + at) : 0);
}

static void write_sum(mtprof__table_plan *plan, const char *what, double us, mtb_writer *writer)
{
    size_t length = mtprof__plan_time(plan, us);
    mtb_write_literal(writer, "Self ");
    mtb_write_text(writer, what);
    mtb_write_literal(writer, " time total: ");
    mtb_write(writer, plan->number, length);
}

void mtprof__table_footers(mtprof__table_plan *plan, const char *line_end, mtb_writer *writer)
{
    char line[MTPROF__HEALTH_BYTES];
    write_sum(plan, "CPU", plan->self_cpu_us, writer);
    mtb_write_text(writer, line_end);
    if (plan->has_device) {
        write_sum(plan, plan->device, plan->self_device_us, writer);
        mtb_write_text(writer, line_end);
    }
    size_t length = mtprof__health_line(plan->input->health, line);
    if (length != 0 && plan->options.hide_health == 0) {
        mtb_write(writer, line, length);
        mtb_write_text(writer, line_end);
    }
}

int mtprof__table_each(mtprof__table_plan *plan, mtb_writer *writer, mtprof__table_visit *visit)
{
    uint64_t printed = 0;
    for (uint32_t i = 0; i < plan->input->n_rows && printed < plan->limit; i++) {
        mtprof_row row;
        MT_TRY(plan->input->row(plan->input->context, i, &row));
        if (plan->options.top_level_only == 0 || row.has_parent == 0) {
            MT_TRY(visit(plan, &row, i, writer));
            printed++;
        }
    }
    return 0;
}

/* ---- torch ----------------------------------------------------------------------------------- */

static void write_rule(const mtprof__table_plan *plan, mtb_writer *writer)
{
    for (size_t i = 0; i < plan->n_columns; i++) {
        mtprof__write_repeated(writer, '-', plan->columns[i].width);
        mtprof__write_repeated(writer, ' ', GAP);
    }
    mtb_write_literal(writer, "\n");
}

static void write_banner(const mtprof__table_plan *plan, const char *text, mtb_writer *writer)
{
    size_t length = 0;
    for (size_t i = 0; i < plan->n_columns; i++) {
        length += plan->columns[i].width + GAP;
    }
    mtprof__write_repeated(writer, '=', length - GAP);
    mtb_write_literal(writer, "\n");
    mtb_write_text(writer, text);
    mtb_write_literal(writer, "\n");
}

static void write_headers(const mtprof__table_plan *plan, mtb_writer *writer)
{
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        size_t length = strlen(column->header);
        mtprof__cell cell = {column->header, length, length};
        write_padded(writer, &cell, column->width, column->is_left);
        mtprof__write_repeated(writer, ' ', GAP);
    }
    mtb_write_literal(writer, "\n");
}

/* A line that has only a source cell, or none. */
static void write_source_line(const mtprof__table_plan *plan, const mtprof__cell *source,
                              mtb_writer *writer)
{
    static const mtprof__cell blank = {"", 0, 0};
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        const mtprof__cell *cell = column->id == MTPROF__CELL_SOURCE ? source : &blank;
        write_padded(writer, cell, column->width, column->is_left);
        mtprof__write_repeated(writer, ' ', GAP);
    }
    mtb_write_literal(writer, "\n");
}

static int write_further_frames(mtprof__table_plan *plan, const mtprof_row *row, mtb_writer *writer)
{
    static const mtprof__cell blank = {"", 0, 0};
    const mtprof_text *frames;
    uint32_t n;
    int32_t most = plan->options.max_src_column_width;
    MT_TRY(mtprof__table_stack(plan->input, row, &frames, &n));
    for (uint32_t i = 1; i < n; i++) {
        mtprof__cell cell;
        MT_TRY(mtprof__plan_frame(plan, frames[i], most > 0 ? (size_t)most : SIZE_MAX, &cell));
        write_source_line(plan, &cell, writer);
    }
    write_source_line(plan, &blank, writer);
    return 0;
}

static int write_torch_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                           mtb_writer *writer)
{
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        mtprof__cell cell;
        MT_TRY(mtprof__plan_cell(plan, row, index, column->id, true, &cell));
        write_padded(writer, &cell, column->width, column->is_left);
        mtprof__write_repeated(writer, ' ', GAP);
    }
    mtb_write_literal(writer, "\n");
    return plan->has_stack ? write_further_frames(plan, row, writer) : 0;
}

int mtprof__table_torch(mtprof__table_plan *plan, mtb_writer *writer)
{
    if (plan->input->n_rows == 0) {
        return 0;
    }
    if (plan->options.header != NULL) {
        write_banner(plan, plan->options.header, writer);
    }
    if (plan->options.top_level_only != 0) {
        write_banner(plan, "This report only display top-level ops statistics", writer);
    }
    write_rule(plan, writer);
    write_headers(plan, writer);
    write_rule(plan, writer);
    MT_TRY(mtprof__table_each(plan, writer, write_torch_row));
    write_rule(plan, writer);
    mtprof__table_footers(plan, "\n", writer);
    return 0;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void write_marked(mtb_writer *writer, const mtprof__cell *cell)
{
    for (size_t i = 0; i < cell->length; i++) {
        if (strchr("\\|`*_<>[]~&#", cell->bytes[i]) != NULL) {
            mtb_write_literal(writer, "\\");
        }
        mtb_write(writer, cell->bytes + i, 1);
    }
}

static int write_marked_stack(mtprof__table_plan *plan, const mtprof_row *row, mtb_writer *writer)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(plan->input, row, &frames, &n));
    for (uint32_t i = 0; i < n; i++) {
        mtprof__cell cell;
        MT_TRY(mtprof__plan_frame(plan, frames[i], SIZE_MAX, &cell));
        mtb_write_text(writer, i != 0 ? "<br>" : "");
        write_marked(writer, &cell);
    }
    return 0;
}

static int write_markdown_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                              mtb_writer *writer)
{
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        mtb_write_text(writer, i != 0 ? " | " : "| ");
        if (column->id == MTPROF__CELL_SOURCE) {
            MT_TRY(write_marked_stack(plan, row, writer));
            continue;
        }
        mtprof__cell cell;
        MT_TRY(mtprof__plan_cell(plan, row, index, column->id, false, &cell));
        if (column->is_text) {
            write_marked(writer, &cell);
        } else {
            mtb_write(writer, cell.bytes, cell.length);
        }
    }
    mtb_write_literal(writer, " |\n");
    return 0;
}

int mtprof__table_markdown(mtprof__table_plan *plan, mtb_writer *writer)
{
    if (plan->input->n_rows == 0) {
        return 0;
    }
    if (plan->options.header != NULL) {
        mtb_write_text(writer, plan->options.header);
        mtb_write_literal(writer, "\n\n");
    }
    for (size_t i = 0; i < plan->n_columns; i++) {
        mtb_write_text(writer, i != 0 ? " | " : "| ");
        mtb_write_text(writer, plan->columns[i].header);
    }
    mtb_write_literal(writer, " |\n");
    for (size_t i = 0; i < plan->n_columns; i++) {
        mtb_write_text(writer, plan->columns[i].is_text ? "|:---" : "|---:");
    }
    mtb_write_literal(writer, "|\n");
    MT_TRY(mtprof__table_each(plan, writer, write_markdown_row));
    mtb_write_literal(writer, "\n");
    mtprof__table_footers(plan, "  \n", writer);
    return 0;
}
