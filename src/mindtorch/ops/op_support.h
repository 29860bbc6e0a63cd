/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops: results, conversions, calls of kernels. Tensors returned through `out` belong to
 * the call (results or temporaries): the op does not release them.
 */
#ifndef MINDTORCH_OPS_OP_SUPPORT_H
#define MINDTORCH_OPS_OP_SUPPORT_H

#include "mindtorch/core/device/launch.h"
#include "mindtorch/dispatch/call.h"
#include "op_numbers.h"
#include "private_ops.h"

#include <mindtorch/ops.h>

/* mt__run_<name>() where ops differ in a helper's arguments alone:
 * MT_RUN(floor, run_rounding, MT_UNARY_FLOOR, "floor_vml_cpu") */
#define MT_RUN(name, helper, ...)         \
    int mt__run_##name(mt__call *call)    \
    {                                     \
        return helper(call, __VA_ARGS__); \
    }

/* "add" for messages. */
MT_INLINE const char *mt__op_name(const mt__call *call)
{
    return call->row->name;
}

/* Makes a new tensor on the call's device and gives it as result i. */
int mt__result_new(mt__call *call, uint32_t i, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out);

/* The same for a temporary. */
int mt__temp_new(mt__call *call, mt_dtype dtype, const mt__shape *shape, mt_tensor **out);

/* Result i, which was made contiguous, becomes channels last where `like` is. The last step of ops
 * whose kernels want contiguous images. */
int mt__keep_channels_last(mt__call *call, uint32_t i, const mt_tensor *like);

/* Returns an existing tensor as result i (one more reference); for in-place ops. */
void mt__result_same(mt__call *call, uint32_t i, mt_tensor *tensor);

/* Result 0 becomes a list: `make` applied to each tensor of argument 0. */
int mt__result_each(mt__call *call,
                    int (*make)(mt_tensor *given, const void *context, mt_tensor **out),
                    const void *context);

/* The tensor itself, or a contiguous copy. */
int mt__contiguous(mt__call *call, mt_tensor *tensor, mt_tensor **out);

/* The tensor itself, or a copy of another type (contiguous). */
int mt__converted(mt__call *call, mt_tensor *tensor, mt_dtype dtype, mt_tensor **out);

/* A kernel's call. NULL tensors are absent optional ones. Up to 24 tensors. */
typedef struct mt__kernel_args {
    mt_kernel kernel;
    uint16_t code;
    uint32_t n_tensors;
    mt_tensor *tensors[24];
    uint32_t n_ints;
    int64_t ints[24];
    uint32_t n_scalars;
    mt_scalar scalars[8];
} mt__kernel_args;

/* The lists of a call with their lengths:
 * {.kernel = MT_KERNEL_GATHER, MT_TENSORS(out, self, index), MT_INTS(dim)}. */
#define MT_TENSORS(...) \
    .n_tensors = MT_COUNT(((mt_tensor *const[]){__VA_ARGS__})), .tensors = {__VA_ARGS__}
#define MT_INTS(...) .n_ints = MT_COUNT(((const int64_t[]){__VA_ARGS__})), .ints = {__VA_ARGS__}
#define MT_SCALARS(...) \
    .n_scalars = MT_COUNT(((const mt_scalar[]){__VA_ARGS__})), .scalars = {__VA_ARGS__}

int mt__kernel(mt__call *call, const mt__kernel_args *args);

/* Copies elements (any types, sizes equal or broadcast to `to`): kernel COPY, across devices too.
 */
int mt__copy_elements(mt_tensor *to, mt_tensor *from);

/* The same; non_blocking: a copy between pinned memory and an accelerator is queued only. */
int mt__copy_elements_with(mt_tensor *to, mt_tensor *from, bool non_blocking);

/* The type of a result: dimensioned tensors, then 0-d tensors, then numbers; a higher category
 * wins. Values that are neither tensors nor numbers are left out. MT_ERUNTIME: types that have no
 * common one (mt_promote_types()). */
int mt__promote_values(const mt_value *values, uint32_t count, mt_dtype *dtype);

/* The default type where `dtype` is an integer or bool: what exp(), div() compute in. */
mt_dtype mt__to_floating(mt_dtype dtype);

/* The type in which sums of elements are kept: float32 for float16 and bfloat16. */
mt_dtype mt__sums_type(mt_dtype dtype);

#endif /* MINDTORCH_OPS_OP_SUPPORT_H */
