/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of "traceEvents" by their phase and category: which of them are events, of what kind, on
 * which track.
 *
 *   X        a span                       i I R P n  instants; [memory] and [OutOfMemory] too
 *   B E      a span in two halves         C          counters
 *   b e S F  the same, asynchronous       s t f      flows (those that an export makes itself from
 *   M        names of threads                        correlations and sequence numbers are dropped)
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    PROCESSES_MOST = 65536 /* whose names are kept */
};

/* ---- categories ------------------------------------------------------------------------------ */

enum place {
    PLACE_HOST,
    PLACE_DEVICE,
    PLACE_OVERHEAD,
    PLACE_NONE /* not an event of the program */
};

typedef struct category {
    const char *text;
    const char *device; /* what its being there says about the device, or NULL */
    uint8_t length, kind, place;
} category;

#define CATEGORY(text, kind, place, device)                                     \
    {                                                                           \
        text, device, sizeof(text) - 1, MTPROF_EVENT_KIND_##kind, PLACE_##place \
    }

static const category categories[] = {
    CATEGORY("cpu_op", OP, HOST, NULL),
    CATEGORY("kernel", KERNEL, DEVICE, NULL),
    CATEGORY("python_function", FUNCTION, HOST, NULL),
    CATEGORY("cuda_runtime", RUNTIME, HOST, "CUDA"),
    CATEGORY("user_annotation", SCOPE, HOST, NULL),
    CATEGORY("gpu_user_annotation", ANNOTATION, DEVICE, NULL),
    CATEGORY("gpu_memcpy", COPY, DEVICE, NULL),
    CATEGORY("gpu_memset", SET, DEVICE, NULL),
    CATEGORY("overhead", OVERHEAD, OVERHEAD, NULL),
    CATEGORY("cuda_driver", RUNTIME, HOST, "CUDA"),
    CATEGORY("cuda_sync", SYNC, DEVICE, "CUDA"),
    CATEGORY("cuda_event", OTHER, DEVICE, "CUDA"),
    CATEGORY("cuda_profiler_range", OTHER, DEVICE, "CUDA"),
    CATEGORY("privateuse1_runtime", RUNTIME, HOST, "NPU"),
    CATEGORY("privateuse1_driver", RUNTIME, HOST, "NPU"),
    CATEGORY("xpu_runtime", RUNTIME, HOST, "XPU"),
    CATEGORY("xpu_driver", RUNTIME, HOST, "XPU"),
    CATEGORY("xpu_sync", SYNC, DEVICE, "XPU"),
    CATEGORY("mtia_runtime", RUNTIME, HOST, "MTIA"),
    CATEGORY("mtia_ccp_events", KERNEL, DEVICE, "MTIA"),
    CATEGORY("mtia_insight", OTHER, DEVICE, "MTIA"),
    CATEGORY("hpu_op", KERNEL, DEVICE, "HPU"),
    CATEGORY("glow_runtime", RUNTIME, HOST, NULL),
    CATEGORY("collective_comm", OTHER, DEVICE, NULL),
    CATEGORY("Trace", OTHER, NONE, NULL),
    CATEGORY("external_correlation", OTHER, NONE, NULL),
    /* older kineto, and the mindtorch flavor of ours */
    CATEGORY("Operator", OP, HOST, NULL),
    CATEGORY("op", OP, HOST, NULL),
    CATEGORY("scope", SCOPE, HOST, NULL),
    CATEGORY("runtime", RUNTIME, HOST, NULL),
    CATEGORY("Runtime", RUNTIME, HOST, "CUDA"),
    CATEGORY("Kernel", KERNEL, DEVICE, NULL),
    CATEGORY("Memcpy", COPY, DEVICE, NULL),
    CATEGORY("Memset", SET, DEVICE, NULL),
};

/* Our exports use it for device work of no known kind. Other tools may use it for anything, but
 * without a queue. */
