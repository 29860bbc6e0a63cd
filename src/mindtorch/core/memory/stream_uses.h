/* SPDX-License-Identifier: Apache-2.0
 *
 * Which streams use a piece of memory beside the one it belongs to, and how one learns that they
 * have passed: an event on each, recorded behind the last use.
 *
 *   SU1  Nothing is lost when an event cannot be made or recorded: then the stream is waited for,
 *        and a failure that this brings to light is kept (device_failure.h).
 *   SU2  The functions lock nothing: the owner of the memory sees to it that one thread at a time
 *        uses a list of uses.
 */
#ifndef MINDTORCH_CORE_MEMORY_STREAM_USES_H
#define MINDTORCH_CORE_MEMORY_STREAM_USES_H

#include <mindtorch/backend.h>
#include <mindtorch/stream.h>

typedef struct mt__use {
    mt_stream *stream;
    mt_backend_event *event; /* NULL: not marked, or passed */
} mt__use;

typedef struct mt__uses {
    struct mt__uses *next; /* for who keeps several, with what they are the uses of */
    void *block;
    uint32_t count, capacity;
    mt__use at[];
} mt__uses;

/* Notes a stream in *uses, which is made at the first one. MT_ENOMEM: it is as it was. */
int mt__uses_add(mt__uses **uses, mt_stream *stream);

/* The same for a use that is on the stream already: its work so far is marked. Without memory for
 * that the stream is waited for (SU1). */
void mt__uses_note(mt__uses **uses, mt_stream *stream);

/* Marks what is on the streams now, but for the stream `number` of `device`. */
void mt__uses_mark_all(mt__uses *uses, mt_device device, uint32_t number);

/* Whether all marked uses are over; does not wait. What cannot be asked is not over. */
bool mt__uses_done(mt__uses *uses);
void mt__uses_wait(mt__uses *uses);

/* Accepts NULL. */
void mt__uses_free(mt__uses *uses);

#endif /* MINDTORCH_CORE_MEMORY_STREAM_USES_H */
