/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused optimizer steps: one kernel call a parameter, for lists of parameters.
 *
 *     lists[0]  parameters      lists[1]  gradients      lists[2...]  state
 *
 * P1 Everything is checked, and every copy that a strided tensor needs is made, before the first
 *    parameter is written: a step that fails for want of memory has changed nothing.
 * P2 Versions grow in the dispatcher (MT_OP_OPTIMIZER).
 */
#include "base/alloc.h"
#include "mindtorch/ops/op_nn_support.h"
#include "mindtorch/ops/view_geometry.h"

enum {
    MAX_LISTS = 5,
    PARAMETERS = 0,
    GRADIENTS = 1
};

/* One step. */
typedef struct step {
    const mt_value *lists[MAX_LISTS];
    const char *names[MAX_LISTS];
    uint32_t n_lists;
    uint32_t count;     /* parameters */
    mt_tensor **copies; /* count * n_lists contiguous copies, NULL where none is needed; or NULL */
} step;

/* Takes the call's lists from argument 0 on. `used` has a bit for each that must be as long as the
 * parameters; the others must be empty. */
static int open_step(const mt__call *call, uint32_t n_lists, uint32_t used, step *s)
{
    *s = (step){.n_lists = n_lists, .count = call->args[0].count};
    for (uint32_t i = 0; i < n_lists; i++) {
        s->lists[i] = &call->args[i];
        s->names[i] = call->row->params[i].name;
        uint32_t expected = (used >> i & 1) != 0 ? s->count : 0;
        if (s->lists[i]->count != expected && !(expected == 0 && s->lists[i]->count == s->count)) {
            return mtb_fail(MT_ERUNTIME, "%s(): %s must have %u tensors, got %u", mt__op_name(call),
                            s->names[i], expected, s->lists[i]->count);
        }
    }
    return MT_OK;
}

/* The tensor of list i for parameter k; NULL for lists that are not used. */
static mt_tensor *tensor_of(const step *s, uint32_t used, uint32_t i, uint32_t k)
{
    return (used >> i & 1) != 0 ? s->lists[i]->of.tensors[k] : NULL;
}

static int check_tensor(const mt__call *call, const step *s, const mt_tensor *parameter,
                        const mt_tensor *tensor, uint32_t list)
{
    mt__shape a = mt__tensor_shape(parameter);
    mt__shape b = mt__tensor_shape(tensor);
    if (!mt__shape_equal(&a, &b) || parameter->dtype != tensor->dtype ||
        parameter->device != tensor->device) {
        char text_a[MT_SHAPE_TEXT];
        char text_b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "%s(): %s must be like its parameter: %s of type %s on %s does not match "
                        "%s of type %s",
                        mt__op_name(call), s->names[list],
                        mt__shape_text(tensor->sizes, tensor->n_dims, text_a),
                        mt_dtype_name((mt_dtype)tensor->dtype), mt_device_name(tensor->device),
                        mt__shape_text(parameter->sizes, parameter->n_dims, text_b),
                        mt_dtype_name((mt_dtype)parameter->dtype));
    }
    if (list != GRADIENTS && !tensor->contiguous &&
        !mt__geometry_is_apart(tensor->sizes, tensor->strides, tensor->n_dims)) {
        return mtb_fail(MT_ERUNTIME,
                        "unsupported operation: more than one element of the written-to tensor "
                        "refers to a single memory location. Please clone() the tensor before "
                        "performing the operation.");
    }
    return MT_OK;
}

/* Checks all tensors; *strided says whether one of them is not contiguous. */
static int check_step(const mt__call *call, const step *s, uint32_t used, bool *strided)
{
    *strided = false;
    for (uint32_t k = 0; k < s->count; k++) {
        const mt_tensor *parameter = s->lists[PARAMETERS]->of.tensors[k];
        MT_TRY(mt__need_real(call, (mt_dtype)parameter->dtype));
        for (uint32_t i = 0; i < s->n_lists; i++) {
            const mt_tensor *tensor = tensor_of(s, used, i, k);
            if (tensor != NULL) {
                MT_TRY(check_tensor(call, s, parameter, tensor, i));
                *strided |= !tensor->contiguous;
            }
        }
    }
    return MT_OK;
}

static int copy_strided(step *s, uint32_t used)
{
    s->copies = mtb_calloc((size_t)s->count * s->n_lists, sizeof(*s->copies));
    if (s->copies == NULL) {
        return mtb_fail(MT_ENOMEM, "no memory for copies of %u parameters", s->count);
    }
    for (uint32_t k = 0; k < s->count; k++) {
        for (uint32_t i = 0; i < s->n_lists; i++) {
            mt_tensor *tensor = tensor_of(s, used, i, k);
            if (tensor != NULL && !tensor->contiguous) {
                mt_tensor **copy = &s->copies[(size_t)k * s->n_lists + i];
                MT_TRY(mt__tensor_new_like(tensor, (mt_dtype)tensor->dtype, copy));
                MT_TRY(mt__copy_elements(*copy, tensor));
            }
        }
    }
    return MT_OK;
}

static void close_step(step *s)
{
    if (s->copies == NULL) {
        return;
    }
    for (size_t i = 0; i < (size_t)s->count * s->n_lists; i++) {
        mt_tensor_release(s->copies[i]);
    }
    mtb_free(s->copies);
}

