/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program with ITT (Intel's instrumentation interface) and a collector agree on, as its
 * documentation describes it: the part that is linked into the program opens the library that
 * INTEL_LIBITTNOTIFY64 names, and calls its __itt_api_init() with a list of functions to fill in.
 */
#ifndef SOURCES_ITT_ITT_ABI_H
#define SOURCES_ITT_ITT_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct itt_api_info {
    const char *name; /* NULL: the end of the list */
    void **function;  /* where the program calls it through */
    void *init_function;
    void *null_function; /* for what a collector does not have */
    int group;
} itt_api_info;

typedef struct itt_global {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *library;
    void *error_handler;
    const char **library_path;
    itt_api_info *functions;
    /* More follows; none of it is used here. */
} itt_global;

typedef struct itt_domain {
    volatile int flags; /* 0: the program does not call for it */
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2; /* the collector's */
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string_handle {
    const char *text;
    void *wide_text;
    int extra1;
    void *extra2; /* the collector's */
    struct itt_string_handle *next;
} itt_string_handle;

typedef struct itt_id { /* by value */
    unsigned long long d1, d2, d3;
} itt_id;

typedef unsigned long long itt_timestamp;
#define ITT_NO_TIMESTAMP ((itt_timestamp)-1)

enum itt_metadata_type {
    ITT_UNKNOWN = 0,
    ITT_U64,
    ITT_S64,
    ITT_U32,
    ITT_S32,
    ITT_U16,
    ITT_S16,
    ITT_FLOAT,
    ITT_DOUBLE
};

#endif /* SOURCES_ITT_ITT_ABI_H */
