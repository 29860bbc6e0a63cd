/* SPDX-License-Identifier: Apache-2.0
 *
 * A model: what a trace says, as columns. One event is one index into every column.
 *
 *     .mtt file ─┐
 *     session   ─┼─► mtprof_model ─► columns ─► averages.h (tables)
 *     foreign   ─┘        └───────► event stream ─► export.h (files)
 *     JSON
 *
 * Opening is cheap; the columns are made when one is first requested, in one pass over each thread,
 * threads in parallel. Exports do not need them.
 *
 * Order: events are sorted by start, then longest first, then in the order in which they began
 * (the column INDEX). Times are nanoseconds on the trace's clock; add
 * mtprof_model_info.real_offset_ns for Unix time.
 *
 * Tree: PARENT is the scope that was innermost on the event's thread when it began, or the parent
 * that the program gave. Times follow the thread, not that parent: SELF_NS is the time in which no
 * other event of the thread ran inside it. Events that do not nest (MTPROF_EVENT_FLAG_ASYNC,
 * MTPROF_EVENT_FLAG_OVERLAP) have no self time and take none from others. So always, per thread:
 *
 *   MDL1  0 <= self <= end - start
 *   MDL2  the sum of self = the sum of (end - start) over events with MTPROF_EVENT_FLAG_TOP
 *         (functions of the host's language, MTPROF_EVENT_KIND_FUNCTION, are not part of this sum:
 *         they have self times of their own, less everything inside them, and are parents of
 *         functions only)
 *   MDL3  the sum of SELF_DEVICE_NS over host events with kernels = the sum of the durations of
 *         those
 *
 * Lifetime: everything returned lives as long as the model. Threads: any number may read one model.
 */
#ifndef MTPROF_MODEL_H
#define MTPROF_MODEL_H

#include <mtprof/api.h>
#include <mtprof/health.h>
#include <mtprof/profile.h>
#include <mtprof/reader.h>
#include <mtprof/session.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_model mtprof_model;

#define MTPROF_NO_EVENT UINT32_MAX

/** What an event is. Up to STEP as the recorder has it; device work is 8 + enum
 * mtprof_activity_kind. */
enum mtprof_event_kind {
    MTPROF_EVENT_KIND_SCOPE = 0, /**< a user's annotation */
    MTPROF_EVENT_KIND_OP = 1,
    MTPROF_EVENT_KIND_RUNTIME = 2,  /**< a call into a device's runtime */
    MTPROF_EVENT_KIND_FUNCTION = 3, /**< a function of the host's language */
    MTPROF_EVENT_KIND_STEP = 4,     /**< "ProfilerStep#7" */
    MTPROF_EVENT_KIND_LAUNCH = 5,   /**< a launch without a scope of its own: no duration */
    MTPROF_EVENT_KIND_KERNEL = 8,
    MTPROF_EVENT_KIND_COPY = 9,
    MTPROF_EVENT_KIND_SET = 10,
    MTPROF_EVENT_KIND_CALL = 11, /**< a runtime call as the source saw it: host time */
    MTPROF_EVENT_KIND_SYNC = 12,
    /** A user's annotation as seen from the device: from the first to the last piece of work
     * launched inside it on a queue. */
    MTPROF_EVENT_KIND_ANNOTATION = 13,
    MTPROF_EVENT_KIND_OTHER = 14,
    MTPROF_EVENT_KIND_OVERHEAD = 15,
    MTPROF_EVENT_KIND_MEMORY = 16,        /**< an allocation outside every scope */
    MTPROF_EVENT_KIND_OUT_OF_MEMORY = 17, /**< an allocation that was refused */
    MTPROF_EVENT_KIND_INSTANT = 24,       /**< this and what follows: in event streams only */
    MTPROF_EVENT_KIND_COUNTER = 25,
    MTPROF_EVENT_KIND_FLOW = 26,
    MTPROF_EVENT_KIND_ALLOC = 27
};

