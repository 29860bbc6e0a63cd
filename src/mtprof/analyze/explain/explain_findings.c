/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining, last stage: which parts and facts are findings, and what shows them.
 *
 * One cause is one finding. Parts are disjoint, so findings made from different parts are, too.
 * IMBALANCE and SMALL_KERNELS both come from COMPUTE and share it. Where the host cannot keep up
 * (LAUNCH_BOUND, or PYTHON_OVERHEAD without a device), short kernels are why: they are evidence
 * there, and no finding of their own.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/analyze/explain/explain_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_LEAST = 100, /* kernels */
    OPS_LEAST = 20     /* for time between ops to mean anything */
};

/* Those whose gain is no time come after those that have one. Nothing comes before a failure; then
 * what makes all other numbers doubtful. */
#define RANK_REFUSED  3.0
#define RANK_DOUBTFUL 2.0
#define RANK_GROWTH   3e-6
#define RANK_PEAK     2e-6
#define RANK_PROFILER 1e-6

static bool passes(const mtprof_explain *e, enum mtprof_cause cause, int64_t gain_ns)
{
    return e->wall_ns >= MTPROF__EXPLAIN_LEAST_NS && gain_ns > 0 &&
           (double)gain_ns >= mtprof__cause_shares[cause] * (double)e->wall_ns;
}

static int64_t per_step(const mtprof_explain *e, int64_t ns)
{
    return e->n_steps > 0 ? ns / (int64_t)e->n_steps : ns;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- parts that are findings ----------------------------------------------------------------- */

static const mtprof_explain_evidence fact = {.kind = MTPROF_EVIDENCE_FACT};

/* In how many steps the part is more than a hundredth. */
static int add_spread(mtprof_explain *e, enum mtprof_part part)
{
    size_t n = 0;
    if (!e->has_steps || e->n_steps < 2) {
        return MTPROF_OK;
    }
    for (size_t i = 0; i < e->n_steps; i++) {
        n += e->steps[i].parts[part] > (e->steps[i].end_ns - e->steps[i].start_ns) / 100;
    }
    return mtprof__evidence_add(e, fact, "in %zu of %zu steps, %s a step", n, e->n_steps,
                                mtprof__duration((double)per_step(e, e->parts[part])).text);
}

static int add_part(mtprof_explain *e, enum mtprof_cause cause, enum mtprof_part part)
{
    if (!passes(e, cause, e->parts[part])) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__finding_add(e, cause, e->parts[part], MTPROF_CONFIDENCE_HIGH));
    MT_TRY(mtprof__evidence_charges(e, part, 3));
    return add_spread(e, part);
}

static bool many_are_short(const mtprof__short_work *s)
{
    return s->n_short >= SHORT_LEAST && s->n_short * 2 >= s->n;
}

static int add_short(mtprof_explain *e)
{
    const mtprof__short_work *s = &e->short_work;
    mtprof_explain_evidence item = {
        .kind = MTPROF_EVIDENCE_OP, .event = s->example, .count = s->n_short, .ns = s->short_ns};
    return mtprof__evidence_add(e, item,
                                "%llu of %llu %s take less than %s, %s on average; for example %s",
                                (unsigned long long)s->n_short, (unsigned long long)s->n,
                                e->has_device ? "kernels" : "ops", e->has_device ? "10 us" : "5 us",
                                mtprof__duration((double)s->short_ns / (double)s->n_short).text,
                                mtprof__shown_name(e, s->example).text);
}

static int add_launch_bound(mtprof_explain *e, bool *is_made)
{
    size_t before = e->n_findings;
    MT_TRY(add_part(e, MTPROF_CAUSE_LAUNCH_BOUND, MTPROF_PART_LAUNCH));
    *is_made = e->n_findings > before;
    if (*is_made && many_are_short(&e->short_work)) {
        MT_TRY(add_short(e));
    }
    return MTPROF_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static int add_pageable(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    uint64_t n = 0;
    int64_t ns = 0;
    double bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->kind[i] == MTPROF_EVENT_KIND_COPY &&
            mtprof__pattern_matches("*Pageable*", mtprof_model_name(e->model, c->name[i]))) {
            n++;
            ns = mtb_add_sat(ns, c->end_ns[i] - c->start_ns[i]);
            bytes += c->bytes != NULL ? (double)c->bytes[i] : 0;
        }
    }
    mtprof_explain_evidence item = fact;
    item.count = n;
    item.ns = ns;
    item.bytes = (int64_t)(bytes < 9e18 ? bytes : 9e18);
    return n == 0
               ? MTPROF_OK
               : mtprof__evidence_add(e, item,
                                      "%llu cop%s between the device and memory that is not "
                                      "pinned: %s, %s",
                                      (unsigned long long)n, n == 1 ? "y" : "ies",
                                      mtprof__duration((double)ns).text, mtprof__size(bytes).text);
}

