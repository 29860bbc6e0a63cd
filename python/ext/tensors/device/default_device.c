/* SPDX-License-Identifier: Apache-2.0
 *
 * The device on which a thread makes tensors when no device is given: torch.set_default_device()
 * and `with torch.device("npu"):`. Other threads do not see it, as in torch.
 */
#include "tensors/device/device_parts.h"

/* Of this thread; `given` false: none. index -1: the current device. */
typedef struct default_place {
    bool given;
    mt_device_type type;
    int index;
} default_place;

static _Thread_local default_place place;

/* Whether any thread ever had one: spares all others the look at thread-local memory. With the GIL.
 */
static bool ever_given;

mt_device device_default(void)
{
    if (!ever_given || !place.given) {
        return MT_DEVICE_NONE;
    }
    if (place.type == MT_DEVICE_TYPE_CPU) {
        return MT_CPU;
    }
    if (place.type == MT_DEVICE_TYPE_META) {
        return MT_META;
    }
    return place.index < 0 ? mt_current_device() : MT_NPU + place.index;
}

/* ---- stacks of a thread ---- */

/* Borrowed; NULL: exception. `make`: creates it if missing. Otherwise nothing is allocated, so that
 * leaving a block cannot fail for lack of memory. */
static PyObject *thread_stack(PyObject *name, bool make)
{
    PyObject *state = PyThreadState_GetDict();
    if (state == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has no state in the interpreter");
        return NULL;
    }
    PyObject *stack = PyDict_GetItemWithError(state, name);
    if (stack == NULL && make && !PyErr_Occurred()) {
        PyObject *made = PyList_New(0);
        if (made != NULL && PyDict_SetItem(state, name, made) == 0) {
            stack = made; /* the dict holds it */
        }
        Py_XDECREF(made);
    }
    return stack;
}

int thread_stack_push(PyObject *name, PyObject *object)
{
    PyObject *stack = thread_stack(name, true);
    return stack == NULL ? -1 : PyList_Append(stack, object);
}

PyObject *thread_stack_pop(PyObject *name)
{
    PyObject *stack = thread_stack(name, false);
    Py_ssize_t count = stack == NULL ? 0 : PyList_GET_SIZE(stack);
    if (count == 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "__exit__() without __enter__() on this thread");
        }
        return NULL;
    }
    PyObject *last = Py_NewRef(PyList_GET_ITEM(stack, count - 1));
    if (PyList_SetSlice(stack, count - 1, count, NULL) != 0) {
        Py_CLEAR(last);
    }
    return last;
}

/* ---- the default device ---- */

static PyObject *place_to_object(void)
{
    if (!place.given) {
        Py_RETURN_NONE;
    }
    return device_object_new(place.type, place.index);
}

static int set_place(PyObject *object)
{
    if (object == Py_None) {
        place = (default_place){.given = false};
        return 0;
    }
    PyObject *device = Py_IS_TYPE(object, tensors.device_type)
                           ? Py_NewRef(object)
                           : PyObject_CallOneArg((PyObject *)tensors.device_type, object);
    mt_device checked = MT_DEVICE_NONE;
    if (device == NULL || device_from_object(device, &checked) != 0) {
        Py_XDECREF(device);
        return -1;
    }
    place = (default_place){.given = true,
                            .type = ((device_object *)device)->type,
                            .index = ((device_object *)device)->index};
    Py_DECREF(device);
    ever_given = true;
    return 0;
}

static PyObject *set_default(PyObject *Py_UNUSED(module), PyObject *object)
{
    return set_place(object) != 0 ? NULL : Py_NewRef(Py_None);
}

/* What an accelerator's default is now: the current device's number where none was given. */
static PyObject *get_default(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    mt_device device = device_default();
    if (place.given && device != MT_DEVICE_NONE && place.type != MT_DEVICE_TYPE_NPU) {
        return place_to_object();
    }
    return device_to_object(device == MT_DEVICE_NONE ? MT_CPU : device);
}

static PyObject *with_devices; /* name of the stack */

PyObject *device_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *before = place_to_object();
    int status = before == NULL ? -1 : thread_stack_push(with_devices, before);
    Py_XDECREF(before);
    if (status != 0) {
        return NULL;
    }
    if (set_place(self) != 0) {
        Py_XDECREF(thread_stack_pop(with_devices));
        return NULL;
    }
    return Py_NewRef(self);
}

PyObject *device_exit(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                      Py_ssize_t Py_UNUSED(n_args))
{
    PyObject *before = thread_stack_pop(with_devices);
    int status = before == NULL ? -1 : set_place(before);
    Py_XDECREF(before);
    return status != 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"set_default_device", set_default, METH_O,
     "set_default_device($module, device, /)\n--\n\nWhere new tensors are; None: on the host."},
    {"get_default_device", get_default, METH_NOARGS,
     "get_default_device($module, /)\n--\n\nWhere new tensors are."},
    {NULL, NULL, 0, NULL},
};

py_part default_device_part;
int default_device_part(PyObject *module)
{
    with_devices = PyUnicode_InternFromString("mindtorch_v2.with_device");
    return with_devices == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
