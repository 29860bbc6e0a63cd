/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of ops, with the GIL for small ones and without it for large ones (PYT3).
 *
 * Whether a call is large is estimated at no cost: the number of elements of its input tensors is
 * compared with a limit for the kind of op. Releasing and taking the GIL costs about 100 ns if no
 * other thread wants it, and a thread switch otherwise, so small ops keep it. Calls for an
 * accelerator never keep it, except views: they wait for results, for memory, or for room in a full
 * queue, and the thread they wait for may need the GIL.
 *
 *   CALL1  The process does not end during a call: after the interpreter has ended, we wait (at
 *          most MAX_WAIT_MS) for calls of daemon threads that run without the GIL, since the C
 *          library's exit frees what they use. They find no interpreter afterwards and their
 *          threads end.
 */
#include "common/py_language.h"
#include "tensors/module/tensors_state.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* How much of an op's input makes it large, in elements. */
enum {
    LARGE_POINTWISE = 32768, /* about 10 us */
    LARGE_PRODUCT = 2048,    /* matrices, convolutions: work grows faster than elements */
    MAX_WAIT_MS = 2000,      /* CALL1 */
    MAX_KNOWN = 1024         /* ops with a number above (users') count as pointwise */
};

typedef enum weight {
    WEIGHT_POINTWISE,
    WEIGHT_PRODUCT,
    WEIGHT_NOTHING, /* views: never large */
    WEIGHT_SIZES    /* factories: a list of sizes says it */
} weight;

static uint8_t weights[MAX_KNOWN];

/* Calls without the GIL, now. Grows with the GIL held; shrinks before the GIL is asked for. */
static atomic_uint n_running;

/* A forked child does not have the other threads. */
static void forget_running(void)
{
    atomic_store(&n_running, 0);
}

/* After the interpreter's end (CALL1). */
static void wait_for_running(void)
{
    for (int i = 0; i < MAX_WAIT_MS && atomic_load(&n_running) > 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

py_part tensors_call_start;
int tensors_call_start(PyObject *Py_UNUSED(module))
{
    if (Py_AtExit(wait_for_running) != 0 || pthread_atfork(NULL, NULL, forget_running) != 0) {
        PyErr_SetString(PyExc_ImportError, "mindtorch_v2: no room for what runs at exit or fork");
        return -1;
    }
    uint32_t count = mt_op_count();
    for (mt_op op = 0; op < count && op < MAX_KNOWN; op++) {
        mt_op_info info = {.struct_size = sizeof info};
        if (zero_or_raise(mt_op_get_info(op, &info)) != 0) {
            return -1;
        }
        weights[op] = (uint8_t)((info.flags & MT_OP_VIEW) != 0      ? WEIGHT_NOTHING
                                : (info.flags & MT_OP_FACTORY) != 0 ? WEIGHT_SIZES
                                : (info.flags & MT_OP_PRODUCT) != 0 ? WEIGHT_PRODUCT
                                                                    : WEIGHT_POINTWISE);
    }
    return 0;
}

/* mtprof._mtprof's functions, looked up when stacks are first wanted; NULL where it has none. */
static const py_language *language(void)
{
    static const py_language *found;
    static bool asked;
    if (!asked) {
        asked = true;
        found = PyCapsule_Import(PY_LANGUAGE_CAPSULE, 0);
        if (found == NULL) {
            PyErr_Clear();
        }
    }
    return found;
}

void tensors_release_gil(tensors_pause *pause)
{
    pause->stack = 0;
    pause->held = false;
    if (mtprof_wants(MTPROF_WANT_STACKS)) {
        const py_language *known = language();
        if (known != NULL) {
            pause->stack = known->hold();
            pause->held = true;
        }
    }
    atomic_fetch_add(&n_running, 1);
    pause->thread = PyEval_SaveThread();
}

void tensors_take_gil(tensors_pause *pause)
{
    atomic_fetch_sub(&n_running, 1);
    PyEval_RestoreThread(pause->thread);
    if (pause->held) {
        language()->drop(pause->stack);
    }
}

static bool is_large_list(const mt_value *value, int64_t bound)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < value->count && sum <= bound; i++) {
        sum += value->of.tensors[i] == NULL ? 0 : mt_tensor_numel(value->of.tensors[i]);
    }
    return sum > bound;
}

static bool is_large_size(const mt_value *value)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < value->count; i++) {
        int64_t size = value->of.ints[i];
        if (size > LARGE_POINTWISE || (size > 0 && product > LARGE_POINTWISE / size)) {
            return true;
        }
        product *= size > 0 ? size : 1;
    }
    return false;
}

/* Whether a tensor that goes in is on an accelerator, or the result is to be there. */
static bool is_far(const mt_value *args, uint32_t n_args)
{
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind == MT_KIND_TENSOR) {
            if (mt_tensor_device(args[i].of.tensor) >= MT_NPU) {
                return true;
            }
        } else if (args[i].kind == MT_KIND_DEVICE) {
            if (args[i].of.integer >= MT_NPU) {
                return true;
            }
        } else if (args[i].kind == MT_KIND_TENSORS) {
            for (uint32_t k = 0; k < args[i].count; k++) {
                const mt_tensor *tensor = args[i].of.tensors[k];
                if (tensor != NULL && mt_tensor_device(tensor) >= MT_NPU) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool is_large(mt_op op, const mt_value *args, uint32_t n_args)
{
    uint8_t kind = op < MAX_KNOWN ? weights[op] : WEIGHT_POINTWISE;
    if (kind == WEIGHT_NOTHING) {
        return false;
    }
    if (tensors.far && is_far(args, n_args)) {
        return true;
    }
    int64_t bound = kind == WEIGHT_PRODUCT ? LARGE_PRODUCT : LARGE_POINTWISE;
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind == MT_KIND_TENSOR) {
            if (mt_tensor_numel(args[i].of.tensor) > bound) {
                return true;
            }
        } else if (args[i].kind == MT_KIND_TENSORS) {
            if (is_large_list(&args[i], bound)) {
                return true;
            }
        } else if (args[i].kind == MT_KIND_INTS && kind == WEIGHT_SIZES &&
                   is_large_size(&args[i])) {
            return true;
        }
    }
    return false;
}

int tensors_call(mt_op op, const mt_value *args, uint32_t n_args, mt_value *results,
                 uint32_t n_results)
{
    int status = 0;
    if (is_large(op, args, n_args)) {
        tensors_pause pause;
        tensors_release_gil(&pause);
        status = mt_call(op, args, n_args, results, n_results);
        tensors_take_gil(&pause);
    } else {
        status = mt_call(op, args, n_args, results, n_results);
    }
    return zero_or_raise(status);
}

int tensors_find_op(const char *name, mt_op *op)
{
    if (!mt_op_find(name, op)) {
        PyErr_Format(PyExc_NotImplementedError, "there is no op '%s'", name);
        return -1;
    }
    return 0;
}

PyObject *tensors_call_named(const char *name, const mt_value *args, uint32_t n_args)
{
    mt_op op = 0;
    if (tensors_find_op(name, &op) != 0) {
        return NULL;
    }
    mt_value result;
    return tensors_call(op, args, n_args, &result, 1) != 0 ? NULL : tensors_result(&result);
}
