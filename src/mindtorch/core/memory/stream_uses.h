/* SPDX-License-Identifier: Apache-2.0
 *
 * Which streams use a piece of memory besides the one it belongs to, and whether they are done: an
 * event on each, recorded after the last use.
 *
 *   SU1  If an event cannot be created or recorded, the stream is waited for instead, and a failure
 *        that this reports is kept (device_failure.h).
 *   SU2  The functions lock nothing: the owner of the memory ensures that only one thread at a time
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
    struct mt__uses *next; /* for owners that keep several lists */
    void *block;
    uint32_t count, capacity;
    mt__use at[];
} mt__uses;

/* Adds a stream to *uses, which is allocated for the first one. MT_ENOMEM: nothing has changed. */
int mt__uses_add(mt__uses **uses, mt_stream *stream);

/* The same for a use that is already on the stream: records an event after its work so far. If
 * there is no memory for that, waits for the stream (SU1). */
void mt__uses_note(mt__uses **uses, mt_stream *stream);

/* Records an event on each stream, except on stream `number` of `device`. */
void mt__uses_mark_all(mt__uses *uses, mt_device device, uint32_t number);

/* Whether all marked uses are over; does not wait. If the query fails, the use counts as not
 * over. */
bool mt__uses_done(mt__uses *uses);
void mt__uses_wait(mt__uses *uses);

/* Accepts NULL. */
void mt__uses_free(mt__uses *uses);

#endif /* MINDTORCH_CORE_MEMORY_STREAM_USES_H */
