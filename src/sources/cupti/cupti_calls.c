/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of CUDA: CUPTI calls back where one begins and where it ends, on the thread that makes it.
 *
 *   CC1  A call of the runtime makes calls of the driver. Only the outermost one is a scope; ids of
 *        those inside it are joined with it.
 *   CC2  The exit of a call may never come: callbacks end with the recording. Each thread's state
 *        belongs to one recording (`generation`) and is forgotten in the next.
 *   CC3  A call that starts work on the GPU is a launch, and libmtprof waits for its answer. One
 *        that only adds a node to a graph that is being captured, or that moves no bytes, is none.
 */
#include "base/compiler.h"
#include "sources/cupti/cupti_impl.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_IDS = 2048,  /* CUDA 13.4 has some 900 in a domain */
    MOST_CALLS = 255, /* that we ask for */
    NAME_BYTES = 64,
    MOST_CONTEXTS = 32
};

enum call_kind {
    CALL_NONE = 0, /* not asked for */
    CALL_PLAIN,
    CALL_WORK, /* the GPU gets work */
    /* What else is to be done where they end: */
    CALL_CAPTURE,
    CALL_CAPTURE_END,
    CALL_INSTANTIATE
};

/* Where an argument lies in the struct of them; 0: not known, 1: in the configuration, which the
 * first argument points to. */
enum {
    AT_UNKNOWN = 0,
    AT_CONFIGURATION = 1,
    CONFIGURATION_STREAM = 32
};

typedef struct call_rule {
    const char *name; /* ends in '*': a prefix */
    uint8_t kind, stream_at, bytes_at;
} call_rule;

/* The first that fits. */
static const call_rule rules[] = {
    {"cudaLaunchKernel", CALL_WORK, 48, 0},
    {"cudaLaunchCooperativeKernel", CALL_WORK, 48, 0},
    {"cudaLaunchKernelExC", CALL_WORK, AT_CONFIGURATION, 0},
    {"cudaLaunchCooperativeKernelMultiDevice", CALL_WORK, 0, 0},
    {"cudaGraphLaunch", CALL_WORK, 0, 0},
    {"cudaMemcpy", CALL_WORK, 0, 16},
    {"cudaMemcpyAsync", CALL_WORK, 32, 16},
    {"cudaMemset", CALL_WORK, 0, 16},
    {"cudaMemsetAsync", CALL_WORK, 24, 16},
    {"cudaMemcpy*", CALL_WORK, 0, 0},
    {"cudaMemset*", CALL_WORK, 0, 0},
    {"cudaDeviceSynchronize", CALL_PLAIN, 0, 0},
    {"cudaStreamSynchronize", CALL_PLAIN, 0, 0},
    {"cudaStreamWaitEvent", CALL_PLAIN, 0, 0},
    {"cudaEventSynchronize", CALL_PLAIN, 0, 0},
    {"cudaEventRecord*", CALL_PLAIN, 0, 0},
    {"cudaMalloc*", CALL_PLAIN, 0, 0},
    {"cudaFree*", CALL_PLAIN, 0, 0},
    {"cudaHostAlloc", CALL_PLAIN, 0, 0},
    {"cudaGraphInstantiate*", CALL_INSTANTIATE, 0, 0},
    {"cudaStreamBeginCapture*", CALL_CAPTURE, 0, 0},
    {"cudaStreamEndCapture", CALL_CAPTURE_END, 0, 0},
    {"cuLaunchKernel", CALL_WORK, 40, 0},
    {"cuLaunchCooperativeKernel", CALL_WORK, 40, 0},
    {"cuLaunchKernelEx", CALL_WORK, AT_CONFIGURATION, 0},
    {"cuGraphLaunch", CALL_WORK, 0, 0},
    {"cuGraphInstantiate*", CALL_INSTANTIATE, 0, 0},
    {"cuMemcpy*", CALL_WORK, 0, 0},
    {"cuMemset*", CALL_WORK, 0, 0},
    {"cuCtxSynchronize", CALL_PLAIN, 0, 0},
    {"cuStreamSynchronize", CALL_PLAIN, 0, 0},
    {"cuEventSynchronize", CALL_PLAIN, 0, 0},
    {"cuStreamBeginCapture*", CALL_CAPTURE, 0, 0},
    {"cuStreamEndCapture", CALL_CAPTURE_END, 0, 0},
};

