/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading and checking definitions, see definitions.h.
 */
#include "mtprof/read/definitions.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum stack_mark {
    STACK_UNKNOWN,
    STACK_GOOD,
    STACK_BAD
};

static const char *const kind_names[] = {
    [MTPROF__DEF_STRING] = "string", [MTPROF__DEF_INPUTS] = "input list",
    [MTPROF__DEF_FRAME] = "frame",   [MTPROF__DEF_STACK] = "stack node",
    [MTPROF__DEF_THREAD] = "thread", [MTPROF__DEF_SOURCE] = "source",
    [MTPROF__DEF_MODULE] = "module",
};
_Static_assert(MT_COUNT(kind_names) == MTPROF__DEF_COUNT, "one name per kind");

static uint32_t low(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t high(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/* ---- loading ------------------------------------------------------------------------------------
 */

static int append(mtprof__definitions *definitions, enum mtprof__definition_kind kind,
                  const mtprof_record *record, mtprof__definition definition)
{
    mtprof__definition_table *table = &definitions->tables[kind];
    if (definition.data == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the %s at %llu", kind_names[kind],
                        (unsigned long long)record->offset);
    }
    if (!mtb_grow((void **)&table->items, &table->capacity, table->n + 1, sizeof *table->items)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu definitions of kind %s",
                        table->n + 1, kind_names[kind]);
    }
    definition.id = record->arg;
    definition.offset = record->offset;
    definition.order = definitions->n_orders++;
    table->items[table->n++] = definition;
    return MTPROF_OK;
}

static int add_string(mtprof__definitions *definitions, const mtprof_record *record)
{
    const uint64_t *w = record->words;
    bool placed = (record->aux & 1) != 0;
    mtprof__definition string = {.length = low(w[0]), .placed = placed};
    string.data = mtb_arena_copy_text(&definitions->arena, (const char *)(w + (placed ? 2 : 1)),
                                      string.length);
    if (placed) {
        string.a = low(w[1]);
        string.b = high(w[1]);
    }
    return append(definitions, MTPROF__DEF_STRING, record, string);
}

static const uint64_t *copy_words(mtb_arena *arena, const uint64_t *words, size_t n)
{
    uint64_t *copy = mtb_arena_take(arena, n * sizeof *words);
    if (copy != NULL && n != 0) {
        memcpy(copy, words, n * sizeof *words);
    }
    return copy;
}

/* A definition that keeps n of its words from the first on. */
static int add_words(mtprof__definitions *definitions, enum mtprof__definition_kind kind,
                     const mtprof_record *record, const uint64_t *words, uint32_t n, uint64_t pair)
{
    return append(definitions, kind, record,
                  (mtprof__definition){
                      .length = n,
                      .data = copy_words(&definitions->arena, words, n),
                      .a = low(pair),
                      .b = high(pair),
                  });
}

int mtprof__definitions_add(mtprof__definitions *definitions, const mtprof_record *record)
{
    const uint64_t *w = record->words;
    switch (record->kind) {
    case MTPROF_REC_DEF_STRING: return add_string(definitions, record);
    case MTPROF_REC_DEF_INPUTS:
        return add_words(definitions, MTPROF__DEF_INPUTS, record, w, record->n_words, 0);
    case MTPROF_REC_DEF_FRAME:
        return add_words(definitions, MTPROF__DEF_FRAME, record, w + 1, 2, w[0]);
    case MTPROF_REC_DEF_STACK: return add_words(definitions, MTPROF__DEF_STACK, record, w, 0, w[0]);
    case MTPROF_REC_DEF_THREAD:
        return add_words(definitions, MTPROF__DEF_THREAD, record, w, 2, low(w[2]));
    case MTPROF_REC_DEF_SOURCE:
        return add_words(definitions, MTPROF__DEF_SOURCE, record, w, 0, w[0]);
    case MTPROF_REC_DEF_MODULE:
        return add_words(definitions, MTPROF__DEF_MODULE, record, w, 3, low(w[3]));
    default: return MTPROF_OK;
    }
}

/* ---- order and identity -------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b)
{
    const mtprof__definition *left = a;
    const mtprof__definition *right = b;
    if (left->id != right->id) {
        return left->id < right->id ? -1 : 1;
    }
    return left->order < right->order ? -1 : left->order > right->order;
}

static bool equal(enum mtprof__definition_kind kind, const mtprof__definition *a,
                  const mtprof__definition *b)
{
    size_t unit = kind == MTPROF__DEF_STRING ? 1 : sizeof(uint64_t);
    return a->length == b->length && a->a == b->a && a->b == b->b && a->placed == b->placed &&
           (a->length == 0 || memcmp(a->data, b->data, a->length * unit) == 0);
}

/* D1. Of a thread the last definition counts; of others all must say the same. */
static int unify(mtprof__definitions *definitions, enum mtprof__definition_kind kind,
                 mtprof__problems *problems)
{
    mtprof__definition_table *table = &definitions->tables[kind];
    size_t kept = 0;
    if (table->n > 1) {
        qsort(table->items, table->n, sizeof *table->items, compare);
    }
    for (size_t i = 0; i < table->n; i++) {
        const mtprof__definition *item = &table->items[i];
        if (kept == 0 || table->items[kept - 1].id != item->id) {
            table->items[kept++] = *item;
        } else if (kind == MTPROF__DEF_THREAD) {
            table->items[kept - 1] = *item;
        } else if (!equal(kind, &table->items[kept - 1], item)) {
            MT_TRY(mtprof__problem_add(
                problems, item->offset,
                "definition at %llu: %s %u is already defined otherwise at %llu",
                (unsigned long long)item->offset, kind_names[kind], item->id,
                (unsigned long long)table->items[kept - 1].offset));
        }
    }
    table->n = kept;
    return MTPROF_OK;
}

