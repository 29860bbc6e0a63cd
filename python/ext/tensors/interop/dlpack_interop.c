/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack: tensors to and from other libraries, without a copy.
 *
 *   DLP1  What we export is held by an mt_tensor reference alone, so our deleters need neither the
 *         GIL nor an interpreter. It is a second tensor over the memory, since the
 *         exported one may be given other data meanwhile.
 *   DLP2  What we import is given back by the producer's deleter: with the GIL while there is an
 *         interpreter (late_release.h), directly when there is none.
 */
#include "tensors/data/data_parts.h"
#include "tensors/interop/dlpack_layout.h"
#include "tensors/interop/late_release.h"

#include <stdlib.h>
#include <string.h>

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
    uint8_t code;
    uint8_t bits;
} codes[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = {DLPACK_BOOL, 8},      [MT_DTYPE_U8] = {DLPACK_UINT, 8},
    [MT_DTYPE_I32] = {DLPACK_INT, 32},       [MT_DTYPE_I64] = {DLPACK_INT, 64},
    [MT_DTYPE_F16] = {DLPACK_FLOAT, 16},     [MT_DTYPE_BF16] = {DLPACK_BFLOAT, 16},
    [MT_DTYPE_F32] = {DLPACK_FLOAT, 32},     [MT_DTYPE_F64] = {DLPACK_FLOAT, 64},
    [MT_DTYPE_I8] = {DLPACK_INT, 8},         [MT_DTYPE_I16] = {DLPACK_INT, 16},
    [MT_DTYPE_U16] = {DLPACK_UINT, 16},      [MT_DTYPE_U32] = {DLPACK_UINT, 32},
    [MT_DTYPE_U64] = {DLPACK_UINT, 64},      [MT_DTYPE_C64] = {DLPACK_COMPLEX, 64},
    [MT_DTYPE_C128] = {DLPACK_COMPLEX, 128},
};

static mt_dtype dtype_of(const dlpack_tensor *tensor)
{
    for (uint32_t i = 0; i < MT_DTYPE_COUNT && tensor->lanes == 1; i++) {
        if (codes[i].code == tensor->code && codes[i].bits == tensor->bits) {
            return (mt_dtype)i;
        }
    }
    return MT_DTYPE_NONE;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Either sort, with the memory of its sizes. */
typedef struct exported {
    union {
        dlpack_managed plain;
        dlpack_versioned versioned;
    } of;
    mt_tensor *tensor; /* DLP1 */
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS];
} exported;

static void free_exported(exported *item)
{
    mt_tensor_release(item->tensor);
    free(item);
}

static void delete_plain(dlpack_managed *managed)
{
    free_exported(managed->context);
}

static void delete_versioned(dlpack_versioned *managed)
{
    free_exported(managed->context);
}

/* Capsules that were not consumed. */
static void forget_plain(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DLPACK_CAPSULE)) {
        delete_plain(PyCapsule_GetPointer(capsule, DLPACK_CAPSULE));
    }
}

static void forget_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DLPACK_CAPSULE_VERSIONED)) {
        delete_versioned(PyCapsule_GetPointer(capsule, DLPACK_CAPSULE_VERSIONED));
    }
}

static void describe(exported *item, dlpack_tensor *out)
{
    mt_tensor *tensor = item->tensor;
    mt_dtype dtype = mt_tensor_dtype(tensor);
    uint32_t n_dims = mt_tensor_n_dims(tensor);
    memcpy(item->sizes, mt_tensor_sizes(tensor), n_dims * sizeof(int64_t));
    memcpy(item->strides, mt_tensor_strides(tensor), n_dims * sizeof(int64_t));
    for (uint32_t d = 0; d < n_dims; d++) {
        if (item->sizes[d] < 2) {
            item->strides[d] = 1; /* never used; some consumers look all the same */
        }
    }
    *out = (dlpack_tensor){
        .data = mt_tensor_data(tensor),
        .device_type = DLPACK_CPU,
        .n_dims = (int32_t)n_dims,
        .code = codes[dtype].code,
        .bits = codes[dtype].bits,
        .lanes = 1,
        .sizes = item->sizes,
        .strides = item->strides,
    };
}

