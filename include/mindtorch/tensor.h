/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: strided views of reference-counted storages.
 *
 *     mt_tensor (sizes, strides, offset, dtype) ──► mt storage (bytes, device, version)
 *
 * A tensor is a handle with a reference count of its own. A function that returns a tensor through
 * `**out` gives one reference, which the caller releases. Parameters are borrowed.
 *
 * Threads: reference counts may be changed from any thread. Reading a tensor from several threads
 * is fine; writing its elements, or changing its gradient flags, while others use it is not.
 */
#ifndef MINDTORCH_TENSOR_H
#define MINDTORCH_TENSOR_H

#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

enum {
    MT_MAX_DIMS = 16 /**< more dimensions are refused with MT_ERUNTIME */
};

/** A copy of contiguous elements in host memory. */
MT_API mt_status mt_tensor_from_data(const void *data, mt_dtype dtype, const int64_t *sizes,
                                     size_t n_dims, mt_device device, mt_tensor **out);

/** A complex number as an argument of an op: a 0-d complex128 tensor on the host that, like a real
 * number, decides about the category of a result's type and not about its width. */
MT_API mt_status mt_tensor_from_complex(double real, double imag, mt_tensor **out);

/** Whether the tensor stands for a complex number, as mt_tensor_from_complex() makes it. mt_item()
 * of a complex tensor gives such a tensor in its scalar (kind TENSOR, the caller's to release). */
MT_API bool mt_tensor_number(const mt_tensor *tensor, double parts[2]);

/** Called once, on any thread, when the last tensor that uses borrowed memory is gone. */
typedef void mt_free_fn(void *context, void *data);

/**
 * A tensor over host memory that the caller owns. strides in elements, NULL = contiguous. With
 * free_data NULL the memory must outlive every view of the tensor.
 */
MT_API mt_status mt_tensor_borrow(void *data, mt_dtype dtype, const int64_t *sizes,
                                  const int64_t *strides, size_t n_dims, mt_free_fn *free_data,
                                  void *context, mt_tensor **out);

/** One more reference; returns its argument. Accepts NULL. */
MT_API mt_tensor *mt_tensor_retain(mt_tensor *tensor);

/** One reference fewer. Accepts NULL. */
MT_API void mt_tensor_release(mt_tensor *tensor);

/** The number of references to it, from any holder; for host languages with a cycle collector. */
MT_API uint32_t mt_tensor_use_count(const mt_tensor *tensor);

/** Properties of a tensor. Sizes and strides have n_dims entries and live as long as the tensor. */
MT_API mt_dtype mt_tensor_dtype(const mt_tensor *tensor);
MT_API mt_device mt_tensor_device(const mt_tensor *tensor);
MT_API uint32_t mt_tensor_n_dims(const mt_tensor *tensor);
MT_API const int64_t *mt_tensor_sizes(const mt_tensor *tensor);
MT_API const int64_t *mt_tensor_strides(const mt_tensor *tensor); /**< in elements */
MT_API int64_t mt_tensor_offset(const mt_tensor *tensor);         /**< in elements */
MT_API int64_t mt_tensor_numel(const mt_tensor *tensor);
MT_API bool mt_tensor_is_contiguous(const mt_tensor *tensor);

/** Orders of dimensions in memory, with torch's numbers. */
typedef enum mt_memory_format {
    MT_FORMAT_CONTIGUOUS,
    MT_FORMAT_PRESERVE,         /**< as the input's */
    MT_FORMAT_CHANNELS_LAST,    /**< [N, C, H, W] with C innermost */
    MT_FORMAT_CHANNELS_LAST_3D, /**< [N, C, D, H, W] with C innermost */
    MT_FORMAT_COUNT
} mt_memory_format;

/** Whether the elements lie in this order without gaps: torch's is_contiguous(memory_format=). */
MT_API bool mt_tensor_has_format(const mt_tensor *tensor, mt_memory_format format);

/** The same, with the strides of dimensions of size 1 as well, as a new tensor has them. */
MT_API bool mt_tensor_has_strides(const mt_tensor *tensor, mt_memory_format format);

/** Unique: no other tensor of this process ever has the same. */
MT_API uint64_t mt_tensor_id(const mt_tensor *tensor);

/**
 * The object that represents this tensor in a host language, so that one tensor is one object
 * there; NULL until it is set. The library only stores the pointer: the binding that sets it resets
 * it to NULL before the object is freed, and guards both calls with the language's own lock.
 */
MT_API void *mt_tensor_host(const mt_tensor *tensor);
MT_API void mt_tensor_set_host(mt_tensor *tensor, void *host);

/**
 * Marks the tensor as a parameter of a model; profiles record the mark. Call it before other
 * threads use the tensor.
 */
MT_API void mt_tensor_set_parameter(mt_tensor *tensor, bool is_parameter);
MT_API bool mt_tensor_is_parameter(const mt_tensor *tensor);

/** How often the storage was changed in place; views of one storage share it. */
MT_API uint32_t mt_tensor_version(const mt_tensor *tensor);

/** Raises it, after elements were changed by something that the library does not know of. */
MT_API void mt_tensor_raise_version(mt_tensor *tensor);

/** Whether its storage was made in inference mode (mt_set_inference_mode): outside of that mode it
 * cannot be written, and no graph can keep it. Copies of it are ordinary tensors. */
MT_API bool mt_tensor_is_inference(const mt_tensor *tensor);

/** Where the storage begins on its device: a number to compare, not to dereference. */
MT_API uint64_t mt_tensor_storage_address(const mt_tensor *tensor);
MT_API uint64_t mt_tensor_storage_bytes(const mt_tensor *tensor);

/**
 * The whole storage as a row of elements of `dtype`, over the same memory and without a graph.
 * Bytes at the end that make no element are left out.
 */
MT_API mt_status mt_tensor_storage_row(mt_tensor *tensor, mt_dtype dtype, mt_tensor **out);

/** The first element in host memory; NULL for tensors of other devices and for empty ones. */
MT_API void *mt_tensor_data(const mt_tensor *tensor);

/** Copies all elements, in order, to host memory of exactly `bytes` bytes; waits for the device. */
MT_API mt_status mt_tensor_read(mt_tensor *tensor, void *buffer, size_t bytes);

/** Tensors alive in this process; for tests and leak hunts. */
MT_API uint64_t mt_tensors_alive(void);

MT_END_DECLS

#endif /* MINDTORCH_TENSOR_H */
