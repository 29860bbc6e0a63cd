/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks several arrays of the same sizes and any strides together, and hands a loop (loops.h)
 * pieces of them without gaps.
 *
 *      dimensions of size 1 go; the others are sorted by the output's strides (largest outermost)
 *      and neighbours that lie in all arrays as one are merged. Then, for each operand,
 *          linear     one run of elements         -> the loop works on it in place
 *          constant   one element, all strides 0  -> as it is where the loop can repeat an element
 *                     (mt__loop_params.can_repeat), else a tile of copies, filled once
 *          else       a row at a time in place where its inner stride is 1 and rows are long,
 *                     packed into a tile (and unpacked, the output) where not. Short rows that
 *                     are the same each time (a bias) are packed once
 *      Large arrays with an operand that is transposed are visited in squares.
 *
 *   STR1  Element number n of the walk is the same element in all arrays, and does not depend on
 *         the range of numbers that is run: pieces may run on several threads.
 *   STR2  With `keep_order` numbers count elements in row-major order of the sizes.
 */
#ifndef KERNELS_WALK_STRIDED_H
#define KERNELS_WALK_STRIDED_H

#include "kernels/isa/pointwise/loops.h"

#include <mindtorch/tensor.h>

enum {
    MT_STRIDED_OPERANDS = 4,
    MT_STRIDED_TILE = 1024 /* elements: four tiles of the widest type are 32 KiB of stack */
};

typedef struct mt__strided {
    int32_t n_operands;
    int32_t n_dims; /* after merging, at least 1 */
    int64_t numel;
    char *data[MT_STRIDED_OPERANDS];
    int64_t bytes[MT_STRIDED_OPERANDS]; /* of an element */
    bool linear[MT_STRIDED_OPERANDS];
    bool constant[MT_STRIDED_OPERANDS];
    int64_t sizes[MT_MAX_DIMS];                        /* innermost first */
    int64_t strides[MT_STRIDED_OPERANDS][MT_MAX_DIMS]; /* in bytes */
} mt__strided;

/* All arrays have the sizes of the first. */
void mt__strided_init(mt__strided *it, const mt_array *arrays, int32_t count, bool keep_order);

/* Runs the loop over elements begin .. end - 1; returns its flags. */
uint32_t mt__strided_run(const mt__strided *it, int64_t begin, int64_t end, mt__loop_fn *loop,
                         const mt__loop_params *params);

/* The same over everything, on several threads where there are more than `grain` elements. */
uint32_t mt__strided_for(const mt__strided *it, mt__loop_fn *loop, const mt__loop_params *params,
                         int64_t grain);

/* The whole of a pointwise kernel: contiguous arrays go straight to the loop. */
uint32_t mt__pointwise(const mt_array *arrays, int32_t count, mt__loop_fn *loop,
                       const mt__loop_params *params, int64_t grain);

/* True when all arrays are row-major without gaps; elements through *numel in any case. */
bool mt__all_contiguous(const mt_array *arrays, int32_t count, int64_t *numel);

/* Copies n elements of operand k from number `begin` on out of a tile, or into one. */
void mt__strided_store(const mt__strided *it, int32_t k, int64_t begin, int64_t n,
                       const void *tile);
void mt__strided_load(const mt__strided *it, int32_t k, int64_t begin, int64_t n, void *tile);

/* Moves n elements of `bytes` from one stride to another (in bytes). */
void mt__move_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                      int64_t bytes);

#endif /* KERNELS_WALK_STRIDED_H */
