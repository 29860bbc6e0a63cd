/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as an exporter: the parts in their order.
 */
#include "base/fail.h"
#include "mtprof/export/html_text.h"
#include "mtprof/export/report/report_impl.h"

#include <string.h>

/* What a reader without JavaScript gets: the verdict and the findings, as `mtprof explain` says
 * them. */
typedef struct plain_text {
    mtb_writer *writer;
} plain_text;

static int write_plain(void *context, const void *bytes, size_t length)
{
    mtb_write_html(((const plain_text *)context)->writer, bytes, length);
    return 0;
}

static int write_without_script(mtprof__report *r)
{
    plain_text text = {r->job->writer};
    const mtprof_output output = {
        .struct_size = sizeof output, .write = write_plain, .context = &text};
    const mtprof_explain_write_options options = {.struct_size = sizeof options,
                                                  .max_bytes = UINT64_MAX};
    mtb_write_literal(r->job->writer, "<noscript><pre>");
    int status = mtprof_explain_write(r->explain, &options, &output);
    mtb_write_literal(r->job->writer, "</pre></noscript>\n");
    return status;
}

static int write_data(mtprof__report *r)
{
    static int (*const parts[])(mtprof__report *) = {
        mtprof__report_facts,  mtprof__report_findings,  mtprof__report_steps,
        mtprof__report_rows,   mtprof__report_timelines, mtprof__report_flame,
        mtprof__report_memory, mtprof__report_compare,   mtprof__report_health};
    for (size_t i = 0; i < MT_COUNT(parts); i++) {
        MT_TRY(parts[i](r));
        MT_TRY(mtprof__export_report_progress(r->job, NULL));
    }
    return MTPROF_OK;
}

static int write_page(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    mtb_write_literal(
        writer,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>mtprof report</title>\n"
        "<style>\n");
    mtprof__write_lines(writer, mtprof__report_style);
    mtb_write_literal(
        writer,
        "</style>\n<noscript><style>body.drawing { visibility: visible; }</style></noscript>\n"
        "</head>\n<body class=\"drawing\">\n");
    mtprof__write_lines(writer, mtprof__report_skeleton);
    MT_TRY(write_without_script(r));
    mtb_write_literal(writer, "<script>\n\"use strict\";\nconst DATA = {\n");
    MT_TRY(write_data(r));
    mtb_write_literal(writer, "\"schema\": 1};\n");
    mtprof__write_lines(writer, mtprof__report_script);
    mtb_write_literal(writer, "</script>\n</body>\n</html>\n");
    return MTPROF_OK;
}

int mtprof__export_report(mtprof__export_job *job)
{
    mtprof__report r = {.job = job};
    int status = mtprof_explain_new(job->model, NULL, &r.explain);
    if (status == MTPROF_OK) {
        status = mtprof__export_damage(job);
    }
    if (status == MTPROF_OK) {
        status = write_page(&r);
    }
    mtprof_explain_free(r.explain);
    return status;
}
