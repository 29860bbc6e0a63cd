/* SPDX-License-Identifier: Apache-2.0
 *
 * Backends in shared objects: found by name, opened once, never closed. This is the only place in
 * the libraries that reads the environment: the user who starts a program chooses its accelerator.
 */
#include "base/fail.h"
#include "base/shared_object.h"
#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/thread/thread_cache.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 1024
};

static pthread_once_t look_once = PTHREAD_ONCE_INIT;
static char trouble[MTB_MESSAGE_BYTES]; /* written under look_once */

/* One thread opens and registers at a time. Not an mtb_lock: the profiler records nothing from a
 * thread that holds one, and registering a backend adds a source to the profiler. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

void mt__backend_load_after_fork(void)
{
    (void)pthread_mutex_init(&loading, NULL); /* its holder is not in the child */
}

/* ---- what a shared object gets ---- */

static const char *setting(const char *name)
{
    char variable[128];
    int length = snprintf(variable, sizeof variable, "MINDTORCH_NPU_%s", name);
    return length > 0 && (size_t)length < sizeof variable ? secure_getenv(variable) : NULL;
}

/* ---- finding ---- */

/* The file that the kernel has mapped at an address; "" if unknown. */
static void mapped_file(const void *address, char path[PATH_BYTES])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_BYTES + 128];
    path[0] = '\0';
    while (maps != NULL && path[0] == '\0' && fgets(line, sizeof line, maps) != NULL) {
        /* begin-end permissions offset device inode   path */
        char *after = NULL;
        uintptr_t begin = strtoul(line, &after, 16);
        uintptr_t end = *after == '-' ? strtoul(after + 1, NULL, 16) : 0;
        const char *name = strchr(line, '/');
        if ((uintptr_t)address >= begin && (uintptr_t)address < end && name != NULL) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(path, PATH_BYTES, "%s", name);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

/* The folder of the library, or program, that this code is part of; "" if unknown. */
static void own_folder(char folder[PATH_BYTES])
{
    Dl_info info;
    folder[0] = '\0';
    if (dladdr(&look_once, &info) != 0 && info.dli_fname != NULL && info.dli_fname[0] == '/') {
        (void)snprintf(folder, PATH_BYTES, "%s", info.dli_fname);
    } else {
        /* The name of a program is the one it was started with ("./train"), which is wrong once it
         * has changed its working folder. */
        mapped_file((const void *)(uintptr_t)&own_folder, folder);
    }
    char *slash = folder[0] == '/' ? strrchr(folder, '/') : NULL;
    folder[slash != NULL ? slash - folder : 0] = '\0';
}

static void *open_in(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    bool nowhere = folder == NULL || folder[0] == '\0';
    int length = snprintf(path, sizeof path, "%s%slibmindtorch_%s.so", nowhere ? "" : folder,
                          nowhere ? "" : "/", name);
    return length > 0 && (size_t)length < sizeof path ? mtb_open_shared(path) : NULL;
}

static void *find(const char *name)
{
    char beside[PATH_BYTES];
    if (strchr(name, '/') != NULL) {
        return mtb_open_shared(name);
    }
    const char *folder = secure_getenv("MINDTORCH_BACKENDS");
    void *handle = folder != NULL && folder[0] != '\0' ? open_in(folder, name) : NULL;
    if (handle == NULL) {
        own_folder(beside);
        handle = beside[0] != '\0' ? open_in(beside, name) : NULL;
    }
    return handle != NULL ? handle : open_in(NULL, name);
}

/* Under `loading`. */
static int load(const char *name)
{
    static mt_backend_host host = {
        .struct_size = sizeof host,
        .version = MT_BACKEND_VERSION,
        .fail = mt_fail,
        .last_error = mt_last_error,
        .setting = setting,
    };
    mt_backend_open_fn *open = NULL;
    const mt_backend *backend = NULL;
    void *handle = find(name);
    if (handle == NULL) {
        const char *why = dlerror();
        return mtb_fail(MT_ERUNTIME, "backend %.100s cannot be opened: %.300s", name,
                        why != NULL ? why : "no such file");
    }
    if (!mtb_find_symbol(handle, "mt_backend_open", &open)) {
        return mtb_fail(MT_ERUNTIME, "backend %.100s is no backend: it has no mt_backend_open",
                        name);
    }
    host.cpu = mt__cpu_backend();
    MT_TRY(open(&host, &backend));
    return mt_backend_register(MT_DEVICE_TYPE_NPU, backend);
}

mt_status mt_backend_load(const char *name)
{
    if (name == NULL || name[0] == '\0') {
        return mtb_fail(MT_EVALUE, "backend_load: no name is given");
    }
    mt__watch_forks();
    (void)pthread_mutex_lock(&loading);
    int status = load(name);
    (void)pthread_mutex_unlock(&loading);
    return status;
}

/* ---- what the environment asks for ---- */

static void look(void)
{
    const char *name = secure_getenv("MINDTORCH_NPU");
    if (name == NULL || name[0] == '\0' || strcmp(name, "off") == 0) {
        return;
    }
    if (mt_backend_load(name) != MT_OK) {
        (void)snprintf(trouble, sizeof trouble, "MINDTORCH_NPU=%.60s: %.400s", name,
                       mt_last_error()->message);
    }
}

void mt__backend_look(void)
{
    (void)pthread_once(&look_once, look);
}

const char *mt__backend_trouble(void)
{
    return trouble;
}
