/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two traces, see diff_rows.h.
 */
#include "cli/commands/diff_rows.h"

#include "cli/steps.h"
#include "cli/student.h"
#include "cli/term.h"
#include "cli/trace_file.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_verdict_name(cli_verdict verdict)
{
    static const char *const names[] = {"same", "slower", "faster", "new", "gone", "unknown"};
    static_assert(sizeof names / sizeof *names == CLI_VERDICT_COUNT, "a name for each");
    return names[verdict];
}

/* ---- keys: what makes a row of A and one of B the same --------------------------------------- */

static void put_text(FILE *out, const char *label, mtprof_text text)
{
    if (text.length > 0) {
        (void)fprintf(out, "%s", label);
        (void)fwrite(text.bytes, 1, text.length, out);
    }
}

static void put_stack(FILE *out, const mtprof_model *model, const mtprof_row *row)
{
    uint32_t node = row->stack;
    mtprof_frame frame;
    for (uint32_t i = 0; i < row->stack_n && node != 0; i++) {
        if (!mtprof_model_stack(model, node, &node, &frame)) {
            break;
        }
        put_text(out, i == 0 ? " at " : " < ", frame.function);
        put_text(out, " ", frame.file);
        (void)fprintf(out, ":%llu", (unsigned long long)frame.line);
    }
}

/* What is grouped by, beyond the name, as it is shown. Threads go by name, else by number: ids
 * differ from run to run. */
static void put_detail(FILE *out, const mtprof_model *model, const mtprof_row *row)
{
    mtprof_track track;
    mtprof_device device;
    if (row->device != 0 && mtprof_model_device(model, row->device, &device)) {
        put_text(out, " on ", device.type); /* host and device may have the same name */
    }
    put_text(out, " ", row->input_shapes);
    put_text(out, ".", row->overload);
    put_text(out, " in ", row->module);
    put_stack(out, model, row);
    if (row->step != INT32_MIN) {
        (void)fprintf(out, " step %d", row->step);
    }
    if (row->track != UINT32_MAX && mtprof_model_track(model, row->track, &track)) {
        if (track.name.length > 0) {
            put_text(out, " on ", track.name);
        } else {
            (void)fprintf(out, " on #%u", track.number);
        }
    }
}

/* Detail first, as a text of its own, then name, device type and class; the row points into it. */
static bool make_key(mtprof_model *model, const mtprof_row *row, cli_diff_row *out)
{
    char *text = NULL;
    size_t size = 0;
    mtprof_device device;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL) {
        return cli_no_memory("diff");
    }
    put_detail(file, model, row);
    fputc('\0', file);
    long at = ftell(file);
    bool known = mtprof_model_device(model, row->device, &device);
    (void)fprintf(file, "%s %d ", known ? device.type.bytes : "?", row->is_user_annotation);
    (void)fwrite(row->key.bytes, 1, row->key.length, file);
    if (fclose(file) != 0 || at < 0) {
        free(text);
        return cli_no_memory("diff");
    }
    out->text = text;
    out->detail = text[0] == ' ' ? text + 1 : text;
    out->key = text + at;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const cli_diff_row *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : strcmp(x->detail, y->detail);
}

/* ---- one side -------------------------------------------------------------------------------- */

static bool fill_side(const cli_diff *d, mtprof_averages *averages, uint32_t index,
                      const mtprof_row *row, cli_side *out)
{
    mtprof_row_noise noise = {.struct_size = sizeof noise};
    double time = (double)(row->device != 0 ? row->self_device_ns : row->self_cpu_ns);
    double memory = (double)row->self_cpu_memory + (double)row->self_device_memory;
    double calls = row->count > 0 ? (double)row->count : 1;
    *out = (cli_side){.there = true,
                      .ns = time / calls,
                      .whole_ns = time,
                      .calls = calls,
                      .memory = memory / calls};
    if (!d->per_step) {
        return true;
    }
    if (!cli_ok("diff", mtprof_averages_get_noise(averages, index, &noise))) {
        return false;
    }
    out->steps = noise.steps;
    out->ns = time;
    out->memory = memory;
    if (noise.steps > 0) {
        out->ns = noise.mean_ns;
        out->deviation_ns = noise.deviation_ns;
        out->calls = noise.mean_calls;
        out->memory /= noise.steps;
    }
    out->whole_ns = out->ns;
    return true;
}

