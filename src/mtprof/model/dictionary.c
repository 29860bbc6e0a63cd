/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, tracks, devices, input lists, stacks and metadata of a model, see dictionary.h.
 *
 * Each table that answers "the same for equal arguments" is an array with an id map, whose ids are
 * index + 1. An addition first makes all the room it needs and then cannot fail any more, so that a
 * failed allocation leaves every table as it was.
 */
#include "mtprof/model/dictionary.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/format/texts.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

enum {
    MAX_DEVICES = 256, /* the column has a byte */
    FIRST_SHARED = 16
};

static const char step_prefix[] = "ProfilerStep#";
static const char step_key[] = "ProfilerStep*";

/* So that no text we hash has a NULL in it. */
static mtprof_text text_or_empty(mtprof_text text)
{
    return text.length != 0 ? text : (mtprof_text){"", 0};
}

/* The text in memory of the dictionary's own; false when that is refused. */
static bool keep_text(mtprof__dictionary *dictionary, mtprof_text *text)
{
    if (text->length == 0) {
        text->bytes = "";
        return true;
    }
    text->bytes = mtb_arena_copy_text(&dictionary->arena, text->bytes, text->length);
    return text->bytes != NULL;
}

/*
 * Room for `needed` elements of an array that others may be reading: the old one stays in the
 * arena. The release pairs with the acquire of the count in look-ups.
 */
static bool grow_shared(mtprof__dictionary *dictionary, void **array, size_t *capacity,
                        size_t needed, size_t size)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t larger = *capacity == 0 ? FIRST_SHARED : *capacity * 2;
    void *moved = mtb_arena_take(&dictionary->arena, larger * size);
    if (moved == NULL) {
        return false;
    }
    if (*array != NULL) {
        memcpy(moved, *array, *capacity * size);
    }
    __atomic_store_n(array, moved, __ATOMIC_RELEASE);
    *capacity = larger;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

const mtprof__name_entry *mtprof__dictionary_entry(const mtprof__dictionary *dictionary,
                                                   uint32_t name)
{
    static const mtprof__name_entry none = {.text = {"", 0}, .plain = 1};
    /* Acquire: partner of the release in insert_name(). The array read after it is as new. */
    if (name >= __atomic_load_n(&dictionary->n_names, __ATOMIC_ACQUIRE)) {
        return &none;
    }
    mtprof__name_entry **blocks = __atomic_load_n(&dictionary->name_blocks, __ATOMIC_ACQUIRE);
    return &blocks[name / MTPROF__NAME_BLOCK][name % MTPROF__NAME_BLOCK];
}

static bool same_name(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(mtprof__dictionary_entry(context, id - 1)->text,
                             *(const mtprof_text *)key);
}

