/* SPDX-License-Identifier: Apache-2.0
 *
 * The flight recorder: start, steps, dumps, stop. flight_impl.h lists the invariants.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/flight/flight_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DUMPS_DEFAULT = 16,
    DISTANCE_DEFAULT_S = 10,
    BUFFER_DEFAULT_MIB = 64,
    DUMPS_BYTES_DEFAULT_GIB = 4,
    STEPS_BYTES_DEFAULT_GIB = 4
};

/* FL4. Guards `current` alone; a recorder's own lock is taken inside it, never the reverse. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static mtprof_flight *current;

static void lock_current(void)
{
    pthread_mutex_lock(&current_lock);
}

static void unlock_current(void)
{
    pthread_mutex_unlock(&current_lock);
}

/* The child of a fork asks for the current one, too: it must not find the lock held. */
static void prepare_process(void)
{
    pthread_atfork(lock_current, unlock_current, unlock_current);
}

uint64_t mtprof__flight_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- start ---- */

static bool is_name(const char *name)
{
    size_t n = strlen(name);
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n > 0 && n <= MTPROF__FLIGHT_NAME_MAX && strspn(name, allowed) == n && name[0] != '.';
}

static mtprof_status check_config(const mtprof_flight_config *config, mtprof_flight_config *copy)
{
    if (config == NULL || config->struct_size < offsetof(mtprof_flight_config, name)) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: struct_size is %u, at least %zu is needed",
                        config != NULL ? config->struct_size : 0,
                        offsetof(mtprof_flight_config, name));
    }
    mtb_read_struct(copy, config);
    if (copy->folder == NULL || copy->folder[0] == '\0' ||
        strlen(copy->folder) > MTPROF__FLIGHT_FOLDER_MAX) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: folder has %zu bytes, it must have 1 to %d",
                        copy->folder != NULL ? strlen(copy->folder) : 0, MTPROF__FLIGHT_FOLDER_MAX);
    }
    if (copy->name != NULL && !is_name(copy->name)) {
        return mtb_fail(MTPROF_EINVAL,
                        "flight_start: name is \"%.80s\", it must have 1 to %d letters, digits, "
                        "'.', '_' or '-' and not begin with '.'",
                        copy->name, MTPROF__FLIGHT_NAME_MAX);
    }
    if (copy->flags > (MTPROF_FLIGHT_IN_MEMORY | MTPROF_FLIGHT_NO_STEPS)) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: flags is 0x%x, bits above 1 are unknown",
                        copy->flags);
    }
    MT_TRY(mtprof__triggers_check(copy));
    if (copy->keep_steps >= MTPROF_SESSION_STEPS_MAX - 1) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: keep_steps is %llu, it must be below %d",
                        (unsigned long long)copy->keep_steps, MTPROF_SESSION_STEPS_MAX - 1);
    }
    return MTPROF_OK;
}

static void fill_defaults(mtprof_flight_config *config)
{
    uint64_t keep = config->keep_bytes;
    if (config->buffer_bytes == 0) {
        config->buffer_bytes = keep != 0 ? keep + keep / 4 : (uint64_t)BUFFER_DEFAULT_MIB << 20;
    }
    if (config->dumps_max == 0) {
        config->dumps_max = DUMPS_DEFAULT;
    }
    if (config->dumps_bytes_max == 0) {
        config->dumps_bytes_max = (uint64_t)DUMPS_BYTES_DEFAULT_GIB << 30;
    }
    if (config->steps_bytes_max == 0) {
        config->steps_bytes_max = (uint64_t)STEPS_BYTES_DEFAULT_GIB << 30;
    }
    if (config->dumps_distance_ns == 0) {
        config->dumps_distance_ns = DISTANCE_DEFAULT_S * (uint64_t)1000000000;
    }
}

static mtprof_status start_session(mtprof_flight *flight)
{
    char path[MTPROF_FLIGHT_PATH_BYTES];
    const mtprof_flight_config *config = &flight->config;
    mtprof__flight_path(flight, "ring.mtt", path);
    mtprof_config session = {
        .struct_size = sizeof session,
        .policy = MTPROF_POLICY_RING,
        .path = (config->flags & MTPROF_FLIGHT_IN_MEMORY) != 0 ? NULL : path,
        .buffer_bytes = config->buffer_bytes,
        .wants = config->wants,
        .on_warning = config->on_warning,
        .user = config->user,
        /* A little more than is dumped: chunks are reused in whole. */
        .ring_ns = config->keep_ns + config->keep_ns / 4,
        .overhead_ppm = config->overhead_ppm,
        .counters_hz = config->counters_hz,
        .ring_steps = config->keep_steps != 0 ? config->keep_steps + 1 : 0,
    };
    mtprof_session *started = NULL;
    MT_TRY(mtprof_session_start(&session, &started));
    mtprof_status status = mtprof_session_step(started, 0, 0);
    if (status != MTPROF_OK) {
        (void)mtprof_session_close(started);
        return status;
    }
    pthread_mutex_lock(&flight->lock);
    flight->session = started;
    pthread_mutex_unlock(&flight->lock);
    return MTPROF_OK;
}

