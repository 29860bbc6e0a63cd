/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPUs are, and waiting for them.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "sources/cupti/cupti_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_DEVICES = 64,
    NAME_BYTES = 128,
    REGISTERS_AT_ONCE = 256 /* a warp's registers come in pieces of that many */
};

static int attribute(int device, int which)
{
    int value = 0;
    return cp__cuda.device_attribute(&value, which, device) == 0 ? value : 0;
}

/* ---- properties ---- */

static struct {
    uint32_t state; /* atomic: 0 not asked, 1 being asked, 2 known. Partner: the other readers' */
    uint32_t count;
    cp__device items[MOST_DEVICES];
} devices;

static void ask(void)
{
    int count = 0;
    (void)cp__cuda.device_count(&count);
    uint32_t n = 0;
    for (; n < MOST_DEVICES && (int)n < count; n++) {
        devices.items[n] = (cp__device){
            .processors = attribute((int)n, CP_ATTRIBUTE_PROCESSORS),
            .warp = attribute((int)n, CP_ATTRIBUTE_WARP),
            .threads = attribute((int)n, CP_ATTRIBUTE_THREADS_PER_PROCESSOR),
            .blocks = attribute((int)n, CP_ATTRIBUTE_BLOCKS_PER_PROCESSOR),
            .registers = attribute((int)n, CP_ATTRIBUTE_REGISTERS_PER_PROCESSOR),
            .shared = attribute((int)n, CP_ATTRIBUTE_SHARED_PER_PROCESSOR),
            .shared_reserved = attribute((int)n, CP_ATTRIBUTE_SHARED_RESERVED),
        };
    }
    devices.count = n;
}

const cp__device *cp__device_of(uint32_t number)
{
    uint32_t none = 0;
    if (__atomic_load_n(&devices.state, __ATOMIC_ACQUIRE) == 0 &&
        __atomic_compare_exchange_n(&devices.state, &none, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        ask();
        __atomic_store_n(&devices.state, devices.count > 0 ? 2 : 0, __ATOMIC_RELEASE);
    }
    bool known = __atomic_load_n(&devices.state, __ATOMIC_ACQUIRE) == 2;
    return known && number < devices.count && devices.items[number].processors > 0
               ? &devices.items[number]
               : NULL;
}

/* What JSON would need care for becomes a question mark. */
static void plain_name(char *name)
{
    for (; *name != '\0'; name++) {
        *name = *name >= ' ' && *name <= '~' && *name != '"' && *name != '\\' ? *name : '?';
    }
}

size_t cp__describe(char *json, size_t room)
{
    static const struct {
        const char *key;
        int attribute;
    } members[] = {
        {"computeMajor", CP_ATTRIBUTE_MAJOR},
        {"computeMinor", CP_ATTRIBUTE_MINOR},
        {"maxThreadsPerBlock", CP_ATTRIBUTE_THREADS_PER_BLOCK},
        {"maxThreadsPerMultiprocessor", CP_ATTRIBUTE_THREADS_PER_PROCESSOR},
        {"regsPerBlock", CP_ATTRIBUTE_REGISTERS_PER_BLOCK},
        {"warpSize", CP_ATTRIBUTE_WARP},
        {"sharedMemPerBlock", CP_ATTRIBUTE_SHARED_PER_BLOCK},
        {"numSms", CP_ATTRIBUTE_PROCESSORS},
        {"regsPerMultiprocessor", CP_ATTRIBUTE_REGISTERS_PER_PROCESSOR},
        {"sharedMemPerBlockOptin", CP_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN},
        {"sharedMemPerMultiprocessor", CP_ATTRIBUTE_SHARED_PER_PROCESSOR},
    };
    size_t length = 0;
    int count = 0;
    (void)cp__cuda.device_count(&count);
    for (int device = 0; device < count && device < MOST_DEVICES; device++) {
        char item[1024];
        char name[NAME_BYTES] = "";
        size_t bytes = 0;
        if (cp__cuda.device_name(name, sizeof name, device) != 0 ||
            cp__cuda.device_memory(&bytes, device) != 0) {
            continue;
        }
        name[sizeof name - 1] = '\0';
        plain_name(name);
        int end = snprintf(item, sizeof item,
                           "%s{\"id\": %d, \"name\": \"%s\", "
                           "\"totalGlobalMem\": %zu",
                           length != 0 ? ", " : "", device, name, bytes);
        for (size_t i = 0; i < MT_COUNT(members); i++) {
            end += snprintf(item + end, sizeof item - (size_t)end, ", \"%s\": %d", members[i].key,
                            attribute(device, members[i].attribute));
        }
        item[end++] = '}';
        if (length + (size_t)end < room) {
            memcpy(json + length, item, (size_t)end);
            json[length + (size_t)end] = '\0';
        }
        length += (size_t)end;
    }
    return length;
}

/* ---- occupancy ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

double cp__occupancy(const cp__device *device, const cp__kernel *kernel)
{
    double blocks = (double)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
    double threads = (double)kernel->block[0] * kernel->block[1] * kernel->block[2];
    if (device->warp <= 0 || device->threads < device->warp || !(blocks > 0) || !(threads > 0) ||
        threads > device->threads) {
        return 0;
    }
    int warps = (int)((threads + device->warp - 1) / device->warp);
    int most = device->threads / device->warp;
    int resident = least(most / warps, device->blocks);
    uint64_t registers =
        mtb_round_up((uint64_t)kernel->registers * (uint64_t)device->warp, REGISTERS_AT_ONCE) *
        (uint64_t)warps;
    if (registers > 0) {
        resident = least(resident, (int)((uint64_t)device->registers / registers));
    }
    int64_t shared = (int64_t)kernel->static_shared + kernel->dynamic_shared;
    if (shared > 0) {
        resident = least(resident, (int)(device->shared / (shared + device->shared_reserved)));
    }
    double spread = blocks / device->processors;
    double at_once = spread < resident ? spread : resident;
    double percent = 100 * at_once * warps / most;
    return percent < 100 ? percent : 100;
}

/* ---- waiting ---- */

/* A wait has a thread of its own: CUDA's has no limit. Whoever leaves last frees it. */
typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, alone; /* alone: nobody waits for it any more */
    int failure;
    uint32_t count;
    void *contexts[];
} waiting;