static bool is_plain(mtprof_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        if (c < 0x20 || c > 0x7E || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

static bool is_step_name(mtprof_text text)
{
    size_t at = sizeof step_prefix - 1;
    bool is_step = text.length > at && mtprof__text_starts(text, step_prefix);
    for (; is_step && at < text.length; at++) {
        is_step = text.bytes[at] >= '0' && text.bytes[at] <= '9';
    }
    return is_step;
}

mtprof_text mtprof__group_text(mtprof_text text)
{
    return is_step_name(text) ? (mtprof_text){step_key, sizeof step_key - 1} : text;
}

static bool reserve_name(mtprof__dictionary *dictionary)
{
    if (dictionary->n_names < dictionary->n_blocks * MTPROF__NAME_BLOCK) {
        return true;
    }
    if (!grow_shared(dictionary, (void **)&dictionary->name_blocks, &dictionary->block_capacity,
                     dictionary->n_blocks + 1, sizeof *dictionary->name_blocks)) {
        return false;
    }
    mtprof__name_entry *block =
        mtb_arena_take(&dictionary->arena, MTPROF__NAME_BLOCK * sizeof *block);
    if (block == NULL) {
        return false;
    }
    dictionary->name_blocks[dictionary->n_blocks++] = block;
    return true;
}

/* Adds a name that is not there. key NULL: it is grouped under itself. */
static int insert_name(mtprof__dictionary *dictionary, mtprof_text text, uint64_t hash,
                       const uint32_t *key, bool copy)
{
    uint32_t name = dictionary->n_names;
    if (name == UINT32_MAX - 1) { /* UINT32_MAX is not a name, and name + 1 must fit */
        return mtb_fail(MTPROF_ENOMEM, "model: more than %u names", name);
    }
    if (!reserve_name(dictionary) || !mtb_idmap_reserve(&dictionary->name_map) ||
        (copy && !keep_text(dictionary, &text))) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu names", (size_t)name + 1);
    }
    dictionary->name_blocks[name / MTPROF__NAME_BLOCK][name % MTPROF__NAME_BLOCK] =
        (mtprof__name_entry){
            .text = text,
            .key = key != NULL ? *key : name,
            .plain = is_plain(text),
        };
    mtb_idmap_add(&dictionary->name_map, hash, name + 1);
    __atomic_store_n(&dictionary->n_names, name + 1, __ATOMIC_RELEASE);
    return MTPROF_OK;
}

static int find_or_insert(mtprof__dictionary *dictionary, mtprof_text text, const uint32_t *key,
                          bool copy, uint32_t *name)
{
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    uint32_t found = mtb_idmap_find(&dictionary->name_map, hash, same_name, dictionary, &text);
    if (found == 0) {
        MT_TRY(insert_name(dictionary, text, hash, key, copy));
        found = dictionary->n_names;
    }
    *name = found - 1;
    return MTPROF_OK;
}

bool mtprof__dictionary_find_name(const mtprof__dictionary *dictionary, mtprof_text text,
                                  uint32_t *name)
{
    text = text_or_empty(text);
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    uint32_t found = mtb_idmap_find(&dictionary->name_map, hash, same_name, dictionary, &text);
    *name = found - 1;
    return found != 0;
}

static int name_locked(mtprof__dictionary *dictionary, mtprof_text text, bool copy, uint32_t *name)
{
    text = text_or_empty(text);
    if (!is_step_name(text)) {
        return find_or_insert(dictionary, text, NULL, copy, name);
    }
    uint32_t key;
    mtprof_text key_text = {step_key, sizeof step_key - 1};
    MT_TRY(find_or_insert(dictionary, key_text, NULL, false, &key));
    return find_or_insert(dictionary, text, &key, copy, name);
}

int mtprof__dictionary_name(mtprof__dictionary *dictionary, mtprof_text text, uint32_t *name)
{
    *name = 0;
    mtb_lock_acquire(&dictionary->lock);
    int status = name_locked(dictionary, text, true, name);
    mtb_lock_release(&dictionary->lock);
    return status;
}

uint32_t mtprof__dictionary_string_name(const mtprof__dictionary *dictionary, uint32_t string)
{
    if (dictionary->reader == NULL || string == 0) {
        return 0;
    }
    const mtprof__definitions *definitions = &dictionary->reader->definitions;
    const mtprof__definition *found =
        mtprof__definition_find(definitions, MTPROF__DEF_STRING, string);
    return found != NULL
               ? dictionary->string_names[found - definitions->tables[MTPROF__DEF_STRING].items]
               : 0;
}

/* ---- input lists and scalars ----------------------------------------------------------------- */

static const mtprof__definition_table *reader_lists(const mtprof__dictionary *dictionary)
{
    return &dictionary->reader->definitions.tables[MTPROF__DEF_INPUTS];
}

static mtprof__words words_of(const mtprof__dictionary *dictionary, uint32_t index)
{
    if (index <= dictionary->n_reader_inputs) {
        const mtprof__definition *list = &reader_lists(dictionary)->items[index - 1];
        return (mtprof__words){list->data, list->length};
    }
    return dictionary->inputs[index - dictionary->n_reader_inputs - 1];
}

static bool same_words(const void *context, uint32_t id, const void *key)
{
    mtprof__words a = words_of(context, id);
    const mtprof__words *b = key;
    return a.n == b->n && (a.n == 0 || memcmp(a.words, b->words, a.n * sizeof *a.words) == 0);
}

static uint64_t hash_of(mtprof__words words)
{
    return mtb_hash_words(words.words, words.n);
}

/* A copy of words in the arena; false when memory is refused. */
static bool keep_words(mtprof__dictionary *dictionary, mtprof__words *words)
{
    uint64_t *copy = mtb_arena_take(&dictionary->arena, words->n * sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    if (words->n != 0) {
        memcpy(copy, words->words, words->n * sizeof *copy);
    }
    words->words = copy;
    return true;
}

int mtprof__dictionary_inputs(mtprof__dictionary *dictionary, const uint64_t *words, uint32_t n,
                              uint32_t *inputs)
{
    mtprof__words list = {words, n};
    uint64_t hash = hash_of(list);
    mtb_lock_acquire(&dictionary->lock);
    *inputs = mtb_idmap_find(&dictionary->inputs_map, hash, same_words, dictionary, &list);
    if (*inputs == 0 && dictionary->n_inputs < UINT32_MAX - 1 - dictionary->n_reader_inputs &&
        mtb_idmap_reserve(&dictionary->inputs_map) && keep_words(dictionary, &list) &&
        mtb_append(dictionary->inputs, dictionary->n_inputs, dictionary->inputs_capacity, &list)) {
        *inputs = dictionary->n_reader_inputs + (uint32_t)dictionary->n_inputs;
        mtb_idmap_add(&dictionary->inputs_map, hash, *inputs);
    }
    int status = *inputs != 0 ? MTPROF_OK
                              : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu input lists",
                                         dictionary->n_inputs + 1);
    mtb_lock_release(&dictionary->lock);
    return status;
}

uint32_t mtprof__dictionary_reader_inputs(const mtprof__dictionary *dictionary, uint32_t id)
{
    if (dictionary->reader == NULL) {
        return 0;
    }
    const mtprof__definition *found =
        mtprof__definition_find(&dictionary->reader->definitions, MTPROF__DEF_INPUTS, id);
    return found != NULL ? dictionary->reader_inputs[found - reader_lists(dictionary)->items] : 0;
}

bool mtprof__dictionary_inputs_find(const mtprof__dictionary *dictionary, uint32_t inputs,
                                    const uint64_t **words, uint32_t *n)
{
    /* The reader's come first, so that a stream may ask for them while columns are being made. */
    if (inputs == 0 || (inputs > dictionary->n_reader_inputs &&
                        inputs - dictionary->n_reader_inputs > dictionary->n_inputs)) {
        return false;
    }
    mtprof__words list = words_of(dictionary, inputs);
    *words = list.words;
    *n = list.n;
    return true;
}

int mtprof__dictionary_scalars(mtprof__dictionary *dictionary, const uint64_t *words, uint32_t n,
                               uint32_t *scalars)
{
    mtprof__words list = {words, n};
    mtb_lock_acquire(&dictionary->lock);
    bool kept =
        dictionary->n_scalars < UINT32_MAX - 1 && keep_words(dictionary, &list) &&
        mtb_append(dictionary->scalars, dictionary->n_scalars, dictionary->scalars_capacity, &list);
    *scalars = kept ? (uint32_t)dictionary->n_scalars : 0;
    int status = kept ? MTPROF_OK
                      : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu lists of scalars",
                                 dictionary->n_scalars + 1);
    mtb_lock_release(&dictionary->lock);
    return status;
}

