/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of a Perfetto trace: their tracks, clocks, and the names defined in them.
 *
 * A lane begins with two packets: one clears the sequence's state, sets its defaults, describes its
 * track and names all categories and annotations; the other starts its clock, which from there on
 * counts from packet to packet.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/export/perfetto/export_perfetto_impl.h"

#include <stdio.h>

enum {
    LABEL_BYTES = 64,
    NUMBER_MAX = INT32_MAX /* process and thread ids of Perfetto are 32 bits */
};

static const char *const categories[] = {
    [MTPROF_EVENT_KIND_SCOPE] = "user_annotation",
    [MTPROF_EVENT_KIND_OP] = "cpu_op",
    [MTPROF_EVENT_KIND_RUNTIME] = "runtime",
    [MTPROF_EVENT_KIND_FUNCTION] = "python_function",
    [MTPROF_EVENT_KIND_STEP] = "user_annotation",
    [MTPROF_EVENT_KIND_LAUNCH] = "runtime",
    [MTPROF_EVENT_KIND_KERNEL] = "kernel",
    [MTPROF_EVENT_KIND_COPY] = "gpu_memcpy",
    [MTPROF_EVENT_KIND_SET] = "gpu_memset",
    [MTPROF_EVENT_KIND_CALL] = "runtime",
    [MTPROF_EVENT_KIND_SYNC] = "sync",
    [MTPROF_EVENT_KIND_ANNOTATION] = "gpu_user_annotation",
    [MTPROF_EVENT_KIND_OTHER] = "other",
    [MTPROF_EVENT_KIND_OVERHEAD] = "overhead",
    [MTPROF_EVENT_KIND_MEMORY] = "memory",
    [MTPROF_EVENT_KIND_OUT_OF_MEMORY] = "memory",
    [MTPROF_EVENT_KIND_INSTANT] = "instant",
    [MTPROF_EVENT_KIND_COUNTER] = "counter",
    [MTPROF_EVENT_KIND_FLOW] = "flow",
};

static const char *const annotations[MTPROF__ANNOTATION_COUNT] = {
#define X(ENUM, text) [MTPROF__ANNOTATION_##ENUM] = (text),
    MTPROF__ANNOTATIONS(X)
#undef X
};

uint64_t mtprof__perfetto_uuid(const mtprof__perfetto *x, uint32_t kind, uint64_t number)
{
    uint64_t uuid = mtb_mix(x->uuid_seed ^ (uint64_t)kind << 56, number);
    return uuid == 0 ? 1 : uuid;
}

/* ---- packets --------------------------------------------------------------------------------- */

size_t mtprof__packet_begin(mtprof__perfetto *x, const mtprof__lane *lane)
{
    mtprof__pb_clear(&x->pb);
    size_t start = mtprof__pb_begin(&x->pb, PF_TRACE_PACKET);
    mtprof__pb_raw(&x->pb, lane->tail, lane->tail_bytes);
    return start;
}

int mtprof__packet_end(mtprof__perfetto *x, size_t start)
{
    mtprof__pb_end(&x->pb, start);
    if (x->pb.failed) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for a packet of %zu bytes",
                        x->pb.used);
    }
    mtb_write(x->job->writer, x->pb.bytes, x->pb.used);
    return 0;
}

void mtprof__packet_time(mtprof__perfetto *x, mtprof__lane *lane, int64_t at_ns)
{
    uint64_t at = mtprof__perfetto_time(x->shift_ns, at_ns);
    if (at >= lane->last_ns) {
        mtprof__pb_u64(&x->pb, PF_PACKET_TIMESTAMP, at - lane->last_ns);
        lane->last_ns = at;
    } else {
        mtprof__pb_u64(&x->pb, PF_PACKET_CLOCK_ID, PF_CLOCK_MONOTONIC);
        mtprof__pb_u64(&x->pb, PF_PACKET_TIMESTAMP, at);
    }
}

mtprof__packet_event mtprof__event_begin(mtprof__perfetto *x, mtprof__lane *lane, int64_t at_ns,
                                         uint64_t type)
{
    mtprof__packet_event event = {.packet = mtprof__packet_begin(x, lane)};
    mtprof__packet_time(x, lane, at_ns);
    event.event = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_EVENT);
    if (type != 0) {
        mtprof__pb_u64(&x->pb, PF_EVENT_TYPE, type);
    }
    return event;
}

