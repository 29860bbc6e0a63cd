/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks as nodes of a call tree: a node is (parent, frame), so a stack is one id, and stacks
 * that share their outer part share its nodes. Frames belong to the process. Nodes, and the list of
 * frames that were already written into the trace, belong to a recording.
 */
#include "base/hash.h"
#include "base/pages.h"
#include "mtprof/record/hot/batch.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NODE_CACHE = 1024,
    NATIVE_MAX = 128,
    STACK_PAGE = 4096,
    STACK_MAX = 64 << 20 /* a frame pointer that leads further away is none */
};

/* A step inward is to a frame id, or to the address of native code. */
#define IS_ADDRESS ((uint64_t)1 << 63)

struct mtprof__stack_cache {
    struct {
        uint64_t step;
        uint32_t parent, node;
    } at[NODE_CACHE];
};

typedef struct frame_entry {
    uint32_t function, file, line;
    uint64_t address;
} frame_entry;

/* The process's frames; id = index + 1. Guarded by the names lock. */
static struct {
    mtb_idmap map;
    frame_entry *entries;
    size_t count, capacity;
} frames;

static bool same_frame(const void *context, uint32_t id, const void *key)
{
    const frame_entry *there = &((const frame_entry *)context)[id - 1];
    const frame_entry *wanted = key;
    return there->function == wanted->function && there->file == wanted->file &&
           there->line == wanted->line && there->address == wanted->address;
}

/* Caller holds the lock. */
static uint32_t intern_frame(const frame_entry *frame)
{
    uint64_t hash =
        mtb_mix(mtb_mix(frame->function, frame->file), mtb_mix(frame->line, frame->address));
    uint32_t id = mtb_idmap_find(&frames.map, hash, same_frame, frames.entries, frame);
    if (id == 0 && mtb_idmap_reserve(&frames.map) &&
        mtb_pages_grow((void **)&frames.entries, &frames.capacity, frames.count + 1,
                       sizeof *frames.entries)) {
        frames.entries[frames.count++] = *frame;
        id = (uint32_t)frames.count;
        mtb_idmap_add(&frames.map, hash, id); /* there is room */
    }
    return id;
}

uint32_t mtprof_define_frame(const char *function, size_t function_length, const char *file,
                             size_t file_length, uint32_t line)
{
    frame_entry frame = {.function = mtprof_intern(function, function_length),
                         .file = mtprof_intern(file, file_length),
                         .line = line};
    if (frame.function == 0 || frame.file == 0) {
        return 0;
    }
    mtb_lock_acquire(&mtprof__names_lock);
    uint32_t id = intern_frame(&frame);
    mtb_lock_release(&mtprof__names_lock);
    return id;
}

/* Defines a frame in the trace, once. Caller holds the lock. */
static bool define_frame(mtprof__recording *recording, uint32_t id)
{
    size_t byte = id / 8;
    if (byte >= recording->frame_known_bytes &&
        !mtb_pages_grow((void **)&recording->frame_known, &recording->frame_known_bytes, byte + 1,
                        1)) {
        return false;
    }
    uint8_t bit = (uint8_t)(1u << (id % 8));
    if ((recording->frame_known[byte] & bit) != 0) {
        return true;
    }
    const frame_entry *f = &frames.entries[id - 1];
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_DEF_FRAME, 4, 0, id),
                          f->function | (uint64_t)f->file << 32, f->line, f->address};
    uint32_t cause;
    if (!mtprof__stream_append(recording->store, &recording->definitions, record, 4,
                               mtprof__ticks(), &cause)) {
        return false;
    }
    recording->frame_known[byte] |= bit;
    return true;
}

static bool same_node(const void *context, uint32_t id, const void *key)
{
    const mtprof__stack_entry *there = &((const mtprof__stack_entry *)context)[id - 1];
    const mtprof__stack_entry *wanted = key;
    return there->parent == wanted->parent && there->frame == wanted->frame;
}

/* Caller holds the lock. 0: refused. */
static uint32_t add_node(mtprof__recording *recording, uint32_t parent, uint32_t frame)
{
    mtprof__stack_entry entry = {parent, frame};
    uint64_t hash = mtb_mix(parent, frame);
    uint32_t id = mtb_idmap_find(&recording->stack_map, hash, same_node, recording->stacks, &entry);
    if (id != 0) {
        return id;
    }
    if (frame == 0 || frame > frames.count || parent > recording->n_stacks ||
        recording->n_stacks >= MTPROF__STACK_BOUND || !mtprof__definition_fits(recording, 6)) {
        return 0;
    }
    id = (uint32_t)recording->n_stacks + 1;
    uint64_t record[2] = {mtprof__word0(MTPROF_REC_DEF_STACK, 2, 0, id),
                          parent | (uint64_t)frame << 32};
    uint32_t cause;
    if (!mtb_idmap_reserve(&recording->stack_map) ||
        !mtb_pages_grow((void **)&recording->stacks, &recording->stacks_capacity,
                        recording->n_stacks + 1, sizeof *recording->stacks) ||
        !define_frame(recording, frame) ||
        !mtprof__stream_append(recording->store, &recording->definitions, record, 2,
                               mtprof__ticks(), &cause)) {
        return 0;
    }
    recording->stacks[recording->n_stacks++] = entry;
    recording->own_bytes += sizeof record;
    mtb_idmap_add(&recording->stack_map, hash, id); /* there is room */
    return id;
}

