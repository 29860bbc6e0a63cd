/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: recording with activities, a schedule of steps and callbacks, on top of sessions.
 *
 *     new ──start──► running ──stop──► stopped ──start──► running …        ──free──► gone
 *                      │ step() moves through the schedule
 *                      └─ a callback fails: ended, as if stopped, and the next stop() is silent
 *
 * A profile holds the process's one session from start to stop, also in steps that record nothing.
 * In between, each run of recorded steps is a *window*: prepared, recorded, closed, and passed to
 * on_trace_ready where the schedule says so. Results are those of the latest window, or of all with
 * MTPROF_PROFILE_ACC_EVENTS; they stay until the next window is prepared.
 *
 * Threads: every function may be called from any thread; calls that change the profile happen one
 * after the other. No lock is held while a callback runs. Meanwhile changing calls from other
 * threads return EBUSY, and those from inside the callback are limited: stop, start (after a stop),
 * toggle and everything that reads or adds metadata are allowed, free returns EBUSY, the others
 * ESTATE. After fork() the child may only free its copy: everything else returns ESTATE.
 */
#ifndef MTPROF_PROFILE_H
#define MTPROF_PROFILE_H

#include <mtprof/api.h>
#include <mtprof/health.h>
#include <mtprof/schedule.h>
#include <mtprof/session.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_profile mtprof_profile;

/** What a profile records: a set of bits. */
enum mtprof_watch {
    MTPROF_WATCH_CPU = 1 << 0,    /**< host ops, scopes, marks */
    MTPROF_WATCH_DEVICE = 1 << 1, /**< device work, runtime calls, host ops for the device */
    MTPROF_WATCH_ALL = 1 << 30    /**< alone: everything this process can record */
};

/**
 * The bit for a name: CPU; NPU, CUDA, GPU or PrivateUse1 for the device. Case does not count, and
 * of a dotted name only the last part does ("ProfilerActivity.CPU"). On failure *bit is 0.
 *
 * Fails with ENOTSUP (XPU, MTIA, HPU: known, never available here), EINVAL (anything else).
 */
MTPROF_API mtprof_status mtprof_watch_parse(const char *text, uint32_t *bit);

/** What is recorded beyond names and times, and how results are kept. */
enum mtprof_profile_flag {
    MTPROF_PROFILE_RECORD_SHAPES = 1 << 0,
    MTPROF_PROFILE_MEMORY = 1 << 1,
    MTPROF_PROFILE_WITH_STACK = 1 << 2,
    MTPROF_PROFILE_WITH_FLOPS = 1 << 3, /**< records inputs as well: FLOPs come from them */
    MTPROF_PROFILE_WITH_MODULES = 1 << 4,
    MTPROF_PROFILE_TENSOR_IDS = 1 << 5, /**< which tensors and storages ops worked on */
    MTPROF_PROFILE_DETAILS = 1 << 6,    /**< the language runtime's finest events */
    MTPROF_PROFILE_STRIDES = 1 << 7,    /**< records inputs as well */
    MTPROF_PROFILE_NATIVE_STACKS = 1 << 8,
    MTPROF_PROFILE_LATE_DEVICES = 1 << 9, /**< devices too that appear while it records */
    MTPROF_PROFILE_OVERLOADS = 1 << 10,   /**< which overload an op is ("Tensor" of aten::add) */
    MTPROF_PROFILE_ACC_EVENTS = 1 << 16   /**< results of all windows, not of the latest only */
};

enum {
    MTPROF_TRACE_ID_BYTES = 1024 /**< size of a trace id with its terminating zero */
};

/** What a trace observer is called for. */
enum mtprof_observe {
    MTPROF_OBSERVE_START = 0, /**< a window is about to open */
    MTPROF_OBSERVE_STOP = 1   /**< a window is about to close */
};

/**
 * Set struct_size and activities; the rest may stay zero. Fields are only ever appended. Texts and
 * structs are copied. Callbacks that return int succeed with 0; any other value ends the session,
 * the caller of start, step or stop gets ECALLBACK, and mtprof_profile_callback_result() the value.
 */
