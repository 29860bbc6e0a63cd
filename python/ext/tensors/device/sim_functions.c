/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls of the simulated accelerator (mindtorch/sim.h), for tests: mindtorch_v2/_npu_sim.py.
 */
#include "tensors/device/device_parts.h"

#include <mindtorch/sim.h>

#include <string.h>

/* NULL: RuntimeError, the accelerator is another one or there is none. */
static const mt_sim *find_sim(void)
{
    const mt_sim *sim = mt_backend_extension(MT_DEVICE_TYPE_NPU, "sim");
    if (sim == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the accelerator is not the simulated one (MINDTORCH_NPU=sim)");
    }
    return sim;
}

/* The accelerator, and the place of torch.Stream; None: the current one. NULL: exception. */
static const mt_sim *sim_stream(PyObject *object, uint32_t *device, uint32_t *number)
{
    mt_stream *stream = NULL;
    const mt_sim *sim = find_sim();
    if (sim == NULL || stream_from_object(object, "sim", &stream) != 0) {
        return NULL;
    }
    *device = (uint32_t)mt_stream_device(stream) & 0xFF;
    *number = mt_stream_number(stream);
    return sim;
}

static PyObject *sim_hold(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned int launches = 0, device = 0, number = 0;
    PyObject *stream = Py_None;
    unsigned long long correlation = 0;
    const mt_sim *sim = PyArg_ParseTuple(args, "IO|K:hold", &launches, &stream, &correlation)
                            ? sim_stream(stream, &device, &number)
                            : NULL;
    if (sim == NULL) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, sim->hold(device, number, launches, correlation));
    return none_or_raise(status);
}

static PyObject *sim_release(PyObject *Py_UNUSED(module), PyObject *stream)
{
    uint32_t device = 0, number = 0;
    const mt_sim *sim = sim_stream(stream, &device, &number);
    return sim == NULL ? NULL : none_or_raise(sim->release(device, number));
}

static PyObject *sim_counts(PyObject *Py_UNUSED(module), PyObject *stream)
{
    uint32_t device = 0, number = 0;
    mt_sim_counts counts = {.struct_size = sizeof counts};
    const mt_sim *sim = sim_stream(stream, &device, &number);
    if (sim == NULL || zero_or_raise(sim->counts(device, number, &counts)) != 0) {
        return NULL;
    }
    return Py_BuildValue("{s:I,s:I,s:I,s:K,s:K,s:K,s:I}", "waiting", counts.waiting, "most",
                         counts.most, "gave_up", counts.gave_up, "launches",
                         (unsigned long long)counts.launches, "done",
                         (unsigned long long)counts.done, "stalled",
                         (unsigned long long)counts.stalled, "holding", counts.holding);
}

static PyObject *sim_reset_counts(PyObject *Py_UNUSED(module), PyObject *stream)
{
    uint32_t device = 0, number = 0;
    const mt_sim *sim = sim_stream(stream, &device, &number);
    return sim == NULL ? NULL : none_or_raise(sim->reset_counts(device, number));
}

/* The status that becomes an exception of this name; 0 sets ValueError: there is none. */
static int status_of(const char *exception)
{
    static const struct {
        const char *exception;
        int status;
    } statuses[] = {
#define X(name, value, exception, text) {exception, value},
#include <mindtorch/status.def>
#undef X
    };
    for (size_t i = 1; i < sizeof statuses / sizeof statuses[0]; i++) { /* [0] is success */
        if (strcmp(statuses[i].exception, exception) == 0) {
            return statuses[i].status;
        }
    }
    PyErr_Format(PyExc_ValueError, "fail: no failure of a device raises %s", exception);
    return 0;
}

static PyObject *sim_fail(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *which = Py_None;
    mt_device device = MT_NPU;
    unsigned int after = 0;
    const char *exception = NULL;
    const char *message = NULL;
    const mt_sim *sim = find_sim();
    if (sim == NULL || !PyArg_ParseTuple(args, "OIss:fail", &which, &after, &exception, &message) ||
        accelerator_from_object(which, &device) != 0) {
        return NULL;
    }
    int failure = status_of(exception);
    return failure == 0
               ? NULL
               : none_or_raise(sim->fail((uint32_t)device & 0xFF, after, failure, message));
}

static PyObject *sim_lose(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *which = Py_None;
    mt_device device = MT_NPU;
    int lost = 1;
    const mt_sim *sim = find_sim();
    if (sim == NULL || !PyArg_ParseTuple(args, "Op:lose", &which, &lost) ||
        accelerator_from_object(which, &device) != 0) {
        return NULL;
    }
    return none_or_raise(sim->lose((uint32_t)device & 0xFF, lost != 0));
}

static PyMethodDef functions[] = {
    {"_sim_hold", sim_hold, METH_VARARGS, "_sim_hold(launches, stream, correlation=0)"},
    {"_sim_release", sim_release, METH_O, "_sim_release(stream)"},
    {"_sim_counts", sim_counts, METH_O, "_sim_counts(stream) -> dict"},
    {"_sim_reset_counts", sim_reset_counts, METH_O, "_sim_reset_counts(stream)"},
    {"_sim_fail", sim_fail, METH_VARARGS, "_sim_fail(device, after, exception, message)"},
    {"_sim_lose", sim_lose, METH_VARARGS, "_sim_lose(device, lost)"},
    {NULL, NULL, 0, NULL},
};

py_part sim_functions_part;
int sim_functions_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
