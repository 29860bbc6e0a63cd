/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks: torch's "Call stack" ("file(line): function;…", innermost first), and our "stack", a
 * list of the same texts, which wins because no character in it has a special meaning.
 *
 * torch's events leave out two frames of autograd's own that its JSON has (torch-contract 3.2), and
 * so do we.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/format/texts.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    FRAMES_MOST = 1024 /* the outermost of more are left out */
};

typedef struct frame_texts {
    mtprof_text items[FRAMES_MOST]; /* innermost first */
    uint32_t n;
    bool cut; /* there are more */
} frame_texts;

static bool is_digit(char c)
{
    return (unsigned)(c - '0') < 10;
}

/* "file(line): function" where it looks so, else a function without a file. */
static void read_frame(mtprof_text text, mtprof_frame *frame)
{
    *frame = (mtprof_frame){.function = text, .file = {"", 0}};
    const char *end = text.bytes + text.length;
    const char *p = text.bytes;
    while ((p = memchr(p, '(', (size_t)(end - p))) != NULL) {
        const char *digits = ++p;
        uint64_t line = 0;
        for (; p < end && is_digit(*p) && p - digits < 18; p++) {
            line = line * 10 + (uint64_t)(*p - '0');
        }
        if (p > digits && end - p >= 3 && memcmp(p, "): ", 3) == 0) {
            frame->file = (mtprof_text){text.bytes, (size_t)(digits - 1 - text.bytes)};
            frame->function = (mtprof_text){p + 3, (size_t)(end - p - 3)};
            frame->line = line;
            return;
        }
    }
}

static void split_frames(mtprof_text text, frame_texts *frames)
{
    const char *p = text.bytes;
    const char *end = p + text.length;
    while (p < end) {
        if (frames->n == FRAMES_MOST) {
            frames->cut = true;
            return;
        }
        const char *mark = memchr(p, ';', (size_t)(end - p));
        const char *last = mark != NULL ? mark : end;
        if (last > p) {
            frames->items[frames->n++] = (mtprof_text){p, (size_t)(last - p)};
        }
        p = last + 1;
    }
}

/* The items of a list, decoded one after the other. */
static void list_frames(const mtb_slice *array, char *room, frame_texts *frames)
{
    mtb_walk walk;
    mtb_slice item;
    if (array->type != MTB_SLICE_ARRAY || !mtb_walk_begin(&walk, array)) {
        return;
    }
    while (mtb_walk_next(&walk, NULL, &item)) {
        if (item.type == MTB_SLICE_STRING && frames->n == FRAMES_MOST) {
            frames->cut = true;
            return;
        }
        if (item.type == MTB_SLICE_STRING) {
            size_t length = mtb_slice_decode(&item, room);
            frames->items[frames->n++] = (mtprof_text){room, length};
            room += length;
        }
    }
}

/* A frame of autograd's own, between the user's backward() and the engine. */
static bool is_left_out(const mtprof_frame *frame)
{
    return mtprof__text_ends(frame->file, "torch/autograd/__init__.py") &&
           (mtprof__text_is(frame->function, "backward") ||
            mtprof__text_is(frame->function, "_make_grads"));
}

static int make_stack(mtprof__import *import, const mtb_slice *source, frame_texts *frames,
                      uint32_t *stack)
{
    mtprof__dictionary *dictionary = &import->model->dictionary;
    char *room = mtprof__import_scratch(import, source->length);
    if (room == NULL) {
        return MTPROF_ENOMEM;
    }
    frames->n = 0;
    frames->cut = false;
    if (source->type == MTB_SLICE_STRING) {
        size_t length = mtb_slice_decode(source, room);
        split_frames((mtprof_text){room, length}, frames);
    } else {
        list_frames(source, room, frames);
    }
    import->found.left_out += frames->cut;
    uint32_t node = 0;
    for (uint32_t i = frames->n; i-- > 0;) {
        mtprof_frame frame;
        uint32_t index;
        read_frame(frames->items[i], &frame);
        if (!import->is_ours && is_left_out(&frame)) {
            continue;
        }
        MT_TRY(mtprof__dictionary_frame(dictionary, &frame, &index));
        MT_TRY(mtprof__dictionary_node(dictionary, node, index, &node));
    }
    *stack = node;
    return MTPROF_OK;
}

int mtprof__import_stack(mtprof__import *import, uint32_t *stack)
{
    const mtb_slice *source = mtprof__raw_arg(&import->raw, MTPROF__ARG_STACK);
    if (source == NULL || source->type != MTB_SLICE_ARRAY) {
        source = mtprof__raw_arg(&import->raw, MTPROF__ARG_CALL_STACK);
    }
    *stack = 0;
    if (source == NULL) {
        return MTPROF_OK;
    }
    uint64_t hash = mtb_hash_bytes(source->bytes, source->length);
    const mtprof__cache_entry *known =
        mtprof__cache_find(&import->stacks, source->bytes, source->length, hash);
    if (MT_LIKELY(known != NULL && known->values[1] == source->type)) {
        *stack = known->values[0];
        return MTPROF_OK;
    }
    frame_texts *frames = mtb_calloc(1, sizeof *frames);
    if (frames == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %zu bytes for a stack", sizeof *frames);
    }
    int status = make_stack(import, source, frames, stack);
    mtb_free(frames);
    if (status == MTPROF_OK) {
        mtprof__cache_keep(&import->stacks, source->bytes, source->length, hash,
                           (const uint32_t[2]){*stack, source->type});
    }
    return status;
}