/* ---- stacks of foreign traces ---------------------------------------------------------------- */

static bool same_frame(const void *context, uint32_t id, const void *key)
{
    const mtprof_frame *a = &((const mtprof__dictionary *)context)->frames[id - 1];
    const mtprof_frame *b = key;
    return a->line == b->line && a->address == b->address &&
           mtprof__text_same(a->function, b->function) && mtprof__text_same(a->file, b->file);
}

int mtprof__dictionary_frame(mtprof__dictionary *dictionary, const mtprof_frame *frame,
                             uint32_t *index)
{
    mtprof_frame own = *frame;
    own.function = text_or_empty(own.function);
    own.file = text_or_empty(own.file);
    uint64_t parts[] = {mtb_hash_bytes(own.function.bytes, own.function.length),
                        mtb_hash_bytes(own.file.bytes, own.file.length), own.line, own.address};
    uint64_t hash = mtb_hash_words(parts, MT_COUNT(parts));
    mtb_lock_acquire(&dictionary->lock);
    uint32_t found = mtb_idmap_find(&dictionary->frame_map, hash, same_frame, dictionary, &own);
    if (found == 0 && keep_text(dictionary, &own.function) && keep_text(dictionary, &own.file) &&
        mtb_idmap_append(&dictionary->frame_map, hash, dictionary->frames, dictionary->n_frames,
                         dictionary->frames_capacity, &own)) {
        found = (uint32_t)dictionary->n_frames;
    }
    *index = found != 0 ? found - 1 : 0;
    int status = found != 0 ? MTPROF_OK
                            : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu stack frames",
                                       dictionary->n_frames + 1);
    mtb_lock_release(&dictionary->lock);
    return status;
}

