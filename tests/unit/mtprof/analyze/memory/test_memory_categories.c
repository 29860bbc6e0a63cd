/* SPDX-License-Identifier: Apache-2.0
 *
 * What memory is for: each rule of memory_categories.h on a small program whose answer is known.
 * The first is one that torch was watched at.
 */
#include "harness/mt_test.h"
#include "memory_script.h"

#include <stdlib.h>
#include <string.h>

enum {
    X = 0x100,
    W = 0x200,
    B = 0x300,
    H = 0x400,
    LOSS = 0x500,
    SEED = 0x600,
    GW = 0x700,
    GB = 0x800,
    TMP = 0x900,
    SUM = 0xA00
};

/* Three unused sums, a linear layer made and used, its backward pass. */
static void linear_once(memory_script *s)
{
    for (unsigned i = 0; i < 3; i++) {
        ms_begin(s, "aten::add", ms_in(T(1, X, 0), T(1, X, 0)));
        ms_alloc(s, SUM, 64);
        ms_end(s, ms_out(T(20 + i, SUM, 0)));
        ms_free(s, SUM, 64);
    }
    ms_begin(s, "aten::empty", MS_NONE);
    ms_alloc(s, W, 32);
    ms_end(s, ms_out(T(2, W, 0)));
    ms_begin(s, "aten::empty", MS_NONE);
    ms_alloc(s, B, 8);
    ms_end(s, ms_out(T(3, B, 0)));
    ms_op(s, "aten::uniform_", ms_in(T(2, W, 0)), ms_out(T(2, W, 1)));
    ms_op(s, "aten::uniform_", ms_in(T(3, B, 0)), ms_out(T(3, B, 1)));

    ms_begin_numbered(s, "aten::linear", 0, ms_in(T(1, X, 0), T(2, W, 1), T(3, B, 1)));
    ms_begin_numbered(s, "aten::t", 0, ms_in(T(2, W, 1)));
    ms_end(s, ms_out(T(4, W, 1)));
    ms_begin_numbered(s, "aten::addmm", 1, ms_in(T(3, B, 1), T(1, X, 0), T(4, W, 1)));
    ms_alloc(s, H, 32);
    ms_end(s, ms_out(T(5, H, 0)));
    ms_end(s, ms_out(T(5, H, 0)));
    ms_begin_numbered(s, "aten::sum", 2, ms_in(T(5, H, 0)));
    ms_alloc(s, LOSS, 4);
    ms_end(s, ms_out(T(6, LOSS, 0)));
    ms_free(s, H, 32);
    ms_begin(s, "aten::ones_like", ms_in(T(6, LOSS, 0)));
    ms_begin(s, "aten::empty_strided", MS_NONE);
    ms_alloc(s, SEED, 4);
    ms_end(s, MS_NONE);
    ms_end(s, ms_out(T(7, SEED, 0)));

    ms_backward(s, "autograd::engine::evaluate_function: SumBackward0", 2, ms_in(T(7, SEED, 0)));
    ms_backward(s, "SumBackward0", 2, ms_in(T(7, SEED, 0)));
    ms_op(s, "aten::expand", ms_in(T(7, SEED, 0)), ms_out(T(8, SEED, 0)));
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_backward(s, "autograd::engine::evaluate_function: AddmmBackward0", 1, ms_in(T(8, SEED, 0)));
    ms_backward(s, "AddmmBackward0", 1, ms_in(T(8, SEED, 0)));
    ms_begin(s, "aten::mm", ms_in(T(1, X, 0), T(8, SEED, 0)));
    ms_alloc(s, GW, 32);
    ms_begin(s, "aten::clone", ms_in(T(8, SEED, 0)));
    ms_alloc(s, TMP, 32);
    ms_end(s, ms_out(T(9, TMP, 0)));
    ms_free(s, TMP, 32);
    ms_end(s, ms_out(T(10, GW, 0)));
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::sum", ms_in(T(8, SEED, 0)));
    ms_alloc(s, GB, 8);
    ms_end(s, ms_out(T(11, GB, 0)));
    ms_end(s, MS_NONE);
    ms_backward(s, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", -1,
                ms_in(T(11, GB, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(11, GB, 0)));
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_backward(s, "autograd::engine::evaluate_function: TBackward0", 0, ms_in(T(10, GW, 0)));
    ms_backward(s, "TBackward0", 0, ms_in(T(10, GW, 0)));
    ms_op(s, "aten::t", ms_in(T(10, GW, 0)), ms_out(T(12, GW, 0)));
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(12, GW, 0)));
    ms_end(s, MS_NONE);

    ms_free(s, SEED, 4);
    ms_free(s, GW, 32);
    ms_free(s, W, 32);
    ms_free(s, GB, 8);
    ms_free(s, B, 8);
    ms_free(s, LOSS, 4);
}

