/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes the flight recorder dump by itself: a signal, a slow step, a hang. A thread of its own
 * watches and dumps, so that neither a handler nor a step waits for a file.
 *
 *      signal ─► trigger_signal.c ─┐
 *      step ───► slow_step.c ──────┼─► the watching thread ─► stacks, dump, on_trigger
 *      no step, no event ──────────┘
 *
 *   TRG1  The thread runs only where one of the three is asked for.
 *   TRG2  A hang is measured in time that the thread itself has seen pass: a process that was
 *         stopped (SIGSTOP, a suspended machine) did not hang.
 *   TRG3  One dump for a hang: the next one needs a step (or an event) in between.
 *   TRG4  After a stop, the thread does not touch the recorder. A stop waits for it, except one
 *         that a callback of the thread itself makes.
 */
#ifndef MTPROF_FLIGHT_TRIGGERS_H
#define MTPROF_FLIGHT_TRIGGERS_H

#include <mtprof/flight.h>

typedef struct mtprof__triggers mtprof__triggers;

/* Whether its fields of the config make sense. Fails with EINVAL. */
mtprof_status mtprof__triggers_check(const mtprof_flight_config *config);
/* *out stays NULL where nothing is to be watched. Fails with EINVAL and EBUSY (signals), ENOMEM. */
mtprof_status mtprof__triggers_start(mtprof_flight *flight, const mtprof_flight_config *config,
                                     mtprof__triggers **out);
/* A step ended. Never waits for a dump. NULL is allowed. One thread at a time. */
void mtprof__triggers_step(mtprof__triggers *triggers, uint64_t step);
/* Puts handlers back and ends the thread; frees. NULL is allowed. */
void mtprof__triggers_stop(mtprof__triggers *triggers);

#endif /* MTPROF_FLIGHT_TRIGGERS_H */
