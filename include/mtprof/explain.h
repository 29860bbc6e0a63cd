/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: why a program is slow, as findings with evidence.
 *
 *     mtprof_explain *e = NULL;
 *     if (mtprof_explain_new(model, NULL, &e) == MTPROF_OK) {
 *         mtprof_explain_write(e, NULL, &output);    // text; also JSON and Markdown
 *     }
 *     mtprof_explain_free(e);
 *
 * The wall time of the steps (without steps: of what was recorded) is divided into parts, and each
 * nanosecond is in exactly one of them. Findings are made from parts, so their gains never add up
 * to more than the wall time. A finding is made where its part passes a threshold; docs/explain.md
 * has the thresholds, and says how each part is measured.
 *
 * Threads: any number may read one explanation. The model must outlive it.
 */
#ifndef MTPROF_EXPLAIN_H
#define MTPROF_EXPLAIN_H

#include <mtprof/api.h>
#include <mtprof/model.h>
#include <mtprof/output.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_explain mtprof_explain;

/** What can be found. The numbers and the ids ("data-wait" …) do not change. */
enum mtprof_cause {
    MTPROF_CAUSE_DATA_WAIT = 0,         /**< the step waits for its loader */
    MTPROF_CAUSE_HOST_BOUND = 1,        /**< the device is idle while ops run on the CPU */
    MTPROF_CAUSE_LAUNCH_BOUND = 2,      /**< the device is idle while the host launches work */
    MTPROF_CAUSE_SYNC = 3,              /**< the device is idle because the host waited for it */
    MTPROF_CAUSE_COPY = 4,              /**< copies and conversions of data */
    MTPROF_CAUSE_SMALL_KERNELS = 5,     /**< many kernels or ops that are too short */
    MTPROF_CAUSE_SLOW_STEPS = 6,        /**< a few steps take much longer than the others */
    MTPROF_CAUSE_MEMORY_GROWTH = 7,     /**< more memory is in use after every step */
    MTPROF_CAUSE_MEMORY_PEAK = 8,       /**< one allocation makes the peak, or memory ran out */
    MTPROF_CAUSE_PYTHON_OVERHEAD = 9,   /**< host code between ops */
    MTPROF_CAUSE_LOCK_OR_GIL_WAIT = 10, /**< a wait for a lock or another thread */
    MTPROF_CAUSE_RECOMPILE = 11,        /**< compiling after the first step */
    MTPROF_CAUSE_WARM_UP = 12,          /**< the first steps are slower than the others */
    MTPROF_CAUSE_IMBALANCE = 13,        /**< threads or queues wait for the slowest of them */
    MTPROF_CAUSE_PROFILER = 14,         /**< what the trace itself cannot be trusted for */
    MTPROF_CAUSE_COUNT = 15
};

/** "data-wait" …; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_cause_id(uint32_t cause);

/** What the wall time is divided into. Later versions may append. */
enum mtprof_part {
    MTPROF_PART_COMPUTE = 0,   /**< kernels run; in a trace without a device: ops */
    MTPROF_PART_COPY = 1,      /**< copies and conversions, no kernel beside them */
    MTPROF_PART_DATA = 2,      /**< all that follows: nothing computes. The loader */
    MTPROF_PART_SYNC = 3,      /**< after a wait of the host for the device, and during it */
    MTPROF_PART_LAUNCH = 4,    /**< ops that launch device work */
    MTPROF_PART_HOST = 5,      /**< with a device: ops that run on the CPU */
    MTPROF_PART_PYTHON = 6,    /**< host code between ops */
    MTPROF_PART_LOCK = 7,      /**< waits for locks and threads */
    MTPROF_PART_COMPILE = 8,   /**< compiling */
    MTPROF_PART_GAPS = 9,      /**< the device's own breaks between kernels that were queued */
    MTPROF_PART_PROFILER = 10, /**< what a profiler said it took */
    MTPROF_PART_WARM_UP = 11,  /**< of the first steps: what they take more than the median */
    MTPROF_PART_SLOW = 12,     /**< of slow steps: what they take more than the median */
    MTPROF_PART_COUNT = 13
};

/** "compute", "copy" …; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_part_name(uint32_t part);
/** "computing", "copying" …: for people. Constant text. */
MTPROF_API const char *mtprof_part_title(uint32_t part);
/** "#1a7f4b" …: in charts, on white and on black. Constant text. */
MTPROF_API const char *mtprof_part_color(uint32_t part);

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_explain_options {
    uint32_t struct_size;
    uint32_t step_given; /**< 1: only this step. What compares steps is not looked for then */
    int32_t step;
    uint32_t parts_only; /**< 1: no findings are looked for, only what time went to */
} mtprof_explain_options;

/** Explains a model. options may be NULL. Fails with EINVAL (no model, no place for the result, no
 * such step: the message names those there are), and as mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_explain_new(mtprof_model *model,
                                            const mtprof_explain_options *options,
                                            mtprof_explain **out);
/** Accepts NULL. */
MTPROF_API void mtprof_explain_free(mtprof_explain *explain);

/** What is true of the trace as a whole. Set struct_size; no byte past it is written. */
typedef struct mtprof_explain_facts {
    uint32_t struct_size;
    uint32_t findings;      /**< how many; 0: the program is clean */
    uint64_t events;        /**< in the model */
    uint32_t steps;         /**< that were looked at; 0: the trace has none */
    uint32_t has_device;    /**< 1: kernels or copies of a device were recorded */
    int64_t wall_ns;        /**< that was looked at: the sum of all parts */
    int64_t median_step_ns; /**< 0: there are no steps */
    int64_t busy_ns;        /**< of wall_ns: some device ran a kernel or a copy */
    uint64_t kernels;
} mtprof_explain_facts;
/** Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_explain_get_facts(const mtprof_explain *explain,
                                                  mtprof_explain_facts *facts);

/** Nanoseconds of the wall time in a part: of the step with this place in the list (from 0), or of
 * all of them (MTPROF_EXPLAIN_ALL). 0 where there is no such part or step. */