/* The same program under torch 2.11 wrote these actions, in this order. */
TEST(linear_layer_as_torch_saw_it)
{
    ms_expect(linear_once, 0,
              "PRE 0 INPUT\n" /* the script has no shapes; torch knew 64 bytes */
              "CREATE 64 UNKNOWN\nDESTROY -64 UNKNOWN\n"
              "CREATE 64 UNKNOWN\nDESTROY -64 UNKNOWN\n"
              "CREATE 64 UNKNOWN\nDESTROY -64 UNKNOWN\n"
              "CREATE 32 PARAMETER\nCREATE 8 PARAMETER\n"
              "INCREMENT -32 PARAMETER\nINCREMENT 32 PARAMETER\n"
              "INCREMENT -8 PARAMETER\nINCREMENT 8 PARAMETER\n"
              "CREATE 32 ACTIVATION\nCREATE 4 ACTIVATION\nDESTROY -32 ACTIVATION\n"
              "CREATE 4 ACTIVATION\n"
              "CREATE 32 GRADIENT\nCREATE 32 TEMPORARY\nDESTROY -32 TEMPORARY\nCREATE 8 GRADIENT\n"
              "DESTROY -4 ACTIVATION\nDESTROY -32 GRADIENT\nDESTROY -32 PARAMETER\n"
              "DESTROY -8 GRADIENT\nDESTROY -8 PARAMETER\nDESTROY -4 ACTIVATION\n");
}

/* Two steps of y = relu(x w), with an optimizer that keeps a momentum; w, x are older. */
static void train_step(memory_script *s, unsigned round)
{
    uint64_t id = 100 * (round + 1);
    uint32_t w = round; /* version: each step changes it once */
    ms_begin_numbered(s, "aten::mm", 2 * (int64_t)round, ms_in(T(1, X, 0), T(2, W, w)));
    ms_alloc(s, H, 160);
    ms_end(s, ms_out(T(id + 1, H, 0)));
    ms_begin_numbered(s, "aten::relu", 2 * (int64_t)round + 1, ms_in(T(id + 1, H, 0)));
    ms_alloc(s, LOSS, 160);
    ms_end(s, ms_out(T(id + 2, LOSS, 0)));
    ms_free(s, H, 160);
    ms_begin(s, "aten::ones_like", ms_in(T(id + 2, LOSS, 0)));
    ms_alloc(s, SEED, 160);
    ms_end(s, ms_out(T(id + 3, SEED, 0)));

    ms_backward(s, "autograd::engine::evaluate_function: ReluBackward0", 2 * round + 1,
                ms_in(T(id + 3, SEED, 0)));
    ms_backward(s, "ReluBackward0", 2 * round + 1, ms_in(T(id + 3, SEED, 0)));
    ms_begin(s, "aten::threshold_backward", ms_in(T(id + 3, SEED, 0), T(id + 2, LOSS, 0)));
    ms_alloc(s, GB, 160);
    ms_end(s, ms_out(T(id + 4, GB, 0)));
    ms_end(s, ms_out(T(id + 4, GB, 0)));
    ms_end(s, MS_NONE);
    ms_free(s, SEED, 160);
    ms_free(s, LOSS, 160);
    ms_backward(s, "autograd::engine::evaluate_function: MmBackward0", 2 * round,
                ms_in(T(id + 4, GB, 0)));
    ms_backward(s, "MmBackward0", 2 * round, ms_in(T(id + 4, GB, 0)));
    ms_begin(s, "aten::mm", ms_in(T(1, X, 0), T(id + 4, GB, 0)));
    ms_alloc(s, GW, 128);
    ms_end(s, ms_out(T(id + 5, GW, 0)));
    ms_end(s, ms_out(T(id + 5, GW, 0)));
    ms_free(s, GB, 160);
    ms_end(s, MS_NONE);
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(id + 5, GW, 0)));
    ms_end(s, ms_out(T(id + 5, GW, 0)));

    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    if (round == 0) {
        ms_begin(s, "aten::clone", ms_in(T(id + 5, GW, 0)));
        ms_alloc(s, SUM, 128);
        ms_end(s, ms_out(T(3, SUM, 0)));
    } else {
        ms_op(s, "aten::mul_", ms_in(T(3, SUM, 0)), ms_out(T(3, SUM, 1)));
        ms_begin(s, "aten::mul", ms_in(T(id + 5, GW, 0)));
        ms_alloc(s, TMP, 128);
        ms_end(s, ms_out(T(id + 6, TMP, 0)));
        ms_op(s, "aten::add_", ms_in(T(3, SUM, 1), T(id + 6, TMP, 0)), ms_out(T(3, SUM, 2)));
        ms_free(s, TMP, 128);
    }
    ms_op(s, "aten::add_", ms_in(T(2, W, w), T(3, SUM, round == 0 ? 0 : 2)),
          ms_out(T(2, W, w + 1)));
    ms_end(s, MS_NONE);
    ms_free(s, GW, 128);
}

static void train_twice(memory_script *s)
{
    train_step(s, 0);
    train_step(s, 1);
    ms_free(s, W, 128); /* so that its size is known */
}

