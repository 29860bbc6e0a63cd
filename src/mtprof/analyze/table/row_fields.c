/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a row by name: what CSV and JSON write, and what rows are sorted by.
 */
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <string.h>

#define FIELD(name, form, member, sorts)                                    \
    {                                                                       \
        (name), MTPROF__FIELD_##form, offsetof(mtprof_row, member), (sorts) \
    }

const mtprof__row_field mtprof__row_fields[MTPROF__ROW_FIELDS] = {
    FIELD("key", TEXT, key, true),
    FIELD("overload_name", TEXT, overload, true),
    FIELD("input_shapes", TEXT, input_shapes, true),
    FIELD("module", TEXT, module, false),
    FIELD("stack", STACK, stack, false),
    FIELD("step", STEP, step, false),
    FIELD("thread", THREAD, track, false),
    FIELD("kind", KIND, kind, false),
    FIELD("device_type", DEVICE_TYPE, device_type, true),
    FIELD("is_async", FLAG, is_async, true),
    FIELD("is_user_annotation", FLAG, is_user_annotation, true),
    FIELD("scope", U32, record_scope, true),
    FIELD("node_id", I32, node_id, true),
    FIELD("count", U64, count, true),
    FIELD("cpu_time_total_ns", I64, cpu_ns, true),
    FIELD("self_cpu_time_total_ns", I64, self_cpu_ns, true),
    FIELD("cpu_time_ns", AVERAGE, cpu_ns, true),
    FIELD("device_time_total_ns", I64, device_ns, true),
    FIELD("self_device_time_total_ns", I64, self_device_ns, true),
    FIELD("device_time_ns", AVERAGE, device_ns, true),
    FIELD("cpu_memory_usage", I64, cpu_memory, true),
    FIELD("self_cpu_memory_usage", I64, self_cpu_memory, true),
    FIELD("device_memory_usage", I64, device_memory, true),
    FIELD("self_device_memory_usage", I64, self_device_memory, true),
    FIELD("flops", U64, flops, true),
    FIELD("min_ns", I64, min_ns, true),
    FIELD("p50_ns", P50, min_ns, true),
    FIELD("p99_ns", P99, max_ns, true),
    FIELD("max_ns", I64, max_ns, true),
    FIELD("unrecorded", U64, unrecorded, false),
};

static mtprof__row_value text_value(mtprof_text text)
{
    return (mtprof__row_value){.type = MTPROF__VALUE_TEXT, .text = text};
}

static mtprof__row_value integer_value(int64_t value)
{
    return (mtprof__row_value){.type = MTPROF__VALUE_I64, .integer = value};
}

static mtprof__row_value number_value(uint64_t value)
{
    return (mtprof__row_value){.type = MTPROF__VALUE_U64, .number = value};
}

static mtprof__row_value thread_value(const mtprof__table_input *input, const mtprof_row *row)
{
    mtprof_track track;
    if (row->track == UINT32_MAX) {
        return (mtprof__row_value){0};
    }
    if (input->model != NULL && mtprof_model_track(input->model, row->track, &track)) {
        return integer_value(track.tid);
    }
    return number_value(row->track);
}

int mtprof__row_get(const mtprof__table_input *input, const mtprof_row *row, uint32_t index,
                    unsigned field, mtprof__row_value *value)
{
    const mtprof__row_field *f = &mtprof__row_fields[field];
    const void *member = (const char *)row + f->member;
    const char *kind = mtprof_event_kind_name(row->kind);
    int64_t ns = 0;
    *value = (mtprof__row_value){0};
    switch (f->form) {
    case MTPROF__FIELD_TEXT: *value = text_value(*(const mtprof_text *)member); break;
    case MTPROF__FIELD_STACK: value->type = MTPROF__VALUE_STACK; break;
    case MTPROF__FIELD_STEP:
        if (row->step != INT32_MIN) {
            *value = integer_value(row->step);
        }
        break;
    case MTPROF__FIELD_THREAD: *value = thread_value(input, row); break;
    case MTPROF__FIELD_KIND: *value = text_value((mtprof_text){kind, strlen(kind)}); break;
    case MTPROF__FIELD_DEVICE_TYPE:
        *value = text_value(mtprof__table_device_type(input, row));
        break;
    case MTPROF__FIELD_FLAG:
        value->type = MTPROF__VALUE_BOOL;
        value->number = *(const uint8_t *)member != 0;
        break;
    case MTPROF__FIELD_U32: *value = number_value(*(const uint32_t *)member); break;
    case MTPROF__FIELD_I32: *value = integer_value(*(const int32_t *)member); break;
    case MTPROF__FIELD_U64: *value = number_value(*(const uint64_t *)member); break;
    case MTPROF__FIELD_I64: *value = integer_value(*(const int64_t *)member); break;
    case MTPROF__FIELD_AVERAGE:
        value->type = MTPROF__VALUE_REAL;
        value->real = row->count != 0 ? (double)*(const int64_t *)member / (double)row->count : 0;
        break;
    case MTPROF__FIELD_P50:
    case MTPROF__FIELD_P99:
        if (input->quantile != NULL && index != UINT32_MAX) {
            double q = f->form == MTPROF__FIELD_P50 ? 0.5 : 0.99;
            MT_TRY(input->quantile(input->context, index, q, &ns));
            *value = integer_value(ns);
        }
        break;
    }
    return 0;
}
