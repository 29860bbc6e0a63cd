/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/path_tree.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/text/stack_text.h"

enum {
    TEXTS_BYTES_MAX = 256 << 20
};

struct mtprof__path_stack {
    uint32_t stack, node;
};

/* The nodes of what is open on a track. */
struct mtprof__path_track {
    uint32_t *nodes;
    size_t n, capacity;
};

/* ---- parts and nodes ------------------------------------------------------------------------- */

static bool same_text(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(((const mtprof__path_part *)context)[id - 1].text,
                             *(const mtprof_text *)key);
}

/* The part of a text; frame may be NULL. *id 0: there is no room for more of them (PT1). */
static int find_part(mtprof__path_tree *t, mtprof_text text, const mtprof_frame *frame,
                     uint32_t *id)
{
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    *id = mtb_idmap_find(&t->part_map, hash, same_text, t->parts, &text);
    if (*id != 0 || t->text_bytes + text.length > TEXTS_BYTES_MAX ||
        t->n_parts >= MTPROF__PATH_NODES) {
        return 0;
    }
    mtprof__path_part part = {
        .text = {mtb_arena_copy_text(&t->arena, text.bytes, text.length), text.length}};
    if (frame != NULL) {
        part.frame = *frame;
    }
    if (part.text.bytes == NULL ||
        !mtb_idmap_append(&t->part_map, hash, t->parts, t->n_parts, t->parts_capacity, &part)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for a name");
    }
    t->text_bytes += text.length;
    *id = (uint32_t)t->n_parts;
    return 0;
}

typedef struct node_key {
    uint32_t parent, part;
} node_key;

static bool same_node(const void *context, uint32_t id, const void *key)
{
    const mtprof__path_node *there = &((const mtprof__path_node *)context)[id];
    const node_key *wanted = key;
    return there->parent == wanted->parent && there->part == wanted->part;
}

/* The child of a node; the node itself where there is no room for more (PT1). */
static int find_child(mtprof__path_tree *t, uint32_t parent, uint32_t part, uint32_t *node)
{
    node_key key = {parent, part};
    uint64_t hash = mtb_mix(parent, part);
    *node = parent;
    uint32_t found = mtb_idmap_find(&t->node_map, hash, same_node, t->nodes, &key);
    if (found != 0) {
        *node = found;
        return 0;
    }
    if (part == 0 || t->n_nodes >= MTPROF__PATH_NODES ||
        t->nodes[parent].depth >= MTPROF__PATH_DEPTH) {
        t->cut = true;
        return 0;
    }
    uint32_t id = (uint32_t)t->n_nodes;
    if (!mtb_grow((void **)&t->nodes, &t->nodes_capacity, t->n_nodes + 1, sizeof *t->nodes) ||
        !mtb_idmap_add(&t->node_map, hash, id)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for a path");
    }
    t->nodes[id] = (mtprof__path_node){.parent = parent,
                                       .part = part,
                                       .next = t->nodes[parent].first,
                                       .depth = t->nodes[parent].depth + 1};
    t->nodes[parent].first = id;
    t->n_nodes++;
    *node = id;
    return 0;
}

static int find_name(mtprof__path_tree *t, uint32_t name, mtprof_text text, uint32_t *id)
{
    if (name == MTPROF__NAME_INLINE) {
        return find_part(t, text, NULL, id);
    }
    if (!mtb_reach((void **)&t->name_parts, &t->n_names, name, sizeof *t->name_parts)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for names");
    }
    if (t->name_parts[name] == 0) {
        MT_TRY(find_part(t, text, NULL, &t->name_parts[name]));
    }
    *id = t->name_parts[name];
    return 0;
}

static int find_frame(mtprof__path_tree *t, uint32_t parent, const mtprof_frame *frame,
                      uint32_t *node)
{
    uint32_t part = 0;
    size_t length = mtprof__frame_text(frame, t->scratch, t->scratch_capacity);
    if (length > t->scratch_capacity) {
        if (!mtb_grow((void **)&t->scratch, &t->scratch_capacity, length, 1)) {
            return mtb_fail(MTPROF_ENOMEM, "export: no memory for a frame");
        }
        (void)mtprof__frame_text(frame, t->scratch, t->scratch_capacity);
    }
    MT_TRY(find_part(t, (mtprof_text){t->scratch, length}, frame, &part));
    return find_child(t, parent, part, node);
}

static bool same_stack(const void *context, uint32_t id, const void *key)
{
    return ((const struct mtprof__path_stack *)context)[id - 1].stack == *(const uint32_t *)key;
}

