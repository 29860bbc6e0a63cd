/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators: a seed and how many draws were taken, see generator.h. All share one lock: it is held
 * for a few instructions, and only one lock has to be reset after fork().
 */
#include "mindtorch/core/device/random.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/lock.h"
#include "mindtorch/core/thread/thread_cache.h"

struct mt_generator {
    uint64_t seed;
    uint64_t offset;
};

mtb_lock mt__generator_lock = MTB_LOCK_INIT(MTB_RANK_GENERATOR);

/* With the initial seed of torch's default generator. */
static mt_generator default_generator = {.seed = UINT64_C(67280421310721)};

static mt_generator *resolve(mt_generator *generator)
{
    return generator != NULL ? generator : &default_generator;
}

mt_status mt_generator_new(uint64_t seed, mt_generator **out)
{
    mt_generator *generator = mtb_calloc(1, sizeof *generator);
    *out = generator;
    if (generator == NULL) {
        return mtb_fail(MT_ENOMEM, "generator: no memory");
    }
    generator->seed = seed;
    return MT_OK;
}

void mt_generator_free(mt_generator *generator)
{
    mtb_free(generator);
}

void mt_generator_seed(mt_generator *generator, uint64_t seed)
{
    generator = resolve(generator);
    mtb_lock_acquire(&mt__generator_lock);
    generator->seed = seed;
    generator->offset = 0;
    mtb_lock_release(&mt__generator_lock);
}

uint64_t mt_generator_initial_seed(mt_generator *generator)
{
    mtb_lock_acquire(&mt__generator_lock);
    uint64_t seed = resolve(generator)->seed;
    mtb_lock_release(&mt__generator_lock);
    return seed;
}

uint64_t mt_generator_offset(mt_generator *generator)
{
    mtb_lock_acquire(&mt__generator_lock);
    uint64_t offset = resolve(generator)->offset;
    mtb_lock_release(&mt__generator_lock);
    return offset;
}

void mt_generator_set_offset(mt_generator *generator, uint64_t offset)
{
    mtb_lock_acquire(&mt__generator_lock);
    resolve(generator)->offset = offset;
    mtb_lock_release(&mt__generator_lock);
}

void mt_manual_seed(uint64_t seed)
{
    mt_generator_seed(NULL, seed);
}

void mt__generator_reserve(mt_generator *generator, int64_t draws, int64_t seed_offset[2])
{
    generator = resolve(generator);
    mtb_lock_acquire(&mt__generator_lock);
    seed_offset[0] = (int64_t)generator->seed;
    seed_offset[1] = (int64_t)generator->offset;
    generator->offset += (uint64_t)draws;
    mtb_lock_release(&mt__generator_lock);
}
