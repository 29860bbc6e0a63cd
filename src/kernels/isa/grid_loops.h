/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling images at a grid's places with the nearest element or between neighbours, in groups of
 * places that are computed side by side. grid_sample.c does what these loops do not: other modes,
 * reflection, derivatives.
 */
#ifndef KERNELS_ISA_GRID_LOOPS_H
#define KERNELS_ISA_GRID_LOOPS_H

#include "kernels/isa/isa.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MT_GRID_GROUP = 64 /* most places of a call */
};

/* Of one image: planes of D, H, W elements (fewer than 2^31), places of 2 (x, y) or 3 coordinates;
 * out[channel * out_step + place]. */
typedef struct mt__grid_image {
    const void *in, *grid;
    void *out;
    int64_t sides[3];
    int64_t channels, out_step;
    int64_t dims;
    bool nearest, border, corners;
} mt__grid_image;

typedef void mt__grid_fn(const mt__grid_image *image, int64_t places);

/* By type: float, double. */
extern mt__grid_fn *const mt__grid_loops_base[2];
extern mt__grid_fn *const mt__grid_loops_v3[2];
extern mt__grid_fn *const mt__grid_loops_v4[2];

#endif /* KERNELS_ISA_GRID_LOOPS_H */
