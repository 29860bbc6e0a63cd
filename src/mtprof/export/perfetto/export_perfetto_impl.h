/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the Perfetto exporter share: field numbers, lanes, interning.
 *
 *     events ─► export_perfetto.c (begins, ends, points) ─┐
 *                  └─► export_perfetto_args.c (payloads)  ├─► packets ─► job->writer
 *               export_perfetto_lane.c (who, when, names) ┘
 *
 * A lane is one track of the file and one packet sequence, so that a slice need not say where it
 * belongs: its packets have a default track, a clock that counts from the packet before, and ids
 * for names. A begin is 20 bytes or so, an end 12.
 *
 *   PF1  In a lane slices nest, and their times do not decrease: edges of a thread do so by
 *        themselves (EVT1, EVT2); spans are put on the first of a track's lanes that is free at
 *        their start.
 *   PF2  What a packet refers to by id comes before it in its sequence.
 *   PF3  Texts are UTF-8; other bytes become U+FFFD and are counted.
 *   PF4  What is remembered about ids is bounded (MTPROF__SEEN_WORDS); beyond that texts are
 *        written in full.
 */
#ifndef MTPROF_EXPORT_PERFETTO_EXPORT_PERFETTO_IMPL_H
#define MTPROF_EXPORT_PERFETTO_EXPORT_PERFETTO_IMPL_H

#include "base/idmap.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/export/frame_stack.h"
#include "mtprof/export/protobuf.h"
#include "mtprof/model/facts/forward.h"
#include "mtprof/model/facts/replay.h"

#include <stdbool.h>
#include <stdint.h>

/* Field numbers of Perfetto's documented messages, by message. */
enum {
    PF_TRACE_PACKET = 1,

    PF_PACKET_CLOCK_SNAPSHOT = 6,
    PF_PACKET_TIMESTAMP = 8,
    PF_PACKET_SEQUENCE_ID = 10,
    PF_PACKET_TRACK_EVENT = 11,
    PF_PACKET_INTERNED_DATA = 12,
    PF_PACKET_SEQUENCE_FLAGS = 13,
    PF_PACKET_CLOCK_ID = 58,
    PF_PACKET_DEFAULTS = 59,
    PF_PACKET_TRACK_DESCRIPTOR = 60,
    PF_PACKET_FIRST_ON_SEQUENCE = 87,
    PF_PACKET_TRACE_UUID = 89,

    PF_SNAPSHOT_CLOCK = 1,
    PF_SNAPSHOT_PRIMARY = 2,
    PF_CLOCK_ID = 1,
    PF_CLOCK_TIMESTAMP = 2,
    PF_CLOCK_IS_INCREMENTAL = 3,
    PF_CLOCK_UNIT_NS = 4,

    PF_DEFAULTS_TRACK_EVENT = 11,
    PF_DEFAULTS_CLOCK_ID = 58,
    PF_EVENT_DEFAULTS_TRACK = 11,

    PF_TRACK_UUID = 1,
    PF_TRACK_NAME = 2,
    PF_TRACK_PROCESS = 3,
    PF_TRACK_THREAD = 4,
    PF_TRACK_PARENT = 5,
    PF_TRACK_COUNTER = 8,
    PF_PROCESS_PID = 1,
    PF_PROCESS_NAME = 6,
    PF_THREAD_PID = 1,
    PF_THREAD_TID = 2,
    PF_THREAD_NAME = 5,
    PF_COUNTER_UNIT = 3,

    PF_INTERNED_CATEGORY = 1,
    PF_INTERNED_NAME = 2,
    PF_INTERNED_ANNOTATION = 3,
    PF_INTERNED_STRING = 29,
    PF_INTERNED_IID = 1,
    PF_INTERNED_TEXT = 2,

