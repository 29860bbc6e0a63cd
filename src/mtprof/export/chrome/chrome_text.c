/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of text that many events share, and the digits of times.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

#include <errno.h>

/* ---- scratch --------------------------------------------------------------------------------- */

/* What does not fit the scratch is not kept anyway. */
static int scratch_full(void *context, const void *bytes, size_t length)
{
    (void)context, (void)bytes, (void)length;
    return E2BIG;
}

int mtprof__chrome_text_init(mtprof__chrome *chrome)
{
    chrome->tail_steps[0] = -1;
    chrome->tail_steps[1] = -1;
    chrome->nowhere.place.text = chrome->nothing;
    chrome->nowhere.op_tail.text = chrome->nothing;
    bool scratch = mtb_writer_init(&chrome->scratch, scratch_full, NULL);
    chrome->names = mtb_calloc(MTPROF__NAME_SLOTS, sizeof *chrome->names);
    chrome->inputs = mtb_calloc(MTPROF__INPUTS_SLOTS, sizeof *chrome->inputs);
    chrome->stacks = mtb_calloc(MTPROF__STACK_SLOTS, sizeof *chrome->stacks);
    if (!scratch || chrome->names == NULL || chrome->inputs == NULL || chrome->stacks == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for the text caches");
    }
    return MTPROF_OK;
}

void mtprof__piece_fini(mtprof__piece *piece)
{
    if (piece->text !=
        NULL) { /* most places of a cache were never used, nor their memory touched */
        mtb_free(piece->text);
        *piece = (mtprof__piece){0};
    }
}

void mtprof__chrome_text_fini(mtprof__chrome *chrome)
{
    for (size_t i = 0; chrome->names != NULL && i < MTPROF__NAME_SLOTS; i++) {
        mtprof__piece_fini(&chrome->names[i].head);
    }
    for (size_t i = 0; chrome->inputs != NULL && i < MTPROF__INPUTS_SLOTS; i++) {
        mtprof__piece_fini(&chrome->inputs[i].text);
    }
    for (size_t i = 0; chrome->stacks != NULL && i < MTPROF__STACK_SLOTS; i++) {
        mtprof__piece_fini(&chrome->stacks[i].text);
    }
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        mtprof__piece_fini(&chrome->tracks[i].place);
        mtprof__piece_fini(&chrome->tracks[i].op_tail);
    }
    mtprof__piece_fini(&chrome->on_host);
    mtprof__piece_fini(&chrome->on_device);
    mtprof__piece_fini(&chrome->tails[0]);
    mtprof__piece_fini(&chrome->tails[1]);
    mtb_free(chrome->tracks);
    mtb_free(chrome->names);
    mtb_free(chrome->inputs);
    mtb_free(chrome->stacks);
    (void)mtb_writer_finish(&chrome->scratch);
}

mtb_writer *mtprof__chrome_scratch(mtprof__chrome *chrome)
{
    chrome->scratch.used = 0;
    chrome->scratch.flushed = 0;
    chrome->scratch.replaced = 0;
    chrome->scratch.error = 0;
    return &chrome->scratch;
}