/* MC2a, MC3a, MC4a, MC5, MC6, MC7: also in the second step, where the parameter depends on
 * gradients. */
TEST(training_steps_with_a_momentum)
{
    ms_expect(train_twice, 0,
              "PRE 0 INPUT\nPRE 128 PARAMETER\n"
              "CREATE 160 ACTIVATION\nCREATE 160 ACTIVATION\nDESTROY -160 ACTIVATION\n"
              "CREATE 160 ACTIVATION\nCREATE 160 AUTOGRAD_DETAIL\n"
              "DESTROY -160 ACTIVATION\nDESTROY -160 ACTIVATION\n"
              "CREATE 128 GRADIENT\nDESTROY -160 AUTOGRAD_DETAIL\n"
              "CREATE 128 OPTIMIZER_STATE\n"
              "INCREMENT -128 PARAMETER\nINCREMENT 128 PARAMETER\n"
              "DESTROY -128 GRADIENT\n"

              "CREATE 160 ACTIVATION\nCREATE 160 ACTIVATION\nDESTROY -160 ACTIVATION\n"
              "CREATE 160 ACTIVATION\nCREATE 160 AUTOGRAD_DETAIL\n"
              "DESTROY -160 ACTIVATION\nDESTROY -160 ACTIVATION\n"
              "CREATE 128 GRADIENT\nDESTROY -160 AUTOGRAD_DETAIL\n"
              "INCREMENT -128 OPTIMIZER_STATE\nINCREMENT 128 OPTIMIZER_STATE\n"
              "CREATE 128 UNKNOWN\n"
              "INCREMENT -128 OPTIMIZER_STATE\nINCREMENT 128 OPTIMIZER_STATE\n"
              "DESTROY -128 UNKNOWN\n"
              "INCREMENT -128 PARAMETER\nINCREMENT 128 PARAMETER\n"
              "DESTROY -128 GRADIENT\nDESTROY -128 PARAMETER\n");
}

/* The second gradient is added to the first in place: only the first is the gradient. */
static void accumulate_twice(memory_script *s)
{
    ms_begin(s, "MmBackward0", MS_NONE);
    ms_end(s, MS_NONE);
    ms_backward(s, "MmBackward0", -1, MS_NONE);
    ms_alloc(s, GW, 80);
    ms_end(s, ms_out(T(1, GW, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(1, GW, 0)));
    ms_end(s, MS_NONE);
    ms_backward(s, "MmBackward0", -1, MS_NONE);
    ms_alloc(s, GB, 80);
    ms_end(s, ms_out(T(2, GB, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(2, GB, 0)));
    ms_op(s, "aten::add_", ms_in(T(1, GW, 0), T(2, GB, 0)), ms_out(T(1, GW, 1)));
    ms_end(s, MS_NONE);
    ms_free(s, GB, 80);
}

TEST(accumulating_in_place_keeps_the_first_gradient)
{
    ms_expect(accumulate_twice, 0,
              "CREATE 80 GRADIENT\nCREATE 80 AUTOGRAD_DETAIL\n"
              "INCREMENT -80 GRADIENT\nINCREMENT 80 GRADIENT\nDESTROY -80 AUTOGRAD_DETAIL\n");
}

/* MC4b, MC3a, MC2c: no AccumulateGrad, the optimizer's state is older than the trace. */
static void resumed_step(memory_script *s)
{
    ms_begin(s, "aten::mm", ms_in(T(1, X, 0), T(2, W, 5)));
    ms_alloc(s, H, 16);
    ms_end(s, ms_out(T(3, H, 0)));
    ms_backward(s, "MmBackward0", -1, ms_in(T(3, H, 0)));
    ms_alloc(s, GW, 24);
    ms_end(s, ms_out(T(4, GW, 0)));
    ms_scope(s, "Optimizer.step#Adam.step", MS_NONE);
    ms_op(s, "aten::lerp_", ms_in(T(5, SUM, 7), T(4, GW, 0)), MS_NONE); /* records no outputs */
    ms_op(s, "aten::addcdiv_", ms_in(T(2, W, 5), T(5, SUM, 8)), ms_out(T(2, W, 6)));
    ms_end(s, MS_NONE);
    ms_free(s, SUM, 24);
}

TEST(a_step_in_the_middle_of_training)
{
    ms_expect(resumed_step, 0,
              "PRE 0 INPUT\nPRE 0 PARAMETER\nPRE 24 OPTIMIZER_STATE\n"
              "CREATE 16 ACTIVATION\nCREATE 24 GRADIENT\n"
              "INCREMENT -24 OPTIMIZER_STATE\nINCREMENT 24 OPTIMIZER_STATE\n"
              "INCREMENT 0 PARAMETER\nINCREMENT 0 PARAMETER\nDESTROY -24 OPTIMIZER_STATE\n");
}

/* MC3a: a fused optimizer records no outputs; it changes what its first list holds, nothing of the
 * second. Z is no parameter: nothing changes it. */
static void fused_step(memory_script *s)
{
    enum {
        Z = 0xB00
    };
    const uint64_t tensor = MTPROF_INPUT_TENSOR; /* without dimensions */
    const uint64_t list = MTPROF_INPUT_LIST | (uint64_t)2 << 32;
    const uint64_t words[] = {list, tensor, tensor, list, tensor, tensor, MTPROF_INPUT_NONE};
    ms_begin(s, "aten::addmm", ms_in(T(3, B, 0), T(1, X, 0), T(2, W, 0)));
    ms_alloc(s, H, 32);
    ms_end(s, ms_out(T(5, H, 0)));
    ms_begin(s, "aten::mul", ms_in(T(5, H, 0), T(9, Z, 0)));
    ms_alloc(s, LOSS, 32);
    ms_end(s, ms_out(T(6, LOSS, 0)));
    ms_alloc(s, GW, 64);
    ms_alloc(s, GB, 16);
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(7, GW, 0)));
    ms_end(s, MS_NONE);
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(8, GB, 0)));
    ms_end(s, MS_NONE);
    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    ms_begin_words(s, "aten::_fused_sgd_", ms_in(T(2, W, 0), T(3, B, 0), T(7, GW, 0), T(8, GB, 0)),
                   words, sizeof words / sizeof words[0]);
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_free(s, B, 16);
    ms_free(s, W, 64);
    ms_free(s, Z, 32);
}

