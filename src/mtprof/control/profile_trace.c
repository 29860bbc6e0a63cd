/* SPDX-License-Identifier: Apache-2.0
 *
 * The transition table, and what its letters do to the session.
 *
 *      IDLE ──P──► PREPARED ──A──► OPEN ──Z──► IDLE ──C──► the results are handed over
 *
 * Everything here is called by the profile's owner. A function that makes a callback looks, before
 * it goes on, whether the session it worked on is still there (PR3 in profile_impl.h).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/control/profile_impl.h"

#include <stdio.h>
#include <string.h>

enum op {
    OP_END = 0,
    P, /* prepare the trace */
    A, /* start it: the window opens */
    Z, /* stop it: the window closes */
    C, /* on_trace_ready */
    E, /* an empty trace, A and Z together: a warm-up without a window */
    W  /* warn: the schedule makes no sense */
};

enum {
    N_ACTIONS = MTPROF_ACTION_RECORD_AND_SAVE + 1,
    TO_STOP = N_ACTIONS, /* the column of stop() */
    N_OPS = 5            /* at most four, and OP_END */
};

/* From the row's action to the column's: NONE, WARMUP, RECORD, RECORD_AND_SAVE, stop. */
static const uint8_t transitions[N_ACTIONS][N_ACTIONS + 1][N_OPS] = {
    [MTPROF_ACTION_NONE] = {{OP_END}, {P}, {P, A}, {P, A}, {OP_END}},
    [MTPROF_ACTION_WARMUP] = {{W, E}, {OP_END}, {A}, {A}, {E}},
    [MTPROF_ACTION_RECORD] = {{W, Z}, {W, Z}, {OP_END}, {OP_END}, {Z, C}},
    [MTPROF_ACTION_RECORD_AND_SAVE] = {{Z, C}, {Z, C, P}, {Z, C, P, A}, {Z, C, P, A}, {Z, C}},
};

static const char *const action_names[N_ACTIONS + 1] = {
    [MTPROF_ACTION_NONE] = "NONE",
    [MTPROF_ACTION_WARMUP] = "WARMUP",
    [MTPROF_ACTION_RECORD] = "RECORD",
    [MTPROF_ACTION_RECORD_AND_SAVE] = "RECORD_AND_SAVE",
    [TO_STOP] = "the end",
};

/* The advice about acc_events is given once per process. */
static bool advised;

/* ---- the session ----------------------------------------------------------------------------- */

int mtprof__session_open(mtprof_profile *profile)
{
    const mtprof_profile_config *given = &profile->config;
    uint32_t activities = mtprof__activities_present(given->activities);
    mtprof_config config = {
        .struct_size = sizeof config,
        .policy = given->policy,
        .path = profile->path,
        .buffer_bytes = given->buffer_bytes,
        .ring_ns = given->ring_ns,
        .wants = mtprof__wants(activities, given->flags),
        .paused = 1,
        .path_shared = given->path_shared,
        .on_warning = given->on_warning,
        .user = given->user,
        .spill_directory = profile->spill_directory,
        .device_wait_ns = given->device_wait_ns,
        .overhead_ppm = given->overhead_ppm,
        .counters_hz = given->counters_hz,
    };
    mtprof__profile_run *run = mtb_calloc(1, sizeof *run);
    if (run == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "start: no memory for a session");
    }
    int status = mtprof_session_start(&config, &run->session);
    if (status != MTPROF_OK) {
        mtb_free(run);
        return status;
    }
    run->refs = 1;
    mtprof__profile_lock(profile);
    profile->active = run;
    profile->life = LIFE_ACTIVE;
    profile->phase = PHASE_IDLE;
    profile->serial++;
    profile->started = false;
    profile->undelivered = false;
    profile->run_step = profile->step_num;
    profile->step_calls = 0;
    profile->saved = profile->delivered = 0;
    profile->activities = activities;
    mtprof__profile_unlock(profile);
    return MTPROF_OK;
}

/* Room for one more session among the results, so that adding it cannot fail later. */
static bool results_reserve(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    bool fits = mtb_grow((void **)&profile->results, &profile->results_capacity,
                         profile->n_results + 1, sizeof(mtprof__profile_run *));
    mtprof__profile_unlock(profile);
    return fits;
}

