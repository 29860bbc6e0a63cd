/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes the flight recorder dump by itself, see triggers.h.
 */
#include "mtprof/flight/triggers.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/flight/flight_impl.h"
#include "mtprof/flight/slow_step.h"
#include "mtprof/flight/thread_stacks.h"
#include "mtprof/flight/trigger_signal.h"

#include <mtprof/output.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)

enum {
    REASON_BYTES = 160,
    LOOKS = 8, /* a hang is noticed within an eighth of its time */
    LOOK_LEAST_NS = 1000 * 1000,
    ANSWER_NS = 1000 * 1000 * 1000 /* for stacks of threads that do not answer */
};

struct mtprof__triggers {
    mtprof_flight *flight; /* not touched once `detached` is set (TRG4) */
    pthread_t thread;
    bool leave;    /* atomic; partner: watch() */
    bool detached; /* by a stop on the thread itself, which then frees this */
    bool has_signal, has_stacks;
    uint64_t hang_ns, look_ns;
    bool (*write_stacks)(void *user, int fd, uint64_t wait_ns);
    void *user;

    /* Of the thread that steps. */
    mtprof__slow_step slow;
    bool finds_slow;
    uint64_t step_ns; /* when the running step began; 0: none has */

    /* A slow step on its way to the watching thread: written while 0, read while 1. */
    uint32_t slow_waits; /* atomic */
    char slow_reason[REASON_BYTES];
};

const char *mtprof_flight_trigger_name(uint32_t kind)
{
    static const char *const names[] = {"asked",     "signal", "slow step", "hang",
                                        "exception", "memory", "exit",      "elsewhere"};
    static_assert(MT_COUNT(names) == MTPROF_TRIGGER_COUNT, "a name for each");
    return kind < MTPROF_TRIGGER_COUNT ? names[kind] : "unknown";
}

/* ---- a trigger ------------------------------------------------------------------------------- */

/* What the language says of its threads, as it wrote it to a file of the kernel's. */
static void add_language_stacks(mtprof__stacks_text *text, const mtprof__triggers *t)
{
    int fd = memfd_create("mtprof stacks", MFD_CLOEXEC);
    if (fd < 0) {
        return;
    }
    bool written = t->write_stacks(t->user, fd, ANSWER_NS);
    char part[256];
    ssize_t got;
    off_t at = 0;
    mtprof__stacks_put(text, "%s", text->used > 0 ? "\n" : "");
    while ((got = pread(fd, part, sizeof part, at)) > 0 &&
           mtprof__stacks_put(text, "%.*s", (int)got, part)) {
        at += got;
    }
    close(fd);
    if (!written) {
        mtprof__stacks_put(text, "no stacks of the program's language\n");
    }
}

/* Dumps; the budget may refuse it. The callback hears of what was not refused. */
static mtprof_status fire(mtprof_flight *flight, uint32_t kind, const char *reason,
                          const char *stacks, mtprof_flight_dump_info *info)
{
    void (*on_trigger)(void *, const mtprof_flight_trigger_info *) = flight->config.on_trigger;
    void *user = flight->config.user;
    mtprof_flight_dump_info done = {.struct_size = sizeof done};
    mtprof_status status = mtprof__flight_dump(
        flight,
        &(mtprof__dump_request){
            .reason = reason, .trigger = mtprof_flight_trigger_name(kind), .stacks = stacks},
        info != NULL ? info : &done);
    if (on_trigger != NULL && status != MTPROF_EBUSY && status != MTPROF_ESTATE &&
        kind != MTPROF_TRIGGER_ELSEWHERE) {
        mtprof_flight_trigger_info trigger = {
            .struct_size = sizeof trigger, .kind = kind, .reason = reason, .status = status};
        on_trigger(user, &trigger); /* may stop and release the recorder */
    }
    return status;
}

mtprof_status mtprof_flight_trigger(mtprof_flight *flight, uint32_t kind, const char *reason,
                                    mtprof_flight_dump_info *info)
{
    MT_TRY(mtprof__flight_check_handle("flight_trigger", flight));
    if (kind >= MTPROF_TRIGGER_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "flight_trigger: kind is %u, expected less than %d", kind,
                        MTPROF_TRIGGER_COUNT);
    }
    return fire(flight, kind, reason != NULL ? reason : mtprof_flight_trigger_name(kind), NULL,
                info);
}

