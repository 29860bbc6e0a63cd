/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of an op, from torch's parallel arrays to an input list (docs/format.md section 5).
 *
 *   "Input Dims":      [[4, 4], [[2], [3]],   [],       []          ]
 *   "Input Strides":   [[4, 1], [[1], [1]],   [],       []          ]
 *   "Input type":      ["float", "TensorList", "Scalar", "ScalarList"]
 *   "Concrete Inputs": ["",      "",           "1",      "[2, 4]"    ]
 *
 * Our own "input_shapes" replaces the first where it is alone. Shorter arrays are treated as if
 * they were filled up with empty items.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/format/input_words.h"
#include "mtprof/format/texts.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    WORDS_MOST = 4096, /* what is longer is left out */
    DIMS_MOST = 255,
    PARTS = 5
};

static const uint8_t parts[PARTS] = {MTPROF__ARG_DIMS, MTPROF__ARG_STRIDES, MTPROF__ARG_TYPES,
                                     MTPROF__ARG_CONCRETE, MTPROF__ARG_SHAPES};

typedef struct list_maker {
    mtprof__import *import;
    uint64_t words[WORDS_MOST], scalars[WORDS_MOST];
    uint32_t n_words, n_scalars;
    bool full;
} list_maker;

static void put_word(list_maker *maker, uint64_t word)
{
    if (maker->n_words == WORDS_MOST) {
        maker->full = true;
        return;
    }
    maker->words[maker->n_words++] = word;
}

