/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_TERNARY: three inputs, each a tensor or a number.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/strided.h"

enum {
    GRAIN = 131072 /* elements a thread is woken for */
};

typedef mt__loop_fn *const loop_table[MT_TERNARY_COUNT];

static loop_table *const tables[MT_DTYPE_COUNT][MT_ISA_I_LEVELS] = {
    [MT_DTYPE_U8] = MT_LOOP_LEVELS(&mt__ternary_u8),
    [MT_DTYPE_I32] = MT_LOOP_LEVELS(&mt__ternary_i32),
    [MT_DTYPE_I64] = MT_LOOP_LEVELS(&mt__ternary_i64),
    [MT_DTYPE_F32] = MT_LOOP_LEVELS(&mt__ternary_f32),
    [MT_DTYPE_F64] = MT_LOOP_LEVELS(&mt__ternary_f64),
};

static mt__loop_fn *const *const where_loops[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__where_loops);

static mt__loop_fn *find_loop(uint16_t code, uint32_t dtype)
{
    mt__isa level = mt__isa_level();
    if (code == MT_TERNARY_WHERE) { /* moves elements of any type */
        return where_loops[level][mt__width_index(mt__element_bytes(dtype))];
    }
    loop_table *table = tables[dtype][level];
    return table == NULL ? NULL : (*table)[code];
}

MT_HOST_KERNEL(TERNARY)
{
    static const int64_t no_strides[MT_MAX_DIMS] = {0};
    const mt_array *out = &call->tensors[0];
    bool moves = call->code == MT_TERNARY_WHERE;
    uint32_t dtype = moves ? out->dtype : mt__wide_type(out->dtype);
    mt__loop_fn *loop = find_loop(call->code, dtype);
    if (MT_UNLIKELY(loop == NULL)) {
        return mtb_fail(MT_ENOTSUP, "TERNARY %u: not implemented for dtype %u", call->code,
                        out->dtype);
    }
    mt__loop_params params = {.real = {1}, .integer = {1}};
    if (call->n_scalars > 0) {
        params.real[0] = mt__scalar_real(&call->scalars[0]);
        params.integer[0] = mt__scalar_integer(&call->scalars[0]);
    }
    mt_array arrays[4] = {*out};
    uint64_t elements[4] = {0};
    int64_t mask = call->n_ints > 0 ? call->ints[0] : 0;
    for (uint32_t k = 1; k < 4; k++) {
        if ((mask >> (k - 1) & 1) == 0) {
            arrays[k] = call->tensors[k];
            continue;
        }
        bool is_condition = moves && k == 1;
        arrays[k] = *out;
        arrays[k].dtype = is_condition ? MT_DTYPE_BOOL : dtype; /* numbers are not rounded */
        arrays[k].data = &elements[k];
        arrays[k].strides = no_strides;
        mt__scalar_store(&call->scalars[k], (mt_dtype)arrays[k].dtype, &elements[k]);
    }
    if (MT_UNLIKELY(dtype != out->dtype)) {
        mt__pointwise_narrow(arrays, 4, loop, NULL, &params, GRAIN);
    } else {
        mt__pointwise(arrays, 4, loop, &params, GRAIN);
    }
    return MT_OK;
}
