/* SPDX-License-Identifier: Apache-2.0
 *
 * What a recording knows about itself: how much it holds, what it lost and why, what it costs.
 */
#ifndef MTPROF_HEALTH_H
#define MTPROF_HEALTH_H

#include <mtprof/api.h>
#include <mtprof/format.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Set struct_size; no byte past it is written. Exact once the session has stopped. */
typedef struct mtprof_health {
    uint32_t struct_size;
    uint32_t threads;                         /**< threads that recorded */
    uint64_t begins;                          /**< scopes, ops and launches recorded */
    uint64_t others;                          /**< instants, counters, flows, allocations */
    uint64_t truncated;                       /**< scopes that a stop or pause cut off */
    uint64_t launches;                        /**< launches recorded */
    uint64_t activities;                      /**< kernels, copies and sets that answer a launch */
    uint64_t unmatched;                       /**< launches without a device record so far */
    uint64_t lost;                            /**< all lost events: the sum of the causes below */
    uint64_t lost_by[MTPROF_HEALTH_LOST_END]; /**< by cause, enum mtprof_health_index */
    uint64_t evicted;                         /**< begins that ring mode discarded */
    uint64_t stalls;                          /**< times a writer had to map its own memory */
    uint64_t busy_at_stop;                    /**< threads still in a recording call at a stop */
    uint64_t texts_cut;                       /**< texts shortened, and payloads left out, to fit */
    uint64_t clock_back;     /**< ends with a time before that of the last record */
    uint64_t bytes;          /**< bytes of trace taken, headers included */
    uint64_t pair_cost_ps;   /**< own cost of a begin+end pair, picoseconds */
    uint32_t written_behind; /**< 1: no mmap; chunks are written when full */
    uint32_t unlocked;       /**< 1: the file system has no locks (session.h) */
    uint64_t stacks_missed;  /**< begins whose stack the language did not know (language.h) */
    /* of a trace that was read (mtprof_model_get_health); 0 for a session */
    uint64_t problems;       /**< damaged places: bad checksums, holes, cuts */
    uint64_t problem_bytes;  /**< bytes in them, as far as known: what is missing has no size */
    uint64_t problem_offset; /**< offset of the first, where there is one */
    /* of a recording with a limit of its overhead (session.h: overhead_ppm); 0 without */
    uint32_t limit_ppm;            /**< the limit */
    uint32_t limit_level;          /**< the most that was left out, enum mtprof_limit_level */
    uint64_t limit_changes;        /**< how often the level changed */
    uint64_t unrecorded;           /**< events that the limit left out; not part of `lost` */
    uint64_t unrecorded_estimated; /**< of them, those that nobody counted: by their rate before */
    uint64_t without_payload;      /**< events recorded without the payloads that were wanted */
    uint64_t own_cost_ns;          /**< what recording took, by its own account */
    uint64_t own_cost_of_ns;       /**< of so much processor time of the process */
} mtprof_health;

/** "memory", "disk" … for a cause; "unknown" for others. Constant text. */
MTPROF_API const char *mtprof_lost_cause(uint32_t cause);

MTPROF_END_DECLS

#endif /* MTPROF_HEALTH_H */
