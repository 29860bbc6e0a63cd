/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of a foreign trace: names, kept strings, metadata.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

char *mtprof__import_scratch(mtprof__import *import, size_t bytes)
{
    if (!mtb_grow((void **)&import->scratch, &import->scratch_bytes, bytes + 8, 1)) {
        mtb_fail(MTPROF_ENOMEM, "open trace: %zu bytes for a text", bytes);
        return NULL;
    }
    return import->scratch;
}

int mtprof__import_text(mtprof__import *import, const mtb_slice *slice, mtprof_text *out)
{
    *out = (mtprof_text){slice->bytes, slice->length};
    if (slice->type == MTB_SLICE_NONE) {
        *out = (mtprof_text){"", 0};
    } else if (slice->type == MTB_SLICE_STRING && slice->escaped != 0) {
        char *room = mtprof__import_scratch(import, slice->length);
        if (room == NULL) {
            return MTPROF_ENOMEM;
        }
        *out = (mtprof_text){room, mtb_slice_decode(slice, room)};
    }
    return MTPROF_OK;
}

int mtprof__import_name(mtprof__import *import, const mtb_slice *slice, uint32_t *name)
{
    *name = 0;
    if (slice->type == MTB_SLICE_NONE) {
        return MTPROF_OK;
    }
    uint64_t hash = mtb_hash_bytes(slice->bytes, slice->length);
    const mtprof__cache_entry *known =
        mtprof__cache_find(&import->names, slice->bytes, slice->length, hash);
    if (MT_LIKELY(known != NULL)) {
        *name = known->values[0];
        return MTPROF_OK;
    }
    mtprof_text text;
    MT_TRY(mtprof__import_text(import, slice, &text));
    MT_TRY(mtprof__dictionary_name(&import->model->dictionary, text, name));
    mtprof__cache_keep(&import->names, slice->bytes, slice->length, hash,
                       (const uint32_t[2]){*name, 0});
    return MTPROF_OK;
}

int mtprof__import_keep(mtprof__import *import, const mtb_slice *slice, mtprof_text *out)
{
    mtprof_text text;
    MT_TRY(mtprof__import_text(import, slice, &text));
    *out = mtprof__dictionary_copy(&import->model->dictionary, text);
    if (out->bytes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu bytes for a text", text.length);
    }
    return MTPROF_OK;
}

/* ---- metadata -------------------------------------------------------------------------------- */

void mtprof__import_metadatum(const mtb_slice *value, char *room, mtprof_metadatum *out)
{
    double real = 0;
    out->text = (mtprof_text){"", 0};
    out->value = 0;
    out->is_json = 0;
    switch (value->type) {
    case MTB_SLICE_INT:
        out->type = MTPROF_META_INT;
        out->value = (uint64_t)value->integer;
        return;
    case MTB_SLICE_TRUE:
    case MTB_SLICE_FALSE:
        out->type = MTPROF_META_BOOL;
        out->value = value->type == MTB_SLICE_TRUE;
        return;
    case MTB_SLICE_REAL:
        if (mtb_slice_real(value, &real)) {
            out->type = MTPROF_META_REAL;
            memcpy(&out->value, &real, sizeof real);
            return;
        }
        break;
    case MTB_SLICE_STRING:
        out->type = MTPROF_META_TEXT;
        out->text = (mtprof_text){value->bytes, value->length};
        if (value->escaped != 0) {
            out->text = (mtprof_text){room, mtb_slice_decode(value, room)};
        }
        return;
    default: break;
    }
    out->type = MTPROF_META_TEXT;
    out->is_json = 1;
    out->text = (mtprof_text){value->bytes, value->length};
}

/* A list unchanged from the entry: arguments that are not understood, and those in `known`. */
typedef struct arg_list {
    mtb_slice keys[MTPROF__OTHER_ARGS + MTPROF__ARG_COUNT];
    mtb_slice values[MTPROF__OTHER_ARGS + MTPROF__ARG_COUNT];
    uint32_t n;
    size_t bytes; /* of all texts */
} arg_list;

static void list_arg(arg_list *list, const mtb_slice *key, const mtb_slice *value)
{
    list->keys[list->n] = *key;
    list->values[list->n++] = *value;
    list->bytes += (size_t)key->length + value->length;
}

static void list_args(const mtprof__raw_event *raw, uint64_t known, arg_list *list)
{
    list->n = 0;
    list->bytes = 0;
    for (uint32_t i = 0; i < raw->n_others; i++) {
        list_arg(list, &raw->others[i].key, &raw->others[i].value);
    }
    for (; known != 0; known &= known - 1) {
        unsigned arg = (unsigned)__builtin_ctzll(known);
        mtprof_text text = mtprof__arg_key(arg);
        mtb_slice key = {
            .bytes = text.bytes, .length = (uint32_t)text.length, .type = MTB_SLICE_STRING};
        list_arg(list, &key, &raw->args[arg]);
    }
}

/* All texts one after the other, each with its length and type, as a key for the cache. */
static size_t put_key(char *to, const arg_list *list)
{
    char *p = to;
    for (uint32_t i = 0; i < list->n; i++) {
        const mtb_slice *pair[2] = {&list->keys[i], &list->values[i]};
        for (int k = 0; k < 2; k++) {
            memcpy(p, &pair[k]->length, sizeof pair[k]->length);
            p[4] = (char)pair[k]->type;
            memcpy(p + 5, pair[k]->bytes, pair[k]->length);
            p += 5 + pair[k]->length;
        }
    }
    return (size_t)(p - to);
}

static int add_list(mtprof__import *import, const arg_list *list, char *room, uint32_t *metadata)
{
    mtprof_metadatum items[MTPROF__OTHER_ARGS + MTPROF__ARG_COUNT];
    for (uint32_t i = 0; i < list->n; i++) {
        const mtb_slice *key = &list->keys[i];
        items[i].key = (mtprof_text){key->bytes, key->length};
        if (key->escaped != 0) {
            items[i].key = (mtprof_text){room, mtb_slice_decode(key, room)};
            room += key->length;
        }
        mtprof__import_metadatum(&list->values[i], room, &items[i]);
        room += list->values[i].length;
    }
    return mtprof__dictionary_metadata(&import->model->dictionary, items, list->n, metadata);
}

int mtprof__import_metadata(mtprof__import *import, uint64_t understood, uint32_t *metadata)
{
    const mtprof__raw_event *raw = &import->raw;
    uint64_t known = raw->known & ~understood;
    *metadata = 0;
    if (raw->n_others == 0 && known == 0) {
        return MTPROF_OK;
    }
    arg_list list;
    list_args(raw, known, &list);
    size_t key_most = list.bytes + (size_t)10 * list.n;
    char *scratch = mtprof__import_scratch(import, key_most + list.bytes);
    if (scratch == NULL) {
        return MTPROF_ENOMEM;
    }
    size_t length = put_key(scratch, &list);
    uint64_t hash = mtb_hash_bytes(scratch, length);
    const mtprof__cache_entry *known_list =
        mtprof__cache_find(&import->metadata, scratch, length, hash);
    if (known_list != NULL) {
        *metadata = known_list->values[0];
        return MTPROF_OK;
    }
    MT_TRY(add_list(import, &list, scratch + key_most, metadata));
    mtprof__cache_keep(&import->metadata, scratch, length, hash, (const uint32_t[2]){*metadata, 0});
    return MTPROF_OK;
}
