/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of mindtorch_v2._C share.
 *
 *     Python object (tensor_object) ──holds──► mt_tensor ──knows──► its one Python object (host)
 *
 *   PYT1  An mt_tensor has at most one Python object at a time: the same tensor is the same object.
 *         mt_tensor_host() is read and written with the GIL held only.
 *   PYT2  The Python object holds a reference to the mt_tensor, never the other way round.
 *   PYT3  Library calls that can take long run without the GIL: see tensors_call().
 */
#ifndef PYTHON_EXT_TENSORS_MODULE_TENSORS_STATE_H
#define PYTHON_EXT_TENSORS_MODULE_TENSORS_STATE_H

#include "common/py_common.h"

#include <mindtorch/mindtorch.h>

typedef struct tensor_object {
    PyObject_HEAD mt_tensor *tensor; /* one reference; NULL only while it is made */
    PyObject *dict;                  /* attributes, backward hooks; NULL until one is set */
    PyObject *weak;                  /* weak references */
} tensor_object;

/* torch.dtype: one object a type, compared by identity. */
typedef struct dtype_object {
    PyObject_HEAD mt_dtype dtype;
} dtype_object;

/* torch.device. `index` -1: none was given ("cpu", "npu"). */
typedef struct device_object {
    PyObject_HEAD mt_device_type type;
    int index;
} device_object;

typedef struct generator_object {
    PyObject_HEAD mt_generator *generator; /* NULL: the default one of the process */
    mt_device device;                      /* that it was made for; numbers do not depend on it */
} generator_object;

/* torch.layout and torch.memory_format: names with a number. */
typedef struct named_object {
    PyObject_HEAD const char *name; /* "strided" */
    int value;
} named_object;

enum {
    FORMAT_CONTIGUOUS,
    FORMAT_PRESERVE,
    FORMAT_CHANNELS_LAST,
    FORMAT_CHANNELS_LAST_3D
};

/* The module's state; there is one (see py_common.h). Parts add their types here. */
typedef struct tensors_state {
    PyTypeObject *tensor_type;    /* torch.Tensor; mindtorch_v2/_tensor.py adds what is Python */
    PyTypeObject *dtype_type;     /* torch.dtype */
    PyTypeObject *device_type;    /* torch.device */
    PyTypeObject *size_type;      /* torch.Size, a tuple */
    PyTypeObject *generator_type; /* torch.Generator */
    PyTypeObject *node_type;      /* grad_fn */
    PyTypeObject *op_type;        /* functions made from the op table: op_binding.c */
    PyTypeObject *method_type;    /* the same as methods of Tensor */
    PyTypeObject *layout_type;    /* torch.layout: named_object.c */
    PyTypeObject *format_type;    /* torch.memory_format */
    PyObject *strided;            /* torch.strided */
    PyObject *return_types;       /* a dict: types of several named results by name */
    PyObject *dtypes[MT_DTYPE_COUNT];
    PyTypeObject *stream_type;   /* torch.Stream: stream_object.c */
    PyTypeObject *event_type;    /* torch.Event: stream_event.c */
    PyObject *out_of_memory;     /* torch.OutOfMemoryError */
    PyObject *accelerator_error; /* torch.AcceleratorError */
    PyObject *linalg_error;      /* torch.linalg.LinAlgError */
    bool far;                    /* an accelerator was named: tensors may be on one */
    bool overriding;             /* arguments are asked for __torch_function__: override.h */
} tensors_state;

/* Valid from the module's start to the end of the process. */
extern tensors_state tensors;

/* ---- tensors and objects (tensor_type.c) ---- */

/* Is it a tensor (of any class)? */
static inline bool tensor_check(PyObject *object)
{
    return Py_IS_TYPE(object, tensors.tensor_type) ||
           PyType_IsSubtype(Py_TYPE(object), tensors.tensor_type);
}

/* Borrowed. The object must be a tensor. */
static inline mt_tensor *tensor_of(PyObject *object)
{
    return ((tensor_object *)object)->tensor;
}

/* The object of a tensor, new or the one it has (PYT1). Takes over the caller's reference to the
 * mt_tensor, also when it fails (NULL, MemoryError). NULL gives None. */
PyObject *tensor_wrap(mt_tensor *tensor);

/* The tensor in a memory format, copied where it is not. Takes over the reference; NULL stays. */
PyObject *tensor_take_format(PyObject *tensor, int format);

/* An object of that class for a tensor which has none yet; takes over the reference. */
PyObject *tensor_wrap_as(PyTypeObject *type, mt_tensor *tensor);

/* requires_grad=True for a tensor that is just made; -1: RuntimeError in torch's words. */
int tensor_require_grad(mt_tensor *tensor);