/* Takes the reference over. */
static PyObject *export_tensor(mt_tensor *tensor, bool versioned, bool copied)
{
    exported *item = calloc(1, sizeof(*item));
    if (item == NULL) {
        mt_tensor_release(tensor);
        return PyErr_NoMemory();
    }
    item->tensor = tensor;
    PyObject *capsule = NULL;
    if (versioned) {
        dlpack_versioned *managed = &item->of.versioned;
        managed->major = DLPACK_MAJOR;
        managed->minor = DLPACK_MINOR;
        managed->context = item;
        managed->deleter = delete_versioned;
        managed->flags = copied ? DLPACK_FLAG_COPIED : 0;
        describe(item, &managed->tensor);
        capsule = PyCapsule_New(managed, DLPACK_CAPSULE_VERSIONED, forget_versioned);
    } else {
        dlpack_managed *managed = &item->of.plain;
        managed->context = item;
        managed->deleter = delete_plain;
        describe(item, &managed->tensor);
        capsule = PyCapsule_New(managed, DLPACK_CAPSULE, forget_plain);
    }
    if (capsule == NULL) {
        free_exported(item);
    }
    return capsule;
}

static int refuse_export(const mt_tensor *tensor)
{
    if (mt_tensor_requires_grad(tensor)) {
        PyErr_SetString(PyExc_BufferError,
                        "Can't export tensors that require gradient, use tensor.detach()");
        return -1;
    }
    if (mt_tensor_device(tensor) != MT_CPU) {
        PyErr_Format(PyExc_BufferError, "a tensor on %s cannot be exported; use tensor.cpu()",
                     mt_device_name(mt_tensor_device(tensor)));
        return -1;
    }
    return 0;
}

/* Is it (CPU, 0) or None? */
static int check_device(PyObject *device)
{
    int type = DLPACK_CPU;
    int id = 0;
    if (device != Py_None &&
        (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii:dl_device", &type, &id))) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "dl_device must be a tuple (device type, id)");
        }
        return -1;
    }
    if (type != DLPACK_CPU || id != 0) {
        PyErr_Format(PyExc_BufferError,
                     "a tensor of the host cannot be exported to device (%d, %d)", type, id);
        return -1;
    }
    return 0;
}

static int wants_versioned(PyObject *version, bool *versioned)
{
    int major = 0;
    int minor = 0;
    *versioned = false;
    if (version == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(version) || !PyArg_ParseTuple(version, "ii:max_version", &major, &minor)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "max_version must be a tuple (major, minor)");
        }
        return -1;
    }
    *versioned = major >= DLPACK_MAJOR;
    return 0;
}

static PyObject *dlpack_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None;
    PyObject *version = Py_None;
    PyObject *device = Py_None;
    PyObject *copy = Py_None;
    bool versioned = false;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", PY_NAMES(keywords), &stream,
                                     &version, &device, &copy)) {
        return NULL;
    }
    mt_tensor *tensor = tensor_of(self);
    if (refuse_export(tensor) != 0 || check_device(device) != 0 ||
        wants_versioned(version, &versioned) != 0) {
        return NULL;
    }
    if (stream != Py_None && (!PyLong_Check(stream) || PyLong_AsLong(stream) != -1)) {
        PyErr_SetString(PyExc_AssertionError, "stream should be None on cpu.");
        return NULL;
    }
    int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (copied < 0) {
        return NULL;
    }
    mt_tensor *out = NULL;
    if (copied) {
        if (zero_or_raise(mt_clone(tensor, &out)) != 0) {
            return NULL;
        }
    } else {
        out = data_hold(tensor);
        if (out == NULL) {
            return NULL;
        }
    }
    return export_tensor(out, versioned, copied != 0);
}

