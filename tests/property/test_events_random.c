/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams of random traces: what event.h promises (EVT1, EVT2, EVT4), against the columns of
 * the same trace, and plain steps against edges.
 */
#include "harness/mt_test.h"
#include "mtprof/model/facts/forward.h"
#include "support/traces/model_view.h"
#include "support/traces/random_trace.h"

#include <mtprof/status.h>

#include <stdlib.h>
#include <string.h>

enum {
    TRACES = 200,
    TRACES_LONG = 5000,
    STEPS = 260,
    TRACKS = 64,
    DEPTH = 512,
    STEPS_DAMAGED = 1500, /* several chunks a slot */
    STEPS_AT_ONCE = 7     /* few, so that batches end everywhere */
};

static uint64_t n_forwards_compared; /* so that it is known that there are some */

/* ---- what one trace looks like --------------------------------------------------------------- */

typedef struct run {
    uint64_t seed;
    bool hostile;
    bool damaged; /* chunks are missing */
    const model_view *v;
    uint32_t *by_index; /* INDEX to event */
    uint8_t *seen;      /* events of the columns that the stream has shown; 2: with another end */
    uint32_t *forward;  /* by event: its forward op according to the stream */
    mtprof__forwards forwards;
    size_t n_index;
    uint64_t n_memory; /* allocations without an owner */
    bool foreign_parents;
    bool failed;
} run;

#define WRONG(r, ...)                                                  \
    do {                                                               \
        if (!(r)->failed) {                                            \
            (r)->failed = true;                                        \
            FAIL("trace seed %llu%s: ", (unsigned long long)(r)->seed, \
                 (r)->hostile ? " (hostile)" : "");                    \
            FAIL(__VA_ARGS__);                                         \
        }                                                              \
        return;                                                        \
    } while (0)

/* Whether the other events on an event's thread nest. Where another thread ends a scope, streams
 * learn only then that it does not, and show what is open in it to end with it. */
static bool nests_plainly(const model_view *v, uint32_t event)
{
    const int loose = MTPROF_EVENT_FLAG_OVERLAP | MTPROF_EVENT_FLAG_ASYNC;
    for (size_t i = 0; i < v->n; i++) {
        if ((v->flags[i] & loose) != 0 && v->track[i] == v->track[event] &&
            v->start[i] <= v->end[event] && v->end[i] >= v->start[event]) {
            return false;
        }
    }
    return true;
}

static void check_same(run *r, const mtprof__event *e, uint32_t event)
{
    const model_view *v = r->v;
    mtprof_text name = mtprof_model_name(v->model, v->name[event]);
    /* An overlapping scope is shown to end with the one around it; and where several threads say
     * that they end a scope, columns take the earliest, streams the first they meet. */
    int loose = MTPROF_EVENT_FLAG_OVERLAP | (r->hostile ? MTPROF_EVENT_FLAG_ASYNC : 0);
    int cut = MTPROF_EVENT_FLAG_TRUNCATED;
    bool overlaps = ((v->flags[event] | e->flags) & loose) != 0;
    if (e->kind != v->kind[event] || e->start_ns != v->start[event] ||
        (!overlaps && e->end_ns != v->end[event])) {
        WRONG(r, "event %llu: kind %u, %lld to %lld; columns say %u, %lld to %lld",
              (unsigned long long)e->index, e->kind, (long long)e->start_ns, (long long)e->end_ns,
              v->kind[event], (long long)v->start[event], (long long)v->end[event]);
    }
    if (e->self_ns < 0 || e->self_ns > e->end_ns - e->start_ns ||
        (e->self_ns != v->self[event] && nests_plainly(v, event))) {
        WRONG(r, "event %llu: self time %lld, columns say %lld", (unsigned long long)e->index,
              (long long)e->self_ns, (long long)v->self[event]);
    }
    if ((e->flags & cut) != (v->flags[event] & cut) && !overlaps) {
        WRONG(r, "event %llu: flags %x, columns say %x", (unsigned long long)e->index, e->flags,
              v->flags[event]);
    }
    if (e->name_text.length != name.length ||
        memcmp(e->name_text.bytes, name.bytes, name.length) != 0) {
        WRONG(r, "event %llu: another name", (unsigned long long)e->index);
    }
    if (e->track != v->track[event] || e->step != v->step[event]) {
        WRONG(r, "event %llu: track %u step %d, columns say %u and %d",
              (unsigned long long)e->index, e->track, e->step, v->track[event], v->step[event]);
    }
    uint64_t id = (uint64_t)view_i64(v, MTPROF_COLUMN_CORRELATION, event);
    if (e->correlation != id) {
        WRONG(r, "event %llu: id %llu, columns say %llu", (unsigned long long)e->index,
              (unsigned long long)e->correlation, (unsigned long long)id);
    }
    uint32_t parent = v->parent[event];
    uint64_t parent_id =
        parent != MTPROF_NO_EVENT ? (uint64_t)view_i64(v, MTPROF_COLUMN_CORRELATION, parent) : 0;
    bool foreign = ((e->flags | v->flags[event]) & MTPROF_EVENT_FLAG_FOREIGN_PARENT) != 0;
    /* A parent of another slot that ends in the nanosecond in which its child begins may be gone.
     */
    bool gone = e->parent == 0 && parent != MTPROF_NO_EVENT && v->end[parent] == v->start[event];
    if (e->parent != parent_id && !foreign && !gone && !r->hostile) {
        WRONG(r, "event %llu: parent %llu, columns say %llu", (unsigned long long)e->index,
              (unsigned long long)e->parent, (unsigned long long)parent_id);
    }
}

