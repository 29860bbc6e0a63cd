/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorder that records nothing: the session functions a profile calls, in memory, with a log of
 * the calls and a count of the rules that were broken. Link fake_session.c into a test, and the
 * library's own session is left out.
 *
 * The log is one string, a call a word:
 *
 *     start open:2:0x7 meta:key=value step:2:3 begin:ProfilerStep#2 end close clear stop shut
 *
 * open:STEP:WANTS, step:NUMBER:ACTION, close (kept) or drop (not kept), shut = the session is
 * freed.
 */
#ifndef TESTS_SUPPORT_FAKE_SESSION_H
#define TESTS_SUPPORT_FAKE_SESSION_H

#include <mtprof/profile.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stdint.h>

enum fake_call {
    FAKE_START,
    FAKE_STOP,
    FAKE_OPEN,
    FAKE_CLOSE,
    FAKE_PAUSE,
    FAKE_RESUME,
    FAKE_STEP,
    FAKE_CLEAR,
    FAKE_METADATA,
    FAKE_SHUT,
    FAKE_CALLS
};

/* Forgets everything; sessions that are still open are not freed. */
void fake_reset(void);

/* What the log holds; it ends with a zero byte. Not for use while other threads call. */
const char *fake_log(void);
void fake_log_clear(void);
/* Adds a word of the test's own. */
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Leaves metadata and step notes and annotations out of the log, to see the windows alone. */
void fake_log_windows_only(bool on);
/* Stops logging: for loops that are long. */
void fake_log_off(bool off);

/* The next call of a kind fails; MTPROF_OK switches it off. */
void fake_fail(enum fake_call call, mtprof_status status);

/* How many calls broke a rule of session.h: open twice, close twice, use after close … */
uint64_t fake_violations(void);
uint64_t fake_count(enum fake_call call);
/* Sessions that were started and not closed. */
uint64_t fake_alive(void);
bool fake_is_recording(void);

/* The answer of mtprof_has_device_source(). */
void fake_set_device(bool available);

/* ---- a profile over it, with callbacks that log ---------------------------------------------- */

/*
 * Words that the callbacks add: prep (a trace id was asked for), ready (on_trace_ready), warn (all
 * warnings but the advice about acc_events, which comes once per process and is counted apart).
 */
typedef struct fake_profile {
    mtprof_profile *profile;
    mtprof_profile_config config; /* to be changed between init and make */
    /* A letter a step: n w r S; '?' an action that does not exist, '!' the schedule fails with 7.
     * The last one is repeated. NULL: no schedule. */
    const char *script;
    int ready_result, trace_id_result;           /* what the callbacks return */
    void (*in_ready)(struct fake_profile *fake); /* what on_trace_ready does, may be NULL */
    void (*in_schedule)(struct fake_profile *fake);
    void (*in_trace_id)(struct fake_profile *fake);
    void (*in_warning)(struct fake_profile *fake);
    int n_ready, n_warnings, n_advice;
    mtprof_status warning_status;
    char warning[512]; /* the latest */
    int64_t ready_step;
    int ready_action;
} fake_profile;

/* CPU, no flags, all callbacks set; then fake_profile_make() calls mtprof_profile_new(). */
void fake_profile_init(fake_profile *fake, const char *script);
mtprof_status fake_profile_make(fake_profile *fake);

#endif /* TESTS_SUPPORT_FAKE_SESSION_H */
