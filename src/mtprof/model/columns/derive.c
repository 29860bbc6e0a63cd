/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns that are made from the others when they are first requested.
 *
 * Each is made under the model's lock and then published (MI2): a column that is there is complete.
 * Sums go from children to parents, and depths the other way. Parents nearly always come before
 * their children in the columns, but a clock that went back, or a parent that the program gave, can
 * change that: then events are visited level by level. Nothing recurses.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/large.h"
#include "base/saturate.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "mtprof/model/facts/forward.h"

#include <stdlib.h>
#include <string.h>

/* An array for a column, zeros; one item more, so that it is never empty. Fails with ENOMEM. */
static int new_column(const mtprof_model *model, uint32_t id, void **out)
{
    *out = mtb_array_take(model->columns.n + 1, mtprof__column_item_bytes(id));
    return *out != NULL ? MTPROF_OK : mtprof__column_no_memory(id, model->columns.n);
}

/* Accepts NULL. */
static void free_column(const mtprof_model *model, uint32_t id, void *column)
{
    mtb_array_give(column, model->columns.n + 1, mtprof__column_item_bytes(id));
}

/* Release: partner of the acquire in mtprof__model_derive(). */
static void publish(mtprof_model *model, uint32_t id, void *column)
{
    __atomic_store_n(&model->derived[id], column, __ATOMIC_RELEASE);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static int make_depth(mtprof_model *model)
{
    const uint32_t *parent = model->columns.parent;
    size_t n = model->columns.n;
    uint32_t *depth;
    MT_TRY(new_column(model, MTPROF_COLUMN_DEPTH, (void **)&depth));
    /* While it is made: depth + 1, 0 = not known. Every way up ends at what is known; it is walked
     * twice, to measure it and to mark it. */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t steps = 0;
        uint32_t at = i;
        while (at != MTPROF_NO_EVENT && depth[at] == 0) {
            steps++;
            at = parent[at];
        }
        uint32_t value = steps + (at != MTPROF_NO_EVENT ? depth[at] : 0);
        for (at = i; at != MTPROF_NO_EVENT && depth[at] == 0; at = parent[at]) {
            depth[at] = value--;
        }
    }
    for (size_t i = 0; i < n; i++) {
        depth[i]--;
    }
    publish(model, MTPROF_COLUMN_DEPTH, depth);
    return MTPROF_OK;
}

static int make_children(mtprof_model *model)
{
    const uint32_t *parent = model->columns.parent;
    size_t n = model->columns.n;
    uint32_t *first;
    uint32_t *next;
    MT_TRY(new_column(model, MTPROF_COLUMN_FIRST_CHILD, (void **)&first));
    int status = new_column(model, MTPROF_COLUMN_NEXT_SIBLING, (void **)&next);
    if (status != MTPROF_OK) {
        free_column(model, MTPROF_COLUMN_FIRST_CHILD, first);
        return status;
    }
    memset(first, 0xFF, n * sizeof *first); /* MTPROF_NO_EVENT */
    memset(next, 0xFF, n * sizeof *next);
    for (size_t i = n; i-- > 0;) { /* from the last, so that children come out in order */
        if (parent[i] != MTPROF_NO_EVENT) {
            next[i] = first[parent[i]];
            first[parent[i]] = (uint32_t)i;
        }
    }
    publish(model, MTPROF_COLUMN_FIRST_CHILD, first);
    publish(model, MTPROF_COLUMN_NEXT_SIBLING, next);
    return MTPROF_OK;
}

/* ---- sums over children ---------------------------------------------------------------------- */

static int derive_locked(mtprof_model *model, uint32_t id);

static bool parents_come_first(const mtprof__columns *columns)
{
    bool first = true;
    for (size_t i = 0; i < columns->n; i++) {
        first &= columns->parent[i] == MTPROF_NO_EVENT || columns->parent[i] < i;
    }
    return first;
}

static void give_to_parent(const mtprof__columns *columns, int64_t *sums, size_t i)
{
    uint32_t parent = columns->parent[i];
    if (parent != MTPROF_NO_EVENT && (columns->flags[i] & MTPROF__NO_CHILD) == 0) {
        /* Unsigned: bytes are what the trace says, and may be anything. */
        sums[parent] = (int64_t)((uint64_t)sums[parent] + (uint64_t)sums[i]);
    }
}