/* forward.h, FW2: an op is complete. */
static void join_forward(run *r, const mtprof__event *e)
{
    mtprof_track track;
    mtprof__waiting origin;
    if (r->failed || !mtprof__is_numbered(e) ||
        !CHECK(mtprof_model_track(r->v->model, e->track, &track))) {
        return;
    }
    uint32_t event = r->by_index[e->index];
    uint32_t thread = mtprof__forward_thread(e->payload);
    int64_t sequence = e->payload->sequence;
    if (thread == 0) {
        mtprof__forward_wait(&r->forwards, track.number, sequence, e->start_ns, event);
    } else if (mtprof__forward_take(&r->forwards, thread, sequence, &origin)) {
        r->forward[event] = origin.forward.note;
    }
}

/* A host event is complete. */
static void check_host(run *r, const mtprof__event *e)
{
    if (e->index >= r->n_index || r->by_index[e->index] == MTPROF_NO_EVENT) {
        WRONG(r, "event %llu is not in the columns", (unsigned long long)e->index);
    }
    uint32_t event = r->by_index[e->index];
    if (r->seen[event]) {
        WRONG(r, "event %llu is shown twice", (unsigned long long)e->index);
    }
    r->seen[event] = e->end_ns == r->v->end[event] ? 1 : 2;
    check_same(r, e, event);
    join_forward(r, e);
}

/* Whether the order of the ends of the ops of a number is the same in columns and streams. */
static bool ends_are_plain(const run *r, int64_t sequence)
{
    const model_view *v = r->v;
    const int loose = MTPROF_EVENT_FLAG_OVERLAP | MTPROF_EVENT_FLAG_ASYNC;
    const int64_t *sequences = v->columns[MTPROF_COLUMN_SEQUENCE];
    for (size_t i = 0; i < v->n; i++) {
        if (sequences[i] != sequence) {
            continue;
        }
        if ((v->flags[i] & loose) != 0 || r->seen[i] != 1) {
            return false;
        }
        for (size_t k = i + 1; k < v->n; k++) {
            if (sequences[k] == sequence && v->end[k] == v->end[i] && v->track[k] != v->track[i]) {
                return false;
            }
        }
    }
    return true;
}

static void check_forwards(run *r)
{
    const model_view *v = r->v;
    const uint32_t *forward = v->columns[MTPROF_COLUMN_FORWARD];
    const int64_t *sequences = v->columns[MTPROF_COLUMN_SEQUENCE];
    for (size_t i = 0; forward != NULL && i < v->n; i++) {
        if (sequences[i] < 0 || !ends_are_plain(r, sequences[i])) {
            continue;
        }
        n_forwards_compared += forward[i] != MTPROF_NO_EVENT;
        if (forward[i] != r->forward[i]) {
            WRONG(r, "event %zu: forward op %u, columns say %u", i, r->forward[i], forward[i]);
        }
    }
}

