/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons: both traces' rows put together, verdicts, order.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/compare/compare_impl.h"
#include "mtprof/analyze/compare/student.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *mtprof_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"same", "slower", "faster", "new", "gone", "unknown"};
    static_assert(MT_COUNT(names) == MTPROF_VERDICT_COUNT, "a name for each");
    return names[verdict < MTPROF_VERDICT_COUNT ? verdict : MTPROF_VERDICT_UNKNOWN];
}

/* ---- the total ------------------------------------------------------------------------------- */

/* Memory per step. */
static int finish_total(const mtprof_averages *averages, mtprof_compare_side *side)
{
    mtprof_row row = {.struct_size = sizeof row};
    if (mtprof_averages_count(averages) == 0) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof_averages_get_total(averages, &row));
    side->memory_bytes =
        ((double)row.self_cpu_memory + (double)row.self_device_memory) / side->steps;
    return MTPROF_OK;
}

/* Without steps: A's calls, with A's mean times and with B's (DR3). */
static void add_up_total(mtprof_compare *c)
{
    mtprof_compare_side a = {.there = 1};
    mtprof_compare_side b = {.there = 1};
    for (size_t i = 0; i < c->all.n; i++) {
        const mtprof_compare_row *r = &c->all.items[i].row;
        double calls_b = r->a.there != 0 ? r->a.calls : r->b.calls;
        if (r->a.there != 0) {
            a.ns += r->on_device != 0 ? 0 : r->a.whole_ns;
            a.memory_bytes += r->a.memory_bytes * r->a.calls;
            a.calls += r->a.calls;
        }
        if (r->b.there != 0) {
            b.ns += r->on_device != 0 ? 0 : r->b.ns * calls_b;
            b.memory_bytes += r->b.memory_bytes * calls_b;
            b.calls += calls_b;
        }
    }
    a.whole_ns = a.ns;
    b.whole_ns = b.ns;
    c->total.a = a;
    c->total.b = b;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool is_candidate(const mtprof_compare *c, const mtprof_compare_row *r)
{
    return r->a.there != 0 && r->b.there != 0 &&
           fmax(r->a.whole_ns, r->b.whole_ns) >= c->options.min_ns &&
           (c->facts.per_step == 0 || (r->a.steps >= 2 && r->b.steps >= 2));
}

static mtprof__sample sample_of(const mtprof_compare_side *side)
{
    return (mtprof__sample){side->steps, side->ns, side->deviation_ns};
}

static void judge(const mtprof_compare *c, mtprof_compare_row *r)
{
    double change = r->b.ns - r->a.ns;
    r->noise_ns = NAN;
    if (r->a.there == 0 || r->b.there == 0) {
        r->verdict = r->a.there != 0 ? MTPROF_VERDICT_GONE : MTPROF_VERDICT_NEW;
        return;
    }
    if (c->facts.per_step != 0) {
        double alpha = c->options.alpha / (c->facts.judged > 0 ? c->facts.judged : 1);
        r->noise_ns = mtprof__noise_bound(sample_of(&r->a), sample_of(&r->b), alpha);
    }
    if (!is_candidate(c, r)) {
        bool small = fmax(r->a.whole_ns, r->b.whole_ns) < c->options.min_ns;
        r->verdict = small ? MTPROF_VERDICT_SAME : MTPROF_VERDICT_UNKNOWN;
        return;
    }
    double noise = c->facts.per_step != 0 ? r->noise_ns : 0;
    double bound = fmax(noise, c->options.threshold * r->a.ns);
    r->verdict = fabs(change) <= bound ? MTPROF_VERDICT_SAME
                 : change > 0          ? MTPROF_VERDICT_SLOWER
                                       : MTPROF_VERDICT_FASTER;
}

static void judge_all(mtprof_compare *c)
{
    mtprof_compare_facts *f = &c->facts;
    f->judged = f->has_total != 0 && is_candidate(c, &c->total);
    for (size_t i = 0; i < c->all.n; i++) {
        f->judged += is_candidate(c, &c->all.items[i].row);
    }
    for (size_t i = 0; i < c->all.n; i++) {
        judge(c, &c->all.items[i].row);
        f->counts[c->all.items[i].row.verdict]++;
    }
    if (f->has_total != 0) {
        judge(c, &c->total);
    }
    f->slower = f->counts[MTPROF_VERDICT_SLOWER] > 0 ||
                (f->has_total != 0 && c->total.verdict == MTPROF_VERDICT_SLOWER);
}

/* ---- putting both together ------------------------------------------------------------------- */

static int merge(mtprof_compare *c, const mtprof__compare_items *a, const mtprof__compare_items *b)
{
    size_t i = 0;
    size_t j = 0;
    c->all.items = mtb_calloc(a->n + b->n + 1, sizeof *c->all.items);
    if (c->all.items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "compare: no memory for %zu rows", a->n + b->n);
    }
    while (i < a->n || j < b->n) {
        int order = i == a->n   ? 1
                    : j == b->n ? -1
                                : mtprof__compare_keys(&a->items[i], &b->items[j]);
        mtprof__compare_item *item = &c->all.items[c->all.n++];
        *item = order <= 0 ? a->items[i] : b->items[j];
        if (order > 0) {
            memset(&item->row.a, 0, sizeof item->row.a);
        }
        if (order >= 0) {
            item->row.b = b->items[j++].row.a;
        }
        i += order <= 0;
    }
    return MTPROF_OK;
}