int mtprof__event_end(mtprof__perfetto *x, mtprof__packet_event event)
{
    mtprof__pb_end(&x->pb, event.event);
    return mtprof__packet_end(x, event.packet);
}

/* ---- interning ------------------------------------------------------------------------------- */

/* A failed allocation is not a failure: ids that do not fit are written as texts. */
static bool grow_seen(mtprof__perfetto *x, mtprof__seen *seen, uint64_t word)
{
    uint64_t wanted = word < 8 ? 8 : word + word / 2;
    if (wanted > UINT32_MAX || x->seen_words - seen->n_words + wanted > MTPROF__SEEN_WORDS) {
        return false;
    }
    uint64_t *bits = mtb_resize(seen->bits, (size_t)wanted, sizeof *bits);
    if (bits == NULL) {
        return false;
    }
    memset(bits + seen->n_words, 0, (size_t)(wanted - seen->n_words) * sizeof *bits);
    x->seen_words += wanted - seen->n_words;
    seen->bits = bits;
    seen->n_words = (uint32_t)wanted;
    return true;
}

bool mtprof__seen_add(mtprof__perfetto *x, mtprof__seen *seen, uint64_t id, bool *fits)
{
    *fits = id / 64 < seen->n_words || grow_seen(x, seen, id / 64 + 1);
    if (!*fits) {
        return false;
    }
    uint64_t bit = (uint64_t)1 << (id % 64);
    bool was = (seen->bits[id / 64] & bit) != 0;
    seen->bits[id / 64] |= bit;
    return was;
}

static void add_interned(mtprof__perfetto *x, uint32_t field, uint64_t iid, const char *text,
                         size_t length)
{
    size_t entry = mtprof__pb_begin(&x->pb, field);
    mtprof__pb_u64(&x->pb, PF_INTERNED_IID, iid);
    mtprof__pb_text(&x->pb, PF_INTERNED_TEXT, text, length, &x->job->writer->replaced);
    mtprof__pb_end(&x->pb, entry);
}

int mtprof__lane_intern(mtprof__perfetto *x, const mtprof__lane *lane, uint32_t field, uint64_t iid,
                        const char *text, size_t length)
{
    size_t packet = mtprof__packet_begin(x, lane);
    size_t interned = mtprof__pb_begin(&x->pb, PF_PACKET_INTERNED_DATA);
    add_interned(x, field, iid, text, length);
    mtprof__pb_end(&x->pb, interned);
    return mtprof__packet_end(x, packet);
}

static void make_head(mtprof__slice_head *head, uint32_t name, uint8_t kind)
{
    char *at = head->bytes;
    *at++ = (char)MTPROF__PB_TAG(PF_EVENT_TYPE, MTPROF__PB_VARINT);
    *at++ = PF_SLICE_BEGIN;
    *at++ = (char)MTPROF__PB_TAG(PF_EVENT_CATEGORY_IID, MTPROF__PB_VARINT);
    *at++ = (char)(kind + 1);
    *at++ = (char)MTPROF__PB_TAG(PF_EVENT_NAME_IID, MTPROF__PB_VARINT);
    char number[MTPROF__PB_VARINT_MAX];
    size_t n = (size_t)(mtprof__pb_put_varint(number, (uint64_t)name + 1) - number);
    memcpy(at, number, n); /* at most 5: it fits, 15 in all */
    at += n;
    *at++ = (char)MTPROF__PB_TAG(PF_EVENT_ANNOTATION, MTPROF__PB_BYTES);
    *at++ = 3 + MTPROF__PB_WIDE;
    *at++ = (char)MTPROF__PB_TAG(PF_ANNOTATION_NAME_IID, MTPROF__PB_VARINT);
    *at++ = MTPROF__ANNOTATION_CORRELATION;
    *at++ = (char)MTPROF__PB_TAG(PF_ANNOTATION_UINT, MTPROF__PB_VARINT);
    head->n_bytes = (uint8_t)(at - head->bytes);
    head->kind_plus_1 = (uint8_t)(kind + 1);
}

