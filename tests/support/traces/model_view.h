/* SPDX-License-Identifier: Apache-2.0
 *
 * All columns of a model at hand, for tests: those that are absent are NULL.
 */
#ifndef TESTS_SUPPORT_TRACES_MODEL_VIEW_H
#define TESTS_SUPPORT_TRACES_MODEL_VIEW_H

#include <mtprof/model.h>

#include <stdbool.h>

typedef struct model_view {
    mtprof_model *model;
    size_t n;
    const int64_t *start, *end, *self;
    const uint32_t *parent, *name, *track, *index;
    const int32_t *step;
    const uint8_t *kind, *device;
    const uint16_t *flags;
    const void *columns[MTPROF_COLUMN_COUNT];
} model_view;

/* Asks for every column. False: one failed (reported). */
bool model_view_make(model_view *view, mtprof_model *model);

/* A model of bytes in memory, which are borrowed; options may be NULL. NULL: failed (reported). */
mtprof_model *model_of_bytes(const void *bytes, size_t size, const mtprof_model_options *options);

/*
 * What model.h promises of any trace: MDL1 to MDL3, the order, the tree. False: something does not
 * hold (reported once).
 */
bool model_view_check(const model_view *view);

/* Whether two models say the same in every column, names and tracks by what they stand for. False:
 * they do not (reported, once). */
bool model_view_equal(const model_view *a, const model_view *b);

static inline int64_t view_i64(const model_view *view, int column, size_t event)
{
    return view->columns[column] != NULL ? ((const int64_t *)view->columns[column])[event] : 0;
}

static inline uint32_t view_u32(const model_view *view, int column, size_t event)
{
    return view->columns[column] != NULL ? ((const uint32_t *)view->columns[column])[event] : 0;
}

#endif /* TESTS_SUPPORT_TRACES_MODEL_VIEW_H */
