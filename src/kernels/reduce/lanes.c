/* SPDX-License-Identifier: Apache-2.0
 *
 * Work along one dimension, see lanes.h.
 */
#include "kernels/reduce/lanes.h"

#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/pointwise/loops.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <stdbool.h>
#include <string.h>

typedef struct outer_dim {
    int64_t size;
    int64_t strides[MT_LANES_TENSORS];
} outer_dim;

typedef struct lane_plan {
    const mt__lanes_job *job;
    int64_t length, width; /* width 1: rows */
    int64_t chunks;        /* of the width */
    int64_t positions;     /* of outer dimensions */
    uint32_t n_outer;
    bool columns;
    outer_dim outer[MT_MAX_DIMS];
    int64_t step[MT_LANES_TENSORS];
    int64_t lengths[MT_LANES_TENSORS]; /* of each tensor's own lanes: `length`, or 1 */
    char *data[MT_LANES_TENSORS];
    int64_t bytes[MT_LANES_TENSORS];
} lane_plan;

enum {
    TURNED = 32 /* rows that are turned at once */
};

/* ---- the plan ---- */

static bool is_one_dim(const outer_dim *outer, const outer_dim *inner)
{
    for (uint32_t t = 0; t < MT_LANES_TENSORS; t++) {
        if (outer->strides[t] != inner->strides[t] * inner->size) {
            return false;
        }
    }
    return true;
}

/* Sorted by the stride of the last tensor, largest first. */
static void add_outer(lane_plan *lanes, outer_dim dim)
{
    uint32_t last = lanes->job->n_tensors - 1;
    uint32_t at = lanes->n_outer++;
    while (at > 0 && lanes->outer[at - 1].strides[last] < dim.strides[last]) {
        lanes->outer[at] = lanes->outer[at - 1];
        at--;
    }
    lanes->outer[at] = dim;
    lanes->positions *= dim.size;
}

static void join_outer(lane_plan *lanes)
{
    uint32_t last = 0;
    for (uint32_t i = 1; i < lanes->n_outer; i++) {
        if (is_one_dim(&lanes->outer[last], &lanes->outer[i])) {
            lanes->outer[i].size *= lanes->outer[last].size;
            lanes->outer[last] = lanes->outer[i];
        } else {
            lanes->outer[++last] = lanes->outer[i];
        }
    }
    lanes->n_outer = lanes->n_outer == 0 ? 0 : last + 1;
}

static bool steps_are_one(const lane_plan *lanes, const mt_array *tensors, int64_t dim)
{
    for (uint32_t t = 0; t < lanes->job->n_tensors; t++) {
        if (tensors[t].n_dims > 0 && tensors[t].sizes[dim] > 1 && lanes->step[t] != 1) {
            return false;
        }
    }
    return true;
}

/* Takes the innermost of the outer dimensions as the width where lanes lie side by side. */
static bool take_width(lane_plan *lanes, const mt_array *tensors)
{
    if (lanes->n_outer == 0) {
        return false;
    }
    const outer_dim *inner = &lanes->outer[lanes->n_outer - 1];
    for (uint32_t t = 0; t < lanes->job->n_tensors; t++) {
        if (tensors[t].n_dims >= 0 && inner->strides[t] != 1) {
            return false;
        }
    }
    lanes->columns = true;
    lanes->width = inner->size;
    lanes->positions /= inner->size;
    lanes->n_outer--;
    return true;
}

/* False: neither form fits. The tensors are not empty. */
static bool plan(lane_plan *lanes, const mt__lanes_job *job, const mt_array *tensors, int64_t dim)
{
    const mt_array *full = &tensors[job->n_tensors - 1];
    *lanes = (lane_plan){.job = job, .length = 1, .width = 1, .chunks = 1, .positions = 1};
    for (uint32_t t = 0; t < job->n_tensors; t++) {
        bool absent = tensors[t].n_dims < 0;
        lanes->data[t] = absent ? NULL : tensors[t].data;
        lanes->bytes[t] = absent ? 0 : mt__element_bytes(tensors[t].dtype);
        lanes->lengths[t] = tensors[t].n_dims > 0 ? tensors[t].sizes[dim] : 1;
    }
    for (int32_t i = 0; i < full->n_dims; i++) {
        outer_dim one = {.size = full->sizes[i]};
        for (uint32_t t = 0; t < job->n_tensors; t++) {
            one.strides[t] = tensors[t].n_dims < 0 ? 0 : tensors[t].strides[i];
        }
        if (i == dim) {
            lanes->length = one.size;
            memcpy(lanes->step, one.strides, sizeof lanes->step);
        } else if (one.size != 1) {
            add_outer(lanes, one);
        }
    }
    join_outer(lanes);
    if (steps_are_one(lanes, tensors, dim) || take_width(lanes, tensors)) {
        lanes->chunks = (lanes->width + MT_LANES_WIDTH - 1) / MT_LANES_WIDTH;
        return true;
    }
    return false;
}

