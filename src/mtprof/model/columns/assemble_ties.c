/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, second stage: what keys say. Parents in other runs, and the host events that device
 * work and runtime calls belong to.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "base/large.h"
#include "mtprof/model/columns/assemble_impl.h"

/* ---- keys ------------------------------------------------------------------------------------ */

/* Open addressing, at most half full. */
typedef struct key_table {
    mtprof__link *items; /* key 0: free; event is a number */
    size_t capacity;     /* a power of two */
} key_table;

/* Eight consecutive keys, as begins have them, are stored together: two cache lines. */
static mtprof__link *find_slot(const key_table *table, uint64_t key)
{
    size_t at = (mtb_mix(key >> 3, table->capacity) << 3 | (key & 7)) & (table->capacity - 1);
    while (table->items[at].key != 0 && table->items[at].key != key) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->items[at];
}

/* The number a key names, MTPROF_NO_EVENT where it names nothing. */
static uint32_t find_host(const key_table *table, uint64_t key)
{
    if (key == 0) {
        return MTPROF_NO_EVENT;
    }
    const mtprof__link *found = find_slot(table, key);
    return found->key != 0 ? found->event : MTPROF_NO_EVENT;
}

static int fill_table(const mtprof__assembly *assembly, key_table *table)
{
    size_t n = 0;
    for (size_t i = 0; i < assembly->n_parts; i++) {
        n += assembly->parts[i].run->hosts.n;
    }
    table->capacity = 16;
    while (table->capacity < n * 2) {
        table->capacity *= 2;
    }
    table->items = mtb_array_take(table->capacity, sizeof *table->items);
    if (table->items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu keys of host events", n);
    }
    for (size_t i = 0; i < assembly->n_parts; i++) {
        const mtprof__part *part = &assembly->parts[i];
        for (size_t k = 0; k < part->run->hosts.n; k++) {
            const mtprof__link *host = &part->run->hosts.items[k];
            mtprof__link *slot = find_slot(table, host->key);
            if (host->key != 0 && slot->key == 0) { /* of several, the first */
                *slot = (mtprof__link){.key = host->key, .event = part->base + host->event};
            }
        }
    }
    return MTPROF_OK;
}

/* ---- parents --------------------------------------------------------------------------------- */

static void tie_parent(mtprof__assembly *assembly, const mtprof__part *part, uint32_t child,
                       uint32_t parent)
{
    const mtprof__columns *columns = &part->run->columns;
    const mtprof__part *other = mtprof__part_of(assembly, part, parent);
    const mtprof__columns *above = &other->run->columns;
    uint32_t place = parent - other->base;
    columns->parent[child] = parent;
    if (above->track[place] != columns->track[child]) {
        columns->flags[child] |= MTPROF_EVENT_FLAG_FOREIGN_PARENT;
    }
    assembly->odd_parents |= above->index[place] >= columns->index[child];
    assembly->candidates |= above->name[place] == columns->name[child]; /* unknown to the scan */
}

/* Whether INDEX grows in a part, so that it orders parents before children across parts too. */
static bool index_grows(const mtprof__part *part)
{
    const uint32_t *index = part->run->columns.index;
    bool grows = true;
    for (uint32_t i = 1; i < part->n; i++) {
        grows &= index[i - 1] < index[i];
    }
    return grows;
}

static void tie_parents(mtprof__assembly *assembly, const key_table *table)
{
    bool any = false;
    for (size_t i = 0; i < assembly->n_parts; i++) {
        const mtprof__part *part = &assembly->parts[i];
        const mtprof__links *parents = &part->run->parents;
        for (size_t k = 0; k < parents->n; k++) {
            uint32_t parent = find_host(table, parents->items[k].key);
            if (parent != MTPROF_NO_EVENT) {
                tie_parent(assembly, part, parents->items[k].event, parent);
                any = true;
            }
        }
    }
    /* Parts without parents (device work has no INDEX) cannot be on a circle. */
    for (size_t i = 0; any && i < assembly->n_parts; i++) {
        const mtprof__part *part = &assembly->parts[i];
        assembly->odd_parents |= part->run->columns.device[0] == 0 && !index_grows(part);
    }
}

/* AS2, where it is not plain from the order: a program may name any parent, also one that names it
 * in turn. The event at which a walk meets itself loses its parent. Each event is walked once. */
static int cut_circles(mtprof__assembly *assembly)
{
    uint32_t *walks = mtb_array_take(assembly->n, sizeof *walks);
    if (walks == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory to check the parents of %u events",
                        assembly->n);
    }
    const mtprof__part *part = assembly->parts;
    for (uint32_t first = 0; first < assembly->n; first++) {
        uint32_t at = first;
        while (at != MTPROF_NO_EVENT && walks[at] == 0) {
            walks[at] = first + 1;
            part = mtprof__part_of(assembly, part, at);
            at = part->run->columns.parent[at - part->base];
        }
        if (at != MTPROF_NO_EVENT && walks[at] == first + 1) {
            part = mtprof__part_of(assembly, part, at);
            part->run->columns.parent[at - part->base] = MTPROF_NO_EVENT;
            part->run->columns.flags[at - part->base] &=
                (uint16_t)~MTPROF_EVENT_FLAG_FOREIGN_PARENT;
        }
    }
    mtb_array_give(walks, assembly->n, sizeof *walks);
    return MTPROF_OK;
}

/* ---- device work ----------------------------------------------------------------------------- */