    PF_EVENT_CATEGORY_IID = 3,
    PF_EVENT_ANNOTATION = 4,
    PF_EVENT_LEGACY = 6,
    PF_EVENT_TYPE = 9,
    PF_EVENT_NAME_IID = 10,
    PF_EVENT_TRACK = 11,
    PF_EVENT_NAME = 23,
    PF_EVENT_COUNTER = 30,
    PF_EVENT_COUNTER_DOUBLE = 44,
    PF_EVENT_FLOW = 47,
    PF_EVENT_FLOW_END = 48,

    PF_LEGACY_PHASE = 2,
    PF_LEGACY_ID = 6,
    PF_LEGACY_ENCLOSING = 12,

    PF_ANNOTATION_NAME_IID = 1,
    PF_ANNOTATION_BOOL = 2,
    PF_ANNOTATION_UINT = 3,
    PF_ANNOTATION_INT = 4,
    PF_ANNOTATION_DOUBLE = 5,
    PF_ANNOTATION_STRING = 6,
    PF_ANNOTATION_NAME = 10,
    PF_ANNOTATION_STRING_IID = 17,

    PF_UUID_MSB = 1,
    PF_UUID_LSB = 2
};

/* Values of documented enums. */
enum {
    PF_CLOCK_REALTIME = 1,
    PF_CLOCK_MONOTONIC = 3,
    PF_CLOCK_LANE = 64, /* the first of the numbers that a sequence may use for its own clocks */
    PF_STATE_CLEARED = 1,
    PF_NEEDS_STATE = 2,
    PF_SLICE_BEGIN = 1,
    PF_SLICE_END = 2,
    PF_INSTANT = 3,
    PF_COUNTER = 4,
    PF_UNIT_BYTES = 3
};

enum {
    MTPROF__SEEN_WORDS = 8 << 20, /* all lanes together: 64 MiB */
    MTPROF__LANES_MAX = 64,       /* for the spans of one track */
    MTPROF__TASKS_MAX = 4096,     /* with a lane of their own */
    MTPROF__TAIL_BYTES = 16
};

/* Names of annotations, by their id. */
#define MTPROF__ANNOTATIONS(X)            \
    X(CORRELATION, "correlation_id")      \
    X(STEP, "step")                       \
    X(INPUT_DIMS, "input_dims")           \
    X(INPUT_TYPES, "input_types")         \
    X(CONCRETE_INPUTS, "concrete_inputs") \
    X(STACK, "stack")                     \
    X(SEQUENCE, "sequence_number")        \
    X(FORWARD_THREAD, "forward_thread")   \
    X(OVERLOAD, "overload_name")          \
    X(RECORD_SCOPE, "record_scope")       \
    X(FLOPS, "flops")                     \
    X(MODULE, "module")                   \
    X(FOREIGN_ID, "foreign_id")           \
    X(MEMORY_BEFORE, "memory_before")     \
    X(MEMORY_AFTER, "memory_after")       \
    X(OWNER, "owner")                     \
    X(SOURCE_ID, "source_id")             \
    X(BYTES, "bytes")                     \
    X(QUEUE, "queue")                     \
    X(DEVICE, "device")                   \
    X(TRUNCATED, "truncated")             \
    X(ASYNC, "async")                     \
    X(PARENT, "parent_id")                \
    X(ADDRESS, "address")                 \
    X(SAMPLED, "sampled")

enum mtprof__annotation {
    MTPROF__ANNOTATION_NONE = 0,
#define X(ENUM, text) MTPROF__ANNOTATION_##ENUM,
    MTPROF__ANNOTATIONS(X)
#undef X
    MTPROF__ANNOTATION_COUNT
};

/* Which ids have been defined in a lane. */
typedef struct mtprof__seen {
    uint64_t *bits;
    uint32_t n_words;
} mtprof__seen;

typedef struct mtprof__lane {
    uint64_t last_ns;              /* time of its last packet */
    uint64_t open;                 /* events that have begun and not ended, frames left out */
    char tail[MTPROF__TAIL_BYTES]; /* of every packet: sequence id and flags */
    char end[MTPROF__TAIL_BYTES];  /* the same and the end of a slice */
    uint8_t tail_bytes, end_bytes;
    mtprof__seen names;
    mtprof__seen strings; /* mtprof__string_id() */
    uint64_t uuid;
} mtprof__lane;

