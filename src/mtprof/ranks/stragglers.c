/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks are late, since when and why.
 *
 * A rank is late at a collective by its arrival minus the middle arrival of the other ranks. Per
 * step these add up to a series for each rank. The series splits where the squares left of a line
 * at 0 before and at a mean after are least; the rank is late from there on if the mean is beyond
 * Student's bound, for which the probability of an error is shared by all ranks and all splits, and
 * worth at least 2 % of a step. So with alpha 0.01 a balanced job has a straggler in at most one of
 * a hundred runs.
 *
 * Why: its trace is compared with those of the ranks that are nearest to the middle, over these
 * steps (compare.h). What is slower in each comparison is a cause; collectives are none.
 */
#include "base/fail.h"
#include "mtprof/analyze/compare/student.h"
#include "mtprof/ranks/ranks_impl.h"

#include <mtprof/compare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_STEPS = 3, /* late ones */
    COMPARED = 3,    /* other ranks a straggler is compared with */
    CAUSES_MOST = 8
};
#define ALPHA       0.01
#define LEAST_SHARE 0.02 /* of a step */
#define OUTSIDE     "ProfilerStep*"

typedef struct judging {
    mtprof_ranks *r;
    size_t n_steps;
    int32_t *steps; /* their numbers */
    double *late;   /* of rank i in step s: [i * n_steps + s] */
    double *starts; /* first arrival of a step */
    double *sorted, *room;
    double step_ns;
} judging;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of n sorted values without one of them. */
static double middle_without(const double *sorted, size_t n, double own)
{
    if (n < 2) {
        return own;
    }
    size_t skip = 0;
    while (skip + 1 < n && sorted[skip] < own) {
        skip++;
    }
    size_t others = n - 1, low = (others - 1) / 2, high = others / 2;
    double a = sorted[low < skip ? low : low + 1], b = sorted[high < skip ? high : high + 1];
    return (a + b) / 2;
}

/* ---- series ---------------------------------------------------------------------------------- */

static bool counts(const mtprof_ranks *r, const mtprof__matched *m)
{
    return m->n_ranks == r->n;
}

static int compare_steps(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The steps that have collectives; without steps each collective is one. */
static int find_steps(judging *j)
{
    mtprof_ranks *r = j->r;
    j->steps = mtb_calloc(r->n_matched + 1, sizeof *j->steps);
    if (j->steps == NULL) {
        return mtprof__ranks_no_memory();
    }
    size_t n = 0;
    for (size_t i = 0; i < r->n_matched; i++) {
        if (counts(r, &r->matched[i])) {
            int32_t step = r->matched[i].step;
            j->steps[n] = step >= 0 ? step : (int32_t)n;
            n++;
        }
    }
    if (n > 1) {
        qsort(j->steps, n, sizeof *j->steps, compare_steps);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || j->steps[i] != j->steps[i - 1]) {
            j->steps[j->n_steps++] = j->steps[i];
        }
    }
    return MTPROF_OK;
}

