/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/text/export_text.h"

#include "base/fail.h"

#include <string.h>

/* The first is the host's, all others are the device's: torch has them by device, and reads one and
 * the same number for each. */
static const char *const metrics[] = {
    "self_cpu_time_total",         "self_device_time_total", "self_cuda_time_total",
    "self_xpu_time_total",         "self_npu_time_total",    "self_mtia_time_total",
    "self_privateuse1_time_total",
};

int mtprof__export_metric(const mtprof__export_job *job, bool *device)
{
    const char *metric = job->options.metric;
    *device = false;
    if (metric == NULL) {
        return 0;
    }
    for (size_t i = 0; i < MT_COUNT(metrics); i++) {
        if (strcmp(metric, metrics[i]) == 0) {
            *device = i > 0;
            return 0;
        }
    }
    return mtb_fail(MTPROF_EINVAL,
                    "metric should be one of: ['%s', '%s', '%s', '%s', '%s', '%s', '%s'], "
                    "not '%.64s'",
                    metrics[0], metrics[1], metrics[2], metrics[3], metrics[4], metrics[5],
                    metrics[6], metric);
}

static void write_replacement(mtb_writer *writer, unsigned bad)
{
    mtb_write_literal(writer, "\xEF\xBF\xBD");
    writer->replaced += bad;
}

void mtprof__write_folded(mtb_writer *writer, const char *text, size_t length)
{
    size_t at = 0;
    unsigned bad = 0;
    mtb_write(writer, "_", length == 0);
    while (at < length) {
        unsigned char c = (unsigned char)text[at];
        unsigned n = mtb_utf8_length(text + at, length - at, &bad);
        if (n == 0) {
            write_replacement(writer, bad);
            n = bad;
        } else if (c <= ' ' || c == ';' || c == 0x7F) {
            mtb_write_literal(writer, "_");
        } else {
            mtb_write(writer, text + at, n);
        }
        at += n;
    }
}

void mtprof__write_csv(mtb_writer *writer, const char *text, size_t length)
{
    bool quoted = length > 0 && (text[0] == ' ' || text[length - 1] == ' ');
    for (size_t i = 0; i < length && !quoted; i++) {
        unsigned char c = (unsigned char)text[i];
        quoted = c < ' ' || c >= 0x7F || c == ',' || c == '"';
    }
    if (!quoted) {
        mtb_write(writer, text, length);
        return;
    }
    mtb_write_literal(writer, "\"");
    unsigned bad = 0;
    for (size_t at = 0; at < length;) {
        unsigned n = mtb_utf8_length(text + at, length - at, &bad);
        if (n == 0 || text[at] == '\0') {
            n = n == 0 ? bad : 1;
            write_replacement(writer, n);
        } else if (text[at] == '"') {
            mtb_write_literal(writer, "\"\"");
        } else {
            mtb_write(writer, text + at, n);
        }
        at += n;
    }
    mtb_write_literal(writer, "\"");
}