/* Events, the deepest first, by counting. NULL: no memory. */
static uint32_t *deepest_first(const uint32_t *depth, size_t n)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < n; i++) {
        deepest = depth[i] > deepest ? depth[i] : deepest;
    }
    uint32_t *order = mtb_resize(NULL, n + 1, sizeof *order);
    uint32_t *ends = mtb_calloc((size_t)deepest + 2, sizeof *ends);
    if (order == NULL || ends == NULL) {
        mtb_free(order);
        mtb_free(ends);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        ends[deepest - depth[i] + 1]++;
    }
    for (uint32_t level = 0; level <= deepest; level++) {
        ends[level + 1] += ends[level];
    }
    for (size_t i = 0; i < n; i++) {
        order[ends[deepest - depth[i]]++] = (uint32_t)i;
    }
    mtb_free(ends);
    return order;
}

/* Adds to each event the sums of its children. */
static int sum_up(mtprof_model *model, int64_t *sums)
{
    const mtprof__columns *columns = &model->columns;
    if (parents_come_first(columns)) {
        for (size_t i = columns->n; i-- > 0;) {
            give_to_parent(columns, sums, i);
        }
        return MTPROF_OK;
    }
    MT_TRY(derive_locked(model, MTPROF_COLUMN_DEPTH));
    const uint32_t *depth = __atomic_load_n(&model->derived[MTPROF_COLUMN_DEPTH], __ATOMIC_SEQ_CST);
    uint32_t *order = deepest_first(depth, columns->n);
    if (order == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory to add up %zu events", columns->n);
    }
    for (size_t i = 0; i < columns->n; i++) {
        give_to_parent(columns, sums, order[i]);
    }
    mtb_free(order);
    return MTPROF_OK;
}

/* A column that is the sum of another over an event and its children. */
static int make_sum(mtprof_model *model, uint32_t id, const int64_t *own)
{
    int64_t *sums;
    MT_TRY(new_column(model, id, (void **)&sums));
    if (model->columns.n != 0) {
        memcpy(sums, own, model->columns.n * sizeof *sums);
    }
    int status = sum_up(model, sums);
    if (status != MTPROF_OK) {
        free_column(model, id, sums);
        return status;
    }
    publish(model, id, sums);
    return MTPROF_OK;
}

static int make_allocated(mtprof_model *model, uint32_t id, uint32_t self)
{
    const int64_t *own = model->columns.extra[self];
    return own != NULL ? make_sum(model, id, own) : MTPROF_OK; /* NULL: it was not recorded */
}

/* ---- device time ----------------------------------------------------------------------------- */

static int make_self_device(mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    const uint32_t *link = columns->extra[MTPROF_COLUMN_LINK];
    int64_t *self;
    MT_TRY(new_column(model, MTPROF_COLUMN_SELF_DEVICE_NS, (void **)&self));
    for (size_t i = 0; i < columns->n; i++) {
        if (!mtprof__kind_in(columns->kind[i], MTPROF__KINDS_DEVICE)) {
            continue;
        }
        int64_t duration = mtb_sub_sat(columns->end_ns[i], columns->start_ns[i]);
        self[i] = duration;
        if (link != NULL && link[i] != MTPROF_NO_EVENT &&
            mtprof__kind_in(columns->kind[i], MTPROF__KINDS_WORK)) {
            self[link[i]] = (int64_t)((uint64_t)self[link[i]] + (uint64_t)duration);
        }
    }
    publish(model, MTPROF_COLUMN_SELF_DEVICE_NS, self);
    return MTPROF_OK;
}

static int make_device(mtprof_model *model)
{
    MT_TRY(derive_locked(model, MTPROF_COLUMN_SELF_DEVICE_NS));
    return make_sum(
        model, MTPROF_COLUMN_DEVICE_NS,
        __atomic_load_n(&model->derived[MTPROF_COLUMN_SELF_DEVICE_NS], __ATOMIC_SEQ_CST));
}

