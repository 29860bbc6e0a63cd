/* SPDX-License-Identifier: Apache-2.0
 *
 * The constants of selu: scale (x, or alpha (exp(x) - 1) below 0) keeps mean 0 and variance 1.
 */
#ifndef MINDTORCH_OPS_NN_SELU_CONSTANTS_H
#define MINDTORCH_OPS_NN_SELU_CONSTANTS_H

#define MT_SELU_ALPHA 1.6732632423543772848170429916717
#define MT_SELU_SCALE 1.0507009873554804934193349852946

#endif /* MINDTORCH_OPS_NN_SELU_CONSTANTS_H */
