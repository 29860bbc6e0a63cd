/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of ops: tensors, tuples of them, and torch.return_types for those with names.
 */
#include "tensors/ops/op_binding.h"

#include <string.h>
#include <structmember.h>

/* torch's: a line for each field. */
static PyObject *results_repr(PyObject *self)
{
    const char *name = strrchr(Py_TYPE(self)->tp_name, '.');
    PyObject *text = PyUnicode_FromFormat("torch.return_types.%s(", name == NULL ? "" : name + 1);
    PyMemberDef *members = Py_TYPE(self)->tp_members;
    for (Py_ssize_t i = 0; text != NULL && i < PyTuple_GET_SIZE(self); i++) {
        Py_SETREF(text, PyUnicode_FromFormat("%U%s\n%s=%R", text, i == 0 ? "" : ",",
                                             members[i].name, PyTuple_GET_ITEM(self, i)));
    }
    if (text != NULL) {
        Py_SETREF(text, PyUnicode_FromFormat("%U)", text));
    }
    return text;
}

static PyObject *results_repr_method(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return results_repr(self);
}

static PyMethodDef repr_method = {"__repr__", results_repr_method, METH_NOARGS, NULL};

/* torch names what is picked out of a tensor, and factors of matrices; var_mean and the like are
 * plain tuples. */
static bool has_named_results(const char *op, const char *first)
{
    static const char *const firsts[] = {"values", "min", "mantissa"};
    static const char *const ops[] = {"geqrf",   "lu_unpack", "qr",
                                      "slogdet", "svd",       "triangular_solve"};
    bool named = strncmp(op, "linalg_", 7) == 0;
    for (size_t i = 0; !named && i < sizeof firsts / sizeof firsts[0]; i++) {
        named = strcmp(first, firsts[i]) == 0;
    }
    for (size_t i = 0; !named && i < sizeof ops / sizeof ops[0]; i++) {
        named = strcmp(op, ops[i]) == 0;
    }
    return named;
}

int op_result_type(const char *name, mt_op op, uint32_t count, PyTypeObject **type)
{
    PyStructSequence_Field fields[MT_MAX_RESULTS + 1] = {{NULL, NULL}};
    mt_op_result told[MT_MAX_RESULTS];
    for (uint32_t i = 0; i < count; i++) {
        told[i] = (mt_op_result){.struct_size = sizeof told[i]};
        if (zero_or_raise(mt_op_get_result(op, i, &told[i])) != 0) {
            return -1;
        }
        fields[i].name = told[i].name;
    }
    if (count < 2 || !has_named_results(name, told[0].name)) {
        return 0;
    }
    char full[128];
    PyOS_snprintf(full, sizeof full, "mindtorch_v2.return_types.%s", name);
    /* The type keeps the pointers: they live as long as the process. */
    size_t bytes = strlen(full) + 1;
    char *kept = PyMem_Malloc(bytes + count * sizeof told[0].name);
    if (kept == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(kept, full, bytes);
    for (uint32_t i = 0; i < count; i++) {
        char *field = kept + bytes + i * sizeof told[0].name;
        memcpy(field, told[i].name, sizeof told[0].name);
        fields[i].name = field;
    }
    PyStructSequence_Desc description = {
        .name = kept, .doc = "", .fields = fields, .n_in_sequence = (int)count};
    *type = PyStructSequence_NewType(&description);
    if (*type == NULL) {
        return -1;
    }
    PyObject *method = PyDescr_NewMethod(*type, &repr_method);
    int status =
        method == NULL ? -1 : PyObject_SetAttrString((PyObject *)*type, "__repr__", method);
    Py_XDECREF(method);
    return status != 0 ? -1 : PyDict_SetItemString(tensors.return_types, name, (PyObject *)*type);
}

static PyObject *several(const op_overload *overload, mt_value *results)
{
    PyObject *tuple = overload->results == NULL ? PyTuple_New(overload->n_results)
                                                : PyStructSequence_New(overload->results);
    for (int i = 0; i < overload->n_results; i++) {
        PyObject *item = tuple == NULL ? NULL : tensors_result(&results[i]);
        if (item == NULL) {
            mt_value_clear(&results[i]);
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, item); /* a struct sequence is a tuple */
        }
    }
    return tuple;
}

PyObject *op_results(const op_overload *overload, mt_value *results)
{
    switch (overload->n_results) {
    case 0: Py_RETURN_NONE;
    case 1: return tensors_result(&results[0]);
    default: return several(overload, results);
    }
}
