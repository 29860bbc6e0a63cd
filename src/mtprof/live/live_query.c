/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to a live view.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "base/text_writer.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/format/texts.h"
#include "mtprof/live/live_impl.h"
#include "mtprof/model/text/inputs_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows of a query while they are put together. */
typedef struct gatherer {
    mtprof_live *live;
    const mtprof_live_query *query;
    char *pattern;           /* NULL: all names */
    bool functions;          /* they are shown */
    size_t n_inputs, n_keys; /* of live->shown_inputs and shown_keys: those of each row shown */
} gatherer;

static bool is_key(const void *context, uint32_t id, const void *key)
{
    const gatherer *g = context;
    return memcmp(&g->live->shown_keys[id - 1], key, sizeof(mtprof__live_key)) == 0;
}

static mtprof__live_key key_of(const gatherer *g, const mtprof__live_key *row)
{
    uint32_t group = g->query->group;
    return (mtprof__live_key){
        .name = row->name,
        .device = row->device,
        .kind = row->kind,
        .module = (group & MTPROF_LIVE_BY_MODULE) != 0 ? row->module : 0,
        .inputs = (group & MTPROF_LIVE_BY_SHAPES) != 0 ? row->inputs : 0,
        .thread = (group & MTPROF_LIVE_BY_THREAD) != 0 ? row->thread : 0,
    };
}

static mtprof_text name_text(const mtprof_live *live, uint32_t name)
{
    return mtprof__dictionary_entry(&live->dictionary, name)->text;
}

static bool wants_row(const gatherer *g, const mtprof__live_row *row)
{
    const mtprof__live_sums *w = &row->window;
    bool used = w->calls > 0 || w->ended > 0 || w->self_ns != 0; /* a late payload leaves zeros */
    used = used || (g->query->idle && row->all.calls > 0);
    bool shown = row->key.kind != MTPROF_EVENT_KIND_FUNCTION || g->functions;
    return used && shown &&
           (g->pattern == NULL ||
            mtprof__pattern_matches(g->pattern, name_text(g->live, row->key.name)));
}

/* The place of a key among the rows that are shown. */
static int place_of(gatherer *g, const mtprof__live_key *key, uint32_t *place)
{
    mtprof_live *live = g->live;
    uint64_t words[3];
    memcpy(words, key, sizeof words);
    uint64_t hash = mtb_hash_words(words, 3);
    uint32_t id = mtb_idmap_find(&live->shown_map, hash, is_key, g, key);
    if (id == 0) {
        const mtprof_text none = {"", 0};
        const mtprof_live_row made = {
            .name = name_text(live, key->name),
            .module = key->module != 0 ? name_text(live, key->module) : none,
            .shapes = none,
            .thread = key->thread,
            .device = key->device,
            .kind = key->kind,
        };
        if (!mtb_append(live->shown, live->n_shown, live->shown_capacity, &made) ||
            !mtb_append(live->shown_inputs, g->n_inputs, live->shown_inputs_capacity,
                        &key->inputs) ||
            !mtb_idmap_append(&live->shown_map, hash, live->shown_keys, g->n_keys,
                              live->shown_keys_capacity, key)) {
            return mtb_fail(MTPROF_ENOMEM, "live rows: no memory for %zu rows", live->n_shown);
        }
        id = (uint32_t)g->n_keys;
    }
    *place = id - 1;
    return MTPROF_OK;
}

