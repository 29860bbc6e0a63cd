/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/fail.h"
#include "mtprof/format/input_words.h"

#include <mtprof/status.h>

#include <stddef.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void read_tensor(mtprof_input_walk *walk, uint64_t word)
{
    bool strides = (word & MTPROF__INPUT_STRIDES) != 0;
    uint32_t left = walk->n_words - walk->word;
    walk->n_dims = (uint32_t)(word >> 8 & 0xFF);
    walk->sizes = walk->words + walk->word;
    walk->n_sizes = least(walk->n_dims, left);
    walk->strides = strides ? walk->sizes + walk->n_sizes : NULL;
    walk->n_strides = strides ? least(walk->n_dims, left - walk->n_sizes) : 0;
    walk->cut = walk->n_sizes + walk->n_strides < (strides ? 2u : 1u) * walk->n_dims;
    walk->word += walk->n_sizes + walk->n_strides;
    walk->n_tensors++;
}

bool mtprof_input_next(mtprof_input_walk *walk)
{
    if (MT_UNLIKELY(walk->struct_size < sizeof *walk)) {
        mtb_fail(MTPROF_EINVAL, "input walk: struct_size is %u, expected at least %zu",
                 walk->struct_size, sizeof *walk);
        return false;
    }
    if (walk->word >= walk->n_words) {
        return false;
    }
    uint64_t word = walk->words[walk->word++];
    uint32_t upper = (uint32_t)(word >> 32);
    walk->kind = (uint32_t)(word & 0xFF);
    walk->count = walk->kind == MTPROF_INPUT_LIST ? upper : 0;
    walk->string = walk->kind == MTPROF_INPUT_LIST ? 0 : upper;
    if (walk->kind == MTPROF_INPUT_TENSOR) {
        read_tensor(walk, word);
        return true;
    }
    walk->n_dims = walk->n_sizes = walk->n_strides = 0;
    walk->sizes = walk->strides = NULL;
    walk->cut = false;
    walk->n_scalars += mtprof__input_is_scalar(walk->kind);
    return true;
}

/* How many values belong to the current one. */
static uint64_t held(const mtprof_input_walk *walk)
{
    return walk->kind == MTPROF_INPUT_KEYWORD ? 1 : walk->count;
}

/* Without recursion: what is in a list is added to what is pending. */
void mtprof_input_skip(mtprof_input_walk *walk)
{
    for (uint64_t pending = held(walk); pending > 0 && mtprof_input_next(walk);) {
        pending += held(walk) - 1;
    }
}