static int tie_work(mtprof__assembly *assembly, const mtprof__part *part, uint32_t work,
                    uint32_t host, uint32_t *memo)
{
    const mtprof__columns *columns = &part->run->columns;
    const mtprof__part *other = mtprof__part_of(assembly, part, host);
    uint8_t kind = columns->kind[work];
    if (assembly->native) { /* work belongs to the step that launched it, whenever it runs */
        columns->step[work] = other->run->columns.step[host - other->base];
    }
    if (mtprof__kind_in(kind, MTPROF__KINDS_DEVICE)) {
        columns->flags[work] |= MTPROF_EVENT_FLAG_MATCHED;
    }
    if (mtprof__kind_in(kind, MTPROF__KINDS_WORK)) {
        other->run->columns.flags[host - other->base] |= MTPROF_EVENT_FLAG_MATCHED;
    }
    uint32_t owner = host;
    if (assembly->native) {
        owner = mtprof__nearest(assembly, host, MTPROF__KINDS_OWNER, memo);
        MT_TRY(mtprof__pairs_add(&assembly->launches, part->base + work, host));
    }
    return owner != MTPROF_NO_EVENT ? mtprof__pairs_add(&assembly->links, part->base + work, owner)
                                    : MTPROF_OK;
}

static int tie_works_of(mtprof__assembly *assembly, const mtprof__part *part,
                        const key_table *table, uint32_t *memo)
{
    const mtprof__links *works = &part->run->works;
    for (size_t k = 0; k < works->n; k++) {
        const mtprof__link *work = &works->items[k];
        uint8_t kind = part->run->columns.kind[work->event];
        uint32_t host = find_host(table, work->key);
        if (host == MTPROF_NO_EVENT) {
            assembly->model->findings.orphans +=
                work->key != 0 && mtprof__kind_in(kind, MTPROF__KINDS_WORK);
            continue;
        }
        MT_TRY(tie_work(assembly, part, work->event, host, memo));
    }
    return MTPROF_OK;
}

/* Runtime calls of our own traces belong to the event around them. */
static int tie_calls_of(mtprof__assembly *assembly, const mtprof__part *part, uint32_t *memo)
{
    const mtprof__columns *columns = &part->run->columns;
    for (uint32_t i = 0; i < part->n; i++) {
        if (!mtprof__kind_in(columns->kind[i], MTPROF__KINDS_CALL)) {
            continue;
        }
        uint32_t owner = mtprof__nearest(assembly, columns->parent[i], MTPROF__KINDS_OWNER, memo);
        if (owner != MTPROF_NO_EVENT) {
            MT_TRY(mtprof__pairs_add(&assembly->links, part->base + i, owner));
        }
    }
    return MTPROF_OK;
}

static uint64_t count_unmatched(const mtprof__part *part)
{
    const uint16_t *flags = part->run->columns.flags;
    uint64_t n = 0;
    if ((part->flags & MTPROF_EVENT_FLAG_LAUNCHES) == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < part->n; i++) {
        n += (flags[i] & (MTPROF_EVENT_FLAG_LAUNCHES | MTPROF_EVENT_FLAG_MATCHED)) ==
             MTPROF_EVENT_FLAG_LAUNCHES;
    }
    return n;
}

/* ---- the stage ------------------------------------------------------------------------------- */

typedef struct tie_needs {
    bool works, parents, calls;
} tie_needs;

static int tie_all(mtprof__assembly *assembly, const tie_needs *needs, const key_table *table,
                   uint32_t *memo)
{
    if (needs->parents) {
        tie_parents(assembly, table);
    }
    if (assembly->odd_parents) {
        MT_TRY(cut_circles(assembly));
    }
    for (size_t i = 0; needs->works && i < assembly->n_parts; i++) {
        MT_TRY(tie_works_of(assembly, &assembly->parts[i], table, memo));
    }
    for (size_t i = 0; needs->calls && i < assembly->n_parts; i++) {
        MT_TRY(tie_calls_of(assembly, &assembly->parts[i], memo));
    }
    return MTPROF_OK;
}

int mtprof__assemble_ties(mtprof__assembly *assembly)
{
    tie_needs needs = {false, false, false};
    for (size_t i = 0; i < assembly->n_parts; i++) {
        const mtprof__part *part = &assembly->parts[i];
        needs.works |= part->run->works.n != 0;
        needs.parents |= part->run->parents.n != 0;
        needs.calls |= assembly->native && (part->kinds & MTPROF__KINDS_CALL) != 0;
    }
    key_table table = {NULL, 0};
    uint32_t *memo = NULL;
    int status = MTPROF_OK;
    if (needs.works || needs.parents) {
        status = fill_table(assembly, &table);
    }
    if (status == MTPROF_OK && assembly->native && (needs.works || needs.calls)) {
        memo = mtb_array_take(assembly->n, sizeof *memo);
        if (memo == NULL) {
            status = mtb_fail(MTPROF_ENOMEM, "model: no memory for the owners of %u events",
                              assembly->n);
        }
    }
    if (status == MTPROF_OK) {
        status = tie_all(assembly, &needs, &table, memo);
    }
    mtb_array_give(table.items, table.capacity, sizeof *table.items);
    mtb_array_give(memo, assembly->n, sizeof *memo);
    for (size_t i = 0; i < assembly->n_parts; i++) {
        assembly->model->findings.unmatched += count_unmatched(&assembly->parts[i]);
    }
    return status;
}
