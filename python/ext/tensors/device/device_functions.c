/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices and their memory: what mindtorch_v2/npu.py is made of.
 */
#include "tensors/device/device_parts.h"

static PyObject *device_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(mt_device_count(MT_DEVICE_TYPE_NPU));
}

static PyObject *current_device(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(mt_current_device() & 0xFF);
}

static PyObject *set_device(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_device device = MT_NPU;
    return accelerator_from_object(object, &device) != 0
               ? NULL
               : none_or_raise(mt_set_current_device(device));
}

/* A call that waits for a device. */
static PyObject *wait_for(int (*call)(mt_device), PyObject *object)
{
    mt_device device = MT_CPU;
    if (device_from_object(object, &device) != 0) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, call(device));
    return none_or_raise(status);
}

static PyObject *synchronize(PyObject *Py_UNUSED(module), PyObject *object)
{
    return wait_for(mt_device_synchronize, object);
}

/* (name, total bytes, free bytes) */
static PyObject *device_info(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_device device = MT_CPU;
    if (device_from_object(object, &device) != 0) {
        return NULL;
    }
    mt_device_info info = {.struct_size = sizeof info};
    if (zero_or_raise(mt_device_get_info(device, &info)) != 0) {
        return NULL;
    }
    info.name[sizeof info.name - 1] = '\0';
    return Py_BuildValue("sKK", info.name, (unsigned long long)info.total_bytes,
                         (unsigned long long)info.free_bytes);
}

static PyObject *memory_stats(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_device device = MT_CPU;
    if (device_from_object(object, &device) != 0) {
        return NULL;
    }
    mt_memory_stats stats = {.struct_size = sizeof stats};
    if (zero_or_raise(mt_device_get_memory_stats(device, &stats)) != 0) {
        return NULL;
    }
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "allocated_bytes.all.current",
                         (unsigned long long)stats.allocated_bytes, "allocated_bytes.all.peak",
                         (unsigned long long)stats.peak_allocated_bytes,
                         "reserved_bytes.all.current", (unsigned long long)stats.reserved_bytes,
                         "reserved_bytes.all.peak", (unsigned long long)stats.peak_reserved_bytes,
                         "allocation.all.current",
                         (unsigned long long)(stats.allocations - stats.releases),
                         "allocation.all.allocated", (unsigned long long)stats.allocations,
                         "allocation.all.freed", (unsigned long long)stats.releases);
}

static PyObject *reset_peaks(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_device device = MT_CPU;
    return device_from_object(object, &device) != 0 ? NULL
                                                    : none_or_raise(mt_device_reset_peaks(device));
}

static PyObject *empty_cache(PyObject *Py_UNUSED(module), PyObject *object)
{
    return wait_for(mt_device_empty_cache, object);
}

/* ---- pinned memory ---- */

mt_tensor *tensor_pinned(mt_tensor *tensor)
{
    mt_tensor *pinned = NULL;
    int status = MT_OK;
    WITHOUT_GIL(status, mt_tensor_pin(tensor, &pinned));
    (void)zero_or_raise(status);
    return pinned;
}

mt_tensor *tensor_pin_made(mt_tensor *tensor)
{
    mt_tensor *pinned = NULL;
    if (mt_device_count(MT_DEVICE_TYPE_NPU) == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "pin_memory=True requires a CUDA or other accelerator backend; no pinned "
                        "memory allocator is available on this system.");
    } else if (mt_tensor_device(tensor) != MT_CPU) {
        PyErr_SetString(PyExc_RuntimeError, "Only dense CPU tensors can be pinned");
    } else {
        pinned = tensor_pinned(tensor);
    }
    mt_tensor_release(tensor);
    return pinned;
}

static PyMethodDef functions[] = {
    {"_device_count", device_count, METH_NOARGS, NULL},
    {"_device_current", current_device, METH_NOARGS, NULL},
    {"_device_set", set_device, METH_O, NULL},
    {"_device_synchronize", synchronize, METH_O, NULL},
    {"_device_info", device_info, METH_O, NULL},
    {"_device_memory_stats", memory_stats, METH_O, NULL},
    {"_device_reset_peaks", reset_peaks, METH_O, NULL},
    {"_device_empty_cache", empty_cache, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

py_part device_functions_part;
int device_functions_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
