/* SPDX-License-Identifier: Apache-2.0
 *
 * What was read becomes the model: threads get their numbers, devices their names, runs are
 * passed on, and what needs all events in order is decided.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"
#include "mtprof/model/facts/event_kinds.h"

#include <string.h>

/* ---- ends that never came -------------------------------------------------------------------- */

static void close_spans(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        mtprof__import_track *track = &import->tracks[t];
        mtprof__columns *columns = &track->run.columns;
        for (size_t i = 0; i < columns->n; i++) {
            if ((columns->flags[i] & MTPROF_EVENT_FLAG_TRUNCATED) != 0) {
                columns->end_ns[i] = import->last_ns;
                track->unsorted = true;
                import->found.truncated++;
            }
        }
    }
}

/* ---- threads and queues ---------------------------------------------------------------------- */

/* The text for which a number was made, or an empty one. */
static mtprof_text strange_text(const mtprof__import *import, int64_t id)
{
    int64_t name = id - MTPROF__STRANGE_ID;
    return name >= 0 && name < import->model->dictionary.n_names
               ? mtprof_model_name(import->model, (uint32_t)name)
               : (mtprof_text){"", 0};
}

static mtprof_text process_name(const mtprof__import *import, int64_t pid)
{
    size_t from = mtprof__import_find_process(import, pid);
    return from < import->n_processes && import->processes[from].pid == pid
               ? import->processes[from].name
               : strange_text(import, pid);
}

static int add_thread(mtprof__import *import, mtprof__import_track *track, uint32_t number)
{
    const mtprof_track thread = {
        .number = number,
        .pid = track->pid,
        .tid = track->tid,
        .name = track->name.bytes != NULL ? track->name : strange_text(import, track->tid),
        .process_name = process_name(import, track->pid),
    };
    return mtprof__dictionary_thread_track(&import->model->dictionary, &thread, &track->track);
}

/* Threads are numbered in the order of their first event; those with points only come last. */
static int number_threads(mtprof__import *import, mtprof__sort_key *keys, bool *has_points)
{
    size_t n = 0;
    for (size_t i = 0; i < import->n_points; i++) {
        has_points[import->points[i].track] = true;
    }
    for (size_t t = 0; t < import->n_tracks; t++) {
        const mtprof__import_track *track = &import->tracks[t];
        bool some = track->run.columns.n > 0;
        if (!mtprof__import_is_queue(track) && (some || has_points[t])) {
            keys[n++] = (mtprof__sort_key){some ? track->run.columns.start_ns[0] : INT64_MAX, 0, 0,
                                           (uint32_t)t};
        }
    }
    MT_TRY(mtprof__import_sort_keys(keys, n));
    for (size_t i = 0; i < n; i++) {
        MT_TRY(add_thread(import, &import->tracks[keys[i].place], (uint32_t)i + 1));
    }
    int64_t pid = n > 0 ? import->tracks[keys[0].place].pid : 0;
    import->model->info.pid = pid > 0 && pid < MTPROF__STRANGE_ID ? (uint64_t)pid : 0;
    return MTPROF_OK;
}

static int add_threads(mtprof__import *import)
{
    mtprof__sort_key *keys = mtb_calloc(import->n_tracks + 1, sizeof *keys);
    bool *has_points = mtb_calloc(import->n_tracks + 1, sizeof *has_points);
    int status = keys != NULL && has_points != NULL
                     ? number_threads(import, keys, has_points)
                     : mtb_fail(MTPROF_ENOMEM, "open trace: %zu threads", import->n_tracks);
    mtb_free(keys);
    mtb_free(has_points);
    return status;
}

static mtprof_text device_type(const mtprof__import *import)
{
    if (import->device_name.bytes != NULL) {
        return import->device_name;
    }
    /* Kernels without a device type are CUDA's: every tool that writes such kernels means that. */
    const char *type = import->device_type != NULL ? import->device_type : "CUDA";
    return (mtprof_text){type, strlen(type)};
}

