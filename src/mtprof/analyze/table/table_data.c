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

#include <assert.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

enum field_type {
    FIELD_NONE, /* null, or nothing */
    FIELD_TEXT,
    FIELD_STACK,
    FIELD_I64,
    FIELD_U64,
    FIELD_DOUBLE,
    FIELD_BOOL
};

typedef struct field_value {
    enum field_type type;
    mtprof_text text;
    int64_t integer;
    uint64_t number;
    double real;
} field_value;

static const char *const field_names[] = {
    "key",
    "overload_name",
    "input_shapes",
    "module",
    "stack",
    "step",
    "thread",
    "kind",
    "device_type",
    "is_async",
    "is_user_annotation",
    "scope",
    "node_id",
    "count",
    "cpu_time_total_ns",
    "self_cpu_time_total_ns",
    "cpu_time_ns",
    "device_time_total_ns",
    "self_device_time_total_ns",
    "device_time_ns",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "min_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
};

enum field_id {
    FIRST_NUMBER = 9, /* texts and what may be missing come before it */
    FIELD_P50 = 26,
    FIELD_P99 = 27,
    FIELD_COUNT = 29
};
static_assert(MT_COUNT(field_names) == FIELD_COUNT, "a name for every field");

static field_value text_value(mtprof_text text)
{
    return (field_value){.type = FIELD_TEXT, .text = text};
}

static field_value integer_value(int64_t value)
{
    return (field_value){.type = FIELD_I64, .integer = value};
}

static field_value number_value(uint64_t value)
{
    return (field_value){.type = FIELD_U64, .number = value};
}

static field_value flag_value(bool value)
{
    return (field_value){.type = FIELD_BOOL, .number = value};
}

static field_value average_value(int64_t total, uint64_t count)
{
    double real = count != 0 ? (double)total / (double)count : 0.0;
    return (field_value){.type = FIELD_DOUBLE, .real = real};
}

static mtprof_text kind_text(uint8_t kind)
{
    const char *name = mtprof_event_kind_name(kind);
    return (mtprof_text){name, strlen(name)};
}

static field_value thread_value(const mtprof__table_input *input, const mtprof_row *row)
{
    mtprof_track track;
    if (row->track == UINT32_MAX) {
        return (field_value){0};
    }
    if (input->model != NULL && mtprof_model_track(input->model, row->track, &track)) {
        return integer_value(track.tid);
    }
    return number_value(row->track);
}

static field_value text_field(const mtprof__table_input *input, const mtprof_row *row, unsigned id)
{
    switch (id) {
    case 0: return text_value(row->key);
    case 1: return text_value(row->overload);
    case 2: return text_value(row->input_shapes);
    case 3: return text_value(row->module);
    case 4: return (field_value){.type = FIELD_STACK};
    case 5: return row->step != INT32_MIN ? integer_value(row->step) : (field_value){0};
    case 6: return thread_value(input, row);
    case 7: return text_value(kind_text(row->kind));
    default: return text_value(mtprof__table_device_type(input, row));
    }
}

static field_value number_field(const mtprof_row *row, unsigned id)
{
    switch (id) {
    case FIRST_NUMBER: return flag_value(row->is_async != 0);
    case 10: return flag_value(row->is_user_annotation != 0);
    case 11: return number_value(row->record_scope);
    case 12: return integer_value(row->node_id);
    case 13: return number_value(row->count);
    case 14: return integer_value(row->cpu_ns);
    case 15: return integer_value(row->self_cpu_ns);
    case 16: return average_value(row->cpu_ns, row->count);
    case 17: return integer_value(row->device_ns);
    case 18: return integer_value(row->self_device_ns);
    case 19: return average_value(row->device_ns, row->count);
    case 20: return integer_value(row->cpu_memory);
    case 21: return integer_value(row->self_cpu_memory);
    case 22: return integer_value(row->device_memory);
    case 23: return integer_value(row->self_device_memory);
    case 24: return number_value(row->flops);
    case 25: return integer_value(row->min_ns);
    default: return integer_value(row->max_ns);
    }
}