/* Lanes of spans on a track. */
typedef struct mtprof__lane_list {
    mtprof__lane *lanes[MTPROF__LANES_MAX];
    uint32_t n;
} mtprof__lane_list;

enum mtprof__span_class {
    MTPROF__SPANS_WORK,  /* kernels on a queue; calls that a source saw, on a thread */
    MTPROF__SPANS_OTHER, /* annotations of a queue; asynchronous scopes of a thread */
    MTPROF__SPANS_COUNT
};

typedef struct mtprof__lane_track {
    mtprof__lane *edges;
    mtprof__lane_list *spans[MTPROF__SPANS_COUNT];
} mtprof__lane_track;

/* What a slice says of its name and category, ready to be copied, up to the value of its first
 * annotation, the correlation id. */
typedef struct mtprof__slice_head {
    uint8_t n_bytes;
    uint8_t kind_plus_1; /* 0: not made yet */
    char bytes[16];
} mtprof__slice_head;

typedef struct mtprof__perfetto {
    mtprof__export_job *job;
    mtb_writer *writer;        /* the job's */
    uint64_t shift_ns;         /* added to every time: none is negative in the file */
    mtprof__pb pb;             /* the packet that is being made */
    mtprof__pb text;           /* a text that is being made */
    mtb_writer text_writer;    /* into `text` */
    mtprof__lane *process;     /* of the process itself: what belongs to no thread */
    mtprof__lane *allocs[256]; /* of allocations, by device */
    mtprof__lane **tasks;      /* of tasks, by number - 1 */
    size_t n_tasks, tasks_capacity;
    mtb_idmap task_map;          /* by uuid */
    mtprof__frame_stack *frames; /* NULL: no stacks were recorded */
    mtprof__forwards forwards;   /* ops that wait for their backward op */
    mtprof__forwards replays;    /* work of graphs' nodes; used: of its arrows */
    mtprof__slice_head *heads;   /* by name */
    size_t n_heads;
    mtprof__lane_track *tracks; /* by track */
    size_t n_tracks;
    mtprof__seen counters; /* by name */
    mtprof__seen devices;
    mtprof__seen memories; /* 2 device: allocated, 2 device + 1: reserved */
    uint64_t seen_words;
    uint32_t n_sequences;
    uint64_t clamped;
    uint64_t process_told; /* uuid of the last process that was described */
    uint64_t uuid_seed;
} mtprof__perfetto;

/* ---- export_perfetto_lane.c ------------------------------------------------------------------ */

/* Begins and ends an event of a lane: a packet with its time, and the event's type (0: none). In
 * between its fields go into x->pb. Fails with ENOMEM. */
typedef struct mtprof__packet_event {
    size_t packet, event;
} mtprof__packet_event;
mtprof__packet_event mtprof__event_begin(mtprof__perfetto *x, mtprof__lane *lane, int64_t at_ns,
                                         uint64_t type);
int mtprof__event_end(mtprof__perfetto *x, mtprof__packet_event event);
/* The same for a packet. */
size_t mtprof__packet_begin(mtprof__perfetto *x, const mtprof__lane *lane);
int mtprof__packet_end(mtprof__perfetto *x, size_t start);
/* Time of a packet. Goes back where it must, which edges never do. */
void mtprof__packet_time(mtprof__perfetto *x, mtprof__lane *lane, int64_t at_ns);

/* What a file begins with. */
int mtprof__perfetto_preface(mtprof__perfetto *x);

/* The lane of a track's edges and points; made where there is none. Fails with ENOMEM. */
int mtprof__lane_of_edges(mtprof__perfetto *x, uint32_t track, mtprof__lane **out);
/* "what (NPU 0)", at most 64 bytes with a short `what`; returns its length. */
int mtprof__device_label(const mtprof__perfetto *x, uint32_t number, const char *what, char *label,
                         size_t size);
