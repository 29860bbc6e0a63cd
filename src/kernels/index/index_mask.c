/* SPDX-License-Identifier: Apache-2.0
 *
 * NONZERO, MASKED_SELECT, MASKED_SCATTER: elements selected by a mask, or by being nonzero.
 *
 * The caller has counted them. If the elements have changed since, no more is written than fits.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_walk.h"

#include <inttypes.h>
#include <string.h>

/* Bits of a number that make it differ from zero: all but a float's sign. */
static uint64_t value_bits(uint32_t dtype)
{
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_F16:
    case MT_DTYPE_BF16: return 0x7FFF;
    case MT_DTYPE_F32: return 0x7FFFFFFF;
    case MT_DTYPE_F64: return 0x7FFFFFFFFFFFFFFF;
    default: return UINT64_MAX;
    }
}

enum {
    ROW_CHUNK = 256 /* elements examined before the results are written */
};

#define FIND(type)                                      \
    for (int32_t i = 0; i < n; i++) {                   \
        type value;                                     \
        memcpy(&value, row + i * stride, sizeof(type)); \
        found[count] = i;                               \
        count += (value & (type)mask) != 0;             \
    }

/* Which of n elements are not zero, without a branch for each: up to ROW_CHUNK of them. */
static int32_t find_nonzero(const char *row, int64_t stride, int32_t n, const mt_array *in,
                            int32_t found[ROW_CHUNK + 1])
{
    uint64_t mask = value_bits(in->dtype);
    int32_t count = 0;
    switch (mt__element_bytes(in->dtype)) {
    case 1: FIND(uint8_t) break;
    case 2: FIND(uint16_t) break;
    case 4: FIND(uint32_t) break;
    default: FIND(uint64_t) break;
    }
    return count;
}

/* Coordinates of what is not zero, in row-major order. */
typedef struct coordinate_writer {
    int64_t *to;
    int64_t row_stride;
    int64_t column_stride;
    int64_t left;
    int32_t n_dims;
    int64_t at[MT_MAX_DIMS]; /* of the row; the last one is not used */
} coordinate_writer;

static void write_found(coordinate_writer *w, const int32_t *found, int32_t count, int64_t begin)
{
    int32_t n = (int64_t)count < w->left ? count : (int32_t)w->left;
    int32_t last = w->n_dims - 1;
    for (int32_t k = 0; k < n; k++) {
        for (int32_t d = 0; d < last; d++) {
            w->to[d * w->column_stride] = w->at[d];
        }
        w->to[last * w->column_stride] = begin + found[k];
        w->to += w->row_stride;
    }
    w->left -= n;
}

MT_HOST_KERNEL(NONZERO)
{
    const mt_array *out = &call->tensors[0];
    const mt_array *in = &call->tensors[1];
    int64_t bytes = mt__element_bytes(in->dtype);
    int64_t numel = mt__array_numel(in);
    const char *from = in->data;
    int32_t found[ROW_CHUNK + 1];
    if (in->n_dims == 0) {
        return 0; /* [count, 0] has nothing to write */
    }
    coordinate_writer w = {out->data,     out->strides[0], out->strides[1],
                           out->sizes[0], in->n_dims,      {0}};
    int32_t last = in->n_dims - 1;
    int64_t length = in->sizes[last];
    int64_t stride = in->strides[last] * bytes;
    for (int64_t done = 0; done < numel && w.left > 0; done += length) {
        for (int64_t i = 0; i < length; i += ROW_CHUNK) {
            int32_t n = (int32_t)(length - i < ROW_CHUNK ? length - i : ROW_CHUNK);
            write_found(&w, found, find_nonzero(from + i * stride, stride, n, in, found), i);
        }
        for (int32_t d = last - 1; d >= 0; d--) {
            from += in->strides[d] * bytes;
            if (++w.at[d] < in->sizes[d]) {
                break;
            }
            from -= in->sizes[d] * in->strides[d] * bytes;
            w.at[d] = 0;
        }
    }
    return 0;
}

/* A walk over a tensor and a mask of its sizes. */
static void walk_init(mt__walk *w, const mt_array *array, const mt_array *mask)
{
    int64_t bytes = mt__element_bytes(array->dtype);
    mt__walk_init(w);
    for (int32_t d = 0; d < array->n_dims; d++) {
        mt__walk_add(
            w, array->sizes[d],
            (const int64_t[MT_WALK_VIEWS]){array->strides[d] * bytes, mask->strides[d], 0});
    }
}

