/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops that bench_off.c counts and times; see off_loops.h.
 */
#ifndef BENCH_BENCH_OFF_H
#define BENCH_BENCH_OFF_H

#include <stdint.h>

/* In a translation unit of its own: nothing is known about it. */
uint64_t off_opaque(uint64_t value);

/* A scope around a call, around a dozen statements, and around a loop short of registers. */
void off_small_with(uint64_t n);
void off_small_without(uint64_t n);
uint64_t off_large_step_with(uint64_t *state, uint64_t i);
uint64_t off_large_step_without(uint64_t *state, uint64_t i);
void off_large_with(uint64_t n);
void off_large_without(uint64_t n);
uint64_t off_busy_step_with(uint64_t *state, uint64_t i);
uint64_t off_busy_step_without(uint64_t *state, uint64_t i);
void off_busy_with(uint64_t n);
void off_busy_without(uint64_t n);

#endif /* BENCH_BENCH_OFF_H */
