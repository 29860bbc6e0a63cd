/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining: memory. One pass over the allocations of the event stream finds how much is in use
 * at the end of each step, and the peak; where memory grows, or one block makes the peak, a second
 * pass lists what is allocated then.
 *
 * Thresholds: memory grows where at least three steps, the first two left out, all end with more
 * than the one before (of ten or more, nine in ten), and the growth is at least GROWTH_LEAST bytes
 * and a twentieth of what was in use. A peak is a finding where it is at least PEAK_LEAST bytes and
 * one block that is freed again is at least 40 % of it, or where an allocation was refused.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/explain/explain_impl.h"
#include "mtprof/analyze/memory/memory_live.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = 32, /* that are looked at; of more, the first */
    GROWTH_LEAST = 1 << 20,
    PEAK_LEAST = 64 << 20,
    STEPS_LEAST = 5,
    STEPS_LEFT_OUT = 2 /* at first optimizers and caches allocate what stays */
};

typedef struct usage {
    int64_t now_bytes, peak_bytes, peak_ns;
    uint64_t peak_ordinal; /* of the allocation that reached it */
    int64_t largest;       /* block of the whole trace */
} usage;

typedef struct watch {
    mtprof_explain *e;
    usage devices[DEVICES];
    int64_t *ends; /* [device][step]: in use at its end */
    size_t step;   /* whose end comes next */
    mtprof__addresses live;
    uint64_t ordinal;
    uint64_t at_end;  /* the last allocation in the last step */
    uint64_t stop_at; /* second pass: after this allocation */
} watch;

static void close_steps(watch *w, int64_t now_ns)
{
    const mtprof_explain *e = w->e;
    while (w->step < e->n_steps && e->steps[w->step].end_ns <= now_ns) {
        for (size_t d = 0; d < DEVICES && w->ends != NULL; d++) {
            w->ends[d * e->n_steps + w->step] = w->devices[d].now_bytes;
        }
        w->step++;
        w->at_end = w->ordinal;
    }
}

static int take(watch *w, const mtprof__event *event)
{
    usage *u = &w->devices[event->device];
    w->ordinal++;
    u->now_bytes = event->allocated;
    if (event->allocated > u->peak_bytes) {
        u->peak_bytes = event->allocated;
        u->peak_ns = event->start_ns;
        u->peak_ordinal = w->ordinal;
    }
    if (event->bytes < 0) {
        mtprof__live_block *gone = mtprof__addresses_find(&w->live, event->device, event->value);
        if (gone != NULL) {
            gone->state = MTPROF__LIVE_DEAD;
        }
        return MTPROF_OK;
    }
    u->largest = event->bytes > u->largest ? event->bytes : u->largest;
    mtprof__live_block *block = mtprof__addresses_add(&w->live, event->device, event->value);
    if (block == NULL) {
        return mtprof__explain_no_memory("allocations");
    }
    block->state = MTPROF__LIVE_YES;
    block->bytes = event->bytes;
    block->unit = event->owner;
    block->ordinal = mtprof__explain_step_at(w->e, event->start_ns);
    return MTPROF_OK;
}

static int read_allocations(watch *w)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    MT_TRY(mtprof__events_open(w->e->model, &events));
    int status = mtprof__events_next(events, &event);
    while (status == MTPROF_OK && (w->stop_at == 0 || w->ordinal < w->stop_at)) {
        if (event->kind == MTPROF_EVENT_KIND_ALLOC && event->device < DEVICES) {
            close_steps(w, event->start_ns);
            status = take(w, event);
        }
        status = status == MTPROF_OK ? mtprof__events_next(events, &event) : status;
    }
    mtprof__events_close(events);
    close_steps(w, INT64_MAX);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

/* ---- growth ---------------------------------------------------------------------------------- */

static bool does_grow(const mtprof_explain *e, const int64_t *ends, int64_t *bytes)
{
    size_t rises = 0;
    size_t n = e->n_steps - STEPS_LEFT_OUT;
    int64_t first = ends[STEPS_LEFT_OUT - 1];
    int64_t last = ends[e->n_steps - 1];
    for (size_t i = STEPS_LEFT_OUT; i < e->n_steps; i++) {
        rises += ends[i] > ends[i - 1];
    }
    *bytes = mtb_sub_sat(last, first);
    bool always = n < 10 ? rises == n : rises * 10 >= n * 9;
    return always && *bytes >= GROWTH_LEAST && *bytes >= first / 20;
}

/* ---- who allocated --------------------------------------------------------------------------- */

