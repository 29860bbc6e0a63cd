/* SPDX-License-Identifier: Apache-2.0
 *
 * Python objects released from any thread. See late_release.h.
 */
#include "tensors/interop/late_release.h"

#include <stdatomic.h>

/* Items to drop. Any thread pushes (release); the whole list is taken with the GIL (acquire). */
static _Atomic(late_item *) waiting;

void late_release_pending(void)
{
    late_item *item = atomic_exchange_explicit(&waiting, NULL, memory_order_acquire);
    while (item != NULL) {
        late_item *next = item->next;
        item->drop(item);
        item = next;
    }
}

static int run_pending(void *Py_UNUSED(ignored))
{
    late_release_pending();
    return 0;
}

static void push(late_item *item)
{
    late_item *first = atomic_load_explicit(&waiting, memory_order_relaxed);
    do {
        item->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&waiting, &first, item, memory_order_release,
                                                    memory_order_relaxed));
    if (first == NULL) {
        /* A full queue does no harm: the next release or new object empties the list. */
        (void)Py_AddPendingCall(run_pending, NULL);
    }
}

void late_release(late_item *item)
{
    if (!Py_IsInitialized()) {
        return;
    }
    if (PyGILState_Check() == 0) {
        push(item);
        return;
    }
    /* An exception may be set: the dropped object's code must not see or clear it. */
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    item->drop(item);
    if (atomic_load_explicit(&waiting, memory_order_relaxed) != NULL) {
        late_release_pending();
    }
    PyErr_Restore(type, value, trace);
}

static void drop_object(late_item *item)
{
    late_object *held = (late_object *)item;
    Py_DECREF(held->object);
    PyMem_RawFree(held);
}

late_object *late_object_new(PyObject *object)
{
    late_object *held = PyMem_RawMalloc(sizeof(*held));
    if (held == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *held = (late_object){.item = {.drop = drop_object}, .object = Py_NewRef(object)};
    return held;
}

void late_object_free(void *context)
{
    late_release(context);
}
