/* SPDX-License-Identifier: Apache-2.0
 *
 * Three small models, written with the C API, for tests of training: a multilayer perceptron, a
 * convolutional network, a two-layer GPT. Every function gives a status, so that they can be run
 * while memory is refused.
 */
#ifndef TESTS_SUPPORT_SMALL_MODELS_H
#define TESTS_SUPPORT_SMALL_MODELS_H

#include <mindtorch/mindtorch.h>

enum {
    SM_MAX_PARAMETERS = 40,
    SM_MAX_TEMPS = 200
};

typedef struct sm_model sm_model;

/* What is different from model to model. */
typedef struct sm_kind {
    const char *name;
    int (*make)(sm_model *model); /* parameters, buffers, data */
    int (*loss)(sm_model *model, mt_tensor **loss);
} sm_kind;

struct sm_model {
    const sm_kind *kind;
    mt_tensor *parameters[SM_MAX_PARAMETERS];
    size_t n_parameters;
    mt_tensor *buffers[2];
    mt_tensor *inputs;
    mt_tensor *targets;
    mt_tensor *temps[SM_MAX_TEMPS];
    size_t n_temps;
    mt_optimizer *optimizer;
};

extern const sm_kind sm_mlp, sm_cnn, sm_gpt;

/* Seeds the generator, makes the model and its optimizer. The model needs sm_close() also after a
 * failure. */
int sm_open(sm_model *model, const sm_kind *kind, mt_optimizer_kind optimizer, double lr);
void sm_close(sm_model *model);

/* Moves a new model to an accelerator; parameters stay leaves that want gradients, and the
 * optimizer is made again, as by sm_open(). */
int sm_move(sm_model *model, mt_device device, mt_optimizer_kind optimizer, double lr);

/* Takes gradients away, then forward, backward, step. *loss is the loss before the step. Whatever
 * the status, nothing temporary is left. */
int sm_step(sm_model *model, double *loss);

/* All parameters one after the other, at most `capacity` floats; returns how many there are. */
size_t sm_read(const sm_model *model, float *values, size_t capacity);

#endif /* TESTS_SUPPORT_SMALL_MODELS_H */