static int compare_owners(const void *a, const void *b)
{
    return mtb_order(((const mtprof__site *)a)->owner, ((const mtprof__site *)b)->owner);
}

static int compare_names(const void *a, const void *b)
{
    return mtb_order(((const mtprof__site *)a)->event, ((const mtprof__site *)b)->event);
}

static int compare_bytes(const void *a, const void *b)
{
    const mtprof__site *x = a, *y = b;
    int order = mtb_order(y->bytes, x->bytes);
    return order != 0 ? order : mtb_order(x->event, y->event);
}

/* Adds neighbours that are the same up. */
static size_t merge(mtprof__site *sites, size_t n, int (*compare)(const void *, const void *))
{
    size_t kept = 0;
    if (n == 0) {
        return 0;
    }
    qsort(sites, n, sizeof *sites, compare);
    for (size_t i = 1; i < n; i++) {
        if (compare(&sites[kept], &sites[i]) == 0) {
            sites[kept].bytes = mtb_add_sat(sites[kept].bytes, sites[i].bytes);
            sites[kept].count += sites[i].count;
        } else {
            sites[++kept] = sites[i];
        }
    }
    return kept + 1;
}

/* The events of the owners: one pass over the ids. */
static int find_events(mtprof_explain *e, mtprof__site *sites, size_t n)
{
    mtprof_column ids;
    MT_TRY(mtprof_model_get_column(e->model, MTPROF_COLUMN_CORRELATION, &ids));
    const uint64_t *id = ids.data;
    for (size_t i = 0; id != NULL && i < e->columns.n && n > 0; i++) {
        mtprof__site key = {.owner = id[i]};
        if (e->columns.device[i] != 0 || id[i] < sites[0].owner || id[i] > sites[n - 1].owner) {
            continue;
        }
        mtprof__site *found = bsearch(&key, sites, n, sizeof *sites, compare_owners);
        if (found != NULL && found->event == MTPROF_NO_EVENT && id[i] != 0) {
            uint32_t top = mtprof__explain_top(e, (uint32_t)i);
            bool is_step = e->columns.kind[top] == MTPROF_EVENT_KIND_STEP;
            found->event = is_step ? MTPROF_NO_EVENT : top; /* a step is no place */
        }
    }
    return MTPROF_OK;
}

/* Two events of the same name, module and innermost line are one place in the program: the first
 * of them stands for all. */
static void unite_events(const mtprof_explain *e, mtprof__site *sites, size_t n)
{
    const mtprof__explain_columns *c = &e->columns;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i && sites[i].event != MTPROF_NO_EVENT; k++) {
            uint32_t a = sites[i].event;
            uint32_t b = sites[k].event;
            if (b != MTPROF_NO_EVENT && c->name[a] == c->name[b] &&
                (c->module == NULL || c->module[a] == c->module[b]) &&
                (c->stack == NULL || c->stack[a] == c->stack[b])) {
                sites[i].event = b;
                break;
            }
        }
    }
}

enum {
    SITES_UNITED = 512 /* the largest owners: comparing all pairs stays cheap */
};

