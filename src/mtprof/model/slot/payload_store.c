/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/slot/payload_store.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

void mtprof__payload_fini(mtprof__payload_store *store)
{
    mtb_free(store->words);
    mtb_free(store->scalars.words);
    mtb_free(store->tensors_in.words);
    mtb_free(store->tensors_out.words);
    mtb_free(store->items);
    mtb_free(store->text_at);
    memset(store, 0, sizeof *store);
}

/* Copies words (and leaves room for a zero byte after a text); *at says where they are. */
static int keep(mtprof__payload_store *store, const uint64_t *words, size_t n, size_t *at)
{
    if (store->n_words + n + 1 > store->words_capacity &&
        !mtb_grow((void **)&store->words, &store->words_capacity, store->n_words + n + 1,
                  sizeof *store->words)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for the payload of an event");
    }
    *at = store->n_words;
    for (size_t i = 0; i < n; i++) { /* a handful */
        store->words[*at + i] = words[i];
    }
    store->words[*at + n] = 0;
    store->n_words += n + 1;
    return MTPROF_OK;
}

static MT_NOINLINE int grow_part(mtprof__payload_part *part, size_t n)
{
    return mtb_grow((void **)&part->words, &part->words_capacity, part->n_words + n,
                    sizeof *part->words)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "read trace: no memory for the payload of an event");
}

/* Appends words to those of earlier records of their kind. */
MT_INLINE int append(mtprof__payload_part *part, const uint64_t *words, size_t n)
{
    if (MT_UNLIKELY(part->n_words + n > part->words_capacity)) {
        MT_TRY(grow_part(part, n));
    }
    for (size_t i = 0; i < n; i++) { /* a handful */
        part->words[part->n_words + i] = words[i];
    }
    part->n_words += n;
    return MTPROF_OK;
}

static void add_opinfo(mtprof__payload_store *store, const mtprof_reader *reader,
                       const mtprof_record *record)
{
    mtprof__payload *p = &store->payload;
    const uint64_t *word = record->words;
    for (unsigned mask = record->aux; mask != 0; mask &= mask - 1) {
        uint64_t value = *word++;
        switch (__builtin_ctz(mask)) {
        case MTPROF_OPINFO_SEQUENCE:
            p->sequence = (int64_t)value;
            p->fields |= MTPROF__HAS_SEQUENCE;
            break;
        case MTPROF_OPINFO_FORWARD_THREAD:
            p->forward_thread = (uint32_t)value;
            p->fields |= MTPROF__HAS_FORWARD_THREAD;
            break;
        case MTPROF_OPINFO_OVERLOAD:
            if (mtprof_reader_string(reader, (uint32_t)value, &p->overload)) {
                p->fields |= MTPROF__HAS_OVERLOAD;
            }
            break;
        case MTPROF_OPINFO_RECORD_SCOPE:
            p->record_scope = (uint32_t)value;
            p->fields |= MTPROF__HAS_RECORD_SCOPE;
            break;
        case MTPROF_OPINFO_FLOPS:
            p->flops = value;
            p->fields |= MTPROF__HAS_FLOPS;
            break;
        case MTPROF_OPINFO_MODULE:
            if (mtprof_reader_string(reader, (uint32_t)value, &p->module)) {
                p->fields |= MTPROF__HAS_MODULE;
            }
            break;
        case MTPROF_OPINFO_CORRELATION:
            p->foreign_id = value;
            p->fields |= MTPROF__HAS_FOREIGN_ID;
            break;
        default: break;
        }
    }
}

static int add_meta(mtprof__payload_store *store, const mtprof_reader *reader,
                    const mtprof_record *record)
{
    mtprof_metadatum item = {.type = record->aux, .value = record->words[0]};
    size_t text_at = SIZE_MAX;
    if (!mtprof_reader_string(reader, record->arg, &item.key)) {
        return MTPROF_OK; /* a key without definition: it has no name to show */
    }
    if (record->aux == MTPROF_META_STRING) {
        item.type = MTPROF_META_TEXT;
        if (!mtprof_reader_string(reader, (uint32_t)item.value, &item.text)) {
            item.text = (mtprof_text){"", 0};
        }
    } else if (record->aux == MTPROF_META_TEXT) {
        item.text.length = (size_t)item.value;
        MT_TRY(keep(store, record->words + 1, (item.text.length + 7) / 8, &text_at));
    }
    if (!mtb_grow((void **)&store->items, &store->items_capacity, store->n_items + 1,
                  sizeof item) ||
        !mtb_grow((void **)&store->text_at, &store->text_capacity, store->n_items + 1,
                  sizeof text_at)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for the payload of an event");
    }
    store->items[store->n_items] = item;
    store->text_at[store->n_items++] = text_at;
    store->payload.fields |= MTPROF__HAS_METADATA;
    return MTPROF_OK;
}

