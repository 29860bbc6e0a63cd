/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's comparison with an older trace: step time, rows as `mtprof diff` has them, findings
 * that are new or gone.
 */
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/compare/student.h"
#include "mtprof/export/html_text.h"
#include "mtprof/export/report/report_impl.h"

#include <mtprof/compare.h>

#include <math.h>
#include <string.h>

typedef struct old_trace {
    mtprof_explain *explain;
    mtprof_compare *compare;
} old_trace;

/* ---- steps ----------------------------------------------------------------------------------- */

/* Of a trace's ordinary steps: a slow one or a warm-up would widen the noise until nothing counts.
 */
static int sample_steps(const mtprof_explain *explain, mtprof__sample *out)
{
    double squares = 0;
    *out = (mtprof__sample){0};
    for (uint32_t i = 0; i < mtprof_explain_step_count(explain); i++) {
        mtprof_explain_step step = {.struct_size = sizeof step};
        MT_TRY(mtprof_explain_get_step(explain, i, &step));
        if (step.step >= 0 && step.state == MTPROF_STEP_NORMAL) {
            double ns = (double)mtb_sub_sat(step.end_ns, step.start_ns);
            double off = ns - out->mean;
            out->n += 1;
            out->mean += off / out->n;
            squares += off * (ns - out->mean);
        }
    }
    out->deviation = out->n >= 2 ? sqrt(squares / (out->n - 1)) : 0;
    return MTPROF_OK;
}