static mtprof_flight *make_flight(const mtprof_flight_config *config)
{
    mtprof_flight *flight = mtb_calloc(1, sizeof *flight);
    if (flight == NULL) {
        return NULL;
    }
    flight->references = 1;
    flight->busy = true; /* until it has been started */
    flight->pid = getpid();
    flight->config = *config;
    (void)snprintf(flight->folder, sizeof flight->folder, "%s", config->folder);
    if (config->name != NULL) {
        (void)snprintf(flight->name, sizeof flight->name, "%s", config->name);
    } else {
        (void)snprintf(flight->name, sizeof flight->name, "pid%ld", (long)getpid());
    }
    flight->config.folder = flight->folder;
    flight->config.name = flight->name;
    fill_defaults(&flight->config);
    pthread_mutex_init(&flight->lock, NULL);
    pthread_cond_init(&flight->idle, NULL);
    return flight;
}

static void free_flight(mtprof_flight *flight)
{
    if (flight->pid == getpid()) { /* elsewhere they may look held (FL5) */
        pthread_cond_destroy(&flight->idle);
        pthread_mutex_destroy(&flight->lock);
    }
    mtb_free(flight);
}

/* Makes it the current one, or finds that there is one (FL4). */
static bool claim_current(mtprof_flight *flight)
{
    lock_current();
    bool claimed = current == NULL || current->pid != getpid();
    if (claimed) {
        current = flight;
    }
    unlock_current();
    return claimed;
}

static void give_up_current(const mtprof_flight *flight)
{
    lock_current();
    current = current == flight ? NULL : current;
    unlock_current();
}

/* The lock is held. */
static void disown_session(mtprof_flight *flight)
{
    flight->busy = false;
    pthread_cond_broadcast(&flight->idle);
}

/* What watches and what summarises. It is current already: another thread may use it. */
static mtprof_status start_threads(mtprof_flight *flight)
{
    mtprof__triggers *triggers = NULL;
    mtprof__summaries *summaries = NULL;
    MT_TRY(mtprof__summaries_start(flight, &summaries));
    pthread_mutex_lock(&flight->lock);
    flight->summaries = summaries;
    pthread_mutex_unlock(&flight->lock);
    MT_TRY(mtprof__triggers_start(flight, &flight->config, &triggers));
    pthread_mutex_lock(&flight->lock);
    flight->triggers = triggers;
    pthread_mutex_unlock(&flight->lock);
    return MTPROF_OK;
}

mtprof_status mtprof_flight_start(const mtprof_flight_config *config, mtprof_flight **out)
{
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: no place for the flight recorder");
    }
    *out = NULL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mtprof_flight_config checked = {0};
    MT_TRY(check_config(config, &checked));
    pthread_once(&once, prepare_process);
    mtprof_flight *flight = make_flight(&checked);
    if (flight == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "flight_start: no memory");
    }
    if (!claim_current(flight)) {
        free_flight(flight);
        return mtb_fail(MTPROF_EBUSY, "flight_start: a flight recorder is already active");
    }
    mtprof_status status = mtprof__flight_make_folder(flight->folder);
    if (status == MTPROF_OK) {
        status = start_session(flight);
    }
    pthread_mutex_lock(&flight->lock);
    disown_session(flight);
    pthread_mutex_unlock(&flight->lock);
    if (status != MTPROF_OK) {
        give_up_current(flight);
        mtprof_flight_release(flight); /* another thread may have one by now */
        return status;
    }
    status = start_threads(flight);
    if (status != MTPROF_OK) {
        flight->config.dump_at_stop = 0;
        (void)mtprof_flight_stop(flight);
        mtprof_flight_release(flight);
        return status;
    }
    *out = flight;
    return MTPROF_OK;
}

/* ---- while it records ---- */

mtprof_status mtprof__flight_check_handle(const char *call, const mtprof_flight *flight)
{
    if (flight == NULL) {
        return mtb_fail(MTPROF_EINVAL, "%s: the flight recorder is NULL", call);
    }
    if (flight->pid != getpid()) {
        return mtb_fail(MTPROF_ESTATE,
                        "%s: the flight recorder belongs to process %ld, this is its child", call,
                        (long)flight->pid);
    }
    return MTPROF_OK;
}

