/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for programs: CSV and JSON, every field, plain numbers, times in nanoseconds.
 *
 * JSON is one object: {"rows": […], "total": {…}, "health": {…}}. What a row does not have (a step
 * where rows are not grouped by it) is null there and an empty field in CSV.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/health.h>

/* ---- values --------------------------------------------------------------------------------- */

static void write_number(mtb_writer *writer, const mtprof__row_value *value)
{
    switch (value->type) {
    case MTPROF__VALUE_I64: mtb_write_i64(writer, value->integer); break;
    case MTPROF__VALUE_U64: mtb_write_u64(writer, value->number); break;
    case MTPROF__VALUE_REAL: mtb_write_double(writer, value->real); break;
    case MTPROF__VALUE_BOOL: mtb_write_text(writer, value->number != 0 ? "true" : "false"); break;
    default: break;
    }
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* The bytes of a quoted field: quotes doubled, invalid UTF-8 replaced. */
static void write_csv_bytes(mtb_writer *writer, mtprof_text text)
{
    for (size_t at = 0; at < text.length;) {
        unsigned bad = 0;
        unsigned n = mtb_utf8_length(text.bytes + at, text.length - at, &bad);
        if (n == 0) {
            mtb_write_literal(writer, "\xEF\xBF\xBD");
            at += bad;
            continue;
        }
        if (text.bytes[at] == '"') {
            mtb_write_literal(writer, "\"");
        }
        mtb_write(writer, text.bytes + at, n);
        at += n;
    }
}

static bool needs_quotes(mtprof_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        if (byte <= ' ' || byte == '"' || byte == ',' || byte >= 0x7F) {
            return true;
        }
    }
    return false;
}

static void write_csv_text(mtb_writer *writer, mtprof_text text)
{
    if (!needs_quotes(text)) {
        mtb_write(writer, text.bytes, text.length);
        return;
    }
    mtb_write_literal(writer, "\"");
    write_csv_bytes(writer, text);
    mtb_write_literal(writer, "\"");
}

static int write_csv_stack(const mtprof__table_input *input, const mtprof_row *row,
                           mtb_writer *writer)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(input, row, &frames, &n));
    if (n == 0) {
        return 0;
    }
    mtb_write_literal(writer, "\"");
    for (uint32_t i = 0; i < n; i++) {
        mtb_write_text(writer, i != 0 ? ";" : "");
        write_csv_bytes(writer, frames[i]);
    }
    mtb_write_literal(writer, "\"");
    return 0;
}

static int write_csv_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                         mtb_writer *writer)
{
    for (unsigned id = 0; id < MTPROF__ROW_FIELDS; id++) {
        mtprof__row_value value;
        MT_TRY(mtprof__row_get(plan->input, row, index, id, &value));
        mtb_write_text(writer, id != 0 ? "," : "");
        if (value.type == MTPROF__VALUE_TEXT) {
            write_csv_text(writer, value.text);
        } else if (value.type == MTPROF__VALUE_STACK) {
            MT_TRY(write_csv_stack(plan->input, row, writer));
        } else {
            write_number(writer, &value);
        }
    }
    mtb_write_literal(writer, "\n");
    return 0;
}

int mtprof__table_csv(mtprof__table_plan *plan, mtb_writer *writer)
{
    for (unsigned id = 0; id < MTPROF__ROW_FIELDS; id++) {
        mtb_write_text(writer, id != 0 ? "," : "");
        mtb_write_text(writer, mtprof__row_fields[id].name);
    }
    mtb_write_literal(writer, "\n");
    return mtprof__table_each(plan, writer, write_csv_row);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int write_json_stack(const mtprof__table_input *input, const mtprof_row *row,
                            mtb_writer *writer)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(input, row, &frames, &n));
    mtb_write_literal(writer, "[");
    for (uint32_t i = 0; i < n; i++) {
        mtb_write_text(writer, i != 0 ? ", " : "");
        mtb_write_json(writer, frames[i].bytes, frames[i].length);
    }
    mtb_write_literal(writer, "]");
    return 0;
}

