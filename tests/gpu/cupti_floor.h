/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI alone, in variants: what no profiler can be cheaper than.
 */
#ifndef TESTS_GPU_CUPTI_FLOOR_H
#define TESTS_GPU_CUPTI_FLOOR_H

/* The name of a variant, from 0; NULL: there are no more. */
const char *floor_variant(int number);
/* 0, or -1: CUPTI is not there or does not have what the variant asks for. */
int floor_start(const char *variant);
/* Detaches CUPTI. */
void floor_stop(void);

#endif /* TESTS_GPU_CUPTI_FLOOR_H */
