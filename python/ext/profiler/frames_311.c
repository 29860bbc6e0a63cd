/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of CPython 3.11, from its internal headers. The thread's frames are a list from the
 * innermost outward; generators and coroutines that run are links of it like all others.
 */
#define Py_BUILD_CORE_MODULE 1
#include "profiler/frames_walk.h"

#if FRAMES_FROM == 311

#    include <internal/pycore_frame.h>

/* What is relied on, as every 3.11 has it. Another layout must not compile. */
#    if UINTPTR_MAX == UINT64_MAX && !defined(Py_TRACE_REFS)
_Static_assert(offsetof(_PyInterpreterFrame, f_code) == 32, "frame layout of Python 3.11");
_Static_assert(offsetof(_PyInterpreterFrame, previous) == 48, "frame layout of Python 3.11");
_Static_assert(offsetof(_PyInterpreterFrame, prev_instr) == 56, "frame layout of Python 3.11");
_Static_assert(offsetof(_PyInterpreterFrame, owner) == 69, "frame layout of Python 3.11");
_Static_assert(offsetof(_PyInterpreterFrame, localsplus) == 72, "frame layout of Python 3.11");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "instructions of Python 3.11");
#    endif

const char *frames_source(void)
{
    return "3.11";
}

uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity)
{
    uint32_t at = capacity;
    for (_PyInterpreterFrame *f = thread->cframe->current_frame; f != NULL; f = f->previous) {
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
typedef int frames_311_is_not_this_python;
#endif
