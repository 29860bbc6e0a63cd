/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/columns/build_slot.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/prepare.h"
#include "mtprof/model/slot/slot_fast.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

enum {
    NAME_CACHE = 256,
    PROGRESS_EDGES = 1 << 16,
    EVENT_BYTES = 24 /* of trace for a begin and an end: what most traces are made of */
};

/* What a task needs while it runs. */
typedef struct builder {
    mtprof__slot_task *task;
    mtprof_model *model;
    mtprof__slot slot;
    mtprof__step_clock steps;
    uint32_t block; /* of the open segment */
    uint64_t
        thread; /* whose track is at hand; UINT64_MAX: none yet, as threads may have any number */
    uint32_t track;
    uint64_t edges;
    struct {
        uint32_t string, name;
    } names[NAME_CACHE];
} builder;

/* ---- one event ------------------------------------------------------------------------------- */

MT_INLINE uint32_t name_of_string(builder *b, uint32_t string)
{
    uint32_t at = string % NAME_CACHE;
    if (MT_UNLIKELY(b->names[at].string != string || string == 0)) {
        b->names[at].string = string;
        b->names[at].name = mtprof__dictionary_string_name(&b->model->dictionary, string);
    }
    return b->names[at].name;
}

static int find_name(builder *b, uint32_t string, const mtprof__payload_store *store,
                     uint32_t *name)
{
    mtprof_text text;
    if (string == 0 && store != NULL && mtprof__payload_name(store, &text)) {
        return mtprof__dictionary_name(&b->model->dictionary, text, name);
    }
    *name = name_of_string(b, string);
    return MTPROF_OK;
}

static MT_COLD int enter_block(builder *b, uint32_t block)
{
    mtprof__slot_task *task = b->task;
    if (!mtb_append(
            task->segments, task->n_segments, task->segments_capacity,
            &(mtprof__run_block){.block = block, .first = (uint32_t)task->events.columns.n})) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for events");
    }
    b->block = block;
    return MTPROF_OK;
}

static MT_COLD int enter_thread(builder *b, uint32_t thread)
{
    MT_TRY(mtprof__model_thread_track(b->model, thread, &b->track));
    b->thread = thread;
    return MTPROF_OK;
}

static MT_COLD int grow(mtprof__columns *columns)
{
    if (columns->n >= MTPROF_NO_EVENT - 1) {
        return mtb_fail(MTPROF_ENOTSUP, "make model: more than %u events", MTPROF_NO_EVENT - 1);
    }
    return mtprof__columns_reserve(columns, columns->n + columns->n / 2 + 256);
}

/* Keys are not stored: they follow from the rows, but for a jump here and there. */
static MT_COLD int note_key(mtprof__slot_task *task, uint64_t key)
{
    if (!mtb_append(task->anchors, task->n_anchors, task->anchors_capacity,
                    &(mtprof__key_anchor){key, (uint32_t)task->events.columns.n})) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for events");
    }
    task->next_key = key;
    return MTPROF_OK;
}

uint32_t mtprof__slot_task_row(const mtprof__slot_task *task, uint64_t key)
{
    for (size_t i = task->n_anchors; i-- > 0;) { /* a handful, unless the trace is damaged */
        const mtprof__key_anchor *anchor = &task->anchors[i];
        size_t behind = i + 1 < task->n_anchors ? anchor[1].row : task->events.columns.n;
        if (key >= anchor->key && key - anchor->key < behind - anchor->row) {
            return anchor->row + (uint32_t)(key - anchor->key);
        }
    }
    return MTPROF_NO_EVENT;
}

/* A row for an event of the slot that begins now; its flags and end come later. */
MT_INLINE int add_row(builder *b, uint32_t block, uint32_t thread, uint64_t key, uint32_t *row)
{
    mtprof__columns *c = &b->task->events.columns;
    if (MT_UNLIKELY(key != b->task->next_key)) {
        MT_TRY(note_key(b->task, key));
    }
    b->task->next_key++;
    if (MT_UNLIKELY(c->n == c->capacity)) {
        MT_TRY(grow(c));
    }
    if (MT_UNLIKELY(block != b->block)) {
        MT_TRY(enter_block(b, block));
    }
    if (MT_UNLIKELY(thread != b->thread)) {
        MT_TRY(enter_thread(b, thread));
    }
    *row = (uint32_t)c->n++;
    c->track[*row] = b->track;
    c->index[*row] = *row;
    c->device[*row] = 0;
    b->task->segments[b->task->n_segments - 1].count++;
    return MTPROF_OK;
}

