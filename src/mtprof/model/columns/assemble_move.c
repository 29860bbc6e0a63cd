/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, last stage: columns move to where the order says, one after the other; each is given
 * back as soon as it has moved, so that little more than one column is there twice. A single sorted
 * run keeps its arrays.
 */
#include "base/fail.h"
#include "mtprof/model/columns/assemble_impl.h"

#include <string.h>

/* ---- items of each size ---------------------------------------------------------------------- */

/* to[rank[i]] = from[i]. Where to is from, ranks must not be above their places and must grow. */
#define SCATTER(bits)                                                         \
    static void scatter##bits(uint##bits##_t *to, const uint##bits##_t *from, \
                              const uint32_t *rank, uint32_t n)               \
    {                                                                         \
        for (uint32_t i = 0; i < n; i++) {                                    \
            if (MT_LIKELY(rank[i] != MTPROF_NO_EVENT)) {                      \
                to[rank[i]] = from[i];                                        \
            }                                                                 \
        }                                                                     \
    }
SCATTER(8)
SCATTER(16)
SCATTER(32)
SCATTER(64)

static void scatter(void *to, const void *from, const uint32_t *rank, uint32_t n, size_t item)
{
    switch (item) {
    case 1: scatter8(to, from, rank, n); break;
    case 2: scatter16(to, from, rank, n); break;
    case 4: scatter32(to, from, rank, n); break;
    default: scatter64(to, from, rank, n); break;
    }
}

/* Numbers that are events themselves become places too. */
static void renumber_parents(const mtprof__assembly *assembly, const mtprof__part *part)
{
    uint32_t *parent = part->run->columns.parent;
    for (uint32_t i = 0; i < part->n; i++) {
        if (parent[i] != MTPROF_NO_EVENT) {
            parent[i] = assembly->rank[parent[i]];
        }
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Whether all parts have a column, and whether any has. */
static void who_has(const mtprof__assembly *assembly, uint32_t id, bool *all, bool *any)
{
    *all = true;
    *any = false;
    for (size_t i = 0; i < assembly->n_parts; i++) {
        bool has = *mtprof__column_slot(&assembly->parts[i].run->columns, id) != NULL;
        *all &= has;
        *any |= has;
    }
}

static void move_from(const mtprof__assembly *assembly, const mtprof__part *part, uint32_t id,
                      void *to)
{
    void **from = mtprof__column_slot(&part->run->columns, id);
    if (*from == NULL) {
        return;
    }
    if (id == MTPROF_COLUMN_PARENT) {
        renumber_parents(assembly, part);
    }
    scatter(to, *from, assembly->rank + part->base, part->n, mtprof__column_item_bytes(id));
    if (*from != to) {
        mtprof__column_free(&part->run->columns, id);
    }
}

static int move_column(mtprof__assembly *assembly, uint32_t id)
{
    mtprof__columns *columns = &assembly->model->columns;
    void **slot = mtprof__column_slot(columns, id);
    bool all;
    bool any;
    who_has(assembly, id, &all, &any);
    if (!any) {
        return MTPROF_OK;
    }
    if (all) {
        if (mtprof__column_new(columns, id) == NULL) {
            return mtprof__column_no_memory(id, columns->capacity);
        }
    } else {
        void *filled;
        MT_TRY(mtprof__columns_extra(columns, id, &filled));
    }
    for (size_t i = 0; i < assembly->n_parts; i++) {
        move_from(assembly, &assembly->parts[i], id, *slot);
    }
    return MTPROF_OK;
}

/* A sorted run out of which some were folded: it closes up. */
static void close_up(mtprof__assembly *assembly, const mtprof__part *part)
{
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        move_from(assembly, part, id, *mtprof__column_slot(&part->run->columns, id));
    }
}

/* Columns for no events at all; they are not NULL. */
static int move_nothing(mtprof__assembly *assembly)
{
    MT_TRY(mtprof__columns_reserve(&assembly->model->columns, 1));
    assembly->model->columns.n = 0;
    return MTPROF_OK;
}

int mtprof__assemble_move(mtprof__assembly *assembly)
{
    mtprof__columns *columns = &assembly->model->columns;
    mtprof__columns_fini(columns);
    if (assembly->n_parts == 0) {
        return move_nothing(assembly);
    }
    mtprof__part *part = assembly->parts;
    if (assembly->n_parts == 1 && part->sorted) {
        if (assembly->rank != NULL) {
            close_up(assembly, part);
        }
        *columns = part->run->columns;
        memset(&part->run->columns, 0, sizeof part->run->columns);
        columns->n = assembly->kept;
        mtprof__columns_trim(columns);
        return MTPROF_OK;
    }
    columns->n = assembly->kept;
    columns->capacity = assembly->kept;
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        MT_TRY(move_column(assembly, id));
    }
    return MTPROF_OK;
}
