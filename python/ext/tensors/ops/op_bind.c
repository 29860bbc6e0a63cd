/* SPDX-License-Identifier: Apache-2.0
 *
 * A call's positions and keywords onto the parameters of an overload.
 */
#include "tensors/device/device_parts.h"
#include "tensors/ops/op_binding.h"

#include <string.h>

static bool same_name(PyObject *a, PyObject *b)
{
    return a == b || (b != NULL && PyUnicode_Compare(a, b) == 0);
}

static int misfit(op_failure *failure, op_misfit why, PyObject *got)
{
    failure->misfit = why;
    failure->got = got;
    return 0;
}

static int misfit_type(op_failure *failure, const op_param *param, PyObject *got,
                       Py_ssize_t position)
{
    failure->param = param;
    failure->position = position;
    return misfit(failure, MISFIT_TYPE, got);
}

/* zeros(2, 3), x.view(2, -1): sizes as single arguments, if one list of ints is the only
 * parameter. */
static int bind_sizes(const op_param *param, const op_call *call, Py_ssize_t from, mt_value *value,
                      op_scratch *scratch, op_failure *failure)
{
    Py_ssize_t count = call->n_args - from;
    int64_t *ints = op_scratch_take(scratch, (size_t)count);
    if (ints == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = call->args[from + i];
        int is_int = int_try(item, &ints[i]);
        if (is_int == 0) {
            misfit_type(failure, param, item, i + 1);
            failure->misfit = i == 0 ? MISFIT_TYPE : MISFIT_ITEM;
        }
        if (is_int <= 0) {
            return is_int;
        }
    }
    *value = (mt_value){.kind = MT_KIND_INTS, .count = (uint32_t)count, .of.ints = ints};
    return 1;
}

/* Whether all positions from `from` on are one list of sizes. */
static bool is_sizes(const op_overload *overload, const op_call *call, uint32_t from)
{
    const op_param *param = &overload->params[overload->first + from];
    if (overload->n_positional != from + 1 || param->type != OP_INTS || call->n_args <= from) {
        return false;
    }
    PyObject *first = call->args[from];
    return !PyTuple_Check(first) && !PyList_Check(first) &&
           (first != Py_None || !param->optional) && (from == 0 || call->method) &&
           (param->spread == 0 || call->n_args > from + 1);
}

static int bind_positions(const op_overload *overload, const op_call *call, mt_value *values,
                          op_scratch *scratch, op_failure *failure)
{
    uint32_t sizes_at = call->method ? 1 : 0;
    bool sizes = is_sizes(overload, call, sizes_at);
    Py_ssize_t count = sizes ? (Py_ssize_t)sizes_at : call->n_args;
    if (count > overload->n_positional) {
        failure->position = call->n_args;
        return misfit(failure, MISFIT_MANY, NULL);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        uint32_t at = overload->first + (uint32_t)i;
        int fits = op_argument(&overload->params[at], call->args[i], &values[at], scratch);
        if (fits == 0) {
            return misfit_type(failure, &overload->params[at], call->args[i],
                               i + 1 - (call->method ? 1 : 0));
        }
        if (fits < 0) {
            return -1;
        }
    }
    if (!sizes) {
        return 1;
    }
    uint32_t at = overload->first + sizes_at;
    return bind_sizes(&overload->params[at], call, sizes_at, &values[at], scratch, failure);
}

