/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxed values. A list of tensors returned by an op is one heap block. The value owns the block and
 * one reference to each tensor in it.
 */
#include "base/alloc.h"

#include <mindtorch/tensor.h>
#include <mindtorch/value.h>

mt_scalar mt_bool(bool value)
{
    return (mt_scalar){.kind = MT_KIND_BOOL, .of.integer = value ? 1 : 0};
}

mt_scalar mt_int(int64_t value)
{
    return (mt_scalar){.kind = MT_KIND_INT, .of.integer = value};
}

mt_scalar mt_real(double value)
{
    return (mt_scalar){.kind = MT_KIND_REAL, .of.real = value};
}

void mt_value_clear(mt_value *value)
{
    if (value == NULL) {
        return;
    }
    mt_value old = *value;
    *value = (mt_value){.kind = MT_KIND_NONE};
    if (old.kind == MT_KIND_TENSOR) {
        mt_tensor_release(old.of.tensor);
    } else if (old.kind == MT_KIND_TENSORS) {
        for (uint32_t i = 0; i < old.count; i++) {
            mt_tensor_release(old.of.tensors[i]);
        }
        mtb_free((void *)(uintptr_t)old.of.tensors); /* const for readers only */
    }
}