static int write_json_fields(const mtprof__table_input *input, const mtprof_row *row,
                             uint32_t index, mtb_writer *writer)
{
    mtb_write_literal(writer, "{");
    for (unsigned id = 0; id < MTPROF__ROW_FIELDS; id++) {
        mtprof__row_value value;
        MT_TRY(mtprof__row_get(input, row, index, id, &value));
        mtb_write_text(writer, id != 0 ? ", \"" : "\"");
        mtb_write_text(writer, mtprof__row_fields[id].name);
        mtb_write_literal(writer, "\": ");
        if (value.type == MTPROF__VALUE_TEXT) {
            mtb_write_json(writer, value.text.bytes, value.text.length);
        } else if (value.type == MTPROF__VALUE_STACK) {
            MT_TRY(write_json_stack(input, row, writer));
        } else if (value.type == MTPROF__VALUE_NONE) {
            mtb_write_literal(writer, "null");
        } else {
            write_number(writer, &value);
        }
    }
    mtb_write_literal(writer, "}");
    return 0;
}

static int write_json_row(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index,
                          mtb_writer *writer)
{
    mtb_write_text(writer, plan->json_rows++ != 0 ? ",\n    " : "\n    ");
    return write_json_fields(plan->input, row, index, writer);
}

static void write_json_health(const mtprof_health *health, mtb_writer *writer)
{
    static const mtprof_health nothing;
    const mtprof_health *h = health != NULL ? health : &nothing;
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"threads", h->threads},
        {"begins", h->begins},
        {"others", h->others},
        {"truncated", h->truncated},
        {"launches", h->launches},
        {"activities", h->activities},
        {"unmatched", h->unmatched},
        {"evicted", h->evicted},
        {"stalls", h->stalls},
        {"busy_at_stop", h->busy_at_stop},
        {"texts_cut", h->texts_cut},
        {"clock_back", h->clock_back},
        {"stacks_missed", h->stacks_missed},
        {"problems", h->problems},
        {"problem_bytes", h->problem_bytes},
        {"problem_offset", h->problem_offset},
        {"pair_cost_ps", h->pair_cost_ps},
        {"limit_ppm", h->limit_ppm},
        {"limit_level", h->limit_level},
        {"limit_changes", h->limit_changes},
        {"unrecorded", h->unrecorded},
        {"unrecorded_estimated", h->unrecorded_estimated},
        {"without_payload", h->without_payload},
        {"own_cost_ns", h->own_cost_ns},
        {"own_cost_of_ns", h->own_cost_of_ns},
        {"lost", h->lost},
    };
    mtb_write_literal(writer, "{");
    for (size_t i = 0; i < MT_COUNT(counters); i++) {
        mtb_write_format(writer, "%s\"%s\": %llu", i != 0 ? ", " : "", counters[i].name,
                         (unsigned long long)counters[i].value);
    }
    mtb_write_literal(writer, ", \"lost_by\": {");
    const char *joint = "";
    for (uint32_t cause = 0; cause < MTPROF_HEALTH_LOST_END; cause++) {
        if (h->lost_by[cause] != 0) {
            mtb_write_format(writer, "%s\"%s\": %llu", joint, mtprof_lost_cause(cause),
                             (unsigned long long)h->lost_by[cause]);
            joint = ", ";
        }
    }
    mtb_write_literal(writer, "}}");
}

int mtprof__table_json(mtprof__table_plan *plan, mtb_writer *writer)
{
    mtprof_row total;
    mtb_write_literal(writer, "{\n  \"rows\": [");
    MT_TRY(mtprof__table_each(plan, writer, write_json_row));
    mtb_write_literal(writer, "],\n  \"total\": ");
    MT_TRY(mtprof__table_total(plan->input, &total));
    MT_TRY(write_json_fields(plan->input, &total, UINT32_MAX, writer));
    mtb_write_literal(writer, ",\n  \"health\": ");
    write_json_health(plan->input->health, writer);
    mtb_write_literal(writer, "\n}\n");
    return 0;
}