static const category other_work = CATEGORY("other", OTHER, DEVICE, NULL);

static const category *find_category(const mtprof__raw_event *raw)
{
    const mtb_slice *slice = &raw->category;
    /* What is in no list is an annotation: a foreign trace is full of them. */
    static const category unknown = CATEGORY("", SCOPE, HOST, NULL);
    if (slice->type == MTB_SLICE_STRING) {
        for (size_t i = 0; i < MT_COUNT(categories); i++) {
            if (slice->length == categories[i].length &&
                memcmp(slice->bytes, categories[i].text, slice->length) == 0) {
                return &categories[i];
            }
        }
        if (mtb_slice_is(slice, other_work.text, other_work.length) &&
            mtprof__raw_arg(raw, MTPROF__ARG_STREAM) != NULL) {
            return &other_work;
        }
    }
    return &unknown;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* N of "ProfilerStep#N", -1 for other names. */
static int32_t step_number(mtprof_text name)
{
    static const char prefix[] = "ProfilerStep#";
    size_t at = sizeof prefix - 1;
    int64_t number = 0;
    if (name.length <= at || name.length > at + 9 || memcmp(name.bytes, prefix, at) != 0) {
        return -1;
    }
    for (; at < name.length; at++) {
        unsigned digit = (unsigned)(unsigned char)name.bytes[at] - '0';
        if (digit > 9) {
            return -1;
        }
        number = number * 10 + digit;
    }
    return (int32_t)number;
}

static bool arg_is_set(const mtprof__import *import, unsigned arg)
{
    int64_t value = 0;
    const mtb_slice *slice = mtprof__raw_arg(&import->raw, arg);
    return slice != NULL &&
           (slice->type == MTB_SLICE_TRUE || (mtb_slice_integer(slice, &value) && value != 0));
}

static int host_track(mtprof__import *import, uint8_t space, uint32_t *track)
{
    int64_t pid;
    int64_t tid;
    MT_TRY(mtprof__import_id(import, &import->raw.pid, &pid));
    MT_TRY(mtprof__import_id(import, &import->raw.tid, &tid));
    return mtprof__import_track_of(import, space, pid, tid, track);
}

/* Device and queue of an entry: as its arguments say, else as pid and tid do. */
static int queue_track(mtprof__import *import, uint8_t space, uint32_t *track)
{
    int64_t device;
    int64_t queue;
    MT_TRY(mtprof__import_id(import, &import->raw.pid, &device));
    MT_TRY(mtprof__import_id(import, &import->raw.tid, &queue));
    mtprof__raw_integer(&import->raw, MTPROF__ARG_DEVICE, &device);
    if (queue < 0 || queue >= UINT32_MAX) {
        mtprof__raw_integer(&import->raw, MTPROF__ARG_STREAM, &queue);
    }
    device = device >= 0 && device < 255 ? device : 0;
    queue = queue >= 0 && queue < UINT32_MAX ? queue : 0;
    return mtprof__import_track_of(import, space, device, queue, track);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The position of the dot in "ns::op.overload": words, one dot after the last "::". 0: it is no
 * such name. */
static size_t find_overload(mtprof_text name)
{
    size_t dot = 0;
    bool spaced = false; /* a "::" was seen */
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];
        if (is_word(c)) {
            continue;
        }
        if (i == 0 || !is_word(name.bytes[i - 1]) || dot != 0) {
            return 0;
        }
        if (c == '.' && spaced) {
            dot = i;
        } else if (c == ':' && i + 1 < name.length && name.bytes[i + 1] == ':') {
            spaced = true;
            i++;
        } else {
            return 0;
        }
    }
    return dot + 1 < name.length ? dot : 0;
}

/* With capture_overload_names torch writes "aten::add.Tensor" for what its tables call "aten::add",
 * overload "Tensor". Our traces have the overload in an argument. */
