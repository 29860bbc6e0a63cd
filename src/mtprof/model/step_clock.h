/* SPDX-License-Identifier: Apache-2.0
 *
 * Which step a time is in: looked up for every event, nearly in order of time, so the interval of
 * the last answer is kept.
 */
#ifndef MTPROF_MODEL_STEP_CLOCK_H
#define MTPROF_MODEL_STEP_CLOCK_H

#include "base/compiler.h"
#include "mtprof/model/model_impl.h"

typedef struct mtprof__step_clock {
    const mtprof_model *model;
    int64_t low, high; /* low <= ns < high */
    int32_t step;
} mtprof__step_clock;

void mtprof__step_clock_init(mtprof__step_clock *clock, const mtprof_model *model);
int32_t mtprof__step_clock_seek(mtprof__step_clock *clock, int64_t ns);

MT_INLINE int32_t mtprof__step_at(mtprof__step_clock *clock, int64_t ns)
{
    return MT_LIKELY(ns >= clock->low && ns < clock->high) ? clock->step
                                                           : mtprof__step_clock_seek(clock, ns);
}

#endif /* MTPROF_MODEL_STEP_CLOCK_H */
