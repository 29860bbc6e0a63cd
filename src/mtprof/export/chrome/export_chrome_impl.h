/* SPDX-License-Identifier: Apache-2.0
 *
 * The Chrome/kineto exporter from inside.
 *
 *     event stream ─► export_chrome.c (which event is what)
 *                      ├─ chrome_span.c     host spans: ops, scopes, runtime calls
 *                      ├─ chrome_args.c     their args
 *                      ├─ chrome_device.c   device work, flows from its launch
 *                      ├─ chrome_point.c    instants, counters, flows, allocations
 *                      ├─ chrome_forward.c  forward to backward flows
 *                      ├─ chrome_frames.c   python_function spans
 *                      ├─ chrome_ties.c     spans of equal times, outermost first
 *                      ├─ chrome_modules.c  modules of backward ops
 *                      └─ chrome_header.c   what comes before and after the events
 *     chrome_text.c: pieces of text that are made once and copied often
 *
 *   CH1  Every event ends in ",\n"; the last one of a file is always "Record Window End".
 *   CH2  Memory is bounded: caches have a fixed number of places and refuse long texts, tables of
 *        pending things have a largest size, the rest is per track.
 *   CH3  Times are shown times plus shift_ns, never negative.
 */
#ifndef MTPROF_EXPORT_CHROME_EXPORT_CHROME_IMPL_H
#define MTPROF_EXPORT_CHROME_EXPORT_CHROME_IMPL_H

#include "base/saturate.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/export/frame_stack.h"
#include "mtprof/model/facts/forward.h"
#include "mtprof/model/facts/replay.h"
#include "mtprof/model/text/inputs_text.h"

#include <string.h>

/* ---- pieces of text -------------------------------------------------------------------------- */
enum {
    MTPROF__PIECE_PAD = 64,    /* readable bytes after each text: short copies have a fixed size */
    MTPROF__PIECE_MOST = 1536, /* longest text that is kept */
    MTPROF__STACK_MOST = 16 * 1024
};

typedef struct mtprof__piece {
    char *text; /* NULL: none */
    uint32_t length, capacity;
    uint32_t replaced; /* bytes of it that were no UTF-8 */
} mtprof__piece;

/* Copies whole blocks, so that there is neither a call nor a rest; past the end of the text up to
 * 63 bytes are read and written, for which there must be room. */
MT_INLINE char *mtprof__put_piece(char *at, const mtprof__piece *piece)
{
    uint32_t length = piece->length;
    const char *from = piece->text;
    memcpy(at, from, MTPROF__PIECE_PAD);
    for (uint32_t done = MTPROF__PIECE_PAD; MT_UNLIKELY(done < length); done += MTPROF__PIECE_PAD) {
        memcpy(at + done, from + done, MTPROF__PIECE_PAD);
    }
    return at + length;
}

/* A number that differs little from the one written before in the same place: ids, indices. What is
 * above its last four digits is kept as text. */
typedef struct mtprof__slow_number {
    uint64_t first, count; /* the numbers that have this text; count 0: none so far */
    char text[24];
    uint32_t digits;
} mtprof__slow_number;

/* Out-of-line half of mtprof__put_slow(). False: numbers like this one are not kept. */
bool mtprof__slow_number_set(mtprof__slow_number *number, uint64_t value);

/* At most 24 bytes are touched, and 32 read. */
MT_INLINE char *mtprof__put_slow(mtprof__slow_number *number, char *at, uint64_t value)
{
    uint64_t low = value - number->first;
    if (MT_UNLIKELY(low >= number->count)) {
        if (value < 10) { /* sequence numbers, where nothing needs a gradient */
            *at = (char)('0' + value);
            return at + 1;
        }
        if (!mtprof__slow_number_set(number, value)) {
            return mtb_put_u64(at, value);
        }
        low = value - number->first;
    }
    memcpy(at, number->text, 16); /* at most 16 of them count: ids are below 2^53 */
    at += number->digits;
    memcpy(at, mtb_digit_pairs + (size_t)2 * ((uint32_t)low / 100), 2);
    memcpy(at + 2, mtb_digit_pairs + (size_t)2 * ((uint32_t)low % 100), 2);
    return at + 4;
}

#define MTPROF__PUT(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

/* One place of a direct-mapped cache; key 0: empty. */
typedef struct mtprof__name_slot {
    uint64_t key;
    mtprof__piece head; /* {"ph":"X","cat":"cpu_op","name":"aten::add", */
} mtprof__name_slot;

enum {
    MTPROF__SCALARS_KEPT = 12
};

