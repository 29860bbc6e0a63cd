/* SPDX-License-Identifier: Apache-2.0
 *
 * See fake_cupti.h. Records are laid out as cupti_abi.h says; test_cupti_layout.c compares that
 * with NVIDIA's headers.
 */
#include "support/fake_cupti.h"

#include "sources/cupti/cupti_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_OUT = 128,
    KINDS = 64,
    NAMES = 1024,
    FAILED = 999
};

static fake_settings settings = {.version = 130001, .devices = 1, .result = FAILED};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_facts facts;
static uint32_t last_correlation;

static cp__callback *callback;
static void *callback_user;
static bool enabled[3][NAMES];
static cp__buffer_wanted *buffer_wanted;
static cp__buffer_done *buffer_done;

/* A buffer of a thread. */
static struct out {
    pthread_t thread;
    uint8_t *bytes;
    size_t size, used;
} out[MOST_OUT];
static uint32_t n_out;

/* ---- names of callbacks ---- */

static const struct {
    uint32_t domain, id;
    const char *name;
} names[] = {
    {1, 2, "cuDriverGetVersion"},
    {1, 307, "cuLaunchKernel"},
    {1, 515, "cuGraphLaunch_ptsz"},
    {1, 290, "cuMemcpyHtoDAsync_v2"},
    {1, 652, "cuLaunchKernelEx"},
    {1, 17, "cuCtxSynchronize"},
    {2, 165, "cudaDeviceSynchronize_v3020"},
    {2, 41, "cudaMemcpyAsync_v3020"},
    {2, 51, "cudaMemsetAsync_v3020"},
    {2, 211, "cudaLaunchKernel_v7000"},
    {2, 214, "cudaLaunchKernel_ptsz_v7000"},
    {2, 505, "__cudaLaunchKernel_v13000"},
    {2, 430, "cudaLaunchKernelExC_v11060"},
    {2, 311, "cudaGraphLaunch_v10000"},
    {2, 147, "cudaStreamWaitEvent_v3020"},
    {2, 317, "cudaStreamBeginCapture_v10000"},
    {2, 318, "cudaStreamEndCapture_v10000"},
    {2, 13, "cudaGetDevice_v3020"},
    {2, 431, "cudaGraphInstantiate_v12000"},
    {1, 653, "cuGraphInstantiateWithFlags"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool find_name(const char *name, uint32_t *domain, uint32_t *id)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        if (strcmp(names[i].name, name) == 0) {
            *domain = names[i].domain;
            *id = names[i].id;
            return true;
        }
    }
    return false;
}

static bool fails(const char *function)
{
    if (settings.failing == NULL || strcmp(settings.failing, function) != 0) {
        return false;
    }
    if (settings.fails_after > 0) {
        settings.fails_after--;
        return false;
    }
    return true;
}

#define MAY_FAIL(function)          \
    do {                            \
        if (fails(function)) {      \
            return settings.result; \
        }                           \
    } while (0)

/* ---- CUPTI's functions ---- */

int cuptiGetVersion(uint32_t *version)
{
    *version = settings.version;
    return settings.version != 0 ? CP_OK : FAILED;
}

int cuptiSubscribe(void **subscriber, cp__callback *function, void *user)
{
    MAY_FAIL("cuptiSubscribe");
    if (facts.subscribed != 0 || settings.taken != 0) {
        return CP_MULTIPLE_SUBSCRIBERS;
    }
    facts.subscribed = 1;
    callback = function;
    callback_user = user;
    *subscriber = &callback;
    return CP_OK;
}

int cuptiUnsubscribe(void *subscriber)
{
    facts.subscribed = 0;
    callback = NULL;
    return subscriber == &callback ? CP_OK : FAILED;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id)
{
    MAY_FAIL("cuptiEnableCallback");
    if (subscriber != &callback || domain < 1 || domain > 3 || id >= NAMES) {
        return 1;
    }
    facts.enabled_callbacks += (enable != 0) - enabled[domain - 1][id];
    enabled[domain - 1][id] = enable != 0;
    return CP_OK;
}

int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        if (names[i].domain == domain && names[i].id == id) {
            *name = names[i].name;
            return CP_OK;
        }
    }
    return 1;
}

int cuptiActivityEnable(uint32_t kind)
{
    MAY_FAIL("cuptiActivityEnable");
    facts.kinds |= kind < KINDS ? (uint64_t)1 << kind : 0;
    return CP_OK;
}

int cuptiActivityDisable(uint32_t kind)
{
    facts.kinds &= kind < KINDS ? ~((uint64_t)1 << kind) : ~(uint64_t)0;
    return CP_OK;
}

