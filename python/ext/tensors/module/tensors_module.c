/* SPDX-License-Identifier: Apache-2.0
 *
 * mindtorch_v2._C: tensors, ops and gradients for Python.
 */
#include "tensors/module/tensors_state.h"

#include <string.h>

tensors_state tensors;

#define X(part) py_part part;
#include "tensors/module/tensors_parts.def"
#undef X

static PyObject *exception_for(int status)
{
    static const struct {
        const char *name;
        PyObject **exception;
    } known[] = {
        {"ValueError", &PyExc_ValueError},   {"TypeError", &PyExc_TypeError},
        {"IndexError", &PyExc_IndexError},   {"RuntimeError", &PyExc_RuntimeError},
        {"MemoryError", &PyExc_MemoryError}, {"NotImplementedError", &PyExc_NotImplementedError},
        {"OSError", &PyExc_OSError},
    };
    if (status == MT_EOOM || status == MT_EDEVICE) {
        return status == MT_EOOM ? tensors.out_of_memory : tensors.accelerator_error;
    }
    if (status == MT_ELINALG) {
        return tensors.linalg_error;
    }
    const char *name = mt_status_exception(status);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return *known[i].exception;
        }
    }
    return PyExc_RuntimeError;
}

/* A flight recorder may dump before the exception leaves. Its module is asked only if somebody has
 * loaded it. */
static void tell_out_of_memory(const char *message)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *name = PyUnicode_FromString("mtprof.flight.hooks");
    PyObject *hooks = name != NULL ? PyImport_GetModule(name) : NULL;
    PyObject *told =
        hooks != NULL ? PyObject_CallMethod(hooks, "out_of_memory", "s", message) : NULL;
    PyErr_Clear();
    Py_XDECREF(told);
    Py_XDECREF(hooks);
    Py_XDECREF(name);
    PyErr_Restore(type, value, trace);
}

PyObject *tensors_raise(int status)
{
    if (status == MT_ECALLBACK && py_error_restore()) {
        return NULL;
    }
    PyErr_SetString(exception_for(status), mt_last_error()->message);
    if (status == MT_EOOM || status == MT_ENOMEM) {
        tell_out_of_memory(mt_last_error()->message);
    }
    return NULL;
}

/* torch.OutOfMemoryError, AcceleratorError and linalg.LinAlgError, all RuntimeErrors. */
static int add_exceptions(PyObject *module)
{
    tensors.out_of_memory =
        PyErr_NewExceptionWithDoc("mindtorch_v2.OutOfMemoryError", "The device has no memory left.",
                                  PyExc_RuntimeError, NULL);
    tensors.accelerator_error = PyErr_NewExceptionWithDoc(
        "mindtorch_v2.AcceleratorError", "The device failed or is lost.", PyExc_RuntimeError, NULL);
    tensors.linalg_error = PyErr_NewExceptionWithDoc(
        "mindtorch_v2._C._LinAlgError",
        "A matrix is singular, not positive-definite, or does not converge.", PyExc_RuntimeError,
        NULL);
    if (tensors.out_of_memory == NULL || tensors.accelerator_error == NULL ||
        tensors.linalg_error == NULL ||
        PyModule_AddObjectRef(module, "_LinAlgError", tensors.linalg_error) != 0) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "OutOfMemoryError", tensors.out_of_memory) != 0
               ? -1
               : PyModule_AddObjectRef(module, "AcceleratorError", tensors.accelerator_error);
}

static int start(PyObject *module)
{
    static py_part *const parts[] = {
#define X(part) part,
#include "tensors/module/tensors_parts.def"
#undef X
        NULL,
    };
    if (add_exceptions(module) != 0 ||
        PyModule_AddStringConstant(module, "version", mt_version_string()) != 0) {
        return -1;
    }
    return py_start(module, "mindtorch_v2", parts);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, start},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2._C",
    .m_doc = "Tensors, ops and gradients; import mindtorch_v2 instead.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void)
{
    return PyModuleDef_Init(&definition);
}