TEST(a_fused_step_changes_its_first_list)
{
    ms_expect(fused_step, 0,
              "PRE 16 PARAMETER\nPRE 0 INPUT\nPRE 64 PARAMETER\nPRE 32 INPUT\n"
              "CREATE 32 ACTIVATION\nCREATE 32 ACTIVATION\nCREATE 64 GRADIENT\nCREATE 16 GRADIENT\n"
              "DESTROY -16 PARAMETER\nDESTROY -64 PARAMETER\nDESTROY -32 INPUT\n");
}

/* MC0, and MC1: the tensor continues in another storage. */
static void told(memory_script *s)
{
    ms_scope(s, "mtprof::memory::parameter", ms_in(T(2, W, 0)));
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::mm", ms_in(T(1, X, 0), T(2, W, 0)));
    ms_alloc(s, H, 16);
    ms_end(s, ms_out(T(3, H, 0)));
    ms_alloc(s, B, 48);
    ms_op(s, "aten::relu", ms_in(T(2, B, 0)), ms_out(T(4, SUM, 0)));
}

TEST(roles_that_the_host_told)
{
    ms_expect(told, 0,
              "PRE 0 PARAMETER\nPRE 0 INPUT\nCREATE 16 ACTIVATION\nCREATE 48 PARAMETER\n"
              "CREATE 0 ACTIVATION\n");
}

/* MC6: nothing says what the parameter is, so all that goes into the gradient is input. A version
 * has a category of its own. */
static void in_place(memory_script *s)
{
    ms_scope(s, "mtprof::memory::parameter", ms_in(T(2, W, 0)));
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::zeros", MS_NONE);
    ms_alloc(s, H, 64);
    ms_end(s, ms_out(T(3, H, 0)));
    ms_op(s, "aten::add_", ms_in(T(3, H, 0), T(1, X, 0)), ms_out(T(3, H, 1)));
    ms_op(s, "aten::mul_", ms_in(T(3, H, 1), T(2, W, 0)), ms_out(T(3, H, 2)));
}

TEST(versions_have_categories_of_their_own)
{
    ms_expect(in_place, 0,
              "PRE 0 PARAMETER\nPRE 0 INPUT\nCREATE 64 INPUT\n"
              "INCREMENT -64 INPUT\nINCREMENT 64 INPUT\nINCREMENT -64 INPUT\n"
              "INCREMENT 64 ACTIVATION\n");
}

