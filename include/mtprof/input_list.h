/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists (docs/format.md section 5), value by value: the words that mtprof_model_inputs(),
 * mtprof_reader_inputs() and records of the kind INPUTS_INLINE give.
 *
 *     mtprof_input_walk walk = {.struct_size = sizeof walk, .words = words, .n_words = n_words};
 *     while (mtprof_input_next(&walk)) {
 *         if (walk.kind == MTPROF_INPUT_TENSOR) ...
 *         mtprof_input_skip(&walk);      // without it the values of lists come as well
 *     }
 *
 * A walk reads within n_words whatever the words say. It may be copied, to look ahead.
 */
#ifndef MTPROF_INPUT_LIST_H
#define MTPROF_INPUT_LIST_H

#include <mtprof/api.h>
#include <mtprof/format.h>

#include <stdbool.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Set struct_size, words and n_words; leave the rest zero. */
typedef struct mtprof_input_walk {
    uint32_t struct_size;
    uint32_t n_words;
    const uint64_t *words;
    uint32_t word;      /**< index of the next value */
    uint32_t n_scalars; /**< passed so far: a scalar's value is number n_scalars - 1 of SCALARS */
    uint32_t n_tensors; /**< passed so far */
    uint32_t kind;      /**< enum mtprof_input_kind, or one of a later minor */
    uint32_t string;    /**< TENSOR: its type. KEYWORD: its name, the next value is what it names */
    uint32_t count;     /**< LIST: how many values it has, which come next */
    uint32_t n_dims;    /**< TENSOR */
    uint32_t n_sizes;   /**< how many are there: n_dims, unless the list ends before */
    uint32_t n_strides; /**< likewise; 0 where strides were not recorded */
    bool cut;           /**< the list ends before the tensor's sizes and strides do */
    const uint64_t *sizes;
    const uint64_t *strides; /**< NULL: not recorded */
} mtprof_input_walk;

/** Goes to the next value; lists are entered. False at the end, and for a walk whose struct_size is
 * too small (EINVAL in mtprof_last_error()). */
MTPROF_API bool mtprof_input_next(mtprof_input_walk *walk);

/** Steps over what the value holds: the values of a list, what a keyword names. The walk's fields
 * then describe the last value passed. */
MTPROF_API void mtprof_input_skip(mtprof_input_walk *walk);

MTPROF_END_DECLS

#endif /* MTPROF_INPUT_LIST_H */