static int remember_stack(mtprof__path_tree *t, uint32_t stack, uint32_t node)
{
    if (t->n_known >= MTPROF__PATH_NODES) {
        return 0;
    }
    return mtb_idmap_append(&t->known_map, mtb_mix(stack, 1), t->known, t->n_known,
                            t->known_capacity, &(struct mtprof__path_stack){stack, node})
               ? 0
               : mtb_fail(MTPROF_ENOMEM, "export: no memory for stacks");
}

/* The node of a call stack: each frame is looked up once, from the innermost known one on. */
static int find_stack(mtprof__path_tree *t, uint32_t stack, uint32_t *node)
{
    uint32_t n = 0;
    uint32_t at = stack;
    uint32_t parent = 0;
    *node = 0;
    while (at != 0 && n < MTPROF__STACK_FRAMES) {
        uint32_t known = mtb_idmap_find(&t->known_map, mtb_mix(at, 1), same_stack, t->known, &at);
        if (known != 0) {
            *node = t->known[known - 1].node;
            break;
        }
        if (!mtprof_model_stack(t->job->model, at, &parent, &t->frames[n])) {
            break;
        }
        t->stacks[n++] = at;
        at = parent;
    }
    t->job->report.left_out += at != 0 && n == MTPROF__STACK_FRAMES; /* frames further out */
    while (n-- > 0) {
        MT_TRY(find_frame(t, *node, &t->frames[n], node));
        MT_TRY(remember_stack(t, t->stacks[n], *node));
    }
    return 0;
}

/* ---- filling the tree ------------------------------------------------------------------------ */

static void add(mtprof__path_tree *t, uint32_t node, enum mtprof__path_value which, int64_t value)
{
    int64_t *total = &t->nodes[node].values[which];
    *total = mtb_add_sat(*total, value);
}

static int begin_event(mtprof__path_tree *t, const mtprof__event *event)
{
    const mtprof__payload *payload = event->payload;
    if (!mtb_reach((void **)&t->tracks, &t->n_tracks, event->track, sizeof *t->tracks)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for track %u", event->track);
    }
    struct mtprof__path_track *open = &t->tracks[event->track];
    uint32_t node = 0;
    uint32_t name = 0;
    t->cut = false;
    if (payload != NULL && (payload->fields & MTPROF__HAS_STACK) != 0) {
        MT_TRY(find_stack(t, payload->stack, &node));
    } else {
        node = open->n > 0 ? open->nodes[open->n - 1] : 0;
    }
    MT_TRY(find_name(t, event->name, event->name_text, &name));
    MT_TRY(find_child(t, node, name, &node));
    t->job->report.folded += t->cut;
    return mtb_append(open->nodes, open->n, open->capacity, &node)
               ? 0
               : mtb_fail(MTPROF_ENOMEM, "export: no memory for %zu open scopes", open->n + 1);
}

/* Overheads of foreign traces come complete; their time counts for what is around them. */
static void end_event(mtprof__path_tree *t, const mtprof__event *event)
{
    struct mtprof__path_track *open = event->track < t->n_tracks ? &t->tracks[event->track] : NULL;
    if (open == NULL || open->n == 0) {
        return; /* an overhead that nothing is around */
    }
    uint32_t node = open->nodes[open->n - 1];
    add(t, node, MTPROF__PATH_HOST_NS, event->self_ns);
    if (event->edge == MTPROF__EDGE_END) {
        add(t, node, MTPROF__PATH_COUNT, 1);
        open->n--;
        t->job->report.events++;
    }
}

/* An allocation counts for what is open on its thread. */
static int take_allocation(mtprof__path_tree *t, const mtprof__event *event)
{
    static const char outside[] = "(no scope)";
    const struct mtprof__path_track *open =
        event->track < t->n_tracks ? &t->tracks[event->track] : NULL;
    uint32_t node = 0;
    uint32_t part = 0;
    if (open != NULL && open->n > 0) {
        node = open->nodes[open->n - 1];
    } else {
        MT_TRY(find_part(t, (mtprof_text){outside, sizeof outside - 1}, NULL, &part));
        MT_TRY(find_child(t, 0, part, &node));
    }
    add(t, node, MTPROF__PATH_ALLOCATED, event->bytes);
    return 0;
}

static int take_event(void *context, const mtprof__event *event)
{
    mtprof__path_tree *t = context;
    if (event->edge == MTPROF__EDGE_BEGIN) {
        return begin_event(t, event);
    }
    if (event->kind == MTPROF_EVENT_KIND_ALLOC) {
        return event->bytes > 0 ? take_allocation(t, event) : 0;
    }
    if (event->edge == MTPROF__EDGE_END || event->self_ns > 0) {
        end_event(t, event);
    }
    return 0;
}

int mtprof__path_tree_add_host(mtprof__path_tree *t)
{
    return mtprof__export_events(t->job, take_event, t, &t->job->report.clamped);
}