typedef struct known_call {
    mtprof_site plain, launching;
    call_rule rule;
    char name[NAME_BYTES];
} known_call;

static struct {
    uint8_t index[2][MOST_IDS]; /* by domain - 1; 0: not asked for, else 1 + place */
    known_call items[MOST_CALLS];
    uint32_t count;
    uint32_t detach_id;
} calls;

static uint32_t generation;           /* atomic: CC2 */
static uint32_t captures;             /* atomic: streams that capture */
static void *contexts[MOST_CONTEXTS]; /* atomic */
static uint32_t detaching;            /* atomic: enum below */
static int detach_result;             /* before `detaching` is DETACHED */

enum {
    DETACH_NOT = 0,
    DETACH_WANTED = 1,
    DETACH_BEGUN = 2,
    DETACHED = 3
};

typedef struct thread {
    uint32_t generation, depth;
    uint32_t correlation; /* of the outermost call, and */
    uint64_t key;         /* its launch key */
    const void *context;  /* noted already */
} thread;

static __thread thread mine __attribute__((tls_model("initial-exec")));

/* ---- names ---- */

/* The length without an ending of "_v" and digits, or a mark of the default stream. */
static size_t without_ending(const char *text, size_t length)
{
    size_t at = length;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') {
        at--;
    }
    if (at < length && at > 2 && text[at - 1] == 'v' && text[at - 2] == '_') {
        return at - 2;
    }
    bool marked = length > 5 && (memcmp(text + length - 5, "_ptsz", 5) == 0 ||
                                 memcmp(text + length - 5, "_ptds", 5) == 0);
    return marked ? length - 5 : length;
}

/* cudaLaunchKernel_ptsz_v7000, __cudaLaunchKernel_v13000: cudaLaunchKernel. */
static void plain_name(const char *full, char name[NAME_BYTES])
{
    full += strncmp(full, "__", 2) == 0 ? 2 : 0;
    size_t length = strlen(full);
    size_t shorter = without_ending(full, length);
    while (shorter != length) {
        length = shorter;
        shorter = without_ending(full, length);
    }
    snprintf(name, NAME_BYTES, "%.*s", (int)length, full);
}

