/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to an event: the host events around and inside it, the device work it launched, its
 * call stack.
 */
#include "profiler/results/model_object.h"

enum {
    STACK_MOST = 1024, /* frames that are shown, as tables and exports do */
    CHAIN_MOST = 64    /* events not listed, one inside another, that are stepped over */
};

PyObject *event_cpu_parent(event_object *event)
{
    model_object *m = event->model;
    uint32_t parent = m->parent[event->index];
    if (model_is_device_work(m, event->index)) {
        Py_RETURN_NONE;
    }
    for (unsigned i = 0; i < CHAIN_MOST && parent < m->n && !model_lists(m, parent); i++) {
        parent = m->parent[parent];
    }
    return parent < m->n ? model_event(m, parent) : Py_NewRef(Py_None);
}

static int append_children(model_object *m, const uint32_t *next, uint32_t child, PyObject *list)
{
    for (; child < m->n; child = next[child]) {
        if (model_is_device_work(m, child) || !model_lists(m, child)) {
            continue;
        }
        PyObject *event = model_event(m, child);
        int failed = event == NULL || PyList_Append(list, event) != 0;
        Py_XDECREF(event);
        if (failed) {
            return -1;
        }
    }
    return 0;
}

PyObject *event_cpu_children(event_object *event)
{
    model_object *m = event->model;
    const void *first = NULL;
    const void *next = NULL;
    if (model_column(m, MTPROF_COLUMN_FIRST_CHILD, &first) != 0 ||
        model_column(m, MTPROF_COLUMN_NEXT_SIBLING, &next) != 0) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (list != NULL && first != NULL && next != NULL &&
        append_children(m, next, ((const uint32_t *)first)[event->index], list) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *kernel_object(model_object *m, uint32_t index)
{
    mtprof_device device = {0};
    (void)mtprof_model_device(m->model, m->device[index], &device);
    PyObject *name = model_name(m, m->name[index]);
    if (name == NULL) {
        return NULL;
    }
    double us = (double)(int64_t)((uint64_t)m->end_ns[index] - (uint64_t)m->start_ns[index]) / 1e3;
    PyObject *kernel = PyObject_CallFunction(event_rules_set.kernel, "Oid", name, device.index, us);
    Py_DECREF(name);
    return kernel;
}

PyObject *event_kernels(event_object *event)
{
    const uint32_t *kernels = NULL;
    uint32_t n = 0;
    if (model_kernels(event->model, event->index, &kernels, &n) != 0) {
        return NULL;
    }
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        PyObject *kernel = kernel_object(event->model, kernels[i]);
        if (kernel == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, kernel);
    }
    return list;
}

static PyObject *frame_text(const mtprof_frame *frame)
{
    if (frame->file.length == 0) {
        return frame->function.length != 0
                   ? model_text(frame->function)
                   : PyUnicode_FromFormat("0x%llx", (unsigned long long)frame->address);
    }
    PyObject *file = model_text(frame->file);
    PyObject *function = file != NULL ? model_text(frame->function) : NULL;
    PyObject *text =
        function != NULL
            ? PyUnicode_FromFormat("%U(%llu): %U", file, (unsigned long long)frame->line, function)
            : NULL;
    Py_XDECREF(file);
    Py_XDECREF(function);
    return text;
}

PyObject *event_stack_list(model_object *model, uint32_t node)
{
    PyObject *list = PyList_New(0);
    mtprof_frame frame;
    uint32_t parent = 0;
    for (unsigned i = 0; list != NULL && node != 0 && i < STACK_MOST; i++, node = parent) {
        if (!mtprof_model_stack(model->model, node, &parent, &frame)) {
            break;
        }
        PyObject *text = frame_text(&frame);
        if (text == NULL || PyList_Append(list, text) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(text);
    }
    return list;
}