static int add_copies(mtprof_explain *e)
{
    size_t before = e->n_findings;
    MT_TRY(add_part(e, MTPROF_CAUSE_COPY, MTPROF_PART_COPY));
    if (e->n_findings > before) {
        e->findings[before].of.confidence = MTPROF_CONFIDENCE_MEDIUM; /* some have to be */
        MT_TRY(add_pageable(e));
    }
    return MTPROF_OK;
}

/* ---- host code between ops ------------------------------------------------------------------- */

/* The functions, or where there are none the scopes, of the main thread with most self time. */
static int add_host_code(mtprof_explain *e, uint32_t most)
{
    const mtprof__explain_columns *c = &e->columns;
    uint8_t kind = e->n_functions > 0 ? MTPROF_EVENT_KIND_FUNCTION : MTPROF_EVENT_KIND_SCOPE;
    mtprof__charge *by_name = mtb_calloc((size_t)e->n_names + 1, sizeof *by_name);
    if (by_name == NULL) {
        return mtprof__explain_no_memory("names");
    }
    for (size_t i = 0; i < c->n; i++) {
        if (c->kind[i] == kind && c->track[i] == e->main_track && c->name[i] < e->n_names &&
            mtprof__explain_class(e, i) == MTPROF__NAME_NONE &&
            mtprof__explain_step_at(e, c->start_ns[i]) < e->n_steps) {
            mtprof__charge *charge = &by_name[c->name[i]];
            charge->ns = mtb_add_sat(charge->ns, c->self_ns[i]);
            charge->count++;
            if (charge->count == 1 || c->self_ns[i] > charge->most_ns) {
                charge->most_ns = c->self_ns[i];
                charge->event = (uint32_t)i;
            }
        }
    }
    int status = MTPROF_OK;
    for (uint32_t k = 0; status == MTPROF_OK && k < most; k++) {
        mtprof__charge *best = &by_name[0];
        for (uint32_t i = 1; i < e->n_names; i++) {
            best = by_name[i].ns > best->ns ? &by_name[i] : best;
        }
        if (best->ns < e->parts[MTPROF_PART_PYTHON] / 20 || best->ns == 0) {
            break;
        }
        mtprof_explain_evidence item = {
            .kind = MTPROF_EVIDENCE_OP, .event = best->event, .count = best->count, .ns = best->ns};
        status = mtprof__evidence_add(e, item, "%s: %s outside ops, %llu time%s",
                                      mtprof__shown_name(e, best->event).text,
                                      mtprof__duration((double)best->ns).text,
                                      (unsigned long long)best->count, plural(best->count));
        best->ns = 0;
    }
    mtb_free(by_name);
    return status;
}

/* The longest time between ops, and what comes after it. */
static int add_longest(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    const mtprof__span *longest = NULL;
    for (size_t i = 0; i < e->rest.n; i++) {
        const mtprof__span *span = &e->rest.items[i];
        if (longest == NULL ||
            span->end_ns - span->start_ns > longest->end_ns - longest->start_ns) {
            longest = span;
        }
    }
    for (size_t i = 0; longest != NULL && i < c->n; i++) {
        if (c->start_ns[i] >= longest->end_ns && c->track[i] == e->main_track &&
            (c->kind[i] == MTPROF_EVENT_KIND_OP || c->kind[i] == MTPROF_EVENT_KIND_RUNTIME)) {
            mtprof_explain_evidence item = {.kind = MTPROF_EVIDENCE_EVENT,
                                            .event = (uint32_t)i,
                                            .ns = longest->end_ns - longest->start_ns};
            return mtprof__evidence_add(e, item, "the longest break, %s, ends with %s",
                                        mtprof__duration((double)item.ns).text,
                                        mtprof__shown_name(e, (uint32_t)i).text);
        }
    }
    return MTPROF_OK;
}

