/* SPDX-License-Identifier: Apache-2.0
 *
 * What the type Tensor is put together from: tensor_type.c refers to these in its slots.
 */
#ifndef PYTHON_EXT_TENSORS_TENSOR_TENSOR_PARTS_H
#define PYTHON_EXT_TENSORS_TENSOR_TENSOR_PARTS_H

#include "tensors/module/tensors_state.h"

/* tensor_type.c */
PyObject *tensor_get_dict(PyObject *object, void *context);
int tensor_set_dict(PyObject *object, PyObject *value, void *context);
PyObject *tensor_make_subclass(PyObject *Py_UNUSED(ignored), PyObject *args, PyObject *kwargs);
PyObject *tensor_as_subclass(PyObject *self, PyObject *type);

/* tensor_properties.c, tensor_methods.c */
extern PyGetSetDef tensor_properties[];
extern PyMethodDef tensor_methods[];

/* tensor_convert.c: other types and devices, and numbers out of tensors. */
PyObject *tensor_to(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_to_type(PyObject *self, mt_dtype dtype);
PyObject *tensor_to_device(PyObject *self, mt_device device, bool non_blocking);
/* The number of a torch.memory_format, FORMAT_PRESERVE for None; -1: TypeError. */
int tensor_format_from(const char *function, PyObject *object);
int tensor_truth(PyObject *self);
PyObject *tensor_int(PyObject *self);
PyObject *tensor_float(PyObject *self);
PyObject *tensor_index_number(PyObject *self);
int tensor_contains(PyObject *self, PyObject *value);
Py_ssize_t tensor_length(PyObject *self);

/* tensor_numbers.c. What both operands are tensors or numbers for; NotImplemented otherwise. */
typedef PyObject *tensor_binary(PyObject *a, PyObject *b);
typedef PyObject *tensor_unary(PyObject *self);
tensor_binary tensor_add;
tensor_binary tensor_subtract;
tensor_binary tensor_multiply;
tensor_binary tensor_true_divide;
tensor_binary tensor_matmul;
PyObject *tensor_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *tensor_compare(PyObject *self, PyObject *other, int operation);
#define X(slot, call) tensor_binary tensor_##slot;
#include "tensors/tensor/operator_slots.def"
#undef X
PyObject *tensor_inplace_power(PyObject *a, PyObject *b, PyObject *modulus);
tensor_unary tensor_negative;
tensor_unary tensor_positive;
tensor_unary tensor_absolute;
tensor_unary tensor_invert;

/* Ops that operators call, found once by name (tensor_numbers.c). */
typedef enum operator_op {
#define X(NAME, name) OPERATOR_##NAME,
#include "tensors/ops/operator_ops.def"
#undef X
    OPERATOR_COUNT
} operator_op;
extern mt_op operator_ops[OPERATOR_COUNT];

/* An operand: a tensor, or a number. 1, 0 (neither) or -1 (an exception). */
static inline int operand_of(PyObject *object, mt_value *value)
{
    if (tensor_check(object)) {
        *value = value_tensor(tensor_of(object));
        return 1;
    }
    return scalar_try(object, value);
}

/* A NumPy array as a tensor over its memory; NULL without an exception: it is none.
 * tensor_convert.c
 */
PyObject *tensor_from_array(PyObject *object);

/* Calls an op with one result, a tensor. */
static inline PyObject *operator_call(operator_op which, const mt_value *args, uint32_t n_args)
{
    mt_value result;
    if (tensors_call(operator_ops[which], args, n_args, &result, 1) != 0) {
        return NULL;
    }
    return tensor_wrap(result.of.tensor);
}

#endif /* PYTHON_EXT_TENSORS_TENSOR_TENSOR_PARTS_H */
