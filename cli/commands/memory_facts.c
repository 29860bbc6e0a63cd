/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, see memory_facts.h.
 */
#include "cli/commands/memory_facts.h"

#include "cli/term.h"
#include "cli/trace_file.h"

#include <mtprof/export.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_category_name(size_t index)
{
    static const char *const names[] = {"parameter",       "optimizer_state", "input",
                                        "temporary",       "activation",      "gradient",
                                        "autograd_detail", "unknown"};
    static_assert(sizeof names / sizeof *names == CLI_CATEGORIES, "a name for each");
    return index < CLI_CATEGORIES ? names[index] : "unknown";
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static uint32_t find_event(mtprof_model *model, uint64_t correlation)
{
    uint64_t count;
    const uint64_t *ids = cli_column(model, MTPROF_COLUMN_CORRELATION, &count);
    const uint8_t *devices = cli_column(model, MTPROF_COLUMN_DEVICE, &count);
    for (uint32_t i = 0; correlation != 0 && ids != NULL && devices != NULL && i < count; i++) {
        if (ids[i] == correlation && devices[i] == 0) {
            return i;
        }
    }
    return MTPROF_NO_EVENT;
}

/* From the allocations, where they were recorded. */
static bool gather_exact(mtprof_model *model, const char *path, uint32_t device, cli_peak *peak)
{
    mtprof_memory memory = {.struct_size = sizeof memory};
    if (!cli_ok(path, mtprof_model_get_memory(model, device, &memory))) {
        return false;
    }
    if (memory.allocations + memory.frees == 0) {
        return true;
    }
    *peak = (cli_peak){
        .device = device,
        .bytes = memory.peak_bytes,
        .at_ns = memory.peak_ns,
        .event = find_event(model, memory.peak_owner),
        .exact = true,
        .allocations = memory.allocations,
        .frees = memory.frees,
        .allocated_bytes = memory.allocated_bytes,
        .freed_bytes = memory.freed_bytes,
        .end_bytes = memory.end_bytes,
    };
    return true;
}

static void device_name(const mtprof_model *model, uint32_t index, char *name, size_t size)
{
    mtprof_device device = {.type = {"unknown", 7}, .index = -1};
    (void)mtprof_model_device(model, index, &device);
    int n = snprintf(name, size, "%.50s", device.type.bytes);
    if (device.index >= 0) {
        (void)snprintf(name + n, size - (size_t)n, ":%d", (int)device.index);
    }
}

/* The timeline's peak in the place of the allocator's, which also counts what the trace did not
 * see. A trace without shapes or stacks has no timeline; that is no failure. */
static bool gather_timeline(mtprof_model *model, const char *path, cli_peak *peak)
{
    mtprof_memory_peak found = {.struct_size = sizeof found};
    mtprof_export_options o = {
        .struct_size = sizeof o, .device = peak->name, .progress = cli_progress_step};
    if (!cli_ok(path, mtprof_model_get_memory_peak(model, &o, &found))) {
        return false;
    }
    if (found.bytes < 0) {
        return true;
    }
    peak->has_categories = true;
    peak->bytes = found.bytes;
    peak->at_ns = found.time_ns;
    peak->end_bytes = found.end_bytes;
    peak->event = find_event(model, found.owner);
    peak->unseen_bytes =
        found.allocator_bytes > found.bytes ? found.allocator_bytes - found.bytes : 0;
    memcpy(peak->categories, found.categories, sizeof peak->categories);
    return true;
}

static void note_peak(cli_peak *peak, int64_t bytes, int64_t at_ns, uint32_t event)
{
    if (!peak->exact && bytes > peak->bytes) {
        peak->bytes = bytes;
        peak->at_ns = at_ns;
        peak->event = event;
    }
}

/* From what ops saw, for devices whose allocations were not recorded. */
static void gather_seen(mtprof_model *model, cli_peak *peaks, uint32_t devices)
{
    uint64_t count;
    const int64_t *before = cli_column(model, MTPROF_COLUMN_MEMORY_BEFORE, &count);
    const int64_t *after = cli_column(model, MTPROF_COLUMN_MEMORY_AFTER, &count);
    const uint8_t *device = cli_column(model, MTPROF_COLUMN_MEMORY_DEVICE, &count);
    const int64_t *starts = cli_column(model, MTPROF_COLUMN_START_NS, &count);
    const int64_t *ends = cli_column(model, MTPROF_COLUMN_END_NS, &count);
    if (before == NULL || after == NULL || device == NULL || starts == NULL || ends == NULL) {
        return; /* not recorded */
    }
    for (uint32_t i = 0; i < count; i++) {
        if (device[i] < devices) {
            note_peak(&peaks[device[i]], before[i], starts[i], i);
            note_peak(&peaks[device[i]], after[i], ends[i], i);
        }
    }
}

static bool gather_peaks(mtprof_model *model, const char *path, cli_memory_facts *f)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    (void)mtprof_model_get_info(model, &info); /* fails only for a struct_size of 0 */
    f->peaks = calloc((size_t)info.devices + 1, sizeof *f->peaks);
    if (f->peaks == NULL) {
        return cli_no_memory(path);
    }
    for (uint32_t i = 0; i < info.devices; i++) {
        f->peaks[i] = (cli_peak){.device = i, .bytes = -1, .event = MTPROF_NO_EVENT};
        if (!gather_exact(model, path, i, &f->peaks[i])) {
            return false;
        }
        device_name(model, i, f->peaks[i].name, sizeof f->peaks[i].name);
        if (f->peaks[i].exact && !gather_timeline(model, path, &f->peaks[i])) {
            return false;
        }
    }
    gather_seen(model, f->peaks, info.devices);
    for (uint32_t i = 0; i < info.devices; i++) {
        if (f->peaks[i].exact || f->peaks[i].event != MTPROF_NO_EVENT) {
            f->peaks[f->n_peaks++] = f->peaks[i];
        }
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double weight(const mtprof_row *row)
{
    return fabs((double)row->self_cpu_memory) + fabs((double)row->self_device_memory);
}

static int compare_rows(const void *a, const void *b)
{
    const mtprof_row *x = a, *y = b;
    double u = weight(x), v = weight(y);
    if (u != v) {
        return u > v ? -1 : 1;
    }
    return (x->first_event > y->first_event) - (x->first_event < y->first_event);
}

static bool gather_rows(mtprof_model *model, const char *path, cli_memory_facts *f)
{
    if (!cli_ok(path, mtprof_averages_new(model, NULL, &f->averages))) {
        return false;
    }
    uint32_t n = mtprof_averages_count(f->averages);
    f->rows = calloc((size_t)n + 1, sizeof *f->rows);
    if (f->rows == NULL) {
        return cli_no_memory(path);
    }
    for (uint32_t i = 0; i < n; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        if (mtprof_averages_get_row(f->averages, i, &row) == MTPROF_OK &&
            (row.cpu_memory != 0 || row.device_memory != 0 || weight(&row) > 0)) {
            f->rows[f->n_rows++] = row;
        }
    }
    qsort(f->rows, f->n_rows, sizeof *f->rows, compare_rows);
    return true;
}

bool cli_gather_memory(mtprof_model *model, const char *path, cli_memory_facts *out)
{
    memset(out, 0, sizeof *out);
    return gather_rows(model, path, out) && gather_peaks(model, path, out);
}

void cli_free_memory(cli_memory_facts *facts)
{
    mtprof_averages_free(facts->averages);
    free(facts->peaks);
    free(facts->rows);
}
