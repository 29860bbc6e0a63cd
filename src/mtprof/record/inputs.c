/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists: what an op was called with, as words, and their ids.
 *
 * Programs call the same place with the same shapes over and over, so the first look is at what
 * this place had last time; then at a per-thread cache by content; only then at the recording's
 * table.
 */
#include "base/hash.h"
#include "base/pages.h"
#include "mtprof/record/recording.h"

#include <string.h>

enum {
    SITE_CACHE = 128,
    CONTENT_CACHE = 256,
    NESTING_MAX = 16
};

typedef struct cached_inputs {
    const uint64_t *words; /* in the recording's arena */
    uint32_t count, id;
} cached_inputs;

struct mtprof__inputs_cache {
    struct {
        uint32_t site;
        cached_inputs list;
    } by_site[SITE_CACHE];
    struct {
        uint64_t hash;
        cached_inputs list;
    } by_content[CONTENT_CACHE];
};

/* Where encoding stands. */
typedef struct encoder {
    uint64_t *words, *words_end;
    uint64_t *scalars, *scalars_end;
    bool strides;
} encoder;

static bool encode_tensor(encoder *e, const mtprof_value *value)
{
    bool strides = e->strides && value->strides != NULL;
    uint32_t n = value->n_dims;
    uint32_t body = strides ? 2 * n : n;
    if (MT_UNLIKELY(e->words_end - e->words < (ptrdiff_t)(1 + body))) {
        return false;
    }
    *e->words++ = MTPROF_INPUT_TENSOR | (uint64_t)n << 8 | (uint64_t)strides << 16 |
                  (uint64_t)value->type << 32;
    for (uint32_t i = 0; i < n; i++) {
        e->words[i] = (uint64_t)value->of.sizes[i];
    }
    e->words += n;
    if (strides) {
        for (uint32_t i = 0; i < n; i++) {
            e->words[i] = (uint64_t)value->strides[i];
        }
        e->words += n;
    }
    return true;
}

/* A keyword names the value behind it in the same list. */
static bool names_a_value(const mtprof_value *values, uint32_t count, uint32_t i)
{
    return values[i].kind == MTPROF_INPUT_KEYWORD && i + 1 < count &&
           values[i + 1].kind != MTPROF_INPUT_KEYWORD;
}

/* A keyword and what it names count as one. */
static uint64_t count_values(const mtprof_value *values, uint32_t count)
{
    uint64_t n = count;
    for (uint32_t i = 0; i < count; i++) {
        n -= names_a_value(values, count, i);
    }
    return n;
}

static bool encode_values(encoder *e, const mtprof_value *values, uint32_t count, int depth)
{
    for (uint32_t i = 0; i < count; i++) {
        const mtprof_value *value = &values[i];
        if (value->kind == MTPROF_INPUT_TENSOR && (value->n_dims == 0 || value->of.sizes != NULL)) {
            if (!encode_tensor(e, value)) {
                return false;
            }
            continue;
        }
        if (e->words == e->words_end) {
            return false;
        }
        switch (value->kind) {
        case MTPROF_INPUT_LIST: {
            bool shown = depth < NESTING_MAX && (value->type == 0 || value->of.items != NULL);
            *e->words++ = shown
                              ? MTPROF_INPUT_LIST | count_values(value->of.items, value->type) << 32
                              : MTPROF_INPUT_NONE;
            if (shown && !encode_values(e, value->of.items, value->type, depth + 1)) {
                return false;
            }
            break;
        }
        case MTPROF_INPUT_INT:
        case MTPROF_INPUT_DOUBLE:
        case MTPROF_INPUT_BOOL:
        case MTPROF_INPUT_STRING:
            if (e->scalars == e->scalars_end) {
                return false;
            }
            *e->words++ = value->kind | (uint64_t)value->type << 32;
            memcpy(e->scalars++, &value->of, 8);
            break;
        case MTPROF_INPUT_KEYWORD:
            *e->words++ = names_a_value(values, count, i)
                              ? MTPROF_INPUT_KEYWORD | (uint64_t)value->type << 32
                              : MTPROF_INPUT_NONE;
            break;
        default: *e->words++ = MTPROF_INPUT_NONE; break;
        }
    }
    return true;
}

bool mtprof__encode_inputs(const mtprof_value *values, uint32_t count, bool strides, uint32_t room,
                           uint64_t *words, uint32_t *n_words, uint64_t *scalars,
                           uint32_t *n_scalars)
{
    encoder e = {words, words + room, scalars, scalars + room, strides};
    if (!encode_values(&e, values, count, 0)) {
        return false;
    }
    *n_words = (uint32_t)(e.words - words);
    *n_scalars = (uint32_t)(e.scalars - scalars);
    return true;
}