static int put_together(mtprof_compare *c)
{
    mtprof__compare_items a = {0};
    mtprof__compare_items b = {0};
    int status = mtprof__compare_load(c, c->averages_a, &a);
    if (status == MTPROF_OK) {
        status = mtprof__compare_load(c, c->averages_b, &b);
    }
    if (status == MTPROF_OK) {
        status = merge(c, &a, &b);
    }
    mtb_free(a.items);
    mtb_free(b.items);
    return status;
}

static int compare(mtprof_compare *c, mtprof_model *a, mtprof_model *b)
{
    const mtprof_averages_options *rows = &c->rows;
    mtprof_compare_facts *f = &c->facts;
    MT_TRY(mtprof_averages_new(a, rows, &c->averages_a));
    MT_TRY(mtprof_averages_new(b, rows, &c->averages_b));
    MT_TRY(mtprof__compare_sum(c, a, &c->total.a));
    MT_TRY(mtprof__compare_sum(c, b, &c->total.b));
    f->steps_a = c->total.a.steps;
    f->steps_b = c->total.b.steps;
    f->per_step = f->steps_a >= 2 && f->steps_b >= 2;
    f->has_total = rows->name == NULL && rows->module_name == NULL && rows->thread == NULL &&
                   rows->top_level == 0 && rows->min_ns == 0;
    c->total.name = (mtprof_text){"all events", 10};
    c->total.detail = (mtprof_text){"", 0};
    if (f->per_step != 0) {
        MT_TRY(finish_total(c->averages_a, &c->total.a));
        MT_TRY(finish_total(c->averages_b, &c->total.b));
    }
    MT_TRY(put_together(c));
    f->rows = (uint32_t)c->all.n;
    if (f->per_step == 0) {
        add_up_total(c);
    }
    judge_all(c);
    return mtprof_compare_sort(c, "change");
}

static int read_options(mtprof_compare *c, const mtprof_compare_options *given)
{
    mtprof_compare_options *o = &c->options;
    if (given != NULL) {
        if (given->struct_size == 0) {
            return mtb_fail(MTPROF_EINVAL, "compare: options.struct_size is 0");
        }
        mtb_read_struct(o, given);
    }
    c->rows.struct_size = sizeof c->rows;
    if (o->rows != NULL) {
        if (o->rows->struct_size == 0) {
            return mtb_fail(MTPROF_EINVAL, "compare: rows.struct_size is 0");
        }
        mtb_read_struct(&c->rows, o->rows);
        c->rows.struct_size = sizeof c->rows;
        o->rows = NULL;
    }
    o->threshold = o->threshold_given != 0 || o->threshold != 0 ? o->threshold : 0.05;
    o->alpha = o->alpha != 0 ? o->alpha : 0.01;
    if (!(o->threshold >= 0)) {
        return mtb_fail(MTPROF_EINVAL, "compare: threshold %g is negative", o->threshold);
    }
    if (!(o->alpha >= 1e-12 && o->alpha <= 0.5)) {
        return mtb_fail(MTPROF_EINVAL, "compare: alpha %g is not between 1e-12 and 0.5", o->alpha);
    }
    if (!(o->min_ns >= 0)) {
        return mtb_fail(MTPROF_EINVAL, "compare: min_ns %g is negative", o->min_ns);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_compare_new(mtprof_model *a, mtprof_model *b,
                                 const mtprof_compare_options *options, mtprof_compare **out)
{
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "compare: no place for the result");
    }
    *out = NULL;
    if (a == NULL || b == NULL) {
        return mtb_fail(MTPROF_EINVAL, "compare: model %s is NULL", a == NULL ? "A" : "B");
    }
    mtprof_compare *c = mtb_calloc(1, sizeof *c);
    if (c == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "compare: no memory for a comparison");
    }
    int status = read_options(c, options);
    if (status == MTPROF_OK) {
        status = compare(c, a, b);
    }
    c->rows = (mtprof_averages_options){0}; /* its texts were borrowed for the call */
    if (status != MTPROF_OK) {
        mtprof_compare_free(c);
        return status;
    }
    *out = c;
    return MTPROF_OK;
}