static int split_overload(mtprof__import *import, mtprof__new_span *span)
{
    mtprof__dictionary *dictionary = &import->model->dictionary;
    if (import->is_ours || mtprof__raw_arg(&import->raw, MTPROF__ARG_OVERLOAD) != NULL) {
        return MTPROF_OK;
    }
    mtprof_text name = mtprof_model_name(import->model, span->name);
    size_t dot = find_overload(name);
    if (dot == 0) {
        return MTPROF_OK;
    }
    uint32_t overload;
    MT_TRY(mtprof__dictionary_name(
        dictionary, (mtprof_text){name.bytes + dot + 1, name.length - dot - 1}, &overload));
    span->overload = overload + 1;
    return mtprof__dictionary_name(dictionary, (mtprof_text){name.bytes, dot}, &span->name);
}

/* The end of a span; a negative duration counts as 0. */
static int64_t end_of(int64_t start_ns, int64_t duration_ns)
{
    return mtb_bound_time(mtb_add_sat(start_ns, duration_ns > 0 ? duration_ns : 0));
}

/* An export of ours that had to shorten a span, so that its track nests, says how it was. */
static bool read_recorded(const mtprof__import *import, mtprof__new_span *span)
{
    const mtb_slice *ts = mtprof__raw_arg(&import->raw, MTPROF__ARG_RECORDED_TS);
    const mtb_slice *dur = mtprof__raw_arg(&import->raw, MTPROF__ARG_RECORDED_DUR);
    int64_t start = 0;
    int64_t ns = 0;
    if (ts == NULL || dur == NULL || !mtb_slice_thousandths(ts, &start) ||
        !mtb_slice_thousandths(dur, &ns) || ns < 0) {
        return false;
    }
    span->start_ns = start;
    span->end_ns = end_of(start, ns);
    return true;
}

/* What all spans have, from the entry; end_ns as its duration says. */
static int read_span(mtprof__import *import, const category *of, mtprof__new_span *span)
{
    const mtprof__raw_event *raw = &import->raw;
    int64_t number = 0;
    *span = (mtprof__new_span){
        .start_ns = raw->ts_ns,
        .end_ns = end_of(raw->ts_ns, raw->dur_ns),
        .index = MTPROF__NO_INDEX,
        .step = -1,
        .kind = of->kind,
    };
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_INDEX, &number) && number >= 0 &&
        number < MTPROF__NO_INDEX) {
        span->index = (uint32_t)number;
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_STEP, &number) && number >= -1 &&
        number <= INT32_MAX) {
        span->step = (int32_t)number;
    }
    if (arg_is_set(import, MTPROF__ARG_ASYNC)) {
        span->flags |= MTPROF_EVENT_FLAG_ASYNC;
    }
    MT_TRY(mtprof__import_name(import, &raw->name, &span->name));
    if (span->kind == MTPROF_EVENT_KIND_SCOPE) {
        int32_t step = step_number(mtprof_model_name(import->model, span->name));
        if (step >= 0) {
            span->kind = MTPROF_EVENT_KIND_STEP;
            span->step = span->step >= 0 ? span->step : step;
        }
    }
    return span->kind == MTPROF_EVENT_KIND_OP ? split_overload(import, span) : MTPROF_OK;
}

static int add_device_span(mtprof__import *import, mtprof__new_span *span)
{
    uint32_t track;
    uint32_t place;
    if (!read_recorded(import, span) && span->kind == MTPROF_EVENT_KIND_ANNOTATION &&
        span->end_ns - span->start_ns >= 2) {
        /* They are written a nanosecond longer at both ends (torch-contract 5.3.3). */
        span->start_ns += 1;
        span->end_ns -= 1;
    }
    bool annotation = span->kind == MTPROF_EVENT_KIND_ANNOTATION;
    int64_t scope = 0;
    span->index = MTPROF_NO_EVENT;
    span->flags = 0;
    if (annotation && mtprof__raw_integer(&import->raw, MTPROF__ARG_EXTERNAL_ID, &scope) &&
        scope >= 0 && scope < MTPROF_NO_EVENT) {
        span->index = (uint32_t)scope; /* for sorting: of equal ones the outer scope's first */
    }
    MT_TRY(
        queue_track(import, annotation ? MTPROF__TRACK_ANNOTATION : MTPROF__TRACK_QUEUE, &track));
    MT_TRY(mtprof__import_append(import, track, span, &place));
    return mtprof__import_device_args(import, track, place);
}