/* Whether both have the same shape (tensor_methods.c). */
bool tensor_same_sizes(const mt_tensor *a, const mt_tensor *b);

/* The same as tensor_wrap() for a borrowed tensor. */
static inline PyObject *tensor_wrap_borrowed(mt_tensor *tensor)
{
    return tensor_wrap(mt_tensor_retain(tensor));
}

/* ---- errors (tensors_module.c) ---- */

/* Raises what a failed call of libmindtorch means (mt_status_exception, mt_last_error; for
 * MT_ECALLBACK what a callback raised), and returns NULL. */
PyObject *tensors_raise(int status);

/* None, or what went wrong. */
static inline PyObject *none_or_raise(int status)
{
    return status != MT_OK ? tensors_raise(status) : Py_NewRef(Py_None);
}

/* 0, or -1 and an exception. */
static inline int zero_or_raise(int status)
{
    if (status == MT_OK) {
        return 0;
    }
    (void)tensors_raise(status);
    return -1;
}

/* ---- calls ---- */

/* Calls an op, the GIL released around it where the work is large (PYT3), and gives its results; on
 * failure the exception is set and -1 returned. Everything in this extension calls ops this way. */
int tensors_call(mt_op op, const mt_value *args, uint32_t n_args, mt_value *results,
                 uint32_t n_results);

/* An op by its name. -1: there is none, the exception is set, and *op is left alone. */
int tensors_find_op(const char *name, mt_op *op);

/* A call by name, where speed does not matter; the result is a tensor, wrapped. */
PyObject *tensors_call_named(const char *name, const mt_value *args, uint32_t n_args);

/* A result as a Python object; what it holds goes to the object (mt_value_clear is not needed).
 * Lists become tuples. NULL: exception. */
PyObject *tensors_result(mt_value *result);

/* For calls that may take long (backward, synchronise, read): keeps the Python stack for the
 * profiler (common/py_language.h), releases the GIL, and takes it again. */
typedef struct tensors_pause {
    PyThreadState *thread;
    uint32_t stack;
    bool held; /* a stack was kept */
} tensors_pause;
void tensors_release_gil(tensors_pause *pause);
void tensors_take_gil(tensors_pause *pause);
/* A call that may wait, without the GIL. */
#define WITHOUT_GIL(status, call)     \
    do {                              \
        tensors_pause pause_;         \
        tensors_release_gil(&pause_); \
        (status) = (call);            \
        tensors_take_gil(&pause_);    \
    } while (0)

/* ---- conversions (tensor_values.c); each sets an exception on failure ---- */

/* A device: torch.device, str or int (an accelerator's index); None gives MT_DEVICE_NONE. */
int device_from_object(PyObject *object, mt_device *device);
PyObject *device_to_object(mt_device device);

/* A dtype: torch.dtype, Python's float, int, bool; None gives MT_DTYPE_NONE. */
int dtype_from_object(PyObject *object, mt_dtype *dtype);
bool dtype_is_signed(mt_dtype dtype);
static inline PyObject *dtype_to_object(mt_dtype dtype)
{
    return Py_NewRef(tensors.dtypes[dtype]);
}

/* A number as torch takes them: bool, int, float, whatever has __index__ or __float__ (NumPy's
 * too), and tensors of one element (without a gradient). TypeError otherwise. */
int scalar_from_object(PyObject *object, mt_scalar *scalar);

/* The same without an exception: 1, 0 (not a number, nothing is set), -1 (an exception). Tensors
 * are not taken. */
int scalar_try(PyObject *object, mt_scalar *scalar);

/* An integer as torch takes them: int, __index__, not bool. 1, 0 or -1 as above. */
int int_try(PyObject *object, int64_t *integer);

/* The number in a tensor of one element. */
int scalar_of_tensor(mt_tensor *tensor, mt_scalar *scalar);
PyObject *scalar_to_object(const mt_scalar *scalar);

/* torch.Size of these. */
PyObject *size_from_ints(const int64_t *sizes, uint32_t count);

/* Values for arguments of ops. */
static inline mt_value value_tensor(mt_tensor *tensor)
{
    return (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = tensor};
}

static inline mt_value value_none(void)
{
    return (mt_value){.kind = MT_KIND_NONE};
}

static inline mt_value value_dtype(mt_dtype dtype)
{
    return (mt_value){.kind = dtype == MT_DTYPE_NONE ? MT_KIND_NONE : MT_KIND_DTYPE,
                      .of.integer = (int64_t)dtype};
}

static inline mt_value value_device(mt_device device)
{
    return (mt_value){.kind = device == MT_DEVICE_NONE ? MT_KIND_NONE : MT_KIND_DEVICE,
                      .of.integer = device};
}

#endif /* PYTHON_EXT_TENSORS_MODULE_TENSORS_STATE_H */
