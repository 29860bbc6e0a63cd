/* SPDX-License-Identifier: Apache-2.0
 *
 * The event stream: a trace as begins, ends, points and spans, in order of time, with memory
 * bounded by what is open or in flight at a time. Exporters read this; the model builder reads the
 * same records through the same slot streams (slot_stream.h).
 *
 *   EVT1  Per track, BEGIN and END edges nest: an END belongs to the latest BEGIN without one. What
 *         does not nest by itself is clamped in shown_start_ns/shown_end_ns, and counted: a scope
 *         that outlives the one around it ends with it (flag OVERLAP), and an event stream
 *         says no more about it.
 *   EVT2  Per track, shown times of the edges do not decrease.
 *   EVT3  An event's payload is complete at its END edge (outputs and memory-after come with the
 *         end); at its BEGIN edge everything else is there.
 *   EVT4  Every event has its final correlation id and index from its first edge on.
 *   EVT5  Edges of different tracks come in order of time, except device work, which comes when
 *         both it and its launch have been seen, and annotations of the device, which come last.
 *
 * A payload and its texts live until the next call.
 */
#ifndef MTPROF_MODEL_EVENTS_EVENT_H
#define MTPROF_MODEL_EVENTS_EVENT_H

#include "base/compiler.h"

#include <mtprof/format.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>

enum mtprof__edge {
    MTPROF__EDGE_BEGIN = 0,
    MTPROF__EDGE_END = 1,
    MTPROF__EDGE_POINT = 2, /* INSTANT, COUNTER, FLOW, ALLOC, LAUNCH, OUT_OF_MEMORY */
    MTPROF__EDGE_SPAN = 3   /* device work and its annotations: complete, on a queue's track;
                               CALL and OVERHEAD: complete, on a thread's track. And scopes that are
                               asynchronous by intent (flag ASYNC): complete, at their end; they do
                               not nest, so a viewer wants them as asynchronous spans */
};

/* Which fields of a payload are set; absent is absent, not zero. */
enum mtprof__payload_field {
    MTPROF__HAS_INPUTS = 1 << 0,
    MTPROF__HAS_SCALARS = 1 << 1,
    MTPROF__HAS_STACK = 1 << 2,
    MTPROF__HAS_SEQUENCE = 1 << 3,
    MTPROF__HAS_FORWARD_THREAD = 1 << 4,
    MTPROF__HAS_OVERLOAD = 1 << 5,
    MTPROF__HAS_RECORD_SCOPE = 1 << 6,
    MTPROF__HAS_FLOPS = 1 << 7,
    MTPROF__HAS_MODULE = 1 << 8,
    MTPROF__HAS_FOREIGN_ID = 1 << 9,
    MTPROF__HAS_MEMORY_BEFORE = 1 << 10,
    MTPROF__HAS_MEMORY_AFTER = 1 << 11,
    MTPROF__HAS_TENSORS_IN = 1 << 12,
    MTPROF__HAS_TENSORS_OUT = 1 << 13,
    MTPROF__HAS_METADATA = 1 << 14
};

typedef struct mtprof__tensor {
    uint64_t tensor, storage;
    int64_t offset;
    uint32_t version;
    uint16_t device; /* mtprof_model_device() */
    uint16_t role;   /* enum mtprof_tensor_role, or a number of a later minor */
} mtprof__tensor;

typedef struct mtprof__payload {
    uint32_t fields; /* enum mtprof__payload_field */
    uint32_t inputs; /* index for mtprof_model_inputs() where the list is interned, else 0 */
    const uint64_t *input_words;
    const uint64_t *scalars;
    uint32_t n_input_words, n_scalars;
    uint32_t stack;          /* mtprof_model_stack() */
    uint32_t forward_thread; /* logical thread number */
    int64_t sequence;
    mtprof_text overload, module;
    uint32_t record_scope;
    uint32_t memory_device; /* mtprof_model_device() */
    uint64_t flops, foreign_id;
    int64_t memory_before, memory_after;
    const mtprof__tensor *tensors_in, *tensors_out;
    uint32_t n_tensors_in, n_tensors_out;
    const mtprof_metadatum *metadata;
    uint32_t n_metadata;
} mtprof__payload;