static void no_parameters(memory_script *s)
{
    ms_begin(s, "aten::mul", ms_in(T(1, X, 0), T(2, W, 0)));
    ms_alloc(s, H, 16);
    ms_end(s, ms_out(T(3, H, 0)));
    ms_backward(s, "MulBackward0", -1, ms_in(T(3, H, 0)));
    ms_alloc(s, GW, 24);
    ms_end(s, ms_out(T(4, GW, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(4, GW, 0)));
    ms_end(s, MS_NONE);
}

TEST(without_a_known_parameter_all_is_input)
{
    ms_expect(no_parameters, 0, "PRE 0 INPUT\nPRE 0 INPUT\nCREATE 16 INPUT\nCREATE 24 GRADIENT\n");
}

/* MC6 over devices: the copy of a batch on the device is an input there. */
static void copied(memory_script *s)
{
    ms_begin(s, "aten::to", ms_in(T(1, X, 0)));
    s->device = 1;
    ms_alloc(s, X, 64); /* the same number as the host's address */
    ms_end(s, ms_out(TD(2, X, 0, 1)));
    ms_scope(s, "mtprof::memory::parameter", ms_in(TD(3, W, 0, 1)));
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::mm", ms_in(TD(2, X, 0, 1), TD(3, W, 0, 1)));
    ms_alloc(s, H, 32);
    ms_end(s, ms_out(TD(4, H, 0, 1)));
}

TEST(devices_are_told_apart)
{
    ms_expect(copied, 1, "PRE 0 PARAMETER\nCREATE 64 INPUT\nCREATE 32 ACTIVATION\n");
    ms_expect(copied, 0, "PRE 0 INPUT\n");
    ms_expect(copied, 2, "");
}

/* MC8: one op is the outermost one, but a backward function starts a new one; each thread has its
 * own. */
static void temporaries(memory_script *s)
{
    ms_scope(s, "step", MS_NONE);
    ms_alloc(s, X, 1);
    ms_free(s, X, 1); /* in a scope, which is no op */
    ms_begin(s, "aten::outer", MS_NONE);
    ms_begin(s, "aten::inner", MS_NONE);
    ms_alloc(s, W, 2);
    ms_end(s, MS_NONE);
    ms_free(s, W, 2);
    ms_alloc(s, B, 3);
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::other", MS_NONE);
    ms_free(s, B, 3); /* in another op */
    ms_end(s, MS_NONE);
    ms_begin(s, "engine::run", MS_NONE);
    ms_backward(s, "autograd::engine::evaluate_function: A", -1, MS_NONE);
    ms_backward(s, "A", -1, MS_NONE);
    ms_alloc(s, H, 4);
    ms_free(s, H, 4);
    ms_alloc(s, GW, 5);
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_backward(s, "B", -1, MS_NONE);
    ms_free(s, GW, 5);
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::shared", MS_NONE);
    ms_alloc(s, GB, 6);
    s->track = 1;
    ms_free(s, GB, 6); /* by another thread */
    s->track = 0;
    ms_end(s, MS_NONE);
    ms_end(s, MS_NONE);
}

TEST(temporaries_live_inside_one_op)
{
    ms_expect(temporaries, 0,
              "CREATE 1 UNKNOWN\nDESTROY -1 UNKNOWN\n"
              "CREATE 2 TEMPORARY\nDESTROY -2 TEMPORARY\n"
              "CREATE 3 UNKNOWN\nDESTROY -3 UNKNOWN\n"
              "CREATE 4 TEMPORARY\nDESTROY -4 TEMPORARY\n"
              "CREATE 5 AUTOGRAD_DETAIL\nDESTROY -5 AUTOGRAD_DETAIL\n"
              "CREATE 6 UNKNOWN\nDESTROY -6 UNKNOWN\n");
}

/* A parent on another thread carries its context over. */
static void elsewhere(memory_script *s)
{
    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    s->track = 1;
    ms_scope_under_other(s, "worker");
    ms_alloc(s, X, 8);
    ms_end(s, MS_NONE);
    ms_alloc(s, W, 8);
    s->track = 0;
    ms_alloc(s, H, 8);
    ms_free(s, H, 8);
    ms_end(s, MS_NONE);
}

TEST(a_parent_on_another_thread_counts)
{
    ms_expect(elsewhere, 0,
              "CREATE 8 OPTIMIZER_STATE\nCREATE 8 UNKNOWN\nCREATE 8 UNKNOWN\nDESTROY -8 UNKNOWN\n");
}

/* What the recorder did not see: releases before allocations, allocations without releases, freed
 * twice, tensors without memory, memory that comes back without an allocation. */
static void gaps(memory_script *s)
{
    ms_free(s, X, 10);
    ms_free(s, X, 10);
    ms_alloc(s, W, 20);
    ms_alloc(s, W, 30);
    ms_op(s, "aten::view", ms_in(T(1, 0, 0)), ms_out(T(1, 0, 0)));
    ms_free(s, W, 99); /* the size of the allocation counts */
    ms_op(s, "aten::neg", ms_in(T(2, W, 0)), MS_NONE);
    ms_free(s, W, 5);
    ms_alloc(s, B, 0);
    ms_op(s, "aten::add_", ms_in(T(3, H, 3)), ms_out(T(3, H, 2))); /* a version that goes back */
}

TEST(what_was_not_recorded)
{
    ms_expect(gaps, 0,
              "PRE 10 UNKNOWN\nPRE 0 UNKNOWN\nDESTROY -10 UNKNOWN\n"
              "CREATE 20 UNKNOWN\nDESTROY -20 UNKNOWN\nCREATE 30 UNKNOWN\nDESTROY -30 UNKNOWN\n"
              "CREATE 5 UNKNOWN\nDESTROY -5 UNKNOWN\n");
}

/* MC5: what a gradient or an optimizer's state went into is no activation. MC7: memory of the
 * backward pass that is first seen when it is read. */
static void mixtures(memory_script *s)
{
    ms_scope(s, "mtprof::memory::parameter", ms_in(T(1, W, 0)));
    ms_end(s, MS_NONE);
    ms_scope(s, "mtprof::memory::gradient", ms_in(T(2, GW, 0)));
    ms_end(s, MS_NONE);
    ms_scope(s, "mtprof::memory::optimizer_state", ms_in(T(3, SUM, 0)));
    ms_end(s, MS_NONE);
    ms_begin(s, "aten::mul", ms_in(T(1, W, 0), T(2, GW, 0)));
    ms_alloc(s, H, 1);
    ms_end(s, ms_out(T(4, H, 0)));
    ms_begin(s, "aten::mul", ms_in(T(1, W, 0), T(4, H, 0)));
    ms_alloc(s, LOSS, 2);
    ms_end(s, ms_out(T(5, LOSS, 0)));
    ms_begin(s, "aten::mul", ms_in(T(1, W, 0), T(3, SUM, 0)));
    ms_alloc(s, X, 3);
    ms_end(s, ms_out(T(6, X, 0)));
    ms_backward(s, "A", -1, MS_NONE);
    ms_alloc(s, GB, 4);
    ms_end(s, MS_NONE);
    ms_op(s, "aten::item", ms_in(T(7, GB, 0)), MS_NONE);
}

TEST(activations_come_from_forward_values_alone)
{
    ms_expect(mixtures, 0,
              "PRE 0 PARAMETER\nPRE 0 GRADIENT\nPRE 0 OPTIMIZER_STATE\n"
              "CREATE 1 UNKNOWN\nCREATE 2 UNKNOWN\nCREATE 3 UNKNOWN\nCREATE 4 AUTOGRAD_DETAIL\n");
}

/* A change is shown when its op begins, or when the block exists. */
static void moments(memory_script *s)
{
    ms_alloc(s, X, 8);
    ms_begin(s, "aten::mul_", ms_in(T(1, X, 0)));
    ms_alloc(s, TMP, 4);
    ms_free(s, TMP, 4);
    ms_end(s, ms_out(T(1, X, 1)));
    ms_begin(s, "aten::full", MS_NONE);
    ms_alloc(s, H, 16);
    ms_op(s, "aten::fill_", ms_in(T(2, H, 0)), MS_NONE);
    ms_alloc(s, B, 1);
    ms_end(s, ms_out(T(2, H, 1)));
}

TEST(changes_are_told_when_they_begin)
{
    ms_expect(moments, 0,
              "CREATE 8 UNKNOWN\nINCREMENT -8 UNKNOWN\nINCREMENT 8 UNKNOWN\n"
              "CREATE 4 TEMPORARY\nDESTROY -4 TEMPORARY\n"
              "CREATE 16 UNKNOWN\nCREATE 1 UNKNOWN\nINCREMENT -16 UNKNOWN\nINCREMENT 16 UNKNOWN\n");
}

/* MC2a, MC2b: AccumulateGrad that records its output, and one that adds to a gradient older than
 * the trace. The wrapper of a backward function is not the op that temporaries live in. */
static void accumulators(memory_script *s)
{
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(1, GW, 0)));
    ms_alloc(s, GB, 24);
    ms_end(s, ms_out(T(2, GB, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(1, GW, 0)));
    ms_op(s, "aten::add_", ms_in(T(3, H, 0), T(1, GW, 0)), ms_out(T(3, H, 1)));
    ms_end(s, MS_NONE);
    ms_backward(s, "autograd::engine::evaluate_function: A", -1, MS_NONE);
    ms_alloc(s, TMP, 5);
    ms_free(s, TMP, 5);
    ms_end(s, MS_NONE);
    ms_free(s, GW, 1);
    ms_free(s, H, 2);
}