static int write_steps(mtprof__report *r, const old_trace *old)
{
    mtb_writer *writer = r->job->writer;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    mtprof__sample before = {0};
    mtprof__sample now = {0};
    MT_TRY(mtprof_explain_get_facts(old->explain, &facts));
    MT_TRY(sample_steps(old->explain, &before));
    MT_TRY(sample_steps(r->explain, &now));
    mtb_write_format(writer, "\"median\": %lld, \"wall\": %lld, \"steps\": [",
                     (long long)facts.median_step_ns, (long long)facts.wall_ns);
    const double numbers[] = {before.n, before.mean, now.n, now.mean,
                              mtprof__noise_bound(before, now, 0.01)};
    for (size_t i = 0; i < MT_COUNT(numbers); i++) {
        mtb_write_text(writer, i > 0 ? ", " : "");
        mtb_write_double(writer, numbers[i]);
    }
    mtb_write_literal(writer, "],\n\"parts\": [");
    for (uint32_t part = 0; part < MTPROF_PART_COUNT; part++) {
        mtb_write_format(writer, "%s%lld", part > 0 ? ", " : "",
                         (long long)mtprof_explain_part_ns(old->explain, MTPROF_EXPLAIN_ALL, part));
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}

/* ---- findings -------------------------------------------------------------------------------- */

static int has_finding(const mtprof_explain *explain, uint32_t cause, bool *there)
{
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    MT_TRY(mtprof_explain_get_facts(explain, &facts));
    *there = false;
    for (uint32_t i = 0; i < facts.findings && !*there; i++) {
        mtprof_explain_finding f = {.struct_size = sizeof f};
        MT_TRY(mtprof_explain_get_finding(explain, i, &f));
        *there = f.cause == cause;
    }
    return MTPROF_OK;
}

/* What `one` finds and `other` does not: [place, id, title, gain, share]. */
static int write_only(mtprof__report *r, const char *name, const mtprof_explain *one,
                      const mtprof_explain *other)
{
    mtb_writer *writer = r->job->writer;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    bool first = true;
    MT_TRY(mtprof_explain_get_facts(one, &facts));
    mtb_write_format(writer, "\"%s\": [", name);
    for (uint32_t i = 0; i < facts.findings; i++) {
        mtprof_explain_finding f = {.struct_size = sizeof f};
        bool there = false;
        MT_TRY(mtprof_explain_get_finding(one, i, &f));
        MT_TRY(has_finding(other, f.cause, &there));
        if (!there) {
            mtb_write_format(writer, "%s[%u, \"%s\", ", first ? "" : ", ", i, f.id);
            mtprof__write_script_string(writer, f.title.bytes, f.title.length);
            mtb_write_format(writer, ", %lld, ", (long long)f.gain_ns);
            mtb_write_double(writer, f.share);
            mtb_write_literal(writer, "]");
            first = false;
        }
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_side(mtb_writer *writer, const mtprof_compare_side *side)
{
    if (side->there == 0) {
        mtb_write_literal(writer, "null, null, null");
        return;
    }
    mtb_write_double(writer, side->ns);
    mtb_write_literal(writer, ", ");
    mtb_write_double(writer, side->calls);
    mtb_write_literal(writer, ", ");
    mtb_write_double(writer, side->memory_bytes);
}

/* [name, detail, device, verdict, A's time, calls and bytes, B's, noise] */
static void write_row(mtprof__report *r, const mtprof_compare_row *row)
{
    mtb_writer *writer = r->job->writer;
    mtb_write_literal(writer, "[");
    mtprof__report_name(r, row->name);
    mtb_write_literal(writer, ", ");
    mtprof__report_name(r, row->detail);
    mtb_write_format(writer, ", %u, \"%s\", ", row->on_device, mtprof_verdict_name(row->verdict));
    write_side(writer, &row->a);
    mtb_write_literal(writer, ", ");
    write_side(writer, &row->b);
    mtb_write_literal(writer, ", ");
    mtb_write_double(writer, row->noise_ns);
    mtb_write_literal(writer, "]");
}

static bool has_changed(const mtprof_compare_row *row)
{
    return row->verdict != MTPROF_VERDICT_SAME && row->verdict != MTPROF_VERDICT_UNKNOWN;
}

/* Rows that changed come before those that did not, so that the limit leaves out the latter. */
static int write_rows(mtprof__report *r, const mtprof_compare *compare, uint32_t n)
{
    uint32_t kept = 0;
    for (int changed = 1; changed >= 0; changed--) {
        for (uint32_t i = 0; i < n && kept < MTPROF__REPORT_CHANGES; i++) {
            mtprof_compare_row row = {.struct_size = sizeof row};
            MT_TRY(mtprof_compare_get_row(compare, i, &row));
            if (has_changed(&row) == (changed != 0)) {
                mtb_write_text(r->job->writer, kept++ > 0 ? ",\n" : "\n");
                write_row(r, &row);
            }
        }
    }
    r->job->report.left_out += n - kept;
    return MTPROF_OK;
}

static int write_comparison(mtprof__report *r, const old_trace *old)
{
    mtb_writer *writer = r->job->writer;
    mtprof_compare_facts facts = {.struct_size = sizeof facts};
    mtprof_compare_row total = {.struct_size = sizeof total};
    MT_TRY(mtprof_compare_get_facts(old->compare, &facts));
    MT_TRY(mtprof_compare_get_total(old->compare, &total));
    mtb_write_format(writer,
                     "\"per_step\": %u, \"steps_a\": %u, \"steps_b\": %u, \"rows_seen\": %u,\n"
                     "\"counts\": {",
                     facts.per_step, facts.steps_a, facts.steps_b, facts.rows);
    for (uint32_t v = 0; v < MTPROF_VERDICT_COUNT; v++) {
        mtb_write_format(writer, "%s\"%s\": %u", v > 0 ? ", " : "", mtprof_verdict_name(v),
                         facts.counts[v]);
    }
    mtb_write_literal(writer, "},\n\"total\": ");
    write_row(r, &total);
    mtb_write_literal(writer, ",\n\"rows\": [");
    MT_TRY(write_rows(r, old->compare, facts.rows));
    mtb_write_literal(writer, "]},\n");
    return MTPROF_OK;
}

static int write_baseline(mtprof__report *r, old_trace *old)
{
    mtprof_model *before = r->job->options.baseline;
    const char *name = r->job->options.baseline_name;
    name = name != NULL ? name : "the baseline";
    MT_TRY(mtprof_explain_new(before, NULL, &old->explain));
    MT_TRY(mtprof_compare_new(before, r->job->model, NULL, &old->compare));
    mtb_write_literal(r->job->writer, "\"baseline\": {\"name\": ");
    mtprof__report_name(r, (mtprof_text){name, strlen(name)});
    mtb_write_literal(r->job->writer, ",\n");
    MT_TRY(write_steps(r, old));
    MT_TRY(write_only(r, "new", r->explain, old->explain));
    MT_TRY(write_only(r, "gone", old->explain, r->explain));
    return write_comparison(r, old);
}

int mtprof__report_compare(mtprof__report *r)
{
    old_trace old = {0};
    if (r->job->options.baseline == NULL) {
        mtb_write_literal(r->job->writer, "\"baseline\": null,\n");
        return MTPROF_OK;
    }
    int status = write_baseline(r, &old);
    mtprof_compare_free(old.compare);
    mtprof_explain_free(old.explain);
    return status;
}
