/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's view of scopes: a scope under which kernels, copies or sets were launched gets, on
 * each queue they ran on, a span of its name from the first start to the last end of them. The
 * annotations of columns (assemble_annotations.c) and of streams (events_host.c, events_device.c)
 * are made here.
 *
 * An annotation is a chain: it holds the one around it. It is done when its scope has ended and
 * nothing launched inside is still out.
 *
 *   AN1  refs of an annotation = 1 while its scope is open + launches + inner annotations that hold
 *        it.
 *   AN2  A start goes up the chain at once, as far as it is the earliest; an end goes up when the
 *        annotation is done. So a piece of work does not cost what the chain is deep.
 *   AN3  An annotation that nothing holds any more is on the `done` list until it is taken from
 *        there. But an annotation that begins on a queue at the same time as the one around it
 *        waits for that one, because of equal spans viewers draw the first one outside. The number
 *        of those that wait is limited; beyond it they do not wait.
 *   AN4  Spans are limited: a trace may nest a hundred thousand scopes around work on a thousand
 *        queues. The innermost scope of a piece of work always gets its span; what other scopes do
 *        not get is counted.
 */
#ifndef MTPROF_MODEL_FACTS_ANNOTATION_H
#define MTPROF_MODEL_FACTS_ANNOTATION_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Spans at a time that annotations may have anyway (AN4): more than a person looks at. */
    MTPROF__ANNOTATION_SPANS = 1 << 20,
    /* Annotations of a stream that wait for one around them (AN3). */
    MTPROF__ANNOTATIONS_WAIT = 1024
};

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
    struct mtprof__annotation *inside_last;
    uint32_t n_inside;
    uint32_t name;
    int32_t step;
    uint64_t refs;
    uint64_t correlation; /* of the scope */
    mtprof_text text;     /* own copy where the name is inline, else the dictionary's */
    char *copy;
    mtprof__queue_span *spans;
    size_t n_spans, capacity;
    size_t found; /* the span that was found last */
} mtprof__annotation;

/* A chain while it is made, from the innermost outwards. Zeros: an empty one. */
typedef struct mtprof__annotation_chain {
    mtprof__annotation *innermost, *outermost;
} mtprof__annotation_chain;

typedef struct mtprof__annotations {
    mtprof__annotation *done;
    uint32_t wait_most; /* AN3 */
    size_t n_spans;     /* of annotations that are there */
    size_t spans_most;  /* AN4 */
    uint64_t left_out;  /* spans that were not made because of it */
} mtprof__annotations;

/* An annotation with one reference. inline_text: the text is copied. NULL: no memory. */
mtprof__annotation *mtprof__annotation_new(mtprof_text text, bool inline_text);
/* Puts an annotation (NULL: nothing) around those of the chain, which hold it. Chains are made
 * before work counts for them. */
void mtprof__annotation_chain_add(mtprof__annotation_chain *chain, mtprof__annotation *annotation);
/* Gives back a reference (NULL: nothing); what is done goes to the list. */
void mtprof__annotation_drop(mtprof__annotations *all, mtprof__annotation *annotation);
/* Work on a queue counts for the annotation (NULL: nothing) and those around it. Fails with
 * ENOMEM. */
int mtprof__annotation_count(mtprof__annotations *all, mtprof__annotation *annotation,
                             const mtprof__queue_span *work);
/* Takes the first one that is done; NULL: none. */
mtprof__annotation *mtprof__annotation_take(mtprof__annotations *all);
/* Accepts NULL. */
void mtprof__annotation_free(mtprof__annotations *all, mtprof__annotation *annotation);

#endif /* MTPROF_MODEL_FACTS_ANNOTATION_H */