static int gather(gatherer *g)
{
    mtprof_live *live = g->live;
    for (size_t i = 0; i < live->n_rows; i++) {
        const mtprof__live_row *row = &live->rows[i];
        uint32_t place = 0;
        if (!wants_row(g, row)) {
            continue;
        }
        const mtprof__live_key key = key_of(g, &row->key);
        MT_TRY(place_of(g, &key, &place));
        mtprof_live_row *out = &live->shown[place];
        out->calls += row->window.calls;
        out->ended += row->window.ended;
        out->self_ns += row->window.self_ns;
        out->total_ns += row->window.total_ns;
        out->calls_all += row->all.calls;
        out->self_all_ns += row->all.self_ns;
    }
    return MTPROF_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Text of all rows, one after the other. */
typedef struct text_sink {
    char *bytes;
    size_t used, capacity;
} text_sink;

static int take_text(void *context, const void *bytes, size_t length)
{
    text_sink *sink = context;
    if (!mtb_grow((void **)&sink->bytes, &sink->capacity, sink->used + length, 1)) {
        return MTPROF_ENOMEM;
    }
    memcpy(sink->bytes + sink->used, bytes, length);
    sink->used += length;
    return 0;
}

static void write_shapes(mtprof_live *live, const gatherer *g, mtb_writer *writer)
{
    for (size_t i = 0; i < live->n_shown; i++) {
        mtprof__inputs_view view = {0};
        uint64_t from = mtb_writer_total(writer);
        if (i < g->n_inputs && live->shown_inputs[i] != 0 &&
            mtprof_reader_inputs(&live->reader, live->shown_inputs[i], &view.words,
                                 &view.n_words)) {
            mtprof__write_input_shapes(writer, &view);
        }
        live->shown[i].shapes.length = (size_t)(mtb_writer_total(writer) - from);
        mtb_write_literal(writer, "\0");
    }
}

static int add_shapes(mtprof_live *live, const gatherer *g)
{
    text_sink sink = {0};
    mtb_writer writer;
    int status = mtb_writer_init(&writer, take_text, &sink) ? MTPROF_OK : MTPROF_ENOMEM;
    if (status == MTPROF_OK) {
        write_shapes(live, g, &writer);
    }
    int written = mtb_writer_finish(&writer);
    char *copy = NULL;
    if (status == MTPROF_OK && written == 0) {
        copy = mtb_arena_copy_text(&live->texts, sink.bytes != NULL ? sink.bytes : "", sink.used);
    }
    mtb_free(sink.bytes);
    size_t at = 0;
    for (size_t i = 0; i < live->n_shown; i++) {
        mtprof_text *shapes = &live->shown[i].shapes;
        *shapes = copy != NULL ? (mtprof_text){copy + at, shapes->length} : (mtprof_text){"", 0};
        at += shapes->length + 1;
    }
    return copy != NULL ? MTPROF_OK : mtb_fail(MTPROF_ENOMEM, "live rows: no memory for shapes");
}

/* ---- order ----------------------------------------------------------------------------------- */

static double mean_of(const mtprof_live_row *row)
{
    return row->ended > 0 ? row->total_ns / row->ended : 0;
}

static int by_name(const mtprof_live_row *a, const mtprof_live_row *b)
{
    int order = mtprof__text_order(a->name, b->name);
    order = order != 0 ? order : mtprof__text_order(a->module, b->module);
    order = order != 0 ? order : mtprof__text_order(a->shapes, b->shapes);
    order = order != 0 ? order : mtb_order(a->thread, b->thread);
    order = order != 0 ? order : mtb_order(a->device, b->device);
    return order != 0 ? order : mtb_order(a->kind, b->kind);
}

static int largest_first(const mtprof_live_row *a, const mtprof_live_row *b, double left,
                         double right)
{
    int order = mtb_order(right, left);
    return order != 0 ? order : by_name(a, b);
}

static int order_self(const void *a, const void *b)
{
    const mtprof_live_row *left = a;
    const mtprof_live_row *right = b;
    return largest_first(left, right, left->self_ns, right->self_ns);
}

static int order_total(const void *a, const void *b)
{
    const mtprof_live_row *left = a;
    const mtprof_live_row *right = b;
    return largest_first(left, right, left->total_ns, right->total_ns);
}

static int order_calls(const void *a, const void *b)
{
    const mtprof_live_row *left = a;
    const mtprof_live_row *right = b;
    return largest_first(left, right, left->calls, right->calls);
}

static int order_mean(const void *a, const void *b)
{
    const mtprof_live_row *left = a;
    const mtprof_live_row *right = b;
    return largest_first(left, right, mean_of(left), mean_of(right));
}

static int order_name(const void *a, const void *b)
{
    return by_name(a, b);
}

static int (*const orders[])(const void *, const void *) = {
    [MTPROF_LIVE_SORT_SELF] = order_self,   [MTPROF_LIVE_SORT_TOTAL] = order_total,
    [MTPROF_LIVE_SORT_CALLS] = order_calls, [MTPROF_LIVE_SORT_MEAN] = order_mean,
    [MTPROF_LIVE_SORT_NAME] = order_name,
};
_Static_assert(MT_COUNT(orders) == MTPROF_LIVE_SORT_COUNT, "one each");

/* The first `ordered` rows, or all. Few of many are found by insertion into those found so far. */
static void put_in_order(mtprof_live *live, int (*order)(const void *, const void *),
                         uint32_t ordered)
{
    mtprof_live_row *rows = live->shown;
    if (ordered == 0 || ordered >= live->n_shown) {
        qsort(rows, live->n_shown, sizeof *rows, order);
        return;
    }
    qsort(rows, ordered, sizeof *rows, order);
    for (size_t i = ordered; i < live->n_shown; i++) {
        if (order(&rows[i], &rows[ordered - 1]) >= 0) {
            continue;
        }
        const mtprof_live_row row = rows[i];
        rows[i] = rows[ordered - 1];
        size_t at = ordered - 1;
        for (; at > 0 && order(&row, &rows[at - 1]) < 0; at--) {
            rows[at] = rows[at - 1];
        }
        rows[at] = row;
    }
}

/* ---- the question ---------------------------------------------------------------------------- */

/* "*NAME*" */
static int make_pattern(const char *name, char **pattern)
{
    size_t length = name != NULL ? strlen(name) : 0;
    *pattern = NULL;
    if (length == 0) {
        return MTPROF_OK;
    }
    *pattern = mtb_calloc(length + 3, 1);
    if (*pattern == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "live rows: no memory for a pattern");
    }
    (*pattern)[0] = '*';
    memcpy(*pattern + 1, name, length);
    (*pattern)[length + 1] = '*';
    return MTPROF_OK;
}

