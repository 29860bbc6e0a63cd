/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs become columns: the stages in order, and what they share. See assemble_impl.h.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "mtprof/model/events/event.h"

#include <string.h>

/* ---- what the stages share ------------------------------------------------------------------- */

static bool begins_by(const void *part, uint64_t number)
{
    return ((const mtprof__part *)part)->base <= number;
}

const mtprof__part *mtprof__part_find(const mtprof__assembly *assembly, uint32_t number)
{
    size_t behind =
        mtb_search(assembly->parts, assembly->n_parts, sizeof *assembly->parts, begins_by, number);
    return &assembly->parts[behind - (behind > 0)];
}

int mtprof__pairs_add(mtprof__pairs *pairs, uint32_t work, uint32_t host)
{
    return mtb_append(pairs->items, pairs->n, pairs->capacity, &(mtprof__tie){work, host})
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu links", pairs->n + 1);
}

enum memo {
    MEMO_UNKNOWN = 0,
    MEMO_NONE = 1,
    MEMO_FIRST = 2 /* number 0 */
};

uint32_t mtprof__nearest(const mtprof__assembly *assembly, uint32_t number, uint32_t kinds,
                         uint32_t *memo)
{
    const mtprof__part *part = assembly->parts;
    uint32_t at = number;
    uint32_t answer = MEMO_NONE;
    while (at != MTPROF_NO_EVENT) {
        part = mtprof__part_of(assembly, part, at);
        if (mtprof__kind_in(part->run->columns.kind[at - part->base], kinds)) {
            answer = at + MEMO_FIRST;
            break;
        }
        if (memo[at] != MEMO_UNKNOWN) {
            answer = memo[at];
            break;
        }
        at = part->run->columns.parent[at - part->base];
    }
    for (uint32_t below = number; below != at;) {
        memo[below] = answer;
        part = mtprof__part_of(assembly, part, below);
        below = part->run->columns.parent[below - part->base];
    }
    return answer == MEMO_NONE ? MTPROF_NO_EVENT : answer - MEMO_FIRST;
}

/* ---- the scan -------------------------------------------------------------------------------- */

/* Events that begin and end together and have no INDEX: by kind and name. */
static int tie_by_name(const mtprof_model *model, const mtprof__columns *a, uint32_t left,
                       const mtprof__columns *b, uint32_t right)
{
    if (a->index[left] != MTPROF_NO_EVENT || b->index[right] != MTPROF_NO_EVENT) {
        return 0;
    }
    if (a->kind[left] != b->kind[right]) {
        return a->kind[left] > b->kind[right] ? -1 : 1; /* annotations before the work in them */
    }
    return mtprof__text_order(mtprof_model_name(model, a->name[left]),
                              mtprof_model_name(model, b->name[right]));
}

int mtprof__order_of(const mtprof_model *model, const mtprof__columns *a, uint32_t left,
                     const mtprof__columns *b, uint32_t right)
{
    if (a->start_ns[left] != b->start_ns[right]) {
        return a->start_ns[left] < b->start_ns[right] ? -1 : 1;
    }
    if (a->end_ns[left] != b->end_ns[right]) {
        return a->end_ns[left] > b->end_ns[right] ? -1 : 1;
    }
    if (a->index[left] != b->index[right]) {
        return a->index[left] < b->index[right] ? -1 : 1;
    }
    return tie_by_name(model, a, left, b, right);
}

static void scan_part(mtprof__assembly *assembly, mtprof__part *part)
{
    const mtprof__columns *columns = &part->run->columns;
    bool sorted = true;
    bool odd = false;
    bool candidates = false;
    uint32_t kinds = 0;
    uint32_t flags = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t parent = columns->parent[i];
        kinds |= 1u << (columns->kind[i] & 31);
        flags |= columns->flags[i];
        MT_ASSERT(parent < part->n || parent == MTPROF_NO_EVENT);
        sorted = sorted &&
                 (i == 0 || mtprof__order_of(assembly->model, columns, i - 1, columns, i) <= 0);
        if (parent != MTPROF_NO_EVENT) {
            odd |= parent >= i;
            candidates |= columns->name[parent] == columns->name[i];
        }
    }
    for (uint32_t i = 0; part->base != 0 && i < part->n; i++) {
        columns->parent[i] += columns->parent[i] != MTPROF_NO_EVENT ? part->base : 0;
    }
    part->sorted = sorted;
    part->kinds = kinds;
    part->flags = flags;
    assembly->odd_parents |= odd;
    assembly->candidates |= candidates;
}

