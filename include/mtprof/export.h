/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports: a model as a file that other tools read.
 *
 * Every export is a stream: its memory does not grow with the trace. Files are written under
 * another name in the same directory and then renamed, so a failure leaves the old file as it was.
 * A path that ends in ".gz" is compressed. An export may be repeated, in any order. To cancel one,
 * return a value other than 0 from options.progress, which is called every few thousand events.
 *
 * A trace of ours is exported as it was recorded. Of another tool's trace a model has only what it
 * keeps: open it with keep_duplicates to export every event of the file.
 */
#ifndef MTPROF_EXPORT_H
#define MTPROF_EXPORT_H

#include <mtprof/api.h>
#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/output.h>
#include <mtprof/status.h>

#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

enum mtprof_export_format {
    MTPROF_EXPORT_CHROME = 0,   /**< kineto's JSON: chrome://tracing, Perfetto, TensorBoard, HTA */
    MTPROF_EXPORT_PERFETTO = 1, /**< Perfetto's own protobuf */
    MTPROF_EXPORT_STACKS = 2,   /**< a line per event with a stack, as torch's export_stacks */
    MTPROF_EXPORT_FOLDED = 3,   /**< merged, with op names as leaves, for flame graphs */
    MTPROF_EXPORT_SPEEDSCOPE = 4,
    MTPROF_EXPORT_MEMORY = 5,      /**< memory by category over time: torch's [times, sizes] */
    MTPROF_EXPORT_MEMORY_RAW = 6,  /**< every allocation with its category */
    MTPROF_EXPORT_MEMORY_HTML = 7, /**< the same as a chart that needs no network */
    MTPROF_EXPORT_CSV = 8,         /**< a line per event */
    MTPROF_EXPORT_EXECUTION = 9,   /**< execution trace (Chakra) */
    MTPROF_EXPORT_PPROF = 10,      /**< pprof's profile: events, host time, device time, bytes */
    MTPROF_EXPORT_REPORT = 11,     /**< one page: where the time went and why (explain.h) */
    MTPROF_EXPORT_COUNT = 12
};

enum mtprof_flavor {
    MTPROF_FLAVOR_TORCH = 0,
    MTPROF_FLAVOR_MINDTORCH = 1, /**< categories op, scope, runtime, metadata; a runtime event for
                                      every op */
    MTPROF_FLAVOR_LEAN = 2 /**< torch's, without the lower-case args that repeat what torch's say
                                (correlation_id, runtime_name, runtime_tid, device_type,
                                input_shapes, stack, *_memory_allocated_delta) */
};

/** What an export had to change. Set struct_size. */
typedef struct mtprof_export_report {
    uint32_t struct_size;
    uint32_t files;         /**< written */
    uint64_t events;        /**< spans */
    uint64_t clamped;       /**< spans shortened so that their track nests */
    uint64_t replaced;      /**< bytes that were no UTF-8 and became U+FFFD */
    uint64_t bytes;         /**< before compression */
    uint64_t bytes_written; /**< after it */
    uint64_t unordered; /**< CHROME: spans with equal times that were too many to be put in order,
                             outermost first */
    uint64_t problems;  /**< damaged places in the trace: what was there is missing in the file */
    uint64_t problem_bytes, problem_offset; /**< as mtprof_damage has them */
    uint64_t folded;   /**< FOLDED: events that count for a path above their own: too deep, or too
                          many paths */
    uint64_t left_out; /**< details beyond a bound of the exporter (docs/bounds.md): arrows and
                          modules of backward ops, frames, paths, marks */
} mtprof_export_report;

