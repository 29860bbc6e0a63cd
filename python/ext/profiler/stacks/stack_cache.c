/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's stack as a node of the recording's call tree. Two stacks that follow each other differ
 * in few frames, so a thread remembers its latest one, outermost frame first, and goes on from
 * where the new one leaves it:
 *
 *     remembered   main:12 ─ train:40 ─ forward:7 ─ helper:3
 *     now          main:12 ─ train:40 ─ forward:8 ─ relu:2
 *                  └── the same ─────┘ └─ two steps ───┘
 *
 *   SC1  Nodes are of one recording, places are known while their code is held: both are forgotten
 *        when the generation grows. It grows before a recording begins, so a walk that sees the
 *        same generation before and after was of one recording.
 *   SC2  What is remembered is a chain: nodes[i] is the stack of places[0 … i]. It stays one when
 *        the thread returns from inner frames, which are kept for the next time.
 *   SC3  A module's frame is its place and its object: the object is looked at each time.
 *   SC4  A stack of more than DEEPEST frames is not recorded (the recorder counts it): each look
 *        at it would cost as much as the work it belongs to. Outer frames are never left out:
 *        stacks would no longer share nodes.
 *   SC5  A walk without the GIL reads what the thread itself remembers, and the tables under the
 *        lock. Where that is not enough it says so, and the walk is done again with the GIL. The
 *        thread's frames and their code live meanwhile: it is in C. So what lies at the address of
 *        a place has been there since before the generation was read: SC1 holds as with the GIL.
 */
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/python_stacks.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 128,
    DEEPEST = 16384,
    RECENT_BITS = 9,
    RECENT = 1 << RECENT_BITS,
    MODULES_MAX = 256
};

struct stack_walk {
    uint64_t generation;
    uint32_t depth, capacity;
    uint32_t n_modules;
    const void **seen; /* this walk's places and frames, the innermost at the end */
    void **frames;
    const void **places; /* the latest stack (SC2) */
    uint32_t *nodes;
    struct {
        uint32_t at;
        uint64_t serial;    /* of its entry in the table; 0: none, to be asked for each time */
    } modules[MODULES_MAX]; /* which of the places are modules' calls */
    struct {
        const void *place;
        uint32_t parent, node;
    } recent[RECENT]; /* steps inward */
};

/* ---- what a walk keeps ---- */

void stack_walk_free(stack_walk *walk)
{
    if (walk != NULL) {
        PyMem_RawFree(walk->seen);
        PyMem_RawFree(walk->frames);
        PyMem_RawFree(walk->places);
        PyMem_RawFree(walk->nodes);
        PyMem_RawFree(walk);
    }
}

static bool grow_array(void *array, size_t count, size_t size)
{
    void **place = array;
    void *larger = PyMem_RawRealloc(*place, count * size);
    if (larger != NULL) {
        *place = larger;
    }
    return larger != NULL;
}

static bool grow(stack_walk *walk)
{
    uint32_t capacity = walk->capacity == 0 ? FIRST_CAPACITY : walk->capacity * 2;
    if (capacity > DEEPEST || !grow_array(&walk->seen, capacity, sizeof *walk->seen) ||
        !grow_array(&walk->frames, capacity, sizeof *walk->frames) ||
        !grow_array(&walk->places, capacity, sizeof *walk->places) ||
        !grow_array(&walk->nodes, capacity, sizeof *walk->nodes)) {
        return false;
    }
    walk->capacity = capacity;
    return true;
}

static stack_walk *walk_of(stacks_thread *thread)
{
    if (thread->walk == NULL) {
        stack_walk *walk = PyMem_RawCalloc(1, sizeof *walk);
        if (walk != NULL && !grow(walk)) {
            stack_walk_free(walk);
            walk = NULL;
        }
        thread->walk = walk;
    }
    return thread->walk;
}

static __attribute__((cold, noinline)) void forget(stack_walk *walk, uint64_t generation) /* SC1 */
{
    code_table_sync(generation);
    walk->depth = 0;
    walk->n_modules = 0;
    memset(walk->recent, 0, sizeof walk->recent);
    walk->generation = generation;
}

