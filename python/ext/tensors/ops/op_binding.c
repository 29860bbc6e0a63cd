/* SPDX-License-Identifier: Apache-2.0
 *
 * Function objects for the op table: torch.add, Tensor.add, _C.ops.add. A new row is here without
 * more code; a user's op, when it is first asked for.
 */
#include "tensors/ops/op_binding.h"

#include "tensors/device/device_parts.h"
#include "tensors/ops/override.h"

#include <string.h>
#include <structmember.h>

/* ---- calls ---- */

/* As torch's messages call them. */
static const char *type_word(const mt_tensor *tensor)
{
    static const char *const words[MT_DTYPE_COUNT] = {
        [MT_DTYPE_BOOL] = "Bool",
        [MT_DTYPE_U8] = "Byte",
        [MT_DTYPE_I32] = "Int",
        [MT_DTYPE_I64] = "Long",
        [MT_DTYPE_F16] = "Half",
        [MT_DTYPE_BF16] = "BFloat16",
        [MT_DTYPE_F32] = "Float",
        [MT_DTYPE_F64] = "Double",
        [MT_DTYPE_I8] = "Char",
        [MT_DTYPE_I16] = "Short",
        [MT_DTYPE_U16] = "UInt16",
        [MT_DTYPE_U32] = "UInt32",
        [MT_DTYPE_U64] = "UInt64",
        [MT_DTYPE_C64] = "ComplexFloat",
        [MT_DTYPE_C128] = "ComplexDouble",
    };
    return words[mt_tensor_dtype(tensor)];
}

static PyObject *shape_list(const mt_tensor *tensor)
{
    PyObject *size = size_from_ints(mt_tensor_sizes(tensor), mt_tensor_n_dims(tensor));
    PyObject *list = size == NULL ? NULL : PySequence_List(size);
    Py_XDECREF(size);
    return list;
}

/* A tensor of another shape takes the result over; torch warns where elements are lost. */
static PyObject *resize_out(mt_tensor *from, PyObject *out)
{
    mt_tensor *to = tensor_of(out);
    if (mt_tensor_numel(to) > 0) {
        PyObject *had = shape_list(to), *needed = had == NULL ? NULL : shape_list(from);
        int status =
            needed == NULL
                ? -1
                : PyErr_WarnFormat(PyExc_UserWarning, 1,
                                   "An output with one or more elements was resized since it "
                                   "had shape %R, which does not match the required output "
                                   "shape %R.",
                                   had, needed);
        Py_XDECREF(had);
        Py_XDECREF(needed);
        if (status != 0) {
            return NULL;
        }
    }
    mt_value args[3] = {value_tensor(from), value_dtype(mt_tensor_dtype(to)),
                        value_device(mt_tensor_device(to))};
    PyObject *converted = tensors_call_named("to", args, 3);
    int status = converted == NULL ? MT_OK : mt_tensor_set_data(to, tensor_of(converted));
    if (converted == NULL || status != MT_OK) {
        Py_XDECREF(converted);
        return status != MT_OK ? tensors_raise(status) : NULL;
    }
    Py_DECREF(converted);
    return Py_NewRef(out);
}

/* Factories whose numbers are converted to the type of `out`, whatever that is. */
static bool follows_out(const op_set *set)
{
    return PyUnicode_CompareWithASCIIString(set->name, "eye") == 0 ||
           PyUnicode_CompareWithASCIIString(set->name, "full") == 0;
}

/* The result goes into a tensor that the caller gave. */
static PyObject *write_out(const op_set *set, PyObject *result, PyObject *out)
{
    if (!tensor_check(result)) {
        return PyErr_Format(PyExc_NotImplementedError, "%U(): out= is not implemented", set->name);
    }
    mt_tensor *from = tensor_of(result), *to = tensor_of(out);
    if (mt_grad_enabled() && (mt_tensor_requires_grad(from) || mt_tensor_requires_grad(to))) {
        return PyErr_Format(PyExc_RuntimeError,
                            "%U(): functions with out=... arguments don't support automatic "
                            "differentiation, but one of the arguments requires grad.",
                            set->name);
    }
    if (!follows_out(set) &&
        mt_dtype_category(mt_tensor_dtype(from)) > mt_dtype_category(mt_tensor_dtype(to))) {
        return PyErr_Format(PyExc_RuntimeError,
                            "result type %s can't be cast to the desired output type %s",
                            type_word(from), type_word(to));
    }
    /* Only factories follow `out` to its device. */
    if (mt_tensor_device(from) != mt_tensor_device(to) &&
        (set->is_method || mt_tensor_device(from) != MT_CPU)) {
        return PyErr_Format(PyExc_RuntimeError,
                            "%U(): Expected out tensor to have device %s, but got %s instead",
                            set->name, mt_device_name(mt_tensor_device(from)),
                            mt_device_name(mt_tensor_device(to)));
    }
    uint32_t n_dims = mt_tensor_n_dims(from);
    if (n_dims != mt_tensor_n_dims(to) ||
        memcmp(mt_tensor_sizes(from), mt_tensor_sizes(to), n_dims * sizeof(int64_t)) != 0) {
        return resize_out(from, out);
    }
    mt_value args[2] = {value_tensor(to), value_tensor(from)};
    return tensors_call_named("copy_", args, 2);
}

