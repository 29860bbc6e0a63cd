/* SPDX-License-Identifier: Apache-2.0
 *
 * The op that is open, see open_op.h.
 */
#include "mtprof/record/hot/open_op.h"

#include "base/hash.h"
#include "base/pages.h"
#include "mtprof/format/begin_end.h"
#include "mtprof/record/hot/batch.h"

#include <mtprof/source.h>

enum {
    MOST_OPEN = 256,    /* deeper ones are not seen */
    FORWARDS = 1 << 16, /* a power of two */
    NO_SCOPE = -1
};

typedef struct open_scope {
    uint64_t ordinal;
    const uint64_t *name_text; /* of a NAME record in the chunk; NULL: the string */
    uint32_t name, module;     /* strings; module 0: none was told */
    uint64_t forward;          /* of the backward pass: the key of its forward op; 0: unknown */
    uint8_t kind;
    bool is_backward;
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

/* ---- modules of forward ops: OO3 ------------------------------------------------------------- */

/* Where entries meet, the later one stays. A reader that meets a writer sees that: the key is 0
 * before the module changes, and compared before and after. */
typedef struct forward_module {
    uint64_t key;    /* atomic */
    uint64_t module; /* atomic */
} forward_module;

static forward_module *forwards; /* atomic; NULL: no op has needed it */

static uint64_t forward_key(uint64_t serial, uint32_t thread, uint64_t sequence)
{
    return mtb_mix(mtb_mix(serial, thread), sequence) | 1;
}

static void note_forward(uint64_t key, uint32_t module)
{
    forward_module *items = __atomic_load_n(&forwards, __ATOMIC_ACQUIRE);
    if (items == NULL) {
        forward_module *made = mtb_pages_take(FORWARDS * sizeof *made);
        if (made == NULL) {
            return;
        }
        bool first = __atomic_compare_exchange_n(&forwards, &items, made, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE);
        if (first) {
            items = made;
        } else {
            mtb_pages_give(made, FORWARDS * sizeof *made);
        }
    }
    forward_module *at = &items[key / 2 % FORWARDS];
    if (__atomic_load_n(&at->key, __ATOMIC_RELAXED) != key) { /* the outermost op was first */
        __atomic_store_n(&at->key, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&at->module, module, __ATOMIC_RELEASE); /* stays after it */
        __atomic_store_n(&at->key, key, __ATOMIC_RELEASE);
    }
}

static uint32_t forward_module_of(uint64_t key)
{
    const forward_module *items = __atomic_load_n(&forwards, __ATOMIC_ACQUIRE);
    const forward_module *at = items != NULL ? &items[key / 2 % FORWARDS] : NULL;
    if (at == NULL || __atomic_load_n(&at->key, __ATOMIC_ACQUIRE) != key) {
        return 0;
    }
    uint64_t module = __atomic_load_n(&at->module, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&at->key, __ATOMIC_RELAXED) == key ? (uint32_t)module : 0;
}

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

static uint32_t innermost_module(const open_walk *walk)
{
    for (uint32_t i = walk->n; i > 0; i--) {
        if (walk->items[i - 1].module != 0) {
            return walk->items[i - 1].module;
        }
    }
    return 0;
}

/* The innermost function of the backward pass; NULL: none is open. */
static const open_scope *innermost_backward(const open_walk *walk)
{
    for (uint32_t i = walk->n; i > 0; i--) {
        if (walk->items[i - 1].is_backward) {
            return &walk->items[i - 1];
        }
    }
    return NULL;
}

/* A value of an OPINFO; 0: it has none. */
static uint64_t info_value(uint32_t mask, const uint64_t *body, uint32_t bit)
{
    uint32_t before = mask & ((1u << bit) - 1);
    return (mask & 1u << bit) != 0 ? body[__builtin_popcount(before)] : 0;
}

static void note_info(open_walk *walk, const mtprof__writer *w, uint64_t word, const uint64_t *body)
{
    uint32_t mask = (uint32_t)(word >> 16) & 0xFFFF;
    if (walk->latest == NO_SCOPE) {
        return;
    }
    open_scope *scope = &walk->items[walk->latest];
    uint64_t sequence = info_value(mask, body, MTPROF_OPINFO_SEQUENCE);
    bool sequenced = (mask & 1u << MTPROF_OPINFO_SEQUENCE) != 0 && (int64_t)sequence >= 0;
    if ((mask & 1u << MTPROF_OPINFO_MODULE) != 0) {
        scope->module = (uint32_t)info_value(mask, body, MTPROF_OPINFO_MODULE);
    }
    /* What the engine does around a function of the backward pass has its numbers, too. */
    uint32_t thread = (uint32_t)info_value(mask, body, MTPROF_OPINFO_FORWARD_THREAD);
    if (thread != 0 ||
        info_value(mask, body, MTPROF_OPINFO_RECORD_SCOPE) == MTPROF_RECORD_SCOPE_BACKWARD) {
        scope->is_backward = true;
        scope->forward = sequenced ? forward_key(walk->serial, thread, sequence) : 0;
    } else if (sequenced && innermost_backward(walk) == NULL) {
        uint32_t module = mtprof__lasting_string(w->recording, innermost_module(walk));
        if (module != 0) {
            note_forward(forward_key(walk->serial, w->thread, sequence), module);
        }
    }
}

/* A record of several words: its first, and those from w1 on. */
static void take_record(open_walk *walk, const mtprof__writer *w, uint64_t word,
                        const uint64_t *body)
{
    uint64_t slot = mtprof__slot_bits(w->slot);
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
    case MTPROF_REC_OPINFO: note_info(walk, w, word, body); break;
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
    while (walk->at < w->cursor) {
        const uint64_t *record = walk->at;
        if (mtprof__is_end(record[0])) {
            pop(walk, walk->next_ordinal - mtprof__end_distance(record[0]));
            walk->at++;
        } else if ((record[0] & 0x80) != 0) {
            walk->at++;
        } else {
            bool extended = (record[0] >> 8 & 0xFF) == 255;
            take_record(walk, w, record[0], record + (extended ? 2 : 1));
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

/* A string of the process. */
static uint32_t module_of(const open_walk *walk, const mtprof__writer *w)
{
    uint32_t module = innermost_module(walk);
    const open_scope *backward = innermost_backward(walk);
    if (module == 0 && backward != NULL && backward->forward != 0) {
        return forward_module_of(backward->forward); /* OO3 */
    }
    return mtprof__lasting_string(w->recording, module);
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
            *module = module_of(w->open, w);
        }
    }
    mtprof__leave(w);
    return *name != 0;
}
