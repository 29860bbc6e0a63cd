/* SPDX-License-Identifier: Apache-2.0
 *
 * What needs the events of a row one by one: quantiles, and how much a row varies between steps.
 *
 * A second pass finds the events of each row when they are first requested, and keeps them: four
 * bytes an event.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"

#include <mtprof/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- events of rows -------------------------------------------------------------------------- */

static int place_events(mtprof_averages *averages, uint64_t *next, uint32_t *events)
{
    mtprof__grouper *grouper = &averages->grouper;
    uint32_t rows[MTPROF__GROUP_BLOCK];
    size_t n_events = grouper->columns.n;
    for (size_t first = 0; first < n_events; first += MTPROF__GROUP_BLOCK) {
        size_t rest = n_events - first;
        size_t n = rest < MTPROF__GROUP_BLOCK ? rest : MTPROF__GROUP_BLOCK;
        MT_TRY(mtprof__grouper_rows(grouper, first, n, false, rows));
        for (size_t i = 0; i < n; i++) {
            if (rows[i] != 0) {
                events[next[rows[i] - 1]++] = (uint32_t)(first + i);
            }
        }
    }
    return 0;
}

static int make_index(mtprof_averages *averages)
{
    size_t n_rows = averages->n_rows;
    uint64_t total = 0;
    for (size_t i = 0; i < n_rows; i++) {
        total += averages->grouper.groups[i + 1].count;
    }
    uint64_t *starts = mtb_calloc(n_rows + 1, sizeof starts[0]);
    uint64_t *next = mtb_calloc(n_rows + 1, sizeof next[0]);
    uint32_t *events = mtb_calloc(total + 1, sizeof events[0]);
    if (starts == NULL || next == NULL || events == NULL) {
        mtb_free(starts);
        mtb_free(next);
        mtb_free(events);
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for an index of %zu rows", n_rows);
    }
    for (size_t i = 0; i < n_rows; i++) {
        starts[i + 1] = starts[i] + averages->grouper.groups[i + 1].count;
        next[i] = starts[i];
    }
    int status = place_events(averages, next, events);
    mtb_free(next);
    if (status != 0) {
        mtb_free(starts);
        mtb_free(events);
        return status;
    }
    averages->row_starts = starts;
    averages->row_events = events;
    return 0;
}

/* The events of a row. Under the lock. */
static int events_of_row(mtprof_averages *averages, uint32_t row, const uint32_t **events,
                         size_t *n)
{
    if (averages->is_events) {
        *events = &averages->events[row];
        *n = 1;
        return 0;
    }
    if (averages->row_starts == NULL) {
        MT_TRY(make_index(averages));
    }
    MT_ASSERT(averages->row_starts != NULL);
    *events = averages->row_events + averages->row_starts[row];
    *n = (size_t)(averages->row_starts[row + 1] - averages->row_starts[row]);
    return 0;
}

/* ---- quantiles ------------------------------------------------------------------------------- */

enum {
    FEW = 32,
    RADIX = 256
};

static void sort_few(int64_t *times, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int64_t value = times[i];
        size_t at = i;
        for (; at > 0 && times[at - 1] > value; at--) {
            times[at] = times[at - 1];
        }
        times[at] = value;
    }
}

/* The byte of a time at a shift; the sign is turned so that negative ones come first. */
static unsigned byte_at(int64_t time, unsigned shift)
{
    return ((uint64_t)time ^ UINT64_C(1) << 63) >> shift & (RADIX - 1);
}

/* Moves every time into the part of its byte, then sorts the parts by the byte below. It needs no
 * memory, and no order of the times makes it slow. */
static void sort_bytes(int64_t *times, size_t n, unsigned shift)
{
    size_t ends[RADIX] = {0};
    size_t next[RADIX];
    if (n <= FEW) {
        sort_few(times, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ends[byte_at(times[i], shift)]++;
    }
    size_t sum = 0;
    for (unsigned b = 0; b < RADIX; b++) {
        next[b] = sum;
        sum += ends[b];
        ends[b] = sum;
    }
    for (unsigned b = 0; b < RADIX; b++) {
        while (next[b] < ends[b]) {
            int64_t value = times[next[b]];
            unsigned own = byte_at(value, shift);
            times[next[b]] = times[next[own]];
            times[next[own]++] = value;
        }
    }
    for (unsigned b = 0; b < RADIX && shift > 0; b++) {
        size_t start = b != 0 ? ends[b - 1] : 0;
        sort_bytes(times + start, ends[b] - start, shift - 8);
    }
}

void mtprof__sort_times(int64_t *times, size_t n)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) {
        differ |= (uint64_t)times[i] ^ (uint64_t)times[0];
    }
    if (differ != 0) { /* bytes above the highest one that differs need no pass */
        sort_bytes(times, n, (63 - (unsigned)__builtin_clzll(differ)) / 8 * 8);
    }
}

/* Makes the sorted durations of a row; those of one row are kept. Under the lock. */
static int sort_row(mtprof_averages *averages, uint32_t row)
{
    const mtprof__source_columns *c = &averages->grouper.columns;
    const uint32_t *events;
    size_t n;
    if (averages->sorted_row == row) {
        return 0;
    }
    MT_TRY(events_of_row(averages, row, &events, &n));
    int64_t *times = mtb_resize(averages->sorted, n + 1, sizeof times[0]);
    if (times == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %zu durations", n);
    }
    averages->sorted = times;
    for (size_t i = 0; i < n; i++) {
        times[i] = mtb_sub_sat(c->end_ns[events[i]], c->start_ns[events[i]]);
    }
    mtprof__sort_times(times, n);
    averages->sorted_row = row;
    averages->n_sorted = n;
    return 0;
}