static int add_python(mtprof_explain *e, bool *is_made)
{
    int64_t ns = e->parts[MTPROF_PART_PYTHON];
    *is_made = e->n_ops_seen >= OPS_LEAST && passes(e, MTPROF_CAUSE_PYTHON_OVERHEAD, ns);
    if (!*is_made) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_PYTHON_OVERHEAD, ns, MTPROF_CONFIDENCE_HIGH));
    MT_TRY(add_host_code(e, 3));
    MT_TRY(add_longest(e));
    MT_TRY(mtprof__evidence_add(e, fact, "%llu ops, %s of other code for each",
                                (unsigned long long)e->n_ops_seen,
                                mtprof__duration((double)ns / (double)e->n_ops_seen).text));
    MT_TRY(add_spread(e, MTPROF_PART_PYTHON));
    return !e->has_device && many_are_short(&e->short_work) ? add_short(e) : MTPROF_OK;
}

/* ---- what comes from COMPUTE ----------------------------------------------------------------- */

static int64_t at_most(int64_t ns, int64_t most)
{
    return ns < most ? ns : most;
}

static int add_tracks(mtprof_explain *e)
{
    const mtprof__balance *b = &e->balance;
    const uint32_t ends[] = {0, b->n - 1};
    for (size_t i = 0; i < MT_COUNT(ends); i++) {
        mtprof_track track = {.name = {"", 0}};
        (void)mtprof_model_track(e->model, b->tracks[ends[i]], &track);
        mtprof_explain_evidence item = {
            .kind = MTPROF_EVIDENCE_TRACK, .name = track.name, .ns = b->busy_ns[ends[i]]};
        MT_TRY(mtprof__evidence_add(
            e, item, "the %s of %u %s, %s %lld%s%s, is busy for %s",
            i == 0 ? "busiest" : "least busy", b->n, track.device != 0 ? "queues" : "threads",
            track.device != 0 ? "queue" : "thread", (long long)track.tid,
            track.name.length > 0 ? " " : "", mtprof__shown_text(track.name).text,
            mtprof__duration((double)b->busy_ns[ends[i]]).text));
    }
    return mtprof__evidence_add(e, fact, "they run %s at the same time",
                                mtprof__shown_text(mtprof_model_name(e->model, b->name)).text);
}

static int add_compute(mtprof_explain *e, bool short_is_said)
{
    const mtprof__short_work *s = &e->short_work;
    int64_t left = e->parts[MTPROF_PART_COMPUTE];
    int64_t lost = at_most(e->balance.lost_ns, left);
    if (passes(e, MTPROF_CAUSE_IMBALANCE, lost)) {
        MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_IMBALANCE, lost, MTPROF_CONFIDENCE_HIGH));
        MT_TRY(add_tracks(e));
        left -= lost;
    }
    double fixed = (double)s->fixed_ns * (double)s->n_short;
    int64_t gain = e->parts[MTPROF_PART_GAPS] + at_most(fixed < 9e18 ? (int64_t)fixed : left, left);
    if (short_is_said || !many_are_short(s) || !passes(e, MTPROF_CAUSE_SMALL_KERNELS, gain)) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_SMALL_KERNELS, gain, MTPROF_CONFIDENCE_MEDIUM));
    MT_TRY(add_short(e));
    MT_TRY(mtprof__evidence_add(e, fact, "each costs about %s whatever its size",
                                mtprof__duration((double)s->fixed_ns).text));
    return e->parts[MTPROF_PART_GAPS] == 0
               ? MTPROF_OK
               : mtprof__evidence_add(e, fact, "the device pauses between them for %s in all",
                                      mtprof__duration((double)e->parts[MTPROF_PART_GAPS]).text);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const char *const part_words[] = {"computing",
                                         "copying",
                                         "waiting for data",
                                         "waiting for the device",
                                         "launching work",
                                         "ops on the CPU",
                                         "host code between ops",
                                         "waiting for locks",
                                         "compiling",
                                         "breaks between kernels",
                                         "profiling",
                                         "warm-up",
                                         "slow steps"};
static_assert(MT_COUNT(part_words) == MTPROF_PART_COUNT, "words for each");

