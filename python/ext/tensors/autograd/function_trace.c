/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions as ops in profiles. See function_trace.h.
 */
#include "tensors/autograd/function_trace.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_HERE = 32 /* arguments that need no memory of their own */
};

static uint32_t type_id(mt_dtype dtype)
{
    static const char *const names[MT_DTYPE_COUNT] = {
#define X(name, value, text, bytes, category, profiler) profiler,
#include <mindtorch/dtype.def>
#undef X
    };
    return mtprof_intern(names[dtype], strlen(names[dtype]));
}

static mtprof_value shown_tensor(const mt_tensor *tensor, mtprof_tensor_ref *ref)
{
    mt_device device = mt_tensor_device(tensor);
    *ref = (mtprof_tensor_ref){
        .tensor = mt_tensor_id(tensor),
        .storage = mt_tensor_storage_address(tensor),
        .offset = mt_tensor_offset(tensor),
        .version = mt_tensor_version(tensor),
        .device = device == MT_CPU ? 0 : (uint16_t)(((uint32_t)device & 255U) + 1),
        .role = mt_tensor_is_parameter(tensor) ? MTPROF_TENSOR_PARAMETER : MTPROF_TENSOR_ANY,
    };
    return (mtprof_value){
        .kind = MTPROF_INPUT_TENSOR,
        .n_dims = (uint8_t)mt_tensor_n_dims(tensor),
        .type = type_id(mt_tensor_dtype(tensor)),
        .of.sizes = mt_tensor_sizes(tensor),
        .strides = mt_tensor_strides(tensor),
    };
}

static mtprof_value shown_number(PyObject *arg)
{
    mtprof_value value = {.kind = MTPROF_INPUT_NONE};
    if (PyBool_Check(arg)) {
        value.kind = MTPROF_INPUT_BOOL;
        value.of.integer = arg == Py_True;
    } else if (PyFloat_Check(arg)) {
        value.kind = MTPROF_INPUT_REAL;
        value.of.real = PyFloat_AS_DOUBLE(arg);
    } else if (PyLong_Check(arg)) {
        int overflow = 0;
        value.of.integer = PyLong_AsLongLongAndOverflow(arg, &overflow);
        value.kind = overflow == 0 ? MTPROF_INPUT_INT : MTPROF_INPUT_NONE;
    }
    if (value.kind != MTPROF_INPUT_NONE) {
        value.type = mtprof_intern("Scalar", 6);
    }
    return value;
}

mtprof_token function_trace_begin(const char *name, PyObject *args, bool graph)
{
    mtprof_value few_values[SHOWN_HERE];
    mtprof_tensor_ref few_refs[SHOWN_HERE];
    mtprof_value *values = few_values;
    mtprof_tensor_ref *refs = few_refs;
    mtprof_value *many = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    mtprof_op op = {.struct_size = sizeof(op)};
    if (count > SHOWN_HERE) {
        values = many = malloc((size_t)count * (sizeof(*values) + sizeof(*refs)));
        refs = (mtprof_tensor_ref *)(void *)(many + count);
    }
    if (values == NULL) {
        count = 0;
        op.n_inputs = 1; /* without them: counted as cut */
    } else {
        op.inputs = values;
        op.tensors = refs;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *arg = PyTuple_GET_ITEM(args, i);
        if (tensor_check(arg)) {
            values[op.n_inputs++] = shown_tensor(tensor_of(arg), &refs[op.n_tensors]);
            op.n_tensors++;
        } else {
            values[op.n_inputs++] = shown_number(arg);
        }
    }
    if (graph) {
        op.fields |= MTPROF_OP_SEQUENCE;
        op.sequence = mt_next_sequence();
    }
    mtprof_token token = mtprof_op_begin_named(name, strlen(name), MTPROF_KIND_OP, &op);
    free(many);
    return token;
}
