/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's language: callbacks that return the call stack and the module path of the running
 * code. A binding (Python's, for example) sets them once. The recorder calls them when an op or a
 * scope begins and the recording wants the answer, so that ops of C code have stacks of the
 * language too.
 *
 * The functions are called on the thread that records, outside the recorder: they may call
 * everything in op.h and trace.h, but may begin only scopes of MTPROF_KIND_FUNCTION. They must be
 * quick, and only those for MTPROF_BEGIN_MAY_WAIT may block. They may be called at any time from
 * set to the end of the process, on any thread, including threads that the language does not know.
 * Events of a signal handler that interrupts the recorder or these functions do not call them; a
 * handler that interrupts anything else cannot be distinguished from the code it interrupts, so its
 * events do.
 */
#ifndef MTPROF_LANGUAGE_H
#define MTPROF_LANGUAGE_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/** What `stack` returns where there is no stack: on a thread that the language does not know, for
 * example. Nothing is missing then, so nothing is counted. */
#define MTPROF_STACK_NONE UINT32_MAX

/** Set struct_size; functions may be NULL. */
typedef struct mtprof_language {
    uint32_t struct_size;
    uint32_t reserved;
    void *context; /**< passed to every function */
    /** The stack now: a node of mtprof_stack(), MTPROF_STACK_NONE, or 0 when it is not known
     * (counted in health.stacks_missed). Asked with MTPROF_WANT_STACKS, for ops and scopes that
     * come without one; not for MTPROF_KIND_FUNCTION, which is a call in the language itself. */
    uint32_t (*stack)(void *context);
    /** The module path now: a string id of mtprof_intern(), 0: none. Asked with
     * MTPROF_WANT_MODULES, for ops that come without one. */
    uint32_t (*module_path)(void *context);
    /** The same two for what begins with MTPROF_BEGIN_MAY_WAIT; NULL: those above. */
    uint32_t (*stack_waiting)(void *context);
    uint32_t (*module_path_waiting)(void *context);
} mtprof_language;

/** Sets the language of the process, NULL removes it: no callback is running when this returns.
 * Fails with EBUSY (a recording is active), EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_set_language(const mtprof_language *language);

MTPROF_END_DECLS

#endif /* MTPROF_LANGUAGE_H */
