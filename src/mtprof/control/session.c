/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: who records, and when.
 *
 *      STARTING ─► PAUSED ◄─► RECORDING ─► STOPPING ─► STOPPED ─► (freed)
 *
 * Invariants
 *   S1  At most one session is `active`; it is set before anything is made and cleared after the last
 *       writer is detached.
 *   S2  The state changes under the control lock. Whoever moved it to STARTING, CHANGING or STOPPING
 *       owns the session until he moves it on; callbacks (sources, warnings) run in those states,
 *       without the lock.
 *   S3  Of a caller's struct no byte past its struct_size is read or written.
 *   S4  A session belongs to the process that started it; elsewhere only close is allowed.
 */
#include <mtprof/session.h>

#include <mtprof/clock.h>
#include <mtprof/version.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/lock.h"
#include "mtprof/control/rendezvous.h"
#include "mtprof/record/helper.h"
#include "mtprof/record/modules.h"
#include "mtprof/record/source_registry.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum session_state {
    STARTING,
    PAUSED,
    RECORDING,
    CHANGING,
    STOPPING,
    STOPPED
};

enum {
    TEXT_LIMIT = 16 << 20,
    FLUSH_NS = 2000 * 1000 * 1000, /* how long a device may take to hand over its records */
    CLOSE_SAVED = 0,
    CLOSE_DISCARDED = 1,
    CLOSE_PAUSED = 2
};

/* A key and a value, kept so that a cleared session still has them. */
typedef struct session_meta {
    struct session_meta *next;
    bool is_json;
    size_t key_length, value_length;
    char text[]; /* key, value */
} session_meta;

struct mtprof_session {
    enum session_state state;
    pid_t pid;
    mtprof_config config; /* texts are copies of ours */
    mtprof__recording *recording;
    mtprof__helper helper;
    uint64_t wants; /* of the window that is open, or was last */
    uint32_t epoch, window, step;
    bool window_open; /* also while paused */
    uint64_t end_ticks;
    uint32_t pair_cost; /* 1/256 ticks */
    session_meta *metadata, **metadata_end;
};

static mtb_lock control = MTB_LOCK_INIT(MTB_RANK_CONTROL);
static mtprof_session *active;

/* ---- fork ---- */

static void fork_child(void)
{
    mtprof__recorder_after_fork_child();
    mtprof__sources_after_fork();
    mtb_lock_reset(&control);
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
    memset(copy, 0, sizeof *copy); /* S3: what an older caller does not have is zero */
    memcpy(copy, config, config->struct_size < sizeof *copy ? config->struct_size : sizeof *copy);
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
        return mtb_fail(MTPROF_EINVAL, "session_start: ring_ns needs the ring policy");
    }
    if (copy->wants >> 15 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_start: wants is 0x%llx, bits above 14 are unknown",
                        (unsigned long long)copy->wants);
    }
    if (copy->wants == 0) {
        copy->wants = MTPROF_WANT_DEFAULT;
    }
    return MTPROF_OK;
}

/* Moves the state when it is `from`. */
static bool move(mtprof_session *session, enum session_state from, enum session_state to)
{
    mtb_lock_acquire(&control);
    bool moved = session->state == from;
    if (moved) {
        session->state = to;
    }
    mtb_lock_release(&control);
    return moved;
}

static enum session_state state_of(mtprof_session *session)
{
    mtb_lock_acquire(&control);
    enum session_state state = session->state;
    mtb_lock_release(&control);
    return state;
}

static bool is_ours(const mtprof_session *session)
{
    return session->pid == getpid();
}

static mtprof_status not_in_state(const char *call, mtprof_session *session)
{
    if (!is_ours(session)) {
        return mtb_fail(MTPROF_ESTATE, "%s: the session belongs to process %ld, this is its child",
                        call, (long)session->pid);
    }
    enum session_state state = state_of(session);
    if (state == STARTING || state == CHANGING || state == STOPPING) {
        return mtb_fail(MTPROF_EBUSY, "%s: another thread is changing the session", call);
    }
    return mtb_fail(MTPROF_ESTATE, "%s: the session %s", call,
                    state == STOPPED     ? "has stopped"
                    : state == RECORDING ? "is recording"
                                         : "is not recording");
}