static int step_one(mt__call *call, const step *s, uint32_t used, uint32_t k, mt__kernel_args *args)
{
    mt_tensor *const *copies = s->copies == NULL ? NULL : &s->copies[(size_t)k * s->n_lists];
    if (s->lists[PARAMETERS]->of.tensors[k]->numel == 0) {
        return MT_OK;
    }
    args->n_tensors = s->n_lists;
    for (uint32_t i = 0; i < s->n_lists; i++) {
        bool copied = copies != NULL && copies[i] != NULL;
        args->tensors[i] = copied ? copies[i] : tensor_of(s, used, i, k);
    }
    MT_TRY(mt__kernel(call, args));
    for (uint32_t i = 0; copies != NULL && i < s->n_lists; i++) {
        if (copies[i] != NULL && i != GRADIENTS) {
            MT_TRY(mt__copy_elements(tensor_of(s, used, i, k), copies[i]));
        }
    }
    return MT_OK;
}

/* The whole step: `used` as in open_step, `args` the kernel's call without its tensors. */
static int run_step(mt__call *call, uint32_t n_lists, uint32_t used, mt__kernel_args *args)
{
    step s;
    bool strided = false;
    MT_TRY(open_step(call, n_lists, used, &s));
    MT_TRY(check_step(call, &s, used, &strided));
    int status = strided ? copy_strided(&s, used) : MT_OK;
    for (uint32_t k = 0; status == MT_OK && k < s.count; k++) {
        status = step_one(call, &s, used, k, args);
    }
    close_step(&s);
    return status;
}

static mt_scalar real_argument(const mt__call *call, uint32_t i)
{
    return mt_real(mt__arg_real(call, i));
}

int mt__run__fused_sgd_(mt__call *call)
{
    enum {
        WEIGHT_DECAY = 3,
        MOMENTUM,
        LR,
        DAMPENING,
        NESTEROV,
        MAXIMIZE,
        IS_FIRST_STEP
    };
    bool momentum = mt__arg_real(call, MOMENTUM) != 0.0;
    mt__kernel_args args = {
        .kernel = MT_KERNEL_SGD,
        .n_ints = 3,
        .ints = {mt__arg_bool(call, NESTEROV), mt__arg_bool(call, MAXIMIZE),
                 mt__arg_bool(call, IS_FIRST_STEP)},
        .n_scalars = 4,
        .scalars = {real_argument(call, LR), real_argument(call, MOMENTUM),
                    real_argument(call, DAMPENING), real_argument(call, WEIGHT_DECAY)},
    };
    return run_step(call, 3, momentum ? 7U : 3U, &args);
}

static int run_adam(mt__call *call, uint16_t code)
{
    enum {
        STEP = 5,
        LR,
        BETA1,
        BETA2,
        WEIGHT_DECAY,
        EPS,
        AMSGRAD,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_ADAM,
        .code = code,
        .n_ints = 2,
        .ints = {mt__arg_int(call, STEP), mt__arg_bool(call, MAXIMIZE)},
        .n_scalars = 5,
        .scalars = {real_argument(call, LR), real_argument(call, BETA1), real_argument(call, BETA2),
                    real_argument(call, EPS), real_argument(call, WEIGHT_DECAY)},
    };
    if (args.ints[0] < 1) {
        return mtb_fail(MT_EVALUE, "%s(): step counts from 1, got %lld", mt__op_name(call),
                        (long long)args.ints[0]);
    }
    return run_step(call, 5, mt__arg_bool(call, AMSGRAD) ? 31U : 15U, &args);
}

int mt__run__fused_adam_(mt__call *call)
{
    return run_adam(call, 0);
}

int mt__run__fused_adamw_(mt__call *call)
{
    return run_adam(call, 1);
}

int mt__run__fused_rmsprop_(mt__call *call)
{
    enum {
        LR = 5,
        ALPHA,
        EPS,
        WEIGHT_DECAY,
        MOMENTUM,
        CENTERED,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_RMSPROP,
        .n_ints = 1,
        .ints = {mt__arg_bool(call, MAXIMIZE)},
        .n_scalars = 5,
        .scalars = {real_argument(call, LR), real_argument(call, ALPHA), real_argument(call, EPS),
                    real_argument(call, WEIGHT_DECAY), real_argument(call, MOMENTUM)},
    };
    uint32_t used = 7U;
    used |= mt__arg_real(call, MOMENTUM) > 0.0 ? 8U : 0U;
    used |= mt__arg_bool(call, CENTERED) ? 16U : 0U;
    return run_step(call, 5, used, &args);
}

int mt__run__fused_adagrad_(mt__call *call)
{
    enum {
        STEP = 3,
        LR,
        LR_DECAY,
        WEIGHT_DECAY,
        EPS,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_ADAGRAD,
        .n_ints = 2,
        .ints = {mt__arg_int(call, STEP), mt__arg_bool(call, MAXIMIZE)},
        .n_scalars = 4,
        .scalars = {real_argument(call, LR), real_argument(call, LR_DECAY),
                    real_argument(call, WEIGHT_DECAY), real_argument(call, EPS)},
    };
    if (args.ints[0] < 1) {
        return mtb_fail(MT_EVALUE, "%s(): step counts from 1, got %lld", mt__op_name(call),
                        (long long)args.ints[0]);
    }
    return run_step(call, 3, 7U, &args);
}
