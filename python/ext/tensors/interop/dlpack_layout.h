/* SPDX-License-Identifier: Apache-2.0
 *
 * The DLPack exchange format (data-apis.org/array-api, DLPack 1.0), in our own words: only the
 * layout counts. A producer puts a managed tensor into a capsule; the consumer renames the capsule
 * and calls the deleter when it is done, on any thread.
 */
#ifndef PYTHON_EXT_TENSORS_INTEROP_DLPACK_LAYOUT_H
#define PYTHON_EXT_TENSORS_INTEROP_DLPACK_LAYOUT_H

#include <stdint.h>

#define DLPACK_CAPSULE                "dltensor"
#define DLPACK_CAPSULE_USED           "used_dltensor"
#define DLPACK_CAPSULE_VERSIONED      "dltensor_versioned"
#define DLPACK_CAPSULE_VERSIONED_USED "used_dltensor_versioned"

enum {
    DLPACK_MAJOR = 1,
    DLPACK_MINOR = 0,
    DLPACK_CPU = 1, /* device types; only the host is exchanged */
    DLPACK_EXTENSION = 12,
    DLPACK_INT = 0, /* codes of types */
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_FLAG_READ_ONLY = 1,
    DLPACK_FLAG_COPIED = 2
};

typedef struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t n_dims;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *sizes;
    int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct dlpack_versioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

#endif /* PYTHON_EXT_TENSORS_INTEROP_DLPACK_LAYOUT_H */
