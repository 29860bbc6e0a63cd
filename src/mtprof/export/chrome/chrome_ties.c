/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of equal times. Viewers sort by start, then by length, and what is equal in both they nest
 * in the order of the file. A span is written when it ends, and of two that end together the inner
 * one ends first; so it is held back until it is known whether the one around it is its equal:
 *
 *     begin a, begin b, end b, end a      all at one time, or a and b with equal times
 *     end b   what is around it began with it: held
 *     end a   has the times of b:              a, b are written
 *
 *   TIE1  What is held on a track has one start and one end. It is written, in order of beginning,
 *         before anything else of the track with other times, and at the end.
 *   TIE2  Memory is bounded: past a number of spans, or of bytes, they are written unsorted,
 *         and counted (report.unordered). It takes thousands of spans without a length in one
 *         nanosecond.
 */
#include "base/alloc.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

#include <stdlib.h>

enum {
    HELD_SPANS_MOST = 4096,
    HELD_BYTES_MOST = 4 * 1024 * 1024
};

typedef struct held_span {
    uint64_t order;
    size_t offset, length; /* in the text */
} held_span;

struct mtprof__chrome_ties {
    int64_t start_ns, end_ns; /* of all */
    held_span *spans;
    size_t n, capacity;
    char *text;
    size_t text_length, text_capacity;
    bool refused; /* memory was */
};

static int compare_order(const void *a, const void *b)
{
    const held_span *left = a;
    const held_span *right = b;
    return left->order < right->order ? -1 : left->order > right->order;
}

static int take_text(void *context, const void *bytes, size_t length)
{
    struct mtprof__chrome_ties *ties = ((mtprof__chrome *)context)->holding;
    if (!mtb_grow((void **)&ties->text, &ties->text_capacity, ties->text_length + length, 1)) {
        ties->refused = true;
        return 0;
    }
    memcpy(ties->text + ties->text_length, bytes, length);
    ties->text_length += length;
    return 0;
}

void mtprof__chrome_ties_flush(mtprof__chrome *chrome, const mtprof__chrome_track *track)
{
    struct mtprof__chrome_ties *ties = track->ties;
    if (ties == NULL || ties->n == 0) {
        return;
    }
    qsort(ties->spans, ties->n, sizeof *ties->spans, compare_order);
    for (size_t i = 0; i < ties->n; i++) {
        mtb_write_long(chrome->writer, ties->text + ties->spans[i].offset, ties->spans[i].length);
    }
    ties->n = 0;
    ties->text_length = 0;
}

static struct mtprof__chrome_ties *ties_of(mtprof__chrome *chrome, mtprof__chrome_track *track)
{
    if (chrome->aside.buffer == NULL && !mtb_writer_init(&chrome->aside, take_text, chrome)) {
        return NULL;
    }
    if (track->ties == NULL && track != &chrome->nowhere) {
        track->ties = mtb_calloc(1, sizeof *track->ties);
    }
    return track->ties;
}

bool mtprof__chrome_hold(mtprof__chrome *chrome, mtprof__chrome_track *track, int64_t start_ns,
                         int64_t end_ns, bool tied)
{
    struct mtprof__chrome_ties *ties = track->ties;
    bool held = ties != NULL && ties->n > 0;
    if (held && (ties->start_ns != start_ns || ties->end_ns != end_ns)) {
        mtprof__chrome_ties_flush(chrome, track);
        held = false;
    }
    if (!held && !tied) {
        return false;
    }
    ties = ties_of(chrome, track);
    if (ties == NULL ||
        !mtb_grow((void **)&ties->spans, &ties->capacity, ties->n + 1, sizeof *ties->spans)) {
        chrome->error = MTPROF_ENOMEM;
        return false;
    }
    ties->start_ns = start_ns;
    ties->end_ns = end_ns;
    ties->spans[ties->n].offset = ties->text_length;
    chrome->holding = ties;
    chrome->writer = &chrome->aside;
    return true;
}

void mtprof__chrome_held(mtprof__chrome *chrome, const mtprof__chrome_track *track, uint64_t order,
                         bool tied)
{
    struct mtprof__chrome_ties *ties = chrome->holding;
    mtb_writer_flush(&chrome->aside);
    chrome->writer = chrome->job->writer;
    chrome->writer->replaced += chrome->aside.replaced;
    chrome->aside.replaced = 0;
    chrome->holding = NULL;
    if (ties->refused || chrome->aside.error != 0) {
        chrome->error = MTPROF_ENOMEM;
        return;
    }
    held_span *span = &ties->spans[ties->n++];
    span->order = order;
    span->length = ties->text_length - span->offset;
    if (ties->n >= HELD_SPANS_MOST || ties->text_length >= HELD_BYTES_MOST) { /* TIE2 */
        chrome->job->report.unordered += ties->n;
        tied = false;
    }
    if (!tied) { /* nothing around it can be its equal */
        mtprof__chrome_ties_flush(chrome, track);
    }
}

void mtprof__chrome_ties_finish(mtprof__chrome *chrome)
{
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        mtprof__chrome_ties_flush(chrome, &chrome->tracks[i]);
    }
}

void mtprof__chrome_ties_fini(mtprof__chrome *chrome)
{
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        struct mtprof__chrome_ties *ties = chrome->tracks[i].ties;
        if (ties != NULL) {
            mtb_free(ties->spans);
            mtb_free(ties->text);
            mtb_free(ties);
            chrome->tracks[i].ties = NULL;
        }
    }
    if (chrome->aside.buffer != NULL) {
        (void)mtb_writer_finish(&chrome->aside);
    }
}