int mtprof__lane_name(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event,
                      bool *ready)
{
    *ready = false;
    uint32_t name = event->name;
    if (name == MTPROF__NAME_INLINE) {
        return 0;
    }
    if (!mtb_reach((void **)&x->heads, &x->n_heads, name, sizeof *x->heads)) {
        return 0;
    }
    if (x->heads[name].kind_plus_1 != event->kind + 1) {
        make_head(&x->heads[name], name, event->kind);
    }
    bool was = mtprof__seen_add(x, &lane->names, name, ready);
    return was || !*ready ? 0
                          : mtprof__lane_intern(x, lane, PF_INTERNED_NAME, (uint64_t)name + 1,
                                                event->name_text.bytes, event->name_text.length);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void describe(mtprof__perfetto *x, uint64_t uuid, uint64_t parent, const char *name,
                     size_t length)
{
    mtprof__pb_u64(&x->pb, PF_TRACK_UUID, uuid);
    if (parent != 0) {
        mtprof__pb_u64(&x->pb, PF_TRACK_PARENT, parent);
    }
    if (length > 0) {
        mtprof__pb_text(&x->pb, PF_TRACK_NAME, name, length, &x->job->writer->replaced);
    }
}

static void describe_process(mtprof__perfetto *x, uint64_t uuid, int64_t pid, mtprof_text name)
{
    char label[LABEL_BYTES];
    int n = snprintf(label, sizeof label, "process %lld", (long long)pid);
    bool known = pid > 0 && pid <= NUMBER_MAX;
    describe(x, uuid, 0, label, known ? 0 : (size_t)n);
    if (known) {
        size_t process = mtprof__pb_begin(&x->pb, PF_TRACK_PROCESS);
        mtprof__pb_u64(&x->pb, PF_PROCESS_PID, (uint64_t)pid);
        if (name.length > 0) {
            mtprof__pb_text(&x->pb, PF_PROCESS_NAME, name.bytes, name.length,
                            &x->job->writer->replaced);
        }
        mtprof__pb_end(&x->pb, process);
    }
}

/* The process of a track, described by the lane of its first track. A second description does no
 * harm, so only the last process is remembered. */
static int tell_process(mtprof__perfetto *x, int64_t pid, mtprof_text name, uint64_t *uuid)
{
    *uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_PROCESS, (uint64_t)pid);
    if (x->process_told == *uuid || x->process->uuid == *uuid) {
        return 0;
    }
    x->process_told = *uuid;
    size_t packet = mtprof__packet_begin(x, x->process);
    size_t track = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_DESCRIPTOR);
    describe_process(x, *uuid, pid, name);
    mtprof__pb_end(&x->pb, track);
    return mtprof__packet_end(x, packet);
}

static int tell_device(mtprof__perfetto *x, uint32_t number, uint64_t *uuid)
{
    mtprof_device device;
    bool fits = false;
    *uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_DEVICE, number);
    if (mtprof__seen_add(x, &x->devices, number, &fits)) {
        return 0;
    }
    size_t packet = mtprof__packet_begin(x, x->process);
    size_t track = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_DESCRIPTOR);
    char label[LABEL_BYTES];
    int n = 0;
    if (mtprof_model_device(x->job->model, number, &device)) {
        n = snprintf(label, sizeof label, "%.*s %d",
                     (int)(device.type.length < 32 ? device.type.length : 32), device.type.bytes,
                     device.index);
    } else {
        n = snprintf(label, sizeof label, "device %u", number);
    }
    describe(x, *uuid, 0, label, (size_t)n);
    mtprof__pb_end(&x->pb, track);
    return mtprof__packet_end(x, packet);
}

int mtprof__counter_track(mtprof__perfetto *x, const mtprof__lane *lane, mtprof__seen *seen,
                          uint64_t id, mtprof_text name, uint64_t *uuid)
{
    bool fits = false;
    *uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_COUNTER, mtb_hash_bytes(name.bytes, name.length));
    if (id != MTPROF__NAME_INLINE && mtprof__seen_add(x, seen, id, &fits)) {
        return 0;
    }
    size_t packet = mtprof__packet_begin(x, lane);
    size_t track = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_DESCRIPTOR);
    describe(x, *uuid, x->process->uuid, name.bytes, name.length);
    size_t counter = mtprof__pb_begin(&x->pb, PF_TRACK_COUNTER);
    if (seen == &x->memories) {
        mtprof__pb_u64(&x->pb, PF_COUNTER_UNIT, PF_UNIT_BYTES);
    }
    mtprof__pb_end(&x->pb, counter);
    mtprof__pb_end(&x->pb, track);
    return mtprof__packet_end(x, packet);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void make_tails(mtprof__lane *lane, uint32_t sequence)
{
    char number[MTPROF__PB_VARINT_MAX];
    size_t n = (size_t)(mtprof__pb_put_varint(number, sequence) - number);
    char *at = lane->tail;
    *at++ = (char)MTPROF__PB_TAG(PF_PACKET_SEQUENCE_ID, MTPROF__PB_VARINT);
    memcpy(at, number, n); /* at most 5 */
    at += n;
    *at++ = (char)MTPROF__PB_TAG(PF_PACKET_SEQUENCE_FLAGS, MTPROF__PB_VARINT);
    *at++ = PF_NEEDS_STATE;
    lane->tail_bytes = (uint8_t)(at - lane->tail);
    memcpy(lane->end, lane->tail, sizeof lane->end);
    at = lane->end + lane->tail_bytes;
    *at++ = (char)MTPROF__PB_TAG(PF_PACKET_TRACK_EVENT, MTPROF__PB_BYTES);
    *at++ = 2;
    *at++ = (char)MTPROF__PB_TAG(PF_EVENT_TYPE, MTPROF__PB_VARINT);
    *at++ = PF_SLICE_END;
    lane->end_bytes = (uint8_t)(at - lane->end);
}

