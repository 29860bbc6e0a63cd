/* SPDX-License-Identifier: Apache-2.0
 *
 * From correlation ids to launch keys. CUPTI counts its ids up, so the table is a ring: the id's
 * last bits are its place, and an entry stays until another call needs the place, 4 million ids
 * later. Buffers that wait to be read hold fewer records than that (cupti_buffers.c).
 *
 *   CJ1  An entry is written before CUDA gets the call, by the thread that makes it, and read after
 *        the GPU has done its work, by a thread of CUPTI. A reader that meets a writer of another
 *        id sees that: the id is set to 0 before the key changes, and compared before and after.
 */
#include "base/pages.h"
#include "sources/cupti/cupti_impl.h"

enum {
    JOINS = 1 << 22,
    AHEAD = 32 /* ids; a launch takes a few */
};

typedef struct join {
    uint64_t correlation; /* atomic; 0: being written. Partner: each other's */
    uint64_t key;         /* atomic */
} join;

static join *joins; /* pages that no call has needed yet take no memory */

bool cp__joins_init(void)
{
    if (joins == NULL) {
        joins = mtb_pages_take(JOINS * sizeof *joins);
    }
    return joins != NULL;
}

void cp__join_put(uint32_t correlation, uint64_t key)
{
    join *at = &joins[correlation % JOINS];
    __builtin_prefetch(&joins[(correlation + AHEAD) % JOINS],
                       1); /* the table is larger than caches */
    __atomic_store_n(&at->correlation, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&at->key, key, __ATOMIC_RELEASE); /* stays after it */
    __atomic_store_n(&at->correlation, correlation, __ATOMIC_RELEASE);
}

uint64_t cp__join_find(uint32_t correlation)
{
    join *at = &joins[correlation % JOINS];
    if (correlation == 0 || __atomic_load_n(&at->correlation, __ATOMIC_ACQUIRE) != correlation) {
        return 0;
    }
    uint64_t key = __atomic_load_n(&at->key, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&at->correlation, __ATOMIC_RELAXED) == correlation ? key : 0;
}
