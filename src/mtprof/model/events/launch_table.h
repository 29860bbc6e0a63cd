/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches in flight, for event streams: what is known of a launch until its device work comes, and
 * the annotations that work counts for.
 *
 * A launch that was answered stays for a while: a graph of kernels answers one launch many times,
 * and a runtime call may be reported after the work it launched.
 *
 * An annotation is a chain: it holds the one around it. It is done when its scope has ended and
 * nothing launched inside is still out.
 *
 *   LT1  refs of an annotation = 1 while its scope is open + launches + inner annotations that hold
 *        it.
 *   LT2  An annotation that nothing holds any more is on the `done` list until it is taken from
 *        there. But an annotation that begins on a queue at the same time as the one around it
 *        waits for that one, because of equal spans viewers draw the first one outside. The number
 *        of those that wait is limited; beyond it they do not wait.
 */
#ifndef MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H
#define MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The time between the first and the last piece of work on a queue. */
typedef struct mtprof__queue_span {
    uint32_t device, track, queue;
    int64_t start_ns, end_ns;
    int64_t shown_start_ns, shown_end_ns;
} mtprof__queue_span;

typedef struct mtprof__annotation {
    struct mtprof__annotation *around; /* NULL: none */
    struct mtprof__annotation *next;   /* on the done list, or inside another one */
    struct mtprof__annotation *inside; /* done, and next on the list after this one */
    uint32_t n_inside;
    uint64_t refs;
    uint64_t correlation;
    uint32_t name;
    int32_t step;
    mtprof_text text; /* own copy where the name is inline, else the dictionary's */
    char *copy;
    mtprof__queue_span *spans;
    size_t n_spans, capacity;
} mtprof__annotation;

typedef struct mtprof__launch {
    uint64_t key; /* 0: free */
    uint64_t correlation, owner;
    int64_t shown_ns;
    uint32_t track;
    int32_t step;
    bool answered;
    mtprof__annotation *annotation; /* held; NULL: none */
} mtprof__launch;

enum {
    MTPROF__ANSWERED_KEPT = 16384
};

typedef struct mtprof__launch_table {
    mtprof__launch *items; /* open addressing */
    size_t capacity, n;
    uint64_t *answered; /* keys of launches answered lately, the oldest at `oldest`; 0: free */
    size_t oldest;
    size_t swept; /* mtprof__launch_take_any(): nothing is left before it */
    mtprof__annotation *done;
} mtprof__launch_table;

/* Fails with ENOMEM. A key that is there already is replaced. */
int mtprof__launch_add(mtprof__launch_table *table, const mtprof__launch *launch);
/* A launch, or NULL; valid until the next call that changes the table. */
mtprof__launch *mtprof__launch_find(const mtprof__launch_table *table, uint64_t key);
/* A launch is answered; another that was answered long ago goes. Fails with ENOMEM. */
int mtprof__launch_answer(mtprof__launch_table *table, mtprof__launch *launch);
/* Takes out any launch, at the end: nothing may be added any more. False: none is left. */
bool mtprof__launch_take_any(mtprof__launch_table *table, mtprof__launch *launch);

/* An annotation with one reference; it takes over a reference to `around`. inline_text: the text is
 * copied. NULL: no memory. */
mtprof__annotation *mtprof__annotation_new(mtprof__annotation *around, mtprof_text text,
                                           bool inline_text);
/* Gives back a reference (NULL: nothing); what is done goes to the list. */
void mtprof__annotation_drop(mtprof__launch_table *table, mtprof__annotation *annotation);
/* Work on a queue counts for the annotation and those around it. Fails with ENOMEM. */
int mtprof__annotation_count(mtprof__annotation *annotation, const mtprof__queue_span *work);
void mtprof__annotation_free(mtprof__annotation *annotation);

void mtprof__launch_table_fini(mtprof__launch_table *table);

#endif /* MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H */
