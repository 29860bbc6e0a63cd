/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers: parameters, the state of each, and the step.
 *
 *     optimizer ── slots[0] ── parameter, steps made, state[3]
 *                  slots[1] ...
 *                  lists      room for the arguments of one fused call
 *
 *   OPT1  State is created before anything is written, with the values of torch's state before its
 *         first step: a step that fails for lack of memory can be repeated.
 *   OPT2  Parameters that have made the same number of steps on one device, with equal numbers,
 *         share one fused call.
 *   OPT3  A step runs with grad mode off.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/ops/optim/nadam_mu.h"
#include "mindtorch/optim/optimizer_options.h"
#include "mindtorch/trace/op_trace.h"
#include "private_ops.h"

#include <mindtorch/autograd.h>
#include <mindtorch/ops.h>
#include <mindtorch/optim.h>
#include <mindtorch/tensor.h>

#include <math.h>
#include <string.h>

enum {
    MAX_STATES = 3,
    N_LISTS = 2 + MAX_STATES /* parameters, gradients, state */
};

typedef struct slot {
    mt_tensor *parameter;
    int64_t steps;
    mt_tensor *state[MAX_STATES];
    double numbers[2]; /* NAdam: product of mu; ASGD: eta, mu. Rounded to float, as torch's are */
    bool waiting;      /* has a gradient and has not been stepped in the present step */
} slot;

struct mt_optimizer {
    mt_optimizer_options options;
    size_t count;
    slot *slots;
    mt_tensor **lists; /* N_LISTS of them, `count` entries each */
};

/* The differences between methods. */
typedef struct method {
    const char *scope;
    const char *states[MAX_STATES]; /* torch's names, in the order of the fused op's lists */
} method;