/* index UINT32_MAX: the sum over rows, which has no quantiles. */
static int get_field(const mtprof__table_input *input, const mtprof_row *row, uint32_t index,
                     unsigned id, field_value *value)
{
    if (id == FIELD_P50 || id == FIELD_P99) {
        int64_t ns = 0;
        *value = (field_value){0};
        if (input->quantile != NULL && index != UINT32_MAX) {
            MT_TRY(input->quantile(input->context, index, id == FIELD_P50 ? 0.5 : 0.99, &ns));
            *value = integer_value(ns);
        }
        return 0;
    }
    *value = id < FIRST_NUMBER ? text_field(input, row, id) : number_field(row, id);
    return 0;
}

static int get_stack(const mtprof__table_input *input, const mtprof_row *row,
                     const mtprof_text **frames, uint32_t *n)
{
    *n = 0;
    return input->stack != NULL ? input->stack(input->context, row, frames, n) : 0;
}

static void write_number(mtb_writer *writer, const field_value *value)
{
    switch (value->type) {
    case FIELD_I64: mtb_write_i64(writer, value->integer); break;
    case FIELD_U64: mtb_write_u64(writer, value->number); break;
    case FIELD_DOUBLE: mtb_write_double(writer, value->real); break;
    case FIELD_BOOL: mtb_write_text(writer, value->number != 0 ? "true" : "false"); break;
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
    const mtprof_text *frames = NULL;
    uint32_t n;
    MT_TRY(get_stack(input, row, &frames, &n));
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
    for (unsigned id = 0; id < FIELD_COUNT; id++) {
        field_value value;
        MT_TRY(get_field(plan->input, row, index, id, &value));
        mtb_write_text(writer, id != 0 ? "," : "");
        if (value.type == FIELD_TEXT) {
            write_csv_text(writer, value.text);
        } else if (value.type == FIELD_STACK) {
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
    for (unsigned id = 0; id < FIELD_COUNT; id++) {
        mtb_write_text(writer, id != 0 ? "," : "");
        mtb_write_text(writer, field_names[id]);
    }
    mtb_write_literal(writer, "\n");
    return mtprof__table_each(plan, writer, write_csv_row);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int write_json_stack(const mtprof__table_input *input, const mtprof_row *row,
                            mtb_writer *writer)
{
    const mtprof_text *frames = NULL;
    uint32_t n;
    MT_TRY(get_stack(input, row, &frames, &n));
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
    for (unsigned id = 0; id < FIELD_COUNT; id++) {
        field_value value;
        MT_TRY(get_field(input, row, index, id, &value));
        mtb_write_text(writer, id != 0 ? ", \"" : "\"");
        mtb_write_text(writer, field_names[id]);
        mtb_write_literal(writer, "\": ");
        if (value.type == FIELD_TEXT) {
            mtb_write_json(writer, value.text.bytes, value.text.length);
        } else if (value.type == FIELD_STACK) {
            MT_TRY(write_json_stack(input, row, writer));
        } else if (value.type == FIELD_NONE) {
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
        {"lost", h->lost},
    };
    mtb_write_literal(writer, "{");
    for (size_t i = 0; i < MT_COUNT(counters); i++) {
        mtb_write_text(writer, i != 0 ? ", \"" : "\"");
        mtb_write_text(writer, counters[i].name);
        mtb_write_literal(writer, "\": ");
        mtb_write_u64(writer, counters[i].value);
    }
    mtb_write_literal(writer, ", \"lost_by\": {");
    bool is_first = true;
    for (uint32_t cause = 0; cause < MTPROF_HEALTH_LOST_END; cause++) {
        if (h->lost_by[cause] != 0) {
            mtb_write_text(writer, is_first ? "\"" : ", \"");
            mtb_write_text(writer, mtprof_lost_cause(cause));
            mtb_write_literal(writer, "\": ");
            mtb_write_u64(writer, h->lost_by[cause]);
            is_first = false;
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
