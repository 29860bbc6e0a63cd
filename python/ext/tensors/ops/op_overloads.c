/* SPDX-License-Identifier: Apache-2.0
 *
 * Error messages for a call that fits no overload, in torch's words.
 */
#include "tensors/ops/op_binding.h"

#include <string.h>

static const char *type_text(PyObject *object)
{
    if (Py_IS_TYPE(object, tensors.tensor_type)) {
        return "Tensor";
    }
    if (Py_IS_TYPE(object, tensors.dtype_type)) {
        return "torch.dtype";
    }
    if (Py_IS_TYPE(object, tensors.device_type)) {
        return "torch.device";
    }
    const char *name = Py_TYPE(object)->tp_name;
    const char *dot = strrchr(name, '.');
    return dot == NULL ? name : dot + 1;
}

static PyObject *refuse_type(const op_set *set, const op_failure *failure)
{
    const char *wanted = op_type_text(failure->param);
    const char *got = type_text(failure->got);
    if (failure->misfit == MISFIT_ITEM) {
        return PyErr_Format(PyExc_TypeError,
                            "%U(): argument '%U' failed to unpack the object at pos %zd with error "
                            "\"type must be tuple of ints,but got %s\"",
                            set->name, failure->param->name, failure->position, got);
    }
    if (failure->position == 0) {
        return PyErr_Format(PyExc_TypeError, "%U(): argument '%U' must be %s, not %s", set->name,
                            failure->param->name, wanted, got);
    }
    return PyErr_Format(PyExc_TypeError, "%U(): argument '%U' (position %zd) must be %s, not %s",
                        set->name, failure->param->name, failure->position, wanted, got);
}

static PyObject *refuse_missing(const op_set *set, const op_overload *overload, uint32_t missing)
{
    PyObject *names = PyUnicode_FromString("");
    int count = 0;
    for (int i = 0; i < overload->n_params && names != NULL; i++) {
        if ((missing >> i & 1) != 0) {
            Py_SETREF(names, PyUnicode_FromFormat("%U%s\"%U\"", names, count == 0 ? "" : ", ",
                                                  overload->params[i].name));
            count++;
        }
    }
    if (names != NULL) {
        PyErr_Format(PyExc_TypeError, "%U() missing %d required positional arguments: %U",
                     set->name, count, names);
        Py_DECREF(names);
    }
    return NULL;
}

static PyObject *refuse_many(const op_set *set, const op_overload *overload, const op_call *call)
{
    Py_ssize_t self = call->method ? 1 : 0;
    Py_ssize_t takes = overload->n_positional - self;
    Py_ssize_t given = call->n_args - self;
    return PyErr_Format(PyExc_TypeError, "%U() takes %zd positional argument%s but %zd %s given",
                        set->name, takes, takes == 1 ? "" : "s", given,
                        given == 1 ? "was" : "were");
}

static PyObject *refuse_only(const op_set *set, const op_call *call, const op_failure *failure)
{
    const op_overload *overload = set->overloads[0];
    switch (failure->misfit) {
    case MISFIT_TYPE:
    case MISFIT_ITEM: return refuse_type(set, failure);
    case MISFIT_MANY: return refuse_many(set, overload, call);
    case MISFIT_MISSING: return refuse_missing(set, overload, failure->missing);
    case MISFIT_TWICE:
        return PyErr_Format(PyExc_TypeError, "%U() got multiple values for argument '%U'",
                            set->name, failure->got);
    case MISFIT_EXTRA:
        return PyErr_Format(PyExc_TypeError, "%U(): argument '%s' must be %s, not %s", set->name,
                            failure->extra, failure->wanted, type_text(failure->got));
    case MISFIT_UNKNOWN:
    case MISFIT_NONE: break;
    }
    return PyErr_Format(PyExc_TypeError, "%U() got an unexpected keyword argument '%U'", set->name,
                        failure->got);
}

/* "Tensor, dim=str": what was given. */
static PyObject *given_text(const op_call *call)
{
    PyObject *text = PyUnicode_FromString("");
    const char *comma = "";
    for (Py_ssize_t i = call->method ? 1 : 0; text != NULL && i < call->n_args; i++) {
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%s", text, comma, type_text(call->args[i])));
        comma = ", ";
    }
    Py_ssize_t named = call->kwnames == NULL ? 0 : PyTuple_GET_SIZE(call->kwnames);
    for (Py_ssize_t i = 0; text != NULL && i < named; i++) {
        Py_SETREF(text,
                  PyUnicode_FromFormat("%U%s%U=%s", text, comma, PyTuple_GET_ITEM(call->kwnames, i),
                                       type_text(call->args[call->n_args + i])));
        comma = ", ";
    }
    return text;
}

