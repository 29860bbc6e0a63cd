/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of Fourier transforms, for float and double and each instruction set. Several
 * transforms run side by side, one in each lane:
 *
 *     re[row * lanes + lane], im[...]      MT_FFT_LANE_BYTES bytes a row, aligned to them
 *
 * so that every butterfly works on whole vectors, whatever the length. fft_run.c divides the work.
 */
#ifndef KERNELS_ISA_SIGNAL_FFT_LOOPS_H
#define KERNELS_ISA_SIGNAL_FFT_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MT_FFT_LANE_BYTES = 64,
    MT_FFT_LANES = 16, /* of float; half of them of double */
    MT_FFT_LARGEST_RADIX = 13,
    MT_FFT_STAGES = 64
};

/* The stages of a transform of n elements, n a product of radices. Stage i has n / (radices before
 * it) / radix groups, and radix - 1 factors (real, imaginary) for each of them. */
typedef struct mt__fft_stages {
    int64_t n;
    int32_t count;
    uint8_t radix[MT_FFT_STAGES];
    const void *factors[MT_FFT_STAGES];
} mt__fft_stages;

/* Where the elements of some lanes are: numbers at lanes[l] + j * step, their imaginary parts
 * im_step further on (0: there are none). Steps are in bytes. */
typedef struct mt__fft_place {
    char *const *lanes;
    int64_t count; /* of lanes */
    int64_t step;
    int64_t im_step;
} mt__fft_place;

typedef struct mt__fft_loops {
    /* Rows 0 .. n - 1 from memory; lanes that are not used become 0. */
    void (*load)(void *re, void *im, const mt__fft_place *from, int64_t n);
    /* Rows 0 .. n - 1 to memory, times `scale`. */
    void (*store)(const mt__fft_place *to, const void *re, const void *im, int64_t n, double scale);
    /* The forward transform. The result is in re and im, or in the other two: true. */
    bool (*transform)(const mt__fft_stages *stages, void *re, void *im, void *other_re,
                      void *other_im);
    /* Row k times table[k], which has the lanes' real parts and then their imaginary parts. */
    void (*twist)(void *re, void *im, int64_t rows, const void *table);
    /* For factors that no table has: row k times start[k] ladder[k][lane], complex in double. */
    void (*turn)(void *re, void *im, int64_t rows, const double *start, const double *ladder);
    /* Row k of `width` numbers times table[k], complex. Rows are `step` bytes apart. */
    void (*multiply)(void *re, void *im, int64_t rows, int64_t step, int64_t width,
                     const void *table);
    /* From the transform of n / 2 pairs of real numbers to that of n: rows 0 .. n / 2. table[k] is
     * the k-th power of the n-th root of unity, k <= n / 4. */
    void (*unpack)(void *re, void *im, int64_t half, int64_t step, int64_t width,
                   const void *table);
    /* The reverse: from rows 0 .. half to the pairs' rows 0 .. half - 1. */
    void (*pack)(void *re, void *im, int64_t half, int64_t step, int64_t width, const void *table);
    /* Parts apart, re[0 .. n - 1] and im, to a line of n complex numbers, times `scale`; or from
     * it. */
    void (*line)(char *at, int64_t n, void *re, void *im, double scale, bool to_line);
    /* Rows half + 1 .. n - 1 become the conjugates of rows n - half - 1 .. 1, row 0 real. */
    void (*mirror)(void *re, void *im, int64_t n, int64_t step, int64_t width);
} mt__fft_loops;

/* By type: float, double. */
extern const mt__fft_loops mt__fft_loops_base[2];
extern const mt__fft_loops mt__fft_loops_v3[2];
extern const mt__fft_loops mt__fft_loops_v4[2];

#endif /* KERNELS_ISA_SIGNAL_FFT_LOOPS_H */