static PyObject *dlpack_device_method(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    mt_device device = mt_tensor_device(tensor_of(self));
    return Py_BuildValue("(ii)", device == MT_CPU ? DLPACK_CPU : DLPACK_EXTENSION,
                         device == MT_CPU ? 0 : device & 255);
}

/* ---- in -------------------------------------------------------------------------------------- */

typedef struct imported {
    late_item item;
    dlpack_managed *plain; /* one of the two */
    dlpack_versioned *versioned;
} imported;

static void give_back(late_item *item)
{
    imported *held = (imported *)item;
    if (held->plain != NULL && held->plain->deleter != NULL) {
        held->plain->deleter(held->plain);
    }
    if (held->versioned != NULL && held->versioned->deleter != NULL) {
        held->versioned->deleter(held->versioned);
    }
    free(held);
}

static void free_imported(void *context, void *Py_UNUSED(data))
{
    late_item *item = context;
    if (Py_IsInitialized()) {
        late_release(item);
    } else {
        give_back(item); /* DLP2 */
    }
}

static int refuse_import(const dlpack_tensor *tensor)
{
    if (tensor->device_type != DLPACK_CPU) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack: device type %d is not supported, only the CPU",
                     tensor->device_type);
        return -1;
    }
    if (dtype_of(tensor) == MT_DTYPE_NONE) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack: type code %d with %d bits and %d lanes is not supported",
                     tensor->code, tensor->bits, tensor->lanes);
        return -1;
    }
    if (tensor->n_dims < 0 || tensor->n_dims > MT_MAX_DIMS) {
        PyErr_Format(PyExc_BufferError, "from_dlpack: %d dimensions, at most %d", tensor->n_dims,
                     MT_MAX_DIMS);
        return -1;
    }
    for (int32_t d = 0; d < tensor->n_dims && tensor->strides != NULL; d++) {
        if (tensor->strides[d] < 0) {
            PyErr_SetString(PyExc_ValueError,
                            "from_dlpack: tensors with negative strides are not supported");
            return -1;
        }
    }
    return 0;
}

/* A tensor over what was produced; it holds `held` from here on. NULL: exception, `held` is the
 * caller's. */
static mt_tensor *over(const dlpack_tensor *tensor, imported *held)
{
    mt_tensor *out = NULL;
    char *data = tensor->data == NULL ? NULL : (char *)tensor->data + tensor->byte_offset;
    if (data_refuse_misaligned(data, dtype_of(tensor), "from_dlpack: the memory") != 0) {
        return NULL;
    }
    (void)zero_or_raise(mt_tensor_borrow(data, dtype_of(tensor), tensor->sizes, tensor->strides,
                                         (size_t)tensor->n_dims, free_imported, held, &out));
    return out;
}

static PyObject *consume(PyObject *capsule, const char *name, const char *used)
{
    void *managed = PyCapsule_GetPointer(capsule, name);
    if (managed == NULL) {
        return NULL;
    }
    bool versioned = strcmp(name, DLPACK_CAPSULE_VERSIONED) == 0;
    dlpack_versioned *with = versioned ? managed : NULL;
    dlpack_managed *without = versioned ? NULL : managed;
    if (versioned && with->major != DLPACK_MAJOR) {
        return PyErr_Format(PyExc_BufferError, "from_dlpack: version %u.%u is not supported",
                            with->major, with->minor);
    }
    const dlpack_tensor *tensor = versioned ? &with->tensor : &without->tensor;
    if (refuse_import(tensor) != 0) {
        return NULL;
    }
    imported *held = calloc(1, sizeof(*held));
    if (held == NULL) {
        return PyErr_NoMemory();
    }
    *held = (imported){.item = {.drop = give_back}, .plain = without, .versioned = with};
    mt_tensor *out = over(tensor, held);
    if (out == NULL) {
        free(held); /* the capsule still owns it */
        return NULL;
    }
    if (PyCapsule_SetName(capsule, used) != 0) { /* cannot fail for a valid capsule */
        return NULL;
    }
    return tensor_wrap(out);
}

