/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder of fake_session.h.
 */
#include "support/fake_session.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <mtprof/session.h>
#include <mtprof/source.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_BYTES = 1 << 18
};

struct mtprof_session {
    bool stopped, open, paused;
    pid_t pid;
    uint64_t n_open;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[LOG_BYTES];
static size_t log_used;
static bool log_off, windows_only;
static mtprof_session *active;
static uint64_t violations, alive, counts[FAKE_CALLS];
static mtprof_status failures[FAKE_CALLS];
static bool device;
static mtprof_token next_token = 1;

uint32_t mtprof_i_gate;

/* Under the lock. */
static void log_add(const char *format, va_list args)
{
    if (log_off) {
        return;
    }
    if (log_used != 0 && log_used < LOG_BYTES - 1) {
        log_text[log_used++] = ' ';
    }
    int n = vsnprintf(log_text + log_used, LOG_BYTES - log_used, format, args);
    log_used += n > 0 ? (size_t)n : 0;
    if (log_used >= LOG_BYTES) {
        log_used = LOG_BYTES - 1;
    }
}

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_add(format, args);
    va_end(args);
}

void fake_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    log_add(format, args);
    pthread_mutex_unlock(&lock);
    va_end(args);
}

void fake_reset(void)
{
    pthread_mutex_lock(&lock);
    log_used = 0;
    log_text[0] = '\0';
    log_off = windows_only = device = false;
    active = NULL;
    violations = alive = 0;
    memset(counts, 0, sizeof counts);
    memset(failures, 0, sizeof failures);
    mtprof_i_gate = 0;
    pthread_mutex_unlock(&lock);
}

const char *fake_log(void)
{
    return log_text;
}

