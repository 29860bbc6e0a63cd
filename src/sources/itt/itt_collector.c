/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_itt.so: a collector of ITT. With INTEL_LIBITTNOTIFY64 set to its path, a program's ITT
 * tasks become scopes of libmtprof's recordings, its markers become instants, its counters
 * counters, its frames, regions, events and overlapped tasks asynchronous scopes, and its names of
 * threads are the threads' names. Tasks of torch's domain ("PyTorch") are ops.
 *
 *   JT1  A program may have several parts with ITT in them: each calls __itt_api_init(), and all
 *        share these functions and names.
 *   JT2  Names and domains live as long as the process: the program keeps pointers to them.
 *   JT3  A task ends the innermost one of its thread, as ITT says. A task that began while nothing
 *        recorded, or too deep, has its place in the thread's list all the same.
 *   JT4  The part of ITT in the program may have made handles and domains itself, before it opened
 *        us. Their last fields are ours all the same: what we find out is kept there.
 */
#include "base/alloc.h"
#include "sources/itt/itt_impl.h"

#include <stdio.h>
#include <string.h>

bool itt__paused;

/* ---- names ---- */

static void dress(collect_name *name)
{
    static_assert(sizeof(itt_string_handle) <= sizeof name->face, "a handle is a name's face");
    itt_string_handle handle = {.text = name->text, .extra2 = name};
    memcpy(name->face, &handle, sizeof handle);
}

itt_string_handle *itt__create_string(const char *text)
{
    text = text != NULL ? text : "";
    collect_name *name = collect_name_of(text, strlen(text), dress);
    return name != NULL ? (itt_string_handle *)(void *)name->face : NULL;
}

collect_name *itt__name(itt_string_handle *handle)
{
    if (handle == NULL || handle->text == NULL) {
        return NULL;
    }
    collect_name *name = __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE);
    if (MT_UNLIKELY(name == NULL)) { /* JT4 */
        name = collect_name_of(handle->text, strlen(handle->text), dress);
        __atomic_store_n(&handle->extra2, (void *)name, __ATOMIC_RELEASE);
    }
    return name;
}

const char *itt__text(const itt_string_handle *handle, const char *otherwise)
{
    return handle != NULL && handle->text != NULL ? handle->text : otherwise;
}

/* What extra2 of a domain points to. */
static char known_torch, known_other;

typedef struct own_domain {
    itt_domain domain;
    struct own_domain *next;
} own_domain;

static own_domain *domains; /* under collect_objects */

static itt_domain *create_domain(const char *text)
{
    text = text != NULL ? text : "";
    mtb_lock_acquire(&collect_objects);
    own_domain *own = domains;
    while (own != NULL && strcmp(own->domain.name, text) != 0) {
        own = own->next;
    }
    size_t length = strlen(text);
    if (own == NULL) {
        own = mtb_calloc(1, sizeof *own + length + 1);
        if (own != NULL) {
            memcpy(own + 1, text, length);
            own->domain = (itt_domain){.flags = 1, .name = (const char *)(own + 1)};
            own->next = domains;
            domains = own;
        }
    }
    mtb_lock_release(&collect_objects);
    return own != NULL ? &own->domain : NULL;
}

static bool is_torch(itt_domain *domain)
{
    if (domain == NULL) {
        return false;
    }
    void *known = __atomic_load_n(&domain->extra2, __ATOMIC_RELAXED); /* partner: the store below */
    if (MT_UNLIKELY(known == NULL)) {
        bool torch = domain->name != NULL && strcmp(domain->name, "PyTorch") == 0;
        known = torch ? &known_torch : &known_other;
        __atomic_store_n(&domain->extra2, known, __ATOMIC_RELAXED);
    }
    return known == &known_torch;
}

/* ---- metadata ---- */

void itt__add_domain(mtprof_token token, itt_domain *domain)
{
    if (domain != NULL && !is_torch(domain)) {
        collect_add_domain(token, domain->name);
    }
}

typedef union number {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
    uint16_t u16;
    int16_t s16;
    float real32;
    double real64;
} number;

static const unsigned char sizes[] = {
    [ITT_U64] = 8, [ITT_S64] = 8, [ITT_U32] = 4,   [ITT_S32] = 4,
    [ITT_U16] = 2, [ITT_S16] = 2, [ITT_FLOAT] = 4, [ITT_DOUBLE] = 8};

bool itt__read_number(int type, const void *data, int64_t *whole, double *real)
{
    number n = {0};
    memcpy(&n, data, sizes[type]);
    *whole = type == ITT_U64   ? (int64_t)n.u64
             : type == ITT_S64 ? n.s64
             : type == ITT_U32 ? (int64_t)n.u32
             : type == ITT_S32 ? n.s32
             : type == ITT_U16 ? n.u16
                               : n.s16;
    *real = type == ITT_FLOAT ? (double)n.real32 : type == ITT_DOUBLE ? n.real64 : (double)n.u64;
    return type < ITT_FLOAT && (type != ITT_U64 || n.u64 <= INT64_MAX);
}

