/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose columns are filled in by hand, so that a test says exactly what averages read.
 *
 *      mtprof_model *model = mm_model();
 *      mm_add(model, "aten::add", 10, 30)->self = 20;      (the latest event can be changed)
 *      ...
 *      mtprof_model_free(model);
 *
 * Running out of memory ends the case.
 */
#ifndef TESTS_UNIT_MTPROF_ANALYZE_MODEL_MAKER_H
#define TESTS_UNIT_MTPROF_ANALYZE_MODEL_MAKER_H

#include "mtprof/model/model_impl.h"

/* Pointers to what an event has in the columns that are always there. */
typedef struct mm_event {
    uint32_t number;
    int64_t *start, *end, *self;
    uint32_t *parent, *name, *track;
    int32_t *step;
    uint8_t *kind, *device;
    uint16_t *flags;
} mm_event;

enum {
    MM_THREADS = 3, /* tracks 0 to 2: threads 101 "main", 102 "worker", 103 without a name */
    MM_QUEUE = 3    /* track of the queue of device 1 */
};

/* Devices 1 and 2 are "NPU" 0 and 1, device 3 is "CUDA" 0. */
mtprof_model *mm_model(void);

/* An op with this name and time, self time its duration, no parent, on thread 0, step -1. */
mm_event mm_add(mtprof_model *model, const char *name, int64_t start, int64_t end);

uint32_t mm_name(mtprof_model *model, const char *name);

/* Sets a number of the latest event in one of the further columns. */
void mm_set(mtprof_model *model, enum mtprof_column_id id, uint64_t value);

#endif /* TESTS_UNIT_MTPROF_ANALYZE_MODEL_MAKER_H */
