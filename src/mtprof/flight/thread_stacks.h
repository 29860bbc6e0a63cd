/* SPDX-License-Identifier: Apache-2.0
 *
 * The native stacks of all threads of this process, as text: what a program does that hangs.
 *
 *      our thread                          every other thread
 *        tgkill(tid, signal, slot) ───────► handler: backtrace() into the slot
 *        waits, for a bounded time ◄─────── slot is done
 *        names for the addresses (code_names.h), text
 *
 *   TST1  The handler is installed by mtprof__stacks_take_signal() alone, which the user asks for;
 *         a signal that has a handler already is refused, and the default is one that has none.
 *   TST2  Neither the heap nor the dynamic loader is asked while the stacks are taken: a thread
 *         that hangs may hold their locks. What backtrace() needs is loaded with the handler.
 *   TST3  A slot belongs to the handler from its begin to its end, however late that comes: its
 *         state holds a number that a late signal does not have.
 *   TST4  A thread that does not answer is in the text as well, with the reason: the signal is
 *         blocked, or it is in a call that signals do not interrupt.
 *   TST5  Calls that the signal interrupts go on (SA_RESTART). Those that no signal handler lets go
 *         on (poll, nanosleep, epoll_wait) return EINTR, as with any other signal.
 */
#ifndef MTPROF_FLIGHT_THREAD_STACKS_H
#define MTPROF_FLIGHT_THREAD_STACKS_H

#include "base/compiler.h"

#include <mtprof/status.h>

#include <stddef.h>
#include <stdint.h>

enum {
    STACKS_TEXT_MOST = 4 << 20, /* bytes; what is left out is counted in its last line */
    STACKS_THREADS_MOST = 4096
};

/* Text that grows, in pages. */
typedef struct mtprof__stacks_text {
    char *bytes;
    size_t used, capacity;
    uint32_t left_out; /* threads */
} mtprof__stacks_text;

/* Installs the handler. number 0: one of the real-time signals that have no handler. Fails with
 * EINVAL (no signal that can be handled), EBUSY (it has a handler, or one is installed already). */
mtprof_status mtprof__stacks_take_signal(int number);
/* Removes the handler, unless somebody else has replaced it. */
void mtprof__stacks_give_signal(void);

/* Appends the stacks of all threads but this one. wait_ns: for threads that do not answer. Only one
 * thread at a time, and only between the two calls above. */
void mtprof__stacks_collect(mtprof__stacks_text *text, uint64_t wait_ns);

/* Appends; what does not fit is left out, and false is returned. */
bool mtprof__stacks_put(mtprof__stacks_text *text, const char *format, ...) MT_PRINTF(2, 3);
void mtprof__stacks_fini(mtprof__stacks_text *text);

#endif /* MTPROF_FLIGHT_THREAD_STACKS_H */
