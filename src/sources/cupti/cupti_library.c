/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding libcupti and libcuda, and their functions by their symbols. The user who starts a program
 * may choose the libcupti: CUPTI_LIBRARY; and ask for more of what it can tell: MTPROF_CUPTI.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "base/shared_object.h"
#include "sources/cupti/cupti_impl.h"

#include <mtprof/status.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cp__library cp__cuda;

typedef struct symbol {
    void *slot;
    const char *name;
} symbol;

/* The name of the one that is missing, or NULL. */
static const char *find_all(void *handle, const symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!mtb_find_symbol(handle, symbols[i].name, symbols[i].slot)) {
            return symbols[i].name;
        }
    }
    return NULL;
}

/* The file of a library that is open; "": not known. */
static void path_of(void *handle, char *path, size_t bytes)
{
    struct link_map *map = NULL;
    path[0] = '\0';
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name != NULL) {
        snprintf(path, bytes, "%s", map->l_name);
    }
}

/* ---- libcupti ---- */

static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12"};
static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

static void *find_loaded(void)
{
    void *handle = NULL;
    for (size_t i = 0; i < MT_COUNT(sonames) && handle == NULL; i++) {
        handle = mtb_find_loaded(sonames[i]);
    }
    return handle;
}

/* The packages of CUDA's libraries lie side by side, and beside torch/lib: nvidia/cuda_runtime/lib
 * and nvidia/cuda_cupti/lib for CUDA 12, all of them in nvidia/cu13/lib for CUDA 13. */
static void *open_beside(const char *loaded)
{
    static const char *const places[] = {
        "libcupti.so.13",
        "libcupti.so.12",
        "../../cuda_cupti/lib/libcupti.so.12",
        "../../nvidia/cu13/lib/libcupti.so.13",
        "../../nvidia/cuda_cupti/lib/libcupti.so.12",
    };
    char path[PATH_MAX];
    char whole[PATH_MAX + 64];
    void *neighbour = mtb_find_loaded(loaded);
    if (neighbour == NULL) {
        return NULL;
    }
    path_of(neighbour, path, sizeof path);
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    void *handle = NULL;
    for (size_t i = 0; i < MT_COUNT(places) && handle == NULL; i++) {
        snprintf(whole, sizeof whole, "%s/%s", path, places[i]);
        handle = mtb_open_shared(whole);
    }
    return handle;
}

static void *open_anywhere(void)
{
    static const char *const torch[] = {"libtorch_cuda.so", "libc10_cuda.so"};
    static const char *const toolkits[] = {
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so",
        "/usr/local/cuda/lib/libcupti.so",
    };
    void *handle = find_loaded();
    for (size_t i = 0; i < MT_COUNT(runtimes) && handle == NULL; i++) {
        handle = open_beside(runtimes[i]);
    }
    for (size_t i = 0; i < MT_COUNT(torch) && handle == NULL; i++) {
        handle = open_beside(torch[i]);
    }
    for (size_t i = 0; i < MT_COUNT(sonames) && handle == NULL; i++) {
        handle = mtb_open_shared(sonames[i]);
    }
    for (size_t i = 0; i < MT_COUNT(toolkits) && handle == NULL; i++) {
        handle = mtb_open_shared(toolkits[i]);
    }
    return handle;
}

static int open_cupti(void **handle)
{
    const char *chosen = secure_getenv("CUPTI_LIBRARY");
    if (chosen != NULL && chosen[0] != '\0') {
        *handle = mtb_open_shared(chosen);
        return *handle != NULL
                   ? MTPROF_OK
                   : mtb_fail(MTPROF_ENOTSUP, "cupti: CUPTI_LIBRARY=%s cannot be opened", chosen);
    }
    *handle = open_anywhere();
    return *handle != NULL ? MTPROF_OK
                           : mtb_fail(MTPROF_ENOTSUP,
                                      "cupti: no libcupti is loaded or found; CUPTI_LIBRARY may "
                                      "name the file");
}

