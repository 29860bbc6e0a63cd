/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining: threads or queues that run the same at the same time, one of them longer.
 *
 * A group is the tracks on which one name (of a kernel, or of the outermost scope or op of a
 * thread) has most of the time. They have to overlap: forward and backward threads take turns and
 * are no group. What is lost is, in each step, what the busiest of them takes more than their mean.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/explain/explain_impl.h"

#include <stdlib.h>
#include <string.h>

/* What a track does, and for how long. The name is found by a majority vote by time. */
typedef struct load {
    uint32_t track, name;
    int64_t votes_ns;
    int64_t named_ns; /* of busy_ns: in events of that name */
    int64_t busy_ns, until_ns;
    bool is_queue;
} load;

static bool counts(const mtprof_explain *e, size_t i)
{
    const mtprof__explain_columns *c = &e->columns;
    if (c->track[i] >= e->n_tracks) {
        return false;
    }
    if (c->kind[i] == MTPROF_EVENT_KIND_KERNEL) {
        return true;
    }
    bool is_top = (c->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0 && c->device[i] == 0;
    return is_top && (c->kind[i] == MTPROF_EVENT_KIND_OP || c->kind[i] == MTPROF_EVENT_KIND_SCOPE);
}

/* The part of an event that is in steps and past what its track has done already. */
static int64_t new_time(const mtprof_explain *e, size_t i, int64_t until_ns)
{
    int64_t start = e->columns.start_ns[i] > until_ns ? e->columns.start_ns[i] : until_ns;
    int64_t end = e->columns.end_ns[i];
    return end > start && mtprof__explain_step_at(e, start) < e->n_steps ? end - start : 0;
}

static void vote(const mtprof_explain *e, load *loads)
{
    for (size_t i = 0; i < e->columns.n; i++) {
        if (!counts(e, i)) {
            continue;
        }
        load *l = &loads[e->columns.track[i]];
        int64_t ns = new_time(e, i, l->until_ns);
        uint32_t name = e->columns.name[i];
        l->is_queue = e->columns.kind[i] == MTPROF_EVENT_KIND_KERNEL;
        l->until_ns = e->columns.end_ns[i] > l->until_ns ? e->columns.end_ns[i] : l->until_ns;
        l->busy_ns += ns;
        if (l->name == name) {
            l->votes_ns += ns;
        } else if (l->votes_ns >= ns) {
            l->votes_ns -= ns;
        } else {
            l->name = name;
            l->votes_ns = ns - l->votes_ns;
        }
    }
}

static void count_named(const mtprof_explain *e, load *loads)
{
    for (uint32_t i = 0; i < e->n_tracks; i++) {
        loads[i].until_ns = INT64_MIN;
    }
    for (size_t i = 0; i < e->columns.n; i++) {
        if (counts(e, i)) {
            load *l = &loads[e->columns.track[i]];
            l->named_ns += e->columns.name[i] == l->name ? new_time(e, i, l->until_ns) : 0;
            l->until_ns = e->columns.end_ns[i] > l->until_ns ? e->columns.end_ns[i] : l->until_ns;
        }
    }
}

static int compare_loads(const void *a, const void *b)
{
    const load *x = a, *y = b;
    int order = mtb_order(x->is_queue, y->is_queue);
    order = order != 0 ? order : mtb_order(x->name, y->name);
    order = order != 0 ? order : mtb_order(y->busy_ns, x->busy_ns);
    return order != 0 ? order : mtb_order(x->track, y->track);
}

typedef struct member {
    int64_t until_ns;
    int64_t busy_ns; /* in the current step */
} member;

/* What a group loses: one pass over its events. `place`: of a track in the group + 1. */
static void weigh(const mtprof_explain *e, mtprof__balance *group, const uint8_t *place)
{
    member members[MTPROF__BALANCE_TRACKS] = {{0}};
    double all_ns = 0;
    int64_t union_ns = 0;
    int64_t covered = INT64_MIN;
    int64_t lost = 0;
    size_t step = e->n_steps;
    for (uint32_t k = 0; k < group->n; k++) {
        members[k].until_ns = INT64_MIN;
    }
    for (size_t i = 0; i <= e->columns.n; i++) {
        bool is_end = i == e->columns.n;
        if (!is_end && (!counts(e, i) || place[e->columns.track[i]] == 0)) {
            continue;
        }
        size_t now = is_end ? SIZE_MAX : mtprof__explain_step_at(e, e->columns.start_ns[i]);
        if (now != step) {
            int64_t most = 0;
            double sum = 0;
            for (uint32_t k = 0; k < group->n; k++) {
                most = members[k].busy_ns > most ? members[k].busy_ns : most;
                sum += (double)members[k].busy_ns;
                members[k].busy_ns = 0;
            }
            lost += most - (int64_t)(sum / group->n);
            step = now;
        }
        if (is_end || now == e->n_steps) {
            continue;
        }
        member *m = &members[place[e->columns.track[i]] - 1];
        int64_t ns = new_time(e, i, m->until_ns);
        m->until_ns = e->columns.end_ns[i] > m->until_ns ? e->columns.end_ns[i] : m->until_ns;
        m->busy_ns += ns;
        all_ns += (double)ns;
        union_ns += new_time(e, i, covered);
        covered = e->columns.end_ns[i] > covered ? e->columns.end_ns[i] : covered;
    }
    double others_ns = all_ns - (double)group->busy_ns[0];
    bool overlaps = all_ns - (double)union_ns >= others_ns / 2;
    group->lost_ns = overlaps && lost <= union_ns ? lost : 0;
}

static void weigh_group(mtprof_explain *e, const load *loads, size_t n, uint8_t *place)
{
    mtprof__balance group = {.name = loads[0].name};
    memset(place, 0, e->n_tracks);
    for (size_t i = 0; i < n && group.n < MTPROF__BALANCE_TRACKS; i++) {
        group.tracks[group.n] = loads[i].track;
        group.busy_ns[group.n] = loads[i].busy_ns;
        place[loads[i].track] = (uint8_t)++group.n;
    }
    weigh(e, &group, place);
    if (group.lost_ns > e->balance.lost_ns) {
        e->balance = group;
    }
}

int mtprof__explain_balance(mtprof_explain *e)
{
    load *loads = mtb_calloc((size_t)e->n_tracks + 1, sizeof *loads);
    uint8_t *place = mtb_calloc((size_t)e->n_tracks + 1, 1);
    if (loads == NULL || place == NULL) {
        mtb_free(loads);
        mtb_free(place);
        return mtprof__explain_no_memory("threads");
    }
    for (uint32_t i = 0; i < e->n_tracks; i++) {
        loads[i] = (load){.track = i, .until_ns = INT64_MIN};
    }
    vote(e, loads);
    count_named(e, loads);
    size_t n = 0;
    for (uint32_t i = 0; i < e->n_tracks; i++) { /* a hundredth of the wall time is no worker */
        if (loads[i].busy_ns > e->wall_ns / 100 && loads[i].named_ns > loads[i].busy_ns / 2) {
            loads[n++] = loads[i];
        }
    }
    qsort(loads, n, sizeof *loads, compare_loads);
    for (size_t i = 0; i < n;) {
        size_t next = i + 1;
        while (next < n && loads[next].name == loads[i].name &&
               loads[next].is_queue == loads[i].is_queue) {
            next++;
        }
        if (next - i > 1) {
            weigh_group(e, &loads[i], next - i, place);
        }
        i = next;
    }
    mtb_free(loads);
    mtb_free(place);
    return MTPROF_OK;
}