static void append_window(mtprof_session *s, uint32_t kind, uint32_t aux, uint64_t ticks)
{
    uint64_t record[4] = {mtprof__word0(kind, kind == MTPROF_REC_WINDOW_OPEN ? 4 : 2, aux, s->epoch),
                          ticks, s->wants, s->window | (uint64_t)s->step << 32};
    mtprof__control_append(s->recording, record, kind == MTPROF_REC_WINDOW_OPEN ? 4 : 2, ticks);
}

/* Opens the gate. The caller owns the session (S2). */
static void open_gate(mtprof_session *s)
{
    mtprof__sources_start(s->recording, s->wants, s->config.on_warning, s->config.user);
    mtb_lock_acquire(&control);
    uint64_t ticks = mtprof__ticks(); /* before any event of the epoch */
    s->epoch = mtprof__epoch_open(s->recording, (uint32_t)s->wants);
    mtb_lock_release(&control);
    append_window(s, MTPROF_REC_WINDOW_OPEN, 0, ticks);
}

/* Copies counters into the trace, where they outlive us. */
static void store_totals(mtprof_session *s)
{
    mtprof__file_header *header = s->recording->store->header;
    mtprof_health h = {.struct_size = sizeof h};
    mtprof__recorder_sum(s->recording, &h);
    MTPROF__SET(header->health[MTPROF_HEALTH_BEGINS], h.begins);
    MTPROF__SET(header->health[MTPROF_HEALTH_OTHERS], h.others);
    MTPROF__SET(header->health[MTPROF_HEALTH_LAUNCHES], h.launches);
    MTPROF__SET(header->health[MTPROF_HEALTH_TRUNCATED], h.truncated);
}

/* Shuts the gate. The caller owns the session (S2). */
static void shut_gate(mtprof_session *s, uint32_t how)
{
    mtb_lock_acquire(&control);
    s->end_ticks = mtprof__epoch_close(s->recording);
    mtb_lock_release(&control);
    append_window(s, MTPROF_REC_WINDOW_CLOSE, how, s->end_ticks);
    mtprof__sources_stop(s->recording, FLUSH_NS);
    mtprof__anchor_now(s->recording);
    store_totals(s);
}

static mtprof_status append_meta(mtprof_session *s, const session_meta *meta)
{
    uint64_t key_words = mtprof__text_words(meta->key_length);
    uint64_t total = 3 + key_words + mtprof__text_words(meta->value_length);
    uint64_t *words = mtb_calloc(total, sizeof *words);
    if (words == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_metadata: no memory for %zu bytes",
                        meta->key_length + meta->value_length);
    }
    /* Always with an extended length: one form to write, and values may be long. */
    words[0] = mtprof__word0(MTPROF_REC_TRACE_META, 255, meta->is_json, s->window);
    words[1] = total;
    words[2] = meta->key_length | (uint64_t)meta->value_length << 32;
    memcpy(words + 3, meta->text, meta->key_length);
    memcpy(words + 3 + key_words, meta->text + meta->key_length, meta->value_length);
    bool stored = mtprof__control_append(s->recording, words, total, mtprof__ticks());
    mtb_free(words);
    return stored ? MTPROF_OK : mtb_fail(MTPROF_ENOSPC, "session_metadata: no room in the trace");
}

static mtprof_status add_meta(mtprof_session *s, const char *key, size_t key_length,
                              const char *value, size_t value_length, bool is_json)
{
    session_meta *meta = mtb_calloc(1, sizeof *meta + key_length + value_length);
    if (meta == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_metadata: no memory for %zu bytes",
                        key_length + value_length);
    }
    meta->is_json = is_json;
    meta->key_length = key_length;
    meta->value_length = value_length;
    memcpy(meta->text, key, key_length);
    if (value_length != 0) {
        memcpy(meta->text + key_length, value, value_length);
    }
    mtb_lock_acquire(&control);
    *s->metadata_end = meta;
    s->metadata_end = &meta->next;
    mtb_lock_release(&control);
    return append_meta(s, meta);
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

