/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_UNARY: picks the loop of the code, the type and the processor.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/strided.h"

#include <math.h>

/* Elements that are worth waking a thread (about 10 us): 15 us of work or more. */
enum {
    CHEAP_GRAIN = 131072, /* memory is the limit */
    DEAR_GRAIN = 32768    /* arithmetic is */
};

typedef mt__loop_fn *const loop_table[MT_UNARY_COUNT];

static loop_table *const tables[MT_DTYPE_COUNT][MT_ISA_I_LEVELS] = {
    [MT_DTYPE_BOOL] = MT_LOOP_LEVELS(&mt__unary_bool),
    [MT_DTYPE_U8] = MT_LOOP_LEVELS(&mt__unary_u8),
    [MT_DTYPE_I32] = MT_LOOP_LEVELS(&mt__unary_i32),
    [MT_DTYPE_I64] = MT_LOOP_LEVELS(&mt__unary_i64),
    [MT_DTYPE_F32] = MT_LOOP_LEVELS(&mt__unary_f32),
    [MT_DTYPE_F64] = MT_LOOP_LEVELS(&mt__unary_f64),
    [MT_DTYPE_F16] = MT_LOOP_LEVELS(&mt__unary_f16), /* some of them, beside those of float32 */
    [MT_DTYPE_BF16] = MT_LOOP_LEVELS(&mt__unary_bf16),
};

static const int32_t grains[MT_UNARY_COUNT] = {
#define MT_I_UNARY(name, cost) [MT_UNARY_##name] = cost##_GRAIN,
#include <mindtorch/kernel_codes.def>
};

/* A missing bound becomes the end of the type's range. */
static void set_bounds(mt__loop_params *params, const mt_kernel_call *call, uint32_t dtype)
{
    static const int64_t ends[2][2] = {{INT32_MIN, INT32_MAX}, {INT64_MIN, INT64_MAX}};
    for (uint32_t i = 0; i < 2; i++) {
        if (call->n_scalars > i && call->scalars[i].kind != MT_KIND_NONE) {
            continue;
        }
        params->real[i] = i == 0 ? -(double)INFINITY : (double)INFINITY;
        params->integer[i] =
            dtype == MT_DTYPE_U8 ? (i == 0 ? 0 : UINT8_MAX) : ends[dtype == MT_DTYPE_I64][i];
    }
}

mt__loop_fn *mt__unary_loop(uint16_t code, uint32_t dtype)
{
    loop_table *table = tables[dtype][mt__isa_level()];
    return table == NULL ? NULL : (*table)[code];
}

MT_HOST_KERNEL(UNARY)
{
    const mt_array *arrays = call->tensors;
    uint32_t dtype = mt__wide_type(arrays[1].dtype);
    mt__loop_fn *loop = mt__unary_loop(call->code, dtype);
    if (MT_UNLIKELY(loop == NULL)) {
        return mtb_fail(MT_ENOTSUP, "UNARY %u: not implemented for dtype %u", call->code, dtype);
    }
    mt__loop_params params = {.repeats = 0};
    for (uint32_t i = 0; i < call->n_scalars && i < 2; i++) {
        params.real[i] = mt__scalar_real(&call->scalars[i]);
        params.integer[i] = mt__scalar_integer(&call->scalars[i]);
    }
    if (call->code == MT_UNARY_CLAMP || call->code == MT_UNARY_HARDTANH) {
        set_bounds(&params, call, dtype);
    }
    if (MT_UNLIKELY(dtype != arrays[1].dtype)) {
        mt__loop_fn *direct = mt__unary_loop(call->code, arrays[1].dtype);
        mt__pointwise_narrow(arrays, 2, loop, direct, &params, grains[call->code]);
    } else {
        mt__pointwise(arrays, 2, loop, &params, grains[call->code]);
    }
    return MT_OK;
}