static int find_cupti(cp__library *cuda, cp__found *found)
{
    void *handle = NULL;
    MT_TRY(open_cupti(&handle));
    const symbol symbols[] = {
        {&cuda->version, "cuptiGetVersion"},
        {&cuda->subscribe, "cuptiSubscribe"},
        {&cuda->unsubscribe, "cuptiUnsubscribe"},
        {&cuda->enable_callback, "cuptiEnableCallback"},
        {&cuda->callback_name, "cuptiGetCallbackName"},
        {&cuda->enable, "cuptiActivityEnable"},
        {&cuda->disable, "cuptiActivityDisable"},
        {&cuda->register_buffers, "cuptiActivityRegisterCallbacks"},
        {&cuda->register_clock, "cuptiActivityRegisterTimestampCallback"},
        {&cuda->next_record, "cuptiActivityGetNextRecord"},
        {&cuda->dropped, "cuptiActivityGetNumDroppedRecords"},
        {&cuda->flush, "cuptiActivityFlushAll"},
        {&cuda->finalize, "cuptiFinalize"},
        {&cuda->result_text, "cuptiGetResultString"},
        {&cuda->node_number, "cuptiGetGraphNodeId"},
    };
    const char *missing = find_all(handle, symbols, MT_COUNT(symbols));
    path_of(handle, found->path, sizeof found->path);
    if (missing != NULL) {
        return mtb_fail(MTPROF_ENOTSUP, "cupti: %s has no %s; those of CUDA 12.0 to 13.4 have it",
                        found->path, missing);
    }
    int result = cuda->version(&found->version);
    uint32_t version = result == CP_OK ? found->version : 0;
    bool known = (version >= CP_VERSION_12_0 && version <= CP_VERSION_12_9) ||
                 (version >= CP_VERSION_13_0 && version < CP_VERSION_13_5);
    return known ? MTPROF_OK
                 : mtb_fail(MTPROF_ENOTSUP,
                            "cupti: %s is of version %u; 18 to 28 (CUDA 12) and 130000 to 130499 "
                            "(CUDA 13.0 to 13.4) are known",
                            found->path, version);
}

/* ---- libcudart, which programs may have in them instead ---- */

static void find_runtime(cp__library *cuda)
{
    void *handle = NULL;
    for (size_t i = 0; i < MT_COUNT(runtimes) && handle == NULL; i++) {
        handle = mtb_find_loaded(runtimes[i]);
    }
    if (handle != NULL) {
        (void)mtb_find_symbol(handle, "cudaRuntimeGetVersion", &cuda->runtime_version);
    }
}

/* ---- libcuda ---- */

static int find_driver(cp__library *cuda)
{
    const symbol symbols[] = {
        {&cuda->driver_version, "cuDriverGetVersion"},
        {&cuda->device_count, "cuDeviceGetCount"},
        {&cuda->device_name, "cuDeviceGetName"},
        {&cuda->device_memory, "cuDeviceTotalMem_v2"},
        {&cuda->device_attribute, "cuDeviceGetAttribute"},
        {&cuda->context_push, "cuCtxPushCurrent_v2"},
        {&cuda->context_pop, "cuCtxPopCurrent_v2"},
        {&cuda->context_wait, "cuCtxSynchronize"},
        {&cuda->stream_captures, "cuStreamIsCapturing"},
    };
    void *handle = mtb_find_loaded("libcuda.so.1");
    if (handle == NULL) {
        handle = mtb_open_shared("libcuda.so.1");
    }
    if (handle == NULL) {
        return mtb_fail(MTPROF_ENOTSUP,
                        "cupti: libcuda.so.1 cannot be opened: is there an NVIDIA driver?");
    }
    const char *missing = find_all(handle, symbols, MT_COUNT(symbols));
    (void)mtb_find_symbol(handle, "cuGraphGetEdges", &cuda->graph_edges);
    (void)mtb_find_symbol(handle, "cuGraphGetEdges_v2", &cuda->graph_edges_2);
    return missing == NULL ? MTPROF_OK
                           : mtb_fail(MTPROF_ENOTSUP, "cupti: libcuda.so.1 has no %s", missing);
}

int cp__library_open(cp__found *found)
{
#ifdef __x86_64__
    cp__library cuda = {0};
    MT_TRY(find_cupti(&cuda, found));
    MT_TRY(find_driver(&cuda));
    find_runtime(&cuda);
    cp__cuda = cuda;
    return MTPROF_OK;
#else
    (void)found;
    return mtb_fail(MTPROF_ENOTSUP, "cupti: the layout of its records is known for x86-64 alone");
#endif
}

/* ---- what users ask for ---- */

int cp__options_asked(uint32_t *options)
{
    static const struct {
        const char *name;
        uint32_t option;
    } known[] = {{"waits", MTPROF_CUPTI_WAITS}, {"dependencies", MTPROF_CUPTI_DEPENDENCIES}};
    const char *at = secure_getenv("MTPROF_CUPTI");
    *options = 0;
    while (at != NULL && at[0] != '\0') {
        size_t length = strcspn(at, ",");
        uint32_t option = 0;
        for (size_t i = 0; i < MT_COUNT(known); i++) {
            bool same = strlen(known[i].name) == length && memcmp(at, known[i].name, length) == 0;
            option = same ? known[i].option : option;
        }
        if (option == 0) {
            return mtb_fail(MTPROF_EINVAL,
                            "cupti: MTPROF_CUPTI: '%.*s' is neither waits nor dependencies",
                            (int)(length < 64 ? length : 64), at);
        }
        *options |= option;
        at += length + (at[length] == ',');
    }
    return MTPROF_OK;
}