static mtprof_status copy_text(const char *call, const char *from, const char **to)
{
    *to = NULL;
    if (from == NULL) {
        return MTPROF_OK;
    }
    *to = mtb_copy_text(from, strlen(from));
    return *to != NULL ? MTPROF_OK : mtb_fail(MTPROF_ENOMEM, "%s: no memory for a path", call);
}

static mtprof_status make_session(const mtprof_config *config, mtprof_session **out)
{
    mtprof_session *s = mtb_calloc(1, sizeof *s);
    if (s == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory");
    }
    s->state = STARTING;
    s->pid = getpid();
    s->metadata_end = &s->metadata;
    s->config = *config;
    s->config.path = s->config.spill_directory = NULL;
    mtprof_status status = copy_text("session_start", config->path, &s->config.path);
    if (status == MTPROF_OK) {
        status = copy_text("session_start", config->spill_directory, &s->config.spill_directory);
    }
    if (status != MTPROF_OK) {
        free_session(s);
        return status;
    }
    s->wants = config->wants;
    *out = s;
    return MTPROF_OK;
}

/* Takes the recording out of the process's hands: nobody defines or attaches to it any more. */
static void retire_recording(mtprof__recording *recording)
{
    mtprof__recorder_detach(recording);
    mtb_lock_acquire(&mtprof__names_lock);
    if (mtprof__current == recording) {
        __atomic_store_n(&mtprof__current, NULL, __ATOMIC_RELEASE);
    }
    mtb_lock_release(&mtprof__names_lock);
}

/* Store, recording, helper and the first records. */
static mtprof_status make_recording(mtprof_session *s)
{
    mtprof__store *store = NULL;
    MT_TRY(mtprof__store_new(&s->config, &store));
    store->header->begin_cost_ticks = s->pair_cost;
    store->header->header_crc =
        mtb_crc32c(0, store->header, offsetof(mtprof__file_header, header_crc));
    MT_TRY(mtprof__recording_new(store, &s->recording));
    s->helper.on_warning = s->config.on_warning;
    s->helper.user = s->config.user;
    mtprof_status status = mtprof__helper_start(&s->helper, s->recording);
    if (status != MTPROF_OK) {
        retire_recording(s->recording);
        mtprof__recording_free(s->recording);
        s->recording = NULL;
        return status;
    }
    if ((s->wants & MTPROF_WANT_NATIVE_STACKS) != 0) {
        mtprof__define_modules(s->recording);
    }
    return MTPROF_OK;
}

static void tell_process(mtprof_session *s)
{
    const char *version = mtprof_version_string();
    const char *name = program_invocation_short_name;
    (void)add_meta(s, "mtprof_version", 14, version, strlen(version), false);
    (void)add_meta(s, "process_name", 12, name, strlen(name), false);
}

mtprof_status mtprof_session_start(const mtprof_config *config, mtprof_session **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_start: no place for the session");
    }
    *out = NULL;
    mtprof_config checked;
    MT_TRY(check_config(config, &checked));
    pthread_once(&once, prepare_process);
    MT_TRY(mtprof__rendezvous_check());
    mtprof_session *s = NULL;
    MT_TRY(make_session(&checked, &s));
    mtb_lock_acquire(&control);
    bool free_to_start = active == NULL;
    if (free_to_start) {
        active = s; /* S1 */
    }
    mtb_lock_release(&control);
    if (!free_to_start) {
        free_session(s);
        return mtb_fail(MTPROF_EBUSY, "session_start: a session is already active in this process");
    }
    mtprof__clock_prepare();
    s->pair_cost = mtprof__recorder_cost();
    mtprof_status status = make_recording(s);
    if (status != MTPROF_OK) {
        mtb_lock_acquire(&control);
        active = NULL;
        mtb_lock_release(&control);
        free_session(s);
        return status;
    }
    tell_process(s);
    bool paused = checked.paused != 0;
    if (!paused) {
        s->window = 1;
        s->window_open = true;
        open_gate(s);
    }
    move(s, STARTING, paused ? PAUSED : RECORDING);
    *out = s;
    return MTPROF_OK;
}

