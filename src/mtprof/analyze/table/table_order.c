/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done with a list of rows as a whole: sorting, summing, writing it in one of its forms.
 *
 * Sort keys are the names of torch's attributes. "cuda", "xpu", "privateuse1", "npu" and "gpu" in a
 * key mean the device, whichever it is.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/status.h>

#include <stdlib.h>
#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

enum sort_key {
    KEY_CPU,
    KEY_SELF_CPU,
    KEY_CPU_AVERAGE,
    KEY_DEVICE,
    KEY_SELF_DEVICE,
    KEY_DEVICE_AVERAGE,
    KEY_CPU_MEMORY,
    KEY_SELF_CPU_MEMORY,
    KEY_DEVICE_MEMORY,
    KEY_SELF_DEVICE_MEMORY,
    KEY_COUNT,
    KEY_FLOPS,
    KEY_NODE,
    KEY_SCOPE,
    KEY_IS_ASYNC,
    KEY_IS_USER_ANNOTATION,
    KEY_DEVICE_TYPE,
    KEY_NOTHING, /* attributes that are the same for all rows */
    KEY_MIN,
    KEY_MAX,
    KEY_P50,
    KEY_P99,
    KEY_NAME, /* this and what follows: texts */
    KEY_OVERLOAD,
    KEY_SHAPES
};

static const struct {
    const char *name;
    enum sort_key key;
} attributes[] = {
    {"cpu_time_total", KEY_CPU},
    {"self_cpu_time_total", KEY_SELF_CPU},
    {"self_cpu_time", KEY_SELF_CPU},
    {"cpu_time", KEY_CPU_AVERAGE},
    {"cpu_time_avg", KEY_CPU_AVERAGE},
    {"device_time_total", KEY_DEVICE},
    {"self_device_time_total", KEY_SELF_DEVICE},
    {"self_device_time", KEY_SELF_DEVICE},
    {"device_time", KEY_DEVICE_AVERAGE},
    {"device_time_avg", KEY_DEVICE_AVERAGE},
    {"cpu_memory_usage", KEY_CPU_MEMORY},
    {"self_cpu_memory_usage", KEY_SELF_CPU_MEMORY},
    {"device_memory_usage", KEY_DEVICE_MEMORY},
    {"self_device_memory_usage", KEY_SELF_DEVICE_MEMORY},
    {"count", KEY_COUNT},
    {"flops", KEY_FLOPS},
    {"node_id", KEY_NODE},
    {"scope", KEY_SCOPE},
    {"is_async", KEY_IS_ASYNC},
    {"is_user_annotation", KEY_IS_USER_ANNOTATION},
    {"device_type", KEY_DEVICE_TYPE},
    {"is_remote", KEY_NOTHING},
    {"is_legacy", KEY_NOTHING},
    {"min", KEY_MIN},
    {"max", KEY_MAX},
    {"p50", KEY_P50},
    {"p99", KEY_P99},
    {"key", KEY_NAME},
    {"name", KEY_NAME},
    {"overload_name", KEY_OVERLOAD},
    {"input_shapes", KEY_SHAPES},
};

static bool find_attribute(const char *name, enum sort_key *key)
{
    for (size_t i = 0; i < MT_COUNT(attributes); i++) {
        if (strcmp(attributes[i].name, name) == 0) {
            *key = attributes[i].key;
            return true;
        }
    }
    return false;
}

/* Puts "device" in the place of every name a device has. */
static void neutral_name(const char *name, char *out, size_t size)
{
    static const char *const devices[] = {"cuda", "xpu", "privateuse1", "npu", "gpu"};
    size_t used = 0;
    while (*name != '\0' && used + 8 < size) {
        size_t matched = 0;
        for (size_t i = 0; i < MT_COUNT(devices) && matched == 0; i++) {
            size_t n = strlen(devices[i]);
            matched = strncmp(name, devices[i], n) == 0 ? n : 0;
        }
        if (matched != 0) {
            memcpy(out + used, "device", 6);
            used += 6;
            name += matched;
        } else {
            out[used++] = *name++;
        }
    }
    out[used] = '\0';
}

