/* SPDX-License-Identifier: Apache-2.0
 *
 * The macros of trace.h with every type of number and several of them on a line. Compiled as C11
 * and as C++17 (MACRO_VALUES names the function), because each language has its own way to fail
 * here.
 */
#include <mtprof/trace.h>

#ifndef MACRO_VALUES
#    define MACRO_VALUES macro_values_c
#endif

MTPROF_BEGIN_DECLS
int MACRO_VALUES(void);
MTPROF_END_DECLS

static int calls;

static double half(void)
{
    calls++;
    return 0.5;
}

/* Returns how often half() was called. */
int MACRO_VALUES(void)
{
    const float third = 0.25f;
    bool yes = true;
    signed char small = -3;
    unsigned long long large = UINT64_MAX;
    calls = 0;
    /* clang-format off: several to a line */
    {
        MTPROF_SCOPE("first");
        MTPROF_SCOPE("second");
        MTPROF_OP("third");
        MTPROF_INSTANT("fourth");
        MTPROF_INSTANT("fifth");
    }
    MTPROF_COUNTER("value", 7);
    MTPROF_COUNTER("value", small);
    MTPROF_COUNTER("value", yes);
    /* clang-format on */
    MTPROF_COUNTER("value", INT64_MIN);
    MTPROF_COUNTER("value", large);
    MTPROF_COUNTER("value", half());
    MTPROF_COUNTER("value", third);
    MTPROF_COUNTER("value", -1.5L);
    return calls;
}