TEST(gradients_are_what_accumulators_make)
{
    ms_expect(accumulators, 0,
              "PRE 1 UNKNOWN\nPRE 2 GRADIENT\nCREATE 24 GRADIENT\n"
              "INCREMENT -2 GRADIENT\nINCREMENT 2 GRADIENT\n"
              "CREATE 5 AUTOGRAD_DETAIL\nDESTROY -5 AUTOGRAD_DETAIL\n"
              "DESTROY -1 UNKNOWN\nDESTROY -2 GRADIENT\n");
}

/* MC4a: alive after the step, also where the end of the memory was not seen; scratch is not. */
static void states(memory_script *s)
{
    ms_scope(s, "Optimizer.step#SGD.step", MS_NONE);
    ms_alloc(s, SUM, 8);
    ms_begin(s, "aten::zeros", MS_NONE);
    ms_alloc(s, TMP, 4);
    ms_end(s, ms_out(T(1, TMP, 0)));
    ms_op(s, "aten::add_", ms_in(T(1, TMP, 0)), ms_out(T(1, TMP, 1)));
    ms_free(s, TMP, 4);
    ms_end(s, MS_NONE);
    ms_alloc(s, SUM, 2);
}

TEST(optimizer_state_survives_its_step)
{
    ms_expect(states, 0,
              "CREATE 8 OPTIMIZER_STATE\nCREATE 4 UNKNOWN\n"
              "INCREMENT -4 UNKNOWN\nINCREMENT 4 UNKNOWN\nDESTROY -4 UNKNOWN\n"
              "DESTROY -8 OPTIMIZER_STATE\nCREATE 2 UNKNOWN\n");
}