int cuptiActivityRegisterCallbacks(cp__buffer_wanted *wanted, cp__buffer_done *done)
{
    MAY_FAIL("cuptiActivityRegisterCallbacks");
    buffer_wanted = wanted;
    buffer_done = done;
    return CP_OK;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    MAY_FAIL("cuptiActivityRegisterTimestampCallback");
    return clock() != 0 ? CP_OK : FAILED;
}

static size_t record_bytes(uint32_t kind)
{
    switch (kind) {
    case CP_KIND_KERNEL: return sizeof(cp__kernel) + settings.extra_bytes;
    case CP_KIND_MEMCPY: return sizeof(cp__copy) + settings.extra_bytes;
    case CP_KIND_MEMCPY_PEER: return sizeof(cp__peer_copy) + settings.extra_bytes;
    case CP_KIND_MEMSET: return sizeof(cp__set) + settings.extra_bytes;
    case CP_KIND_SYNCHRONIZATION: return sizeof(cp__wait) + settings.extra_bytes;
    default: return 64;
    }
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t used, void **record)
{
    uint8_t *next = buffer;
    if (*record != NULL) {
        uint32_t kind;
        memcpy(&kind, *record, sizeof kind);
        next = (uint8_t *)*record + record_bytes(kind);
    }
    if (next >= buffer + used) {
        return CP_MAX_LIMIT_REACHED;
    }
    *record = next;
    return CP_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context;
    (void)stream;
    pthread_mutex_lock(&lock);
    *count = settings.dropped;
    settings.dropped = 0;
    pthread_mutex_unlock(&lock);
    return CP_OK;
}

static void give_back(void)
{
    struct out given[MOST_OUT];
    pthread_mutex_lock(&lock);
    uint32_t n = n_out;
    memcpy(given, out, sizeof out);
    n_out = 0;
    facts.buffers_out -= n;
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < n; i++) {
        buffer_done(NULL, 0, given[i].bytes, given[i].size, given[i].used);
    }
}

int cuptiActivityFlushAll(uint32_t flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    facts.flushes++;
    pthread_mutex_unlock(&lock);
    while (__atomic_load_n(&settings.flush_hangs, __ATOMIC_RELAXED)) {
        usleep(1000);
    }
    give_back();
    if (settings.failure != 0) {
        return FAILED;
    }
    return CP_OK;
}

static _Thread_local bool at_exit;

int cuptiFinalize(void)
{
    MAY_FAIL("cuptiFinalize");
    if (settings.keeps) {
        uint8_t *buffer = NULL;
        size_t size = 0;
        size_t most = 0;
        buffer_wanted(&buffer, &size, &most);
    }
    facts.finalized++;
    facts.finalized_at_exit += at_exit;
    facts.subscribed = 0;
    facts.kinds = 0;
    facts.enabled_callbacks = 0;
    memset(enabled, 0, sizeof enabled);
    callback = NULL;
    return CP_OK;
}

/* What cupti_floor.c tries. */
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
    return attribute >= 0 && attribute <= 9 && *bytes > 0 && value != NULL ? CP_OK : 1;
}

int cuptiSetThreadIdType(int type)
{
    return type == 0 || type == 1 ? CP_OK : 1;
}

int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable)
{
    return id < NAMES && enable <= 1 ? CP_OK : 1;
}

int cuptiActivityEnableHWTrace(uint8_t enable)
{
    return enable != 0 ? 27 : CP_OK; /* CUPTI_ERROR_NOT_SUPPORTED */
}

int cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    return milliseconds < 3600000 ? CP_OK : 1;
}

int cuptiGetResultString(int result, const char **text)
{
    *text = result == CP_MULTIPLE_SUBSCRIBERS ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                              : "CUPTI_ERROR_UNKNOWN";
    return CP_OK;
}

#ifndef FAKE_CUPTI_OLD
int cuptiGetGraphNodeId(void *node, uint64_t *number)
{
    *number = (uint64_t)(uintptr_t)node;
    return CP_OK;
}
#endif

/* ---- the driver's functions ---- */

static void call_back(const char *name, uint32_t site, uint32_t correlation, uint64_t *kept,
                      const fake_call *call)
{
    uint32_t domain = 0;
    uint32_t id = 0;
    cp__callback *function = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
    if (function == NULL || settings.mute || !find_name(name, &domain, &id) ||
        !__atomic_load_n(&enabled[domain - 1][id], __ATOMIC_RELAXED)) {
        return;
    }
    cp__call_data data = {.site = site,
                          .function = name,
                          .arguments = call->arguments,
                          .result = &call->result,
                          .context = (void *)(uintptr_t)(call->work.context + 16),
                          .context_number = call->work.context,
                          .kept = kept,
                          .correlation = correlation};
    at_exit = site == CP_SITE_EXIT;
    function(callback_user, domain, id, &data);
    at_exit = false;
}

