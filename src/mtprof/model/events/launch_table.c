/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/events/launch_table.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

enum {
    FIRST_CAPACITY = 64,
    INSIDE_MOST = 1024
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
        mtprof__annotation_drop(table, table->items[at].annotation);
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
        mtprof__annotation_drop(table, launch->annotation);
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

/* ---- annotations ----------------------------------------------------------------------------- */

mtprof__annotation *mtprof__annotation_new(mtprof__annotation *around, mtprof_text text,
                                           bool inline_text)
{
    mtprof__annotation *annotation = mtb_calloc(1, sizeof *annotation);
    if (annotation == NULL) {
        return NULL;
    }
    annotation->refs = 1;
    annotation->text = text;
    if (inline_text) {
        annotation->copy = mtb_copy_text(text.bytes, text.length);
        if (annotation->copy == NULL) {
            mtb_free(annotation);
            return NULL;
        }
        annotation->text.bytes = annotation->copy;
    }
    annotation->around = around;
    return annotation;
}

static bool begins_with(const mtprof__annotation *inner, const mtprof__annotation *outer)
{
    for (size_t i = 0; outer != NULL && i < inner->n_spans; i++) {
        for (size_t j = 0; j < outer->n_spans; j++) {
            if (inner->spans[i].track == outer->spans[j].track &&
                inner->spans[i].shown_start_ns == outer->spans[j].shown_start_ns) {
                return true;
            }
        }
    }
    return false;
}

/* Puts an annotation with those inside it, itself first, before a list. */
static void put_before(mtprof__annotation **list, mtprof__annotation *annotation)
{
    mtprof__annotation *last = annotation;
    annotation->next = annotation->inside;
    annotation->inside = NULL;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = *list;
    *list = annotation;
}

void mtprof__annotation_drop(mtprof__launch_table *table, mtprof__annotation *annotation)
{
    while (annotation != NULL && --annotation->refs == 0) {
        mtprof__annotation *around = annotation->around;
        uint32_t n = annotation->n_inside + 1;
        if (begins_with(annotation, around) && around->n_inside + n <= INSIDE_MOST) { /* LT2 */
            around->n_inside += n;
            put_before(&around->inside, annotation);
        } else {
            put_before(&table->done, annotation);
        }
        annotation = around;
    }
}

static void extend(int64_t *start, int64_t *end, int64_t from, int64_t to)
{
    *start = from < *start ? from : *start;
    *end = to > *end ? to : *end;
}

static int count_one(mtprof__annotation *annotation, const mtprof__queue_span *work)
{
    for (size_t i = 0; i < annotation->n_spans; i++) {
        mtprof__queue_span *span = &annotation->spans[i];
        if (span->track == work->track) {
            extend(&span->start_ns, &span->end_ns, work->start_ns, work->end_ns);
            extend(&span->shown_start_ns, &span->shown_end_ns, work->shown_start_ns,
                   work->shown_end_ns);
            return MTPROF_OK;
        }
    }
    return mtb_append(annotation->spans, annotation->n_spans, annotation->capacity, work)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "read trace: no memory for launches in flight");
}

int mtprof__annotation_count(mtprof__annotation *annotation, const mtprof__queue_span *work)
{
    for (; annotation != NULL; annotation = annotation->around) {
        MT_TRY(count_one(annotation, work));
    }
    return MTPROF_OK;
}

void mtprof__annotation_free(mtprof__annotation *annotation)
{
    mtb_free(annotation->copy);
    mtb_free(annotation->spans);
    mtb_free(annotation);
}

void mtprof__launch_table_fini(mtprof__launch_table *table)
{
    mtprof__launch launch;
    while (mtprof__launch_take_any(table, &launch)) {
        mtprof__annotation_drop(table, launch.annotation);
    }
    while (table->done != NULL) {
        mtprof__annotation *next = table->done->next;
        mtprof__annotation_free(table->done);
        table->done = next;
    }
    mtb_free(table->items);
    mtb_free(table->answered);
    table->items = NULL;
    table->answered = NULL;
    table->capacity = table->n = 0;
}
