/* SPDX-License-Identifier: Apache-2.0
 *
 * Models without a trace, see run_maker.h.
 */
#include "support/traces/run_maker.h"

#include "mtprof/model/columns/assemble_impl.h"

#include <stdio.h>
#include <stdlib.h>

static void need(int status)
{
    if (status != MTPROF_OK) {
        (void)fprintf(stderr, "run_maker: status %d\n", status);
        abort();
    }
}

mtprof_model *rm_model(bool native)
{
    mtprof_model *model = calloc(1, sizeof *model);
    uint32_t number;
    if (model == NULL) {
        abort();
    }
    mtb_lock_init(&model->lock, MTB_RANK_MODEL);
    need(mtprof__dictionary_init(&model->dictionary, NULL));
    for (int i = 0; i < RM_NAMES; i++) {
        char c = (char)('a' + i);
        need(
            mtprof__dictionary_name(&model->dictionary, (mtprof_text){(char[]){c, 0}, 1}, &number));
    }
    for (int i = 0; i < RM_THREADS; i++) {
        mtprof_track thread = {.pid = 1, .tid = 100 + i, .number = (uint32_t)i + 1};
        need(mtprof__dictionary_thread_track(&model->dictionary, &thread, &number));
    }
    need(mtprof__dictionary_device(&model->dictionary, (mtprof_text){"NPU", 3}, 0, &number));
    for (uint32_t i = 0; i < RM_QUEUES; i++) {
        need(mtprof__dictionary_queue_track(&model->dictionary, 1, i, &number));
    }
    /* Only that there is one is asked for. */
    model->reader = native ? (mtprof_reader *)(void *)model : NULL;
    return model;
}

void rm_free(mtprof_model *model)
{
    mtprof__model_derived_fini(model);
    mtprof__columns_fini(&model->columns);
    mtprof__dictionary_fini(&model->dictionary);
    mtb_lock_fini(&model->lock);
    free(model->epochs);
    free(model->points);
    free(model);
}

uint32_t rm_add(mtprof__run *run, const rm_event *event)
{
    mtprof__columns *columns = &run->columns;
    size_t i = columns->n;
    need(mtprof__columns_reserve(columns, i + 1));
    columns->start_ns[i] = event->start;
    columns->end_ns[i] = event->end;
    columns->self_ns[i] = event->self;
    columns->parent[i] = event->parent - 1; /* 0 becomes MTPROF_NO_EVENT */
    columns->name[i] = event->name;
    columns->track[i] = event->track;
    columns->step[i] = event->step;
    columns->index[i] =
        mtprof__kind_in(event->kind, MTPROF__KINDS_DEVICE) ? MTPROF_NO_EVENT : event->index;
    columns->kind[i] = event->kind;
    columns->device[i] = event->device;
    columns->flags[i] = event->flags;
    columns->n++;
    return (uint32_t)i;
}
