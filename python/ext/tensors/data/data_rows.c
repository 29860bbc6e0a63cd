/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for data in and out: rows that only profiles see, and methods that parts of
 * this extension add to torch.Tensor.
 */
#include "tensors/data/data_parts.h"

typedef int unary_row(mt_tensor *self, mt_tensor **out);

static unary_row *const rows[DATA_ROW_COUNT] = {
    [DATA_ALIAS] = mt_alias,
    [DATA_LIFT_FRESH] = mt_lift_fresh,
    [DATA_DETACH_] = mt_detach_,
    [DATA_RESOLVE_CONJ] = mt_resolve_conj,
    [DATA_RESOLVE_NEG] = mt_resolve_neg,
};

mt_tensor *data_pass(mt_tensor *tensor, data_row row)
{
    mt_tensor *out = NULL;
    int status = rows[row](tensor, &out);
    mt_tensor_release(tensor);
    (void)zero_or_raise(status);
    return out;
}

mt_tensor *data_hold(const mt_tensor *tensor)
{
    const int64_t none = 0;
    mt_tensor *alias = NULL;
    int status = mt_tensor_from_data(NULL, mt_tensor_dtype(tensor), &none, 1, MT_CPU, &alias);
    if (status == MT_OK) {
        status = mt_tensor_set_data(alias, (mt_tensor *)(uintptr_t)tensor);
    }
    if (status != MT_OK) {
        mt_tensor_release(alias);
        tensors_raise(status);
        return NULL;
    }
    return alias;
}

int data_bytes(const mt_tensor *tensor, size_t *bytes)
{
    size_t item = mt_dtype_size(mt_tensor_dtype(tensor));
    if (__builtin_mul_overflow((size_t)mt_tensor_numel(tensor), item, bytes) ||
        *bytes > PY_SSIZE_T_MAX) {
        PyErr_Format(PyExc_MemoryError, "%lld elements of %zu bytes do not fit into memory",
                     (long long)mt_tensor_numel(tensor), item);
        return -1;
    }
    return 0;
}

int data_refuse_misaligned(const void *data, mt_dtype dtype, const char *what)
{
    size_t item = mt_dtype_size(dtype);
    if (item == 0) {
        PyErr_Format(PyExc_TypeError, "%s must have a torch.dtype, not None", what);
        return -1;
    }
    if ((uintptr_t)data % item != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s is at an address that is no multiple of its element size (%zu bytes), "
                     "which is not supported: copy it first",
                     what, item);
        return -1;
    }
    return 0;
}

mt_tensor *data_to(mt_tensor *tensor, mt_dtype dtype, mt_device device, bool copy)
{
    mt_tensor *out = NULL;
    tensors_pause pause;
    bool far = device >= MT_NPU || mt_tensor_device(tensor) >= MT_NPU; /* may wait */
    bool large = far || mt_tensor_numel(tensor) > 1 << 15;
    if (large) {
        tensors_release_gil(&pause);
    }
    int status = mt_to_with(tensor, dtype, device, false, copy, &out);
    if (large) {
        tensors_take_gil(&pause);
    }
    mt_tensor_release(tensor);
    (void)zero_or_raise(status);
    return out;
}

mt_tensor *data_near(mt_tensor *tensor)
{
    return mt_tensor_device(tensor) == MT_CPU ? tensor
                                              : data_to(tensor, MT_DTYPE_NONE, MT_CPU, false);
}

int data_add_methods(PyMethodDef *methods)
{
    for (PyMethodDef *method = methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = PyDescr_NewMethod(tensors.tensor_type, method);
        if (descriptor == NULL) {
            return -1;
        }
        int failed =
            PyObject_SetAttrString((PyObject *)tensors.tensor_type, method->ml_name, descriptor);
        Py_DECREF(descriptor);
        if (failed != 0) {
            return -1;
        }
    }
    return 0;
}