static void add_clock(mtprof__perfetto *x, uint64_t id, uint64_t at, bool incremental)
{
    size_t clock = mtprof__pb_begin(&x->pb, PF_SNAPSHOT_CLOCK);
    mtprof__pb_u64(&x->pb, PF_CLOCK_ID, id);
    mtprof__pb_u64(&x->pb, PF_CLOCK_TIMESTAMP, at);
    if (incremental) {
        mtprof__pb_u64(&x->pb, PF_CLOCK_IS_INCREMENTAL, 1);
        mtprof__pb_u64(&x->pb, PF_CLOCK_UNIT_NS, 1);
    }
    mtprof__pb_end(&x->pb, clock);
}

/* The packet that clears the sequence's state; the caller adds a description of the track. */
static size_t begin_lane(mtprof__perfetto *x, const mtprof__lane *lane, uint32_t sequence)
{
    mtprof__pb_clear(&x->pb);
    size_t packet = mtprof__pb_begin(&x->pb, PF_TRACE_PACKET);
    mtprof__pb_u64(&x->pb, PF_PACKET_SEQUENCE_ID, sequence);
    mtprof__pb_u64(&x->pb, PF_PACKET_SEQUENCE_FLAGS, PF_STATE_CLEARED);
    mtprof__pb_u64(&x->pb, PF_PACKET_FIRST_ON_SEQUENCE, 1);
    size_t defaults = mtprof__pb_begin(&x->pb, PF_PACKET_DEFAULTS);
    mtprof__pb_u64(&x->pb, PF_DEFAULTS_CLOCK_ID, PF_CLOCK_LANE);
    size_t event = mtprof__pb_begin(&x->pb, PF_DEFAULTS_TRACK_EVENT);
    mtprof__pb_u64(&x->pb, PF_EVENT_DEFAULTS_TRACK, lane->uuid);
    mtprof__pb_end(&x->pb, event);
    mtprof__pb_end(&x->pb, defaults);
    size_t interned = mtprof__pb_begin(&x->pb, PF_PACKET_INTERNED_DATA);
    for (uint32_t i = 0; i < MT_COUNT(categories); i++) {
        if (categories[i] != NULL) {
            add_interned(x, PF_INTERNED_CATEGORY, i + 1, categories[i], strlen(categories[i]));
        }
    }
    for (uint32_t i = 1; i < MTPROF__ANNOTATION_COUNT; i++) {
        add_interned(x, PF_INTERNED_ANNOTATION, i, annotations[i], strlen(annotations[i]));
    }
    mtprof__pb_end(&x->pb, interned);
    return packet;
}

/* What a lane's track is called and what is above it. */
typedef struct lane_place {
    uint64_t parent;
    char label[LABEL_BYTES];
    const char *name; /* label, or the track's own */
    size_t length;
    const mtprof_track *thread; /* it is the track of this thread */
    int64_t pid;                /* it is the track of this process; 0: it is not one */
} lane_place;

