/* SPDX-License-Identifier: Apache-2.0
 *
 * Autocast's state of a thread; mindtorch_v2/amp has the names that programs use. Types of devices
 * are those of mt_device_type.
 */
#include "tensors/data/data_parts.h"

#include <mindtorch/autocast.h>

/* Tensors that a cache has kept may be the last references to Python objects. */
#include "tensors/interop/late_release.h"

static PyObject *get_enabled(PyObject *Py_UNUSED(module), PyObject *args)
{
    int type = 0;
    return PyArg_ParseTuple(args, "i:_autocast_enabled", &type)
               ? PyBool_FromLong(mt_autocast_enabled((mt_device_type)type))
               : NULL;
}

static PyObject *set_enabled(PyObject *Py_UNUSED(module), PyObject *args)
{
    int type = 0;
    int enabled = 0;
    return PyArg_ParseTuple(args, "ip:_autocast_set_enabled", &type, &enabled)
               ? PyBool_FromLong(mt_autocast_set_enabled((mt_device_type)type, enabled != 0))
               : NULL;
}

static PyObject *get_dtype(PyObject *Py_UNUSED(module), PyObject *args)
{
    int type = 0;
    if (!PyArg_ParseTuple(args, "i:_autocast_dtype", &type)) {
        return NULL;
    }
    mt_dtype dtype = mt_autocast_dtype((mt_device_type)type);
    if (dtype == MT_DTYPE_NONE) {
        return PyErr_Format(PyExc_RuntimeError, "_autocast_dtype(): no device has type %d", type);
    }
    return Py_NewRef(tensors.dtypes[dtype]);
}

static PyObject *set_dtype(PyObject *Py_UNUSED(module), PyObject *args)
{
    int type = 0;
    PyObject *object = NULL;
    mt_dtype dtype = MT_DTYPE_NONE;
    if (!PyArg_ParseTuple(args, "iO:_autocast_set_dtype", &type, &object) ||
        dtype_from_object(object, &dtype) != 0) {
        return NULL;
    }
    return none_or_raise(mt_autocast_set_dtype((mt_device_type)type, dtype));
}

static PyObject *get_cache(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_autocast_cache_enabled());
}

static PyObject *set_cache(PyObject *Py_UNUSED(module), PyObject *enabled)
{
    int truth = PyObject_IsTrue(enabled);
    return truth < 0 ? NULL : PyBool_FromLong(mt_autocast_set_cache_enabled(truth != 0));
}

static PyObject *clear_cache(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    mt_autocast_clear_cache();
    late_release_pending();
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(mt_autocast_enter());
}

static PyObject *leave(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    uint32_t depth = mt_autocast_leave();
    late_release_pending();
    return PyLong_FromUnsignedLong(depth);
}

static PyMethodDef functions[] = {
    {"_autocast_enabled", get_enabled, METH_VARARGS, "_autocast_enabled(type) -> bool"},
    {"_autocast_set_enabled", set_enabled, METH_VARARGS,
     "_autocast_set_enabled(type, enabled) -> what it was"},
    {"_autocast_dtype", get_dtype, METH_VARARGS, "_autocast_dtype(type) -> dtype"},
    {"_autocast_set_dtype", set_dtype, METH_VARARGS, "_autocast_set_dtype(type, dtype)"},
    {"is_autocast_cache_enabled", get_cache, METH_NOARGS,
     "is_autocast_cache_enabled($module, /)\n--\n\nWhether autocast keeps casts of parameters."},
    {"set_autocast_cache_enabled", set_cache, METH_O,
     "set_autocast_cache_enabled($module, enabled, /)\n--\n\nWhether autocast keeps casts of parameters."},
    {"clear_autocast_cache", clear_cache, METH_NOARGS,
     "clear_autocast_cache($module, /)\n--\n\nDrops the casts of parameters that autocast has kept."},
    {"autocast_increment_nesting", enter, METH_NOARGS,
     "autocast_increment_nesting($module, /)\n--\n\nBegins a region of autocast; how deep they are nested."},
    {"autocast_decrement_nesting", leave, METH_NOARGS,
     "autocast_decrement_nesting($module, /)\n--\n\nEnds a region of autocast; how deep they are nested."},
    {NULL, NULL, 0, NULL},
};

py_part autocast_part;
int autocast_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