static bool same_node(const void *context, uint32_t id, const void *key)
{
    const mtprof__stack_node *a = &((const mtprof__dictionary *)context)->nodes[id - 1];
    const mtprof__stack_node *b = key;
    return a->parent == b->parent && a->frame == b->frame;
}

int mtprof__dictionary_node(mtprof__dictionary *dictionary, uint32_t parent, uint32_t frame,
                            uint32_t *node)
{
    const mtprof__stack_node key = {parent, frame};
    uint64_t hash = mtb_mix(parent, frame);
    /* So that walking up ends: a parent is older than its child. */
    MT_ASSERT(parent <= dictionary->n_nodes && frame < dictionary->n_frames);
    mtb_lock_acquire(&dictionary->lock);
    *node = mtb_idmap_find(&dictionary->node_map, hash, same_node, dictionary, &key);
    if (*node == 0 && mtb_idmap_append(&dictionary->node_map, hash, dictionary->nodes,
                                       dictionary->n_nodes, dictionary->nodes_capacity, &key)) {
        *node = (uint32_t)dictionary->n_nodes;
    }
    int status = *node != 0 ? MTPROF_OK
                            : mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu stack nodes",
                                       dictionary->n_nodes + 1);
    mtb_lock_release(&dictionary->lock);
    return status;
}

/* ---- tracks and devices ---------------------------------------------------------------------- */

/* By device; threads then by pid and tid, queues by their number. */
static bool same_track(const void *context, uint32_t id, const void *key)
{
    const mtprof_track *a = &((const mtprof__dictionary *)context)->tracks[id - 1];
    const mtprof_track *b = key;
    return a->device == b->device && a->tid == b->tid && (a->device != 0 || a->pid == b->pid);
}

static int track_locked(mtprof__dictionary *dictionary, mtprof_track key, uint32_t *track)
{
    uint64_t parts[] = {key.device, key.device == 0 ? (uint64_t)key.pid : 0, (uint64_t)key.tid};
    uint64_t hash = mtb_hash_words(parts, MT_COUNT(parts));
    uint32_t found = mtb_idmap_find(&dictionary->track_map, hash, same_track, dictionary, &key);
    if (found != 0) {
        *track = found - 1;
        return MTPROF_OK;
    }
    size_t n = dictionary->n_tracks;
    if (n >= UINT32_MAX - 1 ||
        !grow_shared(dictionary, (void **)&dictionary->tracks, &dictionary->tracks_capacity, n + 1,
                     sizeof *dictionary->tracks) ||
        !mtb_idmap_reserve(&dictionary->track_map)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu tracks", n + 1);
    }
    dictionary->tracks[n] = key;
    mtb_idmap_add(&dictionary->track_map, hash, (uint32_t)n + 1);
    /* Release: partner of the acquire in mtprof_model_track(). */
    __atomic_store_n(&dictionary->n_tracks, n + 1, __ATOMIC_RELEASE);
    *track = (uint32_t)n;
    return MTPROF_OK;
}

