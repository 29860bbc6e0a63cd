/* SPDX-License-Identifier: Apache-2.0
 *
 * The signal that asks for a dump. The handler notes that it came and wakes the thread that watches
 * (triggers.c); that one dumps.
 *
 *   TRS1  A handler that the program had is called after ours, and put back at the end.
 *   TRS2  A signal that asks a program to end (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU) and had
 *         no handler still ends it, after the dump.
 *   TRS3  The child of a fork has the handler and no recorder: there the signal does what it did
 *         before.
 */
#ifndef MTPROF_FLIGHT_TRIGGER_SIGNAL_H
#define MTPROF_FLIGHT_TRIGGER_SIGNAL_H

#include <mtprof/status.h>

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* Posted by the handler, and by whoever has work for the watching thread. Static: a handler may
 * come late. */
extern sem_t mtprof__trigger_wake;

/* Installs the handler. Fails with EINVAL (a signal that cannot be handled, or means a crash). */
mtprof_status mtprof__trigger_take_signal(int number);
/* Puts back what was there, unless somebody else has replaced our handler. */
void mtprof__trigger_give_signal(void);
/* How often it came since the last call. */
uint32_t mtprof__trigger_signals(void);
/* TRS2: after the dump. Returns for signals that do not end the program. */
void mtprof__trigger_end_program(void);

#endif /* MTPROF_FLIGHT_TRIGGER_SIGNAL_H */