static int new_lane(mtprof__perfetto *x, uint64_t uuid, const lane_place *place, mtprof__lane **out)
{
    mtprof__lane *lane = mtb_calloc(1, sizeof *lane);
    if (lane == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for lane %u", x->n_sequences);
    }
    *out = lane;
    uint32_t sequence = ++x->n_sequences;
    lane->uuid = uuid;
    lane->last_ns = mtprof__perfetto_time(x->shift_ns, x->job->info.start_ns);
    make_tails(lane, sequence);
    size_t packet = begin_lane(x, lane, sequence);
    size_t track = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_DESCRIPTOR);
    const mtprof_track *thread = place->thread;
    bool known = thread != NULL && thread->pid > 0 && thread->pid <= NUMBER_MAX &&
                 thread->tid > 0 && thread->tid <= NUMBER_MAX;
    if (place->pid != 0) {
        describe_process(x, uuid, place->pid, mtprof__export_process_name(x->job, place->pid));
    } else {
        describe(x, uuid, place->parent, place->name, known ? 0 : place->length);
    }
    if (known) {
        size_t inside = mtprof__pb_begin(&x->pb, PF_TRACK_THREAD);
        mtprof__pb_u64(&x->pb, PF_THREAD_PID, (uint64_t)thread->pid);
        mtprof__pb_u64(&x->pb, PF_THREAD_TID, (uint64_t)thread->tid);
        mtprof__pb_text(&x->pb, PF_THREAD_NAME, place->name, place->length,
                        &x->job->writer->replaced);
        mtprof__pb_end(&x->pb, inside);
    }
    mtprof__pb_end(&x->pb, track);
    MT_TRY(mtprof__packet_end(x, packet));

    packet = mtprof__packet_begin(x, lane);
    size_t snapshot = mtprof__pb_begin(&x->pb, PF_PACKET_CLOCK_SNAPSHOT);
    add_clock(x, PF_CLOCK_LANE, lane->last_ns, true);
    add_clock(x, PF_CLOCK_MONOTONIC, lane->last_ns, false);
    mtprof__pb_end(&x->pb, snapshot);
    return mtprof__packet_end(x, packet);
}

/* NULL where there is no memory; that has been noted. */
static mtprof__lane_track *track_at(mtprof__perfetto *x, uint32_t track)
{
    if (!mtb_reach((void **)&x->tracks, &x->n_tracks, track, sizeof *x->tracks)) {
        (void)mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for track %u", track);
        return NULL;
    }
    return &x->tracks[track];
}

static int place_lane(mtprof__perfetto *x, uint32_t number, mtprof_track *track, lane_place *place)
{
    *place = (lane_place){.name = place->label};
    int n = 0;
    if (!mtprof_model_track(x->job->model, number, track)) {
        *track = (mtprof_track){.name = {"", 0}};
        n = snprintf(place->label, sizeof place->label, "track %u", number);
    } else if (track->device == 0) {
        track->pid = mtprof__export_pid(x->job, track->pid);
        MT_TRY(tell_process(x, track->pid, track->process_name, &place->parent));
        n = snprintf(place->label, sizeof place->label, "thread %lld", (long long)track->tid);
        place->thread = track;
    } else {
        MT_TRY(tell_device(x, track->device, &place->parent));
        n = snprintf(place->label, sizeof place->label, "queue %lld", (long long)track->tid);
    }
    place->length = (size_t)n;
    if (track->name.length > 0) {
        place->name = track->name.bytes;
        place->length = track->name.length;
    }
    return 0;
}

int mtprof__lane_of_edges(mtprof__perfetto *x, uint32_t track, mtprof__lane **out)
{
    mtprof_track info;
    lane_place place;
    *out = x->process; /* what belongs to no track */
    if (!mtprof_model_track(x->job->model, track, &info)) {
        return 0;
    }
    mtprof__lane_track *lanes = track_at(x, track);
    if (lanes == NULL) {
        return MTPROF_ENOMEM;
    }
    if (lanes->edges == NULL) {
        MT_TRY(place_lane(x, track, &info, &place));
        uint64_t uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_EDGES, track);
        MT_TRY(new_lane(x, uuid, &place, &lanes->edges));
    }
    *out = lanes->edges;
    return 0;
}

int mtprof__device_label(const mtprof__perfetto *x, uint32_t number, const char *what, char *label,
                         size_t size)
{
    mtprof_device device = {.type = {"?", 1}, .index = -1};
    (void)mtprof_model_device(x->job->model, number, &device);
    int n = snprintf(label, size, "%s (%.*s", what,
                     (int)(device.type.length < 32 ? device.type.length : 32), device.type.bytes);
    return n + (device.index < 0 ? snprintf(label + n, size - (size_t)n, ")")
                                 : snprintf(label + n, size - (size_t)n, " %d)", device.index));
}

