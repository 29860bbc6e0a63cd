/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting the events of a track. Files are nearly in order (of beginning or of end), so: merging
 * from the bottom up, and what is in order already is not touched.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    BLOCK = 16 /* sorted by insertion */
};

static bool is_before(const mtprof__sort_key *a, const mtprof__sort_key *b)
{
    if (MT_LIKELY(a->start_ns != b->start_ns)) {
        return a->start_ns < b->start_ns;
    }
    if (a->end_ns != b->end_ns) {
        return a->end_ns > b->end_ns;
    }
    return a->index != b->index ? a->index < b->index : a->place < b->place;
}

static void sort_block(mtprof__sort_key *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        mtprof__sort_key key = keys[i];
        size_t at = i;
        for (; at > 0 && is_before(&key, &keys[at - 1]); at--) {
            keys[at] = keys[at - 1];
        }
        keys[at] = key;
    }
}

/* Merges from[0 … middle) and from[middle … n) into `to`. */
static void merge(const mtprof__sort_key *from, size_t middle, size_t n, mtprof__sort_key *to)
{
    if (middle >= n || !is_before(&from[middle], &from[middle - 1])) {
        memcpy(to, from, n * sizeof *to);
        return;
    }
    size_t left = 0;
    size_t right = middle;
    while (left < middle && right < n) {
        *to++ = is_before(&from[right], &from[left]) ? from[right++] : from[left++];
    }
    memcpy(to, &from[left], (middle - left) * sizeof *to);
    memcpy(to + (middle - left), &from[right], (n - right) * sizeof *to);
}

int mtprof__import_sort_keys(mtprof__sort_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        sort_block(keys + i, n - i < BLOCK ? n - i : BLOCK);
    }
    if (n <= BLOCK) {
        return MTPROF_OK;
    }
    mtprof__sort_key *other = mtb_resize(NULL, n, sizeof *other);
    if (other == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: sorting %zu events", n);
    }
    mtprof__sort_key *from = keys;
    mtprof__sort_key *to = other;
    for (size_t width = BLOCK; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t length = n - i < 2 * width ? n - i : 2 * width;
            merge(from + i, width < length ? width : length, length, to + i);
        }
        mtprof__sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) {
        memcpy(keys, from, n * sizeof *keys);
    }
    mtb_free(other);
    return MTPROF_OK;
}

int mtprof__import_sort_items(void **items, size_t n, size_t item_bytes,
                              void (*key_of)(const void *item, mtprof__sort_key *key))
{
    mtprof__sort_key *keys = mtb_resize(NULL, n + 1, sizeof *keys);
    char *sorted = mtb_resize(NULL, n + 1, item_bytes);
    if (keys == NULL || sorted == NULL || n > UINT32_MAX) {
        mtb_free(keys);
        mtb_free(sorted);
        return mtb_fail(MTPROF_ENOMEM, "open trace: sorting %zu items", n);
    }
    const char *from = *items;
    for (size_t i = 0; i < n; i++) {
        keys[i] = (mtprof__sort_key){.place = (uint32_t)i};
        key_of(from + i * item_bytes, &keys[i]);
    }
    int status = mtprof__import_sort_keys(keys, n);
    if (status == MTPROF_OK) {
        for (size_t i = 0; i < n; i++) {
            memcpy(sorted + i * item_bytes, from + keys[i].place * item_bytes, item_bytes);
        }
        mtb_free(*items);
        *items = sorted;
    } else {
        mtb_free(sorted);
    }
    mtb_free(keys);
    return status;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* array[i] = array[keys[i].place], through a copy. */
static void permute(void *array, size_t item, const mtprof__sort_key *keys, size_t n, void *copy)
{
    memcpy(copy, array, n * item);
    switch (item) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            ((uint8_t *)array)[i] = ((const uint8_t *)copy)[keys[i].place];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            ((uint16_t *)array)[i] = ((const uint16_t *)copy)[keys[i].place];
        }
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            ((uint32_t *)array)[i] = ((const uint32_t *)copy)[keys[i].place];
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            ((uint64_t *)array)[i] = ((const uint64_t *)copy)[keys[i].place];
        }
        break;
    }
}

static void renumber(mtprof__links *links, const uint32_t *places)
{
    for (size_t i = 0; i < links->n; i++) {
        links->items[i].event = places[links->items[i].event];
    }
}

static void permute_track(mtprof__import_track *track, const mtprof__sort_key *keys, void *copy)
{
    mtprof__run *run = &track->run;
    size_t n = run->columns.n;
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        /* PARENT is not there yet: a track is sorted before it is nested. */
        void *array = *mtprof__column_slot(&run->columns, id);
        if (array != NULL && id != MTPROF_COLUMN_PARENT) {
            permute(array, mtprof__column_item_bytes(id), keys, n, copy);
        }
    }
    if (run->works.n + run->parents.n + run->hosts.n != 0) {
        uint32_t *places = copy;
        for (size_t i = 0; i < n; i++) {
            places[keys[i].place] = (uint32_t)i;
        }
        renumber(&run->works, places);
        renumber(&run->parents, places);
        renumber(&run->hosts, places);
    }
}

static int sort_with(mtprof__import_track *track, mtprof__sort_key *keys, void *copy)
{
    const mtprof__columns *columns = &track->run.columns;
    for (size_t i = 0; i < columns->n; i++) {
        keys[i] = (mtprof__sort_key){columns->start_ns[i], columns->end_ns[i], columns->index[i],
                                     (uint32_t)i};
    }
    MT_TRY(mtprof__import_sort_keys(keys, columns->n));
    permute_track(track, keys, copy);
    track->unsorted = false;
    return MTPROF_OK;
}

int mtprof__import_sort(mtprof__import_track *track)
{
    size_t n = track->run.columns.n;
    if (!track->unsorted) {
        return MTPROF_OK;
    }
    mtprof__sort_key *keys = mtb_resize(NULL, n, sizeof *keys);
    void *copy = mtb_resize(NULL, n, sizeof(uint64_t));
    int status = keys != NULL && copy != NULL
                     ? sort_with(track, keys, copy)
                     : mtb_fail(MTPROF_ENOMEM, "open trace: sorting %zu events", n);
    mtb_free(keys);
    mtb_free(copy);
    return status;
}