/* Keywords that are no parameters but ask for the default, or for something done after the op. */
static int bind_extra(const op_overload *overload, PyObject *name, PyObject *object,
                      op_extras *extras, op_failure *failure)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL) {
        return -1;
    }
    failure->extra = text;
    if (strcmp(text, "out") == 0) {
        if (object != Py_None && !tensor_check(object)) {
            failure->wanted = "Tensor";
            return misfit(failure, MISFIT_EXTRA, object);
        }
        extras->out = object == Py_None ? NULL : object;
        return 1;
    }
    if (strcmp(text, "memory_format") == 0) {
        op_param format = {.format = true, .type = OP_INT, .optional = true};
        mt_value value;
        int fits = Py_IS_TYPE(object, tensors.format_type) || object == Py_None
                       ? op_argument(&format, object, &value, NULL)
                       : 0;
        failure->wanted = "torch.memory_format";
        extras->format = fits > 0 && object != Py_None ? (int)value.of.integer : FORMAT_PRESERVE;
        return fits == 0 ? misfit(failure, MISFIT_EXTRA, object) : fits;
    }
    if (!overload->makes) {
        return misfit(failure, MISFIT_UNKNOWN, name);
    }
    if (strcmp(text, "layout") == 0) {
        failure->wanted = "torch.layout";
        return object == Py_None || object == tensors.strided
                   ? 1
                   : misfit(failure, MISFIT_EXTRA, object);
    }
    if (strcmp(text, "requires_grad") != 0 && strcmp(text, "pin_memory") != 0) {
        return misfit(failure, MISFIT_UNKNOWN, name);
    }
    if (!PyBool_Check(object) && object != Py_None) {
        failure->wanted = "bool";
        return misfit(failure, MISFIT_EXTRA, object);
    }
    if (text[0] == 'r') {
        extras->requires_grad = object == Py_True;
    } else {
        extras->pin_memory = object == Py_True;
    }
    return 1;
}

static int find_keyword(const op_overload *overload, PyObject *name)
{
    for (int i = overload->first; i < overload->n_params; i++) {
        if (overload->params[i].name == name) { /* interned, nearly always */
            return i;
        }
    }
    for (int i = overload->first; i < overload->n_params; i++) {
        if (same_name(name, overload->params[i].name) ||
            same_name(name, overload->params[i].other)) {
            return i;
        }
    }
    return -1;
}

static int bind_keywords(const op_overload *overload, const op_call *call, mt_value *values,
                         uint32_t *given, op_scratch *scratch, op_extras *extras,
                         op_failure *failure)
{
    Py_ssize_t count = PyTuple_GET_SIZE(call->kwnames);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *name = PyTuple_GET_ITEM(call->kwnames, k);
        PyObject *object = call->args[call->n_args + k];
        int at = find_keyword(overload, name);
        if (at < 0) {
            int fits = bind_extra(overload, name, object, extras, failure);
            if (fits <= 0) {
                return fits;
            }
            continue;
        }
        if ((*given >> at & 1) != 0) {
            /* "self" of a method has no name that a caller could know, and one name is enough. */
            bool hidden = (call->method && at == 0) || !same_name(name, overload->params[at].name);
            return misfit(failure, hidden ? MISFIT_UNKNOWN : MISFIT_TWICE, name);
        }
        int fits = op_argument(&overload->params[at], object, &values[at], scratch);
        if (fits == 0) {
            return misfit_type(failure, &overload->params[at], object, 0);
        }
        if (fits < 0) {
            return -1;
        }
        *given |= 1U << at;
    }
    return 1;
}

int op_bind(const op_overload *overload, const op_call *call, mt_value *values, op_scratch *scratch,
            op_extras *extras, op_failure *failure)
{
    for (int i = 0; i < overload->n_params; i++) {
        values[i] = overload->params[i].value;
    }
    int fits = bind_positions(overload, call, values, scratch, failure);
    if (fits <= 0) {
        return fits;
    }
    uint32_t n_bound =
        (uint32_t)(call->n_args < overload->n_positional ? call->n_args : overload->n_positional);
    uint32_t given = (1U << (overload->first + n_bound)) - 1;
    if (call->kwnames != NULL) {
        fits = bind_keywords(overload, call, values, &given, scratch, extras, failure);
        if (fits <= 0) {
            return fits;
        }
    }
    if ((overload->required & ~given) != 0) {
        failure->missing = overload->required & ~given;
        return misfit(failure, MISFIT_MISSING, NULL);
    }
    if (overload->device_at >= 0 && values[overload->device_at].kind == MT_KIND_NONE &&
        !extras->pin_memory) {
        values[overload->device_at] = value_device(device_default());
    }
    return 1;
}
