/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of a language as spans. Where every call was traced they are events of their own
 * (FUNCTION). Where only stacks were recorded they are rebuilt from the stacks of consecutive ops
 * and scopes of a thread:
 *
 *     op a, stack main>f      op b, stack main>f>g      op c, stack main>h
 *     main ───────────────────────────────────────────────────────────────┐
 *      f ──────────────────────────────────────────┐   h ──────────────────┤
 *       a ─────┐                g ────────────────┐│    c ────────────┐    │
 *                                b ───────────────┘┘
 *
 *   FR1  A frame begins with the first event that has it and ends with the last one: what was not
 *        seen is not claimed. But where there is room it is a nanosecond wider on both sides than
 *        what is inside it, frame by frame: readers add up times as doubles, which round.
 *   FR2  A frame that began inside an event ends inside it: spans of a track nest.
 *   FR3  Two frames are the same call when function and file are: lines of a caller move on.
 *   FR4  A collection ("Python GC") is a span among functions, but no call: it has no number, and
 *        does not mean that calls were traced.
 *   FR5  Per track, frames open and close in order of time, between the edges of the events.
 */
#ifndef MTPROF_EXPORT_FRAME_STACK_H
#define MTPROF_EXPORT_FRAME_STACK_H

#include "base/compiler.h"
#include "mtprof/model/events/event.h"

#include <stddef.h>

typedef struct mtprof__open_frame {
    mtprof_frame frame; /* its texts live as long as the model */
    int64_t start_ns;
    uint64_t id, parent; /* numbers of functions; parent 0: none */
    uint64_t order;      /* mtprof__frame_order() */
} mtprof__open_frame;

/* The receiver of frames. Both return 0, or a failure that ends the work. */
typedef struct mtprof__frame_sink {
    void *user;
    int (*open)(void *user, uint32_t track, const mtprof__open_frame *frame); /* may be NULL */
    /* tied: what is around it began at the same time. */
    int (*close)(void *user, uint32_t track, const mtprof__open_frame *frame, int64_t end_ns,
                 bool tied);
} mtprof__frame_sink;

/* What is known of an event when it has ended. */
typedef struct mtprof__frame_end {
    bool tied;           /* to a frame, or as event->tied says */
    uint64_t id, parent; /* of a FUNCTION that is a call; 0: none */
} mtprof__frame_end;

typedef struct mtprof__frame_stack mtprof__frame_stack;

/* NULL: no memory. */
mtprof__frame_stack *mtprof__frame_stack_new(mtprof_model *model, const mtprof__frame_sink *sink);
/* At each BEGIN and END of a thread, before the event itself is written. Fail with ENOMEM, and as
 * the sink. */
int mtprof__frame_stack_begin(mtprof__frame_stack *stack, const mtprof__event *event);
int mtprof__frame_stack_end(mtprof__frame_stack *stack, const mtprof__event *event,
                            mtprof__frame_end *out);
/* A span on a thread that is not a scope: frames end after it. */
void mtprof__frame_stack_pass(mtprof__frame_stack *stack, const mtprof__event *event);
/* Closes what is still open. Fails as the sink. */
int mtprof__frame_stack_finish(mtprof__frame_stack *stack);
/* Events whose stacks have more frames than are shown. Accepts NULL. */
uint64_t mtprof__frame_stack_left_out(const mtprof__frame_stack *stack);
void mtprof__frame_stack_free(mtprof__frame_stack *stack);

/* The number after the last '_' of "nn.Module: Linear_0"; -1: it is not a module. */
int64_t mtprof__frame_module(mtprof_text name);

/* The order of beginning of events, and of the frames that were found at the begin of an event. */
enum {
    MTPROF__ORDER_FRAMES = 1 << 16
};
MT_INLINE uint64_t mtprof__frame_order(const mtprof__event *event)
{
    return event->order * MTPROF__ORDER_FRAMES + (MTPROF__ORDER_FRAMES - 1);
}

#endif /* MTPROF_EXPORT_FRAME_STACK_H */