int mtprof__session_active(void)
{
    mtb_lock_acquire(&control);
    int is_active = active != NULL;
    mtb_lock_release(&control);
    return is_active;
}

/* ---- pausing and windows ---- */

mtprof_status mtprof_session_pause(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_pause: session is NULL");
    }
    if (!is_ours(session)) {
        return not_in_state("session_pause", session);
    }
    if (!move(session, RECORDING, CHANGING)) {
        return state_of(session) == PAUSED ? MTPROF_OK : not_in_state("session_pause", session);
    }
    shut_gate(session, CLOSE_PAUSED);
    move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

mtprof_status mtprof_session_resume(mtprof_session *session, uint64_t wants)
{
    if (session == NULL || wants >> 15 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_resume: %s",
                        session == NULL ? "session is NULL" : "wants has unknown bits");
    }
    if (!is_ours(session)) {
        return not_in_state("session_resume", session);
    }
    if (!move(session, PAUSED, CHANGING)) {
        return state_of(session) == RECORDING ? MTPROF_OK : not_in_state("session_resume", session);
    }
    session->wants = wants != 0 ? wants : session->wants;
    if (!session->window_open) {
        session->window_open = true;
        session->window++;
    }
    open_gate(session);
    move(session, CHANGING, RECORDING);
    return MTPROF_OK;
}

mtprof_status mtprof_session_window_open(mtprof_session *session, uint64_t wants, uint32_t step)
{
    if (session == NULL || wants >> 15 != 0) {
        return mtb_fail(MTPROF_EINVAL, "session_window_open: %s",
                        session == NULL ? "session is NULL" : "wants has unknown bits");
    }
    if (!is_ours(session) || !move(session, PAUSED, CHANGING)) {
        return not_in_state("session_window_open", session);
    }
    if (session->window_open) {
        move(session, CHANGING, PAUSED);
        return mtb_fail(MTPROF_ESTATE, "session_window_open: window %u is open and paused",
                        session->window);
    }
    session->wants = wants != 0 ? wants : session->config.wants;
    session->step = step;
    session->window++;
    session->window_open = true;
    open_gate(session);
    move(session, CHANGING, RECORDING);
    return MTPROF_OK;
}

mtprof_status mtprof_session_window_close(mtprof_session *session, bool keep)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_window_close: session is NULL");
    }
    if (!is_ours(session)) {
        return not_in_state("session_window_close", session);
    }
    uint32_t how = keep ? CLOSE_SAVED : CLOSE_DISCARDED;
    if (move(session, RECORDING, CHANGING)) {
        shut_gate(session, how);
    } else if (move(session, PAUSED, CHANGING)) {
        if (!session->window_open) {
            move(session, CHANGING, PAUSED);
            return mtb_fail(MTPROF_ESTATE, "session_window_close: no window is open");
        }
        append_window(session, MTPROF_REC_WINDOW_CLOSE, how, mtprof__ticks());
    } else {
        return not_in_state("session_window_close", session);
    }
    session->window_open = false;
    move(session, CHANGING, PAUSED);
    return MTPROF_OK;
}

