/* SPDX-License-Identifier: Apache-2.0
 *
 * A Chrome trace against the rules of JSON, of the viewers (chrome://tracing, Perfetto) and of the
 * tools that read kineto's traces (TensorBoard, HTA). Events are checked one by one while they
 * are read; what needs all of them is left to check_tracks.c.
 */
#include "base/fail.h"
#include "mtprof/check/check_impl.h"

#include <stdio.h>
#include <string.h>

enum {
    KEYS_KNOWN = 96, /* keys of one object that are compared with each other */
    HEX_ID_BYTES = 24
};

#define ID_END ((int64_t)1 << 53)

static const int64_t time_from = 1000000000000000000; /* 2001 */
static const int64_t time_to = 4102444800000000000;   /* 2100 */

/* Text that these viewers can take in one file. */
static const uint64_t chrome_most = 1000000000;
static const uint64_t perfetto_most = 2000000000;

/* What a field turned out to be. */
typedef struct field {
    bool there;
    enum mtb_json_type type;
    int64_t value; /* integers as such, others in thousandths */
    bool integer;
    uint64_t hash; /* of a string, not 0 */
    char text[24];
} field;

typedef struct event {
    mtb_json_place place;
    field ph, name, cat, pid, tid, ts, dur, id, bp, s;
    bool has_args;
    field arg_name, arg_labels, arg_sort_index, arg_stream;
    field arg_id, arg_parent, arg_python_id, arg_python_parent, arg_async;
} event;

typedef struct keys {
    uint64_t hashes[KEYS_KNOWN];
    size_t n;
} keys;

typedef struct chrome_check {
    mtprof__check *check;
    mtb_json *json;
    mtprof__check_tracks tracks;
    bool kineto; /* it has a schemaVersion */
    bool in_events, saw_events;
    bool named;
    bool has_base;
    int64_t base_ns;
    int64_t first_ts_ns;
    bool has_ts;
} chrome_check;

/* ---- small things ---------------------------------------------------------------------------- */

#define FIND(chrome, rule, place, ...) \
    mtprof__check_find((chrome)->check, MTPROF__RULE_##rule, (place), __VA_ARGS__)

static field field_of(const mtb_json_value *value)
{
    field out = {.there = true, .type = value->type, .hash = value->hash | 1};
    out.integer = value->type == MTB_JSON_NUMBER && value->integer;
    out.value = out.integer ? value->units : value->thousandths;
    size_t n = value->length < sizeof out.text ? value->length : sizeof out.text - 1;
    memcpy(out.text, value->text, n);
    return out;
}

static bool is_string(const field *f)
{
    return f->there && f->type == MTB_JSON_STRING;
}

static bool is_number(const field *f)
{
    return f->there && f->type == MTB_JSON_NUMBER;
}

static bool has_text(const field *f, const char *text)
{
    return is_string(f) && strcmp(f->text, text) == 0;
}

static int note_key(chrome_check *chrome, keys *seen, const mtb_json_value *key)
{
    for (size_t i = 0; i < seen->n; i++) {
        if (seen->hashes[i] == key->hash) {
            return FIND(chrome, JSON_DUPLICATE, key->place, "the key \"%.60s\" stands twice",
                        key->text);
        }
    }
    if (seen->n < KEYS_KNOWN) {
        seen->hashes[seen->n++] = key->hash;
    }
    return MTPROF_OK;
}

/* Nanoseconds of a time in microseconds. */
static int64_t field_ns(const field *f)
{
    int64_t ns = f->value;
    return f->integer && __builtin_mul_overflow(f->value, 1000, &ns) ? INT64_MAX / 2 : ns;
}

/* Where a member of the event, or of its args, is kept. */
typedef struct field_name {
    const char *name;
    size_t offset;
} field_name;

static const field_name members[] = {
    {"ph", offsetof(event, ph)},   {"name", offsetof(event, name)}, {"cat", offsetof(event, cat)},
    {"pid", offsetof(event, pid)}, {"tid", offsetof(event, tid)},   {"ts", offsetof(event, ts)},
    {"dur", offsetof(event, dur)}, {"id", offsetof(event, id)},     {"bp", offsetof(event, bp)},
    {"s", offsetof(event, s)},
};

static const field_name args[] = {
    {"name", offsetof(event, arg_name)},
    {"labels", offsetof(event, arg_labels)},
    {"sort_index", offsetof(event, arg_sort_index)},
    {"stream", offsetof(event, arg_stream)},
    {"External id", offsetof(event, arg_id)},
    {"parent_id", offsetof(event, arg_parent)},
    {"Python id", offsetof(event, arg_python_id)},
    {"Python parent id", offsetof(event, arg_python_parent)},
    {"async", offsetof(event, arg_async)},
};

static void keep_field(event *e, const field_name *names, size_t n, const mtb_json_value *key,
                       const mtb_json_value *value)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i].name, key->text) == 0) {
            *(field *)((char *)e + names[i].offset) = field_of(value);
            return;
        }
    }
}

