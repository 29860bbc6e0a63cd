/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: making one, and what its getters say.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "base/struct_size.h"
#include "mtprof/analyze/explain/explain_impl.h"

#include <string.h>

static int explain(mtprof_explain *e)
{
    MT_TRY(mtprof__explain_load(e));
    MT_TRY(mtprof__explain_choose_steps(e));
    MT_TRY(mtprof__explain_time(e));
    MT_TRY(mtprof__explain_move_steps(e));
    if (e->options.parts_only != 0) {
        return MTPROF_OK;
    }
    mtprof__explain_short(e);
    MT_TRY(mtprof__explain_balance(e));
    MT_TRY(mtprof__explain_memory(e));
    return mtprof__explain_findings(e);
}

/* What only making it needs: an explanation that is kept is small. */
static void free_work(mtprof_explain *e)
{
    for (int i = 0; i < MTPROF__SPANS_COUNT; i++) {
        mtb_free(e->spans[i].items);
    }
    for (int i = 0; i < MTPROF_PART_COUNT; i++) {
        mtb_free(e->charges[i]);
    }
    mtb_free(e->rest.items);
    mtb_free(e->name_row);
    mtb_free(e->tracks);
    mtb_array_give(e->traits, e->columns.n + 1, 1);
    mtb_array_give(e->launched_by, e->columns.n + 1, sizeof *e->launched_by);
    memset(e->spans, 0, sizeof e->spans);
    memset(e->charges, 0, sizeof e->charges);
    memset(&e->rest, 0, sizeof e->rest);
    e->name_row = NULL;
    e->tracks = NULL;
    e->traits = NULL;
    e->launched_by = NULL;
}

mtprof_status mtprof_explain_new(mtprof_model *model, const mtprof_explain_options *options,
                                 mtprof_explain **out)
{
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "explain: no place for the result");
    }
    *out = NULL;
    if (model == NULL) {
        return mtb_fail(MTPROF_EINVAL, "explain: no model");
    }
    if (options != NULL && options->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "explain: options.struct_size is 0");
    }
    mtprof_explain *e = mtb_calloc(1, sizeof *e);
    if (e == NULL) {
        return mtprof__explain_no_memory("an explanation");
    }
    e->model = model;
    if (options != NULL) {
        mtb_read_struct(&e->options, options);
    }
    int status = explain(e);
    free_work(e);
    if (status != MTPROF_OK) {
        mtprof_explain_free(e);
        return status;
    }
    *out = e;
    return MTPROF_OK;
}

void mtprof_explain_free(mtprof_explain *explain)
{
    if (explain == NULL) {
        return;
    }
    for (size_t i = 0; i < explain->n_findings; i++) {
        mtb_free(explain->findings[i].evidence);
    }
    mtb_free(explain->findings);
    mtb_free(explain->steps);
    mtb_arena_reset(&explain->texts);
    mtb_free(explain);
}

static int copy_out(void *to, uint32_t size, const void *from, size_t bytes, const char *what)
{
    if (size == 0) {
        return mtb_fail(MTPROF_EINVAL, "explain %s: struct_size is 0", what);
    }
    mtb_struct_out(to, size, from, bytes);
    return MTPROF_OK;
}

mtprof_status mtprof_explain_get_facts(const mtprof_explain *explain, mtprof_explain_facts *facts)
{
    const mtprof_explain_facts own = {
        .struct_size = sizeof own,
        .findings = (uint32_t)explain->n_findings,
        .events = explain->columns.n,
        .steps = explain->has_steps ? (uint32_t)explain->n_steps : 0,
        .has_device = explain->has_device,
        .wall_ns = explain->wall_ns,
        .median_step_ns = explain->median_ns,
        .busy_ns = explain->busy_ns,
        .kernels = explain->n_kernels,
    };
    return copy_out(facts, facts->struct_size, &own, sizeof own, "facts");
}

int64_t mtprof_explain_part_ns(const mtprof_explain *explain, uint32_t index, uint32_t part)
{
    if (part >= MTPROF_PART_COUNT || (index != MTPROF_EXPLAIN_ALL && index >= explain->n_steps)) {
        return 0;
    }
    return index == MTPROF_EXPLAIN_ALL ? explain->parts[part] : explain->steps[index].parts[part];
}

