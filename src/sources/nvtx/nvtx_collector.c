/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_nvtx.so: a collector of NVTX. With NVTX_INJECTION64_PATH set to its path, a program's
 * ranges become scopes of libmtprof's recordings, its marks become instants, and its names of
 * threads are the threads' names. Domain, category and payload are metadata of the scope or
 * instant. Colours are left out: traces have none. Names of devices, streams and other resources
 * are left out, and counted (health.texts_cut).
 *
 *   NX1  Every part of a program that has NVTX in it (each shared library) calls
 *        InitializeInjectionNvtx2(); all share these functions and names.
 *   NX2  Push and pop pair up per thread and domain. A range that is started has its token as its
 *        id, so any thread can end it, and an id that is none ends nothing.
 */
#include "sources/nvtx/nvtx_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- what an event says ---- */

/* A message in any of its forms. Wide ones need collect_text_fini(). */
typedef struct event_text {
    collect_name *name; /* registered; NULL: the text below */
    const char *text;
    size_t length;
    bool is_wide;
    collect_text wide;
} event_text;

static void set_text(event_text *out, const char *text)
{
    out->name = NULL;
    out->is_wide = false;
    out->text = text != NULL ? text : "";
    out->length = strlen(out->text);
}

static void set_wide(event_text *out, const wchar_t *text)
{
    collect_text_init(&out->wide, text != NULL ? text : L"");
    out->name = NULL;
    out->is_wide = true;
    out->text = out->wide.text != NULL ? out->wide.text : "";
    out->length = out->wide.length;
}

/* Fields that the program's struct does not have are not read. */
static bool has_payload(const nvtx_event *event)
{
    return event->size >= offsetof(nvtx_event, message_type);
}

static bool has_message(const nvtx_event *event)
{
    return event->size >= sizeof *event;
}

static void read_text(const nvtx_event *event, event_text *out)
{
    int type = event != NULL && has_message(event) ? event->message_type : NVTX_TEXT_NONE;
    if (MT_LIKELY(type == NVTX_TEXT_REGISTERED)) {
        out->is_wide = false;
        out->name = (collect_name *)(uintptr_t)event->message.registered;
        out->text = "";
        out->length = 0;
    } else if (type == NVTX_TEXT_UNICODE) {
        set_wide(out, event->message.unicode);
    } else {
        set_text(out, type == NVTX_TEXT_ASCII ? event->message.ascii : NULL);
    }
}

static void fini_text(event_text *text)
{
    if (MT_UNLIKELY(text->is_wide)) {
        collect_text_fini(&text->wide);
    }
}

static uint32_t key_of(uint32_t *kept, const char *text)
{
    uint32_t key = __atomic_load_n(kept, __ATOMIC_RELAXED); /* its partner is the store below */
    if (MT_UNLIKELY(key == 0)) {
        key = mtprof_intern(text, strlen(text));
        __atomic_store_n(kept, key, __ATOMIC_RELAXED);
    }
    return key;
}

static void add_payload(mtprof_token token, const nvtx_event *event)
{
    static uint32_t kept;
    uint32_t key = key_of(&kept, "payload");
    switch (event->payload_type) {
    case NVTX_VALUE_U64:
        if (event->payload.u64 > INT64_MAX) {
            mtprof_meta_real(token, key, (double)event->payload.u64);
        } else {
            mtprof_meta_int(token, key, event->payload.s64);
        }
        break;
    case NVTX_VALUE_S64: mtprof_meta_int(token, key, event->payload.s64); break;
    case NVTX_VALUE_U32: mtprof_meta_int(token, key, event->payload.u32); break;
    case NVTX_VALUE_S32: mtprof_meta_int(token, key, event->payload.s32); break;
    case NVTX_VALUE_DOUBLE: mtprof_meta_real(token, key, event->payload.real64); break;
    case NVTX_VALUE_FLOAT: mtprof_meta_real(token, key, (double)event->payload.real32); break;
    default: mtprof_count_cut(1); break; /* of NVTX's extensions: a schema, not a value */
    }
}

static void add_category(mtprof_token token, const nvtx_domain *domain, uint32_t number)
{
    static uint32_t kept;
    uint32_t key = key_of(&kept, "category");
    const char *name = nvtx__find_category(domain, number);
    if (name != NULL) {
        mtprof_meta_text(token, key, name, strlen(name));
    } else {
        mtprof_meta_int(token, key, number);
    }
}

static void add_details(mtprof_token token, const nvtx_domain *domain, const nvtx_event *event)
{
    if (token == 0) {
        return;
    }
    if (domain != NULL) {
        collect_add_domain(token, domain->name);
    }
    if (event != NULL && has_payload(event) && event->category != 0) {
        add_category(token, domain, event->category);
    }
    if (event != NULL && has_payload(event) && event->payload_type != NVTX_VALUE_NONE) {
        add_payload(token, event);
    }
}

/* ---- marks ---- */

