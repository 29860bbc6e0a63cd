/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof diff: what changed between two traces, row by row (compare.h has the rules).
 */
#include "cli/command.h"
#include "cli/groups.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/compare.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_ROWS = 30,
    LEAST_NAME = 16
};

static const char *const orders[] = {"change", "ratio", "time", "calls", "memory", "name", NULL};

typedef struct diff_settings {
    cli_common common;
    double threshold; /* percent; 0: the default, see NO_THRESHOLD */
    double alpha;
    int sort;
    int64_t limit, min_ns;
    cli_groups groups;
    const char *name;
    cli_range steps;
} diff_settings;

#define AT(member) offsetof(diff_settings, member)

/* Zero is a meaningful threshold, so a negative one means "not given". */
static bool parse_percent(void *value, const char *text, cli_refusal *why)
{
    double percent;
    if (!cli_parse_real(text, &percent)) {
        (void)snprintf(why->text, sizeof why->text, "expected a percentage like 5 or 2.5");
        return false;
    }
    *(double *)value = percent == 0 ? -1 : percent;
    return true;
}

static const cli_option options[] = {
    {.name = "threshold",
     .letter = 't',
     .type = CLI_CUSTOM,
     .value = "PERCENT",
     .parse = parse_percent,
     .help = "changes up to this count as the same (default 5)",
     .offset = AT(threshold)},
    {.name = "alpha",
     .type = CLI_CUSTOM,
     .value = "PERCENT",
     .parse = parse_percent,
     .help = "probability of calling noise a change, over all rows together (default 1)",
     .offset = AT(alpha)},
    {.name = "min-time",
     .type = CLI_DURATION,
     .value = "TIME",
     .help = "do not judge rows that take less than this in both traces",
     .offset = AT(min_ns)},
    {.name = "group",
     .letter = 'g',
     .type = CLI_CUSTOM,
     .value = "LIST",
     .choices = cli_group_names,
     .parse = cli_parse_groups,
     .help = "also tell rows apart by shapes, stack:N, overload, module, step, thread, capture",
     .offset = AT(groups)},
    {.name = "name",
     .type = CLI_TEXT,
     .value = "GLOB",
     .help = "only events whose name matches",
     .offset = AT(name)},
    {.name = "step",
     .type = CLI_SPAN,
     .value = "A-B",
     .help = "only events that began in these steps: leaves out a warm-up",
     .offset = AT(steps)},
    {.name = "sort",
     .letter = 's',
     .type = CLI_CHOICE,
     .value = "KEY",
     .choices = orders,
     .help = "change (default), ratio, time, calls, memory or name",
     .offset = AT(sort)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N rows, or all (default 30; JSON: all)",
     .offset = AT(limit)},
};

/* ---- the rows -------------------------------------------------------------------------------- */

typedef struct diff {
    mtprof_compare *compare;
    mtprof_compare_facts facts;
    mtprof_compare_row total;
} diff;

static mtprof_compare_row row_at(const diff *d, uint32_t index)
{
    mtprof_compare_row row = {.struct_size = sizeof row};
    (void)mtprof_compare_get_row(d->compare, index, &row);
    return row;
}

static double change_ratio(const mtprof_compare_row *r)
{
    return r->a.ns > 0 ? r->b.ns / r->a.ns - 1 : (double)NAN;
}

/* ---- a table --------------------------------------------------------------------------------- */

typedef struct layout {
    size_t name_width;
    bool calls, memory;
    bool narrow; /* memory differs too, and there was no room to say so */
} layout;