static bool has_ops(const mtprof_live *live)
{
    for (size_t i = 0; i < live->n_rows; i++) {
        if (live->rows[i].key.kind == MTPROF_EVENT_KIND_OP) {
            return true;
        }
    }
    return false;
}

static int check_query(const mtprof_live_query *query)
{
    const uint32_t groups = MTPROF_LIVE_BY_MODULE | MTPROF_LIVE_BY_THREAD | MTPROF_LIVE_BY_SHAPES;
    if (query->sort >= MTPROF_LIVE_SORT_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "live rows: sort is %u, expected 0 to %d", query->sort,
                        MTPROF_LIVE_SORT_COUNT - 1);
    }
    if ((query->group & ~groups) != 0) {
        return mtb_fail(MTPROF_EINVAL, "live rows: group is %x, expected bits of %x", query->group,
                        groups);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_live_get_rows(mtprof_live *live, const mtprof_live_query *query,
                                   const mtprof_live_row **rows, uint32_t *n_rows)
{
    mtprof_live_query own = {.struct_size = sizeof own};
    *rows = NULL;
    *n_rows = 0;
    if (query != NULL && query->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "live rows: struct_size is 0");
    }
    if (query != NULL) {
        mtb_read_struct(&own, query);
    }
    MT_TRY(check_query(&own));
    gatherer g = {.live = live, .query = &own, .functions = own.functions != 0 || !has_ops(live)};
    live->n_shown = 0;
    mtb_idmap_clear(&live->shown_map);
    mtb_arena_reset(&live->texts);
    int status = make_pattern(own.name, &g.pattern);
    if (status == MTPROF_OK) {
        status = gather(&g);
    }
    if (status == MTPROF_OK && (own.group & MTPROF_LIVE_BY_SHAPES) != 0 && live->n_shown > 0) {
        status = add_shapes(live, &g);
    }
    if (status == MTPROF_OK && live->n_shown > 0) {
        put_in_order(live, orders[own.sort], own.ordered);
        *rows = live->shown;
        *n_rows = (uint32_t)live->n_shown;
    }
    mtb_free(g.pattern);
    return status;
}

/* ---- other facts ----------------------------------------------------------------------------- */

/* Threads with a row in the window. Numbers count from 1, so below the size of the map each has a
 * bit of its own. */
static uint32_t count_threads(const mtprof_live *live)
{
    uint64_t seen[1024] = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < live->n_rows; i++) {
        const mtprof__live_row *row = &live->rows[i];
        uint64_t *word = &seen[row->key.thread / 64 % MT_COUNT(seen)];
        uint64_t bit = (uint64_t)1 << row->key.thread % 64;
        bool counts = row->changes > 0 && row->key.device == 0 && row->key.thread != 0;
        n += counts && (*word & bit) == 0;
        *word |= counts ? bit : 0;
    }
    return n;
}

mtprof_status mtprof_live_get_info(const mtprof_live *live, mtprof_live_info *info)
{
    if (info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "live info: struct_size is 0");
    }
    const mtprof_trace_info *trace = &live->reader.info;
    mtprof_live_info full = {
        .state = live->state,
        .pid = trace->pid,
        .start_ns = mtprof_reader_ns(&live->reader, trace->start_ticks),
        .now_ns = live->now_ns,
        .polls = live->n_polls,
        .bytes_new = live->window.bytes_new,
        .bytes_read = live->window.bytes_read,
        .events = live->window.events,
        .events_all = live->window.events_all,
        .missed = live->missed,
        .damaged = live->damaged + live->walk_damaged,
        .rows_merged = live->rows_merged,
        .steps = live->window.steps,
        .step = live->step,
        .threads = count_threads(live),
        .devices = (uint32_t)live->n_devices,
        .evicted = trace->health[MTPROF_HEALTH_RING_BEGINS],
        .allocated = live->allocated,
        .file_bytes = live->reader.index.end,
        .policy = trace->policy,
    };
    for (size_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        full.lost += trace->health[i];
    }
    if (live->n_polls > 0) {
        const mtprof__live_poll *first = &live->polls[live->first_poll];
        int64_t ns = mtb_sub_sat(first[live->n_polls - 1].end_ns, first->start_ns);
        full.window_ns = ns > 0 ? ns : 0;
    }
    mtb_write_struct(info, &full);
    return MTPROF_OK;
}

mtprof_status mtprof_live_get_device(const mtprof_live *live, uint32_t index,
                                     mtprof_live_device *device)
{
    if (device->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "live device: struct_size is 0");
    }
    if (index >= live->n_devices) {
        return mtb_fail(MTPROF_EINVAL, "live device: no device %u, there are %zu", index,
                        live->n_devices);
    }
    const mtprof__live_device *own = &live->devices[index];
    const mtprof_live_device full = {
        .index = own->index,
        .type = own->type,
        .busy_ns = own->window_ns,
        .allocated = own->allocated,
        .reserved_memory = own->reserved,
    };
    mtb_write_struct(device, &full);
    return MTPROF_OK;
}

bool mtprof_live_thread(const mtprof_live *live, uint32_t number, mtprof_thread_info *out)
{
    return mtprof_reader_thread(&live->reader, number, out);
}
