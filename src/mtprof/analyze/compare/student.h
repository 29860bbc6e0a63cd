/* SPDX-License-Identifier: Apache-2.0
 *
 * How much two means may differ by chance.
 */
#ifndef MTPROF_ANALYZE_COMPARE_STUDENT_H
#define MTPROF_ANALYZE_COMPARE_STUDENT_H

typedef struct mtprof__sample {
    double n, mean, deviation; /* of the sample: with n - 1 */
} mtprof__sample;

/* Student's t for which chance exceeds +-t with probability alpha, at df degrees of freedom. */
double mtprof__student_t(double alpha, double df);

/*
 * Welch's bound: a difference of the means larger than this comes from chance with a probability
 * below alpha. NaN with fewer than two values in a sample.
 */
double mtprof__noise_bound(mtprof__sample a, mtprof__sample b, double alpha);

#endif /* MTPROF_ANALYZE_COMPARE_STUDENT_H */