/** "scope", "op", "kernel" …; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_event_kind_name(uint32_t kind);

enum mtprof_event_flag {
    MTPROF_EVENT_FLAG_ASYNC = 1 << 0,   /**< by intent, or ended by another thread: does not nest */
    MTPROF_EVENT_FLAG_OVERLAP = 1 << 1, /**< outlived the scope around it: does not nest */
    /** Still open when its window closed, or where records of its thread are missing: it ends with
     * the last one before. */
    MTPROF_EVENT_FLAG_TRUNCATED = 1 << 2,
    MTPROF_EVENT_FLAG_DISPATCHED = 1 << 3, /**< host work for a device other than the CPU */
    MTPROF_EVENT_FLAG_LAUNCHES = 1 << 4,   /**< a device record is expected */
    MTPROF_EVENT_FLAG_TOP = 1 << 5,        /**< nests, and inside nothing on its thread */
    /** A launch that was answered, or device work whose host event was found. */
    MTPROF_EVENT_FLAG_MATCHED = 1 << 6,
    MTPROF_EVENT_FLAG_FOREIGN_PARENT = 1 << 7, /**< PARENT is on another thread */
    MTPROF_EVENT_FLAG_COLLAPSED = 1 << 8       /**< includes an only child of the same name */
};

/** Columns. Those up to FLAGS are always there (48 bytes an event). */
enum mtprof_column_id {
    MTPROF_COLUMN_START_NS = 0, /**< int64 */
    MTPROF_COLUMN_END_NS = 1,   /**< int64 */
    MTPROF_COLUMN_SELF_NS = 2,  /**< int64; 0 for device work and what does not nest */
    MTPROF_COLUMN_PARENT = 3,   /**< uint32: event, MTPROF_NO_EVENT */
    MTPROF_COLUMN_NAME = 4,     /**< uint32: mtprof_model_name() */
    MTPROF_COLUMN_TRACK = 5,    /**< uint32: mtprof_model_track(), a thread or a queue */
    MTPROF_COLUMN_STEP = 6,     /**< int32: step in which it began, -1: none */
    MTPROF_COLUMN_INDEX = 7,    /**< uint32: order of beginning among host events ("Ev Idx");
                                     device work: MTPROF_NO_EVENT */
    MTPROF_COLUMN_KIND = 8,     /**< uint8: enum mtprof_event_kind */
    MTPROF_COLUMN_DEVICE = 9,   /**< uint8: mtprof_model_device(), 0 = host */
    MTPROF_COLUMN_FLAGS = 10,   /**< uint16: enum mtprof_event_flag */
    /* what was recorded; absent where it was not */
    MTPROF_COLUMN_INPUTS = 11,         /**< uint32: mtprof_model_inputs(), 0 = none */
    MTPROF_COLUMN_SCALARS = 12,        /**< uint32: mtprof_model_scalars(), 0 = none */
    MTPROF_COLUMN_STACK = 13,          /**< uint32: mtprof_model_stack(), 0 = none */
    MTPROF_COLUMN_SEQUENCE = 14,       /**< int64, -1 = none */
    MTPROF_COLUMN_FORWARD_THREAD = 15, /**< uint32: logical thread, 0 = none */
    MTPROF_COLUMN_OVERLOAD = 16,       /**< uint32: name + 1, 0 = none */
    MTPROF_COLUMN_RECORD_SCOPE = 17,   /**< uint32: the host's own classification */
    MTPROF_COLUMN_FLOPS = 18,          /**< uint64 */
    MTPROF_COLUMN_MODULE = 19,         /**< uint32: name + 1, 0 = none */
    MTPROF_COLUMN_FOREIGN_ID = 20,     /**< uint64: id under which another tracer knows it */
    MTPROF_COLUMN_MEMORY_BEFORE = 21,  /**< int64: bytes allocated when it began, -1 = unknown */
    MTPROF_COLUMN_MEMORY_AFTER = 22,   /**< int64: and when it ended */
    MTPROF_COLUMN_MEMORY_DEVICE = 23,  /**< uint8: of which device */
    MTPROF_COLUMN_METADATA = 24,       /**< uint32: mtprof_model_event_metadata(), 0 = none */
    MTPROF_COLUMN_BYTES = 25,          /**< uint64: moved by a copy or set; signed for MEMORY */
    MTPROF_COLUMN_ALLOCATED_SELF_CPU = 26,    /**< int64: bytes allocated, less freed, on the host,
                                                   in it and not in a child */
    MTPROF_COLUMN_ALLOCATED_SELF_DEVICE = 27, /**< int64: the same on devices */
    /* made from the others when first requested */
    MTPROF_COLUMN_DEPTH = 28,       /**< uint32: 0 = no parent */
    MTPROF_COLUMN_CORRELATION = 29, /**< uint64: docs/format.md 3.6; device work: its launch's. Of
                                         an epoch that is still open they are provisional: the
                                         final ones are fixed when it closes */
    MTPROF_COLUMN_LINK = 30,        /**< uint32: device work and runtime calls: the host op they
                                         belong to, MTPROF_NO_EVENT */
    MTPROF_COLUMN_DEVICE_NS = 31,   /**< int64: device time, with children */
    MTPROF_COLUMN_SELF_DEVICE_NS = 32,   /**< int64: device time of own kernels */
    MTPROF_COLUMN_ALLOCATED_CPU = 33,    /**< int64: with children */
    MTPROF_COLUMN_ALLOCATED_DEVICE = 34, /**< int64 */
    MTPROF_COLUMN_FIRST_CHILD = 35,      /**< uint32: event, MTPROF_NO_EVENT */
    MTPROF_COLUMN_NEXT_SIBLING = 36,     /**< uint32 */
    MTPROF_COLUMN_FORWARD = 37,          /**< uint32: backward ops: the forward op, where the arrow
                                              between the two begins, MTPROF_NO_EVENT. Of several
                                              backward ops of one forward op the one that ends
                                              first. Absent where no forward threads were
                                              recorded */
    MTPROF_COLUMN_COUNT = 38
};

