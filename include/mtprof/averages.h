/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages: the events of a model in groups, one row a group, and rows as tables.
 *
 * A group is (name, device type, user annotation or not) and what the options add. Rows are in
 * the order in which their first event began, until they are sorted.
 *
 * Threads: any number may read averages; sorting and freeing are the owner's.
 */
#ifndef MTPROF_AVERAGES_H
#define MTPROF_AVERAGES_H

#include <mtprof/api.h>
#include <mtprof/model.h>
#include <mtprof/output.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_averages mtprof_averages;

/** What events are grouped by, in addition to their name. */
enum mtprof_group {
    MTPROF_GROUP_SHAPES = 1 << 0,
    MTPROF_GROUP_OVERLOAD = 1 << 1,
    MTPROF_GROUP_MODULE = 1 << 2,
    MTPROF_GROUP_STEP = 1 << 3,
    MTPROF_GROUP_THREAD = 1 << 4,
    /** Work of a CUDA graph that tells who captured it ("captured op" of its metadata) has the row
     * of that op's work on the device, in place of one by the kernel's name. */
    MTPROF_GROUP_CAPTURE = 1 << 5
};

/** Whether calls of functions (MTPROF_EVENT_KIND_FUNCTION) get rows, too. */
enum mtprof_functions {
    MTPROF_FUNCTIONS_NONE = 0,
    MTPROF_FUNCTIONS_ALL = 1,
    /** Where the trace has no ops: beside ops they hide what took the time. */
    MTPROF_FUNCTIONS_WITHOUT_OPS = 2
};

/** Set struct_size, leave the rest zero for the defaults. Texts are borrowed for the call. */
typedef struct mtprof_averages_options {
    uint32_t struct_size;
    uint32_t group;     /**< enum mtprof_group */
    uint32_t stack_n;   /**< group by that many innermost frames; 0: none */
    uint32_t functions; /**< enum mtprof_functions */
    /* Which events count. Filters do not change the times of those that do. */
    const char *name;        /**< shell pattern (* ? [..]) for the name; NULL: all */
    const char *module_name; /**< the same for the module path */
    const char *thread;      /**< OS thread id, logical number with a leading '#', or a pattern for
                                  the thread's name; NULL: all */
    uint32_t steps_given;    /**< 1: only steps first_step … last_step */
    int32_t first_step, last_step;
    uint32_t top_level; /**< 1: only events without a parent */
    int64_t min_ns;     /**< only events at least this long */
} mtprof_averages_options;

/** One row. Times in nanoseconds, memory in bytes. Set struct_size; no byte past it is written. */
typedef struct mtprof_row {
    uint32_t struct_size;
    uint32_t name;            /**< mtprof_model_name(); UINT32_MAX: `key` alone has it ("Total") */
    mtprof_text key;          /**< the name as it is grouped */
    mtprof_text overload;     /**< empty unless grouped by it */
    mtprof_text input_shapes; /**< "[[2, 3], []]"; empty unless grouped by it */
    mtprof_text module;       /**< empty unless grouped by it */
    uint32_t stack; /**< innermost node, of which stack_n frames count; 0: none, or not grouped */
    uint32_t stack_n;
    int32_t step;   /**< INT32_MIN unless grouped by it */
    uint32_t track; /**< UINT32_MAX unless grouped by it */
    uint8_t kind;   /**< enum mtprof_event_kind of the first event */
    uint8_t device; /**< mtprof_model_device(): whose type the row has, 0 = host */
    uint8_t is_async, is_user_annotation;
    uint32_t record_scope;
    uint32_t first_event; /**< which gave the row its identity */
    uint32_t has_parent;  /**< 1: the first event has a parent */
    uint64_t count;
    int64_t cpu_ns, self_cpu_ns;       /**< sums */
    int64_t device_ns, self_device_ns; /**< sums */
    int64_t cpu_memory, self_cpu_memory, device_memory, self_device_memory;
    uint64_t flops;
    int64_t min_ns, max_ns; /**< of the durations of its events */
    int32_t node_id;        /**< -1 */
    uint32_t reserved;
    mtprof_text device_type; /**< "CPU", "CUDA" … of `device` */
    int64_t loose_ns; /**< of cpu_ns: events that do not nest (asynchronous, or outliving what was
                           around them, as scopes of tasks do): no part of the thread's time */
    uint64_t
        unrecorded; /**< calls of this name that the limit of the overhead left out, in all rows
                              of the name together: count and sums are of a sample. 0: of all */
} mtprof_row;

