/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule: from a step's number to its action, see schedule.h.
 *
 * Invariants
 *   SCH1  Of a caller's struct, no byte past its struct_size is read.
 *   SCH2  No sum of a schedule's values is formed where it could overflow: positions are compared
 *         by taking the parts of a cycle away one after the other.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/control/profile_impl.h"

#include <mtprof/schedule.h>

#include <stddef.h>
#include <string.h>

/* The cycle's length, or 0 when it is longer than any step number can reach. */
static uint64_t cycle_length(const mtprof_schedule *schedule)
{
    uint64_t length = (uint64_t)schedule->wait + (uint64_t)schedule->warmup;
    return __builtin_add_overflow(length, (uint64_t)schedule->active, &length) ? 0 : length;
}

static int check_values(const mtprof_schedule *s)
{
    if (s->wait < 0 || s->warmup < 0 || s->active < 1 || s->repeat < 0 || s->skip_first < 0) {
        return mtb_fail(MTPROF_EINVAL,
                        "Invalid profiler schedule arguments. Got wait = %lld (need >= 0), "
                        "warmup = %lld (need >= 0), active = %lld (need > 0), repeat = %lld "
                        "(need >= 0), skip_first = %lld (need >= 0)",
                        (long long)s->wait, (long long)s->warmup, (long long)s->active,
                        (long long)s->repeat, (long long)s->skip_first);
    }
    return MTPROF_OK;
}

int mtprof__schedule_read(const mtprof_schedule *schedule, mtprof_schedule *out)
{
    memset(out, 0, sizeof *out);
    if (schedule == NULL || schedule->struct_size < offsetof(mtprof_schedule, repeat)) {
        return mtb_fail(MTPROF_EINVAL,
                        "Invalid profiler schedule arguments. Got %s (need struct_size and active)",
                        schedule == NULL ? "NULL" : "a struct_size that is too small");
    }
    mtb_read_struct(out, schedule);
    return check_values(out);
}

/*
 * The position of a step in its cycle, and whether it is in one at all. The cycle's number is only
 * needed to know that the last one is over.
 */
static bool position_of(const mtprof_schedule *schedule, int64_t step, uint64_t *position)
{
    if (step < schedule->skip_first) {
        return false;
    }
    uint64_t at = (uint64_t)(step - schedule->skip_first);
    if (schedule->skip_first_wait != 0) {
        at += (uint64_t)schedule->wait;
    }
    uint64_t length = cycle_length(schedule);
    if (length == 0) {
        *position = at;
        return true;
    }
    if (schedule->repeat > 0 && at / length >= (uint64_t)schedule->repeat) {
        return false;
    }
    *position = at % length;
    return true;
}

enum mtprof_action mtprof__schedule_at(const mtprof_schedule *schedule, int64_t step)
{
    uint64_t at;
    if (!position_of(schedule, step, &at) || at < (uint64_t)schedule->wait) {
        return MTPROF_ACTION_NONE;
    }
    at -= (uint64_t)schedule->wait;
    if (at < (uint64_t)schedule->warmup) {
        return MTPROF_ACTION_WARMUP;
    }
    at -= (uint64_t)schedule->warmup;
    return at == (uint64_t)schedule->active - 1 ? MTPROF_ACTION_RECORD_AND_SAVE
                                                : MTPROF_ACTION_RECORD;
}

bool mtprof__schedule_needs(const mtprof_schedule *schedule, int64_t step, uint64_t *needs)
{
    uint64_t before = 0;
    if (step < schedule->skip_first) {
        before = (uint64_t)(schedule->skip_first - step);
        step = schedule->skip_first;
    }
    uint64_t at;
    if (!position_of(schedule, step, &at)) {
        return false;
    }
    uint64_t idle = (uint64_t)schedule->wait + (uint64_t)schedule->warmup;
    uint64_t more = at < idle ? idle - at : 0;
    *needs = __builtin_add_overflow(before, more, &before) ? UINT64_MAX : before;
    return true;
}

mtprof_status mtprof_schedule_check(const mtprof_schedule *schedule, const char **warning)
{
    mtprof_schedule own;
    int status = mtprof__schedule_read(schedule, &own);
    if (warning != NULL) {
        *warning = status == MTPROF_OK && own.warmup == 0
                       ? "Profiler won't be using warmup, this can skew profiler results"
                       : NULL;
    }
    return status;
}

mtprof_status mtprof_schedule_get_action(const mtprof_schedule *schedule, int64_t step,
                                         enum mtprof_action *action)
{
    mtprof_schedule own;
    *action = MTPROF_ACTION_NONE;
    MT_TRY(mtprof__schedule_read(schedule, &own));
    if (step < 0) {
        return mtb_fail(MTPROF_EINVAL, "Step must be non-negative. Got %lld.", (long long)step);
    }
    *action = mtprof__schedule_at(&own, step);
    return MTPROF_OK;
}
