/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by loops of our own, for any strides; see product_loops.c.
 */
#ifndef KERNELS_ISA_PRODUCT_LOOPS_H
#define KERNELS_ISA_PRODUCT_LOOPS_H

#include "kernels/matrix/product.h"

typedef void mt__product_fn(const mt__product *product);

typedef struct mt__product_loops {
    mt__product_fn *u8;
    mt__product_fn *i32;
    mt__product_fn *i64;
    mt__product_fn *f32;
    mt__product_fn *f64;
} mt__product_loops;

extern const mt__product_loops mt__product_loops_base;
extern const mt__product_loops mt__product_loops_v3;
extern const mt__product_loops mt__product_loops_v4;

#endif /* KERNELS_ISA_PRODUCT_LOOPS_H */
