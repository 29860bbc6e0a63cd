/* SPDX-License-Identifier: Apache-2.0
 *
 * A summary of every step, beside the ring. A thread of its own follows the recording as any
 * process could (live.h), but from the ring's memory, and writes NAME.steps; a step at most wakes
 * it. The summaries of a look are written with one write.
 *
 *   SUM1  A look at the recording is made when a step has ended, but at the earliest PACE_NS after
 *         the one before; and while a step runs, before the ring has gone on too far.
 *   SUM2  The thread takes about a hundredth of a core: steps that are shorter than a hundred times
 *         the work of a summary share one, and no more than BYTES_A_SECOND of records are read.
 *   SUM3  After a stop, the thread does not touch the recorder. A stop waits for it, except one
 *         that a callback of the thread itself makes.
 */
#ifndef MTPROF_FLIGHT_STEP_SUMMARIES_H
#define MTPROF_FLIGHT_STEP_SUMMARIES_H

#include <mtprof/flight.h>

typedef struct mtprof__summaries mtprof__summaries;

/* *out stays NULL where the flags ask for none. Fails with EIO, EFORMAT, EBUSY, ENOSPC, ENOMEM. */
mtprof_status mtprof__summaries_start(mtprof_flight *flight, mtprof__summaries **out);
/* A step ended. NULL is allowed. */
void mtprof__summaries_step(mtprof__summaries *summaries);
/* Writes what has ended so far, ends the thread, frees. NULL is allowed. */
void mtprof__summaries_stop(mtprof__summaries *summaries);

#endif /* MTPROF_FLIGHT_STEP_SUMMARIES_H */
