/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks as text: "file(line): function", innermost frame first, as torch shows them.
 *
 *   a file is known       file(line): function     line 0: not known
 *   no file               function                 "<built-in function linear>"
 *   an address alone      0x7f66c173e180
 */
#ifndef MTPROF_MODEL_TEXT_STACK_TEXT_H
#define MTPROF_MODEL_TEXT_STACK_TEXT_H

#include "base/text_writer.h"

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* More frames than any real stack has; it keeps the work per event bounded where a trace was
     * made to be evil. The outermost ones are left out. */
    MTPROF__STACK_FRAMES = 1024
};

/* The innermost frames of a stack, at most `max`; innermost first. Returns how many. */
uint32_t mtprof__stack_frames(const mtprof_model *model, uint32_t node, mtprof_frame *frames,
                              uint32_t max);

/* The same; a stack that has more counts as one in *cut. */
uint32_t mtprof__stack_frames_counted(const mtprof_model *model, uint32_t node,
                                      mtprof_frame *frames, uint32_t max, uint64_t *cut);

/* How many stacks of the model have more than MTPROF__STACK_FRAMES. Fails with ENOMEM. */
int mtprof__stacks_too_deep(const mtprof_model *model, uint64_t *n);

/* A frame as text, not terminated and cut to `size` bytes. Returns how long the whole text is. */
size_t mtprof__frame_text(const mtprof_frame *frame, char *buffer, size_t size);

/* The same into a writer: as it is, and as the inside of a JSON string. */
void mtprof__frame_write(mtb_writer *writer, const mtprof_frame *frame);
void mtprof__frame_write_json(mtb_writer *writer, const mtprof_frame *frame);

/* A stack, innermost frame first, joined by ";". Whether all of its frames are there. */
bool mtprof__stack_write(mtb_writer *writer, const mtprof_model *model, uint32_t node);

#endif /* MTPROF_MODEL_TEXT_STACK_TEXT_H */
