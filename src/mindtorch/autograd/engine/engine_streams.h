/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams in backward. A node runs on the stream on which its forward op ran, and streams wait for
 * each other where a gradient goes from one to the next:
 *
 *     caller's streams ── root gradients ─► node's stream ─► next node's stream ─► caller's streams
 *                            (waits)             (waits)            (leaves accumulate there)
 *
 *   BS1  Before work on a gradient is put on the stream of the node that gets it, this stream waits
 *        for the one that made it, and the gradient's memory is not reused too early.
 *   BS2  Sums of gradients are made on the stream of the node that gets them.
 *   BS3  Leaves accumulate on the streams that were current when backward was called, so `.grad` is
 *        ordered with what the caller does with it before and after.
 *   BS4  When the run is over, the caller's streams are current again, and wait for all streams on
 *        which nodes ran. A hook or a user's function that leaves other streams current is treated
 *        the same: the node's stream waits for them.
 *   BS5  While only default streams are used, and on the host, the cost is reading two words of the
 *        thread's state.
 */
#ifndef MINDTORCH_AUTOGRAD_ENGINE_ENGINE_STREAMS_H
#define MINDTORCH_AUTOGRAD_ENGINE_ENGINE_STREAMS_H

#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/core/device/backends.h"

typedef struct mt__engine_streams {
    bool active;                  /* a node, or the caller, is not on a default stream */
    uint8_t callers[MT_DEVICES];  /* BS3 */
    uint64_t used[MT_DEVICES][2]; /* numbers of streams that nodes ran on, by bit; while active */
} mt__engine_streams;

/* Remembers the caller's streams. */
void mt__engine_streams_begin(mt__engine_streams *streams);

/* A node that is going to run. */
MT_INLINE void mt__engine_streams_see(mt__engine_streams *streams, const mt_node *node)
{
    streams->active |= node->stream != 0;
}

/* BS5: whether there is anything to do now. */
MT_INLINE bool mt__engine_streams_on(const mt__engine_streams *streams)
{
    return MT_UNLIKELY(streams->active || mt__off_default_streams());
}

/* Makes the streams current on which the node runs. */
void mt__engine_streams_enter(mt__engine_streams *streams, const mt_node *node);

/* BS4, for what ran since then. */
int mt__engine_streams_settle(mt__engine_streams *streams, const mt_node *node);

/* BS1: from the current streams to `next`, which becomes current where the gradient is (BS2). */
int mt__engine_streams_hand(mt__engine_streams *streams, mt_tensor *grad, const mt_node *next);

/* BS1 for a gradient that goes to the caller from the current streams. */
int mt__engine_streams_give(mt__engine_streams *streams, mt_tensor *grad);

/* BS4. `status` is that of the run; it is returned unless it is MT_OK. */
int mt__engine_streams_end(mt__engine_streams *streams, int status);

#endif /* MINDTORCH_AUTOGRAD_ENGINE_ENGINE_STREAMS_H */
