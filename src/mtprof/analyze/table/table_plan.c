/* SPDX-License-Identifier: Apache-2.0
 *
 * Which columns a table has, how wide they are, and what is in their cells.
 *
 * Columns that torch knows are in torch's order (torch-contract 4.3.3). Columns that torch does not
 * have (step, thread, module, quantiles) appear only if they were requested.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/output.h>
#include <mtprof/status.h>

#include <stdio.h>
#include <string.h>

enum {
    NUMBER_WIDTH = 12,
    MARGIN = 4, /* a text column is this much wider than its longest text */
    NAME_WIDTH = 55,
    SOURCE_WIDTH = 75,
    SHAPES_WIDTH = 80,
    ROW_LIMIT = 100,
    LAST_FLOPS_SCALE = 5,
    THREAD_BYTES = 160
};

/* What one reading of all rows finds. */
typedef struct scan {
    size_t name, shapes, source, module, thread; /* characters of the longest */
    bool overload, device, device_memory, node, step, track;
    uint64_t least_flops; /* 0: none has any */
    mtprof__self_sum self_cpu;
    uint64_t self_device;
} scan;

static void keep_longest(size_t *longest, size_t length)
{
    if (length > *longest) {
        *longest = length;
    }
}

/* ---- the thread and the device of a row ------------------------------------------------------ */

mtprof_text mtprof__table_device_type(const mtprof__table_input *input, const mtprof_row *row)
{
    mtprof_device device;
    if (row->device_type.length != 0) {
        return row->device_type;
    }
    if (row->device == 0) {
        return (mtprof_text){"CPU", 3};
    }
    if (input->model != NULL && mtprof_model_device(input->model, row->device, &device)) {
        return device.type;
    }
    const char *name = input->device != NULL ? input->device : "device";
    return (mtprof_text){name, strlen(name)};
}

/* "4711 loader": the number of the thread or queue, and its name where it has one. */
static mtprof_text thread_text(const mtprof__table_input *input, const mtprof_row *row,
                               char *buffer)
{
    mtprof_track track;
    int length;
    if (row->track == UINT32_MAX) {
        return (mtprof_text){"", 0};
    }
    if (input->model != NULL && mtprof_model_track(input->model, row->track, &track)) {
        size_t most = THREAD_BYTES / 2;
        size_t shown = track.name.length < most ? track.name.length : most;
        length =
            snprintf(buffer, THREAD_BYTES, "%lld%s", (long long)track.tid, shown != 0 ? " " : "");
        memcpy(buffer + length, track.name.bytes, shown);
        return (mtprof_text){buffer, (size_t)length + shown};
    }
    length = snprintf(buffer, THREAD_BYTES, "%lu", (unsigned long)row->track);
    return (mtprof_text){buffer, (size_t)length};
}

/* ---- reading all rows ------------------------------------------------------------------------ */

int mtprof__table_stack(const mtprof__table_input *input, const mtprof_row *row,
                        const mtprof_text **frames, uint32_t *n)
{
    *n = 0;
    *frames = NULL;
    return input->stack != NULL ? input->stack(input->context, row, frames, n) : 0;
}

static int scan_stack(const mtprof__table_input *input, const mtprof_row *row, scan *found)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(input, row, &frames, &n));
    for (uint32_t i = 0; i < n; i++) {
        size_t characters = mtprof__cell_characters(frames[i]);
        keep_longest(&found->source, characters != 0 ? characters : 1);
    }
    return 0;
}