void fake_log_clear(void)
{
    pthread_mutex_lock(&lock);
    log_used = 0;
    log_text[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void fake_log_windows_only(bool on)
{
    windows_only = on;
}

void fake_log_off(bool off)
{
    log_off = off;
}

void fake_fail(enum fake_call call, mtprof_status status)
{
    failures[call] = status;
}

uint64_t fake_violations(void)
{
    return violations;
}

uint64_t fake_count(enum fake_call call)
{
    return counts[call];
}

uint64_t fake_alive(void)
{
    return alive;
}

bool fake_is_recording(void)
{
    pthread_mutex_lock(&lock);
    bool recording = active != NULL && active->open && !active->paused;
    pthread_mutex_unlock(&lock);
    return recording;
}

void fake_set_device(bool available)
{
    device = available;
}

bool mtprof_has_device_source(void)
{
    return device;
}

/* Enters a call: takes the lock, counts, and gives the failure that was asked for. */
static int enter(enum fake_call call, const mtprof_session *session)
{
    pthread_mutex_lock(&lock);
    counts[call]++;
    if (failures[call] != MTPROF_OK) {
        mtprof_status status = failures[call];
        failures[call] = MTPROF_OK;
        return mtb_fail(status, "fake failure %d", (int)call);
    }
    if (session != NULL && session->pid != getpid()) {
        return mtb_fail(MTPROF_ESTATE, "session of the parent process");
    }
    return MTPROF_OK;
}

static int leave(int status)
{
    pthread_mutex_unlock(&lock);
    return status;
}

/* A rule of session.h that a profile should never break. */
static int broken(const char *what)
{
    violations++;
    add("BROKEN(%s)", what);
    return mtb_fail(MTPROF_ESTATE, "%s", what);
}

mtprof_status mtprof_session_start(const mtprof_config *config, mtprof_session **out)
{
    *out = NULL;
    int status = enter(FAKE_START, NULL);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (active != NULL && active->pid == getpid()) {
        return leave(mtb_fail(MTPROF_EBUSY, "start: another session is active"));
    }
    mtprof_session *session = mtb_calloc(1, sizeof *session);
    if (session == NULL) {
        return leave(mtb_fail(MTPROF_ENOMEM, "start: no memory"));
    }
    if (config->paused != 1 || config->struct_size != sizeof *config) {
        broken("config");
    }
    session->pid = getpid();
    active = session;
    alive++;
    add(config->path != NULL ? "start:%s" : "start%s", config->path != NULL ? config->path : "");
    *out = session;
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_stop(mtprof_session *session)
{
    int status = enter(FAKE_STOP, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped || session != active || session->open) {
        return leave(broken("stop"));
    }
    session->stopped = true;
    active = NULL;
    mtprof_i_gate = 0;
    add("stop");
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_window_open(mtprof_session *session, uint64_t wants, uint32_t step)
{
    int status = enter(FAKE_OPEN, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped || session->open) {
        return leave(broken("open"));
    }
    session->open = true;
    session->paused = false;
    session->n_open++;
    add("open:%u:0x%llx", step, (unsigned long long)wants);
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_window_close(mtprof_session *session, bool keep)
{
    int status = enter(FAKE_CLOSE, session);
    if (status != MTPROF_OK) {
        session->open = false;
        return leave(status);
    }
    if (session->stopped || !session->open) {
        return leave(broken("close"));
    }
    session->open = false;
    add(keep ? "close" : "drop");
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_pause(mtprof_session *session)
{
    int status = enter(FAKE_PAUSE, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped || !session->open) {
        return leave(broken("pause"));
    }
    session->paused = true;
    add("pause");
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_resume(mtprof_session *session, uint64_t wants)
{
    int status = enter(FAKE_RESUME, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped || !session->open) {
        return leave(broken("resume"));
    }
    session->paused = false;
    add("resume:0x%llx", (unsigned long long)wants);
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_step(mtprof_session *session, uint64_t step, uint32_t action)
{
    int status = enter(FAKE_STEP, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped) {
        return leave(broken("step"));
    }
    if (!windows_only) {
        add("step:%llu:%u", (unsigned long long)step, action);
    }
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_clear(mtprof_session *session)
{
    int status = enter(FAKE_CLEAR, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (session->stopped || session->open) {
        return leave(broken("clear"));
    }
    add("clear");
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_add_metadata(mtprof_session *session, const char *key,
                                          size_t key_length, const char *value, size_t value_length,
                                          bool is_json)
{
    int status = enter(FAKE_METADATA, session);
    if (status != MTPROF_OK) {
        return leave(status);
    }
    if (!windows_only) {
        add(is_json ? "json:%.*s=%.*s" : "meta:%.*s=%.*s", (int)key_length, key, (int)value_length,
            value);
    }
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_get_health(mtprof_session *session, mtprof_health *health)
{
    pthread_mutex_lock(&lock);
    health->begins = session->n_open;
    return leave(MTPROF_OK);
}

mtprof_status mtprof_session_close(mtprof_session *session)
{
    int status = enter(FAKE_SHUT, NULL);
    if (session == NULL) {
        return leave(status);
    }
    if (session->pid == getpid() && !session->stopped) {
        broken("shut");
    }
    alive--;
    add("shut");
    mtb_free(session);
    return leave(status);
}

mtprof_token mtprof_begin_named(const char *name, size_t length, uint32_t begin_flags)
{
    pthread_mutex_lock(&lock);
    if (begin_flags != MTPROF_KIND_STEP) {
        broken("begin");
    }
    if (!windows_only) {
        add("begin:%.*s", (int)length, name);
    }
    mtprof_token token = next_token++;
    pthread_mutex_unlock(&lock);
    return token;
}

void mtprof_i_end(mtprof_token token)
{
    pthread_mutex_lock(&lock);
    if (token == 0 || token >= next_token) {
        broken("end");
    }
    if (!windows_only) {
        add("end");
    }
    pthread_mutex_unlock(&lock);
}

/* ---- a profile over it ----------------------------------------------------------------------- */

static int script_schedule(void *user, int64_t step, enum mtprof_action *action)
{
    fake_profile *fake = user;
    size_t length = strlen(fake->script);
    char letter = fake->script[(size_t)step < length ? (size_t)step : length - 1];
    if (fake->in_schedule != NULL && fake->profile != NULL) {
        fake->in_schedule(fake);
    }
    switch (letter) {
    case 'n': *action = MTPROF_ACTION_NONE; return 0;
    case 'w': *action = MTPROF_ACTION_WARMUP; return 0;
    case 'r': *action = MTPROF_ACTION_RECORD; return 0;
    case 'S': *action = MTPROF_ACTION_RECORD_AND_SAVE; return 0;
    case '?': *action = (enum mtprof_action)77; return 0;
    default: return 7;
    }
}

static int ready(void *user, mtprof_profile *profile)
{
    fake_profile *fake = user;
    __atomic_add_fetch(&fake->n_ready, 1, __ATOMIC_RELAXED);
    fake->ready_step = mtprof_profile_step_num(profile);
    fake->ready_action = (int)mtprof_profile_current_action(profile);
    fake_note("ready");
    if (fake->in_ready != NULL) {
        fake->in_ready(fake);
    }
    return fake->ready_result;
}

static int trace_id(void *user, char *text, size_t size)
{
    fake_profile *fake = user;
    fake_note("prep");
    snprintf(text, size, "id");
    if (fake->in_trace_id != NULL) {
        fake->in_trace_id(fake);
    }
    return fake->trace_id_result;
}

static void warning(void *user, mtprof_status status, const char *message)
{
    fake_profile *fake = user;
    if (strstr(message, "acc_events=True") != NULL) {
        fake->n_advice++;
        return;
    }
    fake->n_warnings++;
    fake->warning_status = status;
    snprintf(fake->warning, sizeof fake->warning, "%s", message);
    fake_note("warn");
    if (fake->in_warning != NULL) {
        fake->in_warning(fake);
    }
}

void fake_profile_init(fake_profile *fake, const char *script)
{
    memset(fake, 0, sizeof *fake);
    fake->script = script;
    fake->config = (mtprof_profile_config){
        .struct_size = sizeof fake->config,
        .activities = MTPROF_WATCH_CPU,
        .schedule_callback = script != NULL ? script_schedule : NULL,
        .on_trace_ready = ready,
        .trace_id = trace_id,
        .on_warning = warning,
        .user = fake,
    };
}

mtprof_status fake_profile_make(fake_profile *fake)
{
    return mtprof_profile_new(&fake->config, &fake->profile);
}