/* Names a parent that is on another slot: known once all slots are read. */
static int name_parent(builder *b, uint64_t key, uint32_t row)
{
    return mtprof__links_add(&b->task->events.parents, key, row);
}

MT_INLINE int begin(builder *b)
{
    mtprof__slot *slot = &b->slot;
    mtprof__scope *scope = &slot->scopes[slot->at];
    mtprof__columns *c = &b->task->events.columns;
    uint32_t row = 0;
    MT_TRY(add_row(b, scope->block, scope->thread, scope->key, &row));
    scope->user = row;
    c->start_ns[row] = scope->start_ns;
    c->step[row] = mtprof__step_at(&b->steps, scope->start_ns);
    c->kind[row] = scope->kind;
    uint32_t parent = scope->kind == MTPROF_EVENT_KIND_FUNCTION ? scope->parent : scope->outer;
    c->parent[row] =
        parent != MTPROF__NO_SCOPE ? (uint32_t)slot->scopes[parent].user : MTPROF_NO_EVENT;
    if (MT_UNLIKELY(scope->parent_key != 0)) {
        MT_TRY(name_parent(b, scope->parent_key, row));
    }
    if (MT_UNLIKELY((scope->flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0)) {
        MT_TRY(mtprof__links_add(&b->task->events.hosts, scope->key, row));
    }
    if (MT_UNLIKELY(scope->name == 0)) {
        return find_name(b, 0, mtprof__slot_payload(slot, slot->at), &c->name[row]);
    }
    c->name[row] = name_of_string(b, scope->name);
    return MTPROF_OK;
}

MT_INLINE int end(builder *b)
{
    mtprof__slot *slot = &b->slot;
    mtprof__scope *scope = &slot->scopes[slot->at];
    mtprof__columns *c = &b->task->events.columns;
    uint32_t row = (uint32_t)scope->user;
    c->end_ns[row] = scope->end_ns;
    c->self_ns[row] = scope->self_ns;
    if (MT_UNLIKELY((scope->flags & MTPROF_EVENT_FLAG_OVERLAP) != 0)) {
        scope->flags &= (uint16_t)~MTPROF_EVENT_FLAG_TOP;
    }
    c->flags[row] = scope->flags;
    if (MT_UNLIKELY(scope->has_payload)) {
        return mtprof__payload_to_columns(b->model, mtprof__slot_payload(slot, slot->at),
                                          &slot->inputs, c, row);
    }
    return MTPROF_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static int launch(builder *b)
{
    mtprof__slot *slot = &b->slot;
    mtprof__columns *c = &b->task->events.columns;
    uint32_t row = 0;
    MT_TRY(add_row(b, slot->block, slot->thread, slot->record.key, &row));
    c->start_ns[row] = c->end_ns[row] = slot->ns;
    c->self_ns[row] = 0;
    c->step[row] = mtprof__step_at(&b->steps, slot->ns);
    c->kind[row] = MTPROF_EVENT_KIND_LAUNCH;
    uint32_t around = mtprof__slot_outside(slot, slot->at);
    c->parent[row] =
        around != MTPROF__NO_SCOPE ? (uint32_t)slot->scopes[around].user : MTPROF_NO_EVENT;
    c->flags[row] =
        (uint16_t)(MTPROF_EVENT_FLAG_LAUNCHES |
                   (slot->nest_top == MTPROF__NO_SCOPE ? MTPROF_EVENT_FLAG_TOP : 0) |
                   ((slot->record.aux & MTPROF_FLAG_DEVICE) != 0 ? MTPROF_EVENT_FLAG_DISPATCHED
                                                                 : 0));
    MT_TRY(mtprof__links_add(&b->task->events.hosts, slot->record.key, row));
    MT_TRY(find_name(b, slot->record.arg, &slot->point, &c->name[row]));
    return mtprof__payload_to_columns(b->model, &slot->point, &slot->inputs, c, row);
}

/* An event of its own: outside every scope, or refused. */
static int add_memory_event(builder *b, uint8_t kind, mtprof_text name, int64_t bytes,
                            uint32_t *place)
{
    mtprof__slot *slot = &b->slot;
    mtprof__columns *c = &b->task->memory.columns;
    if (c->n == c->capacity) {
        MT_TRY(grow(c));
    }
    if (slot->thread != b->thread) {
        MT_TRY(enter_thread(b, slot->thread));
    }
    uint32_t row = (uint32_t)c->n;
    MT_TRY(mtprof__dictionary_name(&b->model->dictionary, name, &c->name[row]));
    MT_TRY(mtprof__columns_set(c, MTPROF_COLUMN_BYTES, row, (uint64_t)bytes));
    c->n++;
    c->start_ns[row] = c->end_ns[row] = slot->ns;
    c->self_ns[row] = 0;
    c->parent[row] = MTPROF_NO_EVENT;
    c->track[row] = b->track;
    c->step[row] = mtprof__step_at(&b->steps, slot->ns);
    c->index[row] = MTPROF_NO_EVENT;
    c->kind[row] = kind;
    c->device[row] = 0;
    c->flags[row] = MTPROF_EVENT_FLAG_TOP;
    *place = row;
    return MTPROF_OK;
}

/* The column of what is allocated on the host or elsewhere. */
static uint32_t allocated_column(uint32_t device)
{
    return device == 0 ? MTPROF_COLUMN_ALLOCATED_SELF_CPU : MTPROF_COLUMN_ALLOCATED_SELF_DEVICE;
}

static int stray_allocation(builder *b, uint32_t device, int64_t bytes)
{
    static const char text[] = "[memory]";
    uint32_t row = 0;
    MT_TRY(add_memory_event(b, MTPROF_EVENT_KIND_MEMORY, (mtprof_text){text, sizeof text - 1},
                            bytes, &row));
    return mtprof__columns_set(&b->task->memory.columns, allocated_column(device), row,
                               (uint64_t)bytes);
}

static int refusal(builder *b)
{
    static const char text[] = "[OutOfMemory]";
    uint32_t row;
    return add_memory_event(b, MTPROF_EVENT_KIND_OUT_OF_MEMORY,
                            (mtprof_text){text, sizeof text - 1}, (int64_t)b->slot.point_words[1],
                            &row);
}

static int allocation(builder *b)
{
    mtprof__slot *slot = &b->slot;
    mtprof__columns *c = &b->task->events.columns;
    uint32_t device = slot->record.aux & 0xFF;
    int64_t bytes = (int64_t)slot->point_words[1];
    uint32_t owner = mtprof__slot_owner(slot);
    void *column = NULL;
    if (owner == MTPROF__NO_SCOPE) {
        return stray_allocation(b, device, bytes);
    }
    MT_TRY(mtprof__columns_extra(c, allocated_column(device), &column));
    int64_t *sum = &((int64_t *)column)[slot->scopes[owner].user];
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)bytes);
    return MTPROF_OK;
}

