/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: who records, and when.
 *
 *      STARTING ─► PAUSED ◄─► RECORDING ─► STOPPING ─► STOPPED ─► (freed)
 *
 * Invariants
 *   SES1  At most one session is `active`; it is set before anything is made and cleared after the
 *         last writer is detached.
 *   SES2  The state changes under the control lock. The thread that moved it to STARTING,
 *         CHANGING or STOPPING owns the session until it moves it on; callbacks (sources, warnings)
 *         run in those states, without the lock.
 *   SES3  Of a caller's struct no byte past its struct_size is read or written.
 *   SES4  A session belongs to the process that started it; elsewhere only close is allowed.
 *   SES5  A session that is held is not freed: close waits. Whoever holds it is not its owner.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/lock.h"
#include "base/struct_size.h"
#include "mtprof/control/rendezvous.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/define/modules.h"
#include "mtprof/record/source/source_registry.h"

#include <mtprof/clock.h>
#include <mtprof/session.h>
#include <mtprof/version.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DEVICE_WAIT_S = 30 /* without a report from a device that has work */
};

mtb_lock mtprof__session_lock = MTB_LOCK_INIT(MTB_RANK_CONTROL);
static mtprof_session *active;

/* ---- fork ---- */

static void fork_child(void)
{
    mtprof__recorder_after_fork_child();
    mtprof__sources_after_fork();
    mtprof__file_after_fork();
    mtb_lock_reset(&mtprof__session_lock);
    active = NULL;
}

static void prepare_process(void)
{
    mtprof__recorder_prepare();
    pthread_atfork(mtprof__recorder_before_fork, mtprof__recorder_after_fork_parent, fork_child);
}

/* ---- small things ---- */

static mtprof_status check_config(const mtprof_config *config, mtprof_config *copy)
{
    if (config == NULL || config->struct_size < offsetof(mtprof_config, wants)) {
        return mtb_fail(MTPROF_EINVAL, "session_start: struct_size is %u, at least %zu is needed",
                        config != NULL ? config->struct_size : 0, offsetof(mtprof_config, wants));
    }
    mtb_read_struct(copy, config); /* SES3 */
    if (copy->policy > MTPROF_POLICY_STOP) {
        return mtb_fail(MTPROF_EINVAL, "session_start: policy is %u, it must be 0, 1 or 2",
                        copy->policy);
    }
    if (copy->path != NULL && copy->path[0] == '\0') {
        return mtb_fail(MTPROF_EINVAL, "session_start: path is empty");
    }
    if (copy->buffer_bytes != 0 && copy->buffer_bytes < MTPROF__BUDGET_MIN) {
        return mtb_fail(MTPROF_EINVAL, "session_start: buffer_bytes is %llu, at least %d is needed",
                        (unsigned long long)copy->buffer_bytes, MTPROF__BUDGET_MIN);
    }
    if (copy->ring_ns != 0 && copy->policy != MTPROF_POLICY_RING) {
        return mtb_fail(MTPROF_EINVAL,
                        "session_start: ring_ns is %llu, but policy is %u and not the ring's (%d)",
                        (unsigned long long)copy->ring_ns, copy->policy, MTPROF_POLICY_RING);
    }
    if (copy->ring_steps != 0 && copy->policy != MTPROF_POLICY_RING) {
        return mtb_fail(
            MTPROF_EINVAL,
            "session_start: ring_steps is %llu, but policy is %u and not the ring's (%d)",
            (unsigned long long)copy->ring_steps, copy->policy, MTPROF_POLICY_RING);
    }
    if (copy->ring_steps >= MTPROF_SESSION_STEPS_MAX) {
        return mtb_fail(MTPROF_EINVAL, "session_start: ring_steps is %llu, it must be below %d",
                        (unsigned long long)copy->ring_steps, MTPROF_SESSION_STEPS_MAX);
    }
    if (copy->path_shared > 1) {
        return mtb_fail(MTPROF_EINVAL, "session_start: path_shared is %u, it must be 0 or 1",
                        copy->path_shared);
    }
    if (copy->wants >> 16 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_start: wants is 0x%llx, bits above 15 are unknown",
                        (unsigned long long)copy->wants);
    }
    if (copy->counters_hz > MTPROF__WATCH_HZ_MOST) {
        return mtb_fail(MTPROF_EINVAL, "session_start: counters_hz is %u, it must be at most %d",
                        copy->counters_hz, MTPROF__WATCH_HZ_MOST);
    }
    if (copy->overhead_ppm > 1000000) {
        return mtb_fail(MTPROF_EINVAL,
                        "session_start: overhead_ppm is %u, more than all of it (1000000)",
                        copy->overhead_ppm);
    }
    if (copy->wants == 0) {
        copy->wants = MTPROF_WANT_DEFAULT;
    }
    if (copy->device_wait_ns == 0) {
        copy->device_wait_ns = DEVICE_WAIT_S * (uint64_t)1000000000;
    }
    return MTPROF_OK;
}