/** Groups a model's events. options may be NULL. Fails with EINVAL (names the value), and as
 * mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_averages_new(mtprof_model *model,
                                             const mtprof_averages_options *options,
                                             mtprof_averages **out);
/** One row per event (torch's events().table()). */
MTPROF_API mtprof_status mtprof_averages_from_events(mtprof_model *model,
                                                     const mtprof_averages_options *options,
                                                     mtprof_averages **out);

/** Rows that a caller made itself. Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_given_rows {
    uint32_t struct_size;
    uint32_t count;
    /** Of these, struct_size, name, track, record_scope, first_event and reserved are not looked
     * at; `stack` is the number of the row's innermost frame in `frames`, from 1 (0: no stack), and
     * stack_n how many frames it has. An empty device_type: "CPU", or the one below. */
    const mtprof_row *rows;
    const mtprof_text *frames; /**< "file(line): function", each stack innermost first */
    uint32_t n_frames;
    uint32_t memory, flops;      /**< 1: they were recorded, so tables have their columns */
    uint32_t events;             /**< 1: a row is a single event */
    const char *device_type;     /**< "CUDA" …; NULL: no device was recorded */
    const mtprof_health *health; /**< NULL: nothing to report */
} mtprof_given_rows;

/** Averages of given rows, in their order, for the same tables and files. Rows, frames and texts
 * are borrowed until mtprof_averages_free(). They have no model, and no quantiles or noise.
 * Fails with EINVAL (names the value), ENOMEM. */
MTPROF_API mtprof_status mtprof_averages_from_rows(const mtprof_given_rows *given,
                                                   mtprof_averages **out);
/** Whether events of this name have rows; torch leaves some of its own out. */
MTPROF_API bool mtprof_averages_lists(mtprof_text name);

/** Accepts NULL. The model must still be there. */
MTPROF_API void mtprof_averages_free(mtprof_averages *averages);
/** The model they come from; NULL: they were given. */
MTPROF_API mtprof_model *mtprof_averages_model(const mtprof_averages *averages);

/** How many rows there are. */
MTPROF_API uint32_t mtprof_averages_count(const mtprof_averages *averages);
/** Fails with EINVAL (no such row). Texts live as long as the averages. */
MTPROF_API mtprof_status mtprof_averages_get_row(const mtprof_averages *averages, uint32_t index,
                                                 mtprof_row *row);
/** The sum over all rows; key "Total", identity of the last row. Self CPU time is that of host rows
 * other than functions, whose time would count twice; where there are only functions it is theirs.
 */
MTPROF_API mtprof_status mtprof_averages_get_total(const mtprof_averages *averages,
                                                   mtprof_row *row);
/** Durations of a row's events at quantile q (0 to 1): nearest rank, exact. Of rows that were given
 * -1: their events are not known. Fails with EINVAL (no such row, q out of range), ENOMEM. */
MTPROF_API mtprof_status mtprof_averages_get_quantile(mtprof_averages *averages, uint32_t index,
                                                      double q, int64_t *ns);
/** Mean and sample deviation over steps of a row's self CPU time (device rows: their device time)
 * and calls per step, for bounds of noise. steps: in how many steps the row's events lie; the
 * others, and events outside every step, do not count. Of rows that were given all is 0: their
 * events are not known. Set struct_size; no byte past it is written. */
