/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving back Python objects from where Python may not be touched: the library frees borrowed
 * memory and callbacks on any thread, without the GIL, and even after the interpreter is gone.
 *
 *     late_release(item) ── GIL held ──► item->drop(item)
 *                         ├─ no GIL ───► a list, emptied by the next thread that holds it
 *                         └─ no Python ► left alone: the process is about to end
 *
 *   LR1  late_release() never waits for the GIL: it may be called with locks of the library held.
 */
#ifndef PYTHON_EXT_TENSORS_INTEROP_LATE_RELEASE_H
#define PYTHON_EXT_TENSORS_INTEROP_LATE_RELEASE_H

#include "common/py_common.h"

/* To be the first member of what is released. */
typedef struct late_item {
    struct late_item *next;
    void (*drop)(struct late_item *item); /* with the GIL; frees the item too */
} late_item;

void late_release(late_item *item);

/* Empties the list; with the GIL. */
void late_release_pending(void);

/* A callable (or any object) that C holds. */
typedef struct late_object {
    late_item item;
    PyObject *object;
} late_object;

/* Takes a reference of its own. NULL: MemoryError is set. */
late_object *late_object_new(PyObject *object);

/* free_context of hooks and functions whose context is a late_object. */
void late_object_free(void *context);

#endif /* PYTHON_EXT_TENSORS_INTEROP_LATE_RELEASE_H */