/* A span of the host; *track and *place are where it is. */
static int add_host_span(mtprof__import *import, uint8_t space, const mtprof__new_span *span,
                         uint32_t *track, uint32_t *place)
{
    MT_TRY(host_track(import, space, track));
    MT_TRY(mtprof__import_append(import, *track, span, place));
    if (span->overload != 0) {
        MT_TRY(mtprof__columns_set(&import->tracks[*track].run.columns, MTPROF_COLUMN_OVERLOAD,
                                   *place, span->overload));
    }
    return mtprof__import_host_args(import, *track, *place);
}

/* Host spans of ours are shortened where they outlive what is around them. "async" then means that,
 * and not a span that does not nest by intent: such a one comes in two halves. */
static void recall_host_span(const mtprof__import *import, mtprof__new_span *span)
{
    int64_t shown_end = span->end_ns;
    if (read_recorded(import, span) && span->end_ns > shown_end &&
        (span->flags & MTPROF_EVENT_FLAG_ASYNC) != 0) {
        span->flags |= MTPROF__SAID_OVERLAP;
    }
}

/* Whether there is an argument of that key among those that are not understood. */
static bool has_other(const mtprof__raw_event *raw, const char *key)
{
    for (uint32_t i = 0; i < raw->n_others; i++) {
        if (mtb_slice_is(&raw->others[i].key, key, strlen(key))) {
            return true;
        }
    }
    return false;
}

/* The mindtorch flavor of an export of ours has a runtime event for every op, with its name. */
static bool is_shadow(const mtprof__raw_event *raw)
{
    return mtb_slice_is_literal(&raw->category, "runtime") &&
           mtprof__raw_arg(raw, MTPROF__ARG_CORRELATION_ID) != NULL && has_other(raw, "op_name");
}

static int add_span(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    const category *of = find_category(raw);
    if (of->place == PLACE_NONE) {
        if (raw->has_dur) {
            mtprof__import_seen(import, raw->ts_ns, end_of(raw->ts_ns, raw->dur_ns));
        }
        return MTPROF_OK;
    }
    if (of->kind == MTPROF_EVENT_KIND_RUNTIME && is_shadow(raw)) {
        return MTPROF_OK;
    }
    if (of->kind == MTPROF_EVENT_KIND_FUNCTION && arg_is_set(import, MTPROF__ARG_SAMPLED)) {
        return MTPROF_OK; /* made from the stacks by an export of ours; the stacks are there */
    }
    mtprof__new_span span;
    MT_TRY(read_span(import, of, &span));
    if (of->device != NULL && import->device_type == NULL) {
        import->device_type = of->device;
    }
    if (raw->dur_ns < 0) {
        import->found.clock_back++;
    }
    if (of->place == PLACE_DEVICE) {
        return add_device_span(import, &span);
    }
    if (import->is_ours) {
        recall_host_span(import, &span);
    }
    uint32_t track;
    uint32_t place;
    return add_host_span(import,
                         of->place == PLACE_OVERHEAD ? MTPROF__TRACK_OVERHEAD : MTPROF__TRACK_HOST,
                         &span, &track, &place);
}

/* ---- begins and ends ------------------------------------------------------------------------- */