static int model_device(mtprof__import *import, int64_t number, uint32_t *device)
{
    MT_TRY(mtprof__dictionary_device(&import->model->dictionary, device_type(import),
                                     (int32_t)number, device));
    if (import->model->info.device_type == NULL) {
        import->model->info.device_type = import->model->dictionary.devices[*device].type.bytes;
    }
    return MTPROF_OK;
}

static int add_queues(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        mtprof__import_track *track = &import->tracks[t];
        mtprof__columns *columns = &track->run.columns;
        if (!mtprof__import_is_queue(track) || columns->n == 0) {
            continue;
        }
        uint32_t device;
        MT_TRY(model_device(import, track->pid, &device));
        MT_TRY(mtprof__dictionary_queue_track(&import->model->dictionary, device,
                                              (uint32_t)track->tid, &track->track));
        memset(columns->device, (int)device, columns->n);
        memset(columns->index, 0xFF, columns->n * sizeof *columns->index); /* sorted: none */
    }
    return MTPROF_OK;
}

/* ---- what names other things ----------------------------------------------------------------- */

/* Trees are there: the flags of reading become the model's. */
static void set_tracks(mtprof__import *import)
{
    const uint16_t said = MTPROF__SAID_OVERLAP | MTPROF_EVENT_FLAG_ASYNC;
    for (size_t t = 0; t < import->n_tracks; t++) {
        const mtprof__columns *columns = &import->tracks[t].run.columns;
        for (size_t i = 0; i < columns->n; i++) {
            columns->track[i] = import->tracks[t].track;
            if (MT_UNLIKELY((columns->flags[i] & MTPROF__SAID_OVERLAP) != 0)) {
                columns->flags[i] =
                    (uint16_t)((columns->flags[i] & ~said) | MTPROF_EVENT_FLAG_OVERLAP);
            }
        }
    }
}

/* MEMORY_DEVICE says so far whether it is the first device's memory or the host's. */
static int set_memory_devices(mtprof__import *import)
{
    uint32_t device = 0;
    for (size_t t = 0; t < import->n_tracks; t++) {
        const mtprof__columns *columns = &import->tracks[t].run.columns;
        uint8_t *devices = columns->extra[MTPROF_COLUMN_MEMORY_DEVICE];
        if (devices == NULL) {
            continue;
        }
        if (device == 0 && memchr(devices, 1, columns->n) != NULL) {
            MT_TRY(model_device(import, 0, &device));
        }
        for (size_t i = 0; i < columns->n; i++) {
            devices[i] = (uint8_t)(devices[i] != 0 ? device : 0);
        }
    }
    return MTPROF_OK;
}

/* Which events may be named by device work and as parents. Runtime calls of other tools have ids of
 * another kind, which may be the same. */
static bool is_host_of_links(const mtprof__import *import, uint8_t kind)
{
    bool ours = import->is_ours && !import->two_id_families;
    return mtprof__kind_in(kind, MTPROF__KINDS_OWNER) ||
           (ours && (kind == MTPROF_EVENT_KIND_FUNCTION || kind == MTPROF_EVENT_KIND_RUNTIME));
}

static int add_hosts_of(const mtprof__import *import, mtprof__run *run)
{
    const uint64_t *ids = run->columns.extra[MTPROF_COLUMN_CORRELATION];
    for (uint32_t i = 0; ids != NULL && i < run->columns.n; i++) {
        if (ids[i] != 0 && is_host_of_links(import, run->columns.kind[i])) {
            MT_TRY(mtprof__links_add(&run->hosts, ids[i], i));
        }
    }
    return MTPROF_OK;
}

static int add_hosts(mtprof__import *import)
{
    bool needed = false;
    for (size_t t = 0; t < import->n_tracks; t++) {
        needed |= import->tracks[t].run.works.n + import->tracks[t].run.parents.n != 0;
    }
    for (size_t t = 0; needed && t < import->n_tracks; t++) {
        MT_TRY(add_hosts_of(import, &import->tracks[t].run));
    }
    return MTPROF_OK;
}

