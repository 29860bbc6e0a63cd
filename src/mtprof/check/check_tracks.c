/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said of a Chrome trace only once all of its events are known: whether spans nest,
 * whether flows have both ends and bind to spans, whether each B has its E.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "mtprof/check/check_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- tracks ---------------------------------------------------------------------------------- */

static bool same_id(const mtprof__check_id *a, const mtprof__check_id *b)
{
    return a->is_text == b->is_text && a->value == b->value;
}

typedef struct track_key {
    const mtprof__check_id *pid, *tid;
} track_key;

static bool same_track(const void *context, uint32_t id, const void *key)
{
    const mtprof__check_tracks *tracks = context;
    const track_key *wanted = key;
    const mtprof__check_track *track = &tracks->items[id - 1];
    return same_id(&track->pid, wanted->pid) && same_id(&track->tid, wanted->tid);
}

int mtprof__check_track_of(mtprof__check_tracks *tracks, const mtprof__check_id *pid,
                           const mtprof__check_id *tid, uint32_t *track)
{
    const track_key key = {pid, tid};
    uint64_t hash = mtb_mix((uint64_t)pid->value + pid->is_text, (uint64_t)tid->value);
    uint32_t id = mtb_idmap_find(&tracks->map, hash, same_track, tracks, &key);
    if (id == 0) {
        const mtprof__check_track made = {.pid = *pid, .tid = *tid};
        if (!mtb_idmap_append(&tracks->map, hash, tracks->items, tracks->n, tracks->capacity,
                              &made)) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu tracks", tracks->n + 1);
        }
        id = (uint32_t)tracks->n;
    }
    *track = id - 1;
    return MTPROF_OK;
}

int mtprof__check_span_add(mtprof__check_tracks *tracks, uint32_t track, int64_t start_ns,
                           int64_t end_ns, mtb_json_place place)
{
    if (!mtb_grow((void **)&tracks->spans, &tracks->span_capacity, tracks->n_spans + 1,
                  sizeof *tracks->spans)) {
        return mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu spans", tracks->n_spans + 1);
    }
    tracks->items[track].n_spans++;
    tracks->spans[tracks->n_spans++] = (mtprof__check_span){
        .start_ns = start_ns,
        .end_ns = end_ns,
        .offset = place.offset,
        .track = track,
        .line = mtprof__check_cut(place.line),
        .column = mtprof__check_cut(place.column),
    };
    return MTPROF_OK;
}

void mtprof__check_span_ids(mtprof__check_tracks *tracks, bool function, uint64_t id,
                            uint64_t parent)
{
    mtprof__check_span *span = &tracks->spans[tracks->n_spans - 1];
    span->is_function = function;
    span->id = id;
    span->parent = parent;
}

int mtprof__check_async_add(mtprof__check_tracks *tracks, uint32_t track, int64_t start_ns,
                            mtb_json_place place)
{
    MT_TRY(mtprof__check_span_add(tracks, track, start_ns, start_ns, place));
    tracks->spans[tracks->n_spans - 1].is_async = 1;
    return MTPROF_OK;
}

int mtprof__check_flow_add(mtprof__check_tracks *tracks, const mtprof__check_flow *flow)
{
    return mtb_append(tracks->flows, tracks->n_flows, tracks->flow_capacity, flow)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu flows", tracks->n_flows + 1);
}

/* ---- B and E --------------------------------------------------------------------------------- */

int mtprof__check_begin(mtprof__check_tracks *tracks, uint32_t track, uint64_t name, int64_t ts_ns,
                        mtb_json_place place)
{
    uint32_t at = tracks->free_open;
    if (at != 0) {
        tracks->free_open = tracks->open[at - 1].below;
    } else if (!mtb_grow((void **)&tracks->open, &tracks->open_capacity, tracks->n_open + 1,
                         sizeof *tracks->open)) {
        return mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu open events", tracks->n_open + 1);
    } else {
        at = (uint32_t)++tracks->n_open;
    }
    tracks->open[at - 1] = (mtprof__check_open){
        .name = name, .place = place, .ts_ns = ts_ns, .below = tracks->items[track].top};
    tracks->items[track].top = at;
    return MTPROF_OK;
}