static int add_tensors(mtprof__payload_store *store, const mtprof_record *record)
{
    mtprof__payload *p = &store->payload;
    _Static_assert(sizeof(mtprof__tensor) == 4 * sizeof(uint64_t), "as it stands in the trace");
    bool in = record->aux == 0;
    mtprof__payload_part *part = in ? &store->tensors_in : &store->tensors_out;
    MT_TRY(append(part, record->words, record->n_words));
    *(in ? &p->n_tensors_in : &p->n_tensors_out) = (uint32_t)(part->n_words / 4);
    p->fields |= in ? MTPROF__HAS_TENSORS_IN : MTPROF__HAS_TENSORS_OUT;
    return MTPROF_OK;
}

MT_INLINE int add_scalars(mtprof__payload_store *store, const uint64_t *words, size_t n)
{
    MT_TRY(append(&store->scalars, words, n));
    store->payload.n_scalars = (uint32_t)store->scalars.n_words;
    store->payload.fields |= MTPROF__HAS_SCALARS;
    return MTPROF_OK;
}

static void add_memory(mtprof__payload_store *store, uint64_t word)
{
    mtprof__payload *p = &store->payload;
    int64_t bytes = (int64_t)(word >> 16);
    store->memory_device = (uint32_t)(word >> 8 & 0xFF);
    if ((uint8_t)word == MTPROF_REC_MEM_BEFORE) {
        p->memory_before = bytes;
        p->fields |= MTPROF__HAS_MEMORY_BEFORE;
    } else {
        p->memory_after = bytes;
        p->fields |= MTPROF__HAS_MEMORY_AFTER;
    }
}

static void add_inputs(mtprof__payload_store *store, uint64_t word)
{
    mtprof__payload *p = &store->payload;
    store->inputs_id = (uint32_t)(word >> 32);
    p->fields &= ~(uint32_t)MTPROF__HAS_INPUTS;
    p->fields |= store->inputs_id != 0 ? MTPROF__HAS_INPUTS : 0; /* 0 means none */
}

int mtprof__payload_add(mtprof__payload_store *store, const mtprof_reader *reader,
                        const mtprof_record *record)
{
    mtprof__payload *p = &store->payload;
    store->settled = false;
    switch (record->kind) {
    case MTPROF_REC_INPUTS: add_inputs(store, record->word); return MTPROF_OK;
    case MTPROF_REC_INPUTS_INLINE:
        store->inputs_id = 0;
        MT_TRY(keep(store, record->words, record->n_words, &store->inputs_at));
        p->n_input_words = record->n_words;
        p->fields |= MTPROF__HAS_INPUTS;
        return MTPROF_OK;
    case MTPROF_REC_SCALARS: return add_scalars(store, record->words, record->aux);
    case MTPROF_REC_STACK:
        p->stack = (uint32_t)(record->word >> 32);
        p->fields |= MTPROF__HAS_STACK;
        return MTPROF_OK;
    case MTPROF_REC_MEM_BEFORE:
    case MTPROF_REC_MEM_AFTER: add_memory(store, record->word); return MTPROF_OK;
    case MTPROF_REC_TENSORS: return add_tensors(store, record);
    case MTPROF_REC_OPINFO: add_opinfo(store, reader, record); return MTPROF_OK;
    case MTPROF_REC_META: return add_meta(store, reader, record);
    case MTPROF_REC_NAME:
        store->name_length = (size_t)record->words[0];
        MT_TRY(keep(store, record->words + 1, (store->name_length + 7) / 8, &store->name_at));
        store->has_name = true;
        return MTPROF_OK;
    default: return MTPROF_OK;
    }
}

/* Without an instruction for it the compiler calls a function. */
static size_t count_bits(uint16_t bits)
{
    unsigned n = bits - (bits >> 1 & 0x5555u);
    n = (n & 0x3333u) + (n >> 2 & 0x3333u);
    n = (n + (n >> 4)) & 0x0F0Fu;
    return (n + (n >> 8)) & 0x1Fu;
}

/* The words of a SCALARS or OPINFO that has `needed` of them after the first; 0: it is not as it
 * should be. */
MT_INLINE size_t long_length(uint64_t word, size_t needed, size_t n)
{
    size_t length = word >> 8 & 0xFF;
    return length == 0xFF || needed + 1 > length || length > n ? 0 : length;
}

/* The most common OPINFO has the sequence number alone. */
MT_INLINE size_t take_opinfo(mtprof__payload_store *store, const mtprof_reader *reader,
                             const uint64_t *words, size_t n)
{
    const uint32_t usual = MTPROF_REC_OPINFO | 2u << 8 | 1u << MTPROF_OPINFO_SEQUENCE << 16;
    if (MT_LIKELY((uint32_t)words[0] == usual && n >= 2)) {
        store->payload.sequence = (int64_t)words[1];
        store->payload.fields |= MTPROF__HAS_SEQUENCE;
        return 2;
    }
    mtprof_record record = {.aux = (uint16_t)(words[0] >> 16), .words = words + 1};
    size_t length = long_length(words[0], count_bits(record.aux), n);
    if (length != 0) {
        add_opinfo(store, reader, &record);
    }
    return length;
}