static bool same_list(const cached_inputs *list, const uint64_t *words, uint32_t count)
{
    if (list->count != count || list->id == 0) {
        return false;
    }
    /* Short lists: gather the differences without a branch for each word. */
    uint64_t difference = 0;
    for (uint32_t i = 0; i < count; i++) {
        difference |= list->words[i] ^ words[i];
    }
    return difference == 0;
}

static bool same_words(const void *context, uint32_t id, const void *key)
{
    const mtprof__words_entry *entries = context;
    const mtprof__words_entry *wanted = key;
    const mtprof__words_entry *there = &entries[id - 1];
    return there->count == wanted->count &&
           memcmp(there->words, wanted->words, wanted->count * sizeof wanted->words[0]) == 0;
}

/* Finds or adds a list in the recording's table. Caller holds the lock. */
static cached_inputs add_list(mtprof__recording *recording, const uint64_t *words, uint32_t count,
                              uint64_t hash)
{
    cached_inputs none = {NULL, 0, 0};
    mtprof__words_entry entry = {words, count};
    uint32_t id =
        mtb_idmap_find(&recording->inputs_map, hash, same_words, recording->inputs, &entry);
    if (id != 0) {
        return (cached_inputs){recording->inputs[id - 1].words, count, id};
    }
    if (recording->n_inputs >= MTPROF__BOUND || !mtb_idmap_reserve(&recording->inputs_map) ||
        !mtb_pages_grow((void **)&recording->inputs, &recording->inputs_capacity,
                        recording->n_inputs + 1, sizeof *recording->inputs)) {
        return none;
    }
    /* The record is the copy with its first word in front: encoded once, kept for comparison. */
    mtb_arena before = recording->arena;
    uint32_t head = 1 + count > MTPROF__RECORD_MAX ? 2 : 1;
    uint32_t total = head + count;
    uint64_t *copy = mtb_arena_take(&recording->arena, total * sizeof *copy);
    if (copy == NULL) {
        return none;
    }
    id = (uint32_t)recording->n_inputs + 1;
    copy[0] = mtprof__word0(MTPROF_REC_DEF_INPUTS, head == 1 ? total : 255, 0, id);
    if (head == 2) {
        copy[1] = total;
    }
    memcpy(copy + head, words, count * sizeof *copy);
    uint32_t cause;
    if (!mtprof__stream_append(recording->store, &recording->definitions, copy, total,
                               mtprof__ticks(), &cause)) {
        mtb_arena_undo(&recording->arena, before);
        return none;
    }
    entry.words = copy + head;
    recording->inputs[recording->n_inputs++] = entry;
    mtb_idmap_add(&recording->inputs_map, hash, id); /* there is room */
    return (cached_inputs){entry.words, count, id};
}

uint32_t mtprof__inputs_id(mtprof__writer *w, uint32_t site, const uint64_t *words, uint32_t count)
{
    struct mtprof__inputs_cache *cache = w->inputs;
    if (MT_UNLIKELY(cache == NULL)) {
        cache = w->inputs = mtb_pages_take(sizeof *cache);
        if (cache == NULL) {
            return 0;
        }
    }
    uint32_t near = site & (SITE_CACHE - 1);
    if (MT_LIKELY(cache->by_site[near].site == site &&
                  same_list(&cache->by_site[near].list, words, count))) {
        return cache->by_site[near].list.id;
    }
    uint64_t hash = mtb_hash_words(words, count);
    uint32_t at = hash & (CONTENT_CACHE - 1);
    cached_inputs list = cache->by_content[at].list;
    if (cache->by_content[at].hash != hash || !same_list(&list, words, count)) {
        if (mtb_locks_held()) {
            return 0;
        }
        mtb_lock_acquire(&mtprof__names_lock);
        list = add_list(w->recording, words, count, hash);
        mtb_lock_release(&mtprof__names_lock);
        if (list.id == 0) {
            return 0;
        }
        cache->by_content[at].hash = hash;
        cache->by_content[at].list = list;
    }
    cache->by_site[near].site = site;
    cache->by_site[near].list = list;
    return list.id;
}

void mtprof__inputs_cache_reset(mtprof__writer *w)
{
    if (w->inputs != NULL) {
        memset(w->inputs, 0, sizeof *w->inputs);
    }
}
