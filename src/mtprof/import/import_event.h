/* SPDX-License-Identifier: Apache-2.0
 *
 * One entry of "traceEvents" as slices of the text: what import_add.c makes an event of.
 *
 * One pass over the entry, in whatever order its members come. Arguments that are understood go to
 * their place in `args`; the others are listed unchanged. Nothing is copied or decoded here.
 */
#ifndef MTPROF_IMPORT_IMPORT_EVENT_H
#define MTPROF_IMPORT_IMPORT_EVENT_H

#include "base/json/json_scan.h"

#include <mtprof/reader.h>

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, key): arguments that are understood. */
#define MTPROF__ARGS(X)                          \
    X(EXTERNAL_ID, "External id")                \
    X(EXTERNAL_ID_OLD, "external id")            \
    X(CORRELATION, "correlation")                \
    X(INDEX, "Ev Idx")                           \
    X(SEQUENCE, "Sequence number")               \
    X(FORWARD_THREAD, "Fwd thread id")           \
    X(RECORD_FUNCTION, "Record function id")     \
    X(DIMS, "Input Dims")                        \
    X(STRIDES, "Input Strides")                  \
    X(TYPES, "Input type")                       \
    X(CONCRETE, "Concrete Inputs")               \
    X(CALL_STACK, "Call stack")                  \
    X(HIERARCHY, "Module Hierarchy")             \
    X(DEVICE, "device")                          \
    X(STREAM, "stream")                          \
    X(BYTES, "bytes")                            \
    X(MEMORY_ADDRESS, "Addr")                    \
    X(MEMORY_BYTES, "Bytes")                     \
    X(MEMORY_DEVICE_TYPE, "Device Type")         \
    X(MEMORY_DEVICE_ID, "Device Id")             \
    X(MEMORY_ALLOCATED, "Total Allocated")       \
    X(MEMORY_RESERVED, "Total Reserved")         \
    X(FINISHED, "finished")                      \
    X(NAME, "name")                              \
    X(LABELS, "labels")                          \
    X(SORT_INDEX, "sort_index")                  \
    /* ours */                                   \
    X(CORRELATION_ID, "correlation_id")          \
    X(PARENT_ID, "parent_id")                    \
    X(ASYNC, "async")                            \
    X(STEP, "step")                              \
    X(DEVICE_KIND, "device_type")                \
    X(RUNTIME_NAME, "runtime_name")              \
    X(RUNTIME_TID, "runtime_tid")                \
    X(SHAPES, "input_shapes")                    \
    X(STACK, "stack")                            \
    X(FLOPS, "flops")                            \
    X(OVERLOAD, "overload_name")                 \
    X(RECORD_SCOPE, "record_scope")              \
    X(MODULE, "module")                          \
    X(RECORDED_TS, "recorded_ts")                \
    X(RECORDED_DUR, "recorded_dur")              \
    X(SAMPLED, "sampled")                        \
    X(CPU_BEFORE, "cpu_memory_allocated_before") \
    X(CPU_AFTER, "cpu_memory_allocated_after")   \
    X(CPU_DELTA, "cpu_memory_allocated_delta")   \
    X(NPU_BEFORE, "npu_memory_allocated_before") \
    X(NPU_AFTER, "npu_memory_allocated_after")   \
    X(NPU_DELTA, "npu_memory_allocated_delta")

enum mtprof__arg {
#define MTPROF__I_ARG(name, key) MTPROF__ARG_##name,
    MTPROF__ARGS(MTPROF__I_ARG)
#undef MTPROF__I_ARG
    MTPROF__ARG_COUNT
};

enum {
    MTPROF__OTHER_ARGS = 64 /* arguments that are not understood; more are left out, and counted */
};

typedef struct mtprof__other_arg {
    mtb_slice key, value;
} mtprof__other_arg;

typedef struct mtprof__raw_event {
    mtb_slice name, category, pid, tid, id;
    int64_t ts_ns, dur_ns;
    bool has_ts, has_dur;
    char phase; /* 0: none */
    char scope; /* "s" of an instant */
    uint32_t n_others, others_dropped;
    uint64_t known; /* bit per enum mtprof__arg */
    mtb_slice args[MTPROF__ARG_COUNT];
    mtprof__other_arg others[MTPROF__OTHER_ARGS];
} mtprof__raw_event;

/* The argument, or NULL where the entry has none. */
MT_INLINE const mtb_slice *mtprof__raw_arg(const mtprof__raw_event *event, unsigned arg)
{
    return (event->known >> arg & 1) != 0 ? &event->args[arg] : NULL;
}

/* Whether the argument is a whole number; *out stays where it is not. */
MT_INLINE bool mtprof__raw_integer(const mtprof__raw_event *event, unsigned arg, int64_t *out)
{
    const mtb_slice *slice = mtprof__raw_arg(event, arg);
    return slice != NULL && mtb_slice_integer(slice, out);
}

/* Which argument a key names; MTPROF__ARG_COUNT: none that is understood. */
unsigned mtprof__arg_of(const char *key, size_t length);

/* The key of an argument. */
mtprof_text mtprof__arg_key(unsigned arg);

/* The entry at scan->at, which is an opening brace. Returns an enum mtb_scan_status. */
int mtprof__scan_event(mtb_scan *scan, mtprof__raw_event *event);

#endif /* MTPROF_IMPORT_IMPORT_EVENT_H */
