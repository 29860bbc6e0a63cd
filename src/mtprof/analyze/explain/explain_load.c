/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining, first stage: the columns, the steps, the threads that drive the program, and lists of
 * spans by what the host and the devices do.
 *
 * An outermost op is what counts as an op's time: what it calls is inside it. In a trace without
 * ops scopes take their place. A class (loader, compiling, waiting, lock) is that of the outermost
 * event that has one.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "base/saturate.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/analyze/explain/explain_impl.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP_MOST_NS = 50 * 1000 /* longer ones are no break of the device between two kernels */
};

enum {
    KINDS_OP = MTPROF__KIND_BIT(MTPROF_EVENT_KIND_OP),
    KINDS_RUNTIME_CALL =
        MTPROF__KIND_BIT(MTPROF_EVENT_KIND_RUNTIME) | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_CALL),
    KINDS_ANY_SCOPE = KINDS_OP | KINDS_RUNTIME_CALL | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_SCOPE) |
                      MTPROF__KIND_BIT(MTPROF_EVENT_KIND_FUNCTION)
};

typedef struct name_class {
    uint8_t class;
    uint32_t kinds;
    const char *pattern;
} name_class;

static const name_class name_classes[] = {
#define X(class, kinds, pattern) {MTPROF__NAME_##class, KINDS_##kinds, pattern},
#include "mtprof/analyze/explain/name_classes.def"
#undef X
};
static_assert(MT_COUNT(name_classes) < UINT8_MAX, "rows are kept in a byte");

int mtprof__explain_no_memory(const char *what)
{
    return mtb_fail(MTPROF_ENOMEM, "explain: no memory for %s", what);
}

int mtprof__spans_add(mtprof__spans *spans, int64_t start_ns, int64_t end_ns, uint32_t event)
{
    const mtprof__span span = {.start_ns = start_ns, .end_ns = end_ns, .event = event};
    if (end_ns <= start_ns) {
        return MTPROF_OK;
    }
    return mtb_append(spans->items, spans->n, spans->capacity, &span)
               ? MTPROF_OK
               : mtprof__explain_no_memory("spans");
}

uint8_t mtprof__explain_class(const mtprof_explain *e, size_t event)
{
    uint32_t name = e->columns.name[event];
    uint8_t row = name < e->n_names ? e->name_row[name] : 0;
    if (row == 0 || !mtprof__kind_in(e->columns.kind[event], name_classes[row - 1].kinds)) {
        return MTPROF__NAME_NONE;
    }
    return name_classes[row - 1].class;
}

/* ---- columns and names ----------------------------------------------------------------------- */

static int load_columns(mtprof_explain *e)
{
    mtprof__explain_columns *c = &e->columns;
    const mtprof__wanted_column wanted[] = {
        {MTPROF_COLUMN_START_NS, (const void **)&c->start_ns},
        {MTPROF_COLUMN_END_NS, (const void **)&c->end_ns},
        {MTPROF_COLUMN_SELF_NS, (const void **)&c->self_ns},
        {MTPROF_COLUMN_PARENT, (const void **)&c->parent},
        {MTPROF_COLUMN_NAME, (const void **)&c->name},
        {MTPROF_COLUMN_TRACK, (const void **)&c->track},
        {MTPROF_COLUMN_STEP, (const void **)&c->step},
        {MTPROF_COLUMN_KIND, (const void **)&c->kind},
        {MTPROF_COLUMN_DEVICE, (const void **)&c->device},
        {MTPROF_COLUMN_FLAGS, (const void **)&c->flags},
        {MTPROF_COLUMN_LINK, (const void **)&c->link},
        {MTPROF_COLUMN_STACK, (const void **)&c->stack},
        {MTPROF_COLUMN_MODULE, (const void **)&c->module},
        {MTPROF_COLUMN_BYTES, (const void **)&c->bytes},
    };
    uint64_t n = 0;
    MT_TRY(mtprof__model_get_columns(e->model, wanted, MT_COUNT(wanted), &n));
    c->n = (size_t)n;
    mtprof_model_info info = {.struct_size = sizeof info};
    MT_TRY(mtprof_model_get_info(e->model, &info));
    e->n_names = info.names;
    e->n_tracks = info.tracks;
    return MTPROF_OK;
}

