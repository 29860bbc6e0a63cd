/* SPDX-License-Identifier: Apache-2.0
 *
 * Folded stacks for flame graphs: "main.py(3):_main;aten::add 1234", one line for each distinct
 * path, with the nanoseconds that were spent there and not deeper, sorted by bytes.
 *
 *     path of an event = its call stack, outermost first, then its name
 *                        without a call stack: the path of the scope around it, then its name
 *
 * All threads go into one tree. The host's time comes from the event stream; the device's is known
 * to the model's columns only, since kernels are found after the op that launched them has ended.
 *
 *   FO1  Memory follows the number of distinct paths, at most NODES_MAX. A line has a whole path,
 *        so what is written grows with the square of the depth: paths have at most DEPTH_MAX parts.
 *        What is beyond either counts for the deepest part that is there, and is reported
 *        (report.folded).
 *   FO2  Equal traces give equal bytes: the order of lines does not depend on threads or hashes.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/saturate.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/text/stack_text.h"

#include <stdlib.h>

enum {
    NODES_MAX = 4 << 20,
    DEPTH_MAX = 4096,
    PARTS_BETWEEN = 1 << 16, /* parts of paths written between two looks at the progress function */
    TEXTS_BYTES_MAX = 256 << 20
};

typedef struct fold_node {
    uint32_t parent, text;
    uint32_t first, next; /* child, sibling; 0: none */
    uint32_t depth;
    int64_t ns;
} fold_node;

typedef struct fold_stack {
    uint32_t stack, node;
} fold_stack;

/* The nodes of what is open on a track. */
typedef struct fold_track {
    uint32_t *nodes;
    size_t n, capacity;
} fold_track;

typedef struct folder {
    mtprof__export_job *job;
    mtb_arena arena;
    mtprof_text *texts; /* id - 1 */
    size_t n_texts, texts_capacity, text_bytes;
    mtb_idmap text_map;
    uint32_t *name_texts; /* by name: text, 0 = not known yet */
    size_t n_names;
    fold_node *nodes; /* 0: the root */
    size_t n_nodes, nodes_capacity;
    mtb_idmap node_map;
    fold_stack *known; /* stacks whose node is known; ids of stacks may be anything */
    size_t n_known, known_capacity;
    mtb_idmap known_map;
    fold_track *tracks;
    size_t n_tracks;
    mtprof_frame *frames;
    uint32_t *stacks; /* the stack of each frame */
    char *scratch;
    size_t scratch_capacity;
    bool cut;       /* the path that was looked up last is not whole (FO1) */
    uint64_t parts; /* written since the progress function was called */
} folder;

/* ---- texts and nodes ------------------------------------------------------------------------- */

static bool same_text(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(((const mtprof_text *)context)[id - 1], *(const mtprof_text *)key);
}

/* *id 0: there is no room for more of them (FO1). */
static int find_text(folder *f, mtprof_text text, uint32_t *id)
{
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    *id = mtb_idmap_find(&f->text_map, hash, same_text, f->texts, &text);
    if (*id != 0 || f->text_bytes + text.length > TEXTS_BYTES_MAX || f->n_texts >= NODES_MAX) {
        return 0;
    }
    text.bytes = mtb_arena_copy_text(&f->arena, text.bytes, text.length);
    if (text.bytes == NULL ||
        !mtb_idmap_append(&f->text_map, hash, f->texts, f->n_texts, f->texts_capacity, &text)) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for a name");
    }
    f->text_bytes += text.length;
    *id = (uint32_t)f->n_texts;
    return 0;
}

typedef struct node_key {
    uint32_t parent, text;
} node_key;

static bool same_node(const void *context, uint32_t id, const void *key)
{
    const fold_node *there = &((const fold_node *)context)[id];
    const node_key *wanted = key;
    return there->parent == wanted->parent && there->text == wanted->text;
}

/* The child of a node; the node itself where there is no room for more (FO1). */
static int find_child(folder *f, uint32_t parent, uint32_t text, uint32_t *node)
{
    node_key key = {parent, text};
    uint64_t hash = mtb_mix(parent, text);
    *node = parent;
    uint32_t found = mtb_idmap_find(&f->node_map, hash, same_node, f->nodes, &key);
    if (found != 0) {
        *node = found;
        return 0;
    }
    if (text == 0 || f->n_nodes >= NODES_MAX || f->nodes[parent].depth >= DEPTH_MAX) {
        f->cut = true;
        return 0;
    }
    uint32_t id = (uint32_t)f->n_nodes;
    if (!mtb_grow((void **)&f->nodes, &f->nodes_capacity, f->n_nodes + 1, sizeof *f->nodes) ||
        !mtb_idmap_add(&f->node_map, hash, id)) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for a path");
    }
    f->nodes[id] = (fold_node){.parent = parent,
                               .text = text,
                               .next = f->nodes[parent].first,
                               .depth = f->nodes[parent].depth + 1};
    f->nodes[parent].first = id;
    f->n_nodes++;
    *node = id;
    return 0;
}

