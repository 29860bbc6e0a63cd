/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's pauses and windows: everything that moves it between PAUSED and RECORDING.
 */
#include "base/fail.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/source/source_registry.h"

/* Under the lock, because metadata notes the window it was set in. */
static void next_window(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    session->window++;
    session->window_open = true;
    mtb_lock_release(&mtprof__session_lock);
}

/* Bits that no want has. */
static mtprof_status check_wants(const char *call, const mtprof_session *session, uint64_t wants)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "%s: session is NULL", call);
    }
    if (wants >> 16 != 0) {
        return mtb_fail(MTPROF_EINVAL, "%s: wants is 0x%llx, bits above 15 are unknown", call,
                        (unsigned long long)wants);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_session_pause(mtprof_session *session)
{
    MT_TRY(check_wants("session_pause", session, 0));
    enum session_state found = mtprof__session_move(session, RECORDING, CHANGING);
    if (found == PAUSED) {
        return MTPROF_OK;
    }
    if (found != RECORDING) {
        return mtprof__session_refuse("session_pause", session, found);
    }
    mtprof__session_shut_gate(session, MTPROF_CLOSE_PAUSED);
    mtprof__session_move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

mtprof_status mtprof_session_resume(mtprof_session *session, uint64_t wants)
{
    MT_TRY(check_wants("session_resume", session, wants));
    enum session_state found = mtprof__session_move(session, PAUSED, CHANGING);
    if (found == RECORDING) {
        return MTPROF_OK;
    }
    if (found != PAUSED) {
        return mtprof__session_refuse("session_resume", session, found);
    }
    session->wants = wants != 0 ? wants : session->wants;
    if (!session->window_open) {
        next_window(session);
    }
    mtprof__session_open_gate(session);
    mtprof__session_move(session, CHANGING, RECORDING);
    return MTPROF_OK;
}

mtprof_status mtprof_session_window_open(mtprof_session *session, uint64_t wants, uint32_t step)
{
    MT_TRY(check_wants("session_window_open", session, wants));
    enum session_state found = mtprof__session_move(session, PAUSED, CHANGING);
    if (found != PAUSED) {
        return mtprof__session_refuse("session_window_open", session, found);
    }
    if (session->window_open) {
        mtprof__session_move(session, CHANGING, PAUSED);
        return mtb_fail(MTPROF_ESTATE, "session_window_open: window %u is open and paused",
                        session->window);
    }
    session->wants = wants != 0 ? wants : session->config.wants;
    session->step = step;
    next_window(session);
    mtprof__session_open_gate(session);
    mtprof__session_move(session, CHANGING, RECORDING);
    return MTPROF_OK;
}

mtprof_status mtprof_session_window_close(mtprof_session *session, bool keep)
{
    MT_TRY(check_wants("session_window_close", session, 0));
    uint32_t how = keep ? MTPROF_CLOSE_SAVED : MTPROF_CLOSE_DISCARDED;
    enum session_state found = mtprof__session_move(session, RECORDING, CHANGING);
    if (found == PAUSED) {
        found = mtprof__session_move(session, PAUSED, CHANGING);
    }
    if (found == RECORDING) {
        mtprof__session_shut_gate(session, how);
    } else if (found == PAUSED && session->window_open) {
        mtprof__session_append_close(session, how, 0);
    } else if (found == PAUSED) {
        mtprof__session_move(session, CHANGING, PAUSED);
        return mtb_fail(MTPROF_ESTATE, "session_window_close: no window is open");
    } else {
        return mtprof__session_refuse("session_window_close", session, found);
    }
    session->window_open = false;
    mtprof__session_move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

uint64_t mtprof__session_steps_from(mtprof_session *session, uint64_t steps)
{
    mtb_lock_acquire(&mtprof__session_lock);
    bool known = steps < session->n_steps && steps < MTPROF_SESSION_STEPS_MAX;
    uint64_t at = known ? (session->n_steps - 1 - steps) % MTPROF_SESSION_STEPS_MAX : 0;
    uint64_t ticks = known ? session->step_ticks[at] : 0;
    mtb_lock_release(&mtprof__session_lock);
    return ticks;
}

/* Notes when a step began, and what a ring by steps is to keep from here on. */
static void note_step(mtprof_session *session, uint64_t ticks)
{
    uint64_t keep = session->config.ring_steps;
    mtb_lock_acquire(&mtprof__session_lock);
    session->step_ticks[session->n_steps++ % MTPROF_SESSION_STEPS_MAX] = ticks;
    if (keep != 0 && keep < session->n_steps) {
        uint64_t from =
            session->step_ticks[(session->n_steps - 1 - keep) % MTPROF_SESSION_STEPS_MAX];
        __atomic_store_n(&session->recording->store->steps_from, from, __ATOMIC_RELAXED);
    }
    mtb_lock_release(&mtprof__session_lock);
}

mtprof_status mtprof_session_step(mtprof_session *session, uint64_t step, uint32_t action)
{
    MT_TRY(check_wants("session_step", session, 0));
    if (action > 3) {
        return mtb_fail(MTPROF_EINVAL, "session_step: action is %u, it must be 0 to 3", action);
    }
    enum session_state found = mtprof__session_state_of(session);
    if (found == STOPPED || found == STOPPING || found == FOREIGN) {
        return mtprof__session_refuse("session_step", session, found);
    }
    uint64_t ticks = mtprof__ticks();
    uint64_t record[3] = {mtprof__word0(MTPROF_REC_STEP, 3, action, 0), ticks, step};
    note_step(session, ticks);
    mtprof__recording *recording = mtprof__session_pin(session);
    mtprof__control_append(recording, record, 3, ticks);
    mtprof__recording_release(recording);
    return MTPROF_OK;
}

mtprof_status mtprof_session_clear(mtprof_session *session)
{
    MT_TRY(check_wants("session_clear", session, 0));
    enum session_state found = mtprof__session_move(session, PAUSED, CHANGING);
    if (found != PAUSED) {
        return mtprof__session_refuse("session_clear", session, found);
    }
    mtprof_status status = MTPROF_OK;
    if (session->window_open) {
        status = mtb_fail(MTPROF_ESTATE, "session_clear: window %u is open", session->window);
    } else if (session->config.path == NULL && session->window != 0) {
        mtprof__session_retire_recording(session->recording);
        mtprof__sources_detach(session->recording);
        mtprof__helper_stop(&session->helper);
        mtprof__recording *fresh;
        status = mtprof__session_make_recording(session, &fresh);
        if (status != MTPROF_OK) {
            /* Without a new one the old results stay; the session cannot go on. */
            mtprof__session_give_up(session);
            return status;
        }
        mtprof__recording *old = mtprof__session_exchange(session, fresh);
        mtprof__recorder_abandon(old);
        mtprof__recording_release(old);
    }
    mtprof__session_move(session, CHANGING, PAUSED);
    return status;
}
