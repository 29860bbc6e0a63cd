/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ranks of one job: their collectives matched, their clocks put on that of the first rank,
 * who waits for whom, who is late and why. docs/ranks.md has the method.
 *
 *     mtprof_ranks *r = NULL;
 *     if (mtprof_ranks_open(paths, n, NULL, &r) == MTPROF_OK) {
 *         mtprof_ranks_facts facts = {.struct_size = sizeof facts};
 *         mtprof_ranks_get_facts(r, &facts);              // residual and bound of the clocks
 *         mtprof_ranks_export(r, "merged.pftrace", NULL); // one file, one clock
 *         mtprof_ranks_find_stragglers(r);
 *     }
 *     mtprof_ranks_free(r);
 *
 * One trace is open at a time: what is kept of a rank is its collectives. A trace that is damaged,
 * missing or of another job is left out, with the reason.
 *
 * Threads: any number may read; finding stragglers, exporting and freeing are the owner's.
 */
#ifndef MTPROF_JOBS_RANKS_H
#define MTPROF_JOBS_RANKS_H

#include <mtprof/api.h>
#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

typedef struct mtprof_ranks mtprof_ranks;

/** Where a collective is seen. The numbers and names do not change. */
enum mtprof_collective_layer {
    MTPROF_LAYER_NONE = 0,    /**< it is no collective */
    MTPROF_LAYER_CALL = 1,    /**< the program's call: "c10d::allreduce_" */
    MTPROF_LAYER_LIBRARY = 2, /**< the library on the host: "gloo:all_reduce" */
    MTPROF_LAYER_DEVICE = 3,  /**< its kernel: "ncclDevKernel_AllReduce…" */
    MTPROF_LAYER_COUNT = 4
};
/** "call", "library", "device"; "none" for others. Constant text. */
MTPROF_API const char *mtprof_layer_name(uint32_t layer);

/** What an event is by its name and kind: enum mtprof_collective_layer. *synchronises (may be
 * NULL): no rank leaves it before all have come, as with an all-reduce and unlike a broadcast. */
MTPROF_API uint32_t mtprof_collective_layer_of(mtprof_text name, uint32_t event_kind,
                                               bool *synchronises);

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_ranks_options {
    uint32_t struct_size;
    uint32_t keep_damaged; /**< 1: also traces that are damaged, as far as they can be read */
    mtprof_progress *progress;
    void *user;
} mtprof_ranks_options;

/** Reads the traces one after the other. options may be NULL. Fails with EINVAL (no trace can be
 * taken; the message says why of the first), ENOMEM, ECALLBACK. */
MTPROF_API mtprof_status mtprof_ranks_open(const char *const *paths, size_t n_paths,
                                           const mtprof_ranks_options *options, mtprof_ranks **out);
/** Accepts NULL. */
MTPROF_API void mtprof_ranks_free(mtprof_ranks *ranks);

/** How the clocks were put together. */
enum mtprof_clock_method {
    MTPROF_CLOCK_NONE = 0,        /**< they were not: neither of the two suffices */
    MTPROF_CLOCK_COLLECTIVES = 1, /**< by the ends of collectives: offset and drift */
    MTPROF_CLOCK_WALL = 2         /**< by the machines' wall clocks alone: no bound is known */
};
/** "none", "collectives", "wall clock". Constant text. */
MTPROF_API const char *mtprof_clock_method_name(uint32_t method);

