/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/facts/annotation.h"

#include "base/alloc.h"
#include "base/fail.h"

mtprof__annotation *mtprof__annotation_new(mtprof_text text, bool inline_text)
{
    mtprof__annotation *annotation = mtb_calloc(1, sizeof *annotation);
    if (annotation == NULL) {
        return NULL;
    }
    annotation->refs = 1;
    annotation->text = text;
    if (inline_text) {
        annotation->copy = mtb_copy_text(text.bytes, text.length);
        if (annotation->copy == NULL) {
            mtb_free(annotation);
            return NULL;
        }
        annotation->text.bytes = annotation->copy;
    }
    return annotation;
}

void mtprof__annotation_chain_add(mtprof__annotation_chain *chain, mtprof__annotation *annotation)
{
    if (annotation == NULL) {
        return;
    }
    if (chain->outermost == NULL) {
        chain->innermost = annotation;
    } else if (chain->outermost->around == NULL) {
        chain->outermost->around = annotation;
        annotation->refs++;
    }
    chain->outermost = annotation;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* The span on a track, NULL: none. The search begins where the last one ended: work comes in
 * bursts, and the spans of one annotation are often in the order of another's. */
static mtprof__queue_span *find_span(mtprof__annotation *annotation, uint32_t track)
{
    size_t at = annotation->found;
    for (size_t n = annotation->n_spans; n > 0; n--) {
        if (annotation->spans[at].track == track) {
            annotation->found = at;
            return &annotation->spans[at];
        }
        at = at + 1 < annotation->n_spans ? at + 1 : 0;
    }
    return NULL;
}

static void extend(mtprof__queue_span *span, const mtprof__queue_span *by)
{
    span->start_ns = by->start_ns < span->start_ns ? by->start_ns : span->start_ns;
    span->end_ns = by->end_ns > span->end_ns ? by->end_ns : span->end_ns;
    span->shown_start_ns =
        by->shown_start_ns < span->shown_start_ns ? by->shown_start_ns : span->shown_start_ns;
    span->shown_end_ns =
        by->shown_end_ns > span->shown_end_ns ? by->shown_end_ns : span->shown_end_ns;
}

static int add_span(mtprof__annotations *all, mtprof__annotation *annotation,
                    const mtprof__queue_span *work)
{
    if (!mtb_append(annotation->spans, annotation->n_spans, annotation->capacity, work)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu annotations on device queues",
                        all->n_spans + 1);
    }
    all->n_spans++;
    return MTPROF_OK;
}

int mtprof__annotation_count(mtprof__annotations *all, mtprof__annotation *annotation,
                             const mtprof__queue_span *work)
{
    bool innermost = true;
    for (; annotation != NULL; annotation = annotation->around) {
        mtprof__queue_span *span = find_span(annotation, work->track);
        if (span != NULL) {
            bool earlier =
                work->start_ns < span->start_ns || work->shown_start_ns < span->shown_start_ns;
            extend(span, work);
            if (!earlier) {
                return MTPROF_OK; /* AN2 */
            }
        } else if (innermost || all->n_spans < all->spans_most) {
            MT_TRY(add_span(all, annotation, work));
        } else {
            all->left_out++; /* AN4 */
            return MTPROF_OK;
        }
        innermost = false;
    }
    return MTPROF_OK;
}

/* What is done brings its ends to the one around it, which has its starts. */
static void bring_ends(mtprof__annotation *annotation, mtprof__annotation *around)
{
    for (size_t i = 0; around != NULL && i < annotation->n_spans; i++) {
        mtprof__queue_span *span = find_span(around, annotation->spans[i].track);
        if (span != NULL) { /* else it was left out */
            extend(span, &annotation->spans[i]);
        }
    }
}

/* ---- the done list --------------------------------------------------------------------------- */

static bool begins_with(const mtprof__annotation *inner, mtprof__annotation *outer)
{
    for (size_t i = 0; outer != NULL && i < inner->n_spans; i++) {
        const mtprof__queue_span *span = find_span(outer, inner->spans[i].track);
        if (span != NULL && span->shown_start_ns == inner->spans[i].shown_start_ns) {
            return true;
        }
    }
    return false;
}

/* Puts an annotation with those inside it, itself first, before a list; the last of them. */
static mtprof__annotation *put_before(mtprof__annotation **list, mtprof__annotation *annotation)
{
    mtprof__annotation *last = annotation->inside != NULL ? annotation->inside_last : annotation;
    annotation->next = annotation->inside;
    annotation->inside = NULL;
    last->next = *list;
    *list = annotation;
    return last;
}

static void put_inside(mtprof__annotation *around, mtprof__annotation *annotation)
{
    bool first = around->inside == NULL;
    mtprof__annotation *last = put_before(&around->inside, annotation);
    if (first) {
        around->inside_last = last;
    }
}

void mtprof__annotation_drop(mtprof__annotations *all, mtprof__annotation *annotation)
{
    while (annotation != NULL && --annotation->refs == 0) {
        mtprof__annotation *around = annotation->around;
        uint32_t n = annotation->n_inside + 1;
        bring_ends(annotation, around);
        if (begins_with(annotation, around) && around->n_inside + n <= all->wait_most) { /* AN3 */
            around->n_inside += n;
            put_inside(around, annotation);
        } else {
            put_before(&all->done, annotation);
        }
        annotation = around;
    }
}

mtprof__annotation *mtprof__annotation_take(mtprof__annotations *all)
{
    mtprof__annotation *first = all->done;
    if (first != NULL) {
        all->done = first->next;
    }
    return first;
}

void mtprof__annotation_free(mtprof__annotations *all, mtprof__annotation *annotation)
{
    if (annotation != NULL) {
        all->n_spans -= annotation->n_spans;
        mtb_free(annotation->copy);
        mtb_free(annotation->spans);
        mtb_free(annotation);
    }
}
