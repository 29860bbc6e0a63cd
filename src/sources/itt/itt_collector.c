/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_itt.so: a collector of ITT. With INTEL_LIBITTNOTIFY64 set to its path, a program's ITT
 * tasks become scopes of libmtprof's recordings, its markers become instants, and its names of
 * threads are the threads' names. Tasks of torch's domain ("PyTorch") are ops.
 *
 *   JT1  A program may have several parts with ITT in them: each calls __itt_api_init(), and all
 *        share these functions and names.
 *   JT2  Names and domains live as long as the process: the program keeps pointers to them.
 *   JT3  A task ends the innermost one of its thread, as ITT says. A task that began while nothing
 *        recorded, or too deep, has its place in the thread's list all the same.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/lock.h"
#include "sources/itt/itt_abi.h"

#include <mtprof/op.h>

#include <pthread.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MOST_NAMES = 65536, /* beyond, names of tasks are passed by their text */
    MOST_DEPTH = 1024
};

/* ---- names ---- */

typedef struct itt_name {
    itt_string_handle handle; /* what the program has; its extra2 is this struct */
    mtprof_site scope, op;    /* as a task of other domains, of torch's */
    size_t length;
    struct itt_name *next;
} itt_name;

typedef struct itt_own_domain {
    itt_domain domain;
    struct itt_own_domain *next;
} itt_own_domain;

static struct {
    mtb_lock lock;
    itt_name *buckets[BUCKETS];
    uint32_t count;
    itt_own_domain *domains;
} names = {.lock = MTB_LOCK_INIT(MTB_RANK_ITT_NAMES)};

static itt_name *make_name(const char *text, size_t length)
{
    itt_name *name = mtb_calloc(1, sizeof *name + length + 1);
    if (name == NULL) {
        return NULL;
    }
    char *copy = (char *)(name + 1);
    memcpy(copy, text, length);
    name->length = length;
    name->handle = (itt_string_handle){.text = copy, .extra2 = name};
    name->scope = (mtprof_site){
        .flags = MTPROF_KIND_SCOPE, .struct_size = sizeof(mtprof_site), .name = copy, .file = ""};
    name->op = name->scope;
    name->op.flags = MTPROF_KIND_OP;
    return name;
}

static itt_string_handle *create_string(const char *text)
{
    text = text != NULL ? text : "";
    size_t length = strlen(text);
    mtb_lock_acquire(&names.lock);
    itt_name **bucket = &names.buckets[mtb_hash_bytes(text, length) % BUCKETS];
    itt_name *name = *bucket;
    while (name != NULL &&
           (name->length != length || memcmp(name->handle.text, text, length) != 0)) {
        name = name->next;
    }
    if (name == NULL) {
        name = make_name(text, length);
        if (name != NULL) {
            if (names.count++ >= MOST_NAMES) {
                name->handle.extra2 = NULL; /* a site each would be written into every recording */
            }
            name->next = *bucket;
            *bucket = name;
        }
    }
    mtb_lock_release(&names.lock);
    return name != NULL ? &name->handle : NULL;
}

static itt_domain *create_domain(const char *text)
{
    text = text != NULL ? text : "";
    mtb_lock_acquire(&names.lock);
    itt_own_domain *own = names.domains;
    while (own != NULL && strcmp(own->domain.name, text) != 0) {
        own = own->next;
    }
    size_t length = strlen(text);
    if (own == NULL) {
        own = mtb_calloc(1, sizeof *own + length + 1);
        if (own != NULL) {
            memcpy(own + 1, text, length);
            own->domain = (itt_domain){.flags = 1,
                                       .name = (const char *)(own + 1),
                                       .extra1 = strcmp(text, "PyTorch") == 0};
            own->next = names.domains;
            names.domains = own;
        }
    }
    mtb_lock_release(&names.lock);
    return own != NULL ? &own->domain : NULL;
}

/* ---- tasks ---- */

typedef struct itt_thread {
    uint32_t depth; /* may be more than there are tokens */
    mtprof_token tokens[MOST_DEPTH];
} itt_thread;

