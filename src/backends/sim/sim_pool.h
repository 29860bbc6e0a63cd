/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a simulated device: one file in memory, mapped twice.
 *
 *     far   ...XXXXXXXXXXXX...   addresses that tensors hold; no access: touching one crashes
 *     near  ...the bytes   ...   where workers reach them, at the same distance from its beginning
 *
 *   SP1  Memory that is handed out has its pages: lack of memory is an error of sim_pool_take(),
 *        never SIGBUS.
 *   SP2  `used` and `vacant` are sorted and together cover the pool; no two extents in `vacant` are
 *        adjacent. `vacant` has room for one more entry than `used`, so giving back never needs
 *        memory.
 *   SP3  Neither mapping exists in a child of fork(), nor in a core file.
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
    pthread_mutex_t lock; /* guards the following fields */
    sim_extents used, vacant;
    uint64_t used_bytes;
} sim_pool;

/* 0 or a negative errno value. */
int sim_pool_init(sim_pool *pool, uint64_t bytes);

/* No memory of it may be in use. */
void sim_pool_fini(sim_pool *pool);

/* NULL: no vacant piece is large enough, or the system has no memory. */
void *sim_pool_take(sim_pool *pool, size_t bytes);

/* Memory that was not taken from the pool is ignored. */
void sim_pool_give(sim_pool *pool, const void *memory);

uint64_t sim_pool_used(sim_pool *pool);

/* In a child of fork(): closes the file. */
void sim_pool_forget(sim_pool *pool);

static inline bool sim_pool_has(const sim_pool *pool, const void *memory, uint64_t bytes)
{
    uint64_t offset = (uintptr_t)memory - (uintptr_t)pool->far;
    return offset < pool->bytes && bytes <= pool->bytes - offset;
}

/* Debug builds: whether the range lies in one piece that was taken. */
bool sim_pool_is_taken(sim_pool *pool, const void *memory, uint64_t bytes);

static inline void *sim_pool_near(const sim_pool *pool, const void *memory)
{
    return pool->near + ((uintptr_t)memory - (uintptr_t)pool->far);
}

#endif /* BACKENDS_SIM_SIM_POOL_H */