typedef struct path_columns {
    uint64_t n;
    const int64_t *metric;
    const uint32_t *names, *parents, *stacks; /* stacks may be NULL */
    const uint8_t *kinds;
    const uint16_t *flags;
} path_columns;

static int find_columns(mtprof_model *model, path_columns *c)
{
    const mtprof__wanted_column wanted[] = {
        {MTPROF_COLUMN_SELF_DEVICE_NS, (const void **)&c->metric},
        {MTPROF_COLUMN_NAME, (const void **)&c->names},
        {MTPROF_COLUMN_PARENT, (const void **)&c->parents},
        {MTPROF_COLUMN_KIND, (const void **)&c->kinds},
        {MTPROF_COLUMN_FLAGS, (const void **)&c->flags},
        {MTPROF_COLUMN_STACK, (const void **)&c->stacks},
    };
    return mtprof__model_get_columns(model, wanted, MT_COUNT(wanted), &c->n);
}

/* Device time counts where it was launched; device work itself only where that is not known. */
static bool is_counted(const path_columns *c, uint64_t i)
{
    bool device =
        c->kinds[i] >= MTPROF_EVENT_KIND_KERNEL && c->kinds[i] <= MTPROF_EVENT_KIND_OVERHEAD;
    return !device || (c->kinds[i] != MTPROF_EVENT_KIND_ANNOTATION &&
                       (c->flags[i] & MTPROF_EVENT_FLAG_MATCHED) == 0);
}

/* nodes[i]: the path that the children of event i go on from. Asynchronous scopes are around
 * nothing in time, so theirs is the one they began in. */
static int take_row(mtprof__path_tree *t, const path_columns *c, uint64_t i, uint32_t *nodes,
                    uint64_t *events)
{
    uint32_t node = 0;
    uint32_t part = 0;
    t->cut = false;
    if (c->stacks != NULL && c->stacks[i] != 0) {
        MT_TRY(find_stack(t, c->stacks[i], &node));
    } else if (c->parents[i] < i) { /* one on another thread may come later: then this is a root */
        node = nodes[c->parents[i]];
    }
    nodes[i] = node;
    MT_TRY(find_name(t, c->names[i], mtprof_model_name(t->job->model, c->names[i]), &part));
    MT_TRY(find_child(t, node, part, &node));
    t->job->report.folded += t->cut;
    if ((c->flags[i] & MTPROF_EVENT_FLAG_ASYNC) == 0) {
        nodes[i] = node;
    }
    if (c->metric[i] > 0 && is_counted(c, i)) {
        add(t, node, MTPROF__PATH_DEVICE_NS, c->metric[i]);
        ++*events;
    }
    return mtprof__export_tick(t->job, NULL);
}

int mtprof__path_tree_add_device(mtprof__path_tree *t, uint64_t *events)
{
    path_columns c = {0};
    uint64_t n_events = 0;
    MT_TRY(find_columns(t->job->model, &c));
    uint32_t *nodes = mtb_calloc((size_t)c.n + 1, sizeof *nodes);
    if (nodes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for the events' paths");
    }
    int status = 0;
    for (uint64_t i = 0; i < c.n && status == 0; i++) {
        status = take_row(t, &c, i, nodes, &n_events);
    }
    mtb_free(nodes);
    if (events != NULL) {
        *events = n_events;
    }
    return status;
}

/* ---- the tree -------------------------------------------------------------------------------- */

int mtprof__path_tree_init(mtprof__path_tree *t, mtprof__export_job *job)
{
    *t = (mtprof__path_tree){.job = job};
    t->frames = mtb_calloc(MTPROF__STACK_FRAMES, sizeof *t->frames);
    t->stacks = mtb_calloc(MTPROF__STACK_FRAMES, sizeof *t->stacks);
    if (t->frames == NULL || t->stacks == NULL ||
        !mtb_grow((void **)&t->nodes, &t->nodes_capacity, 1, sizeof *t->nodes)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for the tree of paths");
    }
    t->nodes[0] = (mtprof__path_node){0};
    t->n_nodes = 1;
    return MTPROF_OK;
}

void mtprof__path_tree_fini(mtprof__path_tree *t)
{
    mtb_arena_reset(&t->arena);
    mtb_idmap_reset(&t->part_map);
    mtb_idmap_reset(&t->node_map);
    mtb_idmap_reset(&t->known_map);
    mtb_free(t->parts);
    mtb_free(t->name_parts);
    mtb_free(t->nodes);
    mtb_free(t->known);
    for (size_t i = 0; i < t->n_tracks; i++) {
        mtb_free(t->tracks[i].nodes);
    }
    mtb_free(t->tracks);
    mtb_free(t->frames);
    mtb_free(t->stacks);
    mtb_free(t->scratch);
}