/* ---- args ------------------------------------------------------------------------------------ */

enum arg_rule {
    ARG_ID = 1, /* an integer from 0 to 2^53 */
    ARG_INTEGER = 2,
    ARG_NUMBER = 3
};

static const struct arg_name {
    const char *name;
    enum arg_rule rule;
} arg_names[] = {
    {"External id", ARG_ID},
    {"correlation", ARG_ID},
    {"correlation_id", ARG_ID},
    {"parent_id", ARG_ID},
    {"Ev Idx", ARG_ID},
    {"Record function id", ARG_ID},
    {"Sequence number", ARG_INTEGER},
    {"Fwd thread id", ARG_INTEGER},
    {"cbid", ARG_INTEGER},
    {"stream", ARG_INTEGER},
    {"device", ARG_INTEGER},
    {"context", ARG_INTEGER},
    {"queued", ARG_INTEGER},
    {"bytes", ARG_INTEGER},
    {"registers per thread", ARG_INTEGER},
    {"shared memory", ARG_INTEGER},
    {"Device Type", ARG_INTEGER},
    {"Device Id", ARG_INTEGER},
    {"Addr", ARG_INTEGER},
    {"Bytes", ARG_INTEGER},
    {"Total Allocated", ARG_INTEGER},
    {"Total Reserved", ARG_INTEGER},
    {"warps per SM", ARG_NUMBER},
    {"blocks per SM", ARG_NUMBER},
    {"est. achieved occupancy %", ARG_NUMBER},
    {"memory bandwidth (GB/s)", ARG_NUMBER},
};

static int check_arg(chrome_check *chrome, enum arg_rule rule, const mtb_json_value *key,
                     const mtb_json_value *value)
{
    if (value->type != MTB_JSON_NUMBER) {
        return FIND(chrome, CHROME_NUMBER, value->place, "arg \"%s\" is no number", key->text);
    }
    if (rule != ARG_NUMBER && !value->integer) {
        return FIND(chrome, CHROME_NUMBER, value->place, "arg \"%s\" is no integer", key->text);
    }
    if (rule == ARG_ID && (value->units < 0 || value->units >= ID_END)) {
        return FIND(chrome, CHROME_ID, value->place, "arg \"%s\" is %lld, expected 0 to 2^53",
                    key->text, (long long)value->units);
    }
    return MTPROF_OK;
}

static int note_arg(chrome_check *chrome, event *e, const mtb_json_value *key,
                    const mtb_json_value *value)
{
    keep_field(e, args, MT_COUNT(args), key, value);
    /* Other tools give these names to other things. */
    for (size_t i = 0; chrome->kineto && i < MT_COUNT(arg_names); i++) {
        if (strcmp(arg_names[i].name, key->text) == 0) {
            return check_arg(chrome, arg_names[i].rule, key, value);
        }
    }
    return MTPROF_OK;
}

/* EFORMAT from here to check_text(): the text is not JSON; it was reported, and the parsing
 * ends. */
static int read_args(chrome_check *chrome, event *e, const mtb_json_value *object)
{
    keys seen = {.n = 0};
    bool first = true;
    if (object->type != MTB_JSON_OBJECT) {
        MT_TRY(FIND(chrome, CHROME_FIELD, object->place, "args is no object"));
        return mtb_json_skip(chrome->json, object) ? MTPROF_OK : MTPROF_EFORMAT;
    }
    e->has_args = true;
    mtb_json_value key;
    mtb_json_value value;
    while (mtb_json_member(chrome->json, &first, &key, &value)) {
        MT_TRY(note_key(chrome, &seen, &key));
        MT_TRY(note_arg(chrome, e, &key, &value));
        if (!mtb_json_skip(chrome->json, &value)) {
            return MTPROF_EFORMAT;
        }
    }
    return chrome->json->failed ? MTPROF_EFORMAT : MTPROF_OK;
}

