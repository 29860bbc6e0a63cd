/* SPDX-License-Identifier: Apache-2.0
 *
 * Which asyncio task runs. We never import asyncio: a program that has not imported it has no
 * tasks. The loaded modules are searched again only when their number has changed.
 */
#include "profiler/stacks/task_name.h"

/* Under the GIL. */
static PyObject *running_loop, *current_task;
static Py_ssize_t n_modules = -1;

static void find_functions(PyObject *modules)
{
    PyObject *asyncio = PyDict_GetItemString(modules, "asyncio"); /* borrowed */
    if (asyncio == NULL || running_loop != NULL) {
        return;
    }
    running_loop = PyObject_GetAttrString(asyncio, "_get_running_loop");
    current_task = PyObject_GetAttrString(asyncio, "current_task");
    PyErr_Clear(); /* it may be in the middle of being imported */
    if (running_loop == NULL || current_task == NULL) {
        Py_CLEAR(running_loop);
        Py_CLEAR(current_task);
        n_modules = -1;
    }
}

/* "Task-7", which asyncio makes unique; names that the program gave may not be. */
static PyObject *name_of(PyObject *task)
{
    PyObject *name = PyObject_CallMethod(task, "get_name", NULL);
    if (name == NULL || !PyUnicode_Check(name)) {
        Py_XDECREF(name);
        return NULL;
    }
    PyObject *usual = PyUnicode_FromString("Task-");
    Py_ssize_t is_usual = usual != NULL ? PyUnicode_Tailmatch(name, usual, 0, 5, -1) : -1;
    Py_XDECREF(usual);
    if (is_usual == 0) {
        PyObject *own = PyUnicode_FromFormat("%U (%p)", name, task);
        Py_SETREF(name, own);
    }
    return name;
}

PyObject *task_name(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    Py_ssize_t n = modules != NULL ? PyDict_Size(modules) : -1;
    if (n != n_modules) {
        n_modules = n;
        find_functions(modules);
    }
    if (running_loop == NULL) {
        return NULL;
    }
    PyObject *loop = PyObject_CallNoArgs(running_loop);
    PyObject *task = NULL;
    PyObject *name = NULL;
    if (loop != NULL && loop != Py_None) {
        task = PyObject_CallOneArg(current_task, loop);
    }
    if (task != NULL && task != Py_None) {
        name = name_of(task);
    }
    Py_XDECREF(task);
    Py_XDECREF(loop);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* a scope without its task */
    }
    return name;
}
