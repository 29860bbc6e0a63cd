/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the event stream once and notes what happens to which storage; memory_flow.c draws the
 * conclusions. Rules MC0 … are those of memory_categories.h.
 *
 * Each track has a stack of frames (what is open on it) and a list of the tensors that these
 * frames read: they are looked up when an op begins, because their addresses may be reused for
 * other memory by the time it ends.
 */
#include "mtprof/analyze/memory/memory_categories.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/analyze/memory/memory_categories_impl.h"
#include "mtprof/format/input_words.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/text/tensor_words.h"

#include <stdlib.h>
#include <string.h>

int mtprof__classifier_new(const mtprof_model *model, mtprof__classifier **out)
{
    *out = NULL;
    mtprof__classifier *c = mtb_calloc(1, sizeof *c);
    if (c == NULL) {
        return mtprof__no_memory("classifiers", 1);
    }
    c->model = model;
    c->forwards.entry_bytes = sizeof(mtprof__forward_inputs);
    c->forwards.limit = MTPROF__FORWARD_PLACES;
    *out = c;
    return 0;
}

uint64_t mtprof__classifier_left_out(const mtprof__classifier *c)
{
    return c->left_out + c->forwards.left_out;
}

void mtprof__classifier_free(mtprof__classifier *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < c->n_tracks; i++) {
        mtb_free(c->tracks[i].frames);
        mtb_free(c->tracks[i].uses);
    }
    mtb_free(c->tracks);
    mtprof__forwards_fini(&c->forwards);
    mtb_free(c->open_steps);
    mtb_free(c->outs);
    mtb_free(c->ins);
    mtprof__addresses_fini(&c->live);
    mtprof__flow_fini(&c->flow);
    mtprof__memory_plan_fini(&c->plan);
    mtb_free(c);
}