/* ---- one event ------------------------------------------------------------------------------- */

static int read_event(chrome_check *chrome, event *e)
{
    keys seen = {.n = 0};
    bool first = true;
    mtb_json_value key;
    mtb_json_value value;
    while (mtb_json_member(chrome->json, &first, &key, &value)) {
        MT_TRY(note_key(chrome, &seen, &key));
        keep_field(e, members, MT_COUNT(members), &key, &value);
        if (strcmp(key.text, "args") == 0) {
            MT_TRY(read_args(chrome, e, &value));
        } else if (!mtb_json_skip(chrome->json, &value)) {
            return MTPROF_EFORMAT;
        }
    }
    return chrome->json->failed ? MTPROF_EFORMAT : MTPROF_OK;
}

/* What a phase must have, and what it is. */
enum needs {
    NEEDS_NAME = 1 << 0,
    NEEDS_TS = 1 << 1,
    NEEDS_TRACK = 1 << 2, /* pid and tid */
    NEEDS_PID = 1 << 3,
    NEEDS_DUR = 1 << 4,
    NEEDS_ID = 1 << 5,
    NEEDS_CAT = 1 << 6,
    NEEDS_ARGS = 1 << 7
};

static const struct phase {
    char phase;
    uint8_t needs;
} phases[] = {
    {'X', NEEDS_NAME | NEEDS_TS | NEEDS_TRACK | NEEDS_DUR},
    {'B', NEEDS_NAME | NEEDS_TS | NEEDS_TRACK},
    {'E', NEEDS_TS | NEEDS_TRACK},
    {'i', NEEDS_NAME | NEEDS_TS},
    {'I', NEEDS_NAME | NEEDS_TS},
    {'R', NEEDS_NAME | NEEDS_TS},
    {'C', NEEDS_NAME | NEEDS_TS | NEEDS_PID | NEEDS_ARGS},
    {'M', NEEDS_NAME | NEEDS_PID | NEEDS_ARGS},
    {'s', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_TRACK | NEEDS_ID},
    {'t', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_TRACK | NEEDS_ID},
    {'f', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_TRACK | NEEDS_ID},
    {'b', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_PID},
    {'n', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_PID},
    {'e', NEEDS_NAME | NEEDS_CAT | NEEDS_TS | NEEDS_PID},
    {'P', NEEDS_TS},
    {'N', 0},
    {'O', 0},
    {'D', 0},
    {'S', 0},
    {'T', 0},
    {'p', 0},
    {'F', 0},
    {'v', 0},
    {'V', 0},
    {'c', 0},
    {'(', 0},
    {')', 0},
};

static const struct phase *find_phase(const event *e)
{
    for (size_t i = 0; is_string(&e->ph) && i < MT_COUNT(phases); i++) {
        if (e->ph.text[0] == phases[i].phase && e->ph.text[1] == 0) {
            return &phases[i];
        }
    }
    return NULL;
}

/* What a field may be. */
typedef enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,
    FIELD_TRACK /* a number, or a text: both are accepted for pid and tid */
} field_kind;

static int need_field(chrome_check *chrome, const event *e, const field *f, field_kind kind,
                      const char *name, bool *fine)
{
    static const char *const wanted[] = {"text", "number", "integer or text"};
    bool right = kind == FIELD_TEXT     ? is_string(f)
                 : kind == FIELD_NUMBER ? is_number(f)
                                        : is_string(f) || (is_number(f) && f->integer);
    if (right) {
        return MTPROF_OK;
    }
    *fine = false;
    if (kind == FIELD_NUMBER && is_string(f)) {
        return FIND(chrome, CHROME_NUMBER, e->place, "%s is the text \"%s\"", name, f->text);
    }
    return f->there
               ? FIND(chrome, CHROME_FIELD, e->place, "an event of ph %s whose field is no %s: %s",
                      e->ph.text, wanted[kind], name)
               : FIND(chrome, CHROME_FIELD, e->place, "an event of ph %s without %s", e->ph.text,
                      name);
}

