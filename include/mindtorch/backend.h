/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device must offer. Version 0: memory, copies, streams, kernels. A backend sees this header
 * and nothing else of the runtime; the runtime never follows a device pointer.
 *
 * B1 Sizes, types and overlaps are checked before a kernel is called. What only the data can tell
 *    (an index out of range) the kernel reports.
 * B2 Everything is ordered by its stream; stream NULL is the device's default stream. Only
 *    `synchronize` and copies to the host wait.
 * B3 A kernel that is missing (NULL) is MT_ENOTSUP with its name, never a wrong result.
 */
#ifndef MINDTORCH_BACKEND_H
#define MINDTORCH_BACKEND_H

#include <mindtorch/kernel_codes.h>
#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

enum {
    MT_BACKEND_VERSION = 0
};

/** What kernels there are; kernels.def says what each takes. */
typedef enum mt_kernel {
#define X(name) MT_KERNEL_##name,
#include <mindtorch/kernels.def>
#undef X
    MT_KERNEL_COUNT
} mt_kernel;

/** "BINARY" and so on; never NULL. */
MT_API const char *mt_kernel_name(mt_kernel kernel);

/** A tensor as kernels see it. */
typedef struct mt_array {
    void *data;             /**< of the first element, on the device */
    const int64_t *sizes;   /**< n_dims of them */
    const int64_t *strides; /**< in elements; 0 repeats an element */
    int32_t n_dims;
    uint32_t dtype; /**< mt_dtype */
} mt_array;

/** One call of a kernel: outputs stand first in `tensors`. An absent optional one has data NULL and
 * n_dims -1. */
typedef struct mt_kernel_call {
    uint32_t struct_size;
    uint16_t kernel; /**< mt_kernel */
    uint16_t code;   /**< which of a family (kernel_codes.h), 0 where there is none */
    uint32_t n_tensors;
    uint32_t n_ints;
    uint32_t n_scalars;
    uint32_t reserved;
    const mt_array *tensors;
    const int64_t *ints;
    const mt_scalar *scalars;
} mt_kernel_call;

typedef struct mt_stream mt_stream; /**< the backend's own */

typedef int mt_kernel_fn(void *context, mt_stream *stream, const mt_kernel_call *call);

typedef enum mt_copy {
    MT_COPY_WITHIN,    /**< on one device */
    MT_COPY_TO_DEVICE, /**< from host memory, which may be reused on return */
    MT_COPY_TO_HOST    /**< the bytes are there on return */
} mt_copy;

/** Functions return a status and may note a message with mt_fail(). */
typedef struct mt_backend {
    uint32_t struct_size;
    uint32_t version; /**< MT_BACKEND_VERSION */
    const char *name; /**< "cpu", "sim" */
    void *context;    /**< first argument of all of these */
    uint32_t (*device_count)(void *context);
    /** Memory in large pieces, aligned to 64 at least; the runtime's allocator divides them. */
    int (*allocate)(void *context, uint32_t device, size_t bytes, void **out);
    void (*release)(void *context, uint32_t device, void *memory, size_t bytes);
    int (*copy)(void *context, mt_stream *stream, mt_copy kind, void *to, const void *from,
                size_t bytes);
    int (*synchronize)(void *context, uint32_t device);
    int (*stream_new)(void *context, uint32_t device, mt_stream **out); /**< NULL: no streams */
    void (*stream_free)(void *context, mt_stream *stream);
    int (*stream_synchronize)(void *context, mt_stream *stream);
    mt_kernel_fn *const *kernels; /**< by mt_kernel */
    uint32_t n_kernels;
} mt_backend;

/**
 * Makes a backend serve a device type. The struct and what it points to live as long as the
 * process. MT_ERUNTIME where the type is served already, MT_EVALUE for an unknown version or a
 * missing function.
 */
MT_API int mt_backend_register(mt_device_type type, const mt_backend *backend);

MT_END_DECLS

#endif /* MINDTORCH_BACKEND_H */
