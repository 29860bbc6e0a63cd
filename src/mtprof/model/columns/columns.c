/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of events, see columns.h.
 *
 * Each column is a block of its own, from the heap while it is small and of huge pages when it is
 * large: filling columns is mostly touching memory for the first time. What lies past the last
 * event is never touched.
 */
#include "mtprof/model/columns/columns.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/large.h"
#include "base/pages.h"

#include <stdbool.h>
#include <string.h>

static const uint8_t column_types[] = {
    [MTPROF_COLUMN_START_NS] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_END_NS] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_SELF_NS] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_PARENT] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_NAME] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_TRACK] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_STEP] = MTPROF_TYPE_I32,
    [MTPROF_COLUMN_INDEX] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_KIND] = MTPROF_TYPE_U8,
    [MTPROF_COLUMN_DEVICE] = MTPROF_TYPE_U8,
    [MTPROF_COLUMN_FLAGS] = MTPROF_TYPE_U16,
    [MTPROF_COLUMN_INPUTS] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_SCALARS] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_STACK] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_SEQUENCE] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_FORWARD_THREAD] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_OVERLOAD] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_RECORD_SCOPE] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_FLOPS] = MTPROF_TYPE_U64,
    [MTPROF_COLUMN_MODULE] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_FOREIGN_ID] = MTPROF_TYPE_U64,
    [MTPROF_COLUMN_MEMORY_BEFORE] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_MEMORY_AFTER] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_MEMORY_DEVICE] = MTPROF_TYPE_U8,
    [MTPROF_COLUMN_METADATA] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_BYTES] = MTPROF_TYPE_U64,
    [MTPROF_COLUMN_ALLOCATED_SELF_CPU] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_ALLOCATED_SELF_DEVICE] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_DEPTH] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_CORRELATION] = MTPROF_TYPE_U64,
    [MTPROF_COLUMN_LINK] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_DEVICE_NS] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_SELF_DEVICE_NS] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_ALLOCATED_CPU] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_ALLOCATED_DEVICE] = MTPROF_TYPE_I64,
    [MTPROF_COLUMN_FIRST_CHILD] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_NEXT_SIBLING] = MTPROF_TYPE_U32,
    [MTPROF_COLUMN_FORWARD] = MTPROF_TYPE_U32,
};
_Static_assert(MT_COUNT(column_types) == MTPROF_COLUMN_COUNT, "one type per column");
_Static_assert(MTPROF_COLUMN_COUNT <= 64, "one bit per column");

static const uint8_t type_bytes[] = {
    [MTPROF_TYPE_U8] = 1,  [MTPROF_TYPE_U16] = 2, [MTPROF_TYPE_U32] = 4,
    [MTPROF_TYPE_I32] = 4, [MTPROF_TYPE_U64] = 8, [MTPROF_TYPE_I64] = 8,
};

uint32_t mtprof__column_type(uint32_t id)
{
    MT_ASSERT(id < MTPROF_COLUMN_COUNT);
    return column_types[id];
}

size_t mtprof__column_item_bytes(uint32_t id)
{
    return type_bytes[mtprof__column_type(id)];
}

void **mtprof__column_slot(mtprof__columns *columns, uint32_t id)
{
    switch (id) {
    case MTPROF_COLUMN_START_NS: return (void **)&columns->start_ns;
    case MTPROF_COLUMN_END_NS: return (void **)&columns->end_ns;
    case MTPROF_COLUMN_SELF_NS: return (void **)&columns->self_ns;
    case MTPROF_COLUMN_PARENT: return (void **)&columns->parent;
    case MTPROF_COLUMN_NAME: return (void **)&columns->name;
    case MTPROF_COLUMN_TRACK: return (void **)&columns->track;
    case MTPROF_COLUMN_STEP: return (void **)&columns->step;
    case MTPROF_COLUMN_INDEX: return (void **)&columns->index;
    case MTPROF_COLUMN_KIND: return (void **)&columns->kind;
    case MTPROF_COLUMN_DEVICE: return (void **)&columns->device;
    case MTPROF_COLUMN_FLAGS: return (void **)&columns->flags;
    default: return &columns->extra[id];
    }
}

static bool is_none_ones(uint32_t id)
{
    switch (id) {
    case MTPROF_COLUMN_SEQUENCE:
    case MTPROF_COLUMN_MEMORY_BEFORE:
    case MTPROF_COLUMN_MEMORY_AFTER:
    case MTPROF_COLUMN_LINK:
    case MTPROF_COLUMN_FIRST_CHILD:
    case MTPROF_COLUMN_NEXT_SIBLING:
    case MTPROF_COLUMN_FORWARD: return true;
    default: return false;
    }
}

/* "None" is all zeros or, as -1 and MTPROF_NO_EVENT are, all ones. */
static void fill_none(void *array, uint32_t id, size_t from, size_t to)
{
    size_t item = mtprof__column_item_bytes(id);
    memset((char *)array + from * item, is_none_ones(id) ? 0xFF : 0, (to - from) * item);
}

static bool is_extra(uint32_t id)
{
    return id > MTPROF_COLUMN_FLAGS;
}