/* Whether times do not show what an event is in: it has no duration, and nests. */
static bool is_moment(const mtprof__columns *columns, uint32_t i)
{
    return columns->start_ns[i] == columns->end_ns[i] &&
           (columns->flags[i] & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) == 0 &&
           columns->kind[i] != MTPROF_EVENT_KIND_FUNCTION;
}

/* An event says what its parent is. Key 0: it has none, whatever the times say. A moment is TOP
 * unless its parent is on its track: no sum of times depends on it. Other keys become parents when
 * all runs are there. */
static void settle_parent(const mtprof__import *import, uint32_t track, const mtprof__link *link,
                          const mtprof__id_refs *refs)
{
    const mtprof__columns *columns = &import->tracks[track].run.columns;
    uint32_t i = link->event;
    const mtprof__id_ref *parent =
        link->key != 0 ? mtprof__import_refs_find(refs, link->key) : NULL;
    if (link->key == 0) {
        columns->parent[i] = MTPROF_NO_EVENT;
    }
    if (is_moment(columns, i) && (link->key == 0 || parent != NULL)) {
        bool inside = parent != NULL && parent->track == track;
        columns->flags[i] = (uint16_t)(inside ? columns->flags[i] & ~MTPROF_EVENT_FLAG_TOP
                                              : columns->flags[i] | MTPROF_EVENT_FLAG_TOP);
    }
}

static int settle_parents(const mtprof__import *import)
{
    mtprof__id_refs refs = {NULL, 0};
    int status = MTPROF_OK;
    for (uint32_t t = 0; status == MTPROF_OK && t < import->n_tracks; t++) {
        const mtprof__links *parents = &import->tracks[t].run.parents;
        if (parents->n > 0 && refs.items == NULL) {
            status = mtprof__import_refs_make(import, &refs);
        }
        for (size_t i = 0; status == MTPROF_OK && i < parents->n; i++) {
            settle_parent(import, t, &parents->items[i], &refs);
        }
    }
    mtb_free(refs.items);
    return status;
}

/* Our own traces have "record_scope" where it is not the default. Without any, all scopes have the
 * default: the column exists, so that names do not decide (backward_stacks.c BST3), and stacks stay
 * unchanged. */
