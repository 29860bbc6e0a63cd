/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a recording, by name and by kind, for tests of programs that record. Only the columns
 * that are asked for are made, so it suits long recordings; model_view.h has them all.
 */
#ifndef TESTS_SUPPORT_TRACES_MODEL_EVENTS_H
#define TESTS_SUPPORT_TRACES_MODEL_EVENTS_H

#include "harness/mt_test.h"

#include <mtprof/model.h>

#include <string.h>

/* What every event has. */
typedef struct model_events {
    mtprof_model *model;
    uint64_t count;
    const int64_t *start, *end;
    const uint32_t *name, *track;
    const int32_t *step;
    const uint8_t *kind;
    const uint16_t *flags;
    mtprof_health health;
} model_events;

/* One column; NULL where it was not recorded. */
static inline const void *model_column(mtprof_model *model, enum mtprof_column_id id,
                                       uint64_t *count)
{
    mtprof_column found;
    REQUIRE_OK(mtprof_model_get_column(model, id, &found));
    *count = found.count;
    return found.data;
}

static inline bool model_name_is(mtprof_model *model, uint32_t name, const char *text)
{
    mtprof_text found = mtprof_model_name(model, name);
    return found.length == strlen(text) && memcmp(found.bytes, text, found.length) == 0;
}

/* The model stays the caller's. */
static inline model_events model_events_of(mtprof_model *model)
{
    model_events e = {.model = model, .health = {.struct_size = sizeof e.health}};
    e.start = model_column(model, MTPROF_COLUMN_START_NS, &e.count);
    e.end = model_column(model, MTPROF_COLUMN_END_NS, &e.count);
    e.name = model_column(model, MTPROF_COLUMN_NAME, &e.count);
    e.track = model_column(model, MTPROF_COLUMN_TRACK, &e.count);
    e.step = model_column(model, MTPROF_COLUMN_STEP, &e.count);
    e.kind = model_column(model, MTPROF_COLUMN_KIND, &e.count);
    e.flags = model_column(model, MTPROF_COLUMN_FLAGS, &e.count);
    REQUIRE_OK(mtprof_model_get_health(model, &e.health));
    return e;
}

static inline bool event_is_named(const model_events *e, uint64_t event, const char *text)
{
    return model_name_is(e->model, e->name[event], text);
}

static inline uint64_t count_named(const model_events *e, const char *text)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        found += event_is_named(e, i, text);
    }
    return found;
}

static inline uint64_t count_kind(const model_events *e, enum mtprof_event_kind kind)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        found += e->kind[i] == kind;
    }
    return found;
}

/* The first event with this name and kind; fails where there is none. */
static inline uint64_t find_event(const model_events *e, enum mtprof_event_kind kind,
                                  const char *text)
{
    for (uint64_t i = 0; i < e->count; i++) {
        if (e->kind[i] == kind && event_is_named(e, i, text)) {
            return i;
        }
    }
    FAIL("there is no %s", text);
    return 0;
}

#endif /* TESTS_SUPPORT_TRACES_MODEL_EVENTS_H */
