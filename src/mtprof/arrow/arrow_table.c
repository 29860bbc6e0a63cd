/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: their memory, their texts, their nulls.
 */
#include "mtprof/arrow/arrow_table.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/large.h"
#include "base/text_writer.h"

#include <string.h>

/* ---- life ------------------------------------------------------------------------------------ */

mtprof__arrow_table *mtprof__arrow_table_new(uint64_t rows)
{
    mtprof__arrow_table *table = mtb_calloc(1, sizeof *table);
    if (table != NULL) {
        table->references = 1;
        table->rows = rows;
    }
    return table;
}

void mtprof__arrow_table_retain(mtprof__arrow_table *table)
{
    (void)__atomic_fetch_add(&table->references, 1, __ATOMIC_RELAXED);
}

void mtprof__arrow_table_release(mtprof__arrow_table *table)
{
    /* Each release happens before the last one's acquire: nobody reads what is freed. */
    if (table == NULL || __atomic_fetch_sub(&table->references, 1, __ATOMIC_ACQ_REL) != 1) {
        return;
    }
    for (uint32_t i = 0; i < table->n_texts; i++) {
        mtb_free(table->texts[i].offsets);
        mtb_free(table->texts[i].bytes);
        mtb_idmap_reset(&table->texts[i].map);
    }
    for (uint32_t i = 0; i < table->n_blocks; i++) {
        mtb_array_give(table->blocks[i].memory, table->blocks[i].bytes, 1);
    }
    void (*release)(void *) = table->release;
    void *user = table->user;
    mtprof__arrow_table *source = table->source;
    mtb_free(table);
    mtprof__arrow_table_release(source);
    if (release != NULL) {
        release(user);
    }
}

void *mtprof__arrow_take(mtprof__arrow_table *table, uint64_t count, size_t size)
{
    MT_ASSERT(table->n_blocks < MTPROF__ARROW_BLOCKS);
    if (count > (SIZE_MAX - 64) / size) {
        return NULL;
    }
    size_t bytes = (size_t)count * size + 8; /* engines may read whole words */
    void *memory = mtb_array_take(bytes, 1);
    if (memory != NULL) {
        table->blocks[table->n_blocks++] = (mtprof__arrow_block){memory, bytes};
    }
    return memory;
}

mtprof__arrow_column *mtprof__arrow_add(mtprof__arrow_table *table, const char *name,
                                        const char *format)
{
    MT_ASSERT(table->n_columns < MTPROF__ARROW_COLUMNS);
    mtprof__arrow_column *column = &table->columns[table->n_columns++];
    *column = (mtprof__arrow_column){.name = name, .format = format};
    return column;
}

/* ---- texts ----------------------------------------------------------------------------------- */

mtprof__arrow_texts *mtprof__arrow_texts_new(mtprof__arrow_table *table)
{
    MT_ASSERT(table->n_texts < MTPROF__ARROW_TEXTS);
    mtprof__arrow_texts *texts = &table->texts[table->n_texts++];
    bool ok =
        mtb_grow((void **)&texts->offsets, &texts->offsets_capacity, 1, sizeof texts->offsets[0]) &&
        mtb_grow((void **)&texts->bytes, &texts->capacity, 64, 1);
    if (!ok) {
        return NULL;
    }
    texts->offsets[0] = 0;
    return texts;
}

/* Writes a text behind the others without counting it yet; its length, or -1: out of memory. */
static int64_t write_utf8(mtprof__arrow_texts *texts, mtprof_text text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t at = texts->length;
    for (size_t i = 0; i < text.length;) {
        unsigned bad = 0;
        unsigned n = mtb_utf8_length(text.bytes + i, text.length - i, &bad);
        const char *from = n != 0 ? text.bytes + i : replacement;
        size_t written = n != 0 ? n : sizeof replacement - 1;
        if (!mtb_grow((void **)&texts->bytes, &texts->capacity, at + written, 1)) {
            return -1;
        }
        memcpy(texts->bytes + at, from, written);
        at += written;
        i += n != 0 ? n : bad;
    }
    return (int64_t)(at - texts->length);
}

static bool count_text(mtprof__arrow_texts *texts, int64_t length)
{
    if (length < 0 || !mtb_grow((void **)&texts->offsets, &texts->offsets_capacity, texts->n + 2,
                                sizeof texts->offsets[0])) {
        return false;
    }
    texts->length += (size_t)length;
    texts->offsets[++texts->n] = (int64_t)texts->length;
    return true;
}

