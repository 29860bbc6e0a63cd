/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the backward pass in a Chrome trace: backward ops are shown with the module of their
 * forward op, as the model has them (backward_stacks.c), found while the stream goes by.
 *
 *     begin  aten::addmm      module M, sequence 3, thread 1     remembered under (1, 3)
 *     begin  AddmmBackward0   record scope 1, 3, thread 1        a node: M, for what is inside too
 *     begin    aten::mm       its parent is open with M          M
 *
 * Which forward op it is says forward.h (FW1, FW3). A module that an op was recorded in is replaced
 * only where its forward op had one.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

typedef struct forward_module {
    mtprof__forward forward;
    mtprof_text module; /* its text lives as long as the model; length 0: none */
} forward_module;

/* An open event that is a node, or is inside one. */
typedef struct open_backward {
    uint64_t id;
    mtprof_text module; /* empty: none was found */
} open_backward;

struct mtprof__chrome_modules {
    mtprof__forwards forwards; /* of forward_module */
    open_backward *open;
    size_t n_open, open_capacity;
};

int mtprof__chrome_modules_init(mtprof__chrome *chrome)
{
    if ((chrome->job->info.wants & MTPROF_WANT_MODULES) == 0) {
        return MTPROF_OK;
    }
    chrome->modules = mtb_calloc(1, sizeof *chrome->modules);
    if (chrome->modules == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for modules");
    }
    chrome->modules->forwards.entry_bytes = sizeof(forward_module);
    chrome->modules->forwards.limit = MTPROF__FORWARDS_MOST;
    return MTPROF_OK;
}

void mtprof__chrome_modules_fini(mtprof__chrome *chrome)
{
    if (chrome->modules != NULL) {
        chrome->job->report.left_out += chrome->modules->forwards.left_out;
        mtprof__forwards_fini(&chrome->modules->forwards);
        mtb_free(chrome->modules->open);
        mtb_free(chrome->modules);
    }
}

/* ---- forward ops ----------------------------------------------------------------------------- */

/* FW1. Where memory is refused a backward op has no module. */
static void remember(struct mtprof__chrome_modules *m, uint32_t thread,
                     const mtprof__payload *payload)
{
    bool added;
    forward_module *entry = mtprof__forward_add(&m->forwards, thread, payload->sequence, &added);
    if (added && (payload->fields & MTPROF__HAS_MODULE) != 0) {
        entry->module = payload->module;
    }
}

static mtprof_text module_of_node(struct mtprof__chrome_modules *m, const mtprof__payload *payload)
{
    const forward_module *entry = NULL;
    if ((payload->fields & MTPROF__HAS_SEQUENCE) != 0 && payload->sequence >= 0) {
        entry = mtprof__forward_find(&m->forwards, payload->forward_thread, payload->sequence);
    }
    return entry != NULL ? entry->module : (mtprof_text){"", 0};
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
    if (!mtb_append(m->open, m->n_open, m->open_capacity, &mine)) {
        chrome->error = MTPROF_ENOMEM;
        return;
    }
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
    if (module.length == 0 || event->kind != MTPROF_EVENT_KIND_OP) {
        return event;
    }
    *payload = event->payload != NULL ? *event->payload : (mtprof__payload){.sequence = -1};
    payload->module = module;
    payload->fields |= MTPROF__HAS_MODULE;
    *shown = *event;
    shown->payload = payload;
    return shown;
}
