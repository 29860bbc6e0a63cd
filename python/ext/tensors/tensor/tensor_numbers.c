/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's operators on tensors, and comparisons. Either operand may be the tensor; the other one
 * is a tensor or a number, or else NotImplemented, so that Python tries the other type's method.
 */
#include "tensors/ops/override.h"
#include "tensors/tensor/tensor_parts.h"

mt_op operator_ops[OPERATOR_COUNT];

static const char *const operator_names[OPERATOR_COUNT] = {
#define X(NAME, name) [OPERATOR_##NAME] = (name),
#include "tensors/ops/operator_ops.def"
#undef X
};

py_part operator_ops_start;
int operator_ops_start(PyObject *Py_UNUSED(module))
{
    for (int i = 0; i < OPERATOR_COUNT; i++) {
        if (tensors_find_op(operator_names[i], &operator_ops[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* A complex number as a tensor; else tensor_from_array(). */
static PyObject *tensor_from_other(PyObject *object)
{
    if (!PyComplex_Check(object)) {
        return tensor_from_array(object);
    }
    mt_tensor *number = NULL;
    Py_complex parts = PyComplex_AsCComplex(object);
    return zero_or_raise(mt_tensor_from_complex(parts.real, parts.imag, &number)) != 0
               ? NULL
               : tensor_wrap(number);
}

/* A NumPy array takes part as the tensor over its memory, with which `again` is called. */
static PyObject *with_array(tensor_binary *again, PyObject *a, PyObject *b)
{
    PyObject *first = tensor_check(a) ? Py_NewRef(a) : tensor_from_other(a);
    PyObject *second =
        first == NULL ? NULL : (tensor_check(b) ? Py_NewRef(b) : tensor_from_other(b));
    PyObject *result = NULL;
    if (first != NULL && second != NULL) {
        result = again(first, second);
    } else if (!PyErr_Occurred()) {
        result = Py_NewRef(Py_NotImplemented);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

static tensor_binary power;

/* What __torch_function__ is told of an operator: Tensor's attribute; `turned` where something else
 * is on its left, which then comes second. */
static bool is_overridden(tensor_binary *called, PyObject *a, PyObject *b, PyObject **answer)
{
    static const struct {
        tensor_binary *called;
        const char *name, *turned;
    } names[] = {
        {tensor_add, "add", "add"},
        {tensor_subtract, "sub", "__rsub__"},
        {tensor_multiply, "mul", "mul"},
        {tensor_true_divide, "div", "__rtruediv__"},
        {tensor_matmul, "matmul", "__rmatmul__"},
        {tensor_floor_divide, "__floordiv__", "__rfloordiv__"},
        {tensor_remainder, "remainder", "__rmod__"},
        {power, "pow", "__rpow__"},
        {tensor_and, "__and__", "bitwise_and"},
        {tensor_or, "__or__", "bitwise_or"},
        {tensor_xor, "__xor__", "bitwise_xor"},
        {tensor_lshift, "__lshift__", "__rlshift__"},
        {tensor_rshift, "__rshift__", "__rrshift__"},
    };
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof names[0] && names[i].called != called) {
        i++;
    }
    bool turned = !tensor_check(a);
    return override_operator(turned ? names[i].turned : names[i].name, turned ? b : a,
                             turned ? a : b, answer);
}

/* Both operands as values; false: the answer is in *answer (NotImplemented, or NULL). */
static bool operands_of(tensor_binary *again, PyObject *a, PyObject *b, mt_value *values,
                        PyObject **answer)
{
    if (override_asked() && is_overridden(again, a, b, answer)) {
        return false;
    }
    int is_a = operand_of(a, &values[0]);
    int is_b = is_a <= 0 ? is_a : operand_of(b, &values[1]);
    if (is_b > 0) {
        return true;
    }
    *answer = NULL;
    if (is_b == 0 && !is_overridden(again, a, b, answer)) {
        *answer = with_array(again, a, b);
    }
    return false;
}

static bool is_tensor(const mt_value *value)
{
    return value->kind == MT_KIND_TENSOR;
}

static void swap(mt_value *values)
{
    mt_value first = values[0];
    values[0] = values[1];
    values[1] = first;
}

/* The type that a number has in an op with a tensor: the tensor's, unless the number is of a
 * higher category. */
static mt_dtype type_beside(const mt_value *number, const mt_tensor *beside)
{
    mt_dtype dtype = mt_tensor_dtype(beside);
    mt_category category = number->kind == MT_KIND_BOOL  ? MT_CATEGORY_BOOL
                           : number->kind == MT_KIND_INT ? MT_CATEGORY_INT
                                                         : MT_CATEGORY_REAL;
    if (mt_dtype_category(dtype) >= category) {
        return dtype;
    }
    return category == MT_CATEGORY_INT ? MT_DTYPE_I64 : mt_default_dtype();
}

/* A number in front as a tensor of no dimensions. */
static int tensor_from_number(mt_value *number, const mt_tensor *beside)
{
    union {
        bool truth;
        uint8_t u8;
        uint16_t u16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } element = {.i64 = 0};
    bool is_real = number->kind == MT_KIND_REAL;
    int64_t integer = is_real ? 0 : number->of.integer;
    double real = is_real ? number->of.real : (double)number->of.integer;
    mt_dtype dtype = type_beside(number, beside);
    switch (dtype) {
    case MT_DTYPE_BOOL: element.truth = integer != 0; break;
    case MT_DTYPE_U8:
    case MT_DTYPE_I8: element.u8 = (uint8_t)integer; break;
    case MT_DTYPE_I16:
    case MT_DTYPE_U16: element.u16 = (uint16_t)integer; break;
    case MT_DTYPE_I32:
    case MT_DTYPE_U32: element.i32 = (int32_t)integer; break;
    case MT_DTYPE_I64:
    case MT_DTYPE_U64: element.i64 = integer; break;
    case MT_DTYPE_F32: element.f32 = (float)real; break;
    default: /* a number beside a half type is not rounded to it */
        dtype = MT_DTYPE_F64;
        element.f64 = real;
        break;
    }
    mt_tensor *made = NULL;
    if (zero_or_raise(mt_tensor_from_data(&element, dtype, NULL, 0, MT_CPU, &made)) != 0) {
        return -1;
    }
    *number = value_tensor(made);
    return 0;
}

/* An op whose first argument must be a tensor, with a number in front. */
static PyObject *call_number_first(operator_op which, mt_value *values)
{
    if (tensor_from_number(&values[0], values[1].of.tensor) != 0) {
        return NULL;
    }
    PyObject *result = operator_call(which, values, 2);
    mt_tensor_release(values[0].of.tensor);
    return result;
}

PyObject *tensor_add(PyObject *a, PyObject *b)
{
    mt_value values[3];
    PyObject *answer = NULL;
    if (!operands_of(tensor_add, a, b, values, &answer)) {
        return answer;
    }
    if (!is_tensor(&values[0])) {
        swap(values);
    }
    values[2] = (mt_value){.kind = MT_KIND_INT, .of.integer = 1};
    return operator_call(OPERATOR_ADD, values, 3);
}

PyObject *tensor_subtract(PyObject *a, PyObject *b)
{
    mt_value values[3];
    PyObject *answer = NULL;
    if (!operands_of(tensor_subtract, a, b, values, &answer)) {
        return answer;
    }
    values[2] = (mt_value){.kind = MT_KIND_INT, .of.integer = 1};
    if (is_tensor(&values[0])) {
        return operator_call(OPERATOR_SUB, values, 3);
    }
    swap(values);
    return operator_call(OPERATOR_RSUB, values, 3);
}

PyObject *tensor_multiply(PyObject *a, PyObject *b)
{
    mt_value values[2];
    PyObject *answer = NULL;
    if (!operands_of(tensor_multiply, a, b, values, &answer)) {
        return answer;
    }
    if (!is_tensor(&values[0])) {
        swap(values);
    }
    return operator_call(OPERATOR_MUL, values, 2);
}

/* torch's: number / tensor is the reciprocal times the number. */
static PyObject *divide_number(const mt_value *values)
{
    mt_value inverse;
    if (tensors_call(operator_ops[OPERATOR_RECIPROCAL], &values[1], 1, &inverse, 1) != 0) {
        return NULL;
    }
    mt_value args[2] = {inverse, values[0]};
    PyObject *result = operator_call(OPERATOR_MUL, args, 2);
    mt_value_clear(&inverse);
    return result;
}

PyObject *tensor_true_divide(PyObject *a, PyObject *b)
{
    mt_value values[3];
    PyObject *answer = NULL;
    if (!operands_of(tensor_true_divide, a, b, values, &answer)) {
        return answer;
    }
    if (!is_tensor(&values[0])) {
        return divide_number(values);
    }
    values[2] = value_none();
    return operator_call(OPERATOR_DIV, values, 3);
}

static PyObject *two_operands(operator_op which, tensor_binary *again, PyObject *a, PyObject *b)
{
    mt_value values[2];
    PyObject *answer = NULL;
    if (!operands_of(again, a, b, values, &answer)) {
        return answer;
    }
    return is_tensor(&values[0]) ? operator_call(which, values, 2)
                                 : call_number_first(which, values);
}

static PyObject *power(PyObject *a, PyObject *b)
{
    mt_value values[2];
    PyObject *answer = NULL;
    return operands_of(power, a, b, values, &answer) ? operator_call(OPERATOR_POW, values, 2)
                                                     : answer;
}

PyObject *tensor_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return modulus == Py_None ? power(a, b) : Py_NewRef(Py_NotImplemented);
}

PyObject *tensor_matmul(PyObject *a, PyObject *b)
{
    bool both = tensor_check(a) && tensor_check(b);
    PyObject *answer = NULL;
    if ((override_asked() || !both) && is_overridden(tensor_matmul, a, b, &answer)) {
        return answer;
    }
    if (!both) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    mt_value values[2] = {value_tensor(tensor_of(a)), value_tensor(tensor_of(b))};
    return operator_call(OPERATOR_MATMUL, values, 2);
}

/* A tensor comes first, the order does not matter; torch shows `turned` for a number in front. */
static PyObject *bits(operator_op which, operator_op turned, tensor_binary *again, PyObject *a,
                      PyObject *b)
{
    mt_value values[2];
    PyObject *answer = NULL;
    if (!operands_of(again, a, b, values, &answer)) {
        return answer;
    }
    if (is_tensor(&values[0])) {
        return operator_call(which, values, 2);
    }
    swap(values);
    return operator_call(turned, values, 2);
}

/* torch shows `of_number` for a number in front. */
static PyObject *shift(operator_op which, operator_op of_number, tensor_binary *again, PyObject *a,
                       PyObject *b)
{
    mt_value values[2];
    PyObject *answer = NULL;
    if (!operands_of(again, a, b, values, &answer)) {
        return answer;
    }
    return operator_call(is_tensor(&values[0]) ? which : of_number, values, 2);
}

/* An op that writes its first argument: the answer is `self` itself (PYT1). */
static PyObject *write_self(operator_op which, PyObject *self, PyObject *other)
{
    mt_value values[2] = {value_tensor(tensor_of(self))};
    PyObject *answer = NULL;
    if (override_asked() && override_operator(operator_names[which], self, other, &answer)) {
        return answer;
    }
    int ready = operand_of(other, &values[1]);
    if (ready == 0) {
        if (override_operator(operator_names[which], self, other, &answer)) {
            return answer;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    return ready < 0 ? NULL : operator_call(which, values, 2);
}

#define X(slot, call)                                 \
    PyObject *tensor_##slot(PyObject *a, PyObject *b) \
    {                                                 \
        return call;                                  \
    }
#include "tensors/tensor/operator_slots.def"
#undef X

PyObject *tensor_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return write_self(OPERATOR_POW_, a, b);
}

static PyObject *one_operand(operator_op which, const char *name, PyObject *self)
{
    PyObject *answer = NULL;
    if (override_asked() && override_method(name, &self, 1, &answer)) {
        return answer;
    }
    mt_value value = value_tensor(tensor_of(self));
    return operator_call(which, &value, 1);
}

PyObject *tensor_negative(PyObject *self)
{
    return one_operand(OPERATOR_NEG, "neg", self);
}

PyObject *tensor_positive(PyObject *self)
{
    PyObject *answer = NULL;
    if (override_asked() && override_method("positive", &self, 1, &answer)) {
        return answer;
    }
    return Py_NewRef(self);
}

PyObject *tensor_absolute(PyObject *self)
{
    return one_operand(OPERATOR_ABS, "abs", self);
}

PyObject *tensor_invert(PyObject *self)
{
    if (mt_dtype_category(mt_tensor_dtype(tensor_of(self))) == MT_CATEGORY_REAL) {
        PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and "
                                         "Boolean-type tensors");
        return NULL;
    }
    return one_operand(OPERATOR_BITWISE_NOT, "__invert__", self);
}

PyObject *tensor_compare(PyObject *self, PyObject *other, int operation)
{
    static const operator_op ops[] = {
        [Py_LT] = OPERATOR_LT, [Py_LE] = OPERATOR_LE, [Py_EQ] = OPERATOR_EQ,
        [Py_NE] = OPERATOR_NE, [Py_GT] = OPERATOR_GT, [Py_GE] = OPERATOR_GE,
    };
    PyObject *answer = NULL;
    bool is_method = operation == Py_EQ && !Py_IS_TYPE(self, tensors.tensor_type);
    const char *name = is_method ? "__eq__" : operator_names[ops[operation]]; /* as torch has it */
    if (override_asked() && override_operator(name, self, other, &answer)) {
        return answer;
    }
    mt_value values[2] = {value_tensor(tensor_of(self))};
    int is_operand = operand_of(other, &values[1]);
    if (is_operand > 0) {
        return operator_call(ops[operation], values, 2);
    }
    if (is_operand == 0 && override_operator(name, self, other, &answer)) {
        return answer;
    }
    PyObject *array = is_operand == 0 ? tensor_from_array(other) : NULL;
    if (array != NULL) {
        values[1] = value_tensor(tensor_of(array));
        PyObject *result = operator_call(ops[operation], values, 2);
        Py_DECREF(array);
        return result;
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
}