/* On the watching thread: with stacks where there is a handler for them. */
static void fire_here(mtprof__triggers *t, uint32_t kind, const char *reason, bool with_stacks)
{
    mtprof__stacks_text text = {0};
    if (with_stacks && t->has_stacks) {
        mtprof__stacks_collect(&text, ANSWER_NS);
    }
    if (with_stacks && t->write_stacks != NULL) {
        add_language_stacks(&text, t);
    }
    mtprof_status status = fire(t->flight, kind, reason, text.bytes, NULL);
    if (status != MTPROF_OK && status != MTPROF_EBUSY && status != MTPROF_ESTATE && !t->detached) {
        mtprof__flight_warn(t->flight, status);
    }
    mtprof__stacks_fini(&text);
}

/* ---- the watching thread --------------------------------------------------------------------- */

/* What a hang is about: steps, once there was one; events before. */
typedef struct progress {
    uint64_t steps, events;
    uint64_t still_ns; /* how long nothing has changed, as seen from here (TRG2) */
    bool told;         /* TRG3 */
} progress;

static void look_for_hang(mtprof__triggers *t, progress *p, uint64_t passed_ns)
{
    uint64_t steps, events;
    if (!mtprof__flight_progress(t->flight, &steps, &events)) {
        return;
    }
    bool moved = steps != p->steps || (steps == 0 && events != p->events);
    p->steps = steps;
    p->events = events;
    if (moved) {
        p->still_ns = 0;
        p->told = false;
        return;
    }
    p->still_ns += passed_ns < 2 * t->look_ns ? passed_ns : 2 * t->look_ns;
    if (p->still_ns < t->hang_ns || p->told) {
        return;
    }
    p->told = true;
    char reason[REASON_BYTES];
    if (steps > 0) {
        (void)snprintf(reason, sizeof reason, "hang: step %" PRIu64 " has run for %.3g s", steps,
                       (double)p->still_ns / 1e9);
    } else {
        (void)snprintf(reason, sizeof reason, "hang: no event for %.3g s",
                       (double)p->still_ns / 1e9);
    }
    fire_here(t, MTPROF_TRIGGER_HANG, reason, true);
}

static void wait_for_work(const mtprof__triggers *t)
{
    if (t->hang_ns == 0) {
        (void)sem_wait(&mtprof__trigger_wake);
        return;
    }
    uint64_t until = mtprof__flight_clock_ns(CLOCK_MONOTONIC) + t->look_ns;
    struct timespec end = {.tv_sec = (time_t)(until / SECOND_NS),
                           .tv_nsec = (long)(until % SECOND_NS)};
    (void)sem_clockwait(&mtprof__trigger_wake, CLOCK_MONOTONIC, &end);
}

/* What was asked for. After each callback the recorder may be gone (TRG4). */
static void serve(mtprof__triggers *t)
{
    if (__atomic_load_n(&t->slow_waits, __ATOMIC_ACQUIRE) != 0) {
        fire_here(t, MTPROF_TRIGGER_SLOW_STEP, t->slow_reason, false);
        __atomic_store_n(&t->slow_waits, 0, __ATOMIC_RELEASE);
    }
    if (!t->detached && t->has_signal && mtprof__trigger_signals() != 0) {
        fire_here(t, MTPROF_TRIGGER_SIGNAL, "signal", true);
        if (!t->detached) {
            mtprof__trigger_end_program();
        }
    }
}

static void *watch(void *argument)
{
    mtprof__triggers *t = argument;
    progress p = {0};
    uint64_t looked = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    while (!__atomic_load_n(&t->leave, __ATOMIC_ACQUIRE)) {
        wait_for_work(t);
        uint64_t now = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
        serve(t); /* also what came just before a stop */
        if (!__atomic_load_n(&t->leave, __ATOMIC_ACQUIRE) && t->hang_ns != 0) {
            look_for_hang(t, &p, now - looked);
        }
        looked = now;
    }
    if (t->detached) { /* written by this thread, in a callback */
        mtb_free(t);
    }
    return NULL;
}

/* ---- start, steps, stop ---------------------------------------------------------------------- */

mtprof_status mtprof__triggers_check(const mtprof_flight_config *c)
{
    if (!(c->slow_step == 0 || (c->slow_step >= 1.1 && c->slow_step <= 1e6))) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: slow_step is %g, it must be 0 or 1.1 to 1e6",
                        c->slow_step);
    }
    if (c->hang_ns != 0 && c->hang_ns < LOOK_LEAST_NS) {
        return mtb_fail(MTPROF_EINVAL,
                        "flight_start: hang_ns is %" PRIu64 ", at least %d is needed", c->hang_ns,
                        LOOK_LEAST_NS);
    }
    return MTPROF_OK;
}