static int parse_key(const mtprof__table_input *input, const char *name, enum sort_key *key)
{
    char neutral[128];
    if (find_attribute(name, key)) { /* "input_shapes" has an "npu" in it */
        return 0;
    }
    neutral_name(name, neutral, sizeof neutral);
    if (find_attribute(neutral, key)) {
        return 0;
    }
    return mtb_fail(MTPROF_EINVAL, "'%s' object has no attribute '%.100s'",
                    input->events ? "FunctionEvent" : "FunctionEventAvg", neutral);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What one row is sorted by. Doubles are turned into integers of the same order. */
typedef struct sort_item {
    int64_t value;
    mtprof_text text;
    uint32_t row;
} sort_item;

static int64_t ordered(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? (int64_t)(UINT64_C(1) << 63) - bits : bits;
}

static int64_t average(int64_t total, uint64_t count)
{
    return count != 0 ? ordered((double)total / (double)count) : 0;
}

static int64_t numeric_value(const mtprof_row *row, enum sort_key key)
{
    switch (key) {
    case KEY_CPU: return row->cpu_ns;
    case KEY_SELF_CPU: return row->self_cpu_ns;
    case KEY_CPU_AVERAGE: return average(row->cpu_ns, row->count);
    case KEY_DEVICE: return row->device_ns;
    case KEY_SELF_DEVICE: return row->self_device_ns;
    case KEY_DEVICE_AVERAGE: return average(row->device_ns, row->count);
    case KEY_CPU_MEMORY: return row->cpu_memory;
    case KEY_SELF_CPU_MEMORY: return row->self_cpu_memory;
    case KEY_DEVICE_MEMORY: return row->device_memory;
    case KEY_SELF_DEVICE_MEMORY: return row->self_device_memory;
    case KEY_COUNT: return row->count <= INT64_MAX ? (int64_t)row->count : INT64_MAX;
    case KEY_FLOPS: return row->flops <= INT64_MAX ? (int64_t)row->flops : INT64_MAX;
    case KEY_NODE: return row->node_id;
    case KEY_SCOPE: return row->record_scope;
    case KEY_IS_ASYNC: return row->is_async;
    case KEY_IS_USER_ANNOTATION: return row->is_user_annotation;
    case KEY_DEVICE_TYPE: return row->device != 0;
    case KEY_MIN: return row->min_ns;
    case KEY_MAX: return row->max_ns;
    default: return 0;
    }
}

static int get_item(const mtprof__table_input *input, uint32_t index, enum sort_key key,
                    sort_item *item)
{
    mtprof_row row;
    MT_TRY(input->row(input->context, index, &row));
    *item = (sort_item){.row = index, .text = {"", 0}};
    if (key >= KEY_NAME) {
        item->text = key == KEY_NAME       ? row.key
                     : key == KEY_OVERLOAD ? row.overload
                                           : row.input_shapes;
    } else if ((key == KEY_P50 || key == KEY_P99) && input->quantile != NULL) {
        MT_TRY(input->quantile(input->context, index, key == KEY_P50 ? 0.5 : 0.99, &item->value));
    } else {
        item->value = numeric_value(&row, key);
    }
    return 0;
}

static int compare_items(const void *left, const void *right)
{
    const sort_item *a = left;
    const sort_item *b = right;
    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }
    size_t common = a->text.length < b->text.length ? a->text.length : b->text.length;
    int order = common != 0 ? memcmp(a->text.bytes, b->text.bytes, common) : 0;
    if (order == 0 && a->text.length != b->text.length) {
        order = a->text.length > b->text.length ? 1 : -1;
    }
    if (order != 0) {
        return -order;
    }
    return a->row < b->row ? -1 : a->row > b->row;
}

int mtprof__table_order(const mtprof__table_input *input, const char *key, uint32_t *order)
{
    enum sort_key parsed = KEY_CPU;
    MT_TRY(parse_key(input, key, &parsed));
    if (input->n_rows == 0) {
        return 0;
    }
    sort_item *items = mtb_calloc(input->n_rows, sizeof *items);
    if (items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_sort: no memory for %u rows",
                        (unsigned)input->n_rows);
    }
    int status = 0;
    for (uint32_t i = 0; i < input->n_rows && status == 0; i++) {
        status = get_item(input, i, parsed, &items[i]);
    }
    if (status == 0) {
        qsort(items, input->n_rows, sizeof *items, compare_items);
        for (uint32_t i = 0; i < input->n_rows; i++) {
            order[i] = items[i].row;
        }
    }
    mtb_free(items);
    return status;
}

/* ---- the sum --------------------------------------------------------------------------------- */

/* Hostile traces may have any times: sums wrap instead of overflowing. */
static void add(int64_t *sum, int64_t value)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)value);
}

int mtprof__table_total(const mtprof__table_input *input, mtprof_row *total)
{
    static const char nothing[] = "";
    mtprof_row sum = {.struct_size = sizeof sum, .name = UINT32_MAX, .track = UINT32_MAX};
    sum.overload = sum.input_shapes = sum.module = (mtprof_text){nothing, 0};
    sum.step = INT32_MIN;
    sum.first_event = MTPROF_NO_EVENT;
    mtprof__self_sum self = {0, 0, false};
    for (uint32_t i = 0; i < input->n_rows; i++) {
        mtprof_row row;
        MT_TRY(input->row(input->context, i, &row));
        mtprof_row next = row; /* identity: that of the last row */
        mtprof__self_sum_add(&self, &row);
        next.count += sum.count;
        add(&next.cpu_ns, sum.cpu_ns);
        add(&next.loose_ns, sum.loose_ns);
        add(&next.device_ns, sum.device_ns);
        add(&next.self_device_ns, sum.self_device_ns);
        add(&next.cpu_memory, sum.cpu_memory);
        add(&next.self_cpu_memory, sum.self_cpu_memory);
        add(&next.device_memory, sum.device_memory);
        add(&next.self_device_memory, sum.self_device_memory);
        next.flops += sum.flops;
        if (i != 0) {
            next.min_ns = sum.min_ns < next.min_ns ? sum.min_ns : next.min_ns;
            next.max_ns = sum.max_ns > next.max_ns ? sum.max_ns : next.max_ns;
        }
        sum = next;
    }
    sum.self_cpu_ns = mtprof__self_sum_ns(&self);
    sum.name = UINT32_MAX;
    sum.key = (mtprof_text){"Total", 5};
    *total = sum;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

int mtprof__table_write(const mtprof__table_input *input, const mtprof_table_options *options,
                        mtb_writer *writer)
{
    mtprof__table_plan plan;
    int status = mtprof__plan_init(&plan, input, options);
    if (status == 0) {
        switch (plan.options.format) {
        case MTPROF_TABLE_FIT: status = mtprof__table_fit(&plan, writer); break;
        case MTPROF_TABLE_CSV: status = mtprof__table_csv(&plan, writer); break;
        case MTPROF_TABLE_JSON: status = mtprof__table_json(&plan, writer); break;
        case MTPROF_TABLE_MARKDOWN: status = mtprof__table_markdown(&plan, writer); break;
        default: status = mtprof__table_torch(&plan, writer); break;
        }
    }
    mtprof__plan_fini(&plan);
    return status;
}
