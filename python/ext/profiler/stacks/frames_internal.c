/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of CPython 3.11 and 3.12, from their internal headers. The thread's frames are a list from
 * the innermost outward; generators and coroutines that run are links of it like all others.
 * In 3.12 there is an extra frame where C calls Python. It is no call of its own, so it is skipped.
 */
#define Py_BUILD_CORE_MODULE 1
#include "profiler/stacks/frames_walk.h"

#if FRAMES_FROM == 311 || FRAMES_FROM == 312

#    include <internal/pycore_frame.h>

/* What is relied on, as every 3.11 and every 3.12 has it. Another layout must not compile. */
#    if UINTPTR_MAX == UINT64_MAX && !defined(Py_TRACE_REFS)
#        if FRAMES_FROM == 311
enum {
    at_code = 32,
    at_previous = 48,
    at_owner = 69
};
#        else
enum {
    at_code = 0,
    at_previous = 8,
    at_owner = 70
};
#        endif
_Static_assert(offsetof(_PyInterpreterFrame, f_code) == at_code, "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, previous) == at_previous,
               "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, prev_instr) == 56, "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, owner) == at_owner, "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, localsplus) == 72, "frame layout of this Python");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "instructions of this Python");
#    endif

#    if FRAMES_FROM == 311
static bool of_the_c_stack(const _PyInterpreterFrame *Py_UNUSED(frame))
{
    return false;
}
#    else
static bool of_the_c_stack(const _PyInterpreterFrame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK;
}
#    endif

const char *frames_source(void)
{
    return FRAMES_FROM == 311 ? "3.11" : "3.12";
}

uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity)
{
    uint32_t at = capacity;
    for (_PyInterpreterFrame *f = thread->cframe->current_frame; f != NULL; f = f->previous) {
        if (of_the_c_stack(f)) {
            continue;
        }
        if (at == 0) {
            return capacity + 1;
        }
        at--;
        places[at] = f->prev_instr;
        frames[at] = f;
    }
    return capacity - at;
}

bool frames_has_begun(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    return f->owner == FRAME_OWNED_BY_GENERATOR ||
           f->prev_instr >= _PyCode_CODE(f->f_code) + f->f_code->_co_firsttraceable;
}

PyCodeObject *frames_code(const void *frame)
{
    return ((const _PyInterpreterFrame *)frame)->f_code;
}

int frames_offset(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    return _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT);
}

PyObject *frames_first_local(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    PyObject *first = f->f_code->co_nlocalsplus > 0 ? f->localsplus[0] : NULL;
    return first != NULL && PyCell_Check(first) ? PyCell_GET(first) : first;
}

uint32_t frames_first_locals(PyThreadState *thread, const PyCodeObject *code, PyObject **first,
                             uint32_t most)
{
    uint32_t count = 0;
    for (_PyInterpreterFrame *f = thread->cframe->current_frame; f != NULL; f = f->previous) {
        if (f->f_code == code && frames_has_begun(f)) {
            PyObject *object = frames_first_local(f);
            count = object != NULL ? frames_append(first, count, most, object) : count;
        }
    }
    return count;
}

#else
typedef int frames_internal_is_not_for_this_python;
#endif
