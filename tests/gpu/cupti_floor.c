/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording of launches costs with CUPTI alone, for gpu_cost.py: records of kernels into
 * buffers that nobody reads, and callbacks of launches that do nothing. Nothing of ours is in it.
 * Variants leave out one or the other, or ask CUPTI for something else.
 */
#include "gpu/cupti_floor.h"

#include "sources/cupti/cupti_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUFFER_BYTES = 2 << 20,
    DRIVER_VERSION = 2, /* cuDriverGetVersion */

    /* CUpti_ActivityAttribute */
    DEVICE_BUFFER_SIZE = 0,
    ZEROED_BUFFERS = 5,
    DEVICE_BUFFERS_AT_FIRST = 6,
    HOST_PINNED = 8,
    BUFFERS_PER_THREAD = 9
};

/* cudaLaunchKernel_v7000 and _ptsz_v7000, cudaLaunchKernelExC_v11060, __cudaLaunchKernel_v13000 and
 * _ptsz_v13000; cuLaunchKernel and cuLaunchKernelEx. */
static const uint32_t runtime_ids[] = {211, 214, 430, 505, 506};
static const uint32_t driver_ids[] = {307, 652};

enum {
    RECORDS = 1 << 0,
    RUNTIME = 1 << 1,
    DRIVER = 1 << 2,
    SERIAL = 1 << 3,   /* one kernel at a time */
    API = 1 << 4,      /* records of the launching calls, in place of callbacks */
    HARDWARE = 1 << 5, /* times by the hardware: Blackwell and later */
    GETTID = 1 << 6,
    ZEROED = 1 << 7, /* we zero buffers, not CUPTI */
    SHARED = 1 << 8, /* one buffer for all threads */
    PINNED = 1 << 9, /* CUPTI's own buffers are in the host's memory */
    LARGE = 1 << 10, /* CUPTI's own buffers are large */
    PERIOD = 1 << 11,
    CLOCK = 1 << 12, /* CUPTI takes the host's time from a function of ours */
    ALL = RECORDS | RUNTIME | DRIVER
};

static const struct {
    const char *name;
    uint32_t asks;
} variants[] = {
    {"all", ALL},
    {"records", RECORDS},
    {"records+runtime", RECORDS | RUNTIME},
    {"records+driver", RECORDS | DRIVER},
    {"callbacks", RUNTIME | DRIVER},
    {"runtime", RUNTIME},
    {"driver", DRIVER},
    {"serial", SERIAL | RUNTIME | DRIVER},
    {"api-records", RECORDS | API},
    {"hardware", ALL | HARDWARE},
    {"gettid", ALL | GETTID},
    {"zeroed", ALL | ZEROED},
    {"shared", ALL | SHARED},
    {"pinned", ALL | PINNED},
    {"large", ALL | LARGE},
    {"period", ALL | PERIOD},
    {"clock", ALL | CLOCK},
};

static struct {
    int (*subscribe)(void **subscriber, cp__callback *callback, void *user);
    int (*enable_callback)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id);
    int (*enable)(uint32_t kind);
    int (*disable)(uint32_t kind);
    int (*register_buffers)(cp__buffer_wanted *wanted, cp__buffer_done *done);
    int (*register_clock)(uint64_t (*clock)(void));
    int (*flush)(uint32_t flags);
    int (*finalize)(void);
    int (*driver_version)(int *version);
    /* Not in all versions: */
    int (*set_attribute)(int attribute, size_t *bytes, void *value);
    int (*set_thread_ids)(int type);
    int (*enable_runtime_call)(uint32_t id, uint8_t enable);
    int (*enable_hardware)(uint8_t enable);
    int (*set_period)(uint32_t milliseconds);
} cupti;

static void *subscriber;
static int leaving;
static uint32_t asked;

const char *floor_variant(int number)
{
    int count = (int)(sizeof variants / sizeof variants[0]);
    return number >= 0 && number < count ? variants[number].name : NULL;
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
    (void)user;
    (void)domain;
    const cp__call_data *call = data;
    if (leaving != 0 && id == DRIVER_VERSION && call->site == CP_SITE_EXIT) {
        leaving = 0;
        (void)cupti.finalize();
    }
}

static void wanted(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = aligned_alloc(4096, BUFFER_BYTES);
    *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
    *most_records = 0;
    if (*buffer != NULL && (asked & ZEROED) != 0) {
        memset(*buffer, 0, BUFFER_BYTES);
    }
}

static void done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t used)
{
    (void)context;
    (void)stream;
    (void)bytes;
    (void)used;
    free(buffer);
}

