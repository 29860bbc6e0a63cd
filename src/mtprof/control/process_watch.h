/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of the whole process in a session's trace, so many times a second: a thread of its own
 * reads them and records counters as a user would.
 *
 *   PWA1  The thread runs from the start of the session to its stop. It records while the gate is
 *         open; the first value after a pause is about the time since the last one.
 *   PWA2  A value that cannot be read is not recorded, and counted; hardware counters that the
 *         kernel does not allow are not read at all. The trace's metadata says both
 *         ("process_counters").
 *   PWA3  A forked child has no such thread: it only gives back memory and files.
 */
#ifndef MTPROF_CONTROL_PROCESS_WATCH_H
#define MTPROF_CONTROL_PROCESS_WATCH_H

#include <mtprof/session.h>

typedef struct mtprof__watch mtprof__watch;

enum {
    MTPROF__WATCH_HZ_MOST = 1000
};

/* *out is NULL where hz is 0. Fails with ENOMEM. */
mtprof_status mtprof__watch_start(mtprof_session *session, uint32_t hz, mtprof__watch **out);
/* Ends the thread; a last time counters are recorded. NULL is allowed. */
void mtprof__watch_stop(mtprof__watch *watch);
/* PWA3. NULL is allowed. */
void mtprof__watch_forget(mtprof__watch *watch);

/* Of this process, from its open /proc/self/statm; -1: not known. */
int64_t mtprof__resident_bytes(int statm);

#endif /* MTPROF_CONTROL_PROCESS_WATCH_H */