static void end_span(mtprof__import *import, uint32_t track, uint32_t place)
{
    mtprof__columns *columns = &import->tracks[track].run.columns;
    int64_t end = import->raw.ts_ns;
    if (end < columns->start_ns[place]) {
        import->found.clock_back++;
        end = columns->start_ns[place];
    }
    columns->end_ns[place] = end;
    columns->flags[place] &= (uint16_t)~MTPROF_EVENT_FLAG_TRUNCATED;
    /* Its neighbours were compared with an end that it did not have yet. */
    import->tracks[track].unsorted = true;
    mtprof__import_seen(import, end, end);
}

static int begin_span(mtprof__import *import, uint16_t flags, uint32_t *track, uint32_t *place)
{
    const category *of = find_category(&import->raw);
    const category host = {.kind = of->place == PLACE_HOST ? of->kind : MTPROF_EVENT_KIND_SCOPE};
    mtprof__new_span span;
    import->has_begins = true;
    import->raw.dur_ns = 0;
    MT_TRY(read_span(import, &host, &span));
    /* A scope of a task comes in two halves, on the task's track, whether it nests or not. */
    if (flags != 0 && import->is_ours && has_other(&import->raw, MTPROF__TASK_KEY)) {
        bool outlives = (span.flags & MTPROF_EVENT_FLAG_ASYNC) != 0;
        flags = outlives ? MTPROF__SAID_OVERLAP : 0;
    }
    /* Until its end comes it is one that was cut off. */
    span.flags |= flags | MTPROF_EVENT_FLAG_TRUNCATED;
    return add_host_span(import, MTPROF__TRACK_HOST, &span, track, place);
}

static int add_begin(mtprof__import *import)
{
    uint32_t at;
    uint32_t place;
    MT_TRY(begin_span(import, 0, &at, &place));
    mtprof__import_track *track = &import->tracks[at];
    return mtb_append(track->open, track->n_open, track->open_capacity, &place)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: %zu open spans", track->n_open + 1);
}

static int add_end(mtprof__import *import)
{
    uint32_t at;
    MT_TRY(host_track(import, MTPROF__TRACK_HOST, &at));
    mtprof__import_track *track = &import->tracks[at];
    if (track->n_open == 0) {
        import->found.ends_without_begin++;
        return MTPROF_OK;
    }
    end_span(import, at, track->open[--track->n_open]);
    return MTPROF_OK;
}

/* Asynchronous spans are identified by category, id and process, of which two hashes are kept: a
 * collision would only pair the wrong halves. */
static void async_key(const mtprof__import *import, uint64_t key[2])
{
    const mtb_slice *parts[3] = {&import->raw.category, &import->raw.id, &import->raw.pid};
    key[0] = 0;
    key[1] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t hash = parts[i]->type == MTB_SLICE_NONE
                            ? 0
                            : mtb_hash_bytes(parts[i]->bytes, parts[i]->length);
        key[0] = mtb_mix(key[0], hash);
        key[1] = mtb_mix(hash, key[1] + (uint64_t)i);
    }
}

static bool same_async(const void *context, uint32_t id, const void *key)
{
    const mtprof__import *import = context;
    return import->head_checks[id - 1] == ((const uint64_t *)key)[1];
}

static int async_head(mtprof__import *import, const uint64_t key[2], uint32_t *head)
{
    size_t n = import->n_heads;
    *head = mtb_idmap_find(&import->async_map, key[0], same_async, import, key);
    if (*head != 0) {
        return MTPROF_OK;
    }
    if (!mtb_grow((void **)&import->async_heads, &import->heads_capacity, n + 1,
                  sizeof *import->async_heads) ||
        !mtb_grow((void **)&import->head_checks, &import->head_checks_capacity, n + 1,
                  sizeof *import->head_checks) ||
        !mtb_idmap_add(&import->async_map, key[0], (uint32_t)n + 1)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu asynchronous spans", n + 1);
    }
    import->async_heads[n] = 0;
    import->head_checks[n] = key[1];
    import->n_heads = n + 1;
    *head = (uint32_t)n + 1;
    return MTPROF_OK;
}

