/* SPDX-License-Identifier: Apache-2.0
 *
 * Host events by their ids, once tracks are sorted.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

static void ref_key(const void *item, mtprof__sort_key *key)
{
    key->start_ns = (int64_t)((const mtprof__id_ref *)item)->id;
}

static void add_refs(const mtprof__import *import, uint32_t track, mtprof__id_refs *refs)
{
    const mtprof__columns *columns = &import->tracks[track].run.columns;
    const uint64_t *ids = columns->extra[MTPROF_COLUMN_CORRELATION];
    for (uint32_t i = 0; ids != NULL && i < columns->n; i++) {
        if (ids[i] != 0) {
            refs->items[refs->n++] = (mtprof__id_ref){ids[i], track, i};
        }
    }
}

int mtprof__import_refs_make(const mtprof__import *import, mtprof__id_refs *refs)
{
    size_t total = 0;
    for (size_t t = 0; t < import->n_tracks; t++) {
        total += import->tracks[t].run.columns.n;
    }
    refs->n = 0;
    refs->items = mtb_calloc(total + 1, sizeof *refs->items);
    if (refs->items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: ids of %zu events", total);
    }
    for (uint32_t t = 0; t < import->n_tracks; t++) {
        if (!mtprof__import_is_queue(&import->tracks[t])) {
            add_refs(import, t, refs);
        }
    }
    return mtprof__import_sort_items((void **)&refs->items, refs->n, sizeof *refs->items, ref_key);
}

/* As they are sorted. */
static bool has_lower_id(const void *ref, uint64_t id)
{
    return (int64_t)((const mtprof__id_ref *)ref)->id < (int64_t)id;
}

const mtprof__id_ref *mtprof__import_refs_find(const mtprof__id_refs *refs, uint64_t id)
{
    size_t at = mtb_search(refs->items, refs->n, sizeof *refs->items, has_lower_id, id);
    return at < refs->n && refs->items[at].id == id ? &refs->items[at] : NULL;
}