static void free_waiting(waiting *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    mtb_free(w);
}

static void *wait_for_contexts(void *argument)
{
    waiting *w = argument;
    int failure = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        void *before = NULL;
        if (cp__cuda.context_push(w->contexts[i]) == 0) { /* else it is gone */
            int result = cp__cuda.context_wait();
            failure = failure == 0 ? result : failure;
            (void)cp__cuda.context_pop(&before);
        }
    }
    pthread_mutex_lock(&w->lock);
    w->failure = failure;
    w->done = true;
    bool alone = w->alone;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (alone) {
        free_waiting(w);
    }
    return NULL;
}

static struct timespec after(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t sum = (uint64_t)t.tv_nsec + ns % 1000000000u;
    t.tv_sec += (time_t)(ns / 1000000000u + sum / 1000000000u);
    t.tv_nsec = (long)(sum % 1000000000u);
    return t;
}

bool cp__wait_for_work(void *const *contexts, uint32_t count, uint64_t timeout_ns, int *failure)
{
    *failure = 0;
    pthread_condattr_t monotonic;
    pthread_t thread;
    waiting *w = mtb_calloc(1, sizeof *w + count * sizeof contexts[0]);
    if (w == NULL) {
        return false;
    }
    w->count = count;
    memcpy(w->contexts, contexts, count * sizeof contexts[0]);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&thread, NULL, wait_for_contexts, w) != 0) {
        free_waiting(w);
        return false;
    }
    struct timespec until = after(timeout_ns);
    int status = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->done && status == 0) {
        status = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    }
    bool done = w->done;
    *failure = done ? w->failure : 0;
    w->alone = !done;
    pthread_mutex_unlock(&w->lock);
    if (done) {
        pthread_join(thread, NULL);
        free_waiting(w);
    } else {
        pthread_detach(thread);
    }
    return done;
}
