/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time of a collective goes: waiting for the last rank, and what comes after.
 */
#include "base/fail.h"
#include "mtprof/ranks/ranks_impl.h"

#include <math.h>
#include <stdlib.h>

static int compare_arrivals(const void *a, const void *b)
{
    const mtprof__matched *x = a, *y = b;
    return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* The clocks' lines are as sure as the scatter of the ends over the root of their number. Shares of
 * waiting below a third and above two thirds are classes; what that uncertainty could move to the
 * other side of a limit is in none. */
static uint32_t classify(const mtprof_ranks *r, const mtprof__matched *m)
{
    double fits = sqrt((double)(r->facts.shared > 0 ? r->facts.shared : 1));
    double unsure = 2 * r->facts.residual_ns / fits + 1000, all = m->wait + m->transfer;
    bool whole = m->n_ranks == r->n && r->n_missing == 0;
    if (r->facts.method != MTPROF_CLOCK_COLLECTIVES || !whole || all <= 2 * unsure) {
        return MTPROF_WAIT_INCONCLUSIVE;
    }
    double share = m->wait / all, width = unsure / all;
    if (share + width <= 1.0 / 3) {
        return MTPROF_WAIT_TRANSFER;
    }
    if (share - width >= 2.0 / 3) {
        return MTPROF_WAIT_SKEW;
    }
    return share - width >= 1.0 / 3 && share + width <= 2.0 / 3 ? MTPROF_WAIT_MIXED
                                                                : MTPROF_WAIT_INCONCLUSIVE;
}

static void look_at(mtprof_ranks *r, mtprof__matched *m, double *room)
{
    const mtprof__part *parts = mtprof__ranks_parts(r, m);
    double first = INFINITY, sum = 0;
    size_t n = 0;
    m->arrival = -INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        if (mtprof__part_is_there(&parts[i])) {
            double start = mtprof__rank_time(&r->ranks[i], parts[i].start_ns);
            m->last = start > m->arrival ? (uint32_t)i : m->last;
            m->arrival = fmax(m->arrival, start);
            first = fmin(first, start);
            sum += start;
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        if (mtprof__part_is_there(&parts[i])) {
            double start = mtprof__rank_time(&r->ranks[i], parts[i].start_ns);
            double end = mtprof__rank_time(&r->ranks[i], parts[i].end_ns);
            room[n++] = fmax(end - m->arrival, 0);
            if (m->n_ranks == r->n) {
                r->ranks[i].wait_ns += m->arrival - start;
                r->ranks[i].transfer_ns += fmax(end - m->arrival, 0);
                r->ranks[i].last += i == m->last;
            }
        }
    }
    m->wait = m->arrival - sum / (double)n;
    m->skew = m->arrival - first;
    m->transfer = mtprof__median(room, n);
    m->wait_class = classify(r, m);
    r->facts.classes[m->wait_class]++;
}

int mtprof__ranks_waits(mtprof_ranks *r)
{
    double *room = mtb_calloc(r->n + 1, sizeof *room);
    if (room == NULL) {
        return mtprof__ranks_no_memory();
    }
    for (size_t i = 0; i < r->n_matched; i++) {
        look_at(r, &r->matched[i], room);
    }
    if (r->n_matched > 1) {
        qsort(r->matched, r->n_matched, sizeof *r->matched, compare_arrivals);
    }
    mtb_free(room);
    return MTPROF_OK;
}