bool mtprof__chrome_keep(mtprof__chrome *chrome, mtprof__piece *piece, size_t most)
{
    const mtb_writer *scratch = &chrome->scratch;
    piece->length = 0;
    if (scratch->error != 0 || scratch->flushed != 0 || scratch->used > most) {
        return false;
    }
    size_t needed = scratch->used + MTPROF__PIECE_PAD;
    if (needed > piece->capacity) {
        char *text = mtb_resize(piece->text, needed, 1);
        if (text == NULL) {
            return false; /* it is written without being kept */
        }
        piece->text = text;
        piece->capacity = (uint32_t)needed;
    }
    memcpy(piece->text, scratch->buffer, scratch->used);
    memset(piece->text + scratch->used, 0, piece->capacity - scratch->used);
    piece->length = (uint32_t)scratch->used;
    piece->replaced = (uint32_t)scratch->replaced;
    return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Numbers of up to four digits, and of 17 and more, are left to the general way. */
bool mtprof__slow_number_set(mtprof__slow_number *number, uint64_t value)
{
    uint64_t high = value / 10000;
    if (high == 0 || high >= (uint64_t)1000 * 1000 * 1000 * 1000) {
        return false;
    }
    number->first = high * 10000;
    number->count = 10000;
    number->digits = (uint32_t)(mtb_put_u64(number->text, high) - number->text);
    return true;
}

void mtprof__chrome_set_time(mtprof__chrome *chrome, int64_t ns)
{
    int64_t high = ns / MTB_EIGHT_DIGITS;
    chrome->time_first = high * MTB_EIGHT_DIGITS;
    chrome->time_count = MTB_EIGHT_DIGITS;
    chrome->time_digits =
        (uint32_t)(mtb_put_u64(chrome->time_text, (uint64_t)high) - chrome->time_text);
}

void mtprof__chrome_write_ns(mtprof__chrome *chrome, int64_t ns)
{
    char *at = mtb_writer_room(chrome->writer, 32);
    mtb_writer_took(chrome->writer, mtprof__chrome_put_ns(chrome, at, ns));
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void look_up_track(mtprof__chrome *chrome, mtprof__chrome_track *track, uint32_t number)
{
    mtprof_track info = {0};
    track->known = true;
    if (mtprof_model_track(chrome->model, number, &info)) {
        track->is_thread = info.device == 0;
        track->number = info.number;
        track->pid = track->is_thread ? mtprof__export_pid(chrome->job, info.pid)
                                      : mtprof__chrome_device_pid(chrome, info.device);
        track->tid = info.tid >= 0           ? info.tid
                     : info.tid == INT64_MIN ? INT64_MAX /* it has no counterpart */
                                             : -info.tid;
    }
    mtb_writer *scratch = mtprof__chrome_scratch(chrome);
    mtb_write_literal(scratch, "\"pid\":");
    mtb_write_i64(scratch, track->pid);
    mtb_write_member_i64(scratch, "tid", track->tid);
    mtb_write_literal(scratch, ",\"ts\":");
    bool kept = mtprof__chrome_keep(chrome, &track->place, MTPROF__PIECE_MOST);
    scratch = mtprof__chrome_scratch(chrome);
    mtb_write_literal(scratch, ",\"runtime_name\":\"dispatch_kernel\",\"runtime_tid\":");
    mtb_write_i64(scratch, track->tid);
    mtb_write_literal(scratch, ",\"correlation_id\":");
    if (!mtprof__chrome_keep(chrome, &track->op_tail, MTPROF__PIECE_MOST) || !kept) {
        chrome->error = MTPROF_ENOMEM;
    }
}

mtprof__chrome_track *mtprof__chrome_track_find(mtprof__chrome *chrome, uint32_t number)
{
    if (MT_UNLIKELY(number >= chrome->n_tracks)) {
        size_t before = chrome->n_tracks;
        mtprof_track info;
        if ((number > before && !mtprof_model_track(chrome->model, number, &info)) ||
            !mtb_grow((void **)&chrome->tracks, &chrome->tracks_capacity, (size_t)number + 1,
                      sizeof *chrome->tracks)) {
            chrome->error = MTPROF_ENOMEM;
            return &chrome->nowhere;
        }
        chrome->n_tracks = (size_t)number + 1;
        memset(chrome->tracks + before, 0, (chrome->n_tracks - before) * sizeof *chrome->tracks);
    }
    mtprof__chrome_track *track = &chrome->tracks[number];
    if (MT_UNLIKELY(!track->known)) {
        look_up_track(chrome, track, number);
        if (chrome->error != 0) {
            track->known = false;
            return &chrome->nowhere;
        }
    }
    return track;
}

/* ---- heads ----------------------------------------------------------------------------------- */

enum {
    CATEGORY_COUNT = 11
};

static unsigned category_index(const mtprof__event *event)
{
    switch (event->kind) {
    case MTPROF_EVENT_KIND_OP: return 0;
    case MTPROF_EVENT_KIND_SCOPE:
    case MTPROF_EVENT_KIND_STEP: return 1;
    case MTPROF_EVENT_KIND_RUNTIME:
    case MTPROF_EVENT_KIND_LAUNCH:
    case MTPROF_EVENT_KIND_CALL: return 2;
    case MTPROF_EVENT_KIND_FUNCTION: return 3;
    case MTPROF_EVENT_KIND_KERNEL: return 4;
    case MTPROF_EVENT_KIND_COPY: return 5;
    case MTPROF_EVENT_KIND_SET: return 6;
    case MTPROF_EVENT_KIND_SYNC: return 7;
    case MTPROF_EVENT_KIND_ANNOTATION: return 8;
    case MTPROF_EVENT_KIND_OVERHEAD: return 9;
    default: return 10;
    }
}

/* Functions of CUDA's driver are called cuLaunchKernel, those of its runtime cudaLaunchKernel. */
static bool is_driver_call(mtprof_text name)
{
    return name.length > 2 && name.bytes[0] == 'c' && name.bytes[1] == 'u' &&
           name.bytes[2] >= 'A' && name.bytes[2] <= 'Z';
}

const char *mtprof__chrome_category(const mtprof__chrome *chrome, const mtprof__event *event)
{
    static const char *const torch[CATEGORY_COUNT] = {
        "cpu_op",     "user_annotation", "privateuse1_runtime", "python_function",     "kernel",
        "gpu_memcpy", "gpu_memset",      "cuda_sync",           "gpu_user_annotation", "overhead",
        "other"};
    static const char *const mindtorch[CATEGORY_COUNT] = {"op", "scope", "runtime"};
    unsigned index = category_index(event);
    if (chrome->mindtorch && mindtorch[index] != NULL) {
        return mindtorch[index];
    }
    const char *type = chrome->job->info.device_type;
    if (index != 2 || type == NULL || strcmp(type, "CUDA") != 0) {
        return torch[index];
    }
    return is_driver_call(event->name_text) ? "cuda_driver" : "cuda_runtime";
}

void mtprof__chrome_write_head(mtb_writer *writer, const mtprof__chrome *chrome, const char *phase,
                               const mtprof__event *event)
{
    mtb_write_literal(writer, "{\"ph\":\"");
    mtb_write_text(writer, phase);
    mtb_write_literal(writer, "\",\"cat\":\"");
    mtb_write_text(writer, mtprof__chrome_category(chrome, event));
    mtb_write_literal(writer, "\",\"name\":");
    if (event->name_text.length == 0 && event->kind == MTPROF_EVENT_KIND_LAUNCH) {
        mtb_write_literal(writer, "\"launch\"");
    } else {
        mtb_write_json(writer, event->name_text.bytes, event->name_text.length);
    }
    mtb_write_literal(writer, ",");
}

void mtprof__chrome_write_kept_head(mtprof__chrome *chrome, const mtprof__event *event)
{
    const mtprof__piece *head = mtprof__chrome_head(chrome, event);
    if (head == NULL) {
        mtprof__chrome_write_head(chrome->writer, chrome, "X", event);
    } else {
        mtb_write(chrome->writer, head->text, head->length);
        chrome->writer->replaced += head->replaced;
    }
}

void mtprof__chrome_write_times(mtprof__chrome *chrome, const mtprof__chrome_track *track,
                                int64_t start_ns, int64_t end_ns)
{
    int64_t start = mtprof__chrome_since_base(chrome, start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, end_ns);
    mtb_write(chrome->writer, track->place.text, track->place.length);
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_member_thousandths(chrome->writer, "dur", end > start ? end - start : 0);
}

const mtprof__piece *mtprof__chrome_head_keep(mtprof__chrome *chrome, const mtprof__event *event)
{
    uint64_t key = mtprof__chrome_head_key(event);
    mtprof__name_slot *slot = mtprof__chrome_head_slot(chrome, key);
    if (event->name == MTPROF__NAME_INLINE) {
        return NULL;
    }
    slot->key = 0;
    mtprof__chrome_write_head(mtprof__chrome_scratch(chrome), chrome, "X", event);
    if (!mtprof__chrome_keep(chrome, &slot->head, MTPROF__PIECE_MOST)) {
        return NULL;
    }
    slot->key = key;
    return &slot->head;
}
