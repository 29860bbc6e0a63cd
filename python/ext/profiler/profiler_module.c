/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof._mtprof: the profiler's C half of the Python face. It needs no tensor library.
 */
#include "profiler/profiler_state.h"

#include <errno.h>
#include <string.h>

profiler_state profiler;

#define X(part) py_part part;
#include "profiler/profiler_parts.def"
#undef X

static PyObject *exception_for(mtprof_status status)
{
    switch (status) {
    case MTPROF_ENOMEM: return PyExc_MemoryError;
    case MTPROF_ENOTSUP: return PyExc_NotImplementedError;
    case MTPROF_EINVAL:
    case MTPROF_EFORMAT:
    case MTPROF_EVERSION: return PyExc_ValueError;
    default: return PyExc_RuntimeError;
    }
}

/* OSError and its subclasses take errno, text and file name. */
static void raise_os_error(mtprof_status status, const mtprof_error *error, const char *path)
{
    int number = error->system_error != 0  ? error->system_error
                 : status == MTPROF_ENOSPC ? ENOSPC
                                           : EIO;
    PyObject *name = path != NULL ? PyUnicode_DecodeFSDefault(path) : NULL;
    PyObject *args = NULL;
    if (name != NULL) {
        args = Py_BuildValue("(isN)", number, strerror(number), name);
    } else if (path == NULL) {
        args = Py_BuildValue("(is)", number, error->message);
    }
    PyObject *exception = args != NULL ? PyObject_CallObject(PyExc_OSError, args) : NULL;
    if (exception != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(exception);
    Py_XDECREF(args);
}

PyObject *profiler_raise(mtprof_status status, const char *path)
{
    if (status == MTPROF_ECALLBACK && py_error_restore()) {
        return NULL;
    }
    const mtprof_error *error = mtprof_last_error();
    if (status == MTPROF_EIO || status == MTPROF_ENOSPC) {
        raise_os_error(status, error, path);
    } else {
        PyErr_SetString(exception_for(status), error->message);
    }
    return NULL;
}

static int start(PyObject *module)
{
    static py_part *const parts[] = {
#define X(part) part,
#include "profiler/profiler_parts.def"
#undef X
        NULL,
    };
    return py_start(module, "mtprof", parts);
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
    .m_name = "mtprof._mtprof",
    .m_doc = "The profiler's C half; import mtprof instead.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__mtprof(void);
PyMODINIT_FUNC PyInit__mtprof(void)
{
    return PyModuleDef_Init(&definition);
}