/** "start_ns", "parent" …: the id's name in lower case; NULL for others. Constant text. */
MTPROF_API const char *mtprof_column_name(uint32_t id);

enum mtprof_column_type {
    MTPROF_TYPE_U8 = 0,
    MTPROF_TYPE_U16 = 1,
    MTPROF_TYPE_U32 = 2,
    MTPROF_TYPE_I32 = 3,
    MTPROF_TYPE_U64 = 4,
    MTPROF_TYPE_I64 = 5
};

typedef struct mtprof_column {
    const void *data; /**< count items, not NULL also where count is 0. NULL: it is absent */
    uint64_t count;
    uint32_t type; /**< enum mtprof_column_type */
    uint32_t item_bytes;
} mtprof_column;

/** Called now and then by long work, from the thread that started it. Not 0: cancel (ECALLBACK).
 * total 0: not known. */
typedef int mtprof_progress(void *user, const char *what, uint64_t done, uint64_t total);

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_model_options {
    uint32_t struct_size;
    uint32_t first_window, last_window; /**< 0, 0: every window that was kept */
    uint32_t discarded;                 /**< 1: also windows that were not kept */
    uint32_t workers;                   /**< threads to use; 0: as many as there are cores */
    uint32_t keep_duplicates;           /**< 1: only children of their parent's name stay */
    uint32_t session; /**< of a profile that holds several: from 1, 0: the latest */
    uint32_t reserved;
    mtprof_progress *progress;
    void *user;
} mtprof_model_options;

/**
 * A model of a file: a .mtt trace, or a Chrome/kineto JSON trace of any tool, gzipped or not; the
 * content decides. options may be NULL. On failure *out is NULL.
 *
 * Fails with EIO, EFORMAT (neither; the error has the offset), EVERSION, ENOMEM, ECALLBACK.
 */
MTPROF_API mtprof_status mtprof_model_open(const char *path, const mtprof_model_options *options,
                                           mtprof_model **out);

/** A model of a trace that a reader has open. On success the model owns the reader. */
MTPROF_API mtprof_status mtprof_model_take_reader(mtprof_reader *reader,
                                                  const mtprof_model_options *options,
                                                  mtprof_model **out);

/** A model of a session, live (a snapshot) or stopped; it stays valid when the session is closed.
 */
MTPROF_API mtprof_status mtprof_model_from_session(mtprof_session *session,
                                                   const mtprof_model_options *options,
                                                   mtprof_model **out);

/** The same for the results of a profile: the windows it holds (options may name fewer). Fails with
 * ESTATE (no trace was ever prepared). */
MTPROF_API mtprof_status mtprof_model_from_profile(mtprof_profile *profile,
                                                   const mtprof_model_options *options,
                                                   mtprof_model **out);

/** Accepts NULL. */
MTPROF_API void mtprof_model_free(mtprof_model *model);

/** Set struct_size; no byte past it is written. */
typedef struct mtprof_model_info {
    uint32_t struct_size;
    uint32_t foreign; /**< 1: read from another tool's file */
    uint64_t pid;
    int64_t start_ns, end_ns; /**< of what the model covers */
    int64_t real_offset_ns;   /**< Unix time minus trace time */
    uint64_t wants;           /**< enum mtprof_want: what was recorded (all windows together) */
    uint32_t names, tracks, devices, frames;
    uint32_t windows;
    uint32_t closed;         /**< 0: live, or the process died */
    uint64_t uuid[2];        /**< of the .mtt trace; 0 for others */
    const char *device_type; /**< "NPU", "CUDA" …; NULL: no device was recorded */
} mtprof_model_info;

