/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what failed a check while a trace was opened.
 *
 * It is bounded, because a file can be damaged everywhere. What does not fit is counted in a last
 * entry.
 */
#ifndef MTPROF_READ_PROBLEMS_H
#define MTPROF_READ_PROBLEMS_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__PROBLEMS_MAX = 1000
};

/* How much of a trace is damaged. Bytes are those of which the extent is known: a chunk that is not
 * there at all counts as a problem without bytes. */
typedef struct mtprof__damage {
    uint64_t problems, bytes;
    uint64_t first; /* offset of the first, where there is one */
} mtprof__damage;

void mtprof__damage_add(mtprof__damage *damage, uint64_t offset, uint64_t bytes);
void mtprof__damage_merge(mtprof__damage *damage, const mtprof__damage *other);

typedef struct mtprof__problem {
    uint64_t offset;
    uint64_t order; /* of being found: keeps the sort stable */
    char *message;
} mtprof__problem;

typedef struct mtprof__problems {
    mtprof__problem *items;
    size_t n, capacity;
    uint64_t not_listed, first_not_listed;
    uint64_t bytes; /* in all of them, see mtprof__damage */
} mtprof__problems;

/* Fails with ENOMEM only. */
int mtprof__problem_add(mtprof__problems *problems, uint64_t offset, const char *format, ...)
    MT_PRINTF(3, 4);

/* Adds what the last failing call on this thread said. Fails with ENOMEM only. */
int mtprof__problem_add_failure(mtprof__problems *problems);

/* All of them, listed or not. */
mtprof__damage mtprof__problems_damage(const mtprof__problems *problems);

/* Forgets all but the first n, and what was not listed. */
void mtprof__problems_cut(mtprof__problems *problems, size_t n);

/* Sorts by offset, once everything was added. Fails with ENOMEM. */
int mtprof__problems_finish(mtprof__problems *problems);

void mtprof__problems_fini(mtprof__problems *problems);

#endif /* MTPROF_READ_PROBLEMS_H */
