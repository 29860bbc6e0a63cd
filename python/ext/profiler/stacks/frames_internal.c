/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of CPython 3.11 to 3.13, from their internal headers. The thread's frames are a list from
 * the innermost outward; generators and coroutines that run are links of it like all others.
 * From 3.12 on there is an extra frame where C calls Python. It is no call of its own, so it is
 * skipped.
 */
#define Py_BUILD_CORE_MODULE 1
#include "profiler/stacks/frames_walk.h"

#if FRAMES_FROM != 0

#    include <internal/pycore_frame.h>

#    if FRAMES_FROM == 313
#        define F_CODE            f_executable
#        define F_INSTRUCTION     instr_ptr
#        define INNERMOST(thread) ((thread)->current_frame)
#    else
#        define F_CODE            f_code
#        define F_INSTRUCTION     prev_instr
#        define INNERMOST(thread) ((thread)->cframe->current_frame)
#    endif

/* What is relied on, as every release of these versions has it. Another layout must not compile. */
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
_Static_assert(offsetof(_PyInterpreterFrame, F_CODE) == at_code, "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, previous) == at_previous,
               "frame layout of this Python");
_Static_assert(offsetof(_PyInterpreterFrame, F_INSTRUCTION) == 56, "frame layout of this Python");
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
    return FRAMES_FROM == 311 ? "3.11" : FRAMES_FROM == 312 ? "3.12" : "3.13";
}

uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity)
{
    uint32_t at = capacity;
    for (_PyInterpreterFrame *f = INNERMOST(thread); f != NULL; f = f->previous) {
        if (of_the_c_stack(f)) {
            continue;
        }
        if (at == 0) {
            return capacity + 1;
        }
        at--;
        places[at] = f->F_INSTRUCTION;
        frames[at] = f;
    }
    return capacity - at;
}

bool frames_has_begun(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    const PyCodeObject *code = (const PyCodeObject *)f->F_CODE;
    return f->owner == FRAME_OWNED_BY_GENERATOR ||
           f->F_INSTRUCTION >= _PyCode_CODE(code) + code->_co_firsttraceable;
}

PyCodeObject *frames_code(const void *frame)
{
    return (PyCodeObject *)((const _PyInterpreterFrame *)frame)->F_CODE;
}

int frames_offset(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    return (int)((const char *)f->F_INSTRUCTION - (const char *)_PyCode_CODE(frames_code(f)));
}

PyObject *frames_first_local(const void *frame)
{
    const _PyInterpreterFrame *f = frame;
    PyObject *first = frames_code(f)->co_nlocalsplus > 0 ? f->localsplus[0] : NULL;
    return first != NULL && PyCell_Check(first) ? PyCell_GET(first) : first;
}

uint32_t frames_first_locals(PyThreadState *thread, const PyCodeObject *code, PyObject **first,
                             uint32_t most)
{
    uint32_t count = 0;
    for (_PyInterpreterFrame *f = INNERMOST(thread); f != NULL; f = f->previous) {
        if ((const void *)f->F_CODE == code && frames_has_begun(f)) {
            PyObject *object = frames_first_local(f);
            count = object != NULL ? frames_append(first, count, most, object) : count;
        }
    }
    return count;
}

#else
typedef int frames_internal_is_not_for_this_python;
#endif
