/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_FILL and MT_KERNEL_COPY. A copy is, in this order of preference: one memcpy; a
 * transpose in blocks; rows moved with their strides; a conversion loop (loops_convert.c).
 */
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/strided.h"

#include <string.h>

enum {
    MOVE_GRAIN = 262144, /* elements a thread is woken for: fills and copies */
    CONVERT_GRAIN = 131072,
    TURN_STRIP = 64,   /* rows of a transposed piece */
    TURN_SMALLEST = 8, /* shorter sides are not worth a transpose */
};

/* ---- fill ---- */

static uint32_t fill_bytes(void *const *arrays, int64_t n, const mt__loop_params *params)
{
    memset(arrays[0], (int)params->integer[0], (size_t)n);
    return 0;
}

MT_HOST_KERNEL(FILL)
{
    static mt__loop_fn *const *const loops[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__fill_loops);
    const mt_array *out = &call->tensors[0];
    int64_t bytes = mt__element_bytes(out->dtype);
    uint64_t element = 0;
    mt__scalar_store(&call->scalars[0], (mt_dtype)out->dtype, &element);
    mt__loop_params params = {.integer = {(int64_t)element}};
    int64_t numel;
    bool is_contiguous = mt__all_contiguous(out, 1, &numel);
    if (numel <= 0) {
        return MT_OK;
    }
    if (is_contiguous && (element == 0 || bytes == 1)) {
        mt__strided it = {.n_operands = 1,
                          .n_dims = 1,
                          .numel = numel * bytes,
                          .data = {out->data},
                          .bytes = {1},
                          .linear = {true}};
        mt__strided_for(&it, fill_bytes, &params, MOVE_GRAIN * 4);
        return MT_OK;
    }
    mt__pointwise(out, 1, loops[mt__isa_level()][mt__width_index(bytes)], &params, MOVE_GRAIN);
    return MT_OK;
}

/* ---- copy of one type ---- */

static uint32_t copy_bytes(void *const *arrays, int64_t n, const mt__loop_params *params)
{
    (void)params;
    memcpy(arrays[0], arrays[1], (size_t)n);
    return 0;
}

/* Where a dimension other than the innermost is that in which `in` has neighbours; else 0. */
static int32_t find_turned(const mt__strided *it)
{
    int64_t bytes = it->bytes[0];
    if (it->strides[0][0] != bytes || it->strides[1][0] == bytes || it->sizes[0] < TURN_SMALLEST) {
        return 0;
    }
    for (int32_t d = 1; d < it->n_dims; d++) {
        if (it->strides[1][d] == bytes && it->sizes[d] >= TURN_SMALLEST) {
            return d;
        }
    }
    return 0;
}

typedef struct turn_job {
    const mt__strided *it;
    mt__transpose_fn *turn;
    int32_t dim;    /* in which `in` has neighbours */
    int64_t strips; /* of that dimension */
} turn_job;

/* Strips begin .. end - 1 of all planes; a plane is dimensions 0 and `dim`, the others count it. */
static void turn_strips(void *context, int64_t begin, int64_t end)
{
    const turn_job *work = context;
    const mt__strided *it = work->it;
    for (int64_t number = begin; number < end; number++) {
        int64_t row = number % work->strips * TURN_STRIP;
        int64_t plane = number / work->strips;
        char *out = it->data[0] + row * it->strides[0][work->dim];
        const char *in = it->data[1] + row * it->strides[1][work->dim];
        for (int32_t d = 1; d < it->n_dims; d++) {
            if (d != work->dim) {
                int64_t index = plane % it->sizes[d];
                plane /= it->sizes[d];
                out += index * it->strides[0][d];
                in += index * it->strides[1][d];
            }
        }
        int64_t rows = it->sizes[work->dim] - row;
        rows = rows < TURN_STRIP ? rows : TURN_STRIP;
        work->turn(out, it->strides[0][work->dim], in, it->strides[1][0], rows, it->sizes[0],
                   it->bytes[0]);
    }
}

static void copy_turned(const mt__strided *it, int32_t dim)
{
    turn_job work = {.it = it,
                     .turn = MT_ISA_PICK(mt__transpose),
                     .dim = dim,
                     .strips = (it->sizes[dim] + TURN_STRIP - 1) / TURN_STRIP};
    int64_t planes = it->numel / (it->sizes[0] * it->sizes[dim]);
    int64_t strip_elements =
        it->sizes[0] * (it->sizes[dim] < TURN_STRIP ? it->sizes[dim] : TURN_STRIP);
    int64_t grain = MOVE_GRAIN / 2 / strip_elements;
    mt__parallel_for(planes * work.strips, grain < 1 ? 1 : grain, turn_strips, &work);
}

typedef struct row_job {
    const mt__strided *it;
} row_job;

/* Rows begin .. end - 1 of the walk, with their strides. */
static void copy_rows(void *context, int64_t begin, int64_t end)
{
    const mt__strided *it = ((const row_job *)context)->it;
    for (int64_t row = begin; row < end; row++) {
        char *out = it->data[0];
        const char *in = it->data[1];
        int64_t rest = row;
        for (int32_t d = 1; d < it->n_dims; d++) {
            int64_t index = it->n_dims == 2 ? rest : rest % it->sizes[d];
            rest = it->n_dims == 2 ? 0 : rest / it->sizes[d];
            out += index * it->strides[0][d];
            in += index * it->strides[1][d];
        }
        mt__move_strided(out, it->strides[0][0], in, it->strides[1][0], it->sizes[0], it->bytes[0]);
    }
}

static void copy_same_type(mt__strided *it)
{
    if (it->linear[0] && it->linear[1]) {
        it->numel *= it->bytes[0];
        it->bytes[0] = 1;
        it->bytes[1] = 1;
        mt__strided_for(it, copy_bytes, NULL, MOVE_GRAIN * 4);
        return;
    }
    int32_t turned = find_turned(it);
    if (turned != 0) {
        copy_turned(it, turned);
        return;
    }
    row_job work = {.it = it};
    int64_t grain = MOVE_GRAIN / 2 / it->sizes[0];
    mt__parallel_for(it->numel / it->sizes[0], grain < 1 ? 1 : grain, copy_rows, &work);
}

MT_HOST_KERNEL(COPY)
{
    static mt__loop_fn *const *const loops[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__convert_loops);
    const mt_array *arrays = call->tensors;
    uint32_t to = arrays[0].dtype;
    uint32_t from = arrays[1].dtype;
    if (to != from) {
        mt__loop_fn *loop = loops[mt__isa_level()][from * MT_DTYPE_COUNT + to];
        mt__loop_params params = {.repeats = 0};
        mt__pointwise(arrays, 2, loop, &params, CONVERT_GRAIN);
        return MT_OK;
    }
    int64_t numel;
    if (mt__all_contiguous(arrays, 2, &numel) && numel <= MOVE_GRAIN) {
        if (numel > 0 && arrays[0].data != arrays[1].data) {
            memcpy(arrays[0].data, arrays[1].data, (size_t)(numel * mt__element_bytes(to)));
        }
        return MT_OK;
    }
    if (numel > 0) {
        mt__strided it;
        mt__strided_init(&it, arrays, 2, false);
        copy_same_type(&it);
    }
    return MT_OK;
}