static int need_id(chrome_check *chrome, const event *e, bool *fine)
{
    const field *id = &e->id;
    if (is_string(id)) {
        return MTPROF_OK; /* "0x1f" and the like are allowed */
    }
    MT_TRY(need_field(chrome, e, id, FIELD_NUMBER, "id", fine));
    if (*fine && (!id->integer || id->value < 0 || id->value >= ID_END)) {
        *fine = false;
        return FIND(chrome, CHROME_ID, e->place, "id is no integer from 0 to 2^53");
    }
    return MTPROF_OK;
}

static int check_fields(chrome_check *chrome, const event *e, uint32_t needs, bool *fine)
{
    const struct {
        uint32_t needs;
        field_kind kind;
        const field *field;
        const char *name;
    } fields[] = {
        {NEEDS_NAME, FIELD_TEXT, &e->name, "name"},
        {NEEDS_CAT, FIELD_TEXT, &e->cat, "cat"},
        {NEEDS_TS, FIELD_NUMBER, &e->ts, "ts"},
        {NEEDS_DUR, FIELD_NUMBER, &e->dur, "dur"},
        {NEEDS_PID | NEEDS_TRACK, FIELD_TRACK, &e->pid, "pid"},
        {NEEDS_TRACK, FIELD_TRACK, &e->tid, "tid"},
    };
    for (size_t i = 0; i < MT_COUNT(fields); i++) {
        if ((needs & fields[i].needs) != 0) {
            MT_TRY(need_field(chrome, e, fields[i].field, fields[i].kind, fields[i].name, fine));
        }
    }
    if ((needs & NEEDS_ID) != 0) {
        MT_TRY(need_id(chrome, e, fine));
    }
    if ((needs & NEEDS_ARGS) != 0 && !e->has_args) {
        *fine = false;
        return FIND(chrome, CHROME_FIELD, e->place, "an event of ph %s without args", e->ph.text);
    }
    return MTPROF_OK;
}

/* ---- what events mean ------------------------------------------------------------------------ */

static mtprof__check_id id_of(const field *f)
{
    mtprof__check_id id = {.is_text = is_string(f)};
    id.value = id.is_text ? (int64_t)f->hash : f->value;
    if (id.is_text) {
        snprintf(id.shown, sizeof id.shown, "\"%.19s\"", f->text);
    } else {
        snprintf(id.shown, sizeof id.shown, "%lld", (long long)f->value);
    }
    return id;
}

static int track_of(chrome_check *chrome, const event *e, uint32_t *track)
{
    const mtprof__check_id pid = id_of(&e->pid);
    const mtprof__check_id tid = id_of(&e->tid);
    return mtprof__check_track_of(&chrome->tracks, &pid, &tid, track);
}

static uint64_t id_in(const field *f)
{
    return is_number(f) && f->integer && f->value > 0 ? (uint64_t)f->value : 0;
}

/* Runtime calls have the id of their op, device work and what is on the device too. */
static void note_ids(chrome_check *chrome, const event *e)
{
    static const char *const owners[] = {"cpu_op", "user_annotation", "op", "scope"};
    if (has_text(&e->cat, "python_function")) {
        mtprof__check_span_ids(&chrome->tracks, true, id_in(&e->arg_python_id),
                               id_in(&e->arg_python_parent));
        return;
    }
    for (size_t i = 0; chrome->kineto && i < MT_COUNT(owners); i++) {
        if (has_text(&e->cat, owners[i])) {
            mtprof__check_span_ids(&chrome->tracks, false, id_in(&e->arg_id),
                                   e->arg_async.there ? 0 : id_in(&e->arg_parent));
            return;
        }
    }
}

static int note_span(chrome_check *chrome, const event *e, uint32_t track)
{
    int64_t start = field_ns(&e->ts);
    int64_t duration = field_ns(&e->dur);
    chrome->check->summary.spans++;
    if (duration < 0 || e->dur.value < 0) {
        return FIND(chrome, CHROME_DURATION, e->place, "dur is negative: %lld ns",
                    (long long)duration);
    }
    if (chrome->kineto && !is_string(&e->cat)) {
        MT_TRY(FIND(chrome, CHROME_CATEGORY, e->place, "the span \"%s\" has no cat", e->name.text));
    }
    bool host = has_text(&e->cat, "cpu_op") || has_text(&e->cat, "user_annotation");
    if (chrome->kineto && host && is_number(&e->arg_stream) && e->arg_stream.value >= 0) {
        MT_TRY(FIND(chrome, CHROME_HOST_STREAM, e->place, "a span of category %s has a stream",
                    e->cat.text));
    }
    int64_t end = 0;
    if (__builtin_add_overflow(start, duration, &end)) {
        return FIND(chrome, CHROME_DURATION, e->place, "ts and dur are beyond all time");
    }
    /* The device's view of annotations is drawn a nanosecond wider on both sides, by kineto too, so
     * that it encloses its kernels: neighbours may overlap by that. */
    bool wide = has_text(&e->cat, "gpu_user_annotation") && duration >= 2;
    MT_TRY(mtprof__check_span_add(&chrome->tracks, track, start + wide, end - wide, e->place));
    note_ids(chrome, e);
    return MTPROF_OK;
}