/** Fails with EINVAL (struct_size 0). Does not make the columns. */
MTPROF_API mtprof_status mtprof_model_get_info(const mtprof_model *model, mtprof_model_info *info);

/** What analysing found; with the recorder's own counters in mtprof_model_get_health(). */
typedef struct mtprof_model_findings {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t events;    /**< host and device events in the columns */
    uint64_t unmatched; /**< launches that no device record answers */
    uint64_t orphans;   /**< device records whose launch is missing */
    uint64_t ends_without_begin;
    uint64_t truncated;      /**< scopes that a window's close, or damage, cut off */
    uint64_t overlaps;       /**< scopes that outlived the one around them */
    uint64_t clock_back;     /**< ends before their begin, set to it */
    uint64_t collapsed;      /**< only children of the same name that were folded away */
    uint64_t problems;       /**< damaged places in the trace */
    uint64_t skipped;        /**< foreign: entries that are not events, or lack a field */
    uint64_t problem_bytes;  /**< bytes in damaged places, as far as their extent is known */
    uint64_t problem_offset; /**< offset of the first of them in the file (foreign, gzipped: in the
                                  unpacked text); 0: there is none */
    uint64_t truncated_in_gaps; /**< of the truncated: where records of their thread are missing */
    uint64_t left_out; /**< details beyond a bound of the model (docs/bounds.md): annotations on
                            queues, devices, foreign input lists and frames */
} mtprof_model_findings;

/** Makes the columns if they do not exist yet. Fails with ENOMEM, EIO, ECALLBACK, ENOTSUP (more
 * than 4 billion events: exports still work). */
MTPROF_API mtprof_status mtprof_model_get_findings(mtprof_model *model,
                                                   mtprof_model_findings *findings);

/** What is damaged in a trace. Set struct_size; no byte past it is written. */
typedef struct mtprof_damage {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t problems; /**< places: 0 is a whole trace */
    uint64_t bytes;    /**< in them, as far as their extent is known */
    uint64_t offset;   /**< of the first, as mtprof_model_findings.problem_offset */
} mtprof_damage;

/**
 * What is damaged, without making the columns: exact where they have been made or an export has
 * gone through the trace; else every chunk is read and its checksum compared, and records without
 * a checksum are checked one by one. Fails with EINVAL (struct_size 0), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_model_get_damage(mtprof_model *model, mtprof_damage *damage);

/** The recorder's health counters as the trace has them, with `unmatched` exact. Makes the columns.
 */
MTPROF_API mtprof_status mtprof_model_get_health(mtprof_model *model, mtprof_health *health);

/**
 * A column. Makes the columns first if they do not exist yet; the derived ones are made when first
 * requested. *out is zero, data NULL, for a column that was not recorded, and on failure.
 *
 * Fails with EINVAL (no such column), ENOMEM, EIO, ECALLBACK, ENOTSUP (more than 4 billion events).
 */
MTPROF_API mtprof_status mtprof_model_get_column(mtprof_model *model, enum mtprof_column_id id,
                                                 mtprof_column *out);

/** Names, index from 0. An unknown index gives an empty text. */
MTPROF_API mtprof_text mtprof_model_name(const mtprof_model *model, uint32_t name);
/** The name under which events are grouped: "ProfilerStep*" for "ProfilerStep#7". */
MTPROF_API uint32_t mtprof_model_name_key(const mtprof_model *model, uint32_t name);
/** How many events of this name (mtprof_model_name_key()) the limit of the overhead left out
 * (session.h: overhead_ppm), as far as they were counted by name; 0 until the columns are made. */
MTPROF_API uint64_t mtprof_model_unrecorded(const mtprof_model *model, uint32_t name);
/** A string that an input list names (types, keywords) or a scalar is. */
MTPROF_API mtprof_text mtprof_model_string(const mtprof_model *model, uint32_t string);

typedef struct mtprof_track {
    uint32_t device; /**< 0: a thread */
    uint32_t number; /**< thread: logical, from 1; queue: its number */
    int64_t pid;     /**< thread: process; queue: device number */
    int64_t tid;     /**< thread: OS thread id; queue: its number */
    uint64_t pthread_id;
    mtprof_text name;         /**< length 0: none */
    mtprof_text process_name; /**< length 0: not known */
} mtprof_track;
/** A track by its index. false: there is none, and *out is left alone. */
MTPROF_API bool mtprof_model_track(const mtprof_model *model, uint32_t track, mtprof_track *out);