/* ---- one walk ---- */

/* How many of the outermost frames are as they were. */
static inline __attribute__((always_inline)) uint32_t count_same(const stack_walk *walk,
                                                                 uint32_t count, bool has_gil)
{
    uint32_t first = walk->capacity - count;
    const void *const *seen = walk->seen + first;
    uint32_t most = count < walk->depth ? count : walk->depth;
    uint32_t same = 0;
    while (same < most && seen[same] == walk->places[same]) {
        same++;
    }
    bool lock = !has_gil && walk->n_modules > 0;
    if (lock) {
        stacks_lock();
    }
    for (uint32_t i = 0; i < walk->n_modules && walk->modules[i].at < same; i++) { /* SC3 */
        uint32_t at = walk->modules[i].at;
        const PyObject *self = frames_first_local(walk->frames[first + at]);
        uint64_t serial = walk->modules[i].serial;
        if (self == NULL || serial == 0 || module_table_serial(self, NULL) != serial) {
            same = at;
        }
    }
    if (lock) {
        stacks_unlock();
    }
    return same;
}

/* What a frame is shown as. */
typedef struct shown {
    uint32_t id; /* a frame, or PLACE_HIDDEN or PLACE_UNKNOWN */
    bool is_module;
    uint64_t serial; /* the module's */
} shown;

static shown show(const void *place, const void *frame)
{
    stacks_error error = stacks_error_aside();
    shown what = {.id = code_table_place(place, frame)};
    if (what.id == PLACE_MODULE) {
        PyObject *self = frames_first_local(frame);
        module_entry *entry = self != NULL ? module_table_entry(self) : NULL;
        what.is_module = true;
        what.id = entry != NULL ? module_entry_frame(entry, self) : PLACE_HIDDEN;
        what.serial = what.id != PLACE_HIDDEN ? entry->serial : 0;
    }
    stacks_error_back(&error);
    return what;
}

/* The same without the GIL; UNKNOWN: it was not met before (SC5). */
static shown show_known(const void *place, const void *frame)
{
    stacks_lock();
    shown what = {.id = code_table_known(place)};
    if (what.id == PLACE_MODULE) {
        const PyObject *self = frames_first_local(frame);
        what.is_module = true;
        what.id = PLACE_UNKNOWN;
        what.serial = self != NULL ? module_table_serial(self, &what.id) : 0;
        what.id = what.serial != 0 && what.id != 0 ? what.id : PLACE_UNKNOWN;
    }
    stacks_unlock();
    return what;
}

/* The slow way from a node to that of the next inner frame. False: it failed, or *needs_gil. */
static bool step_slow(stack_walk *walk, uint32_t at, const void *place, const void *frame,
                      uint32_t *node, bool *needs_gil)
{
    if (!frames_has_begun(frame)) {
        return true;
    }
    shown what = needs_gil == NULL ? show(place, frame) : show_known(place, frame);
    uint32_t id = what.id;
    if (id == PLACE_UNKNOWN) {
        if (needs_gil != NULL) {
            *needs_gil = true;
        }
        return false;
    }
    if (what.is_module) {
        if (walk->n_modules == MODULES_MAX) {
            return false;
        }
        walk->modules[walk->n_modules].at = at; /* SC3 */
        walk->modules[walk->n_modules].serial = what.serial;
        walk->n_modules++;
    }
    uint32_t parent = *node;
    if (id != PLACE_HIDDEN) {
        *node = mtprof_stack_push(parent, id);
    }
    if (*node == 0 && id != PLACE_HIDDEN) {
        *node = parent;
        return false;
    }
    if (!what.is_module) {
        uint64_t hash = ((uint64_t)(uintptr_t)place ^ (uint64_t)parent << 40) * 0x9E3779B97F4A7C15u;
        uint32_t slot = (uint32_t)(hash >> (64 - RECENT_BITS));
        walk->recent[slot].place = place;
        walk->recent[slot].parent = parent;
        walk->recent[slot].node = *node;
    }
    return true;
}