/* Each element is written where the next one belongs, and stays if the mask has it. */
#define SELECT(type)                                     \
    for (int64_t i = 0; i < n && left > 0; i++) {        \
        int64_t picked = mask[i * mask_stride] != 0;     \
        type value;                                      \
        memcpy(&value, from + i * stride, sizeof(type)); \
        memcpy(to, &value, sizeof(type));                \
        to += picked * to_stride;                        \
        left -= picked;                                  \
    }

MT_HOST_KERNEL(MASKED_SELECT)
{
    const mt_array *t = call->tensors;
    int64_t bytes = mt__element_bytes(t[0].dtype);
    int64_t to_stride = t[0].strides[0] * bytes;
    int64_t left = t[0].sizes[0];
    char *to = t[0].data;
    mt__walk w;
    walk_init(&w, &t[1], &t[2]);
    int64_t rows = mt__walk_rows(&w);
    int64_t n = mt__walk_length(&w);
    int64_t stride = mt__walk_stride(&w, 0);
    int64_t mask_stride = mt__walk_stride(&w, 1);
    for (int64_t row = 0; row < rows && left > 0; row++) {
        const char *from = (const char *)t[1].data + w.offsets[0];
        const char *mask = (const char *)t[2].data + w.offsets[1];
        switch (bytes) {
        case 1: SELECT(uint8_t) break;
        case 2: SELECT(uint16_t) break;
        case 4: SELECT(uint32_t) break;
        default: SELECT(uint64_t) break;
        }
        mt__walk_next(&w);
    }
    return 0;
}

static int64_t count_set(const mt_array *array, const mt_array *mask)
{
    int64_t count = 0;
    mt__walk w;
    walk_init(&w, array, mask);
    int64_t rows = mt__walk_rows(&w);
    int64_t n = mt__walk_length(&w);
    int64_t stride = mt__walk_stride(&w, 1);
    for (int64_t row = 0; row < rows; row++) {
        const char *from = (const char *)mask->data + w.offsets[1];
        for (int64_t i = 0; i < n; i++) {
            count += from[i * stride] != 0;
        }
        mt__walk_next(&w);
    }
    return count;
}

#define PLACE(type)                                                    \
    for (int64_t i = 0; i < n; i++) {                                  \
        if (mask[i * mask_stride] != 0) {                              \
            type value;                                                \
            memcpy(&value, from + placed * from_stride, sizeof(type)); \
            memcpy(to + i * to_stride, &value, sizeof(type));          \
            placed++;                                                  \
        }                                                              \
    }

/* Returns how many elements of the source the row has taken. */
static int64_t place_row(char *to, const char *mask, const char *from, const mt__walk *w, int64_t n,
                         int64_t bytes, int64_t from_stride)
{
    const int64_t to_stride = mt__walk_stride(w, 0);
    const int64_t mask_stride = mt__walk_stride(w, 1);
    int64_t placed = 0;
    switch (bytes) {
    case 1: PLACE(uint8_t) break;
    case 2: PLACE(uint16_t) break;
    case 4: PLACE(uint32_t) break;
    default: PLACE(uint64_t) break;
    }
    return placed;
}

MT_HOST_KERNEL(MASKED_SCATTER)
{
    const mt_array *t = call->tensors;
    int64_t bytes = mt__element_bytes(t[0].dtype);
    const char *from = t[2].data;
    int64_t left = t[2].sizes[0];
    mt__walk w;
    if (mt__array_numel(&t[0]) == 0) {
        return 0;
    }
    if (count_set(&t[0], &t[1]) > left) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_scatter: Number of elements of source < number of ones in mask");
    }
    walk_init(&w, &t[0], &t[1]);
    int64_t from_stride = t[2].strides[0] * bytes;
    int64_t rows = mt__walk_rows(&w);
    int64_t n = mt__walk_length(&w);
    for (int64_t row = 0; row < rows; row++) {
        char *to = (char *)t[0].data + w.offsets[0];
        const char *mask = (const char *)t[1].data + w.offsets[1];
        from += place_row(to, mask, from, &w, n, bytes, from_stride) * from_stride;
        mt__walk_next(&w);
    }
    return 0;
}
