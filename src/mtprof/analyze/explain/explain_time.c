/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining, second stage: the wall time in parts.
 *
 *     rest     ├──────────────┤   ├──────────────────┤       the steps
 *     spans         ├────┤              ├──┤ ├─┤             of one list
 *     charged       ├────┤              ├──┤ ├─┤             to its part, step and name
 *     rest     ├────┤    ├────┤   ├─────┤  ├─┤ ├─────┤       for the next list
 *
 * With a device, kernels and copies come first, so all else is charged for time in which every
 * device is idle. Of that, a wait of the host is charged with the idle time that begins while it
 * waits or just after, and with no more than the wait took: without it the host would have been
 * earlier by just that.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/explain/explain_impl.h"

#include <stdlib.h>

enum {
    CLOCK_SLACK_NS = 20 * 1000 /* by which clocks of host and device may differ */
};

/* ---- charging -------------------------------------------------------------------------------- */

typedef struct charging {
    mtprof_explain *e;
    enum mtprof_part part;
    mtprof__charge *by_name; /* NULL: names do not matter */
    mtprof__spans left;      /* the new rest */
    size_t step;
} charging;

static void charge_piece(charging *g, int64_t start_ns, int64_t end_ns, uint32_t event)
{
    mtprof_explain *e = g->e;
    while (e->steps[g->step].end_ns <= start_ns) { /* pieces are inside steps, in order */
        g->step++;
    }
    e->steps[g->step].parts[g->part] += end_ns - start_ns;
    /* what is in a slow step is not typical: the step is evidence by itself */
    bool is_named = g->by_name != NULL && (g->part == MTPROF_PART_COMPILE ||
                                           e->steps[g->step].state == MTPROF_STEP_NORMAL);
    if (!is_named) {
        return;
    }
    uint32_t owner = mtprof__explain_top(e, event);
    if (owner >= e->columns.n || e->columns.name[owner] >= e->n_names) {
        return;
    }
    mtprof__charge *charge = &g->by_name[e->columns.name[owner]];
    charge->ns += end_ns - start_ns;
    if (end_ns - start_ns > charge->most_ns) {
        charge->most_ns = end_ns - start_ns;
        charge->event = owner;
    }
    charge->count += charge->last_event != owner + 1;
    charge->last_event = owner + 1;
}

static int charge_all(charging *g, const mtprof__spans *spans)
{
    const mtprof__spans *rest = &g->e->rest;
    size_t k = 0;
    for (size_t i = 0; i < rest->n; i++) {
        int64_t at = rest->items[i].start_ns;
        int64_t end = rest->items[i].end_ns;
        while (k < spans->n && spans->items[k].end_ns <= at) {
            k++;
        }
        /* k stays at the first span that may reach into the next piece of rest */
        for (size_t m = k; m < spans->n && spans->items[m].start_ns < end && at < end; m++) {
            const mtprof__span *span = &spans->items[m];
            int64_t from = span->start_ns > at ? span->start_ns : at;
            int64_t to = span->end_ns < end ? span->end_ns : end;
            if (to <= from) {
                continue;
            }
            MT_TRY(mtprof__spans_add(&g->left, at, from, MTPROF_NO_EVENT));
            charge_piece(g, from, to, span->event);
            at = to;
        }
        MT_TRY(mtprof__spans_add(&g->left, at, end, MTPROF_NO_EVENT));
    }
    return MTPROF_OK;
}

static int charge(mtprof_explain *e, enum mtprof__span_list list, enum mtprof_part part)
{
    charging g = {.e = e, .part = part};
    bool by_name = list != MTPROF__SPANS_KERNELS;
    if (e->spans[list].n == 0 || e->rest.n == 0) {
        return MTPROF_OK;
    }
    if (by_name && e->charges[part] == NULL) {
        e->charges[part] = mtb_calloc((size_t)e->n_names + 1, sizeof **e->charges);
        if (e->charges[part] == NULL) {
            return mtprof__explain_no_memory("names");
        }
    }
    g.by_name = by_name ? e->charges[part] : NULL;
    int status = charge_all(&g, &e->spans[list]);
    if (status == MTPROF_OK) {
        mtb_free(e->rest.items);
        e->rest = g.left;
    } else {
        mtb_free(g.left.items);
    }
    return status;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
    const mtprof__span *x = a, *y = b;
    int order = mtb_order(x->start_ns, y->start_ns);
    return order != 0 ? order : mtb_order(x->event, y->event);
}

