/* SPDX-License-Identifier: Apache-2.0
 *
 * Small objects of one size (tensors, storages, nodes) from lists of the thread. An object may be
 * given back on any thread. A thread's lists go to a common one when it ends.
 */
#ifndef MINDTORCH_CORE_MEMORY_POOL_H
#define MINDTORCH_CORE_MEMORY_POOL_H

#include <stddef.h>

typedef enum mt__pool {
    MT_POOL_TENSOR,
    MT_POOL_STORAGE,
    MT_POOL_NODE,     /* up to MT_POOL_NODE_BYTES */
    MT_POOL_AUTOGRAD, /* autograd/graph/meta.h */
    MT_POOL_COUNT
} mt__pool;

/* Not initialised; NULL: out of memory. `bytes` is the same for every call of a pool. */
void *mt__pool_take(mt__pool pool, size_t bytes);
void mt__pool_give(mt__pool pool, void *object);

#endif /* MINDTORCH_CORE_MEMORY_POOL_H */
