/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks: instants, counters and flows. They are in no column; a pass over the event stream
 * finds them, so that a trace of any size needs no memory for them.
 */
#include "base/fail.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"

enum {
    REPORT_EVERY = 1 << 16 /* edges between two calls of the progress function */
};

static mtprof_mark mark_of(const mtprof__event *event)
{
    mtprof_mark mark = {.struct_size = sizeof mark,
                        .kind = event->kind,
                        .phase = event->phase,
                        .track = event->track,
                        .step = event->step,
                        .name = event->name_text,
                        .time_ns = event->start_ns,
                        .value = event->value,
                        .parent = event->parent};
    if (event->payload != NULL && (event->payload->fields & MTPROF__HAS_METADATA) != 0) {
        mark.metadata = event->payload->metadata;
        mark.n_metadata = event->payload->n_metadata;
    }
    return mark;
}

static int report(const mtprof_model *model, const mtprof__events *events)
{
    const mtprof_model_options *options = &model->options;
    uint64_t done = 0, total = 0;
    if (options->progress == NULL) {
        return MTPROF_OK;
    }
    mtprof__events_progress(events, &done, &total);
    return options->progress(options->user, "marks", done, total) == 0
               ? MTPROF_OK
               : mtb_fail(MTPROF_ECALLBACK, "model marks: stopped by the progress function");
}

bool mtprof__model_may_have(const mtprof_model *model, uint32_t kinds)
{
    if (model->reader == NULL) {
        return model->n_points > 0;
    }
    return __atomic_load_n(&model->built, __ATOMIC_ACQUIRE) == 0 || /* MI1 */
           (model->points_seen & kinds) != 0;
}

mtprof_status mtprof_model_visit_marks(mtprof_model *model, mtprof_mark_visitor *visitor,
                                       void *user)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    uint64_t edges = 0;
    if (!mtprof__model_may_have(model, MTPROF__KINDS_MARK)) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__events_open(model, &events));
    mtprof__events_skip_begins(events);
    int status = mtprof__events_next(events, &event);
    while (status == MTPROF_OK) {
        if (mtprof__kind_in(event->kind, MTPROF__KINDS_MARK)) {
            mtprof_mark mark = mark_of(event);
            if (visitor(user, &mark) != 0) {
                status = mtb_fail(MTPROF_ECALLBACK, "model marks: stopped by the visitor");
                break;
            }
        }
        if (++edges % REPORT_EVERY == 0) {
            status = report(model, events);
        }
        status = status == MTPROF_OK ? mtprof__events_next(events, &event) : status;
    }
    mtprof__events_close(events);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}
