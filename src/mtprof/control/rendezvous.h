/* SPDX-License-Identifier: Apache-2.0
 *
 * One libmtprof per process. Two copies (one linked statically, one opened as a library) would each
 * record half of the program, so a start finds out whether another copy is recording.
 */
#ifndef MTPROF_CONTROL_RENDEZVOUS_H
#define MTPROF_CONTROL_RENDEZVOUS_H

#include <mtprof/status.h>

/* Fails with EBUSY, naming both, when another copy of the library has an active session. */
mtprof_status mtprof__rendezvous_check(void);

/* Whether this copy has one (session.c). */
int mtprof__session_active(void);

#endif /* MTPROF_CONTROL_RENDEZVOUS_H */