static int find_name(folder *f, uint32_t name, mtprof_text text, uint32_t *id)
{
    if (name == MTPROF__NAME_INLINE) {
        return find_text(f, text, id);
    }
    if (!mtb_reach((void **)&f->name_texts, &f->n_names, name, sizeof *f->name_texts)) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for names");
    }
    if (f->name_texts[name] == 0) {
        MT_TRY(find_text(f, text, &f->name_texts[name]));
    }
    *id = f->name_texts[name];
    return 0;
}

static int find_frame(folder *f, uint32_t parent, const mtprof_frame *frame, uint32_t *node)
{
    uint32_t text = 0;
    size_t length = mtprof__frame_text(frame, f->scratch, f->scratch_capacity);
    if (length > f->scratch_capacity) {
        if (!mtb_grow((void **)&f->scratch, &f->scratch_capacity, length, 1)) {
            return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for a frame");
        }
        (void)mtprof__frame_text(frame, f->scratch, f->scratch_capacity);
    }
    MT_TRY(find_text(f, (mtprof_text){f->scratch, length}, &text));
    return find_child(f, parent, text, node);
}

static bool same_stack(const void *context, uint32_t id, const void *key)
{
    return ((const fold_stack *)context)[id - 1].stack == *(const uint32_t *)key;
}

static int remember_stack(folder *f, uint32_t stack, uint32_t node)
{
    if (f->n_known >= NODES_MAX) {
        return 0;
    }
    return mtb_idmap_append(&f->known_map, mtb_mix(stack, 1), f->known, f->n_known,
                            f->known_capacity, &(fold_stack){stack, node})
               ? 0
               : mtb_fail(MTPROF_ENOMEM, "export folded: no memory for stacks");
}

/* The node of a call stack: each frame is looked up once, from the innermost known one on. */
static int find_stack(folder *f, uint32_t stack, uint32_t *node)
{
    uint32_t n = 0;
    uint32_t at = stack;
    uint32_t parent = 0;
    *node = 0;
    while (at != 0 && n < MTPROF__STACK_FRAMES) {
        uint32_t known = mtb_idmap_find(&f->known_map, mtb_mix(at, 1), same_stack, f->known, &at);
        if (known != 0) {
            *node = f->known[known - 1].node;
            break;
        }
        if (!mtprof_model_stack(f->job->model, at, &parent, &f->frames[n])) {
            break;
        }
        f->stacks[n++] = at;
        at = parent;
    }
    f->job->report.left_out += at != 0 && n == MTPROF__STACK_FRAMES; /* frames further out */
    while (n-- > 0) {
        MT_TRY(find_frame(f, *node, &f->frames[n], node));
        MT_TRY(remember_stack(f, f->stacks[n], *node));
    }
    return 0;
}

/* ---- filling the tree ------------------------------------------------------------------------ */

static void add_time(folder *f, uint32_t node, int64_t ns)
{
    int64_t *total = &f->nodes[node].ns;
    *total = mtb_add_sat(*total, ns);
}

static int begin_event(folder *f, const mtprof__event *event)
{
    const mtprof__payload *payload = event->payload;
    if (!mtb_reach((void **)&f->tracks, &f->n_tracks, event->track, sizeof *f->tracks)) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for track %u", event->track);
    }
    fold_track *open = &f->tracks[event->track];
    uint32_t node = 0;
    uint32_t name = 0;
    f->cut = false;
    if (payload != NULL && (payload->fields & MTPROF__HAS_STACK) != 0) {
        MT_TRY(find_stack(f, payload->stack, &node));
    } else {
        node = open->n > 0 ? open->nodes[open->n - 1] : 0;
    }
    MT_TRY(find_name(f, event->name, event->name_text, &name));
    MT_TRY(find_child(f, node, name, &node));
    f->job->report.folded += f->cut;
    return mtb_append(open->nodes, open->n, open->capacity, &node)
               ? 0
               : mtb_fail(MTPROF_ENOMEM, "export folded: no memory for %zu open scopes",
                          open->n + 1);
}