/* Blocks of a device that are live and were allocated in steps from first to last. */
static int list_sites(watch *w, uint8_t device, uint64_t first, uint64_t last, mtprof__site *out,
                      uint32_t *n_out)
{
    mtprof__site *sites = NULL;
    size_t n = 0;
    size_t capacity = 0;
    int status = MTPROF_OK;
    for (size_t i = 0; status == MTPROF_OK && i < w->live.capacity; i++) {
        const mtprof__live_block *block = &w->live.entries[i];
        const mtprof__site site = {
            .owner = block->unit, .event = MTPROF_NO_EVENT, .count = 1, .bytes = block->bytes};
        if (block->state == MTPROF__LIVE_YES && block->device == device &&
            block->ordinal >= first && block->ordinal <= last &&
            !mtb_append(sites, n, capacity, &site)) {
            status = mtprof__explain_no_memory("allocations");
        }
    }
    if (status == MTPROF_OK) {
        n = merge(sites, n, compare_owners);
        status = find_events(w->e, sites, n);
    }
    if (status == MTPROF_OK && n > 0) {
        qsort(sites, n, sizeof *sites, compare_bytes);
        n = n < SITES_UNITED ? n : SITES_UNITED;
        unite_events(w->e, sites, n);
        n = merge(sites, n, compare_names);
        qsort(sites, n, sizeof *sites, compare_bytes);
        *n_out = (uint32_t)(n < MTPROF__SITES ? n : MTPROF__SITES);
        memcpy(out, sites, *n_out * sizeof *out);
    }
    mtb_free(sites);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Who allocated what is kept at the end of the last step: after it the program may end, and free
 * everything. What the last step allocated may be freed in the next one. */
static int find_grown(watch *w)
{
    mtprof_explain *e = w->e;
    watch again = {.e = e, .stop_at = w->at_end};
    int status = read_allocations(&again);
    if (status == MTPROF_OK) {
        status = list_sites(&again, e->memory.grow_device, STEPS_LEFT_OUT - 1, e->n_steps - 2,
                            e->memory.grown, &e->memory.n_grown);
    }
    mtprof__addresses_fini(&again.live);
    return status;
}

static int find_growth(watch *w)
{
    mtprof_explain *e = w->e;
    int64_t most = 0;
    if (!e->has_steps || e->n_steps < STEPS_LEAST || w->ends == NULL) {
        return MTPROF_OK;
    }
    for (unsigned d = 0; d < DEVICES; d++) {
        const int64_t *ends = &w->ends[d * e->n_steps];
        int64_t bytes;
        if (does_grow(e, ends, &bytes) && bytes > most) {
            most = bytes;
            e->memory.grows = true;
            e->memory.grow_device = (uint8_t)d;
            e->memory.first_bytes = ends[STEPS_LEFT_OUT - 1];
            e->memory.last_bytes = ends[e->n_steps - 1];
        }
    }
    return e->memory.grows ? find_grown(w) : MTPROF_OK;
}

/* What is allocated at the peak of a device, and whether one block of it is freed later. */
static int find_peak(watch *w, uint8_t device)
{
    mtprof_explain *e = w->e;
    const usage *u = &w->devices[device];
    watch again = {.e = e, .stop_at = u->peak_ordinal};
    int64_t largest = 0;
    uint64_t address = 0;
    int status = read_allocations(&again);
    for (size_t i = 0; status == MTPROF_OK && i < again.live.capacity; i++) {
        const mtprof__live_block *block = &again.live.entries[i];
        if (block->state == MTPROF__LIVE_YES && block->device == device && block->bytes > largest) {
            largest = block->bytes;
            address = block->address;
        }
    }
    const mtprof__live_block *later = mtprof__addresses_find(&w->live, device, address);
    bool is_freed = later != NULL && (later->state != MTPROF__LIVE_YES || later->bytes != largest);
    bool makes_it = is_freed && largest >= u->peak_bytes / 5 * 2;
    if (status == MTPROF_OK && (makes_it || e->memory.refused > 0)) {
        e->memory.has_peak = true;
        e->memory.peak_device = device;
        e->memory.peak_bytes = u->peak_bytes;
        e->memory.peak_ns = u->peak_ns;
        status = list_sites(&again, device, 0, UINT64_MAX, e->memory.held, &e->memory.n_held);
    }
    mtprof__addresses_fini(&again.live);
    return status;
}

static int find_peaks(watch *w)
{
    for (uint8_t d = DEVICES; d-- > 0;) { /* accelerators, which have less memory, first */
        const usage *u = &w->devices[d];
        bool large = u->peak_bytes >= PEAK_LEAST && u->largest >= u->peak_bytes / 5 * 2;
        if (!w->e->memory.has_peak && u->peak_bytes > 0 && (large || w->e->memory.refused > 0)) {
            MT_TRY(find_peak(w, d));
        }
    }
    return MTPROF_OK;
}

static void count_refused(mtprof_explain *e)
{
    e->memory.refused_event = MTPROF_NO_EVENT;
    for (size_t i = 0; i < e->columns.n; i++) {
        if (e->columns.kind[i] == MTPROF_EVENT_KIND_OUT_OF_MEMORY) {
            e->memory.refused++;
            e->memory.refused_event = (uint32_t)i;
        }
    }
}

int mtprof__explain_memory(mtprof_explain *e)
{
    watch w = {.e = e};
    mtprof_model_info info = {.struct_size = sizeof info};
    MT_TRY(mtprof_model_get_info(e->model, &info));
    count_refused(e);
    if (info.foreign ? e->model->n_points == 0 : (info.wants & MTPROF_WANT_ALLOCS) == 0) {
        return MTPROF_OK;
    }
    w.ends = mtb_calloc(DEVICES * e->n_steps + 1, sizeof *w.ends);
    int status = w.ends != NULL ? read_allocations(&w) : mtprof__explain_no_memory("steps");
    if (status == MTPROF_OK) {
        status = find_growth(&w);
    }
    if (status == MTPROF_OK && !e->options.step_given) {
        status = find_peaks(&w);
    }
    mtprof__addresses_fini(&w.live);
    mtb_free(w.ends);
    return status;
}