/** Set struct_size; no byte past it is written. Times are NaN where they are not known. */
typedef struct mtprof_ranks_facts {
    uint32_t struct_size;
    uint32_t ranks;          /**< taken */
    uint32_t left_out;       /**< traces that were not */
    uint32_t world_size;     /**< as the traces say; 0: they do not */
    uint32_t missing;        /**< ranks of it without a trace that was taken */
    uint32_t layer;          /**< enum mtprof_collective_layer: of the collectives below */
    uint32_t collectives;    /**< matched, which synchronise */
    uint32_t shared;         /**< of them, those that all ranks have */
    uint64_t unmatched;      /**< calls of one rank that no collective was found for */
    uint64_t dropped;        /**< collectives beyond the bound of memory (docs/bounds.md) */
    uint32_t method;         /**< enum mtprof_clock_method */
    uint32_t reference;      /**< index of the rank whose clock it is */
    double residual_ns;      /**< 95 % of the ends lie so close to each other */
    double bound_ns;         /**< no clock is further off than this */
    double contradiction_ns; /**< by how much a line misses what must hold: clocks that are no
                                  straight line; included in the bound */
    const char *refusal;     /**< method NONE: why, a sentence; else NULL */
    uint32_t classes[5];     /**< collectives by enum mtprof_wait_class */
} mtprof_ranks_facts;
/** Fails with EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_ranks_get_facts(const mtprof_ranks *ranks,
                                                mtprof_ranks_facts *facts);

/** One rank. Texts live as long as the ranks. Set struct_size. */
typedef struct mtprof_rank {
    uint32_t struct_size;
    uint32_t rank; /**< its number */
    const char *path;
    int64_t start_ns, end_ns; /**< of its trace, on its own clock */
    double offset_ns;         /**< at start_ns: time on the reference's clock minus its own */
    double drift;             /**< 50e-6: the reference's clock gains 50 us a second over its own */
    double residual_ns, bound_ns;
    double wall_error_ns; /**< how far its wall clock is from the reference's; NaN: not known */
    uint64_t calls;       /**< collectives in its trace */
    uint64_t missing;     /**< that other ranks have and it has not */
    uint64_t lost;        /**< events that its recorder lost */
    double wait_ns, transfer_ns; /**< sums over the shared collectives */
    double last;                 /**< in how many of these it came last */
} mtprof_rank;
/** By index, in order of rank. Fails with EINVAL (no such rank, struct_size 0). */
MTPROF_API mtprof_status mtprof_ranks_get_rank(const mtprof_ranks *ranks, uint32_t index,
                                               mtprof_rank *rank);
/** A trace that was left out, and why. false: there is none. */
MTPROF_API bool mtprof_ranks_left_out(const mtprof_ranks *ranks, uint32_t index, const char **path,
                                      const char **why);
/** A rank of the job without a trace that was taken, by index. false: there is none. */
MTPROF_API bool mtprof_ranks_missing(const mtprof_ranks *ranks, uint32_t index, uint32_t *rank);

/** A time of a rank on the clock of all. Without a clock (method NONE): unchanged. */
MTPROF_API int64_t mtprof_ranks_convert(const mtprof_ranks *ranks, uint32_t index, int64_t ns);

/** Where the time of a collective goes. */
enum mtprof_wait_class {
    MTPROF_WAIT_INCONCLUSIVE = 0, /**< a rank is missing, or the clocks do not allow to say */
    MTPROF_WAIT_TRANSFER = 1,     /**< at most a third is waiting */
    MTPROF_WAIT_SKEW = 2,         /**< at least two thirds: ranks come at different times */
    MTPROF_WAIT_MIXED = 3,
    MTPROF_WAIT_COUNT = 4
};
/** "inconclusive", "transfer", "arrival skew", "mixed". Constant text. */
MTPROF_API const char *mtprof_wait_class_name(uint32_t wait_class);

/** A matched collective. Set struct_size. */
typedef struct mtprof_collective {
    uint32_t struct_size;
    uint32_t wait_class; /**< enum mtprof_wait_class */
    mtprof_text name;
    uint64_t elements;  /**< of its tensors; 0: not recorded */
    int32_t step;       /**< -1: none */
    uint32_t ordinal;   /**< among those of its name, size and step */
    uint32_t ranks;     /**< that have it */
    uint32_t last;      /**< index of the rank that came last */
    int64_t arrival_ns; /**< when that was, on the clock of all */
    double wait_ns;     /**< mean of the ranks */
    double transfer_ns; /**< median of the ranks */
    double skew_ns;     /**< from the first to the last arrival */
} mtprof_collective;
/** In order of arrival. Fails with EINVAL (no such collective, struct_size 0). */
MTPROF_API mtprof_status mtprof_ranks_get_collective(const mtprof_ranks *ranks, uint32_t index,
                                                     mtprof_collective *collective);

