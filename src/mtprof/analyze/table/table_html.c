/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for pages and notebooks. Wide ones scroll within their own box; texts of the trace are
 * escaped; there is no script and no style sheet.
 */
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <string.h>

static void write_cell_start(mtb_writer *writer, const char *tag, bool is_text)
{
    mtb_write_format(writer, "<%s style=\"text-align:%s;padding:2px 8px;%s\">", tag,
                     is_text ? "left" : "right",
                     is_text ? "min-width:9em;overflow-wrap:anywhere" : "white-space:nowrap");
}

static int write_stack(mtprof__table_plan *plan, const mtprof_row *row, mtb_writer *writer)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(plan->input, row, &frames, &n));
    for (uint32_t i = 0; i < n; i++) {
        mtprof__cell cell;
        MT_TRY(mtprof__plan_frame(plan, frames[i], SIZE_MAX, &cell));
        mtb_write_text(writer, i != 0 ? "<br>" : "");
        mtb_write_html(writer, cell.bytes, cell.length);
    }
    return 0;
}

static int write_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                     mtb_writer *writer)
{
    mtb_write_literal(writer, "<tr>");
    for (size_t i = 0; i < plan->n_columns; i++) {
        const mtprof__table_column *column = &plan->columns[i];
        write_cell_start(writer, "td", column->is_text);
        if (column->id == MTPROF__CELL_SOURCE) {
            MT_TRY(write_stack(plan, row, writer));
        } else {
            mtprof__cell cell;
            MT_TRY(mtprof__plan_cell(plan, row, index, column->id, column->is_text, &cell));
            mtb_write_html(writer, cell.bytes, cell.length);
        }
        mtb_write_literal(writer, "</td>");
    }
    mtb_write_literal(writer, "</tr>\n");
    return 0;
}

static void write_sum(mtprof__table_plan *plan, const char *what, double us, mtb_writer *writer)
{
    size_t length = mtprof__plan_time(plan, us);
    mtb_write_literal(writer, "<div style=\"opacity:.7\">Self ");
    mtb_write_html(writer, what, strlen(what));
    mtb_write_literal(writer, " time total: ");
    mtb_write(writer, plan->number, length);
    mtb_write_literal(writer, "</div>\n");
}

static void write_footers(mtprof__table_plan *plan, mtb_writer *writer)
{
    char line[MTPROF__HEALTH_BYTES];
    write_sum(plan, "CPU", plan->self_cpu_us, writer);
    if (plan->has_device) {
        write_sum(plan, plan->device, plan->self_device_us, writer);
    }
    size_t length = mtprof__health_line(plan->input->health, line);
    if (length != 0 && plan->options.hide_health == 0) {
        mtb_write_literal(writer, "<div>");
        mtb_write_html(writer, line, length);
        mtb_write_literal(writer, "</div>\n");
    }
}

int mtprof__table_html(mtprof__table_plan *plan, mtb_writer *writer)
{
    if (plan->input->n_rows == 0) {
        return 0;
    }
    mtb_write_literal(writer, "<div style=\"overflow-x:auto\">\n<table "
                              "style=\"border-collapse:collapse;font-size:13px\">\n");
    if (plan->options.header != NULL) {
        mtb_write_literal(writer, "<caption style=\"text-align:left\">");
        mtb_write_html(writer, plan->options.header, strlen(plan->options.header));
        mtb_write_literal(writer, "</caption>\n");
    }
    mtb_write_literal(writer, "<thead><tr>");
    for (size_t i = 0; i < plan->n_columns; i++) {
        write_cell_start(writer, "th", plan->columns[i].is_text);
        mtb_write_html(writer, plan->columns[i].header, strlen(plan->columns[i].header));
        mtb_write_literal(writer, "</th>");
    }
    mtb_write_literal(writer, "</tr></thead>\n<tbody>\n");
    MT_TRY(mtprof__table_each(plan, writer, write_row));
    mtb_write_literal(writer, "</tbody></table>\n</div>\n");
    write_footers(plan, writer);
    return 0;
}
