/* SPDX-License-Identifier: Apache-2.0
 *
 * The detail of the last failure, one per thread.
 *
 * A thread's detail is made when it first fails and freed when the thread ends. Why not a thread
 * variable: it is half a KiB, and a library with one initial-exec variable puts all of its
 * thread-local memory into the static block, which is scarce where libraries are opened at run
 * time.
 */
#include "base/fail.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fail.h has macros of these names for the analyzer. */
#undef mtb_fail
#undef mtb_fail_at
#undef mtb_fail_errno

static __thread mtb_failure *mine;
static const mtb_failure none = {.offset = -1};
static mtb_failure common = {.offset = -1}; /* of all threads, if there is no memory */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void forget(void *failure)
{
    mine = NULL;
    free(failure);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, forget) == 0;
}

/* malloc, not mtb_calloc: the report of a failed allocation must not be made to fail itself. */
static MT_COLD mtb_failure *make_mine(void)
{
    pthread_once(&once, make_key);
    mtb_failure *made = has_key ? malloc(sizeof *made) : NULL;
    if (made == NULL || pthread_setspecific(key, made) != 0) {
        free(made);
        return &common;
    }
    *made = none;
    mine = made;
    return made;
}

mtb_failure *mtb_last_failure(void)
{
    return mine != NULL ? mine : make_mine();
}

static void note(int status, int system_error, int64_t offset, const char *format, va_list args)
{
    mtb_failure *last = mtb_last_failure();
    last->status = status;
    last->system_error = system_error;
    last->offset = offset;
    vsnprintf(last->message, sizeof last->message, format, args);
}

int mtb_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, 0, -1, format, args);
    va_end(args);
    return status;
}

int mtb_fail_at(int status, int64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, 0, offset, format, args);
    va_end(args);
    return status;
}

int mtb_fail_errno(int status, int system_error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note(status, system_error, -1, format, args);
    va_end(args);
    mtb_failure *last = mtb_last_failure();
    size_t used = strlen(last->message);
    char text[128];
    const char *reason = strerror_r(system_error, text, sizeof text);
    snprintf(last->message + used, sizeof last->message - used, ": %s", reason);
    return status;
}
