/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of optimizers (SGD, ADAM, ...): one step of one parameter, everything in one pass
 * over its elements.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/optimizer_loops.h"
#include "kernels/walk/parallel.h"

#include <math.h>

enum {
    GRAIN = 32 * 1024 /* elements */
};

typedef struct step_job {
    mt__step step;
    mt__step_fn *run;
} step_job;

static void run_piece(void *context, int64_t begin, int64_t end)
{
    const step_job *job = context;
    job->run(&job->step, begin, end);
}

/* Parameter, gradient and states: the tensors of the call. */
static mt__step step_of(const mt_kernel_call *call, bool maximize)
{
    mt__step step = {
        .param = call->tensors[0].data, .grad = call->tensors[1].data, .sign = maximize ? -1 : 1};
    for (uint32_t i = 2; i < call->n_tensors; i++) {
        step.state[i - 2] = mt__arg_data(call, i);
    }
    return step;
}

static int run(const char *name, const mt_kernel_call *call, const mt__step *step, mt__step_fn *fn)
{
    if (fn == NULL) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name,
                        mt_dtype_name((mt_dtype)call->tensors[0].dtype));
    }
    step_job job = {*step, fn};
    mt__parallel_for(mt__arg_numel(call, 0), GRAIN, run_piece, &job);
    return MT_OK;
}

static const mt__step_loops *loops_of(const mt_kernel_call *call)
{
    return &MT_ISA_PICK(mt__steps)[call->tensors[0].dtype];
}

MT_HOST_KERNEL_WIDENED(SGD, 0x5, 0x5)
{
    mt__step step = step_of(call, call->ints[1] != 0);
    step.nesterov = call->ints[0] != 0;
    step.first = call->ints[2] != 0;
    step.lr = mt__arg_real(call, 0);
    step.momentum = mt__arg_real(call, 1);
    step.dampening = mt__arg_real(call, 2);
    step.weight_decay = mt__arg_real(call, 3);
    return run("sgd", call, &step, loops_of(call)->sgd);
}

/* What the methods of Adam's family have in common. */
static mt__step averaging_step(const mt_kernel_call *call)
{
    mt__step step = step_of(call, call->ints[1] != 0);
    double t = (double)call->ints[0];
    step.decoupled = call->code == 1;
    step.lr = mt__arg_real(call, 0);
    step.beta1 = mt__arg_real(call, 1);
    step.beta2 = mt__arg_real(call, 2);
    step.eps = mt__arg_real(call, 3);
    step.weight_decay = mt__arg_real(call, 4);
    step.step_size = step.lr / (1 - pow(step.beta1, t));
    step.root_scale = 1 / sqrt(1 - pow(step.beta2, t));
    return step;
}

MT_HOST_KERNEL_WIDENED(ADAM, 0x1D, 0x1D)
{
    mt__step step = averaging_step(call);
    return run("adam", call, &step, loops_of(call)->adam);
}

MT_HOST_KERNEL_WIDENED(RMSPROP, 0x1D, 0x1D)
{
    mt__step step = step_of(call, call->ints[0] != 0);
    step.lr = mt__arg_real(call, 0);
    step.beta2 = mt__arg_real(call, 1);
    step.eps = mt__arg_real(call, 2);
    step.weight_decay = mt__arg_real(call, 3);
    step.momentum = mt__arg_real(call, 4);
    return run("rmsprop", call, &step, loops_of(call)->rmsprop);
}

MT_HOST_KERNEL_WIDENED(ADAGRAD, 0x5, 0x5)
{
    mt__step step = step_of(call, call->ints[1] != 0);
    double decay = mt__arg_real(call, 1);
    step.lr = mt__arg_real(call, 0);
    step.step_size = step.lr / (1 + (double)(call->ints[0] - 1) * decay);
    step.weight_decay = mt__arg_real(call, 2);
    step.eps = mt__arg_real(call, 3);
    return run("adagrad", call, &step, loops_of(call)->adagrad);
}

MT_HOST_KERNEL_WIDENED(ADADELTA, 0xD, 0xD)
{
    mt__step step = step_of(call, call->ints[0] != 0);
    step.lr = mt__arg_real(call, 0);
    step.beta2 = mt__arg_real(call, 1);
    step.eps = mt__arg_real(call, 2);
    step.weight_decay = mt__arg_real(call, 3);
    return run("adadelta", call, &step, loops_of(call)->adadelta);
}

MT_HOST_KERNEL_WIDENED(ADAMAX, 0xD, 0xD)
{
    mt__step step = averaging_step(call);
    return run("adamax", call, &step, loops_of(call)->adamax);
}

MT_HOST_KERNEL_WIDENED(NADAM, 0xD, 0xD)
{
    mt__step step = averaging_step(call);
    step.grad_scale = mt__arg_real(call, 5);
    step.step_size = mt__arg_real(call, 6);
    return run("nadam", call, &step, loops_of(call)->nadam);
}

MT_HOST_KERNEL_WIDENED(RADAM, 0xD, 0xD)
{
    mt__step step = averaging_step(call);
    double t = (double)call->ints[0];
    double longest = 2 / (1 - step.beta2) - 1;
    double power = pow(step.beta2, t);
    double length = longest - 2 * t * power / (1 - power);
    step.rectified = length > 5;
    if (step.rectified) {
        step.root_scale =
            sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) /
            step.root_scale;
    }
    return run("radam", call, &step, loops_of(call)->radam);
}

MT_HOST_KERNEL_WIDENED(ASGD, 0x5, 0x5)
{
    mt__step step = step_of(call, call->ints[0] != 0);
    step.step_size = mt__arg_real(call, 1);
    step.shrink = 1 - mt__arg_real(call, 0) * step.step_size;
    step.mu = mt__arg_real(call, 2);
    step.weight_decay = mt__arg_real(call, 3);
    return run("asgd", call, &step, loops_of(call)->asgd);
}

MT_HOST_KERNEL_WIDENED(RPROP, 0xD, 0xD)
{
    mt__step step = step_of(call, call->ints[0] != 0);
    step.shrink = mt__arg_real(call, 0);
    step.grow = mt__arg_real(call, 1);
    step.smallest = mt__arg_real(call, 2);
    step.largest = mt__arg_real(call, 3);
    return run("rprop", call, &step, loops_of(call)->rprop);
}
