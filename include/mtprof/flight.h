/* SPDX-License-Identifier: Apache-2.0
 *
 * The flight recorder: a ring that always records, and dumps of its last part when something
 * happens.
 *
 *      mtprof_flight_config config = {.struct_size = sizeof config, .folder = "/var/tmp/flight"};
 *      mtprof_flight *flight;
 *      if (mtprof_flight_start(&config, &flight) == MTPROF_OK) { … }
 *      for (;;) {
 *          train();
 *          mtprof_flight_step(flight);
 *      }
 *      mtprof_flight_dump(flight, "loss is not a number", NULL);
 *
 * In the folder, with NAME from the config:
 *
 *      NAME.ring.mtt                              the ring, as it was when the process ended
 *      NAME-20261116T192233Z-0001-REASON.mtt      dumps, each a complete trace
 *      NAME.steps                                 a summary of every step (mtprof_steps)
 *
 * One flight recorder is active in the process at a time, and it is the active session: a profiler
 * that starts meanwhile gets EBUSY. Threads: every function may be called from any thread; no lock
 * is held while a callback runs. After fork() the child has no flight recorder: handles inherited
 * from the parent return ESTATE there and may only be released.
 */
#ifndef MTPROF_FLIGHT_H
#define MTPROF_FLIGHT_H

#include <mtprof/api.h>
#include <mtprof/reader.h>
#include <mtprof/session.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_flight mtprof_flight;

enum {
    MTPROF_FLIGHT_PATH_BYTES = 1024 /**< of the path of a dump, the zero byte included */
};

/** A dump that was made. Set struct_size; no byte past it is written. */
typedef struct mtprof_flight_dump_info {
    uint32_t struct_size;
    uint32_t sequence;      /**< 1 for the first dump of this recorder */
    int64_t from_ns, to_ns; /**< the window, CLOCK_MONOTONIC (mtprof_dump_info) */
    uint64_t bytes;         /**< of the file */
    uint64_t chunks_missed; /**< mtprof_dump_info */
    uint64_t took_ns;
    uint64_t step;      /**< the step that was running */
    const char *reason; /**< as given; lives until the call, or the callback, returns */
    char path[MTPROF_FLIGHT_PATH_BYTES];
} mtprof_flight_dump_info;

enum mtprof_flight_flags {
    MTPROF_FLIGHT_IN_MEMORY = 1, /**< the ring is memory: nothing of it survives a kill -9 */
    MTPROF_FLIGHT_NO_STEPS = 2   /**< no file of step summaries */
};

/** Why a dump was made; in its metadata as "dump_trigger". */
enum mtprof_flight_trigger_kind {
    MTPROF_TRIGGER_ASKED,     /**< by the program */
    MTPROF_TRIGGER_SIGNAL,    /**< dump_signal */
    MTPROF_TRIGGER_SLOW_STEP, /**< slow_step */
    MTPROF_TRIGGER_HANG,      /**< hang_ns */
    MTPROF_TRIGGER_EXCEPTION, /**< nobody handles it; from the host's language */
    MTPROF_TRIGGER_MEMORY,    /**< out of memory; from the host */
    MTPROF_TRIGGER_EXIT,      /**< dump_at_stop */
    MTPROF_TRIGGER_ELSEWHERE, /**< another rank of the job had a trigger */
    MTPROF_TRIGGER_COUNT
};

/** "asked", "signal", "slow step" … for a kind; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_flight_trigger_name(uint32_t kind);

/** What on_trigger is told. The text lives until it returns. */
typedef struct mtprof_flight_trigger_info {
    uint32_t struct_size;
    uint32_t kind; /**< enum mtprof_flight_trigger_kind */
    const char *reason;
    mtprof_status status; /**< of the dump */
} mtprof_flight_trigger_info;