/* Overheads of foreign traces come complete; their time counts for what is around them. */
static void end_event(folder *f, const mtprof__event *event)
{
    fold_track *open = event->track < f->n_tracks ? &f->tracks[event->track] : NULL;
    if (open == NULL || open->n == 0) {
        return; /* an overhead that nothing is around */
    }
    add_time(f, open->nodes[open->n - 1], event->self_ns);
    if (event->edge == MTPROF__EDGE_END) {
        open->n--;
        f->job->report.events++;
    }
}

static int take_event(void *context, const mtprof__event *event)
{
    folder *f = context;
    if (event->edge == MTPROF__EDGE_BEGIN) {
        return begin_event(f, event);
    }
    if (event->edge == MTPROF__EDGE_END || event->self_ns > 0) {
        end_event(f, event);
    }
    return 0;
}

typedef struct fold_columns {
    uint64_t n;
    const int64_t *metric;
    const uint32_t *names, *parents, *stacks; /* stacks may be NULL */
    const uint8_t *kinds;
    const uint16_t *flags;
} fold_columns;

static int column(mtprof_model *model, enum mtprof_column_id id, const void **data, uint64_t *n)
{
    mtprof_column found;
    MT_TRY(mtprof_model_get_column(model, id, &found));
    *data = found.data;
    *n = found.count;
    return 0;
}

static int find_columns(mtprof_model *model, fold_columns *c)
{
    uint64_t n = 0;
    MT_TRY(column(model, MTPROF_COLUMN_SELF_DEVICE_NS, (const void **)&c->metric, &c->n));
    MT_TRY(column(model, MTPROF_COLUMN_NAME, (const void **)&c->names, &n));
    MT_TRY(column(model, MTPROF_COLUMN_PARENT, (const void **)&c->parents, &n));
    MT_TRY(column(model, MTPROF_COLUMN_KIND, (const void **)&c->kinds, &n));
    MT_TRY(column(model, MTPROF_COLUMN_FLAGS, (const void **)&c->flags, &n));
    return column(model, MTPROF_COLUMN_STACK, (const void **)&c->stacks, &n);
}

/* Device time counts where it was launched; device work itself only where that is not known. */
static bool is_counted(const fold_columns *c, uint64_t i)
{
    bool device =
        c->kinds[i] >= MTPROF_EVENT_KIND_KERNEL && c->kinds[i] <= MTPROF_EVENT_KIND_OVERHEAD;
    return !device || (c->kinds[i] != MTPROF_EVENT_KIND_ANNOTATION &&
                       (c->flags[i] & MTPROF_EVENT_FLAG_MATCHED) == 0);
}

/* nodes[i]: the path that the children of event i go on from. Asynchronous scopes are around
 * nothing in time, so theirs is the one they began in. */
static int fold_event(folder *f, const fold_columns *c, uint64_t i, uint32_t *nodes)
{
    uint32_t node = 0;
    uint32_t text = 0;
    f->cut = false;
    if (c->stacks != NULL && c->stacks[i] != 0) {
        MT_TRY(find_stack(f, c->stacks[i], &node));
    } else if (c->parents[i] < i) { /* one on another thread may come later: then this is a root */
        node = nodes[c->parents[i]];
    }
    nodes[i] = node;
    MT_TRY(find_name(f, c->names[i], mtprof_model_name(f->job->model, c->names[i]), &text));
    MT_TRY(find_child(f, node, text, &node));
    f->job->report.folded += f->cut;
    if ((c->flags[i] & MTPROF_EVENT_FLAG_ASYNC) == 0) {
        nodes[i] = node;
    }
    if (c->metric[i] > 0 && is_counted(c, i)) {
        add_time(f, node, c->metric[i]);
        f->job->report.events++;
    }
    return mtprof__export_tick(f->job, NULL);
}