bool mtprof__arrow_texts_add(mtprof__arrow_texts *texts, mtprof_text text)
{
    return count_text(texts, write_utf8(texts, text));
}

static bool same_text(const void *context, uint32_t id, const void *key)
{
    const mtprof__arrow_texts *texts = context;
    const mtprof_text *text = key;
    const int64_t *at = &texts->offsets[id - 1];
    return (uint64_t)(at[1] - at[0]) == text->length &&
           memcmp(texts->bytes + at[0], text->bytes, text->length) == 0;
}

/* Compared as they are written: two texts that are no UTF-8 may become the same one. */
bool mtprof__arrow_texts_number(mtprof__arrow_texts *texts, mtprof_text text, int32_t *number)
{
    int64_t length = write_utf8(texts, text);
    if (length < 0) {
        return false;
    }
    mtprof_text written = {texts->bytes + texts->length, (size_t)length};
    uint64_t hash = mtb_hash_bytes(written.bytes, written.length);
    uint32_t id = mtb_idmap_find(&texts->map, hash, same_text, texts, &written);
    if (id == 0) {
        if (texts->n >= INT32_MAX || !mtb_idmap_reserve(&texts->map) ||
            !count_text(texts, length)) {
            return false;
        }
        id = (uint32_t)texts->n;
        (void)mtb_idmap_add(&texts->map, hash, id);
    }
    *number = (int32_t)(id - 1);
    return true;
}

/* ---- nulls ----------------------------------------------------------------------------------- */

static uint8_t *take_bitmap(mtprof__arrow_table *table)
{
    return mtprof__arrow_take(table, table->rows / 8 + 1, 1);
}

/* A bit for each of 64 values, 1: it is not `none`. Loops of known length, so that compilers use
 * vectors. */
static uint64_t valid_bits(const uint32_t *values, uint32_t none)
{
    uint8_t is_valid[64];
    uint64_t bits = 0;
    for (unsigned i = 0; i < 64; i++) {
        is_valid[i] = values[i] != none;
    }
    for (unsigned i = 0; i < 8; i++) {
        uint64_t eight;
        memcpy(&eight, is_valid + (size_t)8 * i, sizeof eight);
        bits |= (eight * 0x0102040810204080u) >> 56 << (8 * i); /* byte k of it becomes bit k */
    }
    return bits;
}

bool mtprof__arrow_nulls_u32(mtprof__arrow_table *table, mtprof__arrow_column *column,
                             const uint32_t *values, uint32_t none)
{
    uint8_t *bits = take_bitmap(table);
    uint64_t valid = 0;
    uint64_t i = 0;
    if (bits == NULL) {
        return false;
    }
    for (; i + 64 <= table->rows; i += 64) {
        uint64_t word = valid_bits(values + i, none);
        memcpy(bits + i / 8, &word, sizeof word);
        valid += (unsigned)__builtin_popcountll(word);
    }
    for (; i < table->rows; i++) {
        bits[i / 8] |= (uint8_t)((values[i] != none) << (i % 8));
        valid += values[i] != none;
    }
    column->nullable = true;
    column->valid = bits;
    column->nulls = (int64_t)(table->rows - valid);
    return true;
}

bool mtprof__arrow_nulls_i64(mtprof__arrow_table *table, mtprof__arrow_column *column,
                             const int64_t *values, const int64_t *same, size_t same_stride)
{
    uint8_t *bits = take_bitmap(table);
    uint64_t valid = 0;
    if (bits == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < table->rows; i += 8) {
        uint64_t n = table->rows - i < 8 ? table->rows - i : 8;
        unsigned eight = 0;
        for (uint64_t k = 0; k < n; k++) {
            eight |= (unsigned)(values[i + k] != same[(i + k) * same_stride]) << k;
        }
        bits[i / 8] = (uint8_t)eight;
        valid += (unsigned)__builtin_popcount(eight);
    }
    column->nullable = true;
    column->valid = bits;
    column->nulls = (int64_t)(table->rows - valid);
    return true;
}

