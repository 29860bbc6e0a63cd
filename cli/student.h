/* SPDX-License-Identifier: Apache-2.0
 *
 * How much two means may differ by chance.
 */
#ifndef CLI_STUDENT_H
#define CLI_STUDENT_H

typedef struct cli_sample {
    double n, mean, deviation; /* of the sample: with n - 1 */
} cli_sample;

/* Student's t for which chance exceeds +-t with probability alpha, at df degrees of freedom. */
double cli_student_t(double alpha, double df);

/*
 * Welch's bound: a difference of the means larger than this comes from chance with a probability
 * below alpha. NaN with fewer than two values in a sample.
 */
double cli_noise_bound(cli_sample a, cli_sample b, double alpha);

#endif /* CLI_STUDENT_H */