/* ---- the run ---- */

static void offsets_of(const lane_plan *lanes, int64_t position, int64_t offsets[MT_LANES_TENSORS])
{
    if (lanes->n_outer == 1) {
        for (uint32_t t = 0; t < MT_LANES_TENSORS; t++) {
            offsets[t] = position * lanes->outer[0].strides[t];
        }
        return;
    }
    for (uint32_t t = 0; t < MT_LANES_TENSORS; t++) {
        offsets[t] = 0;
    }
    for (uint32_t i = lanes->n_outer; i-- > 0;) {
        int64_t index = position % lanes->outer[i].size;
        position /= lanes->outer[i].size;
        for (uint32_t t = 0; t < MT_LANES_TENSORS; t++) {
            offsets[t] += index * lanes->outer[i].strides[t];
        }
    }
}

static void run_lanes(void *context, int64_t begin, int64_t end)
{
    const lane_plan *lanes = context;
    mt__lane_fn *run = lanes->columns ? lanes->job->columns : lanes->job->row;
    mt__lane_block block = {.length = lanes->length, .width = 1};
    memcpy(block.step, lanes->step, sizeof block.step);
    for (int64_t i = begin; i < end; i++) {
        int64_t offsets[MT_LANES_TENSORS];
        int64_t first = i % lanes->chunks * MT_LANES_WIDTH;
        offsets_of(lanes, i / lanes->chunks, offsets);
        for (uint32_t t = 0; t < MT_LANES_TENSORS; t++) {
            block.data[t] = lanes->data[t] == NULL
                                ? NULL
                                : lanes->data[t] + (offsets[t] + first) * lanes->bytes[t];
        }
        int64_t rest = lanes->width - first;
        block.width = rest < MT_LANES_WIDTH ? rest : MT_LANES_WIDTH;
        run(&block);
    }
}

/* ---- short rows, turned ---- */

/* Rows of tensor t, from their places to the columns of the buffer (in), or back. Nothing where
 * the tensor is absent. */
#define TURN_ELEMENTS(T)                                  \
    for (int64_t j = 0; j < width; j++) {                 \
        T *row = (T *)lanes->data[t] + offsets[j][t];     \
        T *column = (T *)buffer + j;                      \
        for (int64_t i = 0; i < lanes->lengths[t]; i++) { \
            if (in) {                                     \
                column[i * TURNED] = row[i];              \
            } else {                                      \
                row[i] = column[i * TURNED];              \
            }                                             \
        }                                                 \
    }

MT_INLINE void turn(const lane_plan *lanes, uint32_t t, void *buffer,
                    int64_t (*offsets)[MT_LANES_TENSORS], int64_t width, bool in)
{
    if (lanes->data[t] == NULL) {
        return;
    }
    if (lanes->bytes[t] == 4) {
        TURN_ELEMENTS(uint32_t)
    } else if (lanes->bytes[t] == 8) {
        TURN_ELEMENTS(uint64_t)
    } else {
        TURN_ELEMENTS(uint8_t)
    }
}