static void fill_in(mtprof_track *known, const mtprof_track *told)
{
    if (known->name.length == 0 && told->name.length != 0) {
        known->name = told->name;
    }
    if (known->process_name.length == 0 && told->process_name.length != 0) {
        known->process_name = told->process_name;
    }
    if (known->number == 0 && told->number != 0) {
        known->number = told->number;
    }
    if (known->pthread_id == 0 && told->pthread_id != 0) {
        known->pthread_id = told->pthread_id;
    }
}

int mtprof__dictionary_thread_track(mtprof__dictionary *dictionary, const mtprof_track *thread,
                                    uint32_t *track)
{
    mtprof_track key = *thread;
    key.device = 0;
    key.name = text_or_empty(key.name);
    key.process_name = text_or_empty(key.process_name);
    *track = 0;
    mtb_lock_acquire(&dictionary->lock);
    int status = track_locked(dictionary, key, track);
    if (status == MTPROF_OK) {
        fill_in(&dictionary->tracks[*track], &key);
    }
    mtb_lock_release(&dictionary->lock);
    return status;
}

int mtprof__dictionary_queue_track(mtprof__dictionary *dictionary, uint32_t device, uint32_t queue,
                                   uint32_t *track)
{
    *track = 0;
    mtb_lock_acquire(&dictionary->lock);
    MT_ASSERT(device != 0 && device < dictionary->n_devices);
    mtprof_track key = {
        .device = device,
        .number = queue,
        .pid = dictionary->devices[device].index,
        .tid = queue,
        .name = {"", 0},
        .process_name = {"", 0},
    };
    int status = track_locked(dictionary, key, track);
    mtb_lock_release(&dictionary->lock);
    return status;
}

static int device_locked(mtprof__dictionary *dictionary, mtprof_device key, uint32_t *device)
{
    size_t n = dictionary->n_devices;
    for (size_t i = 0; i < n; i++) {
        const mtprof_device *known = &dictionary->devices[i];
        if (known->index == key.index && mtprof__text_same(known->type, key.type)) {
            *device = (uint32_t)i;
            return MTPROF_OK;
        }
    }
    if (n == MAX_DEVICES) {
        *device = MAX_DEVICES - 1;
        __atomic_add_fetch(&dictionary->devices_merged, 1, __ATOMIC_RELAXED);
        return MTPROF_OK;
    }
    if (!grow_shared(dictionary, (void **)&dictionary->devices, &dictionary->devices_capacity,
                     n + 1, sizeof *dictionary->devices) ||
        !keep_text(dictionary, &key.type)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu devices", n + 1);
    }
    dictionary->devices[n] = key;
    /* Release: partner of the acquire in mtprof_model_device(). */
    __atomic_store_n(&dictionary->n_devices, n + 1, __ATOMIC_RELEASE);
    *device = (uint32_t)n;
    return MTPROF_OK;
}

int mtprof__dictionary_device(mtprof__dictionary *dictionary, mtprof_text type, int32_t index,
                              uint32_t *device)
{
    *device = 0;
    mtb_lock_acquire(&dictionary->lock);
    int status = device_locked(dictionary, (mtprof_device){type, index}, device);
    mtb_lock_release(&dictionary->lock);
    return status;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static bool same_key(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(((const mtprof__dictionary *)context)->keys[id - 1],
                             *(const mtprof_text *)key);
}

/* Keys repeat with every event: each is kept once. */
static int keep_key(mtprof__dictionary *dictionary, mtprof_text *key)
{
    *key = text_or_empty(*key);
    uint64_t hash = mtb_hash_bytes(key->bytes, key->length);
    uint32_t found = mtb_idmap_find(&dictionary->key_map, hash, same_key, dictionary, key);
    if (found != 0) {
        *key = dictionary->keys[found - 1];
        return MTPROF_OK;
    }
    if (!keep_text(dictionary, key) ||
        !mtb_idmap_append(&dictionary->key_map, hash, dictionary->keys, dictionary->n_keys,
                          dictionary->keys_capacity, key)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu keys of metadata",
                        dictionary->n_keys + 1);
    }
    return MTPROF_OK;
}