size_t mtprof__arrow_value_bytes(const char *format)
{
    switch (format[0]) {
    case 'b': return 0;
    case 'c':
    case 'C': return 1;
    case 's':
    case 'S': return 2;
    case 'i':
    case 'I': return 4;
    default: return 8;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int64_t number_at(const void *place, uint32_t bytes)
{
    switch (bytes) {
    case 1: return *(const uint8_t *)place;
    case 2: return *(const uint16_t *)place;
    case 4: return *(const int32_t *)place;
    default: return *(const int64_t *)place;
    }
}

static bool add_field(mtprof__arrow_filler *filler, size_t k)
{
    mtprof__arrow_table *table = filler->table;
    const mtprof__arrow_field *field = &filler->fields[k];
    bool is_text = field->format[0] == 'U';
    const char *format = is_text && field->distinct ? "i" : field->format;
    mtprof__arrow_column *column = mtprof__arrow_add(table, field->name, format);
    filler->places[k].column = column;
    if (is_text) {
        mtprof__arrow_texts *texts = mtprof__arrow_texts_new(table);
        column->texts = field->distinct ? NULL : texts;
        column->dictionary = field->distinct ? texts : NULL;
        if (texts == NULL) {
            return false;
        }
    }
    if (column->texts == NULL) {
        size_t size = is_text ? sizeof(int32_t) : field->bytes;
        filler->places[k].values = mtprof__arrow_take(table, table->rows, size);
        column->values = filler->places[k].values;
    }
    if (field->nullable) {
        column->nullable = true;
        filler->places[k].valid = take_bitmap(table);
        column->valid = filler->places[k].valid;
    }
    return (column->texts != NULL || column->values != NULL) &&
           (!field->nullable || column->valid != NULL);
}

static mtprof_text text_at(const char *place)
{
    mtprof_text text;
    memcpy(&text, place, sizeof text);
    return text;
}

static bool is_null_at(const mtprof__arrow_field *field, const char *row)
{
    const char *place = row + field->offset;
    if (field->flag != 0) {
        return row[field->flag] == 0;
    }
    return field->format[0] == 'U' ? text_at(place).length == 0
                                   : number_at(place, field->bytes) == field->none;
}

static bool add_value(mtprof__arrow_filler *filler, size_t k, const char *row)
{
    const mtprof__arrow_field *field = &filler->fields[k];
    mtprof__arrow_column *column = filler->places[k].column;
    char *values = filler->places[k].values;
    const char *place = row + field->offset;
    uint64_t at = filler->row;
    bool ok = true;
    if (column->texts != NULL) {
        ok = mtprof__arrow_texts_add(column->texts, text_at(place));
    } else if (values == NULL) {
        return false;
    } else if (column->dictionary != NULL) {
        int32_t number = 0;
        ok = mtprof__arrow_texts_number(column->dictionary, text_at(place), &number);
        memcpy(values + at * sizeof number, &number, sizeof number);
    } else if (field->format[0] == 'b') {
        values[at / 8] |= (char)((number_at(place, 1) != 0) << (at % 8));
    } else {
        memcpy(values + at * field->bytes, place, field->bytes);
    }
    if (filler->places[k].valid != NULL) {
        bool is_null = is_null_at(field, row);
        filler->places[k].valid[at / 8] |= (uint8_t)(!is_null << (at % 8));
        column->nulls += is_null;
    }
    return ok;
}

bool mtprof__arrow_fill_start(mtprof__arrow_filler *filler, mtprof__arrow_table *table,
                              const mtprof__arrow_field *fields, size_t n_fields)
{
    bool ok = true;
    MT_ASSERT(n_fields <= MTPROF__ARROW_COLUMNS);
    *filler = (mtprof__arrow_filler){.table = table, .fields = fields, .n_fields = n_fields};
    for (size_t k = 0; ok && k < n_fields; k++) {
        ok = add_field(filler, k);
    }
    return ok;
}

bool mtprof__arrow_fill_row(mtprof__arrow_filler *filler, const void *row)
{
    bool ok = true;
    MT_ASSERT(filler->row < filler->table->rows);
    for (size_t k = 0; ok && k < filler->n_fields; k++) {
        ok = add_value(filler, k, row);
    }
    filler->row++;
    return ok;
}

bool mtprof__arrow_fill(mtprof__arrow_table *table, const mtprof__arrow_field *fields,
                        size_t n_fields, mtprof__arrow_row *read, const void *context, void *row)
{
    mtprof__arrow_filler filler;
    bool ok = mtprof__arrow_fill_start(&filler, table, fields, n_fields);
    for (uint64_t i = 0; ok && i < table->rows; i++) {
        read(context, i, row);
        ok = mtprof__arrow_fill_row(&filler, row);
    }
    return ok;
}
