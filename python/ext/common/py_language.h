/* SPDX-License-Identifier: Apache-2.0
 *
 * What mtprof._mtprof offers to other extensions, as the capsule PY_LANGUAGE_CAPSULE: the Python
 * stack of a thread for the time in which it has no GIL.
 */
#ifndef PYTHON_EXT_COMMON_PY_LANGUAGE_H
#define PYTHON_EXT_COMMON_PY_LANGUAGE_H

#include <stdint.h>

#define PY_LANGUAGE_CAPSULE "mtprof._mtprof.language"

typedef struct py_language {
    uint32_t version; /* 1 */
    /* With the GIL: remembers this thread's stack for what begins until drop(), and returns what
     * was remembered before, to be given to drop(). Worth calling only while
     * mtprof_wants(MTPROF_WANT_STACKS). */
    uint32_t (*hold)(void);
    void (*drop)(uint32_t before); /* with the GIL */
} py_language;

#endif /* PYTHON_EXT_COMMON_PY_LANGUAGE_H */