static inline bool step(stack_walk *walk, uint32_t at, const void *place, const void *frame,
                        uint32_t *node, bool *needs_gil)
{
    uint64_t hash = ((uint64_t)(uintptr_t)place ^ (uint64_t)*node << 40) * 0x9E3779B97F4A7C15u;
    uint32_t slot = (uint32_t)(hash >> (64 - RECENT_BITS));
    if (walk->recent[slot].place == place && walk->recent[slot].parent == *node) {
        *node = walk->recent[slot].node;
        return true;
    }
    return step_slow(walk, at, place, frame, node, needs_gil);
}

/* Replaces the remembered stack by the new one, from frame `same` on. */
static uint32_t follow(stack_walk *walk, uint32_t same, uint32_t count, bool *needs_gil)
{
    uint32_t first = walk->capacity - count;
    uint32_t node = same > 0 ? walk->nodes[same - 1] : 0;
    while (walk->n_modules > 0 && walk->modules[walk->n_modules - 1].at >= same) {
        walk->n_modules--;
    }
    uint32_t at = same;
    while (at < count &&
           step(walk, at, walk->seen[first + at], walk->frames[first + at], &node, needs_gil)) {
        walk->places[at] = walk->seen[first + at];
        walk->nodes[at] = node;
        at++;
    }
    walk->depth = at; /* where a step fails the outer part is better than nothing */
    return node;
}

/* Compiled once with the GIL and once without. */
static inline __attribute__((always_inline)) uint32_t walk_now(stack_walk *walk,
                                                               PyThreadState *thread, bool has_gil)
{
    uint64_t generation = stacks_generation();
    if (walk->generation != generation) {
        if (!has_gil) {
            return LOOK_NEEDS_GIL;
        }
        forget(walk, generation);
    }
    uint32_t count = frames_collect(thread, walk->seen, walk->frames, walk->capacity);
    while (count > walk->capacity) {
        if (!has_gil && walk->capacity < DEEPEST) {
            return LOOK_NEEDS_GIL;
        }
        if (count == FRAMES_NO_MEMORY || !grow(walk)) {
            return 0; /* SC4 */
        }
        count = frames_collect(thread, walk->seen, walk->frames, walk->capacity);
    }
    uint32_t same = count_same(walk, count, has_gil);
    uint32_t node = 0;
    bool needs_gil = false;
    if (same < count) {
        node = follow(walk, same, count, has_gil ? NULL : &needs_gil);
    } else if (count > 0) {
        node = walk->nodes[count - 1];
    }
    frames_done(walk->frames, walk->capacity, count);
    if (needs_gil) {
        return LOOK_NEEDS_GIL;
    }
    if (stacks_recording_of(stacks_generation()) != stacks_recording_of(generation)) {
        return 0; /* SC1 */
    }
    return node == 0 && walk->depth >= count ? MTPROF_STACK_NONE : node;
}

uint32_t stack_cache_node(PyThreadState *thread)
{
    stacks_thread *mine = stacks_thread_mine();
    stack_walk *walk = mine != NULL ? walk_of(mine) : NULL;
    if (walk == NULL || mine->busy != 0) {
        return 0;
    }
    mine->busy++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint32_t node = walk_now(walk, thread, true);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine->busy--;
    return node;
}

uint32_t stack_cache_known(PyThreadState *thread)
{
    stacks_thread *mine = stacks_thread_if_any();
    if (mine == NULL || mine->busy != 0) {
        return 0;
    }
    uint32_t node = LOOK_NEEDS_GIL;
    if (mine->walk != NULL) {
        mine->busy++;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        node = walk_now(mine->walk, thread, false);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        mine->busy--;
    }
    if (node == LOOK_NEEDS_GIL && frames_collect(thread, NULL, NULL, 0) == 0) {
        node = MTPROF_STACK_NONE; /* torch's autograd threads: they need not wait */
    }
    return node;
}
