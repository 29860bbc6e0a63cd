/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that move elements without interpreting them: fills, strides and transposes.
 *
 * A transpose goes in blocks of 16 x 16 (8 x 8 for 8 bytes): a block is gathered into a buffer,
 * turned there by shuffles of 8 x 8 (4 x 4), and written in whole lines of the cache. Both sides
 * then touch each line once, also where rows are a power of two apart and share a set.
 */
#include "kernels/isa/pointwise/loop_body.h"

#include <string.h>

#define FILL(T)                                                                             \
    static uint32_t fill_##T(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                       \
        __typeof__(T) *out = arrays[0];                                                     \
        const T value = (T)params->integer[0];                                              \
        for (int64_t i = 0; i < n; i++) {                                                   \
            out[i] = value;                                                                 \
        }                                                                                   \
        return 0;                                                                           \
    }
FILL(uint8_t)
FILL(uint16_t)
FILL(uint32_t)
FILL(uint64_t)

mt__loop_fn *const MT_ISA(mt__fill_loops)[4] = {fill_uint8_t, fill_uint16_t, fill_uint32_t,
                                                fill_uint64_t};

/* ---- strides ---- */

/* n elements of each of `rows` rows. A repeated element, every second one and the reverse order
 * have separate loops, which the compiler vectorises. Strides are copied to locals, because
 * otherwise the compiler assumes that a write may change them. */
#define MOVE_BY(type, to_step, from_step)                             \
    for (int64_t i = 0; i < n; i++) {                                 \
        memcpy(&element, row_from + i * (from_step), sizeof element); \
        memcpy(row_to + i * (to_step), &element, sizeof element);     \
    }

#define MOVE(type)                                                   \
    for (int64_t j = 0; j < rows; j++) {                             \
        const int64_t size = (int64_t)sizeof(type);                  \
        const int64_t to_stride = to->stride;                        \
        const int64_t from_stride = from->stride;                    \
        char *row_to = to->data + j * to->row_stride;                \
        const char *row_from = from->data + j * from->row_stride;    \
        type element;                                                \
        if (from_stride == 0 && to_stride == size) {                 \
            memcpy(&element, row_from, sizeof element);              \
            for (int64_t i = 0; i < n; i++) {                        \
                memcpy(row_to + i * size, &element, sizeof element); \
            }                                                        \
        } else if (from_stride == 2 * size && to_stride == size) {   \
            MOVE_BY(type, size, 2 * size)                            \
        } else if (from_stride == -size && to_stride == size) {      \
            MOVE_BY(type, size, -size)                               \
        } else {                                                     \
            MOVE_BY(type, to_stride, from_stride)                    \
        }                                                            \
    }

void MT_ISA(mt__move_plane)(const mt__plane *to, const mt__plane *from, int64_t n, int64_t rows,
                            int64_t bytes)
{
    if (to->stride == bytes && from->stride == bytes) {
        for (int64_t j = 0; j < rows; j++) {
            memcpy(to->data + j * to->row_stride, from->data + j * from->row_stride,
                   (size_t)(n * bytes));
        }
        return;
    }
    switch (bytes) {
    case 1: MOVE(uint8_t); return;
    case 2: MOVE(uint16_t); return;
    case 4: MOVE(uint32_t); return;
    default: MOVE(uint64_t); return;
    }
}

/* ---- transposes ---- */

typedef uint32_t row8 __attribute__((vector_size(32), may_alias));
typedef uint64_t row4 __attribute__((vector_size(32), may_alias));
typedef int64_t pick4 __attribute__((vector_size(32)));
typedef int32_t pick8 __attribute__((vector_size(32)));

#if defined(__clang__)
#    define SHUFFLE8(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#    define SHUFFLE4(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#    define SHUFFLE8(a, b, ...) __builtin_shuffle(a, b, (pick8){__VA_ARGS__})
#    define SHUFFLE4(a, b, ...) __builtin_shuffle(a, b, (pick4){__VA_ARGS__})
#endif

