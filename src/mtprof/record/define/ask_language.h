/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's side of include/mtprof/language.h: when the language is asked, and by which calls.
 */
#ifndef MTPROF_RECORD_DEFINE_ASK_LANGUAGE_H
#define MTPROF_RECORD_DEFINE_ASK_LANGUAGE_H

#include "mtprof/record/recording.h"

#include <mtprof/language.h>

/* One change at a time. */
extern mtb_lock mtprof__language_lock;

/*
 * Fills in the stack, and for begin flags of an op the module, that it does not bring. Returns the
 * epoch that the stack belongs to, 0: it brought one, or there is none. The writer is this thread's
 * and not entered.
 */
uint32_t mtprof__ask(mtprof__writer *w, uint64_t state, uint32_t flags, mtprof_op *op);

/* Begins what a site begins, after asking. op: NULL for a scope; the frame is for native stacks. */
mtprof_token mtprof__begin_asked(mtprof_site *site, const mtprof_op *op, uintptr_t frame);

#endif /* MTPROF_RECORD_DEFINE_ASK_LANGUAGE_H */