static const method methods[] = {
    [MT_OPTIMIZER_SGD] = {"Optimizer.step#SGD.step", {"momentum_buffer"}},
    [MT_OPTIMIZER_ADAM] = {"Optimizer.step#Adam.step", {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    [MT_OPTIMIZER_ADAMW] = {"Optimizer.step#AdamW.step",
                            {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    [MT_OPTIMIZER_RMSPROP] = {"Optimizer.step#RMSprop.step",
                              {"square_avg", "momentum_buffer", "grad_avg"}},
    [MT_OPTIMIZER_ADAGRAD] = {"Optimizer.step#Adagrad.step", {"sum"}},
    [MT_OPTIMIZER_ADADELTA] = {"Optimizer.step#Adadelta.step", {"square_avg", "acc_delta"}},
    [MT_OPTIMIZER_ADAMAX] = {"Optimizer.step#Adamax.step", {"exp_avg", "exp_inf"}},
    [MT_OPTIMIZER_NADAM] = {"Optimizer.step#NAdam.step", {"exp_avg", "exp_avg_sq"}},
    [MT_OPTIMIZER_RADAM] = {"Optimizer.step#RAdam.step", {"exp_avg", "exp_avg_sq"}},
    [MT_OPTIMIZER_ASGD] = {"Optimizer.step#ASGD.step", {"ax"}},
    [MT_OPTIMIZER_RPROP] = {"Optimizer.step#Rprop.step", {"prev", "step_size"}},
};
static_assert(MT_COUNT(methods) == MT_OPTIMIZER_COUNT, "a method for each kind");

/* Whether the options make use of state i. */
static bool uses_state(const mt_optimizer_options *o, uint32_t i)
{
    switch ((mt_optimizer_kind)o->kind) {
    case MT_OPTIMIZER_SGD: return i == 0 && o->momentum != 0.0;
    case MT_OPTIMIZER_ADAM:
    case MT_OPTIMIZER_ADAMW: return i < 2 || o->amsgrad;
    case MT_OPTIMIZER_RMSPROP: return i == 0 || (i == 1 ? o->momentum > 0.0 : o->centered);
    case MT_OPTIMIZER_ADAGRAD:
    case MT_OPTIMIZER_ASGD: return i == 0;
    case MT_OPTIMIZER_ADADELTA:
    case MT_OPTIMIZER_ADAMAX:
    case MT_OPTIMIZER_NADAM:
    case MT_OPTIMIZER_RADAM:
    case MT_OPTIMIZER_RPROP: return i < 2;
    case MT_OPTIMIZER_COUNT: break;
    }
    return false;
}

static int check_parameters(mt_tensor *const *parameters, size_t count)
{
    if (count == 0 || parameters == NULL) {
        return mtb_fail(MT_EVALUE, "optimizer got an empty parameter list");
    }
    for (size_t i = 0; i < count; i++) {
        if (parameters[i] == NULL) {
            return mtb_fail(MT_ETYPE, "optimizer: parameter %zu is NULL", i);
        }
        if (!mt_tensor_is_leaf(parameters[i])) {
            return mtb_fail(MT_EVALUE, "can't optimize a non-leaf Tensor");
        }
        for (size_t k = 0; k < i; k++) {
            if (parameters[k] == parameters[i]) {
                return mtb_fail(MT_EVALUE, "optimizer: parameters %zu and %zu are the same tensor",
                                k, i);
            }
        }
    }
    return MT_OK;
}

/* What state i is filled with at first. */
static double initial_state(const mt_optimizer_options *o, uint32_t i)
{
    if (o->kind == MT_OPTIMIZER_ADAGRAD) {
        return o->initial_accumulator;
    }
    return o->kind == MT_OPTIMIZER_RPROP && i == 1 ? o->lr : 0.0;
}

static void set_numbers(slot *s, double first, double second)
{
    s->numbers[0] = (double)(float)first;
    s->numbers[1] = (double)(float)second;
}

/* Makes the state that the parameter does not have yet (OPT1). */
static int make_state(const mt_optimizer *optimizer, slot *s)
{
    if (s->steps == 0) {
        set_numbers(s, optimizer->options.kind == MT_OPTIMIZER_ASGD ? optimizer->options.lr : 1.0,
                    1.0);
    }
    for (uint32_t i = 0; i < MAX_STATES; i++) {
        double initial = initial_state(&optimizer->options, i);
        if (s->state[i] == NULL && uses_state(&optimizer->options, i)) {
            MT_TRY(initial == 0.0 ? mt_zeros_like(s->parameter, &s->state[i])
                                  : mt_full_like(s->parameter, mt_real(initial), &s->state[i]));
        }
    }
    return MT_OK;
}

static int make_all_state(mt_optimizer *optimizer)
{
    bool was = mt_set_grad_enabled(false);
    int status = MT_OK;
    for (size_t i = 0; status == MT_OK && i < optimizer->count; i++) {
        status = make_state(optimizer, &optimizer->slots[i]);
    }
    mt_set_grad_enabled(was);
    return status;
}

mt_status mt_optimizer_new(const mt_optimizer_options *options, mt_tensor *const *parameters,
                           size_t count, mt_optimizer **out)
{
    if (out == NULL) {
        return mtb_fail(MT_EVALUE, "mt_optimizer_new(): no place for the result");
    }
    *out = NULL;
    mt_optimizer_options complete;
    MT_TRY(mt__optimizer_options_check(options, &complete));
    MT_TRY(check_parameters(parameters, count));
    mt_optimizer *optimizer = mtb_calloc(1, sizeof(*optimizer));
    slot *slots = mtb_calloc(count, sizeof(*slots));
    mt_tensor **lists = mtb_calloc(count, N_LISTS * sizeof(*lists));
    if (optimizer == NULL || slots == NULL || lists == NULL) {
        mtb_free(optimizer);
        mtb_free(slots);
        mtb_free(lists);
        return mtb_fail(MT_ENOMEM, "mt_optimizer_new(): no memory for %zu parameters", count);
    }
    for (size_t i = 0; i < count; i++) {
        slots[i].parameter = mt_tensor_retain(parameters[i]);
    }
    *optimizer = (mt_optimizer){complete, count, slots, lists};
    /* torch's Adagrad has its sums from the beginning, the other methods from the first step on. */
    int status = complete.kind == MT_OPTIMIZER_ADAGRAD ? make_all_state(optimizer) : MT_OK;
    if (status != MT_OK) {
        mt_optimizer_free(optimizer);
        return status;
    }
    *out = optimizer;
    return MT_OK;
}

void mt_optimizer_free(mt_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        mt_tensor_release(optimizer->slots[i].parameter);
        for (uint32_t k = 0; k < MAX_STATES; k++) {
            mt_tensor_release(optimizer->slots[i].state[k]);
        }
    }
    mtb_free(optimizer->slots);
    mtb_free(optimizer->lists);
    mtb_free(optimizer);
}

/* NAdam: the product of mu with the coming step's. */
static double next_product(const mt_optimizer_options *o, const slot *s)
{
    float mu = (float)mt__nadam_mu(o->beta1, o->momentum_decay, s->steps + 1);
    return (double)((float)s->numbers[0] * mu);
}

/* The numbers after a step, which makes the number of steps t. */
static void go_on(const mt_optimizer_options *o, slot *s)
{
    double product = next_product(o, s);
    double t = (double)++s->steps;
    if (o->kind == MT_OPTIMIZER_NADAM) {
        set_numbers(s, product, 1.0);
    } else if (o->kind == MT_OPTIMIZER_ASGD) {
        set_numbers(s, o->lr / pow(1 + o->lambd * o->lr * t, o->alpha), 1 / fmax(1, t - o->t0));
    }
}

/* The fused op over the first n entries of the lists; `like` has what is the same for all. */
static int call_fused(const mt_optimizer *optimizer, size_t n, const slot *like)
{
    int64_t steps = like->steps;
    const mt_optimizer_options *o = &optimizer->options;
    mt_tensor *const *lists[N_LISTS];
    size_t lengths[MAX_STATES];
    for (uint32_t i = 0; i < N_LISTS; i++) {
        lists[i] = optimizer->lists + i * optimizer->count;
    }
    for (uint32_t i = 0; i < MAX_STATES; i++) {
        lengths[i] = uses_state(o, i) ? n : 0;
    }
    switch ((mt_optimizer_kind)o->kind) {
    case MT_OPTIMIZER_SGD:
        return mt__fused_sgd_(lists[0], n, lists[1], n, lists[2], lengths[0], o->weight_decay,
                              o->momentum, o->lr, o->dampening, o->nesterov, o->maximize,
                              steps == 0);
    case MT_OPTIMIZER_ADAM:
        return mt__fused_adam_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, lists[4],
                               lengths[2], steps + 1, o->lr, o->beta1, o->beta2, o->weight_decay,
                               o->eps, o->amsgrad, o->maximize);
    case MT_OPTIMIZER_ADAMW:
        return mt__fused_adamw_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, lists[4],
                                lengths[2], steps + 1, o->lr, o->beta1, o->beta2, o->weight_decay,
                                o->eps, o->amsgrad, o->maximize);
    case MT_OPTIMIZER_RMSPROP:
        return mt__fused_rmsprop_(lists[0], n, lists[1], n, lists[2], n, lists[3], lengths[1],
                                  lists[4], lengths[2], o->lr, o->alpha, o->eps, o->weight_decay,
                                  o->momentum, o->centered, o->maximize);
    case MT_OPTIMIZER_ADAGRAD:
        return mt__fused_adagrad_(lists[0], n, lists[1], n, lists[2], n, steps + 1, o->lr,
                                  o->lr_decay, o->weight_decay, o->eps, o->maximize);
    case MT_OPTIMIZER_ADADELTA:
        return mt__fused_adadelta_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, o->lr,
                                   o->rho, o->eps, o->weight_decay, o->maximize);
    case MT_OPTIMIZER_ADAMAX:
        return mt__fused_adamax_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, steps + 1,
                                 o->lr, o->beta1, o->beta2, o->weight_decay, o->eps, o->maximize);
    case MT_OPTIMIZER_NADAM:
        return mt__fused_nadam_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, steps + 1,
                                o->lr, o->beta1, o->beta2, o->weight_decay, o->eps,
                                o->momentum_decay, next_product(o, like), o->decoupled_weight_decay,
                                o->maximize);
    case MT_OPTIMIZER_RADAM:
        return mt__fused_radam_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, steps + 1,
                                o->lr, o->beta1, o->beta2, o->weight_decay, o->eps,
                                o->decoupled_weight_decay, o->maximize);
    case MT_OPTIMIZER_ASGD:
        return mt__fused_asgd_(lists[0], n, lists[1], n, lists[2], n, o->lambd, like->numbers[0],
                               like->numbers[1], o->weight_decay, o->maximize);
    case MT_OPTIMIZER_RPROP:
        return mt__fused_rprop_(lists[0], n, lists[1], n, lists[2], n, lists[3], n, o->etaminus,
                                o->etaplus, o->step_size_min, o->step_size_max, o->maximize);
    case MT_OPTIMIZER_COUNT: break;
    }
    return mtb_fail(MT_EVALUE, "optimizer: kind %u is not known", o->kind);
}

