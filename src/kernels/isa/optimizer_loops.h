/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of optimizer steps, made for each instruction set by optimizer_loops.c: n elements
 * of one parameter. Numbers that are the same for all elements come in double, with what only
 * depends on the step already computed.
 */
#ifndef KERNELS_ISA_OPTIMIZER_LOOPS_H
#define KERNELS_ISA_OPTIMIZER_LOOPS_H

#include "kernels/isa/isa.h"

#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stdint.h>

/* Arrays of elements; a state that is not used is NULL. */
typedef struct mt__step {
    void *param;
    const void *grad;
    void *state[3];
    /* numbers */
    double sign; /* -1 where the objective is maximized */
    double lr, weight_decay, eps;
    double momentum, dampening; /* SGD, RMSprop */
    double beta1, beta2;        /* Adam; RMSprop: beta2 = alpha */
    double step_size;           /* lr / (1 - beta1^t); Adagrad: the decayed lr; ASGD: eta;
                                   NAdam: what the average is multiplied by */
    double root_scale;        /* Adam, NAdam: 1 / sqrt(1 - beta2^t); RAdam: rectification / that */
    double grad_scale;        /* NAdam: what the gradient is multiplied by in a step */
    double mu;                /* ASGD: how much of the new parameter goes into the average */
    double shrink, grow;      /* Rprop: factors of a step size; ASGD: shrink of the parameter */
    double smallest, largest; /* Rprop: bounds of a step size */
    bool nesterov, first;     /* SGD */
    bool decoupled;           /* AdamW, NAdam, RAdam */
    bool rectified;           /* RAdam: the averages of squares are divided by */
} mt__step;

typedef void mt__step_fn(const mt__step *step, int64_t begin, int64_t end);

typedef struct mt__step_loops {
    mt__step_fn *sgd;      /* state: momentum */
    mt__step_fn *adam;     /* state: exp_avg, exp_avg_sq, max_exp_avg_sq */
    mt__step_fn *rmsprop;  /* state: square_avg, momentum, grad_avg */
    mt__step_fn *adagrad;  /* state: sum */
    mt__step_fn *adadelta; /* state: square_avg, acc_delta */
    mt__step_fn *adamax;   /* state: exp_avg, exp_inf */
    mt__step_fn *nadam;    /* state: exp_avg, exp_avg_sq */
    mt__step_fn *radam;    /* state: exp_avg, exp_avg_sq */
    mt__step_fn *asgd;     /* state: ax */
    mt__step_fn *rprop;    /* state: prev, step_size */
} mt__step_loops;

/* Arrays by type. */
extern const mt__step_loops mt__steps_base[MT_DTYPE_COUNT];
extern const mt__step_loops mt__steps_v3[MT_DTYPE_COUNT];
extern const mt__step_loops mt__steps_v4[MT_DTYPE_COUNT];

#endif /* KERNELS_ISA_OPTIMIZER_LOOPS_H */
