/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: each belongs to the event it names, or to the innermost one that was open on its own
 * thread. Those that were in none become events of their own (torch-contract 3.6.3), as do
 * failures.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

/* DeviceType of torch: CPU, MKLDNN and IDEEP are the host. */
bool mtprof__import_is_host_memory(int64_t type)
{
    return type == 0 || type == 2 || type == 5;
}

const char *mtprof__import_device_of_memory(int64_t type)
{
    switch (type) {
    case 1: return "CUDA";
    case 6: return "HIP";
    case 12: return "XPU";
    case 13: return "MPS";
    case 15: return "HPU";
    case 19: return "MTIA";
    case 20: return "NPU";
    default: return NULL;
    }
}

/* ---- what they become ------------------------------------------------------------------------ */

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
    bool failed = point->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY;
    MT_TRY(mtprof__columns_reserve(columns, n + 1));
    columns->start_ns[n] = columns->end_ns[n] = point->start_ns;
    columns->self_ns[n] = 0;
    columns->parent[n] = MTPROF_NO_EVENT;
    columns->name[n] = point->name;
    columns->track[n] = import->tracks[point->track].track;
    columns->step[n] = point->step;
    columns->index[n] = (uint32_t)(point - import->points); /* for sorting: as in the file */
    columns->kind[n] = failed ? MTPROF_EVENT_KIND_OUT_OF_MEMORY : MTPROF_EVENT_KIND_MEMORY;
    columns->device[n] = 0;
    columns->flags[n] = MTPROF_EVENT_FLAG_TOP;
    columns->n = n + 1;
    MT_TRY(mtprof__columns_set(columns, MTPROF_COLUMN_BYTES, (uint32_t)n, (uint64_t)point->bytes));
    return failed ? MTPROF_OK : add_bytes(columns, (uint32_t)n, point);
}

/* ---- their owners ---------------------------------------------------------------------------- */

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
        if (point->kind == MTPROF_EVENT_KIND_ALLOC ||
            point->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY) {
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
                    const mtprof__id_refs *refs, const uint32_t *bases, mtprof__run *strays)
{
    uint32_t track = point->track;
    uint64_t id = point->correlation;
    const mtprof__id_ref *named =
        id != 0 && id != UINT64_MAX ? mtprof__import_refs_find(refs, id) : NULL;
    point->correlation = 0;
    bool named_always = import->is_ours && !import->two_id_families;
    if (id == UINT64_MAX || (id == 0 && named_always)) {
        innermost = MTPROF_NO_EVENT; /* ours names the owner wherever there is one */
    } else if (named != NULL) {
        track = named->track;
        innermost = named->place;
    }
    if (point->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY || innermost == MTPROF_NO_EVENT) {
        return add_stray(import, point, strays);
    }
    point->owner = (uint64_t)bases[track] + innermost + 1;
    return add_bytes(&import->tracks[track].run.columns, innermost, point);
}

static int give_all(mtprof__import *import, thread_allocs *allocs, const mtprof__id_refs *refs,
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
    mtprof__id_refs refs = {NULL, 0};
    int status = list_allocs(import, &allocs);
    if (status == MTPROF_OK && import->allocs_name_owner) {
        status = mtprof__import_refs_make(import, &refs);
    }
    if (status == MTPROF_OK) {
        status = give_all(import, &allocs, &refs, bases, strays);
    }
    mtb_free(allocs.keys);
    mtb_free(allocs.innermost);
    mtb_free(refs.items);
    return status;
}
