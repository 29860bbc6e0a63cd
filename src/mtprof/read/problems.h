/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what failed a check while a trace was opened.
 *
 * It is bounded: a file can be all damage. What does not fit is counted, and a last entry says so.
 */
#ifndef MTPROF_READ_PROBLEMS_H
#define MTPROF_READ_PROBLEMS_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__PROBLEMS_MAX = 1000
};

typedef struct mtprof__problem {
    uint64_t offset;
    uint64_t order; /* of being found: keeps the sort stable */
    char *message;
} mtprof__problem;

typedef struct mtprof__problems {
    mtprof__problem *items;
    size_t n, capacity;
    uint64_t not_listed, first_not_listed;
} mtprof__problems;

/* Fails with ENOMEM only. */
int mtprof__problem_add(mtprof__problems *problems, uint64_t offset, const char *format, ...)
    MT_PRINTF(3, 4);

/* Adds what the last failing call on this thread said. Fails with ENOMEM only. */
int mtprof__problem_add_failure(mtprof__problems *problems);

/* Forgets all but the first n, and what was not listed. */
void mtprof__problems_cut(mtprof__problems *problems, size_t n);

/* Sorts by offset, once everything was added. Fails with ENOMEM. */
int mtprof__problems_finish(mtprof__problems *problems);

void mtprof__problems_fini(mtprof__problems *problems);

#endif /* MTPROF_READ_PROBLEMS_H */