int mtprof__session_end(mtprof_profile *profile, enum mtprof__life life)
{
    uint64_t serial = profile->serial;
    mtprof__step_end(profile);
    int status = mtprof__trace_stop(profile, true);
    if (mtprof__profile_moved(profile, serial)) {
        return status;
    }
    mtprof__profile_run *run = profile->active;
    int stopped = mtprof_session_stop(run->session);
    /* A run without a window is worth keeping only where nothing better is: it has the health. */
    bool keep = !run->prepared && profile->n_results == 0 && results_reserve(profile);
    mtprof__profile_lock(profile);
    profile->life = life;
    profile->phase = PHASE_IDLE;
    profile->started = false;
    profile->active = NULL;
    if (keep) {
        profile->results[profile->n_results++] = run;
    }
    mtprof__profile_unlock(profile);
    if (!keep) {
        mtprof__run_drop_warn(profile, run);
    }
    return status != MTPROF_OK ? status : stopped;
}

int mtprof__session_fail(mtprof_profile *profile, uint64_t serial, int status)
{
    if (status == MTPROF_OK || profile->serial != serial) {
        return status;
    }
    mtb_failure kept = *mtb_last_failure();
    if (profile->life == LIFE_ACTIVE) {
        mtprof__session_end(profile, LIFE_ENDED);
    } else if (profile->life == LIFE_STOPPED) {
        /* It was stopped before the failure: by stop() itself, or from inside the callback. */
        mtprof__profile_lock(profile);
        profile->life = LIFE_ENDED;
        mtprof__profile_unlock(profile);
    }
    *mtb_last_failure() = kept;
    return status;
}

/* ---- the letters ----------------------------------------------------------------------------- */

static void advise_acc_events(mtprof_profile *profile)
{
    if ((profile->config.flags & MTPROF_PROFILE_ACC_EVENTS) == 0 &&
        profile->config.on_warning != NULL &&
        !__atomic_exchange_n(&advised, true, __ATOMIC_RELAXED)) {
        mtprof__profile_warn(
            profile, MTPROF_OK,
            "Profiler clears events at the end of each cycle. Only events from the "
            "current cycle will be reported. To keep events across cycles, set "
            "acc_events=True.");
    }
}

/* The active session becomes the results, alone or after the earlier ones. */
static void results_adopt(mtprof_profile *profile, const char *trace_id)
{
    bool accumulate = (profile->config.flags & MTPROF_PROFILE_ACC_EVENTS) != 0;
    mtprof__profile_run *run = profile->active;
    mtprof__profile_lock(profile);
    bool there = profile->n_results != 0 && profile->results[profile->n_results - 1] == run;
    size_t n_old = accumulate || there ? 0 : profile->n_results;
    mtprof__profile_unlock(profile);
    /* Old ones are taken from the list one by one, because they must not be closed under a
     * lock. */
    for (; n_old > 0; n_old--) {
        mtprof__profile_lock(profile);
        mtprof__profile_run *old = profile->results[--profile->n_results];
        mtprof__profile_unlock(profile);
        mtprof__run_drop_warn(profile, old);
    }
    mtprof__profile_lock(profile);
    if (!there) {
        run->refs++;
        profile->results[profile->n_results++] = run;
        profile->first_window = 1;
    }
    if (!accumulate) {
        profile->first_window = run->n_windows + 1;
    }
    run->prepared = true;
    profile->initialized = true;
    profile->undelivered = false;
    profile->phase = PHASE_PREPARED;
    profile->window_step = -1;
    profile->window_steps = 0;
    memcpy(profile->trace_id, trace_id, MTPROF_TRACE_ID_BYTES);
    mtprof__profile_unlock(profile);
}

static void warn_metadata(mtprof_profile *profile, int status)
{
    if (status != MTPROF_OK) {
        mtprof__profile_warn(profile, status, "metadata is missing in the trace: %s",
                             mtb_last_failure()->message);
    }
}

