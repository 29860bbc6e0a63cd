/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused optimizer steps for lists of parameters: one kernel call per parameter.
 *
 *     argument 0  parameters      argument 1  gradients      arguments 2...  state
 *
 *   FST1  Everything is checked, and every copy that a strided tensor needs is made, before the
 *         first parameter is written: a step that fails for lack of memory has changed nothing.
 *   FST2  Versions grow in the dispatcher (MT_OP_OPTIMIZER).
 */
#include "base/alloc.h"
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/optim/nadam_mu.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <math.h>

enum {
    PARAMETERS = 0,
    GRADIENTS = 1
};

/* One step. */
typedef struct step {
    const mt__call *call;
    uint32_t n_lists;
    uint32_t used;  /* a bit for each list that is as long as the parameters; others are empty */
    uint32_t count; /* parameters */
    mt_tensor **copies; /* count * n_lists contiguous copies, NULL where none is needed; or NULL */
} step;

static int check_lengths(const step *s)
{
    for (uint32_t i = 0; i < s->n_lists; i++) {
        uint32_t length = s->call->args[i].count;
        bool is_used = (s->used >> i & 1) != 0;
        if (is_used ? length != s->count : length != 0 && length != s->count) {
            return mtb_fail(MT_ERUNTIME, "%s(): %s must have %u tensors, got %u",
                            mt__op_name(s->call), s->call->row->params[i].name,
                            is_used ? s->count : 0, length);
        }
    }
    return MT_OK;
}

/* The tensor of list i for parameter k; NULL for lists that are not used. */
static mt_tensor *tensor_of(const step *s, uint32_t i, uint32_t k)
{
    return (s->used >> i & 1) != 0 ? s->call->args[i].of.tensors[k] : NULL;
}

