/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps of a loop are recorded: a cycle of wait, warm-up and active steps.
 *
 *      skip_first        one cycle                 the next, up to `repeat` cycles in all
 *     ├──────────┼─ wait ─┬─ warmup ─┬─ active ─┼─ wait ─┬ …
 *       NONE …     NONE     WARMUP    RECORD …
 *                                     RECORD_AND_SAVE (the last active step)
 *
 * Pure functions: no state, any thread.
 */
#ifndef MTPROF_SCHEDULE_H
#define MTPROF_SCHEDULE_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/** What happens during a step. */
enum mtprof_action {
    MTPROF_ACTION_NONE = 0,
    MTPROF_ACTION_WARMUP = 1,
    MTPROF_ACTION_RECORD = 2,
    MTPROF_ACTION_RECORD_AND_SAVE = 3 /**< record, and the window is complete after this step */
};

/** Set struct_size and active; the rest may stay zero. Fields are only ever appended. */
typedef struct mtprof_schedule {
    uint32_t struct_size; /**< sizeof(mtprof_schedule) as the caller was compiled */
    uint32_t reserved;
    int64_t wait;            /**< steps of a cycle that are not recorded, >= 0 */
    int64_t warmup;          /**< steps that prepare and discard, >= 0 */
    int64_t active;          /**< steps that are recorded, >= 1 */
    int64_t repeat;          /**< number of cycles, >= 0; 0: no limit */
    int64_t skip_first;      /**< steps before the first cycle, >= 0 */
    int64_t skip_first_wait; /**< not 0: the first cycle has no wait; it counts as a cycle */
} mtprof_schedule;

/**
 * Checks a schedule. *warning (may be NULL) becomes a constant text when the schedule is valid but
 * unwise, otherwise NULL.
 *
 * Fails with EINVAL: a value is out of its bounds; the message names every value and bound.
 */
MTPROF_API mtprof_status mtprof_schedule_check(const mtprof_schedule *schedule,
                                               const char **warning);

/**
 * The action of a step, counted from 0.
 *
 * Fails with EINVAL: the schedule is not valid, or the step is negative.
 */
MTPROF_API mtprof_status mtprof_schedule_get_action(const mtprof_schedule *schedule, int64_t step,
                                                    enum mtprof_action *action);

MTPROF_END_DECLS

#endif /* MTPROF_SCHEDULE_H */