static mtprof__definition *find(const mtprof__definition_table *table, uint32_t id)
{
    /* Ids 1, 2, 3 ... without a gap lie at their own place. */
    if (id != 0 && id <= table->n && table->items[id - 1].id == id) {
        return &table->items[id - 1];
    }
    size_t from = 0;
    size_t to = table->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (table->items[middle].id < id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from < table->n && table->items[from].id == id ? &table->items[from] : NULL;
}

const mtprof__definition *mtprof__definition_find(const mtprof__definitions *definitions,
                                                  enum mtprof__definition_kind kind, uint32_t id)
{
    const mtprof__definition *found = find(&definitions->tables[kind], id);
    return found != NULL && found->mark != STACK_BAD ? found : NULL;
}

/* ---- references ---------------------------------------------------------------------------------
 */

/* Whether the parent of a node is one: defined, and before it (D2). */
static mtprof__definition *parent_of(const mtprof__definition_table *table,
                                     const mtprof__definition *node)
{
    mtprof__definition *parent = find(table, node->a);
    return parent != NULL && parent->order < node->order ? parent : NULL;
}

/*
 * D2. From each node up as far as nothing is known yet, then once more to mark the way: linear. At
 * the top of the way is a node that is marked, or that has no parent, or one whose parent is none.
 */
static int check_stacks(mtprof__definitions *definitions, mtprof__problems *problems)
{
    const mtprof__definition_table *table = &definitions->tables[MTPROF__DEF_STACK];
    for (size_t i = 0; i < table->n; i++) {
        mtprof__definition *top = &table->items[i];
        mtprof__definition *parent = NULL;
        while (top->mark == STACK_UNKNOWN && top->a != 0 &&
               (parent = parent_of(table, top)) != NULL) {
            top = parent;
        }
        if (top->mark == STACK_UNKNOWN) {
            top->mark = top->a == 0 ? STACK_GOOD : STACK_BAD;
            if (top->mark == STACK_BAD) {
                MT_TRY(mtprof__problem_add(
                    problems, top->offset,
                    "definition at %llu: stack node %u has parent %u, which is not defined before",
                    (unsigned long long)top->offset, top->id, top->a));
            }
        }
        for (mtprof__definition *node = &table->items[i]; node != top && node != NULL;
             node = parent_of(table, node)) {
            node->mark = top->mark;
        }
    }
    return MTPROF_OK;
}

static int check_reference(const mtprof__definitions *definitions,
                           enum mtprof__definition_kind from, const mtprof__definition *item,
                           enum mtprof__definition_kind to, uint32_t id, mtprof__problems *problems)
{
    if (id == 0 || find(&definitions->tables[to], id) != NULL) {
        return MTPROF_OK;
    }
    return mtprof__problem_add(
        problems, item->offset, "definition at %llu: %s %u refers to %s %u, which is not defined",
        (unsigned long long)item->offset, kind_names[from], item->id, kind_names[to], id);
}

static int check_references(const mtprof__definitions *definitions,
                            enum mtprof__definition_kind kind, mtprof__problems *problems)
{
    const mtprof__definition_table *table = &definitions->tables[kind];
    for (size_t i = 0; i < table->n; i++) {
        const mtprof__definition *item = &table->items[i];
        uint32_t strings[2] = {item->a, item->b};
        if (kind == MTPROF__DEF_STACK) {
            strings[0] = strings[1] = 0; /* parents are checked apart */
            MT_TRY(check_reference(definitions, kind, item, MTPROF__DEF_FRAME, item->b, problems));
        } else if (kind == MTPROF__DEF_STRING) {
            strings[1] = 0; /* a line */
        }
        for (size_t k = 0; k < MT_COUNT(strings); k++) {
            MT_TRY(
                check_reference(definitions, kind, item, MTPROF__DEF_STRING, strings[k], problems));
        }
    }
    return MTPROF_OK;
}

int mtprof__definitions_finish(mtprof__definitions *definitions, mtprof__problems *problems)
{
    for (int kind = 0; kind < MTPROF__DEF_COUNT; kind++) {
        if (kind != MTPROF__DEF_MODULE) {
            MT_TRY(unify(definitions, (enum mtprof__definition_kind)kind, problems));
        }
    }
    MT_TRY(check_stacks(definitions, problems));
    for (int kind = 0; kind < MTPROF__DEF_COUNT; kind++) {
        MT_TRY(check_references(definitions, (enum mtprof__definition_kind)kind, problems));
    }
    return MTPROF_OK;
}

void mtprof__definitions_fini(mtprof__definitions *definitions)
{
    for (int kind = 0; kind < MTPROF__DEF_COUNT; kind++) {
        mtb_free(definitions->tables[kind].items);
    }
    mtb_arena_reset(&definitions->arena);
    memset(definitions, 0, sizeof *definitions);
}