/* One step inward, through this thread's cache. The writer is entered and attached. */
static uint32_t push(mtprof__writer *w, uint32_t parent, uint64_t step)
{
    struct mtprof__stack_cache *cache = w->stacks;
    if (MT_UNLIKELY(cache == NULL)) {
        cache = w->stacks = mtb_pages_take(sizeof *cache);
    }
    uint32_t at = (uint32_t)mtb_mix(parent, step) & (NODE_CACHE - 2); /* two ways */
    if (MT_LIKELY(cache != NULL)) {
        for (uint32_t way = at; way < at + 2; way++) {
            if (cache->at[way].step == step && cache->at[way].parent == parent &&
                cache->at[way].node != 0) {
                return cache->at[way].node;
            }
        }
        at += cache->at[at].node != 0 && (w->next_victim++ & 1) != 0;
    }
    if (mtb_locks_held()) {
        return 0;
    }
    mtb_lock_acquire(&mtprof__names_lock);
    uint32_t frame = (uint32_t)step;
    if ((step & IS_ADDRESS) != 0) {
        /* The frame of an address needs no text: modules and symbols come when it is read. */
        frame_entry native = {.address = step & ~IS_ADDRESS};
        frame = intern_frame(&native);
    }
    uint32_t node = add_node(w->recording, parent, frame);
    mtb_lock_release(&mtprof__names_lock);
    if (node != 0 && cache != NULL) {
        cache->at[at].step = step;
        cache->at[at].parent = parent;
        cache->at[at].node = node;
    }
    return node;
}

uint32_t mtprof_stack(const uint32_t *list, uint32_t count)
{
    uint64_t state;
    mtprof__writer *w = mtprof_wants(MTPROF_WANT_STACKS) ? mtprof__enter_attached(&state, 0) : NULL;
    if (w == NULL) {
        return 0;
    }
    uint32_t node = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = push(w, node, list[i]);
        if (next == 0) {
            mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
            break; /* the outer part is better than nothing */
        }
        node = next;
    }
    mtprof__leave(w);
    return node;
}

uint32_t mtprof_stack_push(uint32_t parent, uint32_t frame)
{
    uint64_t state;
    mtprof__writer *w = mtprof_wants(MTPROF_WANT_STACKS) ? mtprof__enter_attached(&state, 0) : NULL;
    if (w == NULL) {
        return 0;
    }
    uint32_t node = push(w, parent, frame);
    if (MT_UNLIKELY(node == 0)) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    mtprof__leave(w);
    return node;
}

/* ---- native stacks ---- */

/*
 * Whether a word can be read, asked of the kernel: a signal mask is copied from there before the
 * impossible request is refused. Needs no heap, unlike asking pthread for the stack's bounds.
 */
static bool is_readable(uintptr_t address)
{
    int before = errno;
    bool readable =
        syscall(SYS_rt_sigprocmask, -1, address, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
    errno = before;
    return readable;
}

/*
 * Makes sure that the two words of a frame can be read. Each page is checked once; the checked ones
 * are kept as a range around the stack pointer, which is reset on another stack (sigaltstack).
 */
static bool in_stack(mtprof__writer *w, uintptr_t frame)
{
    uintptr_t end = frame + 2 * sizeof frame;
    if (MT_LIKELY(frame >= w->stack_low && end <= w->stack_high)) {
        return true;
    }
    if (frame < w->stack_low || frame - w->stack_high > STACK_MAX) {
        return false;
    }
    while (w->stack_high < end) {
        if (!is_readable(w->stack_high)) {
            return false;
        }
        w->stack_high += STACK_PAGE;
    }
    return true;
}

/*
 * Return addresses from the frame pointers, innermost first. A frame pointer is believed when it
 * can be read, is aligned and grows: code without frame pointers ends the walk.
 */
__attribute__((no_sanitize("address"))) static uint32_t walk(mtprof__writer *w, uintptr_t frame,
                                                             uintptr_t *addresses, uint32_t max)
{
    if (frame < w->stack_low || frame >= w->stack_high) {
        w->stack_low = frame & ~(uintptr_t)(STACK_PAGE - 1);
        w->stack_high = w->stack_low + STACK_PAGE;
    }
    uint32_t count = 0;
    while (count < max && frame % sizeof frame == 0 && in_stack(w, frame)) {
        const uintptr_t *pair = (const uintptr_t *)frame;
        if (pair[1] < STACK_PAGE) {
            break;
        }
        addresses[count++] = pair[1];
        if (pair[0] <= frame) {
            break;
        }
        frame = pair[0];
    }
    return count;
}

uint32_t mtprof__stack_of(mtprof__writer *w, uintptr_t frame, uint32_t skip)
{
    uintptr_t addresses[NATIVE_MAX];
    uint32_t count = walk(w, frame, addresses, NATIVE_MAX);
    uint32_t node = 0;
    bool cut = count == NATIVE_MAX; /* there may be more outside */
    for (uint32_t i = count; i > skip; i--) {
        uint32_t next = push(w, node, addresses[i - 1] | IS_ADDRESS);
        if (next == 0) {
            cut = true;
            break; /* the outer part is better than nothing */
        }
        node = next;
    }
    if (MT_UNLIKELY(cut)) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    return node;
}

uint32_t mtprof_stack_native(uint32_t skip)
{
    uint64_t state;
    mtprof__writer *w = mtprof_wants(MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS)
                            ? mtprof__enter_attached(&state, 0)
                            : NULL;
    if (w == NULL) {
        return 0;
    }
    uint32_t node = mtprof__stack_of(w, (uintptr_t)__builtin_frame_address(0), skip);
    mtprof__leave(w);
    return node;
}

void mtprof__stack_cache_reset(mtprof__writer *w)
{
    if (w->stacks != NULL) {
        memset(w->stacks, 0, sizeof *w->stacks);
    }
}
