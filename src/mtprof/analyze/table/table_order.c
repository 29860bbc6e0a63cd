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

/* torch's other names of attributes. "": the attribute is the same for all rows. */
static const char *const aliases[][2] = {
    {"self_cpu_time", "self_cpu_time_total"},
    {"cpu_time_avg", "cpu_time"},
    {"self_device_time", "self_device_time_total"},
    {"device_time_avg", "device_time"},
    {"name", "key"},
    {"is_remote", ""},
    {"is_legacy", ""},
};

/* The field that an attribute is, MTPROF__ROW_FIELDS where rows do not differ in it. Fields are
 * called as torch's attributes are, with the unit after the name of a time. */
static bool find_attribute(const char *name, unsigned *field)
{
    for (size_t i = 0; i < MT_COUNT(aliases); i++) {
        name = strcmp(aliases[i][0], name) == 0 ? aliases[i][1] : name;
    }
    size_t length = strlen(name);
    for (*field = 0; *field < MTPROF__ROW_FIELDS; (*field)++) {
        const mtprof__row_field *f = &mtprof__row_fields[*field];
        const char *unit = strstr(f->name, "_ns");
        size_t n = unit != NULL ? (size_t)(unit - f->name) : strlen(f->name);
        if (f->sorts && n == length && strncmp(f->name, name, n) == 0) {
            return true;
        }
    }
    return length == 0;
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

static int parse_key(const mtprof__table_input *input, const char *name, unsigned *field)
{
    char neutral[128];
    if (find_attribute(name, field)) { /* "input_shapes" has an "npu" in it */
        return 0;
    }
    neutral_name(name, neutral, sizeof neutral);
    if (find_attribute(neutral, field)) {
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

static int get_item(const mtprof__table_input *input, uint32_t index, unsigned field,
                    sort_item *item)
{
    mtprof_row row;
    mtprof__row_value value = {0};
    MT_TRY(input->row(input->context, index, &row));
    *item = (sort_item){.row = index, .text = {"", 0}};
    if (field < MTPROF__ROW_FIELDS) {
        MT_TRY(mtprof__row_get(input, &row, index, field, &value));
    }
    switch (value.type) {
    case MTPROF__VALUE_TEXT:
        if (mtprof__row_fields[field].form == MTPROF__FIELD_DEVICE_TYPE) {
            item->value = row.device != 0; /* torch's device types are numbers, the CPU's is 0 */
        } else {
            item->text = value.text;
        }
        break;
    case MTPROF__VALUE_I64: item->value = value.integer; break;
    case MTPROF__VALUE_REAL: item->value = ordered(value.real); break;
    default: item->value = value.number <= INT64_MAX ? (int64_t)value.number : INT64_MAX; break;
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
    unsigned field;
    MT_TRY(parse_key(input, key, &field));
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
        status = get_item(input, i, field, &items[i]);
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
        case MTPROF_TABLE_HTML: status = mtprof__table_html(&plan, writer); break;
        default: status = mtprof__table_torch(&plan, writer); break;
        }
    }
    mtprof__plan_fini(&plan);
    return status;
}