/** What one rank did in a collective. */
typedef struct mtprof_collective_part {
    int64_t start_ns, end_ns;    /**< on the clock of all */
    double wait_ns, transfer_ns; /**< before, and since the last rank's arrival */
} mtprof_collective_part;
/** false: the rank does not have it. */
MTPROF_API bool mtprof_ranks_part(const mtprof_ranks *ranks, uint32_t collective, uint32_t index,
                                  mtprof_collective_part *part);

/** Looks for ranks that are late, and compares each with others op by op (compare.h); reads those
 * traces again. Fails with ESTATE (there is no clock), and as mtprof_compare_new(). */
MTPROF_API mtprof_status mtprof_ranks_find_stragglers(mtprof_ranks *ranks);

/** A rank that is late. Set struct_size. */
typedef struct mtprof_straggler {
    uint32_t struct_size;
    uint32_t index;     /**< of the rank */
    int32_t since_step; /**< first late step; of jobs without steps the number of the collective */
    uint32_t steps;     /**< late steps looked at */
    double late_ns;     /**< mean of them: later than the middle one of the others */
    double noise_ns;    /**< what chance explains of that, at alpha 0.01 shared by all ranks */
    double chance;      /**< that noise explains it all is below this */
    double step_ns;     /**< mean step */
    uint32_t n_causes;
    uint32_t compared; /**< with so many other ranks */
} mtprof_straggler;
/** Most late first. Fails with EINVAL (no such straggler, struct_size 0). */
MTPROF_API mtprof_status mtprof_ranks_get_straggler(const mtprof_ranks *ranks, uint32_t index,
                                                    mtprof_straggler *straggler);
/** What a straggler takes longer for, in every comparison and beyond the noise. Set struct_size. */
typedef struct mtprof_straggler_cause {
    uint32_t struct_size;
    uint32_t on_device;
    mtprof_text name; /**< "ProfilerStep*": host time outside every op */
    double more_ns;   /**< per step, than the nearest of the others */
    double noise_ns;  /**< the largest of the comparisons */
    double usual_ns;  /**< of that rank */
    uint32_t outside; /**< 1: it is the step's own time, in no op or scope */
    uint32_t reserved;
} mtprof_straggler_cause;
/** Most time first. Fails with EINVAL (no such cause, struct_size 0). */
MTPROF_API mtprof_status mtprof_ranks_get_cause(const mtprof_ranks *ranks, uint32_t straggler,
                                                uint32_t index, mtprof_straggler_cause *cause);

/** What merging wrote. Set struct_size. */
typedef struct mtprof_merge_report {
    uint32_t struct_size;
    uint32_t ranks;
    uint64_t events, bytes, bytes_written;
    uint64_t clamped, left_out, replaced; /**< as mtprof_export_report */
} mtprof_merge_report;

/**
 * Writes the ranks as one file, CHROME or PERFETTO by its ending, ".gz" too: a process a rank,
 * times on the clock of all. Its memory is that of one rank's export. report may be NULL. Fails
 * with ESTATE (there is no clock; the message is the refusal), EINVAL (another format), EIO,
 * ENOSPC, ENOMEM, and as mtprof_export().
 */
MTPROF_API mtprof_status mtprof_ranks_export(mtprof_ranks *ranks, const char *path,
                                             mtprof_merge_report *report);

MTPROF_END_DECLS

#endif /* MTPROF_JOBS_RANKS_H */
