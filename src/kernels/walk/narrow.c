/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow types, see narrow.h.
 */
#include "kernels/walk/narrow.h"

#include "base/fail.h"
#include "kernels/walk/scratch.h"
#include "kernels/walk/strided.h"

enum {
    TILE = 512,          /* elements converted at a time: all tiles are in the first cache */
    APART = 192,         /* bytes between tiles: at a distance of 4096 a read waits for a write */
    COPY_GRAIN = 131072, /* elements a thread is woken for, as in host_copy.c */
    MOST_TENSORS = 24    /* of a kernel's call */
};

const uint8_t mt__wide_types[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = MT_DTYPE_BOOL, [MT_DTYPE_U8] = MT_DTYPE_U8,   [MT_DTYPE_I32] = MT_DTYPE_I32,
    [MT_DTYPE_I64] = MT_DTYPE_I64,   [MT_DTYPE_F16] = MT_DTYPE_F32, [MT_DTYPE_BF16] = MT_DTYPE_F32,
    [MT_DTYPE_F32] = MT_DTYPE_F32,   [MT_DTYPE_F64] = MT_DTYPE_F64, [MT_DTYPE_I8] = MT_DTYPE_I32,
    [MT_DTYPE_I16] = MT_DTYPE_I32,   [MT_DTYPE_U16] = MT_DTYPE_I32, [MT_DTYPE_U32] = MT_DTYPE_I64,
    [MT_DTYPE_U64] = MT_DTYPE_U64,   [MT_DTYPE_C64] = MT_DTYPE_C64, [MT_DTYPE_C128] = MT_DTYPE_C128,
};

mt__loop_fn *mt__convert_loop(uint32_t from, uint32_t to)
{
    static mt__loop_fn *const *const loops[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__convert_loops);
    return loops[mt__isa_level()][from * MT_DTYPE_COUNT + to];
}

/* ---- a tile at a time ---- */

/* What run_tiles() needs beside the parameters of the inner loop. */
typedef struct mt__narrow {
    mt__loop_fn *loop;
    int32_t count;
    int64_t bytes[MT_STRIDED_OPERANDS];
    mt__loop_fn *convert[MT_STRIDED_OPERANDS]; /* NULL: not narrow */
} mt__narrow;

static uint32_t run_tiles(void *const *arrays, int64_t n, const mt__loop_params *params)
{
    const mt__narrow *narrow = params->narrow;
    const mt__loop_params plain = {.repeats = 0};
    _Alignas(64) char tiles[MT_STRIDED_OPERANDS][TILE * 8 + APART];
    uint32_t flags = 0;
    for (int64_t at = 0; at < n; at += TILE) {
        int64_t length = n - at < TILE ? n - at : TILE;
        void *inner[MT_STRIDED_OPERANDS];
        for (int32_t k = 0; k < narrow->count; k++) {
            bool repeats = (params->repeats >> k & 1) != 0;
            char *place = (char *)arrays[k] + (repeats ? 0 : at * narrow->bytes[k]);
            inner[k] = place;
            if (narrow->convert[k] != NULL) {
                inner[k] = tiles[k];
                if (k > 0 && !(repeats && at > 0)) {
                    narrow->convert[k]((void *[]){tiles[k], place}, repeats ? 1 : length, &plain);
                }
            }
        }
        flags |= narrow->loop(inner, length, params);
        if (narrow->convert[0] != NULL) {
            char *place = (char *)arrays[0] + at * narrow->bytes[0];
            narrow->convert[0]((void *[]){place, tiles[0]}, length, &plain);
        }
    }
    return flags;
}

/* Whether an array may be one element in all of a step of the walk. */
static bool may_repeat(const mt_array *array)
{
    for (int32_t d = 0; d < array->n_dims; d++) {
        if (array->sizes[d] > 1 && array->strides[d] == 0) {
            return true;
        }
    }
    return array->n_dims == 0;
}

/* Whether a loop for the type itself can run: all have it, or an input is one float for all
 * elements (a number of the call) and the other one of the type. */
static bool runs_direct(const mt_array *arrays, int32_t count, uint32_t *wide)
{
    *wide = 0;
    for (int32_t k = 1; k < count; k++) {
        if (arrays[k].dtype == arrays[0].dtype) {
            continue;
        }
        const mt_array *other = &arrays[k == 1 ? 2 : 1];
        bool is_number = arrays[k].dtype == MT_DTYPE_F32 && count == 3 && may_repeat(&arrays[k]);
        for (int32_t d = 0; is_number && d < arrays[k].n_dims; d++) {
            is_number = arrays[k].strides[d] == 0;
        }
        if (!is_number || other->dtype != arrays[0].dtype || may_repeat(other)) {
            return false;
        }
        *wide |= 1U << k;
    }
    return true;
}

