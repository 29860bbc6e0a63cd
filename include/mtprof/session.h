/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording sessions: the plain way to record. profile.h adds schedules and callbacks on top.
 *
 *      start ──► recording ──stop──► stopped ──close──► gone
 *                  ▲   │
 *                  └───┴ pause / resume (the gate shut and open again)
 *
 * Recording is process-wide: every thread takes part from its first event on. At most one session
 * is active in the process at a time; a session that has stopped but is not closed keeps its
 * results and does not count.
 *
 * With a path the buffers are the file: what has been recorded survives the death of the process.
 * A symbolic link is followed; the new file has the permissions of the one it replaces, else those
 * of the umask. On a file system without locks the file is not locked: there is a warning, two
 * processes that record into one path are not noticed (EBUSY), and health.unlocked is 1. See
 * SECURITY.md.
 *
 * Threads: every function may be called from any thread. No lock is held while a callback runs.
 * After fork() the child has no session: handles inherited from the parent return ESTATE there and
 * may only be closed.
 */
#ifndef MTPROF_SESSION_H
#define MTPROF_SESSION_H

#include <mtprof/api.h>
#include <mtprof/health.h>
#include <mtprof/reader.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_session mtprof_session;

/** What is recorded unless a session says otherwise. */
#define MTPROF_WANT_DEFAULT                                                           \
    (MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_RUNTIME | MTPROF_WANT_MARKS | \
     MTPROF_WANT_DEVICE)

/** A session remembers when its last so many steps began. */
#define MTPROF_SESSION_STEPS_MAX 4096

/** Set struct_size, leave the rest zero for the defaults. Fields are only ever appended. */
typedef struct mtprof_config {
    uint32_t struct_size;  /**< sizeof(mtprof_config) as the caller was compiled */
    uint32_t policy;       /**< enum mtprof_policy */
    const char *path;      /**< trace file to record into; NULL: memory. Borrowed for the call */
    uint64_t buffer_bytes; /**< byte budget of events. 0: a quarter of the available memory without
                                a path, 64 MiB in ring mode, none otherwise; at least 64 KiB. Names
                                and other definitions come on top of it in ring and stop mode */
    uint64_t ring_ns;      /**< ring mode: discard chunks that are older than this, even if there
                                is still room; 0: keep what fits */
    uint64_t wants;        /**< enum mtprof_want; 0: MTPROF_WANT_DEFAULT */
    uint32_t paused;       /**< 1: start with the gate shut; mtprof_session_resume() opens it */
    /** 1: the path may be given to several processes (through the environment, say). "%p" in it is
     * the process's id, and where another process records to it already this one takes
     * "NAME.PID.mtt" for "NAME.mtt", with a warning, instead of failing with EBUSY. */
    uint32_t path_shared;
    /** Called at most once per kind of trouble (disk full, budget reached …) from a helper thread,
     * and for a source that refuses to take part from the thread that starts it; never from inside
     * a recording call. */
    void (*on_warning)(void *user, mtprof_status status, const char *message);
    void *user;
    const char *spill_directory; /**< for temporary files; NULL: /tmp. Borrowed for the call */
    /** How long the end of a window, or a pause, waits for a device that reports nothing. While the
     * device keeps reporting there is no limit: every record restarts the timeout. When it expires,
     * the missing records are given up with a warning, and counted (health.unmatched). 0: 30
     * seconds. */
    uint64_t device_wait_ns;
    uint64_t ring_steps; /**< ring mode: discard chunks that ended before the last so many complete
                              steps (mtprof_session_step) began, even if there is still room; below
                              MTPROF_SESSION_STEPS_MAX; 0: no bound in steps. With ring_ns too a
                              chunk is discarded when both bounds allow it. The byte budget holds in
                              any case */
    /** The most that recording may take, in millionths of the process's processor time (10000 is
     * 1 %); 0: no limit. The recorder measures what it costs and leaves out what does not fit:
     * payloads first, then of ops that come often most, then all ops, then of scopes that come
     * often most, and at last everything but steps for most of the time (enum mtprof_limit_level).
     * It records more again when there is room. Every change is in the trace, and so is what was
     * left out, by name (docs/format.md, LIMIT and UNRECORDED; health.h). A process that computes
     * for less than a tenth of the time counts as if it did so for a tenth. At most 1000000. */
    uint32_t overhead_ppm;
    /** Counters of the process so many times a second, at most 1000; 0: none. CPU cores in use,
     * resident bytes, context switches, page faults and, where the kernel allows it, instructions,
     * cycles, cache and branch misses of the processor (docs/guide-c.md). They need
     * MTPROF_WANT_MARKS and a thread. */
    uint32_t counters_hz;
} mtprof_config;

/**
 * Begins recording.
 *
 * An existing file at the path is replaced once the new one is ready; until then it is left
 * alone. On success *out belongs to the caller until mtprof_session_close(). On failure *out is
 * NULL and nothing has changed.
 *
 * Fails with EINVAL (a bad field; the message names it), ENOMEM, EIO (the path cannot be created),
 * ENOSPC (not even the first block fits), EBUSY (a session is active here, or the file at the path
 * is being recorded by another process).
 */
MTPROF_API mtprof_status mtprof_session_start(const mtprof_config *config, mtprof_session **out);

/**
 * Ends recording, in time that depends on the number of threads only, and waits for devices that
 * still work on what was launched (device_wait_ns). Scopes that are open end here and count as
 * truncated. Stopping a stopped session does nothing.
 *
 * Fails with ESTATE (in a forked child).
 */
MTPROF_API mtprof_status mtprof_session_stop(mtprof_session *session);

