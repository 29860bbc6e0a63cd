/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, third stage: the device's view of scopes. A scope under which kernels, copies or
 * sets were launched gets, on each queue they ran on, an event of its name from the first start to
 * the last end of them.
 *
 * Work is first collected at its innermost scope; then spans go up from the deepest scopes to the
 * outermost, each once. So this takes time in proportion to the work and to the twins made, however
 * deep scopes nest.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/large.h"
#include "mtprof/model/columns/assemble_impl.h"

#include <string.h>

enum {
    /* A trace may nest a hundred thousand scopes around work on a thousand queues; a million twins
     * and four per piece of work are more than a person looks at. Outer ones are left out first. */
    SPARE_TWINS = 1 << 20,
    TWINS_PER_WORK = 4
};

typedef struct twin {
    uint32_t scope; /* number */
    uint32_t track;
    int64_t start_ns, end_ns;
    uint8_t device;
    uint32_t next; /* of the same depth, index + 1 */
} twin;

typedef struct twin_list {
    const mtprof__assembly *assembly;
    twin *items;
    size_t n, capacity, limit;
    uint64_t left_out; /* because of the limit */
    mtb_idmap map;     /* of (scope, track): index + 1 */
    uint32_t last;     /* index + 1 of the latest one found: work comes in bursts */
    uint32_t *scopes;  /* memo of mtprof__nearest() */
    uint32_t *depths;  /* of scopes: how many are around it, + 1 */
    uint32_t *levels;  /* by depth: the first twin, index + 1 */
    size_t n_levels;
} twin_list;

/* The scope around a scope. */
static uint32_t above(const twin_list *list, uint32_t scope)
{
    const mtprof__part *part = mtprof__part_of(list->assembly, list->assembly->parts, scope);
    return mtprof__nearest(list->assembly, part->run->columns.parent[scope - part->base],
                           MTPROF__KINDS_SCOPE, list->scopes);
}

/* How many scopes are around one. Each is walked over once. */
static uint32_t depth_of(twin_list *list, uint32_t scope)
{
    uint32_t steps = 0;
    uint32_t at = scope;
    while (at != MTPROF_NO_EVENT && list->depths[at] == 0) {
        steps++;
        at = above(list, at);
    }
    uint32_t depth = steps + (at != MTPROF_NO_EVENT ? list->depths[at] : 0);
    for (at = scope; at != MTPROF_NO_EVENT && list->depths[at] == 0; at = above(list, at)) {
        list->depths[at] = depth--;
    }
    return list->depths[scope] - 1;
}

static bool same_twin(const void *context, uint32_t id, const void *key)
{
    const twin *a = &((const twin_list *)context)->items[id - 1];
    const twin *b = key;
    return a->scope == b->scope && a->track == b->track;
}

static int add_twin(twin_list *list, twin span, uint64_t hash)
{
    uint32_t depth = depth_of(list, span.scope);
    bool room = mtb_reach((void **)&list->levels, &list->n_levels, depth, sizeof *list->levels);
    span.next = room ? list->levels[depth] : 0;
    if (!room || !mtb_idmap_append(&list->map, hash, list->items, list->n, list->capacity, &span)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu annotations on device queues",
                        list->n + 1);
    }
    list->levels[depth] = (uint32_t)list->n;
    return MTPROF_OK;
}

/* Makes the twin of a scope on a queue cover a span. */
static int cover(twin_list *list, twin span)
{
    uint32_t found = list->last;
    uint64_t hash = 0;
    if (found == 0 || !same_twin(list, found, &span)) {
        hash = mtb_mix(span.scope, span.track);
        found = mtb_idmap_find(&list->map, hash, same_twin, list, &span);
    }
    if (found == 0) {
        if (list->n < list->limit) {
            return add_twin(list, span, hash);
        }
        list->left_out++;
        return MTPROF_OK;
    }
    list->last = found;
    twin *known = &list->items[found - 1];
    known->start_ns = span.start_ns < known->start_ns ? span.start_ns : known->start_ns;
    known->end_ns = span.end_ns > known->end_ns ? span.end_ns : known->end_ns;
    return MTPROF_OK;
}