/* The payload of a begin at `words`: how many words it has; 0: it is none of the common ones. */
MT_INLINE size_t take_one(mtprof__payload_store *store, const mtprof_reader *reader,
                          const uint64_t *words, size_t n, int *status)
{
    uint64_t word = words[0];
    size_t length = 1;
    switch ((uint8_t)word) {
    case MTPROF_REC_INPUTS: add_inputs(store, word); break;
    case MTPROF_REC_STACK:
        store->payload.stack = (uint32_t)(word >> 32);
        store->payload.fields |= MTPROF__HAS_STACK;
        break;
    case MTPROF_REC_MEM_BEFORE: add_memory(store, word); break;
    case MTPROF_REC_SCALARS: {
        size_t count = (uint16_t)(word >> 16);
        length = long_length(word, count, n);
        if (length != 0) {
            *status = add_scalars(store, words + 1, count);
        }
        break;
    }
    case MTPROF_REC_OPINFO: return take_opinfo(store, reader, words, n);
    default: return 0;
    }
    return length;
}

int mtprof__payload_take(mtprof__payload_store *store, const mtprof_reader *reader,
                         const uint64_t *words, size_t n, bool of_begin, size_t *taken)
{
    size_t at = 0;
    int status = MTPROF_OK;
    store->settled = false;
    if (of_begin) {
        for (size_t length = 1; length != 0 && at < n && status == MTPROF_OK; at += length) {
            length = take_one(store, reader, words + at, n - at, &status);
        }
    } else {
        for (; at < n && (uint8_t)words[at] == MTPROF_REC_MEM_AFTER; at++) {
            add_memory(store, words[at]);
        }
    }
    *taken = at;
    return status;
}

/* Where the reader has the list, its words; a list without definition is none. */
static void find_inputs(mtprof__payload_store *store, const mtprof__dictionary *dictionary,
                        mtprof__inputs_cache *cache)
{
    mtprof__payload *p = &store->payload;
    uint32_t id = store->inputs_id;
    uint32_t at = id % MT_COUNT(cache->items);
    p->inputs = 0;
    if (id == 0) {
        p->input_words = store->words + store->inputs_at;
        return;
    }
    if (cache->items[at].id != id) {
        cache->items[at].id = id;
        cache->items[at].index = mtprof__dictionary_reader_inputs(dictionary, id);
        if (!mtprof_reader_inputs(dictionary->reader, id, &cache->items[at].words,
                                  &cache->items[at].n_words)) {
            cache->items[at].index = 0;
        }
    }
    p->inputs = cache->items[at].index;
    p->input_words = cache->items[at].words;
    p->n_input_words = cache->items[at].n_words;
    if (p->inputs == 0) {
        p->fields &= ~(uint32_t)MTPROF__HAS_INPUTS;
    }
}

mtprof__payload *mtprof__payload_settle(mtprof__payload_store *store,
                                        const mtprof__dictionary *dictionary,
                                        mtprof__inputs_cache *cache)
{
    mtprof__payload *p = &store->payload;
    store->settled = true;
    if ((p->fields & MTPROF__HAS_INPUTS) != 0) {
        find_inputs(store, dictionary, cache);
    }
    if ((p->fields & MTPROF__HAS_SCALARS) != 0) {
        p->scalars = store->scalars.words;
    }
    if (MT_LIKELY((p->fields & (MTPROF__HAS_TENSORS_IN | MTPROF__HAS_TENSORS_OUT |
                                MTPROF__HAS_METADATA)) == 0)) {
        return p->fields != 0 ? p : NULL;
    }
    if ((p->fields & MTPROF__HAS_TENSORS_IN) != 0) {
        p->tensors_in = (const void *)store->tensors_in.words;
    }
    if ((p->fields & MTPROF__HAS_TENSORS_OUT) != 0) {
        p->tensors_out = (const void *)store->tensors_out.words;
    }
    if ((p->fields & MTPROF__HAS_METADATA) != 0) {
        for (size_t i = 0; i < store->n_items; i++) {
            if (store->text_at[i] != SIZE_MAX) {
                store->items[i].text.bytes = (const char *)(store->words + store->text_at[i]);
            }
        }
        p->metadata = store->items;
        p->n_metadata = (uint32_t)store->n_items;
    }
    return p->fields != 0 ? p : NULL;
}

bool mtprof__payload_name(const mtprof__payload_store *store, mtprof_text *name)
{
    if (store->has_name) {
        *name = (mtprof_text){(const char *)(store->words + store->name_at), store->name_length};
    }
    return store->has_name;
}
