/* SPDX-License-Identifier: Apache-2.0
 *
 * Three loops with a scope in them, compiled twice: off_with.c as users do, off_without.c with
 * MTPROF_DISABLE. What the first executes more while nothing records is the price of instrumented
 * code. OFF_NAME(stem) names the functions.
 */
#ifndef BENCH_OFF_LOOPS_H
#define BENCH_OFF_LOOPS_H

#include "bench_off.h"

#include <mtprof/trace.h>

/* Nothing but a call: the compiler sees that begin returned 0 and may drop the end's test. */
void OFF_NAME(off_small)(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        MTPROF_SCOPE("small");
        off_opaque(i);
    }
}

/*
 * Something like a real function: branches, arithmetic, calls. Copying all of it for the two
 * outcomes of the begin's test is too much for a compiler, so the token lives through it, in a
 * register that the function has to save.
 */
uint64_t OFF_NAME(off_large_step)(uint64_t *state, uint64_t i)
{
    MTPROF_SCOPE("large");
    uint64_t a = state[0] + i, b = state[1] ^ (i << 7), c = state[2];
    if ((a & 3) == 0) {
        b += off_opaque(a);
    } else {
        c ^= a >> 5;
    }
    a = (a << 13 | a >> 51) + b;
    b = (b << 31 | b >> 33) ^ c;
    c += a * 3;
    state[0] = a;
    if (b > c) {
        b -= c;
    }
    state[1] = b + off_opaque(c);
    state[2] = c ^ a;
    return b ^ c;
}

void OFF_NAME(off_large)(uint64_t n)
{
    uint64_t state[3] = {1, 2, 3};
    for (uint64_t i = 0; i < n; i++) {
        OFF_NAME(off_large_step)(state, i);
    }
}

/* The hard case: so many live values that a loop would need the token's register. */
uint64_t OFF_NAME(off_busy_step)(uint64_t *state, uint64_t i)
{
    MTPROF_SCOPE("busy");
    uint64_t a = state[0] + i, b = state[1] ^ (i << 7), c = state[2];
    if ((a & 3) == 0) {
        b += off_opaque(a);
    } else {
        c ^= a >> 5;
    }
    for (int k = 0; k < 4; k++) {
        a = (a << 13 | a >> 51) + b;
        b = (b << 31 | b >> 33) ^ c;
        c += a * 3;
    }
    if (b > c) {
        uint64_t swap = b;
        b = c;
        c = swap;
    }
    state[0] = a;
    state[1] = b + off_opaque(c);
    state[2] = c;
    return a ^ b ^ c;
}

void OFF_NAME(off_busy)(uint64_t n)
{
    uint64_t state[3] = {1, 2, 3};
    for (uint64_t i = 0; i < n; i++) {
        OFF_NAME(off_busy_step)(state, i);
    }
}

#endif /* BENCH_OFF_LOOPS_H */