static int note_flow(chrome_check *chrome, const event *e, uint32_t track)
{
    bool ours = has_text(&e->cat, "ac2g") || has_text(&e->cat, "fwdbwd") ||
                has_text(&e->cat, "graph_dependency");
    mtprof__check_flow flow = {
        .key = e->cat.hash * 31 + (is_string(&e->id) ? e->id.hash : (uint64_t)e->id.value) * 2,
        .ts_ns = field_ns(&e->ts),
        .offset = e->place.offset,
        .track = track,
        .line = mtprof__check_cut(e->place.line),
        .column = mtprof__check_cut(e->place.column),
        .phase = e->ph.text[0],
        .joined = ours,
    };
    return mtprof__check_flow_add(&chrome->tracks, &flow);
}

static int note_metadata(chrome_check *chrome, const event *e)
{
    if (has_text(&e->name, "process_name") || has_text(&e->name, "thread_name")) {
        if (!is_string(&e->arg_name)) {
            return FIND(chrome, CHROME_METADATA, e->place, "%s without a text in args.name",
                        e->name.text);
        }
    } else if (has_text(&e->name, "process_labels")) {
        if (!is_string(&e->arg_labels)) {
            return FIND(chrome, CHROME_METADATA, e->place, "process_labels without args.labels");
        }
    } else if (has_text(&e->name, "process_sort_index") ||
               has_text(&e->name, "thread_sort_index")) {
        if (!is_number(&e->arg_sort_index) || !e->arg_sort_index.integer) {
            return FIND(chrome, CHROME_METADATA, e->place,
                        "%s without an integer in args.sort_index", e->name.text);
        }
    }
    if (has_text(&e->name, "thread_name") && e->tid.there) {
        uint32_t track = 0;
        MT_TRY(track_of(chrome, e, &track));
        chrome->tracks.items[track].has_name = true;
        chrome->named = true;
    }
    return MTPROF_OK;
}

static int check_instant(chrome_check *chrome, const event *e)
{
    bool fine = !e->s.there || (is_string(&e->s) && e->s.text[0] != 0 && e->s.text[1] == 0 &&
                                strchr("gpt", e->s.text[0]) != NULL);
    return fine ? MTPROF_OK
                : FIND(chrome, CHROME_FIELD, e->place, "an instant whose s is none of g, p, t");
}

static int note_event(chrome_check *chrome, const event *e)
{
    uint32_t track = 0;
    char phase = e->ph.text[0];
    switch (phase) {
    case 'X':
    case 'B':
    case 'E':
    case 's':
    case 't':
    case 'f': MT_TRY(track_of(chrome, e, &track)); break;
    case 'b':
        if (!e->tid.there) {
            return MTPROF_OK;
        }
        MT_TRY(track_of(chrome, e, &track));
        return mtprof__check_async_add(&chrome->tracks, track, field_ns(&e->ts), e->place);
    case 'i':
    case 'I': return check_instant(chrome, e);
    case 'M': return note_metadata(chrome, e);
    default: return MTPROF_OK;
    }
    if (phase == 'X') {
        return note_span(chrome, e, track);
    }
    uint64_t name = is_string(&e->name) ? e->name.hash : 0;
    if (phase == 'B') {
        return mtprof__check_begin(&chrome->tracks, track, name, field_ns(&e->ts), e->place);
    }
    if (phase == 'E') {
        return mtprof__check_end(chrome->check, &chrome->tracks, track, name, field_ns(&e->ts),
                                 e->place);
    }
    return note_flow(chrome, e, track);
}

