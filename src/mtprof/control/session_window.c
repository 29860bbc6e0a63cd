/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's pauses and windows: everything that moves it between PAUSED and RECORDING.
 */
#include "base/fail.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/source_registry.h"

/* Under the lock, because metadata notes the window it was set in. */
static void next_window(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    session->window++;
    session->window_open = true;
    mtb_lock_release(&mtprof__session_lock);
}

mtprof_status mtprof_session_pause(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_pause: session is NULL");
    }
    if (!mtprof__session_is_ours(session)) {
        return mtprof__session_refuse("session_pause", session);
    }
    if (!mtprof__session_move(session, RECORDING, CHANGING)) {
        return mtprof__session_state_of(session) == PAUSED
                   ? MTPROF_OK
                   : mtprof__session_refuse("session_pause", session);
    }
    mtprof__session_shut_gate(session, CLOSE_PAUSED);
    mtprof__session_move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

mtprof_status mtprof_session_resume(mtprof_session *session, uint64_t wants)
{
    if (session == NULL || wants >> 15 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_resume: %s",
                        session == NULL ? "session is NULL" : "wants has unknown bits");
    }
    if (!mtprof__session_is_ours(session)) {
        return mtprof__session_refuse("session_resume", session);
    }
    if (!mtprof__session_move(session, PAUSED, CHANGING)) {
        return mtprof__session_state_of(session) == RECORDING
                   ? MTPROF_OK
                   : mtprof__session_refuse("session_resume", session);
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
    if (session == NULL || wants >> 15 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_window_open: %s",
                        session == NULL ? "session is NULL" : "wants has unknown bits");
    }
    if (!mtprof__session_is_ours(session) || !mtprof__session_move(session, PAUSED, CHANGING)) {
        return mtprof__session_refuse("session_window_open", session);
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
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_window_close: session is NULL");
    }
    if (!mtprof__session_is_ours(session)) {
        return mtprof__session_refuse("session_window_close", session);
    }
    uint32_t how = keep ? CLOSE_SAVED : CLOSE_DISCARDED;
    if (mtprof__session_move(session, RECORDING, CHANGING)) {
        mtprof__session_shut_gate(session, how);
    } else if (mtprof__session_move(session, PAUSED, CHANGING)) {
        if (!session->window_open) {
            mtprof__session_move(session, CHANGING, PAUSED);
            return mtb_fail(MTPROF_ESTATE, "session_window_close: no window is open");
        }
        mtprof__session_append_window(session, MTPROF_REC_WINDOW_CLOSE, how, session->end_ticks);
    } else {
        return mtprof__session_refuse("session_window_close", session);
    }
    session->window_open = false;
    mtprof__session_move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

mtprof_status mtprof_session_step(mtprof_session *session, uint64_t step, uint32_t action)
{
    if (session == NULL || action > 3) {
        return mtb_fail(MTPROF_EINVAL, "session_step: %s",
                        session == NULL ? "session is NULL" : "action must be 0 to 3");
    }
    enum session_state state =
        mtprof__session_is_ours(session) ? mtprof__session_state_of(session) : STOPPED;
    if (state == STOPPED || state == STOPPING) {
        return mtprof__session_refuse("session_step", session);
    }
    uint64_t ticks = mtprof__ticks();
    uint64_t record[3] = {mtprof__word0(MTPROF_REC_STEP, 3, action, 0), ticks, step};
    mtprof__recording *recording = mtprof__session_pin(session);
    mtprof__control_append(recording, record, 3, ticks);
    mtprof__recording_release(recording);
    return MTPROF_OK;
}

mtprof_status mtprof_session_clear(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_clear: session is NULL");
    }
    if (!mtprof__session_is_ours(session) || !mtprof__session_move(session, PAUSED, CHANGING)) {
        return mtprof__session_refuse("session_clear", session);
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
        if (!mtprof__recorder_abandon(old)) {
            mtprof__recording_release(old);
        }
    }
    mtprof__session_move(session, CHANGING, PAUSED);
    return status;
}
