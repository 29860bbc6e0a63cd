/* SPDX-License-Identifier: Apache-2.0
 *
 * What the records of a slot do to its stack.
 */
#ifndef MTPROF_MODEL_SLOT_SLOT_STACK_H
#define MTPROF_MODEL_SLOT_SLOT_STACK_H

#include "mtprof/model/slot/slot_stream.h"

/* Begins a scope for the current record; `named` is its parent's key, all ones: none given.
 * slot->at is its place. Fails with ENOMEM. */
int mtprof__slot_begin_scope(mtprof__slot *slot, uint64_t named);

/* Ends a scope. The consumer reads it before the next fetch, also if it is popped here. */
void mtprof__slot_end_scope(mtprof__slot *slot, uint32_t at, int64_t ns);

/* Ends the topmost open scope where it was cut off. */
void mtprof__slot_truncate_top(mtprof__slot *slot);

/* When what is open of an epoch was cut off, for this slot: at the last time before a hole (SL5),
 * else when the epoch ends, and not before what the slot has recorded. */
int64_t mtprof__slot_close_ns(const mtprof__slot *slot, uint32_t block);

/* Whether another slot has ended the scope by the time of the current record. */
bool mtprof__slot_ended_elsewhere(const mtprof__slot *slot, const mtprof__scope *scope);

/* Drops early ends that have waited for long enough. Those of scopes that are open stay: they are
 * due later. */
void mtprof__slot_forget_early(mtprof__slot *slot);

#endif /* MTPROF_MODEL_SLOT_SLOT_STACK_H */