/**
 * Shuts the gate without ending the session, and opens it again. What is open at a pause ends
 * there. Pausing twice and resuming twice do nothing. wants 0 in resume: as before.
 *
 * Fail with ESTATE (the session has stopped), EBUSY (another thread is changing it right now),
 * EINVAL (wants has unknown bits).
 */
MTPROF_API mtprof_status mtprof_session_pause(mtprof_session *session);
MTPROF_API mtprof_status mtprof_session_resume(mtprof_session *session, uint64_t wants);

/**
 * Windows, for schedules: a session that was started paused records from open to close. An open
 * window may be paused and resumed. keep false marks the window as discarded.
 *
 * Fail with ESTATE (a window is open / none is open, or the session has stopped), EBUSY, EINVAL as
 * above.
 */
MTPROF_API mtprof_status mtprof_session_window_open(mtprof_session *session, uint64_t wants,
                                                    uint32_t step);
MTPROF_API mtprof_status mtprof_session_window_close(mtprof_session *session, bool keep);

/** Notes in the trace that a step begins. action as in docs/format.md (STEP). */
MTPROF_API mtprof_status mtprof_session_step(mtprof_session *session, uint64_t step,
                                             uint32_t action);

/**
 * Discards everything that was recorded before; memory that has no reader is reused. For results of
 * one window only. Sessions with a path keep theirs: there it does nothing.
 *
 * Fails with ESTATE (a window is open, or the session has stopped), EBUSY as above, and as start
 * does where there is no memory for the new buffers: then the session has stopped, with its old
 * results.
 */
MTPROF_API mtprof_status mtprof_session_clear(mtprof_session *session);

/**
 * Puts a key and a value into the trace; a later value replaces an earlier one. Any bytes are
 * allowed. Works until close.
 *
 * Fails with EINVAL (key NULL or empty, text of more than 16 MiB), ENOMEM, ENOSPC.
 */
MTPROF_API mtprof_status mtprof_session_add_metadata(mtprof_session *session, const char *key,
                                                     size_t key_length, const char *value,
                                                     size_t value_length, bool is_json);

/** Fills health up to its struct_size. Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_session_get_health(mtprof_session *session, mtprof_health *health);

/**
 * The session's bytes for mtprof_reader_open_bytes(), live or stopped. They stay valid after the
 * session is closed, until bytes->close(). Set struct_size. Fails with EINVAL (struct_size too
 * small).
 */
MTPROF_API mtprof_status mtprof_session_get_bytes(mtprof_session *session, mtprof_bytes *bytes);

/**
 * Writes the trace of a stopped session to a file: under another name first, then renamed.
 *
 * Fails with ESTATE (still recording), EIO, ENOSPC, ENOMEM.
 */
MTPROF_API mtprof_status mtprof_session_save(mtprof_session *session, const char *path);

/** The same; progress (an mtprof_progress of model.h) is called with the bytes written so far, and
 * cancels with any value but 0: ECALLBACK, and no file is left. NULL: no progress. */
MTPROF_API mtprof_status mtprof_session_save_with(mtprof_session *session, const char *path,
                                                  int (*progress)(void *user, const char *what,
                                                                  uint64_t done, uint64_t total),
                                                  void *user);

/** What part of a recording a dump has. Bounds of 0 do not apply; of several the narrowest does. */
typedef struct mtprof_dump_options {
    uint32_t struct_size;
    uint32_t last_steps; /**< the last so many complete steps, and what came after; a session that
                              had fewer is dumped from its start. Below MTPROF_SESSION_STEPS_MAX */
    uint64_t last_ns;    /**< the last so many nanoseconds */
    uint64_t last_bytes; /**< the newest full chunks of at most so many bytes; those that are still
                              being filled, and definitions, come on top */
    const char *reason;  /**< metadata "dump_reason"; NULL: none. Borrowed for the call */
    const char *trigger; /**< likewise "dump_trigger" */
    const char *stacks;  /**< likewise "dump_stacks", at most 16 MiB */
} mtprof_dump_options;

/** What a dump has. Times are CLOCK_MONOTONIC. */
typedef struct mtprof_dump_info {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t from_ns;        /**< every event that began from here on … */
    int64_t to_ns;          /**< … up to here is in the dump, as far as the recorder had it */
    uint64_t bytes, chunks; /**< of the file */
    uint64_t chunks_missed; /**< chunks that were to be part of it, but the ring reused them before
                                 they were copied: the window begins after them */
    uint64_t took_ns;
} mtprof_dump_info;

/**
 * Writes the last part of a session as a complete trace of its own, while it goes on recording;
 * writers do not wait. A stopped session is dumped as well. The file is written under another name
 * and renamed: whatever happens, the path has its old file or the complete new one.
 *
 * The dump has whole chunks, so it may begin before the window. Of threads that record nothing it
 * has the last chunk, however old: what they were in is part of the picture. Scopes that are open
 * end at the dump. It counts what it leaves out as discarded by a ring (health.evicted). Metadata:
 * that of the session; "dump_reason"; "dump_window", JSON with "from_ns", "to_ns",
 * "chunks_missed".
 *
 * options NULL: everything that there is. info may be NULL.
 *
 * Fails with EINVAL (the message names the field), ESTATE (in a forked child), EBUSY (another
 * thread is starting or stopping the session), EIO, ENOSPC, ENOMEM: then there is no new file.
 */
MTPROF_API mtprof_status mtprof_session_dump(mtprof_session *session, const char *path,
                                             const mtprof_dump_options *options,
                                             mtprof_dump_info *info);

/**
 * Finishes the file (checksums, size) and frees the session; stops it first where needed. NULL is
 * allowed.
 *
 * Fails with EIO (the file could not be finished; what was recorded is still in it). The session is
 * freed all the same.
 */
MTPROF_API mtprof_status mtprof_session_close(mtprof_session *session);

MTPROF_END_DECLS

#endif /* MTPROF_SESSION_H */
