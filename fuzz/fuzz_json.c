/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a foreign trace: an error, or a model that keeps all promises, with columns, event
 * stream and averages that can be walked.
 *
 * The first byte chooses: bit 0 puts the rest into an array of events, so that a fuzzer need not
 * find the document around them first. The other bits pick what is asked of the model; 0:
 * everything.
 */
#include "base/fail.h"
#include "fuzz_require.h"
#include "mtprof/import/import_impl.h"
#include "mtprof/model/events/event.h"
#include "use_exports.h"
#include "use_file.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    OTHERS_EVERY = 8
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static volatile uint64_t sink;

static void use_text(mtprof_text text)
{
    require(text.bytes != NULL);
    require(text.bytes[text.length] == '\0');
    sink += text.length;
}

static void use_columns(mtprof_model *model)
{
    mtprof_column column;
    for (uint32_t id = 0; id < MTPROF_COLUMN_COUNT; id++) {
        require(mtprof_model_get_column(model, (enum mtprof_column_id)id, &column) == MTPROF_OK);
        require(column.data != NULL || id > MTPROF_COLUMN_FLAGS);
        if (column.count > 0) {
            sink += ((const unsigned char *)column.data)[column.count * column.item_bytes - 1];
        }
    }
    require(mtprof__model_verify(model));
}

static void use_lists(mtprof_model *model)
{
    const uint64_t *words;
    uint32_t n;
    mtprof_metadatum item;
    const mtprof__columns *columns = &model->columns;
    const uint32_t *inputs = columns->extra[MTPROF_COLUMN_INPUTS];
    const uint32_t *stacks = columns->extra[MTPROF_COLUMN_STACK];
    const uint32_t *metadata = columns->extra[MTPROF_COLUMN_METADATA];
    for (size_t i = 0; i < columns->n; i++) {
        use_text(mtprof_model_name(model, columns->name[i]));
        if (inputs != NULL && inputs[i] != 0) {
            require(mtprof_model_inputs(model, inputs[i], &words, &n) && n > 0);
        }
        uint32_t node = stacks != NULL ? stacks[i] : 0;
        mtprof_frame frame;
        while (node != 0) {
            uint32_t above = node;
            require(mtprof_model_stack(model, node, &node, &frame));
            require(node < above); /* no circles */
            use_text(frame.function);
            use_text(frame.file);
        }
        for (uint32_t k = 0; metadata != NULL && metadata[i] != 0 &&
                             mtprof_model_event_metadata(model, metadata[i], k, &item);
             k++) {
            use_text(item.key);
            use_text(item.text);
        }
    }
    for (uint32_t k = 0; mtprof_model_metadata(model, k, &item); k++) {
        use_text(item.key);
    }
}

/* event.h EVT1 and EVT2 by counting: as many ends as begins, times that do not go back. */
static void use_stream(mtprof_model *model)
{
    mtprof__events *events = NULL;
    const mtprof__event *event;
    size_t tracks = model->dictionary.n_tracks + 1;
    int64_t *last = calloc(tracks, sizeof *last);
    int64_t *open = calloc(tracks, sizeof *open);
    require(last != NULL && open != NULL);
    for (size_t i = 0; i < tracks; i++) {
        last[i] = INT64_MIN;
    }
    require(mtprof__events_open(model, &events) == MTPROF_OK);
    int status;
    while ((status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        require(event->track < tracks - 1);
        use_text(event->name_text);
        require(event->shown_start_ns <= event->shown_end_ns);
        if (event->edge == MTPROF__EDGE_BEGIN || event->edge == MTPROF__EDGE_END) {
            bool begins = event->edge == MTPROF__EDGE_BEGIN;
            int64_t at = begins ? event->shown_start_ns : event->shown_end_ns;
            require(at >= last[event->track]);
            last[event->track] = at;
            open[event->track] += begins ? 1 : -1;
            require(open[event->track] >= 0);
        }
    }
    require(status == MTPROF_EEND);
    for (size_t i = 0; i < tracks; i++) {
        require(open[i] == 0);
    }
    mtprof__events_close(events);
    free(last);
    free(open);
}

static void use_averages(mtprof_model *model)
{
    mtprof_averages_options options = {
        .struct_size = sizeof options, .group = MTPROF_GROUP_SHAPES, .stack_n = 2};
    mtprof_averages *averages = NULL;
    require(mtprof_averages_new(model, &options, &averages) == MTPROF_OK);
    mtprof_row row = {.struct_size = sizeof row};
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        require(mtprof_averages_get_row(averages, i, &row) == MTPROF_OK);
        use_text(row.key);
    }
    mtprof_averages_free(averages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    if (size_bytes == 0) {
        return 0;
    }
    bool wrap = (data[0] & 1) != 0;
    char *text = malloc(size_bytes + 1);
    require(text != NULL);
    text[0] = '[';
    memcpy(text + 1, data + 1, size_bytes - 1);
    text[size_bytes] = ']';
    const char *from = wrap ? text : text + 1;
    size_t length = wrap ? size_bytes + 1 : size_bytes - 1;
    mtprof__source source;
    mtprof_model *model = NULL;
    require(mtprof__source_open_memory(&source, "fuzz", from, length) == MTPROF_OK);
    int status = mtprof__import_source(&source, NULL, &model);
    mtprof__source_close(&source);
    uint8_t which = data[0] >> 1; /* 0: everything */
    if (which == 0 || which % OTHERS_EVERY == 1) {
        use_check(from, length);
    }
    free(text);
    require((status == MTPROF_OK) == (model != NULL));
    if (model != NULL) {
        use_columns(model);
        use_lists(model);
        use_stream(model);
        if (which % OTHERS_EVERY == 0) {
            use_averages(model);
        }
        if (which == 0 || which % OTHERS_EVERY > 1) {
            use_exports(model, which);
        }
    } else {
        require(status == MTPROF_EFORMAT);
        require(mtb_last_failure()->message[0] != '\0');
    }
    mtprof_model_free(model);
    return 0;
}
