/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening libraries, see shared_object.h.
 */
#include "base/shared_object.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&held);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&held);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void mtb_hold_forks(void)
{
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&held);
}

void mtb_release_forks(void)
{
    pthread_mutex_unlock(&held);
}

void *mtb_open_shared(const char *name)
{
    mtb_hold_forks();
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    mtb_release_forks();
    return handle;
}

void *mtb_find_loaded(const char *name)
{
    mtb_hold_forks();
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    mtb_release_forks();
    return handle;
}

bool mtb_find_symbol(void *handle, const char *name, void *slot)
{
    void *symbol = dlsym(handle, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}