static mtprof_status take_signals(mtprof__triggers *t, const mtprof_flight_config *c)
{
    if (c->hang_ns != 0 && c->stacks_signal >= 0) {
        MT_TRY(mtprof__stacks_take_signal(c->stacks_signal));
        t->has_stacks = true;
    }
    if (c->dump_signal != 0) {
        MT_TRY(mtprof__trigger_take_signal(c->dump_signal));
        t->has_signal = true;
    }
    return MTPROF_OK;
}

static void give_signals(const mtprof__triggers *t)
{
    if (t->has_signal) {
        mtprof__trigger_give_signal();
    }
    if (t->has_stacks) {
        mtprof__stacks_give_signal();
    }
}

static mtprof_status start_thread(mtprof__triggers *t)
{
    sigset_t all, mine;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mine); /* no signal of the user's is handled here */
    int error = pthread_create(&t->thread, NULL, watch, t);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (error != 0) {
        return mtb_fail_errno(MTPROF_ENOMEM, error, "flight_start: cannot start a thread");
    }
    pthread_setname_np(t->thread, "mtprof watch");
    return MTPROF_OK;
}

static void prepare_process(void)
{
    sem_init(&mtprof__trigger_wake, 0, 0);
}

mtprof_status mtprof__triggers_start(mtprof_flight *flight, const mtprof_flight_config *config,
                                     mtprof__triggers **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    if (config->dump_signal == 0 && config->slow_step == 0 && config->hang_ns == 0) { /* TRG1 */
        return MTPROF_OK;
    }
    mtprof__triggers *t = mtb_calloc(1, sizeof *t);
    if (t == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "flight_start: no memory");
    }
    pthread_once(&once, prepare_process);
    t->flight = flight;
    t->write_stacks = config->write_stacks;
    t->user = config->user;
    t->hang_ns = config->hang_ns;
    t->look_ns = config->hang_ns / LOOKS < SECOND_NS ? config->hang_ns / LOOKS : SECOND_NS;
    t->look_ns = t->look_ns > LOOK_LEAST_NS ? t->look_ns : LOOK_LEAST_NS;
    t->finds_slow = config->slow_step != 0;
    mtprof__slow_step_init(&t->slow, config->slow_step);
    mtprof_status status = take_signals(t, config);
    if (status == MTPROF_OK) {
        status = start_thread(t);
    }
    if (status != MTPROF_OK) {
        give_signals(t);
        mtb_free(t);
        return status;
    }
    *out = t;
    return MTPROF_OK;
}

void mtprof__triggers_step(mtprof__triggers *t, uint64_t step)
{
    if (t == NULL || !t->finds_slow) {
        return;
    }
    uint64_t now = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    uint64_t took = now - t->step_ns;
    bool first = t->step_ns == 0;
    t->step_ns = now;
    if (first) {
        return; /* it began with the program's preparations */
    }
    uint64_t usual = mtprof__slow_step_median(&t->slow);
    if (mtprof__slow_step_feed(&t->slow, took) != MTPROF__STEP_SLOW ||
        __atomic_load_n(&t->slow_waits, __ATOMIC_ACQUIRE) != 0) { /* one is being dumped */
        return;
    }
    char took_text[MTPROF_QUANTITY_BYTES], usual_text[MTPROF_QUANTITY_BYTES];
    (void)mtprof_duration_text((double)took, took_text);
    (void)mtprof_duration_text((double)usual, usual_text);
    (void)snprintf(t->slow_reason, sizeof t->slow_reason,
                   "slow step: step %" PRIu64 " took %s, usual is %s", step, took_text, usual_text);
    __atomic_store_n(&t->slow_waits, 1, __ATOMIC_RELEASE);
    sem_post(&mtprof__trigger_wake);
}

void mtprof__triggers_stop(mtprof__triggers *t)
{
    if (t == NULL) {
        return;
    }
    if (pthread_equal(pthread_self(), t->thread)) { /* in a callback (TRG4) */
        give_signals(t);
        pthread_detach(t->thread);
        t->detached = true;
        __atomic_store_n(&t->leave, true, __ATOMIC_RELEASE);
        return;
    }
    __atomic_store_n(&t->leave, true, __ATOMIC_RELEASE);
    sem_post(&mtprof__trigger_wake);
    pthread_join(t->thread, NULL);
    give_signals(t);
    mtb_free(t);
}
