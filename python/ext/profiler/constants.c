/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of libmtprof that Python code names, under their C names without MTPROF_.
 */
#include "common/py_common.h"
#include "profiler/stacks/tracers.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/profile.h>
#include <mtprof/version.h>

#define NUMBER(name)         \
    {                        \
#        name, MTPROF_##name \
    }

py_part constants_part;
int constants_part(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } numbers[] = {
        NUMBER(WATCH_CPU),
        NUMBER(WATCH_DEVICE),
        NUMBER(WATCH_ALL),
        NUMBER(PROFILE_RECORD_SHAPES),
        NUMBER(PROFILE_MEMORY),
        NUMBER(PROFILE_WITH_STACK),
        NUMBER(PROFILE_WITH_FLOPS),
        NUMBER(PROFILE_WITH_MODULES),
        NUMBER(PROFILE_TENSOR_IDS),
        NUMBER(PROFILE_DETAILS),
        NUMBER(PROFILE_STRIDES),
        NUMBER(PROFILE_OVERLOADS),
        NUMBER(PROFILE_ACC_EVENTS),
        NUMBER(PROFILE_LATE_DEVICES),
        NUMBER(POLICY_SPILL),
        NUMBER(POLICY_RING),
        NUMBER(POLICY_STOP),
        NUMBER(RESULTS_NONE),
        NUMBER(RESULTS_PREPARED),
        NUMBER(RESULTS_RECORDING),
        NUMBER(RESULTS_READY),
        NUMBER(TABLE_FIT),
        NUMBER(WANT_DEFAULT),
        NUMBER(WANT_INPUTS),
        NUMBER(WANT_STACKS),
        NUMBER(WANT_MEMORY),
        NUMBER(WANT_ALLOCS),
        NUMBER(WANT_FLOPS),
        NUMBER(WANT_MODULES),
        NUMBER(EVENT_FLAG_ASYNC),
        NUMBER(EVENT_FLAG_TRUNCATED),
        NUMBER(EVENT_KIND_SCOPE),
        NUMBER(EVENT_KIND_OP),
        NUMBER(EVENT_KIND_RUNTIME),
        NUMBER(EVENT_KIND_FUNCTION),
        NUMBER(EVENT_KIND_KERNEL),
        NUMBER(EVENT_KIND_COPY),
        NUMBER(EVENT_KIND_SET),
        NUMBER(EVENT_KIND_CALL),
        NUMBER(EVENT_KIND_SYNC),
        NUMBER(EVENT_KIND_ANNOTATION),
        NUMBER(EVENT_KIND_OTHER),
        NUMBER(EVENT_KIND_OVERHEAD),
        {"TRACER_CALLS", TRACER_CALLS},
        {"TRACER_COLLECTIONS", TRACER_COLLECTIONS},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value) != 0) {
            return -1;
        }
    }
    return PyModule_AddStringConstant(module, "version", mtprof_version_string());
}
