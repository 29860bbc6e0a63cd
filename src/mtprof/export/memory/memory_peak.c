/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of hostile sizes stop at the ends of the range, see memory_peak.h.
 */
#include "mtprof/export/memory/memory_peak.h"

#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"

#include <assert.h>
#include <string.h>

static_assert((int)MTPROF_MEMORY_CATEGORIES == (int)MTPROF__MEMORY_CATEGORY_COUNT,
              "as export.h tells them");

void mtprof__memory_sum_init(mtprof__memory_sum *sum, const mtprof__memory_timeline *timeline)
{
    *sum = (mtprof__memory_sum){.first_ns = timeline->first_ns};
    sum->now.time_ns = sum->peak.time_ns = timeline->first_ns;
    sum->now.allocated = sum->peak.allocated = -1;
}

static void note_peaks(mtprof__memory_sum *sum)
{
    if (sum->now.total > sum->peak.total) {
        sum->peak = sum->now;
    }
    for (int i = 0; i < MTPROF__MEMORY_CATEGORY_COUNT; i++) {
        if (sum->now.sizes[i] > sum->peaks[i].sizes[i]) {
            sum->peaks[i] = sum->now;
        }
    }
}

void mtprof__memory_sum_begin(mtprof__memory_sum *sum)
{
    if (!sum->begun) {
        sum->begun = true;
        sum->now.time_ns = sum->first_ns;
        note_peaks(sum);
    }
}

bool mtprof__memory_sum_add(mtprof__memory_sum *sum, const mtprof__memory_action *action)
{
    mtprof__memory_state *now = &sum->now;
    bool older = action->verb == MTPROF__MEMORY_PREEXISTING;
    bool half = action->verb == MTPROF__MEMORY_INCREMENT_VERSION && action->bytes < 0;
    if (!older) {
        mtprof__memory_sum_begin(sum);
        now->time_ns = action->time_ns;
    }
    now->total = mtb_add_sat(now->total, action->bytes);
    now->sizes[action->category] = mtb_add_sat(now->sizes[action->category], action->bytes);
    now->allocated = action->allocated;
    now->owner = action->owner;
    sum->n_allocations += action->verb == MTPROF__MEMORY_CREATE;
    sum->n_releases += action->verb == MTPROF__MEMORY_DESTROY;
    if (older || half) {
        return false;
    }
    note_peaks(sum);
    return true;
}

/* ---- for callers outside --------------------------------------------------------------------- */

static int take(void *context, const mtprof__memory_action *action)
{
    (void)mtprof__memory_sum_add(context, action);
    return 0;
}

mtprof_status mtprof_model_get_memory_peak(mtprof_model *model,
                                           const mtprof_export_options *options,
                                           mtprof_memory_peak *peak)
{
    mtprof__export_job job;
    mtprof__memory_timeline timeline;
    mtprof__memory_sum sum;
    if (peak == NULL || peak->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "memory peak: peak%s",
                        peak == NULL ? " is NULL" : ".struct_size is 0");
    }
    MT_TRY(mtprof__export_job_init(&job, model, options));
    char missing[MTPROF__MEMORY_MISSING_BYTES];
    if (!mtprof__memory_is_recorded(&job.info, missing, sizeof missing)) {
        const mtprof_memory_peak none = {.bytes = -1, .allocator_bytes = -1};
        mtb_write_struct(peak, &none);
        return MTPROF_OK;
    }
    int status = mtprof__memory_prepare(&job, &timeline);
    if (status == 0) {
        mtprof__memory_sum_init(&sum, &timeline);
        status = mtprof__memory_run(&timeline, take, NULL, &sum);
    }
    if (status == 0) {
        mtprof__memory_sum_begin(&sum);
        mtprof_memory_peak own = {
            .device = timeline.device,
            .bytes = sum.peak.total,
            .time_ns = mtb_sub_sat(sum.peak.time_ns, job.info.real_offset_ns),
            .owner = sum.peak.owner,
            .allocator_bytes = sum.peak.allocated,
            .end_bytes = sum.now.total,
        };
        memcpy(own.categories, sum.peak.sizes, sizeof own.categories);
        for (int i = 0; i < MTPROF__MEMORY_CATEGORY_COUNT; i++) {
            own.most[i] = sum.peaks[i].sizes[i];
        }
        mtb_write_struct(peak, &own);
    }
    mtprof__memory_timeline_fini(&timeline);
    return status;
}