static int settle_scopes(const mtprof__import *import)
{
    for (size_t t = 0; import->is_ours && t < import->n_tracks; t++) {
        mtprof__columns *columns = &import->tracks[t].run.columns;
        void *scopes;
        if (columns->extra[MTPROF_COLUMN_STACK] != NULL) {
            MT_TRY(mtprof__columns_extra(columns, MTPROF_COLUMN_RECORD_SCOPE, &scopes));
        }
    }
    return MTPROF_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static void point_key(const void *item, mtprof__sort_key *key)
{
    key->start_ns = ((const mtprof__event *)item)->start_ns;
}

static int sort_points(mtprof__import *import)
{
    bool sorted = true;
    for (size_t i = 1; i < import->n_points && sorted; i++) {
        sorted = import->points[i - 1].start_ns <= import->points[i].start_ns;
    }
    return sorted ? MTPROF_OK
                  : mtprof__import_sort_items((void **)&import->points, import->n_points,
                                              sizeof *import->points, point_key);
}

/* Numbers of the import become numbers of the model. */
static int set_points(mtprof__import *import)
{
    for (size_t i = 0; i < import->n_points; i++) {
        mtprof__event *point = &import->points[i];
        uint32_t device = 0;
        if (point->device != 0) {
            MT_TRY(model_device(import, point->device - 1, &device));
        }
        point->device = (uint8_t)device;
        point->track = import->tracks[point->track].track;
        point->name_text = mtprof_model_name(import->model, point->name);
    }
    return MTPROF_OK;
}

/* ---- handing over ---------------------------------------------------------------------------- */

static int assemble(mtprof__import *import, mtprof__run *strays)
{
    size_t n = import->n_tracks + 1;
    mtprof__run *runs = mtb_calloc(n, sizeof *runs);
    if (runs == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu runs", n);
    }
    for (size_t t = 0; t < import->n_tracks; t++) {
        bool annotations = import->tracks[t].space == MTPROF__TRACK_ANNOTATION;
        runs[t] = import->tracks[t].run;
        runs[t].order = annotations ? 0 : (uint32_t)t + 1;
        import->tracks[t].run = (mtprof__run){.order = 0};
    }
    runs[n - 1] = *strays;
    runs[n - 1].order = (uint32_t)n + 1;
    *strays = (mtprof__run){.order = 0};
    import->model->points = import->points;
    import->model->n_points = import->n_points;
    import->points = NULL;
    import->n_points = 0;
    int status = mtprof__model_assemble(import->model, runs, n);
    mtb_free(runs);
    return status;
}

static int add_memory(mtprof__import *import, mtprof__import_track *strays)
{
    uint32_t *bases = mtb_calloc(import->n_tracks + 1, sizeof *bases);
    if (bases == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu tracks", import->n_tracks);
    }
    uint64_t base = 0;
    for (size_t t = 0; t < import->n_tracks; t++) {
        bases[t] = (uint32_t)base;
        base += import->tracks[t].run.columns.n;
    }
    int status = MTPROF_OK;
    if (base < UINT32_MAX) { /* more are refused when they are assembled */
        status = mtprof__import_memory(import, bases, &strays->run);
    }
    mtb_free(bases);
    if (status == MTPROF_OK && strays->run.columns.n > 0) {
        strays->pid = (int64_t)import->model->info.pid;
        strays->unsorted = true;
        status = mtprof__import_sort(strays);
        memset(strays->run.columns.index, 0xFF,
               strays->run.columns.n * sizeof *strays->run.columns.index); /* sorted: none */
        mtprof__import_tell_steps(import, strays);
    }
    return status;
}

/* ---- what needs all events ------------------------------------------------------------------- */

static bool is_memory(uint8_t kind)
{
    return kind == MTPROF_EVENT_KIND_MEMORY || kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY;
}

/* Host events that came without a number get one: in order of beginning, after those that did. */
static void number_events(const mtprof__columns *columns)
{
    uint32_t next = 0;
    for (size_t i = 0; i < columns->n; i++) {
        uint32_t index = columns->index[i];
        next = index < MTPROF__NO_INDEX && index >= next ? index + 1 : next;
    }
    for (size_t i = 0; i < columns->n; i++) {
        if (columns->index[i] == MTPROF__NO_INDEX && next < MTPROF__NO_INDEX) {
            columns->index[i] = next++;
        }
    }
}

/* Host events without an id get one above all others: parents and owners are given by ids. */
static int identify_events(mtprof__columns *columns)
{
    const uint64_t id_most = (uint64_t)1 << 52;
    const uint64_t *known = columns->extra[MTPROF_COLUMN_CORRELATION];
    uint64_t next = 1;
    for (size_t i = 0; known != NULL && i < columns->n; i++) {
        next = known[i] >= next && known[i] < id_most ? known[i] + 1 : next;
    }
    void *ids = NULL;
    for (size_t i = 0; i < columns->n; i++) {
        if (columns->device[i] != 0 || is_memory(columns->kind[i]) ||
            (known != NULL && known[i] != 0)) {
            continue;
        }
        if (ids == NULL) {
            MT_TRY(mtprof__columns_extra(columns, MTPROF_COLUMN_CORRELATION, &ids));
        }
        ((uint64_t *)ids)[i] = next++;
    }
    return MTPROF_OK;
}

/* Device work was launched in the step of what launched it. Ours says what step its work has;
 * annotations have that of their scope. */
static void tell_device_steps(const mtprof__columns *columns, bool is_ours)
{
    const uint32_t *link = columns->extra[MTPROF_COLUMN_LINK];
    for (size_t i = 0; link != NULL && i < columns->n; i++) {
        bool asked = !is_ours || columns->kind[i] == MTPROF_EVENT_KIND_ANNOTATION;
        if (asked && columns->device[i] != 0 && columns->step[i] < 0 &&
            link[i] != MTPROF_NO_EVENT) {
            columns->step[i] = columns->step[link[i]];
        }
    }
}

static uint64_t wants_of(const mtprof__import *import)
{
    static const struct {
        uint32_t column;
        uint64_t want;
    } columns[] = {
        {MTPROF_COLUMN_INPUTS, MTPROF_WANT_INPUTS},
        {MTPROF_COLUMN_STACK, MTPROF_WANT_STACKS},
        {MTPROF_COLUMN_FLOPS, MTPROF_WANT_FLOPS},
        {MTPROF_COLUMN_MODULE, MTPROF_WANT_MODULES},
        {MTPROF_COLUMN_MEMORY_BEFORE, MTPROF_WANT_MEMORY},
        {MTPROF_COLUMN_SEQUENCE, MTPROF_WANT_DETAILS},
    };
    const mtprof_model *model = import->model;
    uint64_t wants = import->wants;
    for (size_t i = 0; i < MT_COUNT(columns); i++) {
        wants |= model->columns.extra[columns[i].column] != NULL ? columns[i].want : 0;
    }
    wants |= import->n_allocs > 0 ? MTPROF_WANT_ALLOCS : 0;
    wants |= model->n_points > import->n_allocs ? MTPROF_WANT_MARKS : 0;
    wants |= model->info.device_type != NULL ? MTPROF_WANT_DEVICE : 0;
    for (size_t i = 0; i < model->columns.n; i++) {
        switch (model->columns.kind[i]) {
        case MTPROF_EVENT_KIND_OP: wants |= MTPROF_WANT_OPS; break;
        case MTPROF_EVENT_KIND_RUNTIME: wants |= MTPROF_WANT_RUNTIME; break;
        default: wants |= MTPROF_WANT_SCOPES; break;
        }
    }
    return wants;
}

static void tell_findings(mtprof__import *import)
{
    mtprof_model_findings *findings = &import->model->findings;
    const mtprof__columns *columns = &import->model->columns;
    for (size_t i = 0; i < columns->n; i++) {
        findings->overlaps += (columns->flags[i] & MTPROF_EVENT_FLAG_OVERLAP) != 0;
    }
    findings->ends_without_begin = import->found.ends_without_begin;
    findings->truncated = import->found.truncated;
    findings->clock_back = import->found.clock_back;
    findings->problems = import->found.problems;
    findings->problem_offset = import->found.problem_offset;
    findings->skipped = import->found.skipped;
    findings->left_out += import->found.left_out;
}

static void tell_info(mtprof__import *import)
{
    mtprof_model_info *info = &import->model->info;
    bool any = import->first_ns <= import->last_ns;
    info->start_ns = any ? import->first_ns : 0;
    info->end_ns = any ? import->last_ns : 0;
    info->real_offset_ns = import->base_ns;
    info->windows = 1;
    info->closed = import->found.problems == 0;
    info->wants = wants_of(import);
}

static int settle_all(mtprof__import *import, mtprof__import_track *strays)
{
    MT_TRY(add_memory(import, strays));
    MT_TRY(set_points(import));
    MT_TRY(settle_parents(import));
    return assemble(import, &strays->run);
}

int mtprof__import_finish(mtprof__import *import)
{
    if (import->has_begins) {
        close_spans(import);
    }
    MT_TRY(mtprof__import_trees(import));
    MT_TRY(sort_points(import));
    MT_TRY(add_threads(import));
    MT_TRY(add_queues(import));
    set_tracks(import);
    MT_TRY(set_memory_devices(import));
    MT_TRY(settle_scopes(import));
    import->model->two_id_families = !import->is_ours || import->two_id_families;
    MT_TRY(add_hosts(import));
    mtprof__import_track strays = {.run.order = 0};
    int status = settle_all(import, &strays);
    mtprof__run_fini(&strays.run);
    MT_TRY(status);
    number_events(&import->model->columns);
    MT_TRY(identify_events(&import->model->columns));
    tell_device_steps(&import->model->columns, import->is_ours);
    tell_findings(import);
    tell_info(import);
    return MTPROF_OK;
}
