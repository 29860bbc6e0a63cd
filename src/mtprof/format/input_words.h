/* SPDX-License-Identifier: Apache-2.0
 *
 * What the libraries' own code needs of input lists in addition to <mtprof/input_list.h>.
 */
#ifndef MTPROF_FORMAT_INPUT_WORDS_H
#define MTPROF_FORMAT_INPUT_WORDS_H

#include "base/compiler.h"

#include <mtprof/input_list.h>

#include <stddef.h>

enum {
    MTPROF__INPUT_STRIDES = 1 << 16, /* of a tensor: strides follow its sizes */
    MTPROF__LIST_DEPTH = 32          /* deepest nesting of lists that readers believe */
};

MT_INLINE bool mtprof__input_is_scalar(uint32_t kind)
{
    return kind >= MTPROF_INPUT_INT && kind <= MTPROF_INPUT_STRING;
}

/* A walk from the first value on. */
MT_INLINE mtprof_input_walk mtprof__input_walk(const uint64_t *words, uint32_t n_words)
{
    return (mtprof_input_walk){
        .struct_size = sizeof(mtprof_input_walk), .words = words, .n_words = n_words};
}

MT_INLINE void mtprof__input_tensor(mtprof_input_walk *walk, uint64_t word)
{
    bool strides = (word & MTPROF__INPUT_STRIDES) != 0;
    uint32_t left = walk->n_words - walk->word;
    walk->n_dims = (uint32_t)(word >> 8 & 0xFF);
    walk->sizes = walk->words + walk->word;
    walk->n_sizes = walk->n_dims < left ? walk->n_dims : left;
    left -= walk->n_sizes;
    walk->strides = strides ? walk->sizes + walk->n_sizes : NULL;
    walk->n_strides = !strides ? 0 : walk->n_dims < left ? walk->n_dims : left;
    walk->cut = walk->n_sizes + walk->n_strides < (strides ? 2u : 1u) * walk->n_dims;
    walk->word += walk->n_sizes + walk->n_strides;
    walk->n_tensors++;
}

/* mtprof_input_next() for a walk whose struct_size is right: inline, since exports walk the inputs
 * of every op. */
MT_INLINE bool mtprof__input_next(mtprof_input_walk *walk)
{
    if (walk->word >= walk->n_words) {
        return false;
    }
    uint64_t word = walk->words[walk->word++];
    uint32_t upper = (uint32_t)(word >> 32);
    walk->kind = (uint32_t)(word & 0xFF);
    walk->count = walk->kind == MTPROF_INPUT_LIST ? upper : 0;
    walk->string = walk->kind == MTPROF_INPUT_LIST ? 0 : upper;
    if (walk->kind == MTPROF_INPUT_TENSOR) {
        mtprof__input_tensor(walk, word);
        return true;
    }
    walk->n_dims = walk->n_sizes = walk->n_strides = 0;
    walk->sizes = walk->strides = NULL;
    walk->cut = false;
    walk->n_scalars += mtprof__input_is_scalar(walk->kind);
    return true;
}

/* How many values belong to the current one. */
MT_INLINE uint64_t mtprof__input_held(const mtprof_input_walk *walk)
{
    return walk->kind == MTPROF_INPUT_KEYWORD ? 1 : walk->count;
}

/* mtprof_input_skip(). Without recursion: what is in a list is added to what is pending. */
MT_INLINE void mtprof__input_skip(mtprof_input_walk *walk)
{
    for (uint64_t pending = mtprof__input_held(walk); pending > 0 && mtprof__input_next(walk);) {
        pending += mtprof__input_held(walk) - 1;
    }
}

MT_INLINE uint64_t mtprof__tensor_word(uint32_t n_dims, bool strides, uint32_t type)
{
    return MTPROF_INPUT_TENSOR | (uint64_t)n_dims << 8 | (strides ? MTPROF__INPUT_STRIDES : 0) |
           (uint64_t)type << 32;
}

#endif /* MTPROF_FORMAT_INPUT_WORDS_H */
