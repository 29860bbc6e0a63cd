/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling, third stage: the device's view of scopes (annotation.h) as one more part. Every piece
 * of work counts for the chain of scopes around the host event that it belongs to.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "mtprof/model/facts/annotation.h"

enum {
    SPANS_PER_WORK = 4 /* AN4: beside MTPROF__ANNOTATION_SPANS */
};

typedef struct maker {
    const mtprof__assembly *assembly;
    mtprof__annotations all;
    mtprof__annotation **made; /* all of them */
    size_t n_made, capacity;
    uint32_t *places; /* by number of a scope: its place in `made` + 1 */
    uint32_t *scopes; /* memo of mtprof__nearest() */
} maker;

/* The scope around a scope. */
static uint32_t above(const maker *m, uint32_t scope)
{
    const mtprof__part *part = mtprof__part_of(m->assembly, m->assembly->parts, scope);
    return mtprof__nearest(m->assembly, part->run->columns.parent[scope - part->base],
                           MTPROF__KINDS_SCOPE, m->scopes);
}

static int no_memory(const maker *m)
{
    return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu annotations on device queues",
                    m->n_made + 1);
}

static int make_annotation(maker *m, uint32_t scope)
{
    mtprof__annotation *annotation = mtprof__annotation_new((mtprof_text){"", 0}, false);
    if (annotation == NULL || !mtb_append(m->made, m->n_made, m->capacity, &annotation)) {
        mtprof__annotation_free(&m->all, annotation);
        return no_memory(m);
    }
    annotation->correlation = scope;
    m->places[scope] = (uint32_t)m->n_made;
    return MTPROF_OK;
}

/* The annotation of a scope, with those around it. */
static int find_annotation(maker *m, uint32_t scope, mtprof__annotation **out)
{
    mtprof__annotation_chain chain = {NULL, NULL};
    bool known = false; /* and so are those around it */
    for (uint32_t at = scope; at != MTPROF_NO_EVENT && !known; at = above(m, at)) {
        known = m->places[at] != 0;
        if (!known) {
            MT_TRY(make_annotation(m, at));
        }
        mtprof__annotation_chain_add(&chain, m->made[m->places[at] - 1]);
    }
    *out = chain.innermost;
    return MTPROF_OK;
}

static int count_work(maker *m)
{
    const mtprof__assembly *assembly = m->assembly;
    const mtprof__part *part = assembly->parts;
    for (size_t i = 0; i < assembly->links.n; i++) {
        const mtprof__tie *tie = &assembly->links.items[i];
        part = mtprof__part_of(assembly, part, tie->work);
        const mtprof__columns *columns = &part->run->columns;
        uint32_t work = tie->work - part->base;
        if (!mtprof__kind_in(columns->kind[work], MTPROF__KINDS_WORK)) {
            continue;
        }
        mtprof__queue_span span = {
            .device = columns->device[work],
            .track = columns->track[work],
            .start_ns = columns->start_ns[work],
            .end_ns = columns->end_ns[work],
            .shown_start_ns = columns->start_ns[work],
            .shown_end_ns = columns->end_ns[work],
        };
        mtprof__annotation *annotation = NULL;
        MT_TRY(find_annotation(
            m, mtprof__nearest(assembly, tie->host, MTPROF__KINDS_SCOPE, m->scopes), &annotation));
        MT_TRY(mtprof__annotation_count(&m->all, annotation, &span));
    }
    return MTPROF_OK;
}

static void put_span(mtprof__assembly *assembly, uint32_t number, const mtprof__queue_span *span)
{
    const mtprof__part *part = mtprof__part_find(assembly, number);
    const mtprof__columns *scopes = &part->run->columns;
    uint32_t scope = number - part->base;
    mtprof__columns *columns = &assembly->annotations.columns;
    size_t i = columns->n++;
    columns->start_ns[i] = span->start_ns;
    columns->end_ns[i] = span->end_ns;
    columns->self_ns[i] = 0;
    columns->parent[i] = MTPROF_NO_EVENT;
    columns->name[i] = scopes->name[scope];
    columns->track[i] = span->track;
    columns->step[i] = scopes->step[scope];
    columns->index[i] = MTPROF_NO_EVENT;
    columns->kind[i] = MTPROF_EVENT_KIND_ANNOTATION;
    columns->device[i] = (uint8_t)span->device;
    columns->flags[i] = MTPROF_EVENT_FLAG_MATCHED;
}

/* The annotations as a part of their own. Of those with equal spans outer ones come first (AN3). */
static int put_annotations(mtprof__assembly *assembly, const maker *m)
{
    size_t n = m->all.n_spans;
    if (n == 0 || n >= MTPROF_NO_EVENT - 2 - assembly->n) {
        return MTPROF_OK; /* none, or no numbers are left for them */
    }
    MT_TRY(mtprof__columns_reserve(&assembly->annotations.columns, n));
    for (const mtprof__annotation *at = m->all.done; at != NULL; at = at->next) {
        for (size_t i = 0; i < at->n_spans; i++) {
            MT_TRY(mtprof__pairs_add(&assembly->links,
                                     assembly->n + (uint32_t)assembly->annotations.columns.n,
                                     (uint32_t)at->correlation));
            put_span(assembly, (uint32_t)at->correlation, &at->spans[i]);
        }
    }
    assembly->parts[assembly->n_parts++] = (mtprof__part){
        .run = &assembly->annotations,
        .base = assembly->n,
        .n = (uint32_t)n,
        .order = -1, /* before the work it is around */
    };
    assembly->n += (uint32_t)n;
    return MTPROF_OK;
}

int mtprof__assemble_annotations(mtprof__assembly *assembly)
{
    if (assembly->links.n == 0) {
        return MTPROF_OK;
    }
    uint32_t n = assembly->n; /* the annotations come to it */
    maker m = {
        .assembly = assembly,
        .all = {.wait_most = UINT32_MAX,
                .spans_most = MTPROF__ANNOTATION_SPANS + SPANS_PER_WORK * assembly->links.n},
        .places = mtb_array_take(n, sizeof *m.places),
        .scopes = mtb_array_take(n, sizeof *m.scopes),
    };
    int status = m.places == NULL || m.scopes == NULL ? no_memory(&m) : count_work(&m);
    for (size_t i = 0; i < m.n_made; i++) {
        mtprof__annotation_drop(&m.all, m.made[i]);
    }
    if (status == MTPROF_OK) {
        status = put_annotations(assembly, &m);
    }
    assembly->model->findings.left_out += m.all.left_out;
    for (size_t i = 0; i < m.n_made; i++) {
        mtprof__annotation_free(&m.all, m.made[i]);
    }
    mtb_free(m.made);
    mtb_array_give(m.places, n, sizeof *m.places);
    mtb_array_give(m.scopes, n, sizeof *m.scopes);
    return status;
}