/* What each name takes more in a step than in a normal one, and an event of it there. */
static void add_up_difference(const mtprof_explain *e, size_t place, size_t n_normal, double *more,
                              uint32_t *events)
{
    const mtprof__explain_columns *c = &e->columns;
    for (size_t i = 0; i < c->n && n_normal > 0; i++) {
        size_t step = mtprof__explain_step_at(e, c->start_ns[i]);
        if (c->device[i] != 0 || c->name[i] >= e->n_names || step == e->n_steps ||
            c->kind[i] == MTPROF_EVENT_KIND_STEP) {
            continue;
        }
        if (step == place) {
            more[c->name[i]] += (double)c->self_ns[i];
            events[c->name[i]] = (uint32_t)i;
        } else if (e->steps[step].state == MTPROF_STEP_NORMAL) {
            more[c->name[i]] -= (double)c->self_ns[i] / (double)n_normal;
        }
    }
}

/* The name whose self time is most above that of a normal step. */
static int tell_difference(mtprof_explain *e, size_t place, double *more, uint32_t *events)
{
    size_t n_normal = 0;
    uint32_t best = 0;
    for (size_t i = 0; i < e->n_steps; i++) {
        n_normal += e->steps[i].state == MTPROF_STEP_NORMAL;
    }
    add_up_difference(e, place, n_normal, more, events);
    for (uint32_t i = 1; i < e->n_names; i++) {
        best = more[i] > more[best] ? i : best;
    }
    if (more[best] <= (double)e->steps[place].excess_ns / 5) {
        return MTPROF_OK;
    }
    mtprof_explain_evidence item = {
        .kind = MTPROF_EVIDENCE_EVENT, .event = events[best], .ns = (int64_t)more[best]};
    return mtprof__evidence_add(e, item, "in step %d, %s takes %s more than in others",
                                e->steps[place].number, mtprof__shown_name(e, events[best]).text,
                                mtprof__duration(more[best]).text);
}

static int add_difference(mtprof_explain *e, size_t place)
{
    double *more = mtb_calloc((size_t)e->n_names + 1, sizeof *more);
    uint32_t *events = mtb_calloc((size_t)e->n_names + 1, sizeof *events);
    int status = more != NULL && events != NULL ? tell_difference(e, place, more, events)
                                                : mtprof__explain_no_memory("names");
    mtb_free(more);
    mtb_free(events);
    return status;
}

static int add_odd_steps(mtprof_explain *e, uint8_t state)
{
    enum {
        SHOWN = 3
    };
    size_t n = 0;
    size_t worst = e->n_steps;
    for (size_t i = 0; i < e->n_steps; i++) {
        const mtprof__step *step = &e->steps[i];
        if (step->state != state) {
            continue;
        }
        worst = worst == e->n_steps || step->excess_ns > e->steps[worst].excess_ns ? i : worst;
        mtprof_explain_evidence item = {.kind = MTPROF_EVIDENCE_STEP,
                                        .event = MTPROF_NO_EVENT,
                                        .step = step->number,
                                        .ns = step->end_ns - step->start_ns};
        if (n++ < SHOWN) {
            MT_TRY(mtprof__evidence_add(
                e, item, "step %d takes %s, most take %s; %s is %s longer", step->number,
                mtprof__duration((double)item.ns).text, mtprof__duration((double)e->median_ns).text,
                part_words[step->more_part], mtprof__duration((double)step->more_ns).text));
        }
    }
    if (n > SHOWN) {
        MT_TRY(mtprof__evidence_add(e, fact, "%zu steps in all", n));
    }
    return worst < e->n_steps ? add_difference(e, worst) : MTPROF_OK;
}