/* ---- ids and links --------------------------------------------------------------------------- */

static int make_link(mtprof_model *model)
{
    uint32_t *link;
    MT_TRY(new_column(model, MTPROF_COLUMN_LINK, (void **)&link));
    memset(link, 0xFF, model->columns.n * sizeof *link); /* MTPROF_NO_EVENT: nothing was tied */
    publish(model, MTPROF_COLUMN_LINK, link);
    return MTPROF_OK;
}

static bool begins_by(const void *block, uint64_t index)
{
    return ((const mtprof__epoch_block *)block)->first_index <= index;
}

/* The block an INDEX is in: the last one that does not begin after it. */
static const mtprof__epoch_block *find_block(const mtprof_model *model, uint32_t index)
{
    size_t behind =
        mtb_search(model->epochs, model->n_epochs, sizeof *model->epochs, begins_by, index);
    return &model->epochs[behind - (behind > 0)];
}

static void number_hosts(const mtprof_model *model, uint64_t *ids)
{
    const uint32_t *index = model->columns.index;
    const mtprof__epoch_block *block = model->epochs;
    for (size_t i = 0; i < model->columns.n; i++) {
        if (index[i] == MTPROF_NO_EVENT) {
            continue;
        }
        if (index[i] - block->first_index >= block->count) {
            block = find_block(model, index[i]);
        }
        ids[i] = block->first_id + (index[i] - block->first_index);
    }
}

static int make_correlation(mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    if (model->reader == NULL && model->epochs == NULL) {
        return MTPROF_OK; /* another tool's, which had none */
    }
    uint64_t *ids;
    MT_TRY(new_column(model, MTPROF_COLUMN_CORRELATION, (void **)&ids));
    if (model->n_epochs != 0) {
        number_hosts(model, ids);
    }
    for (size_t i = 0; i < model->n_launches; i++) {
        ids[model->launches[i].work] = ids[model->launches[i].host];
    }
    const uint32_t *link = columns->extra[MTPROF_COLUMN_LINK];
    for (size_t i = 0; link != NULL && i < columns->n; i++) {
        if (columns->kind[i] == MTPROF_EVENT_KIND_ANNOTATION && ids[i] == 0 &&
            link[i] != MTPROF_NO_EVENT) {
            ids[i] = ids[link[i]]; /* an annotation has its scope's */
        }
    }
    publish(model, MTPROF_COLUMN_CORRELATION, ids);
    return MTPROF_OK;
}

/* ---- forward ops ----------------------------------------------------------------------------- */

/* An op with a sequence number. */
typedef struct numbered {
    int64_t end_ns;
    uint32_t event;
} numbered;

/* By end. Of those that end together the last one in the columns ends first: it is inside. */
static int compare_ends(const void *a, const void *b)
{
    const numbered *left = a;
    const numbered *right = b;
    int order = mtb_order(left->end_ns, right->end_ns);
    return order != 0 ? order : mtb_order(right->event, left->event);
}

/* FW2 */
static void join_forwards(const mtprof_model *model, const numbered *ops, size_t n,
                          mtprof__forwards *waiting, uint32_t *forward)
{
    const mtprof__columns *columns = &model->columns;
    const int64_t *sequences = columns->extra[MTPROF_COLUMN_SEQUENCE];
    const uint32_t *threads = columns->extra[MTPROF_COLUMN_FORWARD_THREAD];
    for (size_t k = 0; k < n; k++) {
        mtprof__waiting origin;
        uint32_t i = ops[k].event;
        if (threads[i] == 0) {
            uint32_t thread = mtprof__model_thread_number(model, columns->track[i]);
            mtprof__forward_wait(waiting, thread, sequences[i], columns->start_ns[i], i);
        } else if (mtprof__forward_take(waiting, threads[i], sequences[i], &origin)) {
            forward[i] = origin.forward.note;
        }
    }
}