MTPROF_API int64_t mtprof_explain_part_ns(const mtprof_explain *explain, uint32_t index,
                                          uint32_t part);
#define MTPROF_EXPLAIN_ALL UINT32_MAX

enum mtprof_step_state {
    MTPROF_STEP_NORMAL = 0,
    MTPROF_STEP_WARM_UP = 1,
    MTPROF_STEP_SLOW = 2
};

/** One step. A trace without steps has one a window, with the number -1. */
typedef struct mtprof_explain_step {
    uint32_t struct_size;
    int32_t step;
    int64_t start_ns, end_ns;
    uint32_t state; /**< enum mtprof_step_state */
    uint32_t reserved;
} mtprof_explain_step;
/** How many steps (or windows) the wall time is of. */
MTPROF_API uint32_t mtprof_explain_step_count(const mtprof_explain *explain);
/** Fails with EINVAL (no such step, struct_size 0). */
MTPROF_API mtprof_status mtprof_explain_get_step(const mtprof_explain *explain, uint32_t index,
                                                 mtprof_explain_step *step);

/** How sure a finding is. */
enum mtprof_confidence {
    MTPROF_CONFIDENCE_MEDIUM = 0, /**< the cause is measured, the gain is an estimate */
    MTPROF_CONFIDENCE_HIGH = 1    /**< both are measured */
};

/** One finding. Texts live as long as the explanation. */
typedef struct mtprof_explain_finding {
    uint32_t struct_size;
    uint32_t cause; /**< enum mtprof_cause */
    const char *id; /**< mtprof_cause_id() */
    mtprof_text title;
    double share;    /**< of the wall time: gain_ns / wall_ns; of memory: 0; of profiler: what it
                          takes, or 0 */
    int64_t gain_ns; /**< how much shorter the wall time gets at most without the cause */
    uint32_t confidence; /**< enum mtprof_confidence */
    uint32_t evidence;   /**< how many items */
    mtprof_text advice;  /**< what to do */
} mtprof_explain_finding;

/** The finding at this place, most important first. Fails with EINVAL (no such finding,
 * struct_size 0). */
MTPROF_API mtprof_status mtprof_explain_get_finding(const mtprof_explain *explain, uint32_t index,
                                                    mtprof_explain_finding *finding);

enum mtprof_evidence_kind {
    MTPROF_EVIDENCE_FACT = 0,  /**< a number of the trace as a whole */
    MTPROF_EVIDENCE_OP = 1,    /**< events of one name: how often and how long */
    MTPROF_EVIDENCE_EVENT = 2, /**< one event */
    MTPROF_EVIDENCE_STEP = 3,  /**< one step */
    MTPROF_EVIDENCE_TRACK = 4, /**< a thread or a queue */
    MTPROF_EVIDENCE_MEMORY = 5 /**< who allocated */
};
/** "fact", "op" …; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_evidence_kind_name(uint32_t kind);

/** One piece of evidence. What does not apply is 0, empty, -1 for the step, MTPROF_NO_EVENT. */
typedef struct mtprof_explain_evidence {
    uint32_t struct_size;
    uint32_t kind;    /**< enum mtprof_evidence_kind */
    mtprof_text text; /**< a sentence with the numbers */
    mtprof_text name; /**< of the op, scope, function or track, in full */
    uint32_t event;   /**< of the model: the one, or the longest of them */
    int32_t step;
    mtprof_text file; /**< the program's line that it comes from, where stacks were recorded */
    uint64_t line;
    uint64_t count;
    int64_t ns, bytes;
    mtprof_text module; /**< where modules were recorded */
} mtprof_explain_evidence;

/** Evidence of a finding, both by place from 0. Fails with EINVAL. */
MTPROF_API mtprof_status mtprof_explain_get_evidence(const mtprof_explain *explain,
                                                     uint32_t finding, uint32_t index,
                                                     mtprof_explain_evidence *evidence);

enum mtprof_explain_format {
    MTPROF_EXPLAIN_TEXT = 0,
    MTPROF_EXPLAIN_JSON = 1, /**< schema 1, docs/explain.md */
    MTPROF_EXPLAIN_MARKDOWN = 2,
    MTPROF_EXPLAIN_HTML = 3 /**< a piece for pages and notebooks, with charts and without script */
};

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_explain_write_options {
    uint32_t struct_size;
    uint32_t format;    /**< enum mtprof_explain_format */
    uint32_t width;     /**< TEXT: columns; 0: 80 */
    uint32_t findings;  /**< at most so many; 0: all that fit */
    uint64_t max_bytes; /**< 0: 4096, for HTML 65,536; UINT64_MAX: no limit. First evidence, then
                             findings are left out until the rest fits; the output says how many.
                             One finding is always there */
} mtprof_explain_write_options;

/** Writes the explanation. options may be NULL. Fails with EINVAL (names the value), EIO, ENOSPC,
 * ENOMEM. */
MTPROF_API mtprof_status mtprof_explain_write(const mtprof_explain *explain,
                                              const mtprof_explain_write_options *options,
                                              const mtprof_output *output);

MTPROF_END_DECLS

#endif /* MTPROF_EXPLAIN_H */