/* What a payload has in one of its fields that hold a number or a text: one bit of
 * enum mtprof__payload_field, which it has. */
MT_INLINE mtprof_metadatum mtprof__payload_value(const mtprof__payload *p, uint32_t field)
{
    mtprof_metadatum item = {.type = MTPROF_META_UINT, .text = {"", 0}, .key = {"", 0}};
    switch (field) {
    case MTPROF__HAS_SEQUENCE:
    case MTPROF__HAS_MEMORY_BEFORE:
    case MTPROF__HAS_MEMORY_AFTER:
        item.type = MTPROF_META_INT;
        item.value = (uint64_t)(field == MTPROF__HAS_SEQUENCE        ? p->sequence
                                : field == MTPROF__HAS_MEMORY_BEFORE ? p->memory_before
                                                                     : p->memory_after);
        break;
    case MTPROF__HAS_OVERLOAD:
    case MTPROF__HAS_MODULE:
        item.type = MTPROF_META_TEXT;
        item.text = field == MTPROF__HAS_MODULE ? p->module : p->overload;
        break;
    case MTPROF__HAS_FORWARD_THREAD: item.value = p->forward_thread; break;
    case MTPROF__HAS_RECORD_SCOPE: item.value = p->record_scope; break;
    case MTPROF__HAS_FLOPS: item.value = p->flops; break;
    default: item.value = p->foreign_id; break;
    }
    return item;
}

typedef struct mtprof__event {
    uint8_t edge;   /* enum mtprof__edge */
    uint8_t kind;   /* enum mtprof_event_kind */
    uint8_t device; /* mtprof_model_device(); host events: 0 */
    uint8_t phase;  /* FLOW: 0 start, 1 step, 2 end; COUNTER: 0 integer, 1 double; ALLOC: 1 where no
                       clock was read and its time is that of the record before */
    uint16_t flags; /* enum mtprof_event_flag, as far as known: TOP and MATCHED are the model's */
    uint16_t tied;  /* END: 1 where what is around it on its track began at the same shown time, so
                       that times alone do not show which of the two is outside */
    uint32_t track; /* mtprof_model_track() */
    uint32_t name;  /* mtprof_model_name(), or MTPROF__NAME_INLINE: only name_text has it */
    int32_t step;   /* -1: none */
    uint32_t queue; /* device work, LAUNCH */
    mtprof_text name_text;    /* the name, always */
    int64_t start_ns, end_ns; /* as recorded; end_ns is valid from the END edge on */
    int64_t shown_start_ns,
        shown_end_ns;     /* so that tracks nest (EVT1); the end from the END edge on */
    int64_t self_ns;      /* from the END edge on: the model's SELF_NS; 0 where the event is shown
                             to end before it does, and for what is not a host event */
    uint64_t index;       /* "Ev Idx": order of beginning; device work: UINT64_MAX */
    uint64_t order;       /* BEGIN, END: order of beginning in this stream; a foreign trace's index
                             may be another */
    uint64_t correlation; /* own id; 0 for points other than LAUNCH. Device work: that of its launch
                             (0: none is known) */
    uint64_t owner;       /* id of the op or scope it belongs to: device work, runtime calls,
                             launches, allocations; 0: none. Others: own id */
    uint64_t parent;      /* id of the parent, 0: none */
    uint64_t source_id;   /* device work: the source's own correlation id */
    uint64_t value;       /* FLOW: flow id; COUNTER: value or bits; ALLOC: address */
    int64_t bytes;        /* device work: moved; ALLOC: signed */
    int64_t allocated, reserved_bytes; /* ALLOC: on the device after it; reserved_bytes -1: not
                                          known. Its device is in `device` */
    const mtprof__payload *payload;    /* NULL: none */
    int64_t launch_ns;                 /* device work: shown_start_ns of what launched it, and */
    uint32_t launch_track;             /* its track + 1; 0: not known. Where a flow to it begins */
} mtprof__event;

