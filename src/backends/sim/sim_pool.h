/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a simulated device: one file in memory, mapped twice.
 *
 *     far   ...XXXXXXXXXXXX...   addresses that tensors hold; no access: touching one crashes
 *     near  ...the bytes   ...   where workers reach them, at the same distance from its beginning
 *
 *   SP1  What is handed out has its pages: lack of memory shows at sim_pool_take(), never as
 *        SIGBUS.
 *   SP2  `used` and `vacant` are sorted and together cover the pool; no two neighbours in `vacant`.
 *        There is room for one more entry in `vacant` than in `used`, so giving back never needs
 *        memory.
 *   SP3  Neither mapping is there in a child of fork(), nor in a core file.
 */
#ifndef BACKENDS_SIM_SIM_POOL_H
#define BACKENDS_SIM_SIM_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_extent {
    uint64_t offset, bytes;
} sim_extent;

typedef struct sim_extents {
    sim_extent *at;
    size_t count, capacity;
} sim_extents;

typedef struct sim_pool {
    char *far;
    char *near;
    uint64_t bytes;
    int file;
    pthread_mutex_t lock; /* of what follows */
    sim_extents used, vacant;
    uint64_t used_bytes;
} sim_pool;

/* Negative: errno of what the system refused. */
int sim_pool_init(sim_pool *pool, uint64_t bytes);

/* Nothing of it is in use. */
void sim_pool_fini(sim_pool *pool);

/* NULL: there is no such piece, or the system has no memory. */
void *sim_pool_take(sim_pool *pool, size_t bytes);

/* What was never taken is left alone. */
void sim_pool_give(sim_pool *pool, const void *memory);

uint64_t sim_pool_used(sim_pool *pool);

/* In a child of fork(): lets go of the file. */
void sim_pool_forget(sim_pool *pool);

static inline bool sim_pool_has(const sim_pool *pool, const void *memory, uint64_t bytes)
{
    uint64_t offset = (uintptr_t)memory - (uintptr_t)pool->far;
    return offset < pool->bytes && bytes <= pool->bytes - offset;
}

/* Debug builds: whether all of it was taken as one piece. */
bool sim_pool_is_taken(sim_pool *pool, const void *memory, uint64_t bytes);

static inline void *sim_pool_near(const sim_pool *pool, const void *memory)
{
    return pool->near + ((uintptr_t)memory - (uintptr_t)pool->far);
}

#endif /* BACKENDS_SIM_SIM_POOL_H */
