/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table read once: rows become overloads, overloads of a name a set, sets function objects
 * in the module `ops` and, where the first parameter is "self", methods of Tensor.
 */
#include "tensors/ops/op_binding.h"

#include <string.h>

static op_set **sets; /* all of them, in the table's order */
static uint32_t n_sets;
static uint32_t n_room;
static uint32_t n_rows; /* rows that were read */
static PyObject *ops;   /* the module with functions by name */

static op_set *find_set(const char *name)
{
    for (uint32_t i = 0; i < n_sets; i++) {
        if (PyUnicode_CompareWithASCIIString(sets[i]->name, name) == 0) {
            return sets[i];
        }
    }
    return NULL;
}

static op_set *get_set(const char *name)
{
    op_set *set = find_set(name);
    if (set != NULL) {
        return set;
    }
    if (n_sets == n_room) {
        uint32_t room = n_room == 0 ? 512 : 2 * n_room;
        op_set **more = PyMem_Realloc(sets, room * sizeof(op_set *));
        if (more == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        sets = more;
        n_room = room;
    }
    set = PyMem_Calloc(1, sizeof(op_set));
    if (set == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    set->name = PyUnicode_InternFromString(name);
    set->doc = PyUnicode_FromString("");
    if (set->name == NULL || set->doc == NULL) {
        Py_XDECREF(set->name);
        Py_XDECREF(set->doc);
        PyMem_Free(set);
        return NULL;
    }
    sets[n_sets++] = set;
    return set;
}

static uint8_t type_of(const char *text)
{
    static const char *const texts[OP_TYPE_COUNT] = {
        [OP_TENSOR] = "Tensor",       [OP_TENSOR_OR_SCALAR] = "Tensor|Scalar",
        [OP_TENSORS] = "Tensor[]",    [OP_OPTIONAL_TENSORS] = "Tensor?[]",
        [OP_SCALAR] = "Scalar",       [OP_INT] = "int",
        [OP_INTS] = "int[]",          [OP_FLOAT] = "float",
        [OP_BOOL] = "bool",           [OP_TEXT] = "str",
        [OP_DTYPE] = "dtype",         [OP_DEVICE] = "device",
        [OP_GENERATOR] = "Generator",
    };
    uint8_t type = 0;
    while (type < OP_TYPE_COUNT && strcmp(texts[type], text) != 0) {
        type++;
    }
    return type;
}

/* How many ints a single one is expanded to: torch's lists of fixed length. Shapes and orders of
 * dimensions have none, except roll's. */
static uint8_t spread_of(const char *op, const char *param)
{
    static const char *const shapes[] = {
        "size",        "shape",       "dims",        "sizes", "repeats", "normalized_shape",
        "split_sizes", "input_sizes", "output_mask", "pad"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i], param) == 0 && strcmp(op, "roll") != 0) {
            return 0;
        }
    }
    if (strcmp(op, "as_strided") == 0) {
        return 0;
    }
    /* conv2d, max_pool2d_with_indices: two for an image, and one for all else. */
    return strstr(op, "2d") != NULL && strcmp(param, "dim") != 0 ? 2 : 1;
}

