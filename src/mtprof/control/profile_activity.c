/* SPDX-License-Identifier: Apache-2.0
 *
 * Activities: their names, which of them this process has, and what they ask the recorder for.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/control/profile_impl.h"

#include <mtprof/format.h>
#include <mtprof/source.h>

#include <string.h>
#include <strings.h>

/* bit 0: a name other tools know, for a device that is never available here. */
static const struct {
    const char *name;
    uint32_t bit;
} activity_names[] = {
    {"CPU", MTPROF_WATCH_CPU},
    {"NPU", MTPROF_WATCH_DEVICE},
    {"CUDA", MTPROF_WATCH_DEVICE},
    {"GPU", MTPROF_WATCH_DEVICE},
    {"XPU", 0},
    {"MTIA", 0},
    {"HPU", 0},
    {"PrivateUse1", MTPROF_WATCH_DEVICE},
};

/* What each flag adds to the gate. FLOPs and strides come from inputs. */
static const struct {
    uint32_t flag;
    uint64_t wants;
} flag_wants[] = {
    {MTPROF_PROFILE_RECORD_SHAPES, MTPROF_WANT_INPUTS},
    {MTPROF_PROFILE_MEMORY, MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS},
    {MTPROF_PROFILE_WITH_STACK, MTPROF_WANT_STACKS},
    {MTPROF_PROFILE_WITH_FLOPS, MTPROF_WANT_FLOPS | MTPROF_WANT_INPUTS},
    {MTPROF_PROFILE_WITH_MODULES, MTPROF_WANT_MODULES},
    {MTPROF_PROFILE_TENSOR_IDS, MTPROF_WANT_TENSORS},
    {MTPROF_PROFILE_DETAILS, MTPROF_WANT_DETAILS},
    {MTPROF_PROFILE_STRIDES, MTPROF_WANT_STRIDES | MTPROF_WANT_INPUTS},
    {MTPROF_PROFILE_NATIVE_STACKS, MTPROF_WANT_NATIVE_STACKS},
    {MTPROF_PROFILE_OVERLOADS, MTPROF_WANT_OVERLOADS | MTPROF_WANT_DETAILS},
    {MTPROF_PROFILE_LATE_DEVICES, MTPROF_WANT_RUNTIME | MTPROF_WANT_DEVICE},
};

mtprof_status mtprof_watch_parse(const char *text, uint32_t *bit)
{
    *bit = 0;
    if (text == NULL) {
        return mtb_fail(MTPROF_EINVAL, "activity: the name is NULL");
    }
    const char *dot = strrchr(text, '.');
    const char *last = dot != NULL ? dot + 1 : text;
    for (size_t i = 0; i < MT_COUNT(activity_names); i++) {
        if (strcasecmp(last, activity_names[i].name) != 0) {
            continue;
        }
        if (activity_names[i].bit == 0) {
            return mtb_fail(MTPROF_ENOTSUP, "%s is not available, disabling %s profiling",
                            activity_names[i].name, activity_names[i].name);
        }
        *bit = activity_names[i].bit;
        return MTPROF_OK;
    }
    return mtb_fail(MTPROF_EINVAL,
                    "activity: '%.200s' is not known; accepted are CPU, NPU, CUDA, GPU, "
                    "PrivateUse1 (XPU, MTIA and HPU are known, but not available)",
                    text);
}

int mtprof__activities_check(uint32_t activities, const char *call)
{
    uint32_t known = MTPROF_WATCH_CPU | MTPROF_WATCH_DEVICE;
    if (activities == MTPROF_WATCH_ALL || (activities & ~known) == 0) {
        return MTPROF_OK;
    }
    return mtb_fail(MTPROF_EINVAL, "%s: activities 0x%x has unknown bits", call,
                    (unsigned)activities);
}

uint32_t mtprof__activities_present(uint32_t asked)
{
    if (!mtprof_has_device_source()) {
        return MTPROF_WATCH_CPU;
    }
    return asked == MTPROF_WATCH_ALL ? MTPROF_WATCH_CPU | MTPROF_WATCH_DEVICE : asked;
}

/*
 * The device alone: its own work, the runtime calls, and the ops dispatched to it, which record
 * because their sites carry MTPROF_FLAG_DEVICE; other ops and scopes do not.
 */
uint64_t mtprof__wants(uint32_t activities, uint32_t flags)
{
    uint64_t wants = 0;
    if ((activities & MTPROF_WATCH_CPU) != 0) {
        /* torch's ops always carry sequence numbers and forward threads */
        wants |= MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS | MTPROF_WANT_DETAILS;
    }
    if ((activities & MTPROF_WATCH_DEVICE) != 0) {
        wants |= MTPROF_WANT_RUNTIME | MTPROF_WANT_DEVICE;
    }
    for (size_t i = 0; i < MT_COUNT(flag_wants); i++) {
        if ((flags & flag_wants[i].flag) != 0) {
            wants |= flag_wants[i].wants;
        }
    }
    return wants;
}
