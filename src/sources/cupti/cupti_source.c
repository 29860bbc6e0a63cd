/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_cupti's functions, and its source, which libmtprof calls where a recording begins and
 * ends: it takes CUPTI, waits for the GPU, and lets CUPTI go again (CU2 of cupti_impl.h).
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sources/cupti/cupti_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_CONTEXTS = 32,
    MOST_TEXTS = 32,
    TRIES = 8, /* to have CUPTI, where another profiler has it: after 1, 2, 4, ... 128 ms */
    FIRST_TRY_NS = 1000000
};

static const uint64_t LEAVING_WAIT_NS = 30000000000; /* as device_wait_ns of a session */

static struct {
    pthread_mutex_t lock; /* attach and detach */
    bool known;           /* the libraries were opened */
    cp__found found;
    mtprof_source *source; /* NULL: not attached */
    uint32_t options;      /* atomic: the program's, and */
    uint32_t asked;        /* those of its environment */
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the recording: libmtprof calls the source from one thread at a time. */
static struct {
    void *subscriber;
    uint64_t began_ns;
    uint32_t options;  /* that were asked of CUPTI */
    bool running;      /* atomic; CUPTI is ours */
    bool used, forked; /* used: in this process or its parent, before the fork */
    bool leaving;      /* atomic; the source is removed: nobody else waits for the GPU */
    bool refused;      /* another profiler had CUPTI when the last recording began */
} cupti;

/* ---- texts that stay ---- */

static struct {
    pthread_mutex_t lock;
    char *items[MOST_TEXTS];
    const char *missing; /* one of them, or "" */
} texts = {.lock = PTHREAD_MUTEX_INITIALIZER, .missing = ""};

/* What mtprof_cupti_info says is missing. */
static void say(const char *text)
{
    pthread_mutex_lock(&texts.lock);
    size_t i = 0;
    while (i < MOST_TEXTS && texts.items[i] != NULL && strcmp(texts.items[i], text) != 0) {
        i++;
    }
    if (i < MOST_TEXTS && texts.items[i] == NULL) {
        texts.items[i] = mtb_copy_text(text, strlen(text));
    }
    texts.missing = i < MOST_TEXTS && texts.items[i] != NULL ? texts.items[i]
                                                             : "CUPTI fails; there is no memory "
                                                               "for more texts that say why";
    pthread_mutex_unlock(&texts.lock);
}

static const char *said(void)
{
    pthread_mutex_lock(&texts.lock);
    const char *text = texts.missing;
    pthread_mutex_unlock(&texts.lock);
    return text;
}

static const char *result_text(int result)
{
    const char *text = NULL;
    return cp__cuda.result_text(result, &text) == CP_OK && text != NULL ? text : "unknown";
}

/* ---- taking CUPTI ---- */

/* Its times are ours: CLOCK_MONOTONIC. */
static uint64_t read_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const struct {
    uint32_t kind, option; /* option 0: always */
} kinds[] = {
    {CP_KIND_KERNEL, 0},
    {CP_KIND_MEMCPY, 0},
    {CP_KIND_MEMCPY_PEER, 0},
    {CP_KIND_MEMSET, 0},
    {CP_KIND_SYNCHRONIZATION, MTPROF_CUPTI_WAITS},
};

static int enable_kinds(void)
{
    int result = CP_OK;
    for (size_t i = 0; i < MT_COUNT(kinds) && result == CP_OK; i++) {
        if (kinds[i].option == 0 || (kinds[i].option & cupti.options) != 0) {
            result = cp__cuda.enable(kinds[i].kind);
        }
    }
    return result;
}

static void disable_kinds(void)
{
    for (size_t i = 0; i < MT_COUNT(kinds); i++) {
        if (kinds[i].option == 0 || (kinds[i].option & cupti.options) != 0) {
            (void)cp__cuda.disable(kinds[i].kind);
        }
    }
}

static mtprof_status refuse(int result, const char *what)
{
    char text[MTB_MESSAGE_BYTES];
    const char *hint = "";
    if (result == CP_MULTIPLE_SUBSCRIBERS) {
        hint = ": another profiler (torch.profiler, Nsight) uses CUPTI in this process";
    } else if (result == CP_INSUFFICIENT_PRIVILEGES) {
        hint = ": the driver lets administrators alone profile";
    }
    snprintf(text, sizeof text, "cupti: %s failed with %s (%d)%s", what, result_text(result),
             result, hint);
    say(text);
    return mtb_fail(result == CP_MULTIPLE_SUBSCRIBERS ? MTPROF_EBUSY : MTPROF_ENOTSUP, "%s", text);
}

/* CUPTI is idle: nothing of it is open. */
static void let_go(void)
{
    int result = CP_OK;
    int version = 0;
    cp__buffers_ignore(true);
    disable_kinds();
    cp__detach_at_exit(true);
    (void)cp__cuda.enable_callback(1, cupti.subscriber, CP_DOMAIN_DRIVER, cp__detach_call());
    (void)cp__cuda.driver_version(&version); /* detaches when it returns */
    if (!cp__detached(&result)) {
        (void)cp__cuda.unsubscribe(cupti.subscriber);
        result = cp__cuda.finalize();
    }
    cp__detach_at_exit(false);
    if (result != CP_OK) {
        char text[MTB_MESSAGE_BYTES];
        snprintf(text, sizeof text,
                 "cupti: cuptiFinalize failed with %s (%d): launches cost more than before",
                 result_text(result), result);
        say(text);
    }
    cupti.subscriber = NULL;
    __atomic_store_n(&cupti.running, false, __ATOMIC_RELAXED);
    cp__buffers_trim();
}

/* A profiler that lets CUPTI go when it stops (torch.profiler with TEARDOWN_CUPTI=1) does so from
 * the exit of a later call of CUDA, as CUPTI's manual asks. So calls are made for it, few, since a
 * profiler that records shows them; where that was in vain, the next recording does not wait. */
static int subscribe(void)
{
    struct timespec pause = {.tv_nsec = FIRST_TRY_NS};
    int version = 0;
    int result = cp__cuda.subscribe(&cupti.subscriber, cp__on_call, NULL);
    uint32_t tries = cupti.refused ? 0 : TRIES;
    for (uint32_t i = 0; i < tries && result == CP_MULTIPLE_SUBSCRIBERS; i++) {
        (void)cp__cuda.driver_version(&version);
        if (cp__cuda.runtime_version != NULL) {
            (void)cp__cuda.runtime_version(&version);
        }
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec *= 2;
        result = cp__cuda.subscribe(&cupti.subscriber, cp__on_call, NULL);
    }
    cupti.refused = result == CP_MULTIPLE_SUBSCRIBERS;
    return result;
}

static mtprof_status take(void)
{
    int result = subscribe();
    if (result != CP_OK) {
        cupti.subscriber = NULL;
        return refuse(result, "cuptiSubscribe");
    }
    const char *what = "cuptiActivityRegisterTimestampCallback";
    result = cp__cuda.register_clock(read_clock);
    if (result == CP_OK) {
        what = "cuptiActivityRegisterCallbacks";
        result = cp__cuda.register_buffers(cp__on_buffer_wanted, cp__on_buffer_done);
    }
    if (result == CP_OK) {
        what = "cuptiActivityEnable";
        result = enable_kinds();
    }
    if (result == CP_OK) {
        what = "cuptiEnableCallback";
        result = cp__calls_enable(cupti.subscriber);
    }
    if (result != CP_OK) {
        mtprof_status status = refuse(result, what);
        let_go();
        return status;
    }
    __atomic_store_n(&cupti.running, true, __ATOMIC_RELAXED);
    return MTPROF_OK;
}

/* ---- the source ---- */

static mtprof_status begin(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)wants;
    if (cupti.forked) {
        say("cupti: the parent of this process used the GPU before fork(): its child cannot");
        return MTPROF_ENOTSUP;
    }
    cp__calls_begin();
    cp__graphs_begin();
    cp__records_within(UINT64_MAX, UINT64_MAX); /* until it has begun */
    cp__buffers_ignore(false);
    say(cp__names_are_raw() ? "names of kernels are mangled: no libstdc++ is loaded" : "");
    if (!cupti.running) { /* else the last recording did not wait for the GPU, and CUPTI stayed */
        cupti.used = true;
        cupti.options = __atomic_load_n(&host.options, __ATOMIC_RELAXED) | host.asked;
    }
    cp__edges_want((cupti.options & MTPROF_CUPTI_DEPENDENCIES) != 0);
    cp__buffers_serve(source);
    if (!cupti.running) {
        MT_TRY(take());
    }
    cp__buffers_begin();
    cupti.began_ns = read_clock();
    cp__records_within(cupti.began_ns, UINT64_MAX);
    return MTPROF_OK;
}