static const call_rule *rule_of(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(rules); i++) {
        size_t length = strlen(rules[i].name);
        bool prefix = rules[i].name[length - 1] == '*';
        if (prefix ? strncmp(name, rules[i].name, length - 1) == 0
                   : strcmp(name, rules[i].name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

static mtprof_site make_site(const char *name, uint32_t flags)
{
    return (mtprof_site){.flags = (uint16_t)(MTPROF_KIND_RUNTIME | MTPROF_FLAG_DEVICE | flags),
                         .struct_size = sizeof(mtprof_site),
                         .name = name,
                         .file = ""};
}

/* 1 + its place; 0: too many. */
static uint8_t place_of(const char *name, const call_rule *rule)
{
    for (uint32_t i = 0; i < calls.count; i++) {
        if (strcmp(calls.items[i].name, name) == 0) {
            return (uint8_t)(i + 1);
        }
    }
    if (calls.count == MOST_CALLS) {
        return 0;
    }
    known_call *made = &calls.items[calls.count++];
    snprintf(made->name, sizeof made->name, "%s", name);
    made->rule = *rule;
    made->plain = make_site(made->name, 0);
    made->launching = make_site(made->name, MTPROF_FLAG_LAUNCH);
    return (uint8_t)calls.count;
}

void cp__calls_init(void)
{
    for (uint32_t domain = CP_DOMAIN_DRIVER; domain <= CP_DOMAIN_RUNTIME; domain++) {
        for (uint32_t id = 1; id < MOST_IDS; id++) {
            const char *full = NULL;
            char name[NAME_BYTES];
            if (cp__cuda.callback_name(domain, id, &full) != CP_OK || full == NULL) {
                continue;
            }
            plain_name(full, name);
            const call_rule *rule = rule_of(name);
            calls.index[domain - 1][id] = rule != NULL ? place_of(name, rule) : 0;
            if (domain == CP_DOMAIN_DRIVER && strcmp(name, "cuDriverGetVersion") == 0) {
                calls.detach_id = id;
            }
        }
    }
}

uint32_t cp__detach_call(void)
{
    return calls.detach_id;
}

int cp__calls_enable(void *subscriber)
{
    int result = CP_OK;
    for (uint32_t domain = CP_DOMAIN_DRIVER; domain <= CP_DOMAIN_RUNTIME; domain++) {
        for (uint32_t id = 1; id < MOST_IDS && result == CP_OK; id++) {
            if (calls.index[domain - 1][id] != 0) {
                result = cp__cuda.enable_callback(1, subscriber, domain, id);
            }
        }
    }
    if (result == CP_OK) {
        result = cp__cuda.enable_callback(1, subscriber, CP_DOMAIN_RESOURCE,
                                          CP_RESOURCE_CONTEXT_DESTROY_STARTING);
    }
    return result == CP_OK ? cp__graphs_enable(subscriber) : result;
}

/* ---- contexts ---- */

static void note_context(thread *t, void *context)
{
    t->context = context;
    for (uint32_t i = 0; i < MOST_CONTEXTS; i++) {
        void *at = __atomic_load_n(&contexts[i], __ATOMIC_RELAXED);
        if (at == NULL) {
            (void)__atomic_compare_exchange_n(&contexts[i], &at, context, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
            at = at == NULL ? context : at;
        }
        if (at == context) {
            return;
        }
    }
}

static void forget_context(const void *context)
{
    for (uint32_t i = 0; i < MOST_CONTEXTS; i++) {
        void *at = __atomic_load_n(&contexts[i], __ATOMIC_RELAXED);
        if (at == context) {
            (void)__atomic_compare_exchange_n(&contexts[i], &at, NULL, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
        }
    }
}

uint32_t cp__contexts(void **out, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST_CONTEXTS && count < room; i++) {
        void *at = __atomic_load_n(&contexts[i], __ATOMIC_RELAXED);
        if (at != NULL) {
            out[count++] = at;
        }
    }
    return count;
}

/* ---- a call ---- */

static uint64_t argument(const void *arguments, size_t at)
{
    uint64_t word;
    memcpy(&word, (const char *)arguments + at, sizeof word);
    return word;
}

/* Whether the call's stream captures: its work becomes a node of a graph. */
static bool is_captured(const call_rule *rule, const void *arguments)
{
    uint64_t stream = 0;
    int status = 0;
    if (rule->stream_at == AT_UNKNOWN) {
        return false;
    }
    if (rule->stream_at == AT_CONFIGURATION) {
        const void *configuration = NULL;
        memcpy(&configuration, arguments, sizeof configuration);
        stream = argument(configuration, CONFIGURATION_STREAM);
    } else {
        stream = argument(arguments, rule->stream_at);
    }
    void *handle = NULL;
    memcpy(&handle, &stream, sizeof handle);
    return cp__cuda.stream_captures(handle, &status) == 0 && status != 0;
}

/* CC3 */
static bool launches(const call_rule *rule, const cp__call_data *data)
{
    if (rule->kind != CALL_WORK || data->arguments == NULL) {
        return rule->kind == CALL_WORK;
    }
    if (rule->bytes_at != 0 && argument(data->arguments, rule->bytes_at) == 0) {
        return false;
    }
    return __atomic_load_n(&captures, __ATOMIC_RELAXED) == 0 || !is_captured(rule, data->arguments);
}

/* The outermost call of a thread begins. */
static MT_NOINLINE void enter(thread *t, known_call *call, const cp__call_data *data)
{
    mtprof_token token =
        mtprof_begin(launches(&call->rule, data) ? &call->launching : &call->plain);
    *data->kept = token;
    t->correlation = data->correlation;
    t->key = mtprof_launch_key(token);
    if (MT_UNLIKELY(call->rule.kind == CALL_INSTANTIATE)) {
        cp__edges_begin();
    }
    if (token != 0) {
        cp__join_put(data->correlation, t->key);
    }
}

/* A call whose end changes what is known of streams and graphs. */
static MT_COLD void end_special(const call_rule *rule, const cp__call_data *data)
{
    bool worked = data->result != NULL && *data->result == 0;
    if (rule->kind == CALL_CAPTURE && worked) {
        uint32_t op, module;
        __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
        (void)mtprof_open_op(&op, &module); /* from here on it sees all that begins */
    } else if (rule->kind == CALL_CAPTURE_END) {
        uint32_t open = __atomic_load_n(&captures, __ATOMIC_RELAXED);
        while (open > 0 && !__atomic_compare_exchange_n(&captures, &open, open - 1, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    } else if (rule->kind == CALL_INSTANTIATE) {
        void *graph = NULL;
        if (worked && data->arguments != NULL) {
            memcpy(&graph, (const char *)data->arguments + CP_INSTANTIATED_AT, sizeof graph);
        }
        cp__edges_end(graph);
    }
}

/* It ends. */
static MT_NOINLINE void leave(thread *t, const known_call *call, const cp__call_data *data)
{
    t->key = 0;
    if (MT_UNLIKELY(data->context != t->context && data->context != NULL)) {
        note_context(t, data->context);
    }
    mtprof_end(*data->kept);
    if (MT_UNLIKELY(call->rule.kind >= CALL_CAPTURE)) {
        end_special(&call->rule, data);
    }
}

/* CU2 */
static MT_COLD void detach(uint32_t domain, const cp__call_data *data)
{
    uint32_t wanted = DETACH_WANTED;
    bool api = domain == CP_DOMAIN_DRIVER || domain == CP_DOMAIN_RUNTIME;
    if (api && data->site == CP_SITE_EXIT &&
        __atomic_compare_exchange_n(&detaching, &wanted, DETACH_BEGUN, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        detach_result = cp__cuda.finalize();
        __atomic_store_n(&detaching, DETACHED, __ATOMIC_RELEASE);
    }
}

/* A callback that is none of a call we asked for. */
static MT_COLD void on_resource(uint32_t domain, uint32_t id, const cp__resource_data *data)
{
    if (domain == CP_DOMAIN_RESOURCE && id == CP_RESOURCE_CONTEXT_DESTROY_STARTING) {
        forget_context(data->context);
    } else if (domain == CP_DOMAIN_RESOURCE) {
        cp__on_graph(id, data->descriptor);
    }
}

void cp__on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
    (void)user;
    if (MT_UNLIKELY(__atomic_load_n(&detaching, __ATOMIC_RELAXED) != DETACH_NOT)) {
        detach(domain, data);
        return;
    }
    if (MT_UNLIKELY(domain != CP_DOMAIN_DRIVER && domain != CP_DOMAIN_RUNTIME)) {
        on_resource(domain, id, data);
        return;
    }
    uint8_t place = id < MOST_IDS ? calls.index[domain - 1][id] : 0;
    if (place == 0) {
        return;
    }
    thread *t = &mine;
    const cp__call_data *call_data = data;
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    if (MT_UNLIKELY(t->generation != now)) {
        *t = (thread){.generation = now};
    }
    if (call_data->site == CP_SITE_ENTER) {
        if (t->depth++ == 0) {
            enter(t, &calls.items[place - 1], call_data);
        } else if (call_data->correlation != t->correlation && t->key != 0) { /* CC1 */
            cp__join_put(call_data->correlation, t->key);
        }
    } else if (t->depth > 0 && --t->depth == 0) {
        leave(t, &calls.items[place - 1], call_data);
    }
}

/* ---- recordings ---- */

void cp__calls_begin(void)
{
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&captures, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < MOST_CONTEXTS; i++) {
        __atomic_store_n(&contexts[i], NULL, __ATOMIC_RELAXED);
    }
}

void cp__detach_at_exit(bool wanted)
{
    __atomic_store_n(&detaching, wanted ? DETACH_WANTED : DETACH_NOT, __ATOMIC_RELEASE);
}

bool cp__detached(int *result)
{
    bool done = __atomic_load_n(&detaching, __ATOMIC_ACQUIRE) == DETACHED;
    *result = done ? detach_result : CP_OK;
    return done;
}

void cp__calls_after_fork(void)
{
    cp__calls_begin();
    cp__detach_at_exit(false);
}
