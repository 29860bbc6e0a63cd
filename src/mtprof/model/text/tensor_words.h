/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of an input list (docs/format.md section 5): their sizes, and the bytes they span;
 * and names of devices.
 */
#ifndef MTPROF_MODEL_TEXT_TENSOR_WORDS_H
#define MTPROF_MODEL_TEXT_TENSOR_WORDS_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct mtprof__tensor_words {
    const uint64_t *sizes;
    const uint64_t *strides; /* NULL: not told */
    uint32_t n_dims;
    uint32_t type; /* string of the model, 0: not told */
} mtprof__tensor_words;

/* The next tensor at or behind word *at, lists entered; *at then stands behind it. False at the end
 * of the list. Reads within n_words whatever the words say. */
bool mtprof__tensor_words_next(const uint64_t *words, uint32_t n_words, uint32_t *at,
                               mtprof__tensor_words *tensor);

/* How many there are. */
uint32_t mtprof__tensor_words_count(const uint64_t *words, uint32_t n_words);

/* Elements of a tensor; 0 also where the sizes are nonsense. */
int64_t mtprof__tensor_elements(const mtprof__tensor_words *tensor);

/* Bytes from the start of its storage to the end of a tensor that begins `offset` elements in; 0
 * where the sizes are nonsense. */
int64_t mtprof__tensor_extent(const mtprof__tensor_words *tensor, int64_t offset,
                              uint32_t item_bytes);

/* Bytes of an element: "float", "c10::Half", "long int", "int64" …; 0: not known. */
uint32_t mtprof__type_bytes(mtprof_text type);

/* "npu:0" for what the model calls NPU 0, "cpu" for the host. Bytes of a type that are not
 * printable become '?'. size is at least 32. */
void mtprof__device_text(const mtprof_device *device, char *name, size_t size);

#endif /* MTPROF_MODEL_TEXT_TENSOR_WORDS_H */
