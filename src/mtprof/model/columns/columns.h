/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of events: the arrays a model is made of, and the runs they are made from.
 *
 * A run holds the events of one thread slot or one queue, in order of their beginning, with parents
 * as indices into the same run. mtprof__model_assemble() sorts all runs into the model's columns.
 */
#ifndef MTPROF_MODEL_COLUMNS_COLUMNS_H
#define MTPROF_MODEL_COLUMNS_COLUMNS_H

#include <mtprof/model.h>

#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__columns {
    int64_t *start_ns, *end_ns, *self_ns;
    uint32_t *parent, *name, *track;
    int32_t *step;
    uint32_t *index;
    uint8_t *kind, *device;
    uint16_t *flags;
    void *extra[MTPROF_COLUMN_COUNT]; /* by column id, from INPUTS on; NULL: absent */
    size_t n, capacity;
    uint64_t
        mapped; /* bit per column id: its array is a large one (base/large.h), not the heap's */
} mtprof__columns;

/* Type of a column. */
uint32_t mtprof__column_type(uint32_t id);
size_t mtprof__column_item_bytes(uint32_t id);

/* Makes room for `capacity` events (half as much again as before, where that is more); what is
 * there stays. Fails with ENOMEM, and then nothing has changed. Events past n are not initialised,
 * except that extra columns have their "none" there. */
int mtprof__columns_reserve(mtprof__columns *columns, size_t capacity);

/* ENOMEM, with the column and the number of its events. */
int mtprof__column_no_memory(uint32_t id, size_t n);

/* Makes an extra column (id from INPUTS on) where there is none, filled with its "none" (0, or -1
 * for SEQUENCE and MEMORY_BEFORE/AFTER, MTPROF_NO_EVENT for LINK). Fails with ENOMEM. */
int mtprof__columns_extra(mtprof__columns *columns, uint32_t id, void **out);

/* Sets an event's value in such a column. Fails with ENOMEM. */
int mtprof__columns_set(mtprof__columns *columns, uint32_t id, size_t event, uint64_t value);

/* Makes a column that is absent, for `capacity` events, without values. NULL: no memory. */
void *mtprof__column_new(mtprof__columns *columns, uint32_t id);

/* Where the array of a column is, NULL in it for an extra one that is absent. */
void **mtprof__column_slot(mtprof__columns *columns, uint32_t id);

/* Frees one column. */
void mtprof__column_free(mtprof__columns *columns, uint32_t id);

/* Gives room past the last event back, where there is much of it. */
void mtprof__columns_trim(mtprof__columns *columns);

void mtprof__columns_fini(mtprof__columns *columns);

/* A name by which device work knows host events: a launch key, or a foreign external id. */
typedef struct mtprof__link {
    uint64_t key;
    uint32_t event; /* in the run */
    uint32_t reserved;
} mtprof__link;

typedef struct mtprof__links {
    mtprof__link *items;
    size_t n, capacity;
} mtprof__links;

int mtprof__links_add(mtprof__links *links, uint64_t key, uint32_t event);

typedef struct mtprof__run {
    mtprof__columns columns;
    mtprof__links hosts;   /* host events that a key names */
    mtprof__links works;   /* device work, and runtime calls, that name a key */
    mtprof__links parents; /* events whose parent, by key, is in another run (native traces) */
    uint32_t order;        /* ties between runs: slot number */
} mtprof__run;

void mtprof__run_fini(mtprof__run *run);

#endif /* MTPROF_MODEL_COLUMNS_COLUMNS_H */
