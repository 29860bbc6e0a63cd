/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the .mtt format, version 1.0. The prose is docs/format.md; the two say the same.
 */
#ifndef MTPROF_FORMAT_H
#define MTPROF_FORMAT_H

#include <stdint.h>

#define MTPROF_FILE_MAGIC    0x0A4543415254544Du /* "MTTRACE\n" as a little-endian word (8 bytes) */
#define MTPROF_FORMAT_MAJOR  1
#define MTPROF_FORMAT_MINOR  0
#define MTPROF_HEADER_BYTES  4096
#define MTPROF_CHUNK_MAGIC   0x4B43544Du /* "MTCK" */
#define MTPROF_CHUNK_ALIGN   4096
#define MTPROF_CHUNK_HEADER  64
#define MTPROF_CHUNK_MAX     (1u << 30)
#define MTPROF_CLOSED_MARK   0x444E4543u /* "CEND" */
#define MTPROF_PERIOD_SHIFT  56
#define MTPROF_HEALTH_COUNT  32
#define MTPROF_ORDINAL_BITS  40
#define MTPROF_SHORT_TIME    40
#define MTPROF_KEY_STRUCTURE UINT64_MAX /* BEGIN_X: the parent is the innermost open scope */

/** Which stream a chunk belongs to. */
enum mtprof_stream_kind {
    MTPROF_STREAM_DEFINITIONS = 1,
    MTPROF_STREAM_CONTROL = 2,
    MTPROF_STREAM_THREAD = 3,
    MTPROF_STREAM_SOURCE = 4
};

enum mtprof_chunk_state {
    MTPROF_CHUNK_OPEN = 0,
    MTPROF_CHUNK_SEALED = 1,
    MTPROF_CHUNK_CHECKED = 2 /**< sealed, data_crc is valid */
};

/** What happens when a session's buffer_bytes are full. */
enum mtprof_policy {
    MTPROF_POLICY_SPILL = 0, /**< go on in a temporary file (with a path: in the file, no limit) */
    MTPROF_POLICY_RING = 1,  /**< discard the oldest */
    MTPROF_POLICY_STOP = 2   /**< keep the oldest; what comes later is counted as lost */
};

/** Kinds of records. Bit 7 set: the record is a single word. */
enum mtprof_record_kind {
    MTPROF_REC_BEGIN = 0x01,
    MTPROF_REC_BEGIN_X = 0x02,
    MTPROF_REC_END_X = 0x03,
    MTPROF_REC_INSTANT = 0x04,
    MTPROF_REC_COUNTER = 0x05,
    MTPROF_REC_FLOW = 0x06,
    MTPROF_REC_LAUNCH = 0x07,
    MTPROF_REC_ALLOC = 0x08,
    MTPROF_REC_TIME = 0x09,
    MTPROF_REC_EPOCH = 0x0A,
    MTPROF_REC_THREAD = 0x0B,
    MTPROF_REC_RESERVED = 0x0C,
    MTPROF_REC_LOST = 0x0D,
    MTPROF_REC_META = 0x0E,
    MTPROF_REC_NAME = 0x0F,
    MTPROF_REC_INPUTS_INLINE = 0x10,
    MTPROF_REC_SCALARS = 0x11,
    MTPROF_REC_TENSORS = 0x12,
    MTPROF_REC_OPINFO = 0x13,
    MTPROF_REC_ATTACH = 0x14,
    MTPROF_REC_OUT_OF_MEMORY = 0x15,

    MTPROF_REC_DEF_STRING = 0x20,
    MTPROF_REC_DEF_INPUTS = 0x21,
    MTPROF_REC_DEF_FRAME = 0x22,
    MTPROF_REC_DEF_STACK = 0x23,
    MTPROF_REC_DEF_THREAD = 0x24,
    MTPROF_REC_DEF_SOURCE = 0x25,
    MTPROF_REC_DEF_MODULE = 0x26,

    MTPROF_REC_ACTIVITY = 0x30,
    MTPROF_REC_CLOCK_PAIR = 0x31,

    MTPROF_REC_ANCHOR = 0x40,
    MTPROF_REC_WINDOW_OPEN = 0x41,
    MTPROF_REC_WINDOW_CLOSE = 0x42,
    MTPROF_REC_STEP = 0x43,
    MTPROF_REC_TRACE_META = 0x44,
    MTPROF_REC_WARNING = 0x45,
    MTPROF_REC_LIMIT = 0x46,
    MTPROF_REC_UNRECORDED = 0x47,