static bool is_mapped(const mtprof__columns *columns, uint32_t id)
{
    return (columns->mapped >> id & 1) != 0;
}

/*
 * The array of a column with room for `capacity` items: a new one where there is none, else the old
 * one with what was in it. NULL: no memory, and the old one is unharmed.
 */
static void *resize(mtprof__columns *columns, uint32_t id, size_t capacity)
{
    void **slot = mtprof__column_slot(columns, id);
    size_t item = mtprof__column_item_bytes(id);
    size_t bytes;
    if (__builtin_mul_overflow(capacity, item, &bytes)) {
        return NULL;
    }
    void *moved;
    if (is_mapped(columns, id)) {
        moved = mtb_large_resize(*slot, bytes);
    } else if (bytes < MTB_LARGE_BYTES) {
        moved = mtb_resize(*slot, capacity, item);
    } else {
        moved = mtb_large_take(bytes);
        if (moved != NULL && *slot != NULL) {
            memcpy(moved, *slot, columns->capacity * item);
            mtb_free(*slot);
        }
        columns->mapped |= (uint64_t)(moved != NULL) << id;
    }
    if (moved != NULL) {
        *slot = moved;
    }
    return moved;
}

int mtprof__column_no_memory(uint32_t id, size_t n)
{
    return mtb_fail(MTPROF_ENOMEM, "model: no memory for column %u of %zu events", id, n);
}

int mtprof__columns_reserve(mtprof__columns *columns, size_t capacity)
{
    size_t old = columns->capacity;
    if (capacity <= old) {
        return MTPROF_OK;
    }
    size_t larger = old + old / 2 > capacity ? old + old / 2 : capacity;
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        if (is_extra(id) && columns->extra[id] == NULL) {
            continue;
        }
        /* Columns that have grown when one is refused are just larger than they need to be. */
        void *column = resize(columns, id, larger);
        if (column == NULL) {
            return mtprof__column_no_memory(id, larger);
        }
        if (is_extra(id)) {
            fill_none(column, id, old, larger);
        }
    }
    columns->capacity = larger;
    return MTPROF_OK;
}

void *mtprof__column_new(mtprof__columns *columns, uint32_t id)
{
    MT_ASSERT(*mtprof__column_slot(columns, id) == NULL && !is_mapped(columns, id));
    return resize(columns, id, columns->capacity);
}

int mtprof__columns_extra(mtprof__columns *columns, uint32_t id, void **out)
{
    MT_ASSERT(is_extra(id) && id < MTPROF_COLUMN_COUNT);
    *out = columns->extra[id];
    if (*out != NULL) {
        return MTPROF_OK;
    }
    *out = mtprof__column_new(columns, id);
    if (*out == NULL) {
        return mtprof__column_no_memory(id, columns->capacity);
    }
    if (!is_mapped(columns, id) || is_none_ones(id)) { /* mapped memory is zero */
        fill_none(*out, id, 0, columns->capacity);
    }
    return MTPROF_OK;
}

int mtprof__columns_set(mtprof__columns *columns, uint32_t id, size_t event, uint64_t value)
{
    void *array = columns->extra[id];
    if (MT_UNLIKELY(array == NULL)) {
        MT_TRY(mtprof__columns_extra(columns, id, &array));
    }
    switch (mtprof__column_item_bytes(id)) {
    case 1: ((uint8_t *)array)[event] = (uint8_t)value; break;
    case 4: ((uint32_t *)array)[event] = (uint32_t)value; break;
    default: ((uint64_t *)array)[event] = value; break;
    }
    return MTPROF_OK;
}

void mtprof__columns_trim(mtprof__columns *columns)
{
    if (columns->capacity - columns->n <= columns->n / 16) {
        return;
    }
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        if (*mtprof__column_slot(columns, id) != NULL) {
            (void)resize(columns, id, columns->n); /* refused: the larger one does as well */
        }
    }
    columns->capacity = columns->n;
}

void mtprof__column_free(mtprof__columns *columns, uint32_t id)
{
    void **slot = mtprof__column_slot(columns, id);
    if (is_mapped(columns, id)) {
        mtb_large_give(*slot);
    } else {
        mtb_free(*slot);
    }
    *slot = NULL;
    columns->mapped &= ~(1ULL << id);
}

void mtprof__columns_fini(mtprof__columns *columns)
{
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        mtprof__column_free(columns, id);
    }
    memset(columns, 0, sizeof *columns);
}

/* ---- runs ------------------------------------------------------------------------------------ */

int mtprof__links_add(mtprof__links *links, uint64_t key, uint32_t event)
{
    return mtb_append(links->items, links->n, links->capacity,
                      &(mtprof__link){.key = key, .event = event})
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu links", links->n + 1);
}

static void links_fini(mtprof__links *links)
{
    mtb_free(links->items);
    memset(links, 0, sizeof *links);
}

void mtprof__run_fini(mtprof__run *run)
{
    mtprof__columns_fini(&run->columns);
    links_fini(&run->hosts);
    links_fini(&run->works);
    links_fini(&run->parents);
}