/* The gate is shut: calls are not recorded any more. What the GPU does is awaited by flush(). */
static void finish(void *context)
{
    (void)context;
    cp__records_within(cupti.began_ns, read_clock());
}

static void flush(void *context, uint64_t timeout_ns)
{
    (void)context;
    void *contexts[MOST_CONTEXTS];
    if (!cupti.running) {
        return;
    }
    uint32_t count = cp__contexts(contexts, MOST_CONTEXTS);
    if (timeout_ns == 0 && __atomic_load_n(&cupti.leaving, __ATOMIC_RELAXED)) {
        timeout_ns = LEAVING_WAIT_NS;
    }
    int failure = 0;
    bool waits = count > 0 && timeout_ns > 0;
    bool done = !waits || cp__wait_for_work(contexts, count, timeout_ns, &failure);
    if (!done || !cp__buffers_end(timeout_ns > 0 ? timeout_ns : LEAVING_WAIT_NS)) {
        cp__add(&cp__count.waits_failed, 1);
        say(done
                ? "cupti: cuptiActivityFlushAll did not return in time: CUPTI stays in the process "
                  "until a recording ends in which it does"
                : "cupti: the GPU was not done in time: CUPTI stays in the process until a "
                  "recording ends with it done");
        return;
    }
    if (failure != 0) {
        char text[MTB_MESSAGE_BYTES];
        snprintf(text, sizeof text,
                 "cupti: a GPU failed (cuCtxSynchronize returned %d): its last work is missing",
                 failure);
        say(text);
    }
    let_go();
}