mtprof_status mtprof_averages_get_quantile(mtprof_averages *averages, uint32_t index, double q,
                                           int64_t *ns)
{
    if (averages == NULL || ns == NULL || index >= averages->n_rows) {
        return mtb_fail(MTPROF_EINVAL, "averages_quantile: no row %u of %u", (unsigned)index,
                        (unsigned)mtprof_averages_count(averages));
    }
    if (!(q >= 0 && q <= 1)) {
        return mtb_fail(MTPROF_EINVAL, "averages_quantile: %g is not between 0 and 1", q);
    }
    if (averages->is_given) {
        *ns = -1;
        return 0;
    }
    mtb_lock_acquire(&averages->lock);
    int status = sort_row(averages, averages->order[index]);
    if (status == 0) {
        size_t n = averages->n_sorted;
        /* Nearest rank. The little less undoes that 0.07 times 100 is more than 7. */
        size_t rank = (size_t)ceil(q * (double)n * (1 - 1e-12));
        rank = rank > n ? n : rank;
        *ns = averages->sorted[rank > 0 ? rank - 1 : 0];
    }
    mtb_lock_release(&averages->lock);
    return status;
}

/* ---- noise ----------------------------------------------------------------------------------- */

typedef struct step_sum {
    int32_t step;
    double ns;
    uint64_t calls;
} step_sum;

static int compare_steps(const void *left, const void *right)
{
    const step_sum *a = left;
    const step_sum *b = right;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* What the row's events of a step took, one entry a step; *n entries. Events mostly come step by
 * step, so neighbours are added first, and entries of other threads that came between later. */
static size_t sum_steps(const mtprof_averages *averages, const uint32_t *events, size_t n,
                        step_sum *sums)
{
    const mtprof__source_columns *c = &averages->grouper.columns;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t event = events[i];
        uint32_t kind = c->kind[event] & (MTPROF__KINDS - 1);
        uint32_t class = averages->grouper.class_of[kind][c->device[event]];
        bool is_device = averages->grouper.classes[class].device_type != 0;
        int64_t duration = mtb_sub_sat(c->end_ns[event], c->start_ns[event]);
        double ns = (double)(is_device ? duration : c->self_ns[event]);
        if (c->step[event] < 0) {
            continue;
        }
        if (used == 0 || sums[used - 1].step != c->step[event]) {
            sums[used++] = (step_sum){.step = c->step[event]};
        }
        sums[used - 1].ns += ns;
        sums[used - 1].calls++;
    }
    if (used > 1) {
        qsort(sums, used, sizeof sums[0], compare_steps);
    }
    size_t kept = 0;
    for (size_t i = 0; i < used; i++) {
        if (kept != 0 && sums[kept - 1].step == sums[i].step) {
            sums[kept - 1].ns += sums[i].ns;
            sums[kept - 1].calls += sums[i].calls;
        } else {
            sums[kept++] = sums[i];
        }
    }
    return kept;
}

static void describe(const step_sum *sums, size_t n, mtprof_row_noise *noise)
{
    noise->steps = (uint32_t)n;
    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        noise->mean_ns += sums[i].ns / (double)n;
        noise->mean_calls += (double)sums[i].calls / (double)n;
    }
    if (n < 2) {
        return;
    }
    double of_ns = 0;
    double of_calls = 0;
    for (size_t i = 0; i < n; i++) {
        double ns = sums[i].ns - noise->mean_ns;
        double calls = (double)sums[i].calls - noise->mean_calls;
        of_ns += ns * ns / (double)(n - 1);
        of_calls += calls * calls / (double)(n - 1);
    }
    noise->deviation_ns = sqrt(of_ns);
    noise->deviation_calls = sqrt(of_calls);
}

static int measure_noise(mtprof_averages *averages, uint32_t row, mtprof_row_noise *noise)
{
    const uint32_t *events;
    size_t n;
    MT_TRY(events_of_row(averages, row, &events, &n));
    step_sum *sums = mtb_calloc(n + 1, sizeof sums[0]);
    if (sums == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_noise: no memory for %zu events", n);
    }
    describe(sums, sum_steps(averages, events, n, sums), noise);
    mtb_free(sums);
    return 0;
}

mtprof_status mtprof_averages_get_noise(mtprof_averages *averages, uint32_t index,
                                        mtprof_row_noise *noise)
{
    mtprof_row_noise whole = {.struct_size = sizeof whole};
    if (averages == NULL || noise == NULL || index >= averages->n_rows) {
        return mtb_fail(MTPROF_EINVAL, "averages_noise: no row %u of %u", (unsigned)index,
                        (unsigned)mtprof_averages_count(averages));
    }
    if (noise->struct_size < 2 * sizeof(uint32_t)) {
        return mtb_fail(MTPROF_EINVAL, "averages_noise: struct_size is %u", noise->struct_size);
    }
    if (!averages->is_given) {
        mtb_lock_acquire(&averages->lock);
        int status = measure_noise(averages, averages->order[index], &whole);
        mtb_lock_release(&averages->lock);
        MT_TRY(status);
    }
    mtb_write_struct(noise, &whole);
    return 0;
}
