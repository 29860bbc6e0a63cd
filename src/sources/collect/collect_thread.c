/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranges that are open on a thread, and threads' names: see collect.h.
 */
#include "base/alloc.h"
#include "base/lock.h"
#include "sources/collect/collect.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_AWAITED = 256, /* threads that were named before they reported anything */
    MOST_NAME = 255     /* what libmtprof keeps of a thread's name */
};

typedef struct open_range {
    mtprof_token token;
    const void *group;
    uint32_t level; /* of its group */
} open_range;

typedef struct collect_thread {
    uint32_t depth;    /* of ranges that have a place */
    uint32_t too_deep; /* further ones: they end first */
    open_range ranges[COLLECT_MOST_DEPTH];
} collect_thread;

static __thread collect_thread *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
    mtb_lock lock;
    uint32_t count;
    struct {
        uint32_t id;
        char name[MOST_NAME + 1];
    } * items;
} awaited = {.lock = MTB_LOCK_INIT(MTB_RANK_COLLECT_THREADS)};

/* ---- threads ---- */

static void thread_ends(void *thread)
{
    mine = NULL;
    mtb_free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&ending, thread_ends);
}

void collect_thread_after_fork(void)
{
    mtb_lock_reset(&awaited.lock);
}

/* A thread that another one has named gets its name when it first reports something. */
static void take_name(void)
{
    char name[MOST_NAME + 1];
    uint32_t id = (uint32_t)gettid();
    bool found = false;
    mtb_lock_acquire(&awaited.lock);
    for (uint32_t i = 0; i < awaited.count && !found; i++) {
        if (awaited.items[i].id == id) {
            memcpy(name, awaited.items[i].name, sizeof name);
            awaited.items[i] = awaited.items[--awaited.count];
            found = true;
        }
    }
    mtb_lock_release(&awaited.lock);
    if (found) {
        mtprof_name_thread(name);
    }
}

static MT_COLD collect_thread *make_thread(void)
{
    (void)pthread_once(&once, make_key);
    collect_thread *thread = mtb_calloc(1, sizeof *thread);
    if (thread != NULL && pthread_setspecific(ending, thread) != 0) {
        mtb_free(thread);
        thread = NULL;
    }
    mine = thread;
    if (thread != NULL && __atomic_load_n(&awaited.count, __ATOMIC_RELAXED) != 0) {
        take_name();
    }
    return thread;
}

bool collect_name_thread(uint32_t id, const char *name)
{
    if (id == (uint32_t)gettid()) {
        mtprof_name_thread(name);
        return true;
    }
    bool kept = false;
    mtb_lock_acquire(&awaited.lock);
    if (awaited.items == NULL) {
        awaited.items = mtb_calloc(MOST_AWAITED, sizeof *awaited.items);
    }
    uint32_t at = 0;
    while (at < awaited.count && awaited.items[at].id != id) {
        at++;
    }
    if (awaited.items != NULL && at < MOST_AWAITED) {
        size_t length = strnlen(name, MOST_NAME);
        awaited.items[at].id = id;
        memcpy(awaited.items[at].name, name, length);
        awaited.items[at].name[length] = 0;
        if (at == awaited.count) {
            __atomic_store_n(&awaited.count, at + 1, __ATOMIC_RELAXED); /* make_thread() looks */
        }
        kept = true;
    }
    mtb_lock_release(&awaited.lock);
    if (!kept) {
        mtprof_count_cut(1);
    }
    return kept;
}

/* ---- ranges ---- */

static mtprof_token begin(enum collect_kind kind, collect_name *name, const char *text,
                          size_t length)
{
    if (!collect_wants(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES)) {
        return 0;
    }
    if (MT_LIKELY(name != NULL && name->has_sites)) {
        return mtprof_begin(kind == COLLECT_OP ? &name->op : &name->scope);
    }
    return mtprof_begin_named(name != NULL ? name->text : text,
                              name != NULL ? name->length : length,
                              kind == COLLECT_OP ? MTPROF_KIND_OP : MTPROF_KIND_SCOPE);
}

static const open_range *find_innermost(const collect_thread *thread, const void *group)
{
    for (uint32_t i = thread->depth; i > 0; i--) {
        if (MT_LIKELY(thread->ranges[i - 1].group == group)) {
            return &thread->ranges[i - 1];
        }
    }
    return NULL;
}

mtprof_token collect_push(const void *group, enum collect_kind kind, collect_name *name,
                          const char *text, size_t length, uint32_t *level)
{
    collect_thread *thread = MT_LIKELY(mine != NULL) ? mine : make_thread();
    *level = 0;
    if (thread == NULL) {
        return 0;
    }
    const open_range *around = find_innermost(thread, group);
    *level = around != NULL ? around->level + 1 : 0;
    if (MT_UNLIKELY(thread->depth == COLLECT_MOST_DEPTH)) {
        thread->too_deep++;
        mtprof_count_cut(1);
        return 0;
    }
    open_range *range = &thread->ranges[thread->depth++];
    *range = (open_range){.group = group, .level = *level};
    if (MT_LIKELY(kind != COLLECT_UNRECORDED)) {
        range->token = begin(kind, name, text, length);
    }
    return range->token;
}

bool collect_pop(const void *group, uint32_t *level)
{
    collect_thread *thread = mine;
    *level = 0;
    if (MT_UNLIKELY(thread == NULL)) {
        return false;
    }
    if (MT_UNLIKELY(thread->too_deep > 0)) {
        *level = thread->depth + --thread->too_deep;
        return true;
    }
    const open_range *range = find_innermost(thread, group);
    if (MT_UNLIKELY(range == NULL)) {
        return false; /* it ends more than began */
    }
    mtprof_end(range->token);
    *level = range->level;
    uint32_t at = (uint32_t)(range - thread->ranges);
    thread->depth--;
    if (MT_UNLIKELY(at != thread->depth)) { /* groups that do not nest in each other */
        memmove(&thread->ranges[at], &thread->ranges[at + 1], (thread->depth - at) * sizeof *range);
    }
    return true;
}

mtprof_token collect_innermost(void)
{
    const collect_thread *thread = mine;
    return thread != NULL && thread->depth > 0 && thread->too_deep == 0
               ? thread->ranges[thread->depth - 1].token
               : 0;
}

void collect_add_domain(mtprof_token token, const char *domain)
{
    static uint32_t key;
    if (token == 0 || domain == NULL || domain[0] == 0) {
        return;
    }
    uint32_t id = __atomic_load_n(&key, __ATOMIC_RELAXED); /* its partner is the store below */
    if (MT_UNLIKELY(id == 0)) {
        id = mtprof_intern("domain", strlen("domain"));
        __atomic_store_n(&key, id, __ATOMIC_RELAXED);
    }
    mtprof_meta_text(token, id, domain, strlen(domain));
}

mtprof_token collect_begin_ranged(collect_name *name, const char *text, size_t length)
{
    if (!collect_wants(MTPROF_WANT_SCOPES)) {
        return 0;
    }
    if (MT_LIKELY(name != NULL && name->has_sites)) {
        return mtprof_begin(&name->ranged);
    }
    return mtprof_begin_named(name != NULL ? name->text : text,
                              name != NULL ? name->length : length,
                              MTPROF_KIND_SCOPE | MTPROF_FLAG_ASYNC);
}
