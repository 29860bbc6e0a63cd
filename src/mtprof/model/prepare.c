/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model of a trace of ours knows before it reads a single event: which epochs it covers,
 * when steps began, what was recorded and on what.
 */
#include "mtprof/model/prepare.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/step_clock.h"
#include "mtprof/read/reader_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- epochs ---------------------------------------------------------------------------------- */

/* A window that pauses has several epochs, all neighbours, and only its last close says whether it
 * was kept. `first` is the first of them. */
static bool window_discarded(const mtprof__control_read *control, size_t first)
{
    uint32_t window = control->epochs[first].window;
    for (size_t i = first; i < control->n_epochs && control->epochs[i].window == window; i++) {
        if (control->epochs[i].close_kind == MTPROF_CLOSE_DISCARDED) {
            return true;
        }
    }
    return false;
}

static bool is_covered(const mtprof_model *model, const mtprof_epoch_info *epoch, bool discarded)
{
    const mtprof_model_options *options = &model->options;
    if (options->first_window != 0 && epoch->window < options->first_window) {
        return false;
    }
    if (options->last_window != 0 && epoch->window > options->last_window) {
        return false;
    }
    return options->discarded != 0 || !discarded;
}

/* Ids are below 2^53 (docs/format.md 3.6); a trace that says otherwise says nothing. */
static bool has_ids(const mtprof_epoch_info *epoch)
{
    const uint64_t most = (uint64_t)1 << 53;
    return epoch->correlation_first != 0 && epoch->correlation_count <= most &&
           epoch->correlation_first <= most - epoch->correlation_count;
}

static void fill_block(const mtprof_reader *reader, const mtprof_epoch_info *epoch,
                       mtprof__epoch_block *block)
{
    *block = (mtprof__epoch_block){
        .epoch = epoch->epoch,
        .window = epoch->window,
        .first_id = epoch->correlation_first,
        .closed = epoch->close_kind != MTPROF_CLOSE_NONE,
        .id_known = epoch->close_kind != MTPROF_CLOSE_NONE && has_ids(epoch),
        .open_ns = mtprof_reader_ns(reader, epoch->open_ticks),
        .close_ns = mtprof_reader_ns(reader, epoch->close_ticks),
        .first_step = epoch->step > INT32_MAX ? INT32_MAX : (int32_t)epoch->step,
    };
    if (block->close_ns < block->open_ns) {
        block->close_ns = block->open_ns;
    }
}

/* An epoch without a close ends with the last time seen in the trace. */
static int end_open_epochs(mtprof_model *model)
{
    const mtprof_reader *reader = model->reader;
    uint32_t n = model->n_epochs;
    bool wanted = model->strays;
    for (uint32_t i = 0; i < n; i++) {
        wanted = wanted || !model->epochs[i].closed;
    }
    uint64_t ticks = 0;
    if (!wanted) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__reader_last_ticks(reader, &ticks));
    int64_t last = mtprof_reader_ns(reader, ticks);
    for (uint32_t i = 0; i < n; i++) {
        if (!model->epochs[i].closed && last > model->epochs[i].close_ns) {
            model->epochs[i].close_ns = last;
        }
    }
    return MTPROF_OK;
}

static int prepare_epochs(mtprof_model *model)
{
    const mtprof_reader *reader = model->reader;
    const mtprof__control_read *control = &reader->control;
    model->epochs = mtb_calloc(control->n_epochs + 1, sizeof *model->epochs);
    if (model->epochs == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for its epochs");
    }
    bool discarded = false;
    for (size_t i = 0; i < control->n_epochs; i++) {
        const mtprof_epoch_info *epoch = &control->epochs[i];
        if (i == 0 || epoch->window != epoch[-1].window) {
            discarded = window_discarded(control, i);
        }
        if (!is_covered(model, epoch, discarded)) {
            continue;
        }
        mtprof__epoch_block *block = &model->epochs[model->n_epochs++];
        fill_block(reader, epoch, block);
        model->info.wants |= epoch->gate;
        model->info.windows +=
            model->n_epochs == 1 || block->window != model->epochs[model->n_epochs - 2].window;
    }
    /* A damaged control stream must not hide events: whatever epoch it does not know is kept. */
    model->strays = model->options.first_window == 0 && model->options.last_window == 0;
    if (model->strays) {
        model->epochs[model->n_epochs++] = (mtprof__epoch_block){
            .epoch = UINT32_MAX, .open_ns = INT64_MAX, .close_ns = INT64_MIN, .first_step = -1};
    }
    return end_open_epochs(model);
}