    MTPROF_REC_END = 0x80,
    MTPROF_REC_INPUTS = 0x81,
    MTPROF_REC_STACK = 0x82,
    MTPROF_REC_MEM_BEFORE = 0x83,
    MTPROF_REC_MEM_AFTER = 0x84
};

/** Begin flags: aux of BEGIN, BEGIN_X, INSTANT and LAUNCH. */
enum mtprof_begin_flag {
    MTPROF_KIND_SCOPE = 0,
    MTPROF_KIND_OP = 1,
    MTPROF_KIND_RUNTIME = 2,
    MTPROF_KIND_FUNCTION = 3,
    MTPROF_KIND_STEP = 4,
    MTPROF_KIND_MASK = 0x0F,
    MTPROF_FLAG_LAUNCH = 0x10,
    MTPROF_FLAG_DEVICE = 0x20,
    MTPROF_FLAG_PAYLOAD = 0x40,
    MTPROF_FLAG_ASYNC = 0x80
};

/** Value types of META. */
enum mtprof_meta_type {
    MTPROF_META_INT = 0,
    MTPROF_META_UINT = 1,
    MTPROF_META_REAL = 2, /**< the bits of a double */
    MTPROF_META_STRING = 3,
    MTPROF_META_BOOL = 4,
    MTPROF_META_TEXT = 5
};

/** Bits of OPINFO's mask. */
enum mtprof_opinfo_bit {
    MTPROF_OPINFO_SEQUENCE = 0,
    MTPROF_OPINFO_FORWARD_THREAD = 1,
    MTPROF_OPINFO_OVERLOAD = 2,
    MTPROF_OPINFO_RECORD_SCOPE = 3,
    MTPROF_OPINFO_FLOPS = 4,
    MTPROF_OPINFO_MODULE = 5,
    MTPROF_OPINFO_CORRELATION = 6
};

/** Record scopes that mean something to readers; others are the host's own. */
enum mtprof_record_scope {
    MTPROF_RECORD_SCOPE_BACKWARD = 1, /**< a function of the backward pass */
    MTPROF_RECORD_SCOPE_USER = 7      /**< what a scope is, unless its host says otherwise */
};

/** How a window was closed: aux of WINDOW_CLOSE. */
enum mtprof_window_close {
    MTPROF_CLOSE_SAVED = 0,
    MTPROF_CLOSE_DISCARDED = 1,
    MTPROF_CLOSE_PAUSED = 2, /**< the next epoch continues the same window */
    MTPROF_CLOSE_NONE = 3    /**< in no file: the epoch has no WINDOW_CLOSE (crash or live) */
};

/** Kinds of values in an input list. */
enum mtprof_input_kind {
    MTPROF_INPUT_NONE = 0,
    MTPROF_INPUT_TENSOR = 1,
    MTPROF_INPUT_LIST = 2,
    MTPROF_INPUT_INT = 3,
    MTPROF_INPUT_REAL = 4, /**< a double */
    MTPROF_INPUT_BOOL = 5,
    MTPROF_INPUT_STRING = 6,
    MTPROF_INPUT_KEYWORD = 7
};

/** Kinds of device activity. */
enum mtprof_activity_kind {
    MTPROF_ACTIVITY_KERNEL = 0,
    MTPROF_ACTIVITY_COPY = 1,
    MTPROF_ACTIVITY_SET = 2,
    MTPROF_ACTIVITY_RUNTIME = 3,
    MTPROF_ACTIVITY_SYNC = 4,
    MTPROF_ACTIVITY_ANNOTATION = 5,
    MTPROF_ACTIVITY_OTHER = 6,
    MTPROF_ACTIVITY_OVERHEAD = 7
};