static bool load_side(const cli_diff *d, mtprof_averages *averages, cli_diff_row **rows,
                      size_t *n_rows)
{
    mtprof_model *model = mtprof_averages_model(averages);
    uint32_t n = mtprof_averages_count(averages);
    *rows = calloc((size_t)n + 1, sizeof **rows);
    if (*rows == NULL) {
        return cli_no_memory("diff");
    }
    *n_rows = n;
    for (uint32_t i = 0; i < n; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        cli_diff_row *r = &(*rows)[i];
        if (mtprof_averages_get_row(averages, i, &row) != MTPROF_OK || !make_key(model, &row, r) ||
            !fill_side(d, averages, i, &row, &r->a)) {
            return false;
        }
        r->name = row.key;
        r->on_device = row.device != 0;
    }
    qsort(*rows, n, sizeof **rows, compare_keys);
    return true;
}

/* ---- the whole: per step, over all events of the host ---------------------------------------- */

static bool fill_total(mtprof_model *model, const char *path, const cli_diff_options *o,
                       cli_side *out)
{
    cli_columns c;
    cli_steps steps;
    if (!cli_load_columns(model, path, &c)) {
        return false;
    }
    if (!cli_sum_steps(&c, o->steps.given ? (int32_t)o->steps.first : -1,
                       o->steps.given ? (int32_t)o->steps.last : INT32_MAX, &steps)) {
        return cli_no_memory("diff");
    }
    double n = (double)steps.n, ns = 0, events = 0, squares = 0;
    for (size_t i = 0; i < steps.n; i++) {
        ns += steps.steps[i].self_ns;
        events += (double)steps.steps[i].events;
    }
    for (size_t i = 0; i < steps.n; i++) {
        double off = steps.steps[i].self_ns - ns / n;
        squares += off * off;
    }
    *out = (cli_side){.there = true, .steps = (uint32_t)steps.n, .ns = ns, .calls = events};
    if (steps.n >= 2) {
        out->ns = ns / n;
        out->calls = events / n;
        out->deviation_ns = sqrt(squares / (n - 1));
    }
    out->whole_ns = out->ns;
    free(steps.steps);
    return true;
}

/* Memory per step. */
static bool finish_total(mtprof_averages *averages, bool per_step, cli_side *side)
{
    mtprof_row row = {.struct_size = sizeof row};
    if (mtprof_averages_count(averages) == 0 || !per_step) {
        return true;
    }
    if (!cli_ok("diff", mtprof_averages_get_total(averages, &row))) {
        return false;
    }
    side->memory = ((double)row.self_cpu_memory + (double)row.self_device_memory) / side->steps;
    side->whole_ns = side->ns;
    return true;
}

