/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that work along one dimension: SOFTMAX and its derivative, CUMSUM, CUMPROD,
 * REDUCE_INDEX. The loops are those of lane_loops.h.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/reduce/lane_loops.h"

enum { /* elements that are worth waking a thread: about 20 us of work */
    EXP_GRAIN = 32 * 1024,
    CHEAP_GRAIN = 128 * 1024
};

/* The last tensor's type decides. */
static int run(const char *name, const mt__lane_loops *loops, mt__lanes_job job,
               const mt_array *tensors, int64_t dim)
{
    if (loops->row == NULL) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name,
                        mt_dtype_name((mt_dtype)tensors[job.n_tensors - 1].dtype));
    }
    job.row = loops->row;
    job.columns = loops->columns;
    return mt__lanes_run(&job, tensors, dim);
}

MT_HOST_KERNEL_WIDENED(SOFTMAX, 0x1, 0)
{
    const mt__lane_table *table = MT_ISA_PICK(mt__softmax_loops);
    return run(
        "softmax", &table->of[call->code][call->tensors[1].dtype],
        (mt__lanes_job){.n_outs = 1, .n_tensors = 2, .grain = EXP_GRAIN, .turns_short = true},
        call->tensors, call->ints[0]);
}

MT_HOST_KERNEL_WIDENED(SOFTMAX_BACKWARD, 0x1, 0)
{
    const mt__lane_table *table = MT_ISA_PICK(mt__softmax_backward_loops);
    return run(
        "softmax_backward", &table->of[call->code][call->tensors[2].dtype],
        (mt__lanes_job){.n_outs = 1, .n_tensors = 3, .grain = EXP_GRAIN, .turns_short = true},
        call->tensors, call->ints[0]);
}

/* Where types differ the input is converted into the output, which is then its own input. */
static int run_running(const mt_kernel_call *call, uint32_t code)
{
    mt_array both[2] = {call->tensors[0], call->tensors[1]};
    if (both[0].dtype != both[1].dtype) {
        mt_kernel_call copy = {.struct_size = sizeof copy,
                               .kernel = MT_KERNEL_COPY,
                               .n_tensors = 2,
                               .tensors = call->tensors};
        MT_TRY(mt__host_COPY(NULL, NULL, &copy));
        both[1] = both[0];
    }
    const mt__lane_table *table = MT_ISA_PICK(mt__running_loops);
    return run(code == 0 ? "cumsum" : "cumprod", &table->of[code][both[1].dtype],
               (mt__lanes_job){.n_outs = 1, .n_tensors = 2, .grain = EXP_GRAIN}, both,
               call->ints[0]);
}

MT_HOST_KERNEL_WIDENED(CUMSUM, 0x1, 0)
{
    return run_running(call, 0);
}

MT_HOST_KERNEL_WIDENED(CUMPROD, 0x1, 0)
{
    return run_running(call, 1);
}

MT_HOST_KERNEL_WIDENED(REDUCE_INDEX, 0x3, 0)
{
    const mt__lane_table *table = MT_ISA_PICK(mt__extreme_loops);
    return run(
        "max", &table->of[call->code][call->tensors[2].dtype],
        (mt__lanes_job){.n_outs = 2, .n_tensors = 3, .grain = CHEAP_GRAIN, .turns_short = true},
        call->tensors, call->ints[0]);
}
