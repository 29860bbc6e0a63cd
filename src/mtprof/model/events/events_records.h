/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of an event stream over records: slots merged by time, device work tied to launches.
 *
 *     slot ─┐ heap by (epoch, time, slot)                    ┌─► edges of threads
 *     slot ─┼──────────────► host (events_host.c) ─ launches ┤
 *     slot ─┘                                                │
 *     source ── time ──────► device (events_device.c) ───────┴─► spans of queues, annotations
 *
 * Merging by time gives correlation ids in one pass (docs/format.md 3.6), ends that another slot
 * records meet their scopes, and only what is open or in flight is in memory.
 */
#ifndef MTPROF_MODEL_EVENTS_EVENTS_RECORDS_H
#define MTPROF_MODEL_EVENTS_EVENTS_RECORDS_H

#include "base/compiler.h"
#include "mtprof/model/columns/build_source.h"
#include "mtprof/model/events/early_work.h"
#include "mtprof/model/events/events_impl.h"
#include "mtprof/model/events/launch_table.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/slot/slot_stream.h"
#include "mtprof/model/step_clock.h"

enum {
    MTPROF__TEXT_CACHE = 256,
    MTPROF__MEMORY_DEVICES = 256
};

/*
 * The event of a scope on a slot's stack, made when it is needed (scope->made). Until then the
 * scope itself is enough: its `user` is the event's index, and scope->shown says that its BEGIN was
 * shown and its END was not.
 */
typedef struct mtprof__live {
    mtprof__event event;
    mtprof__annotation *annotation; /* held while the scope, or one inside it, is on the stack;
                                       NULL: nothing was launched in it */
    mtprof__annotation *foreign; /* held: the one around a scope whose parent is on another slot */
} mtprof__live;

/* Numbers of a block's events. */
typedef struct mtprof__block_ids {
    uint64_t first_index, first_id;
} mtprof__block_ids;

typedef struct mtprof__slot_context {
    mtprof__slot slot;
    mtprof__live *live; /* by place on the stack */
    size_t n_live;
    uint32_t *shown; /* places whose BEGIN was shown, in that order */
    size_t n_shown, shown_capacity;
    uint64_t thread; /* looked up last; UINT64_MAX: none yet, as threads may have any number */
    uint32_t track;
    int64_t ended_ns; /* of the latest END that was shown */
    mtprof__step_clock steps;
    struct {
        uint32_t string, name;
        mtprof_text text;
    } names[MTPROF__TEXT_CACHE];
} mtprof__slot_context;

enum {
    MTPROF__ANNOTATIONS_KEPT = 128
};

/* What a queue has shown, so that what comes next fits in. Annotations come late and out of order,
 * but not by much: the latest ones are enough to compare with. */
struct mtprof__queue_state {
    int64_t end_ns; /* of the latest work */
    size_t n;       /* annotations so far */
    struct {
        int64_t start_ns, end_ns;
    } annotations[MTPROF__ANNOTATIONS_KEPT];
};

typedef struct mtprof__record_events {
    mtprof__events head;
    mtprof_model *model;
    mtprof__slot_context *slots;
    size_t n_slots;
    uint32_t *heap; /* slots that have something fetched */
    size_t n_heap;
    bool released; /* no scope holds an annotation any more */
    bool advance;  /* the top of the heap has been applied and must be fetched again */

    mtprof__source_stream *sources;
    bool *source_ready; /* its `work` waits */
    size_t n_sources;
    size_t refill; /* source whose piece was shown last; n_sources: none */
    mtprof__step_clock steps;

    /* Numbers */
    mtprof__block_ids *blocks;
    uint32_t block; /* of the latest begin */
    uint64_t next_index;
    uint64_t free_id;

    /* A scope that ends, with those above it that must go before. */
    mtprof__slot_context *closing;
    uint32_t closing_at;
    int64_t closing_ns;

    mtprof__launch_table launches;
    mtprof__annotation *annotation; /* whose spans are being shown */
    size_t annotation_span;
    uint64_t launched; /* key of a launch that early work may wait for; 0: none */
    mtprof__early_work early;
    mtprof__early at_hand;              /* the early one being shown */
    struct mtprof__queue_state *queues; /* by track */
    size_t n_queues;

    int64_t reserved[MTPROF__MEMORY_DEVICES];
    mtprof__event event; /* points and spans */
} mtprof__record_events;

