/* SPDX-License-Identifier: Apache-2.0
 *
 * What options add to a base: shapes, frames, overload, module, step, thread.
 *
 * Shapes and stacks are compared by what is shown of them: two input lists with the same sizes but
 * different types are equal, and so are two stacks with the same n innermost frames. The number of
 * either is looked up once per input list and stack node.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/model/text/inputs_text.h"
#include "mtprof/model/text/stack_text.h"

#include <mtprof/status.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
    MEMO_MOST = 1 << 22
};

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct text_sink {
    char *bytes;
    size_t length, capacity;
} text_sink;

static int take_text(void *context, const void *bytes, size_t length)
{
    text_sink *sink = context;
    void *block = sink->bytes;
    if (!mtb_grow(&block, &sink->capacity, sink->length + length, 1)) {
        return ENOMEM;
    }
    sink->bytes = block;
    memcpy(sink->bytes + sink->length, bytes, length);
    sink->length += length;
    return 0;
}

static bool same_text(const void *context, uint32_t id, const void *key)
{
    const mtprof__grouper *grouper = context;
    const mtprof_text *have = &grouper->shapes[id - 1];
    const mtprof_text *wanted = key;
    return have->length == wanted->length && memcmp(have->bytes, wanted->bytes, have->length) == 0;
}

static int intern_shapes(mtprof__grouper *grouper, mtprof_text text, uint32_t *number)
{
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    *number = mtb_idmap_find(&grouper->shapes_map, hash, same_text, grouper, &text);
    if (*number != 0) {
        return 0;
    }
    void *block = grouper->shapes;
    char *copy = mtb_arena_copy_text(&grouper->texts, text.bytes, text.length);
    if (copy == NULL || !mtb_idmap_reserve(&grouper->shapes_map) ||
        !mtb_grow(&block, &grouper->shapes_capacity, grouper->n_shapes + 1,
                  sizeof grouper->shapes[0])) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for input shapes");
    }
    grouper->shapes = block;
    grouper->shapes[grouper->n_shapes++] = (mtprof_text){copy, text.length};
    *number = (uint32_t)grouper->n_shapes;
    mtb_idmap_add(&grouper->shapes_map, hash, *number);
    return 0;
}

static int render_shapes(mtprof__grouper *grouper, uint32_t inputs, uint32_t *number)
{
    mtprof__inputs_view view = {.model = grouper->model};
    text_sink sink = {0};
    mtb_writer writer;
    if (inputs == 0 || !mtprof_model_inputs(grouper->model, inputs, &view.words, &view.n_words)) {
        return intern_shapes(grouper, (mtprof_text){"[]", 2}, number);
    }
    bool ready = mtb_writer_init(&writer, take_text, &sink);
    if (ready) {
        mtprof__write_input_shapes(&writer, &view);
    }
    int status = mtb_writer_finish(&writer) == 0
                     ? 0
                     : mtb_fail(MTPROF_ENOMEM, "averages: no memory for input shapes");
    if (status == 0) {
        status = intern_shapes(grouper, (mtprof_text){sink.bytes, sink.length}, number);
    }
    mtb_free(sink.bytes);
    return status;
}

/* Zeros for each number that a column has, up to a limit: a trace may use any number for a stack,
 * and what is not in the table is looked up again. */
static int make_memo(const uint32_t *column, size_t n, uint32_t **memo, uint32_t *length)
{
    uint32_t most = column != NULL ? mtprof__largest(column, n) : 0;
    *length = most < MEMO_MOST ? most + 1 : MEMO_MOST;
    *memo = mtb_calloc(*length, sizeof **memo);
    return *memo != NULL
               ? 0
               : mtb_fail(MTPROF_ENOMEM, "averages: no memory for input lists and stacks");
}

int mtprof__key_shapes(mtprof__grouper *grouper, uint32_t inputs, uint32_t *number)
{
    if (grouper->shapes_of == NULL) {
        MT_TRY(make_memo(grouper->columns.inputs, grouper->columns.n, &grouper->shapes_of,
                         &grouper->n_shapes_of));
    }
    bool memo = inputs < grouper->n_shapes_of;
    *number = memo ? grouper->shapes_of[inputs] : 0;
    if (*number == 0) {
        MT_TRY(render_shapes(grouper, inputs, number));
    }
    if (memo) {
        grouper->shapes_of[inputs] = *number;
    }
    return 0;
}

mtprof_text mtprof__key_shapes_text(const mtprof__grouper *grouper, uint32_t number)
{
    return number != 0 ? grouper->shapes[number - 1] : (mtprof_text){"", 0};
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static uint32_t frames_of(const mtprof__grouper *grouper, uint32_t node, mtprof_frame *frames)
{
    return mtprof__stack_frames(grouper->model, node, frames, grouper->options.stack_n);
}

static uint64_t hash_frames(const mtprof_frame *frames, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        const mtprof_frame *frame = &frames[i];
        hash = mtb_mix(hash, mtb_hash_bytes(frame->function.bytes, frame->function.length));
        hash = mtb_mix(hash ^ frame->line, mtb_hash_bytes(frame->file.bytes, frame->file.length));
    }
    return hash;
}