typedef struct mtprof_row_noise {
    uint32_t struct_size;
    uint32_t steps;
    double mean_ns, deviation_ns;
    double mean_calls, deviation_calls;
} mtprof_row_noise;
MTPROF_API mtprof_status mtprof_averages_get_noise(mtprof_averages *averages, uint32_t index,
                                                   mtprof_row_noise *noise);

/** What the host's events of one step took together, functions left out. Later versions may
 * append. */
typedef struct mtprof_step_sum {
    uint32_t struct_size; /**< set by the library */
    int32_t step;
    uint64_t events; /**< that began in it */
    double self_ns;  /**< their self time */
} mtprof_step_sum;
/** Not 0: no further steps (ECALLBACK). */
typedef int mtprof_step_visitor(void *user, const mtprof_step_sum *sum);
/** Visits the steps that have events, in order of their numbers, each once. Fails with EINVAL (no
 * model, no visitor), ENOMEM, ECALLBACK, and as mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_model_visit_steps(mtprof_model *model, mtprof_step_visitor *visitor,
                                                  void *user);

/**
 * Sorts rows, largest first, rows that are equal in the order they had. Keys are torch's attribute
 * names (cpu_time_total, self_cpu_time_total, cpu_time, device_time_total, count, flops, key …),
 * their aliases (self_cpu_time, cpu_time_avg; cuda, npu, gpu, xpu and privateuse1 read as device),
 * min, p50, p99, max. NULL: order of first appearance.
 *
 * Fails with EINVAL: "'FunctionEventAvg' object has no attribute 'foo'".
 */
MTPROF_API mtprof_status mtprof_averages_sort(mtprof_averages *averages, const char *key);

/** How a table is written. */
enum mtprof_table_format {
    MTPROF_TABLE_TORCH = 0, /**< byte for byte as torch lays it out */
    MTPROF_TABLE_FIT = 1,   /**< the same rows, columns left out or narrowed to fit `width`, in the
                                 units of output.h */
    MTPROF_TABLE_CSV = 2,   /**< every field, plain numbers */
    MTPROF_TABLE_JSON = 3,  /**< every field, plain numbers */
    MTPROF_TABLE_MARKDOWN = 4,
    MTPROF_TABLE_HTML = 5 /**< a piece for pages and notebooks, without script */
};

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_table_options {
    uint32_t struct_size;
    uint32_t format;   /**< enum mtprof_table_format */
    int64_t row_limit; /**< 0: 100, CSV and JSON all; -1: all; MTPROF_TABLE_NO_ROWS: none */
    /** Widest a column gets; 0: torch's default (75, 55, 80); -1: as wide as its cells. */
    int32_t max_src_column_width, max_name_column_width, max_shapes_column_width;
    uint32_t top_level_only;
    const char *header;    /**< a line above the table; NULL: none */
    const char *time_unit; /**< "s", "ms" or "us" for all times; NULL: each its own */
    uint32_t width;        /**< FIT: of the terminal; 0: 80 */
    uint32_t mindtorch;    /**< 1: further columns Total(us) and Count */
    uint32_t quantiles;    /**< 1: further columns min, p50, p99, max (always in CSV and JSON) */
    uint32_t hide_health;  /**< 1: no line about losses, also where there were some */
} mtprof_table_options;

#define MTPROF_TABLE_NO_ROWS (-2)

/** Writes the rows as a table. options may be NULL. Fails with EINVAL, EIO, ENOSPC, ENOMEM. */
MTPROF_API mtprof_status mtprof_averages_table(mtprof_averages *averages,
                                               const mtprof_table_options *options,
                                               const mtprof_output *output);

/**
 * All of it in one call: a session's events grouped by name, most self CPU time first, as a table
 * to a file descriptor. options NULL: MTPROF_TABLE_FIT. Fails as mtprof_model_from_session(),
 * mtprof_averages_new() and mtprof_averages_table() do.
 */
MTPROF_API mtprof_status mtprof_session_report(mtprof_session *session, int fd,
                                               const mtprof_table_options *options);

MTPROF_END_DECLS

#endif /* MTPROF_AVERAGES_H */
