/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording of launches costs with CUPTI alone, for gpu_cost.py: records of kernels into
 * buffers that nobody reads, and callbacks of launches that do nothing. Nothing of ours is in it.
 */
#include "sources/cupti/cupti_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int floor_start(void);
void floor_stop(void);

enum {
    BUFFER_BYTES = 2 << 20,
    LAUNCH_RUNTIME = 211, /* cudaLaunchKernel_v7000 */
    LAUNCH_DRIVER = 307,  /* cuLaunchKernel */
    DRIVER_VERSION = 2    /* cuDriverGetVersion */
};

static struct {
    int (*subscribe)(void **subscriber, cp__callback *callback, void *user);
    int (*enable_callback)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id);
    int (*enable)(uint32_t kind);
    int (*disable)(uint32_t kind);
    int (*register_buffers)(cp__buffer_wanted *wanted, cp__buffer_done *done);
    int (*flush)(uint32_t flags);
    int (*finalize)(void);
    int (*driver_version)(int *version);
} cupti;

static void *subscriber;
static int leaving;

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
    } symbols[] = {
        {&cupti.subscribe, "cuptiSubscribe"},
        {&cupti.enable_callback, "cuptiEnableCallback"},
        {&cupti.enable, "cuptiActivityEnable"},
        {&cupti.disable, "cuptiActivityDisable"},
        {&cupti.register_buffers, "cuptiActivityRegisterCallbacks"},
        {&cupti.flush, "cuptiActivityFlushAll"},
        {&cupti.finalize, "cuptiFinalize"},
        {&cupti.driver_version, "cuDriverGetVersion"},
    };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    library = library != NULL ? library : dlopen("/usr/local/cuda/lib64/libcupti.so", RTLD_NOW);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = library != NULL ? dlsym(library, symbols[i].name) : NULL;
        found = found == NULL && driver != NULL ? dlsym(driver, symbols[i].name) : found;
        if (found == NULL) {
            return -1;
        }
        memcpy(symbols[i].slot, &found, sizeof found);
    }
    return 0;
}

int floor_start(void)
{
    if (cupti.subscribe == NULL && open_cupti() != 0) {
        return -1;
    }
    return cupti.subscribe(&subscriber, on_call, NULL) == CP_OK &&
                   cupti.register_buffers(wanted, done) == CP_OK &&
                   cupti.enable(CP_KIND_KERNEL) == CP_OK &&
                   cupti.enable_callback(1, subscriber, CP_DOMAIN_RUNTIME, LAUNCH_RUNTIME) ==
                       CP_OK &&
                   cupti.enable_callback(1, subscriber, CP_DOMAIN_DRIVER, LAUNCH_DRIVER) == CP_OK
               ? 0
               : -1;
}

void floor_stop(void)
{
    int version = 0;
    (void)cupti.flush(0);
    (void)cupti.disable(CP_KIND_KERNEL);
    (void)cupti.enable_callback(1, subscriber, CP_DOMAIN_DRIVER, DRIVER_VERSION);
    leaving = 1;
    (void)cupti.driver_version(&version);
}
