/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading and checking definitions, see definitions.h.
 */
#include "mtprof/read/definitions.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"

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

/* ---- loading --------------------------------------------------------------------------------- */

static int append(mtprof__definitions *definitions, enum mtprof__definition_kind kind,
                  const mtprof_record *record, mtprof__definition definition)
{
    mtprof__definition_table *table = &definitions->tables[kind];
    if (definition.data == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the %s at %llu", kind_names[kind],
                        (unsigned long long)record->offset);
    }
    definition.id = record->arg;
    definition.offset = record->offset;
    definition.order = definitions->n_orders++;
    return mtb_append(table->items, table->n, table->capacity, &definition)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu definitions of kind %s",
                          table->n + 1, kind_names[kind]);
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

/* ---- order and identity ---------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const mtprof__definition *left = a;
    const mtprof__definition *right = b;
    int order = mtb_order(left->id, right->id);
    return order != 0 ? order : mtb_order(left->order, right->order);
}

static bool equal(enum mtprof__definition_kind kind, const mtprof__definition *a,
                  const mtprof__definition *b)
{
    size_t unit = kind == MTPROF__DEF_STRING ? 1 : sizeof(uint64_t);
    return a->length == b->length && a->a == b->a && a->b == b->b && a->placed == b->placed &&
           (a->length == 0 || memcmp(a->data, b->data, a->length * unit) == 0);
}

static int report_conflict(enum mtprof__definition_kind kind, const mtprof__definition *first,
                           const mtprof__definition *second, mtprof__problems *problems)
{
    return mtprof__problem_add(problems, second->offset,
                               "definition at %llu: %s %u is already defined otherwise at %llu",
                               (unsigned long long)second->offset, kind_names[kind], second->id,
                               (unsigned long long)first->offset);
}

/* DF1. Of a thread the last definition counts; of others all must say the same. */
static int unify(mtprof__definitions *definitions, enum mtprof__definition_kind kind,
                 mtprof__problems *problems)
{
    mtprof__definition_table *table = &definitions->tables[kind];
    if (kind == MTPROF__DEF_MODULE || table->n == 0) {
        return MTPROF_OK;
    }
    qsort(table->items, table->n, sizeof *table->items, compare);
    mtprof__definition *last = table->items; /* of those kept */
    for (size_t i = 1; i < table->n; i++) {
        const mtprof__definition *item = &table->items[i];
        int status = MTPROF_OK;
        if (last->id != item->id) {
            *++last = *item;
        } else if (kind == MTPROF__DEF_THREAD) {
            *last = *item;
        } else if (!equal(kind, last, item)) {
            status = report_conflict(kind, last, item, problems);
        }
        MT_TRY(status);
    }
    table->n = (size_t)(last - table->items) + 1;
    return MTPROF_OK;
}

static bool has_lower_id(const void *definition, uint64_t id)
{
    return ((const mtprof__definition *)definition)->id < id;
}

static mtprof__definition *find(const mtprof__definition_table *table, uint32_t id)
{
    /* Ids 1, 2, 3 ... without a gap lie at their own place. */
    if (id != 0 && id <= table->n && table->items[id - 1].id == id) {
        return &table->items[id - 1];
    }
    size_t from = mtb_search(table->items, table->n, sizeof *table->items, has_lower_id, id);
    return from < table->n && table->items[from].id == id ? &table->items[from] : NULL;
}

const mtprof__definition *mtprof__definition_find(const mtprof__definitions *definitions,
                                                  enum mtprof__definition_kind kind, uint32_t id)
{
    const mtprof__definition *found = find(&definitions->tables[kind], id);
    return found != NULL && found->mark != STACK_BAD ? found : NULL;
}

/* ---- references ------------------------------------------------------------------------------ */

/* Whether the parent of a node is one: defined, and before it (DF2). */
static mtprof__definition *parent_of(const mtprof__definition_table *table,
                                     const mtprof__definition *node)
{
    mtprof__definition *parent = find(table, node->a);
    return parent != NULL && parent->order < node->order ? parent : NULL;
}

/* The top of the way up from a node: one that is marked, or has no parent, or none that counts. */
static mtprof__definition *top_of(const mtprof__definition_table *table, mtprof__definition *node)
{
    while (node->mark == STACK_UNKNOWN && node->a != 0) {
        mtprof__definition *parent = parent_of(table, node);
        if (parent == NULL) {
            break;
        }
        node = parent;
    }
    return node;
}

/* DF2. Each way is walked twice, to find its top and to mark it; marks end the later ones: linear.
 */
static int check_stacks(mtprof__definitions *definitions, mtprof__problems *problems)
{
    const mtprof__definition_table *table = &definitions->tables[MTPROF__DEF_STACK];
    for (size_t i = 0; i < table->n; i++) {
        mtprof__definition *top = top_of(table, &table->items[i]);
        int status = MTPROF_OK;
        if (top->mark == STACK_UNKNOWN && top->a == 0) {
            top->mark = STACK_GOOD;
        } else if (top->mark == STACK_UNKNOWN) {
            top->mark = STACK_BAD;
            status = mtprof__problem_add(
                problems, top->offset,
                "definition at %llu: stack node %u has parent %u, which is not defined before",
                (unsigned long long)top->offset, top->id, top->a);
        }
        MT_TRY(status);
        mtprof__definition *node = &table->items[i];
        while (node != NULL && node != top) {
            node->mark = top->mark;
            node = parent_of(table, node);
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
    bool stack = kind == MTPROF__DEF_STACK;
    for (size_t i = 0; i < table->n; i++) {
        const mtprof__definition *item = &table->items[i];
        /* What a and b are: stack nodes have a parent, checked apart, and a frame; strings a file
         * and a line; the others strings. */
        uint32_t first = stack ? 0 : item->a;
        uint32_t second = kind == MTPROF__DEF_STRING ? 0 : item->b;
        MT_TRY(check_reference(definitions, kind, item, MTPROF__DEF_STRING, first, problems));
        MT_TRY(check_reference(definitions, kind, item,
                               stack ? MTPROF__DEF_FRAME : MTPROF__DEF_STRING, second, problems));
    }
    return MTPROF_OK;
}

int mtprof__definitions_finish(mtprof__definitions *definitions, mtprof__problems *problems)
{
    for (int kind = 0; kind < MTPROF__DEF_COUNT; kind++) {
        MT_TRY(unify(definitions, (enum mtprof__definition_kind)kind, problems));
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
