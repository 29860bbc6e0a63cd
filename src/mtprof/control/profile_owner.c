/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may change a profile. One thread at a time owns it; the lock only guards the hand-over and
 * what others read, so that it is never held while foreign code runs.
 *
 *      free ──enter──► owned ──callback_begin──► in a callback (others: EBUSY; the owner: nested)
 *        ▲               │  ▲                          │
 *        └────leave──────┘  └──────callback_end────────┘
 *
 * Why not a recursive mutex held throughout: a callback may wait for a thread that wants in.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/control/profile_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static bool is_forked(const mtprof_profile *profile)
{
    return profile->pid != getpid();
}

int mtprof__profile_check(const mtprof_profile *profile, const char *call)
{
    if (profile == NULL) {
        return mtb_fail(MTPROF_EINVAL, "%s: the profile is NULL", call);
    }
    if (is_forked(profile)) {
        return mtb_fail(MTPROF_ESTATE, "%s: the profile belongs to the parent process", call);
    }
    return MTPROF_OK;
}

void mtprof__profile_lock(mtprof_profile *profile)
{
    if (!is_forked(profile)) {
        pthread_mutex_lock(&profile->lock);
    }
}

void mtprof__profile_unlock(mtprof_profile *profile)
{
    if (!is_forked(profile)) {
        pthread_mutex_unlock(&profile->lock);
    }
}

static int enter_nested(mtprof_profile *profile, const char *call, enum mtprof__nesting nesting)
{
    /* Outside a callback it is a source or another plug-in that calls back: never allowed. */
    if (nesting == NESTING_ALLOWED && profile->callbacks != 0) {
        profile->depth++;
        return MTPROF_OK;
    }
    return mtb_fail(nesting == NESTING_EBUSY ? MTPROF_EBUSY : MTPROF_ESTATE,
                    "%s: called from inside a callback of the same profile", call);
}

int mtprof__profile_enter(mtprof_profile *profile, const char *call, enum mtprof__nesting nesting)
{
    MT_TRY(mtprof__profile_check(profile, call));
    int status = MTPROF_OK;
    pthread_mutex_lock(&profile->lock);
    for (;;) {
        if (profile->depth == 0) {
            profile->depth = 1;
            profile->owner = pthread_self();
            break;
        }
        if (pthread_equal(profile->owner, pthread_self())) {
            status = enter_nested(profile, call, nesting);
            break;
        }
        if (profile->callbacks != 0) {
            status = mtb_fail(MTPROF_EBUSY, "%s: a callback of the profile is running", call);
            break;
        }
        pthread_cond_wait(&profile->changed, &profile->lock);
    }
    pthread_mutex_unlock(&profile->lock);
    return status;
}

void mtprof__profile_leave(mtprof_profile *profile)
{
    if (is_forked(profile)) {
        return;
    }
    pthread_mutex_lock(&profile->lock);
    MT_ASSERT(profile->depth > 0);
    if (--profile->depth == 0) {
        pthread_cond_broadcast(&profile->changed);
    }
    pthread_mutex_unlock(&profile->lock);
}

void mtprof__callback_begin(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    profile->callbacks++;
    mtprof__profile_unlock(profile);
    if (!is_forked(profile)) {
        /* Threads that wait for the owner would now wait for a callback: they return EBUSY. */
        pthread_cond_broadcast(&profile->changed);
    }
}

void mtprof__callback_end(mtprof_profile *profile)
{
    /* A callback may have forked, and this be the child. */
    mtprof__profile_lock(profile);
    profile->callbacks--;
    mtprof__profile_unlock(profile);
}

int mtprof__callback_check(mtprof_profile *profile, const char *callback, int result)
{
    if (result == 0) {
        return MTPROF_OK;
    }
    mtprof__profile_lock(profile);
    profile->callback_result = result;
    mtprof__profile_unlock(profile);
    return mtb_fail(MTPROF_ECALLBACK, "%s: the callback failed with %d", callback, result);
}

bool mtprof__profile_moved(const mtprof_profile *profile, uint64_t serial)
{
    return profile->life != LIFE_ACTIVE || profile->serial != serial;
}

void mtprof__profile_warn(mtprof_profile *profile, mtprof_status status, const char *format, ...)
{
    if (profile->config.on_warning == NULL) {
        return;
    }
    mtb_failure kept = *mtb_last_failure();
    char message[MTB_MESSAGE_BYTES + 128];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    mtprof__callback_begin(profile);
    profile->config.on_warning(profile->config.user, status, message);
    mtprof__callback_end(profile);
    *mtb_last_failure() = kept;
}

mtprof__profile_run *mtprof__run_take_latest(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    mtprof__profile_run *run =
        profile->n_results != 0 ? profile->results[profile->n_results - 1] : profile->active;
    if (run != NULL) {
        run->refs++;
    }
    mtprof__profile_unlock(profile);
    return run;
}

int mtprof__run_drop(mtprof_profile *profile, mtprof__profile_run *run)
{
    if (run == NULL) {
        return MTPROF_OK;
    }
    mtprof__profile_lock(profile);
    bool last = --run->refs == 0;
    mtprof__profile_unlock(profile);
    if (!last) {
        return MTPROF_OK;
    }
    int status = mtprof_session_close(run->session);
    mtb_free(run);
    return status;
}

void mtprof__run_drop_warn(mtprof_profile *profile, mtprof__profile_run *run)
{
    int status = mtprof__run_drop(profile, run);
    if (status != MTPROF_OK) {
        mtprof__profile_warn(profile, status, "earlier results could not be finished: %s",
                             mtb_last_failure()->message);
    }
}
