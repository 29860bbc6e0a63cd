/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of optimizers, checked.
 */
#ifndef MINDTORCH_OPTIM_OPTIMIZER_OPTIONS_H
#define MINDTORCH_OPTIM_OPTIMIZER_OPTIONS_H

#include <mindtorch/optim.h>

/* Copies what struct_size covers over the kind's defaults and checks it. */
int mt__optimizer_options_check(const mt_optimizer_options *options,
                                mt_optimizer_options *complete);

int mt__optimizer_lr_check(double lr);

#endif /* MINDTORCH_OPTIM_OPTIMIZER_OPTIONS_H */