/* events_host.c: what an edge of a slot means. EEND: nothing to show. */
int mtprof__host_edge(mtprof__record_events *r, mtprof__slot_context *c,
                      enum mtprof__slot_edge edge, const mtprof__event **event);
/* The scope at slot.at has ended. EEND: nothing to show. */
int mtprof__host_end(mtprof__record_events *r, mtprof__slot_context *c,
                     const mtprof__event **event);
/* Looks up a name of the reader and puts it into c->names; its number. */
uint32_t mtprof__host_look_up_name(const mtprof__record_events *r, mtprof__slot_context *c,
                                   uint32_t string);
/* Room for one more in c->shown. Fails with ENOMEM. */
int mtprof__host_grow_shown(mtprof__slot_context *c);
/* Whether a scope that begins names a task. */
bool mtprof__host_in_task(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at);
/* An event of another block than the one before it. */
void mtprof__host_enter_block(mtprof__record_events *r, uint32_t block);
/* Gives back the annotations that a place on a stack holds. */
void mtprof__live_release(mtprof__record_events *r, mtprof__live *live);
/* The next END of those that r->closing asks for; EEND: all done. */
int mtprof__host_close(mtprof__record_events *r, const mtprof__event **out);

/* Plain steps of the slot, up to a time; how many. */
size_t mtprof__host_plain(mtprof__record_events *r, mtprof__slot_context *c, int64_t limit_ns,
                          mtprof__plain_step *steps, size_t room);

/* events_device.c: device work up to a time. EEND: none. */
int mtprof__device_work(mtprof__record_events *r, int64_t until_ns, const mtprof__event **event);
/* Spans of annotations that are done. EEND: none. */
int mtprof__device_annotations(mtprof__record_events *r, const mtprof__event **event);
/* Work that waited for the launch r->launched, where there is some: its event; EEND: none. */
int mtprof__device_launched(mtprof__record_events *r, const mtprof__event **event);
/* At the end: what nothing answers. EEND: all shown. */
int mtprof__device_rest(mtprof__record_events *r, const mtprof__event **event);
void mtprof__device_fini(mtprof__record_events *r);

/* The next event of a block gets the next index. */
MT_INLINE uint64_t mtprof__host_next_index(mtprof__record_events *r, uint32_t block)
{
    if (MT_UNLIKELY(block != r->block)) {
        mtprof__host_enter_block(r, block);
    }
    uint64_t index = r->next_index++;
    uint64_t id = r->blocks[block].first_id + (index - r->blocks[block].first_index);
    if (MT_UNLIKELY(id >= r->free_id)) {
        r->free_id = id + 1; /* only blocks without reserved ids get here */
    }
    return index;
}

/* Numbers the scope at slot.at, which begins, and notes that it is shown. Asynchronous ones are
 * not: they are when they end. */
MT_INLINE int mtprof__host_begin_shown(mtprof__record_events *r, mtprof__slot_context *c)
{
    uint32_t at = c->slot.at;
    mtprof__scope *scope = &c->slot.scopes[at];
    scope->user = mtprof__host_next_index(r, scope->block);
    if (MT_UNLIKELY(c->n_shown == c->shown_capacity)) {
        int status = mtprof__host_grow_shown(c);
        if (status != MTPROF_OK) {
            return status;
        }
    }
    if (MT_UNLIKELY(r->head.split_tasks && scope->has_payload &&
                    scope->kind == MTPROF_EVENT_KIND_SCOPE)) {
        scope->apart = mtprof__host_in_task(r, c, at);
    }
    scope->shown = (scope->flags & MTPROF_EVENT_FLAG_ASYNC) == 0 && !scope->apart;
    c->shown[c->n_shown] = at;
    c->n_shown += scope->shown;
    return MTPROF_OK;
}

#endif /* MTPROF_MODEL_EVENTS_EVENTS_RECORDS_H */
