/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening on the control socket (mtprof/control.h) for mtprof.control: what is asked comes to
 * Python functions, on the helper's thread with the GIL.
 *
 *   LSN1  The functions are kept from listen to close. close waits for the helper without the GIL,
 *        which the helper may be waiting for.
 */
#include "common/py_common.h"
#include "profiler/profiler_state.h"

#include <mtprof/control.h>

#include <string.h>

static PyObject *on_start, *on_stop; /* LSN1 */

/* The exception that is set as an answer: BlockingIOError and the like are OSError's, so that
 * statuses follow profiler_raise() where there is one. */
static mtprof_status tell_error(mtprof_control_answer *answer)
{
    static const struct {
        PyObject **type;
        mtprof_status status;
    } known[] = {
        {&PyExc_ValueError, MTPROF_EINVAL},           {&PyExc_TypeError, MTPROF_EINVAL},
        {&PyExc_MemoryError, MTPROF_ENOMEM},          {&PyExc_OSError, MTPROF_EIO},
        {&PyExc_NotImplementedError, MTPROF_ENOTSUP}, /* before its base: */
        {&PyExc_RuntimeError, MTPROF_ESTATE},
    };
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    mtprof_status status = MTPROF_ECALLBACK;
    PyErr_Fetch(&type, &value, &trace);
    for (size_t i = 0; i < sizeof known / sizeof *known && status == MTPROF_ECALLBACK; i++) {
        if (PyErr_GivenExceptionMatches(type, *known[i].type)) {
            status = known[i].status;
        }
    }
    PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
    const char *utf8 = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8 == NULL || utf8[0] == '\0') {
        utf8 = type != NULL && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "an error";
    }
    size_t length = strlen(utf8);
    length = length < sizeof answer->message ? length : sizeof answer->message - 1;
    memcpy(answer->message, utf8, length);
    answer->message[length] = '\0';
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

static mtprof_status start_callback(void *user, const mtprof_control_request *request,
                                    mtprof_control_answer *answer)
{
    (void)user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *path = PyUnicode_DecodeFSDefault(request->path);
    PyObject *said = path != NULL ? PyObject_CallFunction(on_start, "OKI", path,
                                                          (unsigned long long)request->ring_bytes,
                                                          (unsigned int)request->details)
                                  : NULL;
    mtprof_status status = said != NULL ? MTPROF_OK : tell_error(answer);
    Py_XDECREF(path);
    Py_XDECREF(said);
    PyGILState_Release(gil);
    return status;
}

static mtprof_status stop_callback(void *user, mtprof_control_answer *answer)
{
    (void)user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *said = PyObject_CallNoArgs(on_stop);
    mtprof_status status = said != NULL ? MTPROF_OK : tell_error(answer);
    Py_XDECREF(said);
    PyGILState_Release(gil);
    return status;
}

static PyObject *control_listen(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *folder = NULL, *start = NULL, *stop = NULL;
    const char *rank = NULL;
    if (!PyArg_ParseTuple(args, "O&zOO:control_listen", PyUnicode_FSConverter, &folder, &rank,
                          &start, &stop)) {
        return NULL;
    }
    mtprof_control_config config = {.struct_size = sizeof config,
                                    .folder = PyBytes_AS_STRING(folder),
                                    .rank = rank,
                                    .start = start_callback,
                                    .stop = stop_callback};
    PyObject *start_before = on_start, *stop_before = on_stop;
    char path[MTPROF_CONTROL_TEXT_BYTES];
    bool listens = mtprof_control_path(path, sizeof path);
    if (!listens) { /* before the first request can come */
        on_start = Py_NewRef(start);
        on_stop = Py_NewRef(stop);
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_control_listen(&config);
    Py_END_ALLOW_THREADS;
    if (!listens) {
        Py_XDECREF(start_before);
        Py_XDECREF(stop_before);
    }
    PyObject *result =
        status == MTPROF_OK ? Py_NewRef(Py_None) : profiler_raise(status, config.folder);
    Py_DECREF(folder);
    return result;
}

static PyObject *control_close(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_control_close();
    Py_END_ALLOW_THREADS;
    if (status != MTPROF_OK) {
        return profiler_raise(status, NULL);
    }
    Py_CLEAR(on_start);
    Py_CLEAR(on_stop);
    Py_RETURN_NONE;
}

static PyObject *control_path(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    char path[MTPROF_CONTROL_TEXT_BYTES];
    if (!mtprof_control_path(path, sizeof path)) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeFSDefault(path);
}

static PyObject *control_folder(PyObject *module, PyObject *args)
{
    (void)module;
    const char *runtime = NULL;
    unsigned int uid = 0;
    char folder[MTPROF_CONTROL_TEXT_BYTES];
    if (!PyArg_ParseTuple(args, "zI:control_folder", &runtime, &uid)) {
        return NULL;
    }
    mtprof_status status = mtprof_control_folder(runtime, uid, folder, sizeof folder);
    return status == MTPROF_OK ? PyUnicode_DecodeFSDefault(folder) : profiler_raise(status, NULL);
}

static PyMethodDef functions[] = {
    {"control_listen", control_listen, METH_VARARGS,
     "control_listen(folder, rank, start, stop): see mtprof_control_listen(); start(path, ring_bytes, details) and "
     "stop() are called on a thread of their own, and refuse by an exception."},
    {"control_close", control_close, METH_NOARGS, "Listens no more."},
    {"control_path", control_path, METH_NOARGS,
     "The socket's path; None: this process does not listen."},
    {"control_folder", control_folder, METH_VARARGS,
     "control_folder(XDG_RUNTIME_DIR or None, uid): where a user's sockets are."},
    {NULL, NULL, 0, NULL},
};

py_part listen_calls_part;
int listen_calls_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
