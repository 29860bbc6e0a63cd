/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of an input list (docs/format.md section 5): their sizes, and the bytes they span;
 * and names of devices.
 */
#ifndef MTPROF_MODEL_TEXT_TENSOR_WORDS_H
#define MTPROF_MODEL_TEXT_TENSOR_WORDS_H

#include <mtprof/input_list.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>

/* Goes on to the next tensor, lists entered. False at the end of the list, or where it cuts a
 * tensor off. */
bool mtprof__next_tensor(mtprof_input_walk *walk);

/* How many are still to come. */
uint32_t mtprof__count_tensors(mtprof_input_walk walk);

/* Elements of a tensor; 0 also where the sizes are nonsense. */
int64_t mtprof__tensor_elements(const mtprof_input_walk *tensor);

/* Bytes from the start of its storage to the end of a tensor that begins `offset` elements in; 0
 * where the sizes are nonsense. */
int64_t mtprof__tensor_extent(const mtprof_input_walk *tensor, int64_t offset, uint32_t item_bytes);

/* Bytes of an element: "float", "c10::Half", "long int", "int64" …; 0: not known. */
uint32_t mtprof__type_bytes(mtprof_text type);

/* "npu:0" for what the model calls NPU 0, "cpu" for the host. Bytes of a type that are not
 * printable become '?'. size is at least 32. */
void mtprof__device_text(const mtprof_device *device, char *name, size_t size);

#endif /* MTPROF_MODEL_TEXT_TENSOR_WORDS_H */