enum session_state mtprof__session_state_of(mtprof_session *session)
{
    if (session->pid != getpid()) {
        return FOREIGN;
    }
    mtb_lock_acquire(&mtprof__session_lock);
    enum session_state state = session->state;
    mtb_lock_release(&mtprof__session_lock);
    return state;
}

enum session_state mtprof__session_move(mtprof_session *session, enum session_state from,
                                        enum session_state to)
{
    if (session->pid != getpid()) {
        return FOREIGN;
    }
    mtb_lock_acquire(&mtprof__session_lock);
    enum session_state found = session->state;
    if (found == from) {
        session->state = to;
    }
    mtb_lock_release(&mtprof__session_lock);
    return found;
}

mtprof_status mtprof__session_refuse(const char *call, const mtprof_session *session,
                                     enum session_state found)
{
    switch (found) {
    case FOREIGN:
        return mtb_fail(MTPROF_ESTATE, "%s: the session belongs to process %ld, this is its child",
                        call, (long)session->pid);
    case STOPPED: return mtb_fail(MTPROF_ESTATE, "%s: the session has stopped", call);
    case RECORDING: return mtb_fail(MTPROF_ESTATE, "%s: the session is recording", call);
    case PAUSED: return mtb_fail(MTPROF_ESTATE, "%s: the session is not recording", call);
    default: return mtb_fail(MTPROF_EBUSY, "%s: another thread is changing the session", call);
    }
}

static void append_open(mtprof_session *s, uint64_t ticks)
{
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_WINDOW_OPEN, 4, 0, s->epoch), ticks, s->wants,
                          s->window | (uint64_t)s->step << 32};
    mtprof__control_append(s->recording, record, 4, ticks);
}

void mtprof__session_append_close(mtprof_session *s, uint32_t how, uint64_t begins)
{
    static uint64_t last_id; /* of the process; atomic */
    uint64_t first = __atomic_fetch_add(&last_id, begins, __ATOMIC_RELAXED) + 1;
    uint32_t words = begins != 0 ? 4 : 2;
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_WINDOW_CLOSE, words, how, s->epoch),
                          s->end_ticks, first, begins};
    mtprof__control_append(s->recording, record, words, s->end_ticks);
}

/* Notes what the devices are, once in a session; what the program says itself stays. */
static void describe_devices(mtprof_session *s)
{
    static const char key[] = "deviceProperties";
    if (mtprof__session_has_meta(s, key, sizeof key - 1)) {
        return;
    }
    char *json = mtprof__sources_describe();
    if (json != NULL) {
        (void)mtprof__session_add_meta(s, key, sizeof key - 1, json, strlen(json), true);
    }
    mtb_free(json);
}