/* MC3b: of inputs with the gradient's size the last that nothing computed. */
static void same_sizes(memory_script *s)
{
    ms_alloc(s, X, 64);
    ms_alloc(s, W, 64);
    ms_begin(s, "aten::neg", ms_in(T(1, X, 0)));
    ms_alloc(s, H, 64);
    ms_end(s, ms_out(T(3, H, 0)));
    ms_begin_numbered(s, "aten::mm", 9, ms_in(T(2, W, 0), T(3, H, 0)));
    ms_alloc(s, LOSS, 64);
    ms_end(s, ms_out(T(4, LOSS, 0)));
    ms_backward(s, "MmBackward0", 9, MS_NONE);
    ms_alloc(s, GW, 64);
    ms_end(s, ms_out(T(5, GW, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(5, GW, 0)));
    ms_end(s, MS_NONE);
}

TEST(a_gradient_finds_its_parameter)
{
    ms_expect(same_sizes, 0,
              "CREATE 64 INPUT\nCREATE 64 PARAMETER\nCREATE 64 INPUT\nCREATE 64 ACTIVATION\n"
              "CREATE 64 GRADIENT\n");
}

/* The same, but a later op with a number that wants the same place has it when backward comes. */
static void given_way(memory_script *s)
{
    ms_alloc(s, X, 64);
    ms_alloc(s, W, 64);
    ms_begin_numbered(s, "aten::mm", 9, ms_in(T(2, W, 0), T(1, X, 0)));
    ms_end(s, MS_NONE);
    ms_begin_numbered(s, "aten::mm", 9 + (1 << 16), ms_in(T(1, X, 0)));
    ms_end(s, MS_NONE);
    ms_backward(s, "MmBackward0", 9, MS_NONE);
    ms_alloc(s, GW, 64);
    ms_end(s, ms_out(T(5, GW, 0)));
    ms_backward(s, "torch::autograd::AccumulateGrad", -1, ms_in(T(5, GW, 0)));
    ms_end(s, MS_NONE);
}

/* An op whose inputs are more than are kept for its gradients. */
static void many_inputs(memory_script *s)
{
    ms_begin_numbered(s, "aten::cat", 9,
                      ms_in(T(1, 0x100, 0), T(2, 0x200, 0), T(3, 0x300, 0), T(4, 0x400, 0),
                            T(5, 0x500, 0), T(6, 0x600, 0), T(7, 0x700, 0)));
    ms_end(s, MS_NONE);
}

/* A read of a storage as it was before all its changes. */
static void old_version(memory_script *s, unsigned changes)
{
    for (unsigned i = 0; i < changes; i++) {
        ms_op(s, "aten::add_", ms_in(T(1, X, i)), ms_out(T(1, X, i + 1)));
    }
    ms_op(s, "aten::add", ms_in(T(1, X, 0)), MS_NONE);
}

static void few_changes(memory_script *s)
{
    old_version(s, 64);
}

static void many_changes(memory_script *s)
{
    old_version(s, 66);
}

TEST(what_does_not_fit_the_tables_is_counted)
{
    free(ms_run(same_sizes, 0));
    CHECK_EQ_U64(ms_left_out, 0);
    free(ms_run(given_way, 0));
    CHECK_EQ_U64(ms_left_out, 1);
    free(ms_run(many_inputs, 0));
    CHECK_EQ_U64(ms_left_out, 1);
    free(ms_run(few_changes, 0));
    CHECK_EQ_U64(ms_left_out, 0);
    free(ms_run(many_changes, 0));
    CHECK_EQ_U64(ms_left_out, 1);
}

/* Any stream at all: no crash, nothing below zero (ms_run checks). */
static uint64_t random_state;

static ms_tensors random_tensors(uint64_t *state)
{
    ms_tensors t = {.n = (uint32_t)(mt_test_random(state) % 4)};
    for (uint32_t i = 0; i < t.n; i++) {
        t.items[i] =
            TD(mt_test_random(state) % 20, 16 * (mt_test_random(state) % 12),
               (uint32_t)(mt_test_random(state) % 5), (uint16_t)(mt_test_random(state) % 2));
        uint64_t role = mt_test_random(state) % 16; /* mostly none, also unknown ones */
        t.items[i].role = (uint16_t)(role < 6 ? role | (mt_test_random(state) % 2) << 8 : 0);
        t.items[i].offset = (int64_t)(mt_test_random(state) % 100) - 10;
    }
    return t;
}

static void random_program(memory_script *s)
{
    static const char *const names[] = {"aten::add",
                                        "aten::add_",
                                        "torch::autograd::AccumulateGrad",
                                        "Optimizer.step#X.step",
                                        "autograd::engine::evaluate_function: Y",
                                        "mtprof::memory::parameter",
                                        "mtprof::memory::input",
                                        "mtprof::memory::",
                                        ""};
    uint64_t state = random_state;
    for (int i = 0; i < 400; i++) {
        uint64_t dice = mt_test_random(&state) % 10;
        s->track = (uint32_t)(mt_test_random(&state) % 2);
        s->device = (uint8_t)(mt_test_random(&state) % 2);
        uint64_t address = 16 * (mt_test_random(&state) % 12);
        const char *name = names[mt_test_random(&state) % (sizeof names / sizeof names[0])];
        if (dice < 2 && s->depth[s->track] < MS_DEPTH) {
            ms_begin_numbered(s, name, (int64_t)dice * i % 7, random_tensors(&state));
        } else if (dice < 3 && s->depth[s->track] < MS_DEPTH) {
            ms_backward(s, name, i % 7 - 1, random_tensors(&state));
        } else if (dice < 5 && s->depth[s->track] > 0) {
            ms_end(s, random_tensors(&state));
        } else if (dice < 7) {
            ms_alloc(s, address, (int64_t)(mt_test_random(&state) % 1000));
        } else if (dice < 9) {
            ms_free(s, address, (int64_t)(mt_test_random(&state) % 1000));
        } else if (s->depth[s->track] < MS_DEPTH) {
            ms_scope(s, name, random_tensors(&state));
        }
    }
}

/* ---- recorded with the tensor (MC0) ---- */

/* A frozen layer, its gradient from before, and a state: nothing but the roles says what they are.
 */
static void roles_are_told(memory_script *s)
{
    const uint16_t gradient = MTPROF_TENSOR_GRADIENT | MTPROF_TENSOR_NOT_READ;
    ms_begin(s, "aten::mul",
             ms_in(T(1, X, 0), TR(2, W, MTPROF_TENSOR_PARAMETER, 0), TR(3, GW, gradient, 32)));
    ms_alloc(s, H, 64);
    ms_end(s, ms_out(T(4, H, 0)));
    ms_begin(
        s, "aten::_fused_adam_",
        ms_in(TR(2, W, MTPROF_TENSOR_PARAMETER, 0), TR(5, SUM, MTPROF_TENSOR_OPTIMIZER_STATE, 0)));
    ms_end(s, MS_NONE);
    ms_free(s, X, 48);
    ms_free(s, W, 32);
    ms_free(s, GW, 32);
    ms_free(s, SUM, 16);
}

TEST(roles_that_come_with_tensors_are_believed)
{
    /* The gradient is not what mul reads: H is an activation. */
    ms_expect(roles_are_told, 0,
              "PRE 48 INPUT\nPRE 32 PARAMETER\nPRE 32 GRADIENT\nPRE 16 OPTIMIZER_STATE\n"
              "CREATE 64 ACTIVATION\nDESTROY -48 INPUT\nDESTROY -32 PARAMETER\n"
              "DESTROY -32 GRADIENT\nDESTROY -16 OPTIMIZER_STATE\n");
}

/* A gradient that is recorded and never freed has the bytes of its record. */
static void gradient_that_stays(memory_script *s)
{
    const uint16_t gradient = MTPROF_TENSOR_GRADIENT | MTPROF_TENSOR_NOT_READ;
    ms_op(s, "aten::relu", ms_in(TR(2, W, MTPROF_TENSOR_PARAMETER, 0), TR(3, GW, gradient, 40)),
          MS_NONE);
    ms_free(s, W, 32);
}

TEST(a_told_gradient_has_its_bytes)
{
    ms_expect(gradient_that_stays, 0, "PRE 32 PARAMETER\nPRE 40 GRADIENT\nDESTROY -32 PARAMETER\n");
}

/* The second parameter of a long list comes when the op has begun. */
static void late_part(memory_script *s)
{
    ms_begin(s, "aten::_fused_sgd_", ms_in(TR(1, W, MTPROF_TENSOR_PARAMETER, 0)));
    ms_late(s, TR(2, B, MTPROF_TENSOR_PARAMETER, 0));
    ms_end(s, MS_NONE);
    ms_free(s, W, 32);
    ms_free(s, B, 8);
}

TEST(tensors_that_come_late_count)
{
    ms_expect(late_part, 0,
              "PRE 32 PARAMETER\nPRE 8 PARAMETER\nDESTROY -32 PARAMETER\nDESTROY -8 PARAMETER\n");
}

TEST(random_streams)
{
    random_state = mt_test_seed();
    for (int i = 0; i < 200; i++) {
        free(ms_run(random_program, (uint8_t)(i % 2)));
        random_state += 0x9E3779B97F4A7C15u;
    }
}
