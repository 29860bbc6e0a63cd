/* SPDX-License-Identifier: Apache-2.0
 *
 * NONZERO, MASKED_SELECT, MASKED_SCATTER: what a mask, or the elements themselves, pick.
 *
 * The caller has counted; should the elements have changed since, no more is written than there is
 * room for.
 */
#include "base/fail.h"
#include "kernels/host_kernels.h"
#include "kernels/index_walk.h"

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

MT_INLINE uint64_t load_bits(const char *from, int64_t bytes)
{
    uint64_t bits = 0;
    switch (bytes) {
    case 1: return (uint8_t)*from;
    case 2: memcpy(&bits, from, 2); return bits;
    case 4: memcpy(&bits, from, 4); return bits;
    default: memcpy(&bits, from, 8); return bits;
    }
}

/* Coordinates of what is not zero, in row-major order. */
typedef struct coordinate_writer {
    int64_t *to;
    int64_t row_stride;
    int64_t column_stride;
    int64_t left;
    int32_t n_dims;
    int64_t at[MT_MAX_DIMS];
} coordinate_writer;

static void write_coordinates(coordinate_writer *w)
{
    for (int32_t d = 0; d < w->n_dims; d++) {
        w->to[d * w->column_stride] = w->at[d];
    }
    w->to += w->row_stride;
    w->left--;
}

int mt__host_nonzero(void *context, mt_stream *stream, const mt_kernel_call *call)
{
    const mt_array *out = &call->tensors[0];
    const mt_array *in = &call->tensors[1];
    int64_t bytes = mt__element_bytes(in);
    int64_t numel = mt__array_numel(in);
    uint64_t mask = value_bits(in->dtype);
    const char *from = in->data;
    coordinate_writer w = {out->data,     out->strides[0], out->strides[1],
                           out->sizes[0], in->n_dims,      {0}};
    (void)context;
    (void)stream;
    int32_t last = in->n_dims - 1;
    int64_t length = last < 0 ? 1 : in->sizes[last];
    int64_t stride = last < 0 ? 0 : in->strides[last] * bytes;
    for (int64_t done = 0; done < numel && w.left > 0; done += length) {
        for (int64_t i = 0; i < length && w.left > 0; i++) {
            if ((load_bits(from + i * stride, bytes) & mask) != 0) {
                w.at[last < 0 ? 0 : last] = i;
                write_coordinates(&w);
            }
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
    int64_t bytes = mt__element_bytes(array);
    mt__walk_init(w);
    for (int32_t d = 0; d < array->n_dims; d++) {
        mt__walk_add(
            w, array->sizes[d],
            (const int64_t[MT_WALK_VIEWS]){array->strides[d] * bytes, mask->strides[d], 0});
    }
}

#define SELECT(type)                                         \
    for (int64_t i = 0; i < n && left > 0; i++) {            \
        if (mask[i * mask_stride] != 0) {                    \
            type value;                                      \
            memcpy(&value, from + i * stride, sizeof(type)); \
            memcpy(to, &value, sizeof(type));                \
            to += to_stride;                                 \
            left--;                                          \
        }                                                    \
    }

int mt__host_masked_select(void *context, mt_stream *stream, const mt_kernel_call *call)
{
    const mt_array *t = call->tensors;
    int64_t bytes = mt__element_bytes(&t[0]);
    int64_t to_stride = t[0].strides[0] * bytes;
    int64_t left = t[0].sizes[0];
    char *to = t[0].data;
    mt__walk w;
    (void)context;
    (void)stream;
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

int mt__host_masked_scatter(void *context, mt_stream *stream, const mt_kernel_call *call)
{
    const mt_array *t = call->tensors;
    int64_t bytes = mt__element_bytes(&t[0]);
    const char *from = t[2].data;
    int64_t left = t[2].sizes[0];
    mt__walk w;
    (void)context;
    (void)stream;
    if (mt__array_numel(&t[0]) == 0) {
        return 0;
    }
    if (count_set(&t[0], &t[1]) > left) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_scatter: Number of elements of source < number of ones in mask");
    }
    walk_init(&w, &t[0], &t[1]);
    int64_t rows = mt__walk_rows(&w);
    int64_t n = mt__walk_length(&w);
    for (int64_t row = 0; row < rows; row++) {
        char *to = (char *)t[0].data + w.offsets[0];
        const char *mask = (const char *)t[1].data + w.offsets[1];
        for (int64_t i = 0; i < n; i++) {
            if (mask[i * mt__walk_stride(&w, 1)] != 0 && left > 0) {
                memcpy(to + i * mt__walk_stride(&w, 0), from, (size_t)bytes);
                from += t[2].strides[0] * bytes;
                left--;
            }
        }
        mt__walk_next(&w);
    }
    return 0;
}
