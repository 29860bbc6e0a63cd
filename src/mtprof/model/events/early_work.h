/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work that seems to have begun before its launch: it waits here until the launch is seen.
 * A trace whose launches are gone (a ring that discarded them, clocks that are far apart) leaves
 * all its work here, so every call takes the same time however much waits.
 *
 *   EW1  Work of one key, and what is left at the end, comes out in the order in which it was put
 *        in.
 */
#ifndef MTPROF_MODEL_EVENTS_EARLY_WORK_H
#define MTPROF_MODEL_EVENTS_EARLY_WORK_H

#include "mtprof/model/columns/build_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__early {
    mtprof__work work;
    mtprof__payload_store payload;
    uint32_t device, track;
    uint32_t next; /* place + 1 of the next one with such a key; 0: none */
    bool gone;     /* it came out */
} mtprof__early;

typedef struct mtprof__early_bucket {
    uint32_t first, last; /* places + 1; 0: none */
} mtprof__early_bucket;

/* Zeroed memory is an empty one. */
typedef struct mtprof__early_work {
    mtprof__early *items;
    mtprof__early_bucket *buckets; /* as many as items have room: a power of two */
    size_t capacity, n;            /* n: places taken, those of what came out among them */
    size_t first;                  /* no place before it holds anything */
    size_t waiting;                /* that have not come out */
} mtprof__early_work;

/* Takes over the payload of *item. False: no memory, and nothing has changed. */
bool mtprof__early_put(mtprof__early_work *early, const mtprof__early *item);
/* The first with this key, which belongs to the caller then. False: there is none. */
bool mtprof__early_take(mtprof__early_work *early, uint64_t key, mtprof__early *out);
/* The first of all. */
bool mtprof__early_take_first(mtprof__early_work *early, mtprof__early *out);
/* Frees it and what waits. */
void mtprof__early_fini(mtprof__early_work *early);

#endif /* MTPROF_MODEL_EVENTS_EARLY_WORK_H */
