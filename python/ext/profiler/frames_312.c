/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of CPython 3.12, from its internal headers. As in 3.11, with one difference: where C calls
 * Python a frame of the C stack stands between, which is no call of its own and is passed over.
 */
#define Py_BUILD_CORE_MODULE 1
#include "profiler/frames_walk.h"

#if FRAMES_FROM == 312

#    include <internal/pycore_frame.h>

/* What is relied on, as every 3.12 has it. Another layout must not compile. */
#    if UINTPTR_MAX == UINT64_MAX && !defined(Py_TRACE_REFS)
_Static_assert(offsetof(_PyInterpreterFrame, f_code) == 0, "frame layout of Python 3.12");
_Static_assert(offsetof(_PyInterpreterFrame, previous) == 8, "frame layout of Python 3.12");
_Static_assert(offsetof(_PyInterpreterFrame, prev_instr) == 56, "frame layout of Python 3.12");
_Static_assert(offsetof(_PyInterpreterFrame, owner) == 70, "frame layout of Python 3.12");
_Static_assert(offsetof(_PyInterpreterFrame, localsplus) == 72, "frame layout of Python 3.12");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "instructions of Python 3.12");
#    endif

const char *frames_source(void)
{
    return "3.12";
}

uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity)
{
    uint32_t at = capacity;
    for (_PyInterpreterFrame *f = thread->cframe->current_frame; f != NULL; f = f->previous) {
        if (f->owner == FRAME_OWNED_BY_CSTACK) {
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

void frames_done(void **frames, uint32_t capacity, uint32_t count)
{
    (void)frames;
    (void)capacity;
    (void)count;
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

#else
typedef int frames_312_is_not_this_python;
#endif
