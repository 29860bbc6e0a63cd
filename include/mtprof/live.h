/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording while it runs: what took the time in the last seconds.
 *
 *     mtprof_live *live = NULL;
 *     if (mtprof_live_open("trace.mtt", NULL, &live) == MTPROF_OK) {
 *         while (mtprof_live_poll(live, 0) == MTPROF_OK) {
 *             mtprof_live_get_rows(live, NULL, &rows, &n);    // the last seconds, by self time
 *             sleep(1);
 *         }
 *     }
 *     mtprof_live_close(live);
 *
 * A recording is a file, so any process may follow it: nothing is asked of the one that records,
 * and nothing in it waits. A poll reads what was published since the one before. Where that is more
 * than most_bytes, it reads some chunks of it and scales the numbers up; how much was read is in
 * the info. Chunks that ring mode takes back before they are read are counted, never misread.
 *
 *   LIVE1  Without most_bytes and missed chunks every begin is counted once, and the self times of
 *          all polls add up to those of a model of the finished trace. (Times of a trace's last
 *          second are extrapolated until the next clock anchor is there: they may differ by the
 *          clock's drift. So do scopes that another thread ends.)
 *   LIVE2  A scope that is still open has the self time that it took so far.
 *   LIVE3  Memory is bounded by the rows, the polls of a window and what is open, whatever the
 *          length of the recording.
 *
 * Lifetime: rows and their texts live until the next call with this mtprof_live that is not a
 * getter. Threads: one at a time.
 */
#ifndef MTPROF_LIVE_H
#define MTPROF_LIVE_H

#include <mtprof/api.h>
#include <mtprof/format.h>
#include <mtprof/reader.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_live mtprof_live;

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_live_options {
    uint32_t struct_size;
    /** 1: from the recording's first event on. Otherwise from one window before the first poll. */
    uint32_t from_start;
    int64_t window_ns; /**< rows are about this long; 0: 5 seconds */
    /** Most bytes of records that a poll reads, about; 0: no bound. An event takes 24 and more. */
    uint64_t most_bytes;
} mtprof_live_options;

enum mtprof_live_state {
    MTPROF_LIVE_RUNNING = 0,
    MTPROF_LIVE_STOPPED = 1, /**< nobody records into the file; its process is there */
    MTPROF_LIVE_GONE = 2,    /**< its process is gone, and did not finish the file */
    MTPROF_LIVE_CLOSED = 3   /**< the recorder finished the file */
};

/** What the last poll found. "In the window": in the polls that the rows are about. */
typedef struct mtprof_live_info {
    uint32_t struct_size;
    uint32_t state; /**< enum mtprof_live_state */
    uint64_t pid;
    int64_t start_ns;   /**< of the recording; times are CLOCK_MONOTONIC of its machine */
    int64_t now_ns;     /**< of the last poll; once the recording has ended: its end */
    int64_t window_ns;  /**< how long the window is: not yet, or a poll more than, what was asked */
    uint64_t polls;     /**< in the window */
    uint64_t bytes_new; /**< records that were published, in the window */
    uint64_t bytes_read;  /**< of these: read. Numbers of rows are scaled by the rest */
    uint64_t events;      /**< begins, instants, counters, allocations …: read, in the window */
    double events_all;    /**< the same, scaled */
    uint64_t missed;      /**< chunks that ring mode took back before they were read, in all */
    uint64_t damaged;     /**< records and chunks that failed a check, in all */
    uint64_t rows_merged; /**< rows that were put under a coarser one, since there are too many */
    double steps;         /**< in the window */
    int64_t step;         /**< number of the last one; -1: none is known */
    uint32_t threads;     /**< that have something in the window */
    uint32_t devices;     /**< of mtprof_live_get_device() */
    uint64_t lost;        /**< events that the recorder could not keep, in all */
    uint64_t evicted;     /**< begins that ring mode let go, in all */
    int64_t allocated;    /**< bytes on the host; -1: allocations are not recorded */
    uint64_t file_bytes;
    uint32_t policy; /**< enum mtprof_policy */
    uint32_t reserved;
} mtprof_live_info;

/** One row. Times are nanoseconds; numbers of a window that was not read completely are scaled. */
typedef struct mtprof_live_row {
    mtprof_text name, module, shapes; /**< module, shapes: length 0 where they are not asked for */
    uint32_t thread;                  /**< logical number; 0: several, or a device's */
    uint32_t device;                  /**< 0: the host; else mtprof_live_get_device() + 1 */
    uint32_t kind;                    /**< enum mtprof_event_kind */
    uint32_t reserved;
    double calls;                  /**< that began */
    double ended;                  /**< that ended */
    double self_ns;                /**< without what ran inside; device work: its duration */
    double total_ns;               /**< of those that ended */
    double calls_all, self_all_ns; /**< since opening, not only in the window */
} mtprof_live_row;

enum mtprof_live_group {
    MTPROF_LIVE_BY_MODULE = 1 << 0,
    MTPROF_LIVE_BY_THREAD = 1 << 1,
    MTPROF_LIVE_BY_SHAPES = 1 << 2
};

enum mtprof_live_sort {
    MTPROF_LIVE_SORT_SELF = 0,
    MTPROF_LIVE_SORT_TOTAL = 1,
    MTPROF_LIVE_SORT_CALLS = 2,
    MTPROF_LIVE_SORT_MEAN = 3,
    MTPROF_LIVE_SORT_NAME = 4,
    MTPROF_LIVE_SORT_COUNT = 5
};

/** Which rows. Set struct_size, leave the rest zero: by name, all, by self time. */
typedef struct mtprof_live_query {
    uint32_t struct_size;
    uint32_t group;     /**< enum mtprof_live_group: what else tells rows apart */
    uint32_t sort;      /**< enum mtprof_live_sort, largest first */
    uint32_t idle;      /**< 1: also rows that have nothing in the window */
    const char *name;   /**< only names that have this part, of which * ? [a-z] are a pattern's */
    uint32_t functions; /**< 1: also functions of the host's language where there are ops */
    uint32_t ordered;   /**< so many rows are sorted, the rest follow in any order; 0: all are */
} mtprof_live_query;

typedef struct mtprof_live_device {
    uint32_t struct_size;
    uint32_t index;          /**< of its type */
    mtprof_text type;        /**< "CUDA", "NPU" … */
    double busy_ns;          /**< kernels, copies and sets, in the window; overlaps count once */
    int64_t allocated;       /**< bytes; -1: not recorded */
    int64_t reserved_memory; /**< by its allocator; -1: not recorded */
} mtprof_live_device;

/**
 * Opens a recording, live or finished. Nothing is read before the first poll. options may be NULL.
 *
 * Fails with EINVAL (path NULL, struct_size 0, a negative window), EIO, EFORMAT, EVERSION as
 * mtprof_reader_open(), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_live_open(const char *path, const mtprof_live_options *options,
                                          mtprof_live **out);
/** The same over any bytes (mtprof_session_get_bytes()); their close is called also on failure. */
MTPROF_API mtprof_status mtprof_live_open_bytes(const mtprof_bytes *bytes,
                                                const mtprof_live_options *options,
                                                mtprof_live **out);
/** Accepts NULL. */
MTPROF_API void mtprof_live_close(mtprof_live *live);

/**
 * Reads what is new, up to now: nanoseconds of CLOCK_MONOTONIC, 0: the clock is read. Damage is
 * counted and no failure.
 *
 * Fails with EIO, EFORMAT (the file is no longer the recording that was opened), ENOMEM. The next
 * call may be made all the same.
 */
MTPROF_API mtprof_status mtprof_live_poll(mtprof_live *live, int64_t now_ns);

/** A step, or several short ones, of which a poll has read everything. */
typedef struct mtprof_live_step {
    uint32_t struct_size;
    uint32_t last;            /**< set by the caller, 1: steps at the end of what was recorded that
                                   are too short are taken, too; no further ones are expected */
    uint64_t first;           /**< number of the first step */
    uint64_t steps;           /**< how many there are */
    int64_t start_ns, end_ns; /**< CLOCK_MONOTONIC */
    int64_t allocated_most;   /**< bytes on the host, the most in this time; -1: not recorded */
} mtprof_live_step;

/**
 * Reads up to the end of the next step: the rows, the info and the devices are then about that step
 * alone. Steps are those of mtprof_session_step() and mtprof_flight_step(); the part of a scope
 * that is before or after the step counts there. One that ends earlier than shortest_ns after its
 * begin is taken together with those that follow. now_ns as in mtprof_live_poll().
 *
 * Fails with EEND (no further step has ended; what there is of the running one was read, so a ring
 * may go on), and as mtprof_live_poll() does. Not for a view on which mtprof_live_poll() is called.
 */
MTPROF_API mtprof_status mtprof_live_poll_step(mtprof_live *live, int64_t now_ns,
                                               uint64_t shortest_ns, mtprof_live_step *step);

/** How long rows look back from the next poll on. Fails with EINVAL (less than 1). */
MTPROF_API mtprof_status mtprof_live_set_window(mtprof_live *live, int64_t window_ns);

/** Fills info up to its struct_size. Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_live_get_info(const mtprof_live *live, mtprof_live_info *info);

/**
 * The rows of the window. query may be NULL. *rows is NULL where there are none.
 *
 * Fails with EINVAL (struct_size 0, an unknown sort or group), ENOMEM.
 */
MTPROF_API mtprof_status mtprof_live_get_rows(mtprof_live *live, const mtprof_live_query *query,
                                              const mtprof_live_row **rows, uint32_t *n_rows);

/** Fills device up to its struct_size; index from 0. Fails with EINVAL (no such device). */
MTPROF_API mtprof_status mtprof_live_get_device(const mtprof_live *live, uint32_t index,
                                                mtprof_live_device *device);

/** The thread of a logical number; false: it is not known. */
MTPROF_API bool mtprof_live_thread(const mtprof_live *live, uint32_t number,
                                   mtprof_thread_info *out);

MTPROF_END_DECLS

#endif /* MTPROF_LIVE_H */