static int add_async_begin(mtprof__import *import)
{
    uint64_t key[2];
    uint32_t head;
    async_key(import, key);
    MT_TRY(async_head(import, key, &head));
    size_t n = import->n_asyncs;
    if (n >= UINT32_MAX - 1 || !mtb_grow((void **)&import->asyncs, &import->asyncs_capacity, n + 1,
                                         sizeof *import->asyncs)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu asynchronous spans", n + 1);
    }
    mtprof__async_open *open = &import->asyncs[n];
    MT_TRY(begin_span(import, MTPROF_EVENT_FLAG_ASYNC, &open->track, &open->place));
    open->below = import->async_heads[head - 1];
    import->async_heads[head - 1] = (uint32_t)n + 1;
    import->n_asyncs = n + 1;
    return MTPROF_OK;
}

static int add_async_end(mtprof__import *import)
{
    uint64_t key[2];
    async_key(import, key);
    uint32_t head = mtb_idmap_find(&import->async_map, key[0], same_async, import, key);
    uint32_t open = head != 0 ? import->async_heads[head - 1] : 0;
    if (open == 0) {
        import->found.ends_without_begin++;
        return MTPROF_OK;
    }
    import->async_heads[head - 1] = import->asyncs[open - 1].below;
    end_span(import, import->asyncs[open - 1].track, import->asyncs[open - 1].place);
    return MTPROF_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static int new_point(mtprof__import *import, uint8_t kind, mtprof__event **out)
{
    uint32_t track;
    uint32_t name;
    *out = NULL;
    MT_TRY(host_track(import, MTPROF__TRACK_HOST, &track));
    MT_TRY(mtprof__import_name(import, &import->raw.name, &name));
    MT_TRY(mtprof__import_point(import, kind, track, import->raw.ts_ns, out));
    (*out)->name = name;
    return MTPROF_OK;
}

static int add_alloc(mtprof__import *import, uint8_t kind)
{
    mtprof__event *point;
    int64_t type = 0;
    int64_t device = 0;
    int64_t number = 0;
    MT_TRY(new_point(import, kind, &point));
    /* Our exports show allocations of equal time one after the other. */
    const mtb_slice *ts = mtprof__raw_arg(&import->raw, MTPROF__ARG_RECORDED_TS);
    if (ts != NULL && mtb_slice_thousandths(ts, &number)) {
        point->start_ns = point->end_ns = point->shown_start_ns = point->shown_end_ns = number;
        point->phase = 1;
    }
    mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_DEVICE_TYPE, &type);
    mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_DEVICE_ID, &device);
    if (!mtprof__import_is_host_memory(type)) {
        device = device >= 0 && device < 254 ? device : 0;
        point->device = (uint8_t)(device + 1);
        if (import->device_type == NULL) {
            import->device_type = mtprof__import_device_of_memory(type);
        }
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_ADDRESS, &number)) {
        point->value = (uint64_t)number;
    }
    mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_BYTES, &point->bytes);
    mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_ALLOCATED, &point->allocated);
    mtprof__raw_integer(&import->raw, MTPROF__ARG_MEMORY_RESERVED, &point->reserved_bytes);
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_STEP, &number) && number >= 0 &&
        number <= INT32_MAX) {
        point->step = (int32_t)number;
    }
    if (mtprof__raw_integer(&import->raw, MTPROF__ARG_CORRELATION_ID, &number)) {
        /* 0: it has no owner, whatever was open at that moment */
        point->correlation = number != 0 ? (uint64_t)number : UINT64_MAX;
        import->allocs_name_owner = true;
    }
    import->n_allocs += kind == MTPROF_EVENT_KIND_ALLOC;
    return MTPROF_OK;
}