static int point(builder *b)
{
    switch (b->slot.record.kind) {
    case MTPROF_REC_LAUNCH: return launch(b);
    case MTPROF_REC_ALLOC:
        b->task->points |= MTPROF__KIND_BIT(MTPROF_EVENT_KIND_ALLOC);
        return allocation(b);
    case MTPROF_REC_OUT_OF_MEMORY: return refusal(b);
    default: /* marks are for exports */ b->task->points |= MTPROF__KINDS_MARK; return MTPROF_OK;
    }
}

static int foreign_end(builder *b)
{
    mtprof__slot_task *task = b->task;
    return mtb_append(
               task->ends, task->n_ends, task->ends_capacity,
               &(mtprof__foreign_end){b->slot.record.key, b->slot.ns, b->slot.cursor.stream->slot})
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "make model: no memory for events");
}

/* ---- the pass -------------------------------------------------------------------------------- */

static MT_COLD int report(builder *b)
{
    const mtprof_model_options *options = &b->model->options;
    uint64_t done =
        __atomic_fetch_add(b->task->done_bytes, PROGRESS_EDGES * EVENT_BYTES / 2, __ATOMIC_RELAXED);
    if (__atomic_load_n(b->task->failed, __ATOMIC_RELAXED) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "make model: given up"); /* keeps the first failure */
    }
    if (!b->task->reports || options->progress == NULL) {
        return MTPROF_OK;
    }
    uint64_t total = b->model->reader->index.end;
    if (options->progress(options->user, "reading", done < total ? done : total, total) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "make model: given up on request");
    }
    return MTPROF_OK;
}

