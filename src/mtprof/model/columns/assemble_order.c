/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, fifth stage: where each event goes. Order: start, longest first, INDEX; events that
 * have none (device work, allocations) by kind and name, so that the order does not depend on the
 * way a trace came here; then the order of the parts and the place in them.
 *
 * Parts that are not sorted (the clock went back, or two events began in one tick) get a sorted
 * list of their places; then parts are merged through a heap of their heads. A part is followed as
 * long as it stays ahead of the others, so parts that do not interleave cost one comparison an
 * event.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "mtprof/model/columns/assemble_impl.h"

#include <string.h>

/* ---- sorting a part -------------------------------------------------------------------------- */

enum {
    INSERTION_BLOCK = 16
};

/* Whether `left` must not come after `right`: both are positions in one part. */
static bool before(const mtprof_model *model, const mtprof__columns *columns, uint32_t left,
                   uint32_t right)
{
    int order = mtprof__order_of(model, columns, left, columns, right);
    return order != 0 ? order < 0 : left < right;
}

static void sort_block(const mtprof_model *model, const mtprof__columns *columns, uint32_t *places,
                       size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t place = places[i];
        size_t to = i;
        for (; to > 0 && before(model, columns, place, places[to - 1]); to--) {
            places[to] = places[to - 1];
        }
        places[to] = place;
    }
}

/* Merges [0, middle) and [middle, n) of from into to. */
static void merge_blocks(const mtprof_model *model, const mtprof__columns *columns,
                         const uint32_t *from, size_t middle, size_t n, uint32_t *to)
{
    size_t left = 0;
    size_t right = middle;
    if (middle == n || before(model, columns, from[middle - 1], from[middle])) {
        memcpy(to, from, n * sizeof *to); /* nearly sorted parts come here nearly always */
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool take_left =
            left < middle && (right == n || before(model, columns, from[left], from[right]));
        to[i] = take_left ? from[left++] : from[right++];
    }
}

/* Bottom-up merge sort, linear passes over two lists. */
static int sort_part(const mtprof_model *model, mtprof__part *part)
{
    const mtprof__columns *columns = &part->run->columns;
    size_t n = part->n;
    uint32_t *places = mtb_resize(NULL, n, sizeof *places);
    uint32_t *other = mtb_resize(NULL, n, sizeof *other);
    if (places == NULL || other == NULL) {
        mtb_free(places);
        mtb_free(other);
        return mtb_fail(MTPROF_ENOMEM, "model: no memory to sort %zu events", n);
    }
    for (size_t i = 0; i < n; i++) {
        places[i] = (uint32_t)i;
    }
    for (size_t at = 0; at < n; at += INSERTION_BLOCK) {
        sort_block(model, columns, places + at,
                   n - at < INSERTION_BLOCK ? n - at : INSERTION_BLOCK);
    }
    for (size_t width = INSERTION_BLOCK; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t length = n - at < 2 * width ? n - at : 2 * width;
            merge_blocks(model, columns, places + at, length < width ? length : width, length,
                         other + at);
        }
        uint32_t *sorted = other;
        other = places;
        places = sorted;
    }
    mtb_free(other);
    part->sorting = places;
    return MTPROF_OK;
}

/* ---- merging parts --------------------------------------------------------------------------- */

/* The next event of a part. */
typedef struct head {
    const mtprof_model *model;
    const mtprof__columns *columns; /* of the part */
    uint32_t place;                 /* in it */
    int64_t start_ns, order;
    uint32_t part;
    uint32_t number; /* of the event */
    uint32_t next;   /* step in the part's order that follows */
} head;

static bool comes_first(const head *a, const head *b)
{
    if (a->start_ns != b->start_ns) { /* at hand: nearly always enough */
        return a->start_ns < b->start_ns;
    }
    int order = mtprof__order_of(a->model, a->columns, a->place, b->columns, b->place);
    if (order != 0) {
        return order < 0;
    }
    return a->order != b->order ? a->order < b->order : a->part < b->part;
}

/* Sets a head to the part's next event that stays; false at the end. Folded ones go nowhere. */
static bool advance(mtprof__assembly *assembly, head *front)
{
    const mtprof__part *part = &assembly->parts[front->part];
    const mtprof__columns *columns = &part->run->columns;
    while (front->next < part->n) {
        uint32_t place = part->sorting != NULL ? part->sorting[front->next] : front->next;
        uint32_t number = part->base + place;
        front->next++;
        if (number < assembly->n_folds && assembly->folds[number] != 0) {
            assembly->rank[number] = MTPROF_NO_EVENT;
            continue;
        }
        front->start_ns = columns->start_ns[place];
        front->place = place;
        front->number = number;
        return true;
    }
    return false;
}

static void sift_down(head *heap, size_t n, size_t at)
{
    head moving = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < n && comes_first(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (child >= n || !comes_first(&heap[child], &moving)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void merge(mtprof__assembly *assembly, head *heap)
{
    size_t n = 0;
    for (size_t i = 0; i < assembly->n_parts; i++) {
        heap[n] = (head){.model = assembly->model,
                         .columns = &assembly->parts[i].run->columns,
                         .part = (uint32_t)i,
                         .order = assembly->parts[i].order};
        n += advance(assembly, &heap[n]);
    }
    for (size_t at = n / 2; at-- > 0;) {
        sift_down(heap, n, at);
    }
    while (n != 0) {
        /* The part that comes next when this one is no longer first. */
        const head *rival = n > 1 ? &heap[1] : NULL;
        if (n > 2 && comes_first(&heap[2], rival)) {
            rival = &heap[2];
        }
        bool more = true;
        do {
            assembly->rank[heap->number] = assembly->kept++;
            more = advance(assembly, heap);
        } while (more && (rival == NULL || comes_first(heap, rival)));
        if (!more) {
            heap[0] = heap[--n];
        }
        if (n > 1) {
            sift_down(heap, n, 0);
        }
    }
}

int mtprof__assemble_order(mtprof__assembly *assembly)
{
    bool sorted = true;
    for (size_t i = 0; i < assembly->n_parts; i++) {
        mtprof__part *part = &assembly->parts[i];
        if (part->run == &assembly->annotations || !part->sorted) {
            sorted = false;
            MT_TRY(sort_part(assembly->model, part));
        }
    }
    if (assembly->n_parts <= 1 && sorted && assembly->folds == NULL) {
        assembly->kept = assembly->n; /* all is where it belongs */
        return MTPROF_OK;
    }
    assembly->rank = mtb_array_take(assembly->n, sizeof *assembly->rank);
    head *heap = mtb_calloc(assembly->n_parts, sizeof *heap);
    if (assembly->rank == NULL || heap == NULL) {
        mtb_free(heap);
        return mtb_fail(MTPROF_ENOMEM, "model: no memory to order %u events", assembly->n);
    }
    merge(assembly, heap);
    mtb_free(heap);
    return MTPROF_OK;
}
