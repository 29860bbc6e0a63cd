/* SPDX-License-Identifier: Apache-2.0
 *
 * Models without a trace: runs made by hand, to be assembled.
 *
 *      mtprof_model *model = rm_model(true);
 *      mtprof__run run = {.order = 1};
 *      rm_add(&run, &(rm_event){.end = 20, .self = 20, .flags = MTPROF_EVENT_FLAG_TOP});
 *      ...
 *      REQUIRE_OK(mtprof__model_assemble(model, &run, 1));
 *      rm_free(model);
 *
 * Running out of memory ends the program.
 */
#ifndef TESTS_SUPPORT_TRACES_RUN_MAKER_H
#define TESTS_SUPPORT_TRACES_RUN_MAKER_H

#include "mtprof/model/model_impl.h"

#include <stdbool.h>

/* An event for a run. Zero is right for most fields: parent is the event + 1, 0 = none. */
typedef struct rm_event {
    int64_t start, end, self;
    uint32_t parent; /* + 1 */
    uint32_t name, track;
    int32_t step;
    uint32_t index;
    uint8_t kind, device;
    uint16_t flags;
} rm_event;

enum {
    RM_NAMES = 8,   /* names 1 to 8 are "a" to "h" */
    RM_THREADS = 6, /* tracks 0 to 5 are threads */
    RM_QUEUES = 4   /* tracks 6 to 9 are queues of device 1 */
};

/* An empty model; native ones are taken for a trace of ours (without a reader). */
mtprof_model *rm_model(bool native);
void rm_free(mtprof_model *model);

/* Appends an event; its place in the run. Device work gets INDEX MTPROF_NO_EVENT. */
uint32_t rm_add(mtprof__run *run, const rm_event *event);

#endif /* TESTS_SUPPORT_TRACES_RUN_MAKER_H */