static void put_scalar(list_maker *maker, unsigned kind, uint64_t value)
{
    put_word(maker, kind);
    if (maker->n_scalars == WORDS_MOST) {
        maker->full = true;
        return;
    }
    maker->scalars[maker->n_scalars++] = value;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static int put_text(list_maker *maker, const mtb_slice *text)
{
    uint32_t name;
    MT_TRY(mtprof__import_name(maker->import, text, &name));
    put_scalar(maker, MTPROF_INPUT_STRING, (uint64_t)name + 1);
    return MTPROF_OK;
}

/* A value as Python shows it. */
static int put_concrete(list_maker *maker, const mtb_slice *text)
{
    const mtprof_text shown = {text->bytes, text->length};
    int64_t integer = 0;
    double real = 0;
    if (text->length == 0 || mtprof__text_is(shown, "None")) {
        put_word(maker, MTPROF_INPUT_NONE);
    } else if (mtprof__text_is(shown, "True") || mtprof__text_is(shown, "False")) {
        put_scalar(maker, MTPROF_INPUT_BOOL, text->bytes[0] == 'T');
    } else if (memchr(text->bytes, '.', text->length) == NULL &&
               memchr(text->bytes, 'e', text->length) == NULL &&
               mtb_slice_integer(text, &integer)) {
        put_scalar(maker, MTPROF_INPUT_INT, (uint64_t)integer);
    } else if (mtb_text_real(text->bytes, text->length, &real)) {
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        put_scalar(maker, MTPROF_INPUT_REAL, bits);
    } else {
        return put_text(maker, text);
    }
    return MTPROF_OK;
}

/* "[2, 4]", item by item. Anything else is an empty list: torch leaves long ones out. */
static int put_concrete_list(list_maker *maker, const mtb_slice *text)
{
    uint32_t head = maker->n_words;
    uint64_t items = 0;
    put_word(maker, MTPROF_INPUT_LIST);
    bool is_text = text->type == MTB_SLICE_STRING; /* NONE: the value is not known */
    if (is_text && text->length >= 2 && text->bytes[0] == '[' &&
        text->bytes[text->length - 1] == ']') {
        const char *p = text->bytes + 1;
        const char *end = text->bytes + text->length - 1;
        while (p < end) {
            const char *comma = memchr(p, ',', (size_t)(end - p));
            const char *last = comma != NULL ? comma : end;
            while (p < last && *p == ' ') {
                p++;
            }
            mtb_slice item = *text;
            item.bytes = p;
            item.length = (uint32_t)(last - p);
            MT_TRY(put_concrete(maker, &item));
            items++;
            p = last + 1;
        }
    }
    if (!maker->full) {
        maker->words[head] |= items << 32;
    }
    return MTPROF_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The numbers of an array; false when it is not an array, holds something else, or has too many. */
static bool read_sizes(const mtb_slice *array, int64_t *sizes, unsigned *n)
{
    mtb_walk walk;
    mtb_slice item;
    *n = 0;
    if (array->type != MTB_SLICE_ARRAY || !mtb_walk_begin(&walk, array)) {
        return false;
    }
    while (mtb_walk_next(&walk, NULL, &item)) {
        if (*n == DIMS_MOST || item.type == MTB_SLICE_STRING ||
            !mtb_slice_integer(&item, &sizes[*n])) {
            return false;
        }
        ++*n;
    }
    return true;
}

static void put_tensor(list_maker *maker, const mtb_slice *dims, const mtb_slice *strides,
                       uint32_t type)
{
    int64_t sizes[DIMS_MOST];
    int64_t steps[DIMS_MOST];
    unsigned n = 0;
    unsigned n_steps = 0;
    if (!read_sizes(dims, sizes, &n)) {
        n = 0;
    }
    bool strided = read_sizes(strides, steps, &n_steps) && n_steps == n;
    put_word(maker, mtprof__tensor_word(n, strided, type));
    for (unsigned i = 0; i < n; i++) {
        put_word(maker, (uint64_t)sizes[i]);
    }
    for (unsigned i = 0; strided && i < n; i++) {
        put_word(maker, (uint64_t)steps[i]);
    }
}

static void put_tensor_list(list_maker *maker, const mtb_slice *dims, const mtb_slice *strides)
{
    uint32_t head = maker->n_words;
    uint64_t items = 0;
    mtb_walk walk;
    mtb_walk stride_walk;
    mtb_slice item;
    bool strided = mtb_walk_begin(&stride_walk, strides);
    put_word(maker, MTPROF_INPUT_LIST);
    if (mtb_walk_begin(&walk, dims)) {
        while (mtb_walk_next(&walk, NULL, &item)) {
            mtb_slice step = {.type = MTB_SLICE_NONE};
            strided = strided && mtb_walk_next(&stride_walk, NULL, &step);
            put_tensor(maker, &item, &step, 0);
            items++;
        }
    }
    if (!maker->full) {
        maker->words[head] |= items << 32;
    }
}

/* Whether an array holds arrays: sizes of several tensors. */
static bool is_nested(const mtb_slice *dims)
{
    mtb_walk walk;
    mtb_slice item;
    return dims->type == MTB_SLICE_ARRAY && mtb_walk_begin(&walk, dims) &&
           mtb_walk_next(&walk, NULL, &item) && item.type == MTB_SLICE_ARRAY;
}

/* One input: an item of each array, NONE where an array has no more. */
static int put_input(list_maker *maker, const mtb_slice *item)
{
    const mtb_slice *dims = item[0].type != MTB_SLICE_NONE ? &item[0] : &item[4];
    const mtb_slice *strides = &item[1];
    const mtb_slice *type = &item[2];
    const mtb_slice *concrete = &item[3];
    bool is_text = concrete->type == MTB_SLICE_STRING && concrete->length > 0;
    if (mtb_slice_is_literal(type, "TensorList") || is_nested(dims)) {
        put_tensor_list(maker, dims, strides);
        return MTPROF_OK;
    }
    if (mtb_slice_is_literal(type, "ScalarList")) {
        return put_concrete_list(maker, concrete);
    }
    if (is_text) {
        /* A text without a type is a string, whatever it looks like. */
        bool untyped = type->type == MTB_SLICE_STRING && type->length == 0;
        return untyped ? put_text(maker, concrete) : put_concrete(maker, concrete);
    }
    bool typed =
        type->type == MTB_SLICE_STRING && type->length > 0 && !mtb_slice_is_literal(type, "Scalar");
    bool sized = dims->type == MTB_SLICE_ARRAY && dims->length > 2;
    if (typed || sized) {
        uint32_t name = 0;
        if (typed) {
            MT_TRY(mtprof__import_name(maker->import, type, &name));
        }
        put_tensor(maker, dims, strides, typed ? name + 1 : 0);
    } else {
        put_word(maker, MTPROF_INPUT_NONE);
    }
    return MTPROF_OK;
}

static int make_list(list_maker *maker)
{
    const mtprof__raw_event *raw = &maker->import->raw;
    mtb_walk walks[PARTS];
    bool going[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const mtb_slice *array = mtprof__raw_arg(raw, parts[i]);
        going[i] =
            array != NULL && array->type == MTB_SLICE_ARRAY && mtb_walk_begin(&walks[i], array);
    }
    while (!maker->full) {
        mtb_slice items[PARTS];
        bool any = false;
        for (int i = 0; i < PARTS; i++) {
            items[i] = (mtb_slice){.type = MTB_SLICE_NONE};
            going[i] = going[i] && mtb_walk_next(&walks[i], NULL, &items[i]);
            any |= going[i];
        }
        if (!any) {
            return MTPROF_OK;
        }
        MT_TRY(put_input(maker, items));
    }
    return MTPROF_OK;
}

static int keep_list(mtprof__import *import, uint32_t values[2])
{
    list_maker *maker = mtb_calloc(1, sizeof *maker);
    if (maker == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu bytes for inputs", sizeof *maker);
    }
    maker->import = import;
    mtprof__dictionary *dictionary = &import->model->dictionary;
    int status = make_list(maker);
    import->found.left_out += status == MTPROF_OK && maker->full;
    if (status == MTPROF_OK && !maker->full && maker->n_words > 0) {
        status = mtprof__dictionary_inputs(dictionary, maker->words, maker->n_words, &values[0]);
        if (status == MTPROF_OK && maker->n_scalars > 0) {
            status = mtprof__dictionary_scalars(dictionary, maker->scalars, maker->n_scalars,
                                                &values[1]);
        }
    }
    mtb_free(maker);
    return status;
}

/* The arrays unchanged, one after the other: the same text means the same inputs. */
static char *put_key(mtprof__import *import, size_t *length)
{
    size_t most = 0;
    for (int i = 0; i < PARTS; i++) {
        const mtb_slice *array = mtprof__raw_arg(&import->raw, parts[i]);
        most += sizeof(uint32_t) + (array != NULL ? array->length : 0);
    }
    char *key = mtprof__import_scratch(import, most);
    *length = 0;
    for (int i = 0; key != NULL && i < PARTS; i++) {
        const mtb_slice *array = mtprof__raw_arg(&import->raw, parts[i]);
        uint32_t bytes = array != NULL ? array->length : 0;
        memcpy(key + *length, &bytes, sizeof bytes);
        if (bytes > 0) {
            memcpy(key + *length + sizeof bytes, array->bytes, bytes);
        }
        *length += sizeof bytes + bytes;
    }
    return key;
}

int mtprof__import_inputs(mtprof__import *import, uint32_t *inputs, uint32_t *scalars)
{
    uint32_t values[2] = {0, 0};
    size_t length = 0;
    const char *key = put_key(import, &length);
    if (key == NULL) {
        return MTPROF_ENOMEM;
    }
    uint64_t hash = mtb_hash_bytes(key, length);
    const mtprof__cache_entry *known = mtprof__cache_find(&import->inputs, key, length, hash);
    if (MT_LIKELY(known != NULL)) {
        *inputs = known->values[0];
        *scalars = known->values[1];
        return MTPROF_OK;
    }
    MT_TRY(keep_list(import, values));
    key = put_key(import, &length); /* decoding may have used the scratch */
    if (key != NULL) {
        mtprof__cache_keep(&import->inputs, key, length, hash, values);
    }
    *inputs = values[0];
    *scalars = values[1];
    return MTPROF_OK;
}