int cuDriverGetVersion(int *version)
{
    const fake_call call = {.name = "cuDriverGetVersion"};
    uint64_t kept = 0;
    *version = 13000;
    settings.taken -= settings.taken != 0;
    uint32_t id = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
    call_back(call.name, CP_SITE_ENTER, id, &kept, &call);
    call_back(call.name, CP_SITE_EXIT, id, &kept, &call);
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = settings.devices;
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "Fake \"GPU\" %d", device);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)(device + 1) << 30;
    return 0;
}

/* An H200. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int values[128] = {
        [CP_ATTRIBUTE_THREADS_PER_BLOCK] = 1024,
        [CP_ATTRIBUTE_SHARED_PER_BLOCK] = 49152,
        [CP_ATTRIBUTE_WARP] = 32,
        [CP_ATTRIBUTE_REGISTERS_PER_BLOCK] = 65536,
        [CP_ATTRIBUTE_PROCESSORS] = 132,
        [CP_ATTRIBUTE_THREADS_PER_PROCESSOR] = 2048,
        [CP_ATTRIBUTE_MAJOR] = 9,
        [CP_ATTRIBUTE_SHARED_PER_PROCESSOR] = 233472,
        [CP_ATTRIBUTE_REGISTERS_PER_PROCESSOR] = 65536,
        [CP_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN] = 232448,
        [CP_ATTRIBUTE_BLOCKS_PER_PROCESSOR] = 32,
        [CP_ATTRIBUTE_SHARED_RESERVED] = 1024,
    };
    (void)device;
    *value = attribute >= 0 && attribute < 128 ? values[attribute] : 0;
    return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
    return context != NULL && !settings.contexts_gone ? 0 : 201;
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = NULL;
    return 0;
}

int cuCtxSynchronize(void)
{
    pthread_mutex_lock(&lock);
    facts.waits++;
    pthread_mutex_unlock(&lock);
    while (__atomic_load_n(&settings.hangs, __ATOMIC_RELAXED)) {
        usleep(1000);
    }
    return settings.failure;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = settings.captures;
    return 0;
}

static int get_edges(void **from, void **to, size_t *count)
{
    if (settings.edges_result != 0) {
        return settings.edges_result;
    }
    for (size_t i = 0; from != NULL && i < settings.n_edges && i < *count; i++) {
        from[i] = (void *)(uintptr_t)settings.edges[i][0];
        to[i] = (void *)(uintptr_t)settings.edges[i][1];
    }
    *count = settings.n_edges;
    return 0;
}

int cuGraphGetEdges(void *graph, void **from, void **to, size_t *count)
{
    return graph != NULL ? get_edges(from, to, count) : 1;
}

/* Edges may have data, so it must be asked for. */
int cuGraphGetEdges_v2(void *graph, void **from, void **to, void *data, size_t *count)
{
    if (from != NULL && data == NULL) {
        return 917; /* CUDA_ERROR_LOSSY_QUERY */
    }
    if (data != NULL) {
        memset(data, 0xA5, 8 * settings.n_edges);
    }
    return graph != NULL ? get_edges(from, to, count) : 1;
}

/* ---- records ---- */

/* Room for a record in this thread's buffer; NULL: it is dropped. The lock is held. */
static void *take_room(size_t bytes)
{
    for (uint32_t i = 0; i < n_out; i++) {
        if (pthread_equal(out[i].thread, pthread_self()) && out[i].size - out[i].used >= bytes) {
            void *room = out[i].bytes + out[i].used;
            out[i].used += bytes;
            return room;
        }
    }
    uint8_t *buffer = NULL;
    size_t size = 0;
    size_t most = 0;
    if (n_out < MOST_OUT) {
        pthread_mutex_unlock(&lock);
        buffer_wanted(&buffer, &size, &most);
        pthread_mutex_lock(&lock);
    }
    if (buffer == NULL) {
        settings.dropped++;
        facts.buffers_refused++;
        return NULL;
    }
    facts.buffers_out++;
    out[n_out++] = (struct out){pthread_self(), buffer, size, bytes};
    return buffer;
}

