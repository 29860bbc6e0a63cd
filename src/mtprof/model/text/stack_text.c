/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/text/stack_text.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

enum {
    MIDDLE_BYTES = 32 /* "(18446744073709551615): ", or an address */
};

/* The text of a frame is file, middle, function. */
typedef struct frame_parts {
    mtprof_text part[3];
    char middle[MIDDLE_BYTES];
} frame_parts;

static char *put_address(char *at, uint64_t address)
{
    static const char hex[] = "0123456789abcdef";
    unsigned digits = address == 0 ? 1 : (67 - (unsigned)__builtin_clzll(address)) / 4;
    *at++ = '0';
    *at++ = 'x';
    for (unsigned i = digits; i-- > 0;) {
        *at++ = hex[(address >> (4 * i)) & 15];
    }
    return at;
}

static void split_frame(const mtprof_frame *frame, frame_parts *parts)
{
    char *end = parts->middle;
    if (frame->file.length > 0) {
        *end++ = '(';
        end = mtb_put_u64(end, frame->line);
        *end++ = ')';
        *end++ = ':';
        *end++ = ' ';
    } else if (frame->function.length == 0) {
        end = put_address(end, frame->address);
    }
    parts->part[0] = frame->file;
    parts->part[1] = (mtprof_text){parts->middle, (size_t)(end - parts->middle)};
    parts->part[2] = frame->function;
}

uint32_t mtprof__stack_frames(const mtprof_model *model, uint32_t node, mtprof_frame *frames,
                              uint32_t max)
{
    uint32_t n = 0;
    uint32_t parent = 0;
    while (node != 0 && n < max && mtprof_model_stack(model, node, &parent, &frames[n])) {
        node = parent;
        n++;
    }
    return n;
}

uint32_t mtprof__stack_frames_counted(const mtprof_model *model, uint32_t node,
                                      mtprof_frame *frames, uint32_t max, uint64_t *cut)
{
    uint32_t n = mtprof__stack_frames(model, node, frames, max);
    uint32_t parent = node;
    mtprof_frame ignored;
    for (uint32_t i = 0; MT_UNLIKELY(n == max) && i < n; i++) {
        (void)mtprof_model_stack(model, parent, &parent, &ignored);
    }
    *cut += n == max && parent != 0;
    return n;
}

int mtprof__stacks_too_deep(const mtprof_model *model, uint64_t *n)
{
    uint16_t *depths = NULL; /* by node; nodes come after those around them */
    size_t capacity = 0;
    uint32_t parent = 0;
    mtprof_frame frame;
    *n = 0;
    for (uint32_t node = 1; mtprof_model_stack(model, node, &parent, &frame); node++) {
        if (!mtb_grow((void **)&depths, &capacity, (size_t)node + 1, sizeof *depths)) {
            mtb_free(depths);
            return mtb_fail(MTPROF_ENOMEM, "make model: no memory for the depths of stacks");
        }
        uint32_t depth = parent > 0 && parent < node ? depths[parent] + 1u : 1;
        *n += depth > MTPROF__STACK_FRAMES;
        depths[node] = (uint16_t)(depth < UINT16_MAX ? depth : UINT16_MAX);
    }
    mtb_free(depths);
    return MTPROF_OK;
}

size_t mtprof__frame_text(const mtprof_frame *frame, char *buffer, size_t size)
{
    frame_parts parts;
    size_t length = 0;
    split_frame(frame, &parts);
    for (int i = 0; i < 3; i++) {
        size_t room = length < size ? size - length : 0;
        size_t n = parts.part[i].length < room ? parts.part[i].length : room;
        if (n > 0) {
            memcpy(buffer + length, parts.part[i].bytes, n);
        }
        length += parts.part[i].length;
    }
    return length;
}

void mtprof__frame_write(mtb_writer *writer, const mtprof_frame *frame)
{
    frame_parts parts;
    split_frame(frame, &parts);
    for (int i = 0; i < 3; i++) {
        mtb_write(writer, parts.part[i].bytes, parts.part[i].length);
    }
}

void mtprof__frame_write_json(mtb_writer *writer, const mtprof_frame *frame)
{
    frame_parts parts;
    split_frame(frame, &parts);
    for (int i = 0; i < 3; i++) {
        mtb_write_json_inner(writer, parts.part[i].bytes, parts.part[i].length);
    }
}

bool mtprof__stack_write(mtb_writer *writer, const mtprof_model *model, uint32_t node)
{
    uint32_t parent = 0;
    mtprof_frame frame;
    for (uint32_t n = 0;
         n < MTPROF__STACK_FRAMES && node != 0 && mtprof_model_stack(model, node, &parent, &frame);
         n++) {
        mtb_write(writer, ";", n > 0);
        mtprof__frame_write(writer, &frame);
        node = parent;
    }
    return node == 0;
}