int mtprof__check_end(mtprof__check *check, mtprof__check_tracks *tracks, uint32_t track,
                      uint64_t name, int64_t ts_ns, mtb_json_place place)
{
    mtprof__check_track *item = &tracks->items[track];
    if (item->top == 0) {
        return mtprof__check_find(check, MTPROF__RULE_CHROME_BALANCE, place,
                                  "an E without a B on pid %s, tid %s", item->pid.shown,
                                  item->tid.shown);
    }
    uint32_t at = item->top;
    mtprof__check_open begin = tracks->open[at - 1];
    item->top = begin.below;
    tracks->open[at - 1].below = tracks->free_open;
    tracks->free_open = at;
    check->summary.spans++;
    if (name != 0 && begin.name != 0 && name != begin.name) {
        MT_TRY(mtprof__check_find(check, MTPROF__RULE_CHROME_BALANCE, place,
                                  "an E with another name than the B at byte %llu that it ends",
                                  (unsigned long long)begin.place.offset));
    }
    if (ts_ns < begin.ts_ns) {
        MT_TRY(mtprof__check_find(check, MTPROF__RULE_CHROME_BALANCE, place,
                                  "an E before the B at byte %llu that it ends",
                                  (unsigned long long)begin.place.offset));
        ts_ns = begin.ts_ns;
    }
    return mtprof__check_span_add(tracks, track, begin.ts_ns, ts_ns, begin.place);
}

static int check_open(mtprof__check *check, const mtprof__check_tracks *tracks)
{
    for (size_t i = 0; i < tracks->n; i++) {
        const mtprof__check_track *track = &tracks->items[i];
        for (uint32_t at = track->top; at != 0; at = tracks->open[at - 1].below) {
            MT_TRY(mtprof__check_find(
                check, MTPROF__RULE_CHROME_BALANCE, tracks->open[at - 1].place,
                "a B without an E on pid %s, tid %s", track->pid.shown, track->tid.shown));
        }
    }
    return MTPROF_OK;
}

/* ---- nesting --------------------------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
    const mtprof__check_span *left = a;
    const mtprof__check_span *right = b;
    int order = mtb_order(left->track, right->track);
    order = order != 0 ? order : mtb_order(left->start_ns, right->start_ns);
    order = order != 0 ? order : mtb_order(right->end_ns, left->end_ns);
    return order != 0 ? order : mtb_order(left->offset, right->offset);
}

static mtb_json_place span_place(const mtprof__check_span *span)
{
    return (mtb_json_place){span->offset, span->line, span->column};
}

/* Spans are in order. A span that sticks out of the one around it takes that one's place: the next
 * ones are compared with what is drawn. */
static int check_nesting(mtprof__check *check, const mtprof__check_tracks *tracks, uint32_t *stack)
{
    size_t depth = 0;
    for (size_t i = 0; i < tracks->n_spans; i++) {
        const mtprof__check_span *span = &tracks->spans[i];
        const mtprof__check_span *top = NULL;
        if (span->is_async != 0) {
            continue;
        }
        for (; depth > 0; depth--) {
            top = &tracks->spans[stack[depth - 1]];
            if (top->track == span->track && top->end_ns > span->start_ns) {
                break;
            }
        }
        if (depth > 0 && span->end_ns > top->end_ns) {
            const mtprof__check_track *track = &tracks->items[span->track];
            MT_TRY(mtprof__check_find(
                check, MTPROF__RULE_CHROME_NESTING, span_place(span),
                "a span on pid %s, tid %s begins inside the one at byte %llu and ends %lld ns "
                "after it",
                track->pid.shown, track->tid.shown, (unsigned long long)top->offset,
                (long long)mtb_sub_sat(span->end_ns, top->end_ns)));
        }
        stack[depth++] = (uint32_t)i;
    }
    return MTPROF_OK;
}

/* ---- flows ----------------------------------------------------------------------------------- */

/* By key; of a flow: starts, then steps, then ends, each in order of the file. */
static int phase_order(char phase)
{
    return phase == 's' ? 0 : phase == 't' ? 1 : 2;
}

static int compare_flows(const void *a, const void *b)
{
    const mtprof__check_flow *left = a;
    const mtprof__check_flow *right = b;
    int order = mtb_order(left->key, right->key);
    order = order != 0 ? order : phase_order(left->phase) - phase_order(right->phase);
    return order != 0 ? order : mtb_order(left->offset, right->offset);
}

static mtb_json_place flow_place(const mtprof__check_flow *flow)
{
    return (mtb_json_place){flow->offset, flow->line, flow->column};
}