static int add_instant(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    if (mtb_slice_is_literal(&raw->name, "[memory]")) {
        return add_alloc(import, MTPROF_EVENT_KIND_ALLOC);
    }
    if (mtb_slice_is_literal(&raw->name, "[OutOfMemory]")) {
        return add_alloc(import, MTPROF_EVENT_KIND_OUT_OF_MEMORY);
    }
    if (raw->scope == 'g' && (mtb_slice_is_literal(&raw->pid, "Traces") ||
                              mtb_slice_is_literal(&raw->name, "Record Window End"))) {
        return MTPROF_OK; /* kineto's own; every export writes new ones */
    }
    mtprof__event *point;
    uint32_t metadata;
    MT_TRY(new_point(import, MTPROF_EVENT_KIND_INSTANT, &point));
    MT_TRY(mtprof__import_metadata(import, 0, &metadata));
    point->value = metadata; /* events_columns.c makes its payload of it */
    return MTPROF_OK;
}

/* One value of a counter. Several in one entry are distinguished by their keys. */
static int add_count(mtprof__import *import, mtprof_text key, const mtb_slice *value, bool one)
{
    mtprof__event *point;
    int64_t integer = 0;
    double real = 0;
    bool whole = value->type == MTB_SLICE_INT;
    if (whole) {
        integer = value->integer;
    } else if (!mtb_slice_real(value, &real)) {
        import->found.skipped++;
        return MTPROF_OK;
    }
    MT_TRY(new_point(import, MTPROF_EVENT_KIND_COUNTER, &point));
    point->phase = whole ? 0 : 1;
    point->value = (uint64_t)integer;
    if (!whole) {
        memcpy(&point->value, &real, sizeof real);
    }
    if (one) {
        return MTPROF_OK;
    }
    mtprof_text name = mtprof_model_name(import->model, point->name);
    char *both = mtprof__import_scratch(import, name.length + 1 + key.length);
    if (both == NULL) {
        return MTPROF_ENOMEM;
    }
    memcpy(both, name.bytes, name.length);
    both[name.length] = ' ';
    memcpy(both + name.length + 1, key.bytes, key.length);
    return mtprof__dictionary_name(&import->model->dictionary,
                                   (mtprof_text){both, name.length + 1 + key.length}, &point->name);
}

static int add_counter(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    bool one = raw->n_others + (unsigned)__builtin_popcountll(raw->known) == 1;
    for (uint64_t known = raw->known; known != 0; known &= known - 1) {
        unsigned arg = (unsigned)__builtin_ctzll(known);
        MT_TRY(add_count(import, mtprof__arg_key(arg), &raw->args[arg], one));
    }
    for (uint32_t i = 0; i < raw->n_others; i++) {
        const mtb_slice *key = &raw->others[i].key;
        MT_TRY(
            add_count(import, (mtprof_text){key->bytes, key->length}, &raw->others[i].value, one));
    }
    return MTPROF_OK;
}

static int add_flow(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    if (mtb_slice_is_literal(&raw->category, "ac2g") ||
        mtb_slice_is_literal(&raw->category, "fwdbwd") ||
        mtb_slice_is_literal(&raw->category, "graph_dependency")) {
        return MTPROF_OK;
    }
    mtprof__event *point;
    int64_t id = 0;
    MT_TRY(new_point(import, MTPROF_EVENT_KIND_FLOW, &point));
    point->phase = raw->phase == 's' ? 0 : raw->phase == 't' ? 1 : 2;
    if (raw->id.type != MTB_SLICE_NONE && !mtb_slice_integer(&raw->id, &id)) {
        id = (int64_t)(mtb_hash_bytes(raw->id.bytes, raw->id.length) >> 11);
    }
    point->value = (uint64_t)id;
    return MTPROF_OK;
}

/* ---- names of processes and threads ---------------------------------------------------------- */

static bool has_lower_pid(const void *process, uint64_t pid)
{
    return ((const mtprof__process_name *)process)->pid < (int64_t)pid;
}

size_t mtprof__import_find_process(const mtprof__import *import, int64_t pid)
{
    return mtb_search(import->processes, import->n_processes, sizeof *import->processes,
                      has_lower_pid, (uint64_t)pid);
}

