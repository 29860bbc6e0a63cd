/* SPDX-License-Identifier: Apache-2.0
 *
 * Which op a thread is in: for sources (mtprof_open_op() of source.h). The hot path keeps no list
 * of what is open, so this one reads the thread's own records.
 *
 *   OO1  A walk goes on where the last one ended, so a call costs what was recorded since.
 *   OO2  A walk goes on in the next chunk if it was asked in the one before. Otherwise it begins
 *        with the chunk, and what was begun before that is not known.
 *   OO3  An op of the backward pass has the module of its forward op, which another thread may have
 *        run: the same recording, thread and sequence number. Modules of the latest forward ops
 *        that walks have met are kept for that.
 */
#ifndef MTPROF_RECORD_HOT_OPEN_OP_H
#define MTPROF_RECORD_HOT_OPEN_OP_H

#include "mtprof/record/recording.h"

/* The writer leaves its chunk for another. */
void mtprof__open_leave_chunk(mtprof__writer *w);

#endif /* MTPROF_RECORD_HOT_OPEN_OP_H */
