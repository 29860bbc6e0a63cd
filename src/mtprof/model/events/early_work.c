/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/events/early_work.h"

#include "base/alloc.h"
#include "base/hash.h"

enum {
    FIRST_CAPACITY = 16
};

static mtprof__early_bucket *bucket_of(const mtprof__early_work *early, uint64_t key)
{
    return &early->buckets[(size_t)mtb_mix(key, 0) & (early->capacity - 1)];
}

static void link_last(mtprof__early_work *early, size_t place)
{
    mtprof__early_bucket *bucket = bucket_of(early, early->items[place].work.key);
    early->items[place].next = 0;
    if (bucket->last != 0) {
        early->items[bucket->last - 1].next = (uint32_t)place + 1;
    } else {
        bucket->first = (uint32_t)place + 1;
    }
    bucket->last = (uint32_t)place + 1;
}

/* Closes the gaps of what came out, and links what is left again. */
static void link_all(mtprof__early_work *early)
{
    size_t kept = 0;
    memset(early->buckets, 0, early->capacity * sizeof *early->buckets);
    for (size_t i = early->first; i < early->n; i++) {
        if (!early->items[i].gone) {
            early->items[kept] = early->items[i];
            link_last(early, kept++);
        }
    }
    early->first = 0;
    early->n = kept;
}

/* Makes room. Where half of the places are gaps, closing them is enough; so places move once for
 * each time that as many are taken. */
static bool make_room(mtprof__early_work *early)
{
    if (early->capacity > 0 && early->waiting <= early->capacity / 2) {
        link_all(early);
        return true;
    }
    size_t capacity = early->capacity == 0 ? FIRST_CAPACITY : 2 * early->capacity;
    if (capacity >= UINT32_MAX) {
        return false;
    }
    mtprof__early_bucket *buckets = mtb_calloc(capacity, sizeof *buckets);
    mtprof__early *items =
        buckets != NULL ? mtb_resize(early->items, capacity, sizeof *items) : NULL;
    if (items == NULL) {
        mtb_free(buckets);
        return false;
    }
    mtb_free(early->buckets);
    early->items = items;
    early->buckets = buckets;
    early->capacity = capacity;
    link_all(early);
    return true;
}

bool mtprof__early_put(mtprof__early_work *early, const mtprof__early *item)
{
    if (early->n == early->capacity && !make_room(early)) {
        return false;
    }
    early->items[early->n] = *item;
    early->items[early->n].gone = false;
    link_last(early, early->n++);
    early->waiting++;
    return true;
}

static void take_out(mtprof__early_work *early, mtprof__early_bucket *bucket, uint32_t before,
                     uint32_t at, mtprof__early *out)
{
    mtprof__early *item = &early->items[at - 1];
    if (before != 0) {
        early->items[before - 1].next = item->next;
    } else {
        bucket->first = item->next;
    }
    if (bucket->last == at) {
        bucket->last = before;
    }
    *out = *item;
    item->gone = true;
    early->waiting--;
}

bool mtprof__early_take(mtprof__early_work *early, uint64_t key, mtprof__early *out)
{
    if (early->waiting == 0) {
        return false;
    }
    mtprof__early_bucket *bucket = bucket_of(early, key);
    uint32_t before = 0;
    for (uint32_t at = bucket->first; at != 0; at = early->items[at - 1].next) {
        if (early->items[at - 1].work.key == key) {
            take_out(early, bucket, before, at, out);
            return true;
        }
        before = at;
    }
    return false;
}

bool mtprof__early_take_first(mtprof__early_work *early, mtprof__early *out)
{
    if (early->waiting == 0) {
        return false;
    }
    while (early->items[early->first].gone) {
        early->first++;
    }
    /* What is first of all is first of its bucket. */
    mtprof__early_bucket *bucket = bucket_of(early, early->items[early->first].work.key);
    take_out(early, bucket, 0, (uint32_t)early->first + 1, out);
    return true;
}

void mtprof__early_fini(mtprof__early_work *early)
{
    for (size_t i = early->first; i < early->n; i++) {
        if (!early->items[i].gone) {
            mtprof__payload_fini(&early->items[i].payload);
        }
    }
    mtb_free(early->items);
    mtb_free(early->buckets);
    *early = (mtprof__early_work){0};
}