static int add_steps(mtprof_explain *e)
{
    int64_t slow = e->excess_ns[MTPROF_STEP_SLOW];
    int64_t first_compiled = e->parts[MTPROF_PART_COMPILE] - e->recompiled_ns;
    int64_t warm = e->excess_ns[MTPROF_STEP_WARM_UP] + first_compiled;
    if (passes(e, MTPROF_CAUSE_SLOW_STEPS, slow)) {
        MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_SLOW_STEPS, slow, MTPROF_CONFIDENCE_HIGH));
        MT_TRY(add_odd_steps(e, MTPROF_STEP_SLOW));
    }
    if (passes(e, MTPROF_CAUSE_WARM_UP, warm)) {
        MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_WARM_UP, warm, MTPROF_CONFIDENCE_HIGH));
        MT_TRY(add_odd_steps(e, MTPROF_STEP_WARM_UP));
        if (first_compiled > 0) {
            MT_TRY(mtprof__evidence_charges(e, MTPROF_PART_COMPILE, 1));
        }
    }
    if (passes(e, MTPROF_CAUSE_RECOMPILE, e->recompiled_ns)) {
        MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_RECOMPILE, e->recompiled_ns,
                                   MTPROF_CONFIDENCE_HIGH));
        MT_TRY(mtprof__evidence_charges(e, MTPROF_PART_COMPILE, 2));
        MT_TRY(add_spread(e, MTPROF_PART_COMPILE));
    }
    return MTPROF_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int add_sites(mtprof_explain *e, const mtprof__site *sites, uint32_t n, const char *verb)
{
    for (uint32_t i = 0; i < n; i++) {
        mtprof_explain_evidence item = {.kind = MTPROF_EVIDENCE_MEMORY,
                                        .event = sites[i].event,
                                        .count = sites[i].count,
                                        .bytes = sites[i].bytes};
        mtprof__shown name = mtprof__shown_name(e, sites[i].event);
        MT_TRY(mtprof__evidence_add(
            e, item, "%s %s in %llu allocation%s of %s", mtprof__size((double)sites[i].bytes).text,
            verb, (unsigned long long)sites[i].count, plural(sites[i].count),
            sites[i].event != MTPROF_NO_EVENT ? name.text : "code outside ops"));
    }
    return MTPROF_OK;
}

static mtprof__shown device_name(const mtprof_explain *e, uint8_t device)
{
    mtprof_device of = {.type = {"CPU", 3}};
    (void)mtprof_model_device(e->model, device, &of);
    return mtprof__shown_text(of.type);
}

static int add_memory(mtprof_explain *e)
{
    const mtprof__memory_facts *m = &e->memory;
    if (m->grows) {
        MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_MEMORY_GROWTH, 0, MTPROF_CONFIDENCE_HIGH));
        e->findings[e->n_findings - 1].rank = RANK_GROWTH;
        mtprof_explain_evidence item = fact;
        item.bytes = m->last_bytes - m->first_bytes;
        MT_TRY(mtprof__evidence_add(e, item, "%s: from %s after step %d to %s after step %d",
                                    device_name(e, m->grow_device).text,
                                    mtprof__size((double)m->first_bytes).text, e->steps[1].number,
                                    mtprof__size((double)m->last_bytes).text,
                                    e->steps[e->n_steps - 1].number));
        MT_TRY(add_sites(e, m->grown, m->n_grown, "kept"));
    }
    if (!m->has_peak && m->refused == 0) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_MEMORY_PEAK, 0, MTPROF_CONFIDENCE_HIGH));
    e->findings[e->n_findings - 1].rank = m->refused > 0 ? RANK_REFUSED : RANK_PEAK;
    if (m->refused > 0) {
        mtprof_explain_evidence item = {
            .kind = MTPROF_EVIDENCE_EVENT, .event = m->refused_event, .count = m->refused};
        MT_TRY(mtprof__finding_title(e, "Memory ran out"));
        MT_TRY(mtprof__evidence_add(e, item, "%llu allocation%s refused",
                                    (unsigned long long)m->refused,
                                    m->refused == 1 ? " was" : "s were"));
    }
    if (m->has_peak) {
        mtprof_explain_evidence item = fact;
        item.bytes = m->peak_bytes;
        MT_TRY(mtprof__evidence_add(e, item, "%s: %s in use at the peak",
                                    device_name(e, m->peak_device).text,
                                    mtprof__size((double)m->peak_bytes).text));
        MT_TRY(add_sites(e, m->held, m->n_held, "held"));
    }
    return MTPROF_OK;
}

/* ---- the trace itself ------------------------------------------------------------------------ */

/* What recording took on the main thread, by the cost that the recorder measured. */
static int64_t own_cost(const mtprof_explain *e)
{
    uint64_t n = 0;
    for (size_t i = 0; i < e->columns.n && e->health.pair_cost_ps > 0; i++) {
        n += e->columns.track[i] == e->main_track && e->columns.device[i] == 0 &&
             mtprof__explain_step_at(e, e->columns.start_ns[i]) < e->n_steps;
    }
    double ns = (double)n * (double)e->health.pair_cost_ps / 1000;
    return ns < (double)e->wall_ns ? (int64_t)ns : e->wall_ns;
}

