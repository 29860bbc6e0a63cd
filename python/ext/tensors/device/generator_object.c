/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.Generator. Its state is seed and offset, 16 bytes in a tensor of uint8.
 */
#include "tensors/module/tensors_state.h"

#include <string.h>

enum {
    STATE_BYTES = 16
};

static mt_generator *generator_of(PyObject *object)
{
    return ((generator_object *)object)->generator;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *which = py_one_argument(args, kwargs, "|O:Generator", "device");
    if (which == NULL) {
        return NULL;
    }
    mt_device device = MT_CPU;
    if (device_from_object(which, &device) != 0) {
        return NULL;
    }
    if (device == MT_META) {
        PyErr_SetString(PyExc_RuntimeError, "META device type not an accelerator.");
        return NULL;
    }
    generator_object *self = (generator_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->device = device == MT_DEVICE_NONE ? MT_CPU : device;
    int status = mt_generator_new(67280421310721ULL, &self->generator); /* torch's first seed */
    if (status != MT_OK) {
        Py_DECREF(self);
        return tensors_raise(status);
    }
    return (PyObject *)self;
}

static void generator_dealloc(PyObject *object)
{
    mt_generator_free(generator_of(object));
    py_free(object);
}

/* Negative seeds count from 2**64, as torch's do. */
static int seed_from(PyObject *object, uint64_t *seed)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL) {
        return -1;
    }
    int overflow = 0;
    long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow == 0) {
        *seed = (uint64_t)small;
    } else if (overflow > 0) {
        *seed = PyLong_AsUnsignedLongLong(number);
    }
    Py_DECREF(number);
    if (overflow < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_RuntimeError, "Overflow when unpacking long: %R", object);
        return -1;
    }
    return 0;
}

static PyObject *manual_seed(PyObject *self, PyObject *object)
{
    uint64_t seed = 0;
    if (seed_from(object, &seed) != 0) {
        return NULL;
    }
    mt_generator_seed(generator_of(self), seed);
    return Py_NewRef(self);
}

static PyObject *initial_seed(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(mt_generator_initial_seed(generator_of(self)));
}

/* A seed from the system, which is returned. */
static PyObject *new_seed(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *bytes = os == NULL ? NULL : PyObject_CallMethod(os, "urandom", "i", 8);
    Py_XDECREF(os);
    if (bytes == NULL) {
        return NULL;
    }
    uint64_t seed = 0;
    if (PyBytes_Check(bytes) && PyBytes_GET_SIZE(bytes) == sizeof seed) {
        memcpy(&seed, PyBytes_AS_STRING(bytes), sizeof seed);
    }
    Py_DECREF(bytes);
    seed >>= 11; /* 53 bits, as torch's */
    mt_generator_seed(generator_of(self), seed);
    return PyLong_FromUnsignedLongLong(seed);
}

static PyObject *get_state(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t words[2] = {mt_generator_initial_seed(generator_of(self)),
                         mt_generator_offset(generator_of(self))};
    const int64_t size = STATE_BYTES;
    mt_tensor *state = NULL;
    return zero_or_raise(mt_tensor_from_data(words, MT_DTYPE_U8, &size, 1, MT_CPU, &state)) != 0
               ? NULL
               : tensor_wrap(state);
}

static PyObject *set_state(PyObject *self, PyObject *state)
{
    if (!tensor_check(state)) {
        PyErr_Format(PyExc_TypeError, "expected a torch.ByteTensor, but got %s",
                     Py_TYPE(state)->tp_name);
        return NULL;
    }
    mt_tensor *tensor = tensor_of(state);
    if (mt_tensor_dtype(tensor) != MT_DTYPE_U8 || mt_tensor_device(tensor) != MT_CPU) {
        PyErr_SetString(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
        return NULL;
    }
    if (mt_tensor_numel(tensor) != STATE_BYTES) {
        PyErr_Format(PyExc_RuntimeError, "RNG state is wrong size: %lld bytes, %d are expected",
                     (long long)mt_tensor_numel(tensor), STATE_BYTES);
        return NULL;
    }
    uint64_t words[2];
    if (zero_or_raise(mt_tensor_read(tensor, words, sizeof words)) != 0) {
        return NULL;
    }
    mt_generator_seed(generator_of(self), words[0]);
    mt_generator_set_offset(generator_of(self), words[1]);
    return Py_NewRef(self);
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(context))
{
    return device_to_object(((generator_object *)self)->device);
}

static PyGetSetDef properties[] = {
    {"device", get_device, NULL, "Where its numbers are made.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nBegins again, from this seed; returns itself."},
    {"initial_seed", initial_seed, METH_NOARGS,
     "initial_seed($self, /)\n--\n\nThe seed it began from."},
    {"seed", new_seed, METH_NOARGS,
     "seed($self, /)\n--\n\nBegins again from a seed that nobody chose, and returns it."},
    {"get_state", get_state, METH_NOARGS,
     "get_state($self, /)\n--\n\nWhere it is, as a tensor of bytes."},
    {"set_state", set_state, METH_O,
     "set_state($self, new_state, /)\n--\n\nGoes on from where get_state() was called."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, generator_new},
    {Py_tp_doc, (char[]){"Generator(device='cpu')\n--\n\nA stream of random numbers."}},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.Generator",
    .basicsize = sizeof(generator_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

py_part generator_object_start;
int generator_object_start(PyObject *module)
{
    if (py_add_type(module, &spec, NULL, "Generator", &tensors.generator_type) != 0) {
        return -1;
    }
    /* The library has no object for the default generator: NULL means it. */
    PyObject *self = tensors.generator_type->tp_alloc(tensors.generator_type, 0);
    if (self == NULL) {
        return -1;
    }
    int status = PyModule_AddObjectRef(module, "default_generator", self);
    Py_DECREF(self);
    return status;
}