static int fold_model(folder *f)
{
    fold_columns c = {0};
    MT_TRY(find_columns(f->job->model, &c));
    uint32_t *nodes = mtb_calloc((size_t)c.n + 1, sizeof *nodes);
    if (nodes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for the events' paths");
    }
    int status = 0;
    for (uint64_t i = 0; i < c.n && status == 0; i++) {
        status = fold_event(f, &c, i, nodes);
    }
    mtb_free(nodes);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct fold_order {
    mtprof_text text;
    uint32_t node;
} fold_order;

static int compare(const void *a, const void *b)
{
    const fold_order *x = a;
    const fold_order *y = b;
    return mtprof__text_order(x->text, y->text);
}

/* Puts the children of a node into the order of their texts. */
static int sort_children(folder *f, uint32_t node, fold_order **order, size_t *capacity)
{
    size_t n = 0;
    for (uint32_t child = f->nodes[node].first; child != 0; child = f->nodes[child].next) {
        if (!mtb_grow((void **)order, capacity, n + 1, sizeof **order)) {
            return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for sorting");
        }
        (*order)[n++] = (fold_order){f->texts[f->nodes[child].text - 1], child};
    }
    if (n < 2) {
        return 0;
    }
    qsort(*order, n, sizeof **order, compare);
    f->nodes[node].first = (*order)[0].node;
    for (size_t i = 0; i < n; i++) {
        f->nodes[(*order)[i].node].next = i + 1 < n ? (*order)[i + 1].node : 0;
    }
    return 0;
}

/* The path is found by going up, and written by going down it again. */
static int write_node(folder *f, uint32_t node, uint32_t **path, size_t *capacity)
{
    mtb_writer *writer = f->job->writer;
    size_t n = 0;
    for (uint32_t at = node; at != 0; at = f->nodes[at].parent) {
        if (!mtb_grow((void **)path, capacity, n + 1, sizeof **path)) {
            return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for a path");
        }
        (*path)[n++] = f->nodes[at].text;
    }
    f->parts += n;
    while (n-- > 0) {
        const mtprof_text *text = &f->texts[(*path)[n] - 1];
        mtprof__write_folded(writer, text->bytes, text->length);
        mtb_write(writer, ";", n > 0);
    }
    mtb_write_literal(writer, " ");
    mtb_write_i64(writer, f->nodes[node].ns);
    mtb_write_literal(writer, "\n");
    if (f->parts < PARTS_BETWEEN) {
        return 0;
    }
    f->parts = 0;
    return mtprof__export_report_progress(f->job, NULL);
}

/* In depth, children in order; without recursion, since stacks may be deep. */
static int write_tree(folder *f)
{
    fold_order *order = NULL;
    uint32_t *path = NULL;
    size_t order_capacity = 0;
    size_t path_capacity = 0;
    uint32_t node = 0;
    int status = sort_children(f, 0, &order, &order_capacity);
    while (status == 0) {
        uint32_t next = f->nodes[node].first;
        while (next == 0 && node != 0) {
            next = f->nodes[node].next;
            node = f->nodes[node].parent;
        }
        if (next == 0) {
            break;
        }
        node = next;
        if (f->nodes[node].ns > 0) {
            status = write_node(f, node, &path, &path_capacity);
        }
        if (status == 0) {
            status = sort_children(f, node, &order, &order_capacity);
        }
    }
    mtb_free(order);
    mtb_free(path);
    return status;
}

static int fold(folder *f, bool device)
{
    f->frames = mtb_calloc(MTPROF__STACK_FRAMES, sizeof *f->frames);
    f->stacks = mtb_calloc(MTPROF__STACK_FRAMES, sizeof *f->stacks);
    if (f->frames == NULL || f->stacks == NULL ||
        !mtb_grow((void **)&f->nodes, &f->nodes_capacity, 1, sizeof *f->nodes)) {
        return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for the tree");
    }
    f->nodes[0] = (fold_node){0};
    f->n_nodes = 1;
    MT_TRY(device ? fold_model(f)
                  : mtprof__export_events(f->job, take_event, f, &f->job->report.clamped));
    return write_tree(f);
}

int mtprof__export_folded(mtprof__export_job *job)
{
    bool device = false;
    MT_TRY(mtprof__export_metric(job, &device));
    folder f = {.job = job};
    int status = fold(&f, device);
    mtb_arena_reset(&f.arena);
    mtb_idmap_reset(&f.text_map);
    mtb_idmap_reset(&f.node_map);
    mtb_free(f.texts);
    mtb_free(f.name_texts);
    mtb_free(f.nodes);
    mtb_free(f.known);
    mtb_idmap_reset(&f.known_map);
    for (size_t i = 0; i < f.n_tracks; i++) {
        mtb_free(f.tracks[i].nodes);
    }
    mtb_free(f.tracks);
    mtb_free(f.frames);
    mtb_free(f.stacks);
    mtb_free(f.scratch);
    return status;
}