static bool can_share(const slot *a, const slot *b)
{
    return a->waiting && a->steps == b->steps && a->numbers[0] == b->numbers[0] &&
           a->numbers[1] == b->numbers[1] &&
           mt_tensor_device(a->parameter) == mt_tensor_device(b->parameter);
}

/* Steps all remaining parameters that can share a call with slot `first` (OPT2). */
static int step_group(mt_optimizer *optimizer, size_t first)
{
    const slot like = optimizer->slots[first]; /* a copy: what is compared changes below */
    size_t n = 0;
    for (size_t i = first; i < optimizer->count; i++) {
        const slot *s = &optimizer->slots[i];
        if (can_share(s, &like)) {
            mt_tensor **place = optimizer->lists + n;
            place[0] = s->parameter;
            place[optimizer->count] = mt_tensor_grad(s->parameter);
            for (uint32_t k = 0; k < MAX_STATES; k++) {
                place[(2 + k) * optimizer->count] = s->state[k];
            }
            n++;
        }
    }
    MT_TRY(call_fused(optimizer, n, &like));
    for (size_t i = first; i < optimizer->count; i++) {
        slot *s = &optimizer->slots[i];
        if (can_share(s, &like)) {
            s->waiting = false;
            go_on(&optimizer->options, s);
        }
    }
    return MT_OK;
}