typedef struct mtprof__inputs_slot {
    uint32_t key, facts;
    mtprof__piece text; /* ,"Concrete Inputs":…,"Input type":… */
    uint32_t n_scalars; /* of which the last of these shows the values */
    uint64_t scalars[MTPROF__SCALARS_KEPT];
} mtprof__inputs_slot;

typedef struct mtprof__stack_slot {
    uint32_t key;
    mtprof__piece text; /* ,"Call stack":"…","stack":[…] */
} mtprof__stack_slot;

enum {
    MTPROF__NAME_SLOTS = 4096,
    MTPROF__INPUTS_SLOTS = 2048,
    MTPROF__STACK_SLOTS = 512
};

/* ---- per track ------------------------------------------------------------------------------- */
typedef struct mtprof__chrome_track {
    bool known, seen;
    bool is_thread;
    uint32_t number; /* logical thread, or queue */
    int64_t pid, tid;
    mtprof__piece place;              /* "pid":515,"tid":515,"ts": */
    mtprof__piece op_tail;            /* ,"runtime_name":"dispatch_kernel",…,"correlation_id": */
    struct mtprof__chrome_ties *ties; /* NULL: none so far */
    int64_t alloc_ns;                 /* shown time of the latest allocation, since base */
} mtprof__chrome_track;

/* ---- the whole ------------------------------------------------------------------------------- */
typedef struct mtprof__chrome {
    mtprof__export_job *job;
    mtb_writer *writer; /* the job's, or `aside` while a span is held back */
    mtb_writer aside;
    struct mtprof__chrome_ties *holding; /* what `aside` writes into */
    mtprof_model *model;
    bool mindtorch, lean, rebuild_frames, several_tasks;
    int64_t shift_ns, base_ns; /* trace time + shift = time since base; base is Unix time */
    int64_t time_first;        /* times from here have the digits of time_text before their */
    uint64_t time_count;       /* last eight; so many, 0: none so far */
    uint32_t time_digits;
    char time_text[24];
    mtprof__slow_number last_id, last_index, last_sequence;
    mtb_writer scratch; /* where pieces are made */
    mtprof__name_slot *names;
    mtprof__inputs_slot *inputs;
    mtprof__stack_slot *stacks;
    mtprof__piece on_host, on_device; /* ,"device_type":"CPU"; lean: empty */
    mtprof__piece tails[2];           /* ,"device_type":"CPU","step":3: on the host, dispatched */
    int32_t tail_steps[2];            /* the step of each; -1: none */
    mtprof__chrome_track *tracks;
    mtprof__chrome_track nowhere; /* where memory was refused */
    char nothing[MTPROF__PIECE_PAD];
    size_t n_tracks, tracks_capacity;
    int64_t device_pids[256]; /* where device_known */
    bool device_known[256];
    uint32_t n_other_devices; /* of another type than the first */
    int64_t overhead_end_ns;  /* on the track of all overheads */
    mtprof__forwards forwards;
    mtprof__forwards replays; /* work of graphs' nodes */
    uint64_t n_forward_flows, n_replay_flows;
    struct mtprof__chrome_modules *modules; /* NULL: none were recorded */
    mtprof__frame_stack *frames;
    uint64_t next_point;  /* "Ev Idx" of the next allocation; 0: not asked yet, UINT64_MAX: none */
    bool first_written;   /* traceEvents[0] is settled */
    uint64_t first_index; /* of the event that was written ahead; UINT64_MAX: none */
    int error;            /* a failure inside: MTPROF_ENOMEM; writing goes on into nothing */
} mtprof__chrome;

/* chrome_text.c. init fails with ENOMEM; fini also then. */
int mtprof__chrome_text_init(mtprof__chrome *chrome);
void mtprof__chrome_text_fini(mtprof__chrome *chrome);
/* An empty scratch to write a piece into; then keep it. */
mtb_writer *mtprof__chrome_scratch(mtprof__chrome *chrome);
/* Whether the scratch fits (at most `most` bytes) and was kept in the piece. */
bool mtprof__chrome_keep(mtprof__chrome *chrome, mtprof__piece *piece, size_t most);
void mtprof__piece_fini(mtprof__piece *piece);
/* Nanoseconds since base_ns of a time of the trace, never negative (CH3). */
MT_INLINE int64_t mtprof__chrome_since_base(const mtprof__chrome *chrome, int64_t trace_ns)
{
    int64_t ns = mtb_add_sat(trace_ns, chrome->shift_ns);
    return ns < 0 ? 0 : ns;
}
/* Notes the upper digits of a time, which change every 0.1 s. */
void mtprof__chrome_set_time(mtprof__chrome *chrome, int64_t ns);

