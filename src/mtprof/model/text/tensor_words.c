/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes come from traces and may be anything: every product is checked.
 */
#include "mtprof/model/text/tensor_words.h"

#include "mtprof/format/input_words.h"
#include "mtprof/format/texts.h"

#include <stddef.h>
#include <stdio.h>

bool mtprof__next_tensor(mtprof_input_walk *walk)
{
    while (mtprof__input_next(walk) && !walk->cut) {
        if (walk->kind == MTPROF_INPUT_TENSOR) {
            return true;
        }
    }
    return false;
}

uint32_t mtprof__count_tensors(mtprof_input_walk walk)
{
    uint32_t count = 0;
    while (mtprof__next_tensor(&walk)) {
        count++;
    }
    return count;
}

int64_t mtprof__tensor_elements(const mtprof_input_walk *tensor)
{
    int64_t product = tensor->cut ? 0 : 1;
    for (uint32_t i = 0; i < tensor->n_sizes; i++) {
        int64_t size = (int64_t)tensor->sizes[i];
        if (size < 0 || __builtin_mul_overflow(product, size, &product)) {
            return 0;
        }
    }
    return product;
}

int64_t mtprof__tensor_extent(const mtprof_input_walk *tensor, int64_t offset, uint32_t item_bytes)
{
    int64_t elements = mtprof__tensor_elements(tensor);
    if (elements == 0 || offset < 0) {
        return 0;
    }
    int64_t reach = elements;
    if (tensor->strides != NULL) {
        reach = 1;
        for (uint32_t i = 0; i < tensor->n_dims; i++) {
            int64_t span;
            if (__builtin_mul_overflow((int64_t)tensor->sizes[i] - 1, (int64_t)tensor->strides[i],
                                       &span) ||
                __builtin_add_overflow(reach, span < 0 ? 0 : span, &reach)) {
                return 0;
            }
        }
    }
    int64_t bytes;
    if (__builtin_add_overflow(reach, offset, &reach) ||
        __builtin_mul_overflow(reach, (int64_t)item_bytes, &bytes)) {
        return 0;
    }
    return bytes;
}

/* C++'s names as torch shows them, and the names of dtypes. */
static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {
    {"float", 4},
    {"double", 8},
    {"c10::Half", 2},
    {"c10::BFloat16", 2},
    {"long int", 8},
    {"long", 8},
    {"int", 4},
    {"short int", 2},
    {"short", 2},
    {"signed char", 1},
    {"unsigned char", 1},
    {"bool", 1},
    {"unsigned short", 2},
    {"unsigned int", 4},
    {"unsigned long", 8},
    {"c10::complex<c10::Half>", 4},
    {"c10::complex<float>", 8},
    {"c10::complex<double>", 16},
    {"c10::Float8_e5m2", 1},
    {"c10::Float8_e4m3fn", 1},
    {"c10::Float8_e5m2fnuz", 1},
    {"c10::Float8_e4m3fnuz", 1},
    {"c10::qint8", 1},
    {"c10::quint8", 1},
    {"c10::qint32", 4},
    {"float16", 2},
    {"half", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"complex64", 8},
    {"complex128", 16},
};

uint32_t mtprof__type_bytes(mtprof_text type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (mtprof__text_is(type, types[i].name)) {
            return types[i].bytes;
        }
    }
    return 0;
}

void mtprof__device_text(const mtprof_device *device, char *name, size_t size)
{
    size_t n = device->type.length < size - 16 ? device->type.length : size - 16;
    for (size_t i = 0; i < n; i++) {
        char c = device->type.bytes[i];
        name[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c > ' ' && c < 0x7F ? c : '?';
    }
    name[n] = '\0';
    if (device->index >= 0) {
        snprintf(name + n, size - n, ":%d", (int)device->index);
    }
}