static mtprof_status has_stopped(const char *call)
{
    return mtb_fail(MTPROF_ESTATE, "%s: the flight recorder has stopped", call);
}

mtprof_status mtprof_flight_step(mtprof_flight *flight)
{
    MT_TRY(mtprof__flight_check_handle("flight_step", flight));
    mtprof_status status = MTPROF_OK;
    pthread_mutex_lock(&flight->lock);
    bool stopped = flight->session == NULL;
    if (!stopped) {
        /* With the lock: a stop on another thread would close the session. */
        status = mtprof_session_step(flight->session, ++flight->counts.steps, 0);
        mtprof__triggers_step(flight->triggers, flight->counts.steps - 1);
        mtprof__summaries_step(flight->summaries);
    }
    pthread_mutex_unlock(&flight->lock);
    return stopped ? has_stopped("flight_step") : status;
}

/* FL2. The session, or NULL: stopped. The lock is held, before and after. */
static mtprof_session *own_session(mtprof_flight *flight)
{
    while (flight->busy) {
        pthread_cond_wait(&flight->idle, &flight->lock);
    }
    flight->busy = flight->session != NULL;
    return flight->session;
}

/* Owns the session for a dump, if one is allowed now. */
static mtprof_status begin_dump(mtprof_flight *flight, mtprof_session **session,
                                mtprof_flight_dump_info *info)
{
    uint64_t distance = flight->config.dumps_distance_ns;
    pthread_mutex_lock(&flight->lock);
    *session = own_session(flight);
    uint64_t now = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    uint64_t last = flight->last_dump_ns;
    bool early = *session != NULL && last != 0 && now - last < distance;
    if (early) {
        flight->counts.refused++;
        disown_session(flight);
    }
    info->sequence = (uint32_t)flight->counts.dumps + 1;
    info->step = flight->counts.steps;
    pthread_mutex_unlock(&flight->lock);
    if (early) {
        return mtb_fail(MTPROF_EBUSY,
                        "flight_dump: the last dump was %.3f s ago, the least distance is %.3f s",
                        (double)(now - last) / 1e9, (double)distance / 1e9);
    }
    return *session != NULL ? MTPROF_OK : has_stopped("flight_dump");
}

static mtprof_status write_dump(mtprof_flight *flight, mtprof_session *session,
                                const mtprof__dump_request *request, mtprof_flight_dump_info *info)
{
    const mtprof_flight_config *config = &flight->config;
    mtprof_dump_options options = {
        .struct_size = sizeof options,
        .last_steps = (uint32_t)config->keep_steps,
        .last_ns = config->keep_ns,
        .last_bytes = config->keep_bytes,
        .reason = info->reason,
        .trigger = request->trigger,
        .stacks = request->stacks,
    };
    mtprof_dump_info dump = {.struct_size = sizeof dump};
    mtprof__flight_dump_path(flight, info->sequence, info->reason, info->path);
    MT_TRY(mtprof_session_dump(session, info->path, &options, &dump));
    info->from_ns = dump.from_ns;
    info->to_ns = dump.to_ns;
    info->bytes = dump.bytes;
    info->chunks_missed = dump.chunks_missed;
    info->took_ns = dump.took_ns;
    return MTPROF_OK;
}

mtprof_status mtprof_flight_dump(mtprof_flight *flight, const char *reason,
                                 mtprof_flight_dump_info *info)
{
    return mtprof__flight_dump(flight, &(mtprof__dump_request){.reason = reason}, info);
}

mtprof_status mtprof__flight_dump(mtprof_flight *flight, const mtprof__dump_request *request,
                                  mtprof_flight_dump_info *info)
{
    MT_TRY(mtprof__flight_check_handle("flight_dump", flight));
    if (info != NULL && info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "flight_dump: struct_size of the info is 0");
    }
    mtprof_flight_dump_info done = {.struct_size = sizeof done,
                                    .reason = request->reason != NULL ? request->reason : "asked"};
    mtprof_session *session = NULL;
    MT_TRY(begin_dump(flight, &session, &done));
    mtprof_status status = write_dump(flight, session, request, &done);
    uint64_t deleted = status == MTPROF_OK ? mtprof__flight_apply_budget(flight, done.path) : 0;
    pthread_mutex_lock(&flight->lock);
    flight->counts.dumps += status == MTPROF_OK;
    flight->counts.failed += status != MTPROF_OK;
    flight->counts.deleted += deleted;
    flight->counts.chunks_missed += done.chunks_missed;
    if (status == MTPROF_OK) {
        flight->last_dump_ns = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    }
    disown_session(flight);
    pthread_mutex_unlock(&flight->lock);
    if (status == MTPROF_OK && flight->config.on_dump != NULL) {
        flight->config.on_dump(flight->config.user, &done);
    }
    if (status == MTPROF_OK && info != NULL) {
        mtb_write_struct(info, &done);
    }
    return status;
}

