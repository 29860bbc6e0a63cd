/* SPDX-License-Identifier: Apache-2.0
 *
 * Event sources: the plug-in ABI through which a device, an allocator or a language runtime
 * contributes events that the recording threads do not see.
 *
 * A source registers once. The library calls its start when recording begins and its stop when it
 * ends; in between, and until the session is closed, the source pushes what it knows through
 * mtprof_push_*(), from any thread, in any order, late if it must. Times are on the source's own
 * clock; clock pairs tie that clock to the recorder's. Work is tied to the host scope that launched
 * it by the launch key (mtprof_launch_key), never by time.
 *
 * Callbacks are made without a lock held and never two at a time for one source.
 */
#ifndef MTPROF_SOURCE_H
#define MTPROF_SOURCE_H

#include <mtprof/api.h>
#include <mtprof/format.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Version of this ABI. A source of another major version is refused. */
#define MTPROF_SOURCE_ABI 0x00010000u /* major << 16 | minor */

typedef struct mtprof_source mtprof_source;

/** What a source offers. Fields are only ever appended; (optional) ones may be NULL. */
typedef struct mtprof_source_ops {
    uint32_t struct_size;
    uint32_t abi;     /**< MTPROF_SOURCE_ABI as the source was compiled */
    const char *name; /**< for people: "sim", "cupti"; copied */
    const char
        *device_type; /**< "NPU", "CUDA" …: it represents a device; NULL: it does not. Copied */
    void *context;    /**< passed to every callback */
    uint64_t needs;   /**< called only when one of these is wanted (enum mtprof_want); 0: always */
    /** Recording begins. A failure leaves the source out of this recording, with a warning. */
    mtprof_status (*start)(void *context, mtprof_source *source, uint64_t wants);
    /** Recording has ended: no more work will be launched under it. Return quickly. */
    void (*stop)(void *context);
    /** (optional) Push everything that is complete; wait for what is not at most timeout_ns. Return
     * before that only when nothing is left: a flush that took all its time is repeated as long as
     * something was pushed meanwhile (mtprof_config.device_wait_ns). */
    void (*flush)(void *context, uint64_t timeout_ns);
    /** (optional) The source's clock now. Called about once a second to make clock pairs. */
    uint64_t (*clock)(void *context);
    /** (optional) What its devices are, for deviceProperties in Chrome traces: JSON objects with
     * commas between them, zero-terminated, at most `room` bytes. Returns the length of all of it
     * without the zero, as snprintf does: if that is more than fits, it is called again with more
     * room. 0: no description. Called while the source takes part in a recording. */
    size_t (*describe)(void *context, char *json, size_t room);
    /** (optional) Why start failed, for the warning: one sentence, valid until the next callback.
     * Called at once after it, on the same thread. NULL: the status says it. */
    const char *(*trouble)(void *context);
} mtprof_source_ops;

/**
 * One piece of work as a source saw it. Set struct_size. A launch is answered by exactly one
 * kernel, copy or set with its key; health.unmatched counts the launches that are not, those that a
 * device refused among them: they have no work.
 */
typedef struct mtprof_activity {
    uint32_t struct_size;
    uint32_t kind;    /**< enum mtprof_activity_kind */
    const char *name; /**< any bytes; copied once per distinct name */
    size_t name_length;
    uint64_t start, end;    /**< on the source's clock */
    uint64_t launch_key;    /**< 0: none */
    uint32_t device, queue; /**< queue: work on it is done in order (a stream of MindTorch, CUDA) */
    uint64_t correlation;   /**< the source's own id */
    uint64_t bytes;         /**< moved or set; 0 otherwise */
    const struct mtprof_activity_meta *meta; /**< further values */
    uint32_t n_meta;
    uint32_t reserved;
} mtprof_activity;

typedef struct mtprof_activity_meta {
    uint32_t key;  /**< string id, mtprof_intern() */
    uint32_t type; /**< INT, UINT, REAL (bits) or STRING (id) of enum mtprof_meta_type */
    uint64_t value;
} mtprof_activity_meta;

/**
 * Registers a source with the process. It takes part from the next recording on, or at once if one
 * is active. *out belongs to the caller until mtprof_source_unregister().
 *
 * Fails with EINVAL (a required field is missing; the message names it), EVERSION (ABI), ENOMEM,
 * EBUSY (256 sources are registered).
 */
MTPROF_API mtprof_status mtprof_source_register(const mtprof_source_ops *ops, mtprof_source **out);

/** Stops the source if it runs, and removes it. Accepts NULL. Not from one of its callbacks. */
MTPROF_API void mtprof_source_unregister(mtprof_source *source);

/**
 * Recording calls: never fail, count what they cannot keep. They may block for a moment while
 * another thread pushes into the same source. Without a recording they count as late.
 */
MTPROF_API void mtprof_push_activity(mtprof_source *source, const mtprof_activity *activity);
MTPROF_API void mtprof_push_clock_pair(mtprof_source *source, uint64_t source_time, uint64_t ticks);
MTPROF_API void mtprof_push_counter(mtprof_source *source, uint32_t name, uint64_t source_time,
                                    double value);
/** Counts events that the source lost. */
MTPROF_API void mtprof_push_lost(mtprof_source *source, uint64_t count);

/**
 * The innermost op that is open on this thread, or the innermost scope where there is no op, and
 * the module that is the nearest told around it (0: none): string ids that are valid until the
 * process ends. For sources that must know later who asked for work that runs often, as a node of a
 * CUDA graph does. A call reads what the thread has recorded since the last one; the first one in a
 * while begins where the thread's latest chunk of records does, and does not see what was begun
 * before that. False: nothing is open, as far as it sees, or nothing records. Not for signal
 * handlers.
 */
MTPROF_API bool mtprof_open_op(uint32_t *name, uint32_t *module);

/** Whether a source that represents a device is registered. */
MTPROF_API bool mtprof_has_device_source(void);

MTPROF_END_DECLS

#endif /* MTPROF_SOURCE_H */
