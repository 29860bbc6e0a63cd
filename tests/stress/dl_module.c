/* SPDX-License-Identifier: Apache-2.0
 *
 * A module with places of its own, to be loaded and unloaded by test_dlclose.c. It is compiled
 * twice: names begin with DL_NAME.
 */
#include <mtprof/trace.h>

__attribute__((visibility("default"))) void dl_module_record(int count);

void dl_module_record(int count)
{
    for (int i = 0; i < count; i++) {
        MTPROF_SCOPE(DL_NAME " scope");
        MTPROF_INSTANT(DL_NAME " mark");
        MTPROF_COUNTER(DL_NAME " counter", i);
    }
}