/* Opens the gate. The caller owns the session (SES2). */
void mtprof__session_open_gate(mtprof_session *s)
{
    mtprof__sources_start(s->recording, s->wants, s->config.on_warning, s->config.user);
    describe_devices(s);
    mtb_lock_acquire(&mtprof__session_lock);
    uint64_t ticks = mtprof__ticks(); /* before any event of the epoch */
    s->epoch = mtprof__limiter_open(&s->helper.limiter, s->recording, (uint32_t)s->wants);
    mtb_lock_release(&mtprof__session_lock);
    append_open(s, ticks);
}

/* Copies counters into the trace, where they outlive us. */
static void store_totals(mtprof_session *s)
{
    mtprof__file_header *header = s->recording->store->header;
    mtprof_health h = {.struct_size = sizeof h};
    mtprof__count_collect(s->recording);
    mtprof__recorder_sum(s->recording, &h);
    MTPROF__SET(header->health[MTPROF_HEALTH_BEGINS], h.begins);
    MTPROF__SET(header->health[MTPROF_HEALTH_OTHERS], h.others);
    MTPROF__SET(header->health[MTPROF_HEALTH_LAUNCHES], h.launches);
    MTPROF__SET(header->health[MTPROF_HEALTH_TRUNCATED], h.truncated);
}

/* Shuts the gate. The caller owns the session (SES2). */
void mtprof__session_shut_gate(mtprof_session *s, uint32_t how)
{
    uint64_t before = MTPROF__GET(s->recording->begins); /* settled at each close */
    mtb_lock_acquire(&mtprof__session_lock);
    s->end_ticks = mtprof__limiter_shut(&s->helper.limiter, s->recording);
    mtb_lock_release(&mtprof__session_lock);
    mtprof__session_append_close(s, how, MTPROF__GET(s->recording->begins) - before);
    describe_devices(s); /* of a source that came late */
    mtprof__sources_stop(s->recording, s->config.device_wait_ns, s->config.on_warning,
                         s->config.user);
    mtprof__anchor_now(s->recording);
    store_totals(s);
}

/* ---- start ---- */

static void free_session(mtprof_session *s)
{
    while (s->metadata != NULL) {
        session_meta *next = s->metadata->next;
        mtb_free(s->metadata);
        s->metadata = next;
    }
    mtb_free((char *)(uintptr_t)s->config.path);
    mtb_free((char *)(uintptr_t)s->config.spill_directory);
    mtb_free(s);
}

static mtprof_session *make_session(const mtprof_config *config)
{
    mtprof_session *s = mtb_calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->state = STARTING;
    s->pid = getpid();
    s->config = *config;
    s->wants = config->wants;
    const char *path = config->path;
    const char *spill = config->spill_directory;
    s->config.path = path == NULL               ? NULL
                     : config->path_shared != 0 ? mtprof__path_with_pid(path)
                                                : mtb_copy_text(path, strlen(path));
    s->config.spill_directory = spill != NULL ? mtb_copy_text(spill, strlen(spill)) : NULL;
    if ((path != NULL && s->config.path == NULL) ||
        (spill != NULL && s->config.spill_directory == NULL)) {
        free_session(s);
        return NULL;
    }
    return s;
}

/* Detaches the recording from the process: no thread defines in it or attaches to it any more. */
void mtprof__session_retire_recording(mtprof__recording *recording)
{
    MTPROF__SET(recording->retired, 1);
    mtprof__recorder_detach(recording);
    mtb_lock_acquire(&mtprof__names_lock);
    if (mtprof__current == recording) {
        __atomic_store_n(&mtprof__current, NULL, __ATOMIC_RELEASE);
    }
    mtb_lock_release(&mtprof__names_lock);
}

static void warn(const mtprof_session *s, mtprof_status status, const char *text, const char *path)
{
    char message[MTB_MESSAGE_BYTES];
    if (s->config.on_warning != NULL) {
        (void)snprintf(message, sizeof message, text, s->config.path, path);
        s->config.on_warning(s->config.user, status, message);
    }
}