/* 8 x 8 elements of 4 bytes; strides in bytes. */
MT_INLINE void turn8(char *out, int64_t out_stride, const char *in, int64_t in_stride)
{
    row8 r[8], s[8];
    for (int i = 0; i < 8; i++) {
        memcpy(&r[i], in + i * in_stride, sizeof r[i]);
    }
    for (int i = 0; i < 4; i++) { /* pairs of rows, then of pairs, then of halves */
        s[2 * i] = SHUFFLE8(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[2 * i + 1] = SHUFFLE8(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            row8 a = s[4 * i + j];
            row8 b = s[4 * i + j + 2];
            r[4 * i + 2 * j] = SHUFFLE8(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
            r[4 * i + 2 * j + 1] = SHUFFLE8(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < 4; i++) {
        s[i] = SHUFFLE8(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        s[i + 4] = SHUFFLE8(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i++) {
        memcpy(out + i * out_stride, &s[i], sizeof s[i]);
    }
}

/* 4 x 4 elements of 8 bytes. */
MT_INLINE void turn4(char *out, int64_t out_stride, const char *in, int64_t in_stride)
{
    row4 r[4], s[4];
    for (int i = 0; i < 4; i++) {
        memcpy(&r[i], in + i * in_stride, sizeof r[i]);
    }
    for (int i = 0; i < 2; i++) {
        s[2 * i] = SHUFFLE4(r[2 * i], r[2 * i + 1], 0, 4, 2, 6);
        s[2 * i + 1] = SHUFFLE4(r[2 * i], r[2 * i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        r[i] = SHUFFLE4(s[i], s[i + 2], 0, 1, 4, 5);
        r[i + 2] = SHUFFLE4(s[i], s[i + 2], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++) {
        memcpy(out + i * out_stride, &r[i], sizeof r[i]);
    }
}

/* A block whose rows are 64 bytes, through a buffer. `turn` does squares of 32 bytes. */
#define BLOCK(name, turn, width)                                                       \
    static void name(char *out, int64_t out_stride, const char *in, int64_t in_stride) \
    {                                                                                  \
        _Alignas(64) char buffer[64 * 64 / (width)];                                   \
        for (int i = 0; i < 64 / (width); i++) {                                       \
            memcpy(buffer + 64 * i, in + i * in_stride, 64);                           \
        }                                                                              \
        for (int j = 0; j < 2; j++) {                                                  \
            char *rows = out + j * (32 / (width)) * out_stride;                        \
            turn(rows, out_stride, buffer + 32 * j, 64);                               \
            turn(rows + 32, out_stride, buffer + 32 * j + 64 * (32 / (width)), 64);    \
        }                                                                              \
    }
BLOCK(block16, turn8, 4)
BLOCK(block8, turn4, 8)

/* The remainder after blocks, and narrow elements. */
#define PLAIN(T)                                                            \
    for (int64_t j = 0; j < rows; j++) {                                    \
        for (int64_t i = 0; i < columns; i++) {                             \
            memcpy(out + j * out_stride + i * (int64_t)sizeof(T),           \
                   in + i * in_stride + j * (int64_t)sizeof(T), sizeof(T)); \
        }                                                                   \
    }

static void plain_turn(char *out, int64_t out_stride, const char *in, int64_t in_stride,
                       int64_t rows, int64_t columns, int64_t bytes)
{
    switch (bytes) {
    case 1: PLAIN(uint8_t); return;
    case 2: PLAIN(uint16_t); return;
    case 4: PLAIN(uint32_t); return;
    default: PLAIN(uint64_t); return;
    }
}

void MT_ISA(mt__transpose)(char *out, int64_t out_stride, const char *in, int64_t in_stride,
                           int64_t rows, int64_t columns, int64_t bytes)
{
    int64_t side = bytes == 8 ? 8 : 16;
    for (int64_t j = 0; j < rows; j += side) {
        int64_t height = rows - j < side ? rows - j : side;
        for (int64_t i = 0; i < columns; i += side) {
            int64_t width = columns - i < side ? columns - i : side;
            char *to = out + j * out_stride + i * bytes;
            const char *from = in + i * in_stride + j * bytes;
            if (height < side || width < side || bytes < 4) {
                plain_turn(to, out_stride, from, in_stride, height, width, bytes);
            } else if (bytes == 4) {
                block16(to, out_stride, from, in_stride);
            } else {
                block8(to, out_stride, from, in_stride);
            }
        }
    }
}
