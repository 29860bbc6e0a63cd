/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames by the public API, for versions whose internals we do not know: one object per frame, a
 * few times slower. Compile with MTPROF_PUBLIC_FRAMES to have it on any version (tests do).
 */
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/python_stacks.h"

#if FRAMES_FROM == 0

const char *frames_source(void)
{
    return "public";
}

/* The code is inside its object, so this address is as unique as the instruction's own. */
static const void *place_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    const char *place = (const char *)code + PyFrame_GetLasti(frame);
    Py_DECREF(code); /* the frame holds it */
    return place;
}

uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity)
{
    uint32_t at = capacity;
    stacks_error error = stacks_error_aside(); /* FRW2: a frame object may find no memory ... */
    int collecting = PyGC_Disable();           /* ... or set off a collection */
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    while (frame != NULL && at > 0) {
        at--;
        places[at] = place_of(frame);
        frames[at] = frame;
        frame = PyFrame_GetBack(frame);
    }
    if (collecting) {
        PyGC_Enable();
    }
    bool failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    stacks_error_back(&error);
    if (frame != NULL) {
        Py_DECREF(frame);
        frames_done(frames, capacity, capacity);
        return capacity + 1;
    }
    if (failed) { /* no stack instead of half of one */
        frames_done(frames, capacity, capacity - at);
        return FRAMES_NO_MEMORY;
    }
    return capacity - at;
}

void frames_done(void **frames, uint32_t capacity, uint32_t count)
{
    for (uint32_t i = capacity - count; i < capacity; i++) {
        Py_DECREF((PyObject *)frames[i]); /* it runs: this is never the last reference */
    }
}

bool frames_has_begun(const void *frame)
{
    (void)frame; /* there are no objects for others */
    return true;
}

PyCodeObject *frames_code(const void *frame)
{
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)(uintptr_t)frame);
    Py_DECREF(code);
    return code;
}

int frames_offset(const void *frame)
{
    return PyFrame_GetLasti((PyFrameObject *)(uintptr_t)frame);
}

/* The local variable "self": the public API gives locals by name only. */
PyObject *frames_first_local(const void *frame)
{
    PyFrameObject *f = (PyFrameObject *)(uintptr_t)frame;
    PyObject *self = NULL;
    stacks_error error = stacks_error_aside();
    int collecting = PyGC_Disable();
#    if PY_VERSION_HEX >= 0x030C0000
    self = PyFrame_GetVarString(f, "self");
#    else
    PyObject *locals = PyFrame_GetLocals(f);
    if (locals != NULL) {
        self = Py_XNewRef(PyDict_GetItemString(locals, "self"));
        Py_DECREF(locals);
    }
#    endif
    if (collecting) {
        PyGC_Enable();
    }
    PyErr_Clear();
    stacks_error_back(&error);
    Py_XDECREF(self); /* the frame holds it */
    return self;
}

uint32_t frames_first_locals(PyThreadState *thread, const PyCodeObject *code, PyObject **first,
                             uint32_t most)
{
    uint32_t count = 0;
    stacks_error error = stacks_error_aside(); /* FRW2 */
    int collecting = PyGC_Disable();
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    while (frame != NULL) {
        PyObject *object = frames_code(frame) == code ? frames_first_local(frame) : NULL;
        count = object != NULL ? frames_append(first, count, most, object) : count;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame); /* it runs: this is not the last reference */
        frame = back;
    }
    if (collecting) {
        PyGC_Enable();
    }
    count = PyErr_Occurred() == NULL ? count : 0; /* no path instead of half of one */
    PyErr_Clear();
    stacks_error_back(&error);
    return count;
}

#else
typedef int frames_public_is_not_needed;
#endif
