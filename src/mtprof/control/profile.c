/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that change a profile, see profile.h; profile_impl.h says how the files share the work.
 *
 *      NEW ──start──► ACTIVE ──stop──► STOPPED ──start──► ACTIVE
 *                       │ a failure inside step() or a callback
 *                       └──► ENDED ──stop (silent)──► STOPPED
 *
 * A failing start() undoes what it did: NEW stays NEW.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/control/profile_impl.h"

#include <string.h>
#include <unistd.h>

enum {
    FLAGS_KNOWN = MTPROF_PROFILE_ACC_EVENTS | ((MTPROF_PROFILE_OVERLOADS << 1) - 1)
};

/* ---- new and free ---------------------------------------------------------------------------- */

/* Copies what the caller's struct has; the rest stays zero. */
static int config_read(const mtprof_profile_config *given, mtprof_profile_config *own)
{
    memset(own, 0, sizeof *own);
    if (given == NULL || given->struct_size < offsetof(mtprof_profile_config, flags)) {
        return mtb_fail(MTPROF_EINVAL, "profile: struct_size must be set");
    }
    mtb_read_struct(own, given);
    if (own->activities == 0) {
        return mtb_fail(MTPROF_EINVAL, "No valid profiler activities found");
    }
    MT_TRY(mtprof__activities_check(own->activities, "profile"));
    if ((own->flags & ~(uint32_t)FLAGS_KNOWN) != 0) {
        return mtb_fail(MTPROF_EINVAL, "profile: flags 0x%x has unknown bits", own->flags);
    }
    if (own->policy > MTPROF_POLICY_STOP) {
        return mtb_fail(MTPROF_EINVAL, "profile: policy %u is not known", own->policy);
    }
    if (own->schedule != NULL && own->schedule_callback != NULL) {
        return mtb_fail(MTPROF_EINVAL, "profile: both a schedule and a schedule callback are set");
    }
    return MTPROF_OK;
}

static int copy_text(const char *text, char **out)
{
    *out = text != NULL ? mtb_copy_text(text, strlen(text)) : NULL;
    return text == NULL || *out != NULL ? MTPROF_OK : mtb_fail(MTPROF_ENOMEM, "profile: no memory");
}

/* Makes the copied config ours; until then its pointers are the caller's. */
static int config_own(mtprof_profile *profile, const mtprof_profile_config *given)
{
    profile->config = *given;
    profile->config.path = NULL;
    profile->config.spill_directory = NULL;
    profile->config.schedule = NULL;
    if (given->schedule != NULL) {
        MT_TRY(mtprof__schedule_read(given->schedule, &profile->schedule));
        profile->config.schedule = &profile->schedule;
    }
    MT_TRY(copy_text(given->path, &profile->path));
    MT_TRY(copy_text(given->spill_directory, &profile->spill_directory));
    return MTPROF_OK;
}

static void profile_delete(mtprof_profile *profile)
{
    if (profile->pid == getpid()) {
        pthread_cond_destroy(&profile->changed);
        pthread_mutex_destroy(&profile->lock);
        pthread_mutex_destroy(&profile->metadata_lock);
    }
    mtprof__metadata_free(profile);
    mtb_free(profile->results);
    mtb_free(profile->path);
    mtb_free(profile->spill_directory);
    mtb_free(profile);
}

/* The action of the current step number. */
static int ask_schedule(mtprof_profile *profile, int *action)
{
    const mtprof_profile_config *config = &profile->config;
    if (config->schedule_callback == NULL) {
        *action = config->schedule == NULL
                      ? MTPROF_ACTION_RECORD
                      : (int)mtprof__schedule_at(config->schedule, profile->step_num);
        return MTPROF_OK;
    }
    enum mtprof_action answer = MTPROF_ACTION_NONE;
    mtprof__callback_begin(profile);
    int result = config->schedule_callback(config->user, profile->step_num, &answer);
    mtprof__callback_end(profile);
    *action = (int)answer;
    return mtprof__callback_check(profile, "schedule", result);
}

static void warn_about_config(mtprof_profile *profile)
{
    const char *warning = NULL;
    if (profile->config.schedule != NULL) {
        (void)mtprof_schedule_check(profile->config.schedule, &warning);
    }
    if (warning != NULL) {
        mtprof__profile_warn(profile, MTPROF_OK, "%s", warning);
    }
    uint32_t asked = profile->config.activities;
    if (asked != MTPROF_WATCH_ALL && (asked & ~profile->activities) != 0) {
        mtprof__profile_warn(profile, MTPROF_ENOTSUP,
                             "NPU is not available, disabling NPU profiling");
    }
}

