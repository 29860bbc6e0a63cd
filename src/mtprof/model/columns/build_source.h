/* SPDX-License-Identifier: Apache-2.0
 *
 * A source's stream as device work, one piece at a time. Columns and event streams are made from
 * it.
 */
#ifndef MTPROF_MODEL_COLUMNS_BUILD_SOURCE_H
#define MTPROF_MODEL_COLUMNS_BUILD_SOURCE_H

#include "mtprof/model/model_impl.h"
#include "mtprof/model/slot/payload_store.h"
#include "mtprof/read/cursor_impl.h"
#include "mtprof/read/timebase.h"

/* A record of a source: an activity, a counter or an instant. */
typedef struct mtprof__work {
    uint8_t record; /* MTPROF_REC_ACTIVITY, COUNTER or INSTANT */
    uint8_t kind;   /* ACTIVITY: enum mtprof_event_kind */
    uint16_t aux;
    uint32_t string; /* name */
    int64_t start_ns, end_ns;
    uint64_t key;           /* launch key */
    uint32_t device, queue; /* the source's numbers */
    uint64_t source_id, bytes;
    uint64_t value; /* COUNTER */
} mtprof__work;

typedef struct mtprof__source_stream {
    mtprof_model *model;
    mtprof_cursor cursor;
    mtprof__timebase timebase;
    uint16_t source;
    mtprof_text device_type; /* length 0: it represents no device */
    bool has_waiting;
    mtprof_record waiting;
    int64_t covered_from,
        covered_to; /* from <= ns < to: `covered` is the answer; from > to: none yet */
    bool covered;
    mtprof__work work;
    mtprof__payload_store payload;
    mtprof__inputs_cache inputs; /* sources have none, but payloads are read the same way */
} mtprof__source_stream;

int mtprof__source_stream_init(mtprof__source_stream *stream, mtprof_model *model, uint32_t index);
void mtprof__source_stream_fini(mtprof__source_stream *stream);

/* The next piece, in `work` and `payload`, valid until the next call; those of windows that the
 * model does not cover are left out. EEND at the end. Fails with ENOMEM. */
int mtprof__source_stream_next(mtprof__source_stream *stream);

/* The model's device and track of the current piece. Host activities (CALL, OVERHEAD) get a thread
 * of the source's own. Fails with ENOMEM. */
int mtprof__source_stream_place(mtprof__source_stream *stream, uint32_t *device, uint32_t *track);

/* Reads a source's stream into a run. Fails with ENOMEM. */
int mtprof__source_to_run(mtprof_model *model, uint32_t index, mtprof__run *run);

#endif /* MTPROF_MODEL_COLUMNS_BUILD_SOURCE_H */