/* Key and text become the dictionary's own. */
static int keep_item(mtprof__dictionary *dictionary, mtprof_metadatum *item)
{
    MT_TRY(keep_key(dictionary, &item->key));
    if (item->type != MTPROF_META_TEXT) {
        item->text = (mtprof_text){"", 0};
    } else if (!keep_text(dictionary, &item->text)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu bytes of metadata",
                        item->text.length);
    }
    return MTPROF_OK;
}

static int metadata_locked(mtprof__dictionary *dictionary, const mtprof_metadatum *items,
                           uint32_t n, uint32_t *metadata)
{
    size_t at = dictionary->n_metadata;
    if (at + n >= UINT32_MAX - 1 ||
        !mtb_grow((void **)&dictionary->metadata, &dictionary->metadata_capacity, at + n + 1,
                  sizeof *dictionary->metadata)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu metadata", at + n + 1);
    }
    dictionary->metadata[at] = (mtprof_metadatum){.value = n};
    for (uint32_t i = 0; i < n; i++) {
        dictionary->metadata[at + 1 + i] = items[i];
        MT_TRY(keep_item(dictionary, &dictionary->metadata[at + 1 + i]));
    }
    dictionary->n_metadata = at + n + 1;
    *metadata = (uint32_t)at + 1;
    return MTPROF_OK;
}

int mtprof__dictionary_metadata(mtprof__dictionary *dictionary, const mtprof_metadatum *items,
                                uint32_t n, uint32_t *metadata)
{
    *metadata = 0;
    mtb_lock_acquire(&dictionary->lock);
    int status = metadata_locked(dictionary, items, n, metadata);
    mtb_lock_release(&dictionary->lock);
    return status;
}

static bool same_trace_key(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(((const mtprof__dictionary *)context)->trace_metadata[id - 1].key,
                             *(const mtprof_text *)key);
}

static int trace_metadata_locked(mtprof__dictionary *dictionary, mtprof_metadatum item)
{
    item.key = text_or_empty(item.key);
    uint64_t hash = mtb_hash_bytes(item.key.bytes, item.key.length);
    uint32_t found = mtb_idmap_find(&dictionary->trace_metadata_map, hash, same_trace_key,
                                    dictionary, &item.key);
    MT_TRY(keep_item(dictionary, &item));
    if (found != 0) {
        dictionary->trace_metadata[found - 1] = item;
    } else if (!mtb_idmap_append(&dictionary->trace_metadata_map, hash, dictionary->trace_metadata,
                                 dictionary->n_trace_metadata, dictionary->trace_metadata_capacity,
                                 &item)) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu metadata of the trace",
                        dictionary->n_trace_metadata + 1);
    }
    return MTPROF_OK;
}

int mtprof__dictionary_trace_metadata(mtprof__dictionary *dictionary, const mtprof_metadatum *item)
{
    mtb_lock_acquire(&dictionary->lock);
    int status = trace_metadata_locked(dictionary, *item);
    mtb_lock_release(&dictionary->lock);
    return status;
}

