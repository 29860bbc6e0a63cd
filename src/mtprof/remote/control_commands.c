/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process is asked over its socket, and what it says then.
 *
 *   CTC1  Recordings that the program started are the program's: they are stopped only through the
 *         program's own callback (mtprof_control_config.stop), where it has one.
 */
#include "base/fail.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/remote/control_impl.h"

#include <mtprof/flight.h>
#include <mtprof/trace.h>
#include <mtprof/version.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- state ----------------------------------------------------------------------------------- */

/* The command line, with blanks between its words. */
static void fill_program(char *to, size_t size)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, to, size - 1) : -1;
    if (file >= 0) {
        (void)close(file);
    }
    length = length > 0 ? length : 0;
    to[length] = '\0';
    while (length > 0 && to[length - 1] == '\0') {
        length--;
    }
    for (ssize_t i = 0; i < length; i++) {
        to[i] = to[i] != '\0' ? to[i] : ' ';
    }
    if (length == 0) {
        (void)snprintf(to, size, "%s", program_invocation_short_name);
    }
}

static uint64_t ticks_of(mtprof_session *held)
{
    mtprof__recording *recording = mtprof__session_pin(held);
    uint64_t ticks = recording->store->header->start_ticks;
    mtprof__recording_release(recording);
    return ticks;
}

static void fill_recording(const mtprof__listener *listener, mtprof_session *held,
                           mtprof_control_state *state)
{
    mtprof_health health = {.struct_size = sizeof health};
    enum session_state now = mtprof__session_state_of(held);
    mtprof__recording *recording = mtprof__session_pin(held);
    state->since_us = recording->store->header->start_real_ns / 1000;
    mtprof__recording_release(recording);
    state->recording = now == PAUSED ? MTPROF_CONTROL_PAUSED : MTPROF_CONTROL_ON;
    state->wants = __atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED);
    state->by_control = ticks_of(held) == listener->started_ticks;
    if (held->config.path != NULL) {
        (void)snprintf(state->path, sizeof state->path, "%s", held->config.path);
    }
    if (mtprof_session_get_health(held, &health) == MTPROF_OK) {
        state->begins = health.begins;
        state->others = health.others;
        state->lost = health.lost;
        state->evicted = health.evicted;
        state->truncated = health.truncated;
        state->bytes = health.bytes;
        state->threads = health.threads;
    }
}

