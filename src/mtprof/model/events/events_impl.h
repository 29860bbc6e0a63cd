/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams are made from one of two things: the records of a trace of ours, or the columns and
 * points of a foreign model.
 */
#ifndef MTPROF_MODEL_EVENTS_EVENTS_IMPL_H
#define MTPROF_MODEL_EVENTS_EVENTS_IMPL_H

#include "mtprof/model/events/event.h"

/* The first member of both kinds. */
struct mtprof__events {
    int (*next)(mtprof__events *events, const mtprof__event **event);
    /* mtprof__events_plain(); NULL: never any. */
    size_t (*plain)(mtprof__events *events, mtprof__plain_step *steps, size_t room,
                    uint32_t *track);
    void (*progress)(const mtprof__events *events, uint64_t *done, uint64_t *total);
    void (*close)(mtprof__events *events);
    bool skip_begins; /* advice: a stream may give BEGIN edges all the same */
    bool part_ends;   /* likewise: mtprof__events_part_ends() */
    bool split_tasks; /* likewise: mtprof__events_split_tasks() */
    mtprof__events_totals totals;
    uint64_t plain_id; /* mtprof__events_plain_id() */
};

int mtprof__events_open_records(mtprof_model *model, mtprof__events **out);
int mtprof__events_open_columns(mtprof_model *model, mtprof__events **out);

#endif /* MTPROF_MODEL_EVENTS_EVENTS_IMPL_H */