static PyObject *finish(const op_set *set, PyObject *result, const op_extras *extras)
{
    if (extras->format != FORMAT_PRESERVE && tensor_check(result)) {
        result = tensor_take_format(result, extras->format);
        if (result == NULL) {
            return NULL;
        }
    }
    if (extras->pin_memory && tensor_check(result)) {
        mt_tensor *pinned = tensor_pin_made(mt_tensor_retain(tensor_of(result)));
        Py_SETREF(result, pinned == NULL ? NULL : tensor_wrap(pinned));
        if (result == NULL) {
            return NULL;
        }
    }
    if (extras->requires_grad && tensor_check(result) &&
        tensor_require_grad(tensor_of(result)) != 0) {
        Py_DECREF(result);
        return NULL;
    }
    if (extras->out != NULL) {
        Py_SETREF(result, write_out(set, result, extras->out));
    }
    return result;
}

static PyObject *call_bound(const op_set *set, const op_overload *overload, const mt_value *values,
                            const op_extras *extras)
{
    mt_value results[MT_MAX_RESULTS];
    int status =
        tensors_call(overload->op, values, overload->n_params, results, overload->n_results);
    PyObject *result = status != 0 ? NULL : op_results(overload, results);
    if (result != NULL && (extras->requires_grad || extras->pin_memory || extras->out != NULL ||
                           extras->format != FORMAT_PRESERVE)) {
        return finish(set, result, extras);
    }
    return result;
}

/* Functions by the name of an op, see _forms.py: they take what no row takes. NULL: none yet. */
static PyObject *forms;

static PyObject *other_form(const op_set *set, const op_call *call, const op_failure *failure)
{
    PyObject *form = forms == NULL ? NULL : PyDict_GetItemWithError(forms, set->name);
    if (form == NULL) {
        return PyErr_Occurred() ? NULL : op_refuse(set, call, failure);
    }
    PyObject *held = Py_NewRef(form);
    PyObject *result = PyObject_Vectorcall(held, call->args, (size_t)call->n_args, call->kwnames);
    Py_DECREF(held);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* its own parameters do not fit either */
        return op_refuse(set, call, failure);
    }
    if (result != Py_NotImplemented) {
        return result;
    }
    Py_DECREF(result);
    return op_refuse(set, call, failure);
}

/* Whether an argument answers the call itself (OV1, OV2). */
static bool is_overridden(PyObject *self, const op_call *call, PyObject **result)
{
    override_given given = {
        .function = self, .args = call->args, .n_args = call->n_args, .kwnames = call->kwnames};
    return override_call(&given, result);
}

/* Arguments were refused by an exception: a list with something that is no tensor. */
static PyObject *overridden_instead(PyObject *self, const op_call *call)
{
    PyObject *type, *value, *trace, *answer = NULL;
    PyErr_Fetch(&type, &value, &trace);
    bool is_type_error = PyErr_GivenExceptionMatches(type, PyExc_TypeError) != 0;
    if (!is_type_error || !is_overridden(self, call, &answer)) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return answer;
}

static PyObject *op_invoke(PyObject *self, const op_call *call)
{
    const op_set *set = ((op_object *)self)->set;
    PyObject *answer = NULL;
    if (override_asked() && is_overridden(self, call, &answer)) {
        return answer;
    }
    mt_value values[MT_MAX_PARAMS];
    op_scratch scratch;
    op_failure failure = {.misfit = MISFIT_TYPE};
    op_failure begun = failure;
    for (uint32_t i = 0; i < set->count; i++) {
        op_extras extras = {.format = FORMAT_PRESERVE};
        op_scratch_init(&scratch);
        int fits = op_bind(set->overloads[i], call, values, &scratch, &extras, &failure);
        PyObject *result = fits > 0 ? call_bound(set, set->overloads[i], values, &extras) : NULL;
        op_scratch_clear(&scratch);
        if (fits != 0) {
            return fits > 0 || override_asked() ? result : overridden_instead(self, call);
        }
        if (failure.misfit == MISFIT_ITEM) { /* a list of sizes began: this overload is meant */
            begun = failure;
        }
    }
    if (is_overridden(self, call, &answer)) {
        return answer;
    }
    return other_form(set, call, begun.misfit == MISFIT_ITEM ? &begun : &failure);
}

static PyObject *set_forms(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (!PyDict_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "_set_forms() needs a dict");
        return NULL;
    }
    Py_XSETREF(forms, Py_NewRef(object));
    Py_RETURN_NONE;
}

static PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    op_call call = {
        .args = args, .n_args = PyVectorcall_NARGS(nargsf), .kwnames = kwnames, .method = false};
    return op_invoke(self, &call);
}

static PyObject *method_call(PyObject *self, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames)
{
    op_call call = {
        .args = args, .n_args = PyVectorcall_NARGS(nargsf), .kwnames = kwnames, .method = true};
    const op_set *set = ((op_object *)self)->set;
    if (call.n_args == 0) {
        return PyErr_Format(PyExc_TypeError, "unbound method Tensor.%U() needs an argument",
                            set->name);
    }
    if (!tensor_check(args[0])) {
        return PyErr_Format(PyExc_TypeError,
                            "descriptor '%U' for 'Tensor' objects doesn't apply to a '%s' object",
                            set->name, Py_TYPE(args[0])->tp_name);
    }
    return op_invoke(self, &call);
}

/* ---- the objects ---- */

static PyObject *op_repr(PyObject *self)
{
    const op_object *op = (op_object *)self;
    return PyUnicode_FromFormat(op->method ? "<method '%U' of 'mindtorch_v2.Tensor' objects>"
                                           : "<built-in function %U>",
                                op->set->name);
}

static PyObject *op_name(PyObject *self, void *Py_UNUSED(context))
{
    return Py_NewRef(((op_object *)self)->set->name);
}

static PyObject *op_qualname(PyObject *self, void *Py_UNUSED(context))
{
    const op_object *op = (op_object *)self;
    return PyUnicode_FromFormat(op->method ? "Tensor.%U" : "%U", op->set->name);
}

/* Python makes texts and signatures from the schemas, on demand, by a function of _signatures. */
static PyObject *from_schemas(PyObject *self, void *function)
{
    const op_object *op = (op_object *)self;
    PyObject *module = PyImport_ImportModule("mindtorch_v2._signatures");
    bool makes = op->set->count > 0 && op->set->overloads[0]->makes;
    PyObject *made =
        module == NULL
            ? NULL
            : PyObject_CallMethod(module, function, "OOOO", op->set->name, op->set->doc,
                                  op->method ? Py_True : Py_False, makes ? Py_True : Py_False);
    Py_XDECREF(module);
    return made;
}

/* Functions are pickled, and copied, by name. */
static PyObject *op_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const op_object *op = (op_object *)self;
    if (op->method) {
        PyObject *get = PyObject_GetAttrString(PyEval_GetBuiltins(), "get");
        PyObject *getattr = get == NULL ? NULL : PyObject_CallFunction(get, "s", "getattr");
        Py_XDECREF(get);
        return getattr == NULL ? NULL
                               : Py_BuildValue("N(OO)", getattr, (PyObject *)tensors.tensor_type,
                                               op->set->name);
    }
    return Py_NewRef(op->set->name);
}

static PyObject *method_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyGetSetDef properties[] = {
    {"__name__", op_name, NULL, NULL, NULL},
    {"__qualname__", op_qualname, NULL, NULL, NULL},
    {"__doc__", from_schemas, NULL, NULL, (char[]){"document"}},
    {"__signature__", from_schemas, NULL, NULL, (char[]){"signature"}},
    {"_overloads", from_schemas, NULL, "Its rows, see _signatures.Overload.",
     (char[]){"overloads"}},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", op_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(op_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_repr, op_repr},    {Py_tp_getset, properties},
    {Py_tp_methods, methods},        {Py_tp_members, members}, {0, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_repr, op_repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_descr_get, method_get},
    {0, NULL},
};

enum {
    OP_TYPE_FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                    Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL
};

static PyType_Spec function_spec = {
    .name = "mindtorch_v2.op",
    .basicsize = sizeof(op_object),
    .flags = OP_TYPE_FLAGS,
    .slots = function_slots,
};

static PyType_Spec method_spec = {
    .name = "mindtorch_v2.op_method",
    .basicsize = sizeof(op_object),
    .flags = OP_TYPE_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = method_slots,
};

PyObject *op_object_new(op_set *set, bool method)
{
    op_object *self = PyObject_New(op_object, method ? tensors.method_type : tensors.op_type);
    if (self != NULL) {
        self->call = method ? method_call : function_call;
        self->set = set;
        self->method = method;
    }
    return (PyObject *)self;
}

static PyMethodDef functions[] = {
    {"_set_forms", set_forms, METH_O, "Functions that take arguments which fit no row of an op."},
    {NULL, NULL, 0, NULL},
};

py_part op_binding_start;
int op_binding_start(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) != 0) {
        return -1;
    }
    if (py_add_type(module, &function_spec, NULL, "_op_function", &tensors.op_type) != 0 ||
        py_add_type(module, &method_spec, NULL, "_op_method", &tensors.method_type) != 0) {
        return -1;
    }
    return op_table_start(module);
}
