/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter's frames. One of two files implements this, depending on Python's version:
 *
 *     frames_internal.c   3.11 to 3.13, from the interpreter's own structures: no object is made
 *     frames_public.c     every other version, by the public API: a frame object each
 *
 * A frame is identified by its place: the address of its current instruction inside the code
 * object. While the code object lives, no frame of other code has that address, so a single pointer
 * identifies (code, instruction).
 *
 *   FRW1  The thread state must be the calling thread's own. The GIL is needed where
 *         FRAMES_NEED_GIL says so. Without it the frames cannot change either, since their thread
 *         is here; but a first local may be an object that another thread is about to free, and
 *         is only to be compared.
 *   FRW2  Nothing here runs Python code, lets the GIL go, or changes the current exception.
 *   FRW3  What frames_collect() gave is valid until frames_done(); no Python code may run between.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_FRAMES_WALK_H
#define PYTHON_EXT_PROFILER_STACKS_FRAMES_WALK_H

#include "common/py_common.h"

#include <string.h>

#if defined(MTPROF_PUBLIC_FRAMES) || defined(Py_GIL_DISABLED) || defined(PYPY_VERSION)
#    define FRAMES_FROM 0
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#    define FRAMES_FROM 311
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#    define FRAMES_FROM 312
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#    define FRAMES_FROM 313
#else
#    define FRAMES_FROM 0
#endif

/* Whether frames can be looked at with the GIL only: those of the public API are objects. */
#define FRAMES_NEED_GIL (FRAMES_FROM == 0)

/* The implementation: "3.11", "3.12", "3.13", "public". */
const char *frames_source(void);

/*
 * The frames of a thread with the innermost last: it is at [capacity - 1], the outermost at
 * [capacity - count]. Returns the count; capacity + 1 where they do not fit, FRAMES_NO_MEMORY where
 * there is no memory for them (nothing is kept then).
 */
#define FRAMES_NO_MEMORY UINT32_MAX
uint32_t frames_collect(PyThreadState *thread, const void **places, void **frames,
                        uint32_t capacity);
/* Releases what frames_collect() gave. */
#if FRAMES_NEED_GIL
void frames_done(void **frames, uint32_t capacity, uint32_t count);
#else
static inline void frames_done(void **frames, uint32_t capacity, uint32_t count)
{
    (void)frames;
    (void)capacity;
    (void)count;
}
#endif

/* Whether the frame has begun: one that is being made has no line, and is not shown. */
bool frames_has_begun(const void *frame);
/* Borrowed. */
PyCodeObject *frames_code(const void *frame);
/* The instruction as a byte offset, for PyCode_Addr2Line(). */
int frames_offset(const void *frame);
/* The first local variable (a method's self), borrowed; NULL: there is none, or none any more. */
PyObject *frames_first_local(const void *frame);
/* The first locals, as above, of the thread's frames of a code object, the innermost first; of more
 * than `most` the outermost ones. Returns how many. */
uint32_t frames_first_locals(PyThreadState *thread, const PyCodeObject *code, PyObject **first,
                             uint32_t most);

/* Appends one of them. */
static inline uint32_t frames_append(PyObject **first, uint32_t count, uint32_t most,
                                     PyObject *object)
{
    if (count == most) {
        count--;
        memmove(first, first + 1, count * sizeof *first);
    }
    first[count] = object;
    return count + 1;
}

#endif /* PYTHON_EXT_PROFILER_STACKS_FRAMES_WALK_H */
