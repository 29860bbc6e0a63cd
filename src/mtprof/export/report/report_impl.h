/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: one page that tells where the time went and why. It needs no network and no other
 * file; a browser draws it from numbers in the page itself.
 *
 *     explain ─► report_data.c      the verdict, findings, steps
 *     averages ─► report_data.c     ops by shape and module
 *     columns ─► report_timeline.c  the events of a few steps
 *     path tree ─► report_flame.c   the flame graph
 *     stream ─► report_memory.c     memory over time
 *     compare ─► report_compare.c   what changed since an older trace
 *     report_page.c                 style, skeleton and script
 *
 *   HR1  The page stays below 3 MB however long the trace is: every part has a limit. What it
 *        leaves out is counted in report.left_out, and the page says so where it is missing.
 *   HR2  Numbers are those of `mtprof explain`, `mtprof report` and `mtprof diff`.
 *   HR3  Texts of the trace are strings of the script, which puts them into the page as text only.
 */
#ifndef MTPROF_EXPORT_REPORT_REPORT_IMPL_H
#define MTPROF_EXPORT_REPORT_REPORT_IMPL_H

#include "base/idmap.h"
#include "mtprof/export/export_impl.h"

#include <mtprof/explain.h>

enum {
    MTPROF__REPORT_STEPS = 2000,     /* in the chart */
    MTPROF__REPORT_ROWS = 600,       /* of the table */
    MTPROF__REPORT_SHOWN = 24,       /* steps that have a timeline */
    MTPROF__REPORT_EVENTS = 5000,    /* of each of them */
    MTPROF__REPORT_DRAWN = 20000,    /* of all of them */
    MTPROF__REPORT_CHANGES = 300,    /* rows of the comparison */
    MTPROF__REPORT_NODES = 6000,     /* of the flame graph */
    MTPROF__REPORT_SLICES = 600,     /* of the memory chart */
    MTPROF__REPORT_NAME_BYTES = 240, /* of a name */
    MTPROF__REPORT_SHORT_NAME = 40,  /* once names take NAMES_FULL bytes of the page */
    MTPROF__REPORT_NAMES_FULL = 600 * 1000,
    MTPROF__REPORT_NAMES_MOST = 1000 * 1000, /* then names are left out */
    MTPROF__REPORT_TRACKS = 64               /* of a timeline */
};

typedef struct mtprof__report {
    mtprof__export_job *job;
    mtprof_explain *explain;
    uint32_t shown[MTPROF__REPORT_SHOWN]; /* places of steps for timelines, in order of choice */
    size_t n_shown, n_always;             /* n_always: that have one in any case */
    uint64_t name_bytes;                  /* that names took so far */
} mtprof__report;

/* A name as a string of the script, shortened to NAME_BYTES; where a page has very many of them,
 * to SHORT_NAME, and in the end to nothing. */
void mtprof__report_name(mtprof__report *r, mtprof_text text);
/* The same without the quotes. */
void mtprof__report_name_inner(mtprof__report *r, mtprof_text text);

/* For qsort() of places of steps. */
int mtprof__report_compare_places(const void *a, const void *b);

/* Each writes members of DATA, which is JSON: `"name": value,`. They fail as the part of the
 * library that they ask. */
int mtprof__report_facts(mtprof__report *r);
int mtprof__report_findings(mtprof__report *r);
int mtprof__report_steps(mtprof__report *r);
int mtprof__report_rows(mtprof__report *r);
int mtprof__report_health(mtprof__report *r);
int mtprof__report_timelines(mtprof__report *r);
int mtprof__report_flame(mtprof__report *r);
int mtprof__report_memory(mtprof__report *r);
int mtprof__report_compare(mtprof__report *r);

/* report_page.c: lines, NULL after the last. */
extern const char *const mtprof__report_style[];
extern const char *const mtprof__report_skeleton[];
extern const char *const mtprof__report_script[];

#endif /* MTPROF_EXPORT_REPORT_REPORT_IMPL_H */