static void scan_row(const mtprof__table_input *input, const mtprof_row *row, scan *found)
{
    keep_longest(&found->name, mtprof__cell_characters(row->key));
    keep_longest(&found->shapes, mtprof__cell_characters(row->input_shapes));
    keep_longest(&found->module, mtprof__cell_characters(row->module));
    if (row->track != UINT32_MAX) {
        char buffer[THREAD_BYTES];
        found->track = true;
        keep_longest(&found->thread, mtprof__cell_characters(thread_text(input, row, buffer)));
    }
    found->overload |= row->overload.length != 0;
    found->device |= row->self_device_ns > 0;
    found->device_memory |= row->self_device_memory > 0;
    found->node |= row->node_id != -1;
    found->step |= row->step != INT32_MIN;
    if (row->flops != 0 && (found->least_flops == 0 || row->flops < found->least_flops)) {
        found->least_flops = row->flops;
    }
    mtprof__self_sum_add(&found->self_cpu, row);
    if (row->device != 0 && row->is_user_annotation == 0) {
        found->self_device += (uint64_t)row->self_device_ns;
    }
}

static int scan_rows(const mtprof__table_input *input, scan *found)
{
    for (uint32_t i = 0; i < input->n_rows; i++) {
        mtprof_row row;
        MT_TRY(input->row(input->context, i, &row));
        scan_row(input, &row, found);
        MT_TRY(scan_stack(input, &row, found));
    }
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static mtprof__table_column *add_column(mtprof__table_plan *plan, uint32_t id, const char *header)
{
    mtprof__table_column *column = &plan->columns[plan->n_columns++];
    *column = (mtprof__table_column){.id = id, .width = NUMBER_WIDTH};
    snprintf(column->header, sizeof column->header, "%s", header);
    return column;
}

static void add_text_column(mtprof__table_plan *plan, uint32_t id, const char *header,
                            size_t longest, int32_t most)
{
    mtprof__table_column *column = add_column(plan, id, header);
    column->is_text = true;
    column->width = longest + MARGIN;
    if (most > 0 && column->width > (size_t)most) {
        column->width = (size_t)most;
    }
}

/* In capitals, as headers have it. */
static void name_device(mtprof__table_plan *plan)
{
    const char *name = plan->input->device != NULL ? plan->input->device : "device";
    size_t n = 0;
    for (; name[n] != '\0' && n + 1 < sizeof plan->device; n++) {
        plan->device[n] = (char)(name[n] >= 'a' && name[n] <= 'z' ? name[n] - 'a' + 'A' : name[n]);
    }
    plan->device[n] = '\0';
}

static void add_device_column(mtprof__table_plan *plan, uint32_t id, const char *before,
                              const char *after)
{
    mtprof__table_column *column = add_column(plan, id, "");
    snprintf(column->header, sizeof column->header, "%s%s%s", before, plan->device, after);
}

static void add_time_columns(mtprof__table_plan *plan)
{
    add_column(plan, MTPROF__CELL_SELF_CPU_SHARE, "Self CPU %");
    add_column(plan, MTPROF__CELL_SELF_CPU, "Self CPU");
    add_column(plan, MTPROF__CELL_CPU_SHARE, "CPU total %");
    add_column(plan, MTPROF__CELL_CPU, "CPU total");
    add_column(plan, MTPROF__CELL_CPU_AVERAGE, "CPU time avg");
    if (plan->has_device) {
        add_device_column(plan, MTPROF__CELL_SELF_DEVICE, "Self ", "");
        add_device_column(plan, MTPROF__CELL_SELF_DEVICE_SHARE, "Self ", " %");
        add_device_column(plan, MTPROF__CELL_DEVICE, "", " total");
        add_device_column(plan, MTPROF__CELL_DEVICE_AVERAGE, "", " time avg");
    }
}

static void add_memory_columns(mtprof__table_plan *plan, const scan *found)
{
    if (!plan->input->memory) {
        return;
    }
    add_column(plan, MTPROF__CELL_CPU_MEMORY, "CPU Mem");
    add_column(plan, MTPROF__CELL_SELF_CPU_MEMORY, "Self CPU Mem");
    if (plan->input->device != NULL && found->device_memory) {
        add_device_column(plan, MTPROF__CELL_DEVICE_MEMORY, "", " Mem");
        add_device_column(plan, MTPROF__CELL_SELF_DEVICE_MEMORY, "Self ", " Mem");
    }
}

static void add_flops_column(mtprof__table_plan *plan, const scan *found)
{
    static const char *const headers[LAST_FLOPS_SCALE + 1] = {
        "Total FLOPs",  "Total KFLOPs", "Total MFLOPs",
        "Total GFLOPs", "Total TFLOPs", "Total PFLOPs",
    };
    static const double scales[LAST_FLOPS_SCALE + 1] = {1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15};
    if (!plan->input->flops || found->least_flops == 0) {
        return;
    }
    unsigned scale = (mtb_count_digits(found->least_flops) - 1) / 3;
    scale = scale < LAST_FLOPS_SCALE ? scale : LAST_FLOPS_SCALE;
    plan->flops_scale = scales[scale];
    add_column(plan, MTPROF__CELL_FLOPS, headers[scale]);
}

static void add_further_columns(mtprof__table_plan *plan)
{
    if (plan->options.quantiles != 0) {
        add_column(plan, MTPROF__CELL_MIN, "Min");
        add_column(plan, MTPROF__CELL_P50, "p50");
        add_column(plan, MTPROF__CELL_P99, "p99");
        add_column(plan, MTPROF__CELL_MAX, "Max");
    }
    if (plan->options.mindtorch != 0) {
        add_column(plan, MTPROF__CELL_TOTAL_US, "Total(us)");
        add_column(plan, MTPROF__CELL_COUNT, "Count");
    }
}

static void choose_columns(mtprof__table_plan *plan, const scan *found)
{
    const mtprof_table_options *options = &plan->options;
    int32_t name_most = options->max_name_column_width;
    add_text_column(plan, MTPROF__CELL_NAME, "Name", found->name, name_most);
    if (found->overload) {
        add_text_column(plan, MTPROF__CELL_OVERLOAD, "Overload Name", found->name, name_most);
    }
    add_time_columns(plan);
    add_memory_columns(plan, found);
    add_column(plan, MTPROF__CELL_CALLS, "# of Calls");
    if (found->node) {
        add_column(plan, MTPROF__CELL_NODE, "Node ID");
    }
    if (found->step) {
        add_column(plan, MTPROF__CELL_STEP, "Step");
    }
    if (found->track) {
        add_text_column(plan, MTPROF__CELL_THREAD, "Thread", found->thread, name_most);
    }
    if (found->module != 0) {
        add_text_column(plan, MTPROF__CELL_MODULE, "Module", found->module, name_most);
    }
    if (found->shapes != 0) {
        add_text_column(plan, MTPROF__CELL_SHAPES, "Input Shapes", found->shapes,
                        options->max_shapes_column_width);
    }
    if (plan->has_stack) {
        add_text_column(plan, MTPROF__CELL_SOURCE, "Source Location", found->source,
                        options->max_src_column_width);
        plan->columns[plan->n_columns - 1].is_left = true;
    }
    add_flops_column(plan, found);
    add_further_columns(plan);
    MT_ASSERT(plan->n_columns <= MT_COUNT(plan->columns));
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int check_width(const char *name, int32_t *width, int32_t usual)
{
    if (*width < -1) {
        return mtb_fail(MTPROF_EINVAL, "averages_table: %s is %d, not -1, 0 or a width", name,
                        (int)*width);
    }
    *width = *width == 0 ? usual : *width;
    return 0;
}

static int check_options(mtprof__table_plan *plan, const mtprof_table_options *options)
{
    mtprof_table_options *mine = &plan->options;
    if (options != NULL) {
        if (options->struct_size < 2 * sizeof(uint32_t)) {
            return mtb_fail(MTPROF_EINVAL, "averages_table: struct_size of the options is %u",
                            (unsigned)options->struct_size);
        }
        mtb_read_struct(mine, options);
    }
    if (mine->format > MTPROF_TABLE_HTML) {
        return mtb_fail(MTPROF_EINVAL, "averages_table: unknown format %u", (unsigned)mine->format);
    }
    if (mine->row_limit < MTPROF_TABLE_NO_ROWS) {
        return mtb_fail(MTPROF_EINVAL, "averages_table: row_limit is %lld",
                        (long long)mine->row_limit);
    }
    bool is_data = mine->format == MTPROF_TABLE_CSV || mine->format == MTPROF_TABLE_JSON;
    plan->limit = mine->row_limit > 0 ? (uint64_t)mine->row_limit : ROW_LIMIT;
    if (mine->row_limit == -1 || (mine->row_limit == 0 && is_data)) {
        plan->limit = UINT64_MAX;
    } else if (mine->row_limit == MTPROF_TABLE_NO_ROWS) {
        plan->limit = 0;
    }
    MT_TRY(check_width("max_src_column_width", &mine->max_src_column_width, SOURCE_WIDTH));
    MT_TRY(check_width("max_name_column_width", &mine->max_name_column_width, NAME_WIDTH));
    return check_width("max_shapes_column_width", &mine->max_shapes_column_width, SHAPES_WIDTH);
}

int mtprof__plan_init(mtprof__table_plan *plan, const mtprof__table_input *input,
                      const mtprof_table_options *options)
{
    *plan = (mtprof__table_plan){.input = input};
    MT_TRY(check_options(plan, options));
    scan found = {0};
    MT_TRY(scan_rows(input, &found));
    plan->self_cpu_us = (double)mtprof__self_sum_ns(&found.self_cpu) / 1e3;
    plan->self_device_us = (double)(int64_t)found.self_device / 1e3;
    plan->has_device = found.device;
    plan->has_stack = found.source != 0;
    name_device(plan);
    choose_columns(plan, &found);
    return 0;
}

void mtprof__plan_fini(mtprof__table_plan *plan)
{
    mtprof__cell_buffer_fini(&plan->name);
    mtprof__cell_buffer_fini(&plan->text);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* At most `length` characters of the cell, followed by dots. */
static int put_dots(mtprof__table_plan *plan, const mtprof__cell *from, size_t length,
                    mtprof__cell *out)
{
    mtprof_text text = {from->bytes, mtprof__cell_prefix(from, length)};
    mtprof__cell_buffer *buffer = &plan->text;
    MT_TRY(mtprof__cell_reserve(buffer, text.length + 3));
    memcpy(buffer->bytes, text.bytes, text.length);
    memcpy(buffer->bytes + text.length, "...", 3);
    *out = (mtprof__cell){buffer->bytes, text.length + 3,
                          (length < from->characters ? length : from->characters) + 3};
    return 0;
}

static int name_cell(mtprof__table_plan *plan, mtprof_text text, bool cut, mtprof__cell *out)
{
    mtprof__cell whole;
    int64_t kept = (int64_t)plan->options.max_name_column_width - 3;
    MT_TRY(mtprof__cell_safe(&plan->name, text, &whole));
    *out = whole;
    if (!cut || plan->options.max_name_column_width < 0 || (int64_t)whole.characters < kept) {
        return 0;
    }
    if (kept < 0) { /* as torch's slice does: so many fewer from the end */
        kept = (int64_t)whole.characters > -kept ? (int64_t)whole.characters + kept : 0;
    }
    return put_dots(plan, &whole, (size_t)kept, out);
}

static int shapes_cell(mtprof__table_plan *plan, mtprof_text text, bool cut, mtprof__cell *out)
{
    MT_TRY(mtprof__cell_safe(&plan->name, text, out));
    int32_t most = plan->options.max_shapes_column_width;
    if (cut && most > 0 && out->characters > (size_t)most) {
        out->length = mtprof__cell_prefix(out, (size_t)most);
        out->characters = (size_t)most;
    }
    return 0;
}

int mtprof__plan_frame(mtprof__table_plan *plan, mtprof_text frame, size_t width, mtprof__cell *out)
{
    mtprof__cell whole;
    MT_TRY(mtprof__cell_safe(&plan->name, frame, &whole));
    *out = whole;
    if (whole.characters <= width) {
        return 0;
    }
    /* The end of a path says most. */
    size_t from = mtprof__cell_prefix(&whole, whole.characters - width);
    out->bytes += from;
    out->length -= from;
    out->characters = width;
    if (width <= 3) {
        return 0;
    }
    size_t dots = mtprof__cell_prefix(out, 3);
    mtprof__cell_buffer *buffer = &plan->text;
    MT_TRY(mtprof__cell_reserve(buffer, out->length + 3));
    memcpy(buffer->bytes, "...", 3);
    memcpy(buffer->bytes + 3, out->bytes + dots, out->length - dots);
    *out = (mtprof__cell){buffer->bytes, out->length - dots + 3, width};
    return 0;
}

static int source_cell(mtprof__table_plan *plan, const mtprof_row *row, bool cut, mtprof__cell *out)
{
    const mtprof_text *frames;
    uint32_t n;
    MT_TRY(mtprof__table_stack(plan->input, row, &frames, &n));
    if (n == 0) {
        *out = (mtprof__cell){"", 0, 0};
        return 0;
    }
    int32_t most = plan->options.max_src_column_width;
    return mtprof__plan_frame(plan, frames[0], cut && most > 0 ? (size_t)most : SIZE_MAX, out);
}

/* Tables for terminals have the commands' units, all others torch's. */
size_t mtprof__plan_time(mtprof__table_plan *plan, double us)
{
    const char *unit = plan->options.time_unit;
    if (plan->options.format != MTPROF_TABLE_FIT) {
        return mtprof__put_time(plan->number, us, unit);
    }
    double scale = unit == NULL              ? 0
                   : strcmp(unit, "s") == 0  ? 1e6
                   : strcmp(unit, "ms") == 0 ? 1e3
                   : strcmp(unit, "us") == 0 ? 1
                                             : 0;
    if (scale == 0) {
        return mtprof_duration_text(us * 1e3, plan->number);
    }
    size_t length = mtprof__put_fixed(plan->number, us / scale, 3);
    size_t room = MTPROF__NUMBER_BYTES - length;
    int n = snprintf(plan->number + length, room, " %s", unit);
    return length + (n > 0 && (size_t)n < room ? (size_t)n : 0);
}

static size_t put_memory(mtprof__table_plan *plan, int64_t bytes)
{
    return plan->options.format == MTPROF_TABLE_FIT ? mtprof_bytes_text((double)bytes, plan->number)
                                                    : mtprof__put_memory(plan->number, bytes);
}

static double average(int64_t total_ns, uint64_t count)
{
    return count != 0 ? (double)total_ns / 1e3 / (double)count : 0.0;
}

static size_t put_flops(const mtprof__table_plan *plan, const mtprof_row *row, char *buffer)
{
    if (row->flops == 0) {
        memcpy(buffer, "--", 3);
        return 2;
    }
    size_t length = mtprof__put_fixed(buffer, (double)row->flops * plan->flops_scale, 3);
    while (length < 8) { /* torch's cell is at least 8 wide */
        memmove(buffer + 1, buffer, length++);
        buffer[0] = ' ';
    }
    return length;
}

static size_t put_share_cell(mtprof__table_plan *plan, const mtprof_row *row, uint32_t id)
{
    switch (id) {
    case MTPROF__CELL_SELF_CPU_SHARE:
        return mtprof__put_share(plan->number, (double)row->self_cpu_ns / 1e3, plan->self_cpu_us);
    case MTPROF__CELL_CPU_SHARE:
        if (row->is_async != 0) {
            plan->number[0] = '0';
            return 1;
        }
        /* Scopes of tasks that take turns last longer than the thread's time has room for. */
        return mtprof__put_share(plan->number, ((double)row->cpu_ns - (double)row->loose_ns) / 1e3,
                                 plan->self_cpu_us);
    default:
        return mtprof__put_share(plan->number, (double)row->self_device_ns / 1e3,
                                 plan->self_device_us);
    }
}

static size_t put_number(mtprof__table_plan *plan, const mtprof_row *row, uint32_t id)
{
    switch (id) {
    case MTPROF__CELL_SELF_CPU: return mtprof__plan_time(plan, (double)row->self_cpu_ns / 1e3);
    case MTPROF__CELL_CPU: return mtprof__plan_time(plan, (double)row->cpu_ns / 1e3);
    case MTPROF__CELL_CPU_AVERAGE: return mtprof__plan_time(plan, average(row->cpu_ns, row->count));
    case MTPROF__CELL_SELF_DEVICE:
        return mtprof__plan_time(plan, (double)row->self_device_ns / 1e3);
    case MTPROF__CELL_DEVICE: return mtprof__plan_time(plan, (double)row->device_ns / 1e3);
    case MTPROF__CELL_DEVICE_AVERAGE:
        return mtprof__plan_time(plan, average(row->device_ns, row->count));
    case MTPROF__CELL_CPU_MEMORY: return put_memory(plan, row->cpu_memory);
    case MTPROF__CELL_SELF_CPU_MEMORY: return put_memory(plan, row->self_cpu_memory);
    case MTPROF__CELL_DEVICE_MEMORY: return put_memory(plan, row->device_memory);
    case MTPROF__CELL_SELF_DEVICE_MEMORY: return put_memory(plan, row->self_device_memory);
    case MTPROF__CELL_FLOPS: return put_flops(plan, row, plan->number);
    case MTPROF__CELL_MIN: return mtprof__plan_time(plan, (double)row->min_ns / 1e3);
    case MTPROF__CELL_MAX: return mtprof__plan_time(plan, (double)row->max_ns / 1e3);
    case MTPROF__CELL_TOTAL_US:
        return mtprof__put_fixed(plan->number, (double)row->cpu_ns / 1e3, 3);
    case MTPROF__CELL_NODE: return (size_t)(mtb_put_i64(plan->number, row->node_id) - plan->number);
    case MTPROF__CELL_STEP: {
        bool has_step = row->step != INT32_MIN;
        return has_step ? (size_t)(mtb_put_i64(plan->number, row->step) - plan->number) : 0;
    }
    case MTPROF__CELL_CALLS: {
        char *end = mtb_put_u64(plan->number, row->count);
        if (row->unrecorded != 0) {
            *end++ = '+'; /* there were more; the line below the table says so */
        }
        return (size_t)(end - plan->number);
    }
    case MTPROF__CELL_COUNT: return (size_t)(mtb_put_u64(plan->number, row->count) - plan->number);
    default: return put_share_cell(plan, row, id);
    }
}

static int quantile_cell(mtprof__table_plan *plan, uint32_t index, double q, mtprof__cell *out)
{
    int64_t ns = 0;
    size_t length = 2;
    memcpy(plan->number, "--", 3);
    if (plan->input->quantile != NULL) {
        MT_TRY(plan->input->quantile(plan->input->context, index, q, &ns));
        length = mtprof__plan_time(plan, (double)ns / 1e3);
    }
    *out = (mtprof__cell){plan->number, length, length};
    return 0;
}

int mtprof__plan_cell(mtprof__table_plan *plan, const mtprof_row *row, uint32_t index, uint32_t id,
                      bool cut, mtprof__cell *out)
{
    switch (id) {
    case MTPROF__CELL_NAME: return name_cell(plan, row->key, cut, out);
    case MTPROF__CELL_OVERLOAD: return name_cell(plan, row->overload, cut, out);
    case MTPROF__CELL_MODULE: return name_cell(plan, row->module, cut, out);
    case MTPROF__CELL_THREAD:
        return name_cell(plan, thread_text(plan->input, row, plan->number), cut, out);
    case MTPROF__CELL_SHAPES: return shapes_cell(plan, row->input_shapes, cut, out);
    case MTPROF__CELL_SOURCE: return source_cell(plan, row, cut, out);
    case MTPROF__CELL_P50: return quantile_cell(plan, index, 0.5, out);
    case MTPROF__CELL_P99: return quantile_cell(plan, index, 0.99, out);
    default: {
        size_t length = put_number(plan, row, id);
        *out = (mtprof__cell){plan->number, length, length};
        return 0;
    }
    }
}