static bool same_number(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Columns in which nothing differs are left out. */
static layout plan(const diff *d)
{
    layout l = {0};
    size_t name = 0, fixed = 2 * 10 + 9 + 10 + 8;
    for (uint32_t i = 0; i < d->facts.rows; i++) {
        mtprof_compare_row r = row_at(d, i);
        bool both = r.a.there && r.b.there;
        l.calls |= both && !same_number(r.a.calls, r.b.calls);
        l.memory |= !same_number(r.a.memory_bytes, r.b.memory_bytes);
        size_t width = cli_two_width(r.name, r.detail);
        name = width > name ? width : name;
    }
    size_t width = cli_term_width();
    fixed += l.calls ? 13 : 0;
    l.narrow = l.memory && fixed + 12 + LEAST_NAME > width;
    l.memory = l.memory && !l.narrow;
    fixed += l.memory ? 12 : 0;
    l.name_width = cli_fit_column(name, LEAST_NAME, fixed, width);
    return l;
}

static cli_quantity plain_number(double value)
{
    cli_quantity q;
    (void)snprintf(q.text, sizeof q.text, "%.*f", same_number(value, round(value)) ? 0 : 1, value);
    return q;
}

static void print_calls(const mtprof_compare_row *r)
{
    char text[80];
    cli_quantity a = plain_number(r->a.calls), b = plain_number(r->b.calls);
    bool same = strcmp(a.text, b.text) == 0 || !r->a.there;
    if (same || !r->b.there) {
        (void)snprintf(text, sizeof text, "%s", r->b.there ? b.text : a.text);
    } else {
        (void)snprintf(text, sizeof text, "%s>%s", a.text, b.text);
    }
    printf(" %12s", text);
}

static enum cli_style verdict_style(uint32_t verdict)
{
    return verdict == MTPROF_VERDICT_SLOWER   ? CLI_RED
           : verdict == MTPROF_VERDICT_FASTER ? CLI_GREEN
                                              : CLI_DIM;
}

static void print_row(const mtprof_compare_row *r, const layout *l)
{
    cli_quantity change = cli_change(change_ratio(r)), noise = {"-"};
    double ratio = r->a.ns > 0 ? r->noise_ns / r->a.ns : (double)NAN;
    if (!r->a.there || !r->b.there || r->a.ns <= 0) {
        (void)snprintf(change.text, sizeof change.text, "-");
    }
    if (!isnan(ratio)) {
        (void)snprintf(noise.text, sizeof noise.text, "%.*f %%", ratio < 9.995 ? 1 : 0,
                       fmin(100 * ratio, 99999));
    }
    cli_print_two(r->name, r->detail, l->name_width);
    printf(" %9s", r->a.there ? cli_duration(r->a.ns).text : "-");
    printf(" %9s", r->b.there ? cli_duration(r->b.ns).text : "-");
    printf(" %9s %8s", change.text, noise.text);
    if (l->calls) {
        print_calls(r);
    }
    if (l->memory) {
        printf(" %11s", cli_signed_bytes(r->b.memory_bytes - r->a.memory_bytes).text);
    }
    if (r->verdict == MTPROF_VERDICT_SAME || r->verdict == MTPROF_VERDICT_UNKNOWN) {
        fputs(r->verdict == MTPROF_VERDICT_SAME ? "\n" : "  ?\n", stdout);
        return;
    }
    printf("  %s%s%s\n", cli_style(verdict_style(r->verdict)), mtprof_verdict_name(r->verdict),
           cli_style(CLI_PLAIN));
}

static void print_rule(const layout *l)
{
    size_t width = l->name_width + 2 * 10 + 19 + (l->calls ? 13 : 0) + (l->memory ? 12 : 0) + 8;
    fputs(cli_style(CLI_DIM), stdout);
    for (size_t i = 0; i < width; i++) {
        putchar('-');
    }
    printf("%s\n", cli_style(CLI_PLAIN));
}

static void print_head(const diff *d, const char *a, const char *b, const layout *l)
{
    printf("A %s\nB %s\n", a, b);
    if (d->facts.per_step) {
        printf("Self time per step (%u steps in A, %u in B); noise is what chance explains.\n\n",
               d->facts.steps_a, d->facts.steps_b);
    } else {
        printf("Self time per call; the last line: A's calls together.\nNoise is unknown: %s.\n\n",
               d->facts.steps_a < 2 && d->facts.steps_b < 2 ? "both have fewer than two steps"
               : d->facts.steps_a < 2                       ? "A has fewer than two steps"
                                                            : "B has fewer than two steps");
    }
    printf("%s%-*s %9s %9s %9s %8s%s%s%s\n", cli_style(CLI_BOLD), (int)l->name_width, "Name", "A",
           "B", "Change", "Noise", l->calls ? "        Calls" : "", l->memory ? "      Memory" : "",
           cli_style(CLI_PLAIN));
    print_rule(l);
}

static void print_verdicts(const diff *d)
{
    static const uint32_t shown[] = {MTPROF_VERDICT_SLOWER, MTPROF_VERDICT_FASTER,
                                     MTPROF_VERDICT_NEW, MTPROF_VERDICT_GONE};
    const char *joint = "";
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (d->facts.counts[shown[i]] > 0) {
            printf("%s%s%u %s%s", joint, cli_style(verdict_style(shown[i])),
                   d->facts.counts[shown[i]], mtprof_verdict_name(shown[i]), cli_style(CLI_PLAIN));
            joint = ", ";
        }
    }
    if (*joint == '\0') {
        fputs("no row changed beyond noise and threshold", stdout);
    }
    if (d->facts.has_total &&
        (d->total.verdict == MTPROF_VERDICT_SLOWER || d->total.verdict == MTPROF_VERDICT_FASTER)) {
        printf("; together %s%s%s", cli_style(verdict_style(d->total.verdict)),
               mtprof_verdict_name(d->total.verdict), cli_style(CLI_PLAIN));
    }
    puts(d->facts.counts[MTPROF_VERDICT_UNKNOWN] > 0 ? " (? not judged: in too few steps)" : "");
}

