/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's memory: what was allocated on each device over time, in slices of which the most and
 * the least are kept, and what the peak was made of where the trace tells (memory_timeline.h).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/html_text.h"
#include "mtprof/export/memory/memory_peak.h"
#include "mtprof/export/report/report_impl.h"

#include <string.h>

enum {
    DEVICES = 4 /* in the chart; of more the first */
};

typedef struct slice {
    int64_t low, high;
    bool used;
} slice;

typedef struct series {
    uint32_t device;
    bool used;
    int64_t peak, peak_ns;
    slice slices[MTPROF__REPORT_SLICES];
} series;

typedef struct gathering {
    mtprof__report *r;
    series *all; /* DEVICES */
    size_t n;
} gathering;

static int take_event(void *context, const mtprof__event *event)
{
    gathering *g = context;
    const mtprof_model_info *info = &g->r->job->info;
    if (event->kind != MTPROF_EVENT_KIND_ALLOC) {
        return 0;
    }
    size_t at = 0;
    while (at < g->n && g->all[at].device != event->device) {
        at++;
    }
    if (at == DEVICES) {
        g->r->job->report.left_out++;
        return 0;
    }
    series *s = &g->all[at];
    if (at == g->n) {
        s->device = event->device;
        s->peak = INT64_MIN;
        g->n++;
    }
    double whole = (double)info->end_ns - (double)info->start_ns;
    double place = ((double)event->start_ns - (double)info->start_ns) / (whole > 0 ? whole : 1) *
                   MTPROF__REPORT_SLICES;
    slice *in = &s->slices[place <= 0                       ? 0
                           : place >= MTPROF__REPORT_SLICES ? MTPROF__REPORT_SLICES - 1
                                                            : (size_t)place];
    in->low = !in->used || event->allocated < in->low ? event->allocated : in->low;
    in->high = !in->used || event->allocated > in->high ? event->allocated : in->high;
    in->used = true;
    if (event->allocated > s->peak) {
        s->peak = event->allocated;
        s->peak_ns = event->start_ns;
    }
    return 0;
}

static int take_action(void *context, const mtprof__memory_action *action)
{
    mtprof__memory_sum *sum = context;
    if (action->verb != MTPROF__MEMORY_PREEXISTING && !sum->begun) {
        mtprof__memory_sum_begin(sum);
    }
    (void)mtprof__memory_sum_add(sum, action);
    return 0;
}

/* What the peak of the first device was made of, by category. */
static int write_composition(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    char missing[MTPROF__MEMORY_MISSING_BYTES];
    mtprof__memory_timeline timeline;
    mtprof__memory_sum sum;
    mtb_write_literal(writer, "\"peak_parts\": ");
    if (!mtprof__memory_is_recorded(&r->job->info, missing, sizeof missing)) {
        mtb_write_literal(writer, "null,\n");
        return MTPROF_OK;
    }
    int status = mtprof__memory_prepare(r->job, &timeline);
    if (status == MTPROF_OK) {
        mtprof__memory_sum_init(&sum, &timeline);
        status = mtprof__memory_run(&timeline, take_action, NULL, &sum);
    }
    if (status == MTPROF_OK) {
        if (!sum.begun) {
            mtprof__memory_sum_begin(&sum);
        }
        mtb_write_literal(writer, "{\"device\": ");
        mtprof__write_script_string(writer, timeline.device_name, strlen(timeline.device_name));
        mtb_write_format(writer, ", \"total\": %lld, \"parts\": [", (long long)sum.peak.total);
        for (size_t i = 0; i < MTPROF__MEMORY_CATEGORY_COUNT; i++) {
            mtb_write_format(writer, "%s[\"%s\", %lld]", i > 0 ? ", " : "",
                             mtprof__memory_labels[i], (long long)sum.peak.sizes[i]);
        }
        mtb_write_literal(writer, "]},\n");
    }
    mtprof__memory_timeline_fini(&timeline);
    return status;
}

static void write_series(const gathering *g, const series *s, bool first)
{
    mtb_writer *writer = g->r->job->writer;
    const mtprof_model_info *info = &g->r->job->info;
    mtprof_device device = {{"device", 6}, 0};
    bool any = false;
    (void)mtprof_model_device(g->r->job->model, s->device, &device);
    mtb_write_text(writer, first ? "{\"device\": " : ", {\"device\": ");
    mtb_write_literal(writer, "\"");
    mtprof__report_name_inner(g->r, device.type);
    if (device.index >= 0) {
        mtb_write_format(writer, " %d", device.index);
    }
    mtb_write_format(writer, "\", \"peak\": %lld, \"peak_at\": %lld, \"slices\": [",
                     (long long)s->peak, (long long)mtb_sub_sat(s->peak_ns, info->start_ns));
    for (size_t i = 0; i < MTPROF__REPORT_SLICES; i++) {
        if (s->slices[i].used) {
            mtb_write_format(writer, "%s%zu,%lld,%lld", any ? ",\n" : "", i,
                             (long long)s->slices[i].low, (long long)s->slices[i].high);
            any = true;
        }
    }
    mtb_write_literal(writer, "]}");
}

int mtprof__report_memory(mtprof__report *r)
{
    gathering g = {.r = r, .all = mtb_calloc(DEVICES, sizeof *g.all)};
    if (g.all == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export report: no memory for the memory chart");
    }
    int status = mtprof__export_events(r->job, take_event, &g, NULL);
    if (status == MTPROF_OK) {
        mtb_write_format(r->job->writer, "\"span\": %lld, \"slices\": %d, \"memory\": [",
                         (long long)mtb_sub_sat(r->job->info.end_ns, r->job->info.start_ns),
                         MTPROF__REPORT_SLICES);
        for (size_t i = 0; i < g.n; i++) {
            write_series(&g, &g.all[i], i == 0);
        }
        mtb_write_literal(r->job->writer, "],\n");
        status = write_composition(r);
    }
    mtb_free(g.all);
    return status;
}
