/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for all events of a model in one piece: a million events are made in 60 ms (in 17 where
 * the memory has been used before), with memory for each in 75. Touching new memory is most of it.
 * Large pages (MADV_HUGEPAGE) make it 35 ms or 170, depending on the state of the machine's memory.
 *
 *     slots:  [ collector's header | event 0 ] [ header | event 1 ] …        64 bytes each
 *
 * The collector's header is two words that are zero while an object is not tracked. That is a
 * detail of CPython, so it is tried out once at the start; where it is otherwise, every event gets
 * memory of its own.
 *
 *   ES1  A slot has no memory to give back: an event that dies leaves its slot as it is, and the
 *        same event, made again, takes it again. The memory goes with the model, which every event
 *        keeps alive.
 */
#include "profiler/results/model_object.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 2 * sizeof(uintptr_t),
    SLOT_BYTES = HEADER_BYTES + sizeof(event_object),
    SLOTS_LEAST = 1024 /* events for which it is worth it */
};

_Static_assert(SLOT_BYTES == 64, "a slot is a line of the cache");

static bool slots_work;

static bool header_is_zero(const PyObject *object)
{
    uintptr_t words[2];
    memcpy(words, (const char *)object - HEADER_BYTES, sizeof words);
    return words[0] == 0 && words[1] == 0;
}

int event_slots_start(void)
{
    event_object *probe = PyObject_GC_New(event_object, profiler.event_type);
    if (probe == NULL) {
        return -1;
    }
    memset((char *)probe + sizeof(PyObject), 0, sizeof *probe - sizeof(PyObject));
    bool before = header_is_zero((PyObject *)probe);
    PyObject_GC_Track(probe);
    bool tracked = header_is_zero((PyObject *)probe);
    PyObject_GC_UnTrack(probe);
    slots_work = before && !tracked;
    Py_DECREF(probe);
    return 0;
}

void model_slots_take(model_object *model)
{
    if (!slots_work || model->slots != NULL || model->n < SLOTS_LEAST) {
        return;
    }
    size_t bytes = (size_t)model->n * SLOT_BYTES;
    void *memory = NULL;
    if (posix_memalign(&memory, SLOT_BYTES, bytes) != 0) {
        return; /* each gets its own, or says that there is no memory */
    }
    model->slots = memory;
    model->slots_bytes = bytes;
}

void model_slots_give(model_object *model)
{
    free(model->slots);
    model->slots = NULL;
}

bool event_in_slot(const event_object *event)
{
    const model_object *model = event->model;
    return model != NULL && model->slots != NULL &&
           (uintptr_t)event - (uintptr_t)model->slots < model->slots_bytes;
}

event_object *event_slot_new(model_object *model, uint32_t index)
{
    if (model->slots == NULL) {
        return PyObject_GC_New(event_object, profiler.event_type);
    }
    char *slot = (char *)model->slots + (size_t)index * SLOT_BYTES;
    memset(slot, 0, HEADER_BYTES);
    return (event_object *)(void *)PyObject_Init((PyObject *)(void *)(slot + HEADER_BYTES),
                                                 profiler.event_type);
}
