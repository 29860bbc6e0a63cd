/* SPDX-License-Identifier: Apache-2.0
 *
 * Common code of INDEX, INDEX_PUT, INDEX_SELECT and INDEX_ADD. One tensor is indexed, the other is
 * dense:
 *
 *     indexed   [outer..., one or more dimensions that indices pick from, inner...]
 *     dense     [outer..., sizes of the indices, inner...]
 *
 * More exactly: the dense tensor's first `first` dimensions and those after the indices' dimensions
 * are the indexed tensor's dimensions without an index, in their order. All index tensors are int64
 * and have the same sizes (broadcast by strides).
 *
 *     ints: first, then for each index tensor the dimension of the indexed tensor it picks from
 *
 *   IR1  Indices are checked before anything is read or written through them.
 *   IR2  Writes follow the indices in row-major order: the last of equal ones wins, and sums are
 *        added in that order, with any number of threads.
 */
#ifndef KERNELS_INDEX_INDEX_ROWS_H
#define KERNELS_INDEX_INDEX_ROWS_H

#include "kernels/index/index_walk.h"

enum {
    MT_INDEX_CHUNK = 1024 /* indices looked up at a time: 16 KiB of offsets on the stack */
};

typedef struct mt__index_rows {
    char *indexed;
    char *dense;
    int64_t element_bytes;
    int64_t n_indices; /* elements of one index tensor */
    int32_t n_index;   /* index tensors */
    int32_t n_index_dims;
    bool wraps;       /* negative indices count from the end */
    int status;       /* of an index out of range */
    const char *text; /* a message instead of the usual one, or NULL */
    const mt_array *index;
    int64_t dims[MT_MAX_DIMS];          /* by index tensor: the dimension it picks from */
    int64_t limits[MT_MAX_DIMS];        /* ... its size */
    int64_t strides[MT_MAX_DIMS];       /* ... its bytes */
    int64_t dense_strides[MT_MAX_DIMS]; /* by dimension of the indices: bytes in the dense tensor */
    mt__walk outer;                     /* views: indexed, dense */
    mt__walk inner;                     /* views: indexed, dense */
} mt__index_rows;

/* Up to MT_INDEX_CHUNK indices as offsets in bytes. */
typedef struct mt__index_chunk {
    int64_t count;
    int64_t indexed[MT_INDEX_CHUNK];
    int64_t dense[MT_INDEX_CHUNK];
} mt__index_chunk;

/* ints as above. The sizes fit each other (B1). */
void mt__index_rows_init(mt__index_rows *rows, const mt_array *indexed, const mt_array *dense,
                         const mt_array *index, int32_t n_index, const int64_t *ints);

/* Looks up the indices from `begin` on; MT_EINDEX, or rows->status, with the value. */
int mt__index_rows_look_up(const mt__index_rows *rows, int64_t begin, mt__index_chunk *chunk);

#endif /* KERNELS_INDEX_INDEX_ROWS_H */
