/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's timelines: the events of a few steps. Where a step has too many, the longest are
 * kept, by a smallest duration that is found by halves.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/report/report_impl.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct columns {
    uint64_t n;
    const int64_t *start, *end;
    const uint32_t *name, *track, *link; /* link may be NULL */
    const uint8_t *kind;
    const uint16_t *flags;
} columns;

static int find_columns(mtprof_model *model, columns *c)
{
    const mtprof__wanted_column wanted[] = {
        {MTPROF_COLUMN_START_NS, (const void **)&c->start},
        {MTPROF_COLUMN_END_NS, (const void **)&c->end},
        {MTPROF_COLUMN_NAME, (const void **)&c->name},
        {MTPROF_COLUMN_TRACK, (const void **)&c->track},
        {MTPROF_COLUMN_KIND, (const void **)&c->kind},
        {MTPROF_COLUMN_FLAGS, (const void **)&c->flags},
        {MTPROF_COLUMN_LINK, (const void **)&c->link},
    };
    return mtprof__model_get_columns(model, wanted, MT_COUNT(wanted), &c->n);
}

typedef struct span {
    int64_t start, end;   /* of the step */
    uint64_t first, last; /* events that begin in it */
    int64_t least;        /* duration */
    uint64_t seen, kept;
    uint64_t apart; /* asynchronous, or on one track too many: never drawn */
} span;

