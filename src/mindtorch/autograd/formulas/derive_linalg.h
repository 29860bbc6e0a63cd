/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that derivatives of linear algebra share. Each leaves its result in *out, which is a
 * temporary of the formula.
 */
#ifndef MINDTORCH_AUTOGRAD_FORMULAS_DERIVE_LINALG_H
#define MINDTORCH_AUTOGRAD_FORMULAS_DERIVE_LINALG_H

#include "mindtorch/autograd/formulas/formula.h"

/* A step that calls an op: MT_INTO(b, &sum, mt_add(x, y, b->place)). */
#define MT_INTO(b, out, call) MT_TRY(((b)->place = mt__bw_temp(b), mt__bw_took((b), (out), (call))))

MT_INLINE int mt__bw_took(const mt__backward *b, mt_tensor **out, int status)
{
    if (status == MT_OK) {
        *out = *b->place;
    }
    return status;
}

MT_INLINE int64_t mt__bw_rows(const mt_tensor *x)
{
    return x->sizes[x->n_dims - 2];
}

MT_INLINE int64_t mt__bw_columns(const mt_tensor *x)
{
    return x->sizes[x->n_dims - 1];
}

MT_INLINE int mt__bw_turn(mt__backward *b, mt_tensor *x, mt_tensor **out)
{
    MT_INTO(b, out, mt_transpose(x, -2, -1, b->place));
    return MT_OK;
}

MT_INLINE int mt__bw_times(mt__backward *b, mt_tensor *x, mt_tensor *y, mt_tensor **out)
{
    MT_INTO(b, out, mt_matmul(x, y, b->place));
    return MT_OK;
}

/* x^T y */
MT_INLINE int mt__bw_turned_times(mt__backward *b, mt_tensor *x, mt_tensor *y, mt_tensor **out)
{
    mt_tensor *turned = NULL;
    MT_TRY(mt__bw_turn(b, x, &turned));
    return mt__bw_times(b, turned, y, out);
}

/* x y^T */
MT_INLINE int mt__bw_times_turned(mt__backward *b, mt_tensor *x, mt_tensor *y, mt_tensor **out)
{
    mt_tensor *turned = NULL;
    MT_TRY(mt__bw_turn(b, y, &turned));
    return mt__bw_times(b, x, turned, out);
}

/* *sum += x; *sum may be NULL, for zero. */
MT_INLINE int mt__bw_accumulate(mt__backward *b, mt_tensor **sum, mt_tensor *x)
{
    if (*sum == NULL) {
        *sum = x;
        return MT_OK;
    }
    MT_INTO(b, sum, mt_add(*sum, x, b->place));
    return MT_OK;
}

/* Square matrices with these diagonals. */
MT_INLINE int mt__bw_diagonal(mt__backward *b, mt_tensor *line, mt_tensor **out)
{
    mt__shape shape = mt__tensor_shape(line);
    shape.sizes[shape.n_dims] = shape.sizes[shape.n_dims - 1];
    shape.n_dims++;
    MT_INTO(b, out, mt_diagonal_backward(line, shape.sizes, shape.n_dims, 0, -2, -1, b->place));
    return MT_OK;
}

/* a^-1 x or, right, x a^-1 of a triangle; `unit`: ones on the diagonal. */
MT_INLINE int mt__bw_triangle(mt__backward *b, mt_tensor *a, mt_tensor *x, bool upper, bool left,
                              bool unit, mt_tensor **out)
{
    MT_INTO(b, out, mt_linalg_solve_triangular_with(a, x, upper, left, unit, b->place));
    return MT_OK;
}

#endif /* MINDTORCH_AUTOGRAD_FORMULAS_DERIVE_LINALG_H */
