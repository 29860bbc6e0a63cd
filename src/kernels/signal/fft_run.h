/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of numbers transformed; fft_run.c.
 */
#ifndef KERNELS_SIGNAL_FFT_RUN_H
#define KERNELS_SIGNAL_FFT_RUN_H

#include "kernels/signal/fft_plan.h"

/* Elements at base + i * step bytes, the imaginary part im_step bytes further on; 0: none. */
typedef struct mt__fft_line {
    char *base;
    int64_t step;
    int64_t im_step;
} mt__fft_line;

/* plan->n complex elements, times scale. `to` may be `from`. MT_ENOMEM. */
int mt__fft_run_line(const mt__fft_plan *plan, const mt__fft_line *from, const mt__fft_line *to,
                     bool inverse, double scale);

#endif /* KERNELS_SIGNAL_FFT_RUN_H */
