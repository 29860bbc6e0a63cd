/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons inside:
 *
 *     averages of A ─► compare_side.c ─► rows with keys ─┐
 *     averages of B ─► compare_side.c ─► rows with keys ─┴► compare.c: merged by key, judged
 *     steps of both ─► compare_side.c ─► the total ──────┘
 *
 *   DR1  With steps in both traces, times are means per step (over the steps in which the row
 *        occurs), and the noise of a row is Welch's bound over its steps.
 *   DR2  The probability of an error is shared among the rows that are judged, so that alpha bounds
 *        the chance of one false verdict in the whole comparison.
 *   DR3  Without steps, times and memory are means per call, so that the traces may differ in
 *        length; the noise is unknown, and only the threshold counts. The total is then what A's
 *        calls take with A's means and with B's; calls that A does not have are added.
 *   DR4  With steps, a row whose noise is unknown (it occurs in fewer than two steps of a trace) is
 *        not judged.
 *   DR5  Rows that are in one trace only are new or gone, not slower; the total judges them.
 */
#ifndef MTPROF_ANALYZE_COMPARE_COMPARE_IMPL_H
#define MTPROF_ANALYZE_COMPARE_COMPARE_IMPL_H

#include "base/arena.h"

#include <mtprof/compare.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct mtprof__compare_item {
    mtprof_text key; /* what rows are matched by, together with row.detail */
    mtprof_compare_row row;
    double rank; /* that it is sorted by */
} mtprof__compare_item;

typedef struct mtprof__compare_items {
    mtprof__compare_item *items;
    size_t n;
} mtprof__compare_items;

struct mtprof_compare {
    mtprof_compare_options options;
    mtprof_averages_options rows;
    mtprof_averages *averages_a, *averages_b; /* rows borrow names */
    mtb_arena texts;
    mtprof__compare_items all;
    mtprof_compare_row total;
    mtprof_compare_facts facts;
};

/* One trace's rows, as side A, in order of their keys. The caller frees the items. */
int mtprof__compare_load(mtprof_compare *c, mtprof_averages *averages, mtprof__compare_items *out);
/* All events of the host, per step where there are two steps or more. */
int mtprof__compare_sum(const mtprof_compare *c, mtprof_model *model, mtprof_compare_side *out);
/* Order of keys, then of details. */
int mtprof__compare_keys(const void *a, const void *b);

#endif /* MTPROF_ANALYZE_COMPARE_COMPARE_IMPL_H */
