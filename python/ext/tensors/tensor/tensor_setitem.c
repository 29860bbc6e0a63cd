/* SPDX-License-Identifier: Apache-2.0
 *
 * x[key] = value: a value as a tensor, then fill_ or copy_ on a view, or index_put_.
 */
#include "tensors/data/data_parts.h"
#include "tensors/data/element_codec.h"
#include "tensors/ops/override.h"
#include "tensors/tensor/index_parts.h"

/* ---- the value ------------------------------------------------------------------------------- */

static bool is_number(PyObject *value)
{
    return PyFloat_Check(value) || PyLong_Check(value) || data_is_array_scalar(value);
}

/* A number becomes an element of the tensor's type, as torch shows by lift_fresh: on the host, from
 * where it reaches an accelerator as an argument. */
static mt_tensor *number_tensor(PyObject *value, const mt_tensor *self)
{
    mt_scalar number = mt_int(0);
    mt_dtype dtype = mt_tensor_dtype(self);
    uint64_t place[2] = {0, 0}; /* of the largest type */
    mt_tensor *tensor = NULL;
    if (scalar_from_object(value, &number) != 0 || element_store(place, dtype, &number) != 0) {
        return NULL;
    }
    if (zero_or_raise(mt_tensor_from_data(place, dtype, NULL, 0, MT_CPU, &tensor)) != 0) {
        return NULL;
    }
    return data_pass(tensor, DATA_LIFT_FRESH);
}

static mt_tensor *assigned_tensor(PyObject *value, const mt_tensor *self)
{
    if (tensor_check(value)) {
        return mt_tensor_retain(tensor_of(value));
    }
    if (is_number(value)) {
        return number_tensor(value, self);
    }
    if (PyComplex_Check(value) && mt_dtype_category(mt_tensor_dtype(self)) == MT_CATEGORY_COMPLEX) {
        mt_tensor *tensor = NULL;
        Py_complex parts = PyComplex_AsCComplex(value);
        return zero_or_raise(mt_tensor_from_complex(parts.real, parts.imag, &tensor)) != 0 ? NULL
                                                                                           : tensor;
    }
    if (PyComplex_Check(value)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "value cannot be converted to type float without overflow");
        return NULL;
    }
    PyErr_Format(PyExc_TypeError, "can't assign a %.100s to a %s", Py_TYPE(value)->tp_name,
                 element_type_title(mt_tensor_dtype(self)));
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int call_put(const char *name, mt_op *op, const mt_value *args, uint32_t n_args)
{
    if (*op == UINT32_MAX && tensors_find_op(name, op) != 0) {
        return -1;
    }
    mt_value result = {.kind = MT_KIND_NONE};
    if (tensors_call(*op, args, n_args, &result, 1) != 0) {
        return -1;
    }
    mt_value_clear(&result);
    return 0;
}

/* The value without the dimensions of one element in front: a new reference, a view where `always`
 * or where there are any. */
static mt_tensor *without_ones(mt_tensor *value, bool always)
{
    const int64_t *sizes = mt_tensor_sizes(value);
    uint32_t n_dims = mt_tensor_n_dims(value);
    uint32_t ones = 0;
    while (ones < n_dims && sizes[ones] == 1) {
        ones++;
    }
    if (ones == 0 && !always) {
        return mt_tensor_retain(value);
    }
    mt_tensor *view = NULL;
    (void)zero_or_raise(mt_view(value, sizes + ones, n_dims - ones, &view));
    return view;
}

static int copy_same(mt_tensor *target, mt_tensor *value)
{
    static mt_op op = UINT32_MAX;
    mt_value args[2] = {{.kind = MT_KIND_TENSOR, .of.tensor = target},
                        {.kind = MT_KIND_TENSOR, .of.tensor = value}};
    return call_put("copy_", &op, args, 2);
}

static int copy_expanded(mt_tensor *target, mt_tensor *value)
{
    mt_tensor *view = without_ones(value, true);
    if (view == NULL) {
        return -1;
    }
    if (!tensor_same_sizes(target, view)) {
        mt_tensor *wide = NULL;
        int status = mt_expand(view, mt_tensor_sizes(target), mt_tensor_n_dims(target), &wide);
        mt_tensor_release(view);
        if (zero_or_raise(status) != 0) {
            return -1;
        }
        view = wide;
    }
    int failed = copy_same(target, view);
    mt_tensor_release(view);
    return failed;
}

static int write_view(mt_tensor *target, mt_tensor *value)
{
    static mt_op fill = UINT32_MAX;
    bool far = mt_tensor_device(target) >= MT_NPU;
    bool number = mt_tensor_n_dims(value) == 0 && mt_tensor_device(value) == MT_CPU &&
                  !mt_tensor_requires_grad(value);
    if (tensor_same_sizes(target, value) && !(far && number)) {
        return copy_same(target, value);
    }
    if (mt_tensor_n_dims(value) == 0 && mt_tensor_device(value) == MT_CPU) {
        mt_value args[2] = {{.kind = MT_KIND_TENSOR, .of.tensor = target},
                            {.kind = MT_KIND_TENSOR, .of.tensor = value}};
        return call_put("fill_", &fill, args, 2);
    }
    return copy_expanded(target, value);
}

static int write_picks(index_walk *walk, mt_tensor *value)
{
    static mt_op op = UINT32_MAX;
    mt_tensor *values = without_ones(value, false);
    if (values == NULL) {
        return -1;
    }
    mt_value args[4] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = walk->tensor},
        {.kind = MT_KIND_TENSORS, .count = walk->n_picks, .of.tensors = walk->picks},
        {.kind = MT_KIND_TENSOR, .of.tensor = values},
        mt_bool(false),
    };
    int failed = call_put("index_put_", &op, args, 4);
    mt_tensor_release(values);
    return failed;
}

/* x[True] = v writes all of it without picking, x[False] = v nothing. */
static int write_truth(mt_tensor *self, bool truth, mt_tensor *value)
{
    if (!truth) {
        return 0;
    }
    mt_tensor *view = NULL;
    if (zero_or_raise(mt_unsqueeze(self, 0, &view)) != 0) {
        return -1;
    }
    int failed = write_view(view, value);
    mt_tensor_release(view);
    return failed;
}

static int assign(mt_tensor *self, PyObject *key, mt_tensor *value)
{
    if (PyBool_Check(key)) {
        return write_truth(self, key == Py_True, value);
    }
    index_walk walk;
    if (index_walk_init(&walk, self, key, true) != 0) {
        return -1;
    }
    int failed = walk.n_picks > 0 ? write_picks(&walk, value) : write_view(walk.tensor, value);
    index_walk_clear(&walk);
    return failed;
}

int tensor_setitem(PyObject *self, PyObject *key, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    PyObject *args[] = {self, key, value}, *answer = NULL;
    if (override_asked() && override_method("__setitem__", args, 3, &answer)) {
        Py_XDECREF(answer);
        return answer == NULL ? -1 : 0;
    }
    mt_tensor *source = assigned_tensor(value, tensor_of(self));
    if (source == NULL) {
        return -1;
    }
    int failed = assign(tensor_of(self), key, source);
    mt_tensor_release(source);
    return failed;
}
