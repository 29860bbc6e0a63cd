/* SPDX-License-Identifier: Apache-2.0
 *
 * The Chrome/kineto exporter from inside.
 *
 *     event stream ─► export_chrome.c (which event is what)
 *                      ├─ chrome_span.c     host spans: ops, scopes, runtime calls
 *                      ├─ chrome_args.c     what stands in their args
 *                      ├─ chrome_device.c   device work, flows from its launch
 *                      ├─ chrome_point.c    instants, counters, flows, allocations
 *                      ├─ chrome_forward.c  forward to backward flows
 *                      ├─ chrome_frames.c   python_function spans
 *                      └─ chrome_header.c   what stands before and behind the events
 *     chrome_text.c: pieces of text that are made once and copied often
 *
 *   C1  Every event ends in ",\n"; the last one of a file is always "Record Window End".
 *   C2  Memory is bounded: caches have a fixed number of places and refuse long texts, tables of
 *       pending things have a largest size, the rest is per track.
 *   C3  Times are shown times plus shift_ns, never negative.
 */
#ifndef MTPROF_EXPORT_EXPORT_CHROME_IMPL_H
#define MTPROF_EXPORT_EXPORT_CHROME_IMPL_H

#include "mtprof/export/export_impl.h"
#include "mtprof/model/inputs_text.h"

#include <string.h>

/* ---- pieces of text -----------------------------------------------------------------------------
 */
enum {
    MTPROF__PIECE_PAD = 64,    /* readable bytes behind each text: short copies have a fixed size */
    MTPROF__PIECE_MOST = 1536, /* longest text that is kept */
    MTPROF__STACK_MOST = 16 * 1024
};

typedef struct mtprof__piece {
    char *text; /* NULL: none */
    uint32_t length, capacity;
    uint32_t replaced; /* bytes of it that were no UTF-8 */
} mtprof__piece;

/* Copies 64 bytes always, so that the usual case has no loop; there must be room for that. */
MT_INLINE char *mtprof__put_piece(char *at, const mtprof__piece *piece)
{
    memcpy(at, piece->text, MTPROF__PIECE_PAD);
    if (piece->length > MTPROF__PIECE_PAD) {
        memcpy(at + MTPROF__PIECE_PAD, piece->text + MTPROF__PIECE_PAD,
               piece->length - MTPROF__PIECE_PAD);
    }
    return at + piece->length;
}

#define MTPROF__PUT(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

/* One place of a direct-mapped cache; key 0: empty. */
typedef struct mtprof__name_slot {
    uint64_t key;
    mtprof__piece head; /* {"ph": "X", "cat": "cpu_op", "name": "aten::add", */
} mtprof__name_slot;

enum {
    MTPROF__SCALARS_KEPT = 12
};

typedef struct mtprof__inputs_slot {
    uint32_t key, facts;
    mtprof__piece fixed;    /* , "Input type": … "input_shapes": … */
    mtprof__piece concrete; /* , "Concrete Inputs": … of the scalars below */
    uint32_t n_scalars;
    uint64_t scalars[MTPROF__SCALARS_KEPT];
} mtprof__inputs_slot;

typedef struct mtprof__stack_slot {
    uint32_t key;
    mtprof__piece text; /* , "Call stack": "…", "stack": […] */
} mtprof__stack_slot;

enum {
    MTPROF__NAME_SLOTS = 4096,
    MTPROF__INPUTS_SLOTS = 2048,
    MTPROF__STACK_SLOTS = 512
};

/* ---- per track ----------------------------------------------------------------------------------
 */
typedef struct mtprof__chrome_track {
    bool known, seen;
    bool is_thread;
    uint32_t number; /* logical thread, or queue */
    int64_t pid, tid;
    mtprof__piece place;   /* "pid": 515, "tid": 515, "ts": */
    mtprof__piece op_tail; /* , "runtime_name": "dispatch_kernel", …, "correlation_id": */
    struct mtprof__chrome_frames *frames;
} mtprof__chrome_track;

/* ---- the whole ----------------------------------------------------------------------------------
 */
