/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, fourth stage: an event whose parent has the same name, and no other child, is folded
 * into the parent, which takes over its children, its own time, its own memory and its device work.
 *
 * Repeating this to a fixed point needs no repetition: once a parent has taken over the children of
 * its only child, it has exactly as many as that one had. So an event is folded if its parent, as
 * recorded, has its name and one child; where chains of them end is the event that stays.
 *
 * Times stay true (MDL1, MDL2 of model.h) because only what ran inside the parent, on its thread,
 * is folded: the parent's self time did not include it.
 */
#include "base/fail.h"
#include "base/large.h"
#include "base/saturate.h"
#include "mtprof/model/columns/assemble_impl.h"

/* Whether an event is a child where children are counted. */
static bool is_child(const mtprof__columns *columns, uint32_t i)
{
    return columns->parent[i] != MTPROF_NO_EVENT && (columns->flags[i] & MTPROF__NO_CHILD) == 0 &&
           mtprof__kind_in(columns->kind[i], MTPROF__KINDS_TREE);
}

/* Children of each event, 2 for more than one. */
static void count_children(const mtprof__assembly *assembly, uint8_t *children)
{
    for (size_t p = 0; p < assembly->n_parts; p++) {
        const mtprof__part *part = &assembly->parts[p];
        const mtprof__columns *columns = &part->run->columns;
        for (uint32_t i = 0; i < part->n; i++) {
            if (is_child(columns, i)) {
                uint8_t *count = &children[columns->parent[i]];
                *count = (uint8_t)(*count + (*count < 2));
            }
        }
    }
}

/* Whether a child can go into its parent, apart from the number of children. */
static bool fits(const mtprof__columns *columns, uint32_t parent, uint32_t child)
{
    return columns->name[parent] == columns->name[child] &&
           columns->track[parent] == columns->track[child] &&
           mtprof__kind_in(columns->kind[parent], MTPROF__KINDS_TREE) &&
           (columns->flags[parent] & MTPROF__LOOSE) == 0 &&
           (columns->flags[child] & MTPROF_EVENT_FLAG_TOP) == 0 &&
           columns->start_ns[parent] <= columns->start_ns[child] &&
           columns->end_ns[child] <= columns->end_ns[parent];
}

/* Marks what is to be folded with its parent; how many there are. */
static uint32_t mark(const mtprof__assembly *assembly, const uint8_t *children)
{
    uint32_t n = 0;
    for (size_t p = 0; p < assembly->n_parts; p++) {
        const mtprof__part *part = &assembly->parts[p];
        const mtprof__columns *columns = &part->run->columns;
        for (uint32_t i = 0; i < part->n; i++) {
            uint32_t parent = columns->parent[i];
            if (is_child(columns, i) && children[parent] == 1 && parent - part->base < part->n &&
                fits(columns, parent - part->base, i)) {
                assembly->folds[part->base + i] = parent + 1;
                n++;
            }
        }
    }
    return n;
}

/* The event that finally replaces an event. Shortens the path, so that all paths together are
 * walked in linear time. */
static uint32_t stands_for(uint32_t *folds, uint32_t number)
{
    uint32_t last = number;
    while (folds[last] != 0) {
        last = folds[last] - 1;
    }
    while (number != last) {
        uint32_t next = folds[number] - 1;
        folds[number] = last + 1;
        number = next;
    }
    return last;
}

static void add_to(int64_t *values, uint32_t to, uint32_t from)
{
    if (values != NULL) {
        /* Unsigned: bytes are what the trace says, and may be anything. */
        values[to] = (int64_t)((uint64_t)values[to] + (uint64_t)values[from]);
    }
}

/* Both are in one part: only such are folded. */
static void take_over(const mtprof__part *part, uint32_t to, uint32_t from)
{
    const mtprof__columns *columns = &part->run->columns;
    const uint16_t moved = MTPROF_EVENT_FLAG_LAUNCHES | MTPROF_EVENT_FLAG_MATCHED;
    columns->flags[to] = (uint16_t)(columns->flags[to] | (columns->flags[from] & moved) |
                                    MTPROF_EVENT_FLAG_COLLAPSED);
    columns->self_ns[to] = mtb_add_sat(columns->self_ns[to], columns->self_ns[from]);
    add_to(columns->extra[MTPROF_COLUMN_ALLOCATED_SELF_CPU], to, from);
    add_to(columns->extra[MTPROF_COLUMN_ALLOCATED_SELF_DEVICE], to, from);
}

static void fold(mtprof__assembly *assembly)
{
    uint32_t *folds = assembly->folds;
    for (size_t p = 0; p < assembly->n_parts; p++) {
        const mtprof__part *part = &assembly->parts[p];
        for (uint32_t i = 0; i < part->n; i++) {
            if (folds[part->base + i] != 0) {
                take_over(part, stands_for(folds, part->base + i) - part->base, i);
            }
        }
    }
    for (size_t p = 0; p < assembly->n_parts; p++) {
        const mtprof__part *part = &assembly->parts[p];
        uint32_t *parent = part->run->columns.parent;
        for (uint32_t i = 0; i < part->n; i++) {
            if (parent[i] != MTPROF_NO_EVENT && folds[parent[i]] != 0) {
                parent[i] = folds[parent[i]] - 1;
            }
        }
    }
    for (size_t i = 0; i < assembly->links.n; i++) { /* AS3 */
        mtprof__tie *tie = &assembly->links.items[i];
        if (folds[tie->host] != 0) {
            tie->host = folds[tie->host] - 1;
        }
    }
}

int mtprof__assemble_fold(mtprof__assembly *assembly)
{
    uint32_t all = assembly->n;
    uint8_t *children = mtb_array_take(all, sizeof *children);
    assembly->folds = mtb_array_take(all, sizeof *assembly->folds);
    assembly->n_folds = all;
    if (children == NULL || assembly->folds == NULL) {
        mtb_array_give(children, all, sizeof *children);
        return mtb_fail(MTPROF_ENOMEM, "model: no memory to fold duplicates among %u events",
                        assembly->n);
    }
    count_children(assembly, children);
    uint32_t n = mark(assembly, children);
    mtb_array_give(children, all, sizeof *children);
    if (n != 0) {
        fold(assembly);
        assembly->model->findings.collapsed += n;
    } else {
        mtb_array_give(assembly->folds, all, sizeof *assembly->folds);
        assembly->folds = NULL;
        assembly->n_folds = 0;
    }
    return MTPROF_OK;
}
