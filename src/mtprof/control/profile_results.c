/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that only read a profile. They take the lock for a moment and never wait for the owner,
 * so they work in every callback and while one runs.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/control/profile_impl.h"

#include <stdio.h>
#include <string.h>

int64_t mtprof_profile_step_num(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    int64_t step = profile->step_num;
    mtprof__profile_unlock(profile);
    return step;
}

enum mtprof_action mtprof_profile_current_action(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    int action = profile->action;
    mtprof__profile_unlock(profile);
    return (enum mtprof_action)action;
}

bool mtprof_profile_is_running(mtprof_profile *profile)
{
    if (mtprof__profile_check(profile, "is_running") != MTPROF_OK) {
        return false;
    }
    mtprof__profile_lock(profile);
    bool running = profile->life == LIFE_ACTIVE && profile->started;
    mtprof__profile_unlock(profile);
    return running;
}

int mtprof_profile_callback_result(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    int result = profile->callback_result;
    mtprof__profile_unlock(profile);
    return result;
}

uint32_t mtprof_profile_activities(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    uint32_t activities = profile->activities;
    mtprof__profile_unlock(profile);
    return activities;
}

/* Under the lock. */
static enum mtprof_results results_state(const mtprof_profile *profile)
{
    if (!profile->initialized) {
        return MTPROF_RESULTS_NONE;
    }
    switch (profile->phase) {
    case PHASE_PREPARED: return MTPROF_RESULTS_PREPARED;
    case PHASE_OPEN: return MTPROF_RESULTS_RECORDING;
    default: return MTPROF_RESULTS_READY;
    }
}

mtprof_status mtprof_profile_get_window(mtprof_profile *profile, mtprof_window *window)
{
    MT_TRY(mtprof__profile_check(profile, "window"));
    if (window == NULL || window->struct_size < sizeof window->struct_size) {
        return mtb_fail(MTPROF_EINVAL, "window: struct_size must be set");
    }
    mtprof__profile_lock(profile);
    const mtprof__profile_run *latest =
        profile->n_results != 0 ? profile->results[profile->n_results - 1] : NULL;
    mtprof_window own = {
        .results = results_state(profile),
        .window = latest != NULL ? latest->n_windows : 0,
        .first_window = latest != NULL ? profile->first_window : 0,
        .saved = profile->saved,
        .delivered = profile->delivered,
        .first_step = profile->window_step,
        .steps = profile->window_steps,
        .collecting = profile->collecting,
        .sessions = (uint32_t)profile->n_results,
    };
    mtprof__profile_unlock(profile);
    mtb_write_struct(window, &own);
    return MTPROF_OK;
}

mtprof_session *mtprof_profile_session(mtprof_profile *profile, uint32_t index)
{
    if (mtprof__profile_check(profile, "session") != MTPROF_OK) {
        return NULL;
    }
    mtprof__profile_lock(profile);
    mtprof_session *session = index < profile->n_results ? profile->results[index]->session : NULL;
    mtprof__profile_unlock(profile);
    return session;
}

mtprof_status mtprof_profile_get_health(mtprof_profile *profile, mtprof_health *health)
{
    MT_TRY(mtprof__profile_check(profile, "health"));
    mtprof__profile_run *run = mtprof__run_take_latest(profile);
    if (run == NULL) {
        return mtb_fail(MTPROF_ESTATE, "Profiler must be initialized before reading its health");
    }
    int status = mtprof_session_get_health(run->session, health);
    int closed = mtprof__run_drop(profile, run);
    return status != MTPROF_OK ? status : closed;
}

/* What explain_empty() goes by. */
typedef struct story {
    uint64_t events, marks, lost; /* of the latest session */
    bool never, has_schedule, has_struct, can_record, switched_off;
    uint64_t calls, needs;
    int64_t steps;
    uint32_t saved;
} story;

static story story_of(const mtprof_profile *profile)
{
    story s = {
        .never = profile->life == LIFE_NEW,
        .has_struct = profile->config.schedule != NULL,
        .calls = profile->step_calls,
        .steps = profile->window_steps,
        .saved = profile->saved,
        .switched_off = profile->phase == PHASE_OPEN && profile->collecting == 0,
    };
    s.has_schedule = s.has_struct || profile->config.schedule_callback != NULL;
    if (s.has_struct) {
        s.can_record =
            mtprof__schedule_needs(profile->config.schedule, profile->run_step, &s.needs);
    }
    return s;
}

/* What the latest session holds, if there is one. */
static void count_events(mtprof_profile *profile, story *s)
{
    mtprof_health health = {.struct_size = sizeof health};
    mtprof__profile_run *run = mtprof__run_take_latest(profile);
    if (run == NULL) {
        return;
    }
    if (mtprof_session_get_health(run->session, &health) == MTPROF_OK) {
        s->events = health.begins - (health.evicted < health.begins ? health.evicted : 0);
        s->events += health.activities;
        s->marks = health.others;
        s->lost = health.lost;
    }
    (void)mtprof__run_drop(profile, run);
}

/* What the recorded steps hold. */
static void tell_steps(const story *s, char *text, size_t size)
{
    const char *plural = s->steps == 1 ? "" : "s";
    const char *them = s->steps == 1 ? "it" : "them";
    long long steps = (long long)s->steps;
    if (s->events != 0) {
        snprintf(text, size, "%lld step%s recorded, with events in %s%s", steps, plural, them,
                 s->switched_off ? "; collection is switched off" : "");
    } else if (s->switched_off) {
        snprintf(text, size, "%lld step%s recorded: collection is switched off", steps, plural);
    } else if (s->lost != 0) {
        snprintf(text, size, "%lld step%s recorded, but the events in %s were lost: see the health",
                 steps, plural, them);
    } else if (s->marks != 0) {
        snprintf(text, size, "%lld step%s recorded, with marks but no scope or op in %s", steps,
                 plural, them);
    } else {
        snprintf(text, size, "%lld step%s recorded, without an event in %s", steps, plural, them);
    }
}

mtprof_status mtprof_profile_explain_empty(mtprof_profile *profile, char *text, size_t size)
{
    if (text == NULL || size == 0) {
        return mtb_fail(MTPROF_EINVAL, "explain_empty: there is no room for a text");
    }
    text[0] = '\0';
    MT_TRY(mtprof__profile_check(profile, "explain_empty"));
    mtprof__profile_lock(profile);
    story s = story_of(profile);
    mtprof__profile_unlock(profile);
    count_events(profile, &s);
    unsigned long long calls = s.calls, needs = s.needs;
    const char *times = s.calls == 1 ? "time" : "times";
    if (s.never) {
        snprintf(text, size, "0 steps recorded: start() was not called");
    } else if (s.steps > 0) {
        tell_steps(&s, text, size);
    } else if (s.saved > 0) {
        snprintf(text, size,
                 "0 steps recorded since the last window was saved: earlier windows are cleared "
                 "when the next is prepared, acc_events keeps them");
    } else if (!s.has_schedule) {
        snprintf(text, size, "0 steps recorded: no trace was started");
    } else if (!s.has_struct) {
        snprintf(text, size,
                 "0 steps recorded: step() was called %llu %s, the schedule asked for no recording",
                 calls, times);
    } else if (!s.can_record) {
        snprintf(text, size, "0 steps recorded: step() was called %llu %s, the schedule is over",
                 calls, times);
    } else {
        snprintf(text, size, "0 steps recorded: step() was called %llu %s, the schedule needs %llu",
                 calls, times, needs);
    }
    return MTPROF_OK;
}
