/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory timeline as a page: a chart of stacked areas that a browser draws from numbers in the
 * page itself, and a table that needs no script. No network, no other file.
 *
 * A short timeline is in the page whole. A long one is cut into slices of equal time, of which the
 * highest, the lowest and the last state are kept: peaks stay what they were. The table and the
 * peak are computed from all actions in any case.
 */
#include "mtprof/export/memory/memory_html.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/export/html_text.h"
#include "mtprof/export/memory/memory_peak.h"

#include <stdio.h>
#include <string.h>

enum {
    SLICES = 2000,
    ROWS_WHOLE = 6000, /* up to so many states are kept as they are */
    STEPS_MOST = 400,
    CATEGORIES = MTPROF__MEMORY_CATEGORY_COUNT
};

typedef mtprof__memory_state state;

typedef struct slice {
    state low, high, last;
    bool used;
} slice;

typedef struct step_mark {
    int64_t time_ns;
    char name[48];
} step_mark;

typedef struct page {
    mtprof__memory_timeline *timeline;
    mtb_writer *writer;
    mtprof__memory_sum sum;
    int64_t start_ns; /* Unix time of the trace's start: times on the page count from it */
    state *rows;      /* ROWS_WHOLE */
    uint64_t n_rows;  /* also those that did not fit */
    slice *slices;    /* SLICES */
    step_mark *steps; /* STEPS_MOST */
    size_t n_steps;
    uint64_t step_stride, steps_seen; /* every how many steps is kept */
} page;

/* ---- gathering ------------------------------------------------------------------------------- */

static void keep_state(page *p)
{
    const mtprof__memory_timeline *t = p->timeline;
    const state *now = &p->sum.now;
    if (p->n_rows < ROWS_WHOLE) {
        p->rows[p->n_rows] = *now;
    }
    p->n_rows++;
    double span = (double)t->last_ns - (double)t->first_ns;
    double place = ((double)now->time_ns - (double)t->first_ns) / (span > 0 ? span : 1) * SLICES;
    slice *s = &p->slices[place <= 0 ? 0 : place >= SLICES ? SLICES - 1 : (size_t)place];
    if (!s->used) {
        s->low = s->high = *now;
    }
    s->low = now->total < s->low.total ? *now : s->low;
    s->high = now->total > s->high.total ? *now : s->high;
    s->last = *now;
    s->used = true;
}

/* What was there before; once. */
static void begin(page *p)
{
    if (!p->sum.begun) {
        mtprof__memory_sum_begin(&p->sum);
        keep_state(p);
    }
}

static int take_action(void *context, const mtprof__memory_action *action)
{
    page *p = context;
    if (action->verb != MTPROF__MEMORY_PREEXISTING) {
        begin(p);
    }
    if (mtprof__memory_sum_add(&p->sum, action)) {
        keep_state(p);
    }
    return 0;
}