/* Device work is in the columns with the same times on the same track, once for each. */
static void check_device(run *r, const mtprof__event *e)
{
    const model_view *v = r->v;
    for (size_t i = 0; i < v->n; i++) {
        if (!r->seen[i] && v->kind[i] == e->kind && v->start[i] == e->start_ns &&
            v->end[i] == e->end_ns && v->track[i] == e->track &&
            (r->hostile || /* keys of anything: columns may know them longer than streams do */
             (uint64_t)view_i64(v, MTPROF_COLUMN_CORRELATION, i) == e->correlation)) {
            r->seen[i] = 1;
            return;
        }
    }
    if ((r->hostile || r->foreign_parents) && e->kind == MTPROF_EVENT_KIND_ANNOTATION) {
        return; /* see check_all_seen() */
    }
    WRONG(r, "device event of kind %u, %lld to %lld, track %u, id %llu is not in the columns",
          e->kind, (long long)e->start_ns, (long long)e->end_ns, e->track,
          (unsigned long long)e->correlation);
}

/* ---- EVT1, EVT2 ------------------------------------------------------------------------------ */

typedef struct track_state {
    uint64_t open[DEPTH];
    size_t depth;
    int64_t last_ns;
} track_state;

static void check_nesting(run *r, track_state *tracks, const mtprof__event *e)
{
    track_state *t = &tracks[e->track % TRACKS];
    int64_t ns = e->edge == MTPROF__EDGE_BEGIN ? e->shown_start_ns : e->shown_end_ns;
    if (ns < t->last_ns) {
        WRONG(r, "EVT2: event %llu at %lld, after %lld", (unsigned long long)e->index,
              (long long)ns, (long long)t->last_ns);
    }
    t->last_ns = ns;
    if (e->edge == MTPROF__EDGE_BEGIN) {
        if (t->depth < DEPTH) {
            t->open[t->depth++] = e->index;
        }
    } else if (t->depth == 0 || t->open[--t->depth] != e->index) {
        WRONG(r, "EVT1: event %llu ends out of order", (unsigned long long)e->index);
    }
}

static void check_edge(run *r, track_state *tracks, const mtprof__event *e)
{
    bool device = e->kind >= MTPROF_EVENT_KIND_KERNEL && e->kind <= MTPROF_EVENT_KIND_OVERHEAD;
    if (e->edge == MTPROF__EDGE_BEGIN || e->edge == MTPROF__EDGE_END) {
        check_nesting(r, tracks, e);
    }
    if (e->edge == MTPROF__EDGE_END || (e->edge == MTPROF__EDGE_SPAN && !device) ||
        e->kind == MTPROF_EVENT_KIND_LAUNCH) {
        check_host(r, e);
    } else if (e->edge == MTPROF__EDGE_SPAN) {
        check_device(r, e);
    } else if (e->kind == MTPROF_EVENT_KIND_ALLOC && e->owner == 0) {
        r->n_memory++;
    }
}

