/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of models, see model_view.h.
 */
#include "support/traces/model_view.h"

#include "harness/mt_test.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

bool model_view_make(model_view *view, mtprof_model *model)
{
    memset(view, 0, sizeof *view);
    view->model = model;
    for (int id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        mtprof_column column;
        mtprof_status status = mtprof_model_get_column(model, (enum mtprof_column_id)id, &column);
        if (status != MTPROF_OK) {
            FAIL("column %d: %s", id, mtprof_last_error()->message);
            return false;
        }
        if (column.data == NULL && CHECK(id > MTPROF_COLUMN_FLAGS)) {
            continue; /* not recorded */
        }
        view->columns[id] = column.data;
        view->n = column.count;
    }
    view->start = view->columns[MTPROF_COLUMN_START_NS];
    view->end = view->columns[MTPROF_COLUMN_END_NS];
    view->self = view->columns[MTPROF_COLUMN_SELF_NS];
    view->parent = view->columns[MTPROF_COLUMN_PARENT];
    view->name = view->columns[MTPROF_COLUMN_NAME];
    view->track = view->columns[MTPROF_COLUMN_TRACK];
    view->step = view->columns[MTPROF_COLUMN_STEP];
    view->index = view->columns[MTPROF_COLUMN_INDEX];
    view->kind = view->columns[MTPROF_COLUMN_KIND];
    view->device = view->columns[MTPROF_COLUMN_DEVICE];
    view->flags = view->columns[MTPROF_COLUMN_FLAGS];
    return true;
}

typedef struct memory {
    const unsigned char *bytes;
    size_t size;
} memory;

static int64_t memory_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    const memory *m = context;
    if (offset >= m->size) {
        return 0;
    }
    size_t n = m->size - offset < length ? (size_t)(m->size - offset) : length;
    memcpy(buffer, m->bytes + offset, n);
    return (int64_t)n;
}

static uint64_t memory_size(void *context)
{
    return ((const memory *)context)->size;
}

mtprof_model *model_of_bytes(const void *bytes, size_t size, const mtprof_model_options *options)
{
    memory *m = malloc(sizeof *m);
    if (m == NULL) {
        abort();
    }
    *m = (memory){bytes, size};
    mtprof_bytes calls = {.struct_size = sizeof calls,
                          .context = m,
                          .read = memory_read,
                          .size = memory_size,
                          .close = free};
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    if (mtprof_reader_open_bytes(&calls, &reader) != MTPROF_OK) {
        FAIL("open: %s", mtprof_last_error()->message);
        return NULL;
    }
    if (mtprof_model_take_reader(reader, options, &model) != MTPROF_OK) {
        FAIL("model: %s", mtprof_last_error()->message);
        mtprof_reader_close(reader);
    }
    return model;
}

/* ---- promises -------------------------------------------------------------------------------- */

static bool is_work(uint8_t kind)
{
    return kind == MTPROF_EVENT_KIND_KERNEL || kind == MTPROF_EVENT_KIND_COPY ||
           kind == MTPROF_EVENT_KIND_SET;
}

static bool check_times(const model_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        int64_t duration = v->end[i] - v->start[i];
        if (duration < 0 || v->self[i] < 0 || v->self[i] > duration) {
            FAIL("MDL1: event %zu of kind %u: duration %lld, self %lld", i, v->kind[i],
                 (long long)duration, (long long)v->self[i]);
            return false;
        }
        if ((v->flags[i] & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) != 0 &&
            (v->self[i] != 0 || (v->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0) &&
            v->kind[i] != MTPROF_EVENT_KIND_FUNCTION) {
            FAIL("event %zu does not nest, and has self time %lld, flags %x", i,
                 (long long)v->self[i], v->flags[i]);
            return false;
        }
    }
    return true;
}