/* Without steps: A's calls, with A's mean times and with B's (DR3). */
static void add_up_total(cli_diff *d)
{
    cli_side a = {.there = true}, b = {.there = true};
    for (size_t i = 0; i < d->n_rows; i++) {
        const cli_diff_row *r = &d->rows[i];
        double calls_b = r->a.there ? r->a.calls : r->b.calls;
        if (r->a.there) {
            a.ns += r->on_device ? 0 : r->a.whole_ns;
            a.memory += r->a.memory * r->a.calls;
            a.calls += r->a.calls;
        }
        if (r->b.there) {
            b.ns += r->on_device ? 0 : r->b.ns * calls_b;
            b.memory += r->b.memory * calls_b;
            b.calls += calls_b;
        }
    }
    a.whole_ns = a.ns;
    b.whole_ns = b.ns;
    d->total.a = a;
    d->total.b = b;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool is_candidate(const cli_diff *d, const cli_diff_row *r, const cli_diff_options *o)
{
    return r->a.there && r->b.there && fmax(r->a.whole_ns, r->b.whole_ns) >= o->min_ns &&
           (!d->per_step || (r->a.steps >= 2 && r->b.steps >= 2));
}

static cli_sample sample_of(const cli_side *side)
{
    return (cli_sample){side->steps, side->ns, side->deviation_ns};
}

static void judge(const cli_diff *d, cli_diff_row *r, const cli_diff_options *o)
{
    double change = r->b.ns - r->a.ns;
    r->noise_ns = NAN;
    if (!r->a.there || !r->b.there) {
        r->verdict = r->a.there ? CLI_GONE : CLI_NEW;
        return;
    }
    if (d->per_step) {
        double alpha = o->alpha / (double)(d->judged > 0 ? d->judged : 1);
        r->noise_ns = cli_noise_bound(sample_of(&r->a), sample_of(&r->b), alpha);
    }
    if (!is_candidate(d, r, o)) {
        bool small = fmax(r->a.whole_ns, r->b.whole_ns) < o->min_ns;
        r->verdict = small ? CLI_SAME : CLI_UNKNOWN;
        return;
    }
    double bound = fmax(d->per_step ? r->noise_ns : 0, o->threshold * r->a.ns);
    r->verdict = fabs(change) <= bound ? CLI_SAME : change > 0 ? CLI_SLOWER : CLI_FASTER;
}

static void judge_all(cli_diff *d, const cli_diff_options *o)
{
    d->judged = d->total.key != NULL && is_candidate(d, &d->total, o);
    for (size_t i = 0; i < d->n_rows; i++) {
        d->judged += is_candidate(d, &d->rows[i], o);
    }
    for (size_t i = 0; i < d->n_rows; i++) {
        judge(d, &d->rows[i], o);
        d->counts[d->rows[i].verdict]++;
    }
    if (d->total.key != NULL) {
        judge(d, &d->total, o);
    }
}

/* ---- putting both together ------------------------------------------------------------------- */

static bool merge(cli_diff *d)
{
    size_t i = 0, j = 0;
    d->rows = calloc(d->n_rows_a + d->n_rows_b + 1, sizeof *d->rows);
    if (d->rows == NULL) {
        return cli_no_memory("diff");
    }
    while (i < d->n_rows_a || j < d->n_rows_b) {
        int order = i == d->n_rows_a   ? 1
                    : j == d->n_rows_b ? -1
                                       : compare_keys(&d->rows_a[i], &d->rows_b[j]);
        cli_diff_row *r = &d->rows[d->n_rows++];
        *r = order <= 0 ? d->rows_a[i] : d->rows_b[j];
        if (order > 0) {
            memset(&r->a, 0, sizeof r->a);
        }
        if (order >= 0) {
            r->b = d->rows_b[j++].a;
        }
        i += order <= 0;
    }
    return true;
}

static bool make_averages(mtprof_model *model, const char *path, const cli_diff_options *o,
                          mtprof_averages **out)
{
    mtprof_averages_options options = cli_averages_options(&o->groups, o->name, &o->steps);
    return cli_ok(path, mtprof_averages_new(model, &options, out));
}

bool cli_diff_make(mtprof_model *a, const char *path_a, mtprof_model *b, const char *path_b,
                   const cli_diff_options *options, cli_diff *out)
{
    memset(out, 0, sizeof *out);
    out->total = (cli_diff_row){.name = cli_text("all events"), .detail = ""};
    if (!make_averages(a, path_a, options, &out->averages_a) ||
        !make_averages(b, path_b, options, &out->averages_b) ||
        !fill_total(a, path_a, options, &out->total.a) ||
        !fill_total(b, path_b, options, &out->total.b)) {
        return false;
    }
    out->steps_a = out->total.a.steps;
    out->steps_b = out->total.b.steps;
    out->per_step = out->steps_a >= 2 && out->steps_b >= 2;
    out->total.key = options->name == NULL ? "all events" : NULL;
    if (!finish_total(out->averages_a, out->per_step, &out->total.a) ||
        !finish_total(out->averages_b, out->per_step, &out->total.b) ||
        !load_side(out, out->averages_a, &out->rows_a, &out->n_rows_a) ||
        !load_side(out, out->averages_b, &out->rows_b, &out->n_rows_b) || !merge(out)) {
        return false;
    }
    if (!out->per_step) {
        add_up_total(out);
    }
    judge_all(out, options);
    return true;
}

bool cli_diff_slower(const cli_diff *diff)
{
    return diff->counts[CLI_SLOWER] > 0 ||
           (diff->total.key != NULL && diff->total.verdict == CLI_SLOWER);
}

void cli_diff_free(cli_diff *diff)
{
    for (size_t i = 0; i < diff->n_rows_a; i++) {
        free(diff->rows_a[i].text);
    }
    for (size_t i = 0; i < diff->n_rows_b; i++) {
        free(diff->rows_b[i].text);
    }
    free(diff->rows_a);
    free(diff->rows_b);
    free(diff->rows);
    mtprof_averages_free(diff->averages_a);
    mtprof_averages_free(diff->averages_b);
}