/** Set struct_size and folder, leave the rest zero for the defaults. Fields are only appended. */
typedef struct mtprof_flight_config {
    uint32_t struct_size;
    uint32_t flags;        /**< enum mtprof_flight_flags */
    const char *folder;    /**< made where it does not exist (its parent must); at most 800 bytes.
                                Borrowed */
    const char *name;      /**< begins every file's name; letters, digits, '.', '_', '-', at most 64
                                characters. Ranks of a job that share a folder need different ones.
                                NULL: "pid" and the process's id. Borrowed */
    uint64_t wants;        /**< enum mtprof_want; 0: MTPROF_WANT_DEFAULT */
    uint64_t buffer_bytes; /**< of the ring; 0: 64 MiB, or a quarter more than keep_bytes, so that
                                what is being dumped is not reused meanwhile */
    /** What a dump has: the last so many nanoseconds, complete steps, bytes (mtprof_dump_options).
     * Bounds of 0 do not apply, of several the narrowest does. */
    uint64_t keep_ns, keep_steps, keep_bytes;
    uint64_t dumps_max;       /**< older dumps of this name are deleted beyond so many; 0: 16 */
    uint64_t dumps_bytes_max; /**< and beyond so many bytes; 0: 4 GiB. The newest always stays */
    uint64_t
        dumps_distance_ns; /**< a dump that comes earlier after the last one is refused; 0: 10 s
                                     (1: none is) */
    /** Called after each dump, on the thread that made it. */
    void (*on_dump)(void *user, const mtprof_flight_dump_info *dump);
    /** As in mtprof_config; and for dumps that fail while nobody waits for their status. */
    void (*on_warning)(void *user, mtprof_status status, const char *message);
    void *user; /**< of both */
    /** A signal that asks for a dump; 0: none. A handler that the program had is called as well. A
     * signal that ends programs (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU) and had no handler ends
     * this one after the dump; others that had none do not any more. */
    int32_t dump_signal;
    int32_t stacks_signal; /**< by which a hang's native stacks are taken; it must have no handler.
                                0: a real-time signal that has none; -1: no native stacks */
    double slow_step; /**< dump when a step takes so many times the median of the last 128 (1.1 or
                           more), and longer than the loop's noise explains; 0: never. Steps that
                           are slow at regular distances are dumped three times, then expected */
    uint64_t
        hang_ns; /**< dump, with the stacks of all threads in the metadata ("dump_stacks"), when
                           a step takes longer than this; before the first step, when there is no
                           event for so long. 0: never; at least a millisecond */
    uint32_t dump_at_stop; /**< 1: dump when the recorder is stopped */
    uint32_t overhead_ppm; /**< the most that recording may take, see mtprof_config; 0: no limit */
    /** Called after the dump of a trigger, unless the budget refused it; not for ELSEWHERE, so that
     * ranks do not answer each other. For signals, slow steps and hangs on a thread of the
     * recorder, else on the one that called mtprof_flight_trigger(). It may stop the recorder. */
    void (*on_trigger)(void *user, const mtprof_flight_trigger_info *trigger);
    /** Writes the stacks of the language's threads to a file, within about wait_ns, on a thread of
     * the recorder while the program hangs; false: there are none. NULL: native stacks alone. */
    bool (*write_stacks)(void *user, int fd, uint64_t wait_ns);
    uint64_t steps_bytes_max; /**< NAME.steps and NAME.steps.old together stay below this: the older
                                   half goes; 0: 4 GiB */
    uint32_t counters_hz;     /**< counters of the process, see mtprof_config; 0: none */
    uint32_t reserved;
} mtprof_flight_config;

/** Set struct_size; no byte past it is written. */
typedef struct mtprof_flight_counts {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t steps;          /**< mtprof_flight_step() so far */
    uint64_t dumps;          /**< made */
    uint64_t refused;        /**< by dumps_distance_ns */
    uint64_t failed;         /**< for another reason */
    uint64_t deleted;        /**< old ones, to keep within the budget */
    uint64_t chunks_missed;  /**< sum over the dumps */
    uint64_t summaries;      /**< steps that are in the file of summaries */
    uint64_t summaries_lost; /**< steps that have ended and are not: the disk is full */
} mtprof_flight_counts;