static void check_all_seen(run *r)
{
    uint64_t n_memory = 0;
    for (size_t i = 0; i < r->v->n; i++) {
        n_memory += r->v->kind[i] == MTPROF_EVENT_KIND_MEMORY;
        /* A parent on another thread that ends in the nanosecond in which its child begins may be
         * gone when a stream asks for it. */
        bool loose =
            (r->hostile || r->foreign_parents) && r->v->kind[i] == MTPROF_EVENT_KIND_ANNOTATION;
        if (!r->seen[i] && r->v->kind[i] != MTPROF_EVENT_KIND_MEMORY && !loose) {
            WRONG(r, "event %zu of the columns (kind %u, index %u) is not in the stream", i,
                  r->v->kind[i], r->v->index[i]);
        }
    }
    if (n_memory != r->n_memory) {
        WRONG(r, "%llu allocations without an owner, columns say %llu",
              (unsigned long long)r->n_memory, (unsigned long long)n_memory);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool prepare(run *r, const model_view *v)
{
    r->v = v;
    r->n_index = v->n + 1;
    r->seen = calloc(v->n + 1, 1);
    r->by_index = malloc((v->n + 1) * sizeof *r->by_index);
    r->forward = malloc((v->n + 1) * sizeof *r->forward);
    r->forwards =
        (mtprof__forwards){.entry_bytes = sizeof(mtprof__waiting), .limit = MTPROF__FORWARDS_MOST};
    if (r->seen == NULL || r->by_index == NULL || r->forward == NULL) {
        return false;
    }
    for (size_t i = 0; i <= v->n; i++) {
        r->by_index[i] = r->forward[i] = MTPROF_NO_EVENT;
    }
    for (size_t i = 0; i < v->n; i++) {
        r->foreign_parents |= (v->flags[i] & MTPROF_EVENT_FLAG_FOREIGN_PARENT) != 0;
        if (v->index[i] < r->n_index) {
            r->by_index[v->index[i]] = (uint32_t)i;
        }
    }
    return true;
}

static void compare_stream(run *r)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    track_state *tracks = calloc(TRACKS, sizeof *tracks);
    REQUIRE(tracks != NULL);
    for (size_t i = 0; i < TRACKS; i++) {
        tracks[i].last_ns = INT64_MIN;
    }
    REQUIRE_EQ_I64(mtprof__events_open(r->v->model, &events), MTPROF_OK);
    int status = MTPROF_OK;
    while ((status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        check_edge(r, tracks, event);
    }
    CHECK_EQ_I64(status, MTPROF_EEND);
    check_all_seen(r);
    check_forwards(r);
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    CHECK_EQ_I64(mtprof_model_get_findings(r->v->model, &findings), MTPROF_OK);
    const mtprof__events_totals *totals = mtprof__events_totals_get(events);
    if (!r->hostile && !r->failed) {
        CHECK_EQ_U64(totals->unmatched, findings.unmatched);
        CHECK_EQ_U64(totals->orphans, findings.orphans);
    }
    if (r->damaged && !r->failed) {
        CHECK(findings.problems > 0);
        CHECK(findings.problem_offset >= MTPROF_CHUNK_ALIGN && findings.problem_bytes > 0);
    }
    mtprof__events_close(events);
    free(tracks);
}

/* An edge, whichever way it came. */
typedef struct step {
    int64_t ns;
    uint32_t track, name;
    uint8_t edge, kind;
} step;

typedef struct steps {
    step *items;
    size_t n, capacity;
} steps;

static void keep(steps *s, step item)
{
    if (s->n == s->capacity) {
        s->capacity = s->capacity == 0 ? 256 : 2 * s->capacity;
        s->items = realloc(s->items, s->capacity * sizeof *s->items);
        REQUIRE(s->items != NULL);
    }
    s->items[s->n++] = item;
}

/* When annotations of the device come depends on what else is asked for. */
static void keep_event(steps *s, const mtprof__event *e)
{
    if (e->kind == MTPROF_EVENT_KIND_ANNOTATION) {
        return;
    }
    bool begin = e->edge == MTPROF__EDGE_BEGIN;
    bool plain = begin || e->edge == MTPROF__EDGE_END;
    keep(s, (step){.ns = begin ? e->shown_start_ns : e->shown_end_ns,
                   .track = e->track,
                   .name = begin || !plain ? e->name : 0,
                   .edge = e->edge,
                   .kind = begin || !plain ? e->kind : 0});
}

static void read_steps(mtprof_model *model, bool plain, steps *s)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    mtprof__plain_step batch[STEPS_AT_ONCE];
    uint32_t track = 0;
    REQUIRE_EQ_I64(mtprof__events_open(model, &events), MTPROF_OK);
    for (;;) {
        size_t n = plain ? mtprof__events_plain(events, batch, STEPS_AT_ONCE, &track) : 0;
        for (size_t i = 0; i < n; i++) {
            bool begin = batch[i].edge == MTPROF__EDGE_BEGIN;
            keep(s, (step){.ns = batch[i].ns,
                           .track = track,
                           .name = begin ? batch[i].name : 0,
                           .edge = batch[i].edge,
                           .kind = begin ? batch[i].kind : 0});
        }
        if (n == 0) {
            if (mtprof__events_next(events, &event) != MTPROF_OK) {
                break;
            }
            keep_event(s, event);
        }
    }
    mtprof__events_close(events);
}

/* The first step in which they differ; their length where they do not. */
static size_t first_difference(const steps *a, const steps *b)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->items[i].ns == b->items[i].ns &&
           a->items[i].track == b->items[i].track && a->items[i].name == b->items[i].name &&
           a->items[i].edge == b->items[i].edge && a->items[i].kind == b->items[i].kind) {
        i++;
    }
    return i;
}