static int collect(twin_list *list)
{
    const mtprof__assembly *assembly = list->assembly;
    const mtprof__part *part = assembly->parts;
    for (size_t i = 0; i < assembly->links.n; i++) {
        const mtprof__tie *tie = &assembly->links.items[i];
        part = mtprof__part_of(assembly, part, tie->work);
        const mtprof__columns *columns = &part->run->columns;
        uint32_t work = tie->work - part->base;
        if (!mtprof__kind_in(columns->kind[work], MTPROF__KINDS_WORK)) {
            continue;
        }
        twin span = {
            .scope = mtprof__nearest(assembly, tie->host, MTPROF__KINDS_SCOPE, list->scopes),
            .track = columns->track[work],
            .start_ns = columns->start_ns[work],
            .end_ns = columns->end_ns[work],
            .device = columns->device[work],
        };
        if (span.scope != MTPROF_NO_EVENT) {
            MT_TRY(cover(list, span));
        }
    }
    return MTPROF_OK;
}

/* From the deepest level up. What is covered is a level higher, so no level grows under the loop.
 */
static int go_up(twin_list *list)
{
    for (size_t depth = list->n_levels; depth-- > 1;) {
        for (uint32_t at = list->levels[depth]; at != 0; at = list->items[at - 1].next) {
            twin span = list->items[at - 1];
            span.scope = above(list, span.scope);
            MT_TRY(cover(list, span));
        }
    }
    return MTPROF_OK;
}

static void put_twin(mtprof__assembly *assembly, const twin *span)
{
    const mtprof__part *part = mtprof__part_find(assembly, span->scope);
    const mtprof__columns *scopes = &part->run->columns;
    uint32_t scope = span->scope - part->base;
    mtprof__columns *columns = &assembly->twins.columns;
    size_t i = columns->n++;
    columns->start_ns[i] = span->start_ns;
    columns->end_ns[i] = span->end_ns;
    columns->self_ns[i] = 0;
    columns->parent[i] = MTPROF_NO_EVENT;
    columns->name[i] = scopes->name[scope];
    columns->track[i] = span->track;
    columns->step[i] = scopes->step[scope];
    columns->index[i] = MTPROF_NO_EVENT;
    columns->kind[i] = MTPROF_EVENT_KIND_ANNOTATION;
    columns->device[i] = span->device;
    columns->flags[i] = MTPROF_EVENT_FLAG_MATCHED;
}

/* The twins as a part of their own. Outer ones first: of those with equal spans they come first. */
static int put_twins(mtprof__assembly *assembly, const twin_list *list)
{
    if (list->n >= MTPROF_NO_EVENT - 2 - assembly->n) {
        return MTPROF_OK; /* no numbers are left for them */
    }
    MT_TRY(mtprof__columns_reserve(&assembly->twins.columns, list->n));
    for (size_t depth = 0; depth < list->n_levels; depth++) {
        for (uint32_t at = list->levels[depth]; at != 0; at = list->items[at - 1].next) {
            MT_TRY(mtprof__pairs_add(&assembly->links,
                                     assembly->n + (uint32_t)assembly->twins.columns.n,
                                     list->items[at - 1].scope));
            put_twin(assembly, &list->items[at - 1]);
        }
    }
    assembly->parts[assembly->n_parts++] = (mtprof__part){
        .run = &assembly->twins,
        .base = assembly->n,
        .n = (uint32_t)list->n,
        .order = -1, /* before the work it is around */
    };
    assembly->n += (uint32_t)list->n;
    return MTPROF_OK;
}

static int make_twins(mtprof__assembly *assembly, twin_list *list)
{
    if (list->scopes == NULL || list->depths == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu annotations on device queues",
                        list->n + 1);
    }
    MT_TRY(collect(list));
    MT_TRY(go_up(list));
    return list->n != 0 ? put_twins(assembly, list) : MTPROF_OK;
}

int mtprof__assemble_twins(mtprof__assembly *assembly)
{
    if (assembly->links.n == 0) {
        return MTPROF_OK;
    }
    uint32_t n = assembly->n; /* the twins come to it */
    twin_list list = {
        .assembly = assembly,
        .limit = SPARE_TWINS + TWINS_PER_WORK * assembly->links.n,
        .scopes = mtb_array_take(assembly->n, sizeof *list.scopes),
        .depths = mtb_array_take(assembly->n, sizeof *list.depths),
    };
    int status = make_twins(assembly, &list);
    assembly->model->findings.left_out += list.left_out;
    mtb_idmap_reset(&list.map);
    mtb_free(list.items);
    mtb_array_give(list.scopes, n, sizeof *list.scopes);
    mtb_array_give(list.depths, n, sizeof *list.depths);
    mtb_free(list.levels);
    return status;
}
