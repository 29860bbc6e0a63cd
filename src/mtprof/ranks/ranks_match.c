/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of different ranks are one collective: those of the same name and size, in the same
 * step, in the same place among them. Where a rank has fewer of a kind in a step than others, it is
 * not known which are missing: none of its calls of that kind in that step is matched.
 *
 * Jobs without steps count as one step.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/ranks/ranks_impl.h"

#include <stdlib.h>
#include <string.h>

/* Calls of one kind in one step. */
typedef struct call_group {
    uint32_t kind;
    int32_t step;
    uint32_t most; /* calls of the rank that has the most */
    size_t first;  /* index of the first collective */
    bool dropped;
} call_group;

typedef struct matching {
    mtprof_ranks *r;
    uint32_t layer;
    bool steps;
    call_group *groups;
    size_t n, capacity;
    mtb_idmap map;
} matching;

static int compare_calls(const void *a, const void *b)
{
    const mtprof__call *x = a, *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool same_group(const void *context, uint32_t id, const void *key)
{
    const matching *m = context;
    const call_group *a = &m->groups[id - 1], *b = key;
    return a->kind == b->kind && a->step == b->step;
}

/* The number of calls from `at` on that are of one group. */
static size_t run_length(const mtprof__rank *rank, size_t at)
{
    size_t end = at + 1;
    while (end < rank->n_calls && rank->calls[end].kind == rank->calls[at].kind &&
           rank->calls[end].step == rank->calls[at].step) {
        end++;
    }
    return end - at;
}

/* The layer that is nearest to the data among those that all ranks have. */
static uint32_t choose_layer(const mtprof_ranks *r)
{
    for (uint32_t layer = MTPROF_LAYER_COUNT - 1; layer > MTPROF_LAYER_NONE; layer--) {
        size_t having = 0;
        for (size_t i = 0; i < r->n; i++) {
            size_t k = 0;
            while (k < r->ranks[i].n_calls && r->kinds[r->ranks[i].calls[k].kind].layer != layer) {
                k++;
            }
            having += k < r->ranks[i].n_calls;
        }
        if (having == r->n) {
            return layer;
        }
    }
    return MTPROF_LAYER_NONE;
}

/* Keeps the calls of the layer, in order of their groups. */
static void sort_calls(const matching *m, mtprof__rank *rank)
{
    size_t n = 0;
    for (size_t i = 0; i < rank->n_calls; i++) {
        if (m->r->kinds[rank->calls[i].kind].layer == m->layer) {
            rank->calls[n] = rank->calls[i];
            rank->calls[n].step = m->steps ? rank->calls[n].step : -1;
            n++;
        }
    }
    rank->n_calls = n;
    rank->n_calls_seen = n;
    if (n > 1) {
        qsort(rank->calls, n, sizeof *rank->calls, compare_calls);
    }
}

static call_group *find_group(matching *m, uint32_t kind, int32_t step, bool add)
{
    call_group group = {.kind = kind, .step = step};
    uint64_t hash = mtb_mix(kind + UINT64_C(0x9E3779B97F4A7C15), (uint32_t)step);
    uint32_t id = mtb_idmap_find(&m->map, hash, same_group, m, &group);
    if (id == 0 && add) {
        if (!mtb_idmap_append(&m->map, hash, m->groups, m->n, m->capacity, &group)) {
            return NULL;
        }
        id = (uint32_t)m->n;
    }
    return id > 0 ? &m->groups[id - 1] : NULL;
}

static int find_groups(matching *m)
{
    for (size_t i = 0; i < m->r->n; i++) {
        mtprof__rank *rank = &m->r->ranks[i];
        sort_calls(m, rank);
        for (size_t at = 0; at < rank->n_calls;) {
            size_t n = run_length(rank, at);
            call_group *group = find_group(m, rank->calls[at].kind, rank->calls[at].step, true);
            if (group == NULL) {
                return mtprof__ranks_no_memory();
            }
            group->most = n > group->most ? (uint32_t)n : group->most;
            at += n;
        }
    }
    return MTPROF_OK;
}

static int make_collectives(matching *m)
{
    mtprof_ranks *r = m->r;
    for (size_t g = 0; g < m->n; g++) {
        call_group *group = &m->groups[g];
        group->first = r->n_matched;
        for (uint32_t k = 0; k < group->most; k++) {
            if ((r->n_matched + 1) * r->n > MTPROF__PARTS_MOST) {
                group->dropped = true;
                r->facts.dropped++;
                continue;
            }
            mtprof__matched one = {.kind = group->kind,
                                   .step = group->step,
                                   .ordinal = k,
                                   .parts = r->n_matched * r->n};
            if (!mtb_append(r->matched, r->n_matched, r->matched_capacity, &one)) {
                return mtprof__ranks_no_memory();
            }
        }
    }
    r->parts = mtb_calloc(r->n_matched * r->n + 1, sizeof *r->parts);
    return r->parts != NULL ? MTPROF_OK : mtprof__ranks_no_memory();
}

static void fill_parts(matching *m, size_t index)
{
    mtprof_ranks *r = m->r;
    mtprof__rank *rank = &r->ranks[index];
    uint64_t matched = 0, all = 0;
    for (size_t g = 0; g < m->n; g++) {
        all += m->groups[g].dropped ? 0 : m->groups[g].most;
    }
    for (size_t at = 0; at < rank->n_calls;) {
        size_t n = run_length(rank, at);
        const call_group *group = find_group(m, rank->calls[at].kind, rank->calls[at].step, false);
        bool take = group != NULL && !group->dropped && n == group->most;
        r->facts.unmatched += take || (group != NULL && group->dropped) ? 0 : n;
        for (size_t k = 0; take && k < n; k++) {
            mtprof__matched *one = &r->matched[group->first + k];
            r->parts[one->parts + index] =
                (mtprof__part){rank->calls[at + k].start_ns, rank->calls[at + k].end_ns};
            one->n_ranks++;
        }
        matched += take ? n : 0;
        at += n;
    }
    rank->missing = all - matched;
    mtb_free(rank->calls);
    rank->calls = NULL;
    rank->n_calls = rank->calls_capacity = 0;
}

/* What only one rank has is no collective of the job. */
static void drop_single(mtprof_ranks *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_matched; i++) {
        if (r->matched[i].n_ranks > 1) {
            r->facts.shared += r->matched[i].n_ranks == r->n;
            r->matched[n++] = r->matched[i];
        } else {
            r->facts.unmatched += r->matched[i].n_ranks;
        }
    }
    r->n_matched = n;
    r->facts.collectives = (uint32_t)n;
}

int mtprof__ranks_match(mtprof_ranks *r)
{
    matching m = {.r = r, .layer = choose_layer(r), .steps = true};
    for (size_t i = 0; i < r->n; i++) {
        m.steps = m.steps && r->ranks[i].has_steps;
    }
    r->facts.layer = m.layer;
    int status = find_groups(&m);
    if (status == MTPROF_OK) {
        status = make_collectives(&m);
    }
    for (size_t i = 0; i < r->n && status == MTPROF_OK; i++) {
        fill_parts(&m, i);
    }
    if (status == MTPROF_OK) {
        drop_single(r);
    }
    mtb_free(m.groups);
    mtb_idmap_reset(&m.map);
    return status;
}