uint32_t mtprof_explain_step_count(const mtprof_explain *explain)
{
    return (uint32_t)explain->n_steps;
}

mtprof_status mtprof_explain_get_step(const mtprof_explain *explain, uint32_t index,
                                      mtprof_explain_step *step)
{
    if (index >= explain->n_steps) {
        return mtb_fail(MTPROF_EINVAL, "explain step: %u, expected less than %zu", index,
                        explain->n_steps);
    }
    const mtprof__step *from = &explain->steps[index];
    const mtprof_explain_step own = {.struct_size = sizeof own,
                                     .step = from->number,
                                     .start_ns = from->start_ns,
                                     .end_ns = from->end_ns,
                                     .state = from->state};
    return copy_out(step, step->struct_size, &own, sizeof own, "step");
}

/* NULL: there is none, and EINVAL is the failure. */
static const mtprof__finding *find_finding(const mtprof_explain *explain, uint32_t index)
{
    if (index >= explain->n_findings) {
        (void)mtb_fail(MTPROF_EINVAL, "explain finding: %u, expected less than %zu", index,
                       explain->n_findings);
        return NULL;
    }
    return &explain->findings[index];
}

mtprof_status mtprof_explain_get_finding(const mtprof_explain *explain, uint32_t index,
                                         mtprof_explain_finding *finding)
{
    const mtprof__finding *found = find_finding(explain, index);
    if (found == NULL) {
        return MTPROF_EINVAL;
    }
    return copy_out(finding, finding->struct_size, &found->of, sizeof found->of, "finding");
}

mtprof_status mtprof_explain_get_evidence(const mtprof_explain *explain, uint32_t finding,
                                          uint32_t index, mtprof_explain_evidence *evidence)
{
    const mtprof__finding *found = find_finding(explain, finding);
    if (found == NULL) {
        return MTPROF_EINVAL;
    }
    if (index >= found->n_evidence) {
        return mtb_fail(MTPROF_EINVAL, "explain evidence: %u, expected less than %zu", index,
                        found->n_evidence);
    }
    return copy_out(evidence, evidence->struct_size, &found->evidence[index],
                    sizeof found->evidence[index], "evidence");
}

static const struct {
    const char *name, *title, *color;
} parts[] = {
    [MTPROF_PART_COMPUTE] = {"compute", "computing", "#1a7f4b"},
    [MTPROF_PART_COPY] = {"copy", "copying", "#c2780c"},
    [MTPROF_PART_DATA] = {"data", "waiting for data", "#8250df"},
    [MTPROF_PART_SYNC] = {"sync", "idle after waits (sync)", "#cf222e"},
    [MTPROF_PART_LAUNCH] = {"launch", "launching", "#bf5700"},
    [MTPROF_PART_HOST] = {"host", "CPU ops", "#0969da"},
    [MTPROF_PART_PYTHON] = {"python", "host code between ops", "#4f8fd0"},
    [MTPROF_PART_LOCK] = {"lock", "locks", "#a40e26"},
    [MTPROF_PART_COMPILE] = {"compile", "compiling", "#6e40c9"},
    [MTPROF_PART_GAPS] = {"gaps", "breaks between kernels", "#8c959f"},
    [MTPROF_PART_PROFILER] = {"profiler", "profiling", "#57606a"},
    [MTPROF_PART_WARM_UP] = {"warm_up", "warm-up", "#d4a72c"},
    [MTPROF_PART_SLOW] = {"slow_steps", "slow steps", "#e5534b"},
};
static_assert(MT_COUNT(parts) == MTPROF_PART_COUNT, "one for each");

const char *mtprof_part_name(uint32_t part)
{
    return part < MTPROF_PART_COUNT ? parts[part].name : "unknown";
}

const char *mtprof_part_title(uint32_t part)
{
    return part < MTPROF_PART_COUNT ? parts[part].title : "unknown";
}

const char *mtprof_part_color(uint32_t part)
{
    return part < MTPROF_PART_COUNT ? parts[part].color : "#8c959f";
}

const char *mtprof_evidence_kind_name(uint32_t kind)
{
    static const char *const names[] = {"fact", "op", "event", "step", "track", "memory"};
    static_assert(MT_COUNT(names) == MTPROF_EVIDENCE_MEMORY + 1, "a name for each");
    return kind < MT_COUNT(names) ? names[kind] : "unknown";
}