static void compare_plain(run *r)
{
    steps edges = {0};
    steps plain = {0};
    read_steps(r->v->model, false, &edges);
    read_steps(r->v->model, true, &plain);
    size_t i = first_difference(&edges, &plain);
    if ((i < edges.n || i < plain.n) && !r->failed) {
        r->failed = true;
        FAIL("trace seed %llu: %zu edges, %zu with plain steps, the first that differs is %zu",
             (unsigned long long)r->seed, edges.n, plain.n, i);
    }
    free(edges.items);
    free(plain.items);
}

static bool compare_trace(uint64_t seed, bool hostile, bool any_bytes)
{
    rt_trace trace;
    rt_options options = {.seed = seed, .steps = STEPS, .hostile = hostile, .any_bytes = any_bytes};
    mtprof_model_options kept = {.struct_size = sizeof kept, .keep_duplicates = 1};
    run r = {.seed = seed, .hostile = hostile};
    model_view view;
    rt_make(&trace, &options);
    mtprof_model *model = model_of_bytes(trace.bytes, trace.size, &kept);
    bool made = model != NULL && model_view_make(&view, model);
    if (CHECK(made) && CHECK(prepare(&r, &view))) {
        compare_stream(&r);
        compare_plain(&r);
    }
    free(r.seen);
    free(r.by_index);
    free(r.forward);
    mtprof__forwards_fini(&r.forwards);
    mtprof_model_free(model);
    rt_free(&trace);
    return made && !r.failed;
}

static void compare_traces(bool hostile)
{
    uint64_t seed = mt_test_seed();
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    for (int i = 0; i < n; i++) {
        if (!compare_trace(seed + (uint64_t)i, hostile, i % 4 == 0)) {
            return;
        }
    }
    CHECK(n_forwards_compared > 0);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Chunks of threads, their offsets. */
static size_t find_chunks(const rt_trace *trace, size_t *offsets, size_t most)
{
    size_t n = 0;
    for (size_t at = MTPROF_CHUNK_ALIGN; at + MTPROF_CHUNK_HEADER <= trace->size && n < most;) {
        uint32_t magic = 0;
        uint32_t size = 0;
        memcpy(&magic, trace->bytes + at, sizeof magic);
        memcpy(&size, trace->bytes + at + TB_CHUNK_SIZE, sizeof size);
        bool chunk = magic == MTPROF_CHUNK_MAGIC;
        if (chunk && trace->bytes[at + TB_CHUNK_STREAM] == MTPROF_STREAM_THREAD) {
            offsets[n++] = at;
        }
        at += chunk ? size : MTPROF_CHUNK_ALIGN;
    }
    return n;
}

/* Spoils some chunks of threads: their records, or their headers. How many. */
static size_t spoil(rt_trace *trace, uint64_t *seed)
{
    size_t offsets[64];
    size_t n = find_chunks(trace, offsets, sizeof offsets / sizeof *offsets);
    size_t spoiled = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t dice = mt_test_random(seed);
        uint64_t committed = 0;
        memcpy(&committed, trace->bytes + offsets[i] + TB_CHUNK_COMMITTED, sizeof committed);
        if (dice % 4 != 0 || committed == 0) {
            continue;
        }
        size_t at = dice / 8 % 2 == 0 ? MTPROF_CHUNK_HEADER + (dice >> 8) % committed
                                      : TB_CHUNK_SEQUENCE + (dice >> 8) % 8;
        trace->bytes[offsets[i] + at] ^= 0x55;
        spoiled++;
    }
    return spoiled;
}

static int64_t thread_of(const model_view *v, uint32_t i)
{
    mtprof_track track;
    return mtprof_model_track(v->model, v->track[i], &track) ? track.tid : -1;
}