/* The store; under a name of the process's own where the path is shared and another has it. */
static mtprof_status open_store(mtprof_session *s, mtprof__store **out)
{
    mtprof_status status = mtprof__store_new(&s->config, out);
    if (status == MTPROF_EBUSY && s->config.path_shared != 0) {
        char *own = mtprof__path_of_process(s->config.path);
        if (own == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "session_start: no memory for the path");
        }
        warn(s, MTPROF_EBUSY, "%s is being recorded by another process: recording to %s", own);
        mtb_free((char *)(uintptr_t)s->config.path);
        s->config.path = own;
        status = mtprof__store_new(&s->config, out);
    }
    if (status == MTPROF_OK && (*out)->unlocked) {
        warn(s, MTPROF_OK, "the file system of %s has no locks: no other process may record to it",
             "");
    }
    return status;
}

mtprof_status mtprof__session_make_recording(mtprof_session *s, mtprof__recording **out)
{
    *out = NULL;
    mtprof__store *store = NULL;
    MT_TRY(open_store(s, &store));
    store->header->begin_cost_ticks = s->pair_cost;
    store->header->header_crc =
        mtb_crc32c(0, store->header, offsetof(mtprof__file_header, header_crc));
    mtprof__recording *recording = NULL;
    MT_TRY(mtprof__recording_new(store, &recording));
    s->helper.on_warning = s->config.on_warning;
    s->helper.user = s->config.user;
    mtprof__limiter_attach(&s->helper.limiter, recording);
    mtprof_status status = mtprof__helper_start(&s->helper, recording);
    if (status == MTPROF_OK && (status = mtprof__store_place(store)) != MTPROF_OK) {
        mtprof__helper_stop(&s->helper);
    }
    if (status != MTPROF_OK) {
        mtprof__session_retire_recording(recording);
        mtprof__recording_release(recording);
        return status;
    }
    if ((s->wants & MTPROF_WANT_NATIVE_STACKS) != 0) {
        mtprof__define_modules(recording);
    }
    *out = recording;
    return MTPROF_OK;
}

static void tell_process(mtprof_session *s)
{
    const char *version = mtprof_version_string();
    const char *name = program_invocation_short_name;
    (void)mtprof__session_add_meta(s, "mtprof_version", 14, version, strlen(version), false);
    (void)mtprof__session_add_meta(s, "process_name", 12, name, strlen(name), false);
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host - 1) == 0) {
        (void)mtprof__session_add_meta(s, "host_name", 9, host, strlen(host), false);
    }
}

mtprof_status mtprof_session_start(const mtprof_config *config, mtprof_session **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_start: no place for the session");
    }
    *out = NULL;
    mtprof_config checked = {0};
    MT_TRY(check_config(config, &checked));
    pthread_once(&once, prepare_process);
    MT_TRY(mtprof__rendezvous_check());
    mtprof_session *s = make_session(&checked);
    if (s == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory");
    }
    mtb_lock_acquire(&mtprof__session_lock);
    bool free_to_start = active == NULL;
    if (free_to_start) {
        active = s; /* SES1 */
    }
    mtb_lock_release(&mtprof__session_lock);
    if (!free_to_start) {
        free_session(s);
        return mtb_fail(MTPROF_EBUSY, "session_start: another profiler session is already active");
    }
    mtprof__clock_prepare();
    s->pair_cost = mtprof__recorder_cost();
    mtprof__limiter_init(&s->helper.limiter, checked.overhead_ppm, s->pair_cost);
    mtprof_status status = mtprof__session_make_recording(s, &s->recording);
    if (status != MTPROF_OK) {
        mtb_lock_acquire(&mtprof__session_lock);
        active = NULL;
        mtb_lock_release(&mtprof__session_lock);
        mtprof__limiter_fini(&s->helper.limiter);
        free_session(s);
        return status;
    }
    tell_process(s);
    bool paused = checked.paused != 0;
    if (!paused) {
        s->window = 1;
        s->window_open = true;
        mtprof__session_open_gate(s);
    }
    mtprof__session_move(s, STARTING, paused ? PAUSED : RECORDING);
    status = mtprof__watch_start(s, checked.counters_hz, &s->watch);
    if (status != MTPROF_OK) {
        (void)mtprof_session_close(s);
        return status;
    }
    *out = s;
    return MTPROF_OK;
}