/**
 * Starts to record. *out belongs to the caller until mtprof_flight_release().
 *
 * Fails with EINVAL (a bad field; the message names it), EBUSY (a flight recorder or other session
 * is active, or another process records under this name), EIO (the folder cannot be made), EFORMAT
 * (NAME.steps is another file), ENOSPC, ENOMEM. Then *out is NULL and nothing records.
 */
MTPROF_API mtprof_status mtprof_flight_start(const mtprof_flight_config *config,
                                             mtprof_flight **out);

/**
 * Ends the running step and begins the next. The first one, 0, begins at start.
 *
 * Fails with ESTATE (stopped, or in a forked child).
 */
MTPROF_API mtprof_status mtprof_flight_step(mtprof_flight *flight);

/**
 * Writes the last part of the recording as a complete trace, and deletes old dumps beyond the
 * budget; the recording goes on (mtprof_session_dump). The reason (any text; NULL: "asked") is in
 * the file's name, as far as a name can have it, and in its metadata as "dump_reason". One dump is
 * written at a time: a second thread waits. info may be NULL.
 *
 * Fails with ESTATE (stopped, or in a forked child), EBUSY (too early after the last one; counted),
 * EINVAL (struct_size of the info is 0), and as mtprof_session_dump() does.
 */
MTPROF_API mtprof_status mtprof_flight_dump(mtprof_flight *flight, const char *reason,
                                            mtprof_flight_dump_info *info);

/**
 * The same for a reason of one of the kinds, and calls on_trigger. For what the library cannot see
 * by itself: exceptions, memory, triggers of other ranks. reason NULL: the kind's name.
 *
 * Fails as mtprof_flight_dump() does, and with EINVAL (an unknown kind).
 */
MTPROF_API mtprof_status mtprof_flight_trigger(mtprof_flight *flight, uint32_t kind,
                                               const char *reason, mtprof_flight_dump_info *info);

/** Fills counts up to its struct_size. Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_flight_get_counts(mtprof_flight *flight,
                                                  mtprof_flight_counts *counts);

/** The session that records, for its health and metadata. Its start, stop and windows belong to the
 * flight recorder. It lives until mtprof_flight_stop(). NULL once that was called. */
MTPROF_API mtprof_session *mtprof_flight_session(mtprof_flight *flight);

/**
 * Ends the recording; the ring is then a closed trace in the folder. Waits for a dump that is being
 * written. Stopping a stopped one does nothing.
 *
 * Fails with ESTATE (in a forked child), and as mtprof_session_close() does.
 */
MTPROF_API mtprof_status mtprof_flight_stop(mtprof_flight *flight);

/** The process's active flight recorder, with a reference of its own for the caller
 * (mtprof_flight_release), or NULL. */
MTPROF_API mtprof_flight *mtprof_flight_current(void);

/** Gives up a reference; the last one stops the recording and frees the handle. NULL is allowed. */
MTPROF_API void mtprof_flight_release(mtprof_flight *flight);

/* ---- step summaries -------------------------------------------------------------------------- */

/* What the flight recorder keeps of every step for the whole life of a job, in NAME.steps
 * (docs/flight.md has the bytes):
 *
 *     mtprof_steps *steps = NULL;
 *     mtprof_step_summary step = {.struct_size = sizeof step};
 *     if (mtprof_steps_open("flight/rank0.steps", &steps) == MTPROF_OK) {
 *         while (mtprof_steps_next(steps, &step) == MTPROF_OK) { … }
 *     }
 *     mtprof_steps_close(steps);
 *
 * The file may grow meanwhile, and be of a process that was killed. A summary's arrays and texts
 * live until the next call with this mtprof_steps. Threads: one at a time.
 */

typedef struct mtprof_steps mtprof_steps;

