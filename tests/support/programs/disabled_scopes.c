/* SPDX-License-Identifier: Apache-2.0
 *
 * Every macro of trace.h; test_disabled.py looks at the object files that come of it with
 * MTPROF_DISABLE and without.
 */
#include <mtprof/trace.h>

int disabled_scopes(int n);

int disabled_scopes(int n)
{
    MTPROF_SCOPE("name of a scope");
    MTPROF_OP("name of an op");
    MTPROF_SCOPE_FLAGS("name with flags", MTPROF_KIND_RUNTIME);
    for (int i = 0; i < n; i++) {
        MTPROF_SCOPE("name of a turn");
        MTPROF_INSTANT("name of an instant");
        MTPROF_COUNTER("name of a counter", i);
        MTPROF_COUNTER("name of a real counter", i + 0.5);
        if (i == 3) {
            MTPROF_FLOW("name of a flow", MTPROF_FLOW_START, 1);
        }
    }
    return n;
}