/* That time as microseconds; at most 24 bytes are touched. */
MT_INLINE char *mtprof__chrome_put_ns(mtprof__chrome *chrome, char *at, int64_t ns)
{
    if (MT_UNLIKELY((uint64_t)(ns - chrome->time_first) >= chrome->time_count)) {
        if (ns < MTB_EIGHT_DIGITS) {
            return mtb_put_thousandths(at, ns);
        }
        mtprof__chrome_set_time(chrome, ns);
    }
    memcpy(at, chrome->time_text, 16); /* at most 12 of them count */
    at += chrome->time_digits;
    uint64_t digits = mtb_eight_digits((uint32_t)(ns - chrome->time_first));
    uint32_t rest = (uint32_t)(digits >> 40);
    memcpy(at, &digits, 8);
    at[5] = '.';
    memcpy(at + 6, &rest, 4);
    return at + 9;
}

void mtprof__chrome_write_ns(mtprof__chrome *chrome, int64_t ns);
/* What is known of a track; never NULL. */
mtprof__chrome_track *mtprof__chrome_track_find(mtprof__chrome *chrome, uint32_t number);
MT_INLINE mtprof__chrome_track *mtprof__chrome_track_of(mtprof__chrome *chrome, uint32_t track)
{
    if (MT_LIKELY(track < chrome->n_tracks && chrome->tracks[track].known)) {
        return &chrome->tracks[track];
    }
    return mtprof__chrome_track_find(chrome, track);
}
/* Makes the head of an event and keeps it; NULL: it is too long. */
const mtprof__piece *mtprof__chrome_head_keep(mtprof__chrome *chrome, const mtprof__event *event);

/* The places of heads in the cache, by name and kind: kinds of one category have several. */
MT_INLINE uint64_t mtprof__chrome_head_key(const mtprof__event *event)
{
    return ((uint64_t)event->name << 8 | event->kind) + 1;
}

MT_INLINE mtprof__name_slot *mtprof__chrome_head_slot(const mtprof__chrome *chrome, uint64_t key)
{
    static_assert(MTPROF__NAME_SLOTS == 1 << 12, "52 + 12 bits");
    return &chrome->names[(key * 0x9E3779B97F4A7C15u) >> 52];
}

/* {"ph":"X","cat":"…","name":"…", of an event; NULL: too long to
 * keep, write it with mtprof__chrome_write_head(). */
MT_INLINE const mtprof__piece *mtprof__chrome_head(mtprof__chrome *chrome,
                                                   const mtprof__event *event)
{
    uint64_t key = mtprof__chrome_head_key(event);
    const mtprof__name_slot *slot = mtprof__chrome_head_slot(chrome, key);
    return MT_LIKELY(slot->key == key) ? &slot->head : mtprof__chrome_head_keep(chrome, event);
}
void mtprof__chrome_write_head(mtb_writer *writer, const mtprof__chrome *chrome, const char *phase,
                               const mtprof__event *event);
/* The same for a span, from the cache where it is there. */
void mtprof__chrome_write_kept_head(mtprof__chrome *chrome, const mtprof__event *event);
/* "pid":1,"tid":2,"ts":3.000,"dur":4.000 of a span, from times of the trace. */
void mtprof__chrome_write_times(mtprof__chrome *chrome, const mtprof__chrome_track *track,
                                int64_t start_ns, int64_t end_ns);
