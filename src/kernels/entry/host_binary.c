/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_BINARY. The path to the loop is kept short: a small op spends as much time here as in
 * the loop.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/strided.h"

/* Elements that are worth waking a thread (about 10 us): 15 us of work or more. */
enum {
    CHEAP_GRAIN = 131072, /* memory is the limit */
    DEAR_GRAIN = 32768,   /* arithmetic is */
    SMALL = 64            /* up to this many elements a number is expanded to a tensor */
};

typedef mt__loop_fn *const loop_table[MT_BINARY_COUNT];

static loop_table *const tables[MT_DTYPE_COUNT][MT_ISA_I_LEVELS] = {
    [MT_DTYPE_BOOL] = MT_LOOP_LEVELS(&mt__binary_bool),
    [MT_DTYPE_U8] = MT_LOOP_LEVELS(&mt__binary_u8),
    [MT_DTYPE_I32] = MT_LOOP_LEVELS(&mt__binary_i32),
    [MT_DTYPE_I64] = MT_LOOP_LEVELS(&mt__binary_i64),
    [MT_DTYPE_F32] = MT_LOOP_LEVELS(&mt__binary_f32),
    [MT_DTYPE_F64] = MT_LOOP_LEVELS(&mt__binary_f64),
    [MT_DTYPE_F16] = MT_LOOP_LEVELS(&mt__binary_f16), /* some of them, beside those of float32 */
    [MT_DTYPE_BF16] = MT_LOOP_LEVELS(&mt__binary_bf16),
};

/* uint64 has the loops of int64 that give the same bits for both. */
static loop_table *find_table(uint16_t code, uint32_t dtype)
{
    bool signless = code == MT_BINARY_ADD || code == MT_BINARY_SUB || code == MT_BINARY_MUL ||
                    code == MT_BINARY_BITWISE_AND || code == MT_BINARY_BITWISE_OR ||
                    code == MT_BINARY_BITWISE_XOR || code == MT_BINARY_EQ || code == MT_BINARY_NE;
    return tables[dtype == MT_DTYPE_U64 && signless ? MT_DTYPE_I64 : dtype][mt__isa_level()];
}

static const int32_t grains[MT_BINARY_COUNT] = {
#define MT_I_BINARY(name, cost) [MT_BINARY_##name] = cost##_GRAIN,
#include <mindtorch/kernel_codes.def>
};

/* Whether the loop is one of MT_LOOP2_CHEAP (loops_binary_real.c). */
static bool can_repeat(uint16_t code, uint32_t dtype)
{
    return grains[code] == CHEAP_GRAIN && (dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64);
}

/* The loop with one input that computes a power with this exponent; NULL if there is none. As in
 * torch the exponent 1/2 is the square root, also for -0 and -infinity. */
static mt__loop_fn *find_power(const mt_scalar *exponent, uint32_t dtype)
{
    static mt__loop_fn *const *const cubes[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__cube_loops);
    double power = mt__scalar_real(exponent);
    if (power == 2.0) {
        return mt__unary_loop(MT_UNARY_SQUARE, dtype);
    }
    if (dtype != MT_DTYPE_F32 && dtype != MT_DTYPE_F64) {
        return NULL;
    }
    if (power == 3.0) {
        return cubes[mt__isa_level()][dtype == MT_DTYPE_F64];
    }
    if (power == -1.0) {
        return mt__unary_loop(MT_UNARY_RECIPROCAL, dtype);
    }
    if (power == 0.5) {
        return mt__unary_loop(MT_UNARY_SQRT, dtype);
    }
    return power == -0.5 ? mt__unary_loop(MT_UNARY_RSQRT, dtype) : NULL;
}

/* The loop for a narrow type itself; NULL where there is none. */
static mt__loop_fn *find_direct(uint16_t code, uint32_t dtype)
{
    loop_table *table = mt__is_narrow(dtype) ? tables[dtype][mt__isa_level()] : NULL;
    return table == NULL ? NULL : (*table)[code];
}

/* mt__pointwise() for narrow types too. */
static uint32_t run_arrays(uint16_t code, const mt_array *arrays, int32_t count, mt__loop_fn *loop,
                           const mt__loop_params *params, int64_t grain)
{
    bool narrow = mt__is_narrow(arrays[1].dtype) || mt__is_narrow(arrays[count - 1].dtype);
    if (MT_UNLIKELY(narrow)) {
        mt__loop_fn *direct = find_direct(code, arrays[0].dtype);
        return mt__pointwise_narrow(arrays, count, loop, direct, params, grain);
    }
    return mt__pointwise(arrays, count, loop, params, grain);
}

/* A number with every element of the tensor: its strides are all 0. */
static uint32_t run_with_scalar(const mt_kernel_call *call, int64_t form, mt__loop_fn *loop,
                                const mt__loop_params *params)
{
    static const int64_t no_strides[MT_MAX_DIMS] = {0};
    const mt_array *tensor = &call->tensors[1];
    uint32_t dtype = mt__wide_type(tensor->dtype); /* the number is not rounded to a narrow type */
    if (call->code == MT_BINARY_POW && form == 1) {
        mt__loop_fn *power = find_power(&call->scalars[0], dtype);
        if (power != NULL) {
            return run_arrays(call->code, call->tensors, 2, power, params, CHEAP_GRAIN);
        }
    }
    uint64_t element = 0;
    mt__scalar_store(&call->scalars[0], (mt_dtype)dtype, &element);
    int64_t numel;
    if (dtype == tensor->dtype && mt__all_contiguous(call->tensors, 2, &numel) && numel <= SMALL) {
        _Alignas(64) char tile[SMALL * 8];
        int64_t bytes = mt__element_bytes(dtype);
        mt__move_strided(tile, bytes, (const char *)&element, 0, numel, bytes);
        void *arrays[3] = {call->tensors[0].data, tensor->data, tensor->data};
        arrays[form == 1 ? 2 : 1] = tile;
        return numel > 0 ? loop(arrays, numel, params) : 0;
    }
    mt_array arrays[3] = {call->tensors[0], *tensor, *tensor};
    mt_array *scalar = &arrays[form == 1 ? 2 : 1];
    scalar->dtype = dtype;
    scalar->data = &element;
    scalar->strides = no_strides;
    return run_arrays(call->code, arrays, 3, loop, params, grains[call->code]);
}

MT_HOST_KERNEL(BINARY)
{
    uint32_t dtype = mt__wide_type(call->tensors[1].dtype);
    loop_table *table = find_table(call->code, dtype);
    mt__loop_fn *loop = table == NULL ? NULL : (*table)[call->code];
    if (MT_UNLIKELY(loop == NULL)) {
        return mtb_fail(MT_ENOTSUP, "BINARY %u: not implemented for dtype %u", call->code, dtype);
    }
    mt__loop_params params = {
        .real = {0, 1}, .integer = {0, 1}, .can_repeat = can_repeat(call->code, dtype)};
    if (call->n_scalars > 1) {
        params.real[1] = mt__scalar_real(&call->scalars[1]);
        params.integer[1] = mt__scalar_integer(&call->scalars[1]);
    }
    int64_t form = call->n_ints > 0 ? call->ints[0] : 0;
    uint32_t flags = MT_LIKELY(form == 0) ? run_arrays(call->code, call->tensors, 3, loop, &params,
                                                       grains[call->code])
                                          : run_with_scalar(call, form, loop, &params);
    if (MT_UNLIKELY((flags & MT_LOOP_ZERO_DIVISION) != 0)) {
        return mtb_fail(MT_ERUNTIME, "ZeroDivisionError");
    }
    return MT_OK;
}
