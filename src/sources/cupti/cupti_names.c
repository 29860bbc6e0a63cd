/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels for people, and lists of numbers as texts. Both are made once and remembered.
 *
 * A kernel's name is that of the C++ compiler. What turns it into the written one is the C++
 * runtime that the process has loaded (every program of torch has); without one names stay as they
 * are.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/shared_object.h"
#include "sources/cupti/cupti_impl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 4096,
    MOST_NAMES =
        65536,         /* programs that compile kernels make new names; those beyond stay mangled */
    MOST_LISTS = 16384 /* grids and blocks; those beyond are left out */
};

typedef struct name {
    struct name *next;
    const char *plain; /* of the C++ runtime's heap, or `mangled` */
    uint64_t hash;
    char mangled[];
} name;

typedef struct list {
    struct list *next;
    int32_t values[3];
    uint32_t id;
} list;

typedef char *demangle_function(const char *mangled, char *buffer, size_t *bytes, int *status);

static struct {
    mtb_lock lock;
    bool looked; /* for the C++ runtime */
    demangle_function *demangle;
    name *names[BUCKETS];
    list *lists[BUCKETS];
    uint32_t n_names, n_lists;
} known = {.lock = MTB_LOCK_INIT(MTB_RANK_CUPTI_NAMES)};

void cp__names_after_fork(void)
{
    mtb_lock_reset(&known.lock); /* an entry is complete before it is in a table */
}

/* The lock is held. */
static demangle_function *demangler(void)
{
    if (!known.looked) {
        void *runtime = mtb_find_loaded("libstdc++.so.6");
        if (runtime == NULL || !mtb_find_symbol(runtime, "__cxa_demangle", &known.demangle)) {
            known.demangle = NULL;
        }
        known.looked = true;
    }
    return known.demangle;
}

bool cp__names_are_raw(void)
{
    mtb_lock_acquire(&known.lock);
    bool raw = demangler() == NULL;
    mtb_lock_release(&known.lock);
    return raw;
}

/* The lock is held. */
static name *make_name(const char *mangled, size_t length, uint64_t hash)
{
    name *made = mtb_calloc(1, sizeof *made + length + 1);
    if (made == NULL) {
        return NULL;
    }
    memcpy(made->mangled, mangled, length);
    made->hash = hash;
    int status = -1;
    demangle_function *demangle = demangler();
    const char *plain = demangle != NULL ? demangle(made->mangled, NULL, NULL, &status) : NULL;
    made->plain = status == 0 && plain != NULL ? plain : made->mangled;
    return made;
}

const char *cp__kernel_name(const char *mangled, const char **kept)
{
    size_t length = strlen(mangled);
    uint64_t hash = mtb_hash_bytes(mangled, length);
    mtb_lock_acquire(&known.lock);
    name **bucket = &known.names[hash % BUCKETS];
    name *at = *bucket;
    while (at != NULL && (at->hash != hash || strcmp(at->mangled, mangled) != 0)) {
        at = at->next;
    }
    if (at == NULL && known.n_names < MOST_NAMES) {
        at = make_name(mangled, length, hash);
        if (at != NULL) {
            at->next = *bucket;
            *bucket = at;
            known.n_names++;
        }
    }
    mtb_lock_release(&known.lock);
    *kept = at != NULL ? at->mangled : NULL;
    return at != NULL ? at->plain : mangled;
}

/* The lock is held. */
static const list *find_list(const int32_t values[3], uint64_t hash)
{
    const list *at = known.lists[hash % BUCKETS];
    while (at != NULL && memcmp(at->values, values, sizeof at->values) != 0) {
        at = at->next;
    }
    return at;
}

/* Without the lock: libmtprof takes its own. */
static list *make_list(const int32_t values[3])
{
    char text[48];
    list *made = mtb_calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    int length = snprintf(text, sizeof text, "[%d, %d, %d]", values[0], values[1], values[2]);
    memcpy(made->values, values, sizeof made->values);
    made->id = mtprof_intern(text, (size_t)length);
    return made;
}

uint32_t cp__list_id(const int32_t values[3])
{
    uint64_t hash = mtb_hash_bytes(values, 3 * sizeof values[0]);
    mtb_lock_acquire(&known.lock);
    const list *at = find_list(values, hash);
    bool room = known.n_lists < MOST_LISTS;
    mtb_lock_release(&known.lock);
    list *made = at == NULL && room ? make_list(values) : NULL;
    if (made == NULL) {
        return at != NULL ? at->id : 0;
    }
    uint32_t id = made->id;
    mtb_lock_acquire(&known.lock);
    if (find_list(values, hash) == NULL) { /* else another thread was faster, with the same id */
        made->next = known.lists[hash % BUCKETS];
        known.lists[hash % BUCKETS] = made;
        known.n_lists++;
        made = NULL;
    }
    mtb_lock_release(&known.lock);
    mtb_free(made);
    return id;
}
