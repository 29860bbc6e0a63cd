/* SPDX-License-Identifier: Apache-2.0
 */
#include "model_maker.h"

#include "harness/mt_test.h"

#include <string.h>

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

mtprof_model *mm_model(void)
{
    static const char *const names[MM_THREADS] = {"main", "worker", ""};
    mtprof_model *model = NULL;
    uint32_t number;
    REQUIRE_OK(mtprof__model_new_foreign(NULL, &model));
    for (uint32_t i = 0; i < MM_THREADS; i++) {
        mtprof_track thread = {
            .pid = 1, .tid = 101 + i, .number = i + 1, .name = text_of(names[i])};
        REQUIRE_OK(mtprof__dictionary_thread_track(&model->dictionary, &thread, &number));
        REQUIRE_EQ_U64(number, i);
    }
    REQUIRE_OK(mtprof__dictionary_device(&model->dictionary, text_of("NPU"), 0, &number));
    REQUIRE_EQ_U64(number, 1);
    REQUIRE_OK(mtprof__dictionary_device(&model->dictionary, text_of("NPU"), 1, &number));
    REQUIRE_OK(mtprof__dictionary_device(&model->dictionary, text_of("CUDA"), 0, &number));
    REQUIRE_EQ_U64(number, 3);
    REQUIRE_OK(mtprof__dictionary_queue_track(&model->dictionary, 1, 7, &number));
    REQUIRE_EQ_U64(number, MM_QUEUE);
    return model;
}

uint32_t mm_name(mtprof_model *model, const char *name)
{
    uint32_t number;
    REQUIRE_OK(mtprof__dictionary_name(&model->dictionary, text_of(name), &number));
    return number;
}

mm_event mm_add(mtprof_model *model, const char *name, int64_t start, int64_t end)
{
    mtprof__columns *c = &model->columns;
    size_t i = c->n;
    REQUIRE_OK(mtprof__columns_reserve(c, i + 1));
    mm_event event = {
        .number = (uint32_t)i,
        .start = &c->start_ns[i],
        .end = &c->end_ns[i],
        .self = &c->self_ns[i],
        .parent = &c->parent[i],
        .name = &c->name[i],
        .track = &c->track[i],
        .step = &c->step[i],
        .kind = &c->kind[i],
        .device = &c->device[i],
        .flags = &c->flags[i],
    };
    *event.start = start;
    *event.end = end;
    *event.self = (int64_t)((uint64_t)end - (uint64_t)start);
    *event.parent = MTPROF_NO_EVENT;
    *event.name = mm_name(model, name);
    *event.track = 0;
    *event.step = -1;
    c->index[i] = (uint32_t)i;
    *event.kind = MTPROF_EVENT_KIND_OP;
    *event.device = 0;
    *event.flags = 0;
    c->n++;
    return event;
}

void mm_set(mtprof_model *model, enum mtprof_column_id id, uint64_t value)
{
    void *column;
    size_t i = model->columns.n - 1;
    REQUIRE_OK(mtprof__columns_extra(&model->columns, id, &column));
    switch (mtprof__column_item_bytes(id)) {
    case 1: ((uint8_t *)column)[i] = (uint8_t)value; break;
    case 4: ((uint32_t *)column)[i] = (uint32_t)value; break;
    default: ((uint64_t *)column)[i] = value; break;
    }
}