mtprof_status mtprof_flight_get_counts(mtprof_flight *flight, mtprof_flight_counts *counts)
{
    MT_TRY(mtprof__flight_check_handle("flight_counts", flight));
    if (counts == NULL || counts->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "flight_counts: %s",
                        counts == NULL ? "counts is NULL" : "struct_size is 0");
    }
    pthread_mutex_lock(&flight->lock);
    mtprof_flight_counts now = flight->counts;
    pthread_mutex_unlock(&flight->lock);
    mtb_write_struct(counts, &now);
    return MTPROF_OK;
}

bool mtprof__flight_progress(mtprof_flight *flight, uint64_t *steps, uint64_t *events)
{
    mtprof_health health = {.struct_size = sizeof health};
    pthread_mutex_lock(&flight->lock);
    bool records = flight->session != NULL;
    if (records) {
        (void)mtprof_session_get_health(flight->session, &health);
    }
    *steps = flight->counts.steps;
    pthread_mutex_unlock(&flight->lock);
    *events = health.begins + health.others + health.activities;
    return records;
}

void mtprof__flight_warn(const mtprof_flight *flight, mtprof_status status)
{
    if (flight->config.on_warning != NULL) {
        flight->config.on_warning(flight->config.user, status, mtb_last_failure()->message);
    }
}

mtprof_session *mtprof_flight_session(mtprof_flight *flight)
{
    if (flight == NULL || flight->pid != getpid()) {
        return NULL;
    }
    pthread_mutex_lock(&flight->lock);
    mtprof_session *session = flight->session;
    pthread_mutex_unlock(&flight->lock);
    return session;
}

/* ---- the end ---- */

static mtprof__summaries *take_summaries(mtprof_flight *flight)
{
    pthread_mutex_lock(&flight->lock);
    mtprof__summaries *summaries = flight->summaries;
    flight->summaries = NULL;
    pthread_mutex_unlock(&flight->lock);
    return summaries;
}

mtprof_status mtprof_flight_stop(mtprof_flight *flight)
{
    MT_TRY(mtprof__flight_check_handle("flight_stop", flight));
    pthread_mutex_lock(&flight->lock);
    mtprof__triggers *triggers = flight->triggers;
    flight->triggers = NULL;
    bool dumps = flight->config.dump_at_stop != 0 && flight->session != NULL;
    flight->config.dump_at_stop = 0; /* once */
    pthread_mutex_unlock(&flight->lock);
    mtprof__triggers_stop(triggers);
    if (dumps) {
        mtprof_status dumped = mtprof_flight_trigger(flight, MTPROF_TRIGGER_EXIT, NULL, NULL);
        if (dumped != MTPROF_OK && dumped != MTPROF_EBUSY && dumped != MTPROF_ESTATE) {
            mtprof__flight_warn(flight, dumped);
        }
    }
    mtprof__summaries_stop(take_summaries(flight));
    pthread_mutex_lock(&flight->lock);
    mtprof_session *session = own_session(flight);
    flight->session = NULL; /* FL3 */
    pthread_mutex_unlock(&flight->lock);
    if (session == NULL) {
        return MTPROF_OK;
    }
    mtprof_status status = mtprof_session_close(session);
    give_up_current(flight);
    pthread_mutex_lock(&flight->lock);
    disown_session(flight);
    pthread_mutex_unlock(&flight->lock);
    return status;
}

mtprof_flight *mtprof_flight_current(void)
{
    lock_current();
    mtprof_flight *flight = current;
    if (flight != NULL && flight->pid == getpid()) {
        __atomic_add_fetch(&flight->references, 1, __ATOMIC_RELAXED);
    } else {
        flight = NULL;
    }
    unlock_current();
    return flight;
}

void mtprof_flight_release(mtprof_flight *flight)
{
    if (flight == NULL) {
        return;
    }
    /* With the lock: mtprof_flight_current() must not find one that is about to be freed. */
    lock_current();
    bool last = __atomic_sub_fetch(&flight->references, 1, __ATOMIC_ACQ_REL) == 0;
    if (last && current == flight) {
        current = NULL;
    }
    unlock_current();
    if (!last) {
        return;
    }
    if (flight->pid == getpid()) {
        (void)mtprof_flight_stop(flight);
    }
    free_flight(flight);
}
