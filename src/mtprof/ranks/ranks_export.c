/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks as one file: each is read again, on the clock of all, and written by the exporter of the
 * format behind the one before. One rank's exporter and model are in memory at a time.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/model/model_move.h"
#include "mtprof/ranks/ranks_impl.h"

#include <math.h>
#include <stdio.h>

enum {
    NAME_BYTES = 128
};
#define LEAST_NS INT64_C(1000000000) /* the earliest time in the file is not before this */

typedef struct merging {
    mtprof_ranks *r;
    mtprof_model *model;
    int64_t shift_ns; /* added to all times, so that none is negative */
    char name[NAME_BYTES];
} merging;

static int open_moved(const char *path, const mtprof__clock_move *move, mtprof_model **out)
{
    int status = mtprof__model_open_moved(path, move, out);
    if (status != MTPROF_EFORMAT) {
        return status;
    }
    mtprof_model_options options = {.struct_size = sizeof options, .keep_duplicates = 1};
    MT_TRY(mtprof_model_open(path, &options, out));
    mtprof__model_move_foreign(*out, move);
    return MTPROF_OK;
}

static int next_rank(void *context, uint32_t index, mtprof_model **model,
                     mtprof__export_merge *merge)
{
    merging *m = context;
    const mtprof_ranks *r = m->r;
    const mtprof__rank *rank = &r->ranks[index];
    mtprof_model_free(m->model);
    m->model = NULL;
    if (r->options.progress != NULL &&
        r->options.progress(r->options.user, "merge", index, r->n) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "merge: the progress function ended it");
    }
    const mtprof__clock_move move = {.from_ns = rank->origin_ns,
                                     .to_ns = mtprof_ranks_convert(r, index, rank->origin_ns) +
                                              m->shift_ns,
                                     .drift = rank->drift,
                                     .real_offset_ns = merge->real_offset_ns};
    MT_TRY(open_moved(rank->path, &move, &m->model));
    (void)snprintf(m->name, sizeof m->name, "rank %u (process %llu)", rank->number,
                   (unsigned long long)rank->pid);
    merge->number = rank->number;
    merge->name = m->name;
    *model = m->model;
    return MTPROF_OK;
}

mtprof_status mtprof_ranks_export(mtprof_ranks *r, const char *path, mtprof_merge_report *report)
{
    enum mtprof_export_format format;
    mtprof_export_report written = {0};
    if (report != NULL && report->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "merge: report.struct_size is 0");
    }
    MT_TRY(mtprof_export_parse(path, &format));
    if (format != MTPROF_EXPORT_CHROME && format != MTPROF_EXPORT_PERFETTO) {
        return mtb_fail(MTPROF_EINVAL, "merge: %s: ranks become .pftrace or .json, not %s", path,
                        mtprof_export_name(format));
    }
    if (r->facts.method == MTPROF_CLOCK_NONE) {
        return mtb_fail(MTPROF_ESTATE, "merge: %s", r->facts.refusal);
    }
    mtprof__export_merge *merge = mtb_calloc(1, sizeof *merge);
    if (merge == NULL) {
        return mtprof__ranks_no_memory();
    }
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < r->n; i++) {
        int64_t start = mtprof_ranks_convert(r, (uint32_t)i, r->ranks[i].origin_ns);
        first = start < first ? start : first;
    }
    merging m = {.r = r, .shift_ns = first < LEAST_NS ? LEAST_NS - first : 0};
    merge->first_ns = first + m.shift_ns;
    merge->real_offset_ns = r->ranks[r->facts.reference].real_offset_ns - m.shift_ns;
    int status =
        mtprof__export_several(path, format, (uint32_t)r->n, next_rank, &m, merge, &written);
    mtprof_model_free(m.model);
    mtb_free(merge);
    if (status == MTPROF_OK && report != NULL) {
        mtprof_merge_report own = {.ranks = (uint32_t)r->n,
                                   .events = written.events,
                                   .bytes = written.bytes,
                                   .bytes_written = written.bytes_written,
                                   .clamped = written.clamped,
                                   .left_out = written.left_out,
                                   .replaced = written.replaced};
        mtb_write_struct(report, &own);
    }
    return status;
}
