/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over strided views, and what is done with a row of them.
 */
#include "kernels/index_walk.h"

#include <string.h>

static bool joins(const mt__walk *w, int32_t d, int64_t size, const int64_t *strides)
{
    for (int v = 0; v < MT_WALK_VIEWS; v++) {
        if (w->strides[d][v] != size * strides[v]) {
            return false;
        }
    }
    return true;
}

void mt__walk_add(mt__walk *w, int64_t size, const int64_t strides[MT_WALK_VIEWS])
{
    int32_t last = w->n_dims - 1;
    if (size == 1) {
        return;
    }
    bool is_first = w->n_dims == 1 && w->sizes[0] == 1;
    if (is_first || joins(w, last, size, strides)) {
        w->sizes[last] *= size;
    } else {
        last = w->n_dims++;
        w->sizes[last] = size;
    }
    w->at[last] = 0;
    for (int v = 0; v < MT_WALK_VIEWS; v++) {
        w->strides[last][v] = strides[v];
    }
}

int64_t mt__walk_rows(const mt__walk *w)
{
    int64_t rows = 1;
    for (int32_t d = 0; d < w->n_dims - 1; d++) {
        rows *= w->sizes[d];
    }
    return rows;
}

void mt__walk_seek(mt__walk *w, int64_t row)
{
    for (int v = 0; v < MT_WALK_VIEWS; v++) {
        w->offsets[v] = 0;
    }
    for (int32_t d = w->n_dims - 2; d >= 0; d--) {
        w->at[d] = row % w->sizes[d];
        row /= w->sizes[d];
        for (int v = 0; v < MT_WALK_VIEWS; v++) {
            w->offsets[v] += w->at[d] * w->strides[d][v];
        }
    }
}

#define MOVE(type)                                            \
    for (int64_t i = 0; i < n; i++) {                         \
        type value;                                           \
        memcpy(&value, from + i * from_stride, sizeof(type)); \
        memcpy(to + i * to_stride, &value, sizeof(type));     \
    }

void mt__move_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                       int64_t n, int64_t element_bytes)
{
    if (to_stride == element_bytes && from_stride == element_bytes) {
        memmove(to, from, (size_t)(n * element_bytes));
        return;
    }
    switch (element_bytes) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    default: MOVE(uint64_t) break;
    }
}

#define ADD_ELEMENT(type, expression, i, to_step, from_step)         \
    {                                                                \
        type a;                                                      \
        type b;                                                      \
        memcpy(&a, to + (i) * (int64_t)(to_step), sizeof(type));     \
        memcpy(&b, from + (i) * (int64_t)(from_step), sizeof(type)); \
        a = (type)(expression);                                      \
        memcpy(to + (i) * (int64_t)(to_step), &a, sizeof(type));     \
    }

/* A loop for rows without gaps, which the compiler vectorises, and one for the others. */
#define ADD_LOOP(type, expression)                                                    \
    if (to_stride == (int64_t)sizeof(type) && from_stride == (int64_t)sizeof(type)) { \
        for (int64_t i = 0; i < n; i++) {                                             \
            ADD_ELEMENT(type, expression, i, sizeof(type), sizeof(type))              \
        }                                                                             \
        return;                                                                       \
    }                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                 \
        ADD_ELEMENT(type, expression, i, to_stride, from_stride)                      \
    }

static double real_of(const mt_scalar *scalar)
{
    return scalar->kind == MT_KIND_REAL ? scalar->of.real : (double)scalar->of.integer;
}

static int64_t int_of(const mt_scalar *scalar)
{
    return scalar->kind == MT_KIND_REAL ? (int64_t)scalar->of.real : scalar->of.integer;
}

bool mt__can_add(uint32_t dtype)
{
    return dtype != MT_DTYPE_F16 && dtype != MT_DTYPE_BF16 && dtype < MT_DTYPE_COUNT;
}

void mt__add_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                      uint32_t dtype, const mt_scalar *alpha)
{
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_BOOL: {
        uint8_t factor = real_of(alpha) != 0;
        ADD_LOOP(uint8_t, a | (b & factor))
        break;
    }
    case MT_DTYPE_U8: {
        uint8_t factor = (uint8_t)int_of(alpha);
        ADD_LOOP(uint8_t, a + factor * b)
        break;
    }
    case MT_DTYPE_I32: {
        uint32_t factor = (uint32_t)int_of(alpha);
        ADD_LOOP(uint32_t, a + factor * b)
        break;
    }
    case MT_DTYPE_I64: {
        uint64_t factor = (uint64_t)int_of(alpha);
        ADD_LOOP(uint64_t, a + factor * b)
        break;
    }
    case MT_DTYPE_F32: {
        float factor = (float)real_of(alpha);
        ADD_LOOP(float, a + factor * b)
        break;
    }
    default: {
        double factor = real_of(alpha);
        ADD_LOOP(double, a + factor * b)
        break;
    }
    }
}
