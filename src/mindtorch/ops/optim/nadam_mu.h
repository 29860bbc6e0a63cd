/* SPDX-License-Identifier: Apache-2.0
 *
 * NAdam's momentum of a step, which the op and who keeps the product of all of them need.
 */
#ifndef MINDTORCH_OPS_OPTIM_NADAM_MU_H
#define MINDTORCH_OPS_OPTIM_NADAM_MU_H

#include <stdint.h>

double mt__nadam_mu(double beta1, double momentum_decay, int64_t count);

#endif /* MINDTORCH_OPS_OPTIM_NADAM_MU_H */