static int make_forward(mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    const int64_t *sequences = columns->extra[MTPROF_COLUMN_SEQUENCE];
    if (sequences == NULL || columns->extra[MTPROF_COLUMN_FORWARD_THREAD] == NULL) {
        return MTPROF_OK; /* NULL: they were not recorded */
    }
    uint32_t *forward;
    MT_TRY(new_column(model, MTPROF_COLUMN_FORWARD, (void **)&forward));
    numbered *ops = mtb_array_take(columns->n + 1, sizeof *ops);
    mtprof__forwards waiting = {.entries = NULL};
    size_t n = 0;
    for (uint32_t i = 0; ops != NULL && i < columns->n; i++) {
        if (sequences[i] >= 0 && columns->kind[i] == MTPROF_EVENT_KIND_OP) {
            ops[n++] = (numbered){columns->end_ns[i], i};
        }
    }
    bool whole = ops != NULL && mtprof__forwards_init(&waiting, sizeof(mtprof__waiting), n);
    if (whole) {
        memset(forward, 0xFF, columns->n * sizeof *forward); /* MTPROF_NO_EVENT */
        qsort(ops, n, sizeof *ops, compare_ends);
        join_forwards(model, ops, n, &waiting, forward);
        publish(model, MTPROF_COLUMN_FORWARD, forward);
    } else {
        free_column(model, MTPROF_COLUMN_FORWARD, forward);
    }
    mtprof__forwards_fini(&waiting);
    mtb_array_give(ops, columns->n + 1, sizeof *ops);
    return whole ? MTPROF_OK : mtprof__column_no_memory(MTPROF_COLUMN_FORWARD, columns->n);
}

/* ---- on request ------------------------------------------------------------------------------ */

static int derive_locked(mtprof_model *model, uint32_t id)
{
    if (__atomic_load_n(&model->derived[id], __ATOMIC_SEQ_CST) != NULL) {
        return MTPROF_OK;
    }
    switch (id) {
    case MTPROF_COLUMN_DEPTH: return make_depth(model);
    case MTPROF_COLUMN_FIRST_CHILD:
    case MTPROF_COLUMN_NEXT_SIBLING: return make_children(model);
    case MTPROF_COLUMN_LINK: return make_link(model);
    case MTPROF_COLUMN_CORRELATION: return make_correlation(model);
    case MTPROF_COLUMN_FORWARD: return make_forward(model);
    case MTPROF_COLUMN_SELF_DEVICE_NS: return make_self_device(model);
    case MTPROF_COLUMN_DEVICE_NS: return make_device(model);
    case MTPROF_COLUMN_ALLOCATED_CPU:
        return make_allocated(model, id, MTPROF_COLUMN_ALLOCATED_SELF_CPU);
    case MTPROF_COLUMN_ALLOCATED_DEVICE:
        return make_allocated(model, id, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE);
    default: return mtb_fail(MTPROF_EINVAL, "model: column %u is not a derived one", id);
    }
}

int mtprof__model_derive(mtprof_model *model, uint32_t id, const void **out)
{
    *out = NULL;
    if (id >= MTPROF_COLUMN_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "model: there is no column %u", id);
    }
    if (model->columns.extra[id] != NULL) { /* assembled, or brought by the trace */
        *out = model->columns.extra[id];
        return MTPROF_OK;
    }
    /* Acquire: partner of the release in publish(). */
    *out = __atomic_load_n(&model->derived[id], __ATOMIC_ACQUIRE);
    if (*out != NULL) {
        return MTPROF_OK;
    }
    mtb_lock_acquire(&model->lock);
    int status = derive_locked(model, id);
    mtb_lock_release(&model->lock);
    if (status == MTPROF_OK) {
        *out = __atomic_load_n(&model->derived[id], __ATOMIC_ACQUIRE);
    }
    return status;
}

void mtprof__model_derived_fini(mtprof_model *model)
{
    mtprof__kept *kept = __atomic_exchange_n(&model->arrow, NULL, __ATOMIC_SEQ_CST);
    if (kept != NULL) {
        kept->free(kept);
    }
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        free_column(model, id, __atomic_exchange_n(&model->derived[id], NULL, __ATOMIC_SEQ_CST));
    }
    mtb_free(model->launches);
    model->launches = NULL;
    model->n_launches = 0;
}