/* Ids after the last block known, where none was reserved. */
uint64_t mtprof__model_free_id(const mtprof_model *model)
{
    uint64_t next = 1;
    const mtprof__control_read *control = &model->reader->control;
    for (size_t i = 0; i < control->n_epochs; i++) {
        const mtprof_epoch_info *epoch = &control->epochs[i];
        uint64_t behind = epoch->correlation_first + epoch->correlation_count;
        next = has_ids(epoch) && behind > next ? behind : next;
    }
    return next;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int compare_marks(const void *a, const void *b)
{
    const mtprof__step_mark *left = a;
    const mtprof__step_mark *right = b;
    int order = mtb_order(left->start_ns, right->start_ns);
    return order != 0 ? order : mtb_order(left->step, right->step); /* a later step wins */
}

static int add_mark(mtprof_model *model, size_t *capacity, int64_t ns, int64_t step)
{
    return mtb_append(model->steps, model->n_steps, *capacity, &(mtprof__step_mark){ns, step})
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "make model: no memory for its steps");
}

static int read_marks(mtprof_model *model, uint32_t stream, size_t *capacity)
{
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    MT_TRY(mtprof_cursor_open(model->reader, stream, &cursor));
    int status = MTPROF_OK;
    while (status != MTPROF_EEND && status != MTPROF_ENOMEM) {
        status = mtprof_cursor_next(cursor, &record);
        if (status == MTPROF_OK && record.kind == MTPROF_REC_STEP) {
            int64_t step = record.words[1] > INT32_MAX ? INT32_MAX : (int64_t)record.words[1];
            status = add_mark(model, capacity, mtprof_reader_ns(model->reader, record.ticks), step);
        }
    }
    mtprof_cursor_close(cursor);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

static int prepare_steps(mtprof_model *model)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < model->n_epochs; i++) {
        const mtprof__epoch_block *block = &model->epochs[i];
        if (block->open_ns != INT64_MAX) {
            MT_TRY(add_mark(model, &capacity, block->open_ns, block->first_step));
        }
    }
    const mtprof__chunk_index *index = &model->reader->index;
    for (uint32_t i = 0; i < index->n_streams; i++) {
        if (index->streams[i].kind == MTPROF_STREAM_CONTROL) {
            MT_TRY(read_marks(model, i, &capacity));
        }
    }
    if (model->n_steps > 1) {
        qsort(model->steps, model->n_steps, sizeof *model->steps, compare_marks);
    }
    return MTPROF_OK;
}

void mtprof__step_clock_init(mtprof__step_clock *clock, const mtprof_model *model)
{
    *clock = (mtprof__step_clock){.model = model, .low = 1, .high = 0, .step = -1};
}

static bool begins_by(const void *mark, uint64_t ns)
{
    return ((const mtprof__step_mark *)mark)->start_ns <= (int64_t)ns;
}

int32_t mtprof__step_clock_seek(mtprof__step_clock *clock, int64_t ns)
{
    const mtprof_model *model = clock->model;
    size_t low =
        mtb_search(model->steps, model->n_steps, sizeof *model->steps, begins_by, (uint64_t)ns);
    clock->low = low > 0 ? model->steps[low - 1].start_ns : INT64_MIN;
    clock->high = low < model->n_steps ? model->steps[low].start_ns : INT64_MAX;
    clock->step = low > 0 ? (int32_t)model->steps[low - 1].step : -1;
    return clock->step;
}

/* ---- identities ------------------------------------------------------------------------------ */