static int open_cupti(void)
{
    const struct {
        void *slot;
        const char *name;
        int may_be_missing;
    } symbols[] = {
        {&cupti.subscribe, "cuptiSubscribe", 0},
        {&cupti.enable_callback, "cuptiEnableCallback", 0},
        {&cupti.enable, "cuptiActivityEnable", 0},
        {&cupti.disable, "cuptiActivityDisable", 0},
        {&cupti.register_buffers, "cuptiActivityRegisterCallbacks", 0},
        {&cupti.register_clock, "cuptiActivityRegisterTimestampCallback", 0},
        {&cupti.flush, "cuptiActivityFlushAll", 0},
        {&cupti.finalize, "cuptiFinalize", 0},
        {&cupti.driver_version, "cuDriverGetVersion", 0},
        {&cupti.set_attribute, "cuptiActivitySetAttribute", 1},
        {&cupti.set_thread_ids, "cuptiSetThreadIdType", 1},
        {&cupti.enable_runtime_call, "cuptiActivityEnableRuntimeApi", 1},
        {&cupti.enable_hardware, "cuptiActivityEnableHWTrace", 1},
        {&cupti.set_period, "cuptiActivityFlushPeriod", 1},
    };
    const char *chosen = getenv("CUPTI_LIBRARY");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *library = chosen != NULL ? dlopen(chosen, RTLD_NOW) : dlopen("libcupti.so.13", RTLD_NOW);
    library = library != NULL ? library : dlopen("/usr/local/cuda/lib64/libcupti.so", RTLD_NOW);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = library != NULL ? dlsym(library, symbols[i].name) : NULL;
        found = found == NULL && driver != NULL ? dlsym(driver, symbols[i].name) : found;
        if (found == NULL && !symbols[i].may_be_missing) {
            return -1;
        }
        memcpy(symbols[i].slot, &found, sizeof found);
    }
    return 0;
}

static int set(int attribute, size_t bytes, void *value)
{
    return cupti.set_attribute != NULL && cupti.set_attribute(attribute, &bytes, value) == CP_OK;
}

static uint64_t read_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a variant asks of CUPTI before it begins. */
static int prepare(void)
{
    uint8_t on = 1;
    uint8_t off = 0;
    size_t bytes = 32 << 20;
    size_t count = 8;
    int good = 1;
    if ((asked & HARDWARE) != 0) {
        good = good && cupti.enable_hardware != NULL && cupti.enable_hardware(1) == CP_OK;
    }
    if ((asked & GETTID) != 0) {
        good = good && cupti.set_thread_ids != NULL && cupti.set_thread_ids(1) == CP_OK;
    }
    if ((asked & ZEROED) != 0) {
        good = good && set(ZEROED_BUFFERS, sizeof on, &on);
    }
    if ((asked & SHARED) != 0) {
        good = good && set(BUFFERS_PER_THREAD, sizeof off, &off);
    }
    if ((asked & PINNED) != 0) {
        good = good && set(HOST_PINNED, sizeof on, &on);
    }
    if ((asked & LARGE) != 0) {
        good = good && set(DEVICE_BUFFER_SIZE, sizeof bytes, &bytes) &&
               set(DEVICE_BUFFERS_AT_FIRST, sizeof count, &count);
    }
    if ((asked & CLOCK) != 0) {
        good = good && cupti.register_clock(read_clock) == CP_OK;
    }
    if ((asked & PERIOD) != 0) {
        good = good && cupti.set_period != NULL && cupti.set_period(500) == CP_OK;
    }
    return good;
}

static int enable_callbacks(uint32_t domain, const uint32_t *ids, size_t n)
{
    int some = 0;
    for (size_t i = 0; i < n; i++) { /* not every version has all of them */
        some |= cupti.enable_callback(1, subscriber, domain, ids[i]) == CP_OK;
    }
    return some;
}

static int enable_all(void)
{
    int good = 1;
    if ((asked & (RECORDS | SERIAL)) != 0) {
        uint32_t kind = (asked & SERIAL) != 0 ? CP_KIND_KERNEL_SERIAL : CP_KIND_KERNEL;
        good = good && cupti.enable(kind) == CP_OK;
    }
    if ((asked & API) != 0) {
        int some = 0;
        for (size_t i = 0; i < sizeof runtime_ids / sizeof runtime_ids[0]; i++) {
            some |= cupti.enable_runtime_call != NULL &&
                    cupti.enable_runtime_call(runtime_ids[i], 1) == CP_OK;
        }
        good = good && some;
    }
    if ((asked & RUNTIME) != 0) {
        good = good && enable_callbacks(CP_DOMAIN_RUNTIME, runtime_ids,
                                        sizeof runtime_ids / sizeof runtime_ids[0]);
    }
    if ((asked & DRIVER) != 0) {
        good = good && enable_callbacks(CP_DOMAIN_DRIVER, driver_ids,
                                        sizeof driver_ids / sizeof driver_ids[0]);
    }
    return good;
}

int floor_start(const char *variant)
{
    uint32_t asks = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        asks = strcmp(variants[i].name, variant) == 0 ? variants[i].asks : asks;
    }
    if (asks == 0 || (cupti.subscribe == NULL && open_cupti() != 0) ||
        cupti.subscribe(&subscriber, on_call, NULL) != CP_OK) {
        return -1;
    }
    asked = asks;
    if (prepare() && cupti.register_buffers(wanted, done) == CP_OK && enable_all()) {
        return 0;
    }
    floor_stop();
    return -1;
}

void floor_stop(void)
{
    int version = 0;
    (void)cupti.flush(0);
    (void)cupti.disable((asked & SERIAL) != 0 ? CP_KIND_KERNEL_SERIAL : CP_KIND_KERNEL);
    (void)cupti.enable_callback(1, subscriber, CP_DOMAIN_DRIVER, DRIVER_VERSION);
    leaving = 1;
    (void)cupti.driver_version(&version);
}
