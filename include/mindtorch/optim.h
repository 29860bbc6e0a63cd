/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers: they hold their parameters, keep the method's state of each, and step with fused ops.
 */
#ifndef MINDTORCH_OPTIM_H
#define MINDTORCH_OPTIM_H

#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

typedef struct mt_optimizer mt_optimizer;

typedef enum mt_optimizer_kind {
    MT_OPTIMIZER_SGD,
    MT_OPTIMIZER_ADAM,
    MT_OPTIMIZER_ADAMW,
    MT_OPTIMIZER_RMSPROP,
    MT_OPTIMIZER_ADAGRAD,
    MT_OPTIMIZER_ADADELTA,
    MT_OPTIMIZER_ADAMAX,
    MT_OPTIMIZER_NADAM,
    MT_OPTIMIZER_RADAM,
    MT_OPTIMIZER_ASGD,
    MT_OPTIMIZER_RPROP,
    MT_OPTIMIZER_COUNT
} mt_optimizer_kind;

/** torch's names and meanings. Set struct_size, begin with mt_optimizer_get_defaults(), then change
 * what you need. */
typedef struct mt_optimizer_options {
    uint32_t struct_size; /**< set by the caller; no byte past it is read or written */
    uint32_t kind;        /**< mt_optimizer_kind */
    double lr;
    double weight_decay;
    double momentum;     /**< SGD, RMSprop */
    double dampening;    /**< SGD */
    double beta1, beta2; /**< Adam, AdamW, Adamax, NAdam, RAdam */
    double alpha;        /**< RMSprop; ASGD: power of the decay of eta */
    double eps;
    double lr_decay;            /**< Adagrad */
    double initial_accumulator; /**< Adagrad */
    bool nesterov;              /**< SGD */
    bool amsgrad;               /**< Adam, AdamW */
    bool centered;              /**< RMSprop */
    bool maximize;
    bool decoupled_weight_decay;         /**< NAdam, RAdam */
    double rho;                          /**< Adadelta */
    double momentum_decay;               /**< NAdam */
    double lambd, t0;                    /**< ASGD */
    double etaminus, etaplus;            /**< Rprop */
    double step_size_min, step_size_max; /**< Rprop */
} mt_optimizer_options;

/** torch's defaults of a kind. MT_EVALUE: there is no such kind, or struct_size is 0. */
MT_API mt_status mt_optimizer_get_defaults(mt_optimizer_kind kind, mt_optimizer_options *options);

/** MT_EVALUE names an option out of range, as torch does. The parameters are retained. */
MT_API mt_status mt_optimizer_new(const mt_optimizer_options *options, mt_tensor *const *parameters,
                                  size_t count, mt_optimizer **out);
MT_API void mt_optimizer_free(mt_optimizer *optimizer); /**< accepts NULL */

/** One step over the parameters that have a gradient, as the scope "Optimizer.step#SGD.step". */
MT_API mt_status mt_optimizer_step(mt_optimizer *optimizer);

/** Takes all gradients away. */
MT_API mt_status mt_optimizer_zero_grad(mt_optimizer *optimizer);

/** The learning rate of the next steps. */
MT_API mt_status mt_optimizer_set_lr(mt_optimizer *optimizer, double lr);
MT_API double mt_optimizer_lr(const mt_optimizer *optimizer);

/** State of a parameter by torch's name ("exp_avg", "momentum_buffer"), borrowed; NULL: none. */
MT_API mt_tensor *mt_optimizer_state(const mt_optimizer *optimizer, size_t parameter,
                                     const char *name);

/** Scales gradients so that their total norm is at most max_norm; total_norm is the norm before. */
MT_API mt_status mt_clip_grad_norm(mt_tensor *const *parameters, size_t count, double max_norm,
                                   double norm_type, double *total_norm);

MT_END_DECLS

#endif /* MINDTORCH_OPTIM_H */
