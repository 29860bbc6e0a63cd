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
#include "mtprof/format/input_words.h"
#include "mtprof/record/hot/inputs_cache.h"

#include <string.h>

enum {
    NESTING_MAX = 16
};

/* The state of the encoding. */
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
    *e->words++ = mtprof__tensor_word(n, strides, mtprof__string_here(value->type));
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

/* A keyword names the value after it in the same list. */
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
            if (MT_UNLIKELY(depth >= NESTING_MAX)) {
                mtprof_count_cut(1);
            }
            *e->words++ = shown
                              ? MTPROF_INPUT_LIST | count_values(value->of.items, value->type) << 32
                              : MTPROF_INPUT_NONE;
            if (shown && !encode_values(e, value->of.items, value->type, depth + 1)) {
                return false;
            }
            break;
        }
        case MTPROF_INPUT_INT:
        case MTPROF_INPUT_REAL:
        case MTPROF_INPUT_BOOL:
        case MTPROF_INPUT_STRING:
            if (e->scalars == e->scalars_end) {
                return false;
            }
            *e->words++ = value->kind | (uint64_t)mtprof__string_here(value->type) << 32;
            memcpy(e->scalars, &value->of, 8);
            if (value->kind == MTPROF_INPUT_STRING) {
                *e->scalars = mtprof__string_here((uint32_t)value->of.text);
            }
            e->scalars++;
            break;
        case MTPROF_INPUT_KEYWORD:
            *e->words++ = names_a_value(values, count, i)
                              ? MTPROF_INPUT_KEYWORD | (uint64_t)mtprof__string_here(value->type)
                                                           << 32
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

/* Two words at a time, whatever the CPU has for it. */
typedef uint64_t word_pair __attribute__((vector_size(16), aligned(8), may_alias));

#define PAIR(words, i) (*(const word_pair *)(const void *)((words) + (i)))

/* The bits in which two runs of words differ, or-ed together. */
MT_INLINE uint64_t differences(const uint64_t *a, const int64_t *b, uint32_t count)
{
    word_pair bits = {0, 0};
    const uint64_t *end = a + (count & ~1u);
    while (a < end) {
        bits |= PAIR(a, 0) ^ PAIR(b, 0);
        a += 2;
        b += 2;
    }
    uint64_t last = (count & 1) != 0 ? *a ^ (uint64_t)*b : 0;
    return bits[0] | bits[1] | last;
}

int mtprof__inputs_match(const mtprof__cached_inputs *list, const mtprof_value *values,
                         uint32_t count, bool strides, uint64_t *scalars, int most)
{
    const uint64_t *at = list->words;
    int n = 0;
    for (const mtprof_value *value = values; value < values + count; value++) {
        uint64_t head;
        memcpy(&head, value, sizeof head);
        bool tensor = value->kind == MTPROF_INPUT_TENSOR;
        bool with_strides = tensor && strides && value->strides != NULL;
        bool scalar = value->kind >= MTPROF_INPUT_INT && value->kind <= MTPROF_INPUT_STRING;
        head |= (uint64_t)with_strides << 16;
        if (*at != head || (!tensor && !scalar) || (scalar && n == most)) {
            return -1;
        }
        at++;
        if (scalar) {
            uint64_t bits;
            memcpy(&bits, &value->of, sizeof bits);
            if (MT_UNLIKELY(value->kind == MTPROF_INPUT_STRING)) {
                bits = mtprof__string_here((uint32_t)value->of.text);
            }
            mtprof__put(&scalars[n++], bits);
            continue;
        }
        uint64_t different = differences(at, value->of.sizes, value->n_dims);
        at += value->n_dims;
        if (with_strides) {
            different |= differences(at, value->strides, value->n_dims);
            at += value->n_dims;
        }
        if (different != 0) {
            return -1;
        }
    }
    return *at == MTPROF__INPUTS_END ? n : -1;
}

/* About twenty instructions a tensor: an op with shapes costs what this costs. */
bool mtprof__inputs_match_tensors(const uint64_t *at, const mtprof_value *values, uint32_t count)
{
    word_pair bits = {0, 0};
    for (const mtprof_value *value = values, *end = values + count; value < end; value++) {
        uint64_t head;
        memcpy(&head, value, sizeof head);
        if (MT_UNLIKELY(*at++ != head)) {
            return false;
        }
        const int64_t *sizes = value->of.sizes;
        uint32_t dims = value->n_dims;
        if (MT_LIKELY(dims == 4)) { /* unrolled: a loop costs two nanoseconds here */
            bits |= (PAIR(at, 0) ^ PAIR(sizes, 0)) | (PAIR(at, 2) ^ PAIR(sizes, 2));
        } else {
            bits[0] |= differences(at, sizes, dims);
        }
        at += dims;
    }
    return (bits[0] | bits[1]) == 0;
}

/* How many values a list has that is nothing but tensors without strides; 0 for others. */
static uint32_t count_tensors(const uint64_t *words, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i += 1 + (uint32_t)(words[i] >> 8 & 0xFF)) {
        if ((words[i] & 0xFFFF00FF) != MTPROF_INPUT_TENSOR) {
            return 0;
        }
        n++;
    }
    return n;
}

static bool same_list(const mtprof__cached_inputs *list, const uint64_t *words, uint32_t count)
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
static mtprof__cached_inputs add_list(mtprof__recording *recording, const uint64_t *words,
                                      uint32_t count, uint64_t hash)
{
    mtprof__cached_inputs none = {NULL, 0, 0, 0};
    mtprof__words_entry entry = {words, count};
    uint32_t id =
        mtb_idmap_find(&recording->inputs_map, hash, same_words, recording->inputs, &entry);
    if (id != 0) {
        return (mtprof__cached_inputs){recording->inputs[id - 1].words, count, id, 0};
    }
    if (recording->n_inputs >= MTPROF__BOUND || !mtprof__definition_fits(recording, 2 + count) ||
        !mtb_idmap_reserve(&recording->inputs_map) ||
        !mtb_pages_grow((void **)&recording->inputs, &recording->inputs_capacity,
                        recording->n_inputs + 1, sizeof *recording->inputs)) {
        return none;
    }
    /* The record is the copy with its first word in front: encoded once, kept for comparison. */
    mtb_arena before = recording->arena;
    uint32_t head = 1 + count > MTPROF__RECORD_MAX ? 2 : 1;
    uint32_t total = head + count;
    uint64_t *copy = mtb_arena_take(&recording->arena, (total + 1) * sizeof *copy);
    if (copy == NULL) {
        return none;
    }
    copy[total] = MTPROF__INPUTS_END;
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
    recording->own_bytes += total * 8;
    mtb_idmap_add(&recording->inputs_map, hash, id); /* there is room */
    return (mtprof__cached_inputs){entry.words, count, id, 0};
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
    uint32_t near = site & (MTPROF__SITE_CACHE - 1);
    if (MT_LIKELY(cache->by_site[near].site == site &&
                  same_list(&cache->by_site[near].list, words, count))) {
        return cache->by_site[near].list.id;
    }
    uint64_t hash = mtb_hash_words(words, count);
    uint32_t at = hash & (MTPROF__CONTENT_CACHE - 1);
    mtprof__cached_inputs list = cache->by_content[at].list;
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
    cache->by_site[near].list.n_tensors = count_tensors(words, count);
    return list.id;
}

void mtprof__inputs_cache_reset(mtprof__writer *w)
{
    if (w->inputs != NULL) {
        memset(w->inputs, 0, sizeof *w->inputs);
    }
}