static int add_profiler(mtprof_explain *e)
{
    const mtprof_health *h = &e->health;
    int64_t said = e->parts[MTPROF_PART_PROFILER];
    int64_t own = own_cost(e);
    int64_t cost = mtb_add_sat(said, own);
    bool is_costly = passes(e, MTPROF_CAUSE_PROFILER, cost);
    bool unanswered = h->unmatched > 0 && h->unmatched * 100 >= h->launches;
    if (!is_costly && h->lost == 0 && h->problems == 0 && h->unrecorded == 0 && !unanswered) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__finding_add(e, MTPROF_CAUSE_PROFILER, 0, MTPROF_CONFIDENCE_MEDIUM));
    mtprof__finding *finding = &e->findings[e->n_findings - 1];
    bool is_doubtful = h->lost * 100 > e->columns.n || h->problems > 0 ||
                       (unanswered && h->unmatched * 10 > h->launches);
    finding->rank = is_doubtful ? RANK_DOUBTFUL : RANK_PROFILER;
    if (is_costly) {
        finding->of.share = (double)cost / (double)e->wall_ns;
        MT_TRY(mtprof__evidence_add(e, fact,
                                    "recording itself took about %s, %s of the time: short events "
                                    "look longer than they are",
                                    mtprof__duration((double)cost).text,
                                    mtprof__percent(e, (double)cost).text));
    }
    if (h->lost > 0) {
        mtprof_explain_evidence item = fact;
        item.count = h->lost;
        MT_TRY(mtprof__evidence_add(e, item, "%llu event%s lost: counts and sums are too small",
                                    (unsigned long long)h->lost, h->lost == 1 ? " was" : "s were"));
    }
    if (h->unrecorded > 0) {
        mtprof_explain_evidence item = fact;
        item.count = h->unrecorded;
        MT_TRY(
            mtprof__evidence_add(e, item,
                                 "%llu event%s left out to keep the overhead below %g %%: counts "
                                 "and sums are too small",
                                 (unsigned long long)h->unrecorded,
                                 h->unrecorded == 1 ? " was" : "s were", h->limit_ppm / 1e4));
    }
    if (h->problems > 0) {
        mtprof_explain_evidence item = fact;
        item.count = h->problems;
        MT_TRY(mtprof__evidence_add(e, item, "the file is damaged in %llu place%s",
                                    (unsigned long long)h->problems, plural(h->problems)));
    }
    if (unanswered) {
        mtprof_explain_evidence item = fact;
        item.count = h->unmatched;
        MT_TRY(mtprof__evidence_add(e, item,
                                    "%llu of %llu launches have no kernel in the trace: idle times "
                                    "of the device are too long",
                                    (unsigned long long)h->unmatched,
                                    (unsigned long long)h->launches));
    }
    return MTPROF_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int compare_findings(const void *a, const void *b)
{
    const mtprof__finding *x = a, *y = b;
    if (x->rank != y->rank) {
        return x->rank > y->rank ? -1 : 1;
    }
    return mtb_order(x->of.cause, y->of.cause);
}

int mtprof__explain_findings(mtprof_explain *e)
{
    bool is_launch_bound = false;
    bool is_python = false;
    MT_TRY(add_part(e, MTPROF_CAUSE_DATA_WAIT, MTPROF_PART_DATA));
    MT_TRY(add_part(e, MTPROF_CAUSE_LOCK_OR_GIL_WAIT, MTPROF_PART_LOCK));
    if (e->has_device) {
        MT_TRY(add_part(e, MTPROF_CAUSE_HOST_BOUND, MTPROF_PART_HOST));
        MT_TRY(add_launch_bound(e, &is_launch_bound));
        MT_TRY(add_part(e, MTPROF_CAUSE_SYNC, MTPROF_PART_SYNC));
    }
    MT_TRY(add_copies(e));
    MT_TRY(add_python(e, &is_python));
    MT_TRY(add_compute(e, is_launch_bound || (is_python && !e->has_device)));
    MT_TRY(add_steps(e));
    MT_TRY(add_memory(e));
    MT_TRY(add_profiler(e));
    if (e->n_findings > 1) {
        qsort(e->findings, e->n_findings, sizeof *e->findings, compare_findings);
    }
    return MTPROF_OK;
}