/* `rest` is the idle time of the devices now. */
static int find_sync(mtprof_explain *e)
{
    const mtprof__spans *waits = &e->spans[MTPROF__SPANS_WAITS];
    mtprof__spans *sync = &e->spans[MTPROF__SPANS_SYNC];
    size_t k = 0;
    for (size_t i = 0; i < waits->n; i++) {
        const mtprof__span *wait = &waits->items[i];
        MT_TRY(mtprof__spans_add(sync, wait->start_ns, wait->end_ns, wait->event));
    }
    for (size_t i = 0; e->has_device && i < e->rest.n; i++) {
        int64_t start = e->rest.items[i].start_ns;
        int64_t end = e->rest.items[i].end_ns;
        while (k < waits->n && waits->items[k].end_ns + CLOCK_SLACK_NS < start) {
            k++;
        }
        if (k == waits->n || waits->items[k].start_ns > start) {
            continue;
        }
        int64_t waited = waits->items[k].end_ns - waits->items[k].start_ns;
        MT_TRY(mtprof__spans_add(sync, start, waited < end - start ? start + waited : end,
                                 waits->items[k].event));
    }
    if (sync->n > 1) {
        qsort(sync->items, sync->n, sizeof *sync->items, compare_spans);
    }
    return MTPROF_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int start_rest(mtprof_explain *e)
{
    for (size_t i = 0; i < e->n_steps; i++) {
        const mtprof__step *step = &e->steps[i];
        MT_TRY(mtprof__spans_add(&e->rest, step->start_ns, step->end_ns, MTPROF_NO_EVENT));
        e->wall_ns += step->end_ns - step->start_ns;
    }
    return MTPROF_OK;
}

static void sum_busy(mtprof_explain *e)
{
    for (size_t i = 0; i < e->n_steps && e->has_device; i++) {
        e->busy_ns += e->steps[i].parts[MTPROF_PART_COMPUTE] + e->steps[i].parts[MTPROF_PART_COPY];
    }
}

int mtprof__explain_time(mtprof_explain *e)
{
    MT_TRY(start_rest(e));
    MT_TRY(charge(e, MTPROF__SPANS_KERNELS, MTPROF_PART_COMPUTE));
    MT_TRY(charge(e, MTPROF__SPANS_COPIES, MTPROF_PART_COPY));
    sum_busy(e);
    MT_TRY(find_sync(e));
    MT_TRY(charge(e, MTPROF__SPANS_DATA, MTPROF_PART_DATA));
    MT_TRY(charge(e, MTPROF__SPANS_COMPILE, MTPROF_PART_COMPILE));
    MT_TRY(charge(e, MTPROF__SPANS_GAPS, MTPROF_PART_GAPS));
    MT_TRY(charge(e, MTPROF__SPANS_OVERHEAD, MTPROF_PART_PROFILER));
    MT_TRY(charge(e, MTPROF__SPANS_SYNC, MTPROF_PART_SYNC));
    MT_TRY(charge(e, MTPROF__SPANS_LOCK, MTPROF_PART_LOCK));
    MT_TRY(charge(e, MTPROF__SPANS_CONVERT, MTPROF_PART_COPY));
    MT_TRY(charge(e, MTPROF__SPANS_LAUNCH, MTPROF_PART_LAUNCH));
    enum mtprof_part on_host = e->has_device ? MTPROF_PART_HOST : MTPROF_PART_COMPUTE;
    MT_TRY(charge(e, MTPROF__SPANS_HOST, on_host));
    MT_TRY(charge(e, MTPROF__SPANS_OTHERS, on_host));
    charging g = {.e = e, .part = MTPROF_PART_PYTHON};
    for (size_t i = 0; i < e->rest.n; i++) {
        charge_piece(&g, e->rest.items[i].start_ns, e->rest.items[i].end_ns, MTPROF_NO_EVENT);
    }
    return MTPROF_OK;
}
