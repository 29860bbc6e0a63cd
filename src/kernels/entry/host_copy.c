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

/* ---- complex elements: the real parts, then the imaginary parts, as real arrays ---- */

typedef struct part_array {
    mt_array array;
    int64_t strides[MT_MAX_DIMS];
} part_array;

static bool is_complex(const mt_array *array)
{
    return array->dtype == MT_DTYPE_C64 || array->dtype == MT_DTYPE_C128;
}

/* Real numbers are all there is of part 0. */
static void part_init(part_array *part, const mt_array *whole, int64_t number)
{
    part->array = *whole;
    if (!is_complex(whole)) {
        return;
    }
    part->array.dtype = whole->dtype == MT_DTYPE_C64 ? MT_DTYPE_F32 : MT_DTYPE_F64;
    part->array.data = (char *)whole->data + number * mt__element_bytes(part->array.dtype);
    for (int32_t d = 0; d < whole->n_dims; d++) {
        part->strides[d] = 2 * whole->strides[d];
    }
    part->array.strides = part->strides;
}

static int fill_part(const mt_array *out, int64_t number, const mt_scalar *value)
{
    part_array part;
    part_init(&part, out, number);
    mt_kernel_call call = {.kernel = MT_KERNEL_FILL,
                           .tensors = &part.array,
                           .n_tensors = 1,
                           .scalars = value,
                           .n_scalars = 1};
    return mt__host_FILL(NULL, NULL, &call);
}

static int copy_part(const mt_array *out, const mt_array *in, int64_t number)
{
    part_array to, from;
    part_init(&to, out, number);
    part_init(&from, in, number);
    const mt_array arrays[2] = {to.array, from.array};
    mt_kernel_call call = {.kernel = MT_KERNEL_COPY, .tensors = arrays, .n_tensors = 2};
    return mt__host_COPY(NULL, NULL, &call);
}

static uint32_t truth_of_parts(void *const *arrays, int64_t n, const mt__loop_params *params)
{
    uint8_t *out = arrays[0];
    const double *re = arrays[1], *im = arrays[2];
    (void)params;
    for (int64_t i = 0; i < n; i++) {
        out[i] = re[i] != 0 || im[i] != 0;
    }
    return 0;
}

static uint32_t truth_of_floats(void *const *arrays, int64_t n, const mt__loop_params *params)
{
    uint8_t *out = arrays[0];
    const float *re = arrays[1], *im = arrays[2];
    (void)params;
    for (int64_t i = 0; i < n; i++) {
        out[i] = re[i] != 0 || im[i] != 0;
    }
    return 0;
}

/* A bool is whether either part is not 0. Other real types take the real part. */
static int copy_complex(const mt_array *out, const mt_array *in)
{
    if (is_complex(out)) {
        const mt_scalar zero = {.kind = MT_KIND_INT};
        int status = copy_part(out, in, 0);
        if (status != MT_OK) {
            return status;
        }
        return is_complex(in) ? copy_part(out, in, 1) : fill_part(out, 1, &zero);
    }
    if (out->dtype != MT_DTYPE_BOOL) {
        return copy_part(out, in, 0);
    }
    part_array re, im;
    part_init(&re, in, 0);
    part_init(&im, in, 1);
    const mt_array arrays[3] = {*out, re.array, im.array};
    mt__loop_params params = {.repeats = 0};
    mt__pointwise(arrays, 3, in->dtype == MT_DTYPE_C64 ? truth_of_floats : truth_of_parts, &params,
                  CONVERT_GRAIN);
    return MT_OK;
}

MT_HOST_KERNEL(FILL)
{
    if (MT_UNLIKELY(call->tensors[0].dtype == MT_DTYPE_C128)) {
        const mt_scalar zero = {.kind = MT_KIND_INT};
        int status = fill_part(&call->tensors[0], 0, &call->scalars[0]);
        return status != MT_OK ? status : fill_part(&call->tensors[0], 1, &zero);
    }
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
    int64_t numel;
    bool flat = to == from && mt__all_contiguous(arrays, 2, &numel);
    bool moves = flat || (to == from && to == MT_DTYPE_C64);       /* which moves as any 8 bytes */
    moves = moves || (from == MT_DTYPE_F32 && to == MT_DTYPE_C64); /* has a loop */
    if (MT_UNLIKELY(to >= MT_DTYPE_C64 || from >= MT_DTYPE_C64) && !moves) {
        return copy_complex(&arrays[0], &arrays[1]);
    }
    if (to != from) {
        mt__loop_fn *loop = loops[mt__isa_level()][from * MT_DTYPE_COUNT + to];
        mt__loop_params params = {.repeats = 0};
        mt__pointwise(arrays, 2, loop, &params, CONVERT_GRAIN);
        return MT_OK;
    }
    if (flat && numel <= MOVE_GRAIN) {
        if (numel > 0 && arrays[0].data != arrays[1].data) {
            memcpy(arrays[0].data, arrays[1].data, (size_t)(numel * mt__element_bytes(to)));
        }
        return MT_OK;
    }
    if (mt__array_numel(&arrays[0]) > 0) {
        mt__strided it;
        mt__strided_init(&it, arrays, 2, false);
        copy_same_type(&it);
    }
    return MT_OK;
}