static void prepare_info(mtprof_model *model)
{
    const mtprof_reader *reader = model->reader;
    mtprof_model_info *info = &model->info;
    info->pid = reader->info.pid;
    info->real_offset_ns = mtprof_reader_real_offset(reader);
    info->closed = reader->info.closed;
    memcpy(info->uuid, reader->info.uuid, sizeof info->uuid);
    uint32_t covered = model->n_epochs - (model->strays ? 1 : 0);
    if (covered > 0) {
        info->start_ns = model->epochs[0].open_ns;
        info->end_ns = model->epochs[covered - 1].close_ns;
    } else {
        info->start_ns = mtprof_reader_ns(reader, reader->info.start_ticks);
        info->end_ns = model->strays ? model->epochs[model->n_epochs - 1].close_ns
                                     : mtprof_reader_ns(reader, reader->info.end_ticks);
    }
    if (info->end_ns < info->start_ns) {
        info->end_ns = info->start_ns;
    }
}

/* The recorder notes what its program is called. */
static void prepare_process(mtprof_model *model)
{
    mtprof_text key;
    mtprof_text value;
    bool is_json = false;
    model->process_name = (mtprof_text){"", 0};
    for (uint32_t i = 0; mtprof_reader_metadata(model->reader, i, &key, &value, &is_json); i++) {
        if (!is_json && mtprof__text_is(key, "process_name")) {
            model->process_name = value;
        }
    }
}

/* Every source that represents a device has its type; the first is the trace's accelerator. */
static void prepare_device(mtprof_model *model)
{
    const mtprof__chunk_index *index = &model->reader->index;
    mtprof_text name;
    mtprof_text type;
    for (uint32_t i = 0; i < index->n_streams && model->info.device_type == NULL; i++) {
        const mtprof__read_stream *stream = &index->streams[i];
        if (stream->kind == MTPROF_STREAM_SOURCE &&
            mtprof_reader_source(model->reader, stream->slot, &name, &type) && type.length > 0) {
            model->info.device_type = type.bytes;
        }
    }
}

int mtprof__model_device(mtprof_model *model, uint32_t number, uint32_t *device)
{
    *device = 0;
    if (number == 0) {
        return MTPROF_OK;
    }
    const char *type = model->info.device_type != NULL ? model->info.device_type : "NPU";
    return mtprof__dictionary_device(&model->dictionary, (mtprof_text){type, strlen(type)},
                                     (int32_t)(number - 1), device);
}

int mtprof__model_thread_track(mtprof_model *model, uint32_t thread, uint32_t *track)
{
    mtprof_thread_info info = {.number = thread, .name = {"", 0}};
    (void)mtprof_reader_thread(model->reader, thread, &info);
    mtprof_track entry = {
        .number = thread,
        .pid = (int64_t)model->info.pid,
        .tid = info.os_id != 0 ? (int64_t)info.os_id : (int64_t)thread,
        .pthread_id = info.pthread_id,
        .name = info.name,
        .process_name = model->process_name,
    };
    return mtprof__dictionary_thread_track(&model->dictionary, &entry, track);
}

/* ---- what a limit of the overhead left out --------------------------------------------------- */

static int compare_unrecorded(const void *a, const void *b)
{
    const mtprof__unrecorded *left = a;
    const mtprof__unrecorded *right = b;
    return mtb_order(left->name, right->name);
}

static int prepare_unrecorded(mtprof_model *model)
{
    size_t capacity = 0;
    mtprof_unrecorded_info info;
    for (uint32_t i = 0; mtprof_reader_unrecorded(model->reader, i, &info); i++) {
        if (info.what != MTPROF_UNRECORDED_SAMPLED || info.name == 0) {
            continue;
        }
        uint32_t name = mtprof__dictionary_string_name(&model->dictionary, info.name);
        const mtprof__unrecorded item = {mtprof_model_name_key(model, name), info.count};
        if (!mtb_append(model->unrecorded, model->n_unrecorded, capacity, &item)) {
            return mtb_fail(MTPROF_ENOMEM, "make model: no memory for what was left out");
        }
    }
    if (model->n_unrecorded > 1) {
        qsort(model->unrecorded, model->n_unrecorded, sizeof *model->unrecorded,
              compare_unrecorded);
    }
    return MTPROF_OK;
}

int mtprof__model_prepare(mtprof_model *model)
{
    MT_TRY(prepare_epochs(model));
    MT_TRY(prepare_steps(model));
    MT_TRY(prepare_unrecorded(model));
    prepare_info(model);
    prepare_process(model);
    prepare_device(model);
    return MTPROF_OK;
}
