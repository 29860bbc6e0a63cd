/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a trace: a .mtt file, or a session that is still alive.
 *
 * Opening reads the chunk directory and the definitions; records are then streamed, a chunk in
 * memory per cursor. Damage does not end the reading: it is listed as a problem with its byte
 * offset, and what it touches is left out. A record that is returned passed every check.
 *
 * Lifetime: strings and words returned by a reader live as long as the reader; a record's words
 * live until the next call on its cursor. Threads: a reader may be shared by threads once it is
 * open; each cursor belongs to one thread at a time.
 */
#ifndef MTPROF_READER_H
#define MTPROF_READER_H

#include <mtprof/api.h>
#include <mtprof/format.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_reader mtprof_reader;
typedef struct mtprof_cursor mtprof_cursor;

/** Where the bytes of a trace come from. */
typedef struct mtprof_bytes {
    uint32_t struct_size;
    uint32_t reserved;
    void *context;
    /** Reads up to length bytes at offset; how many were read (fewer only at the end), or -errno.
     */
    int64_t (*read)(void *context, uint64_t offset, void *buffer, size_t length);
    /** Size of the trace in bytes; may grow between calls. */
    uint64_t (*size)(void *context);
    /** Called once when the reader is closed, or when opening fails; may be NULL. */
    void (*close)(void *context);
} mtprof_bytes;

/** The trace's header and what opening found. */
typedef struct mtprof_trace_info {
    uint32_t struct_size;
    uint16_t major, minor;
    uint8_t uuid[16];
    uint64_t pid;
    uint64_t features;
    uint64_t tick_period; /**< nanoseconds per tick, 56 fraction bits */
    uint64_t start_ticks, start_mono_ns, start_real_ns;
    uint32_t clock;  /**< 0 time stamp counter, 1 CLOCK_MONOTONIC */
    uint32_t policy; /**< 0 spill, 1 ring, 2 stop */
    uint64_t budget_bytes, ring_ns;
    uint32_t begin_cost_ticks; /**< 1/256 ticks per begin+end pair */
    bool closed;               /**< the recorder ended the file; false after a crash or live */
    uint64_t end_ticks;        /**< from the header if closed; else the last time seen at opening */
    uint64_t health[MTPROF_HEALTH_COUNT];
    uint64_t file_bytes;
    uint64_t chunks, chunks_damaged, chunks_unchecked; /**< unchecked: without data checksum */
} mtprof_trace_info;

typedef struct mtprof_stream_info {
    uint32_t struct_size;
    uint8_t kind; /**< enum mtprof_stream_kind */
    uint16_t slot;
    uint64_t chunks;
    uint64_t chunks_missing; /**< gaps in the sequence: discarded by ring mode */
    uint64_t bytes;          /**< published record bytes */
} mtprof_stream_info;

/** One record, decoded as far as every consumer needs it. */
typedef struct mtprof_record {
    uint8_t kind;    /**< enum mtprof_record_kind, or a kind this version does not know */
    uint16_t aux;    /**< bits 16-31 of the first word (END: 0) */
    uint32_t arg;    /**< bits 32-63 of the first word (END: 0) */
    uint32_t epoch;  /**< in force in this stream, 0 outside streams of threads */
    uint32_t thread; /**< logical thread in force in this stream, likewise */
    uint64_t offset; /**< byte offset of the record in the trace */
    uint64_t word;   /**< the first word, undecoded */
    /** Full ticks of the record: its own, or the stream's time reference where it has none. In
     * source streams: the time on the source's clock (ACTIVITY: its start). */
    uint64_t ticks;
    /** BEGIN, BEGIN_X, LAUNCH: own key. END, END_X: key of the begin that ends. Otherwise 0. */
    uint64_t key;
    const uint64_t *words; /**< the body, from w1 on */
    uint32_t n_words;
} mtprof_record;

typedef struct mtprof_text {
    const char *bytes; /**< not NULL; a zero byte follows the text */
    size_t length;
} mtprof_text;

typedef struct mtprof_frame {
    mtprof_text function, file;
    uint64_t line, address;
} mtprof_frame;

typedef struct mtprof_thread_info {
    uint32_t number; /**< logical, from 1 */
    uint64_t os_id, pthread_id;
    mtprof_text name; /**< length 0: none */
} mtprof_thread_info;

/** One epoch: a time in which the gate was open. */
typedef struct mtprof_epoch_info {
    uint32_t epoch, window, step;
    uint32_t close_kind; /**< enum mtprof_window_close */
    uint64_t gate;
    uint64_t open_ticks, close_ticks;
    /** Correlation ids reserved for its begins (docs/format.md 3.6); 0, 0: not recorded. */
    uint64_t correlation_first, correlation_count;
} mtprof_epoch_info;

typedef struct mtprof_module_info {
    uint64_t start, end, file_offset;
    mtprof_text path;
} mtprof_module_info;

/** Something in the trace that failed a check. */
typedef struct mtprof_problem {
    uint64_t offset;
    const char *message;
} mtprof_problem;

/**
 * Opens a trace file. On failure *out is NULL.
 *
 * Fails with EIO (cannot be opened or read), EFORMAT (no .mtt header, or a damaged one; the error
 * has the offset), EVERSION (another major version, or a feature this build does not know), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_reader_open(const char *path, mtprof_reader **out);

/** The same over any bytes. The struct is copied; its close is called also on failure. */
MTPROF_API mtprof_status mtprof_reader_open_bytes(const mtprof_bytes *bytes, mtprof_reader **out);