/** Set struct_size, leave the rest zero for the defaults. Texts are borrowed for the call. */
typedef struct mtprof_export_options {
    uint32_t struct_size;
    uint32_t flavor;      /**< CHROME: enum mtprof_flavor */
    uint32_t gzip_level;  /**< 1 to 3, 0: default */
    uint32_t in_place;    /**< 1: write the path itself (a pipe, /dev/stdout); automatic if the
                               path exists and is not a regular file */
    uint64_t split_bytes; /**< CHROME: begin another file (x.json, x.1.json, …) past this size; 0:
                               one file */
    const char *metric;   /**< STACKS, FOLDED, SPEEDSCOPE: self_cpu_time_total (default) or
                               self_device_time_total and its aliases */
    const char *device;   /**< MEMORY*: "cpu", "npu:0" …; NULL: the first accelerator, else cpu */
    const char *trace_name; /**< CHROME: traceName; NULL: the path */
    mtprof_progress *progress;
    void *user;
    mtprof_export_report *report; /**< filled in on success; may be NULL */
    mtprof_model *baseline;       /**< REPORT: an older trace that the page compares with, as
                                       mtprof_compare_new(baseline, model, NULL); NULL: none */
    const char *baseline_name;    /**< what the page calls it; NULL: "the baseline" */
} mtprof_export_options;

/** "chrome", "perfetto" … and the usual ending of its files; NULL for an unknown format. */
MTPROF_API const char *mtprof_export_name(enum mtprof_export_format format);
MTPROF_API const char *mtprof_export_suffix(enum mtprof_export_format format);
/** The format for a name, or for a path by its ending. Fails with EINVAL (names the value and the
 * formats there are). */
MTPROF_API mtprof_status mtprof_export_parse(const char *name, enum mtprof_export_format *format);

/**
 * Writes a file. options may be NULL.
 *
 * Fails with EINVAL (bad option; the message names it), ENOTSUP (there is nothing to write: the
 * trace lacks what the format needs; the message names it), EIO, ENOSPC, ENOMEM, ECALLBACK. Nothing
 * at the path has changed then.
 */
MTPROF_API mtprof_status mtprof_export(mtprof_model *model, enum mtprof_export_format format,
                                       const char *path, const mtprof_export_options *options);

/** The same into an output; never compressed, never split. */
MTPROF_API mtprof_status mtprof_export_to(mtprof_model *model, enum mtprof_export_format format,
                                          const mtprof_output *output,
                                          const mtprof_export_options *options);

/**
 * Removes the unfinished files of exports, copies and recordings of this process. Meant for the
 * handler of a signal that ends the process, and safe there; nothing else is undone. On file
 * systems that support files without a name (O_TMPFILE) there is nothing to remove.
 */
MTPROF_API void mtprof_remove_unfinished(void);

enum {
    MTPROF_MEMORY_CATEGORIES = 8 /**< torch's: parameter, optimizer state, input, temporary,
                                      activation, gradient, autograd detail, unknown */
};

/** The peak of the memory timeline: the numbers that the three MEMORY formats show. */
typedef struct mtprof_memory_peak {
    uint32_t struct_size;
    uint32_t device;         /**< mtprof_model_device() */
    int64_t bytes;           /**< most at one time, of what the trace saw; -1: the trace does not
                                  have what a timeline needs, and nothing else is set */
    int64_t time_ns;         /**< as the times of events */
    uint64_t owner;          /**< correlation id of the op or scope that allocated then; 0: none */
    int64_t allocator_bytes; /**< what the device's allocator held then, with what the trace did not
                                  see; -1: not known */
    int64_t end_bytes;
    int64_t categories[MTPROF_MEMORY_CATEGORIES]; /**< at the peak */
    int64_t most[MTPROF_MEMORY_CATEGORIES];       /**< of each, at its own time */
} mtprof_memory_peak;

/** Of `options`, device and progress count. Fails as mtprof_export() of the MEMORY formats, but not
 * because of what was not recorded. */
MTPROF_API mtprof_status mtprof_model_get_memory_peak(mtprof_model *model,
                                                      const mtprof_export_options *options,
                                                      mtprof_memory_peak *peak);

/** Averages as a Chrome trace: {"traceEvents": […]}, one entry a row; the same rows give the same
 * bytes. Fails as mtprof_export(). */
MTPROF_API mtprof_status mtprof_averages_export_chrome(mtprof_averages *averages, const char *path,
                                                       const mtprof_export_options *options);

MTPROF_END_DECLS

#endif /* MTPROF_EXPORT_H */