enum {
    MTPROF_STEPS_OPS = 16,           /**< most ops of a summary */
    MTPROF_STEPS_DEVICES = 8,        /**< most devices */
    MTPROF_STEPS_NAME_BYTES = 96,    /**< most bytes of an op's name; longer ones are cut */
    MTPROF_STEPS_RECORD_BYTES = 3072 /**< a record of the file is not longer */
};

/** An op, scope or kernel. Never changes: they come in arrays. */
typedef struct mtprof_step_op {
    mtprof_text name;
    double self_ns, total_ns, calls; /**< as in mtprof_live_row */
    uint32_t device;                 /**< 0: the host; else number among the devices + 1 */
    uint16_t kind;                   /**< enum mtprof_event_kind */
    uint16_t name_cut;               /**< 1: the name was longer */
} mtprof_step_op;

/** Never changes: they come in arrays. Bytes are -1 where they were not recorded. */
typedef struct mtprof_step_device {
    mtprof_text type; /**< "CUDA" …, at most 12 bytes of it */
    uint64_t index;
    double busy_ns; /**< of the work that was reported during the step */
    int64_t allocated, reserved_memory;
} mtprof_step_device;

/** Set struct_size; no byte past it is written. */
typedef struct mtprof_step_summary {
    uint32_t struct_size;
    uint32_t run;          /**< 0 for the file's first recorder, 1 for the next … */
    uint64_t first, steps; /**< number of the first step; how many: more than 1 where they are so
                                short that they share a summary */
    int64_t start_ns;      /**< CLOCK_MONOTONIC */
    int64_t start_real_ns; /**< since 1970, UTC */
    uint64_t duration_ns;
    double events;     /**< that were recorded */
    double read_share; /**< part of the records that was read, 1: all. Numbers of ops and devices
                              are scaled up where it is less */
    uint64_t lost;     /**< events that the recorder could not keep, since the summary before */
    uint64_t missed;   /**< chunks that the ring had used again before they were read, likewise */
    int64_t rss_bytes; /**< of the process, when the summary was written; -1: not known */
    int64_t allocated; /**< bytes on the host at the end; -1: allocations are not recorded */
    int64_t allocated_most; /**< the most during the step */
    double self_ns;         /**< sum over all names of the host, also those that are not listed */
    uint32_t n_ops, n_devices;
    uint32_t ops_all, devices_all; /**< how many there were */
    const mtprof_step_op *ops;     /**< by self time, largest first */
    const mtprof_step_device *devices;
} mtprof_step_summary;

/** What was read so far. Set struct_size. */
typedef struct mtprof_steps_info {
    uint32_t struct_size;
    uint32_t runs;
    uint64_t summaries;  /**< records of steps */
    uint64_t steps;      /**< in these */
    uint64_t gaps;       /**< steps of a run that have no summary, though a later one has */
    uint64_t damaged;    /**< places that failed their checksum, or are no records */
    uint64_t bytes_lost; /**< there */
    uint64_t
        tail_bytes;   /**< at the file's end that are no complete record: one is being written, or
                              was when its process was killed */
    uint64_t unknown; /**< records of kinds that this version does not know */
    uint64_t pid;     /**< of the last run */
} mtprof_steps_info;

/**
 * Opens a file of summaries.
 *
 * Fails with EINVAL (path NULL), EIO, EFORMAT (the file is something else), EVERSION, ENOMEM.
 */
MTPROF_API mtprof_status mtprof_steps_open(const char *path, mtprof_steps **out);
/** Accepts NULL. */
MTPROF_API void mtprof_steps_close(mtprof_steps *steps);

/**
 * The next summary. Damage is passed over and counted.
 *
 * Fails with EEND (there is none; a later call finds what the file got meanwhile), EINVAL
 * (struct_size 0), EIO.
 */
MTPROF_API mtprof_status mtprof_steps_next(mtprof_steps *steps, mtprof_step_summary *summary);

/** Fills info up to its struct_size. Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_steps_get_info(const mtprof_steps *steps, mtprof_steps_info *info);

MTPROF_END_DECLS

#endif /* MTPROF_FLIGHT_H */