/* The first span of the track that starts at ts or later. */
static size_t first_span(const mtprof__check_tracks *tracks, uint32_t track, int64_t ts)
{
    size_t from = 0;
    size_t to = tracks->n_spans;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const mtprof__check_span *span = &tracks->spans[middle];
        if (span->track < track || (span->track == track && span->start_ns < ts)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static int check_binding(mtprof__check *check, const mtprof__check_tracks *tracks,
                         const mtprof__check_flow *flow)
{
    size_t at = first_span(tracks, flow->track, flow->ts_ns);
    bool starts_there = at < tracks->n_spans && tracks->spans[at].track == flow->track &&
                        tracks->spans[at].start_ns == flow->ts_ns;
    const mtprof__check_track *track = &tracks->items[flow->track];
    if (flow->joined && !starts_there) {
        enum mtprof__check_rule rule =
            tracks->is_part ? MTPROF__RULE_CHROME_FLOW_PART : MTPROF__RULE_CHROME_FLOW_BIND;
        return mtprof__check_find(check, rule, flow_place(flow),
                                  "flow event %c: no span on pid %s, tid %s has exactly its ts",
                                  flow->phase, track->pid.shown, track->tid.shown);
    }
    if (!flow->joined && track->n_spans == 0) {
        return mtprof__check_find(check, MTPROF__RULE_CHROME_FLOW_OPEN, flow_place(flow),
                                  "flow event %c: pid %s, tid %s has no span", flow->phase,
                                  track->pid.shown, track->tid.shown);
    }
    return MTPROF_OK;
}

/* A flow that the tools join must be complete; what a program draws itself is its own affair. */
static int find_incomplete(mtprof__check *check, const mtprof__check_tracks *tracks,
                           const mtprof__check_flow *flow, char missing)
{
    enum mtprof__check_rule rule =
        flow->joined ? MTPROF__RULE_CHROME_FLOW : MTPROF__RULE_CHROME_FLOW_OPEN;
    return mtprof__check_find(check, tracks->is_part ? MTPROF__RULE_CHROME_FLOW_PART : rule,
                              flow_place(flow), "flow event %c: no %c has its category and id",
                              flow->phase, missing);
}

/* The events of one flow: starts first. */
static int check_flow(mtprof__check *check, const mtprof__check_tracks *tracks,
                      const mtprof__check_flow *flows, size_t n)
{
    bool starts = flows[0].phase == 's';
    for (size_t i = 0; i < n; i++) {
        MT_TRY(check_binding(check, tracks, &flows[i]));
        MT_TRY(starts ? MTPROF_OK : find_incomplete(check, tracks, &flows[i], 's'));
    }
    return flows[n - 1].phase == 'f' ? MTPROF_OK : find_incomplete(check, tracks, &flows[0], 'f');
}

static int check_flows(mtprof__check *check, const mtprof__check_tracks *tracks)
{
    const mtprof__check_flow *flows = tracks->flows;
    for (size_t i = 0, n = 0; i < tracks->n_flows; i += n) {
        n = 1;
        while (i + n < tracks->n_flows && flows[i + n].key == flows[i].key) {
            n++;
        }
        MT_TRY(check_flow(check, tracks, flows + i, n));
    }
    return MTPROF_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Where a trace names tracks at all, each one with spans has a name. */
static int check_names(mtprof__check *check, const mtprof__check_tracks *tracks)
{
    for (size_t i = 0; i < tracks->n; i++) {
        const mtprof__check_track *track = &tracks->items[i];
        if (track->n_spans > 0 && !track->has_name && !track->pid.is_text) {
            MT_TRY(mtprof__check_find(
                check, MTPROF__RULE_CHROME_UNNAMED, (mtb_json_place){.offset = 0},
                "pid %s, tid %s has %llu spans and no thread_name", track->pid.shown,
                track->tid.shown, (unsigned long long)track->n_spans));
        }
    }
    return MTPROF_OK;
}

int mtprof__check_tracks_finish(mtprof__check *check, mtprof__check_tracks *tracks, bool named)
{
    MT_TRY(check_open(check, tracks));
    if (tracks->n_spans >= UINT32_MAX) {
        return mtb_fail(MTPROF_ENOTSUP, "check: %s: %zu spans", check->path, tracks->n_spans);
    }
    for (size_t i = 0; i < tracks->n; i++) {
        check->summary.tracks += tracks->items[i].n_spans > 0;
    }
    if (tracks->n_spans > 0) {
        uint32_t *stack = mtb_calloc(tracks->n_spans, sizeof *stack);
        if (stack == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu spans", tracks->n_spans);
        }
        qsort(tracks->spans, tracks->n_spans, sizeof *tracks->spans, compare_spans);
        int status = check_nesting(check, tracks, stack);
        if (status == MTPROF_OK) {
            status = mtprof__check_parents(check, tracks, stack);
        }
        mtb_free(stack);
        MT_TRY(status);
    }
    if (tracks->n_flows > 0) {
        qsort(tracks->flows, tracks->n_flows, sizeof *tracks->flows, compare_flows);
        MT_TRY(check_flows(check, tracks));
    }
    return named ? check_names(check, tracks) : MTPROF_OK;
}

void mtprof__check_tracks_fini(mtprof__check_tracks *tracks)
{
    mtb_free(tracks->items);
    mtb_idmap_reset(&tracks->map);
    mtb_free(tracks->spans);
    mtb_free(tracks->flows);
    mtb_free(tracks->open);
    memset(tracks, 0, sizeof *tracks);
}
