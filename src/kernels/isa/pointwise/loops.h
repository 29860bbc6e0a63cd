/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over elements without gaps: what the files in src/kernels/isa define, once for each
 * instruction set, and the pointwise kernels call. A table has a loop for each code of its family;
 * NULL where the type has none. Operands that are strided or repeated are packed into such arrays
 * by strided.c, so one loop for a code and a type is enough.
 *
 *   LP1  arrays[0] is written, the others are read. An input may be the output itself, from the
 *        same element on; otherwise they do not overlap. n is at least 1.
 */
#ifndef KERNELS_ISA_POINTWISE_LOOPS_H
#define KERNELS_ISA_POINTWISE_LOOPS_H

#include "kernels/isa/isa.h"

#include <mindtorch/backend.h>

/* Scalars of a call as real and as integer; a loop reads the form of its type. */
typedef struct mt__loop_params {
    double real[2];
    int64_t integer[2];
    bool can_repeat;                 /* the loop supports `repeats` */
    uint32_t repeats;                /* MT_LOOP_REPEATS_*: that input is one element, for all */
    uint32_t wide;                   /* bits as in `repeats`: it is a float (loops_half.c) */
    const struct mt__narrow *narrow; /* of the loop of narrow.c, which has another one inside */
} mt__loop_params;

enum {
    MT_LOOP_REPEATS_FIRST = 1 << 1, /* arrays[1]; never both */
    MT_LOOP_REPEATS_SECOND = 1 << 2
};

enum {
    MT_LOOP_ZERO_DIVISION = 1 /* an integer was divided by 0; the element's result is 0 */
};

/* Returns flags. */
typedef uint32_t mt__loop_fn(void *const *arrays, int64_t n, const mt__loop_params *params);

#if defined(__x86_64__)
#    define MT_ISA_I_LEVELS 3
#    define MT_LOOP_TABLE(name, count)                \
        extern mt__loop_fn *const name##_base[count]; \
        extern mt__loop_fn *const name##_v3[count];   \
        extern mt__loop_fn *const name##_v4[count]
/* The three of them, for an array that mt__isa_level() is the index of. */
#    define MT_LOOP_LEVELS(name)              \
        {                                     \
            name##_base, name##_v3, name##_v4 \
        }
#else
#    define MT_ISA_I_LEVELS            1
#    define MT_LOOP_TABLE(name, count) extern mt__loop_fn *const name##_base[count]
#    define MT_LOOP_LEVELS(name) \
        {                        \
            name##_base          \
        }
#endif

MT_LOOP_TABLE(mt__unary_bool, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_u8, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_i32, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_i64, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_f32, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_f64, MT_UNARY_COUNT);

MT_LOOP_TABLE(mt__binary_bool, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_u8, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_i32, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_i64, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_f32, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_f64, MT_BINARY_COUNT);

/* Some of them for float16 and bfloat16 themselves (loops_half.c); the others are NULL. */
MT_LOOP_TABLE(mt__unary_f16, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__unary_bf16, MT_UNARY_COUNT);
MT_LOOP_TABLE(mt__binary_f16, MT_BINARY_COUNT);
MT_LOOP_TABLE(mt__binary_bf16, MT_BINARY_COUNT);

MT_LOOP_TABLE(mt__ternary_u8, MT_TERNARY_COUNT);
MT_LOOP_TABLE(mt__ternary_i32, MT_TERNARY_COUNT);
MT_LOOP_TABLE(mt__ternary_i64, MT_TERNARY_COUNT);
MT_LOOP_TABLE(mt__ternary_f32, MT_TERNARY_COUNT);
MT_LOOP_TABLE(mt__ternary_f64, MT_TERNARY_COUNT);

/* a ? b : c over elements of 1, 2, 4 and 8 bytes. */
MT_LOOP_TABLE(mt__where_loops, 4);

/* x * x * x for float, double. */
MT_LOOP_TABLE(mt__cube_loops, 2);

/* Conversions: index (type of in) * MT_DTYPE_COUNT + (type of out). */
MT_LOOP_TABLE(mt__convert_loops, MT_DTYPE_COUNT *MT_DTYPE_COUNT);

/* Fills with the low 1, 2, 4 or 8 bytes of integer[0]. */
MT_LOOP_TABLE(mt__fill_loops, 4);

/* out[j][i] = in[i][j] for elements of `bytes`: rows of out are out_stride bytes apart, those of in
 * in_stride; i < columns, j < rows. */
typedef void mt__transpose_fn(char *out, int64_t out_stride, const char *in, int64_t in_stride,
                              int64_t rows, int64_t columns, int64_t bytes);

extern mt__transpose_fn mt__transpose_base;
#if defined(__x86_64__)
extern mt__transpose_fn mt__transpose_v3;
extern mt__transpose_fn mt__transpose_v4;
#endif

/* Several rows of elements: address, and strides in bytes. */
typedef struct mt__plane {
    char *data;
    int64_t stride, row_stride;
} mt__plane;

/* n elements of `bytes` bytes of each of `rows` rows. */
typedef void mt__move_plane_fn(const mt__plane *to, const mt__plane *from, int64_t n, int64_t rows,
                               int64_t bytes);

extern mt__move_plane_fn mt__move_plane_base;
#if defined(__x86_64__)
extern mt__move_plane_fn mt__move_plane_v3;
extern mt__move_plane_fn mt__move_plane_v4;
#endif

/* Which of the four tables of 1, 2, 4 and 8 bytes. */
static inline uint32_t mt__width_index(int64_t bytes)
{
    return bytes == 8 ? 3U : bytes == 4 ? 2U : (uint32_t)bytes - 1U;
}

/* The loop of MT_KERNEL_UNARY for this processor; NULL where the type has none. */
mt__loop_fn *mt__unary_loop(uint16_t code, uint32_t dtype);

/* ---- arrays, scalars ---- */

static inline int64_t mt__array_numel(const mt_array *array)
{
    int64_t numel = 1;
    for (int32_t d = 0; d < array->n_dims; d++) {
        numel *= array->sizes[d];
    }
    return numel;
}

static inline double mt__scalar_real(const mt_scalar *scalar)
{
    if (scalar->kind == MT_KIND_INT && scalar->count != 0) {
        return (double)(uint64_t)scalar->of.integer;
    }
    return scalar->kind == MT_KIND_REAL ? scalar->of.real : (double)scalar->of.integer;
}

/* Rounds towards zero; values that int64 cannot hold, and NaN, become INT64_MIN, as in conversions
 * of elements. */
static inline int64_t mt__scalar_integer(const mt_scalar *scalar)
{
    if (scalar->kind != MT_KIND_REAL) {
        return scalar->of.integer;
    }
    double real = scalar->of.real;
    return real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MIN;
}

/* Writes the scalar as an element of the type (at most 8 bytes). */
void mt__scalar_store(const mt_scalar *scalar, mt_dtype dtype, void *element);

extern const uint8_t mt__element_sizes[MT_DTYPE_COUNT];

/* Bytes of an element, without a call. */
static inline int64_t mt__element_bytes(uint32_t dtype)
{
    return mt__element_sizes[dtype];
}

#endif /* KERNELS_ISA_POINTWISE_LOOPS_H */