static __thread itt_thread *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *thread)
{
    mine = NULL;
    mtb_free(thread);
}

static void after_fork(void)
{
    mtb_locks_forget();
    mtb_lock_reset(&names.lock); /* a name is complete before it is in the table */
}

static void make_key(void)
{
    (void)pthread_key_create(&ending, thread_ends);
    (void)pthread_atfork(NULL, NULL, after_fork);
}

static MT_COLD itt_thread *make_thread(void)
{
    (void)pthread_once(&once, make_key);
    itt_thread *thread = mtb_calloc(1, sizeof *thread);
    if (thread != NULL && pthread_setspecific(ending, thread) != 0) {
        mtb_free(thread);
        thread = NULL;
    }
    mine = thread;
    return thread;
}

static void begin_task(const itt_domain *domain, itt_id task, itt_id parent,
                       itt_string_handle *handle)
{
    (void)task;
    (void)parent;
    itt_thread *thread = MT_LIKELY(mine != NULL) ? mine : make_thread();
    if (thread == NULL) {
        return;
    }
    uint32_t depth = thread->depth++;
    if (MT_UNLIKELY(depth >= MOST_DEPTH)) {
        mtprof_count_cut(1);
        return;
    }
    bool op = domain != NULL && domain->extra1 != 0;
    itt_name *name = handle != NULL ? handle->extra2 : NULL;
    mtprof_token token = 0;
    if (MT_LIKELY(name != NULL)) {
        token = mtprof_begin(op ? &name->op : &name->scope);
    } else if (mtprof_wants(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES)) {
        const char *text = handle != NULL && handle->text != NULL ? handle->text : "task";
        token = mtprof_begin_named(text, strlen(text), op ? MTPROF_KIND_OP : MTPROF_KIND_SCOPE);
    }
    thread->tokens[depth] = token;
}

static void end_task(const itt_domain *domain)
{
    (void)domain;
    itt_thread *thread = mine;
    if (MT_UNLIKELY(thread == NULL || thread->depth == 0)) {
        return; /* it ends more than began */
    }
    uint32_t depth = --thread->depth;
    if (MT_LIKELY(depth < MOST_DEPTH)) {
        mtprof_end(thread->tokens[depth]);
    }
}

static void mark(const itt_domain *domain, itt_id id, const itt_string_handle *handle, int scope)
{
    (void)domain;
    (void)id;
    (void)scope;
    const char *text = handle != NULL && handle->text != NULL ? handle->text : "marker";
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        mtprof_instant_named(text, strlen(text), 0);
    }
}

static void name_thread(const char *name)
{
    if (name != NULL) {
        mtprof_name_thread(name);
    }
}

/* ---- the collector ---- */

void __itt_api_init(itt_global *global, int groups);

MTPROF_API void __itt_api_init(itt_global *global, int groups)
{
    (void)groups;
    void *functions[6];
    static const char *const known[] = {"__itt_string_handle_create",
                                        "__itt_domain_create",
                                        "__itt_task_begin",
                                        "__itt_task_end",
                                        "__itt_marker",
                                        "__itt_thread_set_name"};
    memcpy(&functions[0], &(itt_string_handle * (*[1])(const char *)){create_string}, 8);
    memcpy(&functions[1], &(itt_domain * (*[1])(const char *)){create_domain}, 8);
    memcpy(&functions[2],
           &(void (*[1])(const itt_domain *, itt_id, itt_id, itt_string_handle *)){begin_task}, 8);
    memcpy(&functions[3], &(void (*[1])(const itt_domain *)){end_task}, 8);
    memcpy(&functions[4],
           &(void (*[1])(const itt_domain *, itt_id, const itt_string_handle *, int)){mark}, 8);
    memcpy(&functions[5], &(void (*[1])(const char *)){name_thread}, 8);
    for (itt_api_info *api = global->functions; api != NULL && api->name != NULL; api++) {
        *api->function = api->null_function;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (strcmp(api->name, known[i]) == 0) {
                *api->function = functions[i];
            }
        }
    }
}