/* A keyword that no overload knows is named alone, as torch does. */
static PyObject *unknown_keyword(const op_set *set, const op_call *call)
{
    static const char *const extras[] = {"out", "memory_format", "requires_grad", "pin_memory",
                                         "layout"};
    Py_ssize_t named = call->kwnames == NULL ? 0 : PyTuple_GET_SIZE(call->kwnames);
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = PyTuple_GET_ITEM(call->kwnames, k);
        bool known = false;
        for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++) {
            known = known || PyUnicode_CompareWithASCIIString(name, extras[i]) == 0;
        }
        for (uint32_t o = 0; o < set->count && !known; o++) {
            const op_overload *overload = set->overloads[o];
            for (int i = call->method ? 1 : 0; i < overload->n_params && !known; i++) {
                PyObject *other = overload->params[i].other;
                known = PyUnicode_Compare(name, overload->params[i].name) == 0 ||
                        (other != NULL && PyUnicode_Compare(name, other) == 0);
            }
        }
        if (!known) {
            return name;
        }
    }
    return NULL;
}

/* " = 1", a default as torch prints it. */
static PyObject *default_text(const op_param *param)
{
    const mt_value *value = &param->value;
    switch (value->kind) {
    case MT_KIND_BOOL: return PyUnicode_FromString(value->of.integer != 0 ? "True" : "False");
    case MT_KIND_INT: return PyUnicode_FromFormat("%lld", (long long)value->of.integer);
    case MT_KIND_REAL: {
        PyObject *real = PyFloat_FromDouble(value->of.real);
        PyObject *text = real == NULL ? NULL : PyObject_Repr(real);
        Py_XDECREF(real);
        return text;
    }
    case MT_KIND_TEXT: return PyUnicode_FromFormat("\"%s\"", value->of.text);
    case MT_KIND_INTS:
        return value->count == 0 ? PyUnicode_FromString("None")
                                 : PyUnicode_FromFormat("%lld", (long long)value->of.ints[0]);
    default: return PyUnicode_FromString("None");
    }
}

/* "(Tensor input, Number alpha = 1)"; without the first one for a method. */
static PyObject *signature_text(const op_overload *overload, bool method)
{
    PyObject *text = PyUnicode_FromString("(");
    bool star = false;
    int from = overload->first + (method ? 1 : 0);
    for (int i = from; text != NULL && i < overload->n_params; i++) {
        const op_param *param = &overload->params[i];
        const char *before = i == from ? "" : ", ";
        if (param->keyword_only && !star) {
            star = true;
            before = i == from ? "*, " : ", *, ";
        }
        PyObject *value = param->has_default ? default_text(param) : PyUnicode_FromString("");
        if (value == NULL) {
            Py_CLEAR(text);
            break;
        }
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%s %U%s%U", text, before, op_type_text(param),
                                             param->name, param->has_default ? " = " : "", value));
        Py_DECREF(value);
    }
    if (text != NULL) {
        Py_SETREF(text, PyUnicode_FromFormat("%U)", text));
    }
    return text;
}

PyObject *op_refuse(const op_set *set, const op_call *call, const op_failure *failure)
{
    if (set->count == 1) {
        return refuse_only(set, call, failure);
    }
    if (failure->misfit == MISFIT_ITEM) {
        return refuse_type(set, failure);
    }
    PyObject *unknown = unknown_keyword(set, call);
    if (unknown != NULL) {
        return PyErr_Format(PyExc_TypeError, "%U() got an unexpected keyword argument '%U'",
                            set->name, unknown);
    }
    PyObject *given = given_text(call);
    PyObject *expected = PyUnicode_FromString("");
    for (uint32_t i = 0; expected != NULL && i < set->count; i++) {
        PyObject *signature = signature_text(set->overloads[i], call->method);
        Py_SETREF(expected, signature == NULL
                                ? NULL
                                : PyUnicode_FromFormat("%U * %U\n", expected, signature));
        Py_XDECREF(signature);
    }
    if (given != NULL && expected != NULL) {
        PyErr_Format(
            PyExc_TypeError,
            "%U() received an invalid combination of arguments - got (%U), but expected one "
            "of:\n%U",
            set->name, given, expected);
    }
    Py_XDECREF(given);
    Py_XDECREF(expected);
    return NULL;
}
