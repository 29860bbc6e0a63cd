/* SPDX-License-Identifier: Apache-2.0
 *
 * The definitions of a trace (docs/format.md 4).
 *
 * Invariants
 *   DF1  Once finished, each table but that of modules is sorted by id, and no id occurs twice.
 *   DF2  A stack node that is found has no parent, or one that was defined before it and is found
 *        as well: walking up ends.
 *   DF3  Everything that is returned lies in the arena and does not move.
 *
 * Why sorted arrays and not hash tables: ids come from the file. A sort takes n log n whatever
 * they are; writers number from 1, so a look-up nearly always hits at the first try.
 */
#ifndef MTPROF_READ_DEFINITIONS_H
#define MTPROF_READ_DEFINITIONS_H

#include "base/arena.h"
#include "mtprof/read/problems.h"

#include <mtprof/reader.h>

typedef struct mtprof__definition {
    uint32_t id;
    uint32_t length;  /* of data: bytes of a text, words otherwise */
    uint64_t order;   /* in which definitions came */
    uint64_t offset;  /* of the record in the trace */
    const void *data; /* text; or words: an input list, what a frame, thread or module has */
    uint32_t a, b;    /* two ids or numbers, depending on the kind */
    uint8_t placed;   /* strings: a and b are file and line */
    uint8_t mark;     /* stack nodes: see check_stacks() */
} mtprof__definition;

typedef struct mtprof__definition_table {
    mtprof__definition *items;
    size_t n, capacity;
} mtprof__definition_table;

enum mtprof__definition_kind {
    MTPROF__DEF_STRING,
    MTPROF__DEF_INPUTS,
    MTPROF__DEF_FRAME,
    MTPROF__DEF_STACK,
    MTPROF__DEF_THREAD,
    MTPROF__DEF_SOURCE,
    MTPROF__DEF_MODULE,
    MTPROF__DEF_COUNT
};

typedef struct mtprof__definitions {
    mtprof__definition_table tables[MTPROF__DEF_COUNT];
    mtb_arena arena;
    uint64_t n_orders;
} mtprof__definitions;

/* Takes a record of the definitions stream that passed its checks; other kinds are left alone.
 * Fails with ENOMEM. */
int mtprof__definitions_add(mtprof__definitions *definitions, const mtprof_record *record);

/* Sorts, and checks what needs all definitions. Fails with ENOMEM. */
int mtprof__definitions_finish(mtprof__definitions *definitions, mtprof__problems *problems);

/* The definition of an id, or NULL. */
const mtprof__definition *mtprof__definition_find(const mtprof__definitions *definitions,
                                                  enum mtprof__definition_kind kind, uint32_t id);

void mtprof__definitions_fini(mtprof__definitions *definitions);

#endif /* MTPROF_READ_DEFINITIONS_H */