static uint64_t source_clock(void *context)
{
    (void)context;
    return read_clock();
}

static size_t describe(void *context, char *json, size_t room)
{
    (void)context;
    return cp__describe(json, room);
}

static const char *trouble(void *context)
{
    (void)context;
    return said();
}

/* ---- attaching ---- */

static void after_fork(void)
{
    host.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    texts.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    cupti.forked = cupti.forked || cupti.used;
    cupti.running = false;
    cupti.subscriber = NULL;
    cp__names_after_fork();
    cp__graphs_after_fork();
    cp__buffers_after_fork();
    cp__calls_after_fork();
}

static int know_cuda(void)
{
    if (host.known) {
        return MTPROF_OK;
    }
    MT_TRY(cp__options_asked(&host.asked));
    MT_TRY(cp__library_open(&host.found));
    if (!cp__joins_init()) {
        return mtb_fail(MTPROF_ENOMEM, "cupti: no memory for the table of launches");
    }
    cp__calls_init();
    host.known = true;
    (void)pthread_atfork(NULL, NULL, after_fork);
    return MTPROF_OK;
}

static int attach(void)
{
    static const mtprof_source_ops ops = {.struct_size = sizeof ops,
                                          .abi = MTPROF_SOURCE_ABI,
                                          .name = "cupti",
                                          .device_type = "CUDA",
                                          .needs = MTPROF_WANT_DEVICE,
                                          .start = begin,
                                          .stop = finish,
                                          .flush = flush,
                                          .clock = source_clock,
                                          .describe = describe,
                                          .trouble = trouble};
    MT_TRY(know_cuda());
    return host.source != NULL ? MTPROF_OK : mtprof_source_register(&ops, &host.source);
}

mtprof_status mtprof_cupti_attach(mtprof_cupti_info *info)
{
    if (info != NULL && info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "cupti: struct_size of the info is 0");
    }
    pthread_mutex_lock(&host.lock);
    int status = attach();
    if (status != MTPROF_OK) {
        say(mtb_last_failure()->message);
    }
    pthread_mutex_unlock(&host.lock);
    if (info != NULL) {
        mtprof_cupti_info now = {
            .version = host.found.version,
            .library = host.found.path,
            .missing = said(),
            .running = __atomic_load_n(&cupti.running, __ATOMIC_RELAXED),
            .records = __atomic_load_n(&cp__count.records, __ATOMIC_RELAXED),
            .unreadable = __atomic_load_n(&cp__count.unreadable, __ATOMIC_RELAXED),
            .dropped = __atomic_load_n(&cp__count.dropped, __ATOMIC_RELAXED),
            .unjoined = __atomic_load_n(&cp__count.unjoined, __ATOMIC_RELAXED),
            .waits_failed = __atomic_load_n(&cp__count.waits_failed, __ATOMIC_RELAXED),
            .replayed = __atomic_load_n(&cp__count.replayed, __ATOMIC_RELAXED),
            .replayed_unknown = __atomic_load_n(&cp__count.replayed_unknown, __ATOMIC_RELAXED),
            .nodes_lost = __atomic_load_n(&cp__count.nodes_lost, __ATOMIC_RELAXED),
            .dependencies_lost = __atomic_load_n(&cp__count.dependencies_lost, __ATOMIC_RELAXED),
        };
        mtb_write_struct(info, &now);
    }
    return status;
}

void mtprof_cupti_detach(void)
{
    pthread_mutex_lock(&host.lock);
    mtprof_source *source = host.source;
    host.source = NULL;
    pthread_mutex_unlock(&host.lock);
    __atomic_store_n(&cupti.leaving, true, __ATOMIC_RELAXED);
    mtprof_source_unregister(source);
    __atomic_store_n(&cupti.leaving, false, __ATOMIC_RELAXED);
}

void mtprof_cupti_set_options(uint32_t options)
{
    __atomic_store_n(&host.options, options, __ATOMIC_RELAXED);
}