/* NumPy's names, which torch accepts. */
static const char *other_name(const char *name)
{
    static const char *const names[][2] = {
        {"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"}, {"other", "x2"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], name) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

static int read_param(mt_op op, uint32_t index, const char *op_name, op_param *param)
{
    mt_op_param told = {.struct_size = sizeof told};
    if (zero_or_raise(mt_op_get_param(op, index, &told)) != 0) {
        return -1;
    }
    const char *name = strcmp(told.name, "self") == 0 ? "input" : told.name;
    const char *other = other_name(name);
    *param = (op_param){
        .name = PyUnicode_InternFromString(name),
        .other = other == NULL ? NULL : PyUnicode_InternFromString(other),
        .type = type_of(told.type),
        .optional = told.optional,
        .keyword_only = told.keyword_only,
        .has_default = told.has_default,
        .format = strcmp(name, "memory_format") == 0,
        .value = told.has_default ? told.value : value_none(),
    };
    if (param->type == OP_INTS) {
        param->spread = spread_of(op_name, name);
    }
    if (param->type == OP_TYPE_COUNT) {
        PyErr_Format(PyExc_SystemError, "%s(): parameter %s has the unknown type %s", op_name, name,
                     told.type);
        return -1;
    }
    return param->name == NULL || PyErr_Occurred() ? -1 : 0;
}

static op_overload *read_row(mt_op op, const mt_op_info *info)
{
    op_overload *overload = PyMem_Calloc(1, sizeof(op_overload));
    if (overload == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    overload->op = op;
    overload->flags = info->flags;
    overload->n_params = (uint8_t)info->n_params;
    overload->n_results = (uint8_t)info->n_results;
    overload->makes = (info->flags & (MT_OP_FACTORY | MT_OP_LIKE)) != 0;
    overload->device_at = -1;
    for (uint32_t i = 0; i < info->n_params; i++) {
        op_param *param = &overload->params[i];
        if (read_param(op, i, info->name, param) != 0) {
            PyMem_Free(overload);
            return NULL;
        }
        overload->n_positional = (uint8_t)(overload->n_positional + !param->keyword_only);
        if (param->type == OP_DEVICE && (info->flags & MT_OP_FACTORY) != 0) {
            overload->device_at = (int8_t)i;
        }
        overload->required = (uint16_t)(overload->required | (!param->has_default << i));
    }
    if (info->n_results > 1 &&
        op_result_type(info->name, op, info->n_results, &overload->results) != 0) {
        PyMem_Free(overload);
        return NULL;
    }
    return overload;
}

/* `at`: where to insert it, at most after the last one. */
static int add_overload(op_set *set, op_overload *overload, const char *schema, uint32_t at)
{
    if (set->count == OP_MAX_OVERLOADS) {
        PyErr_Format(PyExc_SystemError, "%U() has more than %d overloads", set->name,
                     OP_MAX_OVERLOADS);
        return -1;
    }
    at = at < set->count ? at : set->count;
    memmove(&set->overloads[at + 1], &set->overloads[at],
            (set->count - at) * sizeof set->overloads[0]);
    set->overloads[at] = overload;
    set->count++;
    Py_SETREF(set->doc,
              PyUnicode_FromFormat("%U%s%s", set->doc,
                                   PyUnicode_GET_LENGTH(set->doc) == 0 ? "" : "\n", schema));
    return set->doc == NULL ? -1 : 0;
}

static bool takes_self(const op_overload *overload, const char *schema)
{
    const char *first = strchr(schema, '(');
    return overload->params[0].type <= OP_TENSOR_OR_SCALAR && first != NULL &&
           (strncmp(first, "(Tensor self", 12) == 0 ||
            strncmp(first, "(Tensor|Scalar self", 19) == 0);
}

/* A tensor in place of a number is looked at first, so that it is not read: clamp(min=Tensor), and
 * max(Tensor other) after max() and before max(int dim). */
static uint32_t place_of(const char *overload)
{
    return strcmp(overload, "Tensor") == 0 ? 0 : strcmp(overload, "other") == 0 ? 1 : UINT32_MAX;
}

static int read_rows(void)
{
    uint32_t count = mt_op_count();
    for (; n_rows < count; n_rows++) {
        mt_op_info info = {.struct_size = sizeof info};
        if (zero_or_raise(mt_op_get_info(n_rows, &info)) != 0) {
            return -1;
        }
        bool user = (info.flags & MT_OP_USER) != 0;
        op_overload *overload = read_row(n_rows, &info);
        op_set *set = overload == NULL ? NULL : get_set(user ? info.trace_name : info.name);
        if (set == NULL || add_overload(set, overload, info.schema, place_of(info.overload)) != 0) {
            return -1;
        }
        set->is_method = set->is_method || (!user && takes_self(overload, info.schema));
    }
    return 0;
}

/* A schema without its first parameters. */
static PyObject *schema_without(const char *schema, uint8_t n)
{
    const char *open = strchr(schema, '(');
    const char *rest = open == NULL ? NULL : open + 1;
    for (uint8_t i = 0; i < n && rest != NULL; i++) {
        rest = strstr(rest, ", ");
        rest = rest == NULL ? NULL : rest + 2;
    }
    if (rest == NULL) {
        return PyUnicode_FromString(schema);
    }
    PyObject *name = PyUnicode_FromStringAndSize(schema, open + 1 - schema);
    PyObject *whole = name == NULL ? NULL : PyUnicode_FromFormat("%U%s", name, rest);
    Py_XDECREF(name);
    return whole;
}

/* torch's other names: op_aliases.def. */
static int add_alias(const char *name, const char *row, uint8_t fixed, bool beside)
{
    if (!beside && find_set(name) != NULL) {
        return 0;
    }
    const op_set *from = find_set(row);
    op_set *to = from == NULL ? NULL : get_set(name);
    if (to == NULL) {
        return from == NULL ? 0 : -1; /* a row that was removed has no aliases */
    }
    uint32_t count = from->count;
    to->is_method = to->is_method || from->is_method;
    for (uint32_t i = 0; i < count; i++) {
        op_overload *overload = from->overloads[i];
        if (fixed > 0) {
            overload = PyMem_Malloc(sizeof *overload);
            if (overload == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            *overload = *from->overloads[i];
            overload->first = fixed;
            overload->n_positional = (uint8_t)(overload->n_positional - fixed);
            for (uint8_t k = 0; k < fixed; k++) {
                overload->params[k].value = mt_int(0);
                overload->params[k].has_default = true;
                overload->required = (uint16_t)(overload->required & ~(1U << k));
            }
        }
        const char *schema = PyUnicode_AsUTF8(from->doc);
        PyObject *shorter = schema == NULL ? NULL : schema_without(schema, fixed);
        int status = shorter == NULL
                         ? -1
                         : add_overload(to, overload, PyUnicode_AsUTF8(shorter), UINT32_MAX);
        Py_XDECREF(shorter);
        if (status != 0) {
            return -1;
        }
    }
    return 0;
}

static int add_aliases(void)
{
    static const struct {
        const char *name;
        const char *row;
        uint8_t fixed;
        bool beside;
    } aliases[] = {
#define X(name, row, fixed, beside) {name, row, fixed, beside},
#include "tensors/ops/op_aliases.def"
#undef X
    };
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (add_alias(aliases[i].name, aliases[i].row, aliases[i].fixed, aliases[i].beside) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Functions of the sets from `from` on, and methods for those that begin with "self". */
static int publish(uint32_t from)
{
    PyObject *dict = PyModule_GetDict(ops);
    for (uint32_t i = from; i < n_sets; i++) {
        PyObject *function = op_object_new(sets[i], false);
        int status = function == NULL ? -1 : PyDict_SetItem(dict, sets[i]->name, function);
        Py_XDECREF(function);
        if (status != 0) {
            return -1;
        }
        /* A method written in C is not replaced. */
        int written = PyDict_Contains(tensors.tensor_type->tp_dict, sets[i]->name);
        if (written < 0) {
            return -1;
        }
        if (!sets[i]->is_method || written) {
            continue;
        }
        PyObject *method = op_object_new(sets[i], true);
        status = method == NULL
                     ? -1
                     : PyObject_SetAttr((PyObject *)tensors.tensor_type, sets[i]->name, method);
        Py_XDECREF(method);
        if (status != 0) {
            return -1;
        }
    }
    return 0;
}

/* ops.NAME that is not there: a user's op may have been registered since. */
static PyObject *ops_getattr(PyObject *module, PyObject *name)
{
    uint32_t before = n_sets;
    if (!PyUnicode_Check(name)) {
        return PyErr_Format(PyExc_TypeError, "the name of an op must be a str, not %R", name);
    }
    if (read_rows() != 0 || publish(before) != 0) {
        return NULL;
    }
    PyObject *found = PyDict_GetItemWithError(PyModule_GetDict(module), name);
    if (found == NULL && !PyErr_Occurred()) {
        PyErr_Format(PyExc_AttributeError, "mindtorch_v2 has no op '%U'", name);
    }
    return Py_XNewRef(found);
}

static PyMethodDef ops_methods[] = {
    {"__getattr__", ops_getattr, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int op_table_start(PyObject *module)
{
    ops = PyModule_New("mindtorch_v2._C.ops");
    tensors.return_types = PyDict_New();
    if (ops == NULL || tensors.return_types == NULL ||
        PyModule_AddObjectRef(module, "_return_types", tensors.return_types) != 0 ||
        PyModule_AddFunctions(ops, ops_methods) != 0 ||
        PyModule_AddObjectRef(module, "ops", ops) != 0) {
        return -1;
    }
    if (read_rows() != 0 || add_aliases() != 0) {
        return -1;
    }
    return publish(0);
}