uint32_t mt__pointwise_narrow(const mt_array *arrays, int32_t count, mt__loop_fn *loop,
                              mt__loop_fn *direct, const mt__loop_params *params, int64_t grain)
{
    uint32_t numbers; /* bits: operands of the wide type */
    if (direct != NULL && runs_direct(arrays, count, &numbers)) {
        mt__loop_params plain = *params;
        plain.can_repeat = count == 3;
        plain.wide = numbers;
        return mt__pointwise(arrays, count, direct, &plain, grain);
    }
    mt__narrow narrow = {.loop = loop, .count = count};
    mt__loop_params own = *params;
    own.narrow = &narrow;
    for (int32_t k = 0; k < count; k++) {
        uint32_t dtype = arrays[k].dtype;
        uint32_t wide = mt__wide_type(dtype);
        narrow.bytes[k] = mt__element_bytes(dtype);
        if (wide != dtype) {
            narrow.convert[k] =
                k == 0 ? mt__convert_loop(wide, dtype) : mt__convert_loop(dtype, wide);
        }
    }
    return mt__pointwise(arrays, count, run_tiles, &own, grain);
}

/* ---- whole tensors ---- */

bool mt__has_narrow(const mt_kernel_call *call)
{
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        if (call->tensors[i].n_dims >= 0 && mt__is_narrow(call->tensors[i].dtype)) {
            return true;
        }
    }
    return false;
}

/* A tensor of the call and its copy. Dimensions that repeat one element are not copied out. */
typedef struct wide_copy {
    mt_array from, to;
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS];
} wide_copy;

static void convert(const mt_array *to, const mt_array *from)
{
    const mt_array arrays[2] = {*to, *from};
    mt__loop_params params = {.repeats = 0};
    mt__pointwise(arrays, 2, mt__convert_loop(from->dtype, to->dtype), &params, COPY_GRAIN);
}

/* Room for the copy; *array becomes what the kernel gets. */
static int copy_init(wide_copy *copy, mt_array *array)
{
    int64_t numel = 1;
    copy->from = *array;
    copy->to = *array;
    copy->to.dtype = mt__wide_type(array->dtype);
    for (int32_t d = array->n_dims - 1; d >= 0; d--) {
        bool repeats = array->strides[d] == 0;
        copy->sizes[d] = repeats && array->sizes[d] > 1 ? 1 : array->sizes[d];
        copy->strides[d] = repeats ? 0 : numel;
        numel *= copy->sizes[d];
    }
    copy->to.strides = copy->strides;
    size_t bytes = (size_t)mt__element_bytes(copy->to.dtype);
    copy->to.data = mt__scratch_take(numel > 0 ? (size_t)numel : 1, bytes);
    if (copy->to.data == NULL) {
        return mtb_fail(MT_ENOMEM, "a copy of %lld elements in another type: memory was refused",
                        (long long)numel);
    }
    *array = copy->to;
    copy->from.sizes = copy->sizes;
    copy->to.sizes = copy->sizes;
    return MT_OK;
}

int mt__run_widened(const mt_kernel_call *call, mt__kernel_body *run, uint32_t written,
                    uint32_t kept)
{
    mt_array tensors[MOST_TENSORS];
    wide_copy copies[MOST_TENSORS];
    uint32_t copied = 0; /* bit i: tensor i has a copy */
    int status = MT_OK;
    MT_ASSERT(call->n_tensors <= MOST_TENSORS);
    for (uint32_t i = 0; i < call->n_tensors && status == MT_OK; i++) {
        tensors[i] = call->tensors[i];
        if (tensors[i].n_dims < 0 || !mt__is_narrow(tensors[i].dtype)) {
            continue;
        }
        status = copy_init(&copies[i], &tensors[i]);
        if (status == MT_OK) {
            copied |= 1U << i;
            if ((written & ~kept & 1U << i) == 0) {
                convert(&copies[i].to, &copies[i].from);
            }
        }
    }
    if (status == MT_OK) {
        mt_kernel_call wide = *call;
        wide.tensors = tensors;
        status = run(&wide);
    }
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        if ((copied & 1U << i) != 0) {
            if (status == MT_OK && (written & 1U << i) != 0) {
                convert(&copies[i].from, &copies[i].to);
            }
            mt__scratch_give(copies[i].to.data);
        }
    }
    return status;
}