static size_t find_step(const judging *j, int32_t step)
{
    size_t low = 0, high = j->n_steps;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (j->steps[middle] <= step) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_collective(judging *j, const mtprof__matched *m, size_t step)
{
    mtprof_ranks *r = j->r;
    const mtprof__part *parts = mtprof__ranks_parts(r, m);
    for (size_t i = 0; i < r->n; i++) {
        j->room[i] = mtprof__rank_time(&r->ranks[i], parts[i].start_ns);
        j->sorted[i] = j->room[i];
    }
    qsort(j->sorted, r->n, sizeof *j->sorted, compare_doubles);
    for (size_t i = 0; i < r->n; i++) {
        j->late[i * j->n_steps + step] += j->room[i] - middle_without(j->sorted, r->n, j->room[i]);
    }
    j->starts[step] = fmin(j->starts[step], j->sorted[0]);
}

static int make_series(judging *j)
{
    mtprof_ranks *r = j->r;
    MT_TRY(find_steps(j));
    j->late = mtb_calloc(r->n * j->n_steps + 1, sizeof *j->late);
    j->starts = mtb_calloc(j->n_steps + 1, sizeof *j->starts);
    j->sorted = mtb_calloc(r->n + 1, sizeof *j->sorted);
    j->room = mtb_calloc(r->n + j->n_steps + 1, sizeof *j->room);
    if (j->late == NULL || j->starts == NULL || j->sorted == NULL || j->room == NULL) {
        return mtprof__ranks_no_memory();
    }
    for (size_t s = 0; s < j->n_steps; s++) {
        j->starts[s] = INFINITY;
    }
    size_t n = 0;
    for (size_t i = 0; i < r->n_matched; i++) {
        const mtprof__matched *m = &r->matched[i];
        if (counts(r, m)) {
            add_collective(j, m, m->step >= 0 ? find_step(j, m->step) : n);
            n++;
        }
    }
    for (size_t s = 0; s + 1 < j->n_steps; s++) {
        j->room[s] = j->starts[s + 1] - j->starts[s];
    }
    j->step_ns = j->n_steps > 1 ? mtprof__median(j->room, j->n_steps - 1) : 0;
    return MTPROF_OK;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

typedef struct tail {
    size_t first;
    mtprof__sample sample; /* of the steps from there on */
} tail;

static mtprof__sample sample_of(const double *values, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    return (mtprof__sample){(double)n, mean, n > 1 ? sqrt(squares / (double)(n - 1)) : 0};
}

/* Where the series rises: n is small enough that the two loops do not matter. */
static tail split(const double *values, size_t n)
{
    tail best = {.first = n};
    double least = INFINITY, before = 0;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    for (size_t k = 0; k + LEAST_STEPS <= n; k++) {
        double rest = (double)(n - k), mean = sum / rest;
        double left = before + squares - rest * mean * mean;
        if (mean > 0 && left < least) {
            least = left;
            best.first = k;
        }
        before += values[k] * values[k];
        sum -= values[k];
        squares -= values[k] * values[k];
    }
    if (best.first < n) {
        best.sample = sample_of(values + best.first, n - best.first);
    }
    return best;
}

static double noise_of(mtprof__sample s, double alpha)
{
    return mtprof__student_t(alpha, s.n - 1) * s.deviation / sqrt(s.n);
}

static int judge_rank(judging *j, size_t index)
{
    mtprof_ranks *r = j->r;
    const double *values = &j->late[index * j->n_steps];
    tail t = split(values, j->n_steps);
    if (t.first >= j->n_steps) {
        return MTPROF_OK;
    }
    double tests = (double)r->n * (double)j->n_steps, alpha = ALPHA / tests;
    double noise = noise_of(t.sample, alpha);
    double least = fmax(LEAST_SHARE * j->step_ns, 2 * r->facts.residual_ns);
    if (t.sample.mean <= noise || t.sample.mean - noise * 0.5 <= least) {
        return MTPROF_OK;
    }
    double chance = ALPHA;
    while (chance > 1e-9 && t.sample.mean > noise_of(t.sample, chance / 10 / tests)) {
        chance /= 10;
    }
    mtprof__late late = {.facts = {.index = (uint32_t)index,
                                   .since_step = j->steps[t.first],
                                   .steps = (uint32_t)(j->n_steps - t.first),
                                   .late_ns = t.sample.mean,
                                   .noise_ns = noise,
                                   .chance = chance,
                                   .step_ns = j->step_ns}};
    return mtb_append(r->late, r->n_late, r->late_capacity, &late) ? MTPROF_OK
                                                                   : mtprof__ranks_no_memory();
}

static int compare_late(const void *a, const void *b)
{
    double x = ((const mtprof__late *)a)->facts.late_ns,
           y = ((const mtprof__late *)b)->facts.late_ns;
    return (x < y) - (x > y);
}

/* ---- causes ---------------------------------------------------------------------------------- */

static bool is_late(const mtprof_ranks *r, size_t index)
{
    for (size_t i = 0; i < r->n_late; i++) {
        if (r->late[i].facts.index == index) {
            return true;
        }
    }
    return false;
}

/* The ranks that are nearest to the middle; how many there are. */
static size_t choose_others(const judging *j, size_t *others)
{
    size_t n = 0;
    double nearness[COMPARED];
    for (size_t i = 0; i < j->r->n; i++) {
        if (is_late(j->r, i)) {
            continue;
        }
        double sum = 0;
        for (size_t s = 0; s < j->n_steps; s++) {
            sum += j->late[i * j->n_steps + s];
        }
        double own = fabs(sum);
        size_t at = n < COMPARED ? n++ : COMPARED;
        for (; at > 0 && own < nearness[at - 1]; at--) {
            if (at < COMPARED) {
                nearness[at] = nearness[at - 1];
                others[at] = others[at - 1];
            }
        }
        if (at < COMPARED) {
            nearness[at] = own;
            others[at] = i;
        }
    }
    return n;
}

static mtprof_straggler_cause *find_cause(const mtprof__late *late, mtprof_text name,
                                          uint32_t on_device)
{
    for (size_t i = 0; i < late->n_causes; i++) {
        mtprof_straggler_cause *cause = &late->causes[i];
        if (cause->on_device == on_device && cause->name.length == name.length &&
            memcmp(cause->name.bytes, name.bytes, name.length) == 0) {
            return cause;
        }
    }
    return NULL;
}

/* One comparison: new causes from the first, later ones only keep what they find too. `reserved`
 * counts the comparisons that have it. */
static int add_causes(mtprof_ranks *r, mtprof__late *late, const mtprof_compare *c, uint32_t number)
{
    mtprof_compare_row row = {.struct_size = sizeof row};
    mtprof_compare_facts facts = {.struct_size = sizeof facts};
    MT_TRY(mtprof_compare_get_facts(c, &facts));
    for (uint32_t i = 0; i < facts.rows; i++) {
        MT_TRY(mtprof_compare_get_row(c, i, &row));
        uint32_t kind = row.on_device != 0 ? MTPROF_EVENT_KIND_KERNEL : MTPROF_EVENT_KIND_OP;
        bool more = row.verdict == MTPROF_VERDICT_SLOWER ||
                    (row.verdict == MTPROF_VERDICT_NEW && row.b.steps >= LEAST_STEPS);
        if (!more || mtprof_collective_layer_of(row.name, kind, NULL) != MTPROF_LAYER_NONE) {
            continue;
        }
        double ns = row.b.ns - row.a.ns, noise = isnan(row.noise_ns) ? 0 : row.noise_ns;
        mtprof_straggler_cause *known = find_cause(late, row.name, row.on_device);
        if (known != NULL && known->reserved + 1 == number) {
            known->reserved = number;
            known->noise_ns = fmax(known->noise_ns, noise);
            known->usual_ns = ns < known->more_ns ? row.a.ns : known->usual_ns;
            known->more_ns = fmin(known->more_ns, ns);
        } else if (known == NULL && number == 1) {
            mtprof_straggler_cause cause = {.on_device = row.on_device,
                                            .name = row.name,
                                            .more_ns = ns,
                                            .noise_ns = noise,
                                            .usual_ns = row.a.ns,
                                            .reserved = 1};
            cause.name.bytes = mtb_arena_copy_text(&r->texts, row.name.bytes, row.name.length);
            if (cause.name.bytes == NULL ||
                !mtb_append(late->causes, late->n_causes, late->causes_capacity, &cause)) {
                return mtprof__ranks_no_memory();
            }
        }
    }
    return MTPROF_OK;
}

static int compare_causes(const void *a, const void *b)
{
    double x = ((const mtprof_straggler_cause *)a)->more_ns;
    double y = ((const mtprof_straggler_cause *)b)->more_ns;
    return (x < y) - (x > y);
}

/* Keeps what every comparison has, the largest of them. */
static void finish_causes(mtprof__late *late, uint32_t compared)
{
    size_t n = 0;
    for (size_t i = 0; i < late->n_causes; i++) {
        mtprof_straggler_cause *cause = &late->causes[i];
        if (cause->reserved == compared && cause->more_ns >= 0.05 * late->facts.late_ns) {
            cause->outside = cause->name.length == sizeof OUTSIDE - 1 &&
                             memcmp(cause->name.bytes, OUTSIDE, sizeof OUTSIDE - 1) == 0;
            cause->reserved = 0;
            late->causes[n++] = *cause;
        }
    }
    late->n_causes = n;
    if (n > 1) {
        qsort(late->causes, n, sizeof *late->causes, compare_causes);
    }
    late->n_causes = n < CAUSES_MOST ? n : CAUSES_MOST;
    late->facts.n_causes = (uint32_t)late->n_causes;
    late->facts.compared = compared;
}

static int compare_with(const judging *j, mtprof__late *late, mtprof_model *model, size_t other,
                        uint32_t number)
{
    mtprof_model *model_a = NULL;
    mtprof_compare *c = NULL;
    bool steps = j->r->ranks[late->facts.index].has_steps;
    mtprof_averages_options rows = {.struct_size = sizeof rows,
                                    .steps_given = steps,
                                    .first_step = late->facts.since_step,
                                    .last_step = INT32_MAX};
    mtprof_compare_options options = {.struct_size = sizeof options, .rows = &rows};
    int status = mtprof_model_open(j->r->ranks[other].path, NULL, &model_a);
    if (status == MTPROF_OK) {
        status = mtprof_compare_new(model_a, model, &options, &c);
    }
    if (status == MTPROF_OK) {
        status = add_causes(j->r, late, c, number);
    }
    mtprof_compare_free(c);
    mtprof_model_free(model_a);
    return status;
}

static int find_causes(judging *j, mtprof__late *late, const size_t *others, size_t n_others)
{
    mtprof_model *model = NULL;
    uint32_t compared = 0;
    int status = mtprof_model_open(j->r->ranks[late->facts.index].path, NULL, &model);
    for (size_t i = 0; i < n_others && status == MTPROF_OK; i++) {
        status = compare_with(j, late, model, others[i], ++compared);
    }
    mtprof_model_free(model);
    if (status == MTPROF_OK) {
        finish_causes(late, compared);
    }
    return status;
}

static int judge(judging *j)
{
    mtprof_ranks *r = j->r;
    size_t others[COMPARED] = {0};
    MT_TRY(make_series(j));
    for (size_t i = 0; i < r->n && j->n_steps >= LEAST_STEPS && r->n > 1; i++) {
        MT_TRY(judge_rank(j, i));
    }
    if (r->n_late > 1) {
        qsort(r->late, r->n_late, sizeof *r->late, compare_late);
    }
    size_t n = choose_others(j, others);
    for (size_t i = 0; i < r->n_late; i++) {
        MT_TRY(find_causes(j, &r->late[i], others, n));
    }
    return MTPROF_OK;
}

mtprof_status mtprof_ranks_find_stragglers(mtprof_ranks *r)
{
    if (r->facts.method != MTPROF_CLOCK_COLLECTIVES) {
        return mtb_fail(
            MTPROF_ESTATE, "stragglers: %s",
            r->facts.refusal != NULL
                ? r->facts.refusal
                : "the ranks share too few collectives: who waits for whom is not known");
    }
    for (size_t i = 0; i < r->n_late; i++) {
        mtb_free(r->late[i].causes);
    }
    r->n_late = 0;
    judging j = {.r = r};
    int status = judge(&j);
    mtb_free(j.steps);
    mtb_free(j.late);
    mtb_free(j.starts);
    mtb_free(j.sorted);
    mtb_free(j.room);
    return status;
}