/* The event of the whole trace that one of the damaged trace is; MTPROF_NO_EVENT: none. */
static uint32_t find_whole(const model_view *whole, const model_view *v, uint32_t i,
                           bool *elsewhere)
{
    mtprof_text name = mtprof_model_name(v->model, v->name[i]);
    uint32_t found = MTPROF_NO_EVENT;
    *elsewhere = false;
    for (uint32_t k = 0; k < whole->n; k++) {
        mtprof_text other = mtprof_model_name(whole->model, whole->name[k]);
        if (whole->kind[k] == v->kind[i] && whole->start[k] == v->start[i] &&
            thread_of(whole, k) == thread_of(v, i) && name.length == other.length &&
            memcmp(name.bytes, other.bytes, name.length) == 0) {
            if (whole->end[k] == v->end[i]) {
                return k;
            }
            *elsewhere |= (whole->flags[k] & MTPROF_EVENT_FLAG_ASYNC) != 0;
            found = found == MTPROF_NO_EVENT || whole->end[k] > whole->end[found] ? k : found;
        }
    }
    return found;
}

/* No event of a damaged trace says what the whole one does not: it ends as it did, or is marked and
 * ends earlier; and its parent was its parent. */
static void compare_whole(run *r, const model_view *whole)
{
    const model_view *v = r->v;
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->kind[i] > MTPROF_EVENT_KIND_LAUNCH) {
            continue;
        }
        bool elsewhere = false; /* the end was another thread's, whose chunk may be missing */
        uint32_t k = find_whole(whole, v, i, &elsewhere);
        if (k == MTPROF_NO_EVENT) {
            WRONG(r, "event %u is none of the whole trace", i);
        }
        bool cut = (v->flags[i] & MTPROF_EVENT_FLAG_TRUNCATED) != 0;
        if (cut ? v->end[i] > whole->end[k] && !elsewhere : v->end[i] != whole->end[k]) {
            WRONG(r, "event %u ends at %lld%s, in the whole trace at %lld", i, (long long)v->end[i],
                  cut ? " (truncated)" : "", (long long)whole->end[k]);
        }
        uint32_t parent = v->parent[i];
        if (parent != MTPROF_NO_EVENT && (v->flags[i] & MTPROF_EVENT_FLAG_FOREIGN_PARENT) == 0 &&
            v->end[parent] < v->start[i]) {
            WRONG(r, "event %u begins after the end of its parent", i);
        }
    }
}

static bool compare_damaged(uint64_t seed, uint64_t *dice)
{
    rt_trace trace;
    rt_options options = {.seed = seed, .steps = STEPS_DAMAGED};
    mtprof_model_options kept = {.struct_size = sizeof kept, .keep_duplicates = 1};
    run r = {.seed = seed, .damaged = true};
    model_view view;
    model_view whole;
    rt_make(&trace, &options);
    mtprof_model *before = model_of_bytes(trace.bytes, trace.size, &kept);
    bool made = before != NULL && model_view_make(&whole, before);
    if (!CHECK(made) || spoil(&trace, dice) == 0) {
        mtprof_model_free(before);
        rt_free(&trace);
        return made;
    }
    mtprof_model *model = model_of_bytes(trace.bytes, trace.size, &kept);
    made = model != NULL && model_view_make(&view, model) && model_view_check(&view);
    if (CHECK(made) && CHECK(prepare(&r, &view))) {
        compare_stream(&r);
        compare_plain(&r);
        compare_whole(&r, &whole);
    }
    free(r.seen);
    free(r.by_index);
    free(r.forward);
    mtprof__forwards_fini(&r.forwards);
    mtprof_model_free(model);
    mtprof_model_free(before);
    rt_free(&trace);
    return made && !r.failed;
}

TEST(damaged_streams_say_what_columns_say)
{
    uint64_t seed = mt_test_seed() + 7;
    uint64_t dice = seed;
    int n = mt_test_long() ? TRACES_LONG / 10 : TRACES / 4;
    for (int i = 0; i < n; i++) {
        if (!compare_damaged(seed + (uint64_t)i, &dice)) {
            FAIL("trace number %d", i);
            return;
        }
    }
}

TEST(streams_say_what_columns_say)
{
    compare_traces(false);
}

TEST(hostile_streams_say_what_columns_say)
{
    compare_traces(true);
}