typedef struct mtprof_device {
    mtprof_text type; /**< "CPU", "NPU", "CUDA" … */
    int32_t index;    /**< host: -1 */
} mtprof_device;
/** A device by its index. false: there is none, and *out is left alone. */
MTPROF_API bool mtprof_model_device(const mtprof_model *model, uint32_t device, mtprof_device *out);

/** An input list as docs/format.md section 5 has it; type and keyword ids are strings of the model.
 */
MTPROF_API bool mtprof_model_inputs(const mtprof_model *model, uint32_t inputs,
                                    const uint64_t **words, uint32_t *n_words);
/** The values of the scalars of an event's input list, in order. */
MTPROF_API bool mtprof_model_scalars(const mtprof_model *model, uint32_t scalars,
                                     const uint64_t **words, uint32_t *n_words);
/** Parent node (0: this is the outermost) and frame of a stack node. */
MTPROF_API bool mtprof_model_stack(const mtprof_model *model, uint32_t node, uint32_t *parent,
                                   mtprof_frame *frame);

/** What the allocations of a device add up to. Set struct_size; no byte past it is written. */
typedef struct mtprof_memory {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t allocations, frees;          /**< how many */
    int64_t allocated_bytes, freed_bytes; /**< in all, both positive */
    int64_t peak_bytes;  /**< most that was allocated at a time, as reported by the allocator */
    int64_t peak_ns;     /**< when that was first so */
    int64_t end_bytes;   /**< after the last one */
    uint64_t peak_owner; /**< correlation id of the scope that allocated then; 0: none */
} mtprof_memory;

/** Reads the allocations of a device through the event stream. Where none was recorded, allocations
 * and frees are 0, and so is the rest. Fails with EINVAL (struct_size 0, no such device), ENOMEM,
 * EIO. */
MTPROF_API mtprof_status mtprof_model_get_memory(mtprof_model *model, uint32_t device,
                                                 mtprof_memory *memory);

typedef struct mtprof_metadatum {
    mtprof_text key;
    uint32_t type;    /**< enum mtprof_meta_type: INT, UINT, REAL (bits), BOOL or TEXT */
    uint32_t is_json; /**< TEXT: it is JSON */
    uint64_t value;
    mtprof_text text; /**< TEXT */
} mtprof_metadatum;
/** Metadata of an event (column METADATA), index from 0. */
MTPROF_API bool mtprof_model_event_metadata(const mtprof_model *model, uint32_t metadata,
                                            uint32_t index, mtprof_metadatum *out);
/** What a program recorded other than scopes, as a visitor sees it: an instant, a counter's value,
 * a point of a flow. Texts and metadata live until the visitor returns. Later versions may
 * append. */
typedef struct mtprof_mark {
    uint32_t struct_size; /**< set by the library */
    uint32_t kind;        /**< MTPROF_EVENT_KIND_INSTANT, COUNTER or FLOW */
    uint32_t phase;       /**< FLOW: 0 start, 1 step, 2 end; COUNTER: 0 integer, 1 double */
    uint32_t track;       /**< mtprof_model_track() */
    int32_t step;         /**< -1: none */
    uint32_t n_metadata;
    mtprof_text name;
    int64_t time_ns;
    uint64_t value;                   /**< FLOW: its id; COUNTER: the value, or its bits */
    uint64_t parent;                  /**< correlation id of the scope around; 0: none */
    const mtprof_metadatum *metadata; /**< INSTANT */
} mtprof_mark;

/** Not 0: no further marks (ECALLBACK). */
typedef int mtprof_mark_visitor(void *user, const mtprof_mark *mark);

/** Reads the marks in order of time, in one pass over the trace with bounded memory; the visitor is
 * called on this thread. Fails with ENOMEM, EIO, ECALLBACK. */
MTPROF_API mtprof_status mtprof_model_visit_marks(mtprof_model *model, mtprof_mark_visitor *visitor,
                                                  void *user);

/** Metadata of the trace, index from 0. */
MTPROF_API bool mtprof_model_metadata(const mtprof_model *model, uint32_t index,
                                      mtprof_metadatum *out);

MTPROF_END_DECLS

#endif /* MTPROF_MODEL_H */
