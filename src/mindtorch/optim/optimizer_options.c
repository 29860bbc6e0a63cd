/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of optimizers: torch's defaults, and its words for what is out of range.
 */
#include "mindtorch/optim/optimizer_options.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_TEXT = 40
};

/* As Python writes a float: the shortest text that reads back the same, "-1.0". */
static const char *number_text(double value, char text[NUMBER_TEXT])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    if (strpbrk(text, ".eni") == NULL) {
        strncat(text, ".0", NUMBER_TEXT - strlen(text) - 1);
    }
    return text;
}

static int refuse(const char *what, double value)
{
    char text[NUMBER_TEXT];
    return mtb_fail(MT_EVALUE, "Invalid %s: %s", what, number_text(value, text));
}

static int check_size(const mt_optimizer_options *options)
{
    bool fits = options != NULL && options->struct_size >= offsetof(mt_optimizer_options, lr);
    return fits ? MT_OK
                : mtb_fail(MT_EVALUE, "optimizer options are missing, or struct_size is not set");
}

static int check_kind(uint32_t kind)
{
    return kind < MT_OPTIMIZER_COUNT ? MT_OK
                                     : mtb_fail(MT_EVALUE, "optimizer kind %u is not known", kind);
}

mt_status mt_optimizer_get_defaults(mt_optimizer_kind kind, mt_optimizer_options *options)
{
    static const mt_optimizer_options defaults[] = {
        [MT_OPTIMIZER_SGD] = {.lr = 1e-3},
        [MT_OPTIMIZER_ADAM] = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        [MT_OPTIMIZER_ADAMW] =
            {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2},
        [MT_OPTIMIZER_RMSPROP] = {.lr = 1e-2, .alpha = 0.99, .eps = 1e-8},
        [MT_OPTIMIZER_ADAGRAD] = {.lr = 1e-2, .eps = 1e-10},
        [MT_OPTIMIZER_ADADELTA] = {.lr = 1.0, .rho = 0.9, .eps = 1e-6},
        [MT_OPTIMIZER_ADAMAX] = {.lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        [MT_OPTIMIZER_NADAM] =
            {.lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 4e-3},
        [MT_OPTIMIZER_RADAM] = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        [MT_OPTIMIZER_ASGD] = {.lr = 1e-2, .lambd = 1e-4, .alpha = 0.75, .t0 = 1e6},
        [MT_OPTIMIZER_RPROP] = {.lr = 1e-2,
                                .etaminus = 0.5,
                                .etaplus = 1.2,
                                .step_size_min = 1e-6,
                                .step_size_max = 50},
    };
    static_assert(MT_COUNT(defaults) == MT_OPTIMIZER_COUNT, "defaults for each kind");
    MT_TRY(check_size(options));
    MT_TRY(check_kind((uint32_t)kind));
    mtb_write_struct(options, &defaults[kind]);
    options->kind = (uint32_t)kind;
    return MT_OK;
}

int mt__optimizer_lr_check(double lr)
{
    return lr < 0.0 ? refuse("learning rate", lr) : MT_OK;
}

static int check_sgd(const mt_optimizer_options *o)
{
    if (o->momentum < 0.0) {
        return refuse("momentum value", o->momentum);
    }
    if (o->weight_decay < 0.0) {
        return refuse("weight_decay value", o->weight_decay);
    }
    if (o->nesterov && (o->momentum <= 0.0 || o->dampening != 0.0)) {
        return mtb_fail(MT_EVALUE, "Nesterov momentum requires a momentum and zero dampening");
    }
    return MT_OK;
}

static int check_adam(const mt_optimizer_options *o)
{
    if (o->eps < 0.0) {
        return refuse("epsilon value", o->eps);
    }
    if (!(o->beta1 >= 0.0 && o->beta1 < 1.0)) {
        return refuse("beta parameter at index 0", o->beta1);
    }
    if (!(o->beta2 >= 0.0 && o->beta2 < 1.0)) {
        return refuse("beta parameter at index 1", o->beta2);
    }
    return o->weight_decay < 0.0 ? refuse("weight_decay value", o->weight_decay) : MT_OK;
}

static int check_rmsprop(const mt_optimizer_options *o)
{
    if (o->eps < 0.0) {
        return refuse("epsilon value", o->eps);
    }
    if (o->momentum < 0.0) {
        return refuse("momentum value", o->momentum);
    }
    if (o->weight_decay < 0.0) {
        return refuse("weight_decay value", o->weight_decay);
    }
    return o->alpha < 0.0 ? refuse("alpha value", o->alpha) : MT_OK;
}

static int check_adagrad(const mt_optimizer_options *o)
{
    if (o->lr_decay < 0.0) {
        return refuse("lr_decay value", o->lr_decay);
    }
    if (o->weight_decay < 0.0) {
        return refuse("weight_decay value", o->weight_decay);
    }
    if (o->initial_accumulator < 0.0) {
        return refuse("initial_accumulator_value value", o->initial_accumulator);
    }
    return o->eps < 0.0 ? refuse("epsilon value", o->eps) : MT_OK;
}

static int check_adadelta(const mt_optimizer_options *o)
{
    if (!(o->rho >= 0.0 && o->rho <= 1.0)) {
        return refuse("rho value", o->rho);
    }
    if (o->eps < 0.0) {
        return refuse("epsilon value", o->eps);
    }
    return o->weight_decay < 0.0 ? refuse("weight_decay value", o->weight_decay) : MT_OK;
}

static int check_nadam(const mt_optimizer_options *o)
{
    MT_TRY(check_adam(o));
    return o->momentum_decay < 0.0 ? refuse("momentum_decay value", o->momentum_decay) : MT_OK;
}

static int check_asgd(const mt_optimizer_options *o)
{
    return o->weight_decay < 0.0 ? refuse("weight_decay value", o->weight_decay) : MT_OK;
}

static int check_rprop(const mt_optimizer_options *o)
{
    if (!(o->etaminus > 0.0 && o->etaminus < 1.0 && o->etaplus > 1.0)) {
        char minus[NUMBER_TEXT];
        char plus[NUMBER_TEXT];
        return mtb_fail(MT_EVALUE, "Invalid eta values: %s, %s", number_text(o->etaminus, minus),
                        number_text(o->etaplus, plus));
    }
    return MT_OK;
}

int mt__optimizer_options_check(const mt_optimizer_options *options, mt_optimizer_options *complete)
{
    static int (*const checks[])(const mt_optimizer_options *) = {
        [MT_OPTIMIZER_SGD] = check_sgd,         [MT_OPTIMIZER_ADAM] = check_adam,
        [MT_OPTIMIZER_ADAMW] = check_adam,      [MT_OPTIMIZER_RMSPROP] = check_rmsprop,
        [MT_OPTIMIZER_ADAGRAD] = check_adagrad, [MT_OPTIMIZER_ADADELTA] = check_adadelta,
        [MT_OPTIMIZER_ADAMAX] = check_adam,     [MT_OPTIMIZER_NADAM] = check_nadam,
        [MT_OPTIMIZER_RADAM] = check_adam,      [MT_OPTIMIZER_ASGD] = check_asgd,
        [MT_OPTIMIZER_RPROP] = check_rprop,
    };
    static_assert(MT_COUNT(checks) == MT_OPTIMIZER_COUNT, "a check for each kind");
    MT_TRY(check_size(options));
    MT_TRY(check_kind(options->kind));
    complete->struct_size = sizeof(*complete);
    MT_TRY(mt_optimizer_get_defaults((mt_optimizer_kind)options->kind, complete));
    size_t size =
        options->struct_size < sizeof(*complete) ? options->struct_size : sizeof(*complete);
    memcpy(complete, options, size);
    complete->struct_size = sizeof(*complete);
    MT_TRY(mt__optimizer_lr_check(complete->lr));
    return checks[complete->kind](complete);
}