void mtprof__session_give_up(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    session->state = STOPPED;
    active = active == session ? NULL : active;
    mtb_lock_release(&mtprof__session_lock);
}

mtprof_session *mtprof__session_hold_active(void)
{
    mtb_lock_acquire(&mtprof__session_lock);
    mtprof_session *session = active != NULL && active->state != STARTING ? active : NULL;
    if (session != NULL) {
        session->holds++;
    }
    mtb_lock_release(&mtprof__session_lock);
    return session;
}

void mtprof__session_let_go(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    session->holds--;
    mtb_lock_release(&mtprof__session_lock);
}

static bool is_held(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    bool held = session->holds != 0;
    mtb_lock_release(&mtprof__session_lock);
    return held;
}

int mtprof__session_active(void)
{
    mtb_lock_acquire(&mtprof__session_lock);
    int is_active = active != NULL;
    mtb_lock_release(&mtprof__session_lock);
    return is_active;
}

/* ---- stop and close ---- */

mtprof_status mtprof_session_stop(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_stop: session is NULL");
    }
    enum session_state found = mtprof__session_move(session, RECORDING, STOPPING);
    if (found == PAUSED) {
        found = mtprof__session_move(session, PAUSED, STOPPING);
    }
    if (found == STOPPED || found == STOPPING) {
        return MTPROF_OK;
    }
    if (found == RECORDING || found == PAUSED) {
        mtprof__watch_stop(session->watch);
        session->watch = NULL;
    }
    if (found == RECORDING) {
        mtprof__session_shut_gate(session, MTPROF_CLOSE_SAVED);
    } else if (found == PAUSED) {
        if (session->window_open) {
            mtprof__session_append_close(session, MTPROF_CLOSE_SAVED, 0);
        }
        session->end_ticks = mtprof__ticks();
        mtprof__anchor_now(session->recording);
    } else {
        return mtprof__session_refuse("session_stop", session, found);
    }
    if ((session->wants & MTPROF_WANT_NATIVE_STACKS) != 0) {
        mtprof__define_modules(session->recording);
    }
    session->window_open = false;
    mtprof__session_retire_recording(session->recording);
    mtprof__store_unlock(session->recording->store); /* the path is free for the next session */
    mtprof__session_give_up(session);
    return MTPROF_OK;
}

mtprof_status mtprof_session_close(mtprof_session *session)
{
    if (session == NULL) {
        return MTPROF_OK;
    }
    if (mtprof__session_state_of(session) == FOREIGN) {
        /* Memory and helper are the parent's; what the child inherited is these few bytes. */
        mtprof__watch_forget(session->watch);
        free_session(session);
        return MTPROF_OK;
    }
    while (mtprof__session_state_of(session) != STOPPED) {
        if (mtprof_session_stop(session) != MTPROF_OK ||
            mtprof__session_state_of(session) != STOPPED) {
            struct timespec rest = {0, 100 * 1000}; /* another thread is at it */
            nanosleep(&rest, NULL);
        }
    }
    while (is_held(session)) { /* SES5 */
        struct timespec rest = {0, 100 * 1000};
        nanosleep(&rest, NULL);
    }
    mtprof_status status = MTPROF_OK;
    mtprof__store *store = session->recording->store;
    mtprof__store_retain(store);
    mtprof__sources_detach(session->recording);
    mtprof__helper_stop(&session->helper);
    mtprof__recorder_abandon(session->recording);
    if (session->config.path != NULL) {
        status = mtprof__store_finish(store, session->end_ticks);
    }
    mtprof__store_release(store);
    mtprof__recording_release(session->recording);
    mtprof__limiter_fini(&session->helper.limiter);
    free_session(session);
    return status;
}
