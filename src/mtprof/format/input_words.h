/* SPDX-License-Identifier: Apache-2.0
 *
 * What the libraries' own code needs of input lists in addition to <mtprof/input_list.h>.
 */
#ifndef MTPROF_FORMAT_INPUT_WORDS_H
#define MTPROF_FORMAT_INPUT_WORDS_H

#include "base/compiler.h"

#include <mtprof/input_list.h>

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

MT_INLINE uint64_t mtprof__tensor_word(uint32_t n_dims, bool strides, uint32_t type)
{
    return MTPROF_INPUT_TENSOR | (uint64_t)n_dims << 8 | (strides ? MTPROF__INPUT_STRIDES : 0) |
           (uint64_t)type << 32;
}

#endif /* MTPROF_FORMAT_INPUT_WORDS_H */