/** Indices of the health counters. Those below MTPROF_HEALTH_LOST_END count lost events. */
enum mtprof_health_index {
    MTPROF_LOST_MEMORY = 0,
    MTPROF_LOST_DISK = 1,
    MTPROF_LOST_BUDGET = 2,
    MTPROF_LOST_NESTED = 3,
    MTPROF_LOST_THREADS = 4,
    MTPROF_LOST_TOO_LARGE = 5,
    MTPROF_LOST_SOURCE = 6,
    MTPROF_LOST_LATE = 7,
    MTPROF_LOST_DAMAGE = 8, /**< in a damaged part of the file that this one was recovered from */
    MTPROF_HEALTH_LOST_END = 16,
    MTPROF_HEALTH_STALLS = 16,
    MTPROF_HEALTH_RING_CHUNKS = 17,
    MTPROF_HEALTH_RING_BEGINS = 18,
    MTPROF_HEALTH_BUSY_AT_STOP = 19,
    MTPROF_HEALTH_TEXTS_CUT = 20,
    MTPROF_HEALTH_TRUNCATED = 21,
    MTPROF_HEALTH_BEGINS = 22,
    MTPROF_HEALTH_OTHERS = 23,
    MTPROF_HEALTH_LAUNCHES = 24,
    MTPROF_HEALTH_ACTIVITIES = 25,
    MTPROF_HEALTH_CLOCK_BACK = 26,
    MTPROF_HEALTH_WRITTEN_BEHIND = 27, /**< enum mtprof_file_trouble */
    MTPROF_HEALTH_CHUNKS = 28,         /**< of a closed file */
    MTPROF_HEALTH_STACKS_MISSED = 29,
    MTPROF_HEALTH_UNRECORDED = 30 /**< by the limit of the overhead; in part an estimate */
};

/** What a recording with a limit of its overhead (session.h) leaves out; each level more. */
enum mtprof_limit_level {
    MTPROF_LIMIT_NONE = 0,           /**< nothing */
    MTPROF_LIMIT_PAYLOADS = 1,       /**< payloads of events: inputs, stacks, memory … */
    MTPROF_LIMIT_OPS_SAMPLED = 2,    /**< of ops that come often, most */
    MTPROF_LIMIT_OPS_OFF = 3,        /**< ops and runtime calls */
    MTPROF_LIMIT_SCOPES_SAMPLED = 4, /**< marks, and of scopes that come often, most */
    MTPROF_LIMIT_STRETCHES = 5 /**< everything but steps, except for short stretches of time */
};
#define MTPROF_LIMIT_LEVELS 6

/** What an UNRECORDED counts: its aux. */
enum mtprof_unrecorded {
    MTPROF_UNRECORDED_SAMPLED = 0,  /**< events of a name, exactly */
    MTPROF_UNRECORDED_ESTIMATE = 1, /**< events that nobody counted, by their rate before */
    MTPROF_UNRECORDED_PAYLOADS = 2  /**< events that are there without their payloads */
};

/** What the file system of a trace refused. */
enum mtprof_file_trouble {
    MTPROF_FILE_BEHIND = 1 << 0,  /**< mmap: chunks were written when they were full */
    MTPROF_FILE_UNLOCKED = 1 << 1 /**< locks: another process could have recorded to the path */
};

/** What a tensor's memory is for, where the host knows. */
enum mtprof_tensor_role {
    MTPROF_TENSOR_ANY = 0, /**< not known: the memory timeline infers it where it can */
    MTPROF_TENSOR_PARAMETER = 1,
    MTPROF_TENSOR_GRADIENT = 2,
    MTPROF_TENSOR_OPTIMIZER_STATE = 3,
    MTPROF_TENSOR_INPUT = 4,
    /** Added to one of them: the op does not read the tensor, it only reports its role (the
     * gradient of a parameter it reads). `offset` is then the size of its storage in bytes. */
    MTPROF_TENSOR_NOT_READ = 1 << 8
};

/** Gate bits: what consumers want recorded. */
enum mtprof_want {
    MTPROF_WANT_OPS = 1 << 0,
    MTPROF_WANT_SCOPES = 1 << 1,
    MTPROF_WANT_RUNTIME = 1 << 2,
    MTPROF_WANT_MARKS = 1 << 3, /**< instants, counters, flows */
    MTPROF_WANT_INPUTS = 1 << 4,
    MTPROF_WANT_TENSORS = 1 << 5,
    MTPROF_WANT_STACKS = 1 << 6,
    MTPROF_WANT_MEMORY = 1 << 7,
    MTPROF_WANT_ALLOCS = 1 << 8,
    MTPROF_WANT_FLOPS = 1 << 9,
    MTPROF_WANT_MODULES = 1 << 10,
    MTPROF_WANT_DETAILS = 1 << 11,
    MTPROF_WANT_DEVICE = 1 << 12,
    MTPROF_WANT_STRIDES = 1 << 13,
    MTPROF_WANT_NATIVE_STACKS = 1 << 14,
    MTPROF_WANT_OVERLOADS = 1 << 15 /**< which overload an op is; kept with DETAILS */
};

#endif /* MTPROF_FORMAT_H */