void itt__add_values(mtprof_token token, uint32_t key, int type, size_t count, const void *data)
{
    int64_t whole;
    double real;
    char text[1024];
    size_t length = 0;
    if (type <= ITT_UNKNOWN || type > ITT_DOUBLE || data == NULL || count == 0) {
        mtprof_count_cut(1);
        return;
    }
    if (count == 1) {
        if (itt__read_number(type, data, &whole, &real)) {
            mtprof_meta_int(token, key, whole);
        } else {
            mtprof_meta_real(token, key, real);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_whole = itt__read_number(type, (const char *)data + i * sizes[type], &whole, &real);
        const char *comma = i > 0 ? ", " : "";
        int more = is_whole ? snprintf(text + length, sizeof text - length, "%s%lld", comma,
                                       (long long)whole)
                            : snprintf(text + length, sizeof text - length, "%s%.9g", comma, real);
        if (more < 0 || length + (size_t)more >= sizeof text) {
            mtprof_count_cut(1); /* as many as fit */
            break;
        }
        length += (size_t)more;
    }
    mtprof_meta_text(token, key, text, length);
}

/* A scope's metadata: of the range with this id, or of the thread's innermost one. */
static mtprof_token find_subject(const itt_domain *domain, itt_id id)
{
    mtprof_token token = id.d1 != 0 || id.d2 != 0 || id.d3 != 0 ? itt__find_range(domain, id) : 0;
    return token != 0 ? token : collect_innermost();
}

static uint32_t key_of(const itt_string_handle *handle)
{
    const char *text = itt__text(handle, "metadata");
    return mtprof_intern_here(text, strlen(text));
}

static void add_metadata(const itt_domain *domain, itt_id id, const itt_string_handle *key,
                         int type, size_t count, const void *data)
{
    mtprof_token token = find_subject(domain, id);
    if (token != 0 && !itt__is_paused()) {
        itt__add_values(token, key_of(key), type, count, data);
    }
}

static void add_text(const itt_domain *domain, itt_id id, const itt_string_handle *key,
                     const char *text, size_t length)
{
    mtprof_token token = find_subject(domain, id);
    if (token != 0 && text != NULL && !itt__is_paused()) {
        mtprof_meta_text(token, key_of(key), text, length != 0 ? length : strlen(text));
    }
}

/* ---- tasks ---- */

static void begin_named(itt_domain *domain, collect_name *name, const char *text)
{
    uint32_t level;
    enum collect_kind kind = itt__is_paused()   ? COLLECT_UNRECORDED
                             : is_torch(domain) ? COLLECT_OP
                                                : COLLECT_SCOPE;
    mtprof_token token =
        collect_push(NULL, kind, name, text, name != NULL ? 0 : strlen(text), &level);
    itt__add_domain(token, domain);
}

static void begin_task(itt_domain *domain, itt_id task, itt_id parent, itt_string_handle *handle)
{
    (void)task;
    (void)parent;
    begin_named(domain, itt__name(handle), "task");
}

static void begin_task_of_function(itt_domain *domain, itt_id task, itt_id parent, void *function)
{
    (void)task;
    (void)parent;
    char text[32];
    (void)snprintf(text, sizeof text, "%p", function);
    begin_named(domain, NULL, text);
}

static void end_task(const itt_domain *domain)
{
    (void)domain;
    uint32_t level;
    (void)collect_pop(NULL, &level);
}

static void mark(itt_domain *domain, itt_id id, const itt_string_handle *handle, int scope)
{
    (void)id;
    (void)scope;
    const char *text = itt__text(handle, "marker");
    if (collect_wants(MTPROF_WANT_MARKS) && !itt__is_paused()) {
        mtprof_instant_named(text, strlen(text), 0);
        itt__add_domain(MTPROF_LATEST_INSTANT, domain);
    }
}

static void name_thread(const char *name)
{
    if (name != NULL) {
        mtprof_name_thread(name);
    }
}

/* ---- pausing ---- */

static void set_paused(bool paused)
{
    __atomic_store_n(&itt__paused, paused, __ATOMIC_RELAXED);
    collect_pause(paused);
}

static void pause_all(void)
{
    set_paused(true);
}

static void resume_all(void)
{
    set_paused(false);
}

/* ---- the collector ---- */

const itt_function itt__task_functions[] = {
    ITT_FUNCTION("string_handle_create", itt__create_string),
    ITT_FUNCTION("domain_create", create_domain),
    ITT_FUNCTION("task_begin", begin_task),
    ITT_FUNCTION("task_begin_fn", begin_task_of_function),
    ITT_FUNCTION("task_end", end_task),
    ITT_FUNCTION("marker", mark),
    ITT_FUNCTION("metadata_add", add_metadata),
    ITT_FUNCTION("metadata_str_add", add_text),
    ITT_FUNCTION("thread_set_name", name_thread),
    ITT_FUNCTION("pause", pause_all),
    ITT_FUNCTION("detach", pause_all),
    ITT_FUNCTION("resume", resume_all),
    {NULL, NULL},
};

static void (*find_function(const char *name))(void)
{
    static const itt_function *const tables[] = {itt__task_functions, itt__counter_functions,
                                                 itt__range_functions};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const itt_function *f = tables[t]; f->name != NULL; f++) {
            if (strcmp(f->name, name) == 0) {
                return f->function;
            }
        }
    }
    return NULL;
}

void __itt_api_init(itt_global *global, int groups);

MTPROF_API void __itt_api_init(itt_global *global, int groups)
{
    (void)groups;
    collect_start();
    for (itt_api_info *api = global->functions; api != NULL && api->name != NULL; api++) {
        void (*function)(void) = find_function(api->name);
        if (function != NULL) {
            memcpy(api->function, &function, sizeof function);
        } else {
            *api->function = api->null_function;
        }
    }
}