mtprof_text mtprof__dictionary_copy(mtprof__dictionary *dictionary, mtprof_text text)
{
    mtb_lock_acquire(&dictionary->lock);
    if (!keep_text(dictionary, &text)) {
        text = (mtprof_text){NULL, 0};
    }
    mtb_lock_release(&dictionary->lock);
    return text;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int load_strings(mtprof__dictionary *dictionary)
{
    const mtprof__definition_table *table =
        &dictionary->reader->definitions.tables[MTPROF__DEF_STRING];
    dictionary->string_names = mtb_calloc(table->n, sizeof *dictionary->string_names);
    if (dictionary->string_names == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu strings", table->n);
    }
    for (size_t i = 0; i < table->n; i++) {
        mtprof_text text = {table->items[i].data, table->items[i].length};
        MT_TRY(name_locked(dictionary, text, false, &dictionary->string_names[i]));
    }
    return MTPROF_OK;
}

static int load_inputs(mtprof__dictionary *dictionary)
{
    size_t n = reader_lists(dictionary)->n;
    dictionary->reader_inputs = mtb_calloc(n, sizeof *dictionary->reader_inputs);
    if (dictionary->reader_inputs == NULL || n >= UINT32_MAX / 2) {
        return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu input lists", n);
    }
    dictionary->n_reader_inputs = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        mtprof__words list = words_of(dictionary, i + 1);
        uint64_t hash = hash_of(list);
        uint32_t first =
            mtb_idmap_find(&dictionary->inputs_map, hash, same_words, dictionary, &list);
        if (first == 0) {
            first = i + 1;
            if (!mtb_idmap_add(&dictionary->inputs_map, hash, first)) {
                return mtb_fail(MTPROF_ENOMEM, "model: no memory for %zu input lists", n);
            }
        }
        dictionary->reader_inputs[i] = first;
    }
    return MTPROF_OK;
}

static int load_metadata(mtprof__dictionary *dictionary)
{
    mtprof_metadatum item = {.type = MTPROF_META_TEXT};
    bool is_json = false;
    for (uint32_t i = 0;
         mtprof_reader_metadata(dictionary->reader, i, &item.key, &item.text, &is_json); i++) {
        item.is_json = is_json;
        MT_TRY(trace_metadata_locked(dictionary, item));
    }
    return MTPROF_OK;
}

static int load(mtprof__dictionary *dictionary)
{
    uint32_t zero;
    MT_TRY(name_locked(dictionary, (mtprof_text){"", 0}, false, &zero));
    MT_TRY(device_locked(dictionary, (mtprof_device){{"CPU", 3}, -1}, &zero));
    if (dictionary->reader == NULL) {
        return MTPROF_OK;
    }
    MT_TRY(load_strings(dictionary));
    MT_TRY(load_inputs(dictionary));
    return load_metadata(dictionary);
}

int mtprof__dictionary_init(mtprof__dictionary *dictionary, const mtprof_reader *reader)
{
    memset(dictionary, 0, sizeof *dictionary);
    dictionary->reader = reader;
    mtb_lock_init(&dictionary->lock, MTB_RANK_DICTIONARY);
    int status = load(dictionary);
    if (status != MTPROF_OK) {
        mtprof__dictionary_fini(dictionary);
    }
    return status;
}

void mtprof__dictionary_fini(mtprof__dictionary *dictionary)
{
    mtb_idmap_reset(&dictionary->name_map);
    mtb_idmap_reset(&dictionary->inputs_map);
    mtb_idmap_reset(&dictionary->frame_map);
    mtb_idmap_reset(&dictionary->node_map);
    mtb_idmap_reset(&dictionary->track_map);
    mtb_idmap_reset(&dictionary->key_map);
    mtb_idmap_reset(&dictionary->trace_metadata_map);
    mtb_free(dictionary->string_names);
    mtb_free(dictionary->reader_inputs);
    mtb_free(dictionary->inputs);
    mtb_free(dictionary->scalars);
    mtb_free(dictionary->frames);
    mtb_free(dictionary->nodes);
    mtb_free(dictionary->metadata);
    mtb_free(dictionary->keys);
    mtb_free(dictionary->trace_metadata);
    mtb_arena_reset(&dictionary->arena);
    mtb_lock_fini(&dictionary->lock);
    memset(dictionary, 0, sizeof *dictionary);
}