/* Handles plain steps until one is not. */
static int pass_fast(builder *b)
{
    for (;;) {
        enum mtprof__fast step = mtprof__slot_fast(&b->slot, INT64_MAX);
        if (MT_UNLIKELY(step == MTPROF__FAST_NONE)) {
            return MTPROF_OK;
        }
        MT_TRY(step == MTPROF__FAST_BEGIN ? begin(b) : end(b));
        if (MT_UNLIKELY(++b->edges % PROGRESS_EDGES == 0)) {
            MT_TRY(report(b));
        }
    }
}

static int pass(builder *b)
{
    for (;;) {
        enum mtprof__slot_edge edge;
        MT_TRY(pass_fast(b));
        int status = mtprof__slot_fetch(&b->slot);
        if (status == MTPROF_OK) {
            status = mtprof__slot_apply(&b->slot, &edge);
            if (status == MTPROF_EEND) {
                continue;
            }
        }
        if (MT_UNLIKELY(status != MTPROF_OK)) {
            return status == MTPROF_EEND ? MTPROF_OK : status;
        }
        if (edge == MTPROF__SLOT_BEGIN) {
            status = begin(b);
        } else if (edge == MTPROF__SLOT_END) {
            status = end(b);
        } else {
            status = edge == MTPROF__SLOT_POINT ? point(b) : foreign_end(b);
        }
        MT_TRY(status);
        if (MT_UNLIKELY(++b->edges % PROGRESS_EDGES == 0)) {
            MT_TRY(report(b));
        }
    }
}

int mtprof__slot_task_run(mtprof__slot_task *task)
{
    mtprof_model *model = task->model;
    const mtprof__read_stream *stream = &model->reader->index.streams[task->stream];
    mtprof__coverage coverage = {model->epochs, model->n_epochs, model->strays};
    builder *b = mtb_calloc(1, sizeof *b);
    if (b == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for events");
    }
    b->task = task;
    b->model = model;
    b->block = UINT32_MAX;
    b->thread = UINT64_MAX;
    task->events.order = task->memory.order = stream->slot;
    mtprof__step_clock_init(&b->steps, model);
    int status = mtprof__slot_init(&b->slot, model->reader, task->stream, &coverage);
    if (status == MTPROF_OK) {
        b->slot.foreign = task->foreign;
        b->slot.n_foreign = task->n_foreign;
        size_t expected = (size_t)(stream->bytes / EVENT_BYTES) + 64;
        status = mtprof__columns_reserve(
            &task->events.columns, expected < MTPROF_NO_EVENT ? expected : MTPROF_NO_EVENT - 1);
    }
    if (status == MTPROF_OK) {
        status = pass(b);
    }
    task->counts = b->slot.counts;
    mtprof__slot_fini(&b->slot);
    mtb_free(b);
    return status;
}

void mtprof__slot_task_reset(mtprof__slot_task *task)
{
    mtprof__run_fini(&task->events);
    mtprof__run_fini(&task->memory);
    memset(&task->events, 0, sizeof task->events);
    memset(&task->memory, 0, sizeof task->memory);
    mtb_free(task->segments);
    mtb_free(task->ends);
    mtb_free(task->anchors);
    task->anchors = NULL;
    task->n_anchors = task->anchors_capacity = 0;
    task->next_key = 0;
    task->segments = NULL;
    task->ends = NULL;
    task->n_segments = task->segments_capacity = 0;
    task->n_ends = task->ends_capacity = 0;
}
