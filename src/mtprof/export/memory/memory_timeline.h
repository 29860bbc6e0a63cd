/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory timeline: what happened to the memory of one device, in order of time, with the
 * category of each piece.
 *
 *     prepare: event stream ─► classifier ─► plan       replay: event stream + plan ─► actions
 *
 *   TL1  No byte is removed that was not added: per category the sum of the actions so far is
 *        never negative.
 *   TL2  Times do not decrease; PREEXISTING comes first.
 */
#ifndef MTPROF_EXPORT_MEMORY_MEMORY_TIMELINE_H
#define MTPROF_EXPORT_MEMORY_MEMORY_TIMELINE_H

#include "mtprof/analyze/memory/memory_categories.h"
#include "mtprof/export/export_impl.h"

enum mtprof__memory_verb {
    MTPROF__MEMORY_PREEXISTING = 1,
    MTPROF__MEMORY_CREATE = 2,
    MTPROF__MEMORY_INCREMENT_VERSION = 3, /* two: the old version goes, the new one comes */
    MTPROF__MEMORY_DESTROY = 4
};

typedef struct mtprof__memory_action {
    int64_t time_ns; /* Unix time; PREEXISTING: -1 */
    int64_t bytes;   /* signed */
    uint8_t verb;    /* enum mtprof__memory_verb */
    uint8_t category;
    int64_t allocated; /* what the device's allocator held then; -1: not known yet */
    uint64_t owner;    /* id of the op or scope around it, 0: none */
} mtprof__memory_action;

/* Takes an action; not 0 ends the replay. */
typedef int mtprof__memory_sink(void *context, const mtprof__memory_action *action);

/* Second pass: fed with the same edges as the classifier. */
typedef struct mtprof__memory_replay {
    const mtprof__memory_plan *plan;
    mtprof__addresses live;
    uint64_t ordinal;
    size_t next_block, next_found, next_change;
    int64_t offset_ns; /* Unix time minus trace time */
    int64_t last_ns;
    int64_t allocated; /* on the device, as last reported */
    uint64_t owner;    /* of the current edge */
    uint8_t device;    /* whose actions go to the sink */
    mtprof__memory_sink *sink;
    void *context;
} mtprof__memory_replay;

/* Reports what is PREEXISTING. Set plan, offset_ns, device, sink and context. Fails with ENOMEM,
 * and as the sink does. */
int mtprof__replay_start(mtprof__memory_replay *replay);
int mtprof__replay_feed(mtprof__memory_replay *replay, const mtprof__event *event);
void mtprof__replay_fini(mtprof__memory_replay *replay);

typedef struct mtprof__memory_timeline {
    mtprof__export_job *job;
    mtprof__classifier *classifier; /* during the first pass */
    mtprof__memory_plan plan;
    uint32_t device;
    char device_name[64];      /* "npu:0", "cpu" */
    int64_t first_ns, last_ns; /* Unix time of the first and last allocation of any device */
    uint64_t spans;            /* events that were read */
} mtprof__memory_timeline;

enum {
    MTPROF__MEMORY_MISSING_BYTES = 128
};

/* Whether the trace has what a timeline takes; if not, the text says what is missing, flags in
 * torch's words and order (torch-contract 6.2.1). */
bool mtprof__memory_is_recorded(const mtprof_model_info *info, char *missing, size_t size);

/* Checks that the trace has what it takes (ENOTSUP), finds the device (EINVAL) and makes the plan.
 * Fails also as the event stream does. To be ended with fini in any case. */
int mtprof__memory_prepare(mtprof__export_job *job, mtprof__memory_timeline *timeline);

/* Reports all actions. Steps (may be NULL) also gets the BEGIN edge of each step. */
int mtprof__memory_run(mtprof__memory_timeline *timeline, mtprof__memory_sink *sink,
                       void (*steps)(void *context, const mtprof__event *event), void *context);

void mtprof__memory_timeline_fini(mtprof__memory_timeline *timeline);

/* "PARAMETER" … "UNKNOWN", and as people write it. */
extern const char *const mtprof__memory_labels[MTPROF__MEMORY_CATEGORY_COUNT];

#endif /* MTPROF_EXPORT_MEMORY_MEMORY_TIMELINE_H */
