/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages as a Chrome trace: one span a row, laid end to end in the order of the rows, so that a
 * viewer shows them as a bar chart. Nothing but the rows goes into it: equal rows, equal bytes.
 */
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

static void write_string(mtb_writer *writer, const char *key, mtprof_text text)
{
    if (text.length > 0) {
        mtb_write_format(writer, ",\"%s\":", key);
        mtb_write_json(writer, text.bytes, text.length);
    }
}

static void write_args(mtb_writer *writer, const mtprof_row *row)
{
    mtb_write_literal(writer, ",\"args\":{\"count\":");
    mtb_write_u64(writer, row->count);
    mtb_write_member_thousandths(writer, "self_cpu_time_total", row->self_cpu_ns);
    mtb_write_member_thousandths(writer, "cpu_time_total", row->cpu_ns);
    mtb_write_member_thousandths(writer, "self_device_time_total", row->self_device_ns);
    mtb_write_member_thousandths(writer, "device_time_total", row->device_ns);
    mtb_write_member_thousandths(writer, "min", row->min_ns);
    mtb_write_member_thousandths(writer, "max", row->max_ns);
    mtb_write_member_i64(writer, "self_cpu_memory_usage", row->self_cpu_memory);
    mtb_write_member_i64(writer, "cpu_memory_usage", row->cpu_memory);
    mtb_write_member_i64(writer, "self_device_memory_usage", row->self_device_memory);
    mtb_write_member_i64(writer, "device_memory_usage", row->device_memory);
    mtb_write_member_u64(writer, "flops", row->flops);
    write_string(writer, "device_type", row->device_type);
    write_string(writer, "input_shapes", row->input_shapes);
    write_string(writer, "overload_name", row->overload);
    write_string(writer, "module", row->module);
    if (row->step != INT32_MIN) {
        mtb_write_member_i64(writer, "step", row->step);
    }
    mtb_write_literal(writer, "}}");
}

int mtprof__export_averages(mtprof__export_job *job)
{
    mtb_writer *writer = job->writer;
    mtprof__chrome chrome = {.job = job,
                             .mindtorch = job->options.flavor == MTPROF_FLAVOR_MINDTORCH};
    int64_t start = 0;
    uint32_t count = mtprof_averages_count(job->averages);
    mtb_write_literal(writer, "{\"traceEvents\":[");
    for (uint32_t i = 0; i < count; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        MT_TRY(mtprof_averages_get_row(job->averages, i, &row));
        int64_t ns = row.cpu_ns > 0 ? row.cpu_ns : row.device_ns > 0 ? row.device_ns : 0;
        mtprof__event event = {.kind = row.kind, .name_text = row.key};
        mtb_write_text(writer, i > 0 ? ",\n" : "\n");
        mtprof__chrome_write_head(writer, &chrome, "X", &event);
        mtb_write_literal(writer, "\"pid\":0,\"tid\":0,\"ts\":");
        mtb_write_thousandths(writer, start);
        mtb_write_member_thousandths(writer, "dur", ns);
        write_args(writer, &row);
        if (__builtin_add_overflow(start, ns, &start)) {
            start = 0;
        }
        job->report.events++;
        MT_TRY(mtprof__export_tick(job, NULL));
    }
    mtb_write_text(writer, count > 0 ? "\n]}\n" : "]}\n");
    return MTPROF_OK;
}
