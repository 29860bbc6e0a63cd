/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over strided views, and what is done with a row of them.
 */
#include "kernels/index/index_walk.h"

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

#define MOVE_AT(type)                                    \
    for (int64_t i = 0; i < n; i++) {                    \
        type value;                                      \
        memcpy(&value, from + from_at[i], sizeof(type)); \
        memcpy(to + to_at[i], &value, sizeof(type));     \
    }

void mt__move_at(char *to, const int64_t *to_at, const char *from, const int64_t *from_at,
                 int64_t n, int64_t element_bytes)
{
    switch (element_bytes) {
    case 1: MOVE_AT(uint8_t) break;
    case 2: MOVE_AT(uint16_t) break;
    case 4: MOVE_AT(uint32_t) break;
    default: MOVE_AT(uint64_t) break;
    }
}

static bool bool_of(const mt_scalar *scalar)
{
    return mt__scalar_real(scalar) != 0;
}

typedef void add_fn(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                    const mt_scalar *alpha);

typedef void add_at_fn(char *to, const int64_t *to_at, const char *from, const int64_t *from_at,
                       int64_t n, const mt_scalar *alpha);

#define ADD_ELEMENT(type, expression, to_offset, from_offset) \
    {                                                         \
        type a;                                               \
        type b;                                               \
        memcpy(&a, to + (to_offset), sizeof(type));           \
        memcpy(&b, from + (from_offset), sizeof(type));       \
        a = (type)(expression);                               \
        memcpy(to + (to_offset), &a, sizeof(type));           \
    }

/* A loop for rows without gaps, which the compiler vectorises, one for other rows, one for places.
 */
#define ADD(name, type, factor_of, expression)                                                 \
    static void add_##name(char *to, int64_t to_stride, const char *from, int64_t from_stride, \
                           int64_t n, const mt_scalar *alpha)                                  \
    {                                                                                          \
        const type factor = (type)factor_of(alpha);                                            \
        const int64_t step = (int64_t)sizeof(type);                                            \
        int64_t i = 0;                                                                         \
        if (to_stride == step && from_stride == step) {                                        \
            for (; i < n; i++) {                                                               \
                ADD_ELEMENT(type, expression, i *step, i *step)                                \
            }                                                                                  \
        }                                                                                      \
        for (; i < n; i++) {                                                                   \
            ADD_ELEMENT(type, expression, i *to_stride, i *from_stride)                        \
        }                                                                                      \
    }                                                                                          \
    static void add_at_##name(char *to, const int64_t *to_at, const char *from,                \
                              const int64_t *from_at, int64_t n, const mt_scalar *alpha)       \
    {                                                                                          \
        const type factor = (type)factor_of(alpha);                                            \
        for (int64_t i = 0; i < n; i++) {                                                      \
            ADD_ELEMENT(type, expression, to_at[i], from_at[i])                                \
        }                                                                                      \
    }

ADD(bool, uint8_t, bool_of, a | (b & factor))
ADD(u8, uint8_t, mt__scalar_integer, a + factor * b)
ADD(i32, uint32_t, mt__scalar_integer, a + factor * b)
ADD(i64, uint64_t, mt__scalar_integer, a + factor * b)
ADD(f32, float, mt__scalar_real, a + factor * b)
ADD(f64, double, mt__scalar_real, a + factor * b)

static add_fn *const adders[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = add_bool, [MT_DTYPE_U8] = add_u8,   [MT_DTYPE_I32] = add_i32,
    [MT_DTYPE_I64] = add_i64,   [MT_DTYPE_F32] = add_f32, [MT_DTYPE_F64] = add_f64,
};

bool mt__can_add(uint32_t dtype)
{
    return dtype < MT_DTYPE_COUNT && adders[dtype] != NULL;
}

void mt__add_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                      uint32_t dtype, const mt_scalar *alpha)
{
    MT_ASSERT(mt__can_add(dtype));
    adders[dtype](to, to_stride, from, from_stride, n, alpha);
}

void mt__add_at(char *to, const int64_t *to_at, const char *from, const int64_t *from_at, int64_t n,
                uint32_t dtype, const mt_scalar *alpha)
{
    static add_at_fn *const by_type[MT_DTYPE_COUNT] = {
        [MT_DTYPE_BOOL] = add_at_bool, [MT_DTYPE_U8] = add_at_u8,   [MT_DTYPE_I32] = add_at_i32,
        [MT_DTYPE_I64] = add_at_i64,   [MT_DTYPE_F32] = add_at_f32, [MT_DTYPE_F64] = add_at_f64,
    };
    MT_ASSERT(mt__can_add(dtype));
    by_type[dtype](to, to_at, from, from_at, n, alpha);
}
