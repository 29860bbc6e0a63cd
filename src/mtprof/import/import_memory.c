/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: each belongs to the event it names, or to the innermost one that was open on its own
 * thread. Those that were in none become events of their own (TC 3.6.3), as do failures.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

/* A host event by its id. */
typedef struct id_ref {
    uint64_t id;
    uint32_t track, place;
} id_ref;

typedef struct id_refs {
    id_ref *items; /* by id */
    size_t n;
} id_refs;

static void ref_key(const void *item, mtprof__sort_key *key)
{
    key->start_ns = (int64_t)((const id_ref *)item)->id;
}

static int make_refs(const mtprof__import *import, id_refs *refs)
{
    size_t total = 0;
    for (size_t t = 0; t < import->n_tracks; t++) {
        total += import->tracks[t].run.columns.n;
    }
    refs->items = mtb_calloc(total + 1, sizeof *refs->items);
    if (refs->items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: ids of %zu events", total);
    }
    for (uint32_t t = 0; t < import->n_tracks; t++) {
        const mtprof__columns *columns = &import->tracks[t].run.columns;
        const uint64_t *ids = columns->extra[MTPROF_COLUMN_CORRELATION];
        for (uint32_t i = 0;
             ids != NULL && !mtprof__import_is_queue(&import->tracks[t]) && i < columns->n; i++) {
            if (ids[i] != 0) {
                refs->items[refs->n++] = (id_ref){ids[i], t, i};
            }
        }
    }
    return mtprof__import_sort_items((void **)&refs->items, refs->n, sizeof *refs->items, ref_key);
}

static const id_ref *find_ref(const id_refs *refs, uint64_t id)
{
    size_t from = 0;
    size_t to = refs->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if ((int64_t)refs->items[middle].id < (int64_t)id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from < refs->n && refs->items[from].id == id ? &refs->items[from] : NULL;
}

/* ---- what they become ---------------------------------------------------------------------------
 */

static int add_bytes(mtprof__columns *columns, uint32_t place, const mtprof__event *point)
{
    uint32_t id =
        point->device == 0 ? MTPROF_COLUMN_ALLOCATED_SELF_CPU : MTPROF_COLUMN_ALLOCATED_SELF_DEVICE;
    void *sums;
    MT_TRY(mtprof__columns_extra(columns, id, &sums));
    ((uint64_t *)sums)[place] += (uint64_t)point->bytes;
    return MTPROF_OK;
}

static int add_stray(mtprof__import *import, const mtprof__event *point, mtprof__run *strays)
{
    mtprof__columns *columns = &strays->columns;
    size_t n = columns->n;
    bool failed = point->kind == MTPROF_EVENT_OUT_OF_MEMORY;
    MT_TRY(mtprof__columns_reserve(columns, n + 1));
    columns->start_ns[n] = columns->end_ns[n] = point->start_ns;
    columns->self_ns[n] = 0;
    columns->parent[n] = MTPROF_NO_EVENT;
    columns->name[n] = point->name;
    columns->track[n] = import->tracks[point->track].track;
    columns->step[n] = point->step;
    columns->index[n] = MTPROF_NO_EVENT;
    columns->kind[n] = failed ? MTPROF_EVENT_OUT_OF_MEMORY : MTPROF_EVENT_MEMORY;
    columns->device[n] = 0;
    columns->flags[n] = MTPROF_EVENT_TOP;
    columns->n = n + 1;
    MT_TRY(
        mtprof__import_set_u64(columns, MTPROF_COLUMN_BYTES, (uint32_t)n, (uint64_t)point->bytes));
    return failed ? MTPROF_OK : add_bytes(columns, (uint32_t)n, point);
}

/* ---- whose they are -----------------------------------------------------------------------------
 */

/* Allocations of one thread in order of time. */
typedef struct thread_allocs {
    mtprof__sort_key *keys; /* all of them, by thread, then time: `index` is the thread */
    uint32_t *innermost;
    size_t n;
} thread_allocs;

/* Keys by (thread, time): the thread is sorted for first, in start_ns; points are by time already,
 * so that their place is their time's order. */
static int list_allocs(const mtprof__import *import, thread_allocs *allocs)
{
    allocs->keys = mtb_calloc(import->n_points + 1, sizeof *allocs->keys);
    allocs->innermost = mtb_calloc(import->n_points + 1, sizeof *allocs->innermost);
    if (allocs->keys == NULL || allocs->innermost == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu allocations", import->n_points);
    }
    for (size_t i = 0; i < import->n_points; i++) {
        const mtprof__event *point = &import->points[i];
        if (point->kind == MTPROF_EVENT_ALLOC || point->kind == MTPROF_EVENT_OUT_OF_MEMORY) {
            allocs->keys[allocs->n++] =
                (mtprof__sort_key){(int64_t)point->track, 0, point->track, (uint32_t)i};
        }
    }
    MT_TRY(mtprof__import_sort_keys(allocs->keys, allocs->n));
    for (size_t i = 0; i < allocs->n; i++) {
        allocs->keys[i].start_ns = import->points[allocs->keys[i].place].start_ns;
    }
    return MTPROF_OK;
}

static int give_one(mtprof__import *import, mtprof__event *point, uint32_t innermost,
                    const id_refs *refs, const uint32_t *bases, mtprof__run *strays)
{
    uint32_t track = point->track;
    uint64_t id = point->correlation;
    const id_ref *named = id != 0 && id != UINT64_MAX ? find_ref(refs, id) : NULL;
    point->correlation = 0;
    if (id == UINT64_MAX || (id == 0 && import->is_ours)) {
        innermost = MTPROF_NO_EVENT; /* ours names the owner wherever there is one */
    } else if (named != NULL) {
        track = named->track;
        innermost = named->place;
    }
    if (point->kind == MTPROF_EVENT_OUT_OF_MEMORY || innermost == MTPROF_NO_EVENT) {
        return add_stray(import, point, strays);
    }
    point->owner = (uint64_t)bases[track] + innermost + 1;
    return add_bytes(&import->tracks[track].run.columns, innermost, point);
}

static int give_all(mtprof__import *import, thread_allocs *allocs, const id_refs *refs,
                    const uint32_t *bases, mtprof__run *strays)
{
    for (size_t from = 0, to = 0; from < allocs->n; from = to) {
        uint32_t track = allocs->keys[from].index;
        while (to < allocs->n && allocs->keys[to].index == track) {
            to++;
        }
        mtprof__import_innermost(&import->tracks[track], &allocs->keys[from], to - from,
                                 &allocs->innermost[from]);
        for (size_t i = from; i < to; i++) {
            MT_TRY(give_one(import, &import->points[allocs->keys[i].place], allocs->innermost[i],
                            refs, bases, strays));
        }
    }
    return MTPROF_OK;
}

int mtprof__import_memory(mtprof__import *import, const uint32_t *bases, mtprof__run *strays)
{
    thread_allocs allocs = {NULL, NULL, 0};
    id_refs refs = {NULL, 0};
    int status = list_allocs(import, &allocs);
    if (status == MTPROF_OK && import->allocs_name_owner) {
        status = make_refs(import, &refs);
    }
    if (status == MTPROF_OK) {
        status = give_all(import, &allocs, &refs, bases, strays);
    }
    mtb_free(allocs.keys);
    mtb_free(allocs.innermost);
    mtb_free(refs.items);
    return status;
}