static int check_time(chrome_check *chrome, const event *e)
{
    int64_t ns = field_ns(&e->ts);
    if (!chrome->has_ts || ns < chrome->first_ts_ns) {
        chrome->first_ts_ns = ns;
        chrome->has_ts = true;
    }
    if (ns < 0) {
        return FIND(chrome, CHROME_TIME_BASE, e->place, "ts is negative: %lld ns", (long long)ns);
    }
    if (ns >= ID_END) {
        return FIND(chrome, CHROME_TIME_BASE, e->place,
                    "ts is %lld ns: readers that take it as a double lose nanoseconds",
                    (long long)ns);
    }
    return MTPROF_OK;
}

static int check_event(chrome_check *chrome)
{
    mtb_json_value value;
    if (!mtb_json_value_next(chrome->json, &value)) {
        return MTPROF_EFORMAT;
    }
    chrome->check->summary.events++;
    if (value.type != MTB_JSON_OBJECT) {
        MT_TRY(FIND(chrome, CHROME_EVENT, value.place, "event %llu is no object",
                    (unsigned long long)chrome->check->summary.events));
        return mtb_json_skip(chrome->json, &value) ? MTPROF_OK : MTPROF_EFORMAT;
    }
    event e = {.place = value.place};
    MT_TRY(read_event(chrome, &e));
    const struct phase *phase = find_phase(&e);
    if (phase == NULL) {
        return FIND(chrome, CHROME_PHASE, e.place,
                    e.ph.there ? "ph is \"%s\", no known phase" : "an event without ph%s",
                    e.ph.text);
    }
    bool fine = true;
    MT_TRY(check_fields(chrome, &e, phase->needs, &fine));
    if (!fine) {
        return MTPROF_OK;
    }
    if ((phase->needs & NEEDS_TS) != 0) {
        MT_TRY(check_time(chrome, &e));
    }
    return note_event(chrome, &e);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_events(chrome_check *chrome)
{
    bool first = true;
    chrome->saw_events = true;
    while (mtb_json_more(chrome->json, ']', &first)) {
        MT_TRY(check_event(chrome));
    }
    return chrome->json->failed ? MTPROF_EFORMAT : MTPROF_OK;
}

static int check_rank(chrome_check *chrome, const mtb_json_value *value)
{
    if (value->type != MTB_JSON_NUMBER || !value->integer) {
        return FIND(chrome, CHROME_RANK, value->place, "rank is no integer");
    }
    return value->blank ? MTPROF_OK
                        : FIND(chrome, CHROME_RANK, value->place, "no blank before the rank");
}

static int read_distributed(chrome_check *chrome, const mtb_json_value *info)
{
    mtb_json *json = chrome->json;
    bool first = true;
    bool has_rank = false;
    if (info->type != MTB_JSON_OBJECT) {
        MT_TRY(FIND(chrome, CHROME_RANK, info->place, "distributedInfo is no object"));
        return mtb_json_skip(json, info) ? MTPROF_OK : MTPROF_EFORMAT;
    }
    mtb_json_value key;
    mtb_json_value value;
    while (mtb_json_member(json, &first, &key, &value)) {
        bool rank = strcmp(key.text, "rank") == 0;
        has_rank = has_rank || rank;
        MT_TRY(rank ? check_rank(chrome, &value) : MTPROF_OK);
        if (!mtb_json_skip(json, &value)) {
            return MTPROF_EFORMAT;
        }
    }
    if (json->failed) {
        return MTPROF_EFORMAT;
    }
    return has_rank ? MTPROF_OK
                    : FIND(chrome, CHROME_RANK, info->place, "distributedInfo without rank");
}

static int check_order(chrome_check *chrome, const mtb_json_value *key)
{
    static const char *const early[] = {"schemaVersion", "distributedInfo", "deviceProperties",
                                        "baseTimeNanoseconds"};
    for (size_t i = 0; chrome->saw_events && i < MT_COUNT(early); i++) {
        if (strcmp(key->text, early[i]) == 0) {
            return FIND(chrome, CHROME_KEY_ORDER, key->place, "%s stands behind traceEvents",
                        key->text);
        }
    }
    return MTPROF_OK;
}

static int read_member(chrome_check *chrome, const mtb_json_value *key, const mtb_json_value *value)
{
    MT_TRY(check_order(chrome, key));
    if (strcmp(key->text, "traceEvents") == 0 && value->type == MTB_JSON_ARRAY) {
        return read_events(chrome);
    }
    if (strcmp(key->text, "traceEvents") == 0) {
        MT_TRY(FIND(chrome, CHROME_EVENTS, value->place, "traceEvents is no array"));
        chrome->saw_events = true;
    } else if (strcmp(key->text, "distributedInfo") == 0) {
        return read_distributed(chrome, value);
    } else if (strcmp(key->text, "schemaVersion") == 0) {
        chrome->kineto = true;
    } else if (strcmp(key->text, "mtprof_part") == 0) {
        chrome->tracks.is_part = true;
    } else if (strcmp(key->text, "baseTimeNanoseconds") == 0) {
        chrome->has_base = value->type == MTB_JSON_NUMBER && value->integer;
        chrome->base_ns = chrome->has_base ? value->units : 0;
        if (!chrome->has_base) {
            MT_TRY(
                FIND(chrome, CHROME_TIME_BASE, value->place, "baseTimeNanoseconds is no integer"));
        }
    }
    return mtb_json_skip(chrome->json, value) ? MTPROF_OK : MTPROF_EFORMAT;
}

static int read_object(chrome_check *chrome)
{
    keys seen = {.n = 0};
    bool first = true;
    mtb_json_value key;
    mtb_json_value value;
    while (mtb_json_member(chrome->json, &first, &key, &value)) {
        MT_TRY(note_key(chrome, &seen, &key));
        MT_TRY(read_member(chrome, &key, &value));
    }
    return chrome->json->failed ? MTPROF_EFORMAT : MTPROF_OK;
}

static int read_text(chrome_check *chrome)
{
    mtb_json_value value;
    if (!mtb_json_value_next(chrome->json, &value)) {
        return MTPROF_EFORMAT;
    }
    if (value.type == MTB_JSON_ARRAY) {
        MT_TRY(read_events(chrome));
    } else if (value.type == MTB_JSON_OBJECT) {
        MT_TRY(read_object(chrome));
    }
    if (!mtb_json_at_end(chrome->json)) {
        return MTPROF_EFORMAT;
    }
    return chrome->saw_events
               ? MTPROF_OK
               : FIND(chrome, CHROME_EVENTS, value.place, "there are no traceEvents");
}

static int check_whole(chrome_check *chrome)
{
    const mtb_json_place nowhere = {.offset = 0};
    mtb_json *json = chrome->json;
    uint64_t bytes = chrome->check->summary.text_bytes;
    if (json->lone_surrogates > 0) {
        MT_TRY(FIND(chrome, JSON_SURROGATE, json->first_lone,
                    "%llu escapes are one half of a surrogate pair",
                    (unsigned long long)json->lone_surrogates));
    }
    if (bytes > chrome_most) {
        MT_TRY(FIND(chrome, FILE_SIZE, nowhere, "%llu bytes of JSON: more than %s loads",
                    (unsigned long long)bytes,
                    bytes > perfetto_most ? "chrome://tracing or the Perfetto UI"
                                          : "chrome://tracing"));
    }
    if (chrome->has_base && chrome->has_ts) {
        int64_t first = 0;
        bool fits = !__builtin_add_overflow(chrome->base_ns, chrome->first_ts_ns, &first);
        if (!fits || first < time_from || first > time_to) {
            MT_TRY(FIND(chrome, CHROME_TIME_BASE, nowhere,
                        "baseTimeNanoseconds %lld and the first ts (%lld ns) give no time between "
                        "2001 and 2100",
                        (long long)chrome->base_ns, (long long)chrome->first_ts_ns));
        }
    }
    if (chrome->saw_events && chrome->check->summary.spans == 0) {
        MT_TRY(FIND(chrome, CHROME_EMPTY, nowhere, "there are no spans"));
    }
    return mtprof__check_tracks_finish(chrome->check, &chrome->tracks, chrome->named);
}

int mtprof__check_chrome(mtprof__check *check, mtb_json *json)
{
    chrome_check chrome = {.check = check, .json = json};
    int status = read_text(&chrome);
    if (json->failed && json->status != 0) {
        status = json->status; /* the file could not be read further */
    } else if (json->failed) {
        status = FIND(&chrome, JSON_SYNTAX, json->bad, "%s", json->message);
    } else if (status == MTPROF_OK) {
        status = check_whole(&chrome);
    }
    mtprof__check_tracks_fini(&chrome.tracks);
    return status;
}