static bool check_sums(const model_view *v)
{
    mtprof_track track;
    for (uint32_t t = 0; mtprof_model_track(v->model, t, &track); t++) {
        int64_t self = 0;
        int64_t top = 0;
        for (size_t i = 0; i < v->n; i++) {
            if (v->track[i] == t && v->kind[i] != MTPROF_EVENT_KIND_FUNCTION) {
                self += v->self[i];
                top += (v->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0 ? v->end[i] - v->start[i] : 0;
            }
        }
        if (self != top) {
            FAIL("MDL2: track %u: self times add up to %lld, top-level ones to %lld", t,
                 (long long)self, (long long)top);
            return false;
        }
    }
    return true;
}

static bool check_device(const model_view *v)
{
    int64_t hosts = 0;
    int64_t works = 0;
    for (size_t i = 0; i < v->n; i++) {
        bool work = is_work(v->kind[i]);
        bool linked = v->columns[MTPROF_COLUMN_LINK] != NULL &&
                      view_u32(v, MTPROF_COLUMN_LINK, i) != MTPROF_NO_EVENT;
        works += work && linked ? v->end[i] - v->start[i] : 0;
        hosts += v->device[i] == 0 ? view_i64(v, MTPROF_COLUMN_SELF_DEVICE_NS, i) : 0;
        if (linked && view_u32(v, MTPROF_COLUMN_LINK, i) >= v->n) {
            FAIL("event %zu is linked to %u", i, view_u32(v, MTPROF_COLUMN_LINK, i));
            return false;
        }
    }
    if (hosts != works) {
        FAIL("MDL3: device times of host events add up to %lld, linked work to %lld",
             (long long)hosts, (long long)works);
    }
    return hosts == works;
}

/* Start, then longest first, then INDEX. */
static bool check_order(const model_view *v)
{
    for (size_t i = 1; i < v->n; i++) {
        bool fine = v->start[i - 1] < v->start[i] ||
                    (v->start[i - 1] == v->start[i] &&
                     (v->end[i - 1] > v->end[i] ||
                      (v->end[i - 1] == v->end[i] && v->index[i - 1] <= v->index[i])));
        if (!fine) {
            FAIL("events %zu and %zu are not in order", i - 1, i);
            return false;
        }
    }
    return true;
}

static bool check_tree(const model_view *v)
{
    const uint32_t *first = v->columns[MTPROF_COLUMN_FIRST_CHILD];
    const uint32_t *next = v->columns[MTPROF_COLUMN_NEXT_SIBLING];
    size_t children = 0;
    size_t listed = 0;
    for (size_t i = 0; i < v->n; i++) {
        uint32_t parent = v->parent[i];
        uint32_t depth = 0;
        for (uint32_t at = parent; at != MTPROF_NO_EVENT && depth <= v->n; at = v->parent[at]) {
            if (at >= v->n) {
                FAIL("event %zu has an ancestor %u", i, at);
                return false;
            }
            depth++;
        }
        if (depth != view_u32(v, MTPROF_COLUMN_DEPTH, i)) {
            FAIL("event %zu has %u events above it, DEPTH is %u", i, depth,
                 view_u32(v, MTPROF_COLUMN_DEPTH, i));
            return false;
        }
        children += parent != MTPROF_NO_EVENT;
        for (uint32_t at = first[i]; at != MTPROF_NO_EVENT && listed <= v->n; at = next[at]) {
            listed++;
            if (at >= v->n || v->parent[at] != i) {
                FAIL("event %zu lists %u as a child", i, at);
                return false;
            }
        }
    }
    if (children != listed) {
        FAIL("%zu events have a parent, %zu are listed as children", children, listed);
    }
    return children == listed;
}

static bool check_numbers(const model_view *v)
{
    unsigned char *seen = calloc(v->n + 1, 1);
    bool fine = seen != NULL;
    for (size_t i = 0; i < v->n && fine; i++) {
        uint32_t index = v->index[i];
        if (index != MTPROF_NO_EVENT && index < v->n) {
            fine = seen[index] == 0;
            seen[index] = 1;
        }
        uint64_t id = view_i64(v, MTPROF_COLUMN_CORRELATION, i);
        if (!fine || id >= (uint64_t)1 << 53) {
            FAIL("event %zu: index %u is there twice, or correlation id %llu is too large", i,
                 index, (unsigned long long)id);
            fine = false;
        }
    }
    free(seen);
    return fine;
}

bool model_view_check(const model_view *view)
{
    return check_times(view) && check_sums(view) && check_device(view) && check_order(view) &&
           check_tree(view) && check_numbers(view);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same_text(mtprof_text a, mtprof_text b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* Whether a column holds plain values, and no numbers of the model's own tables. */
static bool is_plain(int id)
{
    switch (id) {
    case MTPROF_COLUMN_NAME:
    case MTPROF_COLUMN_TRACK:
    case MTPROF_COLUMN_INPUTS:
    case MTPROF_COLUMN_SCALARS:
    case MTPROF_COLUMN_OVERLOAD:
    case MTPROF_COLUMN_MODULE:
    case MTPROF_COLUMN_METADATA: return false;
    default: return true;
    }
}

static bool same_tables(const model_view *a, const model_view *b, size_t i)
{
    mtprof_track left;
    mtprof_track right;
    if (!same_text(mtprof_model_name(a->model, a->name[i]),
                   mtprof_model_name(b->model, b->name[i])) ||
        !mtprof_model_track(a->model, a->track[i], &left) ||
        !mtprof_model_track(b->model, b->track[i], &right)) {
        return false;
    }
    return left.tid == right.tid && left.number == right.number && left.device == right.device &&
           same_text(left.name, right.name);
}

bool model_view_equal(const model_view *a, const model_view *b)
{
    if (a->n != b->n) {
        FAIL("%zu events and %zu events", a->n, b->n);
        return false;
    }
    for (int id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        mtprof_column column;
        if ((a->columns[id] == NULL) != (b->columns[id] == NULL)) {
            FAIL("column %d is there only once", id);
            return false;
        }
        if (a->columns[id] == NULL || !is_plain(id)) {
            continue;
        }
        REQUIRE_OK(mtprof_model_get_column(a->model, (enum mtprof_column_id)id, &column));
        if (memcmp(a->columns[id], b->columns[id], a->n * column.item_bytes) != 0) {
            FAIL("column %d differs", id);
            return false;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!same_tables(a, b, i)) {
            FAIL("event %zu has another name or track", i);
            return false;
        }
    }
    return true;
}