/** Accepts NULL. Cursors must have been closed before. */
MTPROF_API void mtprof_reader_close(mtprof_reader *reader);

/** Fills info up to its struct_size. Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_reader_get_info(const mtprof_reader *reader,
                                                mtprof_trace_info *info);

/** How many streams the trace has. */
MTPROF_API uint32_t mtprof_reader_stream_count(const mtprof_reader *reader);
/** Fails with EINVAL (no such stream). Streams are ordered by kind, then slot. */
MTPROF_API mtprof_status mtprof_reader_get_stream(const mtprof_reader *reader, uint32_t index,
                                                  mtprof_stream_info *info);

/** A cursor at the start of a stream. Fails with EINVAL (no such stream), ENOMEM. */
MTPROF_API mtprof_status mtprof_cursor_open(const mtprof_reader *reader, uint32_t stream,
                                            mtprof_cursor **out);
/**
 * The next record. EEND at the end. EFORMAT or EIO where the stream is damaged: the error has the
 * offset, and the next call continues after the damage.
 */
MTPROF_API mtprof_status mtprof_cursor_next(mtprof_cursor *cursor, mtprof_record *record);
/** Accepts NULL. */
MTPROF_API void mtprof_cursor_close(mtprof_cursor *cursor);

/** Nanoseconds of CLOCK_MONOTONIC at a tick (docs/format.md 3.1). */
MTPROF_API int64_t mtprof_reader_ns(const mtprof_reader *reader, uint64_t ticks);
/** CLOCK_REALTIME minus CLOCK_MONOTONIC of the trace's first anchor. */
MTPROF_API int64_t mtprof_reader_real_offset(const mtprof_reader *reader);
/** Ticks at a time of a source's clock (docs/format.md 3.4). false: no clock pair of it is known.
 */
MTPROF_API bool mtprof_reader_source_ticks(const mtprof_reader *reader, uint16_t source,
                                           uint64_t time, uint64_t *ticks);

/** Definitions. An unknown id gives false and leaves *out alone. */
MTPROF_API bool mtprof_reader_string(const mtprof_reader *reader, uint32_t id, mtprof_text *out);
/** File and line of a string that names a place; false where it has none. */
MTPROF_API bool mtprof_reader_location(const mtprof_reader *reader, uint32_t id, mtprof_text *file,
                                       uint32_t *line);
MTPROF_API bool mtprof_reader_inputs(const mtprof_reader *reader, uint32_t id,
                                     const uint64_t **words, uint32_t *n_words);
MTPROF_API bool mtprof_reader_frame(const mtprof_reader *reader, uint32_t id, mtprof_frame *out);
/** Parent and frame of a stack node; the parent of an outermost one is 0. */
MTPROF_API bool mtprof_reader_stack(const mtprof_reader *reader, uint32_t id, uint32_t *parent,
                                    uint32_t *frame);
MTPROF_API bool mtprof_reader_thread(const mtprof_reader *reader, uint32_t number,
                                     mtprof_thread_info *out);
MTPROF_API uint32_t mtprof_reader_thread_count(const mtprof_reader *reader);
MTPROF_API bool mtprof_reader_source(const mtprof_reader *reader, uint16_t index, mtprof_text *name,
                                     mtprof_text *device_type);
MTPROF_API bool mtprof_reader_module(const mtprof_reader *reader, uint32_t index,
                                     mtprof_module_info *out);
/** Epochs in order, index from 0. */
MTPROF_API bool mtprof_reader_epoch(const mtprof_reader *reader, uint32_t index,
                                    mtprof_epoch_info *out);
/** Metadata of the trace in order of first appearance; *is_json: whether the value was set as
 * JSON. */
MTPROF_API bool mtprof_reader_metadata(const mtprof_reader *reader, uint32_t index,
                                       mtprof_text *key, mtprof_text *value, bool *is_json);

/** What a LIMIT record says (docs/format.md 3.5): the level from here on. */
typedef struct mtprof_limit_info {
    uint64_t ticks;
    uint32_t level, before;        /**< enum mtprof_limit_level; equal: no change, sums only */
    uint32_t share_ppm, limit_ppm; /**< measured then, and allowed, of the process's time */
    uint64_t cost_ns, base_ns;     /**< since the session's start: of recording, of the process */
} mtprof_limit_info;

/** What the limit left out of one name; see enum mtprof_unrecorded. */
typedef struct mtprof_unrecorded_info {
    uint32_t name; /**< string id; 0: no name in particular */
    uint32_t what; /**< enum mtprof_unrecorded */
    uint64_t count;
    uint64_t kept; /**< recorded while they were sampled */
} mtprof_unrecorded_info;

/** Changes of what is recorded, in order; index from 0. */
MTPROF_API bool mtprof_reader_limit(const mtprof_reader *reader, uint32_t index,
                                    mtprof_limit_info *out);
/** What was left out, once a name and kind; index from 0. */
MTPROF_API bool mtprof_reader_unrecorded(const mtprof_reader *reader, uint32_t index,
                                         mtprof_unrecorded_info *out);

/** Problems found while opening, in order of offset. index from 0. */
MTPROF_API bool mtprof_reader_problem(const mtprof_reader *reader, uint32_t index,
                                      mtprof_problem *out);

MTPROF_END_DECLS

#endif /* MTPROF_READER_H */