static int check_tensor(const step *s, const mt_tensor *parameter, const mt_tensor *tensor,
                        uint32_t list)
{
    mt__shape a = mt__tensor_shape(parameter);
    mt__shape b = mt__tensor_shape(tensor);
    if (!mt__shape_equal(&a, &b) || parameter->dtype != tensor->dtype ||
        parameter->device != tensor->device) {
        char text_a[MT_SHAPE_TEXT];
        char text_b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "%s(): %s must be like its parameter: %s of type %s does not match %s of "
                        "type %s",
                        mt__op_name(s->call), s->call->row->params[list].name,
                        mt__shape_text(tensor->sizes, tensor->n_dims, text_a),
                        mt_dtype_name((mt_dtype)tensor->dtype),
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

/* Checks parameter k and what belongs to it; *strided becomes true if one is not contiguous. */
static int check_parameter(const step *s, uint32_t k, bool *strided)
{
    const mt_tensor *parameter = s->call->args[PARAMETERS].of.tensors[k];
    MT_TRY(mt__need_real(s->call, (mt_dtype)parameter->dtype));
    for (uint32_t i = 0; i < s->n_lists; i++) {
        const mt_tensor *tensor = tensor_of(s, i, k);
        if (tensor == NULL) {
            continue;
        }
        MT_TRY(check_tensor(s, parameter, tensor, i));
        *strided |= !tensor->contiguous;
    }
    return MT_OK;
}

static int check_step(const step *s, bool *strided)
{
    *strided = false;
    MT_TRY(check_lengths(s));
    for (uint32_t k = 0; k < s->count; k++) {
        MT_TRY(check_parameter(s, k, strided));
    }
    return MT_OK;
}

/* Contiguous copies of what is strided among parameter k's tensors. */
static int copy_parameter(step *s, uint32_t k)
{
    for (uint32_t i = 0; i < s->n_lists; i++) {
        mt_tensor *tensor = tensor_of(s, i, k);
        if (tensor == NULL || tensor->contiguous) {
            continue;
        }
        mt_tensor **copy = &s->copies[(size_t)k * s->n_lists + i];
        MT_TRY(mt__tensor_new_like(tensor, (mt_dtype)tensor->dtype, copy));
        MT_TRY(mt__copy_elements(*copy, tensor));
    }
    return MT_OK;
}

static int copy_strided(step *s)
{
    s->copies = mtb_calloc((size_t)s->count * s->n_lists, sizeof(*s->copies));
    if (s->copies == NULL) {
        return mtb_fail(MT_ENOMEM, "%s(): no memory for copies of %u parameters",
                        mt__op_name(s->call), s->count);
    }
    for (uint32_t k = 0; k < s->count; k++) {
        MT_TRY(copy_parameter(s, k));
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

static int step_one(mt__call *call, const step *s, uint32_t k, mt__kernel_args *args)
{
    mt_tensor *const *copies = s->copies == NULL ? NULL : &s->copies[(size_t)k * s->n_lists];
    if (call->args[PARAMETERS].of.tensors[k]->numel == 0) {
        return MT_OK;
    }
    args->n_tensors = s->n_lists;
    for (uint32_t i = 0; i < s->n_lists; i++) {
        bool copied = copies != NULL && copies[i] != NULL;
        args->tensors[i] = copied ? copies[i] : tensor_of(s, i, k);
    }
    MT_TRY(mt__kernel(call, args));
    for (uint32_t i = 0; copies != NULL && i < s->n_lists; i++) {
        if (copies[i] != NULL && i != GRADIENTS) {
            MT_TRY(mt__copy_elements(tensor_of(s, i, k), copies[i]));
        }
    }
    return MT_OK;
}

/* The whole step: `args` is the kernel's call without its tensors. */
static int run_step(mt__call *call, uint32_t n_lists, uint32_t used, mt__kernel_args *args)
{
    step s = {.call = call, .n_lists = n_lists, .used = used, .count = call->args[0].count};
    bool strided = false;
    MT_TRY(check_step(&s, &strided));
    int status = strided ? copy_strided(&s) : MT_OK;
    for (uint32_t k = 0; status == MT_OK && k < s.count; k++) {
        status = step_one(call, &s, k, args);
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
        MT_INTS(mt__arg_bool(call, NESTEROV), mt__arg_bool(call, MAXIMIZE),
                mt__arg_bool(call, IS_FIRST_STEP)),
        MT_SCALARS(real_argument(call, LR), real_argument(call, MOMENTUM),
                   real_argument(call, DAMPENING), real_argument(call, WEIGHT_DECAY)),
    };
    return run_step(call, 3, momentum ? 7U : 3U, &args);
}

static int check_count(const mt__call *call, int64_t count)
{
    return count >= 1 ? MT_OK
                      : mtb_fail(MT_EVALUE, "%s(): step counts from 1, got %lld", mt__op_name(call),
                                 (long long)count);
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
        MT_INTS(mt__arg_int(call, STEP), mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, LR), real_argument(call, BETA1), real_argument(call, BETA2),
                   real_argument(call, EPS), real_argument(call, WEIGHT_DECAY)),
    };
    MT_TRY(check_count(call, args.ints[0]));
    return run_step(call, 5, mt__arg_bool(call, AMSGRAD) ? 31U : 15U, &args);
}

MT_RUN(_fused_adam_, run_adam, 0)
MT_RUN(_fused_adamw_, run_adam, 1)

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
        MT_INTS(mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, LR), real_argument(call, ALPHA), real_argument(call, EPS),
                   real_argument(call, WEIGHT_DECAY), real_argument(call, MOMENTUM)),
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
        MT_INTS(mt__arg_int(call, STEP), mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, LR), real_argument(call, LR_DECAY),
                   real_argument(call, WEIGHT_DECAY), real_argument(call, EPS)),
    };
    MT_TRY(check_count(call, args.ints[0]));
    return run_step(call, 3, 7U, &args);
}

int mt__run__fused_adadelta_(mt__call *call)
{
    enum {
        LR = 4,
        RHO,
        EPS,
        WEIGHT_DECAY,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_ADADELTA,
        MT_INTS(mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, LR), real_argument(call, RHO), real_argument(call, EPS),
                   real_argument(call, WEIGHT_DECAY)),
    };
    return run_step(call, 4, 15U, &args);
}