/* The lane of a device's allocations. Fails with ENOMEM. */
int mtprof__lane_of_allocs(mtprof__perfetto *x, uint8_t device, mtprof__lane **out);
/* The lane of a task of a thread; NULL: there are too many of them. Fails with ENOMEM. */
int mtprof__lane_of_task(mtprof__perfetto *x, uint32_t track, mtprof_text task, mtprof__lane **out);
/* A lane for a span that starts at start_ns. Fails with ENOMEM. */
int mtprof__lane_of_span(mtprof__perfetto *x, const mtprof__event *event, mtprof__lane **out);
/* The track of a counter, described when it is first used; `seen` is x->counters (id: name), or
 * x->memories, which are in bytes. Fails with ENOMEM. */
int mtprof__counter_track(mtprof__perfetto *x, const mtprof__lane *lane, mtprof__seen *seen,
                          uint64_t id, mtprof_text name, uint64_t *uuid);
void mtprof__lanes_fini(mtprof__perfetto *x);

/* Whether an id has been defined; if not, marks it so. *fits false: it cannot be remembered. */
bool mtprof__seen_add(mtprof__perfetto *x, mtprof__seen *seen, uint64_t id, bool *fits);

/* Defines an id in a lane (field of InternedData). Fails with ENOMEM. */
int mtprof__lane_intern(mtprof__perfetto *x, const mtprof__lane *lane, uint32_t field, uint64_t iid,
                        const char *text, size_t length);
/* Makes an event's name known to a lane and its head ready. *ready false: it must be written in
 * full. Fails with ENOMEM. */
int mtprof__lane_name(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event,
                      bool *ready);

/* A number for a thing of this trace, never 0: for tracks and flows. */
uint64_t mtprof__perfetto_uuid(const mtprof__perfetto *x, uint32_t kind, uint64_t number);

/* A time of the trace as the file has it. */
MT_INLINE uint64_t mtprof__perfetto_time(uint64_t shift_ns, int64_t at_ns)
{
    uint64_t at = (uint64_t)at_ns + shift_ns;
    return MT_LIKELY(at_ns >= 0) || (int64_t)at >= 0 ? at : 0;
}

MT_INLINE bool mtprof__seen_has(const mtprof__seen *seen, uint64_t id)
{
    return id / 64 < seen->n_words && (seen->bits[id / 64] >> (id % 64) & 1) != 0;
}

/* Kinds of things with numbers. */
enum {
    MTPROF__UUID_PROCESS = 1,
    MTPROF__UUID_EDGES = 2,
    MTPROF__UUID_SPANS = 3, /* and 4 */
    MTPROF__UUID_COUNTER = 5,
    MTPROF__UUID_DEVICE = 6,
    MTPROF__UUID_LAUNCH = 7,
    MTPROF__UUID_FLOW = 8,
    MTPROF__UUID_BACKWARD = 9,
    MTPROF__UUID_ALLOCS = 10,
    MTPROF__UUID_TASK = 11,
    MTPROF__UUID_REPLAY = 12
};

/* ---- export_perfetto_args.c ------------------------------------------------------------------ */

void mtprof__annotate_u64(mtprof__pb *pb, uint32_t annotation, uint64_t value);
void mtprof__annotate_i64(mtprof__pb *pb, uint32_t annotation, int64_t value);
void mtprof__annotate_metadata(mtprof__perfetto *x, const mtprof_metadatum *item);
/* Defines in the lane what the payload's annotations refer to; call it before the packet begins.
 * Fails with ENOMEM. */
int mtprof__payload_intern(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__payload *payload);
/* The payload of an event, at its begin; and what is known at its end only: metadata may be set as
 * long as it is open. */
void mtprof__annotate_payload(mtprof__perfetto *x, const mtprof__lane *lane,
                              const mtprof__payload *payload);
void mtprof__annotate_end(mtprof__perfetto *x, const mtprof__payload *payload);

#endif /* MTPROF_EXPORT_PERFETTO_EXPORT_PERFETTO_IMPL_H */