mtprof_status mtprof_profile_new(const mtprof_profile_config *config, mtprof_profile **out)
{
    mtprof_profile_config given;
    *out = NULL;
    MT_TRY(config_read(config, &given));
    mtprof_profile *profile = mtb_calloc(1, sizeof *profile);
    if (profile == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "profile: no memory");
    }
    pthread_mutex_init(&profile->metadata_lock, NULL);
    pthread_mutex_init(&profile->lock, NULL);
    pthread_cond_init(&profile->changed, NULL);
    profile->pid = getpid();
    profile->window_step = -1;
    int status = config_own(profile, &given);
    if (status == MTPROF_OK) {
        profile->trace_id_callback = given.trace_id;
        profile->trace_id_user = given.user;
        profile->activities = mtprof__activities_present(given.activities);
        status = ask_schedule(profile, &profile->action);
    }
    if (status != MTPROF_OK) {
        profile_delete(profile);
        return status;
    }
    warn_about_config(profile);
    *out = profile;
    return MTPROF_OK;
}

mtprof_status mtprof_profile_free(mtprof_profile *profile)
{
    if (profile == NULL) {
        return MTPROF_OK;
    }
    bool forked = profile->pid != getpid();
    int first = MTPROF_OK;
    if (!forked) {
        MT_TRY(mtprof__profile_enter(profile, "free", NESTING_EBUSY));
        /* No more warnings: the profile is being freed. */
        profile->config.observer = NULL;
        profile->config.on_warning = NULL;
        if (profile->life == LIFE_ACTIVE) {
            first = mtprof__session_end(profile, LIFE_STOPPED);
        }
    } else if (profile->active != NULL) {
        (void)mtprof__run_drop(profile, profile->active);
    }
    for (size_t i = 0; i < profile->n_results; i++) {
        int status = mtprof__run_drop(profile, profile->results[i]);
        first = first != MTPROF_OK ? first : status;
    }
    mtprof__profile_leave(profile);
    profile_delete(profile);
    return forked ? MTPROF_OK : first;
}

/* ---- start, step, stop ----------------------------------------------------------------------- */

/* What a profile was before a session began, to go back to when that fails. */
typedef struct earlier {
    enum mtprof__life life;
    bool initialized;
} earlier;

/*
 * Takes a session back that failed to begin, as if it had not. Results it has replaced by now are
 * gone; then its own, empty ones stay.
 */
static int start_undo(mtprof_profile *profile, uint64_t serial, earlier was, int status)
{
    if (mtprof__profile_moved(profile, serial)) {
        return status;
    }
    mtb_failure kept = *mtb_last_failure();
    mtprof__session_end(profile, was.life == LIFE_NEW ? LIFE_NEW : LIFE_STOPPED);
    if (!was.initialized) {
        mtprof__profile_lock(profile);
        mtprof__profile_run *run =
            profile->n_results != 0 ? profile->results[--profile->n_results] : NULL;
        profile->initialized = false;
        profile->trace_id[0] = '\0';
        mtprof__profile_unlock(profile);
        mtprof__run_drop_warn(profile, run);
    }
    *mtb_last_failure() = kept;
    return status;
}

static int warn_unless_state(mtprof_profile *profile, int status)
{
    if (status == MTPROF_OK || status == MTPROF_ESTATE) {
        return status;
    }
    mtprof__profile_warn(profile, status, "the step is not noted in the trace: %s",
                         mtb_last_failure()->message);
    return MTPROF_OK;
}

