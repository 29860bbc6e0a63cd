/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's numbers that other parts of the library know: the verdict, findings, steps, rows of
 * the table, health.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/html_text.h"
#include "mtprof/export/report/report_impl.h"

#include <mtprof/averages.h>
#include <mtprof/version.h>

#include <stdlib.h>
#include <string.h>

void mtprof__report_name(mtprof__report *r, mtprof_text text)
{
    mtb_write_literal(r->job->writer, "\"");
    mtprof__report_name_inner(r, text);
    mtb_write_literal(r->job->writer, "\"");
}

/* Escapes make a byte up to six, so what is counted is what was written. */
static size_t name_limit(const mtprof__report *r)
{
    return r->name_bytes < MTPROF__REPORT_NAMES_FULL   ? MTPROF__REPORT_NAME_BYTES
           : r->name_bytes < MTPROF__REPORT_NAMES_MOST ? MTPROF__REPORT_SHORT_NAME
                                                       : 0;
}

void mtprof__report_name_inner(mtprof__report *r, mtprof_text text)
{
    mtb_writer *writer = r->job->writer;
    uint64_t before = mtb_writer_total(writer);
    size_t length = name_limit(r);
    if (text.length <= length) {
        mtprof__write_script_inner(writer, text.bytes, text.length);
    } else {
        while (length > 0 && ((unsigned char)text.bytes[length] & 0xC0) == 0x80) {
            length--; /* not inside a character */
        }
        r->job->report.left_out++;
        mtprof__write_script_inner(writer, text.bytes, length);
        mtb_write_literal(writer, "\\u2026");
    }
    r->name_bytes += mtb_writer_total(writer) - before;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

int mtprof__report_facts(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    const mtprof_model_info *info = &r->job->info;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    MT_TRY(mtprof_explain_get_facts(r->explain, &facts));
    int64_t start = 0;
    if (__builtin_add_overflow(info->start_ns, info->real_offset_ns, &start)) {
        start = 0;
    }
    mtb_write_format(
        writer,
        "\"version\": \"%s\", \"pid\": %llu, \"start\": %lld, \"events\": %llu, \"steps_seen\": %u,\n"
        "\"wall\": %lld, \"median\": %lld, \"busy\": %lld, \"kernels\": %llu, \"device\": ",
        mtprof_version_string(), (unsigned long long)info->pid, (long long)start,
        (unsigned long long)facts.events, facts.steps, (long long)facts.wall_ns,
        (long long)facts.median_step_ns, (long long)facts.busy_ns,
        (unsigned long long)facts.kernels);
    if (facts.has_device != 0 && info->device_type != NULL) {
        mtprof__write_script_string(writer, info->device_type, strlen(info->device_type));
    } else {
        mtb_write_text(writer, facts.has_device != 0 ? "\"device\"" : "null");
    }
    mtb_write_literal(writer, ",\n\"parts\": [");
    for (uint32_t part = 0; part < MTPROF_PART_COUNT; part++) {
        mtb_write_format(writer, "%s[\"%s\", %lld, \"%s\", \"%s\"]", part > 0 ? ", " : "",
                         mtprof_part_name(part),
                         (long long)mtprof_explain_part_ns(r->explain, MTPROF_EXPLAIN_ALL, part),
                         mtprof_part_color(part), mtprof_part_title(part));
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}

static int write_evidence(mtprof__report *r, uint32_t finding, uint32_t count)
{
    mtb_writer *writer = r->job->writer;
    for (uint32_t i = 0; i < count; i++) {
        mtprof_explain_evidence e = {.struct_size = sizeof e};
        MT_TRY(mtprof_explain_get_evidence(r->explain, finding, i, &e));
        mtb_write_text(writer, i > 0 ? ", [" : "[");
        mtprof__write_script_string(writer, e.text.bytes, e.text.length);
        mtb_write_literal(writer, ", ");
        mtprof__report_name(r, e.name);
        mtb_write_format(writer, ", %d]", e.step);
    }
    return MTPROF_OK;
}

int mtprof__report_findings(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    MT_TRY(mtprof_explain_get_facts(r->explain, &facts));
    mtb_write_literal(writer, "\"findings\": [");
    for (uint32_t i = 0; i < facts.findings; i++) {
        mtprof_explain_finding f = {.struct_size = sizeof f};
        MT_TRY(mtprof_explain_get_finding(r->explain, i, &f));
        mtb_write_format(writer, "%s{\"id\": \"%s\", \"title\": ", i > 0 ? ",\n" : "\n", f.id);
        mtprof__write_script_string(writer, f.title.bytes, f.title.length);
        mtb_write_literal(writer, ", \"share\": ");
        mtb_write_double(writer, f.share);
        mtb_write_format(writer,
                         ", \"gain\": %lld, \"sure\": %s, \"advice\": ", (long long)f.gain_ns,
                         f.confidence == MTPROF_CONFIDENCE_HIGH ? "true" : "false");
        mtprof__write_script_string(writer, f.advice.bytes, f.advice.length);
        mtb_write_literal(writer, ", \"evidence\": [");
        MT_TRY(write_evidence(r, i, f.evidence));
        mtb_write_literal(writer, "]}");
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct step_item {
    uint32_t place;
    int64_t ns;
    bool slow;
} step_item;

/* Slow ones first, then longest first. */
static int compare_steps(const void *a, const void *b)
{
    const step_item *x = a;
    const step_item *y = b;
    if (x->slow != y->slow) {
        return x->slow ? -1 : 1;
    }
    if (x->ns != y->ns) {
        return x->ns > y->ns ? -1 : 1;
    }
    return x->place < y->place ? -1 : 1;
}

int mtprof__report_compare_places(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void add_shown(mtprof__report *r, uint32_t place)
{
    for (size_t i = 0; i < r->n_shown; i++) {
        if (r->shown[i] == place) {
            return;
        }
    }
    if (r->n_shown < MTPROF__REPORT_SHOWN) {
        r->shown[r->n_shown++] = place;
    }
}

/* The first, the longest, the one in the middle and the shortest, which always have a timeline;
 * then slow ones and longer ones, as long as there is room for their events. */
static void choose_shown(mtprof__report *r, const step_item *sorted, uint32_t n)
{
    const uint32_t wanted[] = {0, n / 2, n - 1};
    add_shown(r, 0);
    for (size_t i = 0; i < MT_COUNT(wanted); i++) {
        add_shown(r, sorted[wanted[i]].place);
    }
    r->n_always = r->n_shown;
    for (uint32_t i = 0; i < n && r->n_shown < MTPROF__REPORT_SHOWN; i++) {
        add_shown(r, sorted[i].place);
    }
}

static int write_step(mtprof__report *r, uint32_t place, bool first)
{
    mtb_writer *writer = r->job->writer;
    mtprof_explain_step step = {.struct_size = sizeof step};
    MT_TRY(mtprof_explain_get_step(r->explain, place, &step));
    mtb_write_format(writer, "%s[%d, %lld, %lld, %u", first ? "\n" : ",\n", step.step,
                     (long long)mtb_sub_sat(step.start_ns, r->job->info.start_ns),
                     (long long)mtb_sub_sat(step.end_ns, step.start_ns), step.state);
    for (uint32_t part = 0; part < MTPROF_PART_COUNT; part++) {
        mtb_write_format(writer, ",%lld",
                         (long long)mtprof_explain_part_ns(r->explain, place, part));
    }
    mtb_write_literal(writer, "]");
    return MTPROF_OK;
}

/* Of very many steps the slow and the longest are kept; `places` gets theirs, in order. */
static int choose_steps(mtprof__report *r, step_item *items, uint32_t n, uint32_t *places,
                        uint32_t kept)
{
    for (uint32_t i = 0; i < n; i++) {
        mtprof_explain_step step = {.struct_size = sizeof step};
        MT_TRY(mtprof_explain_get_step(r->explain, i, &step));
        items[i] =
            (step_item){i, mtb_sub_sat(step.end_ns, step.start_ns), step.state == MTPROF_STEP_SLOW};
    }
    if (n > 0) {
        qsort(items, n, sizeof *items, compare_steps);
        choose_shown(r, items, n);
    }
    for (uint32_t i = 0; i < kept; i++) {
        places[i] = items[i].place;
    }
    qsort(places, kept, sizeof *places, mtprof__report_compare_places);
    return MTPROF_OK;
}

int mtprof__report_steps(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    uint32_t n = mtprof_explain_step_count(r->explain);
    uint32_t kept = n < MTPROF__REPORT_STEPS ? n : MTPROF__REPORT_STEPS;
    step_item *items = mtb_calloc((size_t)n + 1, sizeof *items);
    uint32_t *places = mtb_calloc(MTPROF__REPORT_STEPS, sizeof *places);
    int status = MTPROF_OK;
    if (items == NULL || places == NULL) {
        status = mtb_fail(MTPROF_ENOMEM, "export report: no memory for %u steps", n);
    } else {
        status = choose_steps(r, items, n, places, kept);
        mtb_write_literal(writer, "\"steps\": [");
        for (uint32_t i = 0; i < kept && status == MTPROF_OK; i++) {
            status = write_step(r, places[i], i == 0);
        }
        mtb_write_literal(writer, "],\n");
    }
    r->job->report.left_out += n - kept;
    mtb_free(items);
    mtb_free(places);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* 0: of the host, 1: device work, 2: an annotation over it. */
static unsigned device_kind(const mtprof_row *row)
{
    return row->device == 0 ? 0 : row->is_user_annotation != 0 ? 2 : 1;
}

/* What the table of `mtprof report` calls the self time of the device: work alone. Ops have the
 * time of what they launched, and annotations that of what is under them: the same once more. */
static int64_t device_time(const mtprof_row *row)
{
    return device_kind(row) == 1 ? row->self_device_ns : 0;
}

static void write_row(mtprof__report *r, const mtprof_row *row, bool first)
{
    mtb_writer *writer = r->job->writer;
    mtb_write_text(writer, first ? "\n[" : ",\n[");
    mtprof__report_name(r, row->key);
    mtb_write_literal(writer, ", ");
    mtprof__report_name(r, row->input_shapes);
    mtb_write_literal(writer, ", ");
    mtprof__report_name(r, row->module);
    mtb_write_format(writer, ", %u, %llu, %lld, %lld, %lld, %lld, %lld, %llu]", device_kind(row),
                     (unsigned long long)row->count, (long long)row->self_cpu_ns,
                     (long long)row->cpu_ns, (long long)row->self_device_ns,
                     (long long)row->device_ns,
                     (long long)mtb_add_sat(row->self_cpu_memory, row->self_device_memory),
                     (unsigned long long)row->flops);
}

int mtprof__report_rows(mtprof__report *r)
{
    mtb_writer *writer = r->job->writer;
    const mtprof_averages_options options = {.struct_size = sizeof options,
                                             .group = MTPROF_GROUP_SHAPES | MTPROF_GROUP_MODULE,
                                             .functions = MTPROF_FUNCTIONS_WITHOUT_OPS};
    mtprof_averages *averages = NULL;
    mtprof_row total = {.struct_size = sizeof total};
    MT_TRY(mtprof_averages_new(r->job->model, &options, &averages));
    int status =
        mtprof_averages_sort(averages, r->job->info.device_type != NULL ? "self_device_time_total"
                                                                        : "self_cpu_time_total");
    uint32_t n = mtprof_averages_count(averages);
    uint32_t kept = n < MTPROF__REPORT_ROWS ? n : MTPROF__REPORT_ROWS;
    if (status == MTPROF_OK && n > 0) {
        status = mtprof_averages_get_total(averages, &total);
    }
    int64_t self_device = 0;
    mtb_write_format(writer, "\"rows_seen\": %u, \"self_cpu\": %lld, \"rows\": [", n,
                     (long long)total.self_cpu_ns);
    for (uint32_t i = 0; i < n && status == MTPROF_OK; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        status = mtprof_averages_get_row(averages, i, &row);
        if (status == MTPROF_OK) {
            self_device = mtb_add_sat(self_device, device_time(&row));
        }
        if (status == MTPROF_OK && i < kept) {
            write_row(r, &row, i == 0);
        }
    }
    mtb_write_format(writer, "],\n\"self_device\": %lld,\n", (long long)self_device);
    r->job->report.events = n > 0 ? total.count : 0;
    r->job->report.left_out += n - kept;
    mtprof_averages_free(averages);
    return status;
}

/* ---- health ---------------------------------------------------------------------------------- */

int mtprof__report_health(mtprof__report *r)
{
    mtprof_health h = {.struct_size = sizeof h};
    MT_TRY(mtprof_model_get_health(r->job->model, &h));
    const struct {
        const char *name;
        uint64_t value;
    } items[] = {{"events recorded", h.begins},
                 {"events lost", h.lost},
                 {"events left out by the limit of the overhead", h.unrecorded},
                 {"events without their payloads, for the limit", h.without_payload},
                 {"changes of what is recorded, for the limit", h.limit_changes},
                 {"events that ring mode discarded", h.evicted},
                 {"scopes cut off by a stop", h.truncated},
                 {"launches", h.launches},
                 {"launches without device work", h.unmatched},
                 {"texts shortened", h.texts_cut},
                 {"threads", h.threads},
                 {"bytes of trace", h.bytes},
                 {"damaged places", r->job->report.problems}};
    mtb_writer *writer = r->job->writer;
    mtb_write_format(writer, "\"pair_cost_ps\": %llu, \"left_out\": %llu, \"health\": [",
                     (unsigned long long)h.pair_cost_ps,
                     (unsigned long long)r->job->report.left_out);
    for (size_t i = 0; i < MT_COUNT(items); i++) {
        mtb_write_format(writer, "%s[\"%s\", %llu]", i > 0 ? ", " : "", items[i].name,
                         (unsigned long long)items[i].value);
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}