mtprof_status mtprof_session_step(mtprof_session *session, uint64_t step, uint32_t action)
{
    if (session == NULL || action > 3) {
        return mtb_fail(MTPROF_EINVAL, "session_step: %s",
                        session == NULL ? "session is NULL" : "action must be 0 to 3");
    }
    enum session_state state = is_ours(session) ? state_of(session) : STOPPED;
    if (state == STOPPED || state == STOPPING) {
        return not_in_state("session_step", session);
    }
    uint64_t ticks = mtprof__ticks();
    uint64_t record[3] = {mtprof__word0(MTPROF_REC_STEP, 3, action, 0), ticks, step};
    mtprof__control_append(session->recording, record, 3, ticks);
    return MTPROF_OK;
}

mtprof_status mtprof_session_clear(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_clear: session is NULL");
    }
    if (!is_ours(session) || !move(session, PAUSED, CHANGING)) {
        return not_in_state("session_clear", session);
    }
    mtprof_status status = MTPROF_OK;
    if (session->window_open) {
        status = mtb_fail(MTPROF_ESTATE, "session_clear: window %u is open", session->window);
    } else if (session->config.path == NULL && session->window != 0) {
        mtprof__recording *old = session->recording;
        mtprof__helper old_helper_gone = {0};
        retire_recording(old);
        mtprof__sources_detach(old);
        mtprof__helper_stop(&session->helper);
        session->helper = old_helper_gone;
        session->recording = NULL;
        status = make_recording(session);
        if (status != MTPROF_OK) {
            /* Without a new one the old results stay; the session cannot go on. */
            session->recording = old;
            mtb_lock_acquire(&control);
            active = NULL;
            mtb_lock_release(&control);
            move(session, CHANGING, STOPPED);
            return status;
        }
        if (!mtprof__recorder_abandon(old)) {
            mtprof__recording_free(old);
        }
        for (const session_meta *m = session->metadata; m != NULL && status == MTPROF_OK;
             m = m->next) {
            status = append_meta(session, m);
        }
    }
    move(session, CHANGING, PAUSED);
    return status;
}

/* ---- stop, results, close ---- */

mtprof_status mtprof_session_stop(mtprof_session *session)
{
    if (session == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_stop: session is NULL");
    }
    if (!is_ours(session)) {
        return not_in_state("session_stop", session);
    }
    if (move(session, RECORDING, STOPPING)) {
        shut_gate(session, CLOSE_SAVED);
    } else if (move(session, PAUSED, STOPPING)) {
        session->end_ticks = mtprof__ticks();
        mtprof__anchor_now(session->recording);
    } else {
        enum session_state state = state_of(session);
        return state == STOPPED || state == STOPPING ? MTPROF_OK
                                                     : not_in_state("session_stop", session);
    }
    if ((session->wants & MTPROF_WANT_NATIVE_STACKS) != 0) {
        mtprof__define_modules(session->recording);
    }
    session->window_open = false;
    retire_recording(session->recording);
    mtb_lock_acquire(&control);
    session->state = STOPPED;
    active = NULL;
    mtb_lock_release(&control);
    return MTPROF_OK;
}

mtprof_status mtprof_session_metadata(mtprof_session *session, const char *key, size_t key_length,
                                      const char *value, size_t value_length, bool is_json)
{
    if (session == NULL || key == NULL || key_length == 0 || (value == NULL && value_length != 0)) {
        return mtb_fail(MTPROF_EINVAL, "session_metadata: %s",
                        session == NULL ? "session is NULL"
                        : key == NULL || key_length == 0 ? "the key is empty"
                                                         : "the value is NULL");
    }
    if (key_length > TEXT_LIMIT || value_length > TEXT_LIMIT) {
        return mtb_fail(MTPROF_EINVAL, "session_metadata: %zu bytes, at most %d are allowed",
                        key_length > value_length ? key_length : value_length, TEXT_LIMIT);
    }
    if (!is_ours(session)) {
        return not_in_state("session_metadata", session);
    }
    return add_meta(session, key, key_length, value, value_length, is_json);
}

