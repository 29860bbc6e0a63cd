/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of a profile, shared by the files profile*.c.
 *
 *   profile.c           the calls that change it: new, free, start, step, stop, toggle
 *   profile_trace.c     the transition table and what its letters mean
 *   profile_owner.c     who may change it: ownership, callbacks, warnings, sessions' lifetime
 *   profile_metadata.c  keys and values, trace ids
 *   profile_activity.c  activities and flags, and what they make the recorder record
 *   profile_results.c   the calls that only read
 *
 * Invariants
 *   PR1  Fields below `lock` are written only by the owner, and under the lock. So the owner reads
 *        them without it, and all others with it. (`refs` and `trace_id_*`: any thread, under it.)
 *   PR2  No lock is held while a callback or a session function runs, except `metadata_lock` around
 *        mtprof_session_add_metadata(), which calls no callback.
 *   PR3  After a callback the owner looks again: the session it worked on may be over
 *        (mtprof__profile_moved), and then it does nothing more.
 *   PR4  phase OPEN if and only if the session's window is open; and then life is ACTIVE.
 *   PR5  `undelivered` is set when a window opens and cleared before its on_trace_ready.
 *   PR6  In a forked child no lock is taken: another thread of the parent may have held it.
 */
#ifndef MTPROF_CONTROL_PROFILE_IMPL_H
#define MTPROF_CONTROL_PROFILE_IMPL_H

#include "base/compiler.h"

#include <mtprof/profile.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum mtprof__life {
    LIFE_NEW,    /* never started */
    LIFE_ACTIVE, /* holds the session */
    LIFE_STOPPED,
    LIFE_ENDED /* a failure stopped it: the next stop is silent */
};

enum mtprof__phase {
    PHASE_IDLE,
    PHASE_PREPARED,
    PHASE_OPEN
};

/* A session and its users: the profile as the active one, its results, readers. */
typedef struct mtprof__profile_run {
    mtprof_session *session;
    uint32_t refs;
    uint32_t n_windows; /* opened so far: the number of the latest one */
    bool prepared;      /* a trace was prepared: metadata belongs to it */
} mtprof__profile_run;

typedef struct mtprof__pair {
    char *key, *value;
    size_t key_length, value_length;
    bool is_json;
} mtprof__pair;

typedef int (*mtprof__trace_id_callback)(void *user, char *text, size_t size);

struct mtprof_profile {
    /* Constant after new. The config's texts are NULL, its schedule points to ours. */
    mtprof_profile_config config;
    mtprof_schedule schedule;
    char *path, *spill_directory; /* NULL: none */
    pid_t pid;

    pthread_mutex_t metadata_lock; /* guards pairs; taken before lock, never after */
    mtprof__pair *pairs;
    size_t n_pairs, pairs_capacity;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* the owner left, or entered a callback */
    uint32_t depth;         /* how often the owner has entered; 0: there is none */
    uint32_t callbacks;     /* how many callbacks the owner is in */
    pthread_t owner;

    enum mtprof__life life;
    enum mtprof__phase phase;
    bool started;     /* by start(); false: prepared by hand */
    bool initialized; /* a trace was prepared once */
    bool undelivered;
    bool observing;  /* the observer was called for a start and not yet for the stop */
    uint64_t serial; /* counts sessions, PR3 */

    mtprof__profile_run *active;   /* while life is ACTIVE */
    mtprof__profile_run **results; /* the sessions with the results, oldest first */
    size_t n_results, results_capacity;

    int64_t step_num;
    int action;          /* enum mtprof_action, or another value of a callback */
    int64_t run_step;    /* step_num at start */
    uint64_t step_calls; /* since start */
    int64_t window_step; /* step_num when the latest window opened, -1: none */
    int64_t window_steps;
    uint32_t first_window;
    uint32_t saved, delivered;
    uint32_t activities; /* what is recorded */
    uint32_t collecting; /* the part of it that is switched on */
    int callback_result;

    mtprof_token step_token;
    pthread_t step_thread;

    mtprof__trace_id_callback trace_id_callback;
    void *trace_id_user;
    char trace_id[MTPROF_TRACE_ID_BYTES];
};

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Copies and checks a caller's schedule. */
int mtprof__schedule_read(const mtprof_schedule *schedule, mtprof_schedule *out);
/* The action of a step >= 0 of a checked schedule. */
enum mtprof_action mtprof__schedule_at(const mtprof_schedule *schedule, int64_t step);
/* How many steps lie between a step and the next that records; false: none ever does. */
bool mtprof__schedule_needs(const mtprof_schedule *schedule, int64_t step, uint64_t *needs);