typedef struct mtprof_profile_config {
    uint32_t struct_size; /**< sizeof(mtprof_profile_config) as the caller was compiled */
    uint32_t activities;  /**< enum mtprof_watch; 0 is refused */
    uint32_t flags;       /**< enum mtprof_profile_flag */
    uint32_t policy;      /**< enum mtprof_policy; this and the next four: see mtprof_config */
    const char *path;
    const char *spill_directory;
    uint64_t buffer_bytes;
    uint64_t ring_ns;
    const mtprof_schedule *schedule; /**< NULL: see below */
    /** In place of a schedule: the action of a step. It is called once per step, for step 0 by
     * mtprof_profile_new(). A step with an unknown action changes nothing. With neither, every step
     * is recorded, there are no step annotations, and on_trace_ready is called once, at stop. */
    int (*schedule_callback)(void *user, int64_t step, enum mtprof_action *action);
    /** A window is complete. It is closed, and step number and action are the next step's. */
    int (*on_trace_ready)(void *user, mtprof_profile *profile);
    /** Writes the id of a trace that is prepared, zero-terminated. NULL: 32 random hex digits. */
    int (*trace_id)(void *user, char *text, size_t size);
    /** Called twice for each window: before it opens and before it closes. */
    int (*observer)(void *user, mtprof_profile *profile, enum mtprof_observe event);
    /** A problem that does not stop the profile; status MTPROF_OK: advice. Also called from the
     * recorder's helper thread (session.h), which must not start, step or stop anything. */
    void (*on_warning)(void *user, mtprof_status status, const char *message);
    void *user;
    uint64_t device_wait_ns; /**< see mtprof_config */
    uint32_t path_shared;    /**< see mtprof_config */
    uint32_t overhead_ppm;   /**< see mtprof_config */
    uint32_t counters_hz;    /**< see mtprof_config */
    uint32_t reserved;
} mtprof_profile_config;

/**
 * Makes a profile; nothing is recorded yet. On success *out belongs to the caller until
 * mtprof_profile_free(). A device that is requested but not available is a warning, and only the
 * CPU is recorded.
 *
 * Fails with EINVAL (the message names the field), ENOMEM, ECALLBACK (the schedule, for step 0).
 */
MTPROF_API mtprof_status mtprof_profile_new(const mtprof_profile_config *config,
                                            mtprof_profile **out);

/**
 * Stops without a callback where needed, and frees the profile with its results. Accepts NULL.
 *
 * Fails with EBUSY (a callback is running: nothing has changed), EIO (the trace file could not be
 * finished; the profile is freed all the same).
 */
MTPROF_API mtprof_status mtprof_profile_free(mtprof_profile *profile);

/**
 * Begins. A profile that was stopped may begin again: step numbers go on, and the first window
 * replaces the results. On failure nothing is recorded and the profile may be started later.
 *
 * Fails with ESTATE (it is running), EBUSY (another session is active), and as
 * mtprof_session_start() does; ECALLBACK.
 */
MTPROF_API mtprof_status mtprof_profile_start(mtprof_profile *profile);

/**
 * The step is over, the next one begins. A failure other than ESTATE and EBUSY ends the session:
 * results are kept, the next stop is silent, on_trace_ready is not called again.
 *
 * Fails with ESTATE (not running), EBUSY (a callback is running elsewhere), ECALLBACK, ENOMEM,
 * ENOSPC.
 */
MTPROF_API mtprof_status mtprof_profile_step(mtprof_profile *profile);

/**
 * Ends. An open window is closed, the session is over, and on_trace_ready is called where the
 * current step records. Stopping again warns and does nothing.
 *
 * Fails with ESTATE (never started), EBUSY (a callback is running elsewhere), ECALLBACK.
 */
MTPROF_API mtprof_status mtprof_profile_stop(mtprof_profile *profile);

/**
 * The pieces of start and stop, for callers that control windows by hand: prepare (the session
 * begins, the trace gets its id, earlier results go), start (the window opens), stop (it closes,
 * and without mtprof_profile_start() the session is over). No on_trace_ready.
 *
 * Fail with ESTATE (prepare: a window is open; start, stop: never prepared), and as
 * mtprof_profile_start() does.
 */
MTPROF_API mtprof_status mtprof_profile_prepare_trace(mtprof_profile *profile);
MTPROF_API mtprof_status mtprof_profile_start_trace(mtprof_profile *profile);
MTPROF_API mtprof_status mtprof_profile_stop_trace(mtprof_profile *profile);

