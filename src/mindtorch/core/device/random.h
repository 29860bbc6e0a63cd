/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators as ops use them: a call reserves a range of draws and hands seed and offset to the
 * kernel.
 */
#ifndef MINDTORCH_CORE_DEVICE_RANDOM_H
#define MINDTORCH_CORE_DEVICE_RANDOM_H

#include <mindtorch/generator.h>

/* NULL = the default generator. Reserves `draws` of them and gives their place as the kernel's
 * ints. */
void mt__generator_reserve(mt_generator *generator, int64_t draws, int64_t seed_offset[2]);

#endif /* MINDTORCH_CORE_DEVICE_RANDOM_H */