/* ---- profile_owner.c ------------------------------------------------------------------------- */

/* ESTATE in a forked child, EINVAL for NULL. */
int mtprof__profile_check(const mtprof_profile *profile, const char *call);

void mtprof__profile_lock(mtprof_profile *profile);
void mtprof__profile_unlock(mtprof_profile *profile);

/* Whether a call may be made from inside a callback of the same profile, and the answer if not. */
enum mtprof__nesting {
    NESTING_ALLOWED,
    NESTING_ESTATE,
    NESTING_EBUSY
};

/*
 * Makes the calling thread the owner; waits for another one, but not for its callbacks (EBUSY).
 * Each success is followed by one mtprof__profile_leave().
 */
int mtprof__profile_enter(mtprof_profile *profile, const char *call, enum mtprof__nesting nesting);
void mtprof__profile_leave(mtprof_profile *profile);

/* Around every callback the owner makes. */
void mtprof__callback_begin(mtprof_profile *profile);
void mtprof__callback_end(mtprof_profile *profile);
/* Notes what a callback returned: ECALLBACK unless it is 0. */
int mtprof__callback_check(mtprof_profile *profile, const char *callback, int result);

/* True when the session counted `serial` is over. */
bool mtprof__profile_moved(const mtprof_profile *profile, uint64_t serial);

/* For the owner; leaves the last failure as it was. */
void mtprof__profile_warn(mtprof_profile *profile, mtprof_status status, const char *format, ...)
    MT_PRINTF(3, 4);

/* A reference to the session that calls about results read, or NULL. */
mtprof__profile_run *mtprof__run_take_latest(mtprof_profile *profile);
/* Gives a reference back; the last one closes the session and gives its status. Accepts NULL. */
int mtprof__run_drop(mtprof_profile *profile, mtprof__profile_run *run);
/* The same for the owner, with a warning when the trace could not be finished. */
void mtprof__run_drop_warn(mtprof_profile *profile, mtprof__profile_run *run);

/* ---- profile_activity.c ---------------------------------------------------------------------- */

/* EINVAL where bits are not enum mtprof_watch. */
int mtprof__activities_check(uint32_t activities, const char *call);
/* The requested activities that are available; never 0. */
uint32_t mtprof__activities_present(uint32_t asked);
/* The gate bits for a set of activities and flags. */
uint64_t mtprof__wants(uint32_t activities, uint32_t flags);

/* ---- profile_metadata.c ---------------------------------------------------------------------- */

/* Puts the flags, the presets and what was added early into the active session. */
int mtprof__metadata_emit(mtprof_profile *profile);
void mtprof__metadata_free(mtprof_profile *profile);
/* Asks for the id of the next trace: text has room for MTPROF_TRACE_ID_BYTES. */
int mtprof__trace_id_make(mtprof_profile *profile, char *text);

/* ---- profile_trace.c: for the owner ---------------------------------------------------------- */

/* A session of our own becomes active, its gate shut. */
int mtprof__session_open(mtprof_profile *profile);
/* Closes what is open and stops the session; results stay. life: what the profile is afterwards. */
int mtprof__session_end(mtprof_profile *profile, enum mtprof__life life);
/* The same after a failure, whose status and detail stay: ENDED, unless another session has come
 * since. Returns the status; MTPROF_OK does nothing. */
int mtprof__session_fail(mtprof_profile *profile, uint64_t serial, int status);

int mtprof__trace_prepare(mtprof_profile *profile);
int mtprof__trace_start(mtprof_profile *profile);
int mtprof__trace_stop(mtprof_profile *profile, bool keep);

/* What happens between two steps. Returns early, with MTPROF_OK, once the session is over (PR3). */
int mtprof__transition(mtprof_profile *profile, int from, int to);
/* What happens at stop(): the session is over before on_trace_ready is called. */
int mtprof__transition_stop(mtprof_profile *profile);

/* The step's annotation and its note in the trace. */
void mtprof__step_begin(mtprof_profile *profile);
void mtprof__step_end(mtprof_profile *profile);
int mtprof__step_note(mtprof_profile *profile);

#endif /* MTPROF_CONTROL_PROFILE_IMPL_H */
