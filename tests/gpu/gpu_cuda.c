/* SPDX-License-Identifier: Apache-2.0
 *
 * A C program that uses a GPU through CUDA's driver, under libmtprof and libmtprof_cupti. It needs
 * nothing of CUDA to build; a machine without a GPU ends it with a reason and status 77.
 */
#include <mtprof/cupti.h>
#include <mtprof/model.h>
#include <mtprof/mtprof.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAUNCHES = 1000,
    CYCLES = 50,
    BYTES = 1 << 20
};

static int passed;
static int failed;

static void check(int good, const char *what)
{
    passed += good != 0;
    failed += good == 0;
    if (!good) {
        printf("FAIL %s\n", what);
    }
}

static const char program[] = ".version 7.0\n"
                              ".target sm_52\n"
                              ".address_size 64\n"
                              ".visible .entry _Z4fillPfi(.param .u64 to, .param .u32 n)\n"
                              "{\n"
                              "    ret;\n"
                              "}\n";

static struct {
    int (*init)(unsigned flags);
    int (*device)(void *device, int index);
    int (*context)(void **context, int device);
    int (*set)(void *context);
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **arguments, void **extra);
    int (*take)(uint64_t *memory, size_t bytes);
    int (*give)(uint64_t memory);
    int (*to_device)(uint64_t to, const void *from, size_t bytes);
    int (*to_host)(void *to, uint64_t from, size_t bytes);
    int (*fill)(uint64_t to, unsigned char value, size_t bytes);
    int (*wait)(void);
} cuda;

static int open_cuda(void)
{
    const struct {
        void *slot;
        const char *name;
    } symbols[] = {
        {&cuda.init, "cuInit"},
        {&cuda.device, "cuDeviceGet"},
        {&cuda.context, "cuDevicePrimaryCtxRetain"},
        {&cuda.set, "cuCtxSetCurrent"},
        {&cuda.load, "cuModuleLoadData"},
        {&cuda.function, "cuModuleGetFunction"},
        {&cuda.launch, "cuLaunchKernel"},
        {&cuda.take, "cuMemAlloc_v2"},
        {&cuda.give, "cuMemFree_v2"},
        {&cuda.to_device, "cuMemcpyHtoD_v2"},
        {&cuda.to_host, "cuMemcpyDtoH_v2"},
        {&cuda.fill, "cuMemsetD8_v2"},
        {&cuda.wait, "cuCtxSynchronize"},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        return 0;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            return 0;
        }
        memcpy(symbols[i].slot, &found, sizeof found);
    }
    return 1;
}

static uint64_t memory;
static void *function;
static char host[BYTES];

static int prepare(void)
{
    int device = 0;
    void *context = NULL;
    void *module = NULL;
    return open_cuda() && cuda.init(0) == 0 && cuda.device(&device, 0) == 0 &&
           cuda.context(&context, device) == 0 && cuda.set(context) == 0 &&
           cuda.load(&module, program) == 0 &&
           cuda.function(&function, module, "_Z4fillPfi") == 0 && cuda.take(&memory, BYTES) == 0;
}

static void launch(unsigned count)
{
    int n = BYTES / 4;
    void *arguments[] = {&memory, &n};
    for (unsigned i = 0; i < count; i++) {
        check(cuda.launch(function, 4, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL) == 0,
              "cuLaunchKernel");
    }
}

/* How many events of a kind the session has. */
static uint64_t count_kind(mtprof_session *session, uint32_t kind, const char *name)
{
    mtprof_model *model = NULL;
    uint64_t count = 0;
    if (mtprof_model_from_session(session, NULL, &model) != MTPROF_OK) {
        return 0;
    }
    mtprof_column kinds = {NULL, 0, 0, 0};
    mtprof_column names = {NULL, 0, 0, 0};
    if (mtprof_model_get_column(model, MTPROF_COLUMN_KIND, &kinds) == MTPROF_OK &&
        mtprof_model_get_column(model, MTPROF_COLUMN_NAME, &names) == MTPROF_OK) {
        for (uint64_t i = 0; i < kinds.count; i++) {
            mtprof_text text = mtprof_model_name(model, ((const uint32_t *)names.data)[i]);
            count += ((const uint8_t *)kinds.data)[i] == kind &&
                     (name == NULL ||
                      (text.length == strlen(name) && memcmp(text.bytes, name, text.length) == 0));
        }
    }
    mtprof_model_free(model);
    return count;
}

int main(void)
{
    mtprof_cupti_info info = {.struct_size = sizeof info};
    if (!prepare()) {
        printf("no GPU: CUDA's driver does not work here\n");
        return 77;
    }
    (void)dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL); /* for the names of kernels */
    check(mtprof_cupti_attach(&info) == MTPROF_OK, info.missing);
    printf("libcupti %u: %s\n", info.version, info.library);

    mtprof_session *session = NULL;
    mtprof_config config = {.struct_size = sizeof config};
    check(mtprof_session_start(&config, &session) == MTPROF_OK, "session_start");
    launch(LAUNCHES);
    check(cuda.to_device(memory, host, BYTES) == 0, "cuMemcpyHtoD");
    check(cuda.fill(memory, 1, BYTES) == 0, "cuMemsetD8");
    check(cuda.to_host(host, memory, BYTES) == 0, "cuMemcpyDtoH");
    check(mtprof_session_stop(session) == MTPROF_OK, "session_stop");
    check(host[BYTES - 1] == 1, "the copies copied");
    mtprof_health health = {.struct_size = sizeof health};
    check(mtprof_session_get_health(session, &health) == MTPROF_OK, "health");
    check(health.launches == LAUNCHES + 3 && health.unmatched == 0 && health.lost == 0,
          "every launch has its work");
    check(count_kind(session, MTPROF_EVENT_KIND_KERNEL, "fill(float*, int)") == LAUNCHES,
          "kernels and their names");
    check(count_kind(session, MTPROF_EVENT_KIND_COPY, NULL) == 2, "copies");
    check(count_kind(session, MTPROF_EVENT_KIND_SET, "Memset (Device)") == 1, "sets");
    check(count_kind(session, MTPROF_EVENT_KIND_RUNTIME, "cuLaunchKernel") == LAUNCHES, "calls");
    mtprof_session_close(session);

    /* Work in flight when the recording ends, again and again. */
    uint64_t kernels = 0;
    for (int i = 0; i < CYCLES; i++) {
        check(mtprof_session_start(&config, &session) == MTPROF_OK, "session_start");
        launch(10);
        check(mtprof_session_stop(session) == MTPROF_OK, "session_stop");
        check(mtprof_session_get_health(session, &health) == MTPROF_OK && health.unmatched == 0,
              "no launch is without its work");
        kernels += count_kind(session, MTPROF_EVENT_KIND_KERNEL, NULL);
        mtprof_session_close(session);
    }
    check(kernels == (uint64_t)CYCLES * 10, "kernels of every cycle");
    (void)mtprof_cupti_attach(&info);
    check(!info.running && info.unreadable == 0 && info.dropped == 0 && info.unjoined == 0 &&
              info.missing[0] == '\0',
          "nothing is missing");
    (void)cuda.give(memory);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