/* "cpu_op" …, as the flavor has it. */
const char *mtprof__chrome_category(const mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_ties.c: to be called before a span of a thread's track is written. Whether it is held
 * back: then mtprof__chrome_held() is to be called when it was written. tied: something around it
 * on its track has the same start. */
bool mtprof__chrome_hold(mtprof__chrome *chrome, mtprof__chrome_track *track, int64_t start_ns,
                         int64_t end_ns, bool tied);
void mtprof__chrome_held(mtprof__chrome *chrome, const mtprof__chrome_track *track, uint64_t order,
                         bool tied);
/* Writes what a track, or each track, holds back. */
void mtprof__chrome_ties_flush(mtprof__chrome *chrome, const mtprof__chrome_track *track);
void mtprof__chrome_ties_finish(mtprof__chrome *chrome);
void mtprof__chrome_ties_fini(mtprof__chrome *chrome);

/* Whether mtprof__chrome_hold() needs to be asked. */
MT_INLINE bool mtprof__chrome_may_hold(const mtprof__chrome_track *track, bool tied)
{
    return MT_UNLIKELY(tied || track->ties != NULL);
}

/* chrome_span.c. track: the event's; tied: as above. */
void mtprof__chrome_host_span(mtprof__chrome *chrome, const mtprof__event *event,
                              mtprof__chrome_track *track, bool tied);
void mtprof__chrome_async_span(mtprof__chrome *chrome, const mtprof__event *event);
/* A launch without a scope, and a call that a source saw. */
void mtprof__chrome_launch(mtprof__chrome *chrome, const mtprof__event *event);
void mtprof__chrome_overhead(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_args.c: keys that args may have, so that a user's key never appears twice. */
#define MTPROF__CHROME_KEYS(X)               \
    X(EXTERNAL_ID, "External id")            \
    X(RECORD_FUNCTION, "Record function id") \
    X(EV_IDX, "Ev Idx")                      \
    X(SEQUENCE, "Sequence number")           \
    X(FORWARD_THREAD, "Fwd thread id")       \
    X(CONCRETE, "Concrete Inputs")           \
    X(TYPES, "Input type")                   \
    X(STRIDES, "Input Strides")              \
    X(DIMS, "Input Dims")                    \
    X(SHAPES, "input_shapes")                \
    X(RUNTIME_NAME, "runtime_name")          \
    X(RUNTIME_TID, "runtime_tid")            \
    X(CORRELATION_ID, "correlation_id")      \
    X(CORRELATION, "correlation")            \
    X(DEVICE_TYPE, "device_type")            \
    X(STEP, "step")                          \
    X(FLOPS, "flops")                        \
    X(OVERLOAD, "overload_name")             \
    X(RECORD_SCOPE, "record_scope")          \
    X(MODULE, "Module Hierarchy")            \
    X(CALL_STACK, "Call stack")              \
    X(STACK, "stack")                        \
    X(PARENT_ID, "parent_id")                \
    X(ASYNC, "async")                        \
    X(TRUNCATED, "truncated")                \
    X(RECORDED_TS, "recorded_ts")            \
    X(RECORDED_DUR, "recorded_dur")          \
    X(PYTHON_ID, "Python id")                \
    X(PYTHON_PARENT, "Python parent id")     \
    X(PYTHON_MODULE, "Python module id")     \
    X(PYTHON_THREAD, "Python thread")        \
    X(SAMPLED, "sampled")                    \
    X(DEVICE, "device")                      \
    X(STREAM, "stream")                      \
    X(BYTES, "bytes")                        \
    X(BANDWIDTH, "memory bandwidth (GB/s)")

enum mtprof__chrome_key {
#define X(NAME, text) MTPROF__KEY_##NAME,
    MTPROF__CHROME_KEYS(X)
#undef X
    MTPROF__KEY_COUNT
};
#define MTPROF__KEY_BIT(NAME) ((uint64_t)1 << MTPROF__KEY_##NAME)

MT_INLINE uint32_t mtprof__payload_scalars(const mtprof__payload *payload)
{
    return (payload->fields & MTPROF__HAS_SCALARS) != 0 ? payload->n_scalars : 0;
}

MT_INLINE mtprof__inputs_slot *mtprof__chrome_inputs_slot(const mtprof__chrome *chrome,
                                                          uint32_t inputs)
{
    static_assert(MTPROF__INPUTS_SLOTS == 1 << 11, "21 + 11 bits");
    return &chrome->inputs[(inputs * 0x9E3779B1u) >> 21];
}

/* Makes the text of a list with these values and keeps it; NULL: it is not to be kept. */
const mtprof__inputs_slot *mtprof__chrome_inputs_keep(mtprof__chrome *chrome,
                                                      const mtprof__payload *payload);

/* The slot that has the text of an event's inputs; NULL: write it. */
MT_INLINE const mtprof__inputs_slot *mtprof__chrome_inputs(mtprof__chrome *chrome,
                                                           const mtprof__payload *payload)
{
    const mtprof__inputs_slot *slot = mtprof__chrome_inputs_slot(chrome, payload->inputs);
    uint32_t n_scalars = mtprof__payload_scalars(payload);
    if (MT_LIKELY(slot->key == payload->inputs && slot->n_scalars == n_scalars && slot->key != 0)) {
        uint64_t differ = 0;
        for (uint32_t i = 0; i < n_scalars; i++) {
            differ |= slot->scalars[i] ^ payload->scalars[i];
        }
        if (MT_LIKELY(differ == 0)) {
            return slot;
        }
    }
    return mtprof__chrome_inputs_keep(chrome, payload);
}

/* Inputs without a slot; the facts of the list (inputs_text.h). */
uint32_t mtprof__chrome_inputs_write(mtprof__chrome *chrome, const mtprof__payload *payload);

/* The rare args: flops, memory, stacks, flags, keyword inputs, metadata. */
void mtprof__chrome_extras(mtprof__chrome *chrome, const mtprof__event *event, uint32_t facts,
                           uint64_t keys);
/* Fields of a payload that are written without extras, or not at all. */
enum {
    MTPROF__USUAL_FIELDS = MTPROF__HAS_INPUTS | MTPROF__HAS_SCALARS | MTPROF__HAS_SEQUENCE |
                           MTPROF__HAS_FORWARD_THREAD | MTPROF__HAS_RECORD_SCOPE |
                           MTPROF__HAS_FOREIGN_ID | MTPROF__HAS_TENSORS_IN | MTPROF__HAS_TENSORS_OUT
};

/* Where a reader that nests by time would not find the parent, it is written. */
MT_INLINE bool mtprof__chrome_needs_parent(const mtprof__event *event)
{
    return (event->flags & (MTPROF_EVENT_FLAG_FOREIGN_PARENT | MTPROF_EVENT_FLAG_ASYNC |
                            MTPROF_EVENT_FLAG_OVERLAP)) != 0 ||
           event->tied != 0 || event->shown_end_ns <= event->shown_start_ns;
}

/* Whether it is shown elsewhere than it was recorded, so that its track nests. */
MT_INLINE bool mtprof__chrome_is_moved(const mtprof__event *event)
{
    return ((event->shown_start_ns ^ event->start_ns) | (event->shown_end_ns ^ event->end_ns)) != 0;
}

/* Whether extras would write anything. */
MT_INLINE bool mtprof__chrome_has_extras(const mtprof__event *event, uint32_t facts)
{
    const mtprof__payload *payload = event->payload;
    return mtprof__chrome_needs_parent(event) || mtprof__chrome_is_moved(event) ||
           (event->flags & MTPROF_EVENT_FLAG_TRUNCATED) != 0 ||
           (facts & MTPROF__INPUTS_KEYWORDS) != 0 ||
           (payload != NULL &&
            ((payload->fields & ~(uint32_t)MTPROF__USUAL_FIELDS) != 0 ||
             ((payload->fields & MTPROF__HAS_RECORD_SCOPE) != 0 && payload->record_scope != 0)));
}

/* ,"recorded_ts":1.000,"recorded_dur":2.000: where it was before it was moved. */
void mtprof__chrome_recorded(mtprof__chrome *chrome, const mtprof__event *event);
/* Metadata as further members, each with "," before it; keys that are there already are left out.
 */
void mtprof__chrome_metadata(mtprof__chrome *chrome, const mtprof__payload *payload, uint64_t keys);

/* chrome_device.c */
/* The process number of a device; devices appear while the stream is read. */
int64_t mtprof__chrome_device_pid(mtprof__chrome *chrome, uint32_t number);
void mtprof__chrome_device_span(mtprof__chrome *chrome, const mtprof__event *event);
/* One end of a flow of ours: phase 's' or 'f'; name is also its category. */
void mtprof__chrome_flow(mtprof__chrome *chrome, char phase, const char *name, uint64_t id,
                         uint32_t track_number, int64_t trace_ns);

/* chrome_point.c */
void mtprof__chrome_point(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_forward.c: to be called for each op with a sequence number at its end; with its thread. */
void mtprof__chrome_forward(mtprof__chrome *chrome, const mtprof__event *event, uint32_t thread);

/* chrome_frames.c: an end on a thread, where stacks were recorded or the event is a function.
 * Writes the span of a function too. Whether the event is tied, to frames also. */
int mtprof__chrome_frames_init(mtprof__chrome *chrome);
bool mtprof__chrome_frames_end(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_modules.c, where modules were recorded: at each begin and end on a thread. The end gives
 * the event as it is to be shown: itself, or one made of the two places. */
int mtprof__chrome_modules_init(mtprof__chrome *chrome);
void mtprof__chrome_modules_fini(mtprof__chrome *chrome);
void mtprof__chrome_modules_begin(mtprof__chrome *chrome, const mtprof__event *event);
const mtprof__event *mtprof__chrome_modules_end(mtprof__chrome *chrome, const mtprof__event *event,
                                                mtprof__event *shown, mtprof__payload *payload);

/* chrome_header.c */
void mtprof__chrome_header(mtprof__chrome *chrome);
void mtprof__chrome_trailer(mtprof__chrome *chrome);

#endif /* MTPROF_EXPORT_CHROME_EXPORT_CHROME_IMPL_H */