static int start_owned(mtprof_profile *profile)
{
    earlier was = {profile->life, profile->initialized};
    /* One prepared by hand is taken over, but not from a callback in the middle of preparing it. */
    if (profile->life == LIFE_ACTIVE &&
        (profile->started || profile->phase == PHASE_OPEN || profile->callbacks != 0)) {
        return mtb_fail(MTPROF_ESTATE, "Profiler is already enabled: start() while it is running");
    }
    if (profile->life != LIFE_ACTIVE) {
        MT_TRY(mtprof__session_open(profile));
    }
    uint64_t serial = profile->serial;
    mtprof__profile_lock(profile);
    profile->started = true;
    mtprof__profile_unlock(profile);
    int status = mtprof__transition(profile, MTPROF_ACTION_NONE, profile->action);
    if (status == MTPROF_OK && !mtprof__profile_moved(profile, serial)) {
        status = warn_unless_state(profile, mtprof__step_note(profile));
    }
    if (status != MTPROF_OK) {
        return start_undo(profile, serial, was, status);
    }
    if (!mtprof__profile_moved(profile, serial)) {
        mtprof__step_begin(profile);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_profile_start(mtprof_profile *profile)
{
    MT_TRY(mtprof__profile_enter(profile, "start", NESTING_ALLOWED));
    int status = start_owned(profile);
    mtprof__profile_leave(profile);
    return status;
}

/* The rest of a step, once its action is known. */
static int step_into(mtprof_profile *profile, int next)
{
    uint64_t serial = profile->serial;
    int previous = profile->action;
    mtprof__profile_lock(profile);
    profile->action = next;
    mtprof__profile_unlock(profile);
    MT_TRY(mtprof__transition(profile, previous, next));
    if (mtprof__profile_moved(profile, serial)) {
        return MTPROF_OK;
    }
    if (profile->phase == PHASE_OPEN) {
        mtprof__profile_lock(profile);
        profile->window_steps = profile->step_num - profile->window_step + 1;
        mtprof__profile_unlock(profile);
    }
    /* Long stretches of NONE are not noted one by one: a schedule that is over leaves no trace. */
    if (previous != MTPROF_ACTION_NONE || next != MTPROF_ACTION_NONE) {
        MT_TRY(warn_unless_state(profile, mtprof__step_note(profile)));
    }
    if (!mtprof__profile_moved(profile, serial)) {
        mtprof__step_begin(profile);
    }
    return MTPROF_OK;
}

static int step_owned(mtprof_profile *profile)
{
    if (profile->life != LIFE_ACTIVE || !profile->started) {
        return mtb_fail(MTPROF_ESTATE, "step: the profiler is not running");
    }
    uint64_t serial = profile->serial;
    mtprof__step_end(profile);
    mtprof__profile_lock(profile);
    profile->step_num++;
    profile->step_calls++;
    mtprof__profile_unlock(profile);
    int next;
    int status = ask_schedule(profile, &next);
    if (status == MTPROF_OK && !mtprof__profile_moved(profile, serial)) {
        status = step_into(profile, next);
    }
    return mtprof__session_fail(profile, serial, status);
}

mtprof_status mtprof_profile_step(mtprof_profile *profile)
{
    MT_TRY(mtprof__profile_enter(profile, "step", NESTING_ESTATE));
    int status = step_owned(profile);
    mtprof__profile_leave(profile);
    return status;
}

/* A stop where nothing runs. True: there is nothing more to do. */
static bool stop_again(mtprof_profile *profile, int *status)
{
    *status = MTPROF_OK;
    if (profile->life == LIFE_ACTIVE) {
        return false;
    }
    if (profile->life == LIFE_NEW) {
        *status = mtb_fail(MTPROF_ESTATE, "Profiler must be initialized before stopping trace");
    } else if (profile->life == LIFE_ENDED) {
        mtprof__profile_lock(profile);
        profile->life = LIFE_STOPPED;
        mtprof__profile_unlock(profile);
    } else if (profile->callbacks == 0) {
        /* Inside on_trace_ready the stop that called it is still in progress. */
        mtprof__profile_warn(profile, MTPROF_ESTATE, "stop: the profiler is not running");
    }
    return true;
}

mtprof_status mtprof_profile_stop(mtprof_profile *profile)
{
    int status;
    MT_TRY(mtprof__profile_enter(profile, "stop", NESTING_ALLOWED));
    if (!stop_again(profile, &status)) {
        mtprof__step_end(profile);
        status = mtprof__transition_stop(profile);
    }
    mtprof__profile_leave(profile);
    return status;
}

/* ---- by hand --------------------------------------------------------------------------------- */

mtprof_status mtprof_profile_prepare_trace(mtprof_profile *profile)
{
    MT_TRY(mtprof__profile_enter(profile, "prepare_trace", NESTING_ESTATE));
    earlier was = {profile->life, profile->initialized};
    int status = MTPROF_OK;
    if (profile->phase == PHASE_OPEN) {
        status = mtb_fail(MTPROF_ESTATE, "prepare_trace: a trace is being recorded");
    } else if (profile->life != LIFE_ACTIVE) {
        status = mtprof__session_open(profile);
    }
    if (status == MTPROF_OK) {
        uint64_t serial = profile->serial;
        status = mtprof__trace_prepare(profile);
        if (status != MTPROF_OK && was.life != LIFE_ACTIVE) {
            status = start_undo(profile, serial, was, status);
        }
    }
    mtprof__profile_leave(profile);
    return status;
}

static int start_trace_owned(mtprof_profile *profile)
{
    earlier was = {profile->life, profile->initialized};
    if (!profile->initialized) {
        return mtb_fail(MTPROF_ESTATE, "Profiler must be initialized before starting trace");
    }
    if (profile->life != LIFE_ACTIVE) {
        MT_TRY(mtprof__session_open(profile));
    }
    uint64_t serial = profile->serial;
    int status = mtprof__trace_start(profile);
    if (status == MTPROF_OK && !mtprof__profile_moved(profile, serial)) {
        status = warn_unless_state(profile, mtprof__step_note(profile));
    }
    if (status == MTPROF_OK) {
        return MTPROF_OK;
    }
    return was.life == LIFE_ACTIVE ? mtprof__session_fail(profile, serial, status)
                                   : start_undo(profile, serial, was, status);
}

mtprof_status mtprof_profile_start_trace(mtprof_profile *profile)
{
    MT_TRY(mtprof__profile_enter(profile, "start_trace", NESTING_ESTATE));
    int status = start_trace_owned(profile);
    mtprof__profile_leave(profile);
    return status;
}

mtprof_status mtprof_profile_stop_trace(mtprof_profile *profile)
{
    int status;
    MT_TRY(mtprof__profile_enter(profile, "stop_trace", NESTING_ESTATE));
    if (!profile->initialized) {
        status = mtb_fail(MTPROF_ESTATE, "Profiler must be initialized before stopping trace");
    } else if (!stop_again(profile, &status)) {
        uint64_t serial = profile->serial;
        if (!profile->started) {
            status = mtprof__session_end(profile, LIFE_STOPPED);
        } else {
            mtprof__step_end(profile);
            status = mtprof__session_fail(profile, serial, mtprof__trace_stop(profile, true));
        }
    }
    mtprof__profile_leave(profile);
    return status;
}

/* ---- toggle ---------------------------------------------------------------------------------- */

static int toggle_owned(mtprof_profile *profile, bool enable, uint32_t activities)
{
    uint64_t serial = profile->serial;
    uint32_t all = profile->activities;
    uint32_t which = activities == MTPROF_WATCH_ALL ? all : activities & all;
    uint32_t on = enable ? profile->collecting | which : profile->collecting & ~which;
    if (profile->phase != PHASE_OPEN || on == profile->collecting) {
        return MTPROF_OK;
    }
    if (on != 0 && on != all) {
        mtprof__profile_warn(profile, MTPROF_OK,
                             "toggle: only one of CPU and device is collected from here on");
    }
    if (mtprof__profile_moved(profile, serial) || profile->phase != PHASE_OPEN) {
        return MTPROF_OK;
    }
    /* The step's annotation is ended and begun again rather than cut off by the pause; in a
     * callback there is none, it begins after it. */
    bool annotated = profile->started && profile->callbacks == 0;
    bool same_thread = pthread_equal(profile->step_thread, pthread_self()) != 0;
    mtprof_session *session = profile->active->session;
    mtprof__step_end(profile);
    int status = mtprof_session_pause(session);
    uint32_t collecting = status == MTPROF_OK ? 0 : profile->collecting;
    if (status == MTPROF_OK && on != 0) {
        status = mtprof_session_resume(session, mtprof__wants(on, profile->config.flags));
        collecting = status == MTPROF_OK ? on : 0;
    }
    mtprof__profile_lock(profile);
    profile->collecting = collecting;
    mtprof__profile_unlock(profile);
    if (collecting != 0 && annotated && same_thread) {
        mtprof__step_begin(profile);
    }
    return status;
}

mtprof_status mtprof_profile_toggle(mtprof_profile *profile, bool enable, uint32_t activities)
{
    MT_TRY(mtprof__activities_check(activities, "toggle"));
    MT_TRY(mtprof__profile_enter(profile, "toggle", NESTING_ALLOWED));
    int status = toggle_owned(profile, enable, activities);
    mtprof__profile_leave(profile);
    return status;
}