static void fill_state(const mtprof__listener *listener, mtprof_control_state *state)
{
    memset(state, 0, sizeof *state);
    state->pid = listener->pid;
    state->refused = listener->refused;
    state->dropped = listener->dropped;
    memcpy(state->rank, listener->rank, sizeof state->rank);
    (void)snprintf(state->version, sizeof state->version, "%s", mtprof_version_string());
    fill_program(state->program, sizeof state->program);
    mtprof_session *held = mtprof__session_hold_active();
    if (held != NULL) {
        fill_recording(listener, held, state);
        mtprof__session_let_go(held);
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

/* The failure of a callback, with its own words where it has some. */
static mtprof_status told(mtprof_status status, const mtprof_control_answer *answer,
                          const char *what)
{
    if (status == MTPROF_OK || answer->message[0] == '\0') {
        return status == MTPROF_OK ? status
                                   : mtb_fail(status, "control: the program refused to %s: %s",
                                              what, mtprof_status_text(status));
    }
    return mtb_fail(status, "%.*s", (int)sizeof answer->message - 1, answer->message);
}

static mtprof_status start_session(mtprof__listener *listener, const mtprof_control_request *r)
{
    uint64_t wants = MTPROF_WANT_DEFAULT;
    if ((r->details & MTPROF_CONTROL_CALLS) != 0) {
        return mtb_fail(MTPROF_ENOTSUP,
                        "control: calls are those of Python functions, and this is no Python "
                        "program with mtprof");
    }
    wants |=
        (r->details & MTPROF_CONTROL_SHAPES) != 0 ? MTPROF_WANT_INPUTS | MTPROF_WANT_STRIDES : 0;
    wants |= (r->details & MTPROF_CONTROL_STACKS) != 0 ? MTPROF_WANT_STACKS : 0;
    wants |=
        (r->details & MTPROF_CONTROL_MEMORY) != 0 ? MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS : 0;
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = r->ring_bytes != 0 ? MTPROF_POLICY_RING : 0,
                            .path = r->path,
                            .buffer_bytes = r->ring_bytes,
                            .wants = wants};
    return mtprof_session_start(&config, &listener->session);
}

static mtprof_status start(mtprof__listener *listener, const mtprof_control_request *r)
{
    mtprof_control_state state;
    fill_state(listener, &state);
    if (state.recording != MTPROF_CONTROL_OFF) {
        return mtb_fail(MTPROF_EBUSY, "control: process %lld records already, %s, to %.300s",
                        (long long)listener->pid,
                        state.by_control ? "as it was told before" : "by itself",
                        state.path[0] != '\0' ? state.path : "memory");
    }
    MT_TRY(mtprof__control_end_session(listener)); /* one that has stopped */
    if (listener->config.start != NULL) {
        mtprof_control_answer answer = {.struct_size = sizeof answer};
        MT_TRY(told(listener->config.start(listener->config.user, r, &answer), &answer, "start"));
    } else {
        MT_TRY(start_session(listener, r));
    }
    mtprof_session *held = mtprof__session_hold_active();
    if (held != NULL) {
        listener->started_ticks = ticks_of(held);
        mtprof__session_let_go(held);
    }
    return MTPROF_OK;
}

mtprof_status mtprof__control_end_session(mtprof__listener *listener)
{
    mtprof_session *session = listener->session;
    listener->session = NULL;
    return mtprof_session_close(session);
}

/* *state is that of the recording at its end, or just before. */
static mtprof_status stop(mtprof__listener *listener, mtprof_control_state *state)
{
    fill_state(listener, state);
    if (listener->session != NULL) {
        MT_TRY(mtprof_session_stop(listener->session));
        fill_recording(listener, listener->session, state);
        return mtprof__control_end_session(listener);
    }
    if (state->recording == MTPROF_CONTROL_OFF) {
        return mtb_fail(MTPROF_ESTATE, "control: process %lld does not record",
                        (long long)listener->pid);
    }
    if (listener->config.stop == NULL) { /* CTC1 */
        return mtb_fail(MTPROF_ESTATE,
                        "control: process %lld records by itself: it was not told to over this "
                        "socket",
                        (long long)listener->pid);
    }
    mtprof_control_answer answer = {.struct_size = sizeof answer};
    return told(listener->config.stop(listener->config.user, &answer), &answer, "stop");
}

/* Into the flight recorder's folder, within its budget. */
static mtprof_status dump_flight(const mtprof__listener *listener, const char *reason,
                                 mtprof_control_state *state)
{
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    mtprof_flight *flight = mtprof_flight_current();
    if (flight == NULL) {
        return mtb_fail(MTPROF_ESTATE,
                        "control: process %lld has no flight recorder: a path is needed",
                        (long long)listener->pid);
    }
    mtprof_status status = mtprof_flight_dump(flight, reason, &info);
    if (status == MTPROF_OK) {
        (void)snprintf(state->dump, sizeof state->dump, "%s", info.path);
    }
    mtprof_flight_release(flight);
    return status;
}

static mtprof_status dump(const mtprof__listener *listener, const mtprof_control_request *r,
                          mtprof_control_state *state)
{
    const char *reason = r->reason != NULL ? r->reason : "control";
    fill_state(listener, state);
    if (r->path == NULL) {
        return dump_flight(listener, reason, state);
    }
    mtprof_session *held = mtprof__session_hold_active();
    if (held == NULL) {
        return mtb_fail(MTPROF_ESTATE, "control: process %lld does not record",
                        (long long)listener->pid);
    }
    mtprof_dump_options options = {.struct_size = sizeof options, .reason = reason};
    mtprof_status status = mtprof_session_dump(held, r->path, &options, NULL);
    mtprof__session_let_go(held);
    (void)snprintf(state->dump, sizeof state->dump, "%s", r->path);
    return status;
}

static mtprof_status obey(mtprof__listener *listener, const mtprof_control_request *request,
                          mtprof_control_state *state)
{
    if (request->command == MTPROF_CONTROL_STOP) {
        MT_TRY(stop(listener, state));
        state->recording = MTPROF_CONTROL_OFF;
        return MTPROF_OK;
    }
    if (request->command == MTPROF_CONTROL_DUMP) {
        return dump(listener, request, state);
    }
    if (request->command == MTPROF_CONTROL_START) {
        MT_TRY(start(listener, request));
    }
    fill_state(listener, state);
    return MTPROF_OK;
}

void mtprof__control_answer(mtprof__listener *listener, char *line, size_t length,
                            mtb_writer *writer)
{
    mtprof__control_asked asked;
    mtprof_control_state state;
    mtprof_status status = mtprof__control_read_request(line, length, &asked);
    if (status == MTPROF_OK) {
        status = obey(listener, &asked.request, &state);
    }
    if (status != MTPROF_OK) {
        mtprof__control_write_failure(writer, status, mtb_last_failure()->message);
    } else {
        mtprof__control_write_answer(writer, &state);
    }
}
