/* SPDX-License-Identifier: Apache-2.0
 *
 * The op that is open, see open_op.h.
 */
#include "mtprof/record/hot/open_op.h"

#include "base/pages.h"
#include "mtprof/format/begin_end.h"
#include "mtprof/record/hot/batch.h"

#include <mtprof/source.h>

enum {
    MOST_OPEN = 256, /* deeper ones are not seen */
    NO_SCOPE = -1
};

typedef struct open_scope {
    uint64_t ordinal;
    const uint64_t *name_text; /* of a NAME record in the chunk; NULL: the string */
    uint32_t name, module;     /* strings; module 0: none was told */
    uint8_t kind;
} open_scope;

struct mtprof__open_walk {
    uint64_t serial, sequence; /* of the recording, and of the chunk's successor */
    uint64_t next_ordinal;
    const uint64_t *at;
    bool carried;   /* the items are those at the end of the chunk before */
    int32_t latest; /* whose payloads come next; NO_SCOPE: nobody's */
    uint32_t n;
    open_scope items[MOST_OPEN];
};

typedef struct mtprof__open_walk open_walk;

/* ---- walking --------------------------------------------------------------------------------- */

static void push(open_walk *walk, uint64_t ordinal, uint64_t word)
{
    walk->latest = NO_SCOPE;
    if (walk->n < MOST_OPEN && (word >> 16 & MTPROF_FLAG_ASYNC) == 0) {
        walk->latest = (int32_t)walk->n;
        walk->items[walk->n++] = (open_scope){
            .ordinal = ordinal, .name = (uint32_t)(word >> 32), .kind = mtprof__begin_kind(word)};
    }
}

static int32_t find(const open_walk *walk, uint64_t ordinal)
{
    for (uint32_t i = walk->n; i > 0; i--) {
        if (walk->items[i - 1].ordinal == ordinal) {
            return (int32_t)i - 1;
        }
    }
    return NO_SCOPE;
}

static void pop(open_walk *walk, uint64_t ordinal)
{
    int32_t i = find(walk, ordinal);
    walk->latest = NO_SCOPE;
    if (i != NO_SCOPE) {
        walk->n--;
        memmove(&walk->items[i], &walk->items[i + 1],
                (walk->n - (uint32_t)i) * sizeof walk->items[0]);
    }
}

static void note_module(open_walk *walk, uint64_t word, const uint64_t *body)
{
    uint32_t mask = (uint32_t)(word >> 16) & 0xFFFF;
    if (walk->latest != NO_SCOPE && (mask & 1u << MTPROF_OPINFO_MODULE) != 0) {
        uint32_t before = mask & ((1u << MTPROF_OPINFO_MODULE) - 1);
        walk->items[walk->latest].module = (uint32_t)body[__builtin_popcount(before)];
    }
}

/* A record of several words: its first, and those from w1 on. `slot` has the slot's bits of a key.
 */
static void take_record(open_walk *walk, uint64_t slot, uint64_t word, const uint64_t *body)
{
    switch ((uint8_t)word) {
    case MTPROF_REC_BEGIN: push(walk, walk->next_ordinal++, word); break;
    case MTPROF_REC_BEGIN_X:
        push(walk, body[1] != 0 ? body[1] - slot : walk->next_ordinal++, word);
        break;
    case MTPROF_REC_LAUNCH:
        walk->next_ordinal++;
        walk->latest = NO_SCOPE;
        break;
    case MTPROF_REC_END_X: pop(walk, body[1] - slot); break;
    case MTPROF_REC_EPOCH:
    case MTPROF_REC_THREAD:
        walk->n = 0;
        walk->latest = NO_SCOPE;
        break;
    case MTPROF_REC_ATTACH: walk->latest = find(walk, body[0] - slot); break;
    case MTPROF_REC_INSTANT: walk->latest = NO_SCOPE; break;
    case MTPROF_REC_OPINFO: note_module(walk, word, body); break;
    case MTPROF_REC_NAME:
        if (walk->latest != NO_SCOPE) {
            walk->items[walk->latest].name_text = body;
        }
        break;
    default: break;
    }
}

static void walk_to(open_walk *walk, const mtprof__writer *w)
{
    uint64_t slot = mtprof__slot_bits(w->slot);
    while (walk->at < w->cursor) {
        const uint64_t *record = walk->at;
        if (mtprof__is_end(record[0])) {
            pop(walk, walk->next_ordinal - mtprof__end_distance(record[0]));
            walk->at++;
        } else if ((record[0] & 0x80) != 0) {
            walk->at++;
        } else {
            bool extended = (record[0] >> 8 & 0xFF) == 255;
            take_record(walk, slot, record[0], record + (extended ? 2 : 1));
            walk->at += extended ? record[1] : record[0] >> 8 & 0xFF;
        }
    }
}

/* OO1, OO2 */
static void go_on(open_walk *walk, const mtprof__writer *w)
{
    if (walk->serial != w->serial || walk->sequence != w->sequence) {
        if (!walk->carried || walk->serial != w->serial || walk->sequence + 1 != w->sequence) {
            walk->n = 0;
        }
        walk->serial = w->serial;
        walk->sequence = w->sequence;
        walk->next_ordinal = w->chunk->first_ordinal;
        walk->at = (const uint64_t *)(const void *)w->records;
        walk->latest = NO_SCOPE;
        walk->carried = false;
    }
    walk_to(walk, w);
}

void mtprof__open_leave_chunk(mtprof__writer *w)
{
    open_walk *walk = w->open;
    if (walk == NULL || walk->serial != w->serial || walk->sequence != w->sequence) {
        return;
    }
    walk_to(walk, w);
    walk->carried = true;
    for (uint32_t i = 0; i < walk->n; i++) {
        if (walk->items[i].name_text != NULL) { /* its chunk may go */
            walk->items[i].name_text = NULL;
            walk->items[i].name = 0;
        }
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* The innermost op, else the innermost scope of the program; NULL: none. */
static const open_scope *innermost(const open_walk *walk)
{
    const open_scope *scope = NULL;
    for (uint32_t i = walk->n; i > 0; i--) {
        const open_scope *item = &walk->items[i - 1];
        if (item->kind == MTPROF_KIND_OP) {
            return item;
        }
        if (item->kind == MTPROF_KIND_SCOPE && scope == NULL) {
            scope = item;
        }
    }
    return scope;
}

static uint32_t innermost_module(const open_walk *walk)
{
    for (uint32_t i = walk->n; i > 0; i--) {
        if (walk->items[i - 1].module != 0) {
            return walk->items[i - 1].module;
        }
    }
    return 0;
}

bool mtprof_open_op(uint32_t *name, uint32_t *module)
{
    uint64_t state;
    *name = *module = 0;
    mtprof__writer *w =
        mtprof__load_state() != 0 && !mtb_locks_held() ? mtprof__enter_attached(&state, 0) : NULL;
    if (w == NULL) {
        return false;
    }
    if (w->open == NULL) {
        w->open = mtb_pages_take(sizeof *w->open);
    }
    if (w->open != NULL && w->chunk != NULL) {
        go_on(w->open, w);
        const open_scope *found = innermost(w->open);
        if (found != NULL) {
            *name = found->name_text == NULL ? mtprof__lasting_string(w->recording, found->name)
                                             : mtprof__intern((const char *)(found->name_text + 1),
                                                              (size_t)found->name_text[0]);
            *module = mtprof__lasting_string(w->recording, innermost_module(w->open));
        }
    }
    mtprof__leave(w);
    return *name != 0;
}
