/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's language: who can tell the call stack and the module path of the running code. A
 * binding (Python's, say) sets these once; the recorder asks when an op or a scope begins and the
 * recording wants the answer, so that code which knows nothing of the language has stacks too.
 *
 * The functions are called on the thread that records, outside of the recorder: they may call
 * everything of op.h and trace.h, and begin scopes of MTPROF_KIND_FUNCTION alone. They must be
 * quick, must not block, and may be called at any time from set to the end of the process, in any
 * thread, also in one that the language does not know. A signal handler that interrupts the
 * recorder or these functions does not call them; elsewhere a handler cannot be told from the code
 * it interrupts.
 */
#ifndef MTPROF_LANGUAGE_H
#define MTPROF_LANGUAGE_H

#include <mtprof/api.h>
#include <mtprof/status.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/** Set struct_size; functions may be NULL. */
typedef struct mtprof_language {
    uint32_t struct_size;
    uint32_t reserved;
    void *context; /**< handed to both */
    /** The stack now: a node of mtprof_stack(), 0 when it cannot be told (counted in
     * health.stacks_missed). Asked with MTPROF_WANT_STACKS, for ops and scopes that bring none; not
     * for MTPROF_KIND_FUNCTION, which is a call of the language itself. */
    uint32_t (*stack)(void *context);
    /** The module path now: a string id of mtprof_intern(), 0: none. Asked with
     * MTPROF_WANT_MODULES, for ops that bring none. */
    uint32_t (*module_path)(void *context);
} mtprof_language;

/** Sets the language of the process, NULL takes it away: no call is under way when this returns.
 * Fails with EBUSY (a recording is under way), EINVAL (struct_size 0). */
MTPROF_API mtprof_status mtprof_set_language(const mtprof_language *language);

MTPROF_END_DECLS

#endif /* MTPROF_LANGUAGE_H */