/* Only names of events are looked at: a trace may have many others. */
static int classify_names(mtprof_explain *e)
{
    enum {
        NOT_SEEN = UINT8_MAX
    };
    e->name_row = mtb_calloc((size_t)e->n_names + 1, 1);
    if (e->name_row == NULL) {
        return mtprof__explain_no_memory("names");
    }
    memset(e->name_row, NOT_SEEN, e->n_names);
    for (size_t i = 0; i < e->columns.n; i++) {
        uint32_t name = e->columns.name[i];
        if (name >= e->n_names || e->name_row[name] != NOT_SEEN) {
            continue;
        }
        mtprof_text text = mtprof_model_name(e->model, name);
        e->name_row[name] = 0;
        for (size_t k = 0; k < MT_COUNT(name_classes) && e->name_row[name] == 0; k++) {
            if (mtprof__pattern_matches(name_classes[k].pattern, text)) {
                e->name_row[name] = (uint8_t)(k + 1);
            }
        }
    }
    return MTPROF_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool does_nest(uint16_t flags)
{
    return (flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) == 0;
}

static bool is_host(const mtprof__explain_columns *c, size_t i)
{
    return c->device[i] == 0 && !mtprof__kind_in(c->kind[i], MTPROF__KINDS_DEVICE);
}

static bool is_work(const mtprof__explain_columns *c, size_t i)
{
    return mtprof__kind_in(c->kind[i], MTPROF__KINDS_WORK);
}

uint32_t mtprof__explain_top(const mtprof_explain *e, uint32_t event)
{
    bool is_launched = event < e->columns.n && is_work(&e->columns, event);
    uint32_t at = is_launched ? e->columns.link[event] : event;
    uint32_t top = event;
    while (at < e->columns.n) {
        if (e->columns.kind[at] == MTPROF_EVENT_KIND_OP) {
            top = at;
        }
        uint32_t above = e->columns.parent[at];
        at = above < at ? above : MTPROF_NO_EVENT; /* parents come first: no circles */
    }
    return top;
}

/* The thread of the steps; without steps the process's first thread, where it recorded anything,
 * else the one with most time in events. */
static int find_main(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    double *busy = mtb_calloc((size_t)e->n_tracks + 1, sizeof *busy);
    if (busy == NULL) {
        return mtprof__explain_no_memory("threads");
    }
    e->main_track = UINT32_MAX;
    for (size_t i = 0; i < c->n && !e->has_steps; i++) {
        if (c->kind[i] == MTPROF_EVENT_KIND_STEP) {
            e->main_track = c->track[i];
            e->has_steps = true;
        } else if (is_host(c, i) && (c->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0 &&
                   c->track[i] < e->n_tracks) {
            busy[c->track[i]] += (double)(c->end_ns[i] - c->start_ns[i]);
        }
    }
    double most = 0;
    for (uint32_t i = 0; i < e->n_tracks && !e->has_steps; i++) {
        mtprof_track track;
        bool is_first =
            mtprof_model_track(e->model, i, &track) && track.device == 0 && track.tid == track.pid;
        if (busy[i] > 0 && (is_first || busy[i] > most)) {
            most = is_first ? 1e300 : busy[i];
            e->main_track = i;
        }
    }
    mtb_free(busy);
    return MTPROF_OK;
}

static bool begins_with(mtprof_text text, const char *start)
{
    size_t length = strlen(start);
    return text.length >= length && memcmp(text.bytes, start, length) == 0;
}

/* Also counts what there is. */
static int find_roles(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    uint32_t seen_backward = UINT32_MAX; /* names of one thread repeat */
    e->tracks = mtb_calloc((size_t)e->n_tracks + 1, 1);
    if (e->tracks == NULL) {
        return mtprof__explain_no_memory("threads");
    }
    for (size_t i = 0; i < c->n; i++) {
        uint32_t track = c->track[i];
        bool is_op = c->kind[i] == MTPROF_EVENT_KIND_OP;
        e->n_ops += is_op;
        e->n_functions += c->kind[i] == MTPROF_EVENT_KIND_FUNCTION;
        e->n_kernels += c->kind[i] == MTPROF_EVENT_KIND_KERNEL;
        e->has_device = e->has_device || is_work(c, i);
        if (is_op && track < e->n_tracks && e->tracks[track] == 0 && c->name[i] != seen_backward) {
            if (begins_with(mtprof_model_name(e->model, c->name[i]), "autograd::engine::")) {
                e->tracks[track] = MTPROF__TRACK_DRIVES;
            } else {
                seen_backward = c->name[i];
            }
        }
        uint32_t host = is_work(c, i) ? c->link[i] : MTPROF_NO_EVENT;
        if (host < c->n && c->track[host] < e->n_tracks) {
            e->tracks[c->track[host]] = MTPROF__TRACK_DRIVES;
        }
    }
    e->has_ops = e->n_ops > 0;
    if (e->main_track < e->n_tracks) {
        e->tracks[e->main_track] = MTPROF__TRACK_MAIN;
    }
    return MTPROF_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int add_step(mtprof_explain *e, int64_t start_ns, int64_t end_ns, int32_t number)
{
    int64_t after = e->n_steps > 0 ? e->steps[e->n_steps - 1].end_ns : INT64_MIN;
    mtprof__step step = {
        .start_ns = start_ns > after ? start_ns : after, .end_ns = end_ns, .number = number};
    if (step.end_ns <= step.start_ns) {
        return MTPROF_OK;
    }
    return mtb_append(e->steps, e->n_steps, e->steps_capacity, &step)
               ? MTPROF_OK
               : mtprof__explain_no_memory("steps");
}

/* From the first to the last event; the recorder's windows one by one. */
static int add_windows(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < c->n; i++) {
        if (c->kind[i] != MTPROF_EVENT_KIND_RUNTIME) { /* at the end the profiler waits by itself */
            first = c->start_ns[i] < first ? c->start_ns[i] : first;
            last = c->end_ns[i] > last ? c->end_ns[i] : last;
        }
    }
    if (e->model->n_epochs < 2) {
        return first < last ? add_step(e, first, last, -1) : MTPROF_OK;
    }
    for (uint32_t i = 0; i < e->model->n_epochs; i++) {
        const mtprof__epoch_block *block = &e->model->epochs[i];
        MT_TRY(add_step(e, block->open_ns > first ? block->open_ns : first,
                        block->close_ns < last ? block->close_ns : last, -1));
    }
    return MTPROF_OK;
}

static int add_if_wanted(mtprof_explain *e, int64_t start_ns, int64_t end_ns, int32_t number)
{
    bool is_wanted = number >= 0 && (!e->options.step_given || number == e->options.step);
    return is_wanted ? add_step(e, start_ns, end_ns, number) : MTPROF_OK;
}

/* What comes before the first call of step() is often the program's start as well, and then no
 * step like the others. */
static void leave_out_start(mtprof_explain *e)
{
    mtprof__step *steps = e->steps;
    if (e->n_steps < 3 || steps == NULL || e->options.step_given ||
        steps[0].end_ns - steps[0].start_ns < 2 * (steps[1].end_ns - steps[1].start_ns)) {
        return;
    }
    e->n_steps--;
    memmove(&steps[0], &steps[1], e->n_steps * sizeof *steps);
}

/* A program that calls step() without a schedule has no events for steps, but its events know
 * theirs: a step lasts from its first event to that of the next one. */
static int add_counted(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    int64_t start_ns = 0;
    int64_t last_ns = 0;
    int32_t now = -1;
    for (size_t i = 0; i < c->n; i++) {
        if (c->track[i] != e->main_track || c->kind[i] == MTPROF_EVENT_KIND_RUNTIME) {
            continue;
        }
        if (c->step[i] > now) {
            MT_TRY(add_if_wanted(e, start_ns, c->start_ns[i], now));
            now = c->step[i];
            start_ns = last_ns = c->start_ns[i];
        }
        last_ns = c->end_ns[i] > last_ns ? c->end_ns[i] : last_ns;
    }
    /* what comes after the last call of step() is rarely a whole step */
    const mtprof__step *before = e->n_steps > 0 ? &e->steps[e->n_steps - 1] : NULL;
    bool is_whole = before == NULL || last_ns - start_ns > (before->end_ns - before->start_ns) / 2;
    if (is_whole) {
        MT_TRY(add_if_wanted(e, start_ns, last_ns, now));
    }
    leave_out_start(e);
    return MTPROF_OK;
}

static bool are_counted(const mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    int32_t first = -1;
    for (size_t i = 0; i < c->n; i++) {
        if (c->track[i] == e->main_track && c->step[i] >= 0) {
            if (first >= 0 && c->step[i] != first) {
                return true;
            }
            first = c->step[i];
        }
    }
    return false;
}

static int find_steps(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    int32_t least = INT32_MAX;
    int32_t most = INT32_MIN;
    bool is_counted = !e->has_steps && are_counted(e);
    if (is_counted) {
        MT_TRY(add_counted(e));
        e->has_steps = true;
    } else if (!e->has_steps && !e->options.step_given) {
        return add_windows(e);
    }
    for (size_t i = 0; i < c->n; i++) {
        bool is_step = is_counted ? c->step[i] >= 0 : c->kind[i] == MTPROF_EVENT_KIND_STEP;
        if (!is_step || c->track[i] != e->main_track) {
            continue;
        }
        least = c->step[i] < least ? c->step[i] : least;
        most = c->step[i] > most ? c->step[i] : most;
        if (!is_counted && (!e->options.step_given || c->step[i] == e->options.step)) {
            MT_TRY(add_step(e, c->start_ns[i], c->end_ns[i], c->step[i]));
        }
    }
    if (e->options.step_given && e->n_steps == 0) {
        return e->has_steps
                   ? mtb_fail(MTPROF_EINVAL, "explain: there is no step %d; the trace has %d to %d",
                              e->options.step, least, most)
                   : mtb_fail(MTPROF_EINVAL, "explain: there is no step %d; the trace has no steps",
                              e->options.step);
    }
    return MTPROF_OK;
}

size_t mtprof__explain_step_at(const mtprof_explain *e, int64_t ns)
{
    size_t low = 0;
    size_t high = e->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->steps[middle].end_ns <= ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < e->n_steps && e->steps[low].start_ns <= ns ? low : e->n_steps;
}

/* ---- spans of the host ----------------------------------------------------------------------- */

static int add_class(mtprof_explain *e, size_t i, uint8_t class)
{
    static const uint8_t lists[] = {[MTPROF__NAME_DATA] = MTPROF__SPANS_DATA,
                                    [MTPROF__NAME_COMPILE] = MTPROF__SPANS_COMPILE,
                                    [MTPROF__NAME_WAIT] = MTPROF__SPANS_WAITS,
                                    [MTPROF__NAME_LOCK] = MTPROF__SPANS_LOCK};
    const mtprof__explain_columns *c = &e->columns;
    return mtprof__spans_add(&e->spans[lists[class]], c->start_ns[i], c->end_ns[i], (uint32_t)i);
}

/* Which outermost ops launch is known once all are there (split_tops). */
static int add_host(mtprof_explain *e, size_t i)
{
    const mtprof__explain_columns *c = &e->columns;
    uint32_t parent = c->parent[i];
    uint8_t role = c->track[i] < e->n_tracks ? e->tracks[c->track[i]] : 0;
    uint8_t traits = parent < i ? e->traits[parent] & (uint8_t)~MTPROF__LAUNCHES : 0;
    uint8_t class = mtprof__explain_class(e, i);
    bool is_op = c->kind[i] == MTPROF_EVENT_KIND_OP || c->kind[i] == MTPROF_EVENT_KIND_RUNTIME ||
                 (!e->has_ops && c->kind[i] == MTPROF_EVENT_KIND_SCOPE);
    if (class == MTPROF__NAME_CONVERT) {
        traits |= MTPROF__IN_CONVERT;
    } else if (class != MTPROF__NAME_NONE && (traits & MTPROF__IN_CLASS) == 0 && role != 0) {
        MT_TRY(add_class(e, i, class));
        traits |= MTPROF__IN_CLASS;
    }
    if (is_op && (traits & MTPROF__IN_OP) == 0) {
        mtprof__spans *list = &e->spans[role != 0 ? MTPROF__SPANS_HOST : MTPROF__SPANS_OTHERS];
        MT_TRY(mtprof__spans_add(list, c->start_ns[i], c->end_ns[i], (uint32_t)i));
        traits |= MTPROF__IN_OP;
    } else if (is_op && c->kind[i] == MTPROF_EVENT_KIND_OP && parent < i) {
        e->traits[parent] |= MTPROF__HAS_OP;
    }
    if ((c->flags[i] & (MTPROF_EVENT_FLAG_DISPATCHED | MTPROF_EVENT_FLAG_LAUNCHES)) != 0) {
        traits |= MTPROF__LAUNCHES;
    }
    e->traits[i] = traits & (uint8_t)~MTPROF__HAS_OP;
    return MTPROF_OK;
}

static int walk_host(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    e->traits = mtb_array_take(c->n + 1, 1);
    if (e->traits == NULL) {
        return mtprof__explain_no_memory("events");
    }
    for (size_t i = 0; i < c->n; i++) {
        if (c->kind[i] == MTPROF_EVENT_KIND_OVERHEAD) {
            MT_TRY(mtprof__spans_add(&e->spans[MTPROF__SPANS_OVERHEAD], c->start_ns[i],
                                     c->end_ns[i], (uint32_t)i));
        } else if (is_host(c, i) && does_nest(c->flags[i]) &&
                   mtprof__kind_in(c->kind[i], KINDS_ANY_SCOPE)) {
            MT_TRY(add_host(e, i));
        }
    }
    return MTPROF_OK;
}

/* From what launched something to the outermost op around it. */
static void mark_launches(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    for (size_t i = c->n; i-- > 0;) { /* parents come before what is inside them */
        if (is_work(c, i) && c->link[i] < c->n) {
            e->traits[c->link[i]] |= MTPROF__LAUNCHES;
        }
    }
    for (size_t i = c->n; i-- > 0;) {
        if ((e->traits[i] & MTPROF__LAUNCHES) != 0 && c->parent[i] < i) {
            e->traits[c->parent[i]] |= MTPROF__LAUNCHES;
        }
    }
}

/* HOST has all outermost ops; those that convert or copy, and others that launch, get lists of
 * their own. */
static int split_tops(mtprof_explain *e)
{
    mtprof__spans *tops = &e->spans[MTPROF__SPANS_HOST];
    size_t kept = 0;
    for (size_t i = 0; i < tops->n; i++) {
        mtprof__span span = tops->items[i];
        bool converts = mtprof__explain_class(e, span.event) == MTPROF__NAME_CONVERT;
        bool launches = e->has_device && ((e->traits[span.event] & MTPROF__LAUNCHES) != 0 ||
                                          e->columns.kind[span.event] == MTPROF_EVENT_KIND_RUNTIME);
        if (converts || launches) {
            MT_TRY(mtprof__spans_add(
                &e->spans[converts ? MTPROF__SPANS_CONVERT : MTPROF__SPANS_LAUNCH], span.start_ns,
                span.end_ns, span.event));
        } else {
            tops->items[kept++] = span;
        }
    }
    tops->n = kept;
    return MTPROF_OK;
}

/* ---- spans of devices ------------------------------------------------------------------------ */

static int note_launches(mtprof_explain *e)
{
    e->launched_by = mtb_array_take(e->columns.n + 1, sizeof *e->launched_by);
    if (e->launched_by == NULL) {
        return mtprof__explain_no_memory("launches");
    }
    memcpy(e->launched_by, e->columns.link, e->columns.n * sizeof *e->launched_by);
    for (size_t i = 0; i < e->model->n_launches; i++) {
        e->launched_by[e->model->launches[i].work] = e->model->launches[i].host;
    }
    return MTPROF_OK;
}

/* A break before work that had been launched when its queue became free. */
static int add_gap(mtprof_explain *e, size_t i, int64_t free_ns)
{
    const mtprof__explain_columns *c = &e->columns;
    uint32_t host = e->launched_by[i];
    if (free_ns == INT64_MIN || c->start_ns[i] <= free_ns ||
        c->start_ns[i] - free_ns > GAP_MOST_NS || host >= c->n || c->end_ns[host] > free_ns) {
        return MTPROF_OK;
    }
    return mtprof__spans_add(&e->spans[MTPROF__SPANS_GAPS], free_ns, c->start_ns[i], (uint32_t)i);
}

static int walk_devices(mtprof_explain *e)
{
    const mtprof__explain_columns *c = &e->columns;
    int64_t *free_ns = mtb_calloc((size_t)e->n_tracks + 1, sizeof *free_ns); /* of queues */
    if (free_ns == NULL) {
        return mtprof__explain_no_memory("queues");
    }
    int status = MTPROF_OK;
    for (uint32_t i = 0; i < e->n_tracks; i++) {
        free_ns[i] = INT64_MIN;
    }
    for (size_t i = 0; status == MTPROF_OK && i < c->n; i++) {
        if (!is_work(c, i)) {
            continue;
        }
        uint32_t host = c->link[i];
        bool converts = host < c->n && (e->traits[host] & MTPROF__IN_CONVERT) != 0;
        bool copies = c->kind[i] == MTPROF_EVENT_KIND_COPY || converts;
        status = mtprof__spans_add(&e->spans[copies ? MTPROF__SPANS_COPIES : MTPROF__SPANS_KERNELS],
                                   c->start_ns[i], c->end_ns[i], (uint32_t)i);
        int64_t *queue = c->track[i] < e->n_tracks ? &free_ns[c->track[i]] : NULL;
        if (status == MTPROF_OK && queue != NULL) {
            status = add_gap(e, i, *queue);
            *queue = c->end_ns[i] > *queue ? c->end_ns[i] : *queue;
        }
    }
    mtb_free(free_ns);
    return status;
}

int mtprof__explain_load(mtprof_explain *e)
{
    MT_TRY(load_columns(e));
    MT_TRY(classify_names(e));
    MT_TRY(find_main(e));
    MT_TRY(find_roles(e));
    MT_TRY(find_steps(e));
    MT_TRY(walk_host(e));
    if (e->has_device) {
        mark_launches(e);
        MT_TRY(note_launches(e));
        MT_TRY(walk_devices(e));
    }
    MT_TRY(split_tops(e));
    e->health.struct_size = sizeof e->health;
    return mtprof_model_get_health(e->model, &e->health);
}