static bool same_bytes(mtprof_text a, mtprof_text b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* An address distinguishes frames only where nothing else is known of them. */
static bool same_frame(const mtprof_frame *a, const mtprof_frame *b)
{
    bool is_named = a->function.length != 0 || a->file.length != 0;
    return same_bytes(a->function, b->function) && same_bytes(a->file, b->file) &&
           a->line == b->line && (is_named || a->address == b->address);
}

static bool same_stack(const void *context, uint32_t id, const void *key)
{
    const mtprof__grouper *grouper = context;
    const uint32_t *n_wanted = key;
    const mtprof_frame *wanted = grouper->frames;
    mtprof_frame *have = grouper->frames + grouper->options.stack_n;
    uint32_t n = frames_of(grouper, grouper->stacks[id - 1], have);
    if (n != *n_wanted) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!same_frame(&have[i], &wanted[i])) {
            return false;
        }
    }
    return true;
}

static int find_stack(mtprof__grouper *grouper, uint32_t node, uint32_t *number)
{
    bool memo = node < grouper->n_stack_of;
    *number = memo ? grouper->stack_of[node] : 0;
    if (*number != 0) {
        return 0;
    }
    uint32_t n = frames_of(grouper, node, grouper->frames);
    uint64_t hash = hash_frames(grouper->frames, n);
    *number = mtb_idmap_find(&grouper->stacks_map, hash, same_stack, grouper, &n);
    if (*number == 0) {
        void *block = grouper->stacks;
        if (!mtb_idmap_reserve(&grouper->stacks_map) ||
            !mtb_grow(&block, &grouper->stacks_capacity, grouper->n_stacks + 1,
                      sizeof grouper->stacks[0])) {
            return mtb_fail(MTPROF_ENOMEM, "averages: no memory for stacks");
        }
        grouper->stacks = block;
        grouper->stacks[grouper->n_stacks++] = node;
        *number = (uint32_t)grouper->n_stacks;
        mtb_idmap_add(&grouper->stacks_map, hash, *number);
    }
    if (memo) {
        grouper->stack_of[node] = *number;
    }
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static_assert(sizeof(mtprof__group_key) == 4 * sizeof(uint64_t), "hashed as four words");

static uint64_t hash_key(const mtprof__group_key *key)
{
    uint64_t words[4];
    memcpy(words, key, sizeof words);
    return mtb_hash_words(words, 4);
}

static bool same_key(const void *context, uint32_t id, const void *key)
{
    const mtprof__grouper *grouper = context;
    return memcmp(&grouper->keys[id], key, sizeof grouper->keys[0]) == 0;
}

static int add_keyed(mtprof__grouper *grouper, const mtprof__group_key *key, uint64_t hash,
                     uint32_t event, uint32_t *group)
{
    void *block = grouper->keys;
    if (!mtb_idmap_reserve(&grouper->group_map) ||
        !mtb_grow(&block, &grouper->keys_capacity, grouper->n_groups + 1, sizeof *key)) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for another row");
    }
    grouper->keys = block;
    MT_TRY(mtprof__group_add(grouper, key->base, event, group));
    grouper->keys[*group] = *key;
    mtb_idmap_add(&grouper->group_map, hash, *group);
    return 0;
}

static int make_key(mtprof__grouper *grouper, size_t event, uint32_t base, mtprof__group_key *key)
{
    const mtprof__source_columns *c = &grouper->columns;
    uint32_t group = grouper->options.group;
    *key = (mtprof__group_key){.base = base};
    if ((group & MTPROF_GROUP_SHAPES) != 0) {
        MT_TRY(mtprof__key_shapes(grouper, c->inputs != NULL ? c->inputs[event] : 0, &key->shapes));
    }
    if (grouper->options.stack_n != 0 && c->stack != NULL && c->stack[event] != 0) {
        MT_TRY(find_stack(grouper, c->stack[event], &key->stack));
    }
    if ((group & MTPROF_GROUP_OVERLOAD) != 0 && c->overload != NULL) {
        key->overload = c->overload[event];
    }
    if ((group & MTPROF_GROUP_MODULE) != 0 && c->module != NULL) {
        key->module = c->module[event];
    }
    if ((group & MTPROF_GROUP_STEP) != 0) {
        key->step = c->step[event];
    }
    if ((group & MTPROF_GROUP_THREAD) != 0) {
        key->track = c->track[event];
    }
    return 0;
}

int mtprof__key_rows(mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i] == 0) {
            continue;
        }
        mtprof__group_key key;
        MT_TRY(make_key(grouper, first + i, rows[i], &key));
        uint64_t hash = hash_key(&key);
        rows[i] = mtb_idmap_find(&grouper->group_map, hash, same_key, grouper, &key);
        if (rows[i] == 0) {
            MT_TRY(add_keyed(grouper, &key, hash, (uint32_t)(first + i), &rows[i]));
        }
    }
    return 0;
}

int mtprof__key_init(mtprof__grouper *grouper)
{
    mtprof_averages_options *options = &grouper->options;
    const mtprof__source_columns *c = &grouper->columns;
    if (options->stack_n > MTPROF__STACK_FRAMES) {
        options->stack_n = MTPROF__STACK_FRAMES; /* no stack has more */
    }
    grouper->has_keys = options->group != 0 || options->stack_n != 0 || grouper->has_filter;
    if (options->stack_n != 0) {
        MT_TRY(make_memo(c->stack, c->n, &grouper->stack_of, &grouper->n_stack_of));
        grouper->frames = mtb_calloc(2 * (size_t)options->stack_n, sizeof grouper->frames[0]);
        if (grouper->frames == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "averages: no memory for stacks");
        }
    }
    return 0;
}