static void run_turned(void *context, int64_t begin, int64_t end)
{
    const lane_plan *lanes = context;
    const mt__lanes_job *job = lanes->job;
    _Alignas(64) char buffers[MT_LANES_TENSORS][MT_LANES_SHORT * TURNED * sizeof(double)];
    int64_t offsets[TURNED][MT_LANES_TENSORS];
    mt__lane_block block = {.length = lanes->length};
    for (uint32_t t = 0; t < job->n_tensors; t++) {
        block.data[t] = lanes->data[t] == NULL ? NULL : buffers[t];
        block.step[t] = TURNED;
    }
    for (int64_t from = begin; from < end; from += TURNED) {
        int64_t width = end - from < TURNED ? end - from : TURNED;
        block.width = width;
        for (int64_t j = 0; j < width; j++) {
            offsets_of(lanes, from + j, offsets[j]);
        }
        for (uint32_t t = job->n_outs; t < job->n_tensors; t++) {
            turn(lanes, t, buffers[t], offsets, width, true);
        }
        job->columns(&block);
        for (uint32_t t = 0; t < job->n_outs; t++) {
            turn(lanes, t, buffers[t], offsets, width, false);
        }
    }
}

static void run_all(lane_plan *lanes)
{
    if (lanes->job->turns_short && !lanes->columns && lanes->length <= MT_LANES_SHORT &&
        lanes->positions >= 8) {
        int64_t grain = 1 + lanes->job->grain / lanes->length / TURNED;
        mt__parallel_for(lanes->positions, grain * TURNED, run_turned, lanes);
        return;
    }
    int64_t width = lanes->width < MT_LANES_WIDTH ? lanes->width : MT_LANES_WIDTH;
    int64_t grain = 1 + lanes->job->grain / (lanes->length * width);
    mt__parallel_for(lanes->positions * lanes->chunks, grain, run_lanes, lanes);
}

/* ---- copies for what fits neither form ---- */

typedef struct staged_array {
    mt_array array;
    int64_t strides[MT_MAX_DIMS];
    void *memory;
} staged_array;

static int copy_array(const mt_array *to, const mt_array *from)
{
    const mt_array both[2] = {*to, *from};
    mt_kernel_call call = {
        .struct_size = sizeof call, .kernel = MT_KERNEL_COPY, .n_tensors = 2, .tensors = both};
    return mt__host_COPY(NULL, NULL, &call);
}

static int stage(staged_array *staged, const mt_array *array, bool is_input)
{
    staged->array = *array;
    staged->memory = NULL;
    if (array->n_dims < 0) {
        return MT_OK;
    }
    int64_t numel = 1;
    for (int32_t i = array->n_dims; i-- > 0;) {
        staged->strides[i] = numel;
        numel *= array->sizes[i];
    }
    staged->memory = mt__scratch_take((size_t)numel, (size_t)mt__element_bytes(array->dtype));
    if (staged->memory == NULL) {
        return mtb_fail(MT_ENOMEM, "a copy of %lld elements", (long long)numel);
    }
    staged->array.data = staged->memory;
    staged->array.strides = staged->strides;
    return is_input ? copy_array(&staged->array, array) : MT_OK;
}

static int run_staged(const mt__lanes_job *job, const mt_array *tensors, int64_t dim)
{
    staged_array staged[MT_LANES_TENSORS];
    mt_array arrays[MT_LANES_TENSORS];
    uint32_t count = 0;
    int status = MT_OK;
    while (status == MT_OK && count < job->n_tensors) {
        status = stage(&staged[count], &tensors[count], count >= job->n_outs);
        arrays[count] = staged[count].array;
        count++;
    }
    if (status == MT_OK) {
        lane_plan lanes;
        bool fits = plan(&lanes, job, arrays, dim);
        MT_ASSERT(fits);
        (void)fits;
        run_all(&lanes);
    }
    for (uint32_t t = 0; t < count; t++) {
        if (status == MT_OK && t < job->n_outs && staged[t].memory != NULL) {
            status = copy_array(&tensors[t], &staged[t].array);
        }
        mt__scratch_give(staged[t].memory);
    }
    return status;
}

int mt__lanes_run(const mt__lanes_job *job, const mt_array *tensors, int64_t dim)
{
    const mt_array *full = &tensors[job->n_tensors - 1];
    for (int32_t i = 0; i < full->n_dims; i++) {
        if (full->sizes[i] == 0) {
            return MT_OK;
        }
    }
    lane_plan lanes;
    if (!plan(&lanes, job, tensors, dim)) {
        return run_staged(job, tensors, dim);
    }
    run_all(&lanes);
    return MT_OK;
}
