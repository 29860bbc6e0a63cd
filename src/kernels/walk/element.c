/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements and numbers, see loops.h.
 */
#include "kernels/isa/pointwise/loops.h"
#include "kernels/number/half.h"

const uint8_t mt__element_sizes[MT_DTYPE_COUNT] = {
#define X(name, value, text, size, category, profiler) [MT_DTYPE_##name] = (size),
#include <mindtorch/dtype.def>
#undef X
};

void mt__scalar_store(const mt_scalar *scalar, mt_dtype dtype, void *element)
{
    double real = mt__scalar_real(scalar);
    int64_t integer = mt__scalar_integer(scalar);
    bool is_real = scalar->kind == MT_KIND_REAL;
    switch (dtype) {
    case MT_DTYPE_BOOL: *(uint8_t *)element = is_real ? real != 0.0 : integer != 0; return;
    case MT_DTYPE_U8: *(uint8_t *)element = (uint8_t)integer; return;
    case MT_DTYPE_I32:
        *(int32_t *)element = is_real ? mt__real_to_i32(real) : (int32_t)integer;
        return;
    case MT_DTYPE_I64: *(int64_t *)element = integer; return;
    case MT_DTYPE_I8: *(int8_t *)element = (int8_t)integer; return;
    case MT_DTYPE_I16:
    case MT_DTYPE_U16: *(uint16_t *)element = (uint16_t)integer; return;
    case MT_DTYPE_U32: *(uint32_t *)element = (uint32_t)integer; return;
    case MT_DTYPE_U64:
        *(uint64_t *)element = is_real ? mt__real_to_u64(real) : (uint64_t)integer;
        return;
    case MT_DTYPE_F16: *(uint16_t *)element = mt__f32_to_f16((float)real); return;
    case MT_DTYPE_BF16: *(uint16_t *)element = mt__f32_to_bf16((float)real); return;
    case MT_DTYPE_F32: *(float *)element = (float)real; return;
    case MT_DTYPE_C64: /* the imaginary part is 0 */
        ((float *)element)[0] = (float)real;
        ((float *)element)[1] = 0;
        return;
    default: *(double *)element = real; return;
    }
}