static void add_record(const fake_work *w, uint32_t correlation)
{
    union {
        uint32_t kind;
        cp__kernel kernel;
        cp__copy copy;
        cp__peer_copy peer;
        cp__set set;
        cp__wait wait;
        uint8_t bytes[512];
    } r;
    memset(&r, 0, sizeof r);
    switch (w->kind) {
    case CP_KIND_KERNEL:
        r.kernel = (cp__kernel){.start = w->start,
                                .end = w->end,
                                .device = w->device,
                                .context = w->context,
                                .stream = w->stream,
                                .correlation = correlation,
                                .name = w->name,
                                .registers = w->registers,
                                .static_shared = w->static_shared,
                                .dynamic_shared = w->dynamic_shared,
                                .graph_node = w->graph_node};
        memcpy(r.kernel.grid, w->grid, sizeof w->grid);
        memcpy(r.kernel.block, w->block, sizeof w->block);
        break;
    case CP_KIND_MEMCPY:
        r.copy = (cp__copy){.copy_kind = w->copy_kind,
                            .from_kind = w->from_kind,
                            .to_kind = w->to_kind,
                            .bytes = w->bytes,
                            .start = w->start,
                            .end = w->end,
                            .device = w->device,
                            .context = w->context,
                            .stream = w->stream,
                            .correlation = correlation,
                            .graph_node = w->graph_node};
        break;
    case CP_KIND_MEMCPY_PEER:
        r.peer = (cp__peer_copy){.copy_kind = w->copy_kind,
                                 .from_kind = w->from_kind,
                                 .to_kind = w->to_kind,
                                 .bytes = w->bytes,
                                 .start = w->start,
                                 .end = w->end,
                                 .device = w->device,
                                 .context = w->context,
                                 .stream = w->stream,
                                 .correlation = correlation};
        break;
    case CP_KIND_MEMSET:
        r.set = (cp__set){.bytes = w->bytes,
                          .start = w->start,
                          .end = w->end,
                          .device = w->device,
                          .context = w->context,
                          .stream = w->stream,
                          .correlation = correlation,
                          .graph_node = w->graph_node,
                          .memory_kind = w->to_kind};
        break;
    case CP_KIND_SYNCHRONIZATION:
        r.wait = (cp__wait){.type = w->wait_type,
                            .start = w->start,
                            .end = w->end,
                            .correlation = correlation,
                            .context = w->context,
                            .stream = w->stream};
        break;
    default: break;
    }
    r.kind = w->kind;
    size_t bytes = record_bytes(w->kind);
    size_t known = bytes - (bytes != 64 ? settings.extra_bytes : 0);
    pthread_mutex_lock(&lock);
    void *room = take_room(bytes);
    if (room != NULL) {
        memset(room, 0xA5, bytes); /* what we do not know of a record is not zero */
        memcpy(room, &r, known);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

static uint32_t enter(const fake_call *call, uint64_t *kept)
{
    uint32_t id = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
    call_back(call->name, CP_SITE_ENTER, id, kept, call);
    return id;
}

static void leave(const fake_call *call, uint32_t correlation, uint64_t *kept)
{
    call_back(call->name, CP_SITE_EXIT, correlation, kept, call);
}

static uint32_t make_call(const fake_call *call)
{
    uint64_t kept = 0;
    uint64_t inner_kept = 0;
    uint32_t id = enter(call, &kept);
    uint32_t inner = id;
    if (call->inner != NULL) {
        inner = call->inner_has_own_id ? __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED)
                                       : id;
        call_back(call->inner, CP_SITE_ENTER, inner, &inner_kept, call);
    }
    bool wanted = call->work.kind != 0 &&
                  (call->work.kind >= KINDS || (facts.kinds >> call->work.kind & 1) != 0);
    for (uint32_t i = 0; wanted && i < (call->repeats > 0 ? call->repeats : 1); i++) {
        add_record(&call->work, call->work_of_inner ? inner : id);
    }
    if (call->inner != NULL) {
        call_back(call->inner, CP_SITE_EXIT, inner, &inner_kept, call);
    }
    leave(call, id, &kept);
    return id;
}

static void lose_records(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_out; i++) {
        out[i].used = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void destroy_context(void *context)
{
    const cp__resource_data data = {.context = context};
    if (callback != NULL && enabled[2][CP_RESOURCE_CONTEXT_DESTROY_STARTING]) {
        callback(callback_user, CP_DOMAIN_RESOURCE, CP_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
    }
}

static void tell_node(uint32_t id, uint64_t number, uint64_t original)
{
    const cp__graph_data graph = {.node = (void *)(uintptr_t)number,
                                  .original_node = (void *)(uintptr_t)original,
                                  .node_type = settings.node_type};
    const cp__resource_data data = {.descriptor = &graph};
    if (callback != NULL && enabled[2][id]) {
        callback(callback_user, CP_DOMAIN_RESOURCE, id, &data);
    }
}

static fake_facts get_facts(void)
{
    pthread_mutex_lock(&lock);
    fake_facts now = facts;
    pthread_mutex_unlock(&lock);
    return now;
}

const fake_cupti fake_cupti_face = {.settings = &settings,
                                    .call = make_call,
                                    .enter = enter,
                                    .leave = leave,
                                    .give_back = give_back,
                                    .lose_records = lose_records,
                                    .destroy_context = destroy_context,
                                    .facts = get_facts,
                                    .node = tell_node,
                                    .record = add_record};