/* Arguments of _fused_adamax_, and the first ones of _fused_nadam_ and _fused_radam_. */
enum {
    AVG_STEP = 4,
    AVG_LR,
    AVG_BETA1,
    AVG_BETA2,
    AVG_WEIGHT_DECAY,
    AVG_EPS,
    AVG_OTHERS
};

static int run_averaging(mt__call *call, mt__kernel_args *args, uint32_t maximize)
{
    args->n_ints = 2;
    args->ints[0] = mt__arg_int(call, AVG_STEP);
    args->ints[1] = mt__arg_bool(call, maximize);
    MT_TRY(check_count(call, args->ints[0]));
    const uint32_t from[] = {AVG_LR, AVG_BETA1, AVG_BETA2, AVG_EPS, AVG_WEIGHT_DECAY};
    for (uint32_t i = 0; i < MT_COUNT(from); i++) {
        args->scalars[i] = real_argument(call, from[i]);
    }
    args->n_scalars = args->n_scalars < MT_COUNT(from) ? MT_COUNT(from) : args->n_scalars;
    return run_step(call, 4, 15U, args);
}

int mt__run__fused_adamax_(mt__call *call)
{
    mt__kernel_args args = {.kernel = MT_KERNEL_ADAMAX};
    return run_averaging(call, &args, AVG_OTHERS);
}

double mt__nadam_mu(double beta1, double momentum_decay, int64_t count)
{
    return beta1 * (1 - 0.5 * pow(0.96, (double)count * momentum_decay));
}

int mt__run__fused_nadam_(mt__call *call)
{
    enum {
        MOMENTUM_DECAY = AVG_OTHERS,
        MU_PRODUCT,
        DECOUPLED,
        MAXIMIZE
    };
    double lr = mt__arg_real(call, AVG_LR), beta1 = mt__arg_real(call, AVG_BETA1);
    double decay = mt__arg_real(call, MOMENTUM_DECAY);
    double product = mt__arg_real(call, MU_PRODUCT);
    int64_t count = mt__arg_int(call, AVG_STEP);
    double mu = mt__nadam_mu(beta1, decay, count);
    double next = mt__nadam_mu(beta1, decay, count + 1);
    mt__kernel_args args = {
        .kernel = MT_KERNEL_NADAM, .code = mt__arg_bool(call, DECOUPLED) ? 1 : 0, .n_scalars = 7};
    args.scalars[5] = mt_real(lr * (1 - mu) / (1 - product));
    args.scalars[6] = mt_real(lr * next / (1 - product * next));
    return run_averaging(call, &args, MAXIMIZE);
}

int mt__run__fused_radam_(mt__call *call)
{
    mt__kernel_args args = {.kernel = MT_KERNEL_RADAM,
                            .code = mt__arg_bool(call, AVG_OTHERS) ? 1 : 0};
    return run_averaging(call, &args, AVG_OTHERS + 1);
}

int mt__run__fused_asgd_(mt__call *call)
{
    enum {
        LAMBD = 3,
        ETA,
        MU,
        WEIGHT_DECAY,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_ASGD,
        MT_INTS(mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, LAMBD), real_argument(call, ETA), real_argument(call, MU),
                   real_argument(call, WEIGHT_DECAY)),
    };
    return run_step(call, 3, 7U, &args);
}

int mt__run__fused_rprop_(mt__call *call)
{
    enum {
        ETAMINUS = 4,
        ETAPLUS,
        SMALLEST,
        LARGEST,
        MAXIMIZE
    };
    mt__kernel_args args = {
        .kernel = MT_KERNEL_RPROP,
        MT_INTS(mt__arg_bool(call, MAXIMIZE)),
        MT_SCALARS(real_argument(call, ETAMINUS), real_argument(call, ETAPLUS),
                   real_argument(call, SMALLEST), real_argument(call, LARGEST)),
    };
    return run_step(call, 4, 15U, &args);
}