static void print_table(const diff_settings *s, const diff *d, const char *a, const char *b)
{
    layout l = plan(d);
    size_t most = s->limit < 0 ? SIZE_MAX : s->limit > 0 ? (size_t)s->limit : DEFAULT_ROWS;
    if (!s->common.quiet) {
        print_head(d, a, b, &l);
    }
    for (uint32_t i = 0; i < d->facts.rows && i < most; i++) {
        mtprof_compare_row r = row_at(d, i);
        print_row(&r, &l);
    }
    if (s->common.quiet) {
        return;
    }
    print_rule(&l);
    if (d->facts.has_total) {
        print_row(&d->total, &l);
    }
    putchar('\n');
    cli_print_more(d->facts.rows > most ? d->facts.rows - most : 0, "row");
    if (l.narrow) {
        printf("%smemory differs as well; a terminal of 100 columns shows it%s\n",
               cli_style(CLI_DIM), cli_style(CLI_PLAIN));
    }
    print_verdicts(d);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_side(const char *key, const mtprof_compare_side *side)
{
    if (!side->there) {
        cli_json_null(key);
        return;
    }
    cli_json_object(key);
    cli_json_real("time_ns", side->ns);
    cli_json_real("calls", side->calls);
    cli_json_real("memory_bytes", side->memory_bytes);
    cli_json_uint("steps", side->steps);
    cli_json_real("deviation_ns", side->deviation_ns);
    cli_json_end_object();
}

static void json_row(const char *key, const mtprof_compare_row *r)
{
    cli_json_object(key);
    cli_json_text("name", r->name);
    cli_json_text("group", r->detail);
    cli_json_string("clock", r->on_device ? "device" : "host");
    json_side("a", &r->a);
    json_side("b", &r->b);
    cli_json_real("change_ns", r->b.ns - r->a.ns);
    cli_json_real("change_percent", 100 * change_ratio(r));
    cli_json_real("noise_ns", r->noise_ns);
    cli_json_string("verdict", mtprof_verdict_name(r->verdict));
    cli_json_end_object();
}

static void print_json(const diff_settings *s, const diff *d, const char *a, const char *b)
{
    cli_json_object(NULL);
    cli_json_string("a", a);
    cli_json_string("b", b);
    cli_json_bool("per_step", d->facts.per_step);
    cli_json_bool("per_call", !d->facts.per_step);
    cli_json_uint("steps_a", d->facts.steps_a);
    cli_json_uint("steps_b", d->facts.steps_b);
    cli_json_uint("judged", d->facts.judged);
    cli_json_bool("regression", d->facts.slower);
    cli_json_object("counts");
    for (int v = 0; v < MTPROF_VERDICT_COUNT; v++) {
        cli_json_uint(mtprof_verdict_name((uint32_t)v), d->facts.counts[v]);
    }
    cli_json_end_object();
    cli_json_array("rows");
    for (uint32_t i = 0; i < d->facts.rows && (s->limit <= 0 || i < (size_t)s->limit); i++) {
        mtprof_compare_row r = row_at(d, i);
        json_row(NULL, &r);
    }
    cli_json_end_array();
    if (d->facts.has_total) {
        json_row("total", &d->total);
    }
    cli_json_end_object();
}

/* ---- the command ----------------------------------------------------------------------------- */

static double percent_or(double given, double otherwise)
{
    return (given == 0 ? otherwise : given < 0 ? 0 : given) / 100;
}

static mtprof_status make_diff(const diff_settings *s, mtprof_model *a, mtprof_model *b, diff *d)
{
    mtprof_averages_options rows = cli_averages_options(&s->groups, s->name, &s->steps);
    const mtprof_compare_options o = {
        .struct_size = sizeof o,
        .rows = &rows,
        .threshold_given = 1,
        .threshold = percent_or(s->threshold, 5),
        .alpha = fmin(fmax(percent_or(s->alpha, 1), 1e-12), 0.5),
        .min_ns = (double)s->min_ns,
    };
    *d = (diff){.facts = {.struct_size = sizeof d->facts},
                .total = {.struct_size = sizeof d->total}};
    mtprof_status status = mtprof_compare_new(a, b, &o, &d->compare);
    if (status == MTPROF_OK) {
        status = mtprof_compare_sort(d->compare, orders[s->sort]);
    }
    if (status == MTPROF_OK) {
        status = mtprof_compare_get_facts(d->compare, &d->facts);
    }
    if (status == MTPROF_OK && d->facts.has_total) {
        status = mtprof_compare_get_total(d->compare, &d->total);
    }
    return status;
}

static int compare(const cli_call *call, mtprof_model *a, mtprof_model *b)
{
    const diff_settings *s = call->settings;
    diff d;
    int code = CLI_FAILED;
    mtprof_status status = make_diff(s, a, b, &d);
    cli_progress_end();
    if (status != MTPROF_OK) {
        code = cli_library_error("diff", status);
    } else if (s->common.json) {
        print_json(s, &d, call->operands[0], call->operands[1]);
        code = d.facts.slower ? CLI_FOUND : CLI_OK;
    } else {
        print_table(s, &d, call->operands[0], call->operands[1]);
        code = d.facts.slower ? CLI_FOUND : CLI_OK;
    }
    mtprof_compare_free(d.compare);
    return code;
}

static int run(const cli_call *call)
{
    mtprof_model *a = cli_open_trace(call, call->operands[0]);
    mtprof_model *b = a != NULL ? cli_open_trace(call, call->operands[1]) : NULL;
    int code = b != NULL ? compare(call, a, b) : CLI_FAILED;
    code = cli_close_trace(a, call->operands[0], code);
    return cli_close_trace(b, call->operands[1], code);
}

const cli_command cli_cmd_diff = {
    .name = "diff",
    .summary = "What got slower or faster from one trace to another",
    .operands = "A B",
    .details =
        "Compares self time, calls and memory of each row. Where both traces have steps, times are "
        "means per step, and a change counts only if it is larger than the threshold and than what "
        "the variation between steps explains. Without steps times are means per call, and the "
        "threshold alone decides.\n"
        "\n"
        "Exit code 3: something got slower, or everything together did. For CI: record the same "
        "steps twice, and let the build fail on 3.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 2,
    .most_operands = 2,
    .settings_bytes = sizeof(diff_settings),
    .reads_trace = true,
    .run = run,
};