static void fill_health(mtprof_session *session, mtprof_health *h)
{
    mtprof__store *store = session->recording->store;
    mtprof__recorder_sum(session->recording, h);
    h->threads = MTPROF__GET(session->recording->n_threads);
    h->activities = mtprof__store_counted(store, MTPROF_HEALTH_ACTIVITIES);
    h->unmatched = h->launches > h->activities ? h->launches - h->activities : 0;
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        h->lost_by[i] = mtprof__store_counted(store, i);
        h->lost += h->lost_by[i];
    }
    h->evicted = mtprof__store_counted(store, MTPROF_HEALTH_RING_BEGINS);
    h->stalls = mtprof__store_counted(store, MTPROF_HEALTH_STALLS);
    h->busy_at_stop = mtprof__store_counted(store, MTPROF_HEALTH_BUSY_AT_STOP);
    h->texts_cut = mtprof__store_counted(store, MTPROF_HEALTH_TEXTS_CUT);
    h->clock_back = mtprof__store_counted(store, MTPROF_HEALTH_CLOCK_BACK);
    h->bytes = __atomic_load_n(&store->frontier, __ATOMIC_RELAXED);
    h->pair_cost_ps =
        (uint64_t)(((unsigned __int128)session->pair_cost * mtprof_tick_period() * 1000) >> 64);
    h->written_behind = store->behind;
}

mtprof_status mtprof_session_health(mtprof_session *session, mtprof_health *health)
{
    if (session == NULL || health == NULL || health->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "session_health: %s",
                        session == NULL  ? "session is NULL"
                        : health == NULL ? "health is NULL"
                                         : "struct_size is 0");
    }
    if (!is_ours(session)) {
        return not_in_state("session_health", session);
    }
    mtprof_health full;
    memset(&full, 0, sizeof full);
    fill_health(session, &full);
    full.struct_size = health->struct_size; /* S3 */
    memcpy(health, &full,
           health->struct_size < sizeof full ? health->struct_size : sizeof full);
    return MTPROF_OK;
}

mtprof_status mtprof_session_bytes(mtprof_session *session, mtprof_bytes *bytes)
{
    if (session == NULL || bytes == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_bytes: %s is NULL",
                        session == NULL ? "session" : "bytes");
    }
    if (!is_ours(session)) {
        return not_in_state("session_bytes", session);
    }
    memset(bytes, 0, sizeof *bytes);
    bytes->struct_size = sizeof *bytes;
    mtprof__store_bytes(session->recording->store, bytes);
    return MTPROF_OK;
}

mtprof_status mtprof_session_save(mtprof_session *session, const char *path)
{
    if (session == NULL || path == NULL || path[0] == '\0') {
        return mtb_fail(MTPROF_EINVAL, "session_save: %s",
                        session == NULL ? "session is NULL" : "the path is empty");
    }
    if (!is_ours(session) || state_of(session) != STOPPED) {
        return not_in_state("session_save", session);
    }
    return mtprof__store_save(session->recording->store, path, session->end_ticks);
}

mtprof_status mtprof_session_close(mtprof_session *session)
{
    if (session == NULL) {
        return MTPROF_OK;
    }
    if (!is_ours(session)) {
        /* Memory and helper are the parent's; what the child inherited is these few bytes. */
        free_session(session);
        return MTPROF_OK;
    }
    while (state_of(session) != STOPPED) {
        if (mtprof_session_stop(session) != MTPROF_OK || state_of(session) != STOPPED) {
            struct timespec rest = {0, 100 * 1000}; /* another thread is at it */
            nanosleep(&rest, NULL);
        }
    }
    mtprof_status status = MTPROF_OK;
    mtprof__store *store = session->recording->store;
    mtprof__store_retain(store);
    mtprof__sources_detach(session->recording);
    mtprof__helper_stop(&session->helper);
    bool stuck = mtprof__recorder_abandon(session->recording);
    if (session->config.path != NULL) {
        status = mtprof__store_finish(store, session->end_ticks);
    }
    mtprof__store_release(store);
    if (!stuck) {
        mtprof__recording_free(session->recording);
    }
    free_session(session);
    return status;
}