int mtprof__trace_prepare(mtprof_profile *profile)
{
    uint64_t serial = profile->serial;
    char trace_id[MTPROF_TRACE_ID_BYTES] = "";
    /* Open here: the callback returned an unknown action in between. */
    MT_TRY(mtprof__trace_stop(profile, true));
    if (!mtprof__profile_moved(profile, serial) && profile->active->n_windows != 0) {
        advise_acc_events(profile);
    }
    if (!mtprof__profile_moved(profile, serial)) {
        MT_TRY(mtprof__trace_id_make(profile, trace_id));
    }
    if (mtprof__profile_moved(profile, serial)) {
        return MTPROF_OK;
    }
    if (!results_reserve(profile)) {
        return mtb_fail(MTPROF_ENOMEM, "prepare: no memory for results");
    }
    mtprof_session *session = profile->active->session;
    if ((profile->config.flags & MTPROF_PROFILE_ACC_EVENTS) == 0 &&
        profile->active->n_windows != 0) {
        MT_TRY(mtprof_session_clear(session));
    }
    results_adopt(profile, trace_id);
    if (!mtprof__profile_moved(profile, serial)) {
        warn_metadata(profile, mtprof_session_add_metadata(session, "trace_id", 8, trace_id,
                                                           strlen(trace_id), false));
    }
    return MTPROF_OK;
}

static int observe(mtprof_profile *profile, enum mtprof_observe event)
{
    if (profile->config.observer == NULL) {
        return MTPROF_OK;
    }
    mtprof__profile_lock(profile);
    profile->observing = event == MTPROF_OBSERVE_START;
    mtprof__profile_unlock(profile);
    mtprof__callback_begin(profile);
    int result = profile->config.observer(profile->config.user, profile, event);
    mtprof__callback_end(profile);
    return mtprof__callback_check(profile, "observer", result);
}

int mtprof__trace_start(mtprof_profile *profile)
{
    uint64_t serial = profile->serial;
    if (profile->phase == PHASE_OPEN) {
        return MTPROF_OK;
    }
    if (profile->phase == PHASE_IDLE) {
        /* RECORD, WARMUP, RECORD prepares nothing in between; neither may a caller by hand. */
        MT_TRY(mtprof__trace_prepare(profile));
    }
    if (!mtprof__profile_moved(profile, serial)) {
        MT_TRY(observe(profile, MTPROF_OBSERVE_START));
    }
    if (mtprof__profile_moved(profile, serial)) {
        return MTPROF_OK;
    }
    mtprof__profile_run *run = profile->active;
    MT_TRY(mtprof_session_window_open(run->session,
                                      mtprof__wants(profile->activities, profile->config.flags),
                                      (uint32_t)profile->step_num));
    mtprof__profile_lock(profile);
    profile->phase = PHASE_OPEN;
    profile->undelivered = true;
    profile->collecting = profile->activities;
    profile->window_step = profile->step_num;
    profile->window_steps = 1;
    run->n_windows++;
    mtprof__profile_unlock(profile);
    warn_metadata(profile, mtprof__metadata_emit(profile));
    return MTPROF_OK;
}

int mtprof__trace_stop(mtprof_profile *profile, bool keep)
{
    uint64_t serial = profile->serial;
    if (profile->phase == PHASE_PREPARED) {
        /* Before the observer is called: if it stops the profile, there is nothing to begin. */
        mtprof__profile_lock(profile);
        profile->phase = PHASE_IDLE;
        mtprof__profile_unlock(profile);
    }
    int observed = profile->observing ? observe(profile, MTPROF_OBSERVE_STOP) : MTPROF_OK;
    if (mtprof__profile_moved(profile, serial)) {
        return observed;
    }
    bool open = profile->phase == PHASE_OPEN;
    mtb_failure kept = *mtb_last_failure();
    int closed = open ? mtprof_session_window_close(profile->active->session, keep) : MTPROF_OK;
    mtprof__profile_lock(profile);
    profile->phase = PHASE_IDLE;
    profile->collecting = 0;
    profile->saved += open && keep && closed == MTPROF_OK;
    profile->undelivered = profile->undelivered && keep && closed == MTPROF_OK;
    mtprof__profile_unlock(profile);
    if (observed != MTPROF_OK) {
        *mtb_last_failure() = kept;
    }
    return observed != MTPROF_OK ? observed : closed;
}

