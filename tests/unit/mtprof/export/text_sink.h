/* SPDX-License-Identifier: Apache-2.0
 *
 * An output that keeps what it gets, and can fail.
 */
#ifndef TESTS_UNIT_MTPROF_EXPORT_TEXT_SINK_H
#define TESTS_UNIT_MTPROF_EXPORT_TEXT_SINK_H

#include "harness/mt_test.h"

#include <mtprof/export.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_sink {
    char *text; /* followed by a zero byte */
    size_t length, capacity;
    size_t fail_after; /* bytes; 0: never */
} text_sink;

static inline int text_sink_write(void *context, const void *bytes, size_t length)
{
    text_sink *s = context;
    if (s->fail_after != 0 && s->length + length > s->fail_after) {
        return EPIPE;
    }
    if (s->length + length + 1 > s->capacity) {
        s->capacity = 2 * (s->length + length + 1);
        s->text = realloc(s->text, s->capacity);
        REQUIRE(s->text != NULL);
    }
    memcpy(s->text + s->length, bytes, length);
    s->length += length;
    s->text[s->length] = '\0';
    return 0;
}

/* The export of a model as text, NULL where it failed; to be freed. */
static inline char *text_export(mtprof_model *model, enum mtprof_export_format format,
                                const mtprof_export_options *options, mtprof_status *status)
{
    text_sink sink = {0};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &sink, .write = text_sink_write};
    *status = mtprof_export_to(model, format, &output, options);
    if (*status != MTPROF_OK) {
        free(sink.text);
        return NULL;
    }
    return sink.text;
}

#endif /* TESTS_UNIT_MTPROF_EXPORT_TEXT_SINK_H */