static void record_mark(const nvtx_domain *domain, const nvtx_event *event, const event_text *text)
{
    const collect_name *name = text->name;
    if (collect_wants(MTPROF_WANT_MARKS)) {
        mtprof_instant_named(name != NULL ? name->text : text->text,
                             name != NULL ? name->length : text->length, 0);
        add_details(MTPROF_LATEST_INSTANT, domain, event);
    }
}

static void domain_mark(nvtx_domain *domain, const nvtx_event *event)
{
    event_text text;
    read_text(event, &text);
    record_mark(domain, event, &text);
    fini_text(&text);
}

static void mark_ex(const nvtx_event *event)
{
    domain_mark(NULL, event);
}

static void mark_ascii(const char *message)
{
    event_text text;
    set_text(&text, message);
    record_mark(NULL, NULL, &text);
}

static void mark_wide(const wchar_t *message)
{
    event_text text;
    set_wide(&text, message);
    record_mark(NULL, NULL, &text);
    fini_text(&text);
}

/* ---- ranges that are pushed and popped ---- */

static int push(nvtx_domain *domain, const nvtx_event *event, const event_text *text)
{
    uint32_t level;
    mtprof_token token =
        collect_push(domain, COLLECT_SCOPE, text->name, text->text, text->length, &level);
    if (token != 0 && (domain != NULL || event != NULL)) {
        add_details(token, domain, event);
    }
    return (int)level;
}

static int domain_push(nvtx_domain *domain, const nvtx_event *event)
{
    event_text text;
    read_text(event, &text);
    int level = push(domain, event, &text);
    fini_text(&text);
    return level;
}

static int push_ex(const nvtx_event *event)
{
    return domain_push(NULL, event);
}

static int push_ascii(const char *message)
{
    event_text text;
    set_text(&text, message);
    return push(NULL, NULL, &text);
}

static int push_wide(const wchar_t *message)
{
    event_text text;
    set_wide(&text, message);
    int level = push(NULL, NULL, &text);
    fini_text(&text);
    return level;
}

static int domain_pop(nvtx_domain *domain)
{
    uint32_t level;
    return collect_pop(domain, &level) ? (int)level : NVTX_NO_TRACKING;
}

static int pop(void)
{
    return domain_pop(NULL);
}

/* ---- ranges that are started and ended ---- */

static uint64_t start(nvtx_domain *domain, const nvtx_event *event, const event_text *text)
{
    mtprof_token token = collect_begin_ranged(text->name, text->text, text->length);
    add_details(token, domain, event);
    return token;
}

static uint64_t domain_start(nvtx_domain *domain, const nvtx_event *event)
{
    event_text text;
    read_text(event, &text);
    uint64_t id = start(domain, event, &text);
    fini_text(&text);
    return id;
}

static uint64_t start_ex(const nvtx_event *event)
{
    return domain_start(NULL, event);
}

static uint64_t start_ascii(const char *message)
{
    event_text text;
    set_text(&text, message);
    return start(NULL, NULL, &text);
}

static uint64_t start_wide(const wchar_t *message)
{
    event_text text;
    set_wide(&text, message);
    uint64_t id = start(NULL, NULL, &text);
    fini_text(&text);
    return id;
}

static void end_range(uint64_t id)
{
    mtprof_end(id);
}

static void domain_end(nvtx_domain *domain, uint64_t id)
{
    (void)domain;
    mtprof_end(id);
}

/* ---- names ---- */

static void domain_name_category(nvtx_domain *domain, uint32_t number, const char *name)
{
    if (name != NULL) {
        nvtx__name_category(domain, number, name);
    }
}

static void domain_name_category_wide(nvtx_domain *domain, uint32_t number, const wchar_t *name)
{
    event_text text;
    set_wide(&text, name);
    domain_name_category(domain, number, text.text);
    fini_text(&text);
}

static void name_category(uint32_t number, const char *name)
{
    domain_name_category(NULL, number, name);
}

static void name_category_wide(uint32_t number, const wchar_t *name)
{
    domain_name_category_wide(NULL, number, name);
}

static void name_thread(uint32_t id, const char *name)
{
    if (name != NULL) {
        (void)collect_name_thread(id, name);
    }
}

static void name_thread_wide(uint32_t id, const wchar_t *name)
{
    event_text text;
    set_wide(&text, name);
    name_thread(id, text.text);
    fini_text(&text);
}

static const void *register_string(nvtx_domain *domain, const char *text)
{
    (void)domain; /* a text is the same name in all of them */
    text = text != NULL ? text : "";
    return collect_name_of(text, strlen(text), NULL);
}

static const void *register_wide(nvtx_domain *domain, const wchar_t *text)
{
    event_text narrow;
    set_wide(&narrow, text);
    const void *name = register_string(domain, narrow.text);
    fini_text(&narrow);
    return name;
}

static nvtx_domain *create_domain(const char *name)
{
    return nvtx__create_domain(name != NULL ? name : "");
}

static nvtx_domain *create_domain_wide(const wchar_t *name)
{
    event_text text;
    set_wide(&text, name);
    nvtx_domain *domain = create_domain(text.text);
    fini_text(&text);
    return domain;
}

static void destroy_domain(nvtx_domain *domain)
{
    (void)domain; /* another part of the program may have the same one */
}