typedef struct mtprof__chrome {
    mtprof__export_job *job;
    mtb_writer *writer;
    mtprof_model *model;
    bool mindtorch, rebuild_frames;
    int64_t shift_ns, base_ns; /* trace time + shift = time since base; base is Unix time */
    int64_t time_high;         /* digits of the last time, without its last eight */
    uint32_t time_digits;
    char time_text[24];
    mtb_writer scratch; /* where pieces are made */
    mtprof__name_slot *names;
    mtprof__inputs_slot *inputs;
    mtprof__stack_slot *stacks;
    mtprof__piece on_host, on_device; /* , "device_type": "CPU" */
    mtprof__chrome_track *tracks;
    mtprof__chrome_track nowhere; /* where memory was refused */
    char nothing[MTPROF__PIECE_PAD];
    size_t n_tracks, tracks_capacity;
    int64_t device_pids[256];
    int64_t overhead_end_ns; /* on the track of all overheads */
    struct mtprof__forwards *forwards;
    uint64_t python_ids; /* handed out so far */
    struct mtprof__stack_pair *frame_room;
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
/* Nanoseconds since base_ns of a time of the trace, never negative (C3). */
int64_t mtprof__chrome_since_base(const mtprof__chrome *chrome, int64_t trace_ns);
/* That time as microseconds; at most 24 bytes. */
char *mtprof__chrome_put_ns(mtprof__chrome *chrome, char *at, int64_t ns);
void mtprof__chrome_write_ns(mtprof__chrome *chrome, int64_t ns);
/* What is known of a track; never NULL. */
mtprof__chrome_track *mtprof__chrome_track_of(mtprof__chrome *chrome, uint32_t track);
/* {"ph": "X", "cat": "…", "name": "…", of an event, with its blank behind; NULL: too long to keep,
 * write it with mtprof__chrome_write_head(). */
const mtprof__piece *mtprof__chrome_head(mtprof__chrome *chrome, const mtprof__event *event);
void mtprof__chrome_write_head(mtb_writer *writer, const mtprof__chrome *chrome, const char *phase,
                               const mtprof__event *event);
/* "cpu_op" …, as the flavor has it. */
const char *mtprof__chrome_category(const mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_span.c */
void mtprof__chrome_host_span(mtprof__chrome *chrome, const mtprof__event *event);
void mtprof__chrome_async_span(mtprof__chrome *chrome, const mtprof__event *event);
/* A launch without a scope, and a call that a source saw. */
void mtprof__chrome_launch(mtprof__chrome *chrome, const mtprof__event *event);
void mtprof__chrome_overhead(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_args.c: keys that may stand in args, so that a user's key never stands there twice. */
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
    X(MODULE, "Module Hierarchy")            \
    X(CALL_STACK, "Call stack")              \
    X(STACK, "stack")                        \
    X(PARENT_ID, "parent_id")                \
    X(ASYNC, "async")                        \
    X(TRUNCATED, "truncated")                \
    X(PYTHON_ID, "Python id")                \
    X(PYTHON_PARENT, "Python parent id")     \
    X(PYTHON_MODULE, "Python module id")     \
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

/* Inputs of an event, from the cache where it has them; sets the bits of what is written and
 * returns the list's facts (inputs_text.h). */
uint32_t mtprof__chrome_inputs(mtprof__chrome *chrome, const mtprof__payload *payload,
                               uint64_t *keys);
/* What is behind the usual: flops, memory, stacks, flags, keyword inputs, metadata. */
void mtprof__chrome_extras(mtprof__chrome *chrome, const mtprof__event *event, uint32_t facts,
                           uint64_t keys);
/* Whether extras would write anything. */
bool mtprof__chrome_has_extras(const mtprof__event *event, uint32_t facts);
/* Metadata as further members, each with ", " before it; keys that are there already are left out.
 */
void mtprof__chrome_metadata(mtprof__chrome *chrome, const mtprof__payload *payload, uint64_t keys);
/* The metadatum of a key; NULL: none. */
const mtprof_metadatum *mtprof__chrome_find(const mtprof__event *event, const char *key);

/* chrome_device.c */
void mtprof__chrome_device_init(mtprof__chrome *chrome);
void mtprof__chrome_device_span(mtprof__chrome *chrome, const mtprof__event *event);
/* One end of a flow of ours: phase 's' or 'f'; name is also its category. */
void mtprof__chrome_flow(mtprof__chrome *chrome, char phase, const char *name, uint64_t id,
                         uint32_t track, int64_t trace_ns);

/* chrome_point.c */
void mtprof__chrome_point(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_forward.c: to be called for each host event at its end. */
int mtprof__chrome_forward_init(mtprof__chrome *chrome);
void mtprof__chrome_forward_fini(mtprof__chrome *chrome);
void mtprof__chrome_forward(mtprof__chrome *chrome, const mtprof__event *event);

/* chrome_frames.c: to be called at each begin and end on a thread, where stacks were recorded or
 * the event is a function. */
void mtprof__chrome_frames_begin(mtprof__chrome *chrome, const mtprof__event *event);
/* Writes the span of a function too. */
void mtprof__chrome_frames_end(mtprof__chrome *chrome, const mtprof__event *event);
/* Closes what is still open on every track. */
void mtprof__chrome_frames_finish(mtprof__chrome *chrome);
void mtprof__chrome_frames_fini(mtprof__chrome *chrome);

/* chrome_header.c */
void mtprof__chrome_header(mtprof__chrome *chrome);
void mtprof__chrome_trailer(mtprof__chrome *chrome);

#endif /* MTPROF_EXPORT_EXPORT_CHROME_IMPL_H */
