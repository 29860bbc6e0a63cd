/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/events/launch_table.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

enum {
    FIRST_CAPACITY = 64
};

/* ---- launches -------------------------------------------------------------------------------- */

static size_t home(const mtprof__launch_table *table, uint64_t key)
{
    return (size_t)mtb_mix(key, 0) & (table->capacity - 1);
}

/* Where a key is, or the free place where it would go. */
static size_t find(const mtprof__launch_table *table, uint64_t key)
{
    size_t at = home(table, key);
    while (table->items[at].key != 0 && table->items[at].key != key) {
        at = (at + 1) & (table->capacity - 1);
    }
    return at;
}

static int grow(mtprof__launch_table *table)
{
    mtprof__launch_table larger = *table;
    larger.capacity = table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity;
    larger.items = mtb_calloc(larger.capacity, sizeof *larger.items);
    if (larger.items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for launches in flight");
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->items[i].key != 0) {
            larger.items[find(&larger, table->items[i].key)] = table->items[i];
        }
    }
    mtb_free(table->items);
    *table = larger;
    return MTPROF_OK;
}

int mtprof__launch_add(mtprof__launch_table *table, const mtprof__launch *launch)
{
    if (2 * (table->n + 1) > table->capacity) {
        MT_TRY(grow(table));
    }
    size_t at = find(table, launch->key);
    if (table->items[at].key != 0) {
        mtprof__annotation_drop(&table->annotations, table->items[at].annotation);
    } else {
        table->n++;
    }
    table->items[at] = *launch;
    return MTPROF_OK;
}

/* Closes the gap: entries after it that would not be found across it move up. */
static void remove_at(mtprof__launch_table *table, size_t gap)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (gap + 1) & mask; table->items[at].key != 0; at = (at + 1) & mask) {
        size_t wanted = home(table, table->items[at].key);
        if (((at - wanted) & mask) >= ((at - gap) & mask)) {
            table->items[gap] = table->items[at];
            gap = at;
        }
    }
    table->items[gap].key = 0;
    table->n--;
}

mtprof__launch *mtprof__launch_find(const mtprof__launch_table *table, uint64_t key)
{
    if (table->n == 0 || key == 0) {
        return NULL;
    }
    mtprof__launch *launch = &table->items[find(table, key)];
    return launch->key != 0 ? launch : NULL;
}

static void forget(mtprof__launch_table *table, uint64_t key)
{
    mtprof__launch *launch = mtprof__launch_find(table, key);
    if (launch != NULL && launch->answered) {
        mtprof__annotation_drop(&table->annotations, launch->annotation);
        remove_at(table, (size_t)(launch - table->items));
    }
}

int mtprof__launch_answer(mtprof__launch_table *table, mtprof__launch *launch)
{
    if (launch->answered) {
        return MTPROF_OK;
    }
    if (table->answered == NULL) {
        table->answered = mtb_calloc(MTPROF__ANSWERED_KEPT, sizeof *table->answered);
        if (table->answered == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for launches in flight");
        }
    }
    uint64_t *place = &table->answered[table->oldest];
    uint64_t gone = *place;
    launch->answered = true;
    *place = launch->key;
    table->oldest = (table->oldest + 1) % MTPROF__ANSWERED_KEPT;
    forget(table, gone);
    return MTPROF_OK;
}

bool mtprof__launch_take_any(mtprof__launch_table *table, mtprof__launch *launch)
{
    for (; table->swept < table->capacity; table->swept++) {
        mtprof__launch *item = &table->items[table->swept];
        if (item->key != 0) {
            *launch = *item;
            item->key = 0; /* everything goes: no need to close gaps */
            table->n--;
            return true;
        }
    }
    return false;
}

/* ---- the table ------------------------------------------------------------------------------- */

void mtprof__launch_table_init(mtprof__launch_table *table)
{
    *table = (mtprof__launch_table){.annotations = {.wait_most = MTPROF__ANNOTATIONS_WAIT,
                                                    .spans_most = MTPROF__ANNOTATION_SPANS}};
}

void mtprof__launch_table_fini(mtprof__launch_table *table)
{
    mtprof__launch launch;
    while (mtprof__launch_take_any(table, &launch)) {
        mtprof__annotation_drop(&table->annotations, launch.annotation);
    }
    while (table->annotations.done != NULL) {
        mtprof__annotation_free(&table->annotations, mtprof__annotation_take(&table->annotations));
    }
    mtb_free(table->items);
    mtb_free(table->answered);
    table->items = NULL;
    table->answered = NULL;
    table->capacity = table->n = 0;
}