static int trace_ready(mtprof_profile *profile)
{
    if (!profile->undelivered) {
        return MTPROF_OK;
    }
    mtprof__profile_lock(profile);
    profile->undelivered = false;
    profile->delivered++;
    mtprof__profile_unlock(profile);
    if (profile->config.on_trace_ready == NULL) {
        return MTPROF_OK;
    }
    mtprof__callback_begin(profile);
    int result = profile->config.on_trace_ready(profile->config.user, profile);
    mtprof__callback_end(profile);
    return mtprof__callback_check(profile, "on_trace_ready", result);
}

static int trace_empty(mtprof_profile *profile)
{
    uint64_t serial = profile->serial;
    if (profile->phase != PHASE_PREPARED || profile->observing) {
        /* Nothing was prepared for this warm-up, and what was recorded before stays readable; or
         * the observer that is called for the start stops the profile. */
        return MTPROF_OK;
    }
    MT_TRY(mtprof__trace_start(profile));
    if (mtprof__profile_moved(profile, serial)) {
        return MTPROF_OK;
    }
    int status = mtprof__trace_stop(profile, false);
    mtprof__profile_lock(profile);
    profile->window_step = -1;
    profile->window_steps = 0;
    mtprof__profile_unlock(profile);
    return status;
}

static int perform(mtprof_profile *profile, enum op op, int from, int to)
{
    switch (op) {
    case P: return mtprof__trace_prepare(profile);
    case A: return mtprof__trace_start(profile);
    case Z: return mtprof__trace_stop(profile, true);
    case C: return trace_ready(profile);
    case E: return trace_empty(profile);
    case W:
        mtprof__profile_warn(profile, MTPROF_EINVAL, "Incorrect schedule: %s followed by %s",
                             action_names[from], action_names[to]);
        return MTPROF_OK;
    default: return MTPROF_OK;
    }
}

static bool is_action(int action)
{
    return action >= 0 && action < N_ACTIONS;
}

int mtprof__transition(mtprof_profile *profile, int from, int to)
{
    uint64_t serial = profile->serial;
    if (!is_action(from) || !is_action(to)) {
        return MTPROF_OK;
    }
    const uint8_t *op = transitions[from][to];
    int status = MTPROF_OK;
    for (; *op != OP_END && status == MTPROF_OK; op++) {
        status = perform(profile, (enum op) * op, from, to);
        if (mtprof__profile_moved(profile, serial)) {
            break;
        }
    }
    return status;
}

int mtprof__transition_stop(mtprof_profile *profile)
{
    static const uint8_t nothing[N_OPS];
    uint64_t serial = profile->serial;
    int from = profile->action;
    const uint8_t *op = is_action(from) ? transitions[from][TO_STOP] : nothing;
    for (; *op != OP_END && *op != C; op++) {
        int status = perform(profile, (enum op) * op, from, TO_STOP);
        if (status != MTPROF_OK || mtprof__profile_moved(profile, serial)) {
            return mtprof__session_fail(profile, serial, status);
        }
    }
    int status = mtprof__session_end(profile, LIFE_STOPPED);
    if (status != MTPROF_OK || *op != C) {
        return status;
    }
    return mtprof__session_fail(profile, serial, trace_ready(profile));
}

/* ---- steps ----------------------------------------------------------------------------------- */

void mtprof__step_begin(mtprof_profile *profile)
{
    if (profile->config.schedule == NULL && profile->config.schedule_callback == NULL) {
        return;
    }
    char name[48];
    int length = snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)profile->step_num);
    mtprof_token token = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_STEP);
    mtprof__profile_lock(profile);
    profile->step_token = token;
    profile->step_thread = pthread_self();
    mtprof__profile_unlock(profile);
}

void mtprof__step_end(mtprof_profile *profile)
{
    mtprof_token token = profile->step_token;
    mtprof__profile_lock(profile);
    profile->step_token = 0;
    mtprof__profile_unlock(profile);
    mtprof_end(token);
}

int mtprof__step_note(mtprof_profile *profile)
{
    uint32_t action = is_action(profile->action) ? (uint32_t)profile->action : MTPROF_ACTION_NONE;
    return mtprof_session_step(profile->active->session, (uint64_t)profile->step_num, action);
}
