/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of a tensor. Sizes and strides are stored inline; small objects come from lists of the
 * thread (pool.h), so that a small op needs no heap call.
 *
 *   TN1  A tensor holds its storage, a view also its base; never the other way round.
 *   TN2  `contiguous` and `numel` always agree with sizes and strides.
 *   TN3  base is not itself a view: views of views have the first tensor as their base.
 */
#ifndef MINDTORCH_CORE_TENSOR_TENSOR_IMPL_H
#define MINDTORCH_CORE_TENSOR_TENSOR_IMPL_H

#include "mindtorch/core/tensor/shape.h"
#include "mindtorch/core/tensor/storage.h"

#include <mindtorch/backend.h>
#include <mindtorch/tensor.h>

#include <stdatomic.h>

/* Autograd's part of a tensor (autograd/graph/meta.h): gradient, node, hooks. */
typedef struct mt__autograd mt__autograd;

/* What kind of view a tensor is; decides whether it may be written when gradients are recorded. */
enum {
    MT_VIEW_NO_GRAD = 1,   /* made in no_grad mode */
    MT_VIEW_MULTI = 2,     /* one of several results (split, unbind) */
    MT_VIEW_FUNCTION = 4,  /* made by a custom function */
    MT_VIEW_INFERENCE = 8, /* made in inference mode, of a tensor that was not */
    MT_VIEW_TYPE = 16      /* of another element type than its base: view_as_real(), x.real */
};

struct mt_tensor {
    _Atomic uint32_t refs;
    uint8_t dtype; /* mt_dtype */
    uint8_t n_dims;
    bool contiguous;
    bool requires_grad; /* set by the user, or inherited: has a grad_fn. Written by autograd only */
    mt_device device;
    uint32_t view_version; /* views: storage version when the view, or its grad_fn, was last made.
                              Autograd's after that */
    uint8_t view_flags;    /* MT_VIEW_* */
    bool is_parameter;     /* a module's, for the profiler (mt_tensor_set_parameter) */
    bool is_number;        /* stands for a complex number in an op's arguments: weak in promotion */
    int64_t numel;
    int64_t offset; /* in elements */
    uint64_t id;
    mt__storage *storage;
    mt_tensor *base;        /* of a differentiable view, retained; else NULL */
    mt__autograd *autograd; /* NULL for most tensors */
    void *host;             /* the language's object for it (mt_tensor_set_host), or NULL */
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS];
};

/* A new contiguous tensor, its elements not initialised. `op` begins messages. */
int mt__tensor_new(const char *op, mt_dtype dtype, mt_device device, const mt__shape *shape,
                   mt_tensor **out);

/* The same with given sizes that are known to be right (they were another tensor's). */
int mt__tensor_new_like(mt_tensor *like, mt_dtype dtype, mt_tensor **out);

/* Copies the elements of a tensor to another of the same sizes on the same device. */
int mt__tensor_copy_into(const mt_tensor *to, const mt_tensor *from);

/* Another tensor over the same storage. With track, it is a view of `base` (TN3), view_version is
 * the storage's now and view_flags are those of `base` and NO_GRAD in that mode; without, it shares
 * only the storage (detach). The geometry must lie inside the storage. */
int mt__tensor_view(mt_tensor *base, const int64_t *sizes, const int64_t *strides, uint32_t n_dims,
                    int64_t offset, bool track, mt_tensor **out);

static inline mt_array mt__array(const mt_tensor *tensor)
{
    size_t bytes = (size_t)tensor->offset * mt_dtype_size((mt_dtype)tensor->dtype);
    return (mt_array){
        .data = tensor->storage->data == NULL ? NULL : (char *)tensor->storage->data + bytes,
        .sizes = tensor->sizes,
        .strides = tensor->strides,
        .n_dims = tensor->n_dims,
        .dtype = tensor->dtype,
    };
}

/* An optional tensor that is not there. */
static inline mt_array mt__no_array(void)
{
    return (mt_array){.n_dims = -1};
}

static inline uint32_t mt__tensor_version(const mt_tensor *tensor)
{
    return atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
}

/* The storage has changed. */
static inline void mt__tensor_bump(mt_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
}

static inline mt__shape mt__tensor_shape(const mt_tensor *tensor)
{
    mt__shape shape;
    shape.n_dims = tensor->n_dims;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        shape.sizes[i] = tensor->sizes[i];
    }
    return shape;
}

static inline mt_category mt__tensor_category(const mt_tensor *tensor)
{
    return mt_dtype_category((mt_dtype)tensor->dtype);
}

/* Defined by autograd; called when the last reference to the tensor goes. */
void mt__autograd_free(mt__autograd *autograd);

#endif /* MINDTORCH_CORE_TENSOR_TENSOR_IMPL_H */
