/* SPDX-License-Identifier: Apache-2.0
 *
 * A training run that computes nothing: it reports to the recorder what a tensor runtime would
 * report about a small network (layers of y = relu(x w), a loss, a backward pass, SGD with
 * momentum), so that the memory timeline of it is known beforehand.
 *
 * With B = batch * width * 4 bytes (an activation) and P = width * width * 4 bytes (a parameter):
 *
 *     before     P per layer, and on the host a batch of B
 *     forward    an input of B; per layer activations mm and relu, 2 B; the loss, 4 bytes
 *     backward   per layer autograd details of 2 B, a temporary of B, a gradient of P
 *     optimizer  in the first step P of state per layer
 *
 * Activations of a layer go when its backward is done, gradients after the optimizer's step.
 */
#ifndef TESTS_SUPPORT_FAKE_TRAINING_H
#define TESTS_SUPPORT_FAKE_TRAINING_H

#include <stdint.h>

enum {
    FAKE_LAYERS_MOST = 64
};

typedef struct fake_training {
    uint32_t device; /* of everything but the batches */
    unsigned layers, steps;
    int64_t batch, width;
    unsigned pause_ns; /* per op, so that a chart of it has a shape; 0: none */
} fake_training;

/* What the runtime has before anybody records: call it before the session starts. */
void fake_training_prepare(const fake_training *training);
void fake_training_run(const fake_training *training);

#endif /* TESTS_SUPPORT_FAKE_TRAINING_H */
