/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two traces row by row: what changed, and whether chance can explain it.
 *
 *     mtprof_compare *c = NULL;
 *     if (mtprof_compare_new(before, after, NULL, &c) == MTPROF_OK) {
 *         mtprof_compare_row row = {.struct_size = sizeof row};
 *         for (uint32_t i = 0; mtprof_compare_get_row(c, i, &row) == MTPROF_OK; i++) { … }
 *     }
 *     mtprof_compare_free(c);
 *
 * With two steps or more in both traces, times are means per step, and the noise of a row is
 * Welch's bound over its steps. The probability of an error is shared among the rows that are
 * judged, so that alpha bounds the chance of one false verdict in the whole comparison. A row that
 * is in fewer than two steps of a trace is not judged.
 *
 * Without steps times and memory are means per call, so that the traces may differ in length; the
 * noise is unknown, and only the threshold counts. The total is then what A's calls take with A's
 * means and with B's; calls that A does not have are added.
 *
 * Rows that are in one trace only are new or gone, not slower; the total judges them.
 *
 * Threads: any number may read a comparison; sorting and freeing are the owner's. Both models must
 * outlive it.
 */
#ifndef MTPROF_COMPARE_H
#define MTPROF_COMPARE_H

#include <mtprof/api.h>
#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/status.h>

#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_compare mtprof_compare;

/** What became of a row. The numbers and the names ("same" …) do not change. */
enum mtprof_verdict {
    MTPROF_VERDICT_SAME = 0,
    MTPROF_VERDICT_SLOWER = 1,
    MTPROF_VERDICT_FASTER = 2,
    MTPROF_VERDICT_NEW = 3,     /**< in B only */
    MTPROF_VERDICT_GONE = 4,    /**< in A only */
    MTPROF_VERDICT_UNKNOWN = 5, /**< in too few steps to be judged */
    MTPROF_VERDICT_COUNT = 6
};
/** "same", "slower" …; "unknown" for others, too. Constant text. */
MTPROF_API const char *mtprof_verdict_name(uint32_t verdict);

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_compare_options {
    uint32_t struct_size;
    uint32_t threshold_given; /**< 1: `threshold` counts, also if it is 0 */
    /** What rows are grouped by and which events count, of both traces. NULL: by name, all. */
    const mtprof_averages_options *rows;
    double threshold; /**< changes up to this share of A's time are none; not given: 0.05 */
    double alpha;     /**< chance of one false verdict; 0: 0.01. From 1e-12 to 0.5 */
    double min_ns;    /**< rows that take less in both traces are not judged */
} mtprof_compare_options;

/** Compares A, the older trace, with B. options may be NULL. Fails with EINVAL (a model is NULL, no
 * place for the result; names a bad value), ENOMEM, and as mtprof_averages_new(). */
MTPROF_API mtprof_status mtprof_compare_new(mtprof_model *a, mtprof_model *b,
                                            const mtprof_compare_options *options,
                                            mtprof_compare **out);
/** Accepts NULL. */
MTPROF_API void mtprof_compare_free(mtprof_compare *compare);

/** What is true of the comparison as a whole. Set struct_size; no byte past it is written. */
typedef struct mtprof_compare_facts {
    uint32_t struct_size;
    uint32_t rows;
    uint32_t per_step;                     /**< 1: times are per step; 0: per call */
    uint32_t judged;                       /**< rows that got a verdict, the total included */
    uint32_t steps_a, steps_b;             /**< of the traces */
    uint32_t counts[MTPROF_VERDICT_COUNT]; /**< rows by verdict, without the total */
    uint32_t slower;                       /**< 1: a row is slower, or the total */
    uint32_t has_total;                    /**< 0: events were chosen by name */
} mtprof_compare_facts;
/** Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_compare_get_facts(const mtprof_compare *compare,
                                                  mtprof_compare_facts *facts);

/** One trace's part of a row. All 0 where the trace does not have it. */
typedef struct mtprof_compare_side {
    uint32_t there; /**< 1: the trace has the row */
    uint32_t steps; /**< in how many steps its events lie */
    double ns;      /**< self time per step or per call; device rows: of the device */
    double deviation_ns;
    double calls;        /**< per step, or in all */
    double memory_bytes; /**< per step, or per call */
    double whole_ns;     /**< self time per step, or in all */
} mtprof_compare_side;

/** One row. Texts live as long as the comparison. Set struct_size; no byte past it is written. */
typedef struct mtprof_compare_row {
    uint32_t struct_size;
    uint32_t verdict;   /**< enum mtprof_verdict */
    mtprof_text name;   /**< as it is grouped */
    mtprof_text detail; /**< groups beyond the name, empty where there are none */
    uint32_t on_device; /**< 1: its time is device time */
    uint32_t reserved;
    mtprof_compare_side a, b;
    double noise_ns; /**< what chance explains; NaN: unknown */
} mtprof_compare_row;

/** The row at this place. Fails with EINVAL (no such row, struct_size 0). */
MTPROF_API mtprof_status mtprof_compare_get_row(const mtprof_compare *compare, uint32_t index,
                                                mtprof_compare_row *row);
/** All events of the host together, name "all events". Fails with EINVAL (there is no total,
 * struct_size 0). */
MTPROF_API mtprof_status mtprof_compare_get_total(const mtprof_compare *compare,
                                                  mtprof_compare_row *row);

/** Sorts the rows: "change" (most time changed first; the order that a new comparison has),
 * "ratio", "time", "calls", "memory" or "name". Fails with EINVAL (names the key and those there
 * are). */
MTPROF_API mtprof_status mtprof_compare_sort(mtprof_compare *compare, const char *key);

MTPROF_END_DECLS

#endif /* MTPROF_COMPARE_H */