/* The first event at or after a time: they are in order of start. */
static uint64_t first_at(const columns *c, int64_t ns)
{
    uint64_t low = 0;
    uint64_t high = c->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (c->start[middle] < ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t length_of(const columns *c, uint64_t i)
{
    return mtb_sub_sat(c->end[i], c->start[i]);
}

/* Annotations repeat what the host shows, and points have no length; they have other places in the
 * page. */
static bool has_place(const columns *c, uint64_t i)
{
    return c->kind[i] != MTPROF_EVENT_KIND_ANNOTATION && c->kind[i] != MTPROF_EVENT_KIND_LAUNCH &&
           c->kind[i] != MTPROF_EVENT_KIND_MEMORY;
}

/* Asynchronous scopes do not nest. */
static bool is_drawn(const columns *c, uint64_t i)
{
    return has_place(c, i) && (c->flags[i] & MTPROF_EVENT_FLAG_ASYNC) == 0 &&
           c->track[i] < MTPROF__REPORT_TRACKS;
}

static uint64_t count_drawn(const columns *c, const span *s, int64_t least)
{
    uint64_t n = 0;
    for (uint64_t i = s->first; i < s->last; i++) {
        n += is_drawn(c, i) && length_of(c, i) >= least;
    }
    return n;
}

static uint64_t count_apart(const columns *c, const span *s)
{
    uint64_t n = 0;
    for (uint64_t i = s->first; i < s->last; i++) {
        n += has_place(c, i) && !is_drawn(c, i);
    }
    return n;
}

static void choose(const columns *c, span *s)
{
    int64_t low = 0;
    int64_t high = mtb_add_sat(mtb_sub_sat(s->end, s->start), 1);
    s->seen = count_drawn(c, s, INT64_MIN);
    s->apart = count_apart(c, s);
    s->least = INT64_MIN;
    s->kept = s->seen;
    if (s->seen <= MTPROF__REPORT_EVENTS) {
        return;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (count_drawn(c, s, middle) > MTPROF__REPORT_EVENTS) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    s->least = low;
    s->kept = count_drawn(c, s, low);
}

typedef struct maker {
    mtprof__report *r;
    columns c;
    uint32_t *names;  /* by name of the model: number in the page + 1; 0: none yet */
    uint32_t *listed; /* names of the model, in the page's order */
    size_t n_listed, listed_capacity;
    uint32_t *places; /* by event from span.first on: place in the list + 1 */
} maker;

static int number_name(maker *m, uint32_t name, uint32_t *number)
{
    if (m->names[name] == 0) {
        if (!mtb_append(m->listed, m->n_listed, m->listed_capacity, &name)) {
            return mtb_fail(MTPROF_ENOMEM, "export report: no memory for names");
        }
        m->names[name] = (uint32_t)m->n_listed;
    }
    *number = m->names[name] - 1;
    return MTPROF_OK;
}

static void write_track(maker *m, uint32_t track, bool first)
{
    mtb_writer *writer = m->r->job->writer;
    mtprof_track info = {0};
    mtprof_device device = {{"", 0}, 0};
    (void)mtprof_model_track(m->r->job->model, track, &info);
    mtb_write_format(writer, "%s[%u, %u, ", first ? "" : ", ", track, info.device != 0);
    if (info.device != 0 && mtprof_model_device(m->r->job->model, info.device, &device)) {
        mtb_write_literal(writer, "\"");
        mtprof__report_name_inner(m->r, device.type);
        mtb_write_format(writer, " %d queue %u\"]", device.index, info.number);
    } else if (info.name.length > 0) {
        mtprof__report_name(m->r, info.name);
        mtb_write_literal(writer, "]");
    } else {
        mtb_write_format(writer, "\"thread %lld\"]", (long long)info.tid);
    }
}

static void write_tracks(maker *m, const span *s)
{
    bool used[MTPROF__REPORT_TRACKS] = {false};
    bool first = true;
    for (uint64_t i = s->first; i < s->last; i++) {
        if (is_drawn(&m->c, i) && length_of(&m->c, i) >= s->least) {
            used[m->c.track[i]] = true;
        }
    }
    mtb_write_literal(m->r->job->writer, "\"tracks\": [");
    for (uint32_t track = 0; track < MTPROF__REPORT_TRACKS; track++) {
        if (used[track]) {
            write_track(m, track, first);
            first = false;
        }
    }
    mtb_write_literal(m->r->job->writer, "], ");
}

/* [track, start, duration, name, kind, place of the host event + 1]: kind 0 scope, 1 op, 2 call,
 * 3 function, 4 kernel, 5 copy or set, 6 other. */
static unsigned drawn_kind(uint8_t kind)
{
    switch (kind) {
    case MTPROF_EVENT_KIND_SCOPE:
    case MTPROF_EVENT_KIND_STEP: return 0;
    case MTPROF_EVENT_KIND_OP: return 1;
    case MTPROF_EVENT_KIND_RUNTIME: return 2;
    case MTPROF_EVENT_KIND_FUNCTION: return 3;
    case MTPROF_EVENT_KIND_KERNEL: return 4;
    case MTPROF_EVENT_KIND_COPY:
    case MTPROF_EVENT_KIND_SET: return 5;
    default: return 6;
    }
}

static int write_events(maker *m, const span *s)
{
    mtb_writer *writer = m->r->job->writer;
    const columns *c = &m->c;
    uint32_t place = 0;
    mtb_write_literal(writer, "\"events\": [");
    for (uint64_t i = s->first; i < s->last; i++) {
        if (!is_drawn(c, i) || length_of(c, i) < s->least) {
            continue;
        }
        uint32_t name = 0;
        uint32_t host = 0;
        MT_TRY(number_name(m, c->name[i], &name));
        m->places[i - s->first] = ++place;
        if (c->link != NULL && c->link[i] >= s->first && c->link[i] < s->last &&
            mtprof__kind_in(c->kind[i], MTPROF__KINDS_WORK)) {
            host = m->places[c->link[i] - s->first]; /* what launches work begins before it */
        }
        mtb_write_format(writer, "%s%u,%lld,%lld,%u,%u,%u", place > 1 ? ",\n" : "", c->track[i],
                         (long long)(mtb_sub_sat(c->start[i], s->start)),
                         (long long)(length_of(c, i)), name, drawn_kind(c->kind[i]), host);
        MT_TRY(mtprof__export_tick(m->r->job, NULL));
    }
    mtb_write_literal(writer, "]}");
    return MTPROF_OK;
}

static int find_span(const maker *m, uint32_t place, mtprof_explain_step *step, span *s)
{
    MT_TRY(mtprof_explain_get_step(m->r->explain, place, step));
    *s = (span){.start = step->start_ns, .end = step->end_ns};
    s->first = first_at(&m->c, s->start);
    s->last = first_at(&m->c, s->end);
    return MTPROF_OK;
}

/* Keeps the steps whose events fit, and puts them into their order in time. */
static int limit_shown(maker *m)
{
    mtprof__report *r = m->r;
    uint64_t drawn = 0; /* at most */
    size_t kept = 0;
    for (size_t i = 0; i < r->n_shown; i++) {
        mtprof_explain_step step = {.struct_size = sizeof step};
        span s;
        MT_TRY(find_span(m, r->shown[i], &step, &s));
        uint64_t n =
            s.last - s.first < MTPROF__REPORT_EVENTS ? s.last - s.first : MTPROF__REPORT_EVENTS;
        if (i < r->n_always || drawn + n <= MTPROF__REPORT_DRAWN) {
            drawn += n;
            r->shown[kept++] = r->shown[i];
        }
    }
    r->n_shown = kept;
    qsort(r->shown, kept, sizeof *r->shown, mtprof__report_compare_places);
    return MTPROF_OK;
}

static int write_timeline(maker *m, uint32_t place, bool first)
{
    mtprof_explain_step step = {.struct_size = sizeof step};
    span s;
    MT_TRY(find_span(m, place, &step, &s));
    choose(&m->c, &s);
    m->places = mtb_calloc((size_t)(s.last - s.first) + 1, sizeof *m->places);
    if (m->places == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export report: no memory for the events of a step");
    }
    m->r->job->report.left_out += s.seen - s.kept + s.apart;
    mtb_write_format(
        m->r->job->writer,
        "%s{\"step\": %d, \"span\": %lld, \"seen\": %llu, \"kept\": %llu, \"apart\": %llu, "
        "\"least\": %lld, ",
        first ? "\n" : ",\n", step.step, (long long)mtb_sub_sat(s.end, s.start),
        (unsigned long long)s.seen, (unsigned long long)s.kept, (unsigned long long)s.apart,
        (long long)(s.least < 0 ? 0 : s.least));
    write_tracks(m, &s);
    int status = write_events(m, &s);
    mtb_free(m->places);
    m->places = NULL;
    return status;
}

static int write_timelines(maker *m)
{
    mtb_writer *writer = m->r->job->writer;
    MT_TRY(limit_shown(m));
    mtb_write_literal(writer, "\"timelines\": [");
    for (size_t i = 0; i < m->r->n_shown; i++) {
        MT_TRY(write_timeline(m, m->r->shown[i], i == 0));
    }
    mtb_write_literal(writer, "],\n\"names\": [");
    for (size_t i = 0; i < m->n_listed; i++) {
        mtb_write_text(writer, i > 0 ? ",\n" : "");
        mtprof__report_name(m->r, mtprof_model_name(m->r->job->model, m->listed[i]));
    }
    mtb_write_literal(writer, "],\n");
    return MTPROF_OK;
}

int mtprof__report_timelines(mtprof__report *r)
{
    maker m = {.r = r};
    MT_TRY(find_columns(r->job->model, &m.c));
    mtprof_model_info info = {.struct_size = sizeof info}; /* names are known once columns are */
    MT_TRY(mtprof_model_get_info(r->job->model, &info));
    m.names = mtb_calloc((size_t)info.names + 1, sizeof *m.names);
    int status = m.names != NULL ? write_timelines(&m)
                                 : mtb_fail(MTPROF_ENOMEM, "export report: no memory for names");
    mtb_free(m.names);
    mtb_free(m.listed);
    return status;
}