void mtprof__memory_plan_fini(mtprof__memory_plan *plan)
{
    mtb_free(plan->categories);
    mtb_free(plan->found);
    mtb_free(plan->changes);
    *plan = (mtprof__memory_plan){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

/* MC0. */
static uint8_t told_role(mtprof_text name)
{
    static const char prefix[] = "mtprof::memory::";
    static const struct {
        const char *name;
        uint8_t role;
    } roles[] = {
        {"parameter", MTPROF__MEMORY_PARAMETER},
        {"gradient", MTPROF__MEMORY_GRADIENT},
        {"optimizer_state", MTPROF__MEMORY_OPTIMIZER_STATE},
        {"input", MTPROF__MEMORY_INPUT},
    };
    if (!mtprof__text_starts(name, prefix)) {
        return MTPROF__MEMORY_UNKNOWN;
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(name.bytes + sizeof prefix - 1, roles[i].name) == 0) {
            return roles[i].role;
        }
    }
    return MTPROF__MEMORY_UNKNOWN;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Sizes of blocks that were not seen being allocated, from the shapes of the tensors in them. */
static void note_extents(mtprof__classifier *c, const mtprof__track *t, const mtprof__frame *f,
                         const mtprof__payload *p)
{
    mtprof_input_walk tensor = mtprof__input_walk(p->input_words, p->n_input_words);
    if (c->model == NULL || mtprof__count_tensors(tensor) > p->n_tensors_in) {
        return; /* which tensor has which shape is not known */
    }
    for (uint32_t i = 0; i < f->n_uses; i++) {
        if (!mtprof__next_tensor(&tensor)) {
            return;
        }
        uint32_t version = t->uses[f->first_use + i].version;
        if (version == MTPROF__NO_INDEX) {
            continue;
        }
        mtprof__storage *s = &c->flow.storages[c->flow.versions[version].storage];
        if ((s->block & MTPROF__BLOCK_FOUND) == 0) {
            continue;
        }
        uint32_t item = mtprof__type_bytes(mtprof_model_string(c->model, tensor.string));
        int64_t bytes = mtprof__tensor_extent(&tensor, p->tensors_in[i].offset, item);
        mtprof__found_block *found = &c->plan.found[s->block & ~MTPROF__BLOCK_FOUND];
        if (bytes > s->bytes) {
            s->bytes = found->bytes = bytes;
        }
    }
}

/* How many tensors the next input has: one, or those of a list (fused optimizers). */
static uint32_t tensors_of_next(mtprof_input_walk *walk)
{
    if (!mtprof__input_next(walk) || walk->kind != MTPROF_INPUT_LIST) {
        return 1;
    }
    uint32_t members = walk->count;
    uint32_t n = 0;
    for (uint32_t i = 0; i < members && mtprof__input_next(walk); i++) {
        n += walk->kind == MTPROF_INPUT_TENSOR;
    }
    return n;
}

static void count_first_inputs(mtprof__frame *f, const mtprof__payload *p)
{
    mtprof_input_walk walk = mtprof__input_walk(p->input_words, p->n_input_words);
    bool known = (p->fields & MTPROF__HAS_INPUTS) != 0;
    f->n_first = known ? tensors_of_next(&walk) : 1;
    f->n_second = known ? tensors_of_next(&walk) : 1;
}

/* MC0, where it came with the tensor. */
static uint8_t role_category(uint16_t role)
{
    switch (role & ~(uint32_t)MTPROF_TENSOR_NOT_READ) {
    case MTPROF_TENSOR_PARAMETER: return MTPROF__MEMORY_PARAMETER;
    case MTPROF_TENSOR_GRADIENT: return MTPROF__MEMORY_GRADIENT;
    case MTPROF_TENSOR_OPTIMIZER_STATE: return MTPROF__MEMORY_OPTIMIZER_STATE;
    case MTPROF_TENSOR_INPUT: return MTPROF__MEMORY_INPUT;
    default: return MTPROF__MEMORY_UNKNOWN;
    }
}

/* A tensor that is listed only for its role; its offset is the size of its storage in bytes. */
static int take_told(mtprof__classifier *c, const mtprof__tensor *tensor)
{
    mtprof__tensor_use use;
    MT_TRY(mtprof__resolve(c, tensor, false, c->ordinal, &use));
    if (use.version == MTPROF__NO_INDEX) {
        return 0;
    }
    uint32_t index = c->flow.versions[use.version].storage;
    uint8_t told = role_category(tensor->role);
    if (told != MTPROF__MEMORY_UNKNOWN) {
        mtprof__set_role(c, index, use.tensor, told);
    }
    mtprof__storage *s = &c->flow.storages[index];
    if ((s->block & MTPROF__BLOCK_FOUND) && tensor->offset > s->bytes) {
        s->bytes = c->plan.found[s->block & ~MTPROF__BLOCK_FOUND].bytes = tensor->offset;
    }
    return 0;
}

/* Looks up the tensors that an op reads, and notes the reader. Done again at its end: a part of a
 * long list may have come late. */
static int take_inputs(mtprof__classifier *c, mtprof__track *t, mtprof__frame *f,
                       const mtprof__payload *p)
{
    MT_TRY(mtprof__memory_reserve((void **)&t->uses, &t->uses_capacity, t->n_uses + p->n_tensors_in,
                                  sizeof *t->uses, "tensors"));
    bool forward = (f->facts & MTPROF__FRAME_BACKWARD) == 0 && f->optimizer == 0;
    bool numbered = forward && (p->fields & MTPROF__HAS_SEQUENCE) && p->sequence >= 0;
    for (uint32_t i = f->n_taken; i < p->n_tensors_in; i++) {
        if (p->tensors_in[i].role & MTPROF_TENSOR_NOT_READ) {
            MT_TRY(take_told(c, &p->tensors_in[i]));
            continue;
        }
        mtprof__tensor_use *use = &t->uses[t->n_uses];
        MT_TRY(mtprof__resolve(c, &p->tensors_in[i], false, c->ordinal, use));
        t->n_uses++;
        f->n_uses++;
        if (use->version == MTPROF__NO_INDEX) {
            continue;
        }
        uint32_t index = c->flow.versions[use->version].storage;
        mtprof__storage *s = &c->flow.storages[index];
        if (forward && f->told == MTPROF__MEMORY_UNKNOWN) {
            s->facts |= MTPROF__STORAGE_READ_FORWARD;
        } else if (f->optimizer != 0 && s->optimizer != f->optimizer) {
            s->facts |= MTPROF__STORAGE_READ_OPTIMIZER;
        }
        if (numbered) {
            MT_TRY(mtprof__forward_reads(c, mtprof__forward_key(p->sequence, t->thread), index));
        }
        uint8_t told =
            f->told != MTPROF__MEMORY_UNKNOWN ? f->told : role_category(p->tensors_in[i].role);
        if (told != MTPROF__MEMORY_UNKNOWN) {
            mtprof__set_role(c, index, use->tensor, told);
            c->tells_parameters |= told == MTPROF__MEMORY_PARAMETER;
        }
    }
    f->n_taken = p->n_tensors_in;
    count_first_inputs(f, p);
    if (p->fields & MTPROF__HAS_INPUTS) {
        note_extents(c, t, f, p);
    }
    return 0;
}

/* Marks the storages that the op reads, or takes the marks away. */
static void mark_read(mtprof__classifier *c, const mtprof__track *t, const mtprof__frame *f,
                      bool on)
{
    for (uint32_t i = 0; i < f->n_uses; i++) {
        uint32_t version = t->uses[f->first_use + i].version;
        if (version != MTPROF__NO_INDEX) {
            uint16_t *facts = &c->flow.storages[c->flow.versions[version].storage].facts;
            *facts =
                (uint16_t)(on ? *facts | MTPROF__STORAGE_MARKED : *facts & ~MTPROF__STORAGE_MARKED);
        }
    }
}

/* One output: what its op means for it. What the op reads is marked. */
static void note_output(mtprof__classifier *c, mtprof__frame *f, const mtprof__tensor_use *use,
                        size_t versions_before)
{
    mtprof__version *v = &c->flow.versions[use->version];
    uint32_t index = v->storage;
    mtprof__storage *s = &c->flow.storages[index];
    bool fresh = use->version >= versions_before;
    bool in_place = (s->facts & MTPROF__STORAGE_MARKED) != 0;
    bool changed = fresh && v->previous != MTPROF__NO_INDEX;
    if (f->facts & MTPROF__FRAME_BACKWARD) {
        s->facts |= MTPROF__STORAGE_WRITE_BACKWARD;
        s->forward = f->forward != 0 ? f->forward : s->forward;
        v->facts |= fresh ? MTPROF__VERSION_BACKWARD : 0;
    }
    if ((f->facts & MTPROF__FRAME_BACKWARD) == 0 && f->optimizer == 0) {
        s->facts |= MTPROF__STORAGE_WRITE_FORWARD;
    }
    if (f->optimizer != 0) {
        v->facts |= fresh ? MTPROF__VERSION_OPTIMIZER : 0;
        if (s->optimizer != f->optimizer && (changed || in_place)) {
            s->facts |= MTPROF__STORAGE_WRITE_OPTIMIZER;
        }
    } else if (!in_place && f->n_uses > 0) {
        s->facts |= MTPROF__STORAGE_DERIVED;
    }
    if ((f->facts & MTPROF__FRAME_ACCUMULATE) && changed) {
        f->facts |= MTPROF__FRAME_CHANGED;
        mtprof__set_gradient(c, index, use->tensor); /* MC2b */
    }
    if (f->facts & MTPROF__FRAME_ACCUMULATE_OP) {
        mtprof__set_gradient(c, index, use->tensor); /* MC2a */
    }
}

/* The versions that the op read, without the tensors that have no memory. */
static int gather_inputs(mtprof__classifier *c, const mtprof__track *t, const mtprof__frame *f,
                         uint32_t *n)
{
    *n = 0;
    MT_TRY(mtprof__memory_reserve((void **)&c->ins, &c->ins_capacity, f->n_uses, sizeof *c->ins,
                                  "tensors"));
    for (uint32_t i = 0; i < f->n_uses; i++) {
        uint32_t version = t->uses[f->first_use + i].version;
        if (version != MTPROF__NO_INDEX) {
            c->ins[(*n)++] = version;
        }
    }
    return 0;
}

static int take_outputs(mtprof__classifier *c, const mtprof__track *t, mtprof__frame *f,
                        const mtprof__payload *p)
{
    MT_TRY(mtprof__memory_reserve((void **)&c->outs, &c->outs_capacity, p->n_tensors_out,
                                  sizeof *c->outs, "tensors"));
    uint32_t n_outs = 0;
    int status = 0;
    mark_read(c, t, f, true);
    for (uint32_t i = 0; status == 0 && i < p->n_tensors_out; i++) {
        mtprof__tensor_use use;
        size_t before = c->flow.n_versions;
        status = mtprof__resolve(c, &p->tensors_out[i], true, f->ordinal, &use);
        if (status == 0 && use.version != MTPROF__NO_INDEX) {
            note_output(c, f, &use, before);
            c->outs[n_outs++] = use.version;
        }
    }
    mark_read(c, t, f, false);
    MT_TRY(status);
    uint32_t n_ins;
    MT_TRY(gather_inputs(c, t, f, &n_ins));
    uint32_t facts = (f->facts & MTPROF__FRAME_BACKWARD ? MTPROF__FLOW_BACKWARD : 0u) |
                     (f->optimizer != 0 ? MTPROF__FLOW_OPTIMIZER : 0u);
    return n_ins == 0 ? 0 : mtprof__flow_add(&c->flow, facts, c->ins, n_ins, c->outs, n_outs);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* NULL when memory is refused. */
static mtprof__track *track_get(mtprof__classifier *c, uint32_t number)
{
    if (number >= c->n_tracks) {
        if (!mtb_grow((void **)&c->tracks, &c->tracks_capacity, (size_t)number + 1,
                      sizeof *c->tracks)) {
            return NULL;
        }
        for (size_t i = c->n_tracks; i <= number; i++) {
            mtprof_track info;
            bool known = c->model != NULL && mtprof_model_track(c->model, (uint32_t)i, &info);
            c->tracks[i] = (mtprof__track){.thread = known ? info.number : (uint32_t)i + 1};
        }
        c->n_tracks = (size_t)number + 1;
    }
    return &c->tracks[number];
}

/* What a new frame is in: the innermost one of its thread, or its parent on another. */
static const mtprof__frame *frame_around(const mtprof__classifier *c, const mtprof__track *t,
                                         const mtprof__event *event)
{
    if ((event->flags & MTPROF_EVENT_FLAG_FOREIGN_PARENT) == 0 || event->parent == 0) {
        return mtprof__frame_top(t);
    }
    for (size_t i = 0; i < c->n_tracks; i++) {
        for (size_t k = c->tracks[i].n_frames; k > 0; k--) {
            if (c->tracks[i].frames[k - 1].id == event->parent) {
                return &c->tracks[i].frames[k - 1];
            }
        }
    }
    return mtprof__frame_top(t);
}

static void frame_classify(mtprof__frame *f, const mtprof__frame *around,
                           const mtprof__event *event, uint32_t own_thread)
{
    const mtprof__payload *p = event->payload;
    mtprof_text name = event->name_text;
    bool wrapper = mtprof__text_starts(name, "autograd::engine::evaluate_function: ");
    bool accumulate = mtprof__text_ends(name, "AccumulateGrad");
    bool function = p != NULL && (p->fields & MTPROF__HAS_RECORD_SCOPE) &&
                    p->record_scope == MTPROF_RECORD_SCOPE_BACKWARD;
    if (around != NULL) {
        f->unit = around->unit;
        f->forward = around->forward;
        f->optimizer = around->optimizer;
        f->facts = around->facts & (MTPROF__FRAME_BACKWARD | MTPROF__FRAME_UNIT_BACKWARD |
                                    MTPROF__FRAME_ACCUMULATE);
    }
    bool backward = wrapper || accumulate || function;
    if (backward) {
        f->facts |= MTPROF__FRAME_BACKWARD;
        if (p != NULL && (p->fields & MTPROF__HAS_SEQUENCE) && p->sequence >= 0) {
            uint32_t thread = mtprof__forward_thread(p);
            f->forward = mtprof__forward_key(p->sequence, thread != 0 ? thread : own_thread);
        }
    }
    if (accumulate) {
        f->facts |= MTPROF__FRAME_ACCUMULATE | MTPROF__FRAME_ACCUMULATE_OP;
    }
    bool starts_unit = f->unit == 0 || (backward && (f->facts & MTPROF__FRAME_UNIT_BACKWARD) == 0);
    if (event->kind == MTPROF_EVENT_KIND_OP && !wrapper && starts_unit) {
        f->unit = event->correlation;
        f->facts |= backward ? MTPROF__FRAME_UNIT_BACKWARD : 0;
    }
    f->told = told_role(name);
}

static int step_begins(mtprof__classifier *c, mtprof__frame *f)
{
    MT_TRY(mtprof__memory_reserve((void **)&c->open_steps, &c->open_steps_capacity,
                                  c->n_open_steps + 1, sizeof *c->open_steps, "optimizer steps"));
    f->optimizer = ++c->n_steps;
    f->facts |= MTPROF__FRAME_STEP;
    c->open_steps[c->n_open_steps++] = f->optimizer;
    return 0;
}

static void step_ends(mtprof__classifier *c, uint32_t step)
{
    for (size_t i = 0; i < c->n_open_steps; i++) {
        if (c->open_steps[i] == step) {
            c->open_steps[i] = c->open_steps[--c->n_open_steps];
            return;
        }
    }
}

static int take_begin(mtprof__classifier *c, mtprof__track *t, const mtprof__event *event)
{
    mtprof__frame f = {
        .id = event->correlation, .ordinal = c->ordinal, .first_use = (uint32_t)t->n_uses};
    frame_classify(&f, frame_around(c, t, event), event, t->thread);
    MT_TRY(mtprof__memory_reserve((void **)&t->frames, &t->frames_capacity, t->n_frames + 1,
                                  sizeof *t->frames, "open scopes"));
    if (f.optimizer == 0 && mtprof__text_starts(event->name_text, "Optimizer.step#")) {
        MT_TRY(step_begins(c, &f));
    }
    const mtprof__payload *p = event->payload;
    int status = 0;
    if (p != NULL && (p->fields & MTPROF__HAS_TENSORS_IN)) {
        status = take_inputs(c, t, &f, p);
    }
    t->frames[t->n_frames++] = f;
    return status;
}

/* An op of an optimizer without recorded outputs: by torch's naming ("add_") it changes its
 * first input, or every tensor of it where that is a list ("_fused_sgd_"). */
static void note_write(mtprof__classifier *c, const mtprof__frame *f, const mtprof__tensor_use *use)
{
    if (use->version == MTPROF__NO_INDEX) {
        return;
    }
    mtprof__storage *s = &c->flow.storages[c->flow.versions[use->version].storage];
    if (s->optimizer != f->optimizer) {
        s->facts |= MTPROF__STORAGE_WRITE_OPTIMIZER;
    }
}

/* MC2a, for an AccumulateGrad without recorded outputs. */
static void accumulate_ends(mtprof__classifier *c, const mtprof__track *t, const mtprof__frame *f,
                            bool has_outputs)
{
    if (has_outputs || (f->facts & MTPROF__FRAME_CHANGED)) {
        return;
    }
    for (uint32_t i = 0; i < f->n_uses; i++) {
        const mtprof__tensor_use *use = &t->uses[f->first_use + i];
        if (use->version != MTPROF__NO_INDEX) {
            mtprof__set_gradient(c, c->flow.versions[use->version].storage, use->tensor);
        }
    }
}

static int take_end(mtprof__classifier *c, mtprof__track *t, const mtprof__event *event)
{
    size_t at = t->n_frames;
    while (at > 0 && t->frames[at - 1].id != event->correlation) {
        at--;
    }
    if (at == 0) {
        return 0; /* its begin was not there */
    }
    mtprof__frame *f = &t->frames[at - 1];
    const mtprof__payload *p = event->payload;
    bool late = p != NULL && p->n_tensors_in > f->n_taken && at == t->n_frames;
    MT_TRY(late ? take_inputs(c, t, f, p) : 0);
    bool has_outputs = p != NULL && (p->fields & MTPROF__HAS_TENSORS_OUT) && p->n_tensors_out > 0;
    int status = has_outputs ? take_outputs(c, t, f, p) : 0;
    bool writes = f->optimizer != 0 && !has_outputs && mtprof__text_ends(event->name_text, "_");
    bool fused = mtprof__text_starts(event->name_text, "aten::_fused_");
    for (uint32_t i = 0; writes && i < f->n_uses; i++) {
        if (i < f->n_first || (fused && i >= f->n_first + f->n_second)) {
            note_write(c, f, &t->uses[f->first_use + i]);
        }
    }
    if (f->facts & MTPROF__FRAME_ACCUMULATE_OP) {
        accumulate_ends(c, t, f, has_outputs);
    }
    for (size_t i = at; i <= t->n_frames; i++) {
        if (t->frames[i - 1].facts & MTPROF__FRAME_STEP) {
            step_ends(c, t->frames[i - 1].optimizer);
        }
    }
    if (at > 1 && (f->facts & MTPROF__FRAME_CHANGED)) {
        t->frames[at - 2].facts |= MTPROF__FRAME_CHANGED;
    }
    t->n_uses = f->first_use;
    t->n_frames = at - 1;
    return status;
}

int mtprof__classifier_feed(mtprof__classifier *c, const mtprof__event *event)
{
    c->ordinal++;
    if (event->edge == MTPROF__EDGE_SPAN) {
        return 0;
    }
    mtprof__track *t = track_get(c, event->track);
    if (t == NULL) {
        return mtprof__no_memory("tracks", (size_t)event->track + 1);
    }
    if (event->edge == MTPROF__EDGE_BEGIN) {
        return take_begin(c, t, event);
    }
    if (event->edge == MTPROF__EDGE_END) {
        return take_end(c, t, event);
    }
    if (event->kind != MTPROF_EVENT_KIND_ALLOC || event->bytes == 0) {
        return 0;
    }
    return event->bytes > 0 ? mtprof__take_alloc(c, event, t) : mtprof__take_release(c, event, t);
}

/* ---- the end --------------------------------------------------------------------------------- */

static int compare_changes(const void *a, const void *b)
{
    const mtprof__block_change *x = a;
    const mtprof__block_change *y = b;
    if (x->ordinal != y->ordinal) {
        return x->ordinal < y->ordinal ? -1 : 1;
    }
    return (x->version > y->version) - (x->version < y->version);
}

void mtprof__classifier_finish(mtprof__classifier *c, mtprof__memory_plan *plan)
{
    c->n_open_steps = 0; /* what is alive now has survived */
    for (size_t i = 0; i < c->live.capacity; i++) {
        if (c->live.entries[i].state == MTPROF__LIVE_YES) {
            mtprof__block_ends(c, &c->live.entries[i], 0);
        }
    }
    mtprof__flow_solve(&c->flow);
    for (size_t i = 0; i < c->flow.n_storages; i++) {
        const mtprof__storage *s = &c->flow.storages[i];
        uint8_t category = c->flow.versions[s->first].category;
        if (s->block & MTPROF__BLOCK_FOUND) {
            c->plan.found[s->block & ~MTPROF__BLOCK_FOUND].category = category;
        } else {
            c->plan.categories[s->block] = category;
        }
    }
    for (size_t i = 0; i < c->plan.n_changes; i++) {
        c->plan.changes[i].category = c->flow.versions[c->plan.changes[i].version].category;
    }
    if (c->plan.n_changes > 1) {
        qsort(c->plan.changes, c->plan.n_changes, sizeof *c->plan.changes, compare_changes);
    }
    *plan = c->plan;
    c->plan = (mtprof__memory_plan){0};
}