/* ---- what has no place in a trace ---- */

static void ignore_name(const void *resource, const void *name)
{
    (void)resource;
    (void)name;
    mtprof_count_cut(1);
}

static void *ignore_resource(nvtx_domain *domain, const void *resource)
{
    (void)domain;
    (void)resource;
    mtprof_count_cut(1);
    return NULL;
}

static void forget_resource(void *resource)
{
    (void)resource;
}

static void initialize(const void *reserved)
{
    (void)reserved;
}

/* ---- the collector ---- */

#define FUNCTION(function) ((nvtx_function)(function))

static const nvtx_function core[NVTX_CORE_COUNT] = {
    [NVTX_CORE_MARK_EX] = FUNCTION(mark_ex),
    [NVTX_CORE_MARK_A] = FUNCTION(mark_ascii),
    [NVTX_CORE_MARK_W] = FUNCTION(mark_wide),
    [NVTX_CORE_RANGE_START_EX] = FUNCTION(start_ex),
    [NVTX_CORE_RANGE_START_A] = FUNCTION(start_ascii),
    [NVTX_CORE_RANGE_START_W] = FUNCTION(start_wide),
    [NVTX_CORE_RANGE_END] = FUNCTION(end_range),
    [NVTX_CORE_RANGE_PUSH_EX] = FUNCTION(push_ex),
    [NVTX_CORE_RANGE_PUSH_A] = FUNCTION(push_ascii),
    [NVTX_CORE_RANGE_PUSH_W] = FUNCTION(push_wide),
    [NVTX_CORE_RANGE_POP] = FUNCTION(pop),
    [NVTX_CORE_NAME_CATEGORY_A] = FUNCTION(name_category),
    [NVTX_CORE_NAME_CATEGORY_W] = FUNCTION(name_category_wide),
    [NVTX_CORE_NAME_OS_THREAD_A] = FUNCTION(name_thread),
    [NVTX_CORE_NAME_OS_THREAD_W] = FUNCTION(name_thread_wide),
};

static const nvtx_function core2[NVTX_CORE2_COUNT] = {
    [NVTX_CORE2_MARK_EX] = FUNCTION(domain_mark),
    [NVTX_CORE2_RANGE_START_EX] = FUNCTION(domain_start),
    [NVTX_CORE2_RANGE_END] = FUNCTION(domain_end),
    [NVTX_CORE2_RANGE_PUSH_EX] = FUNCTION(domain_push),
    [NVTX_CORE2_RANGE_POP] = FUNCTION(domain_pop),
    [NVTX_CORE2_RESOURCE_CREATE] = FUNCTION(ignore_resource),
    [NVTX_CORE2_RESOURCE_DESTROY] = FUNCTION(forget_resource),
    [NVTX_CORE2_NAME_CATEGORY_A] = FUNCTION(domain_name_category),
    [NVTX_CORE2_NAME_CATEGORY_W] = FUNCTION(domain_name_category_wide),
    [NVTX_CORE2_REGISTER_STRING_A] = FUNCTION(register_string),
    [NVTX_CORE2_REGISTER_STRING_W] = FUNCTION(register_wide),
    [NVTX_CORE2_DOMAIN_CREATE_A] = FUNCTION(create_domain),
    [NVTX_CORE2_DOMAIN_CREATE_W] = FUNCTION(create_domain_wide),
    [NVTX_CORE2_DOMAIN_DESTROY] = FUNCTION(destroy_domain),
    [NVTX_CORE2_INITIALIZE] = FUNCTION(initialize),
};

/* Fills in the places that the program's table has; all of them get `same` where there are no
 * functions of their own. */
static void fill(const nvtx_callbacks *callbacks, int module, const nvtx_function *functions,
                 nvtx_function same, unsigned count)
{
    nvtx_function **table = NULL;
    unsigned size = 0;
    if (callbacks->get_module(module, &table, &size) == 0 || table == NULL) {
        return;
    }
    for (unsigned i = 1; i < size && i < count; i++) {
        if (table[i] != NULL) {
            *table[i] = functions != NULL ? functions[i] : same;
        }
    }
}

int InitializeInjectionNvtx2(nvtx_get_table *get_table);

/* 1: the program calls these functions from now on. 0: it calls none. */
MTPROF_API int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    const nvtx_callbacks *callbacks = get_table != NULL ? get_table(NVTX_TABLE_CALLBACKS) : NULL;
    if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks) {
        return 0;
    }
    collect_start();
    fill(callbacks, NVTX_MODULE_CORE, core, NULL, NVTX_CORE_COUNT);
    fill(callbacks, NVTX_MODULE_CORE2, core2, NULL, NVTX_CORE2_COUNT);
    fill(callbacks, NVTX_MODULE_CUDA, NULL, FUNCTION(ignore_name), NVTX_CUDA_COUNT);
    fill(callbacks, NVTX_MODULE_CUDART, NULL, FUNCTION(ignore_name), NVTX_CUDART_COUNT);
    fill(callbacks, NVTX_MODULE_OPENCL, NULL, FUNCTION(ignore_name), NVTX_OPENCL_COUNT);
    return 1;
}