static int step_all(mt_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->count; i++) {
        slot *s = &optimizer->slots[i];
        s->waiting = mt_tensor_grad(s->parameter) != NULL;
        if (s->waiting) {
            MT_TRY(make_state(optimizer, s));
        }
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].waiting) {
            MT_TRY(step_group(optimizer, i));
        }
    }
    return MT_OK;
}

mt_status mt_optimizer_step(mt_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return mtb_fail(MT_EVALUE, "mt_optimizer_step(): optimizer is NULL");
    }
    mt__trace_token token = mt__trace_scope_begin(methods[optimizer->options.kind].scope);
    bool was = mt_set_grad_enabled(false);
    int status = step_all(optimizer);
    mt_set_grad_enabled(was);
    mt__trace_end(token);
    return status;
}

mt_status mt_optimizer_zero_grad(mt_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return mtb_fail(MT_EVALUE, "mt_optimizer_zero_grad(): optimizer is NULL");
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        MT_TRY(mt_tensor_set_grad(optimizer->slots[i].parameter, NULL));
    }
    return MT_OK;
}

mt_status mt_optimizer_set_lr(mt_optimizer *optimizer, double lr)
{
    if (optimizer == NULL) {
        return mtb_fail(MT_EVALUE, "mt_optimizer_set_lr(): optimizer is NULL");
    }
    MT_TRY(mt__optimizer_lr_check(lr));
    optimizer->options.lr = lr;
    return MT_OK;
}

double mt_optimizer_lr(const mt_optimizer *optimizer)
{
    return optimizer == NULL ? 0.0 : optimizer->options.lr;
}

mt_tensor *mt_optimizer_state(const mt_optimizer *optimizer, size_t parameter, const char *name)
{
    if (optimizer == NULL || parameter >= optimizer->count || name == NULL) {
        return NULL;
    }
    const method *m = &methods[optimizer->options.kind];
    for (uint32_t i = 0; i < MAX_STATES; i++) {
        if (m->states[i] != NULL && strcmp(m->states[i], name) == 0) {
            return optimizer->slots[parameter].state[i];
        }
    }
    return NULL;
}