#define MTPROF__NAME_INLINE UINT32_MAX

/* An event of which no more is known than when it was. */
MT_INLINE mtprof__event mtprof__event_at(uint8_t edge, uint8_t kind, int64_t start_ns,
                                         int64_t end_ns)
{
    return (mtprof__event){.edge = edge,
                           .kind = kind,
                           .step = -1,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .shown_start_ns = start_ns,
                           .shown_end_ns = end_ns,
                           .index = UINT64_MAX,
                           .reserved_bytes = -1};
}

typedef struct mtprof__events mtprof__events;

/* What a stream had to change or leave out; valid at its end. */
typedef struct mtprof__events_totals {
    uint64_t events;    /* spans, host and device */
    uint64_t clamped;   /* whose shown times differ from the recorded ones (EVT1) */
    uint64_t unmatched; /* launches that nothing answered */
    uint64_t orphans;   /* device work whose launch is missing */
    uint64_t truncated;
    uint64_t left_out; /* annotations of the device, because there are too many (annotation.h) */
} mtprof__events_totals;

/* Opens a stream at the start of what the model covers. Fails with ENOMEM, EIO. */
int mtprof__events_open(mtprof_model *model, mtprof__events **out);

/* The next edge; it lives until the next call. EEND at the end. Damage in the trace is passed over
 * (it is in the model's findings). Fails with ENOMEM, EIO. */
int mtprof__events_next(mtprof__events *events, const mtprof__event **event);

/* For exporters that write events when they end: BEGIN edges are left out, except those of
 * functions. Call it before the first edge. */
void mtprof__events_skip_begins(mtprof__events *events);

/* For exporters whose readers add up times as doubles, which round: an event that ends in the same
 * nanosecond as one inside it is shown to end in the next one, where no other edge of its thread is
 * known to be in the way. Call it before the first edge. */
void mtprof__events_part_ends(mtprof__events *events);

/* For exporters that draw: scopes of tasks (those that say so in their metadata, MTPROF__TASK_KEY)
 * come complete, at their end (SPAN), as asynchronous ones do: tasks of a thread take turns, so
 * their scopes nest within a task and not on the thread. Call it before the first edge. */
void mtprof__events_split_tasks(mtprof__events *events);
#define MTPROF__TASK_KEY "task"
/* Whether a model may have such scopes: nothing in a trace of ours has that key otherwise. */
bool mtprof__model_may_have_tasks(const mtprof_model *model);
/* The metadatum of a key; NULL: none. */
const mtprof_metadatum *mtprof__event_find(const mtprof__event *event, const char *key);
/* The task of an event; NULL: none is named. */
const mtprof_text *mtprof__event_task(const mtprof__event *event);

/* A BEGIN or END edge of an event that is no more than a name and a time: no payload, no launch. */
typedef struct mtprof__plain_step {
    int64_t ns;
    uint32_t name; /* BEGIN */
    uint8_t edge;  /* MTPROF__EDGE_BEGIN or END */
    uint8_t kind;  /* BEGIN: enum mtprof_event_kind */
    uint16_t flags;
} mtprof__plain_step;

/*
 * A faster way for exporters that can do with little: the next edges as plain steps, all of one
 * track, as long as they are plain; how many. 0: ask mtprof__events_next(). An event may begin one
 * way and end the other.
 */
size_t mtprof__events_plain(mtprof__events *events, mtprof__plain_step *steps, size_t room,
                            uint32_t *track);
/* Correlation id of the first BEGIN among the steps that were returned last; later ones count up
 * from there. */
uint64_t mtprof__events_plain_id(const mtprof__events *events);

/* The position of the stream, in bytes of trace or in events; for progress. */
void mtprof__events_progress(const mtprof__events *events, uint64_t *done, uint64_t *total);

const mtprof__events_totals *mtprof__events_totals_get(const mtprof__events *events);

/* Accepts NULL. */
void mtprof__events_close(mtprof__events *events);

#endif /* MTPROF_MODEL_EVENTS_EVENT_H */
