/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers from counters (Philox 4x32-10): the nth number after a seed is a function of seed
 * and n alone, so every device, thread count and tensor layout gives the same ones. They are not
 * torch's numbers.
 */
#ifndef MINDTORCH_GENERATOR_H
#define MINDTORCH_GENERATOR_H

#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

/** A new generator, independent of the default one of the process. */
MT_API mt_status mt_generator_new(uint64_t seed, mt_generator **out);
MT_API void mt_generator_free(mt_generator *generator); /**< accepts NULL */

/** In all of these NULL means the default generator of the process. */
MT_API void mt_generator_seed(mt_generator *generator, uint64_t seed); /**< and restarts it */
MT_API uint64_t mt_generator_initial_seed(mt_generator *generator);
MT_API uint64_t mt_generator_offset(mt_generator *generator);
MT_API void mt_generator_set_offset(mt_generator *generator, uint64_t offset);

/** Seeds the default generator. */
MT_API void mt_manual_seed(uint64_t seed);

MT_END_DECLS

#endif /* MINDTORCH_GENERATOR_H */