void mtprof__assemble_scan(mtprof__assembly *assembly)
{
    for (size_t i = 0; i < assembly->n_parts; i++) {
        scan_part(assembly, &assembly->parts[i]);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int begin(mtprof__assembly *assembly, mtprof_model *model, mtprof__run *runs, size_t n_runs)
{
    *assembly = (mtprof__assembly){.model = model, .native = model->reader != NULL};
    assembly->parts = mtb_calloc(n_runs + 1, sizeof *assembly->parts);
    if (assembly->parts == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu runs", n_runs);
    }
    uint64_t total = 0;
    for (size_t i = 0; i < n_runs; i++) {
        uint64_t n = runs[i].columns.n;
        total += n;
        if (total >= UINT32_MAX - MEMO_FIRST) {
            return mtb_fail(MTPROF_ENOTSUP,
                            "model: more than %u events do not fit into columns; exports still do",
                            UINT32_MAX - MEMO_FIRST);
        }
        if (n != 0) {
            assembly->parts[assembly->n_parts++] = (mtprof__part){
                .run = &runs[i],
                .base = assembly->n,
                .n = (uint32_t)n,
                .order = runs[i].order,
            };
        }
        assembly->n = (uint32_t)total;
    }
    return MTPROF_OK;
}

static bool is_folded(const mtprof__assembly *assembly, uint32_t number)
{
    return number < assembly->n_folds && assembly->folds[number] != 0;
}

static uint32_t place_of(const mtprof__assembly *assembly, uint32_t number)
{
    if (is_folded(assembly, number)) {
        number = assembly->folds[number] - 1;
    }
    return assembly->rank != NULL ? assembly->rank[number] : number;
}

/* LINK, the launches, and the owners of allocations: from numbers to places. */
static int renumber(mtprof__assembly *assembly)
{
    mtprof_model *model = assembly->model;
    if (assembly->links.n != 0) {
        void *link;
        MT_TRY(mtprof__columns_extra(&model->columns, MTPROF_COLUMN_LINK, &link));
        for (size_t i = 0; i < assembly->links.n; i++) {
            const mtprof__tie *tie = &assembly->links.items[i];
            if (!is_folded(assembly, tie->work)) { /* a runtime call that was: its parent's stays */
                ((uint32_t *)link)[place_of(assembly, tie->work)] = place_of(assembly, tie->host);
            }
        }
    }
    for (size_t i = 0; i < assembly->launches.n; i++) {
        mtprof__tie *tie = &assembly->launches.items[i];
        *tie = (mtprof__tie){place_of(assembly, tie->work), place_of(assembly, tie->host)};
    }
    model->launches = assembly->launches.items;
    model->n_launches = assembly->launches.n;
    assembly->launches = (mtprof__pairs){NULL, 0, 0};
    for (size_t i = 0; i < model->n_points; i++) {
        mtprof__event *point = &model->points[i];
        if (point->kind == MTPROF_EVENT_KIND_ALLOC && point->owner != 0) {
            MT_ASSERT(point->owner <= assembly->n);
            point->owner = place_of(assembly, (uint32_t)(point->owner - 1)) + 1;
        }
    }
    return MTPROF_OK;
}

static int assemble(mtprof__assembly *assembly)
{
    static const char what[] = "sorting";
    mtprof__assemble_scan(assembly);
    MT_TRY(mtprof__model_ask(assembly->model, what));
    MT_TRY(mtprof__assemble_ties(assembly));
    if (assembly->native) { /* before folding: that is the host's affair */
        MT_TRY(mtprof__assemble_annotations(assembly));
    }
    if (assembly->candidates && assembly->model->options.keep_duplicates == 0) {
        MT_TRY(mtprof__assemble_fold(assembly));
    }
    MT_TRY(mtprof__model_ask(assembly->model, what));
    MT_TRY(mtprof__assemble_order(assembly));
    MT_TRY(mtprof__model_ask(assembly->model, what));
    MT_TRY(mtprof__assemble_move(assembly));
    return renumber(assembly);
}

static void finish(mtprof__assembly *assembly, mtprof__run *runs, size_t n_runs)
{
    for (size_t i = 0; i < assembly->n_parts; i++) {
        mtb_free(assembly->parts[i].sorting);
    }
    for (size_t i = 0; i < n_runs; i++) {
        mtprof__run_fini(&runs[i]);
    }
    mtprof__run_fini(&assembly->annotations);
    mtb_free(assembly->parts);
    mtb_free(assembly->links.items);
    mtb_free(assembly->launches.items);
    mtb_array_give(assembly->folds, assembly->n_folds, sizeof *assembly->folds);
    mtb_array_give(assembly->rank, assembly->n, sizeof *assembly->rank);
}

int mtprof__model_assemble(mtprof_model *model, mtprof__run *runs, size_t n_runs)
{
    mtprof__assembly assembly;
    int status = begin(&assembly, model, runs, n_runs);
    if (status == MTPROF_OK) {
        status = assemble(&assembly);
    }
    if (status == MTPROF_OK) {
        status = mtprof__model_backward_stacks(model);
    }
    finish(&assembly, runs, n_runs);
    if (status != MTPROF_OK) {
        mtprof__columns_fini(&model->columns);
        return status;
    }
    model->findings.events = model->columns.n;
    MT_ASSERT(mtprof__model_verify(model));
    return MTPROF_OK;
}