/* Steps become marks; of very many every second, fourth … one. */
static void take_step(void *context, const mtprof__event *event)
{
    page *p = context;
    if (p->steps_seen++ % p->step_stride != 0) {
        return;
    }
    if (p->n_steps == STEPS_MOST) {
        for (size_t i = 0; 2 * i < p->n_steps; i++) {
            p->steps[i] = p->steps[2 * i];
        }
        p->n_steps /= 2;
        p->step_stride *= 2;
    }
    step_mark *mark = &p->steps[p->n_steps++];
    mark->time_ns = mtb_add_sat(event->start_ns, p->timeline->job->info.real_offset_ns);
    size_t most = sizeof mark->name - 1;
    size_t length = event->name_text.length < most ? event->name_text.length : most;
    memcpy(mark->name, event->name_text.bytes, length);
    mark->name[length] = '\0';
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct label {
    char text[48];
} label;

/* Bytes for people: "1.50 MiB". */
static label bytes_label(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    label made;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(made.text, sizeof made.text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return made;
}

/* A moment, from the trace's start on: "12.345 ms". */
static label moment_label(const page *p, int64_t time_ns)
{
    double ns = (double)mtb_sub_sat(time_ns, p->start_ns);
    bool long_ago = ns >= 1e9;
    label made;
    snprintf(made.text, sizeof made.text, "%.3f %s", long_ago ? ns / 1e9 : ns / 1e6,
             long_ago ? "s" : "ms");
    return made;
}

static void write_title(const page *p)
{
    mtb_write_literal(p->writer, "Memory timeline of ");
    mtb_write_html(p->writer, p->timeline->device_name, strlen(p->timeline->device_name));
    mtb_write_format(p->writer, ", process %llu", (unsigned long long)p->timeline->job->info.pid);
}

/* The table: what each category had at its own peak and at that of the whole. */
static void write_table(const page *p)
{
    mtb_writer *w = p->writer;
    const state *peak = &p->sum.peak;
    mtb_write_literal(w, "<table>\n<caption>Peaks</caption>\n<thead><tr><th>Category</th>"
                         "<th>At the peak of all</th><th>Share</th><th>Own peak</th>"
                         "<th>at</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < CATEGORIES; i++) {
        const state *own = &p->sum.peaks[i];
        double part = peak->total > 0 ? (double)peak->sizes[i] / (double)peak->total * 100 : 0;
        mtb_write_format(w,
                         "<tr><th scope=\"row\"><i class=\"c%d\"></i>%s</th><td>%s</td>"
                         "<td>%.1f %%</td><td>%s</td><td>%s</td></tr>\n",
                         i, mtprof__memory_labels[i], bytes_label(peak->sizes[i]).text, part,
                         bytes_label(own->sizes[i]).text,
                         own->sizes[i] > 0 ? moment_label(p, own->time_ns).text : "");
    }
    mtb_write_format(w,
                     "</tbody>\n<tfoot><tr><th scope=\"row\">All</th><td>%s</td><td>100 %%</td>"
                     "<td>%s</td><td>%s</td></tr></tfoot>\n</table>\n",
                     bytes_label(peak->total).text, bytes_label(peak->total).text,
                     moment_label(p, peak->time_ns).text);
}

static void write_summary(const page *p)
{
    mtb_writer *w = p->writer;
    const state *peak = &p->sum.peak;
    mtb_write_format(w, "<p class=\"facts\"><span>peak <b>%s</b> at <b>%s</b></span>",
                     bytes_label(peak->total).text, moment_label(p, peak->time_ns).text);
    int64_t unseen = mtb_sub_sat(peak->allocated, peak->total);
    if (peak->allocated >= 0 && unseen > 0) {
        mtb_write_format(w, "<span>in addition <b>%s</b> that nothing used</span>",
                         bytes_label(unseen).text);
    }
    mtb_write_format(w,
                     "<span>at the end <b>%s</b></span><span><b>%llu</b> allocations</span>"
                     "<span><b>%llu</b> releases</span></p>\n",
                     bytes_label(p->sum.now.total).text, (unsigned long long)p->sum.n_allocations,
                     (unsigned long long)p->sum.n_releases);
}

/* ---- data for the script --------------------------------------------------------------------- */

static void write_state(const page *p, const state *s, bool *first)
{
    mtb_write_text(p->writer, *first ? "[" : ",\n[");
    *first = false;
    mtb_write_i64(p->writer, mtb_sub_sat(s->time_ns, p->start_ns));
    for (int i = 0; i < CATEGORIES; i++) {
        mtb_write_literal(p->writer, ",");
        mtb_write_i64(p->writer, s->sizes[i]);
    }
    mtb_write_literal(p->writer, "]");
}

static void write_slice(const page *p, const slice *s, bool *first)
{
    bool low_first = s->low.time_ns <= s->high.time_ns;
    const state *in_order[] = {low_first ? &s->low : &s->high, low_first ? &s->high : &s->low,
                               &s->last};
    for (int i = 0; i < 3; i++) {
        if (i == 0 || memcmp(in_order[i], in_order[i - 1], sizeof(state)) != 0) {
            write_state(p, in_order[i], first);
        }
    }
}

static void write_data(const page *p)
{
    mtb_writer *w = p->writer;
    bool first = true;
    mtb_write_literal(w, "<script>\n\"use strict\";\nconst DATA = {labels: [");
    for (int i = 0; i < CATEGORIES; i++) {
        mtb_write_text(w, i == 0 ? "" : ", ");
        mtprof__write_script_string(w, mtprof__memory_labels[i], strlen(mtprof__memory_labels[i]));
    }
    mtb_write_format(w, "],\nwhole: %s, states: %llu, stride: %llu",
                     p->n_rows <= ROWS_WHOLE ? "true" : "false", (unsigned long long)p->n_rows,
                     (unsigned long long)p->step_stride);
    mtb_write_literal(w, ",\npeak: ");
    write_state(p, &p->sum.peak, &first);
    mtb_write_literal(w, ",\nsteps: [");
    for (size_t i = 0; i < p->n_steps; i++) {
        mtb_write_format(w, "%s[%lld, ", i == 0 ? "" : ", ",
                         (long long)mtb_sub_sat(p->steps[i].time_ns, p->start_ns));
        mtprof__write_script_string(w, p->steps[i].name, strlen(p->steps[i].name));
        mtb_write_literal(w, "]");
    }
    mtb_write_literal(w, "],\nrows: [");
    first = true;
    for (size_t i = 0; p->n_rows <= ROWS_WHOLE && i < p->n_rows; i++) {
        write_state(p, &p->rows[i], &first);
    }
    for (size_t i = 0; p->n_rows > ROWS_WHOLE && i < SLICES; i++) {
        if (p->slices[i].used) {
            write_slice(p, &p->slices[i], &first);
        }
    }
    mtb_write_literal(w, "]};\n");
    mtprof__write_lines(w, mtprof__memory_page_script);
    mtb_write_literal(w, "</script>\n");
}

static void write_damage(const page *p)
{
    const mtprof_export_report *report = &p->timeline->job->report;
    if (report->problems > 0) {
        mtb_write_format(p->writer,
                         "<p role=\"alert\">The trace is damaged in %llu places (%llu bytes): "
                         "allocations are missing.</p>\n",
                         (unsigned long long)report->problems,
                         (unsigned long long)report->problem_bytes);
    }
}

static void write_page(const page *p)
{
    mtb_writer *w = p->writer;
    mtb_write_literal(w,
                      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<title>");
    write_title(p);
    mtb_write_literal(w, "</title>\n<style>\n");
    mtprof__write_lines(w, mtprof__memory_page_style);
    mtb_write_literal(w, "</style>\n</head>\n<body>\n<h1>");
    write_title(p);
    mtb_write_literal(w, "</h1>\n");
    write_summary(p);
    write_damage(p);
    mtprof__write_lines(w, mtprof__memory_page_chart);
    write_table(p);
    write_data(p);
    mtb_write_literal(w, "</body>\n</html>\n");
}

int mtprof__export_memory_html(mtprof__export_job *job)
{
    mtprof__memory_timeline timeline;
    page p = {.timeline = &timeline, .writer = job->writer, .step_stride = 1};
    int status = mtprof__memory_prepare(job, &timeline);
    p.rows = mtb_calloc(ROWS_WHOLE, sizeof *p.rows);
    p.slices = mtb_calloc(SLICES, sizeof *p.slices);
    p.steps = mtb_calloc(STEPS_MOST, sizeof *p.steps);
    if (status == 0 && (p.rows == NULL || p.slices == NULL || p.steps == NULL)) {
        status = mtb_fail(MTPROF_ENOMEM, "memory export: no memory for a chart of %d states",
                          (int)ROWS_WHOLE);
    }
    if (status == 0) {
        p.start_ns = mtb_add_sat(job->info.start_ns, job->info.real_offset_ns);
        mtprof__memory_sum_init(&p.sum, &timeline);
        status = mtprof__memory_run(&timeline, take_action, take_step, &p);
    }
    if (status == 0) {
        status = mtprof__export_damage(job);
    }
    if (status == 0) {
        begin(&p); /* nothing but what was there before, if that */
        /* What is drawn only as a part of its slice, and steps without a mark. */
        job->report.left_out += p.n_rows > ROWS_WHOLE ? p.n_rows - ROWS_WHOLE : 0;
        job->report.left_out += p.steps_seen - p.n_steps;
        write_page(&p);
    }
    mtb_free(p.rows);
    mtb_free(p.slices);
    mtb_free(p.steps);
    mtprof__memory_timeline_fini(&timeline);
    return status;
}
