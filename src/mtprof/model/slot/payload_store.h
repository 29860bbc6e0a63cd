/* SPDX-License-Identifier: Apache-2.0
 *
 * The payloads of one event, copied out of the chunk they came in.
 *
 * Texts and lists are gathered in one block that may move while more arrive; tensors and scalars,
 * of which several records continue one another, have each their own. mtprof__payload_get() makes
 * the pointers. A store is reset and used again, so a steady stream of events allocates nothing.
 *
 *   PS1  What an event does not have is zero in its payload, whatever the one before had there:
 *        counts can be used without checking `fields`.
 */
#ifndef MTPROF_MODEL_SLOT_PAYLOAD_STORE_H
#define MTPROF_MODEL_SLOT_PAYLOAD_STORE_H

#include "base/compiler.h"
#include "mtprof/model/dictionary.h"
#include "mtprof/model/events/event.h"

#include <mtprof/reader.h>

#include <string.h>

/* What may come in several records of one kind. */
typedef struct mtprof__payload_part {
    uint64_t *words;
    size_t n_words, words_capacity;
} mtprof__payload_part;

typedef struct mtprof__payload_store {
    mtprof__payload payload;
    uint32_t inputs_id;     /* the reader's; 0: in full, or none */
    uint32_t memory_device; /* the recorder's number, 0 = host */
    size_t inputs_at;
    size_t name_at, name_length;
    bool has_name;
    bool settled;                           /* pointers are made, nothing was added since */
    uint32_t translated_in, translated_out; /* the consumer's: so many tensors name the model's
                                               devices */
    mtprof__payload_part scalars, tensors_in, tensors_out;
    uint64_t *words;
    size_t n_words, words_capacity;
    mtprof_metadatum *items;
    size_t *text_at; /* of each item: where its text is in `words`, SIZE_MAX: in the reader */
    size_t n_items, items_capacity, text_capacity;
} mtprof__payload_store;

/* PS1, in pieces of a few stores each: of the whole gcc makes a `rep stos`, which takes longer than
 * everything else that is done to empty a store. */
MT_INLINE void mtprof__payload_clear(mtprof__payload *payload)
{
    char *bytes = (char *)payload;
    static_assert(sizeof *payload <= 3 * 64, "three pieces");
    memset(bytes, 0, 64);
    memset(bytes + 64, 0, 64);
    memset(bytes + 128, 0, sizeof *payload - 128);
}

/* Empties it. */
MT_INLINE void mtprof__payload_reset(mtprof__payload_store *store)
{
    mtprof__payload_clear(&store->payload);
    store->inputs_id = 0;
    store->has_name = store->settled = false;
    store->translated_in = store->translated_out = 0;
    store->scalars.n_words = store->tensors_in.n_words = store->tensors_out.n_words = 0;
    store->n_words = 0;
    store->n_items = 0;
}
void mtprof__payload_fini(mtprof__payload_store *store);

/* Takes a payload record that passed its checks; other kinds are left alone. Fails with ENOMEM. */
int mtprof__payload_add(mtprof__payload_store *store, const mtprof_reader *reader,
                        const mtprof_record *record);

/*
 * Takes the common payloads of a begin, or of an end, straight from a chunk, with the checks that
 * mtprof__cursor_next() makes of them; *taken is how many words that were. It stops at anything
 * else. Fails with ENOMEM.
 */
int mtprof__payload_take(mtprof__payload_store *store, const mtprof_reader *reader,
                         const uint64_t *words, size_t n, bool of_begin, size_t *taken);

/* Input lists of the reader that were looked up before. */
typedef struct mtprof__inputs_cache {
    struct {
        uint32_t id, index; /* the reader's; the dictionary's, 0: there is none */
        const uint64_t *words;
        uint32_t n_words;
    } items[256];
} mtprof__inputs_cache;

/* Out-of-line half of mtprof__payload_get(): makes the pointers. */
mtprof__payload *mtprof__payload_settle(mtprof__payload_store *store,
                                        const mtprof__dictionary *dictionary,
                                        mtprof__inputs_cache *cache);

/* Everything gathered so far, or NULL where that is nothing. memory_device and the devices of
 * tensors are the caller's to translate. */
MT_INLINE mtprof__payload *mtprof__payload_get(mtprof__payload_store *store,
                                               const mtprof__dictionary *dictionary,
                                               mtprof__inputs_cache *cache)
{
    const uint32_t pointers = MTPROF__HAS_INPUTS | MTPROF__HAS_SCALARS | MTPROF__HAS_TENSORS_IN |
                              MTPROF__HAS_TENSORS_OUT | MTPROF__HAS_METADATA;
    uint32_t fields = store->payload.fields;
    if ((fields & pointers) != 0 && !store->settled) {
        return mtprof__payload_settle(store, dictionary, cache);
    }
    return fields != 0 ? &store->payload : NULL;
}

/* The name that was given in full. */
bool mtprof__payload_name(const mtprof__payload_store *store, mtprof_text *name);

#endif /* MTPROF_MODEL_SLOT_PAYLOAD_STORE_H */
