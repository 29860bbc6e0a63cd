/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reliability tests share: starting a session in a line, threads, and small things.
 */
#ifndef TESTS_STRESS_STRESS_H
#define TESTS_STRESS_STRESS_H

#include "harness/mt_test.h"
#include "support/traces/read_back.h"

#include <mtprof/mtprof.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#    define STRESS_TSAN 1
#else
#    define STRESS_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || STRESS_TSAN
#    define STRESS_SANITIZED 1
#else
#    define STRESS_SANITIZED 0
#endif

enum {
    STRESS_PATH = 512
};

/* A path in the case's own folder. */
static inline const char *stress_path(char *to, const char *name)
{
    snprintf(to, STRESS_PATH, "%s/%s", mt_test_tmpdir(), name);
    return to;
}

static inline mtprof_session *stress_start(const char *path, uint32_t policy, uint64_t bytes)
{
    mtprof_config config = {
        .struct_size = sizeof config, .policy = policy, .path = path, .buffer_bytes = bytes};
    mtprof_session *session = NULL;
    CHECK_OK(mtprof_session_start(&config, &session));
    return session;
}

static inline mtprof_health stress_health(mtprof_session *session)
{
    mtprof_health health = {.struct_size = sizeof health};
    CHECK_OK(mtprof_session_get_health(session, &health));
    return health;
}

static inline pthread_t stress_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, argument);
    if (error != 0) {
        FAIL("pthread_create: %s", strerror(error));
        mt_test_leave();
    }
    return thread;
}

static inline void stress_rest_us(long us)
{
    struct timespec rest = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&rest, NULL);
}

/* Entries of a folder, "." and ".." left out; -1: it cannot be read. */
static inline int stress_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = -2;
    if (dir == NULL) {
        return -1;
    }
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

/* A relaxed number that several threads or a handler change. */
static inline uint64_t stress_get(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline void stress_add(uint64_t *number, uint64_t amount)
{
    __atomic_fetch_add(number, amount, __ATOMIC_RELAXED);
}

#endif /* TESTS_STRESS_STRESS_H */
