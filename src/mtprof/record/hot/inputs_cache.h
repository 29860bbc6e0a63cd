/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's memory of input lists, and the question that decides the cost of an op with shapes: is
 * this the list that the same place had last time? It is answered from the values themselves,
 * without encoding them first.
 */
#ifndef MTPROF_RECORD_HOT_INPUTS_CACHE_H
#define MTPROF_RECORD_HOT_INPUTS_CACHE_H

#include "mtprof/record/recording.h"

enum {
    MTPROF__SITE_CACHE = 128,
    MTPROF__CONTENT_CACHE = 256
};

typedef struct mtprof__cached_inputs {
    const uint64_t *words; /* in the recording's arena */
    uint32_t count, id;    /* id 0: nothing is cached */
    uint32_t n_tensors;    /* of a list that is nothing but tensors without strides; else 0 */
} mtprof__cached_inputs;

struct mtprof__inputs_cache {
    struct {
        uint32_t site;
        mtprof__cached_inputs list;
    } by_site[MTPROF__SITE_CACHE];
    struct {
        uint64_t hash;
        mtprof__cached_inputs list;
    } by_content[MTPROF__CONTENT_CACHE];
};

/* What the place had last, or NULL. */
MT_INLINE const mtprof__cached_inputs *mtprof__inputs_of_site(const mtprof__writer *w,
                                                              uint32_t site)
{
    const struct mtprof__inputs_cache *cache = w->inputs;
    uint32_t at = site & (MTPROF__SITE_CACHE - 1);
    return MT_LIKELY(cache != NULL && cache->by_site[at].site == site) ? &cache->by_site[at].list
                                                                       : NULL;
}

/* A value's first eight bytes are the first word of its encoding, but for the strides flag. */
static_assert(offsetof(mtprof_value, n_dims) == 1 && offsetof(mtprof_value, type) == 4 &&
                  offsetof(mtprof_value, of) == 8,
              "docs/format.md 5");

/* Follows a cached list and is not the first word of any value: a match cannot run past it. */
#define MTPROF__INPUTS_END UINT64_MAX

/*
 * Whether flat values (tensors and scalars) are the cached list. Returns the number of scalars,
 * whose values are stored at `scalars`, or -1: another list, or one that is not flat. Equal first
 * words promise as many dimensions on both sides.
 */
int mtprof__inputs_match(const mtprof__cached_inputs *list, const mtprof_value *values,
                         uint32_t count, bool strides, uint64_t *scalars, int most);

/* The same for a list of so many tensors without strides (n_tensors), at its words. */
bool mtprof__inputs_match_tensors(const uint64_t *at, const mtprof_value *values, uint32_t count);

#endif /* MTPROF_RECORD_HOT_INPUTS_CACHE_H */