/**
 * Switches the collection of some activities off or on inside the open window; without one nothing
 * happens. The next window collects everything again.
 *
 * Fails with EINVAL (unknown bits), EBUSY.
 */
MTPROF_API mtprof_status mtprof_profile_toggle(mtprof_profile *profile, bool enable,
                                               uint32_t activities);

/**
 * A key and a value for the trace: text, or JSON taken as it is. Once a trace is prepared they
 * belong to it; what was added before belongs to every window to come. Presets are put into every
 * window that opens. A later value replaces an earlier one.
 *
 * Fail with EINVAL (no key, no value, more than 16 MiB), ENOMEM, ENOSPC.
 */
MTPROF_API mtprof_status mtprof_profile_add_metadata(mtprof_profile *profile, const char *key,
                                                     size_t key_length, const char *value,
                                                     size_t value_length, bool is_json);
MTPROF_API mtprof_status mtprof_profile_preset_metadata(mtprof_profile *profile, const char *key,
                                                        size_t key_length, const char *value,
                                                        size_t value_length, bool is_json);

/** The id of the latest prepared trace, cut to size; empty before the first. Fails with EINVAL. */
MTPROF_API mtprof_status mtprof_profile_get_trace_id(mtprof_profile *profile, char *text,
                                                     size_t size);

/** Replaces the function that makes trace ids, from the next prepared trace on; NULL: random
 * ids. */
MTPROF_API mtprof_status mtprof_profile_set_trace_id_callback(
    mtprof_profile *profile, int (*trace_id)(void *user, char *text, size_t size), void *user);

/** The number of the current step, from 0; and its action as the schedule returned it. */
MTPROF_API int64_t mtprof_profile_step_num(mtprof_profile *profile);
MTPROF_API enum mtprof_action mtprof_profile_current_action(mtprof_profile *profile);

/** From start to stop; false once a failure has ended the session. */
MTPROF_API bool mtprof_profile_is_running(mtprof_profile *profile);

/** What the latest callback that failed returned; 0: none has. */
MTPROF_API int mtprof_profile_callback_result(mtprof_profile *profile);

/** What the profile actually records: without the device where there is none. */
MTPROF_API uint32_t mtprof_profile_activities(mtprof_profile *profile);

enum mtprof_results {
    MTPROF_RESULTS_NONE = 0,      /**< no trace was ever prepared */
    MTPROF_RESULTS_PREPARED = 1,  /**< a window is about to open: empty */
    MTPROF_RESULTS_RECORDING = 2, /**< a window is open: what was recorded so far */
    MTPROF_RESULTS_READY = 3
};

/** Set struct_size; no byte past it is written. Window numbers are those in the trace. */
typedef struct mtprof_window {
    uint32_t struct_size;
    uint32_t results;      /**< enum mtprof_results */
    uint32_t window;       /**< the latest window of the session; 0: none yet */
    uint32_t first_window; /**< the first that belongs to the results */
    uint32_t saved;        /**< windows closed and kept since start */
    uint32_t delivered;    /**< on_trace_ready calls since start */
    int64_t first_step;    /**< of the latest window; -1: none yet */
    int64_t steps;         /**< begun in the latest window */
    uint32_t collecting;   /**< activities collected right now; 0 outside a window */
    uint32_t sessions;     /**< how many sessions hold the results */
} mtprof_window;

/** Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_profile_get_window(mtprof_profile *profile, mtprof_window *window);

/**
 * The session that holds the results, to read from; index counts from the oldest one, of which
 * there are several only when a profile with MTPROF_PROFILE_ACC_EVENTS was started again. NULL
 * where there is none. Valid until the profile is freed, or started again and a window prepared.
 */
MTPROF_API mtprof_session *mtprof_profile_session(mtprof_profile *profile, uint32_t index);

/** Health of the latest session. Fails with ESTATE (never started), EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_profile_get_health(mtprof_profile *profile, mtprof_health *health);

/**
 * Why results are empty, in one line: "0 steps recorded: step() was called 0 times, the schedule
 * needs 3". Returns a sensible text also when they are not. Fails with EINVAL (no buffer).
 */
MTPROF_API mtprof_status mtprof_profile_explain_empty(mtprof_profile *profile, char *text,
                                                      size_t size);

MTPROF_END_DECLS

#endif /* MTPROF_PROFILE_H */