int mtprof__lane_of_allocs(mtprof__perfetto *x, uint8_t device, mtprof__lane **out)
{
    lane_place place = {.parent = x->process->uuid, .name = place.label};
    *out = x->allocs[device];
    if (*out != NULL) {
        return 0;
    }
    place.length =
        (size_t)mtprof__device_label(x, device, "allocations", place.label, sizeof place.label);
    MT_TRY(new_lane(x, mtprof__perfetto_uuid(x, MTPROF__UUID_ALLOCS, device), &place,
                    &x->allocs[device]));
    *out = x->allocs[device];
    return 0;
}

static bool same_lane(const void *context, uint32_t id, const void *key)
{
    return ((mtprof__lane *const *)context)[id - 1]->uuid == *(const uint64_t *)key;
}

int mtprof__lane_of_task(mtprof__perfetto *x, uint32_t track, mtprof_text task, mtprof__lane **out)
{
    mtprof__lane *thread = NULL;
    uint64_t number = mtb_mix(mtb_hash_bytes(task.bytes, task.length), track);
    uint64_t uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_TASK, number);
    uint32_t known = mtb_idmap_find(&x->task_map, uuid, same_lane, x->tasks, &uuid);
    *out = known != 0 ? x->tasks[known - 1] : NULL;
    if (known != 0 || x->n_tasks >= MTPROF__TASKS_MAX) {
        return 0;
    }
    MT_TRY(mtprof__lane_of_edges(x, track, &thread));
    if (!mtb_idmap_reserve(&x->task_map) ||
        !mtb_grow((void **)&x->tasks, &x->tasks_capacity, x->n_tasks + 1, sizeof *x->tasks)) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for task %zu", x->n_tasks);
    }
    const lane_place place = {.parent = thread->uuid, .name = task.bytes, .length = task.length};
    mtprof__lane *lane = NULL;
    int status = new_lane(x, uuid, &place, &lane);
    if (lane != NULL) {
        x->tasks[x->n_tasks++] = lane;
        (void)mtb_idmap_add(&x->task_map, uuid, (uint32_t)x->n_tasks);
    }
    *out = lane;
    return status;
}

static int add_span_lane(mtprof__perfetto *x, uint32_t number, enum mtprof__span_class class,
                         mtprof__lane_list *list)
{
    mtprof_track info;
    lane_place place;
    MT_TRY(place_lane(x, number, &info, &place));
    if (place.thread != NULL) { /* below the thread's own track */
        mtprof__lane *edges = NULL;
        MT_TRY(mtprof__lane_of_edges(x, number, &edges));
        const char *name = class == MTPROF__SPANS_WORK ? "calls" : "asynchronous";
        place = (lane_place){.parent = edges->uuid, .name = name, .length = strlen(name)};
    } else if (class == MTPROF__SPANS_OTHER) {
        int n = snprintf(place.label, sizeof place.label, "queue %lld annotations",
                         (long long)info.tid);
        place.name = place.label;
        place.length = (size_t)n;
    }
    uint64_t uuid = mtprof__perfetto_uuid(x, MTPROF__UUID_SPANS + (uint32_t) class,
                                          (uint64_t)number * MTPROF__LANES_MAX + list->n);
    int status = new_lane(x, uuid, &place, &list->lanes[list->n]);
    list->n += list->lanes[list->n] != NULL;
    return status;
}