/* Kept by pid: there may be many. */
static int add_process_name(mtprof__import *import, int64_t pid, mtprof_text name)
{
    size_t from = mtprof__import_find_process(import, pid);
    if (from < import->n_processes && import->processes[from].pid == pid) {
        import->processes[from].name = name;
        return MTPROF_OK;
    }
    if (import->n_processes >= PROCESSES_MOST) {
        return MTPROF_OK;
    }
    if (!mtb_grow((void **)&import->processes, &import->processes_capacity, import->n_processes + 1,
                  sizeof *import->processes)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu processes", import->n_processes + 1);
    }
    memmove(&import->processes[from + 1], &import->processes[from],
            (import->n_processes - from) * sizeof *import->processes);
    import->processes[from] = (mtprof__process_name){pid, name};
    import->n_processes++;
    return MTPROF_OK;
}

/* kineto writes "thread 640 (python3)"; what is in parentheses is the name. "thread 640" has none.
 */
static mtprof_text plain_thread_name(mtprof_text name)
{
    static const char prefix[] = "thread ";
    size_t at = sizeof prefix - 1;
    if (name.length <= at || memcmp(name.bytes, prefix, at) != 0) {
        return name;
    }
    size_t digits = at;
    while (at < name.length && (unsigned)(unsigned char)name.bytes[at] - '0' < 10) {
        at++;
    }
    if (at > digits && at == name.length) {
        return (mtprof_text){"", 0};
    }
    if (at == digits || name.length < at + 3 || memcmp(name.bytes + at, " (", 2) != 0 ||
        name.bytes[name.length - 1] != ')') {
        return name;
    }
    return (mtprof_text){name.bytes + at + 2, name.length - at - 3};
}

static int add_meta(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    const mtb_slice *value = mtprof__raw_arg(raw, MTPROF__ARG_NAME);
    bool is_process = mtb_slice_is_literal(&raw->name, "process_name");
    if (value == NULL || value->type != MTB_SLICE_STRING ||
        (!is_process && !mtb_slice_is_literal(&raw->name, "thread_name"))) {
        return MTPROF_OK; /* labels and sort orders: exports have their own */
    }
    mtprof_text text;
    MT_TRY(mtprof__import_text(import, value, &text));
    text = mtprof__dictionary_copy(&import->model->dictionary,
                                   is_process ? text : plain_thread_name(text));
    if (text.bytes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: the name of a thread");
    }
    if (is_process) {
        int64_t pid;
        MT_TRY(mtprof__import_id(import, &raw->pid, &pid));
        return add_process_name(import, pid, text);
    }
    uint32_t track;
    MT_TRY(host_track(import, MTPROF__TRACK_HOST, &track));
    import->tracks[track].name = text;
    return MTPROF_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool is_complete(const mtprof__raw_event *raw)
{
    switch (raw->phase) {
    case 'M': return true;
    case 'X': return raw->has_ts;
    default: return raw->has_ts && raw->phase != 0;
    }
}

int mtprof__import_add(mtprof__import *import)
{
    const mtprof__raw_event *raw = &import->raw;
    import->entries++;
    if (!is_complete(raw)) {
        import->found.skipped++;
        return MTPROF_OK;
    }
    import->events++;
    switch (raw->phase) {
    case 'X': return add_span(import);
    case 'B': return add_begin(import);
    case 'E': return add_end(import);
    case 'b':
    case 'S': return add_async_begin(import);
    case 'e':
    case 'F': return add_async_end(import);
    case 'i':
    case 'I':
    case 'R':
    case 'P':
    case 'n': return add_instant(import);
    case 'C': return add_counter(import);
    case 's':
    case 't':
    case 'f': return add_flow(import);
    case 'M': return add_meta(import);
    default:
        import->events--;
        import->found.skipped++;
        return MTPROF_OK;
    }
}
