/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators for ops: a call reserves a range of draws and passes seed and offset to the kernel.
 */
#ifndef MINDTORCH_CORE_DEVICE_RANDOM_H
#define MINDTORCH_CORE_DEVICE_RANDOM_H

#include <mindtorch/generator.h>

/* NULL = the default generator. Reserves `draws` draws and returns seed and offset as ints for the
 * kernel. */
void mt__generator_reserve(mt_generator *generator, int64_t draws, int64_t seed_offset[2]);

#endif /* MINDTORCH_CORE_DEVICE_RANDOM_H */