void mtprof_compare_free(mtprof_compare *compare)
{
    if (compare == NULL) {
        return;
    }
    mtprof_averages_free(compare->averages_a);
    mtprof_averages_free(compare->averages_b);
    mtb_arena_reset(&compare->texts);
    mtb_free(compare->all.items);
    mtb_free(compare);
}

/* ---- what it says ---------------------------------------------------------------------------- */

mtprof_status mtprof_compare_get_facts(const mtprof_compare *compare, mtprof_compare_facts *facts)
{
    if (facts == NULL || facts->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "compare facts: struct_size is 0");
    }
    mtb_write_struct(facts, &compare->facts);
    return MTPROF_OK;
}

mtprof_status mtprof_compare_get_row(const mtprof_compare *compare, uint32_t index,
                                     mtprof_compare_row *row)
{
    if (index >= compare->all.n) {
        return mtb_fail(MTPROF_EINVAL, "compare row: no row %u of %zu", index, compare->all.n);
    }
    if (row == NULL || row->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "compare row: struct_size is 0");
    }
    mtb_write_struct(row, &compare->all.items[index].row);
    return MTPROF_OK;
}

mtprof_status mtprof_compare_get_total(const mtprof_compare *compare, mtprof_compare_row *row)
{
    if (compare->facts.has_total == 0) {
        return mtb_fail(MTPROF_EINVAL, "compare total: events were filtered, so there is none");
    }
    if (row == NULL || row->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "compare total: struct_size is 0");
    }
    mtb_write_struct(row, &compare->total);
    return MTPROF_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

enum order {
    ORDER_CHANGE = 0,
    ORDER_RATIO,
    ORDER_TIME,
    ORDER_CALLS,
    ORDER_MEMORY,
    ORDER_NAME
};

static double rank_of(const mtprof_compare *c, const mtprof_compare_row *r, enum order order)
{
    switch (order) {
    case ORDER_RATIO:
        if (r->a.ns > 0) {
            return fabs(r->b.ns / r->a.ns - 1);
        }
        return r->b.ns > 0 ? (double)INFINITY : 0;
    case ORDER_TIME: return fmax(r->a.whole_ns, r->b.whole_ns);
    case ORDER_CALLS: return fabs(r->b.calls - r->a.calls);
    case ORDER_MEMORY: return fabs(r->b.memory_bytes - r->a.memory_bytes);
    case ORDER_NAME: return 0;
    default:
        /* Without steps times are per call: a change counts as often as there are calls. */
        return fabs(r->b.ns - r->a.ns) *
               (c->facts.per_step != 0 ? 1 : fmax(r->a.calls, r->b.calls));
    }
}

static int compare_ranks(const void *a, const void *b)
{
    const mtprof__compare_item *x = a;
    const mtprof__compare_item *y = b;
    if (x->rank != y->rank) {
        return x->rank > y->rank ? -1 : 1;
    }
    const mtprof__compare_item by_name_x = {.key = x->row.name, .row = {.detail = x->row.detail}};
    const mtprof__compare_item by_name_y = {.key = y->row.name, .row = {.detail = y->row.detail}};
    int order = mtprof__compare_keys(&by_name_x, &by_name_y);
    return order != 0 ? order : mtprof__compare_keys(x, y);
}

mtprof_status mtprof_compare_sort(mtprof_compare *compare, const char *key)
{
    static const char *const keys[] = {"change", "ratio", "time", "calls", "memory", "name"};
    size_t order = 0;
    while (key != NULL && order < MT_COUNT(keys) && strcmp(key, keys[order]) != 0) {
        order++;
    }
    if (key == NULL || order == MT_COUNT(keys)) {
        return mtb_fail(MTPROF_EINVAL,
                        "compare sort: no key '%.60s'; there are change, ratio, time, calls, "
                        "memory, name",
                        key == NULL ? "NULL" : key);
    }
    for (size_t i = 0; i < compare->all.n; i++) {
        compare->all.items[i].rank =
            rank_of(compare, &compare->all.items[i].row, (enum order)order);
    }
    qsort(compare->all.items, compare->all.n, sizeof *compare->all.items, compare_ranks);
    return MTPROF_OK;
}