int mtprof__lane_of_span(mtprof__perfetto *x, const mtprof__event *event, mtprof__lane **out)
{
    mtprof_track info;
    uint32_t number = mtprof_model_track(x->job->model, event->track, &info) ? event->track : 0;
    mtprof__lane_track *lanes = track_at(x, number);
    if (lanes == NULL) {
        return MTPROF_ENOMEM;
    }
    bool other = event->kind == MTPROF_EVENT_KIND_ANNOTATION ||
                 (event->flags & MTPROF_EVENT_FLAG_ASYNC) != 0;
    enum mtprof__span_class class = other ? MTPROF__SPANS_OTHER : MTPROF__SPANS_WORK;
    mtprof__lane_list *list = lanes->spans[class];
    if (list == NULL) {
        list = mtb_calloc(1, sizeof *list);
        if (list == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for track %u", number);
        }
        lanes->spans[class] = list;
    }
    uint64_t start = mtprof__perfetto_time(x->shift_ns, event->shown_start_ns);
    mtprof__lane *best = NULL;
    for (uint32_t i = 0; i < list->n; i++) {
        mtprof__lane *lane = list->lanes[i];
        if (lane->last_ns <= start) {
            *out = lane;
            return 0;
        }
        best = best == NULL || lane->last_ns < best->last_ns ? lane : best;
    }
    if (list->n < MTPROF__LANES_MAX) {
        MT_TRY(add_span_lane(x, number, class, list));
        best = list->lanes[list->n - 1];
    }
    *out = best;
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

int mtprof__perfetto_preface(mtprof__perfetto *x)
{
    const mtprof_model_info *info = &x->job->info;
    uint64_t now = mtprof__perfetto_time(x->shift_ns, info->start_ns);
    uint64_t real = (uint64_t)info->start_ns + (uint64_t)info->real_offset_ns;
    mtprof__export_merge *merge = x->job->merge;
    bool first = merge == NULL || merge->index == 0;
    lane_place place = {.name = "", .pid = (int64_t)info->pid};
    uint64_t process = mtprof__perfetto_uuid(x, MTPROF__UUID_PROCESS, info->pid);
    if (!first) { /* the file has begun */
        x->n_sequences = merge->n_sequences;
        return new_lane(x, process, &place, &x->process);
    }
    mtprof__pb_clear(&x->pb);
    size_t packet = mtprof__pb_begin(&x->pb, PF_TRACE_PACKET);
    mtprof__pb_u64(&x->pb, PF_PACKET_SEQUENCE_ID, 1);
    mtprof__pb_u64(&x->pb, PF_PACKET_SEQUENCE_FLAGS, PF_STATE_CLEARED);
    size_t snapshot = mtprof__pb_begin(&x->pb, PF_PACKET_CLOCK_SNAPSHOT);
    add_clock(x, PF_CLOCK_MONOTONIC, now, false);
    add_clock(x, PF_CLOCK_REALTIME, real, false);
    mtprof__pb_u64(&x->pb, PF_SNAPSHOT_PRIMARY, PF_CLOCK_MONOTONIC);
    mtprof__pb_end(&x->pb, snapshot);
    MT_TRY(mtprof__packet_end(x, packet));
    x->n_sequences = 1;
    MT_TRY(new_lane(x, process, &place, &x->process));
    if ((info->uuid[0] | info->uuid[1]) == 0 || merge != NULL) { /* the id is of one trace */
        return 0;
    }
    mtprof__pb_clear(&x->pb);
    packet = mtprof__pb_begin(&x->pb, PF_TRACE_PACKET);
    mtprof__pb_u64(&x->pb, PF_PACKET_SEQUENCE_ID, 1);
    size_t uuid = mtprof__pb_begin(&x->pb, PF_PACKET_TRACE_UUID);
    mtprof__pb_u64(&x->pb, PF_UUID_MSB, info->uuid[0]);
    mtprof__pb_u64(&x->pb, PF_UUID_LSB, info->uuid[1]);
    mtprof__pb_end(&x->pb, uuid);
    return mtprof__packet_end(x, packet);
}

static void free_lane(mtprof__lane *lane)
{
    if (lane != NULL) {
        mtb_free(lane->names.bits);
        mtb_free(lane->strings.bits);
        mtb_free(lane);
    }
}

void mtprof__lanes_fini(mtprof__perfetto *x)
{
    for (size_t i = 0; i < x->n_tracks; i++) {
        free_lane(x->tracks[i].edges);
        for (int class = 0; class < MTPROF__SPANS_COUNT; class ++) {
            mtprof__lane_list *list = x->tracks[i].spans[class];
            for (uint32_t k = 0; list != NULL && k < list->n; k++) {
                free_lane(list->lanes[k]);
            }
            mtb_free(list);
        }
    }
    for (size_t i = 0; i < MT_COUNT(x->allocs); i++) {
        free_lane(x->allocs[i]);
    }
    for (size_t i = 0; i < x->n_tasks; i++) {
        free_lane(x->tasks[i]);
    }
    mtb_free(x->tasks);
    mtb_idmap_reset(&x->task_map);
    free_lane(x->process);
    mtb_free(x->tracks);
    mtb_free(x->heads);
    mtb_free(x->counters.bits);
    mtb_free(x->devices.bits);
    mtb_free(x->memories.bits);
}
