/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the backward pass in a Chrome trace: backward ops are shown with the module of their
 * forward op, as the model has them (backward_stacks.c), found while the stream goes by.
 *
 *     begin  aten::addmm      module M, sequence 3, thread 1     remembered under (1, 3)
 *     begin  AddmmBackward0   record scope 1, 3, thread 1        a node: M, for what is inside too
 *     begin    aten::mm       its parent is open with M          M
 *
 *   B1  Of several forward ops with one number on one thread the first counts, with or without a
 *       module.
 *   B2  The table has a largest size; from there on the later op has a place that two want, and the
 *       other one's backward op has no module; that is counted (report.left_out).
 *   B3  A module that an op was recorded in is replaced only where its forward op had one.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

enum {
    FIRST_CAPACITY = 1024,
    MOST_CAPACITY = 1 << 18 /* 8 MiB */
};

typedef struct forward_module {
    int64_t sequence; /* -1: free */
    uint32_t thread;
    mtprof_text module; /* its text lives as long as the model */
} forward_module;

/* An event that is open and is a node, or inside of one. */
typedef struct open_backward {
    uint64_t id;
    mtprof_text module; /* empty: none was found */
} open_backward;

struct mtprof__chrome_modules {
    forward_module *forwards; /* one place an op (B2) */
    size_t capacity;          /* a power of two, or 0 */
    open_backward *open;
    size_t n_open, open_capacity;
    bool full;         /* B2 has happened */
    uint64_t left_out; /* backward ops without a module because of it */
};

int mtprof__chrome_modules_init(mtprof__chrome *chrome)
{
    if ((chrome->job->info.wants & MTPROF_WANT_MODULES) == 0) {
        return MTPROF_OK;
    }
    chrome->modules = mtb_calloc(1, sizeof *chrome->modules);
    return chrome->modules != NULL ? MTPROF_OK
                                   : mtb_fail(MTPROF_ENOMEM, "export: no memory for modules");
}

void mtprof__chrome_modules_fini(mtprof__chrome *chrome)
{
    if (chrome->modules != NULL) {
        chrome->job->report.left_out += chrome->modules->left_out;
        mtb_free(chrome->modules->forwards);
        mtb_free(chrome->modules->open);
        mtb_free(chrome->modules);
    }
}

/* ---- forward ops ----------------------------------------------------------------------------- */

static forward_module *place_of(const struct mtprof__chrome_modules *m, uint32_t thread,
                                int64_t sequence)
{
    uint64_t place = (uint64_t)sequence + (uint64_t)thread * 0x9E3779B97F4A7C15u;
    return &m->forwards[place & (m->capacity - 1)];
}

static bool is_of(const forward_module *entry, uint32_t thread, int64_t sequence)
{
    return entry->sequence == sequence && entry->thread == thread;
}

/* False: it cannot be larger, and is as it was. */
static bool grow(struct mtprof__chrome_modules *m)
{
    struct mtprof__chrome_modules larger = *m;
    larger.capacity = m->capacity > 0 ? 2 * m->capacity : FIRST_CAPACITY;
    if (larger.capacity > MOST_CAPACITY) {
        return false;
    }
    larger.forwards = mtb_resize(NULL, larger.capacity, sizeof *larger.forwards);
    if (larger.forwards == NULL) {
        return false;
    }
    for (size_t i = 0; i < larger.capacity; i++) {
        larger.forwards[i].sequence = -1;
    }
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->forwards[i].sequence >= 0) {
            *place_of(&larger, m->forwards[i].thread, m->forwards[i].sequence) = m->forwards[i];
        }
    }
    mtb_free(m->forwards);
    *m = larger;
    return true;
}

static void remember(struct mtprof__chrome_modules *m, uint32_t thread,
                     const mtprof__payload *payload)
{
    if (m->capacity == 0 && !grow(m)) {
        return;
    }
    forward_module *entry = place_of(m, thread, payload->sequence);
    while (entry->sequence >= 0 && !is_of(entry, thread, payload->sequence) && grow(m)) {
        entry = place_of(m, thread, payload->sequence);
    }
    if (!is_of(entry, thread, payload->sequence)) { /* B1 */
        bool has = (payload->fields & MTPROF__HAS_MODULE) != 0;
        m->full = m->full || entry->sequence >= 0;
        *entry = (forward_module){.sequence = payload->sequence,
                                  .thread = thread,
                                  .module = has ? payload->module : (mtprof_text){"", 0}};
    }
}

static mtprof_text module_of_node(struct mtprof__chrome_modules *m, const mtprof__payload *payload)
{
    mtprof_text none = {"", 0};
    if (m->capacity == 0 || (payload->fields & MTPROF__HAS_SEQUENCE) == 0 ||
        payload->sequence < 0) {
        return none;
    }
    const forward_module *entry = place_of(m, payload->forward_thread, payload->sequence);
    if (is_of(entry, payload->forward_thread, payload->sequence)) {
        return entry->module;
    }
    m->left_out += m->full && entry->sequence >= 0;
    return none;
}

/* ---- what is open ---------------------------------------------------------------------------- */

static open_backward *find_open(const struct mtprof__chrome_modules *m, uint64_t id)
{
    for (size_t i = m->n_open; id != 0 && i > 0; i--) { /* few, the wanted one last */
        if (m->open[i - 1].id == id) {
            return &m->open[i - 1];
        }
    }
    return NULL;
}

void mtprof__chrome_modules_begin(mtprof__chrome *chrome, const mtprof__event *event)
{
    struct mtprof__chrome_modules *m = chrome->modules;
    const mtprof__payload *payload = event->payload;
    const open_backward *around = find_open(m, event->parent);
    bool node = event->kind == MTPROF_EVENT_KIND_OP && payload != NULL &&
                (payload->fields & MTPROF__HAS_RECORD_SCOPE) != 0 &&
                payload->record_scope == MTPROF_RECORD_SCOPE_BACKWARD;
    if (!node && around == NULL) {
        if (payload != NULL && (payload->fields & MTPROF__HAS_SEQUENCE) != 0 &&
            payload->sequence >= 0) {
            remember(m, mtprof__chrome_track_of(chrome, event->track)->number, payload);
        }
        return;
    }
    open_backward mine = {.id = event->correlation,
                          .module = node ? module_of_node(m, payload) : around->module};
    if (!mtb_grow((void **)&m->open, &m->open_capacity, m->n_open + 1, sizeof *m->open)) {
        chrome->error = MTPROF_ENOMEM;
        return;
    }
    m->open[m->n_open++] = mine;
}

const mtprof__event *mtprof__chrome_modules_end(mtprof__chrome *chrome, const mtprof__event *event,
                                                mtprof__event *shown, mtprof__payload *payload)
{
    struct mtprof__chrome_modules *m = chrome->modules;
    open_backward *mine = find_open(m, event->correlation);
    if (mine == NULL) {
        return event;
    }
    mtprof_text module = mine->module;
    *mine = m->open[--m->n_open];
    if (module.length == 0 || event->kind != MTPROF_EVENT_KIND_OP) { /* B3 */
        return event;
    }
    *payload = event->payload != NULL ? *event->payload : (mtprof__payload){.sequence = -1};
    payload->module = module;
    payload->fields |= MTPROF__HAS_MODULE;
    *shown = *event;
    shown->payload = payload;
    return shown;
}