static PyObject *from_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DLPACK_CAPSULE)) {
        return consume(capsule, DLPACK_CAPSULE, DLPACK_CAPSULE_USED);
    }
    if (PyCapsule_IsValid(capsule, DLPACK_CAPSULE_VERSIONED)) {
        return consume(capsule, DLPACK_CAPSULE_VERSIONED, DLPACK_CAPSULE_VERSIONED_USED);
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                    "consumed only once, so you might have already constructed a tensor from it "
                    "once.");
    return NULL;
}

/* obj.__dlpack__(max_version=(1, 0)), or without it for producers that know no versions; what has
 * no such method is taken for the capsule. */
static PyObject *ask_for_capsule(PyObject *producer)
{
    PyObject *method = PyObject_GetAttrString(producer, "__dlpack__");
    if (method == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return Py_NewRef(producer);
    }
    PyObject *kwargs =
        method == NULL ? NULL : Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR, DLPACK_MINOR);
    PyObject *none = kwargs == NULL ? NULL : PyTuple_New(0);
    PyObject *capsule = none == NULL ? NULL : PyObject_Call(method, none, kwargs);
    if (capsule == NULL && none != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(none);
    Py_XDECREF(kwargs);
    Py_XDECREF(method);
    return capsule;
}

static PyObject *from_dlpack(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"ext_tensor", "device", "copy", NULL};
    PyObject *source = NULL;
    PyObject *device_wanted = Py_None;
    PyObject *copy = Py_None;
    mt_device device = MT_DEVICE_NONE;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", PY_NAMES(keywords), &source,
                                     &device_wanted, &copy) ||
        device_from_object(device_wanted, &device) != 0) {
        return NULL;
    }
    int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (copied < 0) {
        return NULL;
    }
    late_release_pending();
    PyObject *capsule = PyCapsule_CheckExact(source) ? Py_NewRef(source) : ask_for_capsule(source);
    PyObject *tensor = capsule == NULL ? NULL : from_capsule(capsule);
    Py_XDECREF(capsule);
    if (tensor == NULL || (device == MT_DEVICE_NONE && !copied)) {
        return tensor;
    }
    mt_tensor *moved =
        data_to(mt_tensor_retain(tensor_of(tensor)), MT_DTYPE_NONE, device, copied != 0);
    Py_DECREF(tensor);
    return moved == NULL ? NULL : tensor_wrap(moved);
}

static PyObject *to_dlpack(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    if (!tensor_check(tensor)) {
        return PyErr_Format(PyExc_TypeError, "to_dlpack(): expected Tensor, not %.100s",
                            Py_TYPE(tensor)->tp_name);
    }
    if (refuse_export(tensor_of(tensor)) != 0) {
        return NULL;
    }
    mt_tensor *held = data_hold(tensor_of(tensor));
    return held == NULL ? NULL : export_tensor(held, false, false);
}

/* ---- start ----------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"from_dlpack", PY_CALL(from_dlpack), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack($module, ext_tensor, /, *, device=None, copy=None)\n--\n\nA tensor over the memory of another library's tensor."},
    {"to_dlpack", to_dlpack, METH_O,
     "to_dlpack($module, tensor, /)\n--\n\nA capsule with which another library reads the tensor's memory."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef methods[] = {
    {"__dlpack__", PY_CALL(dlpack_method), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) -> capsule"},
    {"__dlpack_device__", dlpack_device_method, METH_NOARGS,
     "__dlpack_device__() -> (device type, id)"},
    {NULL, NULL, 0, NULL},
};

py_part dlpack_part;
int dlpack_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) != 0 ? -1 : data_add_methods(methods);
}
